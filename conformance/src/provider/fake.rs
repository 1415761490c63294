//! The fake broker over TCP: as far from the client as a real cluster is.

use krafka_fake_broker::FakeCluster;
use scenarios::Result;
use tokio::runtime::Runtime;

/// A fake cluster on a runtime of its own.
pub struct Fake {
    bootstrap: String,
    // The order matters: the cluster stops before its runtime.
    _cluster: FakeCluster,
    _runtime: Runtime,
}

impl Fake {
    /// Starts a cluster of so many nodes.
    ///
    /// # Errors
    /// If its ports cannot be bound.
    pub fn start(nodes: u16) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let cluster = runtime.block_on(FakeCluster::builder().nodes(i32::from(nodes)).start())?;
        Ok(Self { bootstrap: cluster.bootstrap(), _cluster: cluster, _runtime: runtime })
    }

    pub(crate) fn bootstrap(&self) -> &str {
        &self.bootstrap
    }
}
