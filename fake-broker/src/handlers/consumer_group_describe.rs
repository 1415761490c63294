//! ConsumerGroupDescribe (69): groups of KIP-848 with their members.

use krafka_protocol::api::consumer_group_describe::{
    ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, DescribedGroup,
};
use krafka_protocol::{ErrorCode, Str};

use super::{described, operations};
use crate::context::{Context, Outcome};
use crate::faults::KafkaVersion;
use crate::features::GROUP_VERSION;
use crate::groups::{self, Image};
use crate::security::acls::Operation;
use crate::state::State;

pub(crate) fn handle(
    state: &State,
    cx: &Context,
    request: &ConsumerGroupDescribeRequest,
) -> Outcome<ConsumerGroupDescribeResponse> {
    let describe = |id: &Str| describe(state, cx, id, request.include_authorized_operations);
    let groups = if state.is_on(GROUP_VERSION) {
        described::in_order(&request.group_ids).map(describe).collect()
    } else {
        request.group_ids.iter().map(describe).collect()
    };
    Outcome::Reply(ConsumerGroupDescribeResponse { groups, ..ConsumerGroupDescribeResponse::default() })
}

fn describe(state: &State, cx: &Context, id: &Str, tells_operations: bool) -> DescribedGroup {
    let refused = |error: ErrorCode, message: Option<Str>| DescribedGroup {
        error_code: error.0,
        error_message: message,
        group_id: id.clone(),
        ..DescribedGroup::default()
    };
    if !state.is_on(GROUP_VERSION) {
        return refused(ErrorCode::UNSUPPORTED_VERSION, None);
    }
    if let Some(error) = cx.group_error(state, Operation::Describe, id) {
        return refused(error, None);
    }
    if id.is_empty() {
        // Kafka 3.9 trips over it.
        let is_old = state.nodes.find(cx.node).is_some_and(|node| node.version < KafkaVersion::V4_0);
        let error = if is_old { ErrorCode::UNKNOWN_SERVER_ERROR } else { ErrorCode::INVALID_GROUP_ID };
        return refused(error, None);
    }
    if let Some(error) = groups::not_coordinator(state, cx, id) {
        return refused(error, None);
    }
    let image = Image::of(&state.topics, &state.nodes, cx.node);
    let mut topics = state.groups.described_topics(&image, id).into_iter();
    if let Some(error) = topics.find_map(|topic| cx.topic_error(state, Operation::Describe, &topic)) {
        let message = "The group has described topic(s) that the client is not authorized to describe.";
        return refused(error, Some(Str::from_static(message)));
    }
    let mut described = state.groups.describe_consumer(&image, id);
    if tells_operations && ErrorCode(described.error_code).is_ok() {
        described.authorized_operations = operations::group(state, cx, id);
    }
    described
}
