//! The way from a client to its brokers, by TCP: with somebody beside it who counts the dials, reads the headers of
//! what is asked, and can lead names elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use krafka::protocol::{ApiKey, Bytes};
use krafka::{Connect, Connecting, Environment, Stream, TcpConnect};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::clock::now;

/// A road. Its clones are the same one.
#[derive(Clone, Default)]
pub(crate) struct Road(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    dials: Vec<String>,
    open: BTreeSet<usize>,
    heard: Vec<Heard>,
    detours: BTreeMap<String, String>,
}

/// A request that went to a broker.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    /// When its last byte was written.
    pub(crate) at: Instant,
    /// Which connection it went over: its number among all dials.
    pub(crate) connection: usize,
    /// The address as the client knows it.
    pub(crate) to: String,
    /// Which API, by its number.
    pub(crate) key: i16,
    /// In which version.
    pub(crate) version: i16,
    /// All of it, without its length.
    pub(crate) frame: Bytes,
}

impl Heard {
    /// Whether it is a request of this API.
    pub(crate) fn is(&self, key: ApiKey) -> bool {
        self.key == key as i16
    }

    /// What follows the header of a request with tagged fields: the client's id before it is no compact string.
    pub(crate) fn body(&self) -> Bytes {
        let id = self.frame.get(8..10).map_or(0, |length| i16::from_be_bytes([length[0], length[1]]).max(0) as usize);
        self.frame.slice((10 + id + 1).min(self.frame.len())..)
    }
}

impl Road {
    /// The world of a client that goes by this road.
    pub(crate) fn environment(&self) -> Environment {
        Environment::through(self.clone())
    }

    /// Leads who wants to go to one address to another from now on.
    pub(crate) fn lead(&self, from: &str, to: &str) {
        self.state().detours.insert(from.to_owned(), to.to_owned());
    }

    /// The addresses that were dialled, in order.
    pub(crate) fn dials(&self) -> Vec<String> {
        self.state().dials.clone()
    }

    /// How many connections are open.
    pub(crate) fn open(&self) -> usize {
        self.state().open.len()
    }

    /// What was heard so far.
    pub(crate) fn heard(&self) -> Vec<Heard> {
        self.state().heard.clone()
    }

    /// The requests of an API.
    pub(crate) fn heard_of(&self, key: ApiKey) -> Vec<Heard> {
        self.heard().into_iter().filter(|heard| heard.is(key)).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connect for Road {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a> {
        Box::pin(async move {
            let to = format!("{host}:{port}");
            let (connection, led) = {
                let mut state = self.state();
                state.dials.push(to.clone());
                (state.dials.len() - 1, state.detours.get(&to).cloned())
            };
            let (host, port) = match led.as_deref().and_then(|led| led.rsplit_once(':')) {
                Some((host, port)) => (host, port.parse().map_err(io::Error::other)?),
                None => (host, port),
            };
            let stream = TcpConnect.connect(host, port).await?;
            self.state().open.insert(connection);
            let stream: Box<dyn Stream> =
                Box::new(Overheard { stream, road: self.clone(), connection, to, unread: Vec::new() });
            Ok(stream)
        })
    }
}

/// A stream whose requests are heard.
struct Overheard {
    stream: Box<dyn Stream>,
    road: Road,
    connection: usize,
    to: String,
    unread: Vec<u8>,
}

impl Overheard {
    fn hear(&mut self, bytes: &[u8]) {
        self.unread.extend_from_slice(bytes);
        while let Some((length, rest)) = self.unread.split_first_chunk::<4>() {
            let length = u32::from_be_bytes(*length) as usize;
            let Some(frame) = rest.get(..length) else { return };
            if let [key0, key1, version0, version1, ..] = *frame {
                let (key, version) = (i16::from_be_bytes([key0, key1]), i16::from_be_bytes([version0, version1]));
                let (connection, to, frame) = (self.connection, self.to.clone(), Bytes::copy_from_slice(frame));
                self.road.state().heard.push(Heard { at: now(), connection, to, key, version, frame });
            }
            self.unread.drain(..4 + length);
        }
    }
}

impl Drop for Overheard {
    fn drop(&mut self) {
        self.road.state().open.remove(&self.connection);
    }
}

impl AsyncRead for Overheard {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Overheard {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        if let Poll::Ready(Ok(written)) = written {
            self.hear(&bytes[..written]);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
