//! Which topic, partition, group … a part of a message is about, found by the names that Kafka's schemas give fields.
//!
//! Requests name topics by name or by id, and single groups or lists; answers repeat them beside each error. The names
//! of the fields are few and mean the same in every API, so that no API needs a line here: the exceptions do.

use krafka_protocol::{Str, Uuid};

use super::tree::{Node, Tree};

/// The entities that a structure inside a message is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) topic: Option<Str>,
    pub(crate) topic_id: Option<Uuid>,
    pub(crate) partition: Option<i32>,
    pub(crate) group: Option<Str>,
    pub(crate) transactional_id: Option<Str>,
    pub(crate) resource: Option<Str>,
}

/// What the values of a field are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    Topic,
    TopicId,
    Partition,
    Group,
    TransactionalId,
    /// A group or a transactional id, as the kind beside it says; an answer does not tell which.
    CoordinatorKey,
    /// The resource that configurations belong to; its kind is beside it.
    Resource,
}

/// The kinds of a resource that has configurations, as the protocol numbers them.
const TOPIC_RESOURCE: i64 = 2;
const GROUP_RESOURCE: i64 = 32;

impl Meaning {
    /// What a field of a structure means.
    pub(crate) fn of(structure: &str, field: &str) -> Option<Self> {
        Some(match field {
            "topic" | "topic_name" | "topic_names" | "subscribed_topic_names" => Self::Topic,
            // A topic's own name, and not that of one of its configurations.
            "name" if structure.contains("Topic") && !structure.contains("Config") => Self::Topic,
            "topic_id" => Self::TopicId,
            "partition" | "partition_index" | "partition_id" | "partition_indexes" | "partitions" => Self::Partition,
            "index" if structure.contains("Partition") => Self::Partition,
            "group_id" | "group_ids" | "groups_names" | "groups" => Self::Group,
            "transactional_id" | "transactional_ids" => Self::TransactionalId,
            "coordinator_keys" => Self::CoordinatorKey,
            "key" if structure.starts_with("FindCoordinator") || structure == "Coordinator" => Self::CoordinatorKey,
            "resource_name" => Self::Resource,
            _ => return None,
        })
    }
}

impl Place {
    /// The same place and what `node` itself says; topics named by id get their name from `name_of`.
    pub(crate) fn within(&self, node: &Node, name_of: &dyn Fn(&Uuid) -> Option<Str>) -> Self {
        let mut place = self.clone();
        for (field, value) in node.schema.fields.iter().zip(&node.fields) {
            match (Meaning::of(node.schema.name, field.name), value) {
                (Some(Meaning::Topic), Tree::Str(name)) if !name.is_empty() => place.topic = Some(name.clone()),
                (Some(Meaning::TopicId), Tree::Uuid(id)) if !id.is_zero() => {
                    place.topic_id = Some(*id);
                    place.topic = name_of(id).or(place.topic);
                }
                (Some(Meaning::Partition), Tree::Int(index)) if field.name != "partitions" => {
                    place.partition = i32::try_from(*index).ok();
                }
                (Some(Meaning::Group), Tree::Str(group)) => place.group = Some(group.clone()),
                (Some(Meaning::TransactionalId), Tree::Str(id)) => place.transactional_id = Some(id.clone()),
                (Some(Meaning::CoordinatorKey), Tree::Str(key)) if !key.is_empty() => place.coordinator_key(node, key),
                (Some(Meaning::Resource), Tree::Str(name)) => {
                    place.resource = Some(name.clone());
                    match node.get("resource_type") {
                        Some(Tree::Int(TOPIC_RESOURCE)) => place.topic = Some(name.clone()),
                        Some(Tree::Int(GROUP_RESOURCE)) => place.group = Some(name.clone()),
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        place
    }

    /// Takes a coordinator's key for what it is.
    pub(crate) fn coordinator_key(&mut self, node: &Node, key: &Str) {
        match node.get("key_type") {
            Some(Tree::Int(0)) => self.group = Some(key.clone()),
            Some(Tree::Int(1)) => self.transactional_id = Some(key.clone()),
            // A share partition's key begins with its group.
            Some(Tree::Int(_)) => self.group = key.split(':').next().map(Str::from),
            _ => (self.group, self.transactional_id) = (Some(key.clone()), Some(key.clone())),
        }
    }
}
