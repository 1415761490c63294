//! What Kafka says beside an error code when it has nothing particular to say.
//!
//! Clients print it and wrap it, and some logs are searched for it: so it is part of the answer. The words are those of
//! the newest release; three sentences were others in 3.9. A code that no handler sends in words has those of the
//! protocol's own table.

use krafka_protocol::ErrorCode;

/// The words that a broker sends with an error.
pub(crate) const fn words(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::UNKNOWN_SERVER_ERROR => "The server experienced an unexpected error when processing the request.",
        ErrorCode::OFFSET_OUT_OF_RANGE => {
            "The requested offset is not within the range of offsets maintained by the server."
        }
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION => "This server does not host this topic-partition.",
        ErrorCode::UNKNOWN_TOPIC_ID => "This server does not host this topic ID.",
        ErrorCode::LEADER_NOT_AVAILABLE => {
            "There is no leader for this topic-partition as we are in the middle of a leadership election."
        }
        ErrorCode::NOT_LEADER_OR_FOLLOWER => {
            "For requests intended only for the leader, this error indicates that the broker is not the current \
             leader. For requests intended for any replica, this error indicates that the broker is not a replica \
             of the topic partition."
        }
        ErrorCode::REQUEST_TIMED_OUT => "The request timed out.",
        ErrorCode::COORDINATOR_LOAD_IN_PROGRESS => "The coordinator is loading and hence can't process requests.",
        ErrorCode::COORDINATOR_NOT_AVAILABLE => "The coordinator is not available.",
        ErrorCode::NOT_COORDINATOR => "This is not the correct coordinator.",
        ErrorCode::NOT_CONTROLLER => "This is not the correct controller for this cluster.",
        ErrorCode::INVALID_TOPIC_EXCEPTION => "The request attempted to perform an operation on an invalid topic.",
        ErrorCode::INVALID_GROUP_ID => "The group id is invalid.",
        ErrorCode::UNKNOWN_MEMBER_ID => "The coordinator is not aware of this member.",
        ErrorCode::TOPIC_AUTHORIZATION_FAILED => "Topic authorization failed.",
        ErrorCode::GROUP_AUTHORIZATION_FAILED => "Group authorization failed.",
        ErrorCode::CLUSTER_AUTHORIZATION_FAILED => "Cluster authorization failed.",
        ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED => "Transactional Id authorization failed.",
        ErrorCode::DELEGATION_TOKEN_AUTHORIZATION_FAILED => "Delegation Token authorization failed.",
        ErrorCode::UNSUPPORTED_VERSION => "The version of API is not supported.",
        ErrorCode::INVALID_REQUEST => {
            "This most likely occurs because of a request being malformed by the client library or the message was \
             sent to an incompatible broker. See the broker logs for more details."
        }
        ErrorCode::SECURITY_DISABLED => "Security features are disabled.",
        ErrorCode::SASL_AUTHENTICATION_FAILED => "SASL Authentication failed.",
        ErrorCode::NON_EMPTY_GROUP => "The group is not empty.",
        ErrorCode::GROUP_ID_NOT_FOUND => "The group id does not exist.",
        ErrorCode::FENCED_LEADER_EPOCH => "The leader epoch in the request is older than the epoch on the broker.",
        ErrorCode::FENCED_STATE_EPOCH => "The coordinator rejected the request because the state epoch did not match.",
        ErrorCode::TOPIC_DELETION_DISABLED => "Topic deletion is disabled.",
        ErrorCode::THROTTLING_QUOTA_EXCEEDED => "The throttling quota has been exceeded.",
        ErrorCode::BROKER_ID_NOT_REGISTERED => "The given broker ID was not registered.",
        ErrorCode::TRANSACTIONAL_ID_NOT_FOUND => "The transactionalId could not be found.",
        other => other.message(),
    }
}
