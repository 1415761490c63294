//! SaslHandshake (17): agrees on a mechanism. The rules are in [`sasl`].

use krafka_protocol::api::sasl_handshake::{SaslHandshakeRequest, SaslHandshakeResponse};
use krafka_protocol::{ErrorCode, Str};

use crate::context::{Context, Outcome};
use crate::security::sasl;
use crate::state::State;

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &SaslHandshakeRequest,
) -> Outcome<SaslHandshakeResponse> {
    if let Some(error) = cx.denied() {
        return Outcome::Reply(SaslHandshakeResponse { error_code: error.0, mechanisms: Vec::new() });
    }
    let Some(open) = state.connections.get_mut(&cx.connection) else { return Outcome::Close };
    let enabled = vec![Str::from_static(sasl::PLAIN)];
    match open.sasl.handshake(&request.mechanism, cx.version) {
        Ok(()) => Outcome::Reply(SaslHandshakeResponse { error_code: 0, mechanisms: enabled }),
        Err(error @ ErrorCode::UNSUPPORTED_SASL_MECHANISM) => {
            Outcome::ReplyAndClose(SaslHandshakeResponse { error_code: error.0, mechanisms: enabled })
        }
        Err(error) => Outcome::Reply(SaslHandshakeResponse { error_code: error.0, mechanisms: Vec::new() }),
    }
}
