//! The cluster for tests that are not `async`.

use std::future::Future;
use std::io;
use std::ops::Deref;

use tokio::runtime::{Builder, Runtime};

use crate::builder::FakeClusterBuilder;
use crate::faults::Rule;
use crate::groups::GroupView;
use crate::handle::FakeCluster;

/// A [`FakeCluster`] on ports of 127.0.0.1 that brings its own thread, for tests without a runtime and for clients in
/// other languages that a test starts.
///
/// All controls and views of [`FakeCluster`] are its own as well; what waits there blocks here. It ends when it is
/// dropped.
///
/// ```
/// use krafka_fake_broker::FakeCluster;
///
/// let fake = FakeCluster::builder().nodes(3).topic("orders", 3).start_blocking()?;
/// assert_eq!(fake.leader("orders", 0), Some(1));
/// # Ok::<_, std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct BlockingFakeCluster {
    cluster: FakeCluster,
    /// There until it is dropped.
    runtime: Option<Runtime>,
}

impl FakeClusterBuilder {
    /// Starts the cluster on ports of 127.0.0.1 and on a thread of its own, for a test that is not `async`.
    ///
    /// # Errors
    ///
    /// If a port cannot be listened on, or the thread cannot be started.
    ///
    /// # Panics
    ///
    /// Inside of a tokio runtime: use [`start`](Self::start) there.
    pub fn start_blocking(self) -> io::Result<BlockingFakeCluster> {
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("fake-kafka").enable_all().build()?;
        let cluster = runtime.block_on(self.start())?;
        Ok(BlockingFakeCluster { cluster, runtime: Some(runtime) })
    }
}

impl BlockingFakeCluster {
    /// Blocks until a future is done: any of those that [`FakeCluster`] gives.
    ///
    /// # Panics
    ///
    /// Inside of a tokio runtime, and where the future does.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.as_ref().expect("it is there until the cluster is dropped").block_on(future)
    }

    /// [`FakeCluster::wait_for`], blocking.
    ///
    /// # Panics
    ///
    /// As there.
    pub fn wait_for<T>(&self, what: &str, look: impl FnMut(&FakeCluster) -> Option<T>) -> T {
        self.block_on(self.cluster.wait_for(what, look))
    }

    /// [`FakeCluster::wait_group_stable`], blocking.
    ///
    /// # Panics
    ///
    /// As there.
    pub fn wait_group_stable(&self, group: &str, members: usize) -> GroupView {
        self.block_on(self.cluster.wait_group_stable(group, members))
    }

    /// Blocks until a rule has acted so often: [`Rule::wait`].
    ///
    /// # Panics
    ///
    /// As there.
    pub fn wait_hits(&self, rule: &Rule, hits: u64) {
        self.block_on(rule.wait(hits));
    }
}

impl Deref for BlockingFakeCluster {
    type Target = FakeCluster;

    fn deref(&self) -> &FakeCluster {
        &self.cluster
    }
}

impl Drop for BlockingFakeCluster {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Not to wait for tasks, which a drop within a runtime must not do.
            runtime.shutdown_background();
        }
    }
}
