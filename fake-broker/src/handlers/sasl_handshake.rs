//! SaslHandshake (17): agrees on a mechanism, again where logins have an end. The rules are in
//! [`sasl`](crate::security::sasl).

use krafka_protocol::api::sasl_handshake::{SaslHandshakeRequest, SaslHandshakeResponse};
use krafka_protocol::{ErrorCode, Str};

use crate::context::{Context, Outcome};
use crate::security::sasl::Session;
use crate::state::State;

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &SaslHandshakeRequest,
) -> Outcome<SaslHandshakeResponse> {
    if let Some(error) = cx.denied() {
        return Outcome::Reply(SaslHandshakeResponse { error_code: error.0, mechanisms: Vec::new() });
    }
    let enabled = &state.logins.mechanisms;
    let mechanisms = enabled.iter().map(|mechanism| Str::from_static(mechanism.name())).collect();
    let Some(open) = state.connections.get_mut(&cx.connection) else { return Outcome::Close };
    let renews = matches!(open.sasl, Session::Done(_));
    match open.sasl.handshake(&request.mechanism, cx.version, enabled, cx.now) {
        Ok(()) => Outcome::Reply(SaslHandshakeResponse { error_code: 0, mechanisms }),
        Err(ErrorCode::UNSUPPORTED_SASL_MECHANISM) if renews => Outcome::Close,
        Err(error @ ErrorCode::UNSUPPORTED_SASL_MECHANISM) => {
            Outcome::ReplyAndClose(SaslHandshakeResponse { error_code: error.0, mechanisms })
        }
        Err(error) => Outcome::Reply(SaslHandshakeResponse { error_code: error.0, mechanisms: Vec::new() }),
    }
}
