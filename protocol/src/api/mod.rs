//! The APIs that we speak: one line in the table below, one file beside this one.

pub mod add_raft_voter;
pub mod allocate_producer_ids;
pub mod api_versions;
pub mod assign_replicas_to_dirs;
pub mod consumer_group_describe;
pub mod consumer_group_heartbeat;
pub mod controller_registration;
pub mod create_partitions;
pub mod create_topics;
pub mod delete_topics;
pub mod describe_cluster;
pub mod describe_topic_partitions;
pub mod describe_transactions;
pub mod fetch;
pub mod find_coordinator;
pub mod get_telemetry_subscriptions;
pub mod heartbeat;
pub mod init_producer_id;
pub mod join_group;
mod key;
pub mod leave_group;
pub mod list_config_resources;
pub mod list_offsets;
pub mod list_transactions;
pub mod metadata;
pub mod offset_commit;
pub mod offset_fetch;
pub mod offset_for_leader_epoch;
pub mod produce;
pub mod push_telemetry;
pub mod remove_raft_voter;
pub mod sasl_authenticate;
pub mod sasl_handshake;
pub mod sync_group;
pub mod unregister_broker;
pub mod unregister_controller;
pub mod update_raft_voter;

use std::any::Any;

pub use key::ApiKey;

use crate::schema::{MessageSchema, Versions};
use crate::value::Structure;
use crate::wire::{DecodeError, EncodeError, Reader, Writer};
use crate::{Message, Request};

macro_rules! apis {
    ($($key:ident: $module:ident::{$request:ident, $response:ident}, $min:ident ..= $max:ident;)*) => {
        $(use $module::{$request, $response};)*

        /// What the root of the crate re-exports.
        #[doc(hidden)]
        pub mod requests_and_responses {
            $(pub use super::$module::{$request, $response};)*
        }

        /// A request of any API that we speak.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs)] // Their names are Kafka's, and say it.
        pub enum AnyRequest {
            $($key($request),)*
        }

        /// A response of any API that we speak.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs)] // Their names are Kafka's, and say it.
        pub enum AnyResponse {
            $($key($response),)*
        }

        impl ApiKey {
            /// The APIs that we speak, in the order of their numbers.
            pub const SPOKEN: &'static [Self] = &[$(Self::$key),*];

            /// The versions that we speak, if we speak the API.
            pub const fn versions(self) -> Option<Versions> {
                match self {
                    $(Self::$key => Some(<$request as Request>::VERSIONS),)*
                    _ => None,
                }
            }

            /// The schemas of request and response, if we speak the API.
            pub const fn schemas(self) -> Option<[&'static MessageSchema; 2]> {
                match self {
                    $(Self::$key => Some([$request::SCHEMA, $response::SCHEMA]),)*
                    _ => None,
                }
            }
        }

        impl AnyRequest {
            /// The API.
            pub const fn key(&self) -> ApiKey {
                match self {
                    $(Self::$key(_) => ApiKey::$key,)*
                }
            }

            /// Reads the body of a request.
            ///
            /// # Errors
            /// We do not speak the API or the version, or the bytes are no such request.
            pub fn decode(key: ApiKey, version: i16, input: &mut Reader) -> Result<Self, DecodeError> {
                match key {
                    $(ApiKey::$key => $request::decode(input, version).map(Self::$key),)*
                    _ => Err(DecodeError::unspoken(key.code())),
                }
            }

            /// Writes the body of the request.
            ///
            /// # Errors
            /// Those of [`Message::encode`].
            pub fn encode(&self, out: &mut Writer, version: i16) -> Result<(), EncodeError> {
                match self {
                    $(Self::$key(request) => request.encode(out, version),)*
                }
            }

            /// The number of bytes that [`encode`](Self::encode) writes.
            ///
            /// # Errors
            /// Those of [`Message::encode`].
            pub fn size(&self, version: i16) -> Result<usize, EncodeError> {
                match self {
                    $(Self::$key(request) => request.size(version),)*
                }
            }

            /// The request for code that does not know its type.
            pub fn structure(&self) -> &dyn Structure {
                match self {
                    $(Self::$key(request) => request,)*
                }
            }

            fn as_any(&self) -> &dyn Any {
                match self {
                    $(Self::$key(request) => request,)*
                }
            }

            fn as_any_mut(&mut self) -> &mut dyn Any {
                match self {
                    $(Self::$key(request) => request,)*
                }
            }
        }

        impl AnyResponse {
            /// The API.
            pub const fn key(&self) -> ApiKey {
                match self {
                    $(Self::$key(_) => ApiKey::$key,)*
                }
            }

            /// Reads the body of a response. That to ApiVersions may be an error in version 0 instead.
            ///
            /// # Errors
            /// We do not speak the API or the version, or the bytes are no such response.
            pub fn decode(key: ApiKey, version: i16, input: &mut Reader) -> Result<Self, DecodeError> {
                if key == ApiKey::ApiVersions {
                    return ApiVersionsResponse::decode_answer(input, version).map(Self::ApiVersions);
                }
                match key {
                    $(ApiKey::$key => $response::decode(input, version).map(Self::$key),)*
                    _ => Err(DecodeError::unspoken(key.code())),
                }
            }

            /// Writes the body of the response.
            ///
            /// # Errors
            /// Those of [`Message::encode`].
            pub fn encode(&self, out: &mut Writer, version: i16) -> Result<(), EncodeError> {
                match self {
                    $(Self::$key(response) => response.encode(out, version),)*
                }
            }

            /// The number of bytes that [`encode`](Self::encode) writes.
            ///
            /// # Errors
            /// Those of [`Message::encode`].
            pub fn size(&self, version: i16) -> Result<usize, EncodeError> {
                match self {
                    $(Self::$key(response) => response.size(version),)*
                }
            }

            /// The response for code that does not know its type.
            pub fn structure(&self) -> &dyn Structure {
                match self {
                    $(Self::$key(response) => response,)*
                }
            }

            fn as_any(&self) -> &dyn Any {
                match self {
                    $(Self::$key(response) => response,)*
                }
            }

            fn as_any_mut(&mut self) -> &mut dyn Any {
                match self {
                    $(Self::$key(response) => response,)*
                }
            }
        }

        $(
            impl From<$request> for AnyRequest {
                fn from(request: $request) -> Self {
                    Self::$key(request)
                }
            }

            impl From<$response> for AnyResponse {
                fn from(response: $response) -> Self {
                    Self::$key(response)
                }
            }
        )*

        /// The lowest and the highest version of each API that we speak.
        #[allow(missing_docs)] // Their names say it.
        pub mod versions {
            use super::ApiKey;

            $(
                pub const $min: i16 = ApiKey::$key.versions().expect("the table's own key").min;
                pub const $max: i16 = ApiKey::$key.versions().expect("the table's own key").max;
            )*
        }
    };
}

apis! {
    Produce: produce::{ProduceRequest, ProduceResponse}, PRODUCE_MIN..=PRODUCE_MAX;
    Fetch: fetch::{FetchRequest, FetchResponse}, FETCH_MIN..=FETCH_MAX;
    ListOffsets: list_offsets::{ListOffsetsRequest, ListOffsetsResponse}, LIST_OFFSETS_MIN..=LIST_OFFSETS_MAX;
    Metadata: metadata::{MetadataRequest, MetadataResponse}, METADATA_MIN..=METADATA_MAX;
    OffsetCommit: offset_commit::{OffsetCommitRequest, OffsetCommitResponse}, OFFSET_COMMIT_MIN..=OFFSET_COMMIT_MAX;
    OffsetFetch: offset_fetch::{OffsetFetchRequest, OffsetFetchResponse}, OFFSET_FETCH_MIN..=OFFSET_FETCH_MAX;
    FindCoordinator: find_coordinator::{FindCoordinatorRequest, FindCoordinatorResponse},
        FIND_COORDINATOR_MIN..=FIND_COORDINATOR_MAX;
    JoinGroup: join_group::{JoinGroupRequest, JoinGroupResponse}, JOIN_GROUP_MIN..=JOIN_GROUP_MAX;
    Heartbeat: heartbeat::{HeartbeatRequest, HeartbeatResponse}, HEARTBEAT_MIN..=HEARTBEAT_MAX;
    LeaveGroup: leave_group::{LeaveGroupRequest, LeaveGroupResponse}, LEAVE_GROUP_MIN..=LEAVE_GROUP_MAX;
    SyncGroup: sync_group::{SyncGroupRequest, SyncGroupResponse}, SYNC_GROUP_MIN..=SYNC_GROUP_MAX;
    SaslHandshake: sasl_handshake::{SaslHandshakeRequest, SaslHandshakeResponse},
        SASL_HANDSHAKE_MIN..=SASL_HANDSHAKE_MAX;
    ApiVersions: api_versions::{ApiVersionsRequest, ApiVersionsResponse}, API_VERSIONS_MIN..=API_VERSIONS_MAX;
    CreateTopics: create_topics::{CreateTopicsRequest, CreateTopicsResponse}, CREATE_TOPICS_MIN..=CREATE_TOPICS_MAX;
    DeleteTopics: delete_topics::{DeleteTopicsRequest, DeleteTopicsResponse}, DELETE_TOPICS_MIN..=DELETE_TOPICS_MAX;
    InitProducerId: init_producer_id::{InitProducerIdRequest, InitProducerIdResponse},
        INIT_PRODUCER_ID_MIN..=INIT_PRODUCER_ID_MAX;
    OffsetForLeaderEpoch: offset_for_leader_epoch::{OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse},
        OFFSET_FOR_LEADER_EPOCH_MIN..=OFFSET_FOR_LEADER_EPOCH_MAX;
    SaslAuthenticate: sasl_authenticate::{SaslAuthenticateRequest, SaslAuthenticateResponse},
        SASL_AUTHENTICATE_MIN..=SASL_AUTHENTICATE_MAX;
    CreatePartitions: create_partitions::{CreatePartitionsRequest, CreatePartitionsResponse},
        CREATE_PARTITIONS_MIN..=CREATE_PARTITIONS_MAX;
    DescribeCluster: describe_cluster::{DescribeClusterRequest, DescribeClusterResponse},
        DESCRIBE_CLUSTER_MIN..=DESCRIBE_CLUSTER_MAX;
}

impl AnyRequest {
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
    /// The response, if it is an `M`.
    pub fn downcast_ref<M: Message + 'static>(&self) -> Option<&M> {
        self.as_any().downcast_ref()
    }

    /// The response, if it is an `M`.
    pub fn downcast_mut<M: Message + 'static>(&mut self) -> Option<&mut M> {
        self.as_any_mut().downcast_mut()
    }
}
