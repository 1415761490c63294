//! DeleteRecords: makes partitions begin at a later offset, and waits until all live replicas do.

use std::time::{Duration, Instant};

use krafka_protocol::api::delete_records::{
    DeleteRecordsPartition, DeleteRecordsPartitionResult, DeleteRecordsTopicResult,
};
use krafka_protocol::{DeleteRecordsRequest, DeleteRecordsResponse, ErrorCode, Str, Uuid};

use super::{leadership, parts};
use crate::cluster::Look;
use crate::context::{Context, Outcome};
use crate::purgatory::{WaitKey, Waiting as Parked};
use crate::security::acls::Operation;
use crate::state::State;

/// The offset that stands for the high watermark.
pub(crate) const HIGH_WATERMARK: i64 = -1;

/// A request whose deletions are done by the leaders, and not yet by all followers.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    response: DeleteRecordsResponse,
    pending: Vec<Pending>,
    deadline: Instant,
}

/// A partition that has to begin at `offset` everywhere.
#[derive(Clone, Debug)]
struct Pending {
    /// Its place in the answer: topic and partition.
    at: (usize, usize),
    key: WaitKey,
    offset: i64,
}

impl Waiting {
    /// When it is answered whatever there is.
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The partitions whose news it waits for.
    pub(crate) fn watched(&self) -> impl Iterator<Item = WaitKey> {
        self.pending.iter().map(|pending| pending.key)
    }
}

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &DeleteRecordsRequest,
) -> Outcome<DeleteRecordsResponse> {
    let asks = request.topics.iter().flat_map(|topic| topic.partitions.iter().map(move |ask| (&topic.name, ask)));
    let asks = parts::once(asks.map(|(name, ask)| ((name, ask.partition_index), ask)));
    let asks = asks.into_iter().map(|((name, _), ask)| (name, ask));
    let begin = |name: &&Str| ((*name).clone(), Vec::new());
    let topics = parts::by_topic(asks, begin, |(_, asks): &mut (Str, Vec<&DeleteRecordsPartition>)| asks);

    let mut response = DeleteRecordsResponse::default();
    let mut pending = Vec::new();
    for (at_topic, (name, asks)) in topics.into_iter().enumerate() {
        let mut partitions = Vec::with_capacity(asks.len());
        for (at_partition, ask) in asks.into_iter().enumerate() {
            let code = match delete(state, cx, &name, ask) {
                Ok((topic, offset)) => {
                    let key = WaitKey { topic, partition: ask.partition_index };
                    pending.push(Pending { at: (at_topic, at_partition), key, offset });
                    ErrorCode::NONE
                }
                Err(code) => code,
            };
            let partition_index = ask.partition_index;
            partitions.push(DeleteRecordsPartitionResult { partition_index, low_watermark: -1, error_code: code.0 });
        }
        response.topics.push(DeleteRecordsTopicResult { name, partitions });
    }
    let patience = Duration::from_millis(u64::try_from(request.timeout_ms).unwrap_or(0));
    let waiting = Waiting { response, pending, deadline: cx.now + patience };
    resume(state, cx, waiting, if patience.is_zero() { Look::Deadline } else { Look::News })
}

/// Looks at a waiting deletion again: what is done everywhere gets its answer, and what is not, when the time is up.
pub(crate) fn resume(state: &State, cx: &Context, mut waiting: Waiting, look: Look) -> Outcome<DeleteRecordsResponse> {
    let Waiting { response, pending, .. } = &mut waiting;
    pending.retain(|pending| {
        let answer = &mut response.topics[pending.at.0].partitions[pending.at.1];
        match low_watermark(state, cx, pending) {
            Ok(low) => {
                answer.low_watermark = low;
                low < pending.offset
            }
            Err(code) => {
                (answer.error_code, answer.low_watermark) = (code.0, -1);
                false
            }
        }
    });
    if look == Look::News && !waiting.pending.is_empty() {
        return Outcome::Park(Parked::DeleteRecords(waiting));
    }
    for late in waiting.pending {
        let answer = &mut waiting.response.topics[late.at.0].partitions[late.at.1];
        answer.error_code = ErrorCode::REQUEST_TIMED_OUT.0;
    }
    Outcome::Reply(waiting.response)
}

/// Moves the leader's first offset. Returns the topic's id, and the offset from which on records stay.
fn delete(state: &mut State, cx: &Context, name: &str, ask: &DeleteRecordsPartition) -> Result<(Uuid, i64), ErrorCode> {
    if let Some(code) = cx.partition_error(state, Operation::Delete, name, ask.partition_index) {
        return Err(code);
    }
    let topic = state.topics.by_name(name).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
    let partition = leadership::find(topic, ask.partition_index)?;
    if topic.internal {
        return Err(ErrorCode::INVALID_TOPIC_EXCEPTION);
    }
    leadership::check_leader(partition, cx.node)?;
    if !topic.settings.deletes {
        return Err(ErrorCode::POLICY_VIOLATION);
    }
    let high_watermark = partition.log.high_watermark();
    let offset = if ask.offset == HIGH_WATERMARK { high_watermark } else { ask.offset };
    if !(0..=high_watermark).contains(&offset) {
        return Err(ErrorCode::OFFSET_OUT_OF_RANGE);
    }
    let id = topic.id;
    state.delete_records(id, ask.partition_index, offset);
    Ok((id, offset))
}

/// The least first offset of a partition's replicas, if this node still leads it.
fn low_watermark(state: &State, cx: &Context, pending: &Pending) -> Result<i64, ErrorCode> {
    let topic = state.topics.by_id(pending.key.topic).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
    let partition = leadership::find(topic, pending.key.partition)?;
    leadership::check_leader(partition, cx.node)?;
    Ok(partition.low_watermark(|node| state.nodes.is_up(node)))
}
