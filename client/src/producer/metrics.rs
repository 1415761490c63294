//! What a producer did so far, in numbers.

use crate::metrics::{Histogram, counters};

/// Counts of what one producer did, all since it was built, or of all producers of a handle. Returned by
/// [`Producer::metrics`](crate::Producer::metrics), and part of [`Metrics`](crate::metrics::Metrics).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// From a batch's first record to its acknowledgement, lingering and retries included.
    pub delivery_time: Histogram,
}

counters!(
    ProducerCounters => ProducerMetrics:
    records_acknowledged, records_failed, bytes_acknowledged, requests, batches, retries, splits, epoch_bumps;
    delivery_time
);
