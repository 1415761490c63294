//! CreatePartitions: gives topics more partitions.

use std::collections::BTreeSet;

use krafka_protocol::api::create_partitions::{CreatePartitionsTopic, CreatePartitionsTopicResult};
use krafka_protocol::{CreatePartitionsRequest, CreatePartitionsResponse, ErrorCode, Str};

use super::assignment::{self, Refusal};
use crate::context::{Context, Outcome};
use crate::quotas;
use crate::security::acls::Operation;
use crate::state::State;
use crate::words::words;

/// From this version on clients know the error of too many partitions at once (KIP-599).
const STRICT_QUOTA_VERSION: i16 = 3;

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &CreatePartitionsRequest,
) -> Outcome<CreatePartitionsResponse> {
    let mut seen = BTreeSet::new();
    let twice: BTreeSet<_> =
        request.topics.iter().map(|topic| &topic.name).filter(|name| !seen.insert(*name)).collect();
    let mut results = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        let grown = if cx.is_out_of_time(request.timeout_ms) {
            Err((ErrorCode::REQUEST_TIMED_OUT, String::new()))
        } else if !twice.contains(&topic.name) {
            grow(state, cx, topic, request.validate_only)
        } else if seen.remove(&topic.name) {
            Err((ErrorCode::INVALID_REQUEST, "Duplicate topic name.".to_owned()))
        } else {
            continue;
        };
        let (code, message) = match grown {
            Ok(()) => (ErrorCode::NONE, None),
            Err((code, message)) => (code, (!message.is_empty()).then(|| Str::from(message))),
        };
        let name = topic.name.clone();
        results.push(CreatePartitionsTopicResult { name, error_code: code.0, error_message: message });
    }
    Outcome::Reply(CreatePartitionsResponse { results, ..CreatePartitionsResponse::default() })
}

fn grow(state: &mut State, cx: &Context, topic: &CreatePartitionsTopic, validate_only: bool) -> Result<(), Refusal> {
    if let Some(code) = cx.topic_error(state, Operation::Alter, &topic.name) {
        return Err((code, words(code).to_owned()));
    }
    let Some(present) = state.topics.by_name(&topic.name) else {
        return Err((ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, String::new()));
    };
    let (id, count) = (present.id, i32::try_from(present.partitions.len()).unwrap_or(i32::MAX));
    if topic.count == count {
        return Err((ErrorCode::INVALID_PARTITIONS, format!("Topic already has {count} partition(s).")));
    }
    if topic.count < count {
        let text = format!(
            "The topic {} currently has {count} partition(s); {} would not be an increase.",
            topic.name, topic.count
        );
        return Err((ErrorCode::INVALID_PARTITIONS, text));
    }
    // New partitions have as many replicas as the first one.
    let replication = present.partitions.first().map_or(1, |partition| partition.replicas.len());
    let assignments = match &topic.assignments {
        None => {
            let replicas = i16::try_from(replication).unwrap_or(i16::MAX);
            assignment::check_replication(state, replicas)?;
            (count..topic.count).map(|index| state.place(index, replicas)).collect()
        }
        Some(given) => {
            let added = topic.count - count;
            if usize::try_from(added).ok() != Some(given.len()) {
                let text = format!(
                    "Attempted to add {added} additional partition(s), but only {} assignment(s) were specified.",
                    given.len()
                );
                return Err((ErrorCode::INVALID_REPLICA_ASSIGNMENT, text));
            }
            for partition in given {
                assignment::check_manual(state, &partition.broker_ids, Some(replication))?;
            }
            given.iter().map(|partition| partition.broker_ids.clone()).collect()
        }
    };
    let added = usize::try_from(topic.count - count).unwrap_or(0);
    quotas::check_mutation(state, cx, added, STRICT_QUOTA_VERSION)?;
    if !validate_only {
        state.grow_topic(id, assignments);
    }
    Ok(())
}
