//! DescribeGroups (15): classic groups with their members.
//!
//! The nameless group may be asked for, as one of the oldest consumers. A group of another kind is not there, which
//! before version 6 is no error: it is `Dead`.

use krafka_protocol::ErrorCode;
use krafka_protocol::api::describe_groups::{DescribeGroupsRequest, DescribeGroupsResponse, DescribedGroup};

use super::operations;
use crate::context::{Context, Outcome};
use crate::groups;
use crate::security::acls::Operation;
use crate::state::State;

pub(crate) fn handle(state: &State, cx: &Context, request: &DescribeGroupsRequest) -> Outcome<DescribeGroupsResponse> {
    let groups = request.groups.iter().map(|id| {
        let refused = cx.group_error(state, Operation::Describe, id);
        if let Some(error) = refused.or_else(|| groups::not_coordinator(state, cx, id)) {
            return DescribedGroup {
                error_code: error.0,
                error_message: None,
                group_id: id.clone(),
                ..DescribedGroup::default()
            };
        }
        let mut described = state.groups.describe(id, cx.version);
        if request.include_authorized_operations && ErrorCode(described.error_code).is_ok() {
            described.authorized_operations = operations::group(state, cx, id);
        }
        described
    });
    Outcome::Reply(DescribeGroupsResponse { groups: groups.collect(), ..DescribeGroupsResponse::default() })
}
