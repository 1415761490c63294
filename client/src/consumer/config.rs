//! [`ConsumerConfig`]: a consumer's settings, once they have been checked. The builder documents each.

use std::time::Duration;

use krafka_protocol::Str;

use super::fetcher::FetchConfig;
use super::group::MemberConfig;

/// Where to start reading a partition when there is no committed offset, or the position is not in the log any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AutoOffsetReset {
    /// At the oldest record that is there.
    Earliest,
    /// Behind the newest record: only what is written from now on. The default, as in the Java client.
    Latest,
    /// Nowhere: `poll` returns [`KrafkaError::NoOffset`](crate::KrafkaError::NoOffset) until the application seeks.
    None,
    /// At the first record that is at most this old (KIP-1106).
    ByDuration(Duration),
}

#[derive(Clone, Debug)]
pub(crate) struct ConsumerConfig {
    pub(crate) group: Option<GroupConfig>,
    pub(crate) reset: AutoOffsetReset,
    pub(crate) max_poll_records: usize,
    pub(crate) fetch: FetchConfig,
    /// Bytes that all partitions may have buffered.
    pub(crate) buffer_bytes: usize,
    pub(crate) check_crcs: bool,
    pub(crate) max_decompressed_bytes: usize,
    pub(crate) request_timeout: Duration,
    /// Bounds calls that have no timeout of their own.
    pub(crate) api_timeout: Duration,
    /// Bounds `close`.
    pub(crate) close_timeout: Duration,
}

#[derive(Clone, Debug)]
pub(crate) struct GroupConfig {
    pub(crate) id: Str,
    pub(crate) member: MemberConfig,
    /// `None`: the application commits.
    pub(crate) auto_commit: Option<Duration>,
    pub(crate) max_poll_interval: Duration,
}
