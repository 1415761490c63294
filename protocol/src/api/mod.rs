//! The APIs that we speak: one line in the table below, one file beside this one.
//!
//! A line has the versions that Kafka 4.4 serves, and their names in [`versions`]; an API that Kafka 4
//! has dropped has none. What can be read and written, from Kafka 3.9 on, the message itself says.

pub mod add_offsets_to_txn;
pub mod add_partitions_to_txn;
pub mod add_raft_voter;
pub mod allocate_producer_ids;
pub mod alter_client_quotas;
pub mod alter_configs;
pub mod alter_partition;
pub mod alter_partition_reassignments;
pub mod alter_replica_log_dirs;
pub mod alter_share_group_offsets;
pub mod alter_user_scram_credentials;
pub mod api_versions;
pub mod assign_replicas_to_dirs;
pub mod begin_quorum_epoch;
pub mod broker_heartbeat;
pub mod broker_registration;
pub mod consumer_group_describe;
pub mod consumer_group_heartbeat;
pub mod controlled_shutdown;
pub mod controller_registration;
pub mod create_acls;
pub mod create_delegation_token;
pub mod create_partitions;
pub mod create_topics;
pub mod delete_acls;
pub mod delete_groups;
pub mod delete_records;
pub mod delete_share_group_offsets;
pub mod delete_share_group_state;
pub mod delete_topics;
pub mod describe_acls;
pub mod describe_client_quotas;
pub mod describe_cluster;
pub mod describe_configs;
pub mod describe_delegation_token;
pub mod describe_groups;
pub mod describe_log_dirs;
pub mod describe_producers;
pub mod describe_quorum;
pub mod describe_share_group_offsets;
pub mod describe_topic_partitions;
pub mod describe_transactions;
pub mod describe_user_scram_credentials;
pub mod elect_leaders;
pub mod end_quorum_epoch;
pub mod end_txn;
pub mod envelope;
pub mod expire_delegation_token;
pub mod fetch;
pub mod fetch_snapshot;
pub mod find_coordinator;
pub mod get_telemetry_subscriptions;
pub mod heartbeat;
pub mod incremental_alter_configs;
pub mod init_producer_id;
pub mod initialize_share_group_state;
pub mod join_group;
mod key;
pub mod leader_and_isr;
pub mod leave_group;
pub mod list_config_resources;
pub mod list_groups;
pub mod list_offsets;
pub mod list_partition_reassignments;
pub mod list_transactions;
pub mod metadata;
pub mod offset_commit;
pub mod offset_delete;
pub mod offset_fetch;
pub mod offset_for_leader_epoch;
pub mod produce;
pub mod push_telemetry;
pub mod read_share_group_state;
pub mod read_share_group_state_summary;
mod redacted;
pub mod remove_raft_voter;
pub mod renew_delegation_token;
pub mod sasl_authenticate;
pub mod sasl_handshake;
pub mod share_acknowledge;
pub mod share_fetch;
pub mod share_group_describe;
pub mod share_group_heartbeat;
pub mod stop_replica;
pub mod streams_group_describe;
pub mod streams_group_heartbeat;
pub mod streams_group_topology_description_update;
pub mod sync_group;
pub mod txn_offset_commit;
pub mod unregister_broker;
pub mod unregister_controller;
pub mod update_features;
pub mod update_metadata;
pub mod update_raft_voter;
pub mod vote;
pub mod write_share_group_state;
pub mod write_txn_markers;

use std::any::Any;

pub use key::ApiKey;

use crate::schema::{MessageSchema, Versions};
use crate::value::Structure;
use crate::wire::{DecodeError, EncodeError, Reader, Writer};
use crate::{Message, Request};

/// An enum with a variant for each API, which does what each of its messages can do.
macro_rules! any {
    ($(#[$doc:meta])* $Any:ident { $($key:ident: $message:ident),* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs)] // Their names are Kafka's, and say it.
        pub enum $Any {
            $($key($message),)*
        }

        impl $Any {
            /// The API.
            pub const fn key(&self) -> ApiKey {
                match self {
                    $(Self::$key(_) => ApiKey::$key,)*
                }
            }

            fn decode_body(key: ApiKey, version: i16, input: &mut Reader) -> Result<Self, DecodeError> {
                match key {
                    $(ApiKey::$key => $message::decode(input, version).map(Self::$key),)*
                    #[allow(unreachable_patterns, reason = "the table may have every API")]
                    _ => Err(DecodeError::unspoken(key.code())),
                }
            }

            /// Writes the body.
            ///
            /// # Errors
            /// Those of [`Message::encode`].
            pub fn encode(&self, out: &mut Writer, version: i16) -> Result<(), EncodeError> {
                match self {
                    $(Self::$key(message) => message.encode(out, version),)*
                }
            }

            /// The number of bytes that [`encode`](Self::encode) writes.
            ///
            /// # Errors
            /// Those of [`Message::encode`].
            pub fn size(&self, version: i16) -> Result<usize, EncodeError> {
                match self {
                    $(Self::$key(message) => message.size(version),)*
                }
            }

            /// About how many bytes [`encode`](Self::encode) copies.
            pub(crate) fn hint(&self) -> usize {
                match self {
                    $(Self::$key(message) => message.hint(),)*
                }
            }

            /// The message for code that does not know its type.
            pub fn structure(&self) -> &dyn Structure {
                match self {
                    $(Self::$key(message) => message,)*
                }
            }

            fn as_any(&self) -> &dyn Any {
                match self {
                    $(Self::$key(message) => message,)*
                }
            }

            fn as_any_mut(&mut self) -> &mut dyn Any {
                match self {
                    $(Self::$key(message) => message,)*
                }
            }
        }

        $(
            impl From<$message> for $Any {
                fn from(message: $message) -> Self {
                    Self::$key(message)
                }
            }
        )*
    };
}

macro_rules! apis {
    ($(
        $key:ident $($from:literal ..= $to:literal as $min:ident ..= $max:ident)?:
            $module:ident::{$request:ident, $response:ident};
    )*) => {
        $(use $module::{$request, $response};)*

        /// What the root of the crate re-exports.
        #[doc(hidden)]
        pub mod requests_and_responses {
            $(pub use super::$module::{$request, $response};)*
        }

        any! {
            /// A request of any API that we speak.
            AnyRequest { $($key: $request),* }
        }

        any! {
            /// A response of any API that we speak.
            AnyResponse { $($key: $response),* }
        }

        impl ApiKey {
            /// The APIs that we speak, in the order of their numbers.
            pub const SPOKEN: &'static [Self] = &[$(Self::$key),*];

            /// The versions that can be read and written, if we speak the API: from the first that Kafka 3.9 has to
            /// the last of Kafka 4.4, with an unstable one if the feature `unstable-protocol` is on.
            pub const fn versions(self) -> Option<Versions> {
                match self {
                    $(Self::$key => Some(<$request as Message>::SCHEMA.versions),)*
                    #[allow(unreachable_patterns, reason = "the table may have every API")]
                    _ => None,
                }
            }

            /// The versions that Kafka 4.4 serves, without unstable ones: those to negotiate with a broker, whichever
            /// it is. `None` if we do not speak the API, or Kafka 4 has dropped it.
            pub const fn offered(self) -> Option<Versions> {
                match self {
                    $($(Self::$key => Some(Versions::new($from, $to)),)?)*
                    #[allow(unreachable_patterns, reason = "the table may have every API")]
                    _ => None,
                }
            }

            /// The schemas of request and response, if we speak the API.
            pub const fn schemas(self) -> Option<[&'static MessageSchema; 2]> {
                match self {
                    $(Self::$key => Some([$request::SCHEMA, $response::SCHEMA]),)*
                    #[allow(unreachable_patterns, reason = "the table may have every API")]
                    _ => None,
                }
            }
        }

        /// The lowest and the highest version of each API that Kafka 4.4 serves, as [`ApiKey::offered`] has them.
        #[allow(missing_docs)] // Their names say it.
        pub mod versions {
            $($(
                pub const $min: i16 = $from;
                pub const $max: i16 = $to;
            )?)*
        }
    };
}

apis! {
    Produce 3..=13 as PRODUCE_MIN..=PRODUCE_MAX: produce::{ProduceRequest, ProduceResponse};
    Fetch 4..=18 as FETCH_MIN..=FETCH_MAX: fetch::{FetchRequest, FetchResponse};
    ListOffsets 1..=11 as LIST_OFFSETS_MIN..=LIST_OFFSETS_MAX: list_offsets::{ListOffsetsRequest, ListOffsetsResponse};
    Metadata 0..=13 as METADATA_MIN..=METADATA_MAX: metadata::{MetadataRequest, MetadataResponse};
    LeaderAndIsr: leader_and_isr::{LeaderAndIsrRequest, LeaderAndIsrResponse};
    StopReplica: stop_replica::{StopReplicaRequest, StopReplicaResponse};
    UpdateMetadata: update_metadata::{UpdateMetadataRequest, UpdateMetadataResponse};
    ControlledShutdown: controlled_shutdown::{ControlledShutdownRequest, ControlledShutdownResponse};
    OffsetCommit 2..=10 as OFFSET_COMMIT_MIN..=OFFSET_COMMIT_MAX:
        offset_commit::{OffsetCommitRequest, OffsetCommitResponse};
    OffsetFetch 1..=10 as OFFSET_FETCH_MIN..=OFFSET_FETCH_MAX: offset_fetch::{OffsetFetchRequest, OffsetFetchResponse};
    FindCoordinator 0..=6 as FIND_COORDINATOR_MIN..=FIND_COORDINATOR_MAX:
        find_coordinator::{FindCoordinatorRequest, FindCoordinatorResponse};
    JoinGroup 0..=9 as JOIN_GROUP_MIN..=JOIN_GROUP_MAX: join_group::{JoinGroupRequest, JoinGroupResponse};
    Heartbeat 0..=4 as HEARTBEAT_MIN..=HEARTBEAT_MAX: heartbeat::{HeartbeatRequest, HeartbeatResponse};
    LeaveGroup 0..=5 as LEAVE_GROUP_MIN..=LEAVE_GROUP_MAX: leave_group::{LeaveGroupRequest, LeaveGroupResponse};
    SyncGroup 0..=5 as SYNC_GROUP_MIN..=SYNC_GROUP_MAX: sync_group::{SyncGroupRequest, SyncGroupResponse};
    DescribeGroups 0..=6 as DESCRIBE_GROUPS_MIN..=DESCRIBE_GROUPS_MAX:
        describe_groups::{DescribeGroupsRequest, DescribeGroupsResponse};
    ListGroups 0..=5 as LIST_GROUPS_MIN..=LIST_GROUPS_MAX: list_groups::{ListGroupsRequest, ListGroupsResponse};
    SaslHandshake 0..=1 as SASL_HANDSHAKE_MIN..=SASL_HANDSHAKE_MAX:
        sasl_handshake::{SaslHandshakeRequest, SaslHandshakeResponse};
    ApiVersions 0..=5 as API_VERSIONS_MIN..=API_VERSIONS_MAX: api_versions::{ApiVersionsRequest, ApiVersionsResponse};
    CreateTopics 2..=7 as CREATE_TOPICS_MIN..=CREATE_TOPICS_MAX:
        create_topics::{CreateTopicsRequest, CreateTopicsResponse};
    DeleteTopics 1..=6 as DELETE_TOPICS_MIN..=DELETE_TOPICS_MAX:
        delete_topics::{DeleteTopicsRequest, DeleteTopicsResponse};
    DeleteRecords 0..=2 as DELETE_RECORDS_MIN..=DELETE_RECORDS_MAX:
        delete_records::{DeleteRecordsRequest, DeleteRecordsResponse};
    InitProducerId 0..=5 as INIT_PRODUCER_ID_MIN..=INIT_PRODUCER_ID_MAX:
        init_producer_id::{InitProducerIdRequest, InitProducerIdResponse};
    OffsetForLeaderEpoch 2..=4 as OFFSET_FOR_LEADER_EPOCH_MIN..=OFFSET_FOR_LEADER_EPOCH_MAX:
        offset_for_leader_epoch::{OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse};
    AddPartitionsToTxn 0..=5 as ADD_PARTITIONS_TO_TXN_MIN..=ADD_PARTITIONS_TO_TXN_MAX:
        add_partitions_to_txn::{AddPartitionsToTxnRequest, AddPartitionsToTxnResponse};
    AddOffsetsToTxn 0..=4 as ADD_OFFSETS_TO_TXN_MIN..=ADD_OFFSETS_TO_TXN_MAX:
        add_offsets_to_txn::{AddOffsetsToTxnRequest, AddOffsetsToTxnResponse};
    EndTxn 0..=5 as END_TXN_MIN..=END_TXN_MAX: end_txn::{EndTxnRequest, EndTxnResponse};
    WriteTxnMarkers 1..=2 as WRITE_TXN_MARKERS_MIN..=WRITE_TXN_MARKERS_MAX:
        write_txn_markers::{WriteTxnMarkersRequest, WriteTxnMarkersResponse};
    TxnOffsetCommit 0..=6 as TXN_OFFSET_COMMIT_MIN..=TXN_OFFSET_COMMIT_MAX:
        txn_offset_commit::{TxnOffsetCommitRequest, TxnOffsetCommitResponse};
    DescribeAcls 1..=3 as DESCRIBE_ACLS_MIN..=DESCRIBE_ACLS_MAX:
        describe_acls::{DescribeAclsRequest, DescribeAclsResponse};
    CreateAcls 1..=3 as CREATE_ACLS_MIN..=CREATE_ACLS_MAX: create_acls::{CreateAclsRequest, CreateAclsResponse};
    DeleteAcls 1..=3 as DELETE_ACLS_MIN..=DELETE_ACLS_MAX: delete_acls::{DeleteAclsRequest, DeleteAclsResponse};
    DescribeConfigs 1..=4 as DESCRIBE_CONFIGS_MIN..=DESCRIBE_CONFIGS_MAX:
        describe_configs::{DescribeConfigsRequest, DescribeConfigsResponse};
    AlterConfigs 0..=2 as ALTER_CONFIGS_MIN..=ALTER_CONFIGS_MAX:
        alter_configs::{AlterConfigsRequest, AlterConfigsResponse};
    AlterReplicaLogDirs 1..=2 as ALTER_REPLICA_LOG_DIRS_MIN..=ALTER_REPLICA_LOG_DIRS_MAX:
        alter_replica_log_dirs::{AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse};
    DescribeLogDirs 1..=5 as DESCRIBE_LOG_DIRS_MIN..=DESCRIBE_LOG_DIRS_MAX:
        describe_log_dirs::{DescribeLogDirsRequest, DescribeLogDirsResponse};
    SaslAuthenticate 0..=2 as SASL_AUTHENTICATE_MIN..=SASL_AUTHENTICATE_MAX:
        sasl_authenticate::{SaslAuthenticateRequest, SaslAuthenticateResponse};
    CreatePartitions 0..=3 as CREATE_PARTITIONS_MIN..=CREATE_PARTITIONS_MAX:
        create_partitions::{CreatePartitionsRequest, CreatePartitionsResponse};
    CreateDelegationToken 1..=3 as CREATE_DELEGATION_TOKEN_MIN..=CREATE_DELEGATION_TOKEN_MAX:
        create_delegation_token::{CreateDelegationTokenRequest, CreateDelegationTokenResponse};
    RenewDelegationToken 1..=2 as RENEW_DELEGATION_TOKEN_MIN..=RENEW_DELEGATION_TOKEN_MAX:
        renew_delegation_token::{RenewDelegationTokenRequest, RenewDelegationTokenResponse};
    ExpireDelegationToken 1..=2 as EXPIRE_DELEGATION_TOKEN_MIN..=EXPIRE_DELEGATION_TOKEN_MAX:
        expire_delegation_token::{ExpireDelegationTokenRequest, ExpireDelegationTokenResponse};
    DescribeDelegationToken 1..=3 as DESCRIBE_DELEGATION_TOKEN_MIN..=DESCRIBE_DELEGATION_TOKEN_MAX:
        describe_delegation_token::{DescribeDelegationTokenRequest, DescribeDelegationTokenResponse};
    DeleteGroups 0..=3 as DELETE_GROUPS_MIN..=DELETE_GROUPS_MAX:
        delete_groups::{DeleteGroupsRequest, DeleteGroupsResponse};
    ElectLeaders 0..=2 as ELECT_LEADERS_MIN..=ELECT_LEADERS_MAX:
        elect_leaders::{ElectLeadersRequest, ElectLeadersResponse};
    IncrementalAlterConfigs 0..=1 as INCREMENTAL_ALTER_CONFIGS_MIN..=INCREMENTAL_ALTER_CONFIGS_MAX:
        incremental_alter_configs::{IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse};
    AlterPartitionReassignments 0..=1 as ALTER_PARTITION_REASSIGNMENTS_MIN..=ALTER_PARTITION_REASSIGNMENTS_MAX:
        alter_partition_reassignments::{AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse};
    ListPartitionReassignments 0..=0 as LIST_PARTITION_REASSIGNMENTS_MIN..=LIST_PARTITION_REASSIGNMENTS_MAX:
        list_partition_reassignments::{ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse};
    OffsetDelete 0..=0 as OFFSET_DELETE_MIN..=OFFSET_DELETE_MAX:
        offset_delete::{OffsetDeleteRequest, OffsetDeleteResponse};
    DescribeClientQuotas 0..=1 as DESCRIBE_CLIENT_QUOTAS_MIN..=DESCRIBE_CLIENT_QUOTAS_MAX:
        describe_client_quotas::{DescribeClientQuotasRequest, DescribeClientQuotasResponse};
    AlterClientQuotas 0..=1 as ALTER_CLIENT_QUOTAS_MIN..=ALTER_CLIENT_QUOTAS_MAX:
        alter_client_quotas::{AlterClientQuotasRequest, AlterClientQuotasResponse};
    DescribeUserScramCredentials 0..=0 as DESCRIBE_USER_SCRAM_CREDENTIALS_MIN..=DESCRIBE_USER_SCRAM_CREDENTIALS_MAX:
        describe_user_scram_credentials::{DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse};
    AlterUserScramCredentials 0..=0 as ALTER_USER_SCRAM_CREDENTIALS_MIN..=ALTER_USER_SCRAM_CREDENTIALS_MAX:
        alter_user_scram_credentials::{AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse};
    Vote 0..=2 as VOTE_MIN..=VOTE_MAX: vote::{VoteRequest, VoteResponse};
    BeginQuorumEpoch 0..=1 as BEGIN_QUORUM_EPOCH_MIN..=BEGIN_QUORUM_EPOCH_MAX:
        begin_quorum_epoch::{BeginQuorumEpochRequest, BeginQuorumEpochResponse};
    EndQuorumEpoch 0..=1 as END_QUORUM_EPOCH_MIN..=END_QUORUM_EPOCH_MAX:
        end_quorum_epoch::{EndQuorumEpochRequest, EndQuorumEpochResponse};
    DescribeQuorum 0..=2 as DESCRIBE_QUORUM_MIN..=DESCRIBE_QUORUM_MAX:
        describe_quorum::{DescribeQuorumRequest, DescribeQuorumResponse};
    AlterPartition 2..=3 as ALTER_PARTITION_MIN..=ALTER_PARTITION_MAX:
        alter_partition::{AlterPartitionRequest, AlterPartitionResponse};
    UpdateFeatures 0..=2 as UPDATE_FEATURES_MIN..=UPDATE_FEATURES_MAX:
        update_features::{UpdateFeaturesRequest, UpdateFeaturesResponse};
    Envelope 0..=0 as ENVELOPE_MIN..=ENVELOPE_MAX: envelope::{EnvelopeRequest, EnvelopeResponse};
    FetchSnapshot 0..=1 as FETCH_SNAPSHOT_MIN..=FETCH_SNAPSHOT_MAX:
        fetch_snapshot::{FetchSnapshotRequest, FetchSnapshotResponse};
    DescribeCluster 0..=2 as DESCRIBE_CLUSTER_MIN..=DESCRIBE_CLUSTER_MAX:
        describe_cluster::{DescribeClusterRequest, DescribeClusterResponse};
    DescribeProducers 0..=0 as DESCRIBE_PRODUCERS_MIN..=DESCRIBE_PRODUCERS_MAX:
        describe_producers::{DescribeProducersRequest, DescribeProducersResponse};
    BrokerRegistration 0..=4 as BROKER_REGISTRATION_MIN..=BROKER_REGISTRATION_MAX:
        broker_registration::{BrokerRegistrationRequest, BrokerRegistrationResponse};
    BrokerHeartbeat 0..=2 as BROKER_HEARTBEAT_MIN..=BROKER_HEARTBEAT_MAX:
        broker_heartbeat::{BrokerHeartbeatRequest, BrokerHeartbeatResponse};
    UnregisterBroker 0..=0 as UNREGISTER_BROKER_MIN..=UNREGISTER_BROKER_MAX:
        unregister_broker::{UnregisterBrokerRequest, UnregisterBrokerResponse};
    DescribeTransactions 0..=0 as DESCRIBE_TRANSACTIONS_MIN..=DESCRIBE_TRANSACTIONS_MAX:
        describe_transactions::{DescribeTransactionsRequest, DescribeTransactionsResponse};
    ListTransactions 0..=2 as LIST_TRANSACTIONS_MIN..=LIST_TRANSACTIONS_MAX:
        list_transactions::{ListTransactionsRequest, ListTransactionsResponse};
    AllocateProducerIds 0..=0 as ALLOCATE_PRODUCER_IDS_MIN..=ALLOCATE_PRODUCER_IDS_MAX:
        allocate_producer_ids::{AllocateProducerIdsRequest, AllocateProducerIdsResponse};
    ConsumerGroupHeartbeat 0..=1 as CONSUMER_GROUP_HEARTBEAT_MIN..=CONSUMER_GROUP_HEARTBEAT_MAX:
        consumer_group_heartbeat::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse};
    ConsumerGroupDescribe 0..=1 as CONSUMER_GROUP_DESCRIBE_MIN..=CONSUMER_GROUP_DESCRIBE_MAX:
        consumer_group_describe::{ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse};
    ControllerRegistration 0..=0 as CONTROLLER_REGISTRATION_MIN..=CONTROLLER_REGISTRATION_MAX:
        controller_registration::{ControllerRegistrationRequest, ControllerRegistrationResponse};
    GetTelemetrySubscriptions 0..=0 as GET_TELEMETRY_SUBSCRIPTIONS_MIN..=GET_TELEMETRY_SUBSCRIPTIONS_MAX:
        get_telemetry_subscriptions::{GetTelemetrySubscriptionsRequest, GetTelemetrySubscriptionsResponse};
    PushTelemetry 0..=0 as PUSH_TELEMETRY_MIN..=PUSH_TELEMETRY_MAX:
        push_telemetry::{PushTelemetryRequest, PushTelemetryResponse};
    AssignReplicasToDirs 0..=0 as ASSIGN_REPLICAS_TO_DIRS_MIN..=ASSIGN_REPLICAS_TO_DIRS_MAX:
        assign_replicas_to_dirs::{AssignReplicasToDirsRequest, AssignReplicasToDirsResponse};
    ListConfigResources 0..=1 as LIST_CONFIG_RESOURCES_MIN..=LIST_CONFIG_RESOURCES_MAX:
        list_config_resources::{ListConfigResourcesRequest, ListConfigResourcesResponse};
    DescribeTopicPartitions 0..=0 as DESCRIBE_TOPIC_PARTITIONS_MIN..=DESCRIBE_TOPIC_PARTITIONS_MAX:
        describe_topic_partitions::{DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse};
    ShareGroupHeartbeat 1..=1 as SHARE_GROUP_HEARTBEAT_MIN..=SHARE_GROUP_HEARTBEAT_MAX:
        share_group_heartbeat::{ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse};
    ShareGroupDescribe 1..=1 as SHARE_GROUP_DESCRIBE_MIN..=SHARE_GROUP_DESCRIBE_MAX:
        share_group_describe::{ShareGroupDescribeRequest, ShareGroupDescribeResponse};
    ShareFetch 1..=2 as SHARE_FETCH_MIN..=SHARE_FETCH_MAX: share_fetch::{ShareFetchRequest, ShareFetchResponse};
    ShareAcknowledge 1..=2 as SHARE_ACKNOWLEDGE_MIN..=SHARE_ACKNOWLEDGE_MAX:
        share_acknowledge::{ShareAcknowledgeRequest, ShareAcknowledgeResponse};
    AddRaftVoter 0..=1 as ADD_RAFT_VOTER_MIN..=ADD_RAFT_VOTER_MAX:
        add_raft_voter::{AddRaftVoterRequest, AddRaftVoterResponse};
    RemoveRaftVoter 0..=0 as REMOVE_RAFT_VOTER_MIN..=REMOVE_RAFT_VOTER_MAX:
        remove_raft_voter::{RemoveRaftVoterRequest, RemoveRaftVoterResponse};
    UpdateRaftVoter 0..=0 as UPDATE_RAFT_VOTER_MIN..=UPDATE_RAFT_VOTER_MAX:
        update_raft_voter::{UpdateRaftVoterRequest, UpdateRaftVoterResponse};
    InitializeShareGroupState 0..=0 as INITIALIZE_SHARE_GROUP_STATE_MIN..=INITIALIZE_SHARE_GROUP_STATE_MAX:
        initialize_share_group_state::{InitializeShareGroupStateRequest, InitializeShareGroupStateResponse};
    ReadShareGroupState 0..=0 as READ_SHARE_GROUP_STATE_MIN..=READ_SHARE_GROUP_STATE_MAX:
        read_share_group_state::{ReadShareGroupStateRequest, ReadShareGroupStateResponse};
    WriteShareGroupState 0..=1 as WRITE_SHARE_GROUP_STATE_MIN..=WRITE_SHARE_GROUP_STATE_MAX:
        write_share_group_state::{WriteShareGroupStateRequest, WriteShareGroupStateResponse};
    DeleteShareGroupState 0..=0 as DELETE_SHARE_GROUP_STATE_MIN..=DELETE_SHARE_GROUP_STATE_MAX:
        delete_share_group_state::{DeleteShareGroupStateRequest, DeleteShareGroupStateResponse};
    ReadShareGroupStateSummary 0..=1 as READ_SHARE_GROUP_STATE_SUMMARY_MIN..=READ_SHARE_GROUP_STATE_SUMMARY_MAX:
        read_share_group_state_summary::{ReadShareGroupStateSummaryRequest, ReadShareGroupStateSummaryResponse};
    StreamsGroupHeartbeat 0..=1 as STREAMS_GROUP_HEARTBEAT_MIN..=STREAMS_GROUP_HEARTBEAT_MAX:
        streams_group_heartbeat::{StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse};
    StreamsGroupDescribe 0..=1 as STREAMS_GROUP_DESCRIBE_MIN..=STREAMS_GROUP_DESCRIBE_MAX:
        streams_group_describe::{StreamsGroupDescribeRequest, StreamsGroupDescribeResponse};
    DescribeShareGroupOffsets 0..=1 as DESCRIBE_SHARE_GROUP_OFFSETS_MIN..=DESCRIBE_SHARE_GROUP_OFFSETS_MAX:
        describe_share_group_offsets::{DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse};
    AlterShareGroupOffsets 0..=0 as ALTER_SHARE_GROUP_OFFSETS_MIN..=ALTER_SHARE_GROUP_OFFSETS_MAX:
        alter_share_group_offsets::{AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse};
    DeleteShareGroupOffsets 0..=0 as DELETE_SHARE_GROUP_OFFSETS_MIN..=DELETE_SHARE_GROUP_OFFSETS_MAX:
        delete_share_group_offsets::{DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse};
    StreamsGroupTopologyDescriptionUpdate
        0..=0 as STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE_MIN..=STREAMS_GROUP_TOPOLOGY_DESCRIPTION_UPDATE_MAX:
        streams_group_topology_description_update::{
            StreamsGroupTopologyDescriptionUpdateRequest, StreamsGroupTopologyDescriptionUpdateResponse
        };
    UnregisterController 0..=0 as UNREGISTER_CONTROLLER_MIN..=UNREGISTER_CONTROLLER_MAX:
        unregister_controller::{UnregisterControllerRequest, UnregisterControllerResponse};
}

impl AnyRequest {
    /// Reads the body of a request.
    ///
    /// # Errors
    /// We do not speak the API or the version, or the bytes are no such request.
    pub fn decode(key: ApiKey, version: i16, input: &mut Reader) -> Result<Self, DecodeError> {
        Self::decode_body(key, version, input)
    }

    /// The request, if it is an `R`.
    pub fn downcast_ref<R: Request + 'static>(&self) -> Option<&R> {
        self.as_any().downcast_ref()
    }

    /// The request, if it is an `R`.
    pub fn downcast_mut<R: Request + 'static>(&mut self) -> Option<&mut R> {
        self.as_any_mut().downcast_mut()
    }
}

impl AnyResponse {
    /// Reads the body of a response. That to ApiVersions may be an error in version 0 instead.
    ///
    /// # Errors
    /// We do not speak the API or the version, or the bytes are no such response.
    pub fn decode(key: ApiKey, version: i16, input: &mut Reader) -> Result<Self, DecodeError> {
        if key == ApiKey::ApiVersions {
            return ApiVersionsResponse::decode_answer(input, version).map(Self::ApiVersions);
        }
        Self::decode_body(key, version, input)
    }

    /// The response, if it is an `M`.
    pub fn downcast_ref<M: Message + 'static>(&self) -> Option<&M> {
        self.as_any().downcast_ref()
    }

    /// The response, if it is an `M`.
    pub fn downcast_mut<M: Message + 'static>(&mut self) -> Option<&mut M> {
        self.as_any_mut().downcast_mut()
    }
}
