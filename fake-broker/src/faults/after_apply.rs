//! Which errors a real broker can give after it has done what it was asked for.
//!
//! Most errors come before anything is done: a client may rely on it. An answer that says "failed" although the deed
//! is done is given only where Kafka waits for something after it has written: for the other replicas of a partition,
//! a coordinator's log or the controller's. A rule that would lie otherwise is refused when it is written.

use krafka_protocol::{ApiKey, ErrorCode};

use super::names::Api;

/// Errors of a write that waits for its followers: they came too late, or the leader changed meanwhile.
const APPENDED: &[ErrorCode] = &[
    ErrorCode::REQUEST_TIMED_OUT,
    ErrorCode::NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode::NOT_LEADER_OR_FOLLOWER,
    ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode::KAFKA_STORAGE_ERROR,
];

/// Errors of a coordinator whose write to its own log is not confirmed: it does not know whether it will be there.
const COORDINATED: &[ErrorCode] = &[
    ErrorCode::REQUEST_TIMED_OUT,
    ErrorCode::COORDINATOR_NOT_AVAILABLE,
    ErrorCode::NOT_COORDINATOR,
    ErrorCode::UNKNOWN_SERVER_ERROR,
];

/// Errors of what the controller does: its answer came too late, or it lost its office meanwhile.
const CONTROLLED: &[ErrorCode] =
    &[ErrorCode::REQUEST_TIMED_OUT, ErrorCode::NOT_CONTROLLER, ErrorCode::UNKNOWN_SERVER_ERROR];

/// The errors that an API can give after the deed; none for those that only read.
pub(crate) fn codes(key: ApiKey) -> &'static [ErrorCode] {
    match key {
        ApiKey::Produce | ApiKey::DeleteRecords | ApiKey::WriteTxnMarkers => APPENDED,
        ApiKey::OffsetCommit
        | ApiKey::JoinGroup
        | ApiKey::SyncGroup
        | ApiKey::LeaveGroup
        | ApiKey::DeleteGroups
        | ApiKey::OffsetDelete
        | ApiKey::InitProducerId
        | ApiKey::AddPartitionsToTxn
        | ApiKey::AddOffsetsToTxn
        | ApiKey::EndTxn
        | ApiKey::TxnOffsetCommit
        | ApiKey::ConsumerGroupHeartbeat
        | ApiKey::ShareGroupHeartbeat
        | ApiKey::StreamsGroupHeartbeat
        | ApiKey::ShareAcknowledge
        | ApiKey::AlterShareGroupOffsets
        | ApiKey::DeleteShareGroupOffsets => COORDINATED,
        ApiKey::CreateTopics
        | ApiKey::DeleteTopics
        | ApiKey::CreatePartitions
        | ApiKey::AlterConfigs
        | ApiKey::IncrementalAlterConfigs
        | ApiKey::CreateAcls
        | ApiKey::DeleteAcls
        | ApiKey::AlterPartitionReassignments
        | ApiKey::ElectLeaders
        | ApiKey::AlterClientQuotas
        | ApiKey::AlterUserScramCredentials
        | ApiKey::UpdateFeatures
        | ApiKey::UnregisterBroker
        | ApiKey::UnregisterController
        | ApiKey::CreateDelegationToken
        | ApiKey::RenewDelegationToken
        | ApiKey::ExpireDelegationToken => CONTROLLED,
        _ => &[],
    }
}

/// Whether an API can give this error after the deed.
pub(crate) fn can_give(key: ApiKey, code: ErrorCode) -> bool {
    codes(key).contains(&code)
}

/// Whether an API gives this error only ever after the deed, so that a rule need not say so.
pub(crate) fn is_always_late(key: ApiKey, code: ErrorCode) -> bool {
    code == ErrorCode::NOT_ENOUGH_REPLICAS_AFTER_APPEND && key == ApiKey::Produce
}

/// Says why none of these APIs can give the error after the deed. Rules for any API pass: they act where they can.
pub(crate) fn check(apis: &[Api], code: ErrorCode) -> Result<(), String> {
    let Some(Api(wrong)) = apis.iter().find(|api| !can_give(api.0, code)) else { return Ok(()) };
    let names: Vec<&str> = codes(*wrong).iter().map(|code| code.name()).collect();
    let (api, code) = (wrong.name(), code.name());
    Err(match names.is_empty() {
        true => format!("{api} changes nothing that an error could follow: leave `after_handling` away"),
        false => format!("no broker answers {code} once it has carried out {api}; it can answer {}", names.join(", ")),
    })
}
