//! What the descriptions of groups have in common: whom they tell of a group, and why not.

use krafka_protocol::{ErrorCode, Str};

use crate::context::Context;
use crate::groups::{self, Refusal};
use crate::security::acls::Operation;
use crate::state::State;
use crate::words::words;

/// The ids that are asked for, in the order in which they are answered: one that is no id comes first, as nobody has to
/// be asked about it. Who asks twice is answered twice.
pub(super) fn in_order(ids: &[Str]) -> impl Iterator<Item = &Str> {
    let (empty, rest): (Vec<&Str>, Vec<&Str>) = ids.iter().partition(|id| id.is_empty());
    empty.into_iter().chain(rest)
}

/// Why a group is not told, whether or not there is one of that id.
pub(super) fn refusal(state: &State, cx: &Context, id: &Str) -> Option<(ErrorCode, Option<String>)> {
    if let Some(code) = cx.group_error(state, Operation::Describe, id) {
        return Some((code, None));
    }
    if id.is_empty() {
        return Some((ErrorCode::INVALID_GROUP_ID, None));
    }
    groups::not_coordinator(state, cx, id).map(|code| (code, Some(words(code).to_owned())))
}

/// The same for a group that is of another kind, or not there.
pub(super) fn missing(id: &Str, other_kind: Option<Refusal>) -> (ErrorCode, Option<String>) {
    let missing = || Refusal::new(ErrorCode::GROUP_ID_NOT_FOUND, format!("Group {id} not found."));
    let refusal = other_kind.unwrap_or_else(missing);
    (refusal.error, Some(refusal.message))
}
