//! ConsumerGroupHeartbeat (68): membership of KIP-848. The rules are in [`groups`].

use std::collections::BTreeSet;

use krafka_protocol::api::consumer_group_heartbeat::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse};
use krafka_protocol::{ErrorCode, Str};

use crate::context::{Context, Outcome};
use crate::faults::KafkaVersion;
use crate::features::GROUP_VERSION;
use crate::groups::{self, Refusal};
use crate::security::acls::Operation;
use crate::state::State;

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &ConsumerGroupHeartbeatRequest,
) -> Outcome<ConsumerGroupHeartbeatResponse> {
    if !state.is_on(GROUP_VERSION) {
        return Outcome::Reply(ConsumerGroupHeartbeatResponse {
            error_code: ErrorCode::UNSUPPORTED_VERSION.0,
            error_message: None,
            ..ConsumerGroupHeartbeatResponse::default()
        });
    }
    let answer = match refusal(state, cx, request) {
        Some(error) => Err(Refusal::new(error, String::new())),
        None => {
            let looks = state.groups.has_expressions(request);
            let hidden = if looks { cx.hidden_topics(state) } else { BTreeSet::new() };
            let (groups, image) = groups::at(state, cx.node);
            groups.consumer_heartbeat(&image.hiding(&hidden), &cx.into(), request, cx.now)
        }
    };
    groups::settle(state, &request.group_id, cx.now);
    Outcome::Reply(answer.unwrap_or_else(|refusal| ConsumerGroupHeartbeatResponse {
        error_code: refusal.error.0,
        error_message: (!refusal.message.is_empty()).then(|| Str::from(refusal.message)),
        ..ConsumerGroupHeartbeatResponse::default()
    }))
}

fn refusal(state: &State, cx: &Context, request: &ConsumerGroupHeartbeatRequest) -> Option<ErrorCode> {
    let group = &request.group_id;
    if let Some(error) = cx.group_error(state, Operation::Read, group) {
        return Some(error);
    }
    let names = request.subscribed_topic_names.iter().flatten();
    if let Some(error) = names.filter_map(|name| cx.topic_error(state, Operation::Describe, name)).next() {
        return Some(error);
    }
    // Since 4.1 any node refuses what makes no sense; before, the coordinator does.
    let is_elsewhere = groups::not_coordinator(state, cx, group);
    if state.version_of(cx.node) < KafkaVersion::V4_1 {
        return is_elsewhere;
    }
    is_elsewhere.filter(|_| groups::is_sound(state, cx, request))
}
