//! ShareAcknowledge (79): a member of a share group says what became of records, without fetching others.
//!
//! It goes to the partitions' leader, within the share session that [`share_fetch`](super::share_fetch) has opened.
//!
//! Version 0 was early access in Kafka 3.9 and 4.0, unstable and withdrawn since; 1 is the first stable one (KIP-932);
//! 2 can renew locks (KIP-1222).

use crate::{Message, Str, Uuid};

/// Acknowledges records.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 79, versions = 1..=2, unstable = 0, flexible = 0.., response = ShareAcknowledgeResponse)]
pub struct ShareAcknowledgeRequest {
    /// The group. The schema allows null, the broker does not.
    #[field(default = null)]
    pub group_id: Option<Str>,
    /// The member. The schema allows null, the broker does not.
    pub member_id: Option<Str>,
    /// The number of this request within its session; -1 closes it, and lets go what is not acknowledged. It cannot
    /// open one: 0 is refused.
    pub share_session_epoch: i32,
    /// Whether acknowledgements of the type 4 (renew) are among those below.
    #[field(versions = 2..)]
    pub is_renew_ack: bool,
    /// The acknowledgements, by topic.
    pub topics: Vec<AcknowledgeTopic>,
}

/// Acknowledgements for one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 0..)]
pub struct AcknowledgeTopic {
    /// The topic's id.
    pub topic_id: Uuid,
    /// The acknowledgements, by partition.
    pub partitions: Vec<AcknowledgePartition>,
}

/// Acknowledgements for one partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 0..)]
pub struct AcknowledgePartition {
    /// The partition's number.
    pub partition_index: i32,
    /// What became of records, in the order of their offsets and without overlaps.
    pub acknowledgement_batches: Vec<AcknowledgementBatch>,
}

/// What became of a range of records.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 0..)]
pub struct AcknowledgementBatch {
    /// The first record's offset.
    pub first_offset: i64,
    /// The last record's offset.
    pub last_offset: i64,
    /// One type for all of the range, or one for each of its offsets: 0 there is no record for the member at this
    /// offset (compacted away, or a control record), 1 accepted, 2 released for another try, 3 rejected for good;
    /// from version 2 on also 4, the lock is renewed.
    pub acknowledge_types: Vec<i8>,
}

/// The outcome of acknowledgements.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 79, versions = 1..=2, unstable = 0, flexible = 0..)]
pub struct ShareAcknowledgeResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// The error of the whole request, 0 for none: SHARE_SESSION_NOT_FOUND or INVALID_SHARE_SESSION_EPOCH, after
    /// which the member opens another session and what it held goes to others; GROUP_AUTHORIZATION_FAILED,
    /// INVALID_REQUEST, or UNSUPPORTED_VERSION while the cluster's `share.version` is 0.
    pub error_code: i16,
    /// The reason in words, `None` without an error.
    #[field(default = null)]
    pub error_message: Option<Str>,
    /// For how many milliseconds records are locked for the member from their renewal on.
    #[field(versions = 2.., ignorable)]
    pub acquisition_lock_timeout_ms: i32,
    /// The outcomes by topic.
    pub responses: Vec<ShareAcknowledgeTopicResponse>,
    /// Where the leaders named in the answers can be reached; empty if no leader has moved.
    pub node_endpoints: Vec<NodeEndpoint>,
}

/// Outcomes for one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 0..)]
pub struct ShareAcknowledgeTopicResponse {
    /// The topic's id.
    pub topic_id: Uuid,
    /// The outcomes, by partition.
    pub partitions: Vec<PartitionData>,
}

/// The outcome for one partition.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 0..)]
pub struct PartitionData {
    /// The partition's number.
    pub partition_index: i32,
    /// Why records could not be acknowledged, 0 if they could: INVALID_RECORD_STATE where one is not locked for the
    /// member, or no longer; INVALID_REQUEST, NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION,
    /// TOPIC_AUTHORIZATION_FAILED, KAFKA_STORAGE_ERROR or UNKNOWN_SERVER_ERROR.
    pub error_code: i16,
    /// The reason in words, `None` without an error.
    #[field(default = null)]
    pub error_message: Option<Str>,
    /// Who leads the partition now; of use where the error says that the receiver of the request does not.
    pub current_leader: LeaderIdAndEpoch,
}

/// The leader of a partition, as far as the answering broker knows.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 0..)]
pub struct LeaderIdAndEpoch {
    /// The leader's broker id, -1 if unknown.
    pub leader_id: i32,
    /// The leader's epoch, -1 if unknown.
    pub leader_epoch: i32,
}

/// Where a broker can be reached.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 0..)]
pub struct NodeEndpoint {
    /// The broker's id.
    pub node_id: i32,
    /// The advertised host name or address.
    pub host: Str,
    /// The advertised port.
    pub port: i32,
    /// The rack the broker says it stands in, `None` if it does not say.
    #[field(default = null)]
    pub rack: Option<Str>,
}
