//! Share groups (KIP-932): their members, and which partitions they read. How far they have come is in another topic,
//! [`coordinator::share`](crate::coordinator::share).

use super::TopicPartition;
use crate::{Message, Str, Uuid};

/// A share group.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0)]
pub struct ShareGroupPartitionMetadataKey {
    /// The group.
    pub group_id: Str,
}

/// The partitions that a share group reads, and whether their state is made, as the preview in Kafka 3.9 has it.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct ShareGroupPartitionMetadataValue {
    /// The partitions whose state is made.
    pub initialized_topics: Vec<TopicPartitionsInfo>,
    /// The topics whose state is being deleted.
    pub deleting_topics: Vec<TopicInfo>,
}

/// Partitions of one topic.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct TopicPartitionsInfo {
    /// The topic's id.
    pub topic_id: Uuid,
    /// The topic's name.
    pub topic_name: Str,
    /// The numbers of the partitions.
    pub partitions: Vec<i32>,
}

/// A topic.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct TopicInfo {
    /// The topic's id.
    pub topic_id: Uuid,
    /// The topic's name.
    pub topic_name: Str,
}

/// A member of a share group.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0)]
pub struct ShareGroupMemberMetadataKey {
    /// The group.
    pub group_id: Str,
    /// The member's id.
    pub member_id: Str,
}

/// Who a member of a share group is, and what it wants.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct ShareGroupMemberMetadataValue {
    /// The rack where it stands, `None` if it does not say.
    pub rack_id: Option<Str>,
    /// What the client calls itself.
    pub client_id: Str,
    /// The host that it connects from.
    pub client_host: Str,
    /// The topics that it wants to read, by name.
    pub subscribed_topic_names: Vec<Str>,
}

/// A share group.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0)]
pub struct ShareGroupMetadataKey {
    /// The group.
    pub group_id: Str,
}

/// The state of a share group. The previews in Kafka 3.9 and 4.0 wrote it without the hash, which is an error here.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct ShareGroupMetadataValue {
    /// The group's epoch, one more whenever its members, their wishes or their topics change.
    pub epoch: i32,
    /// A hash of the topics that the group reads, to see whether they have changed; 0 for none.
    pub metadata_hash: i64,
}

/// A share group.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0)]
pub struct ShareGroupTargetAssignmentMetadataKey {
    /// The group.
    pub group_id: Str,
}

/// For which state of the group the target assignment was made.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct ShareGroupTargetAssignmentMetadataValue {
    /// The group's epoch at that time. While it is lower than the group's, a new assignment is due.
    pub assignment_epoch: i32,
    /// When the assignment was made, in milliseconds since 1970; 0 if unknown, as before Kafka 4.3 (KIP-1263).
    #[field(tag = 0, ignorable)]
    pub assignment_timestamp: i64,
}

/// A member of a share group.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0)]
pub struct ShareGroupTargetAssignmentMemberKey {
    /// The group.
    pub group_id: Str,
    /// The member's id.
    pub member_id: Str,
}

/// What a member of a share group shall have.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct ShareGroupTargetAssignmentMemberValue {
    /// The partitions, by topic.
    pub topic_partitions: Vec<TopicPartition>,
}

/// A member of a share group.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0)]
pub struct ShareGroupCurrentMemberAssignmentKey {
    /// The group.
    pub group_id: Str,
    /// The member's id.
    pub member_id: Str,
}

/// What a member of a share group has.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct ShareGroupCurrentMemberAssignmentValue {
    /// The epoch with which the member's next heartbeat must come.
    pub member_epoch: i32,
    /// The epoch before that, with which it comes if the last answer was lost.
    pub previous_member_epoch: i32,
    /// 0 the member has all that it shall have, which in a share group it always has; 127 unknown.
    pub state: i8,
    /// The partitions that it has.
    pub assigned_partitions: Vec<ShareTopicPartitions>,
}

/// Partitions of one topic that a member of a share group has.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(name = "TopicPartitions", versions = 0, flexible = 0..)]
pub struct ShareTopicPartitions {
    /// The topic's id.
    pub topic_id: Uuid,
    /// The numbers of the partitions.
    pub partitions: Vec<i32>,
}

/// A share group.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0)]
pub struct ShareGroupStatePartitionMetadataKey {
    /// The group.
    pub group_id: Str,
}

/// The partitions that a share group reads, and whether their state is made. The preview in Kafka 4.0 wrote it without
/// the first list, which is an error here.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct ShareGroupStatePartitionMetadataValue {
    /// The partitions whose state is being made.
    pub initializing_topics: Vec<TopicPartitionsInfo>,
    /// The partitions whose state is made.
    pub initialized_topics: Vec<TopicPartitionsInfo>,
    /// The topics whose state is being deleted.
    pub deleting_topics: Vec<TopicInfo>,
}
