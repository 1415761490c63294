//! What Kafka's releases say differently from one another, and what of theirs we leave out.
//!
//! We declare what the newest release says. Each line about an older one is a decision of Kafka's that changes no byte
//! of a stable version: whoever adds a line has found out which.

/// Messages that had another name: as it is now, and before.
pub(super) const EARLIER_NAMES: [(&str, &str); 2] = [
    ("ListConfigResourcesRequest", "ListClientMetricsResourcesRequest"),
    ("ListConfigResourcesResponse", "ListClientMetricsResourcesResponse"),
];

/// Messages whose layout Kafka gave up under the same version, with the last release that had it: share groups were
/// unstable in 3.9 and a preview in 4.0, whose records and requests nothing later reads.
pub(super) const GIVEN_UP: [(&str, &str); 6] = [
    ("ReadShareGroupStateSummaryResponse", "4.0.2"),
    ("ShareGroupMetadataValue", "4.0.2"),
    ("ShareGroupPartitionMetadataValue", "4.0.2"),
    ("ShareGroupStatePartitionMetadataValue", "4.0.2"),
    ("ShareSnapshotValue", "4.0.2"),
    ("ShareUpdateValue", "4.0.2"),
];

/// Schemas in the jars that are none of ours, and why.
pub(super) const LEFT_OUT: [(&str, &str); 2] = [
    ("RequestHeader", "written by hand, since its version follows from what it says; Java's bytes prove it"),
    ("ResponseHeader", "written by hand beside it"),
];

/// Where an older schema differs: the path to it, how in the words of the comparison, and the first and the last
/// release that has it so.
pub(super) const CHANGED: &[(&str, &str, &str, &str)] = &[
    // Where topic ids took the place of names, the names could be left out from then on.
    ("ProduceRequest.topic_data.name", "ignorable true instead of false", "3.9.2", "4.0.2"),
    ("ProduceResponse.responses.name", "ignorable true instead of false", "3.9.2", "4.0.2"),
    ("OffsetCommitRequest.topics.name", "ignorable true instead of false", "3.9.2", "4.0.2"),
    ("OffsetCommitResponse.topics.name", "ignorable true instead of false", "3.9.2", "4.0.2"),
    ("OffsetFetchRequest.groups.topics.name", "ignorable true instead of false", "3.9.2", "4.0.2"),
    ("OffsetFetchResponse.groups.topics.name", "ignorable true instead of false", "3.9.2", "4.0.2"),
    ("TxnOffsetCommitRequest.topics.name", "ignorable true instead of false", "3.9.2", "4.3.1"),
    ("TxnOffsetCommitResponse.topics.name", "ignorable true instead of false", "3.9.2", "4.3.1"),
    // So could what an older version has no place for; before, writing it was an error.
    ("UpdateFeaturesResponse.results", "ignorable true instead of false", "3.9.2", "3.9.2"),
    (
        "DescribeShareGroupOffsetsResponse.groups.topics.partitions.lag",
        "ignorable true instead of false",
        "4.2.2",
        "4.2.2",
    ),
    (
        "ReadShareGroupStateSummaryResponse.results.partitions.delivery_complete_count",
        "ignorable true instead of false",
        "4.2.2",
        "4.2.2",
    ),
    (
        "WriteShareGroupStateRequest.topics.partitions.delivery_complete_count",
        "ignorable true instead of false",
        "4.2.2",
        "4.2.2",
    ),
    // What is null if it is not set was the empty array for one release.
    ("StreamsGroupHeartbeatResponse.status", "default Zero instead of Null", "4.1.2", "4.1.2"),
    // Names that say more than they did.
    (
        "ListConfigResourcesRequest",
        "name ListConfigResourcesRequest instead of ListClientMetricsResourcesRequest",
        "3.9.2",
        "4.0.2",
    ),
    (
        "ListConfigResourcesResponse",
        "name ListConfigResourcesResponse instead of ListClientMetricsResourcesResponse",
        "3.9.2",
        "4.0.2",
    ),
    (
        "ListConfigResourcesResponse.config_resources",
        "name config_resources instead of client_metrics_resources",
        "3.9.2",
        "4.0.2",
    ),
    (
        "ListConfigResourcesResponse.config_resources",
        "type []ConfigResource instead of []ClientMetricsResource",
        "3.9.2",
        "4.0.2",
    ),
    (
        "ListConfigResourcesResponse.config_resources.resource_name",
        "name resource_name instead of name",
        "3.9.2",
        "4.0.2",
    ),
    ("VoteRequest.topics.partitions.replica_epoch", "name replica_epoch instead of candidate_epoch", "3.9.2", "3.9.2"),
    ("VoteRequest.topics.partitions.replica_id", "name replica_id instead of candidate_id", "3.9.2", "3.9.2"),
    (
        "VoteRequest.topics.partitions.replica_directory_id",
        "name replica_directory_id instead of candidate_directory_id",
        "3.9.2",
        "3.9.2",
    ),
    (
        "TxnOffsetCommitRequest.generation_id_or_member_epoch",
        "name generation_id_or_member_epoch instead of generation_id",
        "3.9.2",
        "4.3.1",
    ),
    (
        "StreamsGroupHeartbeatResponse.acceptable_recovery_lag_legacy",
        "name acceptable_recovery_lag_legacy instead of acceptable_recovery_lag",
        "4.1.2",
        "4.3.1",
    ),
    // Tags that came without a version of their own: who does not know them passes over them.
    ("TransactionLogValue.previous_producer_id", "no such tag", "3.9.2", "3.9.2"),
    ("TransactionLogValue.next_producer_id", "no such tag", "3.9.2", "3.9.2"),
    ("TransactionLogValue.client_transaction_version", "no such tag", "3.9.2", "3.9.2"),
    ("TransactionLogValue.next_producer_epoch", "no such tag", "3.9.2", "4.0.2"),
    ("OffsetCommitValue.topic_id", "no such tag", "3.9.2", "4.0.2"),
    ("ConsumerGroupMetadataValue.metadata_hash", "no such tag", "3.9.2", "4.0.2"),
    ("ConsumerGroupTargetAssignmentMetadataValue.assignment_timestamp", "no such tag", "3.9.2", "4.2.2"),
    (
        "ConsumerGroupCurrentMemberAssignmentValue.assigned_partitions.assignment_epochs",
        "no such tag",
        "3.9.2",
        "4.2.2",
    ),
    (
        "ConsumerGroupCurrentMemberAssignmentValue.partitions_pending_revocation.assignment_epochs",
        "no such tag",
        "3.9.2",
        "4.2.2",
    ),
    ("ShareGroupTargetAssignmentMetadataValue.assignment_timestamp", "no such tag", "4.0.2", "4.2.2"),
    ("ShareSnapshotValue.delivery_complete_count", "no such tag", "4.1.2", "4.1.2"),
    ("ShareUpdateValue.delivery_complete_count", "no such tag", "4.1.2", "4.1.2"),
    ("StreamsGroupCurrentMemberAssignmentValue.active_tasks.assignment_epochs", "no such tag", "4.1.2", "4.1.2"),
    ("StreamsGroupCurrentMemberAssignmentValue.standby_tasks.assignment_epochs", "no such tag", "4.1.2", "4.1.2"),
    ("StreamsGroupCurrentMemberAssignmentValue.warmup_tasks.assignment_epochs", "no such tag", "4.1.2", "4.1.2"),
    (
        "StreamsGroupCurrentMemberAssignmentValue.active_tasks_pending_revocation.assignment_epochs",
        "no such tag",
        "4.1.2",
        "4.1.2",
    ),
    (
        "StreamsGroupCurrentMemberAssignmentValue.standby_tasks_pending_revocation.assignment_epochs",
        "no such tag",
        "4.1.2",
        "4.1.2",
    ),
    (
        "StreamsGroupCurrentMemberAssignmentValue.warmup_tasks_pending_revocation.assignment_epochs",
        "no such tag",
        "4.1.2",
        "4.1.2",
    ),
    ("StreamsGroupMetadataValue.validated_topology_epoch", "no such tag", "4.1.2", "4.1.2"),
    ("StreamsGroupMetadataValue.last_assignment_configs", "no such tag", "4.1.2", "4.1.2"),
    ("StreamsGroupTargetAssignmentMetadataValue.assignment_timestamp", "no such tag", "4.1.2", "4.2.2"),
    ("StreamsGroupMetadataValue.stored_description_topology_epoch", "no such tag", "4.1.2", "4.3.1"),
    ("StreamsGroupMetadataValue.failed_description_topology_epoch", "no such tag", "4.1.2", "4.3.1"),
];

/// The same in versions that are compared with the feature `unstable-protocol` only. Of share groups' first requests,
/// whose fields all of their versions have, some said that they may be left out.
pub(super) const CHANGED_UNSTABLE: &[(&str, &str, &str, &str)] = &[
    ("ShareFetchRequest.max_bytes", "ignorable false instead of true", "3.9.2", "3.9.2"),
    ("ShareFetchRequest.topics.topic_id", "ignorable false instead of true", "3.9.2", "3.9.2"),
    ("ShareFetchRequest.forgotten_topics_data.topic_id", "ignorable false instead of true", "3.9.2", "3.9.2"),
    ("ShareFetchResponse.throttle_time_ms", "ignorable false instead of true", "3.9.2", "3.9.2"),
    ("ShareFetchResponse.error_code", "ignorable false instead of true", "3.9.2", "3.9.2"),
    ("ShareFetchResponse.responses.topic_id", "ignorable false instead of true", "3.9.2", "3.9.2"),
    ("ShareAcknowledgeResponse.throttle_time_ms", "ignorable false instead of true", "3.9.2", "4.0.2"),
    ("ShareAcknowledgeResponse.error_code", "ignorable false instead of true", "3.9.2", "4.0.2"),
    ("ShareAcknowledgeResponse.responses.topic_id", "ignorable false instead of true", "3.9.2", "4.0.2"),
];
