//! Controls of leaders: who leads a partition, in which epoch, and what an unclean election loses.

use super::FakeCluster;
use crate::operations::Operation;

impl FakeCluster {
    /// Returns the node that leads a partition, or `None` when there is no leader or no such partition.
    pub fn leader(&self, topic: &str, partition: i32) -> Option<i32> {
        self.look(|state| state.topics.partition(topic, partition)?.leader)
    }

    /// Returns a partition's leader epoch.
    pub fn leader_epoch(&self, topic: &str, partition: i32) -> Option<i32> {
        self.look(|state| Some(state.topics.partition(topic, partition)?.leader_epoch))
    }

    /// Makes a node the leader of a partition, at the next leader epoch; and one of its replicas, if it is not.
    ///
    /// # Panics
    ///
    /// If the node is not up or there is no such partition.
    #[track_caller]
    pub fn move_leader(&self, topic: &str, partition: i32, node: i32) {
        self.expect(Operation::MoveLeader { topic: topic.to_owned(), partition, node: Some(node) });
    }

    /// Raises a partition's leader epoch while its leader stays: clients that know the old epoch are fenced.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If there is no such partition.
    pub fn bump_leader_epoch(&self, topic: &str, partition: i32) {
        assert!(self.leader_epoch(topic, partition).is_some(), "there is no partition {topic}-{partition}");
        self.control(|state, now| state.bump_leader_epoch(topic, partition, now));
    }

    /// Elects a replica that never got what was written from `offset` on, as an unclean election does: the records from
    /// there on are lost, acknowledged or not, and the leader epoch rises. The batch that holds `offset` goes as a
    /// whole.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If there is no such partition, or it has no such offset: below its first one, or behind its end.
    #[track_caller]
    pub fn truncate(&self, topic: &str, partition: i32, offset: i64) {
        self.expect(Operation::Truncate { topic: topic.to_owned(), partition, offset });
    }

    /// Makes a follower stop fetching from its leader, as if its disk hung: it serves what it has, and holds the high
    /// watermark back, until it lacks something and is thrown out of the in-sync replicas, 30 s
    /// (`replica.lag.time.max.ms`) after it stopped. If it is made the leader then, what it lacks is lost for
    /// everyone: an unclean election.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If the node has no replica of the partition, or leads it.
    pub fn lag(&self, node: i32, topic: &str, partition: i32) {
        let lags = self.control(|state, now| state.set_lag(topic, partition, node, true, Some(now)));
        assert!(lags, "node {node} does not follow the leader of {topic}-{partition}");
    }

    /// Lets a follower fetch again that [`lag`](Self::lag) stopped: it catches up, and is in sync.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If the node has no replica of the partition.
    pub fn catch_up(&self, node: i32, topic: &str, partition: i32) {
        let follows = self.control(|state, now| {
            let follows = state.set_lag(topic, partition, node, false, Some(now));
            state.finish_reassignments(now);
            follows
        });
        assert!(follows, "node {node} has no replica of {topic}-{partition}");
    }

    /// Returns the in-sync replicas of a partition.
    ///
    /// **Unstable:** may change in any release.
    pub fn in_sync_replicas(&self, topic: &str, partition: i32) -> Vec<i32> {
        self.look(|state| state.topics.partition(topic, partition).map(|found| found.isr.clone()).unwrap_or_default())
    }

    /// Keeps reassignments of partitions from ending, so that they can be listed and cancelled; or lets them end.
    ///
    /// **Unstable:** may change in any release.
    pub fn hold_reassignments(&self, hold: bool) {
        self.expect(Operation::HoldReassignments { hold });
    }
}
