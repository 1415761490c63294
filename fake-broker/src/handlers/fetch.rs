//! Fetch: reads batches from a set of partitions, and waits for them.
//!
//! A request that finds less than `min_bytes` waits in the purgatory. It is read again whenever one of its partitions
//! has news (records, another leader, a new epoch, a deletion), and answered when it has enough, when a partition
//! fails, or when `max_wait_ms` is over.

use std::time::{Duration, Instant};

use krafka_protocol::api::fetch::{
    AbortedTransaction, EpochEndOffset, FetchPartition, FetchTopic, FetchableTopicResponse, LeaderIdAndEpoch,
    NodeEndpoint, PartitionData,
};
use krafka_protocol::compression::Compression;
use krafka_protocol::records::AbortedTxn;
use krafka_protocol::{ErrorCode, FetchRequest, FetchResponse, Str};

use super::sessions::{self, Context as SessionContext, Wanted};
use super::{leadership, preferred};
use crate::cluster::Look;
use crate::context::{Context, Outcome};
use crate::faults::KafkaVersion;
use crate::log::{EpochEnd, Log, old_formats};
use crate::partition::Replica;
use crate::purgatory::{WaitKey, Waiting as Parked};
use crate::security::acls::Operation;
use crate::state::State;
use crate::topics::{Partition, Topic, TopicSettings};

/// The first version whose answers have batches; before it, messages of format 1, and before version 2, of format 0.
const BATCH_VERSION: i16 = 4;
/// The first version whose answers may have zstd (KIP-110).
const ZSTD_VERSION: i16 = 10;
/// From this version on a request says where the consumer is, and a follower may serve it (KIP-392).
const FOLLOWER_VERSION: i16 = 11;
/// From this version on topics have ids instead of names.
const TOPIC_ID_VERSION: i16 = 13;
/// From this version on answers name the new leader (KIP-951).
const HINT_VERSION: i16 = 16;
/// The isolation level of a consumer that reads committed records only.
const READ_COMMITTED: i8 = 1;

/// A fetch that waits, or is about to be answered.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    session: SessionContext,
    wanted: Vec<Wanted>,
    min_bytes: usize,
    max_bytes: i32,
    read_committed: bool,
    /// Where the consumer is; empty if it does not say.
    rack: Str,
    deadline: Instant,
    watched: Vec<WaitKey>,
    /// How many of them are read. Kafka sorts out the others before, and puts them last: they do not end the wait.
    readable: usize,
}

impl Waiting {
    /// When it is answered whatever there is.
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The partitions whose news it waits for.
    pub(crate) fn watched(&self) -> impl Iterator<Item = WaitKey> {
        self.watched.iter().copied()
    }
}

pub(crate) fn handle(state: &mut State, cx: &Context, request: &FetchRequest) -> Outcome<FetchResponse> {
    if let Some(code) = cx.denied().filter(|&code| concerns_session(code)) {
        return Outcome::Reply(failed(code));
    }
    if request.isolation_level > READ_COMMITTED || request.isolation_level < 0 {
        return Outcome::Reply(tripped(request));
    }
    let wanted = sessions::wanted(&request.topics, |id| state.topics.by_id(id).map(|topic| topic.name.clone()));
    let named = (request.session_id, request.session_epoch);
    let Some(sessions) = state.sessions.get_mut(&cx.node) else { return Outcome::Close };
    let by_id = cx.version >= TOPIC_ID_VERSION;
    let begun = sessions.begin(named, by_id, wanted, &request.forgotten_topics_data, cx.now);
    let (session, wanted) = match begun {
        Ok(begun) => begun,
        Err(code) => return Outcome::Reply(failed(code)),
    };

    let max_bytes = request.max_bytes.clamp(0, state.config.fetch_max_bytes()).min(state.quotas.max_fetch_bytes(cx));
    let mut waiting = Waiting {
        session,
        readable: wanted.len(),
        watched: watched(state, cx, &wanted),
        wanted,
        min_bytes: usize::try_from(request.min_bytes.min(max_bytes)).unwrap_or(0),
        max_bytes,
        read_committed: request.isolation_level == READ_COMMITTED,
        rack: request.rack_id.clone(),
        deadline: cx.now + Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0)),
    };
    let may_wait = request.max_wait_ms > 0 && !waiting.wanted.is_empty();
    let (mut answered, is_behind) = read_all(state, cx, &waiting);
    waiting.readable = answered.iter().filter(|(_, data)| sorted_out(data) == 0).count();
    if waiting.readable < answered.len() {
        answered.sort_by_key(|(_, data)| sorted_out(data));
        waiting.wanted = answered.iter().map(|(wanted, _)| wanted.clone()).collect();
    }
    serve(state, cx, waiting, answered, may_wait && !is_behind)
}

/// What Kafka answers when it trips over an isolation level that it does not know.
fn tripped(request: &FetchRequest) -> FetchResponse {
    let code = ErrorCode::UNKNOWN_SERVER_ERROR;
    let partition = |ask: &FetchPartition| PartitionData {
        error_code: code.0,
        aborted_transactions: Some(Vec::new()),
        ..empty(ask)
    };
    let topic = |topic: &FetchTopic| FetchableTopicResponse {
        topic: topic.topic.clone(),
        topic_id: topic.topic_id,
        partitions: topic.partitions.iter().map(partition).collect(),
    };
    FetchResponse { responses: request.topics.iter().map(topic).collect(), ..failed(code) }
}

/// Looks at a waiting fetch again.
pub(crate) fn resume(state: &mut State, cx: &Context, waiting: Waiting, look: Look) -> Outcome<FetchResponse> {
    let (answered, is_behind) = read_all(state, cx, &waiting);
    serve(state, cx, waiting, answered, look == Look::News && !is_behind)
}

/// Answers with what was read if that is enough, and waits on otherwise.
fn serve(
    state: &mut State,
    cx: &Context,
    waiting: Waiting,
    answered: Vec<(Wanted, PartitionData)>,
    may_wait: bool,
) -> Outcome<FetchResponse> {
    if may_wait && !is_enough(&answered, &waiting) {
        return Outcome::Park(Parked::Fetch(waiting));
    }

    let by_id = cx.version >= TOPIC_ID_VERSION;
    let Some(sessions) = state.sessions.get_mut(&cx.node) else { return Outcome::Close };
    let (session_id, answered) = match waiting.session {
        SessionContext::Sessionless => (0, answered),
        SessionContext::Full => (sessions.open(by_id, &answered, &mut state.ids, cx.now), answered),
        SessionContext::Incremental { session, epoch } => match sessions.keep_news(session, epoch, answered) {
            Ok(news) => (session, news),
            Err(code) => return Outcome::Reply(failed(code)),
        },
    };
    let mut response = FetchResponse { session_id, responses: group(answered), ..FetchResponse::default() };
    if cx.version < BATCH_VERSION {
        make_messages(cx.version, &waiting.wanted, &mut response);
    }
    if cx.version >= HINT_VERSION {
        add_hints(state, cx, &mut response);
    }
    Outcome::Reply(response)
}

/// Whether an answer is worth sending before its time is up.
fn is_enough(answered: &[(Wanted, PartitionData)], waiting: &Waiting) -> bool {
    let bytes: usize = answered.iter().filter_map(|(_, data)| data.records.as_ref()).map(bytes::Bytes::len).sum();
    let ends_the_wait = |data: &PartitionData| {
        data.error_code != 0 || data.diverging_epoch.end_offset >= 0 || data.preferred_read_replica >= 0
    };
    let (read, _) = answered.split_at(waiting.readable);
    bytes >= waiting.min_bytes || read.is_empty() || read.iter().any(|(_, data)| ends_the_wait(data))
}

/// Whether a partition is refused before anything is read, and when: first if its topic's id is unknown, then if it is
/// unknown itself, or its topic is not the client's to read.
fn sorted_out(data: &PartitionData) -> u8 {
    match ErrorCode(data.error_code) {
        ErrorCode::UNKNOWN_TOPIC_ID => 1,
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION | ErrorCode::TOPIC_AUTHORIZATION_FAILED => 2,
        _ => 0,
    }
}

/// Reads the partitions in their order until the bytes are used up. The first batch of all comes whatever its size.
///
/// Says as well if one of them is so far behind that Kafka does not wait for more: in an older segment than the end.
fn read_all(state: &State, cx: &Context, waiting: &Waiting) -> (Vec<(Wanted, PartitionData)>, bool) {
    let mut is_behind = false;
    // Kafka 4 looks no more at what the topic says.
    let is_old = state.nodes.find(cx.node).is_some_and(|node| node.version < KafkaVersion::V4_0);
    let minds_zstd = is_old && cx.version < ZSTD_VERSION;
    let mut left = usize::try_from(waiting.max_bytes).unwrap_or(0);
    let mut at_least_one = true;
    let mut answered = Vec::with_capacity(waiting.wanted.len());
    for wanted in &waiting.wanted {
        let room = left.min(usize::try_from(wanted.ask.partition_max_bytes).unwrap_or(0));
        let read = find(state, cx, wanted).and_then(|(settings, partition, replica)| {
            let preferred = preferred::replica(state, cx, partition, &waiting.rack, wanted.ask.fetch_offset);
            if let Some(preferred_read_replica) = preferred {
                return Ok(PartitionData { preferred_read_replica, ..told(partition, replica, &wanted.ask, false) });
            }
            if minds_zstd && settings.compression == Some(Compression::Zstd) {
                return Err(ErrorCode::UNSUPPORTED_COMPRESSION_TYPE);
            }
            is_behind |= partition.log.is_in_older_segment(wanted.ask.fetch_offset, replica.high_watermark);
            read(partition, replica, &wanted.ask, waiting.read_committed, room, at_least_one)
        });
        let data = read.unwrap_or_else(|code| refused(code, &wanted.ask));
        let bytes = data.records.as_ref().map_or(0, bytes::Bytes::len);
        if bytes > 0 {
            at_least_one = false;
        }
        left = left.saturating_sub(bytes);
        answered.push((wanted.clone(), data));
    }
    (answered, is_behind)
}

/// Finds the partition that is wanted, and what the node has of it, if the node may serve it.
fn find<'a>(
    state: &'a State,
    cx: &Context,
    wanted: &Wanted,
) -> Result<(&'a TopicSettings, &'a Partition, Replica), ErrorCode> {
    let topic = find_topic(state, cx, wanted);
    // A fault may name a topic that does not exist.
    let name = topic.as_ref().map_or(&wanted.topic, |topic| &topic.name);
    if let Some(code) = cx.partition_error(state, Operation::Read, name, wanted.ask.partition) {
        return Err(code);
    }
    let topic = topic?;
    let partition = leadership::find(topic, wanted.ask.partition)?;
    leadership::check_epoch(partition, cx.node, wanted.ask.current_leader_epoch)?;
    if cx.version < FOLLOWER_VERSION {
        leadership::check_leader(partition, cx.node)?;
    }
    let replica = partition.replica(cx.node).ok_or(ErrorCode::NOT_LEADER_OR_FOLLOWER)?;
    Ok((topic.settings_on(Some(cx.node)), partition, replica))
}

fn find_topic<'a>(state: &'a State, cx: &Context, wanted: &Wanted) -> Result<&'a Topic, ErrorCode> {
    if wanted.topic_id.is_zero() && cx.version < TOPIC_ID_VERSION {
        return state.topics.by_name(&wanted.topic).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    }
    state.topics.by_id(wanted.topic_id).ok_or_else(|| {
        // A topic that was known when it was asked for is missed under its name, and may have a successor of that name.
        if wanted.topic.is_empty() {
            ErrorCode::UNKNOWN_TOPIC_ID
        } else if state.topics.by_name(&wanted.topic).is_some() {
            ErrorCode::INCONSISTENT_TOPIC_ID
        } else {
            ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
        }
    })
}

/// What a replica tells of its offsets, without records.
fn told(partition: &Partition, replica: Replica, ask: &FetchPartition, read_committed: bool) -> PartitionData {
    PartitionData {
        high_watermark: replica.high_watermark,
        last_stable_offset: partition.log.last_stable_offset().min(replica.high_watermark),
        log_start_offset: replica.start_offset,
        aborted_transactions: read_committed.then(Vec::new),
        ..empty(ask)
    }
}

/// Reads what a replica has of a partition.
fn read(
    partition: &Partition,
    replica: Replica,
    ask: &FetchPartition,
    read_committed: bool,
    max_bytes: usize,
    at_least_one: bool,
) -> Result<PartitionData, ErrorCode> {
    let log = &partition.log;
    let mut data = told(partition, replica, ask, read_committed);
    if let Some(end) = diverges(log, replica, ask)? {
        data.diverging_epoch = EpochEndOffset { epoch: end.epoch, end_offset: end.end_offset }.into();
        return Ok(data);
    }
    if !(replica.start_offset..=replica.end_offset).contains(&ask.fetch_offset) {
        return Err(ErrorCode::OFFSET_OUT_OF_RANGE);
    }
    if ask.partition_max_bytes < 0 {
        // Kafka trips over it.
        return Err(ErrorCode::UNKNOWN_SERVER_ERROR);
    }
    let limit = if read_committed { data.last_stable_offset } else { data.high_watermark };
    let records = log.read(ask.fetch_offset, limit, max_bytes, at_least_one);
    if records.is_empty() && max_bytes > 0 && ask.fetch_offset < limit {
        // Of a batch for which there is too little room Kafka tells nothing.
        data.aborted_transactions = None;
    }
    if let Some(aborted) = &mut data.aborted_transactions {
        let end = log.end_of_read(ask.fetch_offset, records.len());
        let tell =
            |txn: &AbortedTxn| AbortedTransaction { producer_id: txn.producer_id, first_offset: txn.first_offset };
        aborted.extend(log.aborted(ask.fetch_offset, end).map(tell));
    }
    data.records = Some(records);
    Ok(data)
}

/// Whether what the client fetched last is not what the log has: where its epoch ends here (KIP-595).
fn diverges(log: &Log, replica: Replica, ask: &FetchPartition) -> Result<Option<EpochEnd>, ErrorCode> {
    if ask.last_fetched_epoch < 0 {
        return Ok(None);
    }
    let end = log.end_of_epoch(ask.last_fetched_epoch);
    let end = EpochEnd { end_offset: end.end_offset.min(replica.end_offset), ..end };
    if end == EpochEnd::UNDEFINED || ask.fetch_offset < replica.start_offset {
        return Err(ErrorCode::OFFSET_OUT_OF_RANGE);
    }
    Ok((end.epoch < ask.last_fetched_epoch || end.end_offset < ask.fetch_offset).then_some(end))
}

/// The answer for a partition that is not read. Before Kafka looks at a log it tells of no aborted transactions, and of
/// nothing behind that.
fn refused(code: ErrorCode, ask: &FetchPartition) -> PartitionData {
    let mut data = PartitionData { error_code: code.0, ..empty(ask) };
    data.aborted_transactions = (sorted_out(&data) > 0).then(Vec::new);
    data
}

/// An answer without records, as an error has it.
fn empty(ask: &FetchPartition) -> PartitionData {
    PartitionData {
        partition_index: ask.partition,
        high_watermark: -1,
        aborted_transactions: None,
        records: Some(bytes::Bytes::new()),
        ..PartitionData::default()
    }
}

/// Gives old clients the records in the format that they know. Batches that are cut are left out.
fn make_messages(version: i16, wanted: &[Wanted], response: &mut FetchResponse) {
    let format = if version < 2 { 0 } else { 1 };
    let answers = response.responses.iter_mut().flat_map(|topic| &mut topic.partitions);
    for (data, wanted) in answers.zip(wanted) {
        data.records = data.records.take().map(|it| old_formats::to_messages(it, format, wanted.ask.fetch_offset));
    }
}

/// Puts neighbours of one topic together.
fn group(answered: Vec<(Wanted, PartitionData)>) -> Vec<FetchableTopicResponse> {
    let mut topics: Vec<FetchableTopicResponse> = Vec::new();
    // By its id it is one topic, whether or not its name is known of each partition.
    let is_same = |last: &FetchableTopicResponse, wanted: &Wanted| {
        last.topic_id == wanted.topic_id && (!last.topic_id.is_zero() || last.topic == wanted.topic)
    };
    for (wanted, data) in answered {
        match topics.last_mut() {
            Some(last) if is_same(last, &wanted) => last.partitions.push(data),
            _ => topics.push(FetchableTopicResponse {
                topic: wanted.topic,
                topic_id: wanted.topic_id,
                partitions: vec![data],
            }),
        }
    }
    topics
}

/// What a waiting request watches: the partitions that exist.
fn watched(state: &State, cx: &Context, wanted: &[Wanted]) -> Vec<WaitKey> {
    let key = |wanted: &Wanted| {
        let topic = find_topic(state, cx, wanted).ok()?;
        Some(WaitKey { topic: topic.id, partition: wanted.ask.partition })
    };
    wanted.iter().filter_map(key).collect()
}

fn concerns_session(code: ErrorCode) -> bool {
    [
        ErrorCode::FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode::INVALID_FETCH_SESSION_EPOCH,
        ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR,
    ]
    .contains(&code)
}

fn failed(code: ErrorCode) -> FetchResponse {
    FetchResponse { error_code: code.0, ..FetchResponse::default() }
}

/// Tells a client that asked the wrong node, or at an old epoch, who leads (KIP-951).
fn add_hints(state: &State, cx: &Context, response: &mut FetchResponse) {
    let mut leaders = Vec::new();
    for answer in &mut response.responses {
        let Some(topic) = state.topics.named(&answer.topic, answer.topic_id) else { continue };
        for refused in &mut answer.partitions {
            let code = ErrorCode(refused.error_code);
            if code != ErrorCode::NOT_LEADER_OR_FOLLOWER && code != ErrorCode::FENCED_LEADER_EPOCH {
                continue;
            }
            let Some(partition) = topic.partition(refused.partition_index) else { continue };
            let (leader_id, leader_epoch) = leadership::hint(partition);
            refused.current_leader = LeaderIdAndEpoch { leader_id, leader_epoch };
            leaders.push(leader_id);
        }
    }
    response.node_endpoints = leadership::endpoints(state, cx, leaders)
        .into_iter()
        .map(|(node_id, host, port, rack)| NodeEndpoint { node_id, host, port, rack })
        .collect();
}
