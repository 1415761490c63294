//! Groups as administrators see them: listed, described, deleted, and robbed of offsets.

use krafka_protocol::api::consumer_group_describe::DescribedGroup as DescribedConsumerGroup;
use krafka_protocol::api::describe_groups::DescribedGroup;
use krafka_protocol::api::list_groups::ListedGroup;
use krafka_protocol::{ErrorCode, Str};

use super::desk::Refusal;
use super::{Group, GroupState, Groups, Image};
use crate::faults::KafkaVersion;
use crate::words::words;

/// What a classic group's state is called when there is no such group.
const DEAD: Str = Str::from_static("Dead");

impl Groups {
    /// All groups, each with its state and kind.
    pub(crate) fn list(&self) -> impl Iterator<Item = ListedGroup> {
        self.groups.iter().map(|(id, group)| ListedGroup {
            group_id: id.clone(),
            protocol_type: match group {
                Group::Classic(group) => group.protocol_type().cloned().unwrap_or_default(),
                Group::Consumer(_) => Str::from_static("consumer"),
                Group::Share(_) => Str::from_static("share"),
                Group::Streams(_) => Str::from_static("streams"),
            },
            group_state: Str::from_static(group.state().name()),
            group_type: Str::from_static(group.kind().name()),
        })
    }

    /// A classic group. Before version 6 of DescribeGroups, one that does not exist is dead and no error.
    pub(crate) fn describe(&self, group_id: &Str, version: i16) -> DescribedGroup {
        let missing = match self.groups.get(group_id) {
            Some(Group::Classic(group)) => return group.describe(group_id),
            Some(_) => format!("Group {group_id} is not a classic group."),
            None => format!("Group {group_id} not found."),
        };
        let error = if version >= 6 { ErrorCode::GROUP_ID_NOT_FOUND } else { ErrorCode::NONE };
        DescribedGroup {
            error_code: error.0,
            error_message: (version >= 6).then(|| missing.into()),
            group_id: group_id.clone(),
            group_state: DEAD,
            ..DescribedGroup::default()
        }
    }

    /// A group of KIP-848.
    pub(crate) fn describe_consumer(&self, image: &Image<'_>, group_id: &Str) -> DescribedConsumerGroup {
        let missing = match self.groups.get(group_id) {
            Some(Group::Consumer(group)) => return group.describe(group_id, image, &self.config),
            Some(_) => format!("Group {group_id} is not a consumer group."),
            None => format!("Group {group_id} not found."),
        };
        DescribedConsumerGroup {
            error_code: ErrorCode::GROUP_ID_NOT_FOUND.0,
            // Kafka 3.9 keeps the reason to itself.
            error_message: (image.version >= KafkaVersion::V4_0).then(|| missing.into()),
            group_id: group_id.clone(),
            ..DescribedConsumerGroup::default()
        }
    }

    /// The topics that the description of a group of KIP-848 tells of.
    pub(crate) fn described_topics(&self, image: &Image<'_>, group_id: &str) -> Vec<Str> {
        match self.groups.get(group_id) {
            Some(Group::Consumer(group)) => group.topics_in_sight(image).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    /// Deletes a group that has no members.
    pub(crate) fn delete(&mut self, group_id: &Str) -> Result<(), Refusal> {
        match self.groups.get(group_id).map(Group::state) {
            None => Err(Refusal::new(ErrorCode::GROUP_ID_NOT_FOUND, format!("Group {group_id} not found."))),
            Some(GroupState::Empty) => {
                self.remove(group_id);
                Ok(())
            }
            Some(_) => Err(Refusal::new(ErrorCode::NON_EMPTY_GROUP, words(ErrorCode::NON_EMPTY_GROUP))),
        }
    }

    /// Whether an administrator may delete offsets of a group at all.
    pub(crate) fn check_offset_delete(&self, group_id: &str) -> ErrorCode {
        match self.groups.get(group_id) {
            // Share groups have no offsets of this kind.
            Some(Group::Share(_)) | None => ErrorCode::GROUP_ID_NOT_FOUND,
            // Nobody knows what the members read, if they are not consumers.
            Some(Group::Classic(group)) if !group.members().is_empty() && !group.is_of_consumers() => {
                ErrorCode::NON_EMPTY_GROUP
            }
            Some(_) => ErrorCode::NONE,
        }
    }

    /// Whether members of a group read a topic, for all that the coordinator knows.
    pub(crate) fn is_subscribed(&self, group_id: &str, topic: &str) -> bool {
        match self.groups.get(group_id) {
            Some(Group::Classic(group)) => group.is_subscribed_to(topic),
            Some(Group::Consumer(group)) => group.is_subscribed_to(topic),
            Some(Group::Streams(group)) => group.is_subscribed_to(topic),
            Some(Group::Share(_)) | None => false,
        }
    }
}
