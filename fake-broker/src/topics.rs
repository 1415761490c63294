//! The topics of a cluster: their ids, names, settings and partitions, and who leads each partition.
//!
//! All nodes share one truth: what a leader has appended, every in-sync replica has. Leadership follows KRaft's rules:
//! a leader that dies is replaced by the first live replica in sync, each change of leader raises the leader epoch, and
//! a partition whose last in-sync replica died has no leader until that replica is back.

use std::collections::{BTreeMap, BTreeSet};

use krafka_protocol::{Str, Uuid};

use crate::log::Log;

/// The longest topic name: Kafka makes a directory of it, with room for the partition.
const MAX_NAME_LENGTH: usize = 249;

/// All topics, by id and by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Topics {
    by_id: BTreeMap<Uuid, Topic>,
    ids: BTreeMap<Str, Uuid>,
}

/// A topic.
#[derive(Clone, Debug)]
pub(crate) struct Topic {
    pub(crate) id: Uuid,
    pub(crate) name: Str,
    pub(crate) internal: bool,
    pub(crate) settings: TopicSettings,
    pub(crate) partitions: Vec<Partition>,
}

/// The settings of a topic that change how the cluster behaves, and the others as they were given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TopicSettings {
    pub(crate) max_message_bytes: i32,
    pub(crate) min_insync_replicas: usize,
    pub(crate) log_append_time: bool,
    pub(crate) compacted: bool,
    /// What was set by name at creation, to be echoed and described.
    pub(crate) given: BTreeMap<Str, Str>,
}

/// A partition: who holds it, who leads it, and its log.
#[derive(Clone, Debug)]
pub(crate) struct Partition {
    pub(crate) replicas: Vec<i32>,
    pub(crate) isr: Vec<i32>,
    pub(crate) leader: Option<i32>,
    pub(crate) leader_epoch: i32,
    pub(crate) log: Log,
}

impl Topics {
    /// Adds a topic, whose name and id are new.
    pub(crate) fn insert(&mut self, topic: Topic) {
        let previous = self.ids.insert(topic.name.clone(), topic.id);
        assert!(previous.is_none(), "a topic is created once");
        self.by_id.insert(topic.id, topic);
    }

    /// Removes a topic with all that is in it.
    pub(crate) fn remove(&mut self, id: Uuid) -> Option<Topic> {
        let topic = self.by_id.remove(&id)?;
        self.ids.remove(&topic.name);
        Some(topic)
    }

    /// The topic of that name.
    pub(crate) fn by_name(&self, name: &str) -> Option<&Topic> {
        self.by_id.get(self.ids.get(name)?)
    }

    /// The topic with that id.
    pub(crate) fn by_id(&self, id: Uuid) -> Option<&Topic> {
        self.by_id.get(&id)
    }

    /// The topic with that id, to change it.
    pub(crate) fn by_id_mut(&mut self, id: Uuid) -> Option<&mut Topic> {
        self.by_id.get_mut(&id)
    }

    /// The topic that a request names: by id where its version has ids, else by name.
    pub(crate) fn named(&self, name: &str, id: Uuid) -> Option<&Topic> {
        if id.is_zero() { self.by_name(name) } else { self.by_id(id) }
    }

    /// The name of the topic with that id.
    pub(crate) fn name_of(&self, id: &Uuid) -> Option<Str> {
        self.by_id.get(id).map(|topic| topic.name.clone())
    }

    /// A partition of the topic of that name.
    pub(crate) fn partition(&self, name: &str, index: i32) -> Option<&Partition> {
        self.by_name(name)?.partition(index)
    }

    /// A partition of the topic of that name, to change it.
    pub(crate) fn partition_mut(&mut self, name: &str, index: i32) -> Option<&mut Partition> {
        self.by_id.get_mut(self.ids.get(name)?)?.partition_mut(index)
    }

    /// All topics in the order of their names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Topic> {
        self.ids.values().filter_map(|id| self.by_id.get(id))
    }

    /// All topics, to change them, in the order of their ids.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Topic> {
        self.by_id.values_mut()
    }

    /// The topic whose name differs from `name` only in dots and underscores: Kafka's metrics take the two for one.
    pub(crate) fn colliding(&self, name: &str) -> Option<&Str> {
        let unify = |name: &str| name.replace('.', "_");
        let unified = unify(name);
        self.ids.keys().find(|other| other.contains(['.', '_']) && unify(other) == unified)
    }
}

impl Topic {
    /// The partition with that index.
    pub(crate) fn partition(&self, index: i32) -> Option<&Partition> {
        self.partitions.get(usize::try_from(index).ok()?)
    }

    /// The partition with that index, to change it.
    pub(crate) fn partition_mut(&mut self, index: i32) -> Option<&mut Partition> {
        self.partitions.get_mut(usize::try_from(index).ok()?)
    }

    /// Adds partitions on the replicas given, of which `live` are up.
    pub(crate) fn grow(&mut self, assignments: Vec<Vec<i32>>, live: &BTreeSet<i32>) {
        self.partitions.extend(assignments.into_iter().map(|replicas| Partition::new(replicas, live)));
    }

    /// The partitions with their indexes.
    pub(crate) fn indexed(&self) -> impl Iterator<Item = (i32, &Partition)> {
        (0_i32..).zip(&self.partitions)
    }
}

impl Partition {
    /// A new partition on `replicas`, of which `live` are up; the first of those leads.
    pub(crate) fn new(replicas: Vec<i32>, live: &BTreeSet<i32>) -> Self {
        let isr: Vec<i32> = replicas.iter().copied().filter(|replica| live.contains(replica)).collect();
        let leader = isr.first().copied();
        let mut log = Log::default();
        log.begin_epoch(0);
        Self { isr: if isr.is_empty() { replicas.clone() } else { isr }, replicas, leader, leader_epoch: 0, log }
    }

    /// Makes `node`, which is a live replica, the leader. Moving to the present leader changes nothing.
    pub(crate) fn lead(&mut self, node: i32) -> bool {
        if self.leader == Some(node) {
            return false;
        }
        self.change_leader(Some(node));
        if !self.isr.contains(&node) {
            self.isr.push(node);
        }
        true
    }

    /// Raises the leader epoch without a change of leader, as a controller does when it re-elects the same one.
    pub(crate) fn bump_epoch(&mut self) {
        self.change_leader(self.leader);
    }

    /// Takes a dead node out of the in-sync replicas and elects another leader if it led. Says if the leader changed.
    pub(crate) fn node_died(&mut self, node: i32) -> bool {
        // The last in-sync replica stays in the set: only it has everything, so that only it may lead again.
        if self.isr.len() > 1 {
            self.isr.retain(|&replica| replica != node);
        }
        if self.leader != Some(node) {
            return false;
        }
        let successor = self.replicas.iter().copied().find(|replica| *replica != node && self.isr.contains(replica));
        self.change_leader(successor);
        true
    }

    /// Lets a node that is back catch up, and lead if nobody does. Says if the leader changed.
    pub(crate) fn node_returned(&mut self, node: i32) -> bool {
        if !self.replicas.contains(&node) {
            return false;
        }
        if self.leader.is_none() {
            if !self.isr.contains(&node) {
                return false;
            }
            self.change_leader(Some(node));
            return true;
        }
        if !self.isr.contains(&node) {
            self.isr.push(node);
        }
        false
    }

    fn change_leader(&mut self, leader: Option<i32>) {
        self.leader = leader;
        self.leader_epoch += 1;
        self.log.begin_epoch(self.leader_epoch);
    }
}

impl Default for TopicSettings {
    fn default() -> Self {
        Self {
            // Kafka's default: one mebibyte and the overhead of a batch.
            max_message_bytes: 1_048_588,
            min_insync_replicas: 1,
            log_append_time: false,
            compacted: false,
            given: BTreeMap::new(),
        }
    }
}

/// Says what is wrong with a topic's name, in Kafka's words.
///
/// # Errors
///
/// If Kafka would refuse the name.
pub fn validate_name(name: &str) -> Result<(), String> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    if name.is_empty() {
        return Err("Topic name is invalid: the empty string is not allowed".to_owned());
    }
    if name == "." || name == ".." {
        return Err(format!("Topic name is invalid: '{name}' is not allowed"));
    }
    if name.len() > MAX_NAME_LENGTH {
        return Err(format!(
            "Topic name is invalid: the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
        ));
    }
    if !name.bytes().all(legal) {
        return Err(format!(
            "Topic name is invalid: '{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' \
             and '-'"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition() -> Partition {
        Partition::new(vec![1, 2, 3], &BTreeSet::from([1, 2, 3]))
    }

    #[test]
    fn the_next_live_replica_leads_at_a_higher_epoch() {
        let mut partition = partition();

        assert!(partition.node_died(1));

        assert_eq!((partition.leader, partition.leader_epoch, partition.isr), (Some(2), 1, vec![2, 3]));
    }

    #[test]
    fn the_last_replica_in_sync_is_the_only_one_that_may_lead_again() {
        let mut partition = partition();
        for node in [1, 2, 3] {
            partition.node_died(node);
        }
        assert_eq!((partition.leader, partition.isr.clone()), (None, vec![3]));

        assert!(!partition.node_returned(1));
        assert!(partition.node_returned(3));

        assert_eq!((partition.leader, partition.leader_epoch), (Some(3), 4));
    }

    #[test]
    fn a_follower_that_is_back_is_in_sync_but_does_not_lead() {
        let mut partition = partition();
        partition.node_died(1);

        assert!(!partition.node_returned(1));

        assert_eq!((partition.leader, partition.isr), (Some(2), vec![2, 3, 1]));
    }

    #[test]
    fn names_follow_kafkas_rules() {
        assert!(validate_name("orders.eu-1_x").is_ok());
        for name in ["", ".", "..", "a b", "ü", &"x".repeat(250)] {
            assert!(validate_name(name).is_err(), "{name:?}");
        }
    }
}
