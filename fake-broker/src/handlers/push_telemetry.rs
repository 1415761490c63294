//! PushTelemetry: takes what a client reports. A payload that cannot be read is taken as well, as in Kafka, which
//! leaves the reading to its plugin.

use krafka_protocol::{ErrorCode, PushTelemetryRequest, PushTelemetryResponse};

use crate::context::{Context, Outcome};
use crate::state::State;
use crate::telemetry::{self, TelemetryPush, otlp};

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &PushTelemetryRequest,
) -> Outcome<PushTelemetryResponse> {
    let code = take(state, cx, request).err().unwrap_or(ErrorCode::NONE);
    Outcome::Reply(PushTelemetryResponse { error_code: code.0, ..PushTelemetryResponse::default() })
}

fn take(state: &mut State, cx: &Context, request: &PushTelemetryRequest) -> Result<(), ErrorCode> {
    if let Some(code) = cx.denied() {
        return Err(code);
    }
    let client_instance_id = request.client_instance_id;
    if client_instance_id.is_zero() {
        return Err(ErrorCode::INVALID_REQUEST);
    }
    let subscription = state.telemetry_subscription(cx, client_instance_id);
    let named = request.subscription_id;
    state.push_telemetry(client_instance_id, &subscription, named, request.terminating, cx.now)?;
    let payload = telemetry::payload(request, state.config.telemetry_max_bytes())?;
    let metrics = otlp::decode(&payload);
    state.telemetry.keep(TelemetryPush {
        node: cx.node,
        client_instance_id,
        client_id: cx.client_id.clone(),
        terminating: request.terminating,
        payload,
        metrics,
    });
    Ok(())
}
