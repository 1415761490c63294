//! Snapshots: a cluster as it was at a moment, to look at, to ask, and to go back to.

use super::FakeCluster;
use crate::cluster::Cluster;

impl FakeCluster {
    /// Returns a copy of the cluster as it is, that goes its own way: a machine without sockets, which a test feeds
    /// with [`Input`](crate::Input)s to see what the cluster would do; or to [`restore`](Self::restore) it later.
    ///
    /// **Unstable:** may change in any release.
    pub fn snapshot(&self) -> Cluster {
        self.running.shared.look(Clone::clone)
    }

    /// Puts the cluster back to what it was when a snapshot of it was taken: topics, records, groups, transactions,
    /// settings, and which nodes are up.
    ///
    /// It is as if all nodes had stopped, got the disks of then, and started again. All connections end; fetch and
    /// share sessions are gone; members of groups have their whole session timeouts before them. Rules and their hits
    /// stay as they are, and so do the history, complaints, and the ports where nodes listen. Time does not go back: a
    /// transaction that has timed out meanwhile is aborted.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// ```
    /// use krafka_fake_broker::FakeCluster;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let fake = FakeCluster::builder().topic("orders", 1).start_on_pipes();
    /// let empty = fake.snapshot();
    /// fake.append("orders", 0, None, Some(b"tea"));
    ///
    /// fake.restore(&empty);
    /// assert_eq!(fake.high_watermark("orders", 0), Some(0));
    /// # }
    /// ```
    pub fn restore(&self, snapshot: &Cluster) {
        self.running.shared.step(|cluster, now| cluster.restore(snapshot, now));
    }

    /// Keeps a snapshot by a number, for who has no variables here; the oldest goes when there are too many.
    pub(crate) fn keep_snapshot(&self) -> u64 {
        let snapshot = self.snapshot();
        let mut kept = self.snapshots();
        let number = kept.last_key_value().map_or(1, |(number, _)| number + 1);
        kept.insert(number, snapshot);
        if kept.len() > MAX_SNAPSHOTS {
            kept.pop_first();
        }
        number
    }

    /// The numbers of the snapshots that are kept.
    pub(crate) fn kept_snapshots(&self) -> Vec<u64> {
        self.snapshots().keys().copied().collect()
    }

    /// Goes back to a snapshot that is kept. Says if there is one of that number.
    pub(crate) fn restore_kept(&self, number: u64) -> bool {
        let found = self.snapshots().get(&number).cloned();
        found.as_ref().map(|snapshot| self.restore(snapshot)).is_some()
    }

    /// Drops a snapshot. Says if there was one of that number.
    pub(crate) fn drop_snapshot(&self, number: u64) -> bool {
        self.snapshots().remove(&number).is_some()
    }
}

/// How many snapshots are kept by number.
const MAX_SNAPSHOTS: usize = 16;
