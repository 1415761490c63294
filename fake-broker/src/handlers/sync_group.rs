//! SyncGroup (14): parked until the leader's brings the assignment. The rules are in [`groups`].

use krafka_protocol::ErrorCode;
use krafka_protocol::api::sync_group::{SyncGroupRequest, SyncGroupResponse};

use crate::context::{Context, Outcome};
use crate::groups;
use crate::state::State;

pub(crate) fn handle(state: &mut State, cx: &Context, request: &SyncGroupRequest) -> Outcome<SyncGroupResponse> {
    let has_protocol = request.protocol_type.is_some() && request.protocol_name.is_some();
    let refusal = if cx.version >= 5 && !has_protocol {
        Some(ErrorCode::INCONSISTENT_GROUP_PROTOCOL)
    } else {
        groups::refusal(state, cx, &request.group_id)
    };
    if let Some(error) = refusal {
        return Outcome::Reply(SyncGroupResponse { error_code: error.0, ..SyncGroupResponse::default() });
    }
    let (groups, image) = groups::at(state, cx.node);
    groups.sync(&image, &cx.into(), request, cx.request, cx.now);
    groups::await_answer(state, &request.group_id, cx.now)
}
