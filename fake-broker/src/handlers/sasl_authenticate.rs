//! SaslAuthenticate (36): takes the client's next token. The rules are in [`sasl`](crate::security::sasl).
//!
//! The answer to a login that failed is held back for `connection.failed.authentication.delay.ms`.

use krafka_protocol::api::sasl_authenticate::{SaslAuthenticateRequest, SaslAuthenticateResponse};
use krafka_protocol::{ErrorCode, Str};

use crate::context::{Context, Outcome};
use crate::security::sasl::Session;
use crate::state::State;
use crate::words::words;

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &SaslAuthenticateRequest,
) -> Outcome<SaslAuthenticateResponse> {
    let failed = |error: ErrorCode, message: &str| SaslAuthenticateResponse {
        error_code: error.0,
        error_message: Some(Str::from(message)),
        ..SaslAuthenticateResponse::default()
    };
    if let Some(error) = cx.denied() {
        return Outcome::ReplyAndClose(failed(error, words(error)));
    }
    let State { connections, logins, .. } = state;
    let Some(open) = connections.get_mut(&cx.connection) else { return Outcome::Close };
    if !matches!(open.sasl, Session::Authenticating { .. }) {
        let message = "SaslAuthenticate request received after successful authentication";
        return Outcome::Reply(failed(ErrorCode::ILLEGAL_SASL_STATE, message));
    }
    logins.tokens.sweep(cx.wall_ms);
    match open.sasl.authenticate(&request.auth_bytes, logins, cx.now, cx.wall_ms) {
        Ok(step) => Outcome::Reply(SaslAuthenticateResponse {
            error_message: Some(Str::default()),
            auth_bytes: step.reply,
            session_lifetime_ms: step.lifetime_ms,
            ..SaslAuthenticateResponse::default()
        }),
        Err(message) if message.is_empty() => Outcome::Close,
        Err(message) => {
            Outcome::ReplyLateAndClose(failed(ErrorCode::SASL_AUTHENTICATION_FAILED, &message), logins.failure_delay)
        }
    }
}
