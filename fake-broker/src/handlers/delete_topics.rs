//! DeleteTopics, by name or by id.

use std::collections::BTreeSet;

use krafka_protocol::api::delete_topics::{DeletableTopicResult, DeleteTopicState};
use krafka_protocol::{DeleteTopicsRequest, DeleteTopicsResponse, ErrorCode, Str, Uuid};

use super::assignment::Refusal;
use crate::context::{Context, Outcome};
use crate::quotas;
use crate::security::acls::Operation;
use crate::state::State;
use crate::words::words;

/// From this version on topics come as a list of names or ids.
const TOPIC_ID_VERSION: i16 = 6;

/// From this version on clients know the error of a cluster that deletes no topics.
const DISABLED_VERSION: i16 = 3;

/// From this version on clients know the error of too many partitions at once (KIP-599).
const STRICT_QUOTA_VERSION: i16 = 5;

pub(crate) fn handle(state: &mut State, cx: &Context, request: &DeleteTopicsRequest) -> Outcome<DeleteTopicsResponse> {
    let named = |name: &Str| DeleteTopicState { name: Some(name.clone()), ..DeleteTopicState::default() };
    let topics = if cx.version >= TOPIC_ID_VERSION {
        request.topics.clone()
    } else {
        request.topic_names.iter().map(named).collect()
    };
    if state.broker_value("delete.topic.enable").is_some_and(|value| value.trim().eq_ignore_ascii_case("false")) {
        return Outcome::Reply(disabled(cx, topics));
    }
    let mut seen = BTreeSet::new();
    let mut responses = Vec::with_capacity(topics.len());
    for topic in topics {
        let deleted = if cx.is_out_of_time(request.timeout_ms) {
            Err((ErrorCode::REQUEST_TIMED_OUT, String::new()))
        } else if seen.insert((topic.name.clone(), topic.topic_id)) {
            delete(state, cx, &topic)
        } else {
            Err((ErrorCode::INVALID_REQUEST, "Duplicate topic name.".to_owned()))
        };
        responses.push(match deleted {
            Ok((name, topic_id)) => {
                DeletableTopicResult { name: Some(name), topic_id, ..DeletableTopicResult::default() }
            }
            Err((code, message)) => DeletableTopicResult {
                name: topic.name.or_else(|| visible(state, cx, topic.topic_id, code)),
                topic_id: topic.topic_id,
                error_code: code.0,
                error_message: (!message.is_empty()).then(|| Str::from(message)),
            },
        });
    }
    Outcome::Reply(DeleteTopicsResponse { responses, ..DeleteTopicsResponse::default() })
}

/// The name of a topic by its id that the client may not delete, if it may know it.
fn visible(state: &State, cx: &Context, topic_id: Uuid, code: ErrorCode) -> Option<Str> {
    let is_denied = code == ErrorCode::TOPIC_AUTHORIZATION_FAILED;
    let name = state.topics.name_of(&topic_id).filter(|_| is_denied)?;
    cx.topic_error(state, Operation::Describe, &name).is_none().then_some(name)
}

/// What a cluster says whose `delete.topic.enable` is off, whatever it is asked.
fn disabled(cx: &Context, topics: Vec<DeleteTopicState>) -> DeleteTopicsResponse {
    let knows = cx.version >= DISABLED_VERSION;
    let code = if knows { ErrorCode::TOPIC_DELETION_DISABLED } else { ErrorCode::INVALID_REQUEST };
    let refused = |topic: DeleteTopicState| DeletableTopicResult {
        name: topic.name,
        topic_id: topic.topic_id,
        error_code: code.0,
        ..DeletableTopicResult::default()
    };
    DeleteTopicsResponse { responses: topics.into_iter().map(refused).collect(), ..DeleteTopicsResponse::default() }
}

fn delete(state: &mut State, cx: &Context, topic: &DeleteTopicState) -> Result<(Str, Uuid), Refusal> {
    let by_id = !topic.topic_id.is_zero();
    let refuse = |text: &str| Err((ErrorCode::INVALID_REQUEST, text.to_owned()));
    let found = match &topic.name {
        Some(_) if by_id => return refuse("You may not specify both topic name and topic id."),
        None if !by_id => return refuse("Neither topic name nor id were specified."),
        Some(name) => state.topics.by_name(name),
        None => state.topics.by_id(topic.topic_id),
    };
    let name = found.map(|topic| topic.name.clone()).or_else(|| topic.name.clone());
    if let Some(code) = name.as_deref().and_then(|name| cx.topic_error(state, Operation::Delete, name)) {
        return Err((code, words(code).to_owned()));
    }
    let Some(found) = found else {
        let code = if by_id { ErrorCode::UNKNOWN_TOPIC_ID } else { ErrorCode::UNKNOWN_TOPIC_OR_PARTITION };
        return Err((code, words(code).to_owned()));
    };
    let (name, id, partitions) = (found.name.clone(), found.id, found.partitions.len());
    quotas::check_mutation(state, cx, partitions, STRICT_QUOTA_VERSION)?;
    state.delete_topic(id);
    Ok((name, id))
}
