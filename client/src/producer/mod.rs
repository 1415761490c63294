//! Sends records: [`Producer`], its settings, and what it returns.
//!
//! ```text
//!   Producer ── partitioner ── accumulator: a batch per partition ── sender ◆, identity, outcome ── driver → network
//!      └─ DeliveryHandle ◀── delivery: a cell per batch ◀───────────────────┘
//! ```
//!
//! Records of one task to one partition are written in the order in which they were sent. A record that was
//! acknowledged is in the log once; one that failed says whether it may be there all the same.

mod accumulator;
mod batch;
mod builder;
mod delivery;
mod driver;
mod flush;
mod identity;
mod memory;
mod metrics;
mod outcome;
mod partitioner;
mod record;
mod sender;
mod topics;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};

use krafka_protocol::{ErrorCode, Str};
use tokio::time::timeout_at;

use self::accumulator::{Accumulator, Append, Event, closed};
use self::batch::Time;
pub use self::builder::{Acks, ProducerBuilder};
pub use self::delivery::DeliveryHandle;
use self::memory::Lease;
pub(crate) use self::metrics::ProducerCounters;
pub use self::metrics::ProducerMetrics;
pub use self::partitioner::{Partitioner, Partitions, murmur2};
pub use self::record::{Record, RecordMetadata};
use crate::drive;
use crate::environment::WallClock;
use crate::error::{KrafkaError, Result};
use crate::kafka::Kafka;
use crate::limits::finite;
use crate::topic_name;

/// Sends records to a Kafka cluster.
///
/// Made by [`Kafka::producer`]. Cheap to clone; clones share batches, memory and connections, and any number of tasks
/// may send at the same time. One producer a process is usually enough, and makes the best batches.
///
/// When the last clone is dropped without [`close`](Self::close), what was sent is still delivered in the background,
/// as long as the runtime lives.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> krafka::Result<()> {
/// # let fake = krafka::testing::FakeCluster::builder().topic("orders", 3).start().await.expect("ports are free");
/// # let kafka = krafka::Kafka::builder(fake.bootstrap()).connect().await?;
/// use krafka::Record;
///
/// let producer = kafka.producer().build().await?;
///
/// // One record, awaited.
/// let written = producer.send(Record::new("orders", "42 apples").key("customer-1")).await?;
/// println!("at {}-{} offset {}", written.topic, written.partition, written.offset);
///
/// // Many: enqueue waits for memory only, and the handles tell what became of them.
/// let mut handles = Vec::new();
/// for n in 0..1_000 {
///     handles.push(producer.enqueue(Record::new("orders", format!("order {n}"))).await?);
/// }
/// for handle in handles {
///     handle.await?;
/// }
///
/// producer.close().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Producer {
    inner: Arc<Inner>,
}

struct Inner {
    accumulator: Arc<Accumulator>,
    time: WallTime,
    kafka: Kafka,
}

/// The clocks of this client.
struct WallTime {
    clock: Arc<dyn WallClock>,
}

impl Time for WallTime {
    fn now(&self) -> Instant {
        drive::now()
    }

    fn wall_ms(&self) -> i64 {
        // Before 1970 is a clock that was never set.
        self.clock
            .now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |elapsed| elapsed.as_millis().try_into().unwrap_or(i64::MAX))
    }
}

impl Producer {
    /// Sends a record and waits until it is written.
    ///
    /// For throughput, keep several in flight: send from many tasks, or [`enqueue`](Self::enqueue).
    ///
    /// # Errors
    ///
    /// Before anything is queued: [`KrafkaError::Config`] for a record that is too large, or a name or partition that
    /// cannot exist; [`KrafkaError::UnknownTopic`] or [`KrafkaError::Timeout`] when the topic or memory did not
    /// become available within `max_block`; [`KrafkaError::Closed`]. After that, those of [`DeliveryHandle`].
    ///
    /// # Cancel safety
    ///
    /// If it is dropped while it waits for the topic or for memory, the record is not sent. After that it is on its
    /// way, and is delivered all the same; use [`enqueue`](Self::enqueue) to know which.
    pub async fn send(&self, record: Record) -> Result<RecordMetadata> {
        self.enqueue(record).await?.await
    }

    /// Puts a record into a batch and returns a handle that tells what becomes of it.
    ///
    /// Waits only while the topic is not loaded yet or `buffer_memory` is used up. Calls that one task makes one after
    /// another keep their order within a partition, whether or not the handles are awaited.
    ///
    /// # Errors
    ///
    /// Those of [`send`](Self::send) that come before anything is queued.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped before it returns, the record is not sent, and nothing it waited for is taken.
    #[inline]
    pub async fn enqueue(&self, record: Record) -> Result<DeliveryHandle> {
        let inner = &*self.inner;
        match inner.accumulator.append(&record, &inner.time, &mut None) {
            Append::Done(handle) => Ok(handle),
            // Boxed, to keep the future of the usual case small.
            blocked => Box::pin(self.wait(record, blocked)).await,
        }
    }

    /// Waits until every record that was sent before is acknowledged or failed. Records sent meanwhile are not waited
    /// for.
    ///
    /// Nothing lingers while somebody flushes. What became of each record is told by its handle.
    ///
    /// # Errors
    ///
    /// None at present: a record that failed has said so through its handle.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops the waiting, not the sending.
    pub async fn flush(&self) -> Result<()> {
        let earlier = self.inner.accumulator.generations().close();
        self.inner.accumulator.tell(Event::Flushed);
        earlier.await;
        Ok(())
    }

    /// Refuses further records, and waits until those that were sent are acknowledged or failed, for which each has
    /// `delivery_timeout` at most. All clones are closed.
    ///
    /// # Errors
    ///
    /// None at present. Closing a closed producer waits likewise.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops the waiting; the producer stays closed, and what was sent is delivered in the
    /// background.
    pub async fn close(&self) -> Result<()> {
        self.close_by(None).await
    }

    /// As [`close`](Self::close), but what is not acknowledged within `timeout` fails with [`KrafkaError::Closed`],
    /// which says whether it may have been written.
    ///
    /// # Errors
    ///
    /// None at present.
    ///
    /// # Cancel safety
    ///
    /// As [`close`](Self::close); the timeout stands.
    pub async fn close_within(&self, timeout: Duration) -> Result<()> {
        self.close_by(Some(drive::now() + finite(timeout))).await
    }

    async fn close_by(&self, deadline: Option<Instant>) -> Result<()> {
        let accumulator = &self.inner.accumulator;
        accumulator.close();
        let earlier = accumulator.generations().close();
        accumulator.tell(Event::Closed { deadline });
        earlier.await;
        Ok(())
    }

    /// Returns what the producer did so far, in numbers.
    #[must_use]
    pub fn metrics(&self) -> ProducerMetrics {
        self.inner.accumulator.counters.read()
    }

    /// Returns how much of `buffer_memory` is free at the moment.
    #[must_use]
    pub fn buffer_available(&self) -> usize {
        self.inner.accumulator.memory.available()
    }

    /// Gets past what keeps a record from being appended, within `max_block`.
    async fn wait(&self, record: Record, mut blocked: Append) -> Result<DeliveryHandle> {
        let accumulator = &self.inner.accumulator;
        let max_block = accumulator.settings().max_block;
        let deadline = drive::now() + max_block;
        let mut seen = Seen::Nothing;
        loop {
            let mut grant = None;
            match blocked {
                Append::Done(handle) => return Ok(handle),
                Append::Refused(error) => return Err(*error),
                Append::NeedsTopic => {
                    seen = self.load(&record, deadline, seen).await?;
                }
                Append::NeedsMemory(needed) => {
                    let _starving = accumulator.starve();
                    let line = accumulator.memory.line();
                    let permits = u32::try_from(needed).unwrap_or(u32::MAX);
                    grant = match timeout_at(deadline.into(), line.acquire_many_owned(permits)).await {
                        Ok(Ok(permit)) => Some(Lease::from(permit)),
                        Ok(Err(_)) => return Err(closed()),
                        Err(_) => return Err(no_memory(&record, max_block, accumulator.memory.total())),
                    };
                }
            }
            blocked = accumulator.append(&record, &self.inner.time, &mut grant);
        }
    }

    /// Loads the topic of a record. If a broker was asked for it just before, and it still does not have the partition,
    /// that is an error.
    async fn load(&self, record: &Record, deadline: Instant, seen: Seen) -> Result<Seen> {
        let (accumulator, cluster) = (&self.inner.accumulator, self.inner.kafka.cluster());
        let name = &record.topic;
        topic_name::check(name)?;
        let topic = accumulator.topics.get(name.as_bytes());
        let missing = record.partition.zip(topic).filter(|(partition, topic)| topic.partition(*partition).is_none());
        // One that rests, or was deleted meanwhile, is to be asked about first.
        let is_final =
            |(partition, topic): &(i32, &topics::Topic)| *partition < 0 || seen == Seen::Asked && topic.count() > 0;
        if let Some((partition, topic)) = missing.filter(is_final) {
            let count = topic.count();
            return Err(KrafkaError::config(format!(
                "topic '{name}' has no partition {partition}: it has {count}, numbered from 0"
            )));
        }
        let (mut last, topics) = (None, std::slice::from_ref(name));
        // Somebody else may have loaded it since it was looked for.
        let may_be_known = topic.is_none() || (seen == Seen::Nothing && missing.is_none());
        let mut next = if may_be_known { Seen::Known } else { Seen::Asked };
        let mut loading = async || {
            let seen = std::mem::replace(&mut next, Seen::Asked);
            let loaded = match seen {
                Seen::Asked => cluster.load(topics).await,
                _ => cluster.known(topics).await,
            };
            (seen, loaded)
        };
        while let Ok((seen, loaded)) = timeout_at(deadline.into(), loading()).await {
            if accumulator.is_closed() {
                return Err(closed());
            }
            match loaded {
                Ok(snapshot) => {
                    if let Some(view) = snapshot.topic(name).filter(|view| !view.partitions.is_empty()) {
                        accumulator.topics.load(view);
                        accumulator.tell(Event::Loaded { topic: name.clone(), snapshot });
                        return Ok(seen);
                    }
                    match snapshot.errors.get(name) {
                        Some(code @ (&ErrorCode::TOPIC_AUTHORIZATION_FAILED | &ErrorCode::INVALID_TOPIC_EXCEPTION)) => {
                            return Err(KrafkaError::broker(*code, format!("loading topic '{name}' to produce to it")));
                        }
                        // Perhaps it is just being created, here or by the broker.
                        _ => last = Some(KrafkaError::UnknownTopic { topic: Arc::from(&**name) }),
                    }
                }
                Err(error) if !error.is_retriable() => return Err(error),
                Err(error) => last = Some(error),
            }
        }
        Err(match last {
            Some(unknown @ KrafkaError::UnknownTopic { .. }) => unknown,
            last => no_metadata(name, accumulator.settings().max_block, last),
        })
    }
}

/// What is known of a record's topic, as far as its caller has looked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Nothing,
    /// What the handle knew, which may be old.
    Known,
    /// What a broker was asked for.
    Asked,
}

#[cold]
fn no_memory(record: &Record, max_block: Duration, total: usize) -> KrafkaError {
    KrafkaError::timeout(format!(
        "sending to topic '{}': no memory became free within {max_block:?} (max_block): all of buffer_memory \
         ({total} bytes) is taken by records that are not acknowledged; slow down, or raise it",
        record.topic()
    ))
}

#[cold]
fn no_metadata(name: &Str, max_block: Duration, last: Option<KrafkaError>) -> KrafkaError {
    let why = last.map_or_else(String::new, |error| format!(": {error}"));
    KrafkaError::timeout(format!(
        "sending to topic '{name}': its metadata did not come within {max_block:?} (max_block){why}"
    ))
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.accumulator.close();
        self.accumulator.tell(Event::Closed { deadline: None });
    }
}

impl fmt::Debug for Producer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer").field("kafka", &self.inner.kafka).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use krafka_protocol::{ApiKey, MetadataRequest};

    use super::*;
    use crate::testing::{Clients, FakeCluster};

    /// MD-01: of two tasks that miss a topic, the one may have loaded it before the other asks.
    #[tokio::test(start_paused = true)]
    async fn a_topic_that_was_loaded_in_between_is_not_asked_for() {
        let fake = FakeCluster::builder().topic("orders", 2).start_on_pipes();
        let kafka = fake.client().connect().await.expect("it is up");
        let producer = kafka.producer().build().await.expect("valid");
        producer.send(Record::new("orders", "tea")).await.expect("written");
        let asked = fake.history().requests::<MetadataRequest>().count();

        for record in [Record::new("orders", "milk"), Record::new("orders", "sugar").partition(1)] {
            let handle = producer.wait(record, Append::NeedsTopic).await.expect("a place in a batch");
            handle.await.expect("written");
        }
        assert_eq!(fake.history().requests::<MetadataRequest>().count(), asked);

        let missing = producer.wait(Record::new("orders", "salt").partition(2), Append::NeedsTopic).await;
        assert!(missing.expect_err("there are two").to_string().contains("it has 2, numbered from 0"));
        assert_eq!(fake.history().count(ApiKey::Metadata), asked + 1, "partitions may have been added");
    }
}
