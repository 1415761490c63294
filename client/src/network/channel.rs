//! One connection's requests: their order, correlation, timeouts and throttling.
//!
//! A broker answers in the order in which it was asked, so one late answer holds back all that follow: the first
//! request to time out closes the connection, and everything behind it is lost with it.
//!
//! ```text
//!   waiting ──write──▶ in flight ──response──▶ answered
//!      │                   │
//!      ├── abandoned       └──── late · lost ──▶ failed, possibly written
//!      └──────────── closed ───────────────────▶ failed, not written
//! ```
//!
//! KIP-368: a session that SASL began may have an end. From shortly before it on, whoever asks next has to wait until
//! the connection has authenticated once more: what is in flight is answered first, because the broker answers in order
//! and serves nothing else in between. A connection that nobody uses is not renewed. One whose session, once renewed,
//! would have to be renewed again sooner than brokers allow is given up instead.
//!
//! KIP-219: a response may ask for silence. Then nothing is written until it ends. Waiting requests keep their full
//! timeout, which starts when they are written; those in flight get the silence on top, because the broker reads
//! nothing either.

use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

use bytes::Bytes;
use krafka_protocol::machine::Machine;

use crate::limits::{CLOSE_PATIENCE, MAX_THROTTLE, MAX_WAITING_REQUESTS};

/// Who waits for an answer.
pub(crate) trait Waiter {
    /// Whether nobody wants the answer any more.
    fn is_abandoned(&self) -> bool;
}

/// A request to be written.
#[derive(Debug)]
pub(crate) struct Queued<F, W> {
    pub(crate) correlation_id: i32,
    pub(crate) frame: F,
    pub(crate) waiter: W,
    /// How long its answer may take from the write on.
    pub(crate) timeout: Duration,
    /// Whether the broker answers it. It does not answer a Produce with acks=0, which is done when it is written.
    pub(crate) is_answered: bool,
}

/// What happened on the connection.
#[derive(Debug)]
pub(crate) enum Input<F, W> {
    /// A caller submitted a request.
    Submitted(Queued<F, W>),
    /// The socket took the whole of the next frame.
    Written,
    /// A response came.
    Received { correlation_id: i32, body: Bytes },
    /// The response that was just delivered asks for silence.
    Throttled(Duration),
    /// The client says this to renew the session.
    Said(F),
    /// The session was renewed, and is to be renewed again at that time, if ever.
    Renewed(Option<Instant>),
    /// The session could not be renewed.
    Unrenewed,
    /// The pool has a better connection, or is closing: finish what was submitted, then close.
    Retired,
    /// The client is closing: what is not answered soon is given up.
    Leaving,
    /// The socket failed or ended.
    Lost(Loss),
}

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Action<F, W> {
    /// Hand a frame to the socket.
    Write(F),
    /// Hand a response to who waits for it.
    Answer { waiter: W, body: Bytes, took: Duration },
    /// A request that is not answered was written.
    Sent(W),
    /// Authenticate once more. Nothing else is written meanwhile.
    Renew,
    /// What the broker says while the session is renewed.
    Heard(Bytes),
    /// Tell who waits that there will be no answer.
    Fail { waiter: W, failure: Failure, possibly_written: bool },
    /// Let nobody submit more.
    Drain,
    /// Close the socket. The last action.
    Close(Failure),
}

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It took longer than its timeout.
    TimedOut(Duration),
    /// An earlier request on the same connection failed, and took the connection with it.
    Behind,
    /// The socket failed or ended.
    Lost(Loss),
    /// A response came that the oldest request did not ask for.
    Unexpected { expected: Option<i32>, received: i32 },
    /// The connection was idle for too long, or retired.
    Closed,
    /// The client was closed, and the answer did not come in the time that is left then.
    Left,
    /// The connection's session could not be renewed.
    Unrenewed,
    /// Too many requests wait already.
    Full,
}

/// How a socket ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// The peer closed it.
    Ended,
    /// The operating system reported an error.
    Failed(std::io::ErrorKind, String),
    /// The peer sent what cannot be a response.
    Garbage(crate::network::frames::FrameError),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut(after) => write!(f, "no answer within {after:?} (request_timeout)"),
            Self::Behind => f.write_str("an earlier request failed"),
            Self::Lost(Loss::Ended) => f.write_str("the broker closed it"),
            Self::Lost(Loss::Failed(_, why)) => f.write_str(why),
            Self::Lost(Loss::Garbage(garbage)) => garbage.fmt(f),
            Self::Unexpected { expected: Some(expected), received } => {
                write!(f, "the response {received} came, and {expected} was expected")
            }
            Self::Unexpected { expected: None, received } => {
                write!(f, "the response {received} came, and none was expected")
            }
            Self::Closed => f.write_str("the client closed it"),
            Self::Left => f.write_str("the client was closed"),
            Self::Unrenewed => f.write_str("its session could not be renewed"),
            Self::Full => f.write_str("too many requests wait"),
        }
    }
}

#[derive(Debug)]
struct InFlight<W> {
    correlation_id: i32,
    waiter: W,
    timeout: Duration,
    /// When it could be written.
    begun: Instant,
    deadline: Instant,
}

/// The limits of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) max_in_flight: usize,
    /// How long it may be without a request before it closes.
    pub(crate) max_idle: Duration,
    /// When its session is to be renewed (KIP-368).
    pub(crate) renew_at: Option<Instant>,
    /// How long a renewal may take.
    pub(crate) renewal_timeout: Duration,
    /// Until when nothing is to be written at first: the handshake's answers, too, may ask for silence.
    pub(crate) muted_until: Option<Instant>,
}

/// How long the broker believes who the client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Session {
    /// As long as the connection lives.
    Endless,
    /// It must be renewed by whoever asks after that time.
    Until(Instant),
    /// It is being renewed, and has to be by that time.
    Renewing(Instant),
    /// It is the last of this connection, which serves nobody from that time on.
    Last(Instant),
}

impl Session {
    fn until(renew_at: Option<Instant>) -> Self {
        renew_at.map_or(Self::Endless, Self::Until)
    }

    /// What comes after a renewal.
    fn renewed(renew_at: Option<Instant>, now: Instant) -> Self {
        match renew_at {
            Some(at) if at < now + MIN_RENEWAL_INTERVAL => Self::Last(at),
            _ => Self::until(renew_at),
        }
    }
}

/// Brokers refuse a renewal that begins within this time after the one before it, with an error that has nothing to do
/// with that (`KafkaChannel.MIN_REAUTH_INTERVAL_ONE_SECOND_NANOS` in Kafka). A connection's first may come at once.
const MIN_RENEWAL_INTERVAL: Duration = Duration::from_secs(1);

/// The machine of one connection.
#[derive(Debug)]
pub(crate) struct Channel<F, W> {
    rules: Rules,
    waiting: VecDeque<Queued<F, W>>,
    in_flight: VecDeque<InFlight<W>>,
    /// The frames that the socket has not yet taken, in order; with the request where the write is all there is.
    writing: VecDeque<Option<InFlight<W>>>,
    /// How many requests were ever submitted.
    submitted: usize,
    session: Session,
    muted_until: Option<Instant>,
    idle_since: Instant,
    is_draining: bool,
    /// When what is not done is given up, as the client is closing.
    leaves_at: Option<Instant>,
    is_closed: bool,
    actions: VecDeque<Action<F, W>>,
}

impl<F, W: Waiter> Channel<F, W> {
    pub(crate) fn new(rules: Rules, now: Instant) -> Self {
        Self {
            rules,
            waiting: VecDeque::new(),
            in_flight: VecDeque::new(),
            writing: VecDeque::new(),
            submitted: 0,
            session: Session::until(rules.renew_at),
            muted_until: rules.muted_until,
            idle_since: now,
            is_draining: false,
            leaves_at: None,
            is_closed: false,
            actions: VecDeque::new(),
        }
    }

    /// How many requests are not done.
    pub(crate) fn pending(&self) -> usize {
        self.waiting.len() + self.unfinished()
    }

    /// How many of those that were ever submitted are done.
    pub(crate) fn done(&self) -> usize {
        self.submitted.wrapping_sub(self.pending())
    }

    /// Whether a throttle holds back what is submitted now.
    pub(crate) fn is_muted(&self) -> bool {
        self.muted_until.is_some()
    }

    fn unfinished(&self) -> usize {
        self.in_flight.len() + self.writing.iter().flatten().count()
    }

    fn submitted(&mut self, request: Queued<F, W>) {
        self.submitted = self.submitted.wrapping_add(1);
        if self.is_closed || self.is_draining {
            self.refuse(request.waiter, Failure::Closed);
        } else if self.is_full() {
            self.refuse(request.waiter, Failure::Full);
        } else {
            self.waiting.push_back(request);
        }
    }

    /// Whether there is no room even without those that nobody waits for any more, as in a long throttle.
    fn is_full(&mut self) -> bool {
        if self.waiting.len() >= MAX_WAITING_REQUESTS {
            self.waiting.retain(|request| !request.waiter.is_abandoned());
        }
        self.waiting.len() >= MAX_WAITING_REQUESTS
    }

    fn refuse(&mut self, waiter: W, failure: Failure) {
        self.actions.push_back(Action::Fail { waiter, failure, possibly_written: false });
    }

    fn written(&mut self, now: Instant) {
        if let Some(Some(sent)) = self.writing.pop_front() {
            self.actions.push_back(Action::Sent(sent.waiter));
            self.note_idle(now);
        }
    }

    fn received(&mut self, correlation_id: i32, body: Bytes, now: Instant) {
        match self.in_flight.front() {
            None if matches!(self.session, Session::Renewing(_)) => self.actions.push_back(Action::Heard(body)),
            Some(oldest) if oldest.correlation_id == correlation_id => {
                let InFlight { waiter, begun, .. } = self.in_flight.pop_front().expect("it was just looked at");
                self.actions.push_back(Action::Answer { waiter, body, took: now - begun });
                self.note_idle(now);
            }
            oldest => {
                let expected = oldest.map(|oldest| oldest.correlation_id);
                self.mistaken(Failure::Unexpected { expected, received: correlation_id });
            }
        }
    }

    /// The peer's bytes make no sense: the oldest request learns why. The others only lost their connection, and may be
    /// retried on another.
    fn mistaken(&mut self, failure: Failure) {
        if let Some(oldest) = self.in_flight.pop_front() {
            self.fail_sent(oldest.waiter, failure.clone());
        }
        self.close(failure, Failure::Behind);
    }

    fn throttled(&mut self, asked: Duration, now: Instant) {
        let silence = asked.min(MAX_THROTTLE);
        let until = now + silence;
        if self.muted_until.is_none_or(|muted| muted < until) {
            let from = self.muted_until.map_or(now, |muted| muted.max(now));
            for request in self.in_flight.iter_mut().chain(self.writing.iter_mut().flatten()) {
                request.deadline += until - from;
            }
            self.muted_until = Some(until);
        }
    }

    fn drain(&mut self) {
        if !self.is_draining && !self.is_closed {
            self.is_draining = true;
            self.actions.push_back(Action::Drain);
        }
    }

    /// Those who wait go to another connection; what is in flight is still answered on this one.
    fn give_up_session(&mut self, now: Instant) {
        if matches!(self.session, Session::Last(until) if until <= now) {
            self.drain();
            for request in std::mem::take(&mut self.waiting) {
                self.refuse(request.waiter, Failure::Unrenewed);
            }
        }
    }

    fn leave(&mut self, now: Instant) {
        self.leaves_at.get_or_insert(now + CLOSE_PATIENCE);
        self.drain();
    }

    /// Closes on the first request that is late, and when nothing is left to do.
    fn expire(&mut self, now: Instant) {
        let is_late = |request: &InFlight<W>| request.deadline <= now;
        let late = match self.in_flight.iter().position(is_late) {
            Some(index) => self.in_flight.remove(index),
            None => {
                self.writing.iter_mut().find(|writing| writing.as_ref().is_some_and(is_late)).and_then(Option::take)
            }
        };
        if let Some(late) = late {
            let failure = Failure::TimedOut(late.timeout);
            self.fail_sent(late.waiter, failure.clone());
            self.close(failure, Failure::Behind);
            return;
        }
        if matches!(self.session, Session::Renewing(until) if until <= now) {
            return self.close(Failure::Unrenewed, Failure::Unrenewed);
        }
        let is_done = self.pending() == 0;
        if !is_done && self.leaves_at.is_some_and(|at| at <= now) {
            return self.close(Failure::Left, Failure::Left);
        }
        if self.is_draining && (is_done || self.is_abandoned()) || is_done && self.idle_deadline() <= now {
            self.close(Failure::Closed, Failure::Closed);
        }
    }

    /// Whether nobody waits for anything. What is half written is still to be written.
    fn is_abandoned(&self) -> bool {
        self.waiting.iter().all(|request| request.waiter.is_abandoned())
            && self.writing.is_empty()
            && self.in_flight.iter().all(|request| request.waiter.is_abandoned())
    }

    fn next_write(&mut self, now: Instant) -> Option<Action<F, W>> {
        if self.muted_until.is_some_and(|until| until <= now) {
            self.muted_until = None;
        }
        if self.muted_until.is_some() || self.unfinished() >= self.rules.max_in_flight {
            return None;
        }
        while self.waiting.pop_front_if(|request| request.waiter.is_abandoned()).is_some() {
            self.note_idle(now);
        }
        match self.session {
            _ if self.waiting.is_empty() => return None,
            Session::Renewing(_) => return None,
            Session::Until(until) if until <= now && self.unfinished() > 0 => return None,
            Session::Until(until) if until <= now => {
                self.session = Session::Renewing(now + self.rules.renewal_timeout);
                return Some(Action::Renew);
            }
            Session::Until(_) | Session::Endless | Session::Last(_) => {}
        }
        let Queued { correlation_id, frame, waiter, timeout, is_answered } = self.waiting.pop_front()?;
        let request = InFlight { correlation_id, waiter, timeout, begun: now, deadline: now + timeout };
        if is_answered {
            self.in_flight.push_back(request);
            self.writing.push_back(None);
        } else {
            self.writing.push_back(Some(request));
        }
        Some(Action::Write(frame))
    }

    fn said(&mut self, frame: F) {
        self.writing.push_back(None);
        self.actions.push_back(Action::Write(frame));
    }

    fn renewed(&mut self, renew_at: Option<Instant>, now: Instant) {
        self.session = Session::renewed(renew_at, now);
        self.note_idle(now);
    }

    fn note_idle(&mut self, now: Instant) {
        if self.pending() == 0 {
            self.idle_since = now;
        }
    }

    fn idle_deadline(&self) -> Instant {
        // A muted connection waits out its throttle: a new one would only evade the broker's quota.
        let idle = self.idle_since + self.rules.max_idle;
        self.muted_until.map_or(idle, |until| until.max(idle))
    }

    fn fail_sent(&mut self, waiter: W, failure: Failure) {
        self.actions.push_back(Action::Fail { waiter, failure, possibly_written: true });
    }

    fn close(&mut self, reason: Failure, others: Failure) {
        if self.is_closed {
            return;
        }
        self.is_closed = true;
        let unanswered = std::mem::take(&mut self.writing).into_iter().flatten();
        for request in std::mem::take(&mut self.in_flight).into_iter().chain(unanswered) {
            self.fail_sent(request.waiter, others.clone());
        }
        for request in std::mem::take(&mut self.waiting) {
            self.refuse(request.waiter, others.clone());
        }
        self.actions.push_back(Action::Close(reason));
    }
}

impl<F, W: Waiter> Machine for Channel<F, W> {
    type Input = Input<F, W>;
    type Action = Action<F, W>;

    fn handle(&mut self, input: Self::Input, now: Instant) {
        match input {
            Input::Submitted(request) => self.submitted(request),
            _ if self.is_closed => {}
            Input::Written => self.written(now),
            Input::Received { correlation_id, body } => self.received(correlation_id, body, now),
            Input::Throttled(asked) => self.throttled(asked, now),
            Input::Said(frame) => self.said(frame),
            Input::Renewed(renew_at) => self.renewed(renew_at, now),
            Input::Unrenewed => self.close(Failure::Unrenewed, Failure::Unrenewed),
            Input::Retired => self.drain(),
            Input::Leaving => self.leave(now),
            Input::Lost(loss @ Loss::Garbage(_)) => self.mistaken(Failure::Lost(loss)),
            Input::Lost(loss) => self.close(Failure::Lost(loss.clone()), Failure::Lost(loss)),
        }
    }

    fn poll(&mut self, now: Instant) -> Option<Self::Action> {
        if self.actions.is_empty() && !self.is_closed {
            self.give_up_session(now);
            if let Some(action) = self.next_write(now) {
                return Some(action);
            }
            self.expire(now);
        }
        self.actions.pop_front()
    }

    fn deadline(&self) -> Option<Instant> {
        if self.is_closed {
            return None;
        }
        let late = self.in_flight.iter().chain(self.writing.iter().flatten()).map(|request| request.deadline).min();
        let idle = (self.pending() == 0).then(|| self.idle_deadline());
        let renewal = match self.session {
            Session::Renewing(until) => Some(until),
            // Also where nobody asks, so that whoever asks next does not wait for it to be found out.
            Session::Last(until) => Some(until).filter(|_| !self.is_draining),
            Session::Until(_) | Session::Endless => None,
        };
        [late, self.muted_until, idle, renewal, self.leaves_at].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod renewal_tests;
#[cfg(test)]
mod tests;
