//! [`Destination`]: which cluster the connections are meant for, and who hears that one led elsewhere (KIP-1242).
//!
//! An address can pass to another broker, or to another cluster, while a client remembers it. From version 5 on
//! ApiVersions says whom the client means, and a broker that is somebody else answers REBOOTSTRAP_REQUIRED.

use std::sync::OnceLock;

use arc_swap::ArcSwapOption;
use krafka_protocol::Str;

/// What the view of the cluster and the connections tell each other.
#[derive(Default)]
pub(crate) struct Destination {
    cluster_id: ArcSwapOption<Str>,
    on_misrouted: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl Destination {
    /// Says which cluster is meant from now on.
    pub(super) fn set(&self, cluster_id: Option<Str>) {
        self.cluster_id.store(cluster_id.map(Into::into));
    }

    /// The cluster that is meant, if it is known and brokers are to be asked.
    pub(super) fn cluster_id(&self) -> Option<Str> {
        self.cluster_id.load().as_deref().cloned()
    }

    /// Names who hears of brokers that are not the ones that were meant. The first who is named stays.
    pub(super) fn listen(&self, on_misrouted: impl Fn() + Send + Sync + 'static) {
        // One view of the cluster keeps one set of connections.
        let _ = self.on_misrouted.set(Box::new(on_misrouted));
    }

    /// A broker said that it is not the one that was meant.
    pub(super) fn misrouted(&self) {
        if let Some(tell) = self.on_misrouted.get() {
            tell();
        }
    }
}
