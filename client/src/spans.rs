//! Spans of `tracing`, with the names that OpenTelemetry has for messaging ([`OTEL_SEMCONV_VERSION`]).
//!
//! | span | from | to | kind |
//! | --- | --- | --- | --- |
//! | `send TOPIC` | a batch's first way to a broker | its acknowledgement or failure, with all retries | producer |
//! | `poll` | a call of `poll`, or of `recv` that has to wait | its records | client |
//! | `commit` | a group's commit on its way | the coordinator's answer | client |
//!
//! A batch holds records of many callers: its span has no parent. No span tells of keys, values or headers. Where
//! nobody listens, a span costs one look at an atomic; no field is computed.

use tracing::field::Empty;
use tracing::{Span, info_span};

use crate::cluster::Node;
use crate::error::{KrafkaError, Result};

/// The version of OpenTelemetry's semantic conventions that the names of spans and their attributes follow.
///
/// Those for messaging are still in development there: 1.45 renamed some. The spans are `send TOPIC` for each batch,
/// with all its retries; `poll` for each call that waits for records; and `commit`. A bridge such as
/// `tracing-opentelemetry` makes spans of OpenTelemetry of them; no span tells of keys, values or headers.
pub const OTEL_SEMCONV_VERSION: &str = "1.44.0";

/// A batch goes to this broker now, perhaps not for the first time: the last is who has it in the end.
pub(crate) fn sent_to(span: &Span, node: &Node) {
    span.record("server.address", &*node.host);
    span.record("server.port", node.port);
}

/// A batch is sent for the first time.
pub(crate) fn send(client_id: &str, topic: &str, partition: i32, records: u32) -> Span {
    info_span!(
        parent: None,
        "send",
        otel.name = %format_args!("send {topic}"),
        otel.kind = "producer",
        otel.status_code = Empty,
        messaging.system = "kafka",
        messaging.operation.name = "send",
        messaging.operation.type = "send",
        messaging.client.id = client_id,
        messaging.destination.name = topic,
        // The conventions want a string.
        messaging.destination.partition.id = %partition,
        messaging.batch.message_count = records,
        messaging.kafka.offset = Empty,
        server.address = Empty,
        server.port = Empty,
        error.type = Empty,
    )
}

/// A batch is written: its first record is at this offset, if the broker told.
pub(crate) fn written(span: &Span, base_offset: i64) {
    if base_offset >= 0 {
        span.record("messaging.kafka.offset", base_offset);
    }
}

/// Somebody asks for records.
pub(crate) fn poll(client_id: &str, group: Option<&str>) -> Span {
    info_span!(
        "poll",
        otel.name = "poll",
        otel.kind = "client",
        otel.status_code = Empty,
        messaging.system = "kafka",
        messaging.operation.name = "poll",
        messaging.operation.type = "receive",
        messaging.client.id = client_id,
        messaging.consumer.group.name = group,
        messaging.batch.message_count = Empty,
        error.type = Empty,
    )
}

/// So many records came, or something is in the way.
pub(crate) fn polled(span: &Span, records: &Result<usize, &KrafkaError>) {
    match records {
        Ok(count) => drop(span.record("messaging.batch.message_count", count)),
        Err(error) => failed(span, error),
    }
}

/// A group's offsets are committed.
pub(crate) fn commit(client_id: &str, group: Option<&str>) -> Span {
    info_span!(
        "commit",
        otel.name = "commit",
        otel.kind = "client",
        otel.status_code = Empty,
        messaging.system = "kafka",
        messaging.operation.name = "commit",
        messaging.operation.type = "settle",
        messaging.client.id = client_id,
        messaging.consumer.group.name = group,
        error.type = Empty,
    )
}

/// What the span is about failed.
#[cold]
pub(crate) fn failed(span: &Span, error: &KrafkaError) {
    span.record("otel.status_code", "ERROR");
    span.record("error.type", kind(error));
}

/// A word of few for an error: Kafka's name of its code, or the variant.
fn kind(error: &KrafkaError) -> &'static str {
    match error {
        KrafkaError::Network(_) => "Network",
        KrafkaError::Protocol { .. } => "Protocol",
        KrafkaError::Broker { code, .. } => code.name(),
        KrafkaError::Auth { .. } => "Auth",
        KrafkaError::Timeout { .. } => "Timeout",
        KrafkaError::DeliveryTimeout { .. } => "DeliveryTimeout",
        KrafkaError::Config { .. } => "Config",
        KrafkaError::Closed { .. } => "Closed",
        KrafkaError::Fenced { .. } => "Fenced",
        KrafkaError::TransactionAbortable { .. } => "TransactionAbortable",
        KrafkaError::NoOffset { .. } => "NoOffset",
        KrafkaError::UnknownTopic { .. } => "UnknownTopic",
        KrafkaError::OutOfOrderSequence { .. } => "OutOfOrderSequence",
        KrafkaError::IllegalState { .. } => "IllegalState",
        KrafkaError::Compression { .. } => "Compression",
        KrafkaError::Serialization { .. } => "Serialization",
        KrafkaError::RecordDeserialization { .. } => "RecordDeserialization",
        KrafkaError::Wakeup => "Wakeup",
    }
}
