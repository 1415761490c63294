//! `__consumer_offsets`: committed offsets, and groups of every kind with their members.
//!
//! The partition is the hash of the group's name. A classic group is one record; the newer kinds have one for the
//! group, and for each member one with its wishes, one with what it shall have, and one with what it has (KIP-848).
//!
//! | numbers  | what                              | where            |
//! |----------|-----------------------------------|------------------|
//! | 0 to 2   | offsets, and classic groups       | `classic.rs`     |
//! | 3 to 8   | consumer groups (KIP-848)         | `consumer.rs`    |
//! | 9 to 15  | share groups (KIP-932)            | `share.rs`       |
//! | 16       | the topics of a pattern (KIP-848) | `consumer.rs`    |
//! | 17 to 23 | streams groups (KIP-1071)         | `streams.rs`     |
//!
//! Number 18 was never in a release. Kafka 3.9 and 4.0 write number 4, which newer ones only read. What their previews
//! of share groups wrote (number 9, and in parts 11 and 15) differs between releases under the same version: as far as
//! it does not fit what is here it is an error, and Kafka itself does not carry it over.

mod classic;
mod consumer;
mod share;
mod streams;

pub use classic::*;
pub use consumer::*;
pub use share::*;
pub use streams::*;

log! {
    /// A record of `__consumer_offsets`.
    GroupRecord {
        /// A committed offset as Kafka 0.8.2 wrote it.
        LegacyOffsetCommit = 0: LegacyOffsetCommitKey, LegacyOffsetCommitValue;
        /// A committed offset.
        OffsetCommit = 1: OffsetCommitKey, OffsetCommitValue;
        /// A classic group with its members.
        GroupMetadata = 2: GroupMetadataKey, GroupMetadataValue;
        /// A consumer group.
        ConsumerGroupMetadata = 3: ConsumerGroupMetadataKey, ConsumerGroupMetadataValue;
        /// The topics that a consumer group reads, before Kafka 4.1.
        ConsumerGroupPartitionMetadata = 4: ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue;
        /// A member of a consumer group and what it wants.
        ConsumerGroupMemberMetadata = 5: ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue;
        /// The epoch of a consumer group's target assignment.
        ConsumerGroupTargetAssignmentMetadata = 6:
            ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue;
        /// What a member of a consumer group shall have.
        ConsumerGroupTargetAssignmentMember = 7:
            ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue;
        /// What a member of a consumer group has.
        ConsumerGroupCurrentMemberAssignment = 8:
            ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue;
        /// The partitions that a share group reads, as the preview in Kafka 3.9 has it.
        ShareGroupPartitionMetadata = 9: ShareGroupPartitionMetadataKey, ShareGroupPartitionMetadataValue;
        /// A member of a share group and what it wants.
        ShareGroupMemberMetadata = 10: ShareGroupMemberMetadataKey, ShareGroupMemberMetadataValue;
        /// A share group.
        ShareGroupMetadata = 11: ShareGroupMetadataKey, ShareGroupMetadataValue;
        /// The epoch of a share group's target assignment.
        ShareGroupTargetAssignmentMetadata = 12:
            ShareGroupTargetAssignmentMetadataKey, ShareGroupTargetAssignmentMetadataValue;
        /// What a member of a share group shall have.
        ShareGroupTargetAssignmentMember = 13:
            ShareGroupTargetAssignmentMemberKey, ShareGroupTargetAssignmentMemberValue;
        /// What a member of a share group has.
        ShareGroupCurrentMemberAssignment = 14:
            ShareGroupCurrentMemberAssignmentKey, ShareGroupCurrentMemberAssignmentValue;
        /// The partitions that a share group reads, and whether their state is made.
        ShareGroupStatePartitionMetadata = 15:
            ShareGroupStatePartitionMetadataKey, ShareGroupStatePartitionMetadataValue;
        /// The topics that fit a pattern to which members of a consumer group subscribe.
        ConsumerGroupRegularExpression = 16: ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue;
        /// A streams group.
        StreamsGroupMetadata = 17: StreamsGroupMetadataKey, StreamsGroupMetadataValue;
        /// A member of a streams group.
        StreamsGroupMemberMetadata = 19: StreamsGroupMemberMetadataKey, StreamsGroupMemberMetadataValue;
        /// The epoch of a streams group's target assignment.
        StreamsGroupTargetAssignmentMetadata = 20:
            StreamsGroupTargetAssignmentMetadataKey, StreamsGroupTargetAssignmentMetadataValue;
        /// The tasks that a member of a streams group shall have.
        StreamsGroupTargetAssignmentMember = 21:
            StreamsGroupTargetAssignmentMemberKey, StreamsGroupTargetAssignmentMemberValue;
        /// The tasks that a member of a streams group has.
        StreamsGroupCurrentMemberAssignment = 22:
            StreamsGroupCurrentMemberAssignmentKey, StreamsGroupCurrentMemberAssignmentValue;
        /// What the application of a streams group computes.
        StreamsGroupTopology = 23: StreamsGroupTopologyKey, StreamsGroupTopologyValue;
    }
}
