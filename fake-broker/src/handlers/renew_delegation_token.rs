//! RenewDelegationToken (39): lets a token live longer. The rules are in [`tokens`](crate::security::tokens).

use krafka_protocol::api::renew_delegation_token::{RenewDelegationTokenRequest, RenewDelegationTokenResponse};

use super::delegation;
use crate::context::{Context, Outcome};
use crate::state::State;

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &RenewDelegationTokenRequest,
) -> Outcome<RenewDelegationTokenResponse> {
    let done = delegation::check(state, cx)
        .and_then(|()| state.logins.tokens.renew(&request.hmac, &cx.principal, request.renew_period_ms, cx.wall_ms));
    let (error_code, expiry_timestamp_ms) = match done {
        Ok(expiry_timestamp_ms) => (0, expiry_timestamp_ms),
        Err(code) => (code.0, delegation::expiry_after(code)),
    };
    Outcome::Reply(RenewDelegationTokenResponse { error_code, expiry_timestamp_ms, throttle_time_ms: 0 })
}
