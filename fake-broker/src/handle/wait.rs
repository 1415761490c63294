//! Waiting for something to become so, without asking again and again.

use std::time::Duration;

use super::FakeCluster;
use crate::groups::GroupView;

/// How long anything is waited for before it is given up: longer than whatever is going to happen takes.
const PATIENCE: Duration = Duration::from_secs(60);

impl FakeCluster {
    /// Waits until `look` finds something, and returns it. It is asked now, and again after each step of the cluster:
    /// a request, an answer, a timer, a control.
    ///
    /// `look` must only look: a control inside of it would be a step as well, after which it is asked again.
    ///
    /// # Panics
    ///
    /// After 60 seconds of the runtime's time, with `what` in the text.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future means nothing but to wait no longer.
    ///
    /// ```
    /// # use krafka_fake_broker::FakeCluster;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> std::io::Result<()> {
    /// let fake = FakeCluster::builder().topic("orders", 1).start().await?;
    /// fake.append("orders", 0, None, Some(b"tea"));
    ///
    /// let end = fake.wait_for("a record", |fake| fake.high_watermark("orders", 0).filter(|&end| end > 0)).await;
    /// assert_eq!(end, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn wait_for<T>(&self, what: &str, look: impl FnMut(&Self) -> Option<T>) -> T {
        let found = tokio::time::timeout(PATIENCE, self.find(look)).await;
        found.unwrap_or_else(|_| panic!("there was no {what} within {PATIENCE:?}"))
    }

    /// Waits until a group has so many members and all of them know what they are assigned, and returns it.
    ///
    /// # Panics
    ///
    /// After 60 seconds of the runtime's time, and says how the group is then.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future means nothing but to wait no longer.
    pub async fn wait_group_stable(&self, group: &str, members: usize) -> GroupView {
        let stable = self.find(|fake| fake.group(group).filter(|view| view.is_stable_with(members)));
        match tokio::time::timeout(PATIENCE, stable).await {
            Ok(view) => view,
            Err(_) => match self.group(group) {
                None => {
                    panic!("nobody joined the group {group} within {PATIENCE:?}, and {members} members should have")
                }
                Some(view) => panic!(
                    "the group {group} is {} with {} members after {PATIENCE:?}, and should be Stable with {members}",
                    view.state,
                    view.members.len(),
                ),
            },
        }
    }

    /// Asks `look` after each step until it finds something.
    async fn find<T>(&self, mut look: impl FnMut(&Self) -> Option<T>) -> T {
        let steps = self.running.shared.steps();
        loop {
            // Counted first: a step that comes while we look is not missed.
            let seen = steps.count();
            if let Some(found) = look(self) {
                return found;
            }
            // A cluster whose handle is here goes on.
            let _ = steps.reach(seen + 1).await;
        }
    }
}
