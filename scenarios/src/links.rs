//! The network between one client and each broker, as a thing that can be broken: works over any transport.
//!
//! A link wraps what the world's own connector returns. Holding a link stops its bytes in both directions without a
//! word to either side, as a cable pulled out does; releasing it lets them go on; cutting it resets the connections;
//! refusing makes new ones fail. A held link also holds connects, so that connect timeouts are met.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use krafka::{Connect, Connecting, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The links of one client, by the address that it dials (`host:port`). Cheap to clone.
#[derive(Clone, Default)]
pub struct Links(Arc<Mutex<BTreeMap<String, Link>>>);

#[derive(Default)]
struct Link {
    held: bool,
    refused: bool,
    /// Counts the cuts: a stream of an earlier generation is dead.
    generation: u64,
    /// The most that one read returns; 0 means all that is there.
    chunk: usize,
    waiting: Vec<Waker>,
}

impl Link {
    fn wake(&mut self) {
        self.waiting.drain(..).for_each(Waker::wake);
    }
}

impl Links {
    /// Wraps a connector, so that its streams go through these links.
    #[must_use]
    pub fn over(&self, connect: Arc<dyn Connect>) -> LinkedConnect {
        LinkedConnect { links: self.clone(), connect }
    }

    /// Stops all bytes of the link, and new connections on it, silently.
    pub fn hold(&self, address: &str) {
        self.with(address, |link| link.held = true);
    }

    /// Lets the bytes of a held link go on.
    pub fn release(&self, address: &str) {
        self.with(address, |link| {
            link.held = false;
            link.wake();
        });
    }

    /// Resets the connections of the link. New ones can be made.
    pub fn cut(&self, address: &str) {
        self.with(address, |link| {
            link.generation += 1;
            link.wake();
        });
    }

    /// Refuses new connections until [`accept`](Self::accept).
    pub fn refuse(&self, address: &str) {
        self.with(address, |link| link.refused = true);
    }

    /// Takes connections again.
    pub fn accept(&self, address: &str) {
        self.with(address, |link| link.refused = false);
    }

    /// Lets at most `bytes` through at each read, as a slow or fragmenting network does; 0 lifts the limit.
    pub fn dribble(&self, address: &str, bytes: usize) {
        self.with(address, |link| link.chunk = bytes);
    }

    /// Undoes all of the above on every link.
    pub fn heal(&self) {
        for link in self.lock().values_mut() {
            (link.held, link.refused, link.chunk) = (false, false, 0);
            link.wake();
        }
    }

    fn with<T>(&self, address: &str, change: impl FnOnce(&mut Link) -> T) -> T {
        change(self.lock().entry(address.to_owned()).or_default())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Link>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ready with the link's chunk limit when it is not held, an error when the stream's generation was cut.
    fn pass(&self, address: &str, generation: u64, context: &Context<'_>) -> Poll<io::Result<usize>> {
        self.with(address, |link| {
            if link.generation != generation {
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::ConnectionReset, "the link was cut")));
            }
            if link.held {
                link.waiting.push(context.waker().clone());
                return Poll::Pending;
            }
            Poll::Ready(Ok(link.chunk))
        })
    }
}

/// A connector whose streams go through [`Links`].
pub struct LinkedConnect {
    links: Links,
    connect: Arc<dyn Connect>,
}

impl Connect for LinkedConnect {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a> {
        Box::pin(async move {
            let address = format!("{host}:{port}");
            let generation = self.links.with(&address, |link| link.generation);
            poll_fn(|context| self.links.pass(&address, generation, context)).await?;
            if self.links.with(&address, |link| link.refused) {
                return Err(io::Error::new(io::ErrorKind::ConnectionRefused, "the link refuses"));
            }
            let inner = self.connect.connect(host, port).await?;
            Ok(Box::new(LinkedStream { links: self.links.clone(), address, generation, inner }) as Box<dyn Stream>)
        })
    }
}

struct LinkedStream {
    links: Links,
    address: String,
    generation: u64,
    inner: Box<dyn Stream>,
}

impl AsyncRead for LinkedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let chunk = std::task::ready!(self.links.pass(&self.address, self.generation, context))?;
        if chunk == 0 || buffer.remaining() <= chunk {
            return Pin::new(&mut self.inner).poll_read(context, buffer);
        }
        let mut few = vec![0; chunk];
        let mut part = ReadBuf::new(&mut few);
        std::task::ready!(Pin::new(&mut self.inner).poll_read(context, &mut part))?;
        buffer.put_slice(part.filled());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for LinkedStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let chunk = std::task::ready!(self.links.pass(&self.address, self.generation, context))?;
        let part = if chunk == 0 { bytes } else { &bytes[..bytes.len().min(chunk)] };
        Pin::new(&mut self.inner).poll_write(context, part)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
