//! The topics of a cluster: their ids, names, settings and partitions.

use std::collections::{BTreeMap, BTreeSet};

use krafka_protocol::{Str, Uuid};

pub(crate) use crate::configs::TopicSettings;
pub(crate) use crate::partition::Partition;
use crate::partition::Rules;

/// The longest topic name: Kafka makes a directory of it, with room for the partition.
const MAX_NAME_LENGTH: usize = 249;

/// All topics, by id and by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Topics {
    by_id: BTreeMap<Uuid, Topic>,
    ids: BTreeMap<Str, Uuid>,
}

/// The settings of a topic on single nodes.
pub(crate) type OwnSettings = BTreeMap<i32, TopicSettings>;

/// A topic.
#[derive(Clone, Debug)]
pub(crate) struct Topic {
    pub(crate) id: Uuid,
    pub(crate) name: Str,
    pub(crate) internal: bool,
    pub(crate) settings: TopicSettings,
    /// The settings on the nodes that have values of their own for what the topic inherits.
    pub(crate) own_settings: OwnSettings,
    pub(crate) partitions: Vec<Partition>,
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
        self.ids.keys().find(|other| collide(name, other))
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
        let Some(rules) = self.partitions.first().map(Partition::rules) else { return };
        self.partitions.extend(assignments.into_iter().map(|replicas| Partition::new(replicas, live, rules)));
    }

    /// The settings by which a node goes.
    pub(crate) fn settings_on(&self, node: Option<i32>) -> &TopicSettings {
        on(&self.settings, &self.own_settings, node)
    }

    /// The partitions, each with the settings by which its leader goes.
    pub(crate) fn led_mut(&mut self) -> impl Iterator<Item = (&mut Partition, &TopicSettings)> {
        let Self { settings, own_settings, partitions, .. } = self;
        partitions.iter_mut().map(|partition| {
            let settings = on(settings, own_settings, partition.leader);
            (partition, settings)
        })
    }

    /// Goes by other settings from now on.
    pub(crate) fn set_settings(&mut self, settings: TopicSettings, own_settings: OwnSettings) {
        self.settings = settings;
        self.own_settings = own_settings;
        for partition in &mut self.partitions {
            let min_insync_replicas = self.settings.min_insync_replicas;
            partition.set_rules(Rules { min_insync_replicas, ..partition.rules() });
        }
    }

    /// The partitions with their indexes.
    pub(crate) fn indexed(&self) -> impl Iterator<Item = (i32, &Partition)> {
        (0_i32..).zip(&self.partitions)
    }
}

fn on<'a>(settings: &'a TopicSettings, own: &'a OwnSettings, node: Option<i32>) -> &'a TopicSettings {
    node.and_then(|node| own.get(&node)).unwrap_or(settings)
}

/// Whether two names are one to Kafka's metrics: they differ only in dots and underscores.
pub(crate) fn collide(name: &str, other: &str) -> bool {
    let unified = |name: &str| name.bytes().map(|byte| if byte == b'.' { b'_' } else { byte }).collect::<Vec<_>>();
    name.contains(['.', '_']) && unified(name) == unified(other)
}

/// What Kafka says of a topic whose name collides with one that is there.
pub(crate) fn collision(name: &str, other: &str) -> String {
    format!("Topic '{name}' collides with existing topic: {other}")
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

    #[test]
    fn names_follow_kafkas_rules() {
        assert!(validate_name("orders.eu-1_x").is_ok());
        for name in ["", ".", "..", "a b", "ü", &"x".repeat(250)] {
            assert!(validate_name(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn dots_and_underscores_are_one() {
        assert!(collide("a.b_c", "a_b.c") && collide("a.b", "a.b"));
        for (one, other) in [("a.b", "a-b"), ("ab", "ab"), ("a.b", "a.bc")] {
            assert!(!collide(one, other), "{one} {other}");
        }
    }
}
