//! Heartbeat (12): keeps a member's session alive, and tells it when to join again. The rules are in [`groups`].

use krafka_protocol::api::heartbeat::{HeartbeatRequest, HeartbeatResponse};

use crate::context::{Context, Outcome};
use crate::groups;
use crate::state::State;

pub(crate) fn handle(state: &mut State, cx: &Context, request: &HeartbeatRequest) -> Outcome<HeartbeatResponse> {
    let error = match groups::refusal(state, cx, &request.group_id) {
        Some(error) => error,
        None => {
            let (groups, image) = groups::at(state, cx.node);
            groups.heartbeat(&image, request, cx.now)
        }
    };
    groups::settle(state, &request.group_id, cx.now);
    Outcome::Reply(HeartbeatResponse { error_code: error.0, ..HeartbeatResponse::default() })
}
