//! Which batch goes where, when, and what becomes of it.
//!
//! The one place that decides about sent records. It hears of batches, of the cluster and of answers, and orders
//! batches to be sealed, sent and settled:
//!
//! ```text
//!     Opened ─linger─▶ ripe ─leader reachable─▶ Seal ─▶ Sealed ─▶ queue ─▶ Produce ─▶ Answered ─┬─▶ Settle
//!                                                                  ▲                            │
//!                                                                  └──── backoff, new leader ───┘
//! ```
//!
//! A batch that has lingered stays open until its leader can take it: while five requests are on their way, or the
//! leader is away, it fills. Each wake touches only the partitions that something happened to; nothing here walks all
//! of them but the news of a changed topic, and closing.

mod answers;
mod idle;
mod messages;
mod partition;
#[cfg(test)]
mod tests;
mod topics;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use krafka_protocol::compression::{Compressor, Decompressor};
use krafka_protocol::machine::Machine;
use krafka_protocol::{Str, Uuid};

pub(super) use self::messages::{Action, Input, Outgoing};
use self::partition::{Next, Open, Partition};
use super::accumulator::Event;
use super::batch::{Batch, Order};
use super::builder::Settings;
use super::delivery::Destination;
use super::identity::{Identity, ProducerId};
use super::metrics::ProducerCounters;
use crate::cluster::{Node, Snapshot, TopicView};
use crate::error::KrafkaError;
use crate::limits::MAX_IN_FLIGHT_PRODUCE;
use crate::rng::Rng;

/// A moment at which something is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// A partition's backoff is over.
    Retry(usize),
    /// A partition's oldest batch has had its time.
    Expiry(usize),
    /// A broker's backoff or throttle is over.
    Node(i32),
    /// A broker may be asked for an identity.
    Identity,
    /// A topic may have been idle for long enough.
    Idle,
    /// Closing has taken long enough.
    Close,
}

/// A broker that leads something.
struct Peer<L> {
    node: Arc<Node>,
    link: Link<L>,
    /// Partitions that may have something to send, each once.
    ready: VecDeque<usize>,
    in_flight: usize,
    failures: u32,
    not_before: Option<Instant>,
    /// Why it cannot be reached.
    error: Option<KrafkaError>,
}

enum Link<L> {
    Idle,
    Connecting,
    /// With a number that no other connection has.
    Up(L, u64),
}

/// A request that is not answered.
struct Sent {
    node: i32,
    link: u64,
    entries: Vec<Entry>,
}

struct Entry {
    slot: usize,
    order: Order,
    topic_id: Uuid,
}

/// A topic that records were sent to.
#[derive(Default)]
struct Topic {
    view: Option<Arc<TopicView>>,
    slots: Vec<usize>,
    /// When a caller loaded it last.
    loaded: Option<Instant>,
    /// Whether its view is kept fresh; else it rests.
    is_kept: bool,
}

/// The machine. See the top of the file.
pub(super) struct Sender<L> {
    settings: Settings,
    rng: Rng,
    counters: Arc<ProducerCounters>,
    compressor: Compressor,
    decompressor: Decompressor,

    snapshot: Arc<Snapshot>,
    topics: BTreeMap<Str, Topic>,
    peers: BTreeMap<i32, Peer<L>>,
    /// Brokers that may have something to do.
    stirred: BTreeSet<i32>,
    /// By slot. `None` for slots that nothing was sent to yet.
    partitions: Vec<Option<Partition>>,
    /// Partitions with an open batch.
    open: BTreeSet<usize>,
    /// When open batches are ripe. In order, for all linger alike.
    linger: VecDeque<(Instant, usize, u64)>,
    timers: BTreeSet<(Instant, Timer)>,
    /// When idle topics are looked for.
    idle_look: Option<Instant>,
    /// Whether other topics are to be kept fresh than before.
    is_keep_due: bool,

    identity: Identity,
    /// Failures in a row to get one.
    identity_failures: u32,
    /// Why there is none yet.
    identity_error: Option<KrafkaError>,
    /// Partitions that wait for an identity.
    unidentified: BTreeSet<usize>,

    requests: BTreeMap<u64, Sent>,
    next_request: u64,
    next_link: u64,
    actions: VecDeque<Action<L>>,

    /// Batches that were opened and have no answer.
    outstanding: usize,
    is_closing: bool,
    is_closed: bool,
    has_stopped: bool,
}

/// How many new leaders in a row are followed at once, with nothing written in between: elections may come fast, but a
/// broker that names another in each answer (KIP-951) would be followed without end.
const HASTY_MOVES: u32 = 5;
/// What a request holds besides the batches, at most: header, transactional id, lists.
const REQUEST_OVERHEAD: usize = 512;
/// What a batch's entry holds besides the topic's name and the records, at most.
const ENTRY_OVERHEAD: usize = 64;

impl<L: Clone> Sender<L> {
    pub(super) fn new(settings: Settings, counters: Arc<ProducerCounters>, snapshot: Arc<Snapshot>, rng: Rng) -> Self {
        let compressor = settings.compressor().expect("the builder made one with the same settings");
        let actions = VecDeque::from([Action::Watch(snapshot.version)]);
        Self {
            identity: Identity::new(settings.is_idempotent),
            settings,
            rng,
            counters,
            compressor,
            decompressor: Decompressor::default(),
            snapshot,
            topics: BTreeMap::new(),
            peers: BTreeMap::new(),
            stirred: BTreeSet::new(),
            partitions: Vec::new(),
            open: BTreeSet::new(),
            linger: VecDeque::new(),
            timers: BTreeSet::new(),
            idle_look: None,
            is_keep_due: false,
            identity_failures: 0,
            identity_error: None,
            unidentified: BTreeSet::new(),
            requests: BTreeMap::new(),
            next_request: 0,
            next_link: 0,
            actions,
            outstanding: 0,
            is_closing: false,
            is_closed: false,
            has_stopped: false,
        }
    }

    fn event(&mut self, event: Event, now: Instant) {
        match event {
            Event::Opened { destination, number, at, is_hurried } => {
                self.opened(&destination, number, at, is_hurried);
                if self.partition(destination.slot).rests {
                    self.woken(destination.slot, now);
                }
            }
            Event::Sealed { slot, number, batch } => self.sealed(slot, number, batch, now),
            Event::Starved => self.hurry(now),
            Event::Flushed => self.seal_all(),
            Event::Loaded { topic, snapshot } => {
                if snapshot.version > self.snapshot.version {
                    self.changed(snapshot, now);
                }
                self.loaded(&topic, now);
            }
            Event::Closed { deadline } => {
                self.is_closing = true;
                self.timers.extend(deadline.map(|at| (at, Timer::Close)));
                self.seal_all();
            }
        }
    }

    fn opened(&mut self, destination: &Arc<Destination>, number: u64, at: Instant, is_hurried: bool) {
        let slot = destination.slot;
        self.outstanding += 1;
        if self.partitions.len() <= slot {
            self.partitions.resize_with(slot + 1, || None);
        }
        if self.partitions[slot].is_none() {
            let mut partition = Partition::new(destination.clone());
            let topic = self.topics.entry(destination.name.clone()).or_default();
            topic.slots.push(slot);
            partition.rests = !topic.is_kept;
            partition.lead(topic.view.as_deref(), false);
            self.partitions[slot] = Some(partition);
        }
        let partition = self.partitions[slot].as_mut().expect("it was made above");
        partition.opened = Some(at);
        partition.open = Some(Open { number, at, is_ripe: false, is_sealing: false });
        self.open.insert(slot);
        let due = if is_hurried { at } else { at + self.settings.linger };
        // A hurried one may be due before others: it is not worth a search, and they are as soon due as it can be sent.
        match is_hurried {
            true => self.linger.push_front((due, slot, number)),
            false => self.linger.push_back((due, slot, number)),
        }
        self.watch_age(slot);
    }

    fn sealed(&mut self, slot: usize, number: u64, batch: Option<Batch>, now: Instant) {
        let Some(partition) = self.partitions.get_mut(slot).and_then(Option::as_mut) else { return };
        if batch.is_none() {
            self.outstanding -= 1;
        }
        partition.seal(number, batch);
        if partition.open.is_none() {
            self.open.remove(&slot);
        }
        if self.is_closed {
            let error = self.unfinished(slot, false);
            return self.fail_all(slot, &error);
        }
        if let Some(code) = self.refusal(slot) {
            return self.refuse(slot, code);
        }
        self.watch_age(slot);
        self.stir(slot, now);
    }

    /// Nothing should linger: memory is needed.
    fn hurry(&mut self, now: Instant) {
        for slot in self.open.clone() {
            if let Some(open) = self.partition(slot).open.as_mut() {
                open.is_ripe = true;
            }
            self.stir(slot, now);
        }
    }

    /// What is open takes no more records.
    fn seal_all(&mut self) {
        for slot in self.open.clone() {
            self.order_seal(slot);
        }
    }

    fn order_seal(&mut self, slot: usize) {
        if let Some(open) = self.partition(slot).open.as_mut().filter(|open| !open.is_sealing) {
            open.is_sealing = true;
            let number = open.number;
            self.actions.push_back(Action::Seal { slot, number });
        }
    }

    /// Sees to it that the oldest batch of a partition does not outlive the delivery timeout.
    fn watch_age(&mut self, slot: usize) {
        let timeout = self.settings.delivery_timeout;
        let partition = self.partition(slot);
        if !partition.is_timed
            && let Some(oldest) = partition.oldest()
        {
            partition.is_timed = true;
            self.timers.insert((oldest + timeout, Timer::Expiry(slot)));
        }
    }

    /// Something happened to a partition: puts it into its leader's queue if it could have something to send.
    fn stir(&mut self, slot: usize, now: Instant) {
        let partition = self.partition(slot);
        if partition.listed.is_some() || !partition.has_work() || partition.not_before.is_some_and(|at| at > now) {
            return;
        }
        let (leader, name) = (partition.leader, partition.destination.name.clone());
        if let Some(leader) = leader
            && let Some(peer) = self.peer(leader)
        {
            peer.ready.push_back(slot);
            self.partition(slot).listed = Some(leader);
            self.stirred.insert(leader);
        } else {
            // Elections take a while, and nobody tells when they are over: ask again, less and less often.
            self.back_off(slot, now);
            self.actions.push_back(Action::Refresh(name));
        }
    }

    fn back_off(&mut self, slot: usize, now: Instant) {
        let (backoff, rng) = (self.settings.retry_backoff, &mut self.rng);
        let partition = self.partitions[slot].as_mut().expect("a partition backs off after it was made");
        partition.back_off(now, |failures| backoff.delay(failures, rng));
        self.timers.extend(partition.not_before.map(|at| (at, Timer::Retry(slot))));
    }

    /// The broker of that id, if its address is known.
    fn peer(&mut self, id: i32) -> Option<&mut Peer<L>> {
        if !self.peers.contains_key(&id) {
            let node = self.snapshot.node(id)?.clone();
            self.peers.insert(id, Peer::new(node));
        }
        self.peers.get_mut(&id)
    }

    fn partition(&mut self, slot: usize) -> &mut Partition {
        self.partitions[slot].as_mut().expect("a slot is spoken of after its partition was made")
    }

    fn connected(&mut self, node: i32, link: L) {
        if let Some(peer) = self.peers.get_mut(&node)
            && matches!(peer.link, Link::Connecting)
        {
            self.next_link += 1;
            peer.link = Link::Up(link, self.next_link);
            (peer.failures, peer.not_before, peer.error) = (0, None, None);
            self.stirred.insert(node);
        }
    }

    fn unreachable(&mut self, node: i32, error: KrafkaError, now: Instant) {
        let Some(peer) = self.peers.get_mut(&node) else { return };
        let until = now + self.settings.retry_backoff.delay(peer.failures, &mut self.rng);
        peer.failures += 1;
        (peer.link, peer.not_before, peer.error) = (Link::Idle, Some(until), Some(error.clone()));
        self.timers.insert((until, Timer::Node(node)));
        let listed = |slot: &usize| self.partitions[*slot].as_ref().is_some_and(|it| it.listed == Some(node));
        let waiting: Vec<_> = peer.ready.iter().copied().filter(listed).collect();
        let mut names = BTreeSet::new();
        for slot in waiting {
            names.insert(self.partition(slot).destination.name.clone());
            // Wrong credentials, or no broker at all: more attempts change nothing.
            if !error.is_retriable() {
                self.fail_all(slot, &error);
                self.order_seal(slot);
            }
        }
        // Perhaps somebody else leads by now.
        self.actions.extend(names.into_iter().map(Action::Refresh));
    }

    fn identified(&mut self, producer: ProducerId, now: Instant) {
        self.identity = Identity::Known(producer);
        (self.identity_failures, self.identity_error) = (0, None);
        self.stir_unidentified(now);
    }

    fn stir_unidentified(&mut self, now: Instant) {
        for slot in std::mem::take(&mut self.unidentified) {
            self.stir(slot, now);
        }
    }

    fn unidentified(&mut self, error: KrafkaError, is_final: bool, now: Instant) {
        let until = now + self.settings.retry_backoff.delay(self.identity_failures, &mut self.rng);
        self.identity = Identity::Missing { not_before: Some(until) };
        self.identity_failures += 1;
        self.timers.insert((until, Timer::Identity));
        if is_final {
            // The next record asks again: the permission may have been granted meanwhile.
            for slot in std::mem::take(&mut self.unidentified) {
                self.fail_all(slot, &error);
                self.order_seal(slot);
            }
        }
        self.identity_error = Some(error);
    }

    /// Whether to ask for an identity now: at the start, to have it in time, and then whenever something waits for one.
    fn wants_identity(&self, now: Instant) -> bool {
        let is_first = self.identity_failures == 0;
        self.identity.is_due(now) && (is_first || !self.unidentified.is_empty())
    }

    /// Does what is due by the clock.
    fn elapse(&mut self, now: Instant) {
        while let Some((_, slot, number)) = self.linger.pop_front_if(|(due, ..)| *due <= now) {
            if let Some(open) = self.partition(slot).open.as_mut().filter(|open| open.number == number) {
                open.is_ripe = true;
                self.stir(slot, now);
            }
        }
        while let Some((at, timer)) = self.timers.first().copied().filter(|(at, _)| *at <= now) {
            self.timers.remove(&(at, timer));
            match timer {
                Timer::Retry(slot) => self.stir(slot, now),
                Timer::Expiry(slot) => self.expire(slot, now),
                Timer::Node(node) => drop(self.stirred.insert(node)),
                Timer::Identity => {}
                Timer::Idle => self.rest(now),
                Timer::Close => self.end(),
            }
        }
    }

    /// What a broker could be sent, or told, now.
    fn drain(&mut self, id: i32, now: Instant) -> Option<Action<L>> {
        let (peer, partitions) = (self.peers.get_mut(&id)?, &self.partitions);
        let is_listed = |slot: usize| partitions[slot].as_ref().is_some_and(|partition| partition.listed == Some(id));
        // Nobody is connected to for what waits for another broker by now.
        while peer.ready.pop_front_if(|slot| !is_listed(*slot)).is_some() {}
        if peer.ready.is_empty()
            || peer.in_flight >= MAX_IN_FLIGHT_PRODUCE
            || peer.not_before.is_some_and(|at| at > now)
        {
            return None;
        }
        let (link, number) = match &peer.link {
            Link::Up(link, number) => (link.clone(), *number),
            Link::Connecting => return None,
            Link::Idle => {
                peer.link = Link::Connecting;
                return Some(Action::Connect(peer.node.clone()));
            }
        };
        let (mut batches, mut entries, mut again) = (Vec::new(), Vec::new(), Vec::new());
        let mut size = REQUEST_OVERHEAD;
        while let Some(slot) = peer.ready.pop_front() {
            let partition = self.partitions[slot].as_mut().expect("listed partitions exist");
            if partition.listed.take_if(|at| *at == id).is_none() {
                continue;
            }
            if partition.repair(&mut self.identity) {
                self.counters.add(|counters| &counters.epoch_bumps, 1);
            }
            match partition.next(number, self.settings.max_in_flight, now) {
                Next::Wait => {}
                Next::Identify => drop(self.unidentified.insert(slot)),
                Next::Seal(number) => {
                    partition.open.iter_mut().for_each(|open| open.is_sealing = true);
                    self.actions.push_back(Action::Seal { slot, number });
                }
                Next::Send(len) => {
                    let len = len + partition.destination.topic.len() + ENTRY_OVERHEAD;
                    if !batches.is_empty() && size + len > self.settings.max_request_size {
                        partition.listed = Some(id);
                        peer.ready.push_front(slot);
                        break;
                    }
                    let topic_id = partition.topic_id;
                    let destination = partition.destination.clone();
                    let Some(batch) = partition.send(number) else { continue };
                    batch.sent(&self.settings.client_id, &peer.node);
                    size += len;
                    self.counters.add(|counters| &counters.retries, u64::from(batch.attempts > 1));
                    entries.push(Entry { slot, order: batch.order, topic_id });
                    batches.push(Outgoing { destination, topic_id, records: batch.bytes() });
                    if partition.has_work() {
                        again.push(slot);
                    }
                }
            }
        }
        for slot in again {
            self.partitions[slot].as_mut().expect("it was sent from").listed = Some(id);
            peer.ready.push_back(slot);
        }
        if batches.is_empty() {
            return None;
        }
        let request = self.next_request;
        self.next_request += 1;
        peer.in_flight += 1;
        self.counters.add(|counters| &counters.requests, 1);
        self.counters.add(|counters| &counters.batches, batches.len() as u64);
        self.requests.insert(request, Sent { node: id, link: number, entries });
        Some(Action::Produce { request, link, batches })
    }
}

impl<L: Clone> Machine for Sender<L> {
    type Input = Input<L>;
    type Action = Action<L>;

    fn handle(&mut self, input: Input<L>, now: Instant) {
        match input {
            Input::Event(event) => self.event(event, now),
            Input::Changed(snapshot) => {
                self.actions.push_back(Action::Watch(snapshot.version));
                // One that came with a loaded topic may have been newer.
                if snapshot.version > self.snapshot.version {
                    self.changed(snapshot, now);
                }
            }
            Input::Connected { node, link } => self.connected(node, link),
            Input::Unreachable { node, error } => self.unreachable(node, error, now),
            Input::Answered { request, response, pause } => self.answered(request, &response, pause, now),
            Input::Written { request } => self.written(request, now),
            Input::Lost { request, error, possibly_written, is_retriable } => {
                self.lost(request, &error, possibly_written, is_retriable, now);
            }
            Input::Identified(producer) => self.identified(producer, now),
            Input::Unidentified { error, is_final } => self.unidentified(error, is_final, now),
        }
    }

    fn poll(&mut self, now: Instant) -> Option<Action<L>> {
        self.elapse(now);
        loop {
            if let Some(action) = self.actions.pop_front() {
                return Some(action);
            }
            if let Some(node) = self.stirred.pop_first() {
                // A broker that was given something may take more.
                if let Some(action) = self.drain(node, now) {
                    self.stirred.insert(node);
                    return Some(action);
                }
            } else if let Some(action) = self.keep() {
                return Some(action);
            } else if self.wants_identity(now) {
                self.identity = Identity::Asked;
                return Some(Action::Identify);
            } else if self.is_closing && self.outstanding == 0 && !self.has_stopped {
                self.has_stopped = true;
                return Some(Action::Stop);
            } else {
                return None;
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        let linger = self.linger.front().map(|(due, ..)| *due);
        let timer = self.timers.first().map(|(at, _)| *at);
        [linger, timer].into_iter().flatten().min().filter(|_| !self.has_stopped)
    }
}

impl<L> Peer<L> {
    fn new(node: Arc<Node>) -> Self {
        Self {
            node,
            link: Link::Idle,
            ready: VecDeque::new(),
            in_flight: 0,
            failures: 0,
            not_before: None,
            error: None,
        }
    }
}
