//! [`Published`]: the current snapshot, and the wait for the next one.

use std::pin::pin;
use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::Notify;

use super::snapshot::Snapshot;

/// What the cluster's task shares with everybody: it alone publishes, anybody looks or waits.
///
/// Waiters wake in the order in which they began to wait. A `tokio::sync::watch` wakes them in an order drawn by
/// chance, which would make two runs of the same seed differ.
#[derive(Default)]
pub(super) struct Published {
    current: ArcSwap<Snapshot>,
    changed: Notify,
}

impl Published {
    pub(super) fn publish(&self, snapshot: Arc<Snapshot>) {
        self.current.store(snapshot);
        self.changed.notify_waiters();
    }

    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// The next snapshot that is newer than version `since`; at once, if there is one.
    pub(super) async fn newer(&self, since: u64) -> Arc<Snapshot> {
        loop {
            let mut changed = pin!(self.changed.notified());
            // Counts as waiting from here on, so that what is published after the look is not missed.
            changed.as_mut().enable();
            let snapshot = self.snapshot();
            if snapshot.version > since {
                return snapshot;
            }
            changed.await;
        }
    }
}
