//! What a member is told when the coordinator does not take it for good.

use krafka_protocol::ErrorCode;

use super::PROTOCOL;
use crate::KrafkaError;
use crate::consumer::group::MemberConfig;

/// Why the coordinator refused what the member was doing, and what to do about it.
#[cold]
pub(super) fn of(code: ErrorCode, doing: &str, config: &MemberConfig) -> KrafkaError {
    let group = &config.group_id;
    match code {
        ErrorCode::FENCED_INSTANCE_ID => KrafkaError::Fenced {
            message: format!(
                "{doing} in group '{group}': another consumer has the same group_instance_id; give each its own"
            )
            .into(),
        },
        ErrorCode::INCONSISTENT_GROUP_PROTOCOL => KrafkaError::broker(
            code,
            format!("{doing} in group '{group}' with assignor '{PROTOCOL}', which not all of its members support"),
        ),
        ErrorCode::INVALID_SESSION_TIMEOUT => KrafkaError::broker(
            code,
            format!(
                "{doing} in group '{group}' with session_timeout {:?}, which must be within the broker's \
                 group.min.session.timeout.ms and group.max.session.timeout.ms (6 s and 30 min by default)",
                config.session_timeout
            ),
        ),
        _ => KrafkaError::broker(code, format!("{doing} in group '{group}'")),
    }
}
