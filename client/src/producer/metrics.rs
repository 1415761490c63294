//! What a producer did so far, in numbers.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of what one producer did, all since it was built. Returned by
/// [`Producer::metrics`](crate::Producer::metrics).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProducerMetrics {
    /// Records that are acknowledged.
    pub records_acknowledged: u64,
    /// Records that failed for good.
    pub records_failed: u64,
    /// Bytes of acknowledged batches, as they went over the wire.
    pub bytes_acknowledged: u64,
    /// Produce requests that were sent.
    pub requests: u64,
    /// Batches that were sent, the repeated ones among them.
    pub batches: u64,
    /// Batches that had to be sent again.
    pub retries: u64,
    /// Batches that were too large for the broker and were split.
    pub splits: u64,
    /// Times that the producer moved to a new epoch or id because a sequence was broken.
    pub epoch_bumps: u64,
}

macro_rules! counters {
    ($($name:ident),*) => {
        /// The counters behind [`ProducerMetrics`].
        #[derive(Debug, Default)]
        pub(super) struct Counters {
            $(pub(super) $name: Counter,)*
        }

        impl Counters {
            pub(super) fn read(&self) -> ProducerMetrics {
                ProducerMetrics { $($name: self.$name.0.load(Ordering::Relaxed),)* }
            }
        }
    };
}

counters!(records_acknowledged, records_failed, bytes_acknowledged, requests, batches, retries, splits, epoch_bumps);

/// Counts up.
#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }
}
