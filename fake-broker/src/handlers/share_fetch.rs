//! ShareFetch (78): a member acquires records of partitions, says what became of earlier ones, and waits for more.
//!
//! The acknowledgements are carried out at once, the rest may wait in the purgatory: until there are `min_bytes` from
//! where the group reads on, or `max_wait_ms` is over. Records are acquired only as the answer is made, so that two
//! that wait never hold each other's records.
//!
//! Where it differs from Kafka on purpose: a topic that was deleted within a session is UNKNOWN_TOPIC_OR_PARTITION from
//! the first request on, where Kafka may go on for a moment; and who waits sees records that others give back at once,
//! where Kafka may let it wait until its time is up.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use krafka_protocol::api::share_fetch::{
    AcknowledgementBatch, AcquiredRecords, LeaderIdAndEpoch, NodeEndpoint, PartitionData, ShareFetchRequest,
    ShareFetchResponse, ShareFetchableTopicResponse,
};
use krafka_protocol::{Bytes, ErrorCode, Str, Uuid};

use super::leadership;
use super::share_acknowledge::{acknowledge, hint, holder, is_hinted, lock_millis};
use super::share_records;
use crate::cluster::Look;
use crate::context::{Context, Outcome};
use crate::features::SHARE_VERSION;
use crate::groups::share::{
    self, Acknowledgement, Acquired, FINAL_EPOCH, Holder, INITIAL_EPOCH, Lock, Settings, ShareKey, Unacknowledged,
    Wanted, Wish,
};
use crate::purgatory::{WaitKey, Waiting as Parked};
use crate::security::acls::Operation;
use crate::state::State;

/// The mode that holds on to the number of records strictly (KIP-1206).
const RECORD_LIMIT: i8 = 1;
/// The mode that hands out whole batches.
const BATCH_OPTIMIZED: i8 = 0;

/// A share fetch that waits, or is about to be answered.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    holder: Holder,
    wanted: Vec<Wanted>,
    acknowledged: BTreeMap<(Uuid, i32), Result<(), Unacknowledged>>,
    min_bytes: usize,
    max_bytes: usize,
    max_records: i64,
    batch_size: i64,
    is_strict: bool,
    /// It is told this when its time is up, and waits so that it does not ask again at once.
    refused: Option<ErrorCode>,
    deadline: Instant,
}

impl Waiting {
    /// When it is answered whatever there is.
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The partitions whose news it waits for.
    pub(crate) fn watched(&self) -> impl Iterator<Item = WaitKey> {
        let wanted = self.wanted.iter().filter(|_| self.refused.is_none());
        wanted.map(|wanted| WaitKey { topic: wanted.topic, partition: wanted.partition })
    }
}

pub(crate) fn handle(state: &mut State, cx: &Context, request: &ShareFetchRequest) -> Outcome<ShareFetchResponse> {
    if !state.is_on(SHARE_VERSION) {
        return Outcome::Reply(failed(ErrorCode::UNSUPPORTED_VERSION));
    }
    let holder = match holder(state, cx, request.group_id.as_ref(), request.member_id.as_ref()) {
        Ok(holder) => holder,
        Err(code) => return Outcome::Reply(failed(code)),
    };
    if request.is_renew_ack && asks_for_records(request) {
        return Outcome::Reply(failed(ErrorCode::INVALID_REQUEST));
    }
    let mut waiting = Waiting {
        holder,
        wanted: Vec::new(),
        acknowledged: BTreeMap::new(),
        min_bytes: usize::try_from(request.min_bytes).unwrap_or(0),
        max_bytes: usize::try_from(request.max_bytes).unwrap_or(0),
        max_records: i64::from(request.max_records),
        batch_size: i64::from(request.batch_size),
        is_strict: request.share_acquire_mode == RECORD_LIMIT,
        refused: None,
        deadline: cx.now + Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0)),
    };
    let epoch = request.share_session_epoch;
    match step(state, cx, &waiting.holder, request) {
        Ok(()) => {}
        Err(ErrorCode::SHARE_SESSION_LIMIT_REACHED) if request.max_wait_ms > 0 => {
            waiting.refused = Some(ErrorCode::SHARE_SESSION_LIMIT_REACHED);
            return Outcome::Park(Parked::ShareFetch(waiting));
        }
        Err(code) => return Outcome::Reply(failed(code)),
    }
    let Some(sessions) = state.share.sessions.get(&cx.node) else { return Outcome::Close };
    let wanted = sessions.partitions(&waiting.holder);
    let is_known_mode = [BATCH_OPTIMIZED, RECORD_LIMIT].contains(&request.share_acquire_mode);
    let mut named = request.topics.iter().map(|topic| topic.topic_id);
    if !is_known_mode
        || wanted.iter().any(|wanted| !wanted.is_known)
        || named.any(|topic| state.topics.by_id(topic).is_none())
    {
        // Kafka 4.4 trips over an id without a name, and over a mode that it does not know.
        return Outcome::Reply(failed(ErrorCode::UNKNOWN_SERVER_ERROR));
    }

    waiting.acknowledged = acknowledge_all(state, cx, &waiting.holder, request);
    if epoch == FINAL_EPOCH {
        share::close_session(state, cx.node, &waiting.holder);
    } else if !request.is_renew_ack {
        waiting.wanted = wanted;
    }
    serve(state, cx, waiting, request.max_wait_ms > 0)
}

/// Looks at a waiting share fetch again.
pub(crate) fn resume(state: &mut State, cx: &Context, waiting: Waiting, look: Look) -> Outcome<ShareFetchResponse> {
    if let Some(code) = waiting.refused {
        return Outcome::Reply(failed(code));
    }
    serve(state, cx, waiting, look == Look::News)
}

/// Whether a request that renews locks asks for records as well, which it must not.
fn asks_for_records(request: &ShareFetchRequest) -> bool {
    [request.max_wait_ms, request.min_bytes, request.max_bytes, request.max_records] != [0; 4]
}

/// Begins a session, or takes the next step of one.
fn step(state: &mut State, cx: &Context, holder: &Holder, request: &ShareFetchRequest) -> Result<(), ErrorCode> {
    let epoch = request.share_session_epoch;
    let partitions = |with_all: bool| {
        let topics = request.topics.iter().map(move |topic| (topic.topic_id, &topic.partitions));
        topics.flat_map(move |(topic, partitions)| {
            let asked = partitions.iter().filter(move |asked| with_all || asked.acknowledgement_batches.is_empty());
            asked.map(move |asked| (topic, asked.partition_index))
        })
    };
    let wanted: Vec<Wanted> = partitions(true)
        .map(|(topic, partition)| Wanted { topic, partition, is_known: state.topics.by_id(topic).is_some() })
        .collect();
    let Some(sessions) = state.share.sessions.get_mut(&cx.node) else {
        return Err(ErrorCode::SHARE_SESSION_NOT_FOUND);
    };
    if epoch == INITIAL_EPOCH {
        if partitions(true).count() != partitions(false).count() {
            return Err(ErrorCode::INVALID_REQUEST);
        }
        return sessions.open(holder.clone(), cx.connection, wanted);
    }
    sessions.step(holder, epoch)?;
    if epoch != FINAL_EPOCH {
        let forgotten = request.forgotten_topics_data.iter();
        let forgotten = forgotten.flat_map(|topic| topic.partitions.iter().map(|&index| (topic.topic_id, index)));
        let forgotten: Vec<_> = forgotten.collect();
        sessions.update(holder, wanted, &forgotten);
    }
    Ok(())
}

/// Does what the request says of earlier records.
fn acknowledge_all(
    state: &mut State,
    cx: &Context,
    holder: &Holder,
    request: &ShareFetchRequest,
) -> BTreeMap<(Uuid, i32), Result<(), Unacknowledged>> {
    let may_renew = request.is_renew_ack && Settings::of(state, &holder.group).may_renew;
    let mut results = BTreeMap::new();
    for topic in &request.topics {
        for asked in topic.partitions.iter().filter(|asked| !asked.acknowledgement_batches.is_empty()) {
            let key = ShareKey { group: holder.group.clone(), topic: topic.topic_id, partition: asked.partition_index };
            let acknowledgements: Vec<_> = asked.acknowledgement_batches.iter().map(acknowledgement).collect();
            let result = acknowledge(state, cx, &key, &holder.member, &acknowledgements, may_renew);
            results.insert((key.topic, key.partition), result);
        }
    }
    results
}

/// Answers with what can be acquired if that is enough, and waits on otherwise.
fn serve(state: &mut State, cx: &Context, waiting: Waiting, may_wait: bool) -> Outcome<ShareFetchResponse> {
    let settings = Settings::of(state, &waiting.holder.group);
    let mut refused: BTreeMap<(Uuid, i32), ErrorCode> = BTreeMap::new();
    let mut readable = Vec::new();
    for wanted in &waiting.wanted {
        match find(state, cx, &waiting.holder, wanted, &settings) {
            Ok(key) => readable.push(key),
            Err(code) => {
                refused.insert((wanted.topic, wanted.partition), code);
            }
        }
    }
    let wants_none = waiting.max_records <= 0 || waiting.max_bytes == 0;
    // A state that was not begun may be in a moment, and the member would ask for it again at once.
    let lacks_state = refused.values().any(|code| *code == ErrorCode::UNKNOWN_SERVER_ERROR);
    if may_wait && !wants_none && (lacks_state || !readable.is_empty()) {
        let least = waiting.min_bytes;
        let ready: usize = readable.iter().map(|key| share_records::bytes_ready(state, key, least, &settings)).sum();
        if ready < least {
            return Outcome::Park(Parked::ShareFetch(waiting));
        }
    }

    let mut got: BTreeMap<(Uuid, i32), (Bytes, Vec<Acquired>)> = BTreeMap::new();
    if !wants_none {
        let mut wish = Wish {
            lock: Lock { member: waiting.holder.member.clone(), until: cx.now + settings.limits.lock_duration },
            max_records: waiting.max_records,
            batch_size: waiting.batch_size,
            is_strict: waiting.is_strict,
        };
        let mut left = waiting.max_bytes;
        for key in readable {
            let (records, acquired) = share_records::acquire(state, &key, &wish, left, got.is_empty(), &settings);
            wish.max_records -= acquired.iter().map(|got| got.last - got.first + 1).sum::<i64>();
            left = left.saturating_sub(records.len());
            if !acquired.is_empty() {
                got.insert((key.topic, key.partition), (records, acquired));
            }
        }
    }
    Outcome::Reply(answer(state, cx, &waiting, &refused, got, &settings))
}

/// Finds the share partition that is wanted, if the node may serve it.
fn find(
    state: &mut State,
    cx: &Context,
    holder: &Holder,
    wanted: &Wanted,
    settings: &Settings,
) -> Result<ShareKey, ErrorCode> {
    let topic = state.topics.by_id(wanted.topic).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
    if let Some(code) = cx.partition_error(state, Operation::Read, &topic.name, wanted.partition) {
        return Err(code);
    }
    let partition = leadership::find(topic, wanted.partition)?;
    leadership::check_leader(partition, cx.node)?;
    let leader_epoch = partition.leader_epoch;
    let key = ShareKey { group: holder.group.clone(), topic: wanted.topic, partition: wanted.partition };
    if state.share.partition_mut(&key).is_some_and(|loaded| loaded.leader_epoch() != leader_epoch) {
        share::forget_partition(state, &key);
    }
    if share::load(state, &key, settings, cx.wall_ms) {
        Ok(key)
    } else {
        // The group's coordinator has not had a state begun: Kafka cannot say it any better.
        Err(ErrorCode::UNKNOWN_SERVER_ERROR)
    }
}

fn answer(
    state: &mut State,
    cx: &Context,
    waiting: &Waiting,
    refused: &BTreeMap<(Uuid, i32), ErrorCode>,
    mut got: BTreeMap<(Uuid, i32), (Bytes, Vec<Acquired>)>,
    settings: &Settings,
) -> ShareFetchResponse {
    // What is acknowledged alone is answered too, after what is fetched.
    let mut places: Vec<(Uuid, i32)> = waiting.wanted.iter().map(|wanted| (wanted.topic, wanted.partition)).collect();
    places.extend(waiting.acknowledged.keys().filter(|place| !places.contains(place)).copied().collect::<Vec<_>>());

    let mut responses: Vec<ShareFetchableTopicResponse> = Vec::new();
    let mut leaders = Vec::new();
    for (topic, partition) in places {
        let place = (topic, partition);
        let code = refused.get(&place).copied().unwrap_or(ErrorCode::NONE);
        let acknowledged = waiting.acknowledged.get(&place);
        let (records, acquired) = got.remove(&place).unwrap_or_default();
        let has_news = !acquired.is_empty() || acknowledged.is_some();
        let sessions = state.share.sessions.get_mut(&cx.node);
        if !sessions.is_some_and(|s| s.tells(&waiting.holder, topic, partition, has_news, !code.is_ok())) {
            continue;
        }
        let refusal = acknowledged.and_then(|result| result.as_ref().err());
        let key = ShareKey { group: waiting.holder.group.clone(), topic, partition };
        let acknowledge_code = refusal.map_or(ErrorCode::NONE, |refusal| refusal.code);
        let leader = hint(state, &key, if is_hinted(code) { code } else { acknowledge_code });
        leaders.extend(leader.map(|(leader, _)| leader));
        let data = PartitionData {
            partition_index: partition,
            error_code: code.0,
            error_message: None,
            acknowledge_error_code: acknowledge_code.0,
            acknowledge_error_message: refusal.and_then(|refusal| refusal.reason).map(Str::from_static),
            current_leader: leader.map_or_else(LeaderIdAndEpoch::default, |(leader_id, leader_epoch)| {
                LeaderIdAndEpoch { leader_id, leader_epoch }
            }),
            records: Some(records),
            acquired_records: acquired.into_iter().map(acquired_records).collect(),
        };
        match responses.iter_mut().find(|answered| answered.topic_id == topic) {
            Some(answered) => answered.partitions.push(data),
            None => responses.push(ShareFetchableTopicResponse { topic_id: topic, partitions: vec![data] }),
        }
    }
    let endpoints = leadership::endpoints(state, cx, leaders).into_iter();
    ShareFetchResponse {
        error_message: None,
        acquisition_lock_timeout_ms: lock_millis(settings),
        responses,
        node_endpoints: endpoints
            .map(|(node_id, host, port, rack)| NodeEndpoint { node_id, host, port, rack })
            .collect(),
        ..ShareFetchResponse::default()
    }
}

fn failed(code: ErrorCode) -> ShareFetchResponse {
    ShareFetchResponse { error_code: code.0, error_message: None, ..ShareFetchResponse::default() }
}

fn acknowledgement(batch: &AcknowledgementBatch) -> Acknowledgement {
    Acknowledgement { first: batch.first_offset, last: batch.last_offset, types: batch.acknowledge_types.clone() }
}

fn acquired_records(got: Acquired) -> AcquiredRecords {
    AcquiredRecords { first_offset: got.first, last_offset: got.last, delivery_count: got.delivery_count }
}
