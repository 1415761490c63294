//! PushTelemetry (72): a client sends a broker the metrics that were asked of it.
//!
//! One push each interval, to any broker, and a last one when the client is closed. See
//! [`get_telemetry_subscriptions`](super::get_telemetry_subscriptions) for what to send.
//!
//! Version 0 came with KIP-714.

use crate::{Bytes, Message, Uuid};

/// Sends metrics.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 72, versions = 0..=0, flexible = 0.., response = PushTelemetryResponse)]
pub struct PushTelemetryRequest {
    /// The client instance, by the id that a broker gave it; never zero.
    pub client_instance_id: Uuid,
    /// The subscription that the metrics were collected for.
    pub subscription_id: i32,
    /// Whether this is the last push, as the client is being closed. It may come before the interval is over; another
    /// one after it is refused.
    pub terminating: bool,
    /// The codec of `metrics`, by its code in record batches: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.
    pub compression_type: i8,
    /// The metrics: a `MetricsData` of OpenTelemetry's protobuf (v1), compressed as a whole. May be empty.
    pub metrics: Bytes,
}

/// Whether the metrics were taken.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 72, versions = 0..=0, flexible = 0..)]
pub struct PushTelemetryResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// What went wrong, 0 for nothing.
    ///
    /// - The client asks for its subscriptions again: UNKNOWN_SUBSCRIPTION_ID, UNSUPPORTED_COMPRESSION_TYPE.
    /// - These metrics are lost, the next push may go well: TELEMETRY_TOO_LARGE, INVALID_RECORD from the broker's
    ///   plugin, THROTTLING_QUOTA_EXCEEDED for a push that comes too early.
    /// - The client pushes no more: INVALID_REQUEST, or UNSUPPORTED_VERSION from a broker of Kafka 3.9 on ZooKeeper.
    pub error_code: i16,
}
