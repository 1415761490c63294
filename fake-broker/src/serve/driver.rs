//! The tasks of a running cluster: one for each connection, and one that waits for deadlines.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use krafka_protocol::frame::Frame;
use krafka_protocol::{Machine, Str};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc::UnboundedReceiver;

use super::{Order, Port, Shared};
use crate::cluster::Input;
use crate::context::ConnectionId;
use crate::limits::MAX_REQUEST_BYTES;

/// How much is read from a connection at once.
const READ_BYTES: usize = 64 * 1024;

/// A frame up to this size is copied out of the buffer. The history keeps requests, and each would keep a whole buffer.
const COPIED_BYTES: usize = 8 * 1024;

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// In order.
    Closed,
    /// The node wants it to look like a reset.
    Reset,
}

/// Serves one connection to a port, until either side closes it.
pub(crate) async fn serve(shared: Arc<Shared>, port: Port, stream: impl AsyncRead + AsyncWrite + Unpin) -> End {
    #[cfg(feature = "tls")]
    if port.listener.is_tls() {
        return super::tls::serve(shared, port, stream).await;
    }
    converse(shared, port, None, stream).await
}

/// Carries frames to and from the machine. `subject` is who the client's certificate says that it is.
pub(crate) async fn converse(
    shared: Arc<Shared>,
    port: Port,
    subject: Option<Str>,
    stream: impl AsyncRead + AsyncWrite + Unpin,
) -> End {
    match Open::new(shared, port, subject) {
        Some(open) => open.serve(stream).await,
        None => End::Closed,
    }
}

/// Wakes the machine at its deadlines, for as long as it is awaited.
pub(crate) async fn run_timers(shared: Arc<Shared>) {
    // What a rule about the network held goes on when the rule ends, which nobody tells the machine.
    let rules = shared.look(|cluster| cluster.state().faults.book().network_changes());
    let mut seen = 0;
    loop {
        let sleep = shared.until_deadline();
        let due = async {
            match sleep {
                Some(sleep) => tokio::time::sleep(sleep).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // A deadline that moved closer is looked at before the old one is waited for.
            biased;
            () = shared.deadline_moved.notified() => {}
            _ = rules.reach(seen + 1) => {
                // Counted first: a rule that comes during the step is not missed.
                seen = rules.count();
                shared.step(|_, _| ());
            }
            () = due => shared.step(|_, _| ()),
        }
    }
}

/// A connection that the machine knows of. It learns that the connection is gone, however this ends.
pub(crate) struct Open {
    shared: Arc<Shared>,
    connection: ConnectionId,
    orders: UnboundedReceiver<Order>,
    /// Whether the machine is ready for the next request.
    is_asked: bool,
    /// What is to be written before anything is read.
    early: Option<Frame>,
}

impl Open {
    /// Opens a connection to a node. Returns nothing when the cluster has ended.
    pub(crate) fn new(shared: Arc<Shared>, port: Port, subject: Option<Str>) -> Option<Self> {
        let (connection, orders) = shared.open(port, subject)?;
        Some(Self { shared, connection, orders, is_asked: false, early: None })
    }

    /// Whether the node refused the connection at once. Asked before it is served.
    pub(crate) fn is_refused(&mut self) -> bool {
        match self.orders.try_recv() {
            Ok(Order::Reset | Order::Close) => return true,
            Ok(Order::Read) => self.is_asked = true,
            Ok(Order::Write(frame)) => self.early = Some(frame),
            // Nothing was asked yet, so that nothing else is ordered.
            Ok(Order::Finish) | Err(_) => {}
        }
        false
    }

    /// Serves the connection, until either side closes it.
    pub(crate) async fn serve(mut self, stream: impl AsyncRead + AsyncWrite + Unpin) -> End {
        let connection = self.connection;
        let (reader, mut writer) = tokio::io::split(stream);
        let mut frames = Frames { reader, buffer: BytesMut::new() };
        let mut outgoing = Frame::default();
        // TLS may keep back what it was given when the socket is full.
        let mut is_unflushed = false;
        let mut queue = VecDeque::from_iter(self.early.take());
        let mut incoming = None;
        let mut ending = None;
        loop {
            if !outgoing.has_remaining()
                && let Some(frame) = queue.pop_front()
            {
                outgoing = frame;
            }
            if let Some(end) = ending
                && !outgoing.has_remaining()
                && !is_unflushed
            {
                return end;
            }
            // The machine is asked only when the answer before was written: Kafka does not look at the next request
            // earlier.
            if self.is_asked
                && !outgoing.has_remaining()
                && let Some(frame) = incoming.take()
            {
                self.is_asked = false;
                self.shared.step(|cluster, now| cluster.handle(Input::Received { connection, frame }, now));
            }
            let is_flushing = !outgoing.has_remaining();
            tokio::select! {
                // Orders come first, so that a node that crashed writes nothing more; then writing, which makes room;
                // at last reading, at most one request ahead, which also shows when the client is gone.
                biased;
                order = self.orders.recv() => match order {
                    // An answer that comes in pieces is more than one.
                    Some(Order::Write(frame)) => queue.push_back(frame),
                    Some(Order::Read) => self.is_asked = true,
                    Some(Order::Finish) => ending = Some(End::Closed),
                    Some(Order::Reset) => ending = Some(End::Reset),
                    Some(Order::Close) | None => return End::Closed,
                },
                pushed = push(&mut writer, &mut outgoing), if !is_flushing || is_unflushed => match pushed {
                    Ok(0) if !is_flushing => return End::Closed,
                    Err(_) => return End::Closed,
                    Ok(_) => is_unflushed = !is_flushing,
                },
                frame = frames.next(), if incoming.is_none() && ending.is_none() => match frame {
                    Ok(Some(frame)) => incoming = Some(frame),
                    Ok(None) | Err(_) => return End::Closed,
                },
            }
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.shared.closed(self.connection);
    }
}

/// Writes some, or passes on what was written last. May be dropped and called again.
async fn push(writer: &mut (impl AsyncWrite + Unpin), outgoing: &mut Frame) -> io::Result<usize> {
    if outgoing.has_remaining() {
        return writer.write_buf(outgoing).await;
    }
    writer.flush().await?;
    Ok(0)
}

/// Cuts a stream into frames.
struct Frames<R> {
    reader: R,
    buffer: BytesMut,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    /// The next frame without its length, or nothing at the end of the stream. May be dropped and called again.
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            if let Some(frame) = self.cut()? {
                return Ok(Some(frame));
            }
            self.buffer.reserve(READ_BYTES);
            if self.reader.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// Takes a whole frame from what was read.
    fn cut(&mut self) -> io::Result<Option<Bytes>> {
        let Some(prefix) = self.buffer.first_chunk::<4>() else { return Ok(None) };
        let length = usize::try_from(i32::from_be_bytes(*prefix)).unwrap_or(usize::MAX);
        // The first letters of an HTTP request are such a length.
        if length > MAX_REQUEST_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the length of a request is absurd"));
        }
        if self.buffer.len() < 4 + length {
            return Ok(None);
        }
        self.buffer.advance(4);
        if length > COPIED_BYTES {
            return Ok(Some(self.buffer.split_to(length).freeze()));
        }
        let frame = Bytes::copy_from_slice(&self.buffer[..length]);
        self.buffer.advance(length);
        Ok(Some(frame))
    }
}
