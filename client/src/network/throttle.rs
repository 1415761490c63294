//! Which responses ask for silence, and from which version on (KIP-219).
//!
//! Before that version a broker delayed the answer itself, and told the delay only for statistics; a client that waited
//! again would be slowed down twice (Kafka's `AbstractResponse.shouldClientThrottle`). Whatever is not in the list here
//! had KIP-219 from its first throttle time on.

use std::time::Duration;

use krafka_protocol::value::Value;
use krafka_protocol::{ApiKey, Message};

/// How long the broker asks its client to write nothing, in a response that was received in `version`.
pub(crate) fn throttle<M: Message>(key: ApiKey, version: i16, response: &M) -> Option<Duration> {
    let index = M::SCHEMA.fields.iter().position(|field| field.name == "throttle_time_ms")?;
    let Some(Value::Int(asked)) = response.field(index) else { return None };
    // A negative time is a broker's mistake, and no reason to wait.
    let asked = u64::try_from(asked).ok()?;
    (asked > 0 && version >= since(key)).then(|| Duration::from_millis(asked))
}

/// The first version in which it is for the client to wait.
const fn since(key: ApiKey) -> i16 {
    match key {
        ApiKey::Fetch => 8,
        ApiKey::Produce | ApiKey::Metadata => 6,
        ApiKey::OffsetCommit | ApiKey::OffsetFetch => 4,
        ApiKey::ListOffsets | ApiKey::JoinGroup | ApiKey::CreateTopics => 3,
        ApiKey::FindCoordinator
        | ApiKey::Heartbeat
        | ApiKey::LeaveGroup
        | ApiKey::SyncGroup
        | ApiKey::DescribeGroups
        | ApiKey::ListGroups
        | ApiKey::ApiVersions
        | ApiKey::DeleteTopics
        | ApiKey::DescribeConfigs => 2,
        ApiKey::DeleteRecords
        | ApiKey::InitProducerId
        | ApiKey::AddPartitionsToTxn
        | ApiKey::AddOffsetsToTxn
        | ApiKey::EndTxn
        | ApiKey::TxnOffsetCommit
        | ApiKey::DescribeAcls
        | ApiKey::CreateAcls
        | ApiKey::DeleteAcls
        | ApiKey::AlterConfigs
        | ApiKey::AlterReplicaLogDirs
        | ApiKey::DescribeLogDirs
        | ApiKey::CreatePartitions
        | ApiKey::CreateDelegationToken
        | ApiKey::RenewDelegationToken
        | ApiKey::ExpireDelegationToken
        | ApiKey::DescribeDelegationToken
        | ApiKey::DeleteGroups => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use krafka_protocol::{FetchResponse, SaslHandshakeResponse};

    use super::*;

    fn of_fetch(version: i16, throttle_time_ms: i32) -> Option<Duration> {
        throttle(ApiKey::Fetch, version, &FetchResponse { throttle_time_ms, ..FetchResponse::default() })
    }

    #[test]
    fn a_broker_of_old_has_waited_already() {
        assert_eq!(of_fetch(7, 50), None);
        assert_eq!(of_fetch(8, 50), Some(Duration::from_millis(50)));
    }

    #[test]
    fn no_time_and_a_negative_one_are_no_reason_to_wait() {
        assert_eq!(of_fetch(12, 0), None);
        assert_eq!(of_fetch(12, -1), None);
        assert_eq!(throttle(ApiKey::SaslHandshake, 1, &SaslHandshakeResponse::default()), None);
    }
}
