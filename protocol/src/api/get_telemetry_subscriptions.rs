//! GetTelemetrySubscriptions (71): a client asks a broker which of its own metrics it should send, and how often.
//!
//! Administrators subscribe to metrics of clients by settings of `CLIENT_METRICS` resources. A client asks once it is
//! connected, and again each time a push is answered with UNKNOWN_SUBSCRIPTION_ID. Brokers announce the API only if
//! they have a plugin that takes metrics.
//!
//! Version 0 came with KIP-714.

use crate::{Message, Str, Uuid};

/// Asks what to send.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 71, versions = 0..=0, flexible = 0.., response = GetTelemetrySubscriptionsResponse)]
pub struct GetTelemetrySubscriptionsRequest {
    /// The client instance, by the id that a broker gave it; zero the first time, to be given one.
    pub client_instance_id: Uuid,
}

/// What to send.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 71, versions = 0..=0, flexible = 0..)]
pub struct GetTelemetrySubscriptionsResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// What went wrong, 0 for nothing: THROTTLING_QUOTA_EXCEEDED for a client that asks again before its push
    /// interval is over, INVALID_REQUEST, or UNSUPPORTED_VERSION from a broker of Kafka 3.9 on ZooKeeper.
    pub error_code: i16,
    /// The id to use from now on, with all brokers: the request's, or a new one if that was zero.
    pub client_instance_id: Uuid,
    /// A fingerprint of what the client is to send. It goes with each push, and is another one once the answer to this
    /// request would be.
    pub subscription_id: i32,
    /// The codecs that the broker accepts, by their codes in record batches, the best first; none or 0 for plain bytes.
    pub accepted_compression_types: Vec<i8>,
    /// After how many milliseconds to push, each time. The client shortens the first wait by chance, so that not all
    /// push at once.
    pub push_interval_ms: i32,
    /// How many bytes of metrics a push may have at most.
    pub telemetry_max_bytes: i32,
    /// Whether counters are sent as what was added since the last push, instead of since the client began. Kafka's
    /// brokers always want that.
    pub delta_temporality: bool,
    /// The beginnings of the names of the metrics to send. None means no metrics at all; a single `*` means all
    /// (KIP-714 speaks of a single empty string, and that is every name's beginning too).
    pub requested_metrics: Vec<Str>,
}
