//! Rules, and the history of what clients asked.

use super::FakeCluster;
use crate::faults::{Apis, RuleBuilder};
use crate::history::History;

impl FakeCluster {
    /// Begins a rule: what is to happen to requests of an API (or of several, or of [`Apis::ANY`]).
    ///
    /// ```
    /// use krafka_fake_broker::FakeCluster;
    /// use krafka_protocol::{ApiKey, ErrorCode};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let fake = FakeCluster::builder().topic("orders", 1).start_on_pipes();
    /// let produce = fake.when(ApiKey::Produce).partition("orders", 0).times(2);
    /// let refused = produce.reply_error(ErrorCode::NOT_LEADER_OR_FOLLOWER);
    /// // … produce …
    /// assert_eq!(refused.hits(), 0);
    /// # }
    /// ```
    pub fn when(&self, apis: impl Into<Apis>) -> RuleBuilder {
        RuleBuilder::new(self.look(|state| state.faults.book()), apis.into())
    }

    /// Ends all rules.
    pub fn clear_faults(&self) {
        self.look(|state| state.faults.clear());
    }

    /// Returns the rules that have not acted yet, in words: a test that means its faults to happen asserts that there
    /// are none.
    pub fn unfired_rules(&self) -> Vec<String> {
        self.look(|state| state.faults.unfired())
    }

    /// Returns the requests and answers so far.
    pub fn history(&self) -> History {
        self.look(|state| state.history.clone())
    }
}
