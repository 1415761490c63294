//! JoinGroup (11): parked until the group has collected its members. The rules are in [`groups`].

use krafka_protocol::ErrorCode;
use krafka_protocol::api::join_group::{JoinGroupRequest, JoinGroupResponse};

use crate::context::{Context, Outcome};
use crate::groups;
use crate::state::State;

pub(crate) fn handle(state: &mut State, cx: &Context, request: &JoinGroupRequest) -> Outcome<JoinGroupResponse> {
    if let Some(error) = refusal(state, cx, request) {
        return Outcome::Reply(JoinGroupResponse {
            error_code: error.0,
            // The name could not be null before version 7; Kafka sends an empty one then.
            protocol_name: (cx.version < 7).then(Default::default),
            member_id: request.member_id.clone(),
            ..JoinGroupResponse::default()
        });
    }
    let (groups, image) = groups::at(state, cx.node);
    groups.join(&image, &cx.into(), request, cx.request, cx.now);
    groups::await_answer(state, &request.group_id, cx.now)
}

fn refusal(state: &State, cx: &Context, request: &JoinGroupRequest) -> Option<ErrorCode> {
    let refusal = groups::refusal(state, cx, &request.group_id);
    // Kafka looks at the timeout before it looks for the group.
    if refusal == Some(ErrorCode::NOT_COORDINATOR) || refusal.is_none() {
        return if state.groups.allows_session_timeout(request) {
            refusal
        } else {
            Some(ErrorCode::INVALID_SESSION_TIMEOUT)
        };
    }
    refusal
}
