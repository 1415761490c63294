//! [`ProducerBuilder`]: the settings of a producer.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use krafka_protocol::compression::{Compression, CompressionError, Compressor};
use tokio::sync::mpsc;

use super::accumulator::Accumulator;
use super::driver::{self, World};
use super::memory::OVERHEAD;
use super::metrics::ProducerCounters;
use super::partitioner::Partitioner;
use super::{Inner, Producer, WallTime};
use crate::backoff::Backoff;
use crate::error::{KrafkaError, Result};
use crate::kafka::Kafka;
use crate::limits::{MAX_IN_FLIGHT_PRODUCE, finite};

/// Who must have a record before it counts as written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Acks {
    /// Nobody: a record counts as written when it was handed to the network. It may be lost without notice, and its
    /// offset is not known.
    None,
    /// The partition's leader. A record is lost if the leader fails before its followers have it.
    Leader,
    /// All replicas that are in sync: a record survives as long as one of them does.
    #[default]
    All,
}

impl Acks {
    /// As requests say it.
    pub(super) fn code(self) -> i16 {
        match self {
            Self::None => 0,
            Self::Leader => 1,
            Self::All => -1,
        }
    }
}

/// The settings, checked and complete.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) client_id: Arc<str>,
    pub(super) acks: Acks,
    pub(super) is_idempotent: bool,
    pub(super) linger: Duration,
    pub(super) batch_size: usize,
    pub(super) compression: Compression,
    pub(super) compression_level: Option<i32>,
    pub(super) max_request_size: usize,
    pub(super) buffer_memory: usize,
    pub(super) max_block: Duration,
    pub(super) delivery_timeout: Duration,
    pub(super) request_timeout: Duration,
    pub(super) retry_backoff: Backoff,
    pub(super) max_in_flight: usize,
    pub(super) metadata_max_idle: Duration,
}

impl Settings {
    pub(super) fn compressor(&self) -> Result<Compressor, CompressionError> {
        Compressor::new(self.compression, self.compression_level)
    }
}

/// Settings of a [`Producer`]. Made by [`Kafka::producer`].
///
/// The defaults keep every acknowledged record, in order and once, and are the Java client's where not said otherwise.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> krafka::Result<()> {
/// # let fake = krafka::testing::FakeCluster::builder().topic("orders", 3).start().await.expect("ports are free");
/// # let kafka = krafka::Kafka::builder(fake.bootstrap()).connect().await?;
/// use std::time::Duration;
/// use krafka::Compression;
///
/// let producer = kafka
///     .producer()
///     .compression(Compression::Lz4)
///     .batch_size(128 * 1024)
///     .linger(Duration::from_millis(20))
///     .build()
///     .await?;
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing happens until build() is awaited"]
pub struct ProducerBuilder {
    kafka: Kafka,
    partitioner: Option<Box<dyn Partitioner>>,
    acks: Acks,
    idempotent: Option<bool>,
    linger: Duration,
    batch_size: usize,
    compression: Compression,
    compression_level: Option<i32>,
    max_request_size: usize,
    buffer_memory: usize,
    max_block: Duration,
    delivery_timeout: Duration,
    request_timeout: Option<Duration>,
    retry_backoff: Backoff,
    max_in_flight: Option<usize>,
    metadata_max_idle: Duration,
}

impl ProducerBuilder {
    pub(crate) fn new(kafka: Kafka) -> Self {
        Self {
            kafka,
            partitioner: None,
            acks: Acks::All,
            idempotent: None,
            linger: Duration::from_millis(5),
            batch_size: 16 * 1024,
            compression: Compression::None,
            compression_level: None,
            max_request_size: 1024 * 1024,
            buffer_memory: 32 * 1024 * 1024,
            max_block: Duration::from_secs(60),
            delivery_timeout: Duration::from_secs(120),
            request_timeout: None,
            retry_backoff: Backoff::new(Duration::from_millis(100), Duration::from_secs(1)),
            max_in_flight: None,
            metadata_max_idle: Duration::from_secs(5 * 60),
        }
    }

    /// Sets who must have a record before it counts as written. Less than all is faster, and loses records when brokers
    /// fail; it also turns idempotence off, unless that is asked for, which is then an error.
    ///
    /// Default: [`Acks::All`]. Java: `acks`.
    pub fn acks(mut self, acks: Acks) -> Self {
        self.acks = acks;
        self
    }

    /// Sets whether batches that are sent again are recognised by the broker, so that no record is written twice and
    /// none overtakes another. Turn it off for brokers or proxies that do not know `InitProducerId`, or where the
    /// permission for it is missing; then one batch at a time is in flight to each partition, to keep the order, unless
    /// [`max_in_flight`](Self::max_in_flight) allows more.
    ///
    /// Default: on, with acks from all. Java: `enable.idempotence`.
    pub fn idempotent(mut self, idempotent: bool) -> Self {
        self.idempotent = Some(idempotent);
        self
    }

    /// Sets how long a batch that is not full waits for more records. Longer makes fewer and larger requests; zero
    /// sends at once whenever the leader can take it. A batch whose leader is busy fills meanwhile in any case.
    ///
    /// Default: 5 ms. Java: `linger.ms`.
    pub fn linger(mut self, linger: Duration) -> Self {
        self.linger = linger;
        self
    }

    /// Sets the size, before compression, at which a batch is full. Larger ones cost less a record, compress better,
    /// and take more memory for each partition in use. A record that is larger goes alone.
    ///
    /// Default: 16 KiB. Java: `batch.size`.
    pub fn batch_size(mut self, bytes: usize) -> Self {
        self.batch_size = bytes;
        self
    }

    /// Sets how batches are compressed, which is done by the task whose record fills the batch.
    ///
    /// Default: [`Compression::None`]. Java: `compression.type`.
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Sets how hard gzip (1 to 9), lz4 (1 to 17) or zstd (-131072 to 22) try. Snappy has no levels. As in Java, level
    /// 9 of lz4 is its fast default, and all others search for longer matches.
    ///
    /// Default: the codec's own. Java: `compression.gzip.level`, `compression.lz4.level`, `compression.zstd.level`.
    pub fn compression_level(mut self, level: i32) -> Self {
        self.compression_level = Some(level);
        self
    }

    /// Sets the size of the largest request, and so of the largest record, before compression. Raise it together with
    /// the topic's `max.message.bytes`.
    ///
    /// Default: 1 MiB. Java: `max.request.size`.
    pub fn max_request_size(mut self, bytes: usize) -> Self {
        self.max_request_size = bytes;
        self
    }

    /// Sets how much memory the records may take that are not acknowledged yet. When it is used up, senders wait. What
    /// surrounds a batch counts too.
    ///
    /// Default: 32 MiB. Java: `buffer.memory`.
    pub fn buffer_memory(mut self, bytes: usize) -> Self {
        self.buffer_memory = bytes;
        self
    }

    /// Sets how long sending may wait, for the topic's metadata and for memory together, before it fails.
    ///
    /// Default: 60 s. Java: `max.block.ms`.
    pub fn max_block(mut self, max_block: Duration) -> Self {
        self.max_block = finite(max_block);
        self
    }

    /// Sets within what time of being appended a record is acknowledged or fails, whatever happens: elections, lost
    /// connections, retries. There is no limit on the number of retries.
    ///
    /// Default: 120 s. At least linger plus request timeout. Java: `delivery.timeout.ms`.
    pub fn delivery_timeout(mut self, timeout: Duration) -> Self {
        self.delivery_timeout = timeout;
        self
    }

    /// Sets how long a request waits for its answer; then its connection is closed, and its batches are sent again.
    ///
    /// Default: that of the [`Kafka`] handle. Java: `request.timeout.ms`.
    pub fn request_timeout(mut self, timeout: Duration) -> Self {
        self.request_timeout = Some(finite(timeout));
        self
    }

    /// Sets how long a failed batch waits before it is sent again: `base` the first time, doubling up to `max`, each
    /// 20 % more or less.
    ///
    /// Default: 100 ms to 1 s. Java: `retry.backoff.ms`, `retry.backoff.max.ms`.
    pub fn retry_backoff(mut self, base: Duration, max: Duration) -> Self {
        self.retry_backoff = Backoff::new(finite(base), finite(max));
        self
    }

    /// Sets how many batches may be on their way to one partition at a time. An idempotent producer keeps their
    /// order; one that is not keeps it only if this is 1.
    ///
    /// Default: 5, and 1 without idempotence. Java: `max.in.flight.requests.per.connection`.
    pub fn max_in_flight(mut self, batches: usize) -> Self {
        self.max_in_flight = Some(batches);
        self
    }

    /// Sets for how long a topic that nothing is sent to is kept fresh. Then no broker is asked about it any more, and
    /// the next record waits for its metadata as the first one did, and goes by what the topic is by then. So a
    /// producer that sends to many topics, each for a while, does not ask about all of them for the rest of its life
    /// (KIP-526).
    ///
    /// Default: 5 min. At least 5 s. Java: `metadata.max.idle.ms`.
    pub fn metadata_max_idle(mut self, max_idle: Duration) -> Self {
        self.metadata_max_idle = finite(max_idle);
        self
    }

    /// Replaces the way in which records without an explicit partition are placed.
    ///
    /// Default: by the key's hash as the Java client does, and keyless ones wherever batches fill best. Java:
    /// `partitioner.class`.
    pub fn partitioner(mut self, partitioner: impl Partitioner) -> Self {
        self.partitioner = Some(Box::new(partitioner));
        self
    }

    /// Starts the producer. Its broker connections open, and its topics load, when they are first needed.
    ///
    /// # Errors
    ///
    /// [`KrafkaError::Config`] for settings that do not fit together; it names them and what would.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the builder; nothing was started.
    #[expect(clippy::unused_async, reason = "a producer that must ask a broker first would wait here")]
    pub async fn build(mut self) -> Result<Producer> {
        let partitioner = self.partitioner.take();
        let settings = self.settings()?;
        let kafka = self.kafka;
        let environment = kafka.environment();
        let owner = kafka.next_owner();
        let seed = environment.seed().wrapping_add(owner);
        let counters = Arc::new(ProducerCounters::one_of(&kafka.registry().producers));
        // Bounded by the memory of the batches that the inputs are about, and by the calls that wait.
        let (inputs, receiver) = mpsc::unbounded_channel();
        let accumulator = Arc::new(Accumulator::new(settings.clone(), partitioner, inputs, counters.clone(), seed));
        let world = World {
            network: kafka.network().clone(),
            cluster: kafka.cluster().clone(),
            accumulator: accumulator.clone(),
            settings,
            owner,
        };
        tokio::spawn(driver::run(world, receiver, counters, seed));
        let time = WallTime { clock: environment.clock() };
        Ok(Producer { inner: Arc::new(Inner { accumulator, time, kafka }) })
    }

    fn settings(&self) -> Result<Settings> {
        let is_idempotent = self.idempotent.unwrap_or(self.acks == Acks::All);
        let max_in_flight = self.max_in_flight.unwrap_or(if is_idempotent { MAX_IN_FLIGHT_PRODUCE } else { 1 });
        let settings = Settings {
            client_id: self.kafka.client_id().clone(),
            acks: self.acks,
            is_idempotent,
            linger: self.linger,
            // A batch holds at least one record, however small it should be.
            batch_size: self.batch_size.max(1),
            compression: self.compression,
            compression_level: self.compression_level,
            max_request_size: self.max_request_size,
            buffer_memory: self.buffer_memory,
            max_block: self.max_block,
            delivery_timeout: self.delivery_timeout,
            request_timeout: self.request_timeout.unwrap_or_else(|| self.kafka.request_timeout()),
            retry_backoff: self.retry_backoff,
            max_in_flight,
            metadata_max_idle: self.metadata_max_idle,
        };
        check(&settings).map_err(KrafkaError::config)?;
        Ok(settings)
    }
}

/// What is wrong with the settings, in words.
fn check(settings: &Settings) -> Result<(), String> {
    let Settings { linger, delivery_timeout, request_timeout, max_in_flight, .. } = *settings;
    if settings.is_idempotent && settings.acks != Acks::All {
        return Err(format!(
            "an idempotent producer needs acks(Acks::All), not {:?}: leave acks alone, or turn idempotent(false)",
            settings.acks
        ));
    }
    if settings.is_idempotent && !(1..=MAX_IN_FLIGHT_PRODUCE).contains(&max_in_flight) {
        return Err(format!(
            "max_in_flight is {max_in_flight}, but an idempotent producer may have 1 to {MAX_IN_FLIGHT_PRODUCE} \
             batches in flight to a partition: brokers remember no more"
        ));
    }
    if max_in_flight == 0 {
        return Err("max_in_flight is 0: nothing could ever be sent; give at least 1".into());
    }
    if request_timeout.is_zero() {
        return Err("request_timeout is zero: no broker answers that fast".into());
    }
    let max_idle = settings.metadata_max_idle;
    if max_idle < MIN_MAX_IDLE {
        return Err(format!(
            "metadata_max_idle is {max_idle:?}: topics would be loaded again and again; give {MIN_MAX_IDLE:?} at least"
        ));
    }
    let least = linger.saturating_add(request_timeout);
    if delivery_timeout < least {
        return Err(format!(
            "delivery_timeout ({delivery_timeout:?}) is shorter than linger ({linger:?}) plus request_timeout \
             ({request_timeout:?}): raise it to {least:?} at least, or lower one of them"
        ));
    }
    if delivery_timeout > MOST {
        return Err(format!(
            "delivery_timeout ({delivery_timeout:?}) is longer than the {MOST:?} that the protocol can say"
        ));
    }
    let room = settings.batch_size.saturating_add(OVERHEAD);
    if settings.buffer_memory < room {
        return Err(format!(
            "buffer_memory ({} bytes) does not hold a single batch: with batch_size {} give at least {room}",
            settings.buffer_memory, settings.batch_size
        ));
    }
    if settings.max_request_size < 1024 || settings.max_request_size > i32::MAX as usize {
        let given = settings.max_request_size;
        return Err(format!("max_request_size is {given} bytes: give from 1024 to 2147483647"));
    }
    if settings.retry_backoff.base.is_zero() || settings.retry_backoff.cap < settings.retry_backoff.base {
        let Backoff { base, cap } = settings.retry_backoff;
        return Err(format!("retry_backoff from {base:?} to {cap:?} is none: begin above zero, and do not end below"));
    }
    settings.compressor().map(drop).map_err(|error| format!("compression {}: {error}", settings.compression))
}

/// As in Java. Sooner than after seconds a topic is not asked about twice without a pause.
const MIN_MAX_IDLE: Duration = Duration::from_secs(5);

/// Durations go over the wire in milliseconds as an i32.
const MOST: Duration = Duration::from_millis(i32::MAX as u64);

impl fmt::Debug for ProducerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProducerBuilder")
            .field("acks", &self.acks)
            .field("idempotent", &self.idempotent)
            .field("linger", &self.linger)
            .field("batch_size", &self.batch_size)
            .field("compression", &self.compression)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The defaults, for the tests of other files.
    pub(in crate::producer) fn defaults() -> Settings {
        Settings {
            client_id: "me".into(),
            acks: Acks::All,
            is_idempotent: true,
            linger: Duration::from_millis(5),
            batch_size: 16 * 1024,
            compression: Compression::None,
            compression_level: None,
            max_request_size: 1024 * 1024,
            buffer_memory: 32 * 1024 * 1024,
            max_block: Duration::from_secs(60),
            delivery_timeout: Duration::from_secs(120),
            request_timeout: Duration::from_secs(30),
            retry_backoff: Backoff::new(Duration::from_millis(100), Duration::from_secs(1)),
            max_in_flight: 5,
            metadata_max_idle: Duration::from_secs(5 * 60),
        }
    }

    type Spoil = fn(&mut Settings);

    #[test]
    fn settings_that_do_not_fit_are_refused_by_name() {
        let ms = Duration::from_millis;
        let table: [(&str, Spoil); 10] = [
            ("acks", |s| s.acks = Acks::Leader),
            ("max_in_flight", |s| s.max_in_flight = 6),
            ("max_in_flight", |s| (s.is_idempotent, s.max_in_flight) = (false, 0)),
            ("request_timeout", |s| s.request_timeout = Duration::ZERO),
            ("metadata_max_idle", |s| s.metadata_max_idle = Duration::from_millis(4_999)),
            ("delivery_timeout", |s| s.delivery_timeout = Duration::from_millis(30_004)),
            ("buffer_memory", |s| s.buffer_memory = s.batch_size),
            ("max_request_size", |s| s.max_request_size = 100),
            ("retry_backoff", |s| s.retry_backoff.base = Duration::ZERO),
            ("compression", |s| (s.compression, s.compression_level) = (Compression::Gzip, Some(77))),
        ];

        for (name, spoil) in table {
            let mut settings = defaults();
            spoil(&mut settings);
            let message = check(&settings).expect_err(name);
            assert!(message.contains(name), "{name}: {message}");
        }
        assert_eq!(check(&Settings { delivery_timeout: ms(30_005), ..defaults() }), Ok(()));
    }
}
