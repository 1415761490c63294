//! SaslAuthenticate (36): checks the client's token. The rules are in [`sasl`](crate::security::sasl).
//!
//! Kafka holds the answer to a wrong password back for 100 ms; here it comes at once.

use krafka_protocol::api::sasl_authenticate::{SaslAuthenticateRequest, SaslAuthenticateResponse};
use krafka_protocol::{ErrorCode, Str};

use crate::context::{Context, Outcome};
use crate::security::sasl::Session;
use crate::state::State;

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
        return Outcome::ReplyAndClose(failed(error, error.message()));
    }
    let Some(open) = state.connections.get_mut(&cx.connection) else { return Outcome::Close };
    if !matches!(open.sasl, Session::Authenticating { .. }) {
        let message = "SaslAuthenticate request received after successful authentication";
        return Outcome::Reply(failed(ErrorCode::ILLEGAL_SASL_STATE, message));
    }
    match open.sasl.authenticate(&request.auth_bytes, &state.config.sasl_plain) {
        Ok(()) => Outcome::Reply(SaslAuthenticateResponse {
            error_message: Some(Str::default()),
            ..SaslAuthenticateResponse::default()
        }),
        Err(message) => Outcome::ReplyAndClose(failed(ErrorCode::SASL_AUTHENTICATION_FAILED, &message)),
    }
}
