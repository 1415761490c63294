//! UnregisterController (94): forgets a controller that will not come back (since Kafka 4.4).
//!
//! Every node is a controller, too. One that is up registers again at once, so that nothing comes of it; the one that
//! is in charge refuses to forget itself.

use krafka_protocol::api::unregister_controller::{UnregisterControllerRequest, UnregisterControllerResponse};
use krafka_protocol::{ErrorCode, Str};

use crate::context::{Context, Outcome};
use crate::security::acls::Operation;
use crate::state::State;
use crate::words::words;

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &UnregisterControllerRequest,
) -> Outcome<UnregisterControllerResponse> {
    let id = request.controller_id;
    if let Some(code) = cx.cluster_error(state, Operation::Alter) {
        return Outcome::Reply(answer(code, words(code).to_owned()));
    }
    if !state.nodes.is_registered_controller(id) {
        let text = format!("Controller ID {id} is not currently registered.");
        return Outcome::Reply(answer(ErrorCode::CONTROLLER_ID_NOT_REGISTERED, text));
    }
    if id == state.nodes.controller() {
        let text = "Controller cannot unregister itself while it is active.".to_owned();
        return Outcome::Reply(answer(ErrorCode::INVALID_REQUEST, text));
    }
    state.nodes.unregister_controller(id);
    Outcome::Reply(answer(ErrorCode::NONE, String::new()))
}

fn answer(code: ErrorCode, message: String) -> UnregisterControllerResponse {
    UnregisterControllerResponse {
        error_code: code.0,
        error_message: Some(Str::from(message)),
        ..UnregisterControllerResponse::default()
    }
}
