//! InitializeShareGroupState (83) to ReadShareGroupStateSummary (87): what brokers ask a share coordinator.
//!
//! They are for brokers, which may act for the cluster, but Kafka serves them to whoever may do that. Each partition's
//! state is found by its own key, so that every answer is one for each partition.

pub(super) mod delete;
pub(super) mod initialize;
pub(super) mod read;
pub(super) mod summary;
pub(super) mod write;

use std::str::FromStr;

use krafka_protocol::{ErrorCode, Str, Uuid};

use crate::context::Context;
use crate::coordinators::{self, CoordinatorKind};
use crate::groups::share::ShareKey;
use crate::security::acls::Operation;
use crate::state::State;
use crate::words::words;

/// Why a partition's state is not served, in words.
type Refused = (ErrorCode, Str);

/// Whether a key that a client looks for names a share partition: group, topic id and index, with colons between.
pub(super) fn is_key(key: &str) -> bool {
    let parts: Vec<&str> = key.split(':').collect();
    match parts[..] {
        [group, topic, partition] => {
            !group.is_empty() && Uuid::from_str(topic).is_ok() && partition.parse::<i32>().is_ok()
        }
        _ => false,
    }
}

fn key(group: &Str, topic: Uuid, partition: i32) -> ShareKey {
    ShareKey { group: group.clone(), topic, partition }
}

/// Whether the client acts for the cluster, and the node keeps this state.
fn admit(state: &mut State, cx: &Context, key: &ShareKey, what: &str) -> Result<(), Refused> {
    if let Some(code) = cx.cluster_error(state, Operation::ClusterAction) {
        return Err((code, Str::from_static(words(code))));
    }
    coordinators::ensure_topic(state, CoordinatorKind::Share);
    if coordinators::find(state, CoordinatorKind::Share, &key.coordinator_key()) != Some(cx.node) {
        let code = ErrorCode::NOT_COORDINATOR;
        return Err((code, Str::from(format!("Unable to {what}: {}", words(code)))));
    }
    Ok(())
}

fn exists(state: &State, key: &ShareKey) -> Result<(), Refused> {
    let found = state.topics.by_id(key.topic).and_then(|topic| topic.partition(key.partition));
    let code = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    found.map(|_| ()).ok_or_else(|| (code, Str::from_static(words(code))))
}

fn invalid(reason: &'static str) -> Refused {
    (ErrorCode::INVALID_REQUEST, Str::from_static(reason))
}

fn fenced_leader() -> Refused {
    (ErrorCode::FENCED_LEADER_EPOCH, Str::from_static(words(ErrorCode::FENCED_LEADER_EPOCH)))
}

fn fenced_state() -> Refused {
    (ErrorCode::FENCED_STATE_EPOCH, Str::from_static(words(ErrorCode::FENCED_STATE_EPOCH)))
}

fn failure(result: Result<(), Refused>) -> (i16, Option<Str>) {
    match result {
        Ok(()) => (0, None),
        Err((code, reason)) => (code.0, Some(reason)),
    }
}
