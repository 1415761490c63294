//! What a test holds of a running cluster. Its controls, and views of what is in it, are in a file for each noun.

mod configs;
mod faults;
mod foreign_transactions;
mod groups;
mod leaders;
mod listeners;
mod logins;
mod new_record;
mod nodes;
mod records;
mod snapshots;
mod telemetry;
mod topics;
mod transactions;
mod wait;

pub use new_record::NewRecord;
pub use records::StoredRecord;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::AbortHandle;

use crate::builder::FakeClusterBuilder;
use crate::cluster::Cluster;
use crate::serve::pipe::Pipes;
use crate::serve::{Shared, control, driver, tcp};
use crate::state::State;

/// A running Kafka cluster that is not real, but answers as a real one does.
///
/// Clones are handles of the same cluster; it ends when the last one is dropped. All controls act at once.
///
/// ```
/// use krafka_fake_broker::FakeCluster;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let fake = FakeCluster::builder().nodes(3).topic("orders", 3).start().await?;
/// assert_eq!(fake.leader("orders", 0), Some(1));
///
/// fake.crash(1);
/// assert_eq!(fake.leader("orders", 0), Some(2));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct FakeCluster {
    running: Arc<Running>,
}

/// A handle that does not keep the cluster alive.
#[derive(Clone)]
pub(crate) struct WeakCluster {
    running: Weak<Running>,
}

impl WeakCluster {
    /// A handle that does, if there is one still.
    pub(crate) fn upgrade(&self) -> Option<FakeCluster> {
        self.running.upgrade().map(|running| FakeCluster { running })
    }
}

/// A cluster and its tasks, which end with it.
struct Running {
    shared: Arc<Shared>,
    tasks: Mutex<Vec<AbortHandle>>,
    /// What the cluster was like at moments that the control port was told to remember.
    snapshots: Mutex<BTreeMap<u64, Cluster>>,
    /// Whether the nodes listen on TCP.
    is_on_tcp: AtomicBool,
}

impl FakeCluster {
    /// Returns a builder for a cluster of one node without topics.
    pub fn builder() -> FakeClusterBuilder {
        FakeClusterBuilder::default()
    }

    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let (tasks, snapshots) = (Mutex::default(), Mutex::default());
        Self { running: Arc::new(Running { shared, tasks, snapshots, is_on_tcp: AtomicBool::new(false) }) }
    }

    /// Returns what connects to the nodes in memory. Any client that can be given a stream can use it.
    pub fn pipes(&self) -> Pipes {
        Pipes::new(self.running.shared.clone())
    }

    /// Serves one connection of a node until either side closes it. This is what a simulation calls for each stream
    /// that it accepted.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection.
    pub async fn serve(&self, node: i32, stream: impl AsyncRead + AsyncWrite + Unpin) {
        self.serve_on(node, self.look(|state| state.config.listeners.first()), stream).await;
    }

    /// Wakes the cluster at its deadlines (long polls, session timeouts, delays), for as long as it is awaited. Only a
    /// cluster from [`FakeClusterBuilder::build`] needs it.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Cancel safety
    ///
    /// May be dropped and called again at any time.
    pub async fn run_timers(&self) {
        driver::run_timers(self.running.shared.clone()).await;
    }

    pub(crate) fn spawn_tcp(&self, listeners: Vec<tcp::Listener>) {
        self.running.is_on_tcp.store(true, Ordering::Relaxed);
        for listener in listeners {
            self.listen(listener);
        }
        self.spawn_timers();
    }

    /// Takes the connections of a node.
    fn listen(&self, listener: tcp::Listener) {
        let port = listener.port;
        let shared = self.running.shared.clone();
        shared.listen(listener);
        self.keep(tokio::spawn(tcp::accept(shared, port)).abort_handle());
    }

    pub(crate) fn spawn_timers(&self) {
        self.keep(tokio::spawn(driver::run_timers(self.running.shared.clone())).abort_handle());
    }

    fn keep(&self, task: AbortHandle) {
        self.running.tasks.lock().unwrap_or_else(PoisonError::into_inner).push(task);
    }

    /// A handle that does not keep the cluster alive.
    pub(crate) fn downgrade(&self) -> WeakCluster {
        WeakCluster { running: Arc::downgrade(&self.running) }
    }

    /// Opens the control port, over which a test in any language breaks the cluster on purpose and looks into it: HTTP
    /// with JSON, as `CONTROL.md` describes. Returns where it is. It closes with the cluster.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Errors
    ///
    /// If the address cannot be listened on.
    ///
    /// # Cancel safety
    ///
    /// A dropped future leaves nothing behind.
    pub async fn serve_control(&self, address: SocketAddr) -> io::Result<SocketAddr> {
        let (port, address) = control::bind(self.downgrade(), address).await?;
        self.keep(tokio::spawn(port).abort_handle());
        Ok(address)
    }

    fn snapshots(&self) -> MutexGuard<'_, BTreeMap<u64, Cluster>> {
        self.running.snapshots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks into the state.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        self.running.shared.look(|cluster: &Cluster| look(cluster.state()))
    }

    /// Looks into the state, and at the clock.
    pub(crate) fn look_at<T>(&self, look: impl FnOnce(&State, Instant) -> T) -> T {
        let now = self.running.shared.now();
        self.look(|state| look(state, now))
    }

    /// Changes the state, and lets waiting requests see it at once.
    fn control<T>(&self, change: impl FnOnce(&mut State, Instant) -> T) -> T {
        self.running.shared.step(|cluster, now| cluster.control(now, |state| change(state, now)))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shared.end();
        self.shared.look(|cluster: &Cluster| cluster.state().faults.end_waits());
        for task in self.tasks.get_mut().unwrap_or_else(PoisonError::into_inner) {
            task.abort();
        }
        if std::thread::panicking() {
            return;
        }
        let complaints = self.shared.look(|cluster: &Cluster| {
            let state = cluster.state();
            if state.config.strict { faults::complaints(state) } else { Vec::new() }
        });
        assert!(complaints.is_empty(), "the fake cluster is strict, and complains:\n{}", complaints.join("\n"));
    }
}

impl fmt::Debug for FakeCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeCluster").field("bootstrap", &self.bootstrap()).finish_non_exhaustive()
    }
}
