//! StreamsGroupTopologyDescriptionUpdate (93): a member tells its topology in words (KIP-1331), which nobody keeps: a
//! Kafka without a plugin for it says so too.

use krafka_protocol::api::streams_group_topology_description_update::{
    StreamsGroupTopologyDescriptionUpdateRequest, StreamsGroupTopologyDescriptionUpdateResponse,
};
use krafka_protocol::{ErrorCode, Str};

use crate::context::{Context, Outcome};
use crate::features::STREAMS_VERSION;
use crate::security::acls::Operation;
use crate::state::State;
use crate::words::words;

pub(crate) fn handle(
    state: &State,
    cx: &Context,
    request: &StreamsGroupTopologyDescriptionUpdateRequest,
) -> Outcome<StreamsGroupTopologyDescriptionUpdateResponse> {
    if !state.is_on(STREAMS_VERSION) {
        return Outcome::Reply(StreamsGroupTopologyDescriptionUpdateResponse {
            error_code: ErrorCode::UNSUPPORTED_VERSION.0,
            error_message: None,
            ..StreamsGroupTopologyDescriptionUpdateResponse::default()
        });
    }
    let denied = cx.group_error(state, Operation::Read, &request.group_id);
    let (error, reason) = match denied {
        Some(code) => (code, words(code)),
        None => {
            let reason = "The broker has no streams group topology description plugin configured.";
            (ErrorCode::UNSUPPORTED_VERSION, reason)
        }
    };
    Outcome::Reply(StreamsGroupTopologyDescriptionUpdateResponse {
        error_code: error.0,
        error_message: Some(Str::from_static(reason)),
        ..StreamsGroupTopologyDescriptionUpdateResponse::default()
    })
}
