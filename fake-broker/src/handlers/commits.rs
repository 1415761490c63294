//! What commits of offsets have in common, in a transaction or without one.

use krafka_protocol::{ErrorCode, Str};

use crate::context::Context;
use crate::groups::CommitScope;
use crate::security::acls::Operation;
use crate::state::State;

/// Why nothing is committed for a partition, whatever the group says.
pub(super) fn refused(state: &State, cx: &Context, topic: &str, partition: i32) -> Option<ErrorCode> {
    cx.partition_error(state, Operation::Read, topic, partition).or_else(|| {
        let exists = state.topics.partition(topic, partition).is_some();
        (!exists).then_some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
    })
}

/// Whether a topic is refused as a whole: then an answer has it also if nothing was asked of its partitions.
pub(super) fn is_refused(state: &State, cx: &Context, topic: &str) -> bool {
    cx.topic_error(state, Operation::Read, topic).is_some() || state.topics.by_name(topic).is_none()
}

/// Whether the group lets its member commit for these partitions of a topic.
pub(super) fn check(
    state: &State,
    scope: &CommitScope,
    topic: Option<&Str>,
    mut partitions: impl Iterator<Item = i32>,
) -> Result<(), ErrorCode> {
    let id = topic.and_then(|name| state.topics.by_name(name)).map(|topic| topic.id).unwrap_or_default();
    let error = partitions.find_map(|partition| Some(scope.check(id, partition)).filter(|error| !error.is_ok()));
    error.map_or(Ok(()), Err)
}

/// Whether what comes with an offset is longer than may be kept.
pub(crate) fn is_too_long(state: &State, metadata: &str) -> bool {
    // Kafka counts UTF-16 units, whatever the setting's name says.
    metadata.encode_utf16().count() > state.config.offset_metadata_max_bytes
}
