//! From a handler's outcome to the bytes that are written: what faults make of an answer, and how a connection ends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use krafka_protocol::frame::{self, Frame};
use krafka_protocol::{AnyResponse, ApiVersionsResponse, ErrorCode};

use super::{Action, Cluster, Exchange};
use crate::context::{ConnectionId, Outcome, RequestId};
use crate::faults::{self, Damage, Node, Step, Verdict};
use crate::groups;
use crate::handlers;
use crate::quotas;
use crate::security::sasl;
use crate::state::State;
use crate::timers::Timer;

/// The errors with which Kafka says that a request is wrong in itself.
const BLAMES: &[ErrorCode] = &[
    ErrorCode::CORRUPT_MESSAGE,
    ErrorCode::INVALID_TOPIC_EXCEPTION,
    ErrorCode::INVALID_FETCH_SIZE,
    ErrorCode::INVALID_REQUIRED_ACKS,
    ErrorCode::ILLEGAL_SASL_STATE,
    ErrorCode::UNSUPPORTED_VERSION,
    ErrorCode::INVALID_REQUEST,
    ErrorCode::UNSUPPORTED_FOR_MESSAGE_FORMAT,
    ErrorCode::UNSUPPORTED_COMPRESSION_TYPE,
    ErrorCode::INVALID_RECORD,
];

impl Cluster {
    /// Answers a request that waited for its group.
    pub(super) fn answer(&mut self, request: RequestId, response: AnyResponse, now: Instant) {
        if let Some(timer) = self.state.purgatory.remove(request).and_then(|parked| parked.timer) {
            self.state.timers.cancel(timer);
        }
        self.conclude(request, Outcome::Reply(response), now);
    }

    pub(super) fn conclude(&mut self, request: RequestId, outcome: Outcome<AnyResponse>, now: Instant) {
        let Some(exchange) = self.exchanges.get_mut(&request) else { return };
        let connection = exchange.cx.connection;
        let is_stranger = exchange.is_last;
        exchange.is_last |= matches!(outcome, Outcome::ReplyAndClose(_) | Outcome::ReplyLateAndClose(..));
        if let Outcome::ReplyLate(_, delay) | Outcome::ReplyLateAndClose(_, delay) = outcome {
            let held_back = &mut exchange.verdict.delay_answer;
            *held_back = Some(held_back.unwrap_or_default() + delay);
        }
        match outcome {
            Outcome::Reply(mut response)
            | Outcome::ReplyAndClose(mut response)
            | Outcome::ReplyLate(mut response, _)
            | Outcome::ReplyLateAndClose(mut response, _) => {
                let used = (&*exchange.request, exchange.size);
                let by_quota = quotas::throttle(&mut self.state, &exchange.cx, used, Some(&mut response));
                exchange.verdict.throttle = exchange.verdict.throttle.max(by_quota);
                blame(&mut self.state, exchange, &response);
                meddle(&self.state, exchange, &mut response);
                if is_stranger {
                    let words = sasl::unexpected(exchange.cx.key);
                    faults::reword(&mut response, exchange.cx.version, ErrorCode::ILLEGAL_SASL_STATE, &words);
                }
                exchange.response = Some(response);
                let Verdict { silence_answer, half_open_answer, drop_answer, delay_answer, reset, .. } =
                    exchange.verdict;
                for operation in std::mem::take(&mut exchange.verdict.late_operations) {
                    self.operate_by_rule(&operation, now);
                }
                if silence_answer {
                    // The connection stays open, and nothing behind the request is looked at.
                } else if half_open_answer {
                    self.lose_sight_of(connection);
                } else if drop_answer {
                    self.cut(connection, reset, now);
                } else if let Some(delay) = delay_answer {
                    self.state.set_timer(now, delay, Timer::Write(request));
                } else {
                    self.write(request, now);
                }
            }
            Outcome::Park(waiting) => {
                let timer = waiting.deadline().map(|due| self.state.timers.set(due, Timer::Expire(request)));
                self.state.purgatory.park(request, waiting, timer);
            }
            Outcome::NoReply => {
                let used = (&*exchange.request, exchange.size);
                let by_quota = quotas::throttle(&mut self.state, &exchange.cx, used, None);
                let Verdict { throttle, half_open_answer, drop_answer, reset, .. } = exchange.verdict;
                let throttle = throttle.max(by_quota);
                self.exchanges.remove(&request);
                if half_open_answer {
                    self.lose_sight_of(connection);
                } else if drop_answer {
                    self.cut(connection, reset, now);
                } else {
                    self.release(connection, throttle, now);
                }
            }
            Outcome::Close => {
                let (api, version) = (exchange.cx.key.name(), exchange.cx.version);
                self.state.complain(|| format!("{api} in version {version}, on which Kafka closes the connection"));
                self.close(connection, now);
            }
        }
    }

    /// Hands an answer to the writer, and reads on. A paused node keeps it.
    pub(super) fn write(&mut self, request: RequestId, now: Instant) {
        let Some(exchange) = self.exchanges.get_mut(&request) else { return };
        if self.state.nodes.is_paused(exchange.cx.node) {
            self.held.entry(exchange.cx.node).or_default().push(request);
            return;
        }
        if exchange.steps.is_some() {
            return self.next_steps(request, now);
        }
        let Some(response) = exchange.response.take() else { return };
        let connection = exchange.cx.connection;
        let own = if is_first_word(&response) { 0 } else { exchange.cx.version };
        let version = exchange.verdict.layout.unwrap_or(own);
        let api = exchange.cx.key.name();
        let frame = match encode(&response, exchange, version) {
            Ok(frame) => frame,
            Err(error) => {
                // Only an edited answer can be impossible in its version; Kafka has no such answer either. The laws
                // see to it that none of ours is.
                assert!(!cfg!(test) || exchange.verdict.is_editing(), "{api} v{version}: {error}: {response:?}");
                tracing::error!(%error, api, version, "an answer cannot be written");
                return self.close(connection, now);
            }
        };
        let damages = std::mem::take(&mut exchange.verdict.damages);
        self.state.history.answered(request, now, Arc::new(response));
        if damages.is_empty() {
            self.put(connection, frame, now);
            return self.written(request, now);
        }
        let steps = faults::plan(frame.to_bytes(), &damages, &mut self.state.faults.chance());
        let within = damages.iter().find_map(|damage| match damage {
            Damage::Coalesce { within } => Some(*within),
            _ => None,
        });
        if let (Some(within), Some(open)) = (within, self.state.connections.get_mut(&connection)) {
            let kept =
                steps.into_iter().filter_map(|step| if let Step::Write(bytes) = step { Some(bytes) } else { None });
            open.kept.extend(kept.map(|bytes| (request, Frame::from(bytes))));
            self.state.set_timer(now, within, Timer::Flush(connection, request));
            return self.written(request, now);
        }
        if let Some(exchange) = self.exchanges.get_mut(&request) {
            exchange.steps = Some(steps);
        }
        self.next_steps(request, now);
    }

    /// Writes a damaged answer until the next pause, or its end.
    fn next_steps(&mut self, request: RequestId, now: Instant) {
        while let Some(exchange) = self.exchanges.get_mut(&request) {
            let connection = exchange.cx.connection;
            match exchange.steps.as_mut().and_then(std::collections::VecDeque::pop_front) {
                None => return self.written(request, now),
                Some(Step::Write(bytes)) => self.put(connection, Frame::from(bytes), now),
                Some(Step::Pause(pause)) => {
                    self.state.set_timer(now, pause, Timer::Write(request));
                    return;
                }
                Some(Step::Finish) => {
                    self.forget(connection);
                    self.send(Action::Finish { connection }, now);
                }
                Some(Step::Reset) => {
                    self.forget(connection);
                    self.send(Action::Reset { connection }, now);
                }
            }
        }
    }

    /// Writes a frame, and in front of it what the connection keeps.
    fn put(&mut self, connection: ConnectionId, frame: Frame, now: Instant) {
        let kept = self.state.connections.get_mut(&connection).map(|open| std::mem::take(&mut open.kept));
        let kept = kept.unwrap_or_default();
        let frame = if kept.is_empty() { frame } else { join(kept.into_iter().map(|(_, kept)| kept).chain([frame])) };
        self.note_traffic(connection, now);
        self.send(Action::Write { connection, frame }, now);
    }

    /// Writes what a connection kept for an answer that did not come.
    pub(super) fn flush(&mut self, connection: ConnectionId, now: Instant) {
        let Some(open) = self.state.connections.get_mut(&connection) else { return };
        let kept = std::mem::take(&mut open.kept);
        if !kept.is_empty() {
            let frame = join(kept.into_iter().map(|(_, kept)| kept));
            self.send(Action::Write { connection, frame }, now);
        }
    }

    /// Follows up on an answer of which nothing is left to write.
    fn written(&mut self, request: RequestId, now: Instant) {
        let Some(exchange) = self.exchanges.remove(&request) else { return };
        let connection = exchange.cx.connection;
        if exchange.is_last {
            self.flush(connection, now);
            self.forget(connection);
            self.send(Action::Finish { connection }, now);
        } else {
            self.release(connection, exchange.verdict.throttle, now);
        }
    }

    /// Lets a node that was paused go on: it answers what was ready, and reads on.
    pub(crate) fn resume(&mut self, node: i32, now: Instant) {
        for request in self.held.remove(&node).unwrap_or_default() {
            self.write(request, now);
        }
        let connections = self.state.connections.iter().filter(|(_, open)| open.node == node);
        self.ready.extend(connections.map(|(connection, _)| *connection));
    }

    /// Ends the work on a connection's request. A throttled connection is read on only after its time.
    fn release(&mut self, connection: ConnectionId, throttle: Option<Duration>, now: Instant) {
        let Some(open) = self.state.connections.get_mut(&connection) else { return };
        open.current = None;
        if let Some(throttle) = throttle {
            open.throttled = true;
            self.state.set_timer(now, throttle, Timer::Unmute(connection));
        } else {
            self.ready.push_back(connection);
        }
    }

    pub(super) fn close(&mut self, connection: ConnectionId, now: Instant) {
        self.cut(connection, false, now);
    }

    /// Ends a connection, by a reset or in order.
    pub(super) fn cut(&mut self, connection: ConnectionId, reset: bool, now: Instant) {
        if self.state.connections.contains_key(&connection) {
            self.forget(connection);
            self.send(if reset { Action::Reset { connection } } else { Action::Close { connection } }, now);
        }
    }

    /// Drops a connection and the request that it worked on.
    pub(super) fn forget(&mut self, connection: ConnectionId) {
        let Some(open) = self.state.connections.remove(&connection) else { return };
        self.forget_replay(connection);
        if let Some(timer) = open.idle_timer {
            self.state.timers.cancel(timer);
        }
        groups::share::close_connection(&mut self.state, open.node, connection);
        let Some(request) = open.current else { return };
        self.exchanges.remove(&request);
        if let Some(timer) = self.state.purgatory.remove(request).and_then(|parked| parked.timer) {
            self.state.timers.cancel(timer);
        }
    }
}

/// Whether an answer tells a client that it has to speak otherwise, which every client must be able to read (KIP-511).
fn is_first_word(response: &AnyResponse) -> bool {
    let versions = response.downcast_ref::<ApiVersionsResponse>();
    versions.is_some_and(|versions| versions.error_code == ErrorCode::UNSUPPORTED_VERSION.0)
}

/// Writes an answer; one that is to look like another version's has the header of the version that was asked for.
fn encode(
    response: &AnyResponse,
    exchange: &Exchange,
    version: i16,
) -> Result<Frame, krafka_protocol::wire::EncodeError> {
    let cx = &exchange.cx;
    if version == cx.version {
        return frame::encode_any_response(response, version, cx.correlation_id);
    }
    // The headers of the two versions differ in length at most, and it is the body that is meant.
    let other = frame::encode_any_response(response, version, cx.correlation_id)?.to_bytes();
    let (skip, has_tags) = (header_size(cx, version), header_size(cx, cx.version) > 8);
    let mut bytes = Vec::with_capacity(other.len() + 1);
    bytes.extend_from_slice(&other[..8]);
    bytes.extend(has_tags.then_some(0));
    bytes.extend_from_slice(&other[skip..]);
    let length = i32::try_from(bytes.len() - 4).unwrap_or(i32::MAX);
    bytes[..4].copy_from_slice(&length.to_be_bytes());
    Ok(Frame::from(Bytes::from(bytes)))
}

/// The bytes of a frame before its body: the length, the correlation id, and in the flexible encoding a list of tags.
fn header_size(cx: &crate::context::Context, version: i16) -> usize {
    let is_flexible = cx.key.flexible_since().is_some_and(|first| version >= first);
    if is_flexible && cx.key != krafka_protocol::ApiKey::ApiVersions { 9 } else { 8 }
}

fn join(frames: impl IntoIterator<Item = Frame>) -> Frame {
    let bytes: Vec<u8> = frames.into_iter().flat_map(|frame| frame.to_bytes()).collect();
    Frame::from(Bytes::from(bytes))
}

/// Notes that a client asked for what is wrong in itself.
fn blame(state: &mut State, exchange: &Exchange, response: &AnyResponse) {
    if !state.config.strict {
        return;
    }
    let denials = &exchange.verdict.denials;
    let is_ours = |code: ErrorCode| denials.iter().any(|denial| denial.code == code);
    let found =
        BLAMES.iter().copied().find(|code| !is_ours(*code) && has_error(&Node::of(response.structure()), *code));
    if let Some(code) = found {
        let (api, version) = (exchange.cx.key.name(), exchange.cx.version);
        state.complain(|| format!("{api} in version {version} was refused with {}", code.name()));
    }
}

fn has_error(node: &Node, code: ErrorCode) -> bool {
    node.any(&mut |name, value| name == "error_code" && value == i64::from(code.0))
}

/// What the rules, and the state that tests put a cluster in, make of an answer.
fn meddle(state: &State, exchange: &Exchange, response: &mut AnyResponse) {
    let (cx, verdict) = (&exchange.cx, &exchange.verdict);
    let is_stranger = state.connections.get(&cx.connection).is_some_and(|open| open.is_of_former_cluster);
    if is_stranger && cx.version >= 13 {
        faults::rebootstrap(response);
    }
    if state.nodes.has_hidden() {
        faults::hide_nodes(response, cx.version, &|node| state.nodes.is_hidden(node));
    }
    if let Some(throttle) = verdict.throttle {
        handlers::set_throttle_time(response, throttle);
    }
    // A handler that has no question to ask at the place of an early error leaves it to us.
    for denials in [&verdict.denials, &verdict.late_denials] {
        faults::deny(response, cx.version, denials, &verdict.whole, state);
    }
    for (hint, target) in &verdict.hints {
        faults::mislead(response, cx, hint, target, state);
    }
    for (change, target) in &verdict.changes {
        faults::change(response, cx.version, change, target, state);
    }
    for edit in &verdict.edits {
        edit(response);
    }
}
