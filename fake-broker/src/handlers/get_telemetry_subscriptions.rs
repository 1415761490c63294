//! GetTelemetrySubscriptions: what a client is asked to report, how often, and who it is.

use krafka_protocol::{ErrorCode, GetTelemetrySubscriptionsRequest, GetTelemetrySubscriptionsResponse};

use crate::context::{Context, Outcome};
use crate::state::State;
use crate::telemetry::CODECS;

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &GetTelemetrySubscriptionsRequest,
) -> Outcome<GetTelemetrySubscriptionsResponse> {
    if let Some(code) = cx.denied() {
        return Outcome::Reply(failed(code));
    }
    let client_instance_id =
        if request.client_instance_id.is_zero() { state.ids.uuid() } else { request.client_instance_id };
    let subscription = state.telemetry_subscription(cx, client_instance_id);
    if let Err(code) = state.ask_telemetry(client_instance_id, subscription.interval, cx.now) {
        return Outcome::Reply(failed(code));
    }
    Outcome::Reply(GetTelemetrySubscriptionsResponse {
        client_instance_id,
        subscription_id: subscription.id,
        accepted_compression_types: CODECS.iter().map(|&codec| codec as i8).collect(),
        push_interval_ms: i32::try_from(subscription.interval.as_millis()).unwrap_or(i32::MAX),
        telemetry_max_bytes: state.config.telemetry_max_bytes(),
        delta_temporality: true,
        requested_metrics: subscription.metrics,
        ..GetTelemetrySubscriptionsResponse::default()
    })
}

fn failed(code: ErrorCode) -> GetTelemetrySubscriptionsResponse {
    GetTelemetrySubscriptionsResponse { error_code: code.0, ..GetTelemetrySubscriptionsResponse::default() }
}
