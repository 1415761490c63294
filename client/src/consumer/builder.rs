//! [`ConsumerBuilder`]: a consumer's settings.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use krafka_protocol::Str;
use krafka_protocol::compression::{DEFAULT_DECOMPRESSION_LIMIT, Decompressor};
use tokio::sync::mpsc;

use super::chunk::Decoding;
use super::config::{AutoOffsetReset, ConsumerConfig, GroupConfig};
use super::core::Core;
use super::driver::{self, Remote};
use super::engine::Engine;
use super::fetcher::FetchConfig;
use super::group::MemberConfig;
use super::listener::RebalanceListener;
use super::metrics::ConsumerCounters;
use super::shared::Shared;
use super::{Consumer, Reading};
use crate::backoff::Backoff;
use crate::limits::{MAX_CLIENT_ID_OF_MEMBER, MAX_STRING, finite};
use crate::{Kafka, KrafkaError, Result, topic_name};

impl Kafka {
    /// Returns a builder for a consumer that is a member of `group`, or at least uses its committed offsets.
    pub fn consumer(&self, group: impl Into<String>) -> ConsumerBuilder {
        ConsumerBuilder::new(self.clone(), Some(group.into()))
    }

    /// Returns a builder for a consumer that chooses its partitions itself and commits nothing.
    pub fn consumer_without_group(&self) -> ConsumerBuilder {
        ConsumerBuilder::new(self.clone(), None)
    }
}

/// Settings of a [`Consumer`]. Made by [`Kafka::consumer`].
#[must_use = "a builder does nothing until build() is awaited"]
pub struct ConsumerBuilder {
    kafka: Kafka,
    group: Option<String>,
    group_instance_id: Option<String>,
    listener: Option<Arc<dyn RebalanceListener>>,
    reset: AutoOffsetReset,
    max_poll_records: usize,
    max_poll_interval: Duration,
    session_timeout: Duration,
    heartbeat_interval: Duration,
    auto_commit: bool,
    auto_commit_interval: Duration,
    fetch_max_wait: Duration,
    fetch_min_bytes: i32,
    fetch_max_bytes: i32,
    partition_max_bytes: i32,
    buffer_bytes: usize,
    check_crcs: bool,
    max_decompressed_bytes: usize,
    retry_backoff: Duration,
    retry_backoff_max: Duration,
    api_timeout: Duration,
    close_timeout: Duration,
}

impl ConsumerBuilder {
    fn new(kafka: Kafka, group: Option<String>) -> Self {
        Self {
            kafka,
            group,
            group_instance_id: None,
            listener: None,
            reset: AutoOffsetReset::Latest,
            max_poll_records: 500,
            max_poll_interval: Duration::from_secs(5 * 60),
            session_timeout: Duration::from_secs(45),
            heartbeat_interval: Duration::from_secs(3),
            auto_commit: true,
            auto_commit_interval: Duration::from_secs(5),
            fetch_max_wait: Duration::from_millis(500),
            fetch_min_bytes: 1,
            fetch_max_bytes: 50 * 1024 * 1024,
            partition_max_bytes: 1024 * 1024,
            buffer_bytes: 50 * 1024 * 1024,
            check_crcs: true,
            max_decompressed_bytes: DEFAULT_DECOMPRESSION_LIMIT,
            retry_backoff: Duration::from_millis(100),
            retry_backoff_max: Duration::from_secs(1),
            api_timeout: Duration::from_secs(60),
            close_timeout: Duration::from_secs(30),
        }
    }

    /// Where to start a partition that has no committed offset, or whose position is not in its log.
    ///
    /// `Latest` skips what was written before; choose `Earliest` to miss nothing, `None` to decide case by case.
    /// Default: `Latest`. Java: `auto.offset.reset`.
    pub fn auto_offset_reset(mut self, reset: AutoOffsetReset) -> Self {
        self.reset = reset;
        self
    }

    /// The most records that one [`poll`](Consumer::poll) returns.
    ///
    /// It bounds the work between two polls, not what is fetched. Default: 500. Java: `max.poll.records`.
    pub fn max_poll_records(mut self, records: usize) -> Self {
        self.max_poll_records = records;
        self
    }

    /// How long the application may work between two polls before the group takes its partitions away.
    ///
    /// Waiting inside `poll` does not count. Raise it for slow work; a group that rebalances waits this long for its
    /// members. Default: 5 min. Java: `max.poll.interval.ms`.
    pub fn max_poll_interval(mut self, interval: Duration) -> Self {
        self.max_poll_interval = finite(interval);
        self
    }

    /// How long a member may be silent before the group takes it for dead.
    ///
    /// Lower it to notice crashes sooner, within what the broker allows (6 s to 30 min by default). Default: 45 s.
    /// Java: `session.timeout.ms`.
    pub fn session_timeout(mut self, timeout: Duration) -> Self {
        self.session_timeout = finite(timeout);
        self
    }

    /// How often a member shows that it lives, and asks whether the group rebalances.
    ///
    /// At most a third of the session timeout. Default: 3 s. Java: `heartbeat.interval.ms`.
    pub fn heartbeat_interval(mut self, interval: Duration) -> Self {
        self.heartbeat_interval = finite(interval);
        self
    }

    /// Makes it a static member (KIP-345) of this name: it keeps its partitions when it restarts within the session
    /// timeout.
    ///
    /// It does not leave the group when it is closed. Each member needs a name of its own. Default: none. Java:
    /// `group.instance.id`.
    pub fn group_instance_id(mut self, id: impl Into<String>) -> Self {
        self.group_instance_id = Some(id.into());
        self
    }

    /// Tells `listener` when partitions are taken away or given. Default: none. Java: the listener of `subscribe`.
    pub fn rebalance_listener(mut self, listener: impl RebalanceListener) -> Self {
        self.listener = Some(Arc::new(listener));
        self
    }

    /// Whether positions are committed in the background, when partitions are given up, and by
    /// [`close`](Consumer::close).
    ///
    /// What a `poll` returned is committed only after the next `poll` was called, so a crash repeats records and loses
    /// none. Default: true. Java: `enable.auto.commit`.
    pub fn auto_commit(mut self, enabled: bool) -> Self {
        self.auto_commit = enabled;
        self
    }

    /// How often positions are committed. A crash repeats at most this much. Default: 5 s. Java:
    /// `auto.commit.interval.ms`.
    pub fn auto_commit_interval(mut self, interval: Duration) -> Self {
        self.auto_commit_interval = finite(interval);
        self
    }

    /// How long a broker may wait for `fetch_min_bytes` before it answers.
    ///
    /// It costs no latency: what arrives is sent at once. Where others wait for the connection, because
    /// [`max_connections`](crate::KafkaBuilder::max_connections) is low, it is at most 50 ms.
    ///
    /// Default: 500 ms. Java: `fetch.max.wait.ms`.
    pub fn fetch_max_wait(mut self, wait: Duration) -> Self {
        self.fetch_max_wait = finite(wait);
        self
    }

    /// How many bytes a broker should gather before it answers, within `fetch_max_wait`.
    ///
    /// More makes fewer and larger answers, at the cost of latency. Default: 1. Java: `fetch.min.bytes`.
    pub fn fetch_min_bytes(mut self, bytes: i32) -> Self {
        self.fetch_min_bytes = bytes;
        self
    }

    /// The most bytes in one answer. A first batch that is larger comes all the same. Default: 50 MiB. Java:
    /// `fetch.max.bytes`.
    pub fn fetch_max_bytes(mut self, bytes: i32) -> Self {
        self.fetch_max_bytes = bytes;
        self
    }

    /// The most bytes of one partition in one answer. A first batch that is larger comes all the same.
    ///
    /// A partition is fetched again when less than twice this is buffered of it. Default: 1 MiB. Java:
    /// `max.partition.fetch.bytes`.
    pub fn partition_max_bytes(mut self, bytes: i32) -> Self {
        self.partition_max_bytes = bytes;
        self
    }

    /// The most bytes that are fetched ahead, of all partitions, as they come from the network.
    ///
    /// One answer may exceed it. Default: 50 MiB. Java has no name for it; librdkafka: `queued.max.messages.kbytes`.
    pub fn buffer_bytes(mut self, bytes: usize) -> Self {
        self.buffer_bytes = bytes;
        self
    }

    /// Whether the checksum of each batch is verified. Default: true. Java: `check.crcs`.
    pub fn check_crcs(mut self, enabled: bool) -> Self {
        self.check_crcs = enabled;
        self
    }

    /// The most bytes that one batch may decompress to, and all batches together that one [`poll`](Consumer::poll)
    /// takes records from: a guard against data that is made to fill the memory.
    ///
    /// A batch beyond it is an error that names it, and its partition waits for a [`seek`](Consumer::seek). Batches
    /// that exceed it only together are returned by several polls. Default: 128 MiB. Java has no such limit.
    pub fn max_decompressed_size(mut self, bytes: usize) -> Self {
        self.max_decompressed_bytes = bytes;
        self
    }

    /// How long to wait after the first failure of a request before it is sent again; it doubles with each further one.
    ///
    /// Default: 100 ms. Java: `retry.backoff.ms`.
    pub fn retry_backoff(mut self, backoff: Duration) -> Self {
        self.retry_backoff = finite(backoff);
        self
    }

    /// How long to wait at most before a request is sent again. Default: 1 s. Java: `retry.backoff.max.ms`.
    pub fn retry_backoff_max(mut self, backoff: Duration) -> Self {
        self.retry_backoff_max = finite(backoff);
        self
    }

    /// How long calls without a timeout of their own may take, such as [`commit`](Consumer::commit).
    ///
    /// Default: 60 s. Java: `default.api.timeout.ms`.
    pub fn api_timeout(mut self, timeout: Duration) -> Self {
        self.api_timeout = finite(timeout);
        self
    }

    /// How long [`close`](Consumer::close) may take. Default: 30 s. Java: the argument of `close`.
    pub fn close_timeout(mut self, timeout: Duration) -> Self {
        self.close_timeout = finite(timeout);
        self
    }

    /// Makes the consumer. It sends nothing before it is assigned partitions or subscribes.
    ///
    /// # Errors
    /// [`KrafkaError::Config`] for a setting that makes no sense, which it names.
    ///
    /// # Cancel safety
    /// It does not wait.
    pub async fn build(self) -> Result<Consumer> {
        let config = Arc::new(self.config()?);
        let owner = self.kafka.next_owner();
        let remote = Remote {
            network: self.kafka.network().clone(),
            cluster: self.kafka.cluster().clone(),
            owner,
            client_id: self.kafka.client_id().clone(),
            group: config.group.as_ref().map(|group| group.id.clone()),
            request_timeout: config.request_timeout,
            session_timeout: self.session_timeout,
            rebalance_timeout: self.max_poll_interval,
        };
        let counters = ConsumerCounters::one_of(&self.kafka.registry().consumers);
        // Two answers' worth: one to work on while the other is on its way.
        let mark = usize::try_from(self.partition_max_bytes).unwrap_or(usize::MAX).saturating_mul(2);
        let shared = Arc::new(Shared::new(Core::new(mark, config.buffer_bytes), counters));
        let environment = self.kafka.environment();
        let engine = Engine::new(
            shared.core.clone(),
            config.clone(),
            environment.clock(),
            self.listener.is_some(),
            remote.cluster.snapshot(),
            environment.seed() ^ owner,
        );
        // Each call puts in one small input at most, and the task takes them in as they come.
        let (inputs, receiver) = mpsc::unbounded_channel();
        tokio::spawn(driver::run(engine, receiver, shared.clone(), remote.clone(), self.listener));
        let decompressor = Decompressor::new(config.max_decompressed_bytes);
        let decoding = Decoding { check_crcs: config.check_crcs, decompressor };
        let decoding = Mutex::new(Reading { decoding, single: Vec::with_capacity(1) });
        Ok(Consumer { shared, inputs, config, remote, decoding })
    }

    fn config(&self) -> Result<ConsumerConfig> {
        let backoff = Backoff::new(self.retry_backoff, self.retry_backoff_max.max(self.retry_backoff));
        let positive = [
            ("max_poll_records", self.max_poll_records == 0),
            ("fetch_max_bytes", self.fetch_max_bytes <= 0),
            ("partition_max_bytes", self.partition_max_bytes <= 0),
            ("buffer_bytes", self.buffer_bytes == 0),
            ("max_decompressed_size", self.max_decompressed_bytes == 0),
            ("retry_backoff", self.retry_backoff.is_zero()),
            ("max_poll_interval", self.max_poll_interval.is_zero()),
            ("heartbeat_interval", self.heartbeat_interval.is_zero()),
            ("auto_commit_interval", self.auto_commit && self.auto_commit_interval.is_zero()),
            ("api_timeout", self.api_timeout.is_zero()),
        ];
        if let Some((name, _)) = positive.iter().find(|(_, is_wrong)| *is_wrong) {
            return Err(KrafkaError::config(format!("{name} must be more than 0")));
        }
        if self.fetch_min_bytes < 0 {
            return Err(KrafkaError::config("fetch_min_bytes must not be negative"));
        }
        if self.heartbeat_interval >= self.session_timeout {
            return Err(KrafkaError::config(format!(
                "heartbeat_interval ({:?}) must be less than session_timeout ({:?}), best a third of it",
                self.heartbeat_interval, self.session_timeout
            )));
        }
        if self.group_instance_id.as_ref().is_some_and(String::is_empty) {
            return Err(KrafkaError::config("group_instance_id must not be empty; leave it out for a dynamic member"));
        }
        if let Some(id) = &self.group_instance_id {
            topic_name::check_as("group_instance_id", id)?;
        }
        self.check_lengths()?;
        let group = match &self.group {
            None => None,
            Some(id) if id.is_empty() => {
                return Err(KrafkaError::config(
                    "the group's name must not be empty; use consumer_without_group() to read without a group",
                ));
            }
            Some(id) => Some(self.group(Str::from(id.clone()), backoff)),
        };
        Ok(ConsumerConfig {
            group,
            reset: self.reset,
            max_poll_records: self.max_poll_records,
            fetch: FetchConfig {
                max_wait: self.fetch_max_wait,
                min_bytes: self.fetch_min_bytes,
                max_bytes: self.fetch_max_bytes,
                partition_max_bytes: self.partition_max_bytes,
                rack: self.kafka.client_rack().clone(),
                lease: self.kafka.metadata_max_age(),
                backoff,
            },
            buffer_bytes: self.buffer_bytes,
            check_crcs: self.check_crcs,
            max_decompressed_bytes: self.max_decompressed_bytes,
            request_timeout: self.kafka.request_timeout(),
            api_timeout: self.api_timeout,
            close_timeout: self.close_timeout,
        })
    }

    /// What is too long could not be sent, or not sent back: the coordinator makes a member's id of the client's.
    fn check_lengths(&self) -> Result<()> {
        let Some(group) = &self.group else { return Ok(()) };
        let client_id = self.kafka.client_id();
        for (what, given, most) in [
            ("the group's name", group.len(), MAX_STRING),
            ("client_id (that of the Kafka handle)", client_id.len(), MAX_CLIENT_ID_OF_MEMBER),
        ] {
            if given > most {
                let message = format!("{what} has {given} bytes: a member of a group may have {most} at most");
                return Err(KrafkaError::config(message));
            }
        }
        Ok(())
    }

    fn group(&self, id: Str, backoff: Backoff) -> GroupConfig {
        GroupConfig {
            member: MemberConfig {
                group_id: id.clone(),
                group_instance_id: self.group_instance_id.clone().map(Str::from),
                rack: Some(self.kafka.client_rack().clone()).filter(|rack| !rack.is_empty()),
                session_timeout: self.session_timeout,
                rebalance_timeout: self.max_poll_interval,
                heartbeat_interval: self.heartbeat_interval,
                backoff,
            },
            id,
            auto_commit: self.auto_commit.then_some(self.auto_commit_interval),
            max_poll_interval: self.max_poll_interval,
        }
    }
}

impl std::fmt::Debug for ConsumerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConsumerBuilder").field("group", &self.group).finish_non_exhaustive()
    }
}
