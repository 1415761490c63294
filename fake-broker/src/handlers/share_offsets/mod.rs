//! Where share groups read on, for tools: to be asked of the group's coordinator, and changed for groups without
//! members.

pub(super) mod alter;
pub(super) mod delete;
pub(super) mod describe;

use krafka_protocol::{ErrorCode, Str};

use crate::context::Context;
use crate::features::SHARE_VERSION;
use crate::groups;
use crate::groups::share;
use crate::security::acls::Operation;
use crate::state::State;
use crate::words::words;

/// An error for the whole request, in words.
type Refused = (ErrorCode, Str);

/// Whether a group's offsets may be changed: it is named, coordinated here, no group of another kind, and has no
/// members.
fn admit(state: &State, cx: &Context, operation: Operation, group: &Str) -> Result<(), Refused> {
    let in_words = |code: ErrorCode| (code, Str::from_static(words(code)));
    if !state.is_on(SHARE_VERSION) {
        return Err(in_words(ErrorCode::UNSUPPORTED_VERSION));
    }
    if let Some(code) = cx.group_error(state, operation, group) {
        return Err(in_words(code));
    }
    if group.is_empty() {
        return Err(in_words(ErrorCode::INVALID_GROUP_ID));
    }
    if let Some(code) = groups::not_coordinator(state, cx, group) {
        return Err(in_words(code));
    }
    if let Some(refusal) = share::other_kind(state, group) {
        return Err((refusal.error, Str::from(refusal.message)));
    }
    if share::group(state, group).is_some_and(|group| !group.members.is_empty()) {
        return Err(in_words(ErrorCode::NON_EMPTY_GROUP));
    }
    Ok(())
}
