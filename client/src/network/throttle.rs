//! [`Throttled`]: which responses ask for silence, from which version on (KIP-219).
//!
//! Before that version a broker delayed the answer itself, and told the delay only for statistics; a client that waited
//! again would be slowed down twice (Kafka's `AbstractResponse.shouldClientThrottle`).

use std::time::Duration;

use krafka_protocol as protocol;

/// A response that may ask its client to be silent for a while.
pub(crate) trait Throttled {
    /// How long nothing should be written, if the response was received in `version`.
    fn throttle(&self, version: i16) -> Option<Duration>;
}

macro_rules! throttled {
    ($($response:ident from $since:literal,)+) => {$(
        impl Throttled for protocol::$response {
            fn throttle(&self, version: i16) -> Option<Duration> {
                // A negative time is a broker's mistake, and no reason to wait.
                let asked = u64::try_from(self.throttle_time_ms).ok()?;
                (asked > 0 && version >= $since).then(|| Duration::from_millis(asked))
            }
        }
    )+};
}

throttled! {
    ProduceResponse from 6,
    FetchResponse from 8,
    ListOffsetsResponse from 3,
    MetadataResponse from 6,
    OffsetCommitResponse from 4,
    OffsetFetchResponse from 4,
    FindCoordinatorResponse from 2,
    JoinGroupResponse from 3,
    HeartbeatResponse from 2,
    LeaveGroupResponse from 2,
    SyncGroupResponse from 2,
    ApiVersionsResponse from 2,
    CreateTopicsResponse from 3,
    DeleteTopicsResponse from 2,
    InitProducerIdResponse from 1,
    OffsetForLeaderEpochResponse from 2,
    CreatePartitionsResponse from 1,
    DescribeClusterResponse from 0,
}
