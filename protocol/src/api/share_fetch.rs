//! ShareFetch (78): a member of a share group acquires records of partitions, and says what became of earlier ones.
//!
//! It goes to the partitions' leader, which keeps a share session for each member and connection: after the first
//! request, only partitions that are new or have acknowledgements are sent. Acquired records are locked for the member
//! until it acknowledges them or a time limit is over; then others may have them.
//!
//! Version 0 was early access in Kafka 3.9 and 4.0, unstable and withdrawn since. 1, the first stable one, counts
//! records instead of each partition's bytes, and tells how long the locks hold (KIP-932). 2 can hold on to the number
//! of records strictly (KIP-1206), and can renew locks (KIP-1222).

use crate::{Bytes, Message, Str, Uuid};

/// Asks a leader for records from a set of its partitions, and acknowledges earlier ones.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 78, versions = 1..=2, unstable = 0, flexible = 0.., response = ShareFetchResponse)]
pub struct ShareFetchRequest {
    /// The group. The schema allows null, the broker does not.
    #[field(default = null)]
    pub group_id: Option<Str>,
    /// The member. The schema allows null, the broker does not.
    pub member_id: Option<Str>,
    /// The number of this request within its session: 0 opens one, -1 closes it, acknowledging what is left, and lets
    /// the rest go. Acknowledgements cannot come with 0.
    pub share_session_epoch: i32,
    /// For how many milliseconds the broker may hold the answer back until `min_bytes` are there.
    pub max_wait_ms: i32,
    /// How many bytes are worth an answer; 0 or 1 answers as soon as there is anything.
    pub min_bytes: i32,
    /// How many bytes the answer should have at most. The first batch is sent whole even if it is larger (KIP-74).
    #[field(default = 0x7fffffff)]
    pub max_bytes: i32,
    /// How many records to acquire at most; without the strict mode some more, up to the end of a batch.
    #[field(versions = 1..)]
    pub max_records: i32,
    /// How many records the ranges of `acquired_records`, and of later acknowledgements, had best have.
    #[field(versions = 1..)]
    pub batch_size: i32,
    /// 0 acquires whole batches, which costs the broker least; 1 never acquires more than `max_records`.
    #[field(versions = 2.., ignorable)]
    pub share_acquire_mode: i8,
    /// Whether acknowledgements of the type 4 (renew) are among those below. If so, nothing is fetched, and
    /// `max_wait_ms`, `min_bytes`, `max_bytes` and `max_records` have to be 0.
    #[field(versions = 2..)]
    pub is_renew_ack: bool,
    /// The partitions to read or acknowledge; within a session only those that are new or have acknowledgements.
    pub topics: Vec<FetchTopic>,
    /// The partitions to take out of the session.
    pub forgotten_topics_data: Vec<ForgottenTopic>,
}

/// Partitions of one topic to read.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 0..)]
pub struct FetchTopic {
    /// The topic's id.
    pub topic_id: Uuid,
    /// The partitions.
    pub partitions: Vec<FetchPartition>,
}

/// One partition to read, and what became of records of it.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 0..)]
pub struct FetchPartition {
    /// The partition's number.
    pub partition_index: i32,
    /// How many bytes to send of this partition at most; 0 only acknowledges. The first batch of the answer may be
    /// larger (KIP-74).
    #[field(versions = 0)]
    pub partition_max_bytes: i32,
    /// What became of records acquired earlier, in the order of their offsets and without overlaps.
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

/// Partitions of one topic to take out of the session.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 0..)]
pub struct ForgottenTopic {
    /// The topic's id.
    pub topic_id: Uuid,
    /// The numbers of the partitions.
    pub partitions: Vec<i32>,
}

/// Records that the member has acquired, and the outcome of its acknowledgements.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 78, versions = 1..=2, unstable = 0, flexible = 0..)]
pub struct ShareFetchResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// The error of the whole request, 0 for none: SHARE_SESSION_NOT_FOUND or INVALID_SHARE_SESSION_EPOCH, after
    /// which the member opens another session; SHARE_SESSION_LIMIT_REACHED, worth another try;
    /// GROUP_AUTHORIZATION_FAILED, INVALID_REQUEST, or UNSUPPORTED_VERSION while the cluster's `share.version` is 0.
    pub error_code: i16,
    /// The reason in words, `None` without an error.
    #[field(default = null)]
    pub error_message: Option<Str>,
    /// For how many milliseconds acquired records are locked for the member.
    #[field(versions = 1..)]
    pub acquisition_lock_timeout_ms: i32,
    /// The answers by topic; partitions with nothing to tell are left out.
    pub responses: Vec<ShareFetchableTopicResponse>,
    /// Where the leaders named in the answers can be reached; empty if no leader has moved.
    pub node_endpoints: Vec<NodeEndpoint>,
}

/// Answers for partitions of one topic.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 0..)]
pub struct ShareFetchableTopicResponse {
    /// The topic's id.
    pub topic_id: Uuid,
    /// The answers, by partition.
    pub partitions: Vec<PartitionData>,
}

/// What one partition has to give.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 0..)]
pub struct PartitionData {
    /// The partition's number.
    pub partition_index: i32,
    /// Why nothing could be read, 0 if it could: NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION,
    /// TOPIC_AUTHORIZATION_FAILED, KAFKA_STORAGE_ERROR, CORRUPT_MESSAGE or UNKNOWN_SERVER_ERROR.
    pub error_code: i16,
    /// The reason in words, `None` without an error.
    #[field(default = null)]
    pub error_message: Option<Str>,
    /// Why records could not be acknowledged, 0 if they could or if there were none: one of those above,
    /// INVALID_REQUEST, or INVALID_RECORD_STATE where a record is not locked for the member, or no longer.
    pub acknowledge_error_code: i16,
    /// The reason in words, `None` without an error.
    #[field(default = null)]
    pub acknowledge_error_message: Option<Str>,
    /// Who leads the partition now; of use where the error says that the receiver of the request does not.
    pub current_leader: LeaderIdAndEpoch,
    /// Record batches that hold the acquired records, and perhaps others besides: those are not the member's. Only
    /// version 0 knows null, for none.
    #[field(nullable = 0, records)]
    pub records: Option<Bytes>,
    /// Which of the records the member has acquired.
    pub acquired_records: Vec<AcquiredRecords>,
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

/// A range of acquired records.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 0..)]
pub struct AcquiredRecords {
    /// The first record's offset.
    pub first_offset: i64,
    /// The last record's offset.
    pub last_offset: i64,
    /// How many times these records were acquired: 1 for the first time.
    pub delivery_count: i16,
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
