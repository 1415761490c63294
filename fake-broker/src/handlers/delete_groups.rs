//! DeleteGroups (42): groups without members are forgotten, with their offsets, and those that they
//! commit in transactions that are open.

use std::collections::BTreeSet;

use krafka_protocol::Str;
use krafka_protocol::api::delete_groups::{DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse};

use crate::context::{Context, Outcome};
use crate::groups::{self, Refusal};
use crate::security::acls::Operation;
use crate::state::State;
use crate::words::words;

pub(crate) fn handle(state: &mut State, cx: &Context, request: &DeleteGroupsRequest) -> Outcome<DeleteGroupsResponse> {
    let mut seen = BTreeSet::new();
    let mut results = Vec::new();
    for group_id in request.groups_names.iter().filter(|id| seen.insert(*id)) {
        let (error_code, error_message) = match delete(state, cx, group_id) {
            Ok(()) => (0, None),
            // The coordinator's own refusals come without a word.
            Err(refusal) => (refusal.error.0, (!refusal.message.is_empty()).then(|| Str::from(refusal.message))),
        };
        results.push(DeletableGroupResult { group_id: group_id.clone(), error_code, error_message });
    }
    Outcome::Reply(DeleteGroupsResponse { results, ..DeleteGroupsResponse::default() })
}

fn delete(state: &mut State, cx: &Context, group_id: &Str) -> Result<(), Refusal> {
    let refused = cx.group_error(state, Operation::Delete, group_id);
    if let Some(error) = refused {
        return Err(Refusal::new(error, words(error)));
    }
    if let Some(error) = groups::not_coordinator(state, cx, group_id) {
        return Err(Refusal::new(error, String::new()));
    }
    state.groups.delete(group_id).map_err(|refusal| Refusal::new(refusal.error, String::new()))?;
    state.offsets.group_deleted(group_id);
    state.pending_offsets.group_deleted(group_id);
    groups::share::group_deleted(state, group_id);
    groups::settle(state, group_id, cx.now);
    Ok(())
}
