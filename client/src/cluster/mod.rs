//! What the client knows of the cluster: brokers, topics, leaders, coordinators.
//!
//! One task owns it. Readers take the current [`Snapshot`] without waiting; whoever finds it wrong says so, and the
//! task fetches a new one.

mod coordinators;
mod driver;
mod merge;
mod published;
mod refresher;
mod snapshot;

use std::sync::Arc;
use std::time::Duration;

use krafka_protocol::Str;
use tokio::sync::{mpsc, oneshot};

pub(crate) use self::coordinators::CoordinatorKind;
pub(crate) use self::merge::LeaderHint;
use self::published::Published;
pub use self::refresher::MetadataRecoveryStrategy;
pub(crate) use self::refresher::Rules;
pub(crate) use self::snapshot::{Node, PartitionView, Snapshot, TopicView};
use crate::error::KrafkaError;
use crate::metrics::Registry;
use crate::network::Network;

/// The view of one cluster. Cheap to clone; all clones share it.
#[derive(Clone)]
pub(crate) struct Cluster {
    published: Arc<Published>,
    inputs: mpsc::UnboundedSender<driver::Input>,
}

impl Cluster {
    /// Starts the task that keeps the view. Nothing is sent before somebody asks.
    pub(crate) fn start(
        network: Network,
        rules: Rules,
        registry: Arc<Registry>,
        allow_auto_create: bool,
        request_timeout: Duration,
    ) -> Self {
        let published = Arc::<Published>::default();
        // Each call puts in one small input at most, and the task takes them in as they come.
        let (inputs, receiver) = mpsc::unbounded_channel();
        // The task ends with the last handle, so that the connections must not hold one.
        let weak = inputs.downgrade();
        network.when_misrouted(move || {
            if let Some(inputs) = weak.upgrade() {
                let _ = inputs.send(refresher::Input::RebootstrapRequired.into());
            }
        });
        let is_checked = rules.recovery == MetadataRecoveryStrategy::Rebootstrap;
        let bootstrap = rules.bootstrap.clone();
        let asking = driver::Asking { network, bootstrap, allow_auto_create, is_checked, request_timeout };
        tokio::spawn(driver::run(rules, registry, asking, published.clone(), receiver));
        Self { published, inputs }
    }

    /// Whether the task has ended, so that nobody keeps the view any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.inputs.is_closed()
    }

    /// What is known now.
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.published.snapshot()
    }

    /// The next snapshot that differs from the one of version `since`; at once, if there is one.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping the future.
    pub(crate) async fn changed(&self, since: u64) -> Arc<Snapshot> {
        self.published.newer(since).await
    }

    /// Waits for a fetch that covers these topics, and returns the snapshot after it.
    ///
    /// One fetch, whatever it says: a topic that is not there yet, or has no leader, is for the caller to see in the
    /// snapshot, and to load again as long as its own deadline allows. Asking again is slowed down here.
    ///
    /// # Errors
    /// When no broker could be asked. It names every address that was tried.
    ///
    /// # Cancel safety
    /// Dropping the future only stops the waiting.
    pub(crate) async fn load(&self, topics: &[Str]) -> Result<Arc<Snapshot>, KrafkaError> {
        let (waiter, loaded) = oneshot::channel();
        self.send(refresher::Input::Loaded { topics: topics.to_vec(), waiter }.into());
        loaded.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Returns a snapshot that knows these topics: the current one if it does, is not too old and nobody doubts it,
    /// else that of the next [`load`](Self::load).
    ///
    /// # Errors
    /// As for [`load`](Self::load).
    ///
    /// # Cancel safety
    /// Dropping the future only stops the waiting.
    pub(crate) async fn known(&self, topics: &[Str]) -> Result<Arc<Snapshot>, KrafkaError> {
        let (waiter, known) = oneshot::channel();
        self.send(refresher::Input::Needed { topics: topics.to_vec(), waiter }.into());
        known.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Why no broker could be asked so far, at the end of one's patience: what was met with at each address, and which
    /// of them have not answered. The snapshot, if it came in this moment.
    ///
    /// # Errors
    /// See above.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping the future.
    pub(crate) async fn give_up(&self) -> Result<Arc<Snapshot>, KrafkaError> {
        let (waiter, told) = oneshot::channel();
        self.send(refresher::Input::GivenUp { waiter }.into());
        told.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Says that what is known of these topics is wrong, or too little. They are fetched again soon, until it succeeds.
    pub(crate) fn refresh(&self, topics: &[Str]) {
        self.send(refresher::Input::Doubted { topics: topics.to_vec() }.into());
    }

    /// Names the topics that `owner` wants to be kept fresh by age. They replace those that it named before.
    pub(crate) fn watch_topics(&self, owner: u64, topics: Vec<Str>) {
        self.send(refresher::Input::Watched { owner, topics }.into());
    }

    /// Takes note of a leader that a broker named in a response (KIP-951). Older news is ignored.
    pub(crate) fn leader_hint(&self, hint: LeaderHint) {
        self.send(refresher::Input::Hinted(hint).into());
    }

    /// The coordinator of a group or transactional id. Waits while there is none yet; bound it by a deadline.
    ///
    /// # Errors
    /// Only those that no retry can help with, such as a missing permission.
    ///
    /// # Cancel safety
    /// Dropping the future only stops the waiting.
    pub(crate) async fn coordinator(&self, kind: CoordinatorKind, key: &Str) -> Result<Node, KrafkaError> {
        let (waiter, found) = oneshot::channel();
        self.send(coordinators::Input::Wanted { key: (kind, key.clone()), waiter }.into());
        found.await.unwrap_or_else(|_| Err(gone()))
    }

    /// Says that `node` is not, or no longer, that coordinator.
    pub(crate) fn coordinator_lost(&self, kind: CoordinatorKind, key: &Str, node: &Node) {
        self.send(coordinators::Input::Lost { key: (kind, key.clone()), node: node.clone() }.into());
    }

    /// Begins again with the bootstrap servers.
    pub(crate) fn rebootstrap(&self) {
        self.send(refresher::Input::Rebootstrap.into());
    }

    /// Names other bootstrap servers.
    pub(crate) fn seed(&self, bootstrap: Vec<Node>) {
        self.send(refresher::Input::Seeded(bootstrap).into());
    }

    fn send(&self, input: driver::Input) {
        // The task ends only with its runtime; then the waiter that is dropped with the input says so.
        let _ = self.inputs.send(input);
    }
}

/// The task ends with the last handle, whose owner cannot ask any more, or with the runtime that it lives in.
#[cold]
pub(crate) fn gone() -> KrafkaError {
    KrafkaError::closed("the runtime that the Kafka handle was connected in has ended: connect in one that lives on")
}

#[cfg(test)]
mod tests;
