//! UnregisterBroker: forgets a broker that will not come back.
//!
//! One that is up registers again at once here, so that nothing comes of it; Kafka fences it.

use krafka_protocol::{ErrorCode, Str, UnregisterBrokerRequest, UnregisterBrokerResponse};

use crate::context::{Context, Outcome};
use crate::faults::KafkaVersion;
use crate::security::acls::Operation;
use crate::state::State;
use crate::words::words;

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &UnregisterBrokerRequest,
) -> Outcome<UnregisterBrokerResponse> {
    let id = request.broker_id;
    if let Some(code) = cx.cluster_error(state, Operation::Alter) {
        return Outcome::Reply(answer(code, Some(words(code).to_owned())));
    }
    if !state.nodes.is_registered(id) {
        // Before Kafka 4 there is no message.
        let text = match state.cluster_version() {
            KafkaVersion::V3_9 => String::new(),
            _ => format!("Broker ID {id} is not currently registered"),
        };
        return Outcome::Reply(answer(ErrorCode::BROKER_ID_NOT_REGISTERED, Some(text)));
    }
    state.nodes.unregister(id);
    Outcome::Reply(answer(ErrorCode::NONE, None))
}

fn answer(code: ErrorCode, message: Option<String>) -> UnregisterBrokerResponse {
    UnregisterBrokerResponse {
        error_code: code.0,
        error_message: message.map(Str::from),
        ..UnregisterBrokerResponse::default()
    }
}
