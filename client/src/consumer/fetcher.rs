//! What to fetch from whom, and what an answer means.
//!
//! Each broker has one fetch in flight, on a connection of its own, so a broker that holds its answer back holds up
//! nobody else. The fetcher is told what is wanted (partitions with a position, room in the buffer and a leader); it
//! decides when to ask, and turns answers into records to buffer, partitions to look after, and metadata to refresh.
//!
//! ```text
//!   idle ──something wanted, room──▶ in flight ──answer──▶ idle
//!                                        └──error──▶ backing off ──time──▶ idle
//! ```
//!
//! Nothing makes a tight loop: a failed request backs its broker off, a failed partition backs itself off, until time
//! has passed or another broker leads it; and a broker that answers again and again at once, and with nothing, is asked
//! less and less often.
//!
//! A leader may send a consumer to a replica in its rack (KIP-392). Whatever goes wrong there, the leader is asked at
//! once; and without the rack, as long as the replica is left alone, or the leader would name it again instead of
//! sending records.

mod hint;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use krafka_protocol::api::fetch::{FetchRequest, FetchResponse, PartitionData};
use krafka_protocol::machine::Machine;
use krafka_protocol::{ErrorCode, Str, Uuid};

pub(crate) use self::hint::Hint;
use super::chunk;
use super::penalties::Penalties;
use super::preferred::Preferred;
use super::session::{Asked, FetchSession, SessionKey};
use super::subscription::{Claim, Position};
use crate::KrafkaError;
use crate::backoff::Backoff;
use crate::cluster::Snapshot;
use crate::network::is_no_room;
use crate::rng::Rng;

/// How long a broker may hold back its answer while partitions of it are left out because their buffers are full.
/// Without that bound, a partition that has just been drained would wait for the long poll of its idle neighbours.
const IMPATIENT_WAIT: Duration = Duration::from_millis(20);

/// The longest pause of an idle fetch, however long a broker may hold back its answer: what comes in meanwhile is
/// late by that.
const MAX_PAUSE: Duration = Duration::from_millis(500);

/// After so many answers in a row that brought nothing a pause is as long as it may be. Each one before is half as long
/// as the next.
const TO_FULL_PAUSE: u32 = 5;

/// In penalties, all nodes that leaders name and metadata do not: no node is called so.
const NOWHERE: i32 = -1;

/// What a fetch asks for, and how much of it is buffered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FetchConfig {
    pub(crate) max_wait: Duration,
    pub(crate) min_bytes: i32,
    pub(crate) max_bytes: i32,
    pub(crate) partition_max_bytes: i32,
    /// Where the consumer stands; empty if that is not known.
    pub(crate) rack: Str,
    /// How long a leader's word holds that a replica is nearer.
    pub(crate) lease: Duration,
    /// After a failed request or a failed partition.
    pub(crate) backoff: Backoff,
}

/// A partition to fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Want {
    pub(crate) claim: Claim,
    pub(crate) topic: Str,
    pub(crate) topic_id: Uuid,
    pub(crate) partition: i32,
    /// The node that leads it, which need not be the one that is asked.
    pub(crate) leader: i32,
    pub(crate) leader_epoch: i32,
    pub(crate) position: Position,
}

impl Want {
    /// Which partition it is, whatever its slot.
    pub(crate) fn key(&self) -> SessionKey {
        (self.topic_id, self.topic.clone(), self.partition)
    }
}

/// What is wanted of one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeWants {
    pub(crate) partitions: Vec<Want>,
    /// Further partitions would be wanted, were their buffers not full.
    pub(crate) held_back: bool,
}

/// Records of one partition, as they came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fetched {
    pub(crate) claim: Claim,
    /// Where the fetch began; the first batch may begin earlier.
    pub(crate) from: Position,
    /// Behind the last whole batch.
    pub(crate) next: Position,
    pub(crate) records: Bytes,
    pub(crate) high_watermark: i64,
}

#[derive(Debug)]
pub(crate) enum Input {
    /// Everything that can be fetched now, by the node to ask, and how many bytes there is room for.
    Wanted { nodes: BTreeMap<i32, NodeWants>, room: usize },
    /// Here the cluster's nodes and the partitions' replicas are, by the latest news.
    ClusterChanged(Arc<Snapshot>),
    /// A fetch has ended, which was sent with leave to hold back the answer for so long.
    Answered { node: i32, answer: Result<FetchResponse, KrafkaError>, max_wait: Duration },
    /// The consumer closes, or gives up all partitions: sessions are ended at their brokers.
    Closed,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Action {
    Fetch {
        node: i32,
        request: FetchRequest,
        /// Where connections are few, others may have this one for so long first: as answers bring nothing, the broker
        /// would hold back the next one, too.
        pause: Duration,
    },
    /// Tell the broker that the session is over; the answer does not matter.
    EndSession {
        node: i32,
        request: FetchRequest,
    },
    Buffer(Fetched),
    /// The leader's log parts from what we read, at or before this place.
    Diverged {
        claim: Claim,
        epoch: i32,
        end_offset: i64,
    },
    OutOfRange {
        claim: Claim,
        offset: i64,
    },
    /// The leader sends us to another replica.
    Prefer {
        claim: Claim,
        preferred: Preferred,
    },
    /// The replica that we were sent to is of no use now: the leader is asked again.
    AskLeader {
        claim: Claim,
    },
    Refresh {
        topics: Vec<Str>,
    },
    /// The broker said who leads now (KIP-951).
    Hint(Hint),
    /// The user should know.
    Report(Complaint),
}

/// An error for the user. (Errors are not comparable; their text is, for tests.)
#[derive(Clone, Debug)]
pub(crate) struct Complaint(pub(crate) KrafkaError);

impl PartialEq for Complaint {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_string() == other.0.to_string()
    }
}

#[derive(Debug, Default)]
struct Peer {
    session: FetchSession,
    in_flight: Option<InFlight>,
    failures: u32,
    not_before: Option<Instant>,
    /// How many answers in a row brought no records.
    barren: u32,
    /// How many answers in a row brought nothing, and came at once all the same.
    hasty: u32,
    /// Which partition comes first in a full request, so that none starves behind large neighbours.
    turn: usize,
}

#[derive(Debug)]
struct InFlight {
    since: Instant,
    sent: BTreeMap<(Str, i32), Want>,
    names: BTreeMap<Uuid, Str>,
    reserved: usize,
}

/// What an answer brought, the best of it last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Yield {
    /// No records that lead on. That an offset is not there, or no longer, is asked about elsewhere, but is no news
    /// when it comes again at once.
    Nothing,
    /// Errors of partitions, which back off by themselves, or that others are to be asked.
    Failures,
    /// Records.
    Progress,
}

/// See the file's head.
#[derive(Debug)]
pub(crate) struct Fetcher {
    config: FetchConfig,
    rng: Rng,
    snapshot: Arc<Snapshot>,
    peers: BTreeMap<i32, Peer>,
    wanted: BTreeMap<i32, NodeWants>,
    room: usize,
    penalties: Penalties,
    actions: std::collections::VecDeque<Action>,
    now: Option<Instant>,
}

impl Fetcher {
    pub(crate) fn new(config: FetchConfig, snapshot: Arc<Snapshot>, rng: Rng) -> Self {
        Self {
            config,
            rng,
            snapshot,
            peers: BTreeMap::new(),
            wanted: BTreeMap::new(),
            room: 0,
            penalties: Penalties::default(),
            actions: std::collections::VecDeque::new(),
            now: None,
        }
    }

    /// Sends to each idle node what is wanted of it.
    fn send(&mut self, now: Instant) {
        for (&node, wants) in &self.wanted {
            let reserved: usize =
                self.peers.values().filter_map(|peer| peer.in_flight.as_ref()).map(|sent| sent.reserved).sum();
            let peer = self.peers.entry(node).or_default();
            let room = self.room.saturating_sub(reserved);
            if peer.in_flight.is_some() || peer.not_before.is_some_and(|time| time > now) || room == 0 {
                continue;
            }
            let penalties = &self.penalties;
            let is_free = |want: &&Want| penalties.until(node, want).is_none_or(|until| until <= now);
            let mut partitions: Vec<Want> = wants.partitions.iter().filter(is_free).cloned().collect();
            if partitions.is_empty() {
                continue;
            }
            let turn = peer.turn % partitions.len();
            partitions.rotate_left(turn);
            peer.turn = peer.turn.wrapping_add(1);

            let per_partition = usize::try_from(self.config.partition_max_bytes).unwrap_or(0);
            let most = usize::try_from(self.config.max_bytes).unwrap_or(0).min(room);
            let max_wait =
                if wants.held_back { self.config.max_wait.min(IMPATIENT_WAIT) } else { self.config.max_wait };
            let shuns_another = partitions.iter().any(|want| penalties.is_another_shunned(node, want, now));
            let mut request = FetchRequest {
                rack_id: if shuns_another { Str::default() } else { self.config.rack.clone() },
                max_wait_ms: millis(max_wait),
                min_bytes: self.config.min_bytes,
                max_bytes: i32::try_from(most).unwrap_or(i32::MAX),
                ..FetchRequest::default()
            };
            let asked: Vec<(SessionKey, Asked)> = partitions
                .iter()
                .map(|want| {
                    let asked = Asked {
                        offset: want.position.offset,
                        leader_epoch: want.leader_epoch,
                        last_fetched_epoch: want.position.epoch,
                        max_bytes: self.config.partition_max_bytes,
                    };
                    (want.key(), asked)
                })
                .collect();
            peer.session.ask(&asked, &mut request);
            if request.session_epoch > 0 && !request.topics.is_empty() {
                // It asks for something else than before.
                peer.barren = 0;
            }
            peer.in_flight = Some(InFlight {
                since: now,
                names: partitions.iter().map(|want| (want.topic_id, want.topic.clone())).collect(),
                reserved: partitions.len().saturating_mul(per_partition).min(most),
                sent: partitions.into_iter().map(|want| ((want.topic.clone(), want.partition), want)).collect(),
            });
            self.actions.push_back(Action::Fetch { node, request, pause: pause(peer.barren, max_wait) });
        }
    }

    fn answered(&mut self, node: i32, answer: Result<FetchResponse, KrafkaError>, max_wait: Duration, now: Instant) {
        let Some(peer) = self.peers.get_mut(&node) else { return };
        let Some(sent) = peer.in_flight.take() else { return };
        let response = match answer {
            Ok(response) => response,
            Err(error) => {
                // Whether the broker handled the request is not known, so neither is its session's epoch.
                peer.session.reset();
                self.back_off(node, now);
                if !is_no_room(&error) {
                    self.give_up(node, &sent, now);
                }
                if !error.is_retriable() {
                    self.actions.push_back(Action::Report(Complaint(error)));
                }
                return;
            }
        };
        match ErrorCode(response.error_code) {
            code if code.is_ok() => {
                peer.session.answered(response.session_id);
                peer.failures = 0;
                peer.not_before = None;
                peer.barren = if has_records(&response) { 0 } else { peer.barren.saturating_add(1) };
                let since = sent.since;
                match self.take(node, sent, response, now) {
                    Yield::Nothing => self.note_nothing(node, since, max_wait, now),
                    Yield::Progress => self.peers.entry(node).or_default().hasty = 0,
                    Yield::Failures => {}
                }
            }
            // The first of these in a row costs a round trip only; should the broker go on so, we wait in between.
            ErrorCode::FETCH_SESSION_ID_NOT_FOUND => {
                peer.session.forget();
                self.back_off_unless_first(node, now);
            }
            ErrorCode::INVALID_FETCH_SESSION_EPOCH => {
                peer.session.reset();
                self.back_off_unless_first(node, now);
            }
            code => {
                peer.session.reset();
                self.back_off(node, now);
                self.give_up(node, &sent, now);
                if !code.is_retriable() && !concerns_topic_id(code) {
                    let error = KrafkaError::broker(code, format!("fetching from broker {node}"));
                    self.actions.push_back(Action::Report(Complaint(error)));
                }
            }
        }
    }

    /// A broker may answer before its time and with nothing, and has its reasons for it, such as a log that it cannot
    /// read on from here: that costs no time. But who goes on so is asked less and less often, though never less than
    /// a broker that takes all of its time.
    fn note_nothing(&mut self, node: i32, since: Instant, max_wait: Duration, now: Instant) {
        let backoff = self.config.backoff;
        let peer = self.peers.entry(node).or_default();
        let may_wait = self.config.min_bytes > 0;
        if !may_wait || now.saturating_duration_since(since) >= backoff.base.min(max_wait / 2) {
            peer.hasty = 0;
            return;
        }
        if let Some(repeated) = peer.hasty.checked_sub(1) {
            let delay = backoff.delay(repeated, &mut self.rng).min(max_wait);
            peer.not_before = Some(since + delay);
        }
        peer.hasty = peer.hasty.saturating_add(1);
    }

    /// Goes through a good answer's partitions. What was not asked for, or comes twice, is ignored.
    fn take(&mut self, node: i32, mut sent: InFlight, response: FetchResponse, now: Instant) -> Yield {
        let mut all = Yield::Nothing;
        let mut stale = Vec::new();
        for topic in response.responses {
            let name =
                if topic.topic_id.is_zero() { Some(topic.topic) } else { sent.names.get(&topic.topic_id).cloned() };
            let Some(name) = name else { continue };
            for data in topic.partitions {
                let Some(want) = sent.sent.remove(&(name.clone(), data.partition_index)) else { continue };
                let code = ErrorCode(data.error_code);
                let is_led = want.leader == node;
                if code.is_ok() {
                    all = all.max(self.records(node, &want, data, now));
                } else if code == ErrorCode::OFFSET_OUT_OF_RANGE && !is_led {
                    // The replica lacks what the leader may have.
                    all = all.max(self.ask_leader(node, &want, now));
                } else if code == ErrorCode::OFFSET_OUT_OF_RANGE {
                    self.actions.push_back(Action::OutOfRange { claim: want.claim, offset: want.position.offset });
                } else {
                    if let Some(hint) = Hint::of(&name, topic.topic_id, &data, &response.node_endpoints) {
                        self.actions.push_back(Action::Hint(hint));
                    }
                    if code == ErrorCode::TOPIC_AUTHORIZATION_FAILED {
                        let context = format!("fetching from {name}-{}", want.partition);
                        self.actions.push_back(Action::Report(Complaint(KrafkaError::broker(code, context))));
                    }
                    all = all.max(if is_led {
                        self.penalise(node, &want, now)
                    } else {
                        self.ask_leader(node, &want, now)
                    });
                    if !stale.contains(&name) {
                        stale.push(name.clone());
                    }
                }
            }
        }
        if !stale.is_empty() {
            self.actions.push_back(Action::Refresh { topics: stale });
        }
        all
    }

    fn records(&mut self, node: i32, want: &Want, data: PartitionData, now: Instant) -> Yield {
        let is_led = want.leader == node;
        let sent_to = Some(data.preferred_read_replica).filter(|&other| other >= 0 && other != node);
        let diverging = &data.diverging_epoch;
        let is_diverging = diverging.epoch >= 0 || diverging.end_offset >= 0;
        if !is_led && (is_diverging || sent_to.is_some()) {
            // To a replica that is behind, our log is one that diverges at its end. And only leaders send us elsewhere.
            return self.ask_leader(node, want, now);
        }
        self.penalties.succeeded(node, want);
        if is_diverging {
            let (epoch, end_offset) = (diverging.epoch, diverging.end_offset);
            self.actions.push_back(Action::Diverged { claim: want.claim, epoch, end_offset });
            return Yield::Nothing;
        }
        let records = data.records.unwrap_or_default();
        let next = chunk::end_of(&records, want.position);
        self.actions.push_back(Action::Buffer(Fetched {
            claim: want.claim,
            from: want.position,
            next,
            records,
            high_watermark: data.high_watermark,
        }));
        if let Some(replica) = sent_to {
            self.send_on(replica, want, now);
            return Yield::Nothing;
        }
        if next == want.position { Yield::Nothing } else { Yield::Progress }
    }

    /// The leader sends us to a replica. One of which metadata know nothing is not gone to, as in Java: fresh metadata
    /// may know it, and meanwhile the leader is asked for records.
    fn send_on(&mut self, replica: i32, want: &Want, now: Instant) {
        if self.snapshot.has_replica_at(replica, &want.topic, want.partition) {
            self.penalties.succeeded(NOWHERE, want);
            let preferred = Preferred::new(replica, (want.leader, want.leader_epoch), now + self.config.lease);
            self.actions.push_back(Action::Prefer { claim: want.claim, preferred });
        } else {
            self.penalise(NOWHERE, want, now);
            self.actions.push_back(Action::Refresh { topics: vec![want.topic.clone()] });
        }
    }

    /// A replica that we were sent to has failed us: it is left alone for a while.
    fn ask_leader(&mut self, node: i32, want: &Want, now: Instant) -> Yield {
        self.actions.push_back(Action::AskLeader { claim: want.claim });
        self.penalise(node, want, now)
    }

    /// Nothing came of a whole request.
    fn give_up(&mut self, node: i32, sent: &InFlight, now: Instant) {
        for want in sent.sent.values().filter(|want| want.leader != node) {
            self.ask_leader(node, want, now);
        }
        self.refresh(sent);
    }

    fn refresh(&mut self, sent: &InFlight) {
        self.actions.push_back(Action::Refresh { topics: sent.names.values().cloned().collect() });
    }

    fn back_off_unless_first(&mut self, node: i32, now: Instant) {
        let peer = self.peers.entry(node).or_default();
        if peer.failures == 0 {
            peer.failures = 1;
        } else {
            self.back_off(node, now);
        }
    }

    fn back_off(&mut self, node: i32, now: Instant) {
        let peer = self.peers.entry(node).or_default();
        peer.not_before = Some(now + self.config.backoff.delay(peer.failures, &mut self.rng));
        peer.failures = peer.failures.saturating_add(1);
    }

    fn penalise(&mut self, node: i32, want: &Want, now: Instant) -> Yield {
        let (backoff, rng) = (&self.config.backoff, &mut self.rng);
        self.penalties.failed(node, want, |failures| backoff.delay(failures, rng), now);
        Yield::Failures
    }

    fn close(&mut self) {
        self.wanted.clear();
        self.penalties.clear();
        for (node, mut peer) in std::mem::take(&mut self.peers) {
            if let Some(mut request) = peer.session.close() {
                // Some brokers do not answer a fetch that may not wait, and hold up the connection with it.
                request.max_wait_ms = millis(self.config.max_wait);
                request.min_bytes = self.config.min_bytes;
                request.max_bytes = self.config.max_bytes;
                self.actions.push_back(Action::EndSession { node, request });
            }
        }
    }
}

impl Fetcher {
    /// The next action that is decided already. Nothing new is decided, by what may be out of date.
    pub(crate) fn decided(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }
}

impl Machine for Fetcher {
    type Input = Input;
    type Action = Action;

    fn handle(&mut self, input: Input, now: Instant) {
        self.now = Some(now);
        match input {
            Input::Wanted { nodes, room } => {
                // A node that the cluster has no more is none to remember anything of.
                let is_of_use = |node: &i32, peer: &mut Peer| {
                    peer.in_flight.is_some() || nodes.contains_key(node) || self.snapshot.node(*node).is_some()
                };
                self.peers.retain(is_of_use);
                (self.wanted, self.room) = (nodes, room);
            }
            Input::ClusterChanged(snapshot) => self.snapshot = snapshot,
            Input::Answered { node, answer, max_wait } => {
                // What was wanted has been answered, or has moved: the next list tells.
                self.wanted.remove(&node);
                self.answered(node, answer, max_wait, now);
            }
            Input::Closed => self.close(),
        }
    }

    fn poll(&mut self, now: Instant) -> Option<Action> {
        self.now = Some(now);
        if self.actions.is_empty() {
            self.send(now);
        }
        self.actions.pop_front()
    }

    fn deadline(&self) -> Option<Instant> {
        let idle = self.wanted.iter().filter_map(|(node, wants)| Some((node, wants, self.peers.get(node)?)));
        let idle = idle.filter(|(_, _, peer)| peer.in_flight.is_none());
        idle.filter_map(|(&node, wants, peer)| {
            let penalties = wants.partitions.iter().map(|want| self.penalties.until(node, want));
            // The first partition that may be fetched, but not before its broker may be asked.
            penalties.min().map(|first| first.max(peer.not_before))
        })
        .flatten()
        .filter(|&time| self.now.is_none_or(|now| time > now))
        .min()
    }
}

fn has_records(response: &FetchResponse) -> bool {
    let mut partitions = response.responses.iter().flat_map(|topic| &topic.partitions);
    partitions.any(|partition| partition.records.as_ref().is_some_and(|records| !records.is_empty()))
}

/// How long a fetch need not be sent after so many that brought nothing.
fn pause(barren: u32, max_wait: Duration) -> Duration {
    match TO_FULL_PAUSE.checked_sub(barren) {
        Some(TO_FULL_PAUSE) => Duration::ZERO,
        halvings => max_wait.min(MAX_PAUSE) / (1 << halvings.unwrap_or(0)),
    }
}

fn millis(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis()).unwrap_or(i32::MAX)
}

/// Codes that say that the topic was created anew, or that the broker has not heard of it yet: fresh metadata decides.
fn concerns_topic_id(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::UNKNOWN_TOPIC_ID | ErrorCode::INCONSISTENT_TOPIC_ID | ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR
    )
}

#[cfg(test)]
mod tests;
