//! What the four APIs of delegation tokens have in common: over which connections they are served.

use krafka_protocol::ErrorCode;

use crate::context::Context;
use crate::listeners::SecurityProtocol;
use crate::security::principal::Principal;
use crate::security::sasl::Session;
use crate::state::State;

/// Whether the client has proven who it is, otherwise than by a token.
pub(super) fn check(state: &mut State, cx: &Context) -> Result<(), ErrorCode> {
    if let Some(code) = cx.denied() {
        return Err(code);
    }
    state.logins.tokens.sweep(cx.wall_ms);
    let is_by_token = state.connections.get(&cx.connection).is_some_and(|open| match &open.sasl {
        Session::Done(held) => held.login.by_token,
        _ => false,
    });
    let is_unknown = cx.listener == SecurityProtocol::Ssl && cx.principal == Principal::anonymous();
    if is_by_token || is_unknown || cx.listener == SecurityProtocol::Plaintext {
        return Err(ErrorCode::DELEGATION_TOKEN_REQUEST_NOT_ALLOWED);
    }
    Ok(())
}

/// When a token ends that a request could not touch: Kafka's brokers say -1, and its controller, which looks for the
/// token, says 0.
pub(super) fn expiry_after(code: ErrorCode) -> i64 {
    if code == ErrorCode::DELEGATION_TOKEN_REQUEST_NOT_ALLOWED { -1 } else { 0 }
}
