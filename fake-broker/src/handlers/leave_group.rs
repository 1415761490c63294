//! LeaveGroup (13): takes members out at once. The rules are in [`groups`].

use krafka_protocol::api::leave_group::{LeaveGroupRequest, LeaveGroupResponse};

use crate::context::{Context, Outcome};
use crate::groups;
use crate::state::State;

pub(crate) fn handle(state: &mut State, cx: &Context, request: &LeaveGroupRequest) -> Outcome<LeaveGroupResponse> {
    if let Some(error) = groups::refusal(state, cx, &request.group_id) {
        return Outcome::Reply(LeaveGroupResponse { error_code: error.0, ..LeaveGroupResponse::default() });
    }
    let (groups, image) = groups::at(state, cx.node);
    let response = groups.leave(&image, &cx.into(), request, cx.now);
    groups::settle(state, &request.group_id, cx.now);
    Outcome::Reply(response)
}
