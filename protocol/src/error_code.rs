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
    UNKNOWN_SERVER_ERROR = -1, final, None, "MSG";
    NONE = 0, final, None, "MSG";
    OFFSET_OUT_OF_RANGE = 1, final, None, "MSG";
    CORRUPT_MESSAGE = 2, retriable, None, "MSG";
    UNKNOWN_TOPIC_OR_PARTITION = 3, retriable, RefreshMetadata, "MSG";
    INVALID_FETCH_SIZE = 4, final, None, "MSG";
    LEADER_NOT_AVAILABLE = 5, retriable, RefreshMetadata, "MSG";
    NOT_LEADER_OR_FOLLOWER = 6, retriable, RefreshMetadata, "MSG";
    REQUEST_TIMED_OUT = 7, retriable, None, "MSG";
    BROKER_NOT_AVAILABLE = 8, final, None, "MSG";
    REPLICA_NOT_AVAILABLE = 9, retriable, RefreshMetadata, "MSG";
    MESSAGE_TOO_LARGE = 10, final, None, "MSG";
    STALE_CONTROLLER_EPOCH = 11, final, None, "MSG";
    OFFSET_METADATA_TOO_LARGE = 12, final, None, "MSG";
    NETWORK_EXCEPTION = 13, retriable, RefreshMetadata, "MSG";
    COORDINATOR_LOAD_IN_PROGRESS = 14, retriable, None, "MSG";
    COORDINATOR_NOT_AVAILABLE = 15, retriable, RefreshCoordinator, "MSG";
    NOT_COORDINATOR = 16, retriable, RefreshCoordinator, "MSG";
    INVALID_TOPIC_EXCEPTION = 17, final, None, "MSG";
    RECORD_LIST_TOO_LARGE = 18, final, None, "MSG";
    NOT_ENOUGH_REPLICAS = 19, retriable, None, "MSG";
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20, retriable, None, "MSG";
    INVALID_REQUIRED_ACKS = 21, final, None, "MSG";
    ILLEGAL_GENERATION = 22, final, None, "MSG";
    INCONSISTENT_GROUP_PROTOCOL = 23, final, None, "MSG";
    INVALID_GROUP_ID = 24, final, None, "MSG";
    UNKNOWN_MEMBER_ID = 25, final, None, "MSG";
    INVALID_SESSION_TIMEOUT = 26, final, None, "MSG";
    REBALANCE_IN_PROGRESS = 27, final, None, "MSG";
    INVALID_COMMIT_OFFSET_SIZE = 28, final, None, "MSG";
    TOPIC_AUTHORIZATION_FAILED = 29, final, None, "MSG";
    GROUP_AUTHORIZATION_FAILED = 30, final, None, "MSG";
    CLUSTER_AUTHORIZATION_FAILED = 31, final, None, "MSG";
    INVALID_TIMESTAMP = 32, final, None, "MSG";
    UNSUPPORTED_SASL_MECHANISM = 33, final, None, "MSG";
    ILLEGAL_SASL_STATE = 34, final, None, "MSG";
    UNSUPPORTED_VERSION = 35, final, None, "MSG";
    TOPIC_ALREADY_EXISTS = 36, final, None, "MSG";
    INVALID_PARTITIONS = 37, final, None, "MSG";
    INVALID_REPLICATION_FACTOR = 38, final, None, "MSG";
    INVALID_REPLICA_ASSIGNMENT = 39, final, None, "MSG";
    INVALID_CONFIG = 40, final, None, "MSG";
    NOT_CONTROLLER = 41, retriable, RefreshMetadata, "MSG";
    INVALID_REQUEST = 42, final, None, "MSG";
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43, final, None, "MSG";
    POLICY_VIOLATION = 44, final, None, "MSG";
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45, final, None, "MSG";
    DUPLICATE_SEQUENCE_NUMBER = 46, final, None, "MSG";
    INVALID_PRODUCER_EPOCH = 47, final, None, "MSG";
    INVALID_TXN_STATE = 48, final, None, "MSG";
    INVALID_PRODUCER_ID_MAPPING = 49, final, None, "MSG";
    INVALID_TRANSACTION_TIMEOUT = 50, final, None, "MSG";
    CONCURRENT_TRANSACTIONS = 51, retriable, None, "MSG";
    TRANSACTION_COORDINATOR_FENCED = 52, final, None, "MSG";
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = 53, final, None, "MSG";
    SECURITY_DISABLED = 54, final, None, "MSG";
    OPERATION_NOT_ATTEMPTED = 55, final, None, "MSG";
    KAFKA_STORAGE_ERROR = 56, retriable, RefreshMetadata, "MSG";
    LOG_DIR_NOT_FOUND = 57, final, None, "MSG";
    SASL_AUTHENTICATION_FAILED = 58, final, None, "MSG";
    UNKNOWN_PRODUCER_ID = 59, final, None, "MSG";
    REASSIGNMENT_IN_PROGRESS = 60, final, None, "MSG";
    DELEGATION_TOKEN_AUTH_DISABLED = 61, final, None, "MSG";
    DELEGATION_TOKEN_NOT_FOUND = 62, final, None, "MSG";
    DELEGATION_TOKEN_OWNER_MISMATCH = 63, final, None, "MSG";
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = 64, final, None, "MSG";
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = 65, final, None, "MSG";
    DELEGATION_TOKEN_EXPIRED = 66, final, None, "MSG";
    INVALID_PRINCIPAL_TYPE = 67, final, None, "MSG";
    NON_EMPTY_GROUP = 68, final, None, "MSG";
    GROUP_ID_NOT_FOUND = 69, final, None, "MSG";
    FETCH_SESSION_ID_NOT_FOUND = 70, retriable, None, "MSG";
    INVALID_FETCH_SESSION_EPOCH = 71, retriable, None, "MSG";
    LISTENER_NOT_FOUND = 72, retriable, RefreshMetadata, "MSG";
    TOPIC_DELETION_DISABLED = 73, final, None, "MSG";
    FENCED_LEADER_EPOCH = 74, retriable, RefreshMetadata, "MSG";
    UNKNOWN_LEADER_EPOCH = 75, retriable, RefreshMetadata, "MSG";
    UNSUPPORTED_COMPRESSION_TYPE = 76, final, None, "MSG";
    STALE_BROKER_EPOCH = 77, final, None, "MSG";
    OFFSET_NOT_AVAILABLE = 78, retriable, RefreshMetadata, "MSG";
    MEMBER_ID_REQUIRED = 79, final, None, "MSG";
    PREFERRED_LEADER_NOT_AVAILABLE = 80, retriable, RefreshMetadata, "MSG";
    GROUP_MAX_SIZE_REACHED = 81, final, None, "MSG";
    FENCED_INSTANCE_ID = 82, final, None, "MSG";
    ELIGIBLE_LEADERS_NOT_AVAILABLE = 83, retriable, RefreshMetadata, "MSG";
    ELECTION_NOT_NEEDED = 84, retriable, RefreshMetadata, "MSG";
    NO_REASSIGNMENT_IN_PROGRESS = 85, final, None, "MSG";
    GROUP_SUBSCRIBED_TO_TOPIC = 86, final, None, "MSG";
    INVALID_RECORD = 87, final, None, "MSG";
    UNSTABLE_OFFSET_COMMIT = 88, retriable, None, "MSG";
    THROTTLING_QUOTA_EXCEEDED = 89, retriable, None, "MSG";
    PRODUCER_FENCED = 90, final, None, "MSG";
    RESOURCE_NOT_FOUND = 91, final, None, "MSG";
    DUPLICATE_RESOURCE = 92, final, None, "MSG";
    UNACCEPTABLE_CREDENTIAL = 93, final, None, "MSG";
    INCONSISTENT_VOTER_SET = 94, final, None, "MSG";
    INVALID_UPDATE_VERSION = 95, final, None, "MSG";
    FEATURE_UPDATE_FAILED = 96, final, None, "MSG";
    PRINCIPAL_DESERIALIZATION_FAILURE = 97, final, None, "MSG";
    SNAPSHOT_NOT_FOUND = 98, final, None, "MSG";
    POSITION_OUT_OF_RANGE = 99, final, None, "MSG";
    UNKNOWN_TOPIC_ID = 100, retriable, RefreshMetadata, "MSG";
    DUPLICATE_BROKER_REGISTRATION = 101, final, None, "MSG";
    BROKER_ID_NOT_REGISTERED = 102, final, None, "MSG";
    INCONSISTENT_TOPIC_ID = 103, retriable, RefreshMetadata, "MSG";
    INCONSISTENT_CLUSTER_ID = 104, final, None, "MSG";
    TRANSACTIONAL_ID_NOT_FOUND = 105, final, None, "MSG";
    FETCH_SESSION_TOPIC_ID_ERROR = 106, retriable, None, "MSG";
    INELIGIBLE_REPLICA = 107, final, None, "MSG";
    NEW_LEADER_ELECTED = 108, final, None, "MSG";
    OFFSET_MOVED_TO_TIERED_STORAGE = 109, final, None, "MSG";
    FENCED_MEMBER_EPOCH = 110, final, None, "MSG";
    UNRELEASED_INSTANCE_ID = 111, final, None, "MSG";
    UNSUPPORTED_ASSIGNOR = 112, final, None, "MSG";
    STALE_MEMBER_EPOCH = 113, final, None, "MSG";
    MISMATCHED_ENDPOINT_TYPE = 114, final, None, "MSG";
    UNSUPPORTED_ENDPOINT_TYPE = 115, final, None, "MSG";
    UNKNOWN_CONTROLLER_ID = 116, final, None, "MSG";
    UNKNOWN_SUBSCRIPTION_ID = 117, final, None, "MSG";
    TELEMETRY_TOO_LARGE = 118, final, None, "MSG";
    INVALID_REGISTRATION = 119, final, None, "MSG";
    TRANSACTION_ABORTABLE = 120, final, None, "MSG";
    INVALID_RECORD_STATE = 121, final, None, "MSG";
    SHARE_SESSION_NOT_FOUND = 122, retriable, None, "MSG";
    INVALID_SHARE_SESSION_EPOCH = 123, retriable, None, "MSG";
    FENCED_STATE_EPOCH = 124, final, None, "MSG";
    INVALID_VOTER_KEY = 125, final, None, "MSG";
    DUPLICATE_VOTER = 126, final, None, "MSG";
    VOTER_NOT_FOUND = 127, final, None, "MSG";
    INVALID_REGULAR_EXPRESSION = 128, final, None, "MSG";
    REBOOTSTRAP_REQUIRED = 129, final, None, "MSG";
    STREAMS_INVALID_TOPOLOGY = 130, final, None, "MSG";
    STREAMS_INVALID_TOPOLOGY_EPOCH = 131, final, None, "MSG";
    STREAMS_TOPOLOGY_FENCED = 132, final, None, "MSG";
    SHARE_SESSION_LIMIT_REACHED = 133, retriable, None, "MSG";
    GROUP_DELETION_FAILED = 134, final, None, "MSG";
    STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED = 135, final, None, "MSG";
    CONTROLLER_ID_NOT_REGISTERED = 136, final, None, "MSG";
}
