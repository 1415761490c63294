//! Consumes records: of partitions that the application chooses, or of topics that a group shares.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! # async fn example() -> krafka::Result<()> {
//! let kafka = krafka::Kafka::builder("localhost:9092").connect().await?;
//! let consumer = kafka.consumer("billing").build().await?;
//! consumer.subscribe(&["orders"]).await?;
//! loop {
//!     for record in consumer.poll(Duration::from_secs(1)).await? {
//!         println!("{}-{} @ {}: {:?}", record.topic, record.partition, record.offset, record.value);
//!     }
//! }
//! # }
//! ```
//!
//! A consumer fetches in the background, from each broker by itself, into a bounded buffer; `poll` and `recv` hand
//! out what is there. A slow or silent broker therefore holds up only its own partitions, and dropping a `poll` loses
//! nothing.

mod assign;
mod attempts;
mod buffer;
mod builder;
mod chunk;
mod commit;
mod committed;
mod config;
mod core;
mod driver;
mod engine;
mod fetcher;
mod group;
mod listener;
mod metrics;
mod penalties;
mod preferred;
mod record;
mod reset;
mod session;
mod shared;
mod subscription;
mod validate;
mod waiting;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use krafka_protocol::Str;
use tokio::sync::mpsc::UnboundedSender;
use tracing::{Instrument, Span};

pub use self::builder::ConsumerBuilder;
pub use self::config::AutoOffsetReset;
pub use self::listener::{ListenerFuture, RebalanceListener};
pub(crate) use self::metrics::ConsumerCounters;
pub use self::metrics::ConsumerMetrics;
pub use self::record::{ConsumerRecord, Headers, OffsetAndMetadata};
pub use krafka_protocol::records::{Header, TimestampType};

use self::chunk::Decoding;
use self::config::ConsumerConfig;
use self::core::Mode;
use self::driver::Remote;
use self::engine::Input;
use self::shared::{Shared, closed};
use self::subscription::{Position, Stage, Start};
use crate::limits::MAX_STRING;
use crate::{KrafkaError, Result, TopicPartition, drive, spans, topic_name};

/// How long `assign` waits for a topic or partition that the cluster does not know: it may have been created just now.
const UNKNOWN_TOPIC_PATIENCE: Duration = Duration::from_secs(5);

/// Reads records. Made by [`Kafka::consumer`](crate::Kafka::consumer) or
/// [`Kafka::consumer_without_group`](crate::Kafka::consumer_without_group).
///
/// All methods take `&self`; a consumer can be shared by tasks. Records of one partition are handed out in order, to
/// whichever task asks. With auto commit, one task should poll: a call of `poll` says that what the call before it
/// returned has been worked on.
///
/// Close it when you are done: a consumer that is dropped leaves its group only when its session ends.
///
/// ```
/// use std::time::Duration;
///
/// use krafka::consumer::AutoOffsetReset;
/// use krafka::testing::FakeCluster;
/// use krafka::{Environment, Kafka, Record};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(async {
/// let fake = FakeCluster::builder().nodes(3).topic("orders", 3).start_on_pipes();
/// let kafka = Kafka::builder(fake.bootstrap()).environment(Environment::new(fake.pipes(), 1)).connect().await?;
/// kafka.producer().build().await?.send(Record::new("orders", "tea")).await?;
///
/// let consumer = kafka.consumer("billing").auto_offset_reset(AutoOffsetReset::Earliest).build().await?;
/// consumer.subscribe(&["orders"]).await?;
/// let records = consumer.poll(Duration::from_secs(10)).await?;
/// assert_eq!(records[0].value.as_deref(), Some(&b"tea"[..]));
///
/// consumer.commit().await?;
/// consumer.close().await?;
/// # Ok::<_, krafka::KrafkaError>(())
/// # }).unwrap();
/// ```
pub struct Consumer {
    shared: Arc<Shared>,
    inputs: UnboundedSender<Input>,
    config: Arc<ConsumerConfig>,
    remote: Remote,
    /// Held by whoever decodes, so that a partition's records come in order.
    decoding: Mutex<Reading>,
}

struct Reading {
    decoding: Decoding,
    /// For `recv`: room for the one record.
    single: Vec<ConsumerRecord>,
}

impl Consumer {
    /// Returns the records that have arrived: at once if there are any, else as soon as there are, or none after
    /// `timeout`.
    ///
    /// At most `max_poll_records`, in order within each partition. A zero timeout only looks. The call also says that
    /// what earlier calls returned has been worked on: automatic commits go that far, and a rebalance that waits goes
    /// ahead.
    ///
    /// # Errors
    /// What stands in the way of some partition: [`KrafkaError::RecordDeserialization`] for a batch or record that
    /// does not decode, [`KrafkaError::NoOffset`] where there is no position and no reset policy. Such a partition
    /// waits for a [`seek`](Self::seek) while the others go on; the error comes once, and again whenever there is
    /// nothing else to return; likewise why a group refuses this member, until it subscribes anew. No
    /// permission. [`KrafkaError::IllegalState`] while there is neither a subscription nor an assignment.
    /// [`KrafkaError::Wakeup`] after [`wakeup`](Self::wakeup), [`KrafkaError::Closed`] after
    /// [`close`](Self::close).
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing: records are taken only when they are returned, and fetches go on.
    pub async fn poll(&self, timeout: Duration) -> Result<Vec<ConsumerRecord>> {
        let span = self.span();
        let polled = self.records(timeout).instrument(span.clone()).await;
        spans::polled(&span, &polled.as_ref().map(Vec::len));
        polled
    }

    /// The span of one call.
    fn span(&self) -> Span {
        spans::poll(&self.remote.client_id, self.remote.group.as_deref())
    }

    async fn records(&self, timeout: Duration) -> Result<Vec<ConsumerRecord>> {
        self.enter()?;
        let most = self.config.max_poll_records;
        let mut records = Vec::new();
        self.drain(most, &mut records)?;
        if records.is_empty() && !timeout.is_zero() {
            let deadline = drive::now().checked_add(timeout);
            self.wait(deadline, || {
                self.drain(most, &mut records)?;
                Ok((!records.is_empty()).then_some(()))
            })
            .await?;
        }
        if records.is_empty()
            && let Some(error) = self.shared.core().standstill()
        {
            return Err(error);
        }
        Ok(records)
    }

    /// Returns the next record, as soon as there is one.
    ///
    /// As [`poll`](Self::poll), one record at a time: calling it says that the record before has been worked on.
    ///
    /// # Errors
    /// As for [`poll`](Self::poll).
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn recv(&self) -> Result<ConsumerRecord> {
        self.enter()?;
        if let Some(record) = self.next_record()? {
            return Ok(record);
        }
        let span = self.span();
        let received = self.wait(None, || match self.next_record()? {
            Some(record) => Ok(Some(record)),
            None => self.shared.core().all_stand_still().map_or(Ok(None), Err),
        });
        let received = received.instrument(span.clone()).await;
        spans::polled(&span, &received.as_ref().map(|_| 1));
        Ok(received?.expect("waiting without a deadline ends with a record"))
    }

    /// Reads these partitions of a topic, in place of those of this topic that were assigned before.
    ///
    /// With a group, reading begins at its committed offsets; without, and where nothing is committed, where
    /// [`auto_offset_reset`](ConsumerBuilder::auto_offset_reset) says. Partitions that stay assigned keep their
    /// position.
    ///
    /// # Errors
    /// [`KrafkaError::UnknownTopic`], or a broker error that names the partition, if it does not exist and does not
    /// appear within five seconds. [`KrafkaError::Config`] for a name that no topic can have, and for a negative
    /// partition. [`KrafkaError::IllegalState`] while the consumer is subscribed.
    ///
    /// # Cancel safety
    /// Dropping the future assigns nothing.
    pub async fn assign(&self, topic: impl AsRef<str>, partitions: Vec<i32>) -> Result<()> {
        let topic: Arc<str> = topic.as_ref().into();
        self.check_mode("assign", |mode| !matches!(mode, Mode::Subscribed(_)))?;
        topic_name::check(&topic)?;
        if let Some(partition) = partitions.iter().find(|partition| **partition < 0) {
            let message = format!("assign: topic '{topic}' has no partition {partition}: they are numbered from 0");
            return Err(KrafkaError::config(message));
        }
        if !partitions.is_empty() {
            let name = Str::from(topic.clone());
            self.remote.existing(&name, &partitions, UNKNOWN_TOPIC_PATIENCE, self.config.api_timeout).await?;
        }
        self.check_mode("assign", |mode| !matches!(mode, Mode::Subscribed(_)))?;
        let mut core = self.shared.core();
        let old: Vec<_> = core.subscription.names().filter(|name| name.topic == topic).cloned().collect();
        for name in old.iter().filter(|name| !partitions.contains(&name.partition)) {
            core.unassign(name);
        }
        for name in partitions.into_iter().map(|partition| TopicPartition::new(topic.clone(), partition)) {
            if !old.contains(&name) {
                core.assign(name, Stage::Loading);
            }
        }
        core.mode = if core.subscription.is_empty() { Mode::Idle } else { Mode::Assigned };
        drop(core);
        self.tell(Input::Reassigned)
    }

    /// Shares these topics with the other members of the group, in place of those subscribed to before.
    ///
    /// Returns at once; the group is joined in the background, and [`poll`](Self::poll) returns records once it has
    /// given this consumer partitions. A topic that does not exist is no error: it is read when it appears.
    ///
    /// # Errors
    /// [`KrafkaError::IllegalState`] without a group, or while partitions are assigned by hand. [`KrafkaError::Config`]
    /// for a name that no topic can have.
    ///
    /// # Cancel safety
    /// It does not wait.
    pub async fn subscribe<T: AsRef<str>>(&self, topics: &[T]) -> Result<()> {
        self.group("subscribe")?;
        if topics.is_empty() {
            return self.unsubscribe().await;
        }
        let mut names: Vec<Arc<str>> = topics.iter().map(|topic| topic.as_ref().into()).collect();
        names.sort();
        names.dedup();
        names.iter().try_for_each(|name| topic_name::check(name))?;
        self.check_mode("subscribe", |mode| *mode != Mode::Assigned)?;
        let wanted = names.iter().map(|name| Str::from(name.clone())).collect();
        {
            let mut core = self.shared.core();
            core.mode = Mode::Subscribed(names);
            core.refusal = None;
        }
        self.tell(Input::Subscribed(wanted))
    }

    /// Gives up all partitions and, if it has subscribed, leaves the group. With auto commit, positions are committed
    /// first.
    ///
    /// # Errors
    /// [`KrafkaError::Closed`] after [`close`](Self::close).
    ///
    /// # Cancel safety
    /// Dropping the future only stops the waiting.
    pub async fn unsubscribe(&self) -> Result<()> {
        {
            let mut core = self.shared.core();
            core.mode = Mode::Idle;
            core.refusal = None;
        }
        self.ask(Input::Unsubscribed).await
    }

    /// Commits the positions: everything that `poll` and `recv` have returned.
    ///
    /// # Errors
    /// [`KrafkaError::IllegalState`] without a group. A broker error such as `ILLEGAL_GENERATION` when the group has
    /// given the partitions to another member. Errors that may pass are retried until `api_timeout`.
    ///
    /// # Cancel safety
    /// Dropping the future does not take the commit back.
    pub async fn commit(&self) -> Result<()> {
        self.group("commit")?;
        let deadline = drive::now() + self.config.api_timeout;
        self.ask(|ticket| Input::Commit { ticket, offsets: None, deadline }).await
    }

    /// Commits these offsets: for each partition, that of the next record to read.
    ///
    /// # Errors
    /// As for [`commit`](Self::commit), and [`KrafkaError::Config`] for a negative offset or partition, for a name that
    /// no topic can have, and for metadata of more than 32,767 bytes. A topic that does not exist is waited for until
    /// `api_timeout`, as by Java's `commitSync`: the coordinator may not have heard of it yet.
    ///
    /// # Cancel safety
    /// Dropping the future does not take the commit back.
    pub async fn commit_offsets<P, O>(&self, offsets: impl IntoIterator<Item = (P, O)>) -> Result<()>
    where
        P: Into<TopicPartition>,
        O: Into<OffsetAndMetadata>,
    {
        self.group("commit_offsets")?;
        let offsets: BTreeMap<_, _> = offsets.into_iter().map(|(name, offset)| (name.into(), offset.into())).collect();
        if let Some((name, offset)) = offsets.iter().find(|(_, offset)| offset.offset < 0) {
            return Err(KrafkaError::config(format!("commit_offsets: {} is no offset of {name}", offset.offset)));
        }
        for name in offsets.keys() {
            topic_name::check(&name.topic)?;
            if name.partition < 0 {
                let message = format!("commit_offsets: {name} is no partition: they are numbered from 0");
                return Err(KrafkaError::config(message));
            }
        }
        if let Some((name, offset)) = offsets.iter().find(|(_, offset)| offset.metadata.len() > MAX_STRING) {
            let given = offset.metadata.len();
            let message = format!("commit_offsets: the metadata of {name} have {given} bytes, of {MAX_STRING} at most");
            return Err(KrafkaError::config(message));
        }
        let deadline = drive::now() + self.config.api_timeout;
        self.ask(|ticket| Input::Commit { ticket, offsets: Some(offsets), deadline }).await
    }

    /// Returns what the group has committed for these partitions. Those without a committed offset are left out, and so
    /// are those that do not exist, as in Java.
    ///
    /// # Errors
    /// [`KrafkaError::IllegalState`] without a group; what the coordinator says, if it is not only for the moment.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping the future.
    pub async fn committed(
        &self,
        partitions: &[TopicPartition],
    ) -> Result<BTreeMap<TopicPartition, OffsetAndMetadata>> {
        let group = self.group("committed")?;
        if let Some(error) = &self.shared.core().closed {
            return Err(error.clone());
        }
        let deadline = drive::now() + self.config.api_timeout;
        loop {
            let names = partitions.iter().map(|name| (Str::from(name.topic.clone()), name.partition));
            let request = committed::request(&group, names);
            let error = match tokio::time::timeout_at(deadline.into(), self.remote.offset_fetch(request)).await {
                Ok(answer) => match answer.and_then(|answer| committed::all(&group, partitions, answer)) {
                    Ok(found) => return Ok(found),
                    Err(error) => error,
                },
                Err(_) => KrafkaError::timeout(format!("loading committed offsets of group '{group}' took too long")),
            };
            let next = drive::now() + self.config.fetch.backoff.base;
            if !error.is_retriable() || next >= deadline {
                return Err(error);
            }
            drive::sleep_until(Some(next)).await;
        }
    }

    /// Returns the offset of the next record of a partition. Waits until it is known, up to `api_timeout`.
    ///
    /// # Errors
    /// [`KrafkaError::IllegalState`] if the partition is not assigned; why it has no position, if it has none.
    ///
    /// # Cancel safety
    /// Nothing is lost by dropping the future.
    pub async fn position(&self, topic: impl AsRef<str>, partition: i32) -> Result<i64> {
        let name = TopicPartition::new(topic.as_ref(), partition);
        let deadline = drive::now() + self.config.api_timeout;
        let known = self.wait_until(Some(deadline), || {
            let core = self.shared.core();
            if let Some(error) = &core.closed {
                return Err(error.clone());
            }
            let partition = core.subscription.partition(&name).ok_or_else(|| not_assigned("position", &name))?;
            match &partition.stage {
                Stage::Stuck(error) if partition.position.offset < 0 => Err(error.clone()),
                Stage::Stuck(_) | Stage::Fetching | Stage::Validating => Ok(Some(partition.position.offset)),
                Stage::Loading | Stage::Resetting(_) => Ok(None),
            }
        });
        known.await?.ok_or_else(|| KrafkaError::timeout(format!("the position of {name} did not become known in time")))
    }

    /// Reads a partition on from this offset. It wins over whatever the consumer was doing there.
    ///
    /// With the leader epoch of the record before it ([`OffsetAndMetadata::leader_epoch`], as
    /// [`committed`](Self::committed) returns it, and as it may be kept beside what was made of the records), the
    /// leader is asked first whether its log is still the same up to there (KIP-320). If it is not, because records
    /// were lost with a leader and others written in their place, reading begins where that epoch ends now, or where
    /// the [reset policy](ConsumerBuilder::auto_offset_reset) says, if the leader knows nothing of that epoch. Without
    /// a policy [`poll`](Self::poll) says what is known, and the partition waits for another seek. By default, without
    /// an epoch, the offset is taken as it is.
    ///
    /// ```no_run
    /// # async fn example(consumer: krafka::Consumer) -> krafka::Result<()> {
    /// use krafka::consumer::OffsetAndMetadata;
    ///
    /// consumer.seek("orders", 0, 1_000).await?;
    /// consumer.seek("orders", 1, OffsetAndMetadata::new(1_000).leader_epoch(7)).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`KrafkaError::IllegalState`] if the partition is not assigned, [`KrafkaError::Config`] for a negative offset.
    /// An offset that the log does not have shows when it is fetched: then the reset policy decides.
    ///
    /// # Cancel safety
    /// It does not wait.
    pub async fn seek(
        &self,
        topic: impl AsRef<str>,
        partition: i32,
        offset: impl Into<OffsetAndMetadata>,
    ) -> Result<()> {
        let OffsetAndMetadata { offset, leader_epoch, .. } = offset.into();
        if offset < 0 {
            return Err(KrafkaError::config(format!("seek: {offset} is no offset")));
        }
        let name = TopicPartition::new(topic.as_ref(), partition);
        let position = Position::new(offset, leader_epoch.unwrap_or(-1).max(-1));
        self.change("seek", &name, |core, slot| core.seek(slot, position))
    }

    /// Reads a partition from its oldest record on.
    ///
    /// # Errors
    /// [`KrafkaError::IllegalState`] if the partition is not assigned.
    ///
    /// # Cancel safety
    /// It does not wait: the offset is looked up in the background.
    pub async fn seek_to_beginning(&self, topic: impl AsRef<str>, partition: i32) -> Result<()> {
        let name = TopicPartition::new(topic.as_ref(), partition);
        self.change("seek_to_beginning", &name, |core, slot| core.reset(slot, Start::Earliest))
    }

    /// Reads of a partition only what is written after the leader is asked, which happens in the background, at once.
    ///
    /// # Errors
    /// [`KrafkaError::IllegalState`] if the partition is not assigned.
    ///
    /// # Cancel safety
    /// It does not wait; [`position`](Self::position) does.
    pub async fn seek_to_end(&self, topic: impl AsRef<str>, partition: i32) -> Result<()> {
        let name = TopicPartition::new(topic.as_ref(), partition);
        self.change("seek_to_end", &name, |core, slot| core.reset(slot, Start::Latest))
    }

    /// Hands out nothing of these partitions until they are resumed. What is fetched is kept.
    ///
    /// # Errors
    /// [`KrafkaError::IllegalState`] if one is not assigned; then none is paused.
    pub fn pause(&self, partitions: &[TopicPartition]) -> Result<()> {
        self.set_paused("pause", partitions, true)
    }

    /// Hands out records of these partitions again.
    ///
    /// # Errors
    /// [`KrafkaError::IllegalState`] if one is not assigned; then none is resumed.
    pub fn resume(&self, partitions: &[TopicPartition]) -> Result<()> {
        self.set_paused("resume", partitions, false)
    }

    /// Returns the partitions that are paused, in order.
    pub fn paused(&self) -> Vec<TopicPartition> {
        let core = self.shared.core();
        let paused = core.subscription.iter().filter(|(_, partition)| partition.paused);
        paused.map(|(_, partition)| partition.name.clone()).collect()
    }

    /// Returns the partitions that are read at present, in order.
    pub fn assignment(&self) -> Vec<TopicPartition> {
        self.shared.core().subscription.names().cloned().collect()
    }

    /// Returns the topics subscribed to, in order.
    pub fn subscription(&self) -> Vec<Arc<str>> {
        match &self.shared.core().mode {
            Mode::Subscribed(topics) => topics.clone(),
            Mode::Idle | Mode::Assigned => Vec::new(),
        }
    }

    /// Returns how many records a partition has behind the position, as of the last fetch; `None` if that is not known.
    pub fn lag(&self, topic: impl AsRef<str>, partition: i32) -> Option<i64> {
        let name = TopicPartition::new(topic.as_ref(), partition);
        let core = self.shared.core();
        let partition = core.subscription.partition(&name).filter(|partition| partition.has_position())?;
        (partition.high_watermark >= 0).then(|| (partition.high_watermark - partition.position.offset).max(0))
    }

    /// Returns what the consumer did so far, in numbers.
    #[must_use]
    pub fn metrics(&self) -> ConsumerMetrics {
        self.shared.counters.read()
    }

    /// Ends one call of [`poll`](Self::poll) or [`recv`](Self::recv), now or the next, with [`KrafkaError::Wakeup`].
    /// No record is lost.
    pub fn wakeup(&self) {
        self.shared.core().woken = true;
        self.shared.arrivals.notify_waiters();
    }

    /// Commits the positions (with auto commit), calls the listener, leaves the group and ends the fetch sessions.
    ///
    /// All other calls fail from now on. It waits no longer than [`close_timeout`](ConsumerBuilder::close_timeout), and
    /// returns at once when the consumer is closed.
    ///
    /// # Errors
    /// Why the positions were not committed. The consumer is closed all the same.
    ///
    /// # Cancel safety
    /// Dropping the future only stops the waiting: the consumer closes.
    pub async fn close(&self) -> Result<()> {
        if self.shared.core().closed.replace(closed()).is_some() {
            return Ok(());
        }
        self.shared.arrivals.notify_waiters();
        let deadline = drive::now() + self.config.close_timeout;
        let (ticket, answer) = self.shared.ticket();
        if self.inputs.send(Input::Close { ticket, deadline }).is_err() {
            return Ok(());
        }
        answer.await.unwrap_or(Ok(()))
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        // The task ends with its last sender; what it owned at brokers runs out there.
        self.shared.core().closed.get_or_insert_with(closed);
    }
}

impl fmt::Debug for Consumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let group = self.config.group.as_ref().map(|group| &*group.id);
        f.debug_struct("Consumer")
            .field("group", &group)
            .field("assignment", &self.assignment())
            .finish_non_exhaustive()
    }
}

#[cold]
fn not_assigned(call: &str, name: &TopicPartition) -> KrafkaError {
    KrafkaError::illegal_state(format!("{call}: {name} is not assigned to this consumer; see assignment()"))
}
