//! The tasks of a running cluster: one for each connection, and one that waits for deadlines.

use std::io;
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use krafka_protocol::frame::Frame;
use krafka_protocol::{Machine, Str};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::{Order, Port, Shared};
use crate::cluster::Input;
use crate::context::ConnectionId;

/// The largest request: Kafka's default of `socket.request.max.bytes`. A length beyond it, like the first letters of an
/// HTTP request, closes the connection.
const MAX_REQUEST_BYTES: usize = 100 * 1024 * 1024;

/// How much is read from a connection at once.
const READ_BYTES: usize = 64 * 1024;

/// Serves one connection to a port, until either side closes it.
pub(crate) async fn serve(shared: Arc<Shared>, port: Port, stream: impl AsyncRead + AsyncWrite + Unpin) {
    #[cfg(feature = "tls")]
    if port.listener.is_tls() {
        return super::tls::serve(shared, port, stream).await;
    }
    converse(shared, port, None, stream).await;
}

/// Carries frames to and from the machine. `subject` is who the client's certificate says that it is.
pub(crate) async fn converse(
    shared: Arc<Shared>,
    port: Port,
    subject: Option<Str>,
    stream: impl AsyncRead + AsyncWrite + Unpin,
) {
    let Some((connection, mut orders)) = shared.open(port, subject) else { return };
    let _open = Open { shared: &shared, connection };
    let (reader, mut writer) = tokio::io::split(stream);
    let mut frames = Frames { reader, buffer: BytesMut::new() };
    let mut outgoing = Frame::default();
    let mut incoming = None;
    let mut is_asked = false;
    let mut is_finishing = false;
    loop {
        if is_finishing && !outgoing.has_remaining() {
            return;
        }
        // The machine is asked only when the answer before was written: Kafka does not look at the next request
        // earlier.
        if is_asked
            && !outgoing.has_remaining()
            && let Some(frame) = incoming.take()
        {
            is_asked = false;
            shared.step(|cluster, now| cluster.handle(Input::Received { connection, frame }, now));
        }
        tokio::select! {
            // Orders come first, so that a node that crashed writes nothing more; then writing, which makes room; at
            // last reading, at most one request ahead, which also shows when the client is gone.
            biased;
            order = orders.recv() => match order {
                Some(Order::Write(frame)) => outgoing = frame,
                Some(Order::Read) => is_asked = true,
                Some(Order::Finish) => is_finishing = true,
                Some(Order::Close) | None => return,
            },
            written = writer.write_buf(&mut outgoing), if outgoing.has_remaining() => match written {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            },
            frame = frames.next(), if incoming.is_none() && !is_finishing => match frame {
                Ok(Some(frame)) => incoming = Some(frame),
                Ok(None) | Err(_) => return,
            },
        }
    }
}

/// Wakes the machine at its deadlines, for as long as it is awaited.
pub(crate) async fn run_timers(shared: Arc<Shared>) {
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
            () = due => shared.step(|_, _| ()),
        }
    }
}

/// Tells the machine that the connection is gone, however its task ends.
struct Open<'a> {
    shared: &'a Shared,
    connection: ConnectionId,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.shared.closed(self.connection);
    }
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
        if length > MAX_REQUEST_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the length of a request is absurd"));
        }
        if self.buffer.len() < 4 + length {
            return Ok(None);
        }
        self.buffer.advance(4);
        Ok(Some(self.buffer.split_to(length).freeze()))
    }
}
