//! What is on its way between clients and nodes.
//!
//! A frame that no rule of the network slows down, and that has none before it, is there at once. Others wait in a
//! lane, one for each way of each connection, in which nothing overtakes: until they have arrived, and for as long as
//! a partition stands in their way. So do the ends of connections: a client whose node died behind a partition is not
//! told.
//!
//! ```text
//!   client ──set_out──▶ lane ──arrive──▶ inbox            inbox empty, or room in the lane: Read
//!   client ◀──deliver── lane ◀──send──── answer           lane full: the node works on nothing more
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use bytes::Bytes;
use krafka_protocol::frame::Frame;
use krafka_protocol::{Reader, Str, decode_request_header};

use super::{Action, Cluster};
use crate::connection::Connection;
use crate::context::{ConnectionId, RequestId};
use crate::faults::{Passage, Passing, Towards};
use crate::timers::Timer;

/// How much is on its way at once on one connection, one way, before its sender waits: what sockets hold.
const MAX_UNDERWAY_BYTES: usize = 1024 * 1024;
/// How many requests are on their way at once on one connection.
const MAX_UNDERWAY_FRAMES: usize = 64;

/// How often in a second a frame shows that bandwidth slows down.
const PIECES_PER_SECOND: u64 = 100;
/// The most pieces that one frame comes in.
const MAX_PIECES: usize = 1000;

/// What is on its way on all connections.
#[derive(Clone, Debug, Default)]
pub(super) struct Network {
    wires: BTreeMap<ConnectionId, Wire>,
    /// What the rules' count of changes was when they were last asked.
    seen_changes: u64,
    /// Requests that are to be delivered again.
    recorded: BTreeMap<RequestId, Recorded>,
    /// Connections on which they are, which no client has.
    replays: BTreeSet<ConnectionId>,
    replayed: u64,
}

/// The two ways of a connection. It outlives the node's end of the connection, up to when the client's is gone.
#[derive(Clone, Debug)]
struct Wire {
    node: i32,
    /// What the client called itself last.
    client_id: Option<Str>,
    to_node: Lane<Arrival>,
    to_client: Lane<Action>,
    /// Whether the node has forgotten the connection: what comes next is answered by a reset.
    is_half_open: bool,
}

/// What comes from a client.
#[derive(Clone, Debug)]
pub(super) enum Arrival {
    /// A whole frame, without its length.
    Frame(Bytes),
    /// The client is gone.
    End,
}

/// One way of a connection: what is on it, with the time when it arrives.
#[derive(Clone, Debug)]
struct Lane<T> {
    underway: VecDeque<(Instant, usize, T)>,
    bytes: usize,
    /// Until when the bandwidth is taken.
    taken_until: Option<Instant>,
}

/// A request as it came.
#[derive(Clone, Debug)]
struct Recorded {
    connection: Connection,
    frame: Bytes,
}

impl<T> Lane<T> {
    fn new() -> Self {
        Self { underway: VecDeque::new(), bytes: 0, taken_until: None }
    }

    /// When something of that size arrives that sets out now. It is never earlier than what set out before.
    fn due(&mut self, bytes: usize, passage: &Passage, now: Instant) -> Instant {
        let begin = self.taken_until.map_or(now, |until| until.max(now));
        let end = begin.checked_add(passage.time_for(bytes)).unwrap_or(begin);
        self.taken_until = Some(end);
        let due = end + passage.delay;
        self.underway.back().map_or(due, |(before, ..)| due.max(*before))
    }

    fn push(&mut self, due: Instant, bytes: usize, what: T) {
        self.bytes += bytes;
        self.underway.push_back((due, bytes, what));
    }

    /// The next thing that has arrived.
    fn pop(&mut self, now: Instant) -> Option<T> {
        self.underway.front().filter(|(due, ..)| *due <= now)?;
        let (_, bytes, what) = self.underway.pop_front()?;
        self.bytes -= bytes;
        Some(what)
    }

    /// Lets all arrive now.
    fn hurry(&mut self, now: Instant) {
        self.taken_until = None;
        for (due, ..) in &mut self.underway {
            *due = now.min(*due);
        }
    }

    fn is_full(&self) -> bool {
        self.bytes >= MAX_UNDERWAY_BYTES || self.underway.len() >= MAX_UNDERWAY_FRAMES.max(MAX_PIECES)
    }
}

impl Network {
    /// A client connected to a node.
    pub(super) fn opened(&mut self, connection: ConnectionId, node: i32) {
        let (to_node, to_client) = (Lane::new(), Lane::new());
        self.wires.insert(connection, Wire { node, client_id: None, to_node, to_client, is_half_open: false });
    }

    /// Whether so many answers are on their way to the client that the node does nothing more for it.
    pub(super) fn is_full(&self, connection: ConnectionId) -> bool {
        self.wires.get(&connection).is_some_and(|wire| wire.to_client.is_full())
    }

    /// Whether it is a connection on which a recorded request is delivered.
    pub(super) fn is_replay(&self, connection: ConnectionId) -> bool {
        self.replays.contains(&connection)
    }
}

impl Wire {
    fn passing(&self, connection: ConnectionId, towards: Towards, bytes: usize) -> Passing {
        Passing { connection: connection.0, node: self.node, client_id: self.client_id.clone(), towards, bytes }
    }
}

impl Cluster {
    /// Whether nobody new can connect to a node: what would tell the client that it has connected does not get through.
    pub(crate) fn is_unreachable(&self, node: i32, now: Instant) -> bool {
        [Towards::Node, Towards::Peer].into_iter().any(|towards| {
            let passing = Passing { connection: u64::MAX, node, client_id: None, towards, bytes: 0 };
            self.state.faults.holds(&passing, now)
        })
    }

    /// Something sets out from a client.
    pub(super) fn set_out(&mut self, connection: ConnectionId, what: Arrival, now: Instant) {
        let Some(wire) = self.network.wires.get_mut(&connection) else { return };
        let bytes = match &what {
            Arrival::Frame(frame) => {
                if self.state.faults.has_network_rules(now)
                    && let Ok(header) = decode_request_header(&mut Reader::new(frame.clone()))
                {
                    wire.client_id = header.client_id.map(|id| id.detached());
                }
                frame.len() + 4
            }
            Arrival::End => 0,
        };
        let passing = wire.passing(connection, Towards::Node, bytes);
        let passage = self.state.faults.judge_frame(&passing, now);
        let is_held = self.state.faults.holds(&passing, now);
        if passage == Passage::default() && wire.to_node.underway.is_empty() && !is_held {
            return self.arrived(connection, what, now);
        }
        let due = wire.to_node.due(bytes, &passage, now);
        wire.to_node.push(due, bytes, what);
        if wire.to_node.bytes < MAX_UNDERWAY_BYTES && wire.to_node.underway.len() < MAX_UNDERWAY_FRAMES {
            // The client may send on while this is on its way.
            self.actions.push_back(Action::Read { connection });
        }
        self.state.timers.set(due, Timer::Arrive(connection));
    }

    /// Hands a node what has arrived.
    pub(super) fn arrive(&mut self, connection: ConnectionId, now: Instant) {
        while let Some(wire) = self.network.wires.get_mut(&connection) {
            if self.state.faults.holds(&wire.passing(connection, Towards::Node, 0), now) {
                return;
            }
            match wire.to_node.pop(now) {
                Some(what) => self.arrived(connection, what, now),
                None => return,
            }
        }
    }

    fn arrived(&mut self, connection: ConnectionId, what: Arrival, now: Instant) {
        match what {
            Arrival::End => {
                self.network.wires.remove(&connection);
                self.forget(connection);
            }
            Arrival::Frame(frame) => match self.state.connections.get_mut(&connection) {
                Some(open) if frame.len() > self.state.config.max_bytes_from(open) => self.close(connection, now),
                Some(open) => {
                    open.active = now;
                    open.inbox.push_back(frame);
                    self.ready.push_back(connection);
                }
                None if self.network.wires.get(&connection).is_some_and(|wire| wire.is_half_open) => {
                    self.send(Action::Reset { connection }, now);
                }
                None => {}
            },
        }
    }

    /// Something sets out to a client.
    pub(super) fn send(&mut self, action: Action, now: Instant) {
        let (Action::Write { connection, .. }
        | Action::Read { connection }
        | Action::Finish { connection }
        | Action::Close { connection }
        | Action::Reset { connection }) = action;
        if self.network.is_replay(connection) {
            return;
        }
        let Some(wire) = self.network.wires.get_mut(&connection) else { return self.actions.push_back(action) };
        let bytes = if let Action::Write { frame, .. } = &action { frame.len() } else { 0 };
        let passing = wire.passing(connection, Towards::Peer, bytes);
        let passage = self.state.faults.judge_frame(&passing, now);
        let is_held = self.state.faults.holds(&passing, now);
        if passage == Passage::default() && wire.to_client.underway.is_empty() && !is_held {
            return self.actions.push_back(action);
        }
        let mut last = None;
        for piece in pieces(action, &passage) {
            let bytes = if let Action::Write { frame, .. } = &piece { frame.len() } else { 0 };
            let due = wire.to_client.due(bytes, &passage, now);
            wire.to_client.push(due, bytes, piece);
            // What arrives with what went before it needs no timer of its own.
            if last.replace(due) != Some(due) {
                self.state.timers.set(due, Timer::Deliver(connection));
            }
        }
    }

    /// Hands a client what has arrived.
    pub(super) fn deliver(&mut self, connection: ConnectionId, now: Instant) {
        let Some(wire) = self.network.wires.get_mut(&connection) else { return };
        if self.state.faults.holds(&wire.passing(connection, Towards::Peer, 0), now) {
            return;
        }
        let was_full = wire.to_client.is_full();
        while let Some(action) = wire.to_client.pop(now) {
            self.actions.push_back(action);
        }
        if was_full && !wire.to_client.is_full() {
            self.ready.push_back(connection);
        }
    }

    /// Forgets a connection without telling the client.
    pub(super) fn lose_sight_of(&mut self, connection: ConnectionId) {
        self.forget(connection);
        if let Some(wire) = self.network.wires.get_mut(&connection) {
            wire.is_half_open = true;
            self.actions.push_back(Action::Read { connection });
        }
    }

    /// Keeps a request, to deliver it again later.
    pub(super) fn record(
        &mut self,
        request: RequestId,
        connection: ConnectionId,
        frame: Bytes,
        after: Duration,
        now: Instant,
    ) {
        if let Some(open) = self.state.connections.get(&connection) {
            let mut copy = Connection::new(open.node, open.listener, open.subject.clone(), now);
            copy.sasl = open.sasl.clone();
            self.network.recorded.insert(request, Recorded { connection: copy, frame });
            self.state.set_timer(now, after, Timer::Redeliver(request));
        }
    }

    /// Delivers a recorded request again, if its node takes connections.
    pub(super) fn redeliver(&mut self, request: RequestId, now: Instant) {
        let Some(Recorded { mut connection, frame }) = self.network.recorded.remove(&request) else { return };
        if !self.state.nodes.is_listening(connection.node) {
            return;
        }
        connection.inbox.push_back(frame);
        // Counted down from the end, where no shell's ids ever get.
        self.network.replayed += 1;
        let id = ConnectionId(u64::MAX - self.network.replayed);
        self.network.replays.insert(id);
        self.state.connections.insert(id, connection);
        self.ready.push_back(id);
        self.settle(now);
    }

    /// Notes that a connection is gone from its node's side.
    pub(super) fn forget_replay(&mut self, connection: ConnectionId) {
        self.network.replays.remove(&connection);
    }

    /// Looks whether rules about the network have changed.
    pub(super) fn mind_the_network(&mut self, now: Instant) {
        let changes = self.state.faults.network_changes();
        if std::mem::replace(&mut self.network.seen_changes, changes) != changes {
            self.network_changed(now);
            self.settle(now);
        }
    }

    /// Follows up on a change of the network: what nothing holds any more arrives.
    pub(super) fn network_changed(&mut self, now: Instant) {
        if let Some(turn) = self.state.faults.next_network_turn(now) {
            self.state.timers.set(turn, Timer::Network);
        }
        if !self.state.faults.has_network_rules(now) {
            // All is well again, also for what set out before.
            for wire in self.network.wires.values_mut() {
                wire.to_node.hurry(now);
                wire.to_client.hurry(now);
            }
        }
        let cut = self.state.faults.separated(now);
        self.state.cut_links(cut, now);
        let waiting: Vec<_> = self.network.wires.keys().copied().collect();
        for connection in waiting {
            self.arrive(connection, now);
            self.deliver(connection, now);
        }
    }
}

/// Cuts what a narrow link carries into what arrives piece by piece.
fn pieces(action: Action, passage: &Passage) -> Vec<Action> {
    match (action, passage.bytes_per_second) {
        (Action::Write { connection, frame }, Some(rate)) => {
            let mut rest = frame.to_bytes();
            let at_once = usize::try_from(rate / PIECES_PER_SECOND).unwrap_or(usize::MAX);
            let size = at_once.max(rest.len().div_ceil(MAX_PIECES)).max(1);
            let mut pieces = Vec::new();
            while !rest.is_empty() {
                let piece = rest.split_to(size.min(rest.len()));
                pieces.push(Action::Write { connection, frame: Frame::from(piece) });
            }
            pieces
        }
        (action, _) => vec![action],
    }
}
