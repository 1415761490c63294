//! Consumer groups (KIP-848): the coordinator's own words for who wants what, who shall have it, and who has it.

use crate::{Bytes, Message, Str, Uuid};

/// A consumer group.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0)]
pub struct ConsumerGroupMetadataKey {
    /// The group.
    pub group_id: Str,
}

/// The state of a consumer group.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct ConsumerGroupMetadataValue {
    /// The group's epoch, one more whenever its members, their wishes or their topics change.
    pub epoch: i32,
    /// A hash of the topics that the group reads, to see whether they have changed; 0 for none, as before Kafka 4.1
    /// (KIP-1101).
    #[field(tag = 0)]
    pub metadata_hash: i64,
}

/// A consumer group.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0)]
pub struct ConsumerGroupPartitionMetadataKey {
    /// The group.
    pub group_id: Str,
}

/// The topics that a consumer group reads, to see whether they have changed. From Kafka 4.1 on a hash does that
/// (KIP-1101), and this is only read.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct ConsumerGroupPartitionMetadataValue {
    /// The topics.
    pub topics: Vec<TopicMetadata>,
}

/// A topic as it was when the group last looked.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct TopicMetadata {
    /// The topic's id.
    pub topic_id: Uuid,
    /// The topic's name.
    pub topic_name: Str,
    /// How many partitions it has.
    pub num_partitions: i32,
    /// Where its partitions are; empty if no broker says its rack, and from Kafka 4.0 on.
    pub partition_metadata: Vec<PartitionMetadata>,
}

/// Where a partition is.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct PartitionMetadata {
    /// The partition's number.
    pub partition: i32,
    /// The racks of the brokers that have it.
    pub racks: Vec<Str>,
}

/// A member of a consumer group.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0)]
pub struct ConsumerGroupMemberMetadataKey {
    /// The group.
    pub group_id: Str,
    /// The member's id.
    pub member_id: Str,
}

/// Who a member of a consumer group is, and what it wants.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct ConsumerGroupMemberMetadataValue {
    /// The name of a static member, `None` for a dynamic one.
    pub instance_id: Option<Str>,
    /// The rack where it stands, `None` if it does not say.
    pub rack_id: Option<Str>,
    /// What the client calls itself.
    pub client_id: Str,
    /// The host that it connects from.
    pub client_host: Str,
    /// The topics that it wants to read, by name.
    pub subscribed_topic_names: Vec<Str>,
    /// A pattern of topics that it wants to read, `None` or empty for none.
    pub subscribed_topic_regex: Option<Str>,
    /// For how many milliseconds the coordinator waits until it gives partitions up, -1 if it has not said.
    #[field(default = -1)]
    pub rebalance_timeout_ms: i32,
    /// The assignor that it wants, `None` if it leaves that to the broker.
    pub server_assignor: Option<Str>,
    /// What it said by the classic protocol, `None` if it speaks the new one. The default is no `None`: what was
    /// written before there was such a thing says nothing of either.
    #[field(tag = 0)]
    pub classic_member_metadata: Option<ClassicMemberMetadata>,
}

/// What a member says that speaks the classic protocol in a group of the new kind.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct ClassicMemberMetadata {
    /// After how many milliseconds without a heartbeat it counts as gone.
    pub session_timeout_ms: i32,
    /// The assignors that it knows, the dearest first.
    pub supported_protocols: Vec<ClassicProtocol>,
}

/// An assignor that a member knows.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct ClassicProtocol {
    /// The assignor's name.
    pub name: Str,
    /// What the member wants: a [`Subscription`](crate::group::Subscription).
    pub metadata: Bytes,
}

/// A consumer group.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0)]
pub struct ConsumerGroupTargetAssignmentMetadataKey {
    /// The group.
    pub group_id: Str,
}

/// For which state of the group the target assignment was made.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct ConsumerGroupTargetAssignmentMetadataValue {
    /// The group's epoch at that time. While it is lower than the group's, a new assignment is due.
    pub assignment_epoch: i32,
    /// When the assignment was made, in milliseconds since 1970; 0 if unknown, as before Kafka 4.3 (KIP-1263).
    #[field(tag = 0, ignorable)]
    pub assignment_timestamp: i64,
}

/// A member of a consumer group.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0)]
pub struct ConsumerGroupTargetAssignmentMemberKey {
    /// The group.
    pub group_id: Str,
    /// The member's id.
    pub member_id: Str,
}

/// What a member of a consumer group shall have.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct ConsumerGroupTargetAssignmentMemberValue {
    /// The partitions, by topic.
    pub topic_partitions: Vec<TopicPartition>,
}

/// Partitions of one topic that a member of a consumer or share group shall have.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct TopicPartition {
    /// The topic's id.
    pub topic_id: Uuid,
    /// The numbers of the partitions.
    pub partitions: Vec<i32>,
}

/// A member of a consumer group.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0)]
pub struct ConsumerGroupCurrentMemberAssignmentKey {
    /// The group.
    pub group_id: Str,
    /// The member's id.
    pub member_id: Str,
}

/// What a member of a consumer group has.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct ConsumerGroupCurrentMemberAssignmentValue {
    /// The epoch with which the member's next heartbeat must come.
    pub member_epoch: i32,
    /// The epoch before that, with which it comes if the last answer was lost.
    pub previous_member_epoch: i32,
    /// 0 the member has all that it shall have, 1 it must give partitions up, 2 it waits for partitions that others
    /// must give up, 127 unknown.
    pub state: i8,
    /// The partitions that it has.
    pub assigned_partitions: Vec<ConsumerTopicPartitions>,
    /// The partitions that it still has and must give up.
    pub partitions_pending_revocation: Vec<ConsumerTopicPartitions>,
}

/// Partitions of one topic that a member of a consumer group has.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(name = "TopicPartitions", versions = 0, flexible = 0..)]
pub struct ConsumerTopicPartitions {
    /// The topic's id.
    pub topic_id: Uuid,
    /// The numbers of the partitions.
    pub partitions: Vec<i32>,
    /// For each of them the member epoch at which it came, to refuse commits from before that; `None` or empty if
    /// nobody wrote it down.
    #[field(tag = 0)]
    pub assignment_epochs: Option<Vec<i32>>,
}

/// A pattern to which members of a consumer group subscribe.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0)]
pub struct ConsumerGroupRegularExpressionKey {
    /// The group.
    pub group_id: Str,
    /// The pattern.
    pub regular_expression: Str,
}

/// The topics that fit a pattern.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct ConsumerGroupRegularExpressionValue {
    /// The topics' names.
    pub topics: Vec<Str>,
    /// The version of the cluster's metadata in which they were looked up: an offset of its log.
    pub version: i64,
    /// When they were looked up, in milliseconds since 1970.
    pub timestamp: i64,
}
