//! One file for each API: what a node answers, and where that differs from Kafka on purpose.
//!
//! A handler is a function `handle(&mut State, &Context, &XRequest) -> Outcome<XResponse>`. It asks the context for a
//! fault where Kafka asks its authorizer ([`Context::partition_error`] and its siblings), before it changes anything.
//! To add an API: write its file, and name it in the table below.

use std::time::Duration;

use krafka_protocol::{AnyRequest, AnyResponse, ApiKey, Versions};

use crate::context::{Context, Outcome};
use crate::faults::KafkaVersion;
use crate::nodes::Node;
use crate::state::State;

use share_offsets::{alter as share_alter_offsets, delete as share_delete_offsets, describe as share_describe_offsets};
use share_state::{
    delete as share_delete, initialize as share_initialize, read as share_read, summary as share_summary,
    write as share_write,
};

mod add_offsets_to_txn;
mod add_partitions_to_txn;
mod add_raft_voter;
mod alter_client_quotas;
mod alter_configs;
mod alter_partition_reassignments;
mod alter_replica_log_dirs;
mod alter_user_scram_credentials;
pub(crate) mod api_versions;
mod assignment;
mod batch_rules;
pub(crate) mod commits;
mod consumer_group_describe;
mod consumer_group_heartbeat;
mod create_acls;
mod create_delegation_token;
mod create_partitions;
mod create_topics;
mod delegation;
mod delete_acls;
mod delete_groups;
pub(crate) mod delete_records;
mod delete_topics;
mod describe_acls;
mod describe_client_quotas;
mod describe_cluster;
mod describe_configs;
mod describe_delegation_token;
mod describe_groups;
mod describe_log_dirs;
mod describe_producers;
mod describe_quorum;
mod describe_topic_partitions;
mod describe_transactions;
mod describe_user_scram_credentials;
mod described;
mod elect_leaders;
mod end_txn;
mod expire_delegation_token;
pub(crate) mod fetch;
mod find_coordinator;
mod get_telemetry_subscriptions;
mod heartbeat;
mod incremental_alter_configs;
mod init_producer_id;
mod join_group;
mod leadership;
mod leave_group;
mod list_config_resources;
mod list_groups;
mod list_offsets;
mod list_partition_reassignments;
mod list_transactions;
mod metadata;
mod offset_commit;
mod offset_delete;
mod offset_fetch;
mod offset_for_leader_epoch;
mod operations;
mod parts;
mod preferred;
pub(crate) mod produce;
mod push_telemetry;
mod remove_raft_voter;
mod renew_delegation_token;
mod sasl_authenticate;
mod sasl_handshake;
pub(crate) mod sessions;
mod share_acknowledge;
pub(crate) mod share_fetch;
mod share_group_describe;
mod share_group_heartbeat;
mod share_offsets;
mod share_records;
mod share_state;
mod streams_group_describe;
mod streams_group_heartbeat;
mod streams_group_topology_description_update;
mod sync_group;
mod txn_offset_commit;
mod unregister_broker;
mod unregister_controller;
mod update_features;
mod write_txn_markers;

macro_rules! table {
    (throttled: { $($api:ident => $module:ident,)* } plain: { $($plain_api:ident => $plain_module:ident,)* }) => {
        /// The APIs that have a handler; no other is advertised.
        pub(crate) const SERVED: &[ApiKey] = &[$(ApiKey::$api,)* $(ApiKey::$plain_api,)*];

        /// Answers a request.
        pub(crate) fn handle(state: &mut State, cx: &Context, request: &AnyRequest) -> Outcome<AnyResponse> {
            match request {
                $(AnyRequest::$api(request) => $module::handle(state, cx, request).map(AnyResponse::$api),)*
                $(AnyRequest::$plain_api(request) => {
                    $plain_module::handle(state, cx, request).map(AnyResponse::$plain_api)
                })*
                #[allow(unreachable_patterns, reason = "the protocol may know more APIs than the table")]
                _ => Outcome::Close,
            }
        }

        /// Tells the client how long it was throttled, in an answer that has room for it.
        pub(crate) fn set_throttle_time(response: &mut AnyResponse, throttle: Duration) {
            let millis = i32::try_from(throttle.as_millis()).unwrap_or(i32::MAX);
            match response {
                $(AnyResponse::$api(response) => response.throttle_time_ms = millis,)*
                _ => {}
            }
        }
    };
}

// The answers of the second list have no throttle time.
table! {
    throttled: {
        Produce => produce,
        Fetch => fetch,
        ListOffsets => list_offsets,
        Metadata => metadata,
        ApiVersions => api_versions,
        OffsetCommit => offset_commit,
        OffsetFetch => offset_fetch,
        FindCoordinator => find_coordinator,
        JoinGroup => join_group,
        Heartbeat => heartbeat,
        LeaveGroup => leave_group,
        SyncGroup => sync_group,
        DescribeGroups => describe_groups,
        ListGroups => list_groups,
        DeleteGroups => delete_groups,
        OffsetDelete => offset_delete,
        ConsumerGroupHeartbeat => consumer_group_heartbeat,
        ConsumerGroupDescribe => consumer_group_describe,
        CreateTopics => create_topics,
        DeleteTopics => delete_topics,
        DeleteRecords => delete_records,
        InitProducerId => init_producer_id,
        AddPartitionsToTxn => add_partitions_to_txn,
        AddOffsetsToTxn => add_offsets_to_txn,
        EndTxn => end_txn,
        TxnOffsetCommit => txn_offset_commit,
        DescribeProducers => describe_producers,
        DescribeTransactions => describe_transactions,
        ListTransactions => list_transactions,
        OffsetForLeaderEpoch => offset_for_leader_epoch,
        CreatePartitions => create_partitions,
        ShareGroupHeartbeat => share_group_heartbeat,
        ShareGroupDescribe => share_group_describe,
        ShareFetch => share_fetch,
        ShareAcknowledge => share_acknowledge,
        StreamsGroupHeartbeat => streams_group_heartbeat,
        StreamsGroupDescribe => streams_group_describe,
        StreamsGroupTopologyDescriptionUpdate => streams_group_topology_description_update,
        DescribeShareGroupOffsets => share_describe_offsets,
        AlterShareGroupOffsets => share_alter_offsets,
        DeleteShareGroupOffsets => share_delete_offsets,
        DescribeCluster => describe_cluster,
        DescribeConfigs => describe_configs,
        AlterConfigs => alter_configs,
        IncrementalAlterConfigs => incremental_alter_configs,
        ListConfigResources => list_config_resources,
        PushTelemetry => push_telemetry,
        GetTelemetrySubscriptions => get_telemetry_subscriptions,
        UpdateFeatures => update_features,
        UnregisterBroker => unregister_broker,
        UnregisterController => unregister_controller,
        RemoveRaftVoter => remove_raft_voter,
        ListPartitionReassignments => list_partition_reassignments,
        ElectLeaders => elect_leaders,
        DescribeTopicPartitions => describe_topic_partitions,
        DescribeLogDirs => describe_log_dirs,
        AlterReplicaLogDirs => alter_replica_log_dirs,
        AlterPartitionReassignments => alter_partition_reassignments,
        AddRaftVoter => add_raft_voter,
        DescribeAcls => describe_acls,
        CreateAcls => create_acls,
        DeleteAcls => delete_acls,
        DescribeClientQuotas => describe_client_quotas,
        AlterClientQuotas => alter_client_quotas,
        CreateDelegationToken => create_delegation_token,
        RenewDelegationToken => renew_delegation_token,
        ExpireDelegationToken => expire_delegation_token,
        DescribeDelegationToken => describe_delegation_token,
        DescribeUserScramCredentials => describe_user_scram_credentials,
        AlterUserScramCredentials => alter_user_scram_credentials,
    }
    plain: {
        DescribeQuorum => describe_quorum,
        SaslHandshake => sasl_handshake,
        SaslAuthenticate => sasl_authenticate,
        WriteTxnMarkers => write_txn_markers,
        InitializeShareGroupState => share_initialize,
        ReadShareGroupState => share_read,
        WriteShareGroupState => share_write,
        DeleteShareGroupState => share_delete,
        ReadShareGroupStateSummary => share_summary,
    }
}

/// What every broker answers, and only one with a plugin for it advertises.
const TELEMETRY: [ApiKey; 2] = [ApiKey::GetTelemetrySubscriptions, ApiKey::PushTelemetry];

/// Answers a request as a node does: one whose metadata is frozen tells what it believes.
pub(crate) fn handle_at_node(state: &mut State, cx: &Context, request: &AnyRequest) -> Outcome<AnyResponse> {
    let is_view = matches!(
        cx.key,
        ApiKey::Metadata | ApiKey::DescribeCluster | ApiKey::DescribeTopicPartitions | ApiKey::FindCoordinator
    );
    let Some(mut believed) = is_view.then(|| state.frozen.remove(&cx.node)).flatten() else {
        return handle(state, cx, request);
    };
    let outcome = handle(&mut believed, cx, request);
    state.frozen.insert(cx.node, believed);
    if let (AnyRequest::FindCoordinator(request), Outcome::Reply(AnyResponse::FindCoordinator(said))) =
        (request, &outcome)
        && !state.are_apart(cx.node, state.nodes.controller())
    {
        find_coordinator::make_topics(state, request, said);
    }
    outcome
}

/// The versions of an API that a node serves: what its Kafka version has. The codec knows more APIs and versions.
pub(crate) fn versions(state: &State, node: i32, key: ApiKey) -> Option<Versions> {
    if !SERVED.contains(&key) {
        return None;
    }
    let node = state.nodes.find(node)?;
    if TELEMETRY.contains(&key) {
        return key.versions();
    }
    let (version, mut real) = (node.version, range(state, node, key)?);
    // Kafka 4 refuses Produce before version 3 and advertises it all the same: librdkafka takes a broker without
    // version 0 for one that cannot compress (KAFKA-18659).
    if key == ApiKey::Produce && version >= KafkaVersion::V4_0 {
        real.min = 3;
    }
    real.intersection(&key.versions()?)
}

/// All APIs that a node serves, with the versions that it advertises, in the order of their keys.
pub(crate) fn advertised(state: &State, node: i32) -> Vec<(ApiKey, Versions)> {
    let mut keys = SERVED.to_vec();
    keys.sort_unstable();
    let range = |key| {
        let served = versions(state, node, key)?;
        if TELEMETRY.contains(&key) {
            return state.config.client_telemetry.then_some((key, served));
        }
        Some((key, range(state, state.nodes.find(node)?, key)?))
    };
    keys.into_iter().filter_map(range).collect()
}

/// What a node advertises of an API: what its Kafka has, with what that calls unstable if the cluster speaks it.
fn range(state: &State, node: &Node, key: ApiKey) -> Option<Versions> {
    let mut range = node.advertises(key)?;
    let knows_two_phases = node.version >= KafkaVersion::V4_1 && node.profile.is_none();
    if key == ApiKey::InitProducerId && knows_two_phases && state.config.unstable_api_versions {
        range.max = init_producer_id::TWO_PHASE_VERSION;
    }
    Some(range)
}
