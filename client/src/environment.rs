//! Where a client meets the outside world: the network, the wall clock, and chance.
//!
//! A client built with another [`Environment`] runs over in-memory pipes, a simulated network or a tunnel, with no
//! change to its code. Timers are tokio's, which a paused runtime makes virtual; everything else that would make one
//! run differ from its twin comes through here.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::SystemTime;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::auth::Nonces;

/// A connected byte stream, as [`Connect`] returns it.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// What [`Connect::connect`] returns: a stream, at some time.
pub type Connecting<'a> = Pin<Box<dyn Future<Output = io::Result<Box<dyn Stream>>> + Send + 'a>>;

/// Opens streams to brokers. The only thing that the client asks of the network.
///
/// Names are resolved inside, at each call, so that a broker that moved to another address behind the same name is
/// found.
pub trait Connect: Send + Sync + 'static {
    /// Connects to `host` and `port`.
    ///
    /// The client bounds the call by its connect timeout, by dropping the future.
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a>;

    /// Connects to `host` and `port`, of whose connections so far `dead` came to nothing after they were made: nobody
    /// answered, TLS failed, it was no broker.
    ///
    /// Whoever knows several addresses of a name is to begin with another one than then. Default: the same as
    /// [`connect`](Self::connect).
    fn connect_past<'a>(&'a self, host: &'a str, port: u16, dead: usize) -> Connecting<'a> {
        let _ = dead;
        self.connect(host, port)
    }

    /// What stands between the client and the brokers, in words, for the error about a connection that is not made in
    /// time: "the SOCKS5 proxy p:1080". Default: nothing does.
    fn via(&self) -> Option<String> {
        None
    }
}

/// Tells the time of day, which record timestamps are taken from.
pub trait WallClock: Send + Sync + 'static {
    /// The time of day.
    fn now(&self) -> SystemTime;
}

/// The machine's own clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl WallClock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place where the time of day comes in")]
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}

/// The outside world of one client: how it connects, what time it is, and the seed of its chance.
///
/// The default is the machine itself: TCP, the system's clock, and a seed from the operating system.
#[derive(Clone)]
pub struct Environment {
    connect: Arc<dyn Connect>,
    wall_clock: Arc<dyn WallClock>,
    seed: u64,
    /// Whether what must not be guessed comes from the seed, too.
    is_seeded: bool,
}

impl Environment {
    /// Returns an environment that connects through `connect`, with the system's clock and the given seed.
    ///
    /// Two clients with the same seed make the same random choices (jitter, keyless partitions, bootstrap order, the
    /// nonces of SCRAM): for tests and simulations. For a tunnel or a proxy take
    /// [`through`](Self::through), whose chance is the operating system's.
    pub fn new(connect: impl Connect, seed: u64) -> Self {
        Self { connect: Arc::new(connect), wall_clock: Arc::new(SystemClock), seed, is_seeded: true }
    }

    /// Returns the machine's own environment, but for connections, which are made by `connect`.
    pub fn through(connect: impl Connect) -> Self {
        // The standard library keys its hashers from the operating system's entropy: a seed without a dependency.
        let seed = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
        Self { is_seeded: false, ..Self::new(connect, seed) }
    }

    /// Replaces the clock that tells the time of day.
    #[must_use]
    pub fn wall_clock(mut self, wall_clock: impl WallClock) -> Self {
        self.wall_clock = Arc::new(wall_clock);
        self
    }

    pub(crate) fn connector(&self) -> Arc<dyn Connect> {
        self.connect.clone()
    }

    pub(crate) fn clock(&self) -> Arc<dyn WallClock> {
        self.wall_clock.clone()
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    pub(crate) fn nonces(&self) -> Nonces {
        if self.is_seeded { Nonces::seeded(self.seed) } else { Nonces::System }
    }
}

impl Default for Environment {
    fn default() -> Self {
        Self::through(crate::network::TcpConnect)
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").field("seed", &self.seed).finish_non_exhaustive()
    }
}
