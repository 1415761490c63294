//! OffsetForLeaderEpoch: where a leader epoch ends, so that a client learns whether the log was cut under it (KIP-320).

use krafka_protocol::api::offset_for_leader_epoch::{
    EpochEndOffset, OffsetForLeaderPartition, OffsetForLeaderTopicResult,
};
use krafka_protocol::{ErrorCode, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse};

use super::leadership;
use crate::context::{Context, Outcome};
use crate::log::EpochEnd;
use crate::security::acls::Operation;
use crate::state::State;

pub(crate) fn handle(
    state: &State,
    cx: &Context,
    request: &OffsetForLeaderEpochRequest,
) -> Outcome<OffsetForLeaderEpochResponse> {
    let topics = request.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|ask| {
            let (code, end) = match find(state, cx, &topic.topic, ask) {
                Ok(end) => (ErrorCode::NONE, end),
                Err(code) => (code, EpochEnd::UNDEFINED),
            };
            EpochEndOffset {
                error_code: code.0,
                partition: ask.partition,
                leader_epoch: end.epoch,
                end_offset: end.end_offset,
            }
        });
        OffsetForLeaderTopicResult { topic: topic.topic.clone(), partitions: partitions.collect() }
    });
    let topics = topics.collect();
    Outcome::Reply(OffsetForLeaderEpochResponse { topics, ..OffsetForLeaderEpochResponse::default() })
}

fn find(state: &State, cx: &Context, topic: &str, ask: &OffsetForLeaderPartition) -> Result<EpochEnd, ErrorCode> {
    if let Some(code) = cx.partition_error(state, Operation::Describe, topic, ask.partition) {
        return Err(code);
    }
    let topic = state.topics.by_name(topic).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
    let partition = leadership::find(topic, ask.partition)?;
    leadership::check_epoch(partition, cx.node, ask.current_leader_epoch)?;
    leadership::check_leader(partition, cx.node)?;
    Ok(partition.log.end_of_epoch(ask.leader_epoch))
}
