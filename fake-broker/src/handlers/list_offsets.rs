//! ListOffsets: a partition's first and next offset, and the first one at a time.

use std::collections::BTreeSet;

use krafka_protocol::api::list_offsets::{
    ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use krafka_protocol::compression::Decompressor;
use krafka_protocol::records::Batches;
use krafka_protocol::{Bytes, ErrorCode, ListOffsetsRequest, ListOffsetsResponse, Str};

use super::{leadership, parts};
use crate::context::{Context, Outcome};
use crate::faults::KafkaVersion;
use crate::security::acls::Operation;
use crate::state::State;

/// The next offset, or the last stable one.
const LATEST: i64 = -1;
/// The first offset.
const EARLIEST: i64 = -2;
/// The record with the highest timestamp (KIP-734).
const MAX_TIMESTAMP: i64 = -3;
/// The first offset that is not only in tiered storage (KIP-405): without such storage, the first.
const EARLIEST_LOCAL: i64 = -4;
/// The last offset in tiered storage (KIP-1005): without such storage, none.
const LATEST_TIERED: i64 = -5;
/// The first offset that is still to go to tiered storage (KIP-1023): without such storage, none.
const EARLIEST_PENDING_UPLOAD: i64 = -6;

/// From this version on answers have leader epochs.
const EPOCH_VERSION: i16 = 4;
/// The isolation level of a consumer that reads committed records only.
const READ_COMMITTED: i8 = 1;
/// A client, as a replica.
const CONSUMER: i32 = -1;
/// A tool that debugs a replica, and asks whoever it likes.
const DEBUGGING_REPLICA: i32 = -2;

pub(crate) fn handle(state: &State, cx: &Context, request: &ListOffsetsRequest) -> Outcome<ListOffsetsResponse> {
    if cx.version == 0 {
        let topics = request.topics.iter().map(|topic| ListOffsetsTopicResponse {
            name: topic.name.clone(),
            partitions: topic.partitions.iter().map(|ask| legacy(state, cx, request, &topic.name, ask)).collect(),
        });
        return Outcome::Reply(ListOffsetsResponse { topics: topics.collect(), ..ListOffsetsResponse::default() });
    }
    let duplicates = duplicates(request);
    let is_old = state.nodes.find(cx.node).is_some_and(|node| node.version < KafkaVersion::V4_0);
    if !(0..=READ_COMMITTED).contains(&request.isolation_level) {
        // Kafka 3.9 looks first whether a partition comes twice.
        let is_twice = |name: &Str, index: i32| is_old && duplicates.contains(&(name, index));
        return Outcome::Reply(tripped(request, is_twice));
    }
    let answer = |name: &Str, ask: &ListOffsetsPartition| {
        let is_duplicate = duplicates.contains(&(name, ask.partition_index));
        let refused = is_duplicate.then_some(Err(ErrorCode::INVALID_REQUEST));
        let found = refused.unwrap_or_else(|| find(state, cx, request, name, ask));
        let Found { timestamp, offset, leader_epoch, code } = found.unwrap_or_else(Found::failed);
        ListOffsetsPartitionResponse {
            partition_index: ask.partition_index,
            error_code: code.0,
            timestamp,
            offset,
            leader_epoch: if cx.version >= EPOCH_VERSION { leader_epoch } else { -1 },
            ..ListOffsetsPartitionResponse::default()
        }
    };
    let asks = request.topics.iter().flat_map(|topic| topic.partitions.iter().map(move |ask| (&topic.name, ask)));
    let begin = |name: &Str| ListOffsetsTopicResponse { name: name.clone(), partitions: Vec::new() };
    let topics = if is_old {
        let topics = request.topics.iter().map(|topic| ListOffsetsTopicResponse {
            partitions: topic.partitions.iter().map(|ask| answer(&topic.name, ask)).collect(),
            ..begin(&topic.name)
        });
        topics.collect()
    } else {
        // Since Kafka 4 what is asked for twice is answered once.
        let asks = parts::once(asks.map(|(name, ask)| ((name, ask.partition_index), ask)));
        let answers = asks.into_iter().map(|((name, _), ask)| (name, answer(name, ask)));
        parts::by_topic(answers, |name| begin(name), |topic| &mut topic.partitions)
    };
    Outcome::Reply(ListOffsetsResponse { topics, ..ListOffsetsResponse::default() })
}

/// What Kafka answers when it trips over an isolation level that it does not know.
fn tripped(request: &ListOffsetsRequest, is_twice: impl Fn(&Str, i32) -> bool) -> ListOffsetsResponse {
    let failed = |name: &Str, partition_index: i32| {
        let is_twice = is_twice(name, partition_index);
        let code = if is_twice { ErrorCode::INVALID_REQUEST } else { ErrorCode::UNKNOWN_SERVER_ERROR };
        ListOffsetsPartitionResponse { partition_index, error_code: code.0, ..ListOffsetsPartitionResponse::default() }
    };
    let topics = request.topics.iter().map(|topic| ListOffsetsTopicResponse {
        name: topic.name.clone(),
        partitions: topic.partitions.iter().map(|ask| failed(&topic.name, ask.partition_index)).collect(),
    });
    ListOffsetsResponse { topics: topics.collect(), ..ListOffsetsResponse::default() }
}

/// What was found, all -1 if nothing.
struct Found {
    timestamp: i64,
    offset: i64,
    leader_epoch: i32,
    code: ErrorCode,
}

impl Found {
    const NOTHING: Self = Self { timestamp: -1, offset: -1, leader_epoch: -1, code: ErrorCode::NONE };

    fn failed(code: ErrorCode) -> Self {
        Self { code, ..Self::NOTHING }
    }

    fn at(offset: i64, leader_epoch: Option<i32>) -> Self {
        Self { offset, leader_epoch: leader_epoch.unwrap_or(-1), ..Self::NOTHING }
    }
}

fn find(
    state: &State,
    cx: &Context,
    request: &ListOffsetsRequest,
    name: &str,
    ask: &ListOffsetsPartition,
) -> Result<Found, ErrorCode> {
    if let Some(code) = cx.partition_error(state, Operation::Describe, name, ask.partition_index) {
        return Err(code);
    }
    if ask.timestamp < 0 && !is_known(ask.timestamp, cx.version) {
        return Err(ErrorCode::UNSUPPORTED_VERSION);
    }
    let topic = state.topics.by_name(name).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
    let partition = leadership::find(topic, ask.partition_index)?;
    leadership::check_epoch(partition, cx.node, ask.current_leader_epoch)?;
    if request.replica_id != DEBUGGING_REPLICA {
        leadership::check_leader(partition, cx.node)?;
    }

    let log = &partition.log;
    let is_client = request.replica_id == CONSUMER;
    // After an election the high watermark may be behind what the last leader had given out already.
    let lags = is_client && log.epoch_start() > log.high_watermark();
    let unavailable = if cx.version >= 5 { ErrorCode::OFFSET_NOT_AVAILABLE } else { ErrorCode::LEADER_NOT_AVAILABLE };
    let end = if !is_client {
        log.end_offset()
    } else if request.isolation_level == READ_COMMITTED {
        log.last_stable_offset()
    } else {
        log.high_watermark()
    };
    Ok(match ask.timestamp {
        LATEST if lags => return Err(unavailable),
        LATEST => Found::at(end, Some(partition.leader_epoch)),
        EARLIEST | EARLIEST_LOCAL => Found::at(log.start_offset(), log.epoch_of(log.start_offset())),
        MAX_TIMESTAMP => {
            let found = log.max_timestamp().and_then(|(highest, batch)| first_since(batch, highest, 0));
            below(end, found, lags.then_some(unavailable))?
        }
        LATEST_TIERED | EARLIEST_PENDING_UPLOAD => Found::NOTHING,
        timestamp => {
            let found =
                log.batches_since(timestamp).find_map(|batch| first_since(batch, timestamp, log.start_offset()));
            below(end, found, lags.then_some(unavailable))?
        }
    })
}

/// Answers a consumer of Kafka before 0.10.1, which asks for several offsets at the starts of segments: those that were
/// written last at or before a time, the newest first.
fn legacy(
    state: &State,
    cx: &Context,
    request: &ListOffsetsRequest,
    name: &str,
    ask: &ListOffsetsPartition,
) -> ListOffsetsPartitionResponse {
    let offsets = || {
        if let Some(code) = cx.partition_error(state, Operation::Describe, name, ask.partition_index) {
            return Err(code);
        }
        let topic = state.topics.by_name(name).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
        let partition = leadership::find(topic, ask.partition_index)?;
        leadership::check_leader(partition, cx.node)?;
        let starts = partition.log.segment_starts(cx.wall_ms);
        let many = match ask.timestamp {
            LATEST => starts.len(),
            EARLIEST => 1,
            time => starts.iter().take_while(|(_, written_ms)| *written_ms <= time).count(),
        };
        let most = usize::try_from(ask.max_num_offsets).unwrap_or(0);
        let mut offsets: Vec<_> = starts[..many].iter().rev().map(|&(offset, _)| offset).take(most).collect();
        let high_watermark = partition.log.high_watermark();
        if request.replica_id == CONSUMER && offsets.iter().any(|&offset| offset > high_watermark) {
            offsets.retain(|&offset| offset <= high_watermark);
            offsets.insert(0, high_watermark);
        }
        Ok(offsets)
    };
    let (code, old_style_offsets) = offsets().map_or_else(|code| (code, Vec::new()), |it| (ErrorCode::NONE, it));
    ListOffsetsPartitionResponse {
        partition_index: ask.partition_index,
        error_code: code.0,
        old_style_offsets,
        ..ListOffsetsPartitionResponse::default()
    }
}

/// Whether a version of the API knows a special timestamp.
fn is_known(timestamp: i64, version: i16) -> bool {
    match timestamp {
        LATEST | EARLIEST => true,
        MAX_TIMESTAMP => version >= 7,
        EARLIEST_LOCAL => version >= 8,
        LATEST_TIERED => version >= 9,
        EARLIEST_PENDING_UPLOAD => version >= 11,
        _ => false,
    }
}

/// What was found, if it lies below `end`.
fn below(end: i64, found: Option<Found>, beyond: Option<ErrorCode>) -> Result<Found, ErrorCode> {
    match (found, beyond) {
        (Some(found), _) if found.offset < end => Ok(found),
        (_, Some(code)) => Err(code),
        (_, None) => Ok(Found::NOTHING),
    }
}

/// The first record of a batch with this timestamp or a later one, from this offset on. One that was deleted still has
/// the greatest timestamp of all for as long as its segment is there.
fn first_since(batch: &Bytes, timestamp: i64, from: i64) -> Option<Found> {
    let mut decompressor = Decompressor::default();
    let batch = Batches::new(batch.clone()).next()?.ok()?;
    let records = batch.records(&mut decompressor).ok()?;
    let mut records = records.iter().filter_map(Result::ok);
    let record = records.find(|record| record.timestamp >= timestamp && record.offset >= from)?;
    Some(Found {
        timestamp: record.timestamp,
        offset: record.offset,
        leader_epoch: batch.header().partition_leader_epoch,
        code: ErrorCode::NONE,
    })
}

/// The partitions that a request names more than once: Kafka answers none of them.
fn duplicates(request: &ListOffsetsRequest) -> BTreeSet<(&Str, i32)> {
    let mut seen = BTreeSet::new();
    let all = request.topics.iter().flat_map(|topic| topic.partitions.iter().map(|p| (&topic.name, p.partition_index)));
    all.filter(|partition| !seen.insert(*partition)).collect()
}
