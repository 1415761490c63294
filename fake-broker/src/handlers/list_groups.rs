//! ListGroups (16): the groups that this node coordinates.
//!
//! Who may describe the cluster sees all groups, anyone else those that they may describe.

use krafka_protocol::api::list_groups::{ListGroupsRequest, ListGroupsResponse, ListedGroup};

use crate::context::{Context, Outcome};
use crate::coordinators::{self, CoordinatorKind};
use crate::security::acls::Operation;
use crate::state::State;

pub(crate) fn handle(state: &State, cx: &Context, request: &ListGroupsRequest) -> Outcome<ListGroupsResponse> {
    if let Some(error) = cx.denied() {
        return Outcome::Reply(ListGroupsResponse { error_code: error.0, ..ListGroupsResponse::default() });
    }
    let may_see_all = cx.cluster_error(state, Operation::Describe).is_none();
    let is_meant = |group: &ListedGroup| {
        coordinators::find(state, CoordinatorKind::Group, &group.group_id) == Some(cx.node)
            // Kafka takes blanks off the names of states, and not off those of types.
            && passes(request.states_filter.iter().map(|state| state.trim()), &group.group_state)
            && passes(request.types_filter.iter().map(|kind| &**kind), &group.group_type)
            && (may_see_all || cx.group_error(state, Operation::Describe, &group.group_id).is_none())
    };
    let groups = state.groups.list().filter(is_meant).collect();
    Outcome::Reply(ListGroupsResponse { groups, ..ListGroupsResponse::default() })
}

/// Whether a filter lets a word through; one without words lets everything through. Case does not matter.
fn passes<'a>(mut filter: impl ExactSizeIterator<Item = &'a str>, word: &str) -> bool {
    filter.len() == 0 || filter.any(|allowed| allowed.eq_ignore_ascii_case(word))
}
