//! What an operator does to a cluster, or fate: topics come and go, leaders move, nodes die and return.

use std::time::{Duration, Instant};

use krafka_protocol::records::Batch;
use krafka_protocol::{Str, Uuid};

use crate::coordinators::{self, Spread};
use crate::groups::{self, share};
use crate::handlers::sessions::FetchSessions;
use crate::log::Appended;
use crate::purgatory::WaitKey;
use crate::state::State;
use crate::timers::Timer;
use crate::topics::{Partition, Topic, TopicSettings};
use crate::transactions;

impl State {
    /// Deletes a topic. Those who wait for it learn that it is gone.
    pub(crate) fn delete_topic(&mut self, id: Uuid) -> Option<Topic> {
        let topic = self.topics.remove(id)?;
        self.reassignments.topic_deleted(id);
        self.log_dirs.topic_deleted(id);
        self.offsets.topic_deleted(&topic.name);
        self.pending_offsets.topic_deleted(&topic.name);
        share::topic_deleted(self, id);
        for (index, _) in topic.indexed() {
            self.wake_partition(id, index);
        }
        Some(topic)
    }

    /// Gives a topic more partitions, on the replicas given.
    pub(crate) fn grow_topic(&mut self, id: Uuid, assignments: Vec<Vec<i32>>) {
        let live = self.nodes.live_ids();
        if let Some(topic) = self.topics.by_id_mut(id) {
            topic.grow(assignments, &live);
        }
    }

    /// Makes a live replica the leader of a partition, and the coordinator of what an internal topic keeps there. Says
    /// whether there was anything to change.
    pub(crate) fn move_leader(&mut self, topic: &str, index: i32, node: i32, now: Instant) -> bool {
        let is_up = self.nodes.is_up(node);
        let Some(partition) = self.topics.partition_mut(topic, index) else { return false };
        if !is_up || !partition.replicas.contains(&node) || !partition.lead(node) {
            return false;
        }
        self.leader_changed(topic, index, now);
        true
    }

    /// Elects the leader of a partition again: only the epoch changes.
    pub(crate) fn bump_leader_epoch(&mut self, topic: &str, index: i32, now: Instant) {
        if let Some(partition) = self.topics.partition_mut(topic, index) {
            partition.bump_epoch();
            self.leader_changed(topic, index, now);
        }
    }

    /// Loses the records of a partition from `offset` on, and elects its leader again.
    pub(crate) fn truncate(&mut self, topic: &str, index: i32, offset: i64, now: Instant) {
        if let Some(partition) = self.topics.partition_mut(topic, index) {
            partition.truncate(offset);
            self.bump_leader_epoch(topic, index, now);
        }
    }

    /// Appends a batch that was found valid to a partition, and lets those who wait for it know.
    pub(crate) fn append(&mut self, topic: Uuid, index: i32, batch: &Batch, now: Instant) -> Option<Appended> {
        let (now_ms, limit) = (self.clock.millis(now), self.replica_lag_time_max());
        let found = self.topics.by_id_mut(topic)?;
        let (partition, settings) = found.led_mut().nth(usize::try_from(index).ok()?)?;
        let appended = partition.append(batch, settings, now_ms, now);
        if let Some(due) = partition.arm_shrink(limit, now) {
            self.timers.set(due, Timer::ShrinkIsr { topic, partition: index });
        }
        self.wake_partition(topic, index);
        self.maintain_logs(now);
        Some(appended)
    }

    /// Makes a partition begin at `offset`, and lets those who wait for it know.
    pub(crate) fn delete_records(&mut self, topic: Uuid, index: i32, offset: i64) {
        if let Some(partition) = self.topics.by_id_mut(topic).and_then(|topic| topic.partition_mut(index)) {
            partition.log.delete_before(offset);
            self.wake_partition(topic, index);
        }
    }

    /// How long a replica may lag before it is out of sync: `replica.lag.time.max.ms`.
    fn replica_lag_time_max(&self) -> Duration {
        self.broker_millis("replica.lag.time.max.ms", 30_000)
    }

    /// Throws replicas out of sync that have lagged too long.
    pub(crate) fn shrink_isr(&mut self, topic: Uuid, index: i32, now: Instant) {
        let leader = self.topics.by_id_mut(topic).and_then(|topic| topic.partition_mut(index)?.leader);
        let limit = self.replica_lag_time_max();
        if !self.may_shrink(leader) {
            // It tries again, as a leader does that gets no answer.
            self.timers.set(now + limit, Timer::ShrinkIsr { topic, partition: index });
            return;
        }
        let Some(found) = self.topics.by_id_mut(topic).and_then(|topic| topic.partition_mut(index)) else { return };
        let has_shrunk = found.shrink_isr(limit, now);
        if let Some(due) = found.arm_shrink(limit, now) {
            self.timers.set(due, Timer::ShrinkIsr { topic, partition: index });
        }
        if has_shrunk {
            self.wake_partition(topic, index);
        }
    }

    /// Makes a follower stop fetching, since this moment or the next write, or catch up again.
    pub(crate) fn set_lag(&mut self, topic: &str, index: i32, node: i32, lags: bool, since: Option<Instant>) -> bool {
        let is_up = self.nodes.is_up(node);
        let Some(id) = self.topics.by_name(topic).map(|topic| topic.id) else { return false };
        let Some(partition) = self.topics.partition_mut(topic, index) else { return false };
        if !partition.replicas.contains(&node) || (lags && partition.leader == Some(node)) {
            return false;
        }
        if lags {
            partition.hold(node, since);
        } else {
            partition.release(node, is_up);
        }
        self.wake_partition(id, index);
        true
    }

    /// Follows up on a change of leader: waiting requests look again, and what the partition coordinates moves with it.
    pub(crate) fn leader_changed(&mut self, topic: &str, index: i32, now: Instant) {
        if let Some(partition) = self.topics.partition_mut(topic, index) {
            partition.forgive_lag(now);
        }
        self.mind_followers(Some(now));
        if let Some(id) = self.topics.by_name(topic).map(|topic| topic.id) {
            share::leader_changed(self, id, index);
            self.wake_partition(id, index);
        }
        if topic == coordinators::OFFSETS_TOPIC {
            groups::coordinator_moved(self, index, now);
        }
        if topic == coordinators::TRANSACTIONS_TOPIC {
            transactions::coordinator_moved(self, index, now);
        } else {
            transactions::tell_all(self, now);
        }
    }

    /// Takes a node down: leaders move, and what it kept in memory is lost.
    pub(crate) fn node_died(&mut self, node: i32, now: Instant) {
        self.go_on_without(node, now);
        self.mind_links(now);
    }

    /// Lets the others go on without a node, which may run.
    pub(crate) fn go_on_without(&mut self, node: i32, now: Instant) {
        self.nodes.set_up(node, false);
        if let Some(sessions) = self.sessions.get_mut(&node) {
            sessions.clear();
        }
        if let Some(sessions) = self.share.sessions.get_mut(&node) {
            sessions.clear();
        }
        let live = self.nodes.live_ids();
        self.change_partitions(
            |partition, settings| partition.node_died(node, settings.unclean_leader_election, &live, now),
            now,
        );
    }

    /// Brings a node back: it catches up, and leads what nobody else may lead.
    pub(crate) fn node_returned(&mut self, node: i32, now: Instant) {
        let died = !self.nodes.is_running(node);
        self.nodes.set_up(node, true);
        let live = self.nodes.live_ids();
        self.change_partitions(
            |partition, settings| partition.node_returned(node, died, settings.unclean_leader_election, &live),
            now,
        );
        self.finish_reassignments(now);
        self.mind_links(now);
    }

    /// Follows up on a start of all nodes: sessions are gone, and coordinators read what they had kept.
    pub(crate) fn wake_up(&mut self, now: Instant) {
        self.sessions.values_mut().for_each(FetchSessions::clear);
        self.share.sessions.values_mut().for_each(|sessions| sessions.clear());
        self.spread = Spread::found_by(&self.config, &self.topics);
        let partitions = self.topics.iter().flat_map(|topic| topic.indexed().map(|(index, _)| (&topic.name, index)));
        let partitions: Vec<_> = partitions.map(|(topic, index)| (topic.clone(), index)).collect();
        for (topic, index) in partitions {
            self.leader_changed(&topic, index, now);
        }
    }

    /// Spreads the coordinators' keys over the partitions that there are, as a broker does when it starts.
    pub(crate) fn spread_keys_anew(&mut self, now: Instant) {
        let found = Spread::found_by(&self.config, &self.topics);
        if found == self.spread {
            return;
        }
        self.spread = found;
        let internal = self.topics.iter().filter(|topic| topic.internal);
        let partitions = internal.flat_map(|topic| topic.indexed().map(|(index, _)| (topic.name.clone(), index)));
        for (topic, index) in partitions.collect::<Vec<_>>() {
            self.leader_changed(&topic, index, now);
        }
    }

    /// Changes all partitions, and follows up on those whose leader changed.
    fn change_partitions(&mut self, mut change: impl FnMut(&mut Partition, &TopicSettings) -> bool, now: Instant) {
        let mut changed = Vec::new();
        for topic in self.topics.iter_mut() {
            for (index, partition) in (0_i32..).zip(&mut topic.partitions) {
                let before = partition.log.high_watermark();
                if change(partition, &topic.settings) {
                    changed.push((topic.name.clone(), index));
                }
                // Who dies holds the high watermark back no longer.
                if partition.log.high_watermark() != before {
                    self.purgatory.wake(WaitKey { topic: topic.id, partition: index });
                }
            }
        }
        for (topic, partition) in changed {
            self.leader_changed(&topic, partition, now);
        }
    }

    /// The names of all topics that are not Kafka's own.
    pub(crate) fn topic_names(&self) -> Vec<Str> {
        self.topics.iter().filter(|topic| !topic.internal).map(|topic| topic.name.clone()).collect()
    }
}
