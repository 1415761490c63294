//! What a consumer did so far, in numbers.

use krafka_protocol::{ErrorCode, FetchResponse, OffsetCommitResponse};

use crate::error::{KrafkaError, Result};
use crate::metrics::counters;

/// Counts of what one consumer did, all since it was built, or of all consumers of a handle. Returned by
/// [`Consumer::metrics`](crate::Consumer::metrics), and part of [`Metrics`](crate::metrics::Metrics).
///
/// How long its fetches, commits and heartbeats took is told by
/// [`Metrics::requests`](crate::metrics::Metrics::requests).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConsumerMetrics {
    /// Records that `poll` and `recv` handed out.
    pub records: u64,
    /// Fetches that brokers answered, empty answers among them.
    pub fetches: u64,
    /// Bytes of the batches that were fetched, as they came over the wire.
    pub bytes: u64,
    /// Commits that a coordinator answered.
    pub commits: u64,
    /// Commits that failed, as a whole or in part; those that were tried again among them.
    pub commits_failed: u64,
    /// Times that the consumer asked to join its group: once at the start, and at each rebalance.
    pub joins: u64,
}

counters!(ConsumerCounters => ConsumerMetrics: records, fetches, bytes, commits, commits_failed, joins;);

impl ConsumerCounters {
    /// A broker answered a fetch.
    pub(super) fn fetched(&self, answer: &FetchResponse) {
        let partitions = answer.responses.iter().flat_map(|topic| &topic.partitions);
        let bytes = partitions.filter_map(|partition| partition.records.as_ref()).map(|records| records.len() as u64);
        self.add(|counters| &counters.fetches, 1);
        self.add(|counters| &counters.bytes, bytes.sum());
    }

    /// A coordinator answered a commit, or did not.
    pub(super) fn committed(&self, answer: &Result<OffsetCommitResponse>) {
        self.add(|counters| &counters.commits, u64::from(answer.is_ok()));
        self.add(|counters| &counters.commits_failed, u64::from(fault(answer).is_some()));
    }
}

/// What is wrong with a commit, or with the first of its partitions that has a fault.
pub(super) fn fault(answer: &Result<OffsetCommitResponse>) -> Option<KrafkaError> {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return Some(error.clone()),
    };
    let mut partitions = answer.topics.iter().flat_map(|topic| &topic.partitions);
    let code = partitions.find_map(|partition| ErrorCode(partition.error_code).ok().err())?;
    Some(KrafkaError::broker(code, "committing offsets"))
}
