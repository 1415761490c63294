//! The pool: carries out what the [`Slots`] decide.
//!
//! The slots are behind a mutex that is held for a look-up and never across an `.await`; attempts run in tasks of their
//! own, so that a caller that gives up does not take the attempt of the others with it.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use krafka_protocol::machine::Machine;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use super::bell::Bell;
use super::destination::Destination;
use super::dial::{Dialer, NetworkConfig};
use super::error::{CallError, no_room};
use super::slots::{Action, Input, Key, Refusal, Slots, Slotted};
use super::{Connection, Lane};
use crate::cluster::{Node, gone};
use crate::drive;
use crate::error::KrafkaError;
use crate::unwind::{Panicked, caught};

type Waiter = oneshot::Sender<Result<Connection, CallError>>;

/// The connections of one handle.
pub(super) struct Pool {
    slots: Mutex<Slots<Connection, Waiter, CallError>>,
    dialer: Arc<Dialer>,
    dials: Mutex<Dials>,
    max_connections: usize,
    /// Heard by a task that looks for room, while somebody waits for it. Changed only with the slots locked.
    bell: Arc<Bell>,
    /// Where attempts are made, and room is looked for. Not in the runtime of whoever asks, which may end before that
    /// of the client, and leave others waiting.
    runtime: Handle,
    /// Whether the runtime has ended.
    is_homeless: AtomicBool,
    /// When it was last told that there are too few connections.
    told_full: Mutex<Option<Instant>>,
}

/// The attempts that are under way. They end with the pool, as nobody wants a connection then.
#[derive(Default)]
struct Dials {
    tasks: Vec<AbortHandle>,
    is_over: bool,
}

impl Dials {
    fn add(&mut self, task: AbortHandle) {
        if self.is_over {
            // The pool was closed after this attempt was decided on.
            return task.abort();
        }
        self.tasks.retain(|task| !task.is_finished());
        self.tasks.push(task);
    }

    fn end(&mut self) {
        self.is_over = true;
        self.tasks.drain(..).for_each(|task| task.abort());
    }
}

/// What happens again within this time is one line.
const SERIES: Duration = Duration::from_secs(60);

impl Drop for Pool {
    fn drop(&mut self) {
        self.end_dials();
        // Whoever looks for room need not do so any more.
        self.bell.ring();
    }
}

/// A task that others wait for. If it is dropped before its end, so is the runtime that the client lives in.
struct Awaited(Option<Weak<Pool>>);

impl Awaited {
    fn by(pool: &Arc<Pool>) -> Self {
        Self(Some(Arc::downgrade(pool)))
    }

    /// It is at its end.
    fn done(mut self) -> Option<Arc<Pool>> {
        self.0.take()?.upgrade()
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        if let Some(pool) = self.0.take().and_then(|pool| pool.upgrade()) {
            pool.is_homeless.store(true, Ordering::Relaxed);
            pool.act(Input::Closed);
        }
    }
}

impl super::Waiter for Waiter {
    fn is_abandoned(&self) -> bool {
        self.is_closed()
    }
}

impl Slotted for Connection {
    fn is_closed(&self) -> bool {
        Self::is_closed(self)
    }

    fn pending(&self) -> usize {
        Self::pending(self)
    }

    fn is_muted(&self) -> bool {
        Self::is_muted(self)
    }

    fn has_ended(&self) -> bool {
        Self::has_ended(self)
    }
}

impl Pool {
    pub(super) fn new(config: NetworkConfig) -> Self {
        let slots = Mutex::new(Slots::new(config.max_connections, config.seed));
        let (max_connections, bell) = (config.max_connections, Arc::<Bell>::default());
        Self {
            slots,
            max_connections,
            dialer: Arc::new(Dialer::new(config, bell.clone())),
            dials: Mutex::default(),
            bell,
            runtime: Handle::current(),
            is_homeless: AtomicBool::new(false),
            told_full: Mutex::default(),
        }
    }

    pub(super) async fn connection(self: &Arc<Self>, node: &Node, lane: Lane) -> Result<Connection, CallError> {
        let key = Key::new(node, lane);
        if let Some(connection) = self.with_slots(|slots| slots.ready(&key, drive::now())) {
            return Ok(connection);
        }
        let (waiter, connection) = oneshot::channel();
        self.handle(Input::Wanted { node: node.clone(), lane, waiter });
        connection.await.unwrap_or_else(|_| Err(self.closed()))
    }

    pub(super) fn cost(&self, node: &Node, lane: Lane) -> u64 {
        self.with_slots(|slots| slots.cost(node, lane, drive::now()))
    }

    pub(super) fn is_scarce(&self) -> bool {
        self.with_slots(|slots| slots.is_scarce(drive::now()))
    }

    pub(super) fn takes_turns(&self) -> bool {
        self.with_slots(|slots| slots.takes_turns(drive::now()))
    }

    pub(super) fn is_waiting_for(&self, node: &Node, lane: Lane) -> bool {
        self.with_slots(|slots| slots.is_waiting_for(&Key::new(node, lane)))
    }

    pub(super) fn destination(&self) -> &Destination {
        self.dialer.destination()
    }

    pub(super) fn forget_features(&self) {
        self.dialer.forget_features();
    }

    pub(super) fn moved(self: &Arc<Self>, nodes: BTreeMap<i32, Arc<Node>>) {
        self.handle(Input::Moved { nodes });
    }

    pub(super) fn fallbacks(&self) -> u64 {
        self.with_slots(|slots| slots.fallbacks())
    }

    pub(super) fn hold(self: &Arc<Self>, lane: Lane) {
        self.handle(Input::Held { lane });
    }

    pub(super) fn release(self: &Arc<Self>, lanes: Vec<Lane>) {
        self.handle(Input::Released { lanes });
    }

    pub(super) fn close(self: &Arc<Self>) {
        self.handle(Input::Closed);
        self.end_dials();
        self.dialer.close();
    }

    fn end_dials(&self) {
        self.dials.lock().unwrap_or_else(PoisonError::into_inner).end();
    }

    fn with_slots<T>(&self, use_them: impl FnOnce(&mut Slots<Connection, Waiter, CallError>) -> T) -> T {
        use_them(&mut self.slots.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn handle(self: &Arc<Self>, input: Input<Connection, Waiter, CallError>) {
        self.act(input);
        // When to look next may have changed.
        self.bell.ring();
    }

    fn act(self: &Arc<Self>, input: Input<Connection, Waiter, CallError>) {
        let (actions, must_look) = self.with_slots(|slots| {
            let now = drive::now();
            slots.handle(input, now);
            let actions = std::iter::from_fn(|| slots.poll(now)).collect::<Vec<_>>();
            (actions, slots.is_waiting() && self.bell.listen())
        });
        if must_look {
            self.tell_full();
            self.runtime.spawn(look(Awaited::by(self), Arc::downgrade(self), self.bell.clone()));
        }
        for action in actions {
            match action {
                Action::Dial { key, node } => self.dial(key, node),
                // A waiter that is gone leaves the connection to the next.
                Action::Give { waiter, connection } => drop(waiter.send(Ok(connection))),
                Action::Refuse { waiter, refusal } => drop(waiter.send(Err(self.explain(refusal)))),
                Action::Retire(connection) => connection.retire(),
                Action::Leave(connection) => connection.leave(),
            }
        }
    }

    #[cold]
    fn tell_full(&self) {
        let now = drive::now();
        let mut told = self.told_full.lock().unwrap_or_else(PoisonError::into_inner);
        if told.replace(now).is_none_or(|last| last + SERIES < now) {
            tracing::warn!(
                max_connections = self.max_connections,
                "there are fewer connections than brokers to talk to, which take turns now: raise max_connections"
            );
        }
    }

    fn dial(self: &Arc<Self>, key: Key, node: Node) {
        let (awaited, dialer) = (Awaited::by(self), self.dialer.clone());
        let task = self.runtime.spawn(async move {
            let lane = key.lane();
            // How connections are made, and certificates judged, may be the user's.
            let dialled = caught(|| dialer.dial(&node, lane)).await;
            let Some(pool) = awaited.done() else { return };
            let input = match dialled.unwrap_or_else(|fault| Err(panicked(&node, fault))) {
                Ok(connection) => {
                    if pool.with_slots(|slots| slots.is_failing(&key)) {
                        tracing::info!(%node, ?lane, "connected again");
                    }
                    Input::Connected { key, connection }
                }
                Err(error) => {
                    // A broker that is down for an hour is one line, not a line for each of many attempts.
                    match pool.with_slots(|slots| slots.is_failing(&key)) {
                        false => {
                            tracing::warn!(%node, ?lane, %error, "could not connect; it is tried again when needed")
                        }
                        true => tracing::debug!(%node, ?lane, %error, "could not connect"),
                    }
                    Input::Failed { key, error: CallError::unsent(error) }
                }
            };
            pool.handle(input);
        });
        self.dials.lock().unwrap_or_else(PoisonError::into_inner).add(task.abort_handle());
    }

    #[cold]
    fn explain(&self, refusal: Refusal<CallError>) -> CallError {
        match refusal {
            Refusal::Failed(error) => error,
            Refusal::Full { max_connections, waited } => CallError::unsent(no_room(
                "opening a connection",
                format!(
                    "all {max_connections} connections that max_connections allows were in use for {waited:?}, and \
                     none of them was to this broker: raise it, or try again"
                ),
            )),
            Refusal::Crowded => CallError::unsent(KrafkaError::network(
                "opening a connection",
                io::Error::new(io::ErrorKind::WouldBlock, "too many callers wait for it already"),
            )),
            Refusal::Released => CallError::unsent(KrafkaError::network(
                "opening a connection",
                io::Error::new(io::ErrorKind::NotConnected, "it was given up by who began to open it: try again"),
            )),
            Refusal::Closed => self.closed(),
        }
    }

    #[cold]
    fn closed(&self) -> CallError {
        CallError::unsent(match self.is_homeless.load(Ordering::Relaxed) {
            true => gone(),
            false => KrafkaError::closed("the Kafka handle was closed"),
        })
    }
}

/// Looks for room as long as somebody waits for it.
async fn look(awaited: Awaited, pool: Weak<Pool>, bell: Arc<Bell>) {
    let look = || {
        let pool = pool.upgrade()?;
        pool.act(Input::Rested);
        pool.with_slots(|slots| slots.deadline())
    };
    while let Some(deadline) = look() {
        tokio::select! {
            // A connection that has come to rest is no later than the time.
            biased;
            () = bell.rung() => {}
            () = drive::sleep_until(Some(deadline)) => {}
        }
    }
    if let Some(pool) = awaited.done() {
        pool.with_slots(|_| pool.bell.ignore());
    }
    // Somebody may have come in between.
    look();
}

#[cold]
fn panicked(node: &Node, panicked: Panicked) -> KrafkaError {
    KrafkaError::network(format!("connecting to {node}"), io::Error::other(panicked))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It is decided on under one lock and noted under another, and the end may come in between.
    #[tokio::test(start_paused = true)]
    async fn an_attempt_that_is_noted_after_the_end_ends_too() {
        let mut dials = Dials::default();
        dials.end();
        let late = tokio::spawn(std::future::pending::<()>());

        dials.add(late.abort_handle());

        let ended = tokio::time::timeout(Duration::from_secs(1), late).await.expect("it ends");
        assert!(ended.expect_err("it has no end of its own").is_cancelled());
    }
}
