//! Connections to brokers: ask the [`Network`] for one, then call it.
//!
//! ```text
//!   Network ── pool: slots ◆, one per (broker, lane) ── dial: connect, TLS, handshake ◆
//!      │
//!      └─▶ Connection ── submit ──▶ driver ── channel ◆, renewal, frames ──▶ the wire
//! ```
//!
//! **Lanes.** A broker reads one request per connection at a time, so whatever it may park (a long-poll Fetch, a
//! JoinGroup) holds back everything behind it. Each purpose therefore has its own connection: a produce request never
//! waits for a fetch, nor a heartbeat for either.

mod bell;
mod channel;
mod destination;
mod detours;
mod dial;
mod driver;
mod error;
mod features;
mod frames;
mod handshake;
mod ladder;
mod pool;
mod race;
mod renewal;
mod slots;
mod socks5;
mod tcp;
mod throttle;
#[cfg(feature = "tls")]
mod tls;
mod versions;

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use krafka_protocol::{Message, Request, Str};
use tokio::sync::{Notify, mpsc, oneshot};

use self::bell::Bell;
pub(crate) use self::channel::Waiter;
use self::channel::{Input, Queued};
pub(crate) use self::destination::Destination;
pub(crate) use self::dial::NetworkConfig;
use self::driver::{Outcome, Typed};
pub(crate) use self::error::{CallError, is_no_room, no_room};
#[cfg(feature = "protocol")]
pub use self::features::BrokerFeatures;
use self::pool::Pool;
pub use self::socks5::Socks5;
pub use self::tcp::TcpConnect;
pub(crate) use self::throttle::throttle;
pub(crate) use self::versions::Versions;
use crate::cluster::Node;
use crate::error::{KrafkaError, ProtocolErrorKind};
use crate::metrics::{self, Registry};

/// What a connection is for. Requests of different lanes never wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Lane {
    /// Produce requests, of all producers of the handle.
    Produce,
    /// The long polls of one consumer.
    Fetch(u64),
    /// What one group member tells its coordinator, and is answered at once.
    Coordination(u64),
    /// What the coordinator parks until the whole group is there.
    Join(u64),
    /// Metadata, admin calls, FindCoordinator, transactions.
    Control,
    /// A connection that the user asked for.
    #[cfg_attr(not(feature = "protocol"), expect(dead_code, reason = "what `krafka::protocol` offers"))]
    Own(u64),
}

/// The connections of one client handle. Cheap to clone; all clones share them.
#[derive(Clone)]
pub(crate) struct Network {
    pool: Arc<Pool>,
}

impl Lane {
    /// How much a request of this lane minds to wait behind those of another, where there is no room for a connection
    /// of its own; `None` where it must not. The lower the better.
    fn reluctance(self, host: Self) -> Option<u8> {
        match (self, host) {
            // A user's own connection is nobody else's.
            (Self::Own(_), _) | (_, Self::Own(_)) => None,
            // Others must not wait for a rebalance, least of all those that it waits for: the other members. Nor may a
            // join go by the connection of its member's heartbeats, which others borrow, too.
            (Self::Join(_), _) | (_, Self::Join(_)) => None,
            (_, Self::Control) => Some(0),
            (_, Self::Produce) => Some(1),
            (_, Self::Coordination(_)) => Some(2),
            // Half a second of long poll.
            (_, Self::Fetch(_)) => Some(3),
        }
    }
}

impl Network {
    pub(crate) fn new(config: NetworkConfig) -> Self {
        Self { pool: Arc::new(Pool::new(config)) }
    }

    /// A usable connection to a broker: the one there is, or a new one.
    ///
    /// Callers that want the same new connection share one attempt, bounded by the connect timeout. After a failed
    /// attempt the address is left alone for a while; a call in that time fails at once with the attempt's error. Where
    /// `max_connections` leaves no room they wait for their turn, at most for ten seconds.
    ///
    /// # Cancel safety
    /// Dropping the future does not stop the attempt: others may wait for it, and the next caller will.
    pub(crate) async fn connection(&self, node: &Node, lane: Lane) -> Result<Connection, CallError> {
        self.pool.connection(node, lane).await
    }

    /// Whether requests wait for those of others, because `max_connections` is low, or did so not long ago: what need
    /// not hold a connection for long should not.
    pub(crate) fn is_scarce(&self) -> bool {
        self.pool.is_scarce()
    }

    /// Whether brokers are connected to by turns, because `max_connections` is low: what can come later should not take
    /// a turn from others.
    pub(crate) fn takes_turns(&self) -> bool {
        self.pool.takes_turns()
    }

    /// Whether somebody waits for a connection to a broker because `max_connections` leaves no room for one.
    pub(crate) fn is_waiting_for(&self, node: &Node, lane: Lane) -> bool {
        self.pool.is_waiting_for(node, lane)
    }

    /// How bad a choice a broker is for a request that any can serve; the lowest is the best.
    pub(crate) fn cost(&self, node: &Node, lane: Lane) -> u64 {
        self.pool.cost(node, lane)
    }

    /// Says which cluster the brokers are meant to be of, if connections shall check that (KIP-1242).
    pub(crate) fn meant_for(&self, cluster_id: Option<Str>) {
        self.pool.destination().set(cluster_id);
    }

    /// Says that it is another cluster from now on: what brokers of the former have told of its features says nothing.
    pub(crate) fn forget_features(&self) {
        self.pool.forget_features();
    }

    /// Names who hears of a connection that led to another broker than was meant.
    pub(crate) fn when_misrouted(&self, tell: impl Fn() + Send + Sync + 'static) {
        self.pool.destination().listen(tell);
    }

    /// Says where the brokers are. Connections to where one was before close once their requests are done.
    pub(crate) fn moved(&self, nodes: BTreeMap<i32, Arc<Node>>) {
        self.pool.moved(nodes);
    }

    /// How often a request went over the connection of another lane, because `max_connections` left no room for one of
    /// its own.
    pub(crate) fn fallbacks(&self) -> u64 {
        self.pool.fallbacks()
    }

    /// Counts one more user of a lane that several share: it stays until all of them have released it.
    pub(crate) fn hold(&self, lane: Lane) {
        self.pool.hold(lane);
    }

    /// Gives up lanes. Their connections close as soon as nobody waits for an answer: a long poll that was dropped does
    /// not keep them open.
    pub(crate) fn release(&self, lanes: Vec<Lane>) {
        self.pool.release(lanes);
    }

    /// Closes all connections once their pending requests are done, or have had some seconds to be, and refuses new
    /// ones.
    pub(crate) fn close(&self) {
        self.pool.close();
    }
}

/// One connection to one broker. Cheap to clone; it stays open while the pool or anybody holds it.
#[derive(Clone)]
pub(crate) struct Connection {
    shared: Arc<Shared>,
    inputs: mpsc::UnboundedSender<Input<krafka_protocol::frame::Frame, Outcome>>,
}

/// What a connection's callers and its task both see.
struct Shared {
    node: Node,
    lane: Lane,
    client_id: Arc<str>,
    versions: Versions,
    next_correlation_id: AtomicI32,
    /// Set by the task when it takes no more requests.
    is_closed: AtomicBool,
    /// Set when the task has ended, and the socket is closed.
    has_ended: AtomicBool,
    is_muted: AtomicBool,
    /// Told when the connection is to end after its last answer.
    retired: Notify,
    /// Counted up by callers, so that a request counts from the moment when it is submitted.
    submitted: AtomicUsize,
    /// Counted by the task: how many of those are done.
    done: AtomicUsize,
    /// Rung when nothing is pending any more.
    bell: Arc<Bell>,
    registry: Arc<Registry>,
    /// What is counted for the broker.
    counters: Arc<metrics::Broker>,
}

impl Shared {
    fn pending(&self) -> usize {
        // What is done was submitted before: read in this order, the difference is never negative.
        let done = self.done.load(Ordering::Acquire);
        self.submitted.load(Ordering::Acquire).wrapping_sub(done)
    }

    /// Notes how many requests are done.
    fn note_done(&self, done: usize) {
        if self.done.swap(done, Ordering::AcqRel) != done && self.pending() == 0 {
            self.bell.ring();
        }
    }
}

impl Connection {
    /// The broker at the other end.
    pub(crate) fn node(&self) -> &Node {
        &self.shared.node
    }

    /// Whether it takes no more requests. Then ask the [`Network`] for another.
    pub(crate) fn is_closed(&self) -> bool {
        // A task that panicked in a stream of the user's says nothing more.
        self.shared.is_closed.load(Ordering::Acquire) || self.inputs.is_closed()
    }

    /// How many submitted requests are not done.
    pub(crate) fn pending(&self) -> usize {
        // Nothing more is done by a task that has ended, with what comes too late.
        if self.inputs.is_closed() { 0 } else { self.shared.pending() }
    }

    /// Whether its socket is closed.
    fn has_ended(&self) -> bool {
        self.shared.has_ended.load(Ordering::Acquire)
    }

    /// Whether the broker asked for silence at present.
    pub(crate) fn is_muted(&self) -> bool {
        self.shared.is_muted.load(Ordering::Relaxed)
    }

    /// The highest version of an API that the broker and this client speak.
    ///
    /// # Errors
    /// When they share none, or the broker does not serve the API: names the API and both ranges.
    pub(crate) fn version<R: Request>(&self) -> Result<i16, CallError> {
        self.shared.versions.negotiate::<R>().map_err(|mismatch| CallError::unsent(mismatch.at(self.node())))
    }

    /// What the broker serves.
    #[cfg_attr(not(feature = "protocol"), expect(dead_code, reason = "what `krafka::protocol` offers"))]
    pub(crate) fn versions(&self) -> &Versions {
        &self.shared.versions
    }

    /// Queues a request, in call order. `timeout` runs from the moment when it is written.
    ///
    /// # Cancel safety
    /// Dropping the [`Pending`] before the request is written means that it never is; after, its answer is discarded.
    pub(crate) fn submit<R: Request>(&self, request: R, timeout: Duration) -> Pending<R::Response>
    where
        R::Response: Send + 'static,
    {
        match self.version::<R>() {
            Ok(version) => self.submit_at(request, version, timeout),
            Err(error) => Pending::failed(error),
        }
    }

    /// Queues a request in a version that the caller chose, at most what [`Connection::version`] returned.
    #[expect(clippy::needless_pass_by_value, reason = "a request is sent once; taking it lets its buffers go early")]
    pub(crate) fn submit_at<R: Request>(&self, request: R, version: i16, timeout: Duration) -> Pending<R::Response>
    where
        R::Response: Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        let typed = Typed::<R::Response> { key: R::KEY, version, node: self.shared.node.clone(), sender };
        self.queue(&request, version, timeout, Box::new(typed), true);
        Pending { answer: Answer::Waiting(receiver) }
    }

    /// Queues a request that the broker does not answer (Produce with acks=0). Done when the socket took all of it.
    #[expect(clippy::needless_pass_by_value, reason = "a request is sent once; taking it lets its buffers go early")]
    pub(crate) fn submit_unanswered<R: Request>(&self, request: R, version: i16, timeout: Duration) -> Pending<()> {
        let (sender, receiver) = oneshot::channel();
        let written = driver::Unanswered { key: R::KEY, sender };
        self.queue(&request, version, timeout, Box::new(written), false);
        Pending { answer: Answer::Waiting(receiver) }
    }

    /// Submits a request and waits for its answer.
    ///
    /// # Cancel safety
    /// As for [`Connection::submit`].
    pub(crate) async fn call<R: Request>(&self, request: R, timeout: Duration) -> Result<R::Response, CallError>
    where
        R::Response: Send + 'static,
    {
        self.submit(request, timeout).await
    }

    /// Submits a request that the broker may be long in answering, and waits for its answer, but gives up when others
    /// need the connection: then there is none, though the broker may have done what was asked.
    ///
    /// # Cancel safety
    /// As for [`Connection::submit`].
    pub(crate) async fn call_while_spared<R: Request>(
        &self,
        request: R,
        timeout: Duration,
    ) -> Option<Result<R::Response, CallError>>
    where
        R::Response: Send + 'static,
    {
        // Before the look at whether it is closed, so that nothing is missed in between.
        let retired = self.shared.retired.notified();
        let answer = if self.is_closed() {
            None
        } else {
            tokio::select! {
                biased;
                answer = self.submit(request, timeout) => Some(answer),
                () = retired => None,
            }
        };
        if answer.is_none() {
            // It closes as soon as nobody waits, which nobody has told it.
            self.retire();
        }
        answer
    }

    /// Finishes what was submitted, then closes.
    fn retire(&self) {
        self.shared.is_closed.store(true, Ordering::Release);
        self.shared.retired.notify_waiters();
        // A connection whose task has ended is closed already.
        let _ = self.inputs.send(Input::Retired);
    }

    /// Finishes what is done soon, then closes: the client does.
    fn leave(&self) {
        self.shared.is_closed.store(true, Ordering::Release);
        // As above.
        let _ = self.inputs.send(Input::Leaving);
    }

    fn queue<R: Request>(&self, request: &R, version: i16, timeout: Duration, waiter: Outcome, is_answered: bool) {
        let correlation_id = self.shared.next_correlation_id.fetch_add(1, Ordering::Relaxed) & i32::MAX;
        let client_id = Some(&*self.shared.client_id);
        let frame = match krafka_protocol::frame::encode_request(request, version, correlation_id, client_id) {
            Ok(frame) => frame,
            Err(error) => {
                let message = format!("{} version {version} to {}: {error}", R::KEY.name(), self.node());
                let error = KrafkaError::protocol(ProtocolErrorKind::Unencodable, message);
                return waiter.fail(CallError::unsent(error));
            }
        };
        let request = Queued { correlation_id, frame, waiter, timeout, is_answered };
        self.shared.submitted.fetch_add(1, Ordering::AcqRel);
        if let Err(mpsc::error::SendError(Input::Submitted(request))) = self.inputs.send(Input::Submitted(request)) {
            // The task may have ended without a word, with its runtime: the next who wants one gets another.
            self.shared.is_closed.store(true, Ordering::Release);
            let what = R::KEY.name();
            let error = error::lost(what, self.node(), io::ErrorKind::NotConnected, "the connection was closed");
            request.waiter.fail(CallError::unsent(error));
        }
    }
}

/// A submitted request: a future of its answer. Dropping it abandons the answer.
#[must_use = "dropping it abandons the request"]
pub(crate) struct Pending<T> {
    answer: Answer<T>,
}

enum Answer<T> {
    Waiting(oneshot::Receiver<Result<T, CallError>>),
    Failed(Option<CallError>),
}

impl<T> Pending<T> {
    #[cold]
    fn failed(error: CallError) -> Self {
        Self { answer: Answer::Failed(Some(error)) }
    }
}

impl<T> Future for Pending<T> {
    type Output = Result<T, CallError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.answer {
            Answer::Waiting(receiver) => Pin::new(receiver).poll(cx).map(|answer| match answer {
                Ok(answer) => answer,
                // The connection's task ended without a word: its runtime is shutting down.
                Err(_) => Err(CallError::sent(KrafkaError::closed("the connection's task was stopped"))),
            }),
            Answer::Failed(error) => Poll::Ready(Err(error.take().expect("a future is not polled after its end"))),
        }
    }
}

impl<T> Unpin for Pending<T> {}

/// An answer that the caller decodes no further: [`Message`] is what the driver needs to know of it.
fn decode<T: Message>(
    key: krafka_protocol::ApiKey,
    version: i16,
    body: bytes::Bytes,
) -> Result<T, krafka_protocol::DecodeError> {
    let mut reader = krafka_protocol::Reader::new(body);
    krafka_protocol::decode_response_header(key, version, &mut reader)?;
    T::decode(&mut reader, version)
}

#[cfg(test)]
mod tests;
