//! DeleteShareGroupOffsets (92): lets a group forget topics.

use std::collections::BTreeMap;

use krafka_protocol::api::delete_share_group_offsets::{
    DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse, DeleteShareGroupOffsetsResponseTopic,
};
use krafka_protocol::{ErrorCode, Str, Uuid};

use super::admit;
use crate::context::{Context, Outcome};
use crate::groups::share::{self, ShareKey};
use crate::security::acls::Operation;
use crate::state::State;
use crate::words::words;

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &DeleteShareGroupOffsetsRequest,
) -> Outcome<DeleteShareGroupOffsetsResponse> {
    let group = &request.group_id;
    let admitted = admit(state, cx, Operation::Delete, group).and_then(|()| {
        let reason = || Str::from(format!("Group {group} not found."));
        share::group(state, group).map(|_| ()).ok_or_else(|| (ErrorCode::GROUP_ID_NOT_FOUND, reason()))
    });
    if let Err((code, message)) = admitted {
        return Outcome::Reply(DeleteShareGroupOffsetsResponse {
            error_code: code.0,
            error_message: Some(message),
            ..DeleteShareGroupOffsetsResponse::default()
        });
    }
    let kept: BTreeMap<Uuid, Vec<i32>> = state.share.initialized(group);
    let mut responses: Vec<DeleteShareGroupOffsetsResponseTopic> = Vec::new();
    for asked in &request.topics {
        // What is forgotten is answered for once.
        if responses.iter().any(|answer| answer.error_code == 0 && answer.topic_name == asked.topic_name) {
            continue;
        }
        let denied = cx.topic_error(state, Operation::Read, &asked.topic_name);
        let found = state.topics.by_name(&asked.topic_name).map(|topic| topic.id);
        let known = found.filter(|id| kept.contains_key(id));
        let refusal = match (denied, found, known) {
            (Some(code), ..) => Some((code, words(code))),
            (None, None, _) => {
                let code = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
                Some((code, words(code)))
            }
            (None, Some(_), None) => {
                Some((ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, "There is no offset information to delete."))
            }
            (None, Some(_), Some(_)) => None,
        };
        if let Some(topic) = known.filter(|_| refusal.is_none()) {
            for &partition in kept.get(&topic).into_iter().flatten() {
                let key = ShareKey { group: group.clone(), topic, partition };
                state.share.persister.remove(&key);
                share::forget_partition(state, &key);
            }
        }
        responses.push(DeleteShareGroupOffsetsResponseTopic {
            topic_name: asked.topic_name.clone(),
            topic_id: known.filter(|_| refusal.is_none()).unwrap_or(Uuid::ZERO),
            error_code: refusal.map_or(0, |(code, _)| code.0),
            error_message: refusal.map(|(_, reason)| Str::from_static(reason)),
        });
    }
    responses.sort_by_key(|answer| answer.error_code != 0);
    Outcome::Reply(DeleteShareGroupOffsetsResponse {
        error_message: None,
        responses,
        ..DeleteShareGroupOffsetsResponse::default()
    })
}
