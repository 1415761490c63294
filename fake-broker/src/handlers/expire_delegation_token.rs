//! ExpireDelegationToken (40): ends a token early. The rules are in [`tokens`](crate::security::tokens).

use krafka_protocol::api::expire_delegation_token::{ExpireDelegationTokenRequest, ExpireDelegationTokenResponse};

use super::delegation;
use crate::context::{Context, Outcome};
use crate::state::State;

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &ExpireDelegationTokenRequest,
) -> Outcome<ExpireDelegationTokenResponse> {
    let done = delegation::check(state, cx).and_then(|()| {
        state.logins.tokens.expire(&request.hmac, &cx.principal, request.expiry_time_period_ms, cx.wall_ms)
    });
    let (error_code, expiry_timestamp_ms) = match done {
        Ok(expiry_timestamp_ms) => (0, expiry_timestamp_ms),
        Err(code) => (code.0, delegation::expiry_after(code)),
    };
    Outcome::Reply(ExpireDelegationTokenResponse { error_code, expiry_timestamp_ms, throttle_time_ms: 0 })
}
