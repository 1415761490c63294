//! A whole Kafka cluster as one deterministic machine.
//!
//! It has no sockets, no clock and no threads: connections and frames come in as [`Input`]s, frames to write go out as
//! [`Action`]s, and the time is an argument. The same inputs at the same times give the same actions, byte for byte.
//!
//! ```text
//!   Received ──▶ inbox ──decode──▶ judged by the faults ──▶ handler ──▶ Reply ──▶ written, read on
//!                 ▲ one at a time      │ delay, deny,           │ Park ──▶ purgatory ──news or deadline──▶ Reply
//!                 └─ muted while busy  │ drop, silence          └ Close
//! ```

mod answering;
mod idle;
#[cfg(test)]
mod laws;
mod network;
mod restore;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use krafka_protocol::frame::{self, Frame};
use krafka_protocol::machine::Machine;
use krafka_protocol::{AnyRequest, AnyResponse, ApiKey, ErrorCode, Reader, Str, decode_request_header};

use crate::connection::Connection;
use crate::context::{ConnectionId, Context, Outcome, RequestId};
use crate::coordinators;
use crate::faults::{self, Step, Verdict};
use crate::groups;
use crate::handlers;
use crate::listeners::SecurityProtocol;
use crate::operations::Operation;
use crate::purgatory::Waiting;
use crate::security::sasl;
use crate::state::State;
use crate::timers::Timer;
use crate::transactions;
use network::{Arrival, Network};

/// Where all clients are.
const CLIENT_ADDRESS: &str = "127.0.0.1";

/// Something that happened to the cluster.
#[derive(Clone, Debug)]
pub enum Input {
    /// A client connected to a node. The id is new.
    Opened {
        /// The connection's id.
        connection: ConnectionId,
        /// The node whose port it is.
        node: i32,
        /// Which of the node's ports.
        listener: SecurityProtocol,
        /// The subject of the client's certificate, in the form of RFC 2253, if it showed one.
        subject: Option<Str>,
    },
    /// A whole frame came, without its length.
    Received {
        /// The connection it came on.
        connection: ConnectionId,
        /// The header and the body of a request.
        frame: Bytes,
    },
    /// The client is gone.
    Closed {
        /// The connection that is no more.
        connection: ConnectionId,
    },
}

/// Something the cluster wants done.
#[derive(Clone, Debug)]
pub enum Action {
    /// Write a frame.
    Write {
        /// The connection to write to.
        connection: ConnectionId,
        /// A whole frame, with its length.
        frame: Frame,
    },
    /// The node is ready for the connection's next request. A shell that waits for it holds at most one frame for each
    /// connection.
    Read {
        /// The connection to read from.
        connection: ConnectionId,
    },
    /// Close a connection when all is written.
    Finish {
        /// The connection to close.
        connection: ConnectionId,
    },
    /// Close a connection, whatever is not written yet.
    Close {
        /// The connection to close.
        connection: ConnectionId,
    },
    /// Reset a connection when all is written: the client sees an error instead of an end.
    Reset {
        /// The connection to reset.
        connection: ConnectionId,
    },
}

/// A request from the moment a node begins to work on it until its answer is written.
#[derive(Clone, Debug)]
struct Exchange {
    cx: Context,
    request: Arc<AnyRequest>,
    /// How many bytes the request has on the wire.
    size: usize,
    verdict: Verdict,
    response: Option<AnyResponse>,
    /// What is still to be written of an answer that a fault has damaged.
    steps: Option<VecDeque<Step>>,
    /// Whether the answer is the last that the connection sees.
    is_last: bool,
}

/// The cluster machine: see the module's page.
///
/// A clone is another cluster that knows all that this one does, rules and chance included: given the same inputs at
/// the same times, both do the same, byte for byte. So a test can ask what a cluster would answer without asking it.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub(crate) state: State,
    exchanges: BTreeMap<RequestId, Exchange>,
    next_request: u64,
    /// Answers that are ready while their node is paused.
    held: BTreeMap<i32, Vec<RequestId>>,
    /// Connections that may have become ready for their next request.
    ready: VecDeque<ConnectionId>,
    /// What is on its way between clients and nodes.
    network: Network,
    actions: VecDeque<Action>,
}

impl Machine for Cluster {
    type Input = Input;
    type Action = Action;

    fn handle(&mut self, input: Input, now: Instant) {
        self.advance(now);
        match input {
            Input::Opened { connection, node, listener, subject } => {
                self.opened(connection, Connection::new(node, listener, subject, now), now);
            }
            Input::Received { connection, frame } => self.set_out(connection, Arrival::Frame(frame), now),
            Input::Closed { connection } => self.set_out(connection, Arrival::End, now),
        }
        self.settle(now);
    }

    fn poll(&mut self, now: Instant) -> Option<Action> {
        self.advance(now);
        self.actions.pop_front()
    }

    fn deadline(&self) -> Option<Instant> {
        self.state.timers.deadline()
    }
}

impl Cluster {
    pub(crate) fn new(state: State) -> Self {
        Self {
            state,
            exchanges: BTreeMap::new(),
            next_request: 0,
            held: BTreeMap::new(),
            ready: VecDeque::new(),
            network: Network::default(),
            actions: VecDeque::new(),
        }
    }

    /// What the cluster knows.
    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// Changes what the cluster knows, as an operator or a test does, and lets waiting requests see it at once.
    pub(crate) fn control<T>(&mut self, now: Instant, change: impl FnOnce(&mut State) -> T) -> T {
        self.advance(now);
        let result = change(&mut self.state);
        self.settle(now);
        result
    }

    /// Does something to the cluster, as an operator or a test does, and lets waiting requests see it at once.
    ///
    /// # Errors
    ///
    /// Why it cannot be done, in words. Nothing has changed then.
    pub fn command(&mut self, operation: &Operation, now: Instant) -> Result<(), String> {
        self.advance(now);
        let result = self.operate(operation, now);
        self.settle(now);
        result
    }

    /// Cuts all connections of a node. What it was working on is never answered.
    pub(crate) fn disconnect(&mut self, node: i32, now: Instant) {
        let cut: Vec<_> = self
            .state
            .connections
            .iter()
            .filter(|(_, open)| open.node == node)
            .map(|(&connection, _)| connection)
            .collect();
        for connection in cut {
            self.close(connection, now);
        }
    }

    fn opened(&mut self, connection: ConnectionId, open: Connection, now: Instant) {
        let node = open.node;
        let opening = self.state.faults.judge_connection(connection.0, node, now);
        for operation in &opening.operations {
            self.operate_by_rule(operation, now);
        }
        if opening.refuse || !self.state.nodes.is_listening(node) {
            let is_up = self.state.nodes.is_up(node);
            self.actions.push_back(if is_up { Action::Reset { connection } } else { Action::Close { connection } });
            return;
        }
        let has_room = self.state.takes_connections(node);
        self.network.opened(connection, node);
        let previous = self.state.connections.insert(connection, open);
        assert!(previous.is_none(), "a connection's id is never used twice");
        if !has_room {
            return self.close(connection, now);
        }
        // One that is never read from is throttled for ever.
        if opening.black_hole || opening.delay.is_some() {
            self.mute(connection);
        }
        self.watch_traffic(connection, now);
        if let Some(wait) = self.state.quotas.connect(node, CLIENT_ADDRESS, now) {
            self.mute(connection);
            self.state.set_timer(now, wait, Timer::HangUp(connection));
            return;
        }
        if !opening.greeting.is_empty() {
            let frame = Frame::from(Bytes::from(opening.greeting));
            self.send(Action::Write { connection, frame }, now);
        }
        match opening.delay {
            Some(delay) if !opening.black_hole => {
                self.state.set_timer(now, delay, Timer::Unmute(connection));
            }
            _ => self.ready.push_back(connection),
        }
    }

    /// Reads nothing more from a connection.
    fn mute(&mut self, connection: ConnectionId) {
        if let Some(open) = self.state.connections.get_mut(&connection) {
            open.throttled = true;
        }
    }

    /// Does to the cluster what a rule wants. What is impossible then changes nothing, and is complained of: the rule
    /// counts as one that has acted.
    fn operate_by_rule(&mut self, operation: &Operation, now: Instant) {
        if let Err(reason) = self.operate(operation, now) {
            self.state.note(format!("a rule could not change the cluster: {reason}"));
        }
    }

    /// Does everything that was due before or at `now`.
    fn advance(&mut self, now: Instant) {
        self.mind_the_network(now);
        while let Some(timer) = self.state.timers.pop_due(now) {
            match timer {
                Timer::Handle(request) => self.run(request, now),
                Timer::Expire(request) => self.look_again(request, Look::Deadline, now),
                Timer::Write(request) => self.write(request, now),
                Timer::Flush(connection, request) => {
                    let open = self.state.connections.get(&connection);
                    if open.is_some_and(|open| open.kept.iter().any(|(kept, _)| *kept == request)) {
                        self.flush(connection, now);
                    }
                }
                Timer::Arrive(connection) => self.arrive(connection, now),
                Timer::Deliver(connection) => self.deliver(connection, now),
                Timer::Network => self.network_changed(now),
                Timer::Links => self.state.mind_links(now),
                Timer::Redeliver(request) => self.redeliver(request, now),
                Timer::Unmute(connection) => {
                    if let Some(open) = self.state.connections.get_mut(&connection) {
                        open.throttled = false;
                        self.ready.push_back(connection);
                    }
                }
                Timer::HangUp(connection) => self.close(connection, now),
                Timer::Idle(connection) => self.look_for_traffic(connection, now),
                Timer::ShrinkIsr { topic, partition } => self.state.shrink_isr(topic, partition, now),
                Timer::Maintain(task) => self.state.maintain(task, now),
                Timer::Share(timer) => groups::share::timer_fired(&mut self.state, &timer, now),
                Timer::Group(timer) => groups::timer_fired(&mut self.state, &timer, now),
                Timer::Transaction(timer) => transactions::timer_fired(&mut self.state, &timer, now),
            }
            self.settle(now);
        }
    }

    /// Follows up on what one step left behind, until nothing is left.
    fn settle(&mut self, now: Instant) {
        loop {
            coordinators::log::write_forgotten(&mut self.state, now);
            groups::share::bury_all(&mut self.state, now);
            if let Some((request, response)) = self.state.answers.pop_front() {
                self.answer(request, response, now);
            } else if let Some(request) = self.state.purgatory.pop_woken() {
                self.look_again(request, Look::News, now);
            } else if let Some(connection) = self.ready.pop_front() {
                self.read_on(connection, now);
            } else {
                return;
            }
        }
    }

    /// Looks at a connection's next request, if the connection is not muted.
    fn read_on(&mut self, connection: ConnectionId, now: Instant) {
        let Some(open) = self.state.connections.get_mut(&connection) else { return };
        if !open.is_ready() || self.state.nodes.is_paused(open.node) || self.network.is_full(connection) {
            return;
        }
        match open.inbox.pop_front() {
            Some(frame) => self.receive(connection, frame, now),
            None if self.network.is_replay(connection) => self.forget(connection),
            None => self.actions.push_back(Action::Read { connection }),
        }
    }

    fn receive(&mut self, connection: ConnectionId, frame: Bytes, now: Instant) {
        let Some(open) = self.state.connections.get(&connection) else { return };
        let node = open.node;
        if open.sasl.expects_raw_token() {
            return self.receive_token(connection, &frame, now);
        }
        let size = frame.len();
        let mut reader = Reader::new(frame.clone());
        let Ok(header) = decode_request_header(&mut reader) else {
            return self.refuse_frame(connection, now, || "a frame whose header cannot be read".to_owned());
        };
        let Ok(key) = ApiKey::try_from(header.key) else {
            return self.refuse_frame(connection, now, || format!("the API {}, which Kafka does not have", header.key));
        };
        let entry = open.sasl.entry(key, now);
        if entry == sasl::Entry::Closed {
            return self.close(connection, now);
        }

        let supported = handlers::versions(&self.state, node, key).is_some_and(|range| range.contains(header.version));
        if !supported && key == ApiKey::ApiVersions {
            // KIP-511: a client that asks in a version of the future gets the oldest answer, with our range in it.
            return self.refuse_api_versions(connection, header.correlation_id, now);
        }
        if !supported {
            // Kafka cannot answer in a layout that it does not know, so that it closes the connection.
            let version = header.version;
            return self.refuse_frame(connection, now, || {
                format!("{} in version {version}, which is not advertised", key.name())
            });
        }
        let request = match AnyRequest::decode(key, header.version, &mut reader) {
            Ok(request) => request,
            Err(error) => {
                return self.refuse_frame(connection, now, || format!("{} that cannot be read: {error}", key.name()));
            }
        };

        let id = RequestId(self.next_request);
        self.next_request += 1;
        let mut cx = Context {
            request: id,
            connection,
            node,
            listener: open.listener,
            principal: open.principal(),
            client_id: header.client_id,
            client_host: Str::from(format!("/{CLIENT_ADDRESS}")),
            key,
            version: header.version,
            correlation_id: header.correlation_id,
            now,
            wall_ms: self.state.clock.millis(now),
            denials: Vec::new(),
        };
        if let Some(open) = self.state.connections.get_mut(&connection) {
            open.current = Some(id);
        }
        let request = Arc::new(request);
        self.state.history.asked(&cx, &request);
        let mut verdict = if self.network.is_replay(connection) {
            Verdict::default()
        } else {
            self.state.faults.judge(&cx, &request, || faults::Entities::of(&cx, &request, &self.state))
        };
        for after in std::mem::take(&mut verdict.redeliver) {
            self.record(id, connection, frame.clone(), after, now);
        }
        let is_last = entry == sasl::Entry::Refused;
        if is_last {
            verdict.denials.insert(0, faults::Denial::whole(ErrorCode::ILLEGAL_SASL_STATE));
        }
        cx.denials.clone_from(&verdict.denials);
        let Verdict { silence, drop, half_open, delay, reset, .. } = verdict;
        self.exchanges.insert(id, Exchange { cx, request, size, verdict, response: None, steps: None, is_last });

        if silence {
            // The request is swallowed: as if its handler hung, nothing behind it is looked at either.
        } else if half_open {
            self.lose_sight_of(connection);
        } else if drop {
            self.cut(connection, reset, now);
        } else if let Some(delay) = delay {
            self.state.set_timer(now, delay, Timer::Handle(id));
        } else {
            self.run(id, now);
        }
    }

    /// Closes a connection whose client sent what Kafka does not answer.
    fn refuse_frame(&mut self, connection: ConnectionId, now: Instant, words: impl FnOnce() -> String) {
        self.state.complain(|| format!("{connection} sent {}; the connection was closed", words()));
        self.close(connection, now);
    }

    /// Checks a SASL token that comes without a request around it, after version 0 of the handshake. The answer is as
    /// bare as the question: a frame, or the end of the connection.
    fn receive_token(&mut self, connection: ConnectionId, token: &[u8], now: Instant) {
        let Some(open) = self.state.connections.get_mut(&connection) else { return };
        match open.sasl.authenticate(token, &mut self.state.logins, now, self.state.clock.millis(now)) {
            Ok(step) => {
                let length = u32::try_from(step.reply.len()).unwrap_or(u32::MAX).to_be_bytes();
                let frame = Frame::from(Bytes::from([&length[..], &step.reply[..]].concat()));
                self.send(Action::Write { connection, frame }, now);
                self.ready.push_back(connection);
            }
            Err(_) => self.close(connection, now),
        }
    }

    /// Answers an ApiVersions request of an unknown version.
    fn refuse_api_versions(&mut self, connection: ConnectionId, correlation_id: i32, now: Instant) {
        let Some(open) = self.state.connections.get(&connection) else { return };
        let response = handlers::api_versions::unsupported(&self.state, open.node);
        match frame::encode_response(ApiKey::ApiVersions, &response, 0, correlation_id) {
            Ok(frame) => {
                self.send(Action::Write { connection, frame }, now);
                self.ready.push_back(connection);
            }
            Err(_) => self.close(connection, now),
        }
    }

    /// Lets the handler work on a request.
    fn run(&mut self, request: RequestId, now: Instant) {
        let Some(exchange) = self.exchanges.get_mut(&request) else { return };
        exchange.cx.now = now;
        for operation in std::mem::take(&mut exchange.verdict.operations) {
            self.operate_by_rule(&operation, now);
        }
        // What was done to the cluster may have ended the connection, or moved the time of day.
        let Some(exchange) = self.exchanges.get_mut(&request) else { return };
        exchange.cx.wall_ms = self.state.clock.millis(now);
        let outcome = handlers::handle_at_node(&mut self.state, &exchange.cx, &exchange.request);
        self.conclude(request, outcome, now);
    }

    /// Looks at a waiting request again.
    fn look_again(&mut self, request: RequestId, look: Look, now: Instant) {
        let Some(parked) = self.state.purgatory.remove(request) else { return };
        if let Some(timer) = parked.timer {
            self.state.timers.cancel(timer);
        }
        let Some(exchange) = self.exchanges.get_mut(&request) else { return };
        exchange.cx.now = now;
        exchange.cx.wall_ms = self.state.clock.millis(now);
        let outcome = match parked.waiting {
            Waiting::Fetch(waiting) => {
                handlers::fetch::resume(&mut self.state, &exchange.cx, waiting, look).map(AnyResponse::Fetch)
            }
            Waiting::Produce(waiting) => {
                handlers::produce::resume(&self.state, &exchange.cx, waiting, look).map(AnyResponse::Produce)
            }
            Waiting::DeleteRecords(waiting) => {
                let outcome = handlers::delete_records::resume(&self.state, &exchange.cx, waiting, look);
                outcome.map(AnyResponse::DeleteRecords)
            }
            Waiting::ShareFetch(waiting) => {
                handlers::share_fetch::resume(&mut self.state, &exchange.cx, waiting, look).map(AnyResponse::ShareFetch)
            }
            waiting @ (Waiting::Group | Waiting::Nothing) => Outcome::Park(waiting),
        };
        self.conclude(request, outcome, now);
    }
}

/// Why a waiting request is looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Something that it watches changed.
    News,
    /// Its time is up: it is answered with what there is.
    Deadline,
}
