//! The task of one connection: feeds its [`Channel`] with what callers submit and what the socket brings.
//!
//! Reading and writing progress independently: a peer that stops reading does not keep its answers from being read.

use std::future::poll_fn;
use std::io;
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes};
use krafka_protocol::ApiKey;
use krafka_protocol::frame::Frame;
use krafka_protocol::machine::Machine;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};

use super::channel::{Action, Channel, Failure, Input, Loss, Rules, Waiter};
use super::error::{self, CallError};
use super::frames::{FrameError, FrameReader, FrameWriter, room};
use super::renewal::{self, Renewal};
use super::throttle::throttle;
use super::{Shared, decode};
use crate::cluster::Node;
use crate::drive;
use crate::environment::Stream;
use crate::error::{KrafkaError, ProtocolErrorKind};
use crate::limits::MAX_THROTTLE;

/// How long a closing stream may take to say good-bye (TLS does) after everybody who waited was told.
const FAREWELL: Duration = Duration::from_secs(1);

/// How many submitted requests are taken in before they are written, so that they go out together.
const BURST: usize = 64;

/// Who waits for the outcome of a request, whatever its type.
pub(super) type Outcome = Box<dyn Deliver>;

/// Hands the outcome of a request to its caller.
pub(super) trait Deliver: Send {
    fn is_abandoned(&self) -> bool;
    /// Decodes the answer for the caller; how long the broker asks for silence.
    fn answer(self: Box<Self>, body: Bytes) -> Option<Duration>;
    fn sent(self: Box<Self>);
    fn fail(self: Box<Self>, error: CallError);
    fn key(&self) -> ApiKey;
}

impl Waiter for Outcome {
    fn is_abandoned(&self) -> bool {
        (**self).is_abandoned()
    }
}

/// A caller that waits for a response of type `T`.
pub(super) struct Typed<T> {
    pub(super) key: ApiKey,
    pub(super) version: i16,
    pub(super) node: Node,
    pub(super) sender: oneshot::Sender<Result<T, CallError>>,
}

impl<T: krafka_protocol::Message + Send + 'static> Deliver for Typed<T> {
    fn is_abandoned(&self) -> bool {
        self.sender.is_closed()
    }

    fn answer(self: Box<Self>, body: Bytes) -> Option<Duration> {
        let decoded = decode::<T>(self.key, self.version, body);
        let silence = decoded.as_ref().ok().and_then(|response| throttle(self.key, self.version, response));
        let what = || format!("{} version {}", self.key.name(), self.version);
        let answer = decoded.map_err(|why| CallError::sent(error::malformed(&what(), &self.node, why)));
        // Nobody may be left to hear it; the throttle counts all the same.
        let _ = self.sender.send(answer);
        silence
    }

    fn sent(self: Box<Self>) {
        unreachable!("a request with an answer is not done when it is written")
    }

    fn fail(self: Box<Self>, error: CallError) {
        let _ = self.sender.send(Err(error));
    }

    fn key(&self) -> ApiKey {
        self.key
    }
}

/// A caller that only wants to know that its request was written.
pub(super) struct Unanswered {
    pub(super) key: ApiKey,
    pub(super) sender: oneshot::Sender<Result<(), CallError>>,
}

impl Deliver for Unanswered {
    fn is_abandoned(&self) -> bool {
        self.sender.is_closed()
    }

    fn answer(self: Box<Self>, _body: Bytes) -> Option<Duration> {
        unreachable!("the channel matches answers only with requests that have one")
    }

    fn sent(self: Box<Self>) {
        let _ = self.sender.send(Ok(()));
    }

    fn fail(self: Box<Self>, error: CallError) {
        let _ = self.sender.send(Err(error));
    }

    fn key(&self) -> ApiKey {
        self.key
    }
}

/// The socket with what was read from it and what is still to be written.
struct Io {
    stream: Box<dyn Stream>,
    reader: FrameReader,
    writer: FrameWriter<Frame>,
    /// Written to the stream, but perhaps not yet passed on by it (TLS).
    is_unflushed: bool,
    /// Why nothing can be written any more.
    unwritable: Option<Loss>,
}

/// What the socket did.
enum Event {
    /// It took whole frames, so many.
    Wrote(usize),
    /// It brought bytes.
    Read,
    Lost(Loss),
}

impl Io {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        // Writing first: what is asked sooner is answered sooner. A write that blocks falls through to reading, and so
        // does one that fails: what the peer has answered before it went is still to be read.
        if self.unwritable.is_none() {
            match self.poll_write(cx) {
                Poll::Ready(Ok(frames)) => return Poll::Ready(Event::Wrote(frames)),
                Poll::Ready(Err(error)) => self.unwritable = Some(failed(&error)),
                Poll::Pending => {}
            }
        }
        let mut space = self.reader.space();
        let end = match pin!(self.stream.read_buf(&mut space)).poll(cx) {
            Poll::Ready(Ok(0)) => Loss::Ended,
            Poll::Ready(Ok(_)) => return Poll::Ready(Event::Read),
            Poll::Ready(Err(error)) => failed(&error),
            Poll::Pending if self.unwritable.is_none() => return Poll::Pending,
            // Nothing more has arrived.
            Poll::Pending => Loss::Ended,
        };
        // What failed first says more.
        Poll::Ready(Event::Lost(self.unwritable.take().unwrap_or(end)))
    }

    /// One write, or the flush after the last; pending also when there is nothing to write.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let stream = Pin::new(&mut *self.stream);
        if self.writer.is_empty() {
            if self.is_unflushed && stream.poll_flush(cx)?.is_ready() {
                self.is_unflushed = false;
            }
            return Poll::Pending;
        }
        let (written, frames) = if stream.is_write_vectored() {
            let mut pieces = room();
            let filled = self.writer.pieces(&mut pieces);
            let Poll::Ready(written) = stream.poll_write_vectored(cx, &pieces[..filled])? else { return Poll::Pending };
            (written, self.writer.advance(written))
        } else {
            let Poll::Ready(written) = stream.poll_write(cx, self.writer.gather())? else { return Poll::Pending };
            (written, self.writer.advance_gathered(written))
        };
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.is_unflushed = true;
        Poll::Ready(Ok(frames))
    }
}

fn failed(error: &io::Error) -> Loss {
    if is_end(error) { Loss::Ended } else { Loss::Failed(error.kind(), error.to_string()) }
}

/// Whether it is the end of the stream in TLS's words: few say good-bye there, and none that is killed.
pub(super) fn is_end(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::UnexpectedEof
}

/// Tells those who wait for room that a connection has ended, however it does: in a panic of the user's stream, or with
/// its runtime.
pub(super) struct Ending(pub(super) Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.has_ended.store(true, Ordering::Release);
        self.0.bell.ring();
    }
}

/// Runs a connection until it closes.
///
/// `ending` is its first argument, and so the last that is dropped, after the socket and the inputs.
pub(super) async fn run(
    ending: Ending,
    stream: Box<dyn Stream>,
    reader: FrameReader,
    rules: Rules,
    mut renewal: Renewal,
    mut inputs: mpsc::UnboundedReceiver<Input<Frame, Outcome>>,
) {
    let shared = &ending.0;
    let mut io = Io { stream, reader, writer: FrameWriter::new(), is_unflushed: false, unwritable: None };
    let mut channel = Channel::new(rules, drive::now());
    let mut has_callers = true;
    let mut has_answered = false;
    // The handshake may have read past its own end.
    take_frames(&mut io.reader, &mut channel);
    while carry_out(&mut channel, &mut io.writer, &mut renewal, shared, &mut has_answered).is_continue() {
        shared.note_done(channel.done());
        shared.is_muted.store(channel.is_muted(), Ordering::Relaxed);
        tokio::select! {
            // The socket before the callers, so that their requests meet an up-to-date count of what is in flight. The
            // renewal of a session before them, too: they wait for it. The clock last: an answer that has arrived is
            // not late.
            biased;
            event = poll_fn(|cx| io.poll(cx)) => match event {
                Event::Wrote(frames) => (0..frames).for_each(|_| channel.handle(Input::Written, drive::now())),
                Event::Read => take_frames(&mut io.reader, &mut channel),
                Event::Lost(loss) => channel.handle(Input::Lost(loss), drive::now()),
            },
            event = poll_fn(|cx| renewal.poll(shared, cx)) => {
                let input = renewed(event, &mut renewal, &shared.node);
                channel.handle(input, drive::now());
            }
            input = inputs.recv(), if has_callers => {
                has_callers = input.is_some();
                channel.handle(input.unwrap_or(Input::Retired), drive::now());
            }
            () = drive::sleep_until(channel.deadline()) => {}
        }
        for _ in 0..BURST {
            let Ok(input) = inputs.try_recv() else { break };
            channel.handle(input, drive::now());
        }
    }
    // What was submitted while the last actions were carried out still gets an answer.
    inputs.close();
    while let Ok(input) = inputs.try_recv() {
        channel.handle(input, drive::now());
    }
    let _ = carry_out(&mut channel, &mut io.writer, &mut renewal, shared, &mut has_answered);
    shared.note_done(channel.done());
    // Best effort: the peer may be gone or not read any more.
    let _ = tokio::time::timeout(FAREWELL, io.stream.shutdown()).await;
}

fn take_frames(reader: &mut FrameReader, channel: &mut Channel<Frame, Outcome>) {
    loop {
        let input = match reader.next_frame() {
            Ok(Some(body)) => {
                let id = body.first_chunk().expect("the reader refuses frames shorter than a correlation id");
                Input::Received { correlation_id: i32::from_be_bytes(*id), body }
            }
            Ok(None) => return,
            Err(error) => Input::Lost(Loss::Garbage(error)),
        };
        let is_last = matches!(input, Input::Lost(_));
        channel.handle(input, drive::now());
        if is_last {
            return;
        }
    }
}

fn carry_out(
    channel: &mut Channel<Frame, Outcome>,
    writer: &mut FrameWriter<Frame>,
    renewal: &mut Renewal,
    shared: &Shared,
    has_answered: &mut bool,
) -> ControlFlow<()> {
    let mut flow = ControlFlow::Continue(());
    while let Some(action) = channel.poll(drive::now()) {
        match action {
            Action::Write(frame) => {
                shared.counters.requests.add(1);
                shared.counters.bytes_sent.add(frame.remaining() as u64);
                writer.push(frame);
            }
            Action::Answer { waiter, body, took } => {
                *has_answered = true;
                shared.registry.answered(waiter.key(), took);
                shared.counters.bytes_received.add(body.len() as u64 + 4);
                if let Some(silence) = waiter.answer(body) {
                    tracing::debug!(node = %shared.node, ?silence, "throttled");
                    shared.counters.throttled(silence.min(MAX_THROTTLE));
                    channel.handle(Input::Throttled(silence), drive::now());
                }
            }
            Action::Sent(waiter) => waiter.sent(),
            Action::Renew => renewal.begin(&shared.node.host),
            Action::Heard(body) => {
                // It answers all that was said: what was gathered of that is done with.
                writer.wipe();
                renewal.hear(body);
            }
            Action::Fail { waiter, failure, possibly_written } => {
                shared.registry.unanswered(waiter.key());
                let error = explain(&failure, waiter.key().name(), &shared.node, *has_answered);
                let error = if possibly_written { CallError::sent(error) } else { CallError::unsent(error) };
                waiter.fail(error);
            }
            Action::Drain => shared.is_closed.store(true, Ordering::Release),
            Action::Close(reason) => {
                note_end(&reason, shared);
                shared.is_closed.store(true, Ordering::Release);
                flow = ControlFlow::Break(());
            }
        }
    }
    flow
}

/// One line for a connection that is lost, however many requests are lost with it; and none but for debugging for one
/// that the client has closed.
#[cold]
fn note_end(reason: &Failure, shared: &Shared) {
    shared.registry.connections.closed.add(1);
    let (node, lane) = (&shared.node, shared.lane);
    if matches!(reason, Failure::Closed | Failure::Left) {
        return tracing::debug!(%node, ?lane, "connection closed");
    }
    shared.registry.connections.lost.add(1);
    match shared.pending() {
        // Brokers close connections that are idle, and all when they stop.
        0 => tracing::info!(%node, ?lane, %reason, "connection lost"),
        pending => tracing::warn!(%node, ?lane, %reason, pending, "connection lost"),
    }
}

/// What a step of a renewal means for the channel.
fn renewed(event: renewal::Event, renewal: &mut Renewal, node: &Node) -> Input<Frame, Outcome> {
    match event {
        renewal::Event::Say(frame) => Input::Said(frame),
        renewal::Event::Renewed(lifetime) => {
            tracing::debug!(%node, ?lifetime, "authenticated once more");
            Input::Renewed(lifetime.map(|lifetime| drive::now() + renewal.after(lifetime)))
        }
        // What is wrong with the credentials is found out, and told, by whoever makes the next connection.
        renewal::Event::Failed(error) => {
            tracing::warn!(%node, %error, "could not authenticate once more");
            Input::Unrenewed
        }
    }
}

/// What a failure means for one request.
#[cold]
fn explain(failure: &Failure, what: &str, node: &Node, has_answered: bool) -> KrafkaError {
    match failure {
        // A listener that wants SASL answers ApiVersions, and closes at anything else.
        Failure::Lost(Loss::Ended) if !has_answered => {
            let why = "the broker closed the connection at the first request; does the listener want SASL, for which \
                       the client has no credentials, or others?";
            error::lost(what, node, io::ErrorKind::ConnectionReset, why)
        }
        Failure::TimedOut(after) => error::late(what, node, *after),
        Failure::Behind => {
            let why = "an earlier request on the same connection failed and closed it";
            error::lost(what, node, io::ErrorKind::ConnectionAborted, why)
        }
        Failure::Lost(loss) => lost(loss, what, node),
        Failure::Unexpected { expected, received } => {
            let expected = expected.map_or_else(|| "none".to_owned(), |id| format!("{id}"));
            let message = format!("{what} at {node}: expected the response {expected}, and {received} came");
            KrafkaError::protocol(ProtocolErrorKind::UnexpectedResponse, message)
        }
        Failure::Closed => error::lost(
            what,
            node,
            io::ErrorKind::NotConnected,
            "the connection was closed before the request was sent",
        ),
        Failure::Left => {
            KrafkaError::closed(format!("{what} at {node}: the Kafka handle was closed before the answer came"))
        }
        Failure::Unrenewed => error::lost(
            what,
            node,
            io::ErrorKind::NotConnected,
            "the session was about to end, and could not be renewed on this connection",
        ),
        Failure::Full => error::lost(
            what,
            node,
            io::ErrorKind::WouldBlock,
            "too many requests wait for this connection: ask for less at a time",
        ),
    }
}

/// What the end of the socket means for one request, or for the handshake.
#[cold]
pub(super) fn lost(loss: &Loss, what: &str, node: &Node) -> KrafkaError {
    match loss {
        Loss::Ended => error::lost(what, node, io::ErrorKind::ConnectionReset, "the broker closed the connection"),
        Loss::Failed(kind, why) => error::lost(what, node, *kind, why.as_str()),
        Loss::Garbage(garbage) => {
            let kind = match garbage {
                FrameError::Http | FrameError::Tls | FrameError::Text(_) | FrameError::Stranger { .. } => {
                    ProtocolErrorKind::NotKafka
                }
                FrameError::BadLength(_) | FrameError::TooLarge { .. } => ProtocolErrorKind::Malformed,
            };
            KrafkaError::protocol(kind, format!("{what} at {node}: {garbage}"))
        }
    }
}
