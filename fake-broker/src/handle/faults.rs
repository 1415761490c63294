//! Rules, and the history of what clients asked.

use serde_json::Value;

use super::FakeCluster;
use crate::faults::{Apis, Book, Node, Rule, RuleBuilder, RuleText};
use crate::history::History;
use crate::json_words;
use crate::operator::Unasked;
use crate::state::State;

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
        RuleBuilder::new(self.book(), apis.into(), self.running.shared.now())
    }

    /// Begins a rule about new connections: they can be refused, accepted late, or never read from.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// ```
    /// use krafka_fake_broker::FakeCluster;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let fake = FakeCluster::builder().nodes(3).start_on_pipes();
    /// let dead = fake.when_connecting().on(1).times(3).refuse();
    /// # }
    /// ```
    pub fn when_connecting(&self) -> RuleBuilder {
        RuleBuilder::connecting(self.book(), self.running.shared.now())
    }

    /// Begins a rule about the network between clients and nodes, or between two nodes: it can be slow, narrow, lossy,
    /// or parted, each way by itself. Unlike other rules it acts until it is removed.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use krafka_fake_broker::{FakeCluster, Towards};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let fake = FakeCluster::builder().nodes(3).start_on_pipes();
    /// fake.when_network().latency(Duration::from_millis(40), Duration::from_millis(10));
    /// // Node 1 hears its clients, and they do not hear node 1.
    /// let silent = fake.when_network().on(1).towards(Towards::Peer).cut_off();
    /// // …
    /// silent.remove();
    /// # }
    /// ```
    pub fn when_network(&self) -> RuleBuilder {
        RuleBuilder::network(self.book(), self.running.shared.now())
    }

    /// Puts a rule to work that is written in JSON, in the form that the control port takes.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Errors
    ///
    /// What is wrong with it, with the name of the field.
    pub fn install_json(&self, rule: &str) -> Result<Rule, String> {
        self.install(json_words::read(rule.as_bytes())?)
    }

    /// Puts a rule to work.
    pub(crate) fn install(&self, rule: RuleText) -> Result<Rule, String> {
        self.book().install(rule, self.running.shared.now())
    }

    /// Where the rules are written.
    pub(crate) fn book(&self) -> Book {
        self.look(|state| state.faults.book())
    }

    /// Lets a node answer a request of any API, written as JSON, as to an administrator who may do everything. The
    /// answer is JSON, too.
    pub(crate) fn request(
        &self,
        api: &str,
        node: Option<i32>,
        version: Option<i16>,
        fields: &Value,
    ) -> Result<Value, Unasked> {
        let answer = self.control(|state, now| state.request(api, node, version, fields, now))?;
        Ok(Node::of(answer.structure()).to_json())
    }

    /// Returns what a test should not pass over: rules that have not acted, rules whose change of the cluster was
    /// impossible when they acted, and, if the cluster is [strict](crate::FakeClusterBuilder::strict), requests that
    /// Kafka refuses because they are wrong in themselves.
    ///
    /// **Unstable:** may change in any release.
    pub fn complaints(&self) -> Vec<String> {
        self.look(complaints)
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

/// What a strict cluster complains of.
pub(super) fn complaints(state: &State) -> Vec<String> {
    let unfired = state.faults.unfired().into_iter().map(|rule| format!("a rule never acted: {rule}"));
    unfired.chain(state.complaints.iter().cloned()).collect()
}
