//! The error codes of Kafka 4.4: one line each, with what a client should make of it.
//!
//! Names, numbers and whether a retry may help are Java's; the texts are ours. What to refresh before the retry is what
//! Java's producer, consumer and admin client do.

use std::fmt;

/// A broker's verdict on a request or on a part of one.
///
/// Any number is an error code: a newer broker may send one that is not in the table, and that is then treated as
/// `UNKNOWN_SERVER_ERROR`.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ErrorCode(pub i16);

/// What to refresh before an operation is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recovery {
    /// Nothing.
    None,
    /// The cluster's metadata: what the client believes about leaders, topics or the controller is out of date.
    RefreshMetadata,
    /// The coordinator of the group or transaction.
    RefreshCoordinator,
}

macro_rules! error_codes {
    ($($name:ident = $code:literal, $retry:ident, $recovery:ident, $message:literal;)*) => {
        impl ErrorCode {
            $(
                #[doc = concat!("`", $code, "`: ", $message, ".")]
                pub const $name: Self = Self($code);
            )*

            /// All that Kafka 4.4 has, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            const fn facts(self) -> Option<Facts> {
                match self.0 {
                    $($code => Some(Facts {
                        name: stringify!($name),
                        message: $message,
                        is_retriable: error_codes!(@$retry),
                        recovery: Recovery::$recovery,
                    }),)*
                    _ => None,
                }
            }
        }
    };
    (@retriable) => { true };
    (@final) => { false };
}

struct Facts {
    name: &'static str,
    message: &'static str,
    is_retriable: bool,
    recovery: Recovery,
}

impl ErrorCode {
    /// Whether there was no error.
    pub const fn is_ok(self) -> bool {
        self.0 == 0
    }

    /// Kafka's name, or `UNKNOWN` for a number that Kafka 4.4 does not have.
    pub const fn name(self) -> &'static str {
        match self.facts() {
            Some(facts) => facts.name,
            None => "UNKNOWN",
        }
    }

    /// What happened, in a few words without a full stop.
    pub const fn message(self) -> &'static str {
        match self.facts() {
            Some(facts) => facts.message,
            None => "the broker reported an error that this client does not know",
        }
    }

    /// Whether the same request may succeed later.
    pub const fn is_retriable(self) -> bool {
        match self.facts() {
            Some(facts) => facts.is_retriable,
            None => false,
        }
    }

    /// What to refresh before a retry.
    pub const fn recovery(self) -> Recovery {
        match self.facts() {
            Some(facts) => facts.recovery,
            None => Recovery::None,
        }
    }

    /// `Ok` if there was no error.
    ///
    /// # Errors
    /// The error, if there was one.
    pub const fn ok(self) -> Result<(), Self> {
        if self.is_ok() { Ok(()) } else { Err(self) }
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name(), self.0)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.facts() {
            Some(facts) => f.write_str(facts.name),
            None => write!(f, "error {}", self.0),
        }
    }
}

impl From<i16> for ErrorCode {
    fn from(code: i16) -> Self {
        Self(code)
    }
}

impl From<ErrorCode> for i16 {
    fn from(code: ErrorCode) -> Self {
        code.0
    }
}

impl std::error::Error for ErrorCode {}

error_codes! {
    UNKNOWN_SERVER_ERROR = -1, final, None, "something went wrong inside the broker; its log has the reason";
    NONE = 0, final, None, "no error";
    OFFSET_OUT_OF_RANGE = 1, final, None, "the offset is before the log's start or after its end";
    CORRUPT_MESSAGE = 2, retriable, None,
        "the broker found a record batch damaged, too large, or without a key for a compacted topic";
    UNKNOWN_TOPIC_OR_PARTITION = 3, retriable, RefreshMetadata,
        "the broker does not host this topic or partition";
    INVALID_FETCH_SIZE = 4, final, None, "the fetch size makes no sense";
    LEADER_NOT_AVAILABLE = 5, retriable, RefreshMetadata, "the partition has no leader just now";
    NOT_LEADER_OR_FOLLOWER = 6, retriable, RefreshMetadata,
        "the broker does not lead this partition, or holds no replica of it";
    REQUEST_TIMED_OUT = 7, retriable, None, "the broker did not finish in the time that the request gave it";
    BROKER_NOT_AVAILABLE = 8, final, None, "the broker is not available";
    REPLICA_NOT_AVAILABLE = 9, retriable, RefreshMetadata, "the replica is not available here";
    MESSAGE_TOO_LARGE = 10, final, None, "a record batch is larger than the topic allows (max.message.bytes)";
    STALE_CONTROLLER_EPOCH = 11, final, None, "a controller of an older epoch was superseded";
    OFFSET_METADATA_TOO_LARGE = 12, final, None, "the metadata string of an offset commit is too long";
    NETWORK_EXCEPTION = 13, retriable, RefreshMetadata, "the connection was lost before the answer came";
    COORDINATOR_LOAD_IN_PROGRESS = 14, retriable, None, "the coordinator is still loading its state";
    COORDINATOR_NOT_AVAILABLE = 15, retriable, RefreshCoordinator, "no coordinator is available just now";
    NOT_COORDINATOR = 16, retriable, RefreshCoordinator,
        "the broker does not coordinate this group or transaction";
    INVALID_TOPIC_EXCEPTION = 17, final, None,
        "the topic's name is not allowed, or the operation is not allowed on it";
    RECORD_LIST_TOO_LARGE = 18, final, None, "a record batch is larger than a log segment";
    NOT_ENOUGH_REPLICAS = 19, retriable, None,
        "fewer replicas are in sync than the topic demands (min.insync.replicas)";
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, retriable, None,
        "the batch was written, but fewer replicas than demanded have it";
    INVALID_REQUIRED_ACKS = 21, final, None, "acks must be -1, 0 or 1";
    ILLEGAL_GENERATION = 22, final, None, "the group has moved on to another generation";
    INCONSISTENT_GROUP_PROTOCOL = 23, final, None, "the member shares no protocol with the rest of the group";
    INVALID_GROUP_ID = 24, final, None, "the group's id is not allowed";
    UNKNOWN_MEMBER_ID = 25, final, None, "the coordinator does not know this member";
    INVALID_SESSION_TIMEOUT = 26, final, None,
        "the session timeout is outside the range that the broker allows";
    REBALANCE_IN_PROGRESS = 27, final, None, "the group is rebalancing and the member must join again";
    INVALID_COMMIT_OFFSET_SIZE = 28, final, None, "the offsets of one commit are too large together";
    TOPIC_AUTHORIZATION_FAILED = 29, final, None, "not allowed to use this topic";
    GROUP_AUTHORIZATION_FAILED = 30, final, None, "not allowed to use this group";
    CLUSTER_AUTHORIZATION_FAILED = 31, final, None, "not allowed to do this to the cluster";
    INVALID_TIMESTAMP = 32, final, None, "a record's timestamp is outside the range that the topic allows";
    UNSUPPORTED_SASL_MECHANISM = 33, final, None, "the broker does not offer this SASL mechanism";
    ILLEGAL_SASL_STATE = 34, final, None, "this request does not fit the state of the SASL exchange";
    UNSUPPORTED_VERSION = 35, final, None, "the broker does not speak this version of the request";
    TOPIC_ALREADY_EXISTS = 36, final, None, "a topic of this name exists already";
    INVALID_PARTITIONS = 37, final, None, "the number of partitions is not allowed";
    INVALID_REPLICATION_FACTOR = 38, final, None,
        "the replication factor is below one or above the number of brokers";
    INVALID_REPLICA_ASSIGNMENT = 39, final, None, "the assignment of replicas makes no sense";
    INVALID_CONFIG = 40, final, None, "a configuration value is not allowed";
    NOT_CONTROLLER = 41, retriable, RefreshMetadata, "the broker is not the controller";
    INVALID_REQUEST = 42, final, None, "the broker could not make sense of the request";
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, final, None, "the log's message format is too old for this request";
    POLICY_VIOLATION = 44, final, None, "a policy of the cluster forbids it";
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, final, None,
        "a producer's batch came out of order: one before it is missing";
    DUPLICATE_SEQUENCE_NUMBER = 46, final, None, "a producer's batch was written before";
    INVALID_PRODUCER_EPOCH = 47, final, None, "the producer's epoch is older than the one the broker knows";
    INVALID_TXN_STATE = 48, final, None, "the transaction is not in a state that allows this";
    INVALID_PRODUCER_ID_MAPPING = 49, final, None, "the producer id does not belong to this transactional id";
    INVALID_TRANSACTION_TIMEOUT = 50, final, None, "the transaction timeout is longer than the broker allows";
    CONCURRENT_TRANSACTIONS = 51, retriable, None,
        "another operation on the same transaction is still going on";
    TRANSACTION_COORDINATOR_FENCED = 52, final, None,
        "the transaction coordinator that wrote the marker was superseded";
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, final, None, "not allowed to use this transactional id";
    SECURITY_DISABLED = 54, final, None, "the cluster has security turned off";
    OPERATION_NOT_ATTEMPTED = 55, final, None,
        "the broker did not get to this part of the request, because another failed";
    KAFKA_STORAGE_ERROR = 56, retriable, RefreshMetadata, "a disk failed under the partition";
    LOG_DIR_NOT_FOUND = 57, final, None, "the broker has no such log directory";
    SASL_AUTHENTICATION_FAILED = 58, final, None, "authentication failed";
    UNKNOWN_PRODUCER_ID = 59, final, None,
        "the broker has forgotten this producer, perhaps because its records expired";
    REASSIGNMENT_IN_PROGRESS = 60, final, None, "the partition is already being reassigned";
    DELEGATION_TOKEN_AUTH_DISABLED = 61, final, None, "the cluster has delegation tokens turned off";
    DELEGATION_TOKEN_NOT_FOUND = 62, final, None, "no such delegation token";
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, final, None, "only the token's owner or a renewer may do this";
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, final, None,
        "delegation tokens cannot be asked for over this kind of connection";
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, final, None, "not allowed to use this delegation token";
    DELEGATION_TOKEN_EXPIRED = 66, final, None, "the delegation token has expired";
    INVALID_PRINCIPAL_TYPE = 67, final, None, "this type of principal is not supported";
    NON_EMPTY_GROUP = 68, final, None, "the group still has members";
    GROUP_ID_NOT_FOUND = 69, final, None, "no such group";
    FETCH_SESSION_ID_NOT_FOUND = 70, retriable, None, "the broker has dropped this fetch session";
    INVALID_FETCH_SESSION_EPOCH = 71, retriable, None, "the fetch session is at another epoch";
    LISTENER_NOT_FOUND = 72, retriable, RefreshMetadata,
        "the leader has no listener of the name that the client uses";
    TOPIC_DELETION_DISABLED = 73, final, None, "the cluster does not let topics be deleted";
    FENCED_LEADER_EPOCH = 74, retriable, RefreshMetadata,
        "the client's leader epoch is older than the broker's";
    UNKNOWN_LEADER_EPOCH = 75, retriable, RefreshMetadata,
        "the client's leader epoch is newer than the broker's";
    UNSUPPORTED_COMPRESSION_TYPE = 76, final, None,
        "the batches are compressed in a way that this client's version cannot read";
    STALE_BROKER_EPOCH = 77, final, None, "the broker was registered again under a newer epoch";
    OFFSET_NOT_AVAILABLE = 78, retriable, RefreshMetadata,
        "a new leader does not know yet how far its log is readable";
    MEMBER_ID_REQUIRED = 79, final, None, "a member must ask again with the id that it was just given";
    PREFERRED_LEADER_NOT_AVAILABLE = 80, retriable, RefreshMetadata, "the preferred leader is not available";
    GROUP_MAX_SIZE_REACHED = 81, final, None, "the group is full";
    FENCED_INSTANCE_ID = 82, final, None, "another member with the same group.instance.id has taken over";
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, retriable, RefreshMetadata,
        "no replica that could lead is available";
    ELECTION_NOT_NEEDED = 84, retriable, RefreshMetadata, "the partition has the right leader already";
    NO_REASSIGNMENT_IN_PROGRESS = 85, final, None, "the partition is not being reassigned";
    GROUP_SUBSCRIBED_TO_TOPIC = 86, final, None, "the group is subscribed to the topic, so its offsets stay";
    INVALID_RECORD = 87, final, None, "the broker refuses a record";
    UNSTABLE_OFFSET_COMMIT = 88, retriable, None, "offsets of an unfinished transaction are in the way";
    THROTTLING_QUOTA_EXCEEDED = 89, retriable, None, "a quota is used up; wait as long as the answer says";
    PRODUCER_FENCED = 90, final, None, "a newer producer with the same transactional id has taken over";
    RESOURCE_NOT_FOUND = 91, final, None, "no such resource";
    DUPLICATE_RESOURCE = 92, final, None, "the same resource is named twice";
    UNACCEPTABLE_CREDENTIAL = 93, final, None, "the credential does not meet the cluster's rules";
    INCONSISTENT_VOTER_SET = 94, final, None, "the two sides do not agree on who votes";
    INVALID_UPDATE_VERSION = 95, final, None, "the feature level is not allowed";
    FEATURE_UPDATE_FAILED = 96, final, None, "the feature could not be updated";
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, final, None,
        "the principal of a forwarded request could not be read";
    SNAPSHOT_NOT_FOUND = 98, final, None, "no such snapshot";
    POSITION_OUT_OF_RANGE = 99, final, None, "the position is not inside the snapshot";
    UNKNOWN_TOPIC_ID = 100, retriable, RefreshMetadata, "the broker does not host a topic with this id";
    DUPLICATE_BROKER_REGISTRATION = 101, final, None, "the broker id is taken";
    BROKER_ID_NOT_REGISTERED = 102, final, None, "the broker id is not registered";
    INCONSISTENT_TOPIC_ID = 103, retriable, RefreshMetadata,
        "the topic's id is not the one in the broker's log: it was created again";
    INCONSISTENT_CLUSTER_ID = 104, final, None, "the request was meant for another cluster";
    TRANSACTIONAL_ID_NOT_FOUND = 105, final, None, "no such transactional id";
    FETCH_SESSION_TOPIC_ID_ERROR = 106, retriable, None, "the fetch session mixes topic ids and names";
    INELIGIBLE_REPLICA = 107, final, None, "a replica is not eligible to be in sync";
    NEW_LEADER_ELECTED = 108, final, None, "the change was made, and a new leader was elected with it";
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, final, None, "the offset has moved to tiered storage";
    FENCED_MEMBER_EPOCH = 110, final, None,
        "the member's epoch is fenced: it must give up its partitions and join again";
    UNRELEASED_INSTANCE_ID = 111, final, None, "the group.instance.id is still held by another member";
    UNSUPPORTED_ASSIGNOR = 112, final, None, "the group does not support this assignor";
    STALE_MEMBER_EPOCH = 113, final, None,
        "the member's epoch is out of date; the next heartbeat brings the new one";
    MISMATCHED_ENDPOINT_TYPE = 114, final, None,
        "the request went to a broker instead of a controller, or the other way round";
    UNSUPPORTED_ENDPOINT_TYPE = 115, final, None, "this type of endpoint is not supported";
    UNKNOWN_CONTROLLER_ID = 116, final, None, "no such controller";
    UNKNOWN_SUBSCRIPTION_ID = 117, final, None, "the telemetry subscription is out of date";
    TELEMETRY_TOO_LARGE = 118, final, None, "the telemetry payload is larger than the broker takes";
    INVALID_REGISTRATION = 119, final, None, "the controller refuses the broker's registration";
    TRANSACTION_ABORTABLE = 120, final, None,
        "the transaction failed and must be aborted; the producer can go on after that";
    INVALID_RECORD_STATE = 121, final, None, "the records are not, or no longer, acquired by this member";
    SHARE_SESSION_NOT_FOUND = 122, retriable, None, "the broker does not know this share session";
    INVALID_SHARE_SESSION_EPOCH = 123, retriable, None, "the share session is at another epoch";
    FENCED_STATE_EPOCH = 124, final, None, "the state's epoch is older than the coordinator's";
    INVALID_VOTER_KEY = 125, final, None, "the voter's key is not that of the replica";
    DUPLICATE_VOTER = 126, final, None, "the voter is one already";
    VOTER_NOT_FOUND = 127, final, None, "no such voter";
    INVALID_REGULAR_EXPRESSION = 128, final, None, "the regular expression is not valid";
    REBOOTSTRAP_REQUIRED = 129, final, None,
        "what the client knows of the cluster is too old to be of use: it must start again from its bootstrap servers";
    STREAMS_INVALID_TOPOLOGY = 130, final, None, "the topology is not valid";
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, final, None, "the topology's epoch is not valid";
    STREAMS_TOPOLOGY_FENCED = 132, final, None, "the topology's epoch is out of date";
    SHARE_SESSION_LIMIT_REACHED = 133, retriable, None, "the broker has no room for another share session";
    GROUP_DELETION_FAILED = 134, final, None, "the group could not be deleted";
    STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED = 135, final, None,
        "the description of the topology could not be stored";
    CONTROLLER_ID_NOT_REGISTERED = 136, final, None, "the controller's id is not registered";
}
