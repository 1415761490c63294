//! Makes one connection ready: connect, TLS, handshake, all within the connect timeout.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use krafka_protocol::ApiKey;
use krafka_protocol::frame::Frame;
use krafka_protocol::machine::Machine;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout_at;

use super::bell::Bell;
use super::channel::{Loss, Rules};
use super::destination::Destination;
use super::detours::Detours;
use super::driver::Ending;
use super::features::NewestFeatures;
use super::frames::FrameReader;
use super::handshake::{Action, Handshake};
use super::ladder::{Ladder, Opening};
use super::renewal::Renewal;
use super::versions::Versions;
use super::{Connection, Lane, Shared, driver, error, socks5};
use crate::auth::{Credentials, Exchange, Spelling};
use crate::cluster::Node;
use crate::drive;
use crate::environment::{Connect, Stream};
use crate::error::KrafkaError;
use crate::limits::{MAX_IN_FLIGHT, MAX_IN_FLIGHT_PRODUCE, MAX_THROTTLE};
use crate::metrics::Registry;
use crate::rng::Rng;
#[cfg(feature = "tls")]
use crate::tls::{Peer, explain, explain_late};

/// How the connections of a handle are made, and their limits.
pub(crate) struct NetworkConfig {
    pub(crate) connect: Arc<dyn Connect>,
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<crate::tls::FreshTls>,
    pub(crate) credentials: Option<Arc<Credentials>>,
    pub(crate) client_id: Arc<str>,
    pub(crate) destination: Destination,
    pub(crate) registry: Arc<Registry>,
    pub(crate) connect_timeout: Duration,
    pub(crate) max_response_size: usize,
    pub(crate) max_idle: Duration,
    pub(crate) max_connections: usize,
    pub(crate) seed: u64,
}

/// Makes connections.
pub(super) struct Dialer {
    config: NetworkConfig,
    ladder: Mutex<Ladder>,
    detours: Mutex<Detours>,
    newest_features: Mutex<NewestFeatures>,
    /// What the connections ring when they have nothing more to do.
    bell: Arc<Bell>,
}

impl Dialer {
    pub(super) fn new(config: NetworkConfig, bell: Arc<Bell>) -> Self {
        Self { config, ladder: Mutex::default(), detours: Mutex::default(), newest_features: Mutex::default(), bell }
    }

    /// Nobody connects any more.
    pub(super) fn close(&self) {
        self.config.credentials.iter().for_each(|credentials| credentials.close());
    }

    /// It is another cluster from now on.
    pub(super) fn forget_features(&self) {
        self.newest_features().forget();
    }

    fn newest_features(&self) -> MutexGuard<'_, NewestFeatures> {
        self.newest_features.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn destination(&self) -> &Destination {
        &self.config.destination
    }

    /// Connects to a broker, and starts the connection's task.
    pub(super) async fn dial(&self, node: &Node, lane: Lane) -> Result<Connection, KrafkaError> {
        let (begun, counters) = (drive::now(), &self.config.registry.connections);
        let dialled = self.dial_by(node, lane, begun + self.config.connect_timeout).await;
        match &dialled {
            Ok(_) => counters.connect_time.record(drive::now() - begun),
            Err(_) => counters.failed.add(1),
        }
        dialled
    }

    async fn dial_by(&self, node: &Node, lane: Lane, deadline: Instant) -> Result<Connection, KrafkaError> {
        let Some(credentials) = &self.config.credentials else {
            return self.attempt(node, lane, None, deadline).await.map_err(Unmade::into_error);
        };
        let mut refusal = None;
        for &spelling in credentials.spellings() {
            let mut made = self.attempt(node, lane, Some((credentials, spelling)), deadline).await;
            if let Err(Unmade::Stale(_)) = made {
                // Tokens are revoked, and keys rotated: another has a chance.
                made = self.attempt(node, lane, Some((credentials, spelling)), deadline).await;
            }
            match made {
                Ok(connection) => {
                    credentials.accepted(spelling);
                    return Ok(connection);
                }
                Err(Unmade::Refused(error) | Unmade::Stale(error)) => refusal = refusal.or(Some(error)),
                Err(Unmade::Failed(error)) => return Err(error),
            }
        }
        Err(refusal.expect("there is at least one spelling"))
    }

    async fn attempt(
        &self,
        node: &Node,
        lane: Lane,
        login: Option<(&Arc<Credentials>, Spelling)>,
        deadline: Instant,
    ) -> Result<Connection, Unmade> {
        let begun = match login {
            None => None,
            Some((credentials, spelling)) => {
                let begun = timeout_at(deadline.into(), credentials.begin(spelling, &node.host)).await;
                Some(begun.map_err(|_| self.uncredited(node, credentials))??)
            }
        };
        let (exchange, lent) = begun.map_or((None, None), |begun| (Some(begun.exchange), begun.lent));
        let mechanism = exchange.as_ref().map_or("none", Exchange::mechanism);
        let stream = self.open(node, deadline).await?;
        let mut reader = FrameReader::of_stranger(self.config.max_response_size);
        let ready = self.make_ready(stream, &mut reader, node, exchange, deadline).await;
        if let Err(Unmade::Failed(_)) = ready {
            self.with_detours(|detours| detours.failed(&node.host, node.port));
        }
        let ready = match (ready, login.zip(lent)) {
            (Err(Unmade::Refused(error)), Some(((credentials, _), lent))) if credentials.refused(lent) => {
                Err(Unmade::Stale(error))
            }
            (ready, _) => ready,
        };
        let (stream, Greeted { versions, session, muted_until }) = ready?;
        let versions = versions.checked_by(&mut self.newest_features());
        reader.set_limit(self.config.max_response_size);

        let login = login.map(|(credentials, spelling)| (credentials.clone(), spelling));
        let mut renewal = Renewal::new(login, Rng::stream(self.config.seed, &node.host));
        let rules = Rules {
            max_in_flight: match lane {
                Lane::Produce => MAX_IN_FLIGHT_PRODUCE,
                Lane::Fetch(_) | Lane::Coordination(_) | Lane::Join(_) | Lane::Control | Lane::Own(_) => MAX_IN_FLIGHT,
            },
            max_idle: self.config.max_idle,
            renew_at: session.map(|lifetime| drive::now() + renewal.after(lifetime)),
            renewal_timeout: self.config.connect_timeout,
            muted_until,
        };
        let shared = Arc::new(Shared {
            node: node.clone(),
            lane,
            client_id: self.config.client_id.clone(),
            versions,
            // The ids of the handshake are not used again.
            next_correlation_id: AtomicI32::new(16),
            is_closed: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
            is_muted: AtomicBool::new(false),
            retired: Notify::new(),
            submitted: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            bell: self.bell.clone(),
            registry: self.config.registry.clone(),
            counters: self.config.registry.broker(node.id),
        });
        self.config.registry.connections.opened.add(1);
        tracing::debug!(%node, ?lane, mechanism, ?session, apis = shared.versions.len(), "connected");
        // The channel machine bounds it: past MAX_WAITING_REQUESTS it refuses what comes in.
        let (inputs, receiver) = mpsc::unbounded_channel();
        tokio::spawn(driver::run(Ending(shared.clone()), stream, reader, rules, renewal, receiver));
        Ok(Connection { shared, inputs })
    }

    async fn open(&self, node: &Node, deadline: Instant) -> Result<Box<dyn Stream>, KrafkaError> {
        let dead = self.with_detours(|detours| detours.dead(&node.host, node.port));
        let connecting = self.config.connect.connect_past(&node.host, node.port, dead);
        match timeout_at(deadline.into(), connecting).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(why)) => Err(unreachable(node, why)),
            Err(_) => {
                let via = self.config.connect.via().map(|via| format!(" through {via}")).unwrap_or_default();
                Err(self.late(node, &format!("no connection{via}")))
            }
        }
    }

    /// What comes behind TCP.
    async fn make_ready(
        &self,
        stream: Box<dyn Stream>,
        reader: &mut FrameReader,
        node: &Node,
        exchange: Option<Exchange>,
        deadline: Instant,
    ) -> Result<(Box<dyn Stream>, Greeted), Unmade> {
        let mut stream = self.encrypt(stream, node, deadline).await?;
        let greeted = self.shake_hands(&mut stream, reader, node, exchange, deadline).await?;
        Ok((stream, greeted))
    }

    #[cfg_attr(not(feature = "tls"), expect(clippy::unused_async, reason = "with TLS there is something to wait for"))]
    async fn encrypt(
        &self,
        stream: Box<dyn Stream>,
        node: &Node,
        deadline: Instant,
    ) -> Result<Box<dyn Stream>, KrafkaError> {
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.config.tls {
            return match timeout_at(deadline.into(), super::tls::wrap(tls, stream, node)).await {
                Ok(Ok(stream)) => Ok(stream),
                Ok(Err(why)) => Err(explain(&Peer::broker(node, tls.shows_certificate()), &why)),
                Err(_) => Err(self.late(node, "no end of the TLS handshake")),
            };
        }
        #[cfg(not(feature = "tls"))]
        let _ = (node, deadline);
        Ok(stream)
    }

    async fn shake_hands(
        &self,
        stream: &mut Box<dyn Stream>,
        reader: &mut FrameReader,
        node: &Node,
        exchange: Option<Exchange>,
        mut deadline: Instant,
    ) -> Result<Greeted, Unmade> {
        let cluster_id = self.config.destination.cluster_id();
        let opening = self.with_ladder(|ladder| ladder.opening(&node.host, node.port, drive::now()));
        let mut handshake = Handshake::new(node.clone(), self.config.client_id.clone(), exchange, cluster_id, opening);
        let mut muted_until = None;
        loop {
            let what = handshake.step_name();
            match handshake.poll(drive::now()) {
                Some(Action::Hush(asked)) => {
                    let silence = asked.min(MAX_THROTTLE);
                    tracing::debug!(%node, ?silence, "throttled");
                    self.config.registry.broker(node.id).throttled(silence);
                    // The silence is not what the attempt's time is for.
                    deadline += silence;
                    muted_until = Some(drive::now() + silence);
                }
                Some(Action::Send(frame)) => {
                    if let Some(until) = muted_until.take() {
                        drive::sleep_until(Some(until)).await;
                    }
                    let asked = timeout_at(deadline.into(), ask(stream, reader, frame)).await;
                    let answer = asked.map_err(|_| self.late(node, &format!("no answer to {what}")))?;
                    let answer = answer.map_err(|early| {
                        if let Some(version) = handshake.asked_version().filter(|_| early.is_end()) {
                            let note = |ladder: &mut Ladder| {
                                ladder.closed(&node.host, node.port, opening, version, drive::now());
                            };
                            self.with_ladder(note);
                        }
                        self.explained(early, what, node)
                    })?;
                    if handshake.is_costly(&answer) {
                        let handled = tokio::task::spawn_blocking(move || {
                            handshake.handle(answer, drive::now());
                            handshake
                        });
                        let handled = timeout_at(deadline.into(), handled).await;
                        let handled = handled.map_err(|_| self.late(node, &format!("no proof for {what}")))?;
                        handshake = handled.map_err(|_| KrafkaError::closed("the runtime is shutting down"))?;
                    } else {
                        handshake.handle(answer, drive::now());
                    }
                }
                Some(Action::Finish { versions, session }) => {
                    if let Some(version) = handshake.taken_version() {
                        let note = |ladder: &mut Ladder| {
                            ladder.took(&node.host, node.port, opening, version, drive::now());
                        };
                        self.with_ladder(note);
                    }
                    return Ok(Greeted { versions, session, muted_until });
                }
                Some(Action::Fail(error)) => {
                    if matches!(opening, Opening::Known(_)) && handshake.taken_version().is_none() {
                        self.with_ladder(|ladder| ladder.forget(&node.host, node.port));
                    }
                    return Err(Unmade::Failed(error));
                }
                Some(Action::Refuse(error)) => return Err(Unmade::Refused(error)),
                Some(Action::Misrouted(error)) => {
                    self.config.registry.connections.misrouted.add(1);
                    self.config.destination.misrouted();
                    return Err(Unmade::Failed(error));
                }
                None => unreachable!("a handshake that was answered asks, finishes or fails"),
            }
        }
    }

    /// Why a peer ended the connection during the handshake.
    #[cold]
    fn explained(&self, early: Early, what: &str, node: &Node) -> KrafkaError {
        #[cfg(feature = "tls")]
        if let (Some(tls), Early::Failed(why)) = (&self.config.tls, &early)
            && let Some(error) = explain_late(&Peer::broker(node, tls.shows_certificate()), why)
        {
            return error;
        }
        early.explained(what, node)
    }

    fn with_ladder<T>(&self, use_it: impl FnOnce(&mut Ladder) -> T) -> T {
        use_it(&mut self.ladder.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whoever is to bring the credentials takes too long. The broker has nothing to do with it.
    #[cold]
    fn uncredited(&self, node: &Node, credentials: &Credentials) -> KrafkaError {
        let (whom, within) = (credentials.provider(), self.config.connect_timeout);
        KrafkaError::timeout(format!(
            "connecting to {node}: {whom} gave no credentials within {within:?} (connect_timeout), so that the broker \
             was not asked for anything: is it slow?"
        ))
    }

    fn with_detours<T>(&self, use_them: impl FnOnce(&mut Detours) -> T) -> T {
        use_them(&mut self.detours.lock().unwrap_or_else(PoisonError::into_inner))
    }

    #[cold]
    fn late(&self, node: &Node, what: &str) -> KrafkaError {
        let within = self.config.connect_timeout;
        let whose = if is_advertised(node) { ADVERTISED } else { "" };
        KrafkaError::timeout(format!(
            "connecting to {node}: {what} within {within:?} (connect_timeout): is it a Kafka listener, and is the \
             network between open?{whose}"
        ))
    }
}

/// What the handshake came to.
struct Greeted {
    versions: Versions,
    /// How long the broker believes who the client is, if not for ever.
    session: Option<Duration>,
    muted_until: Option<Instant>,
}

/// Why an attempt made no connection.
enum Unmade {
    /// The broker does not take the credentials in this spelling.
    Refused(KrafkaError),
    /// The broker does not take a token, or keys, that were brought some time ago; there may be others by now.
    Stale(KrafkaError),
    /// For a reason that another spelling does not help with, such as TLS.
    Failed(KrafkaError),
}

impl Unmade {
    fn into_error(self) -> KrafkaError {
        match self {
            Self::Refused(error) | Self::Stale(error) | Self::Failed(error) => error,
        }
    }
}

impl From<KrafkaError> for Unmade {
    fn from(error: KrafkaError) -> Self {
        Self::Failed(error)
    }
}

/// How a connection ended during its handshake.
enum Early {
    Lost(Loss),
    Failed(io::Error),
}

impl From<io::Error> for Early {
    fn from(why: io::Error) -> Self {
        if driver::is_end(&why) { Self::Lost(Loss::Ended) } else { Self::Failed(why) }
    }
}

/// Writes one request and reads its answer.
async fn ask(stream: &mut Box<dyn Stream>, reader: &mut FrameReader, mut frame: Frame) -> Result<Bytes, Early> {
    while frame.has_remaining() {
        if stream.write_buf(&mut frame).await? == 0 {
            return Err(Early::Lost(Loss::Ended));
        }
    }
    stream.flush().await?;
    loop {
        if let Some(answer) = reader.next_frame().map_err(|garbage| Early::Lost(Loss::Garbage(garbage)))? {
            return Ok(answer);
        }
        if stream.read_buf(&mut reader.space()).await? == 0 {
            return Err(Early::Lost(Loss::Ended));
        }
    }
}

#[cold]
fn unreachable(node: &Node, why: io::Error) -> KrafkaError {
    let fault = socks5::Fault::of(&why);
    if let Some(error) = fault.and_then(|fault| fault.for_good(node)) {
        return error;
    }
    let remedy = match why.kind() {
        // It has its own.
        _ if fault.is_some() => "",
        // Nobody has spelt it but the broker itself.
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound if is_advertised(node) => ADVERTISED,
        io::ErrorKind::TimedOut | io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable
            if is_advertised(node) =>
        {
            ADVERTISED
        }
        io::ErrorKind::ConnectionRefused => ": nothing listens there; is the broker running, and is the port right?",
        io::ErrorKind::TimedOut | io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            ": is the address reachable from here?"
        }
        _ => "",
    };
    // The system's own error stays the source, with its number.
    KrafkaError::network_saying(format!("connecting to {node}: {why}{remedy}"), Arc::new(why))
}

/// What is said of an address that the cluster gave, and not the user.
const ADVERTISED: &str = ": it is the address that the broker advertises (advertised.listeners); is it up, and is that \
                          its address from here?";

/// Whether the address is one that the cluster has told.
fn is_advertised(node: &Node) -> bool {
    node.id >= 0
}

impl Early {
    /// Whether the peer closed the connection.
    fn is_end(&self) -> bool {
        match self {
            Self::Lost(loss) => *loss == Loss::Ended,
            Self::Failed(why) => matches!(why.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe),
        }
    }

    /// A peer that ends the connection during the handshake tells its reason by the moment.
    #[cold]
    fn explained(self, what: &str, node: &Node) -> KrafkaError {
        let loss = match self {
            Self::Lost(loss) => loss,
            Self::Failed(why) => Loss::Failed(why.kind(), why.to_string()),
        };
        // Brokers before Kafka 1.0, and some proxies, hang up instead of refusing.
        let why = if what == ApiKey::SaslAuthenticate.name() {
            "the peer closed the connection while the client authenticated; are the credentials right?"
        } else {
            "the peer closed the connection during the handshake; is the listener one for TLS or SASL, or is it no \
             Kafka broker?"
        };
        match loss {
            Loss::Ended | Loss::Failed(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe, _) => {
                error::lost(what, node, io::ErrorKind::ConnectionReset, why)
            }
            Loss::Failed(..) | Loss::Garbage(_) => driver::lost(&loss, what, node),
        }
    }
}
