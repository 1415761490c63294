//! What clients pushed about themselves, as JSON.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use krafka_protocol::{AnyRequest, PushTelemetryRequest, Uuid};
use serde_json::{Map, Value, json};

use super::http::{Reply, Request};
use super::routes::{SHOWN, known_query, query};
use crate::handle::FakeCluster;
use crate::telemetry::{self, Metric, MetricKind, TelemetryPush, otlp};

/// Answers with the pushes that were taken, the oldest first: those of a client, to a node, since one of them.
///
/// # Errors
///
/// The answer to a parameter that is none.
pub(super) fn pushes(fake: &FakeCluster, request: &Request) -> Result<Reply, Reply> {
    known_query(request, &["client_id", "client_instance_id", "node", "since", "limit"])?;
    let client_id = request.query.get("client_id").map(String::as_str);
    let instance =
        match request.query.get("client_instance_id") {
            Some(text) => Some(text.parse::<Uuid>().map_err(|_| {
                Reply::error(400, format!("client_instance_id: `{text}` is not an id as Kafka writes it"))
            })?),
            None => None,
        };
    let node: Option<i32> = query(request, "node")?;
    let since: u64 = query(request, "since")?.unwrap_or(0);
    let limit = query(request, "limit")?.unwrap_or(SHOWN);
    Ok(fake.look(|state| {
        let dropped = state.telemetry.dropped;
        let found = (dropped..).zip(&state.telemetry.pushes).filter(|(id, push)| {
            client_id.is_none_or(|id| push.client_id.as_deref() == Some(id))
                && instance.is_none_or(|id| push.client_instance_id == id)
                && node.is_none_or(|node| push.node == node)
                && *id >= since
        });
        let pushes: Value = found.take(limit).map(|(id, it)| push(id, it)).collect();
        Reply::ok(json!({ "dropped": dropped, "pushes": pushes }))
    }))
}

/// Shows in a request that pushes what it says, in place of how many bytes that takes.
pub(super) fn explain(request: &AnyRequest, shown: &mut Value) {
    if let Some(push) = request.downcast_ref::<PushTelemetryRequest>() {
        let payload = telemetry::payload(push, i32::MAX).ok();
        let decoded = payload.and_then(|payload| otlp::decode(&payload));
        shown["metrics"] = decoded.map_or_else(|| bytes(&push.metrics), |metrics| metrics.iter().map(metric).collect());
    }
}

fn push(id: u64, push: &TelemetryPush) -> Value {
    json!({
        "id": id,
        "node": push.node,
        "client_instance_id": push.client_instance_id.to_string(),
        "client_id": push.client_id.as_deref(),
        "terminating": push.terminating,
        "metrics": push.metrics.as_ref().map(|metrics| metrics.iter().map(metric).collect::<Value>()),
        "payload": bytes(&push.payload),
    })
}

fn metric(metric: &Metric) -> Value {
    let kind = match metric.kind {
        MetricKind::Gauge => "gauge",
        MetricKind::DeltaSum => "delta_sum",
        MetricKind::CumulativeSum => "cumulative_sum",
        MetricKind::Other => "other",
    };
    let points = metric.points.iter().map(|point| {
        let labels: Map<_, _> = point.labels.iter().map(|(name, value)| (name.to_string(), json!(&**value))).collect();
        json!({ "value": point.value, "labels": labels, "time_unix_nanos": point.time_unix_nanos })
    });
    let points: Value = points.collect();
    json!({ "name": &*metric.name, "kind": kind, "points": points })
}

/// Metrics are never a text.
fn bytes(bytes: &[u8]) -> Value {
    json!({ "base64": STANDARD.encode(bytes) })
}
