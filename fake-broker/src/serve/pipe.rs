//! The shell in memory: connections are pipes, and a paused clock makes waiting free.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

use super::driver::{self, End, Open};
use super::{Port, Shared};

/// How much a pipe holds before its writer waits, as a socket's buffer does.
const PIPE_BYTES: usize = 64 * 1024;

/// Connects to the nodes of a cluster in memory.
#[derive(Clone, Debug)]
pub struct Pipes {
    shared: Arc<Shared>,
}

/// The client's end of a connection in memory. When the node resets it, reading and writing fail with
/// `ConnectionReset`, as on a socket.
#[derive(Debug)]
pub struct PipeStream {
    stream: DuplexStream,
    is_reset: Arc<AtomicBool>,
}

impl Pipes {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Connects to the node that has this host and port. At a TLS listener's port, the client has the handshake still
    /// before it.
    ///
    /// # Errors
    ///
    /// `NotFound` if no node has that host, `ConnectionRefused` if its node is down or the port is another.
    ///
    /// # Cancel safety
    ///
    /// Waits only while the network is cut between the client and the node. Dropping it leaves nothing behind.
    pub async fn connect(&self, host: &str, port: u16) -> io::Result<PipeStream> {
        let refused =
            || io::Error::new(io::ErrorKind::ConnectionRefused, format!("{host}:{port} refused the connection"));
        let found = self.shared.look(|cluster| {
            let nodes = &cluster.state().nodes;
            // Nodes on ports of one machine have one name.
            let mut named = nodes.iter().filter(|(_, node)| node.host == *host).peekable();
            named.peek()?;
            Some(named.find_map(|(id, node)| {
                let (&listener, _) = node.ports.iter().find(|(_, number)| **number == port)?;
                nodes.is_listening(id).then_some(Port { node: id, listener })
            }))
        });
        let found =
            found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("no node is called {host}")))?;
        let port = found.ok_or_else(refused)?;
        self.shared.until_reachable(port.node).await;
        let (ours, mut theirs) = tokio::io::duplex(PIPE_BYTES);
        let is_reset = Arc::new(AtomicBool::new(false));
        let reset = is_reset.clone();
        if port.listener.is_tls() {
            let shared = self.shared.clone();
            tokio::spawn(async move {
                if driver::serve(shared, port, &mut theirs).await == End::Reset {
                    reset.store(true, Ordering::Release);
                }
            });
        } else {
            // Known to the machine before the client goes on, so that connections come in the client's order.
            let mut open = Open::new(self.shared.clone(), port, None).ok_or_else(refused)?;
            if open.is_refused() {
                return Err(refused());
            }
            tokio::spawn(async move {
                if open.serve(&mut theirs).await == End::Reset {
                    reset.store(true, Ordering::Release);
                }
            });
        }
        Ok(PipeStream { stream: ours, is_reset })
    }
}

impl PipeStream {
    /// What an end of the stream means: a reset, if the node wanted that.
    fn check(&self) -> io::Result<()> {
        if self.is_reset.load(Ordering::Acquire) { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(()) }
    }
}

impl AsyncRead for PipeStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        let is_end = buffer.filled().len() == before && buffer.remaining() > 0;
        Poll::Ready(if is_end { self.check() } else { Ok(()) })
    }
}

impl AsyncWrite for PipeStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes));
        Poll::Ready(written.or_else(|error| self.check().and(Err(error))))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
