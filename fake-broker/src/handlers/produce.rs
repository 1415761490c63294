//! Produce: appends one batch to each of a set of partitions, and with `acks=-1` waits until all replicas in sync have
//! it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use krafka_protocol::api::produce::{
    BatchIndexAndErrorMessage, LeaderIdAndEpoch, NodeEndpoint, PartitionProduceData, PartitionProduceResponse,
    TopicProduceResponse,
};
use krafka_protocol::records::BatchHeader;
use krafka_protocol::{ErrorCode, ProduceRequest, ProduceResponse, Str, Uuid};

use super::batch_rules::{self, BatchError};
use super::leadership;
use crate::cluster::Look;
use crate::context::{Context, Outcome};
use crate::log::producers::Check;
use crate::producer_ids::IdAndEpoch;
use crate::purgatory::{WaitKey, Waiting as Parked};
use crate::security::acls::{Operation, ResourceType};
use crate::state::State;
use crate::topics::Topic;
use crate::transactions::verification::{self, Client};

/// Kafka lets its own admin client write to internal topics, and nobody else.
const ADMIN_CLIENT_ID: &str = "__admin_client";

/// A request whose batches are in the leaders' logs, and not yet in those of all replicas in sync.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    response: ProduceResponse,
    pending: Vec<Pending>,
    deadline: Instant,
}

/// A batch that is committed when the high watermark is at `next_offset`.
#[derive(Clone, Debug)]
struct Pending {
    /// Its place in the answer: topic and partition.
    at: (usize, usize),
    key: WaitKey,
    next_offset: i64,
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

pub(crate) fn handle(state: &mut State, cx: &Context, request: &ProduceRequest) -> Outcome<ProduceResponse> {
    let mut response = ProduceResponse::default();
    let mut pending = Vec::new();
    let refused_whole = transactional_refusal(state, cx, request);
    for (at_topic, topic) in merged(request).iter().enumerate() {
        let mut answer = TopicProduceResponse {
            name: topic.name.clone(),
            topic_id: topic.topic_id,
            ..TopicProduceResponse::default()
        };
        for (at_partition, partition) in topic.partitions.iter().enumerate() {
            let written = match refused_whole {
                Some(code) => Err(code.into()),
                None => append(state, cx, request, topic.name, topic.topic_id, partition),
            };
            answer.partition_responses.push(match written {
                Ok(written) => {
                    let key = WaitKey { topic: written.topic, partition: partition.index };
                    pending.push(Pending { at: (at_topic, at_partition), key, next_offset: written.next_offset });
                    PartitionProduceResponse { index: partition.index, ..written.answer }
                }
                Err(refusal) => refused(partition.index, refusal),
            });
        }
        response.responses.push(answer);
    }

    if request.acks == 0 {
        // Nobody waits for an answer, so that Kafka shows an error by closing the connection.
        let failed = response.responses.iter().flat_map(|topic| &topic.partition_responses).any(|p| p.error_code != 0);
        return if failed { Outcome::Close } else { Outcome::NoReply };
    }
    if request.acks == 1 {
        pending.clear();
    }
    let patience = Duration::from_millis(u64::try_from(request.timeout_ms).unwrap_or(0));
    let waiting = Waiting { response, pending, deadline: cx.now + patience };
    resume(state, cx, waiting, if patience.is_zero() { Look::Deadline } else { Look::News })
}

/// What a request says of one topic.
struct Merged<'a> {
    name: &'a Str,
    topic_id: Uuid,
    partitions: Vec<&'a PartitionProduceData>,
}

/// The partitions of a request by topic. Of those named twice Kafka knows only the last, and answers it once.
fn merged(request: &ProduceRequest) -> Vec<Merged<'_>> {
    let mut topics: Vec<Merged<'_>> = Vec::with_capacity(request.topic_data.len());
    let mut topic_places = BTreeMap::new();
    let mut partition_places = BTreeMap::new();
    for topic in &request.topic_data {
        let (name, topic_id) = (&topic.name, topic.topic_id);
        let at_topic = *topic_places.entry((name, topic_id)).or_insert_with(|| {
            topics.push(Merged { name, topic_id, partitions: Vec::with_capacity(topic.partition_data.len()) });
            topics.len() - 1
        });
        let partitions = &mut topics[at_topic].partitions;
        for partition in &topic.partition_data {
            let place = *partition_places.entry((at_topic, partition.index)).or_insert(partitions.len());
            match partitions.get_mut(place) {
                Some(earlier) => *earlier = partition,
                None => partitions.push(partition),
            }
        }
    }
    topics
}

/// Looks at a waiting produce again: what all replicas in sync have gets its answer, and what they do not have, when
/// the time is up.
pub(crate) fn resume(state: &State, cx: &Context, mut waiting: Waiting, look: Look) -> Outcome<ProduceResponse> {
    let Waiting { response, pending, .. } = &mut waiting;
    pending.retain(|pending| match committed(state, cx, pending) {
        Ok(is_committed) => !is_committed,
        Err(code) => {
            response.responses[pending.at.0].partition_responses[pending.at.1].error_code = code.0;
            false
        }
    });
    if look == Look::News && !waiting.pending.is_empty() {
        return Outcome::Park(Parked::Produce(waiting));
    }
    for late in waiting.pending {
        let answer = &mut waiting.response.responses[late.at.0].partition_responses[late.at.1];
        answer.error_code = ErrorCode::REQUEST_TIMED_OUT.0;
    }
    if cx.version >= 10 {
        add_hints(state, cx, &mut waiting.response);
    }
    Outcome::Reply(waiting.response)
}

/// Whether a batch is committed, and enough replicas have it.
fn committed(state: &State, cx: &Context, pending: &Pending) -> Result<bool, ErrorCode> {
    let topic = state.topics.by_id(pending.key.topic).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
    let partition = leadership::find(topic, pending.key.partition)?;
    leadership::check_leader(partition, cx.node)?;
    if partition.log.high_watermark() < pending.next_offset {
        return Ok(false);
    }
    if partition.is_under_min_isr() {
        return Err(ErrorCode::NOT_ENOUGH_REPLICAS_AFTER_APPEND);
    }
    Ok(true)
}

/// A batch in the leader's log.
struct Written {
    topic: Uuid,
    next_offset: i64,
    answer: PartitionProduceResponse,
}

/// Why a batch was not appended.
struct Refusal {
    code: ErrorCode,
    log_start_offset: i64,
    records: Vec<BatchIndexAndErrorMessage>,
    message: Option<Str>,
}

impl From<ErrorCode> for Refusal {
    fn from(code: ErrorCode) -> Self {
        Self { code, log_start_offset: -1, records: Vec::new(), message: None }
    }
}

/// Appends a partition's batch. The order of the checks is Kafka's: what the request is allowed, who leads, how many
/// are in sync, the batch itself, and last the producer's sequence.
fn append(
    state: &mut State,
    cx: &Context,
    request: &ProduceRequest,
    name: &str,
    topic_id: Uuid,
    data: &PartitionProduceData,
) -> Result<Written, Refusal> {
    let by_id = cx.version >= 13;
    let unknown = if by_id { ErrorCode::UNKNOWN_TOPIC_ID } else { ErrorCode::UNKNOWN_TOPIC_OR_PARTITION };
    let topic = if by_id { state.topics.by_id(topic_id) } else { state.topics.by_name(name) };
    let Some(topic) = topic else {
        // A fault may name a topic that does not exist.
        return Err(cx.partition_error(state, Operation::Write, name, data.index).unwrap_or(unknown).into());
    };
    let denied = cx.partition_error(state, Operation::Write, &topic.name, data.index);
    if let Some(code) = denied.filter(|&code| !is_given_after_append(code)) {
        return Err(code.into());
    }
    if topic.partition(data.index).is_none() {
        return Err(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.into());
    }

    let batch =
        batch_rules::only_batch(cx.version, data.records.as_ref()).map_err(|error| refuse(topic, data, error))?;
    let name = topic.name.clone();
    if let Some(id) = request.transactional_id.as_ref().filter(|_| is_of_transaction(batch.header())) {
        admit(state, cx, id, batch.header(), (name.clone(), data.index))?;
    }
    let topic = state.topics.by_name(&name).ok_or(unknown)?;
    if !matches!(request.acks, -1..=1) {
        return Err(ErrorCode::INVALID_REQUIRED_ACKS.into());
    }
    if topic.internal && cx.client_id.as_deref() != Some(ADMIN_CLIENT_ID) {
        return Err(ErrorCode::INVALID_TOPIC_EXCEPTION.into());
    }
    let partition = leadership::find(topic, data.index)?;
    leadership::check_leader(partition, cx.node)?;
    if request.acks == -1 && partition.is_under_min_isr() {
        return Err(ErrorCode::NOT_ENOUGH_REPLICAS.into());
    }
    let named = format!("{}-{}", topic.name, data.index);
    let batch = batch_rules::check(topic.settings_on(Some(cx.node)), batch, &named, cx.wall_ms)
        .map_err(|error| refuse(topic, data, error))?;

    let id = topic.id;
    let log_start_offset = partition.log.start_offset();
    let swept_ms = state.producers_swept_ms(cx.now);
    let partition = state.topics.by_id_mut(id).and_then(|topic| topic.partition_mut(data.index)).ok_or(unknown)?;
    let producers = &mut partition.log.producers;
    producers.expire(swept_ms, state.config.producer_id_expiration_ms);
    let (base_offset, next_offset, log_append_time_ms) = match producers.check(batch.header()) {
        Check::Append => {
            let appended = state.append(id, data.index, &batch, cx.now).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
            (appended.base_offset, appended.next_offset, appended.log_append_time_ms)
        }
        Check::Duplicate { base_offset, timestamp } => {
            (base_offset, base_offset + i64::from(batch.header().last_offset_delta) + 1, timestamp)
        }
        Check::Refuse(code) => return Err(Refusal { log_start_offset, ..code.into() }),
    };
    if let Some(code) = denied {
        return Err(code.into());
    }
    let answer = PartitionProduceResponse {
        base_offset,
        log_append_time_ms,
        log_start_offset,
        ..PartitionProduceResponse::default()
    };
    Ok(Written { topic: id, next_offset, answer })
}

/// Why a request with batches of a transaction is refused as a whole: it must be allowed to use the transactional id,
/// and one request is of one producer.
fn transactional_refusal(state: &State, cx: &Context, request: &ProduceRequest) -> Option<ErrorCode> {
    let records = request.topic_data.iter().flat_map(|topic| &topic.partition_data).filter_map(|p| p.records.as_ref());
    let headers = records.filter_map(|records| BatchHeader::peek(records).ok());
    let transactional: Vec<_> = headers.filter(|header| header.attributes.is_transactional()).collect();
    if transactional.is_empty() {
        return None;
    }
    let Some(id) = &request.transactional_id else { return Some(ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED) };
    // A fault that is meant for partitions must not refuse the request.
    if !cx.may(state, Operation::Write, ResourceType::TransactionalId, id) {
        return Some(ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
    }
    let mut producers = transactional.iter().filter(|header| is_of_transaction(header));
    let identity = |header: &BatchHeader| (header.producer_id, header.producer_epoch);
    let first = producers.next().map(identity);
    let differs = producers.any(|header| Some(identity(header)) != first);
    differs.then_some(ErrorCode::INVALID_PRODUCER_ID_MAPPING)
}

fn is_of_transaction(header: &BatchHeader) -> bool {
    header.has_producer_id() && header.attributes.is_transactional()
}

/// Makes sure that a batch's transaction may write to a partition, and says it in the way of Produce if it may not.
fn admit(
    state: &mut State,
    cx: &Context,
    id: &Str,
    header: &BatchHeader,
    partition: (Str, i32),
) -> Result<(), Refusal> {
    let led = state.topics.partition(&partition.0, partition.1).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
    leadership::check_leader(led, cx.node)?;
    let BatchHeader { producer_id, producer_epoch, base_sequence, .. } = *header;
    let producer = IdAndEpoch { producer_id, producer_epoch };
    let client = Client::of_produce(cx.version);
    let Err(code) = verification::admit(state, cx, id, producer, base_sequence, partition, client) else {
        return Ok(());
    };
    let is_retried = match code {
        ErrorCode::CONCURRENT_TRANSACTIONS => client < Client::BumpsEpochs,
        ErrorCode::COORDINATOR_LOAD_IN_PROGRESS | ErrorCode::COORDINATOR_NOT_AVAILABLE | ErrorCode::NOT_COORDINATOR => {
            true
        }
        _ => false,
    };
    // Old producers do not know what to do with these, and try again after this one without asking for metadata.
    if is_retried {
        let message = format!(
            "Unable to verify the partition has been added to the transaction. Underlying error: {}",
            code.name()
        );
        return Err(Refusal { message: Some(Str::from(message)), ..ErrorCode::NOT_ENOUGH_REPLICAS.into() });
    }
    let message = (code == ErrorCode::INVALID_TXN_STATE).then_some("Partition was not added to the transaction");
    Err(Refusal { message: message.map(Str::from_static), ..code.into() })
}

/// Errors that Kafka gives only when the batch is in the leader's log already. A fault that asks for one of them gets
/// the append as well.
fn is_given_after_append(code: ErrorCode) -> bool {
    code == ErrorCode::REQUEST_TIMED_OUT || code == ErrorCode::NOT_ENOUGH_REPLICAS_AFTER_APPEND
}

/// Says in Kafka's way what is wrong with a batch: only a fault of single records comes with words.
fn refuse(topic: &Topic, data: &PartitionProduceData, error: BatchError) -> Refusal {
    let log_start_offset = topic.partition(data.index).map_or(-1, |partition| partition.log.start_offset());
    match error {
        BatchError::Batch(code) => code.into(),
        BatchError::Told(code, text) => Refusal { message: Some(Str::from(text)), ..code.into() },
        BatchError::Invalid(code) => Refusal { log_start_offset, ..code.into() },
        BatchError::Records { code, records, message } => Refusal {
            code,
            log_start_offset,
            records: records
                .into_iter()
                .map(|(index, text)| BatchIndexAndErrorMessage {
                    batch_index: index,
                    batch_index_error_message: Some(Str::from(text)),
                })
                .collect(),
            message: Some(Str::from(message)),
        },
    }
}

fn refused(index: i32, refusal: Refusal) -> PartitionProduceResponse {
    PartitionProduceResponse {
        index,
        error_code: refusal.code.0,
        base_offset: -1,
        log_start_offset: refusal.log_start_offset,
        record_errors: refusal.records,
        error_message: refusal.message,
        ..PartitionProduceResponse::default()
    }
}

/// Tells a client that asked the wrong node who leads, so that it need not ask for metadata first (KIP-951).
fn add_hints(state: &State, cx: &Context, response: &mut ProduceResponse) {
    let mut leaders = Vec::new();
    for answer in &mut response.responses {
        let Some(topic) = state.topics.named(&answer.name, answer.topic_id) else { continue };
        for refused in &mut answer.partition_responses {
            if refused.error_code != ErrorCode::NOT_LEADER_OR_FOLLOWER.0 {
                continue;
            }
            let Some(partition) = topic.partition(refused.index) else { continue };
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
