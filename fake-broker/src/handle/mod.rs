//! What a test holds of a running cluster. Its controls, and views of what is in it, are in a file for each noun.

mod faults;
mod groups;
mod leaders;
mod listeners;
mod nodes;
mod records;
mod topics;
mod wait;

pub use records::StoredRecord;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::AbortHandle;

use crate::builder::FakeClusterBuilder;
use crate::cluster::Cluster;
use crate::serve::pipe::Pipes;
use crate::serve::{Shared, driver, tcp};
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

/// A cluster and its tasks, which end with it.
struct Running {
    shared: Arc<Shared>,
    tasks: Mutex<Vec<AbortHandle>>,
}

impl FakeCluster {
    /// Returns a builder for a cluster of one node without topics.
    pub fn builder() -> FakeClusterBuilder {
        FakeClusterBuilder::default()
    }

    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { running: Arc::new(Running { shared, tasks: Mutex::new(Vec::new()) }) }
    }

    /// Returns what connects to the nodes in memory. Any client that can be given a stream can use it.
    pub fn pipes(&self) -> Pipes {
        Pipes::new(self.running.shared.clone())
    }

    /// Serves one connection of a node until either side closes it. This is what a simulation calls for each stream
    /// that it accepted.
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
    /// # Cancel safety
    ///
    /// May be dropped and called again at any time.
    pub async fn run_timers(&self) {
        driver::run_timers(self.running.shared.clone()).await;
    }

    pub(crate) fn spawn_tcp(&self, listeners: Vec<tcp::Listener>) {
        for listener in listeners {
            self.keep(tokio::spawn(tcp::accept(self.running.shared.clone(), listener)).abort_handle());
        }
        self.spawn_timers();
    }

    pub(crate) fn spawn_timers(&self) {
        self.keep(tokio::spawn(driver::run_timers(self.running.shared.clone())).abort_handle());
    }

    fn keep(&self, task: AbortHandle) {
        self.running.tasks.lock().unwrap_or_else(PoisonError::into_inner).push(task);
    }

    /// Looks into the state.
    fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        self.running.shared.look(|cluster: &Cluster| look(cluster.state()))
    }

    /// Changes the state, and lets waiting requests see it at once.
    fn control<T>(&self, change: impl FnOnce(&mut State, Instant) -> T) -> T {
        self.running.shared.step(|cluster, now| cluster.control(now, |state| change(state, now)))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shared.end();
        for task in self.tasks.get_mut().unwrap_or_else(PoisonError::into_inner) {
            task.abort();
        }
    }
}

impl fmt::Debug for FakeCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeCluster").field("bootstrap", &self.bootstrap()).finish_non_exhaustive()
    }
}
