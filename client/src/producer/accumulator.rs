//! Where callers put their records: one open batch per partition, behind a lock held for nanoseconds.
//!
//! The caller's thread encodes the record into the batch, and seals and compresses a batch that is full. The producer's
//! task hears of batches only, and seals what does not fill in time:
//!
//! ```text
//!     append ──▶ open batch ──┬─ full: by the caller that filled it ──┬──▶ Sealed ──▶ sender
//!                             └─ linger, flush: by the task ──────────┘
//! ```
//!
//! Compression happens outside of the lock, so sealed batches may reach the sender out of order; they are numbered
//! under the lock, and the sender puts them right.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use bytes::BytesMut;
use krafka_protocol::Str;
use krafka_protocol::compression::Compressor;
use krafka_protocol::records::{BatchBuilder, HEADER_LEN};
use tokio::sync::mpsc::UnboundedSender;

use super::batch::{Batch, OpenBatch, Time};
use super::builder::Settings;
use super::delivery::{DeliveryHandle, Destination, Receipt};
use super::flush::Generations;
use super::memory::{Lease, Memory, OVERHEAD};
use super::metrics::ProducerCounters;
use super::partitioner::{Partitioner, Partitions, partition_of_key};
use super::record::Record;
use super::sender::Input;
use super::topics::{Open, Partition, Topic, Topics};
use crate::cluster::Snapshot;
use crate::error::{KrafkaError, Result};
use crate::network::Connection;

/// What the producer's task hears of.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "the large one is the usual one, and moves once")]
pub(super) enum Event {
    /// A batch was opened: its linger and its delivery timeout began.
    Opened {
        destination: Arc<Destination>,
        number: u64,
        at: Instant,
        /// Somebody waits for memory, so that it should not linger.
        is_hurried: bool,
    },
    /// A batch was sealed; there is none if it could not be.
    Sealed { slot: usize, number: u64, batch: Option<Batch> },
    /// Somebody waits for memory: nothing should linger.
    Starved,
    /// Somebody flushes: nothing should linger, or take more records.
    Flushed,
    /// A topic was loaded, and records for it will follow.
    Loaded { topic: Str, snapshot: Arc<Snapshot> },
    /// The producer takes no more records. What it has is sent until the deadline, if any.
    Closed { deadline: Option<Instant> },
}

/// What became of an attempt to append.
pub(super) enum Append {
    Done(DeliveryHandle),
    /// The topic is not loaded, or has no such partition as far as it is known.
    NeedsTopic,
    /// There is no memory for another batch: come back with that much.
    NeedsMemory(usize),
    /// The record can never be sent, or the producer is closed. Boxed, so that the usual case is small.
    Refused(Box<KrafkaError>),
}

/// What callers and the producer's task share.
pub(super) struct Accumulator {
    settings: Settings,
    partitioner: Option<Box<dyn Partitioner>>,
    /// The most that a record may take.
    most: usize,
    pub(super) topics: Topics,
    pub(super) memory: Memory,
    /// Whether records are refused.
    is_closed: AtomicBool,
    /// How many callers wait for memory.
    starving: AtomicUsize,
    generations: Generations,
    compressors: Mutex<Vec<Compressor>>,
    events: UnboundedSender<Input<Connection>>,
    pub(super) counters: Arc<ProducerCounters>,
}

impl Accumulator {
    pub(super) fn new(
        settings: Settings,
        partitioner: Option<Box<dyn Partitioner>>,
        events: UnboundedSender<Input<Connection>>,
        counters: Arc<ProducerCounters>,
        seed: u64,
    ) -> Self {
        let memory = Memory::new(settings.buffer_memory, settings.batch_size);
        Self {
            most: settings.max_request_size.min(memory.total() - OVERHEAD) - HEADER_LEN,
            memory,
            settings,
            partitioner,
            topics: Topics::new(seed),
            is_closed: AtomicBool::new(false),
            starving: AtomicUsize::new(0),
            generations: Generations::default(),
            compressors: Mutex::default(),
            events,
            counters,
        }
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Appends a record to the open batch of its partition.
    ///
    /// `grant` is memory that the caller waited for; it is taken if a batch must be opened, and else left.
    #[inline]
    pub(super) fn append(&self, record: &Record, time: &impl Time, grant: &mut Option<Lease>) -> Append {
        let len = BatchBuilder::max_record_len(record.key.as_deref(), record.value.as_deref(), &record.headers);
        if len > self.most {
            return self.too_large(record, len + HEADER_LEN);
        }
        if let Some(negative) = record.timestamp_ms.filter(|timestamp| *timestamp < 0) {
            return no_such_time(record, negative);
        }
        let Some(topic) = self.topics.get(record.topic.as_bytes()) else { return Append::NeedsTopic };
        // Moving away from a sticky partition takes another turn, and may meet another task doing the same.
        loop {
            // Once for a record: while it is placed, the topic may be put to rest, or come back with more.
            let count = topic.count();
            if count == 0 {
                return Append::NeedsTopic;
            }
            let mut sticky = None;
            let partition = if let Some(partition) = record.partition {
                partition
            } else if let Some(partitioner) = &self.partitioner {
                match ask(&**partitioner, record, topic, count) {
                    Ok(partition) => partition,
                    Err(error) => return Append::Refused(Box::new(error)),
                }
            } else if let Some(key) = &record.key {
                partition_of_key(key, count)
            } else {
                sticky = Some(topic);
                topic.sticky()
            };
            let Some(partition) = topic.partition(partition) else { return Append::NeedsTopic };
            let mut open = partition.open();
            if open.is_closed {
                return Append::Refused(Box::new(closed()));
            }
            // What does not fit any more makes room, and is handed over when the lock is released.
            let full = open.batch.take_if(|batch| batch.encoded_len() + len > self.settings.batch_size);
            // Keyless records leave a partition between batches, so that they leave a full one behind.
            let is_stuck = full.is_some() || open.batch.is_none() && open.stuck_len >= self.settings.batch_size;
            if is_stuck && sticky.is_some_and(Topic::has_choice) {
                open.stuck_len = 0;
                drop(open);
                self.hand_over(partition, full);
                topic.switch(Some(partition.destination.partition));
                continue;
            }
            return self.append_to(partition, open, full, record, len, sticky, time, grant);
        }
    }

    #[inline]
    #[expect(clippy::too_many_arguments, reason = "the second half of one function, split where the lock is taken")]
    fn append_to(
        &self,
        partition: &Partition,
        mut open: MutexGuard<'_, Open>,
        mut full: Option<OpenBatch>,
        record: &Record,
        len: usize,
        sticky: Option<&Topic>,
        time: &impl Time,
        grant: &mut Option<Lease>,
    ) -> Append {
        if let Some(batch) = &mut open.batch
            && batch.encoded_len() + len > batch.capacity()
            && !self.grow(batch, len)
        {
            full = open.batch.take();
        }
        if open.batch.is_none()
            && let Err(needed) = self.open_batch(partition, &mut open, len, time, grant)
        {
            drop(open);
            self.hand_over(partition, full);
            return Append::NeedsMemory(needed);
        }
        let batch = open.batch.as_mut().expect("it was there, or was opened");
        let handle = batch.append(record, time);
        // Full for a record like this one is full: its successor is likely to be alike.
        let filled = open.batch.take_if(|batch| batch.encoded_len() + len > self.settings.batch_size);
        let mut left = None;
        if let Some(topic) = sticky {
            open.stuck_len += len;
            if filled.is_some() && topic.has_choice() {
                open.stuck_len = 0;
                left = Some(topic);
            }
        }
        if let Some(filled) = &filled {
            open.last_len = filled.encoded_len();
        }
        drop(open);
        self.hand_over(partition, full);
        self.hand_over(partition, filled);
        if let Some(topic) = left {
            topic.switch(Some(partition.destination.partition));
        }
        match handle {
            Ok(handle) => Append::Done(handle),
            Err(error) => {
                let message = format!("a record for topic '{}': {error}", record.topic());
                Append::Refused(Box::new(KrafkaError::config(message)))
            }
        }
    }

    #[cold]
    fn too_large(&self, record: &Record, len: usize) -> Append {
        let (limit, name, java) = if len > self.settings.max_request_size {
            (self.settings.max_request_size, "max_request_size", "max.request.size")
        } else {
            (self.memory.total(), "buffer_memory", "buffer.memory")
        };
        Append::Refused(Box::new(KrafkaError::config(format!(
            "a record of {len} bytes for topic '{}' is larger than {name} ({limit} bytes; Java's {java}): raise it, \
             and the topic's max.message.bytes with it, or send a smaller record",
            record.topic()
        ))))
    }

    /// Lets the buffer of an open batch double, if there is memory for that.
    fn grow(&self, batch: &mut OpenBatch, len: usize) -> bool {
        let grown = (2 * batch.capacity()).max(batch.encoded_len() + len);
        match self.memory.try_lease(grown - batch.capacity()) {
            Ok(lease) => {
                batch.grow(lease);
                true
            }
            Err(_) => false,
        }
    }

    /// Opens a batch with room for a record of `len`, or tells how much memory that takes.
    #[inline(never)]
    fn open_batch(
        &self,
        partition: &Partition,
        open: &mut Open,
        len: usize,
        time: &impl Time,
        grant: &mut Option<Lease>,
    ) -> Result<(), usize> {
        let least = HEADER_LEN + len;
        let likely = open.last_len.clamp(least, self.settings.batch_size.max(least));
        // A partition that fills its batches gets a whole buffer at once, a used one if there is any. Others start
        // small, and double until they have a whole one.
        let mut buffer = if 2 * likely > self.settings.batch_size { self.memory.spare() } else { None };
        let capacity = match &buffer {
            Some(buffer) if buffer.capacity() >= least => buffer.capacity(),
            _ => {
                let mut capacity = self.settings.batch_size.max(least);
                while capacity / 2 >= likely {
                    capacity /= 2;
                }
                buffer = None;
                capacity
            }
        };
        let lease = match self.memory.try_lease(capacity + OVERHEAD) {
            Ok(lease) => lease,
            Err(_) => {
                // Little memory: what was waited for is enough for this record, and the batch is sealed when it must
                // grow.
                buffer = None;
                let needed = least + OVERHEAD;
                grant.take().filter(|grant| grant.len() >= needed).ok_or(needed)?
            }
        };
        let buffer = buffer.unwrap_or_else(|| BytesMut::with_capacity(lease.len() - OVERHEAD));
        let (now, number) = (time.now(), open.next_number);
        open.next_number += 1;
        let receipt = Receipt::new(partition.destination.clone(), self.generations.token());
        open.batch = Some(OpenBatch::new(buffer, receipt, lease, number, now));
        let is_hurried = self.starving.load(Ordering::Relaxed) > 0;
        self.tell(Event::Opened { destination: partition.destination.clone(), number, at: now, is_hurried });
        Ok(())
    }

    /// Seals the open batch of a partition if it is still this one.
    pub(super) fn seal(&self, slot: usize, number: u64) {
        let Some(partition) = self.topics.partition(slot) else { return };
        let mut open = partition.open();
        let batch = open.batch.take_if(|batch| batch.number() == number);
        if let Some(batch) = &batch {
            open.last_len = batch.encoded_len();
        }
        drop(open);
        self.hand_over(&partition, batch);
    }

    /// Compresses a batch that is open no more, and passes it to the producer's task.
    #[inline]
    fn hand_over(&self, partition: &Partition, batch: Option<OpenBatch>) {
        if let Some(batch) = batch {
            self.compress(partition, batch);
        }
    }

    #[inline(never)]
    fn compress(&self, partition: &Partition, batch: OpenBatch) {
        let number = batch.number();
        let mut compressor = self.compressor();
        let batch = batch.seal(&mut compressor, &partition.destination);
        self.keep_compressor(compressor);
        self.tell(Event::Sealed { slot: partition.destination.slot, number, batch });
    }

    /// A compressor that nobody else uses. They are kept, for their tables are large.
    pub(super) fn compressor(&self) -> Compressor {
        let kept = self.compressors.lock().unwrap_or_else(PoisonError::into_inner).pop();
        kept.unwrap_or_else(|| self.settings.compressor().expect("the builder made one with the same settings"))
    }

    pub(super) fn keep_compressor(&self, compressor: Compressor) {
        self.compressors.lock().unwrap_or_else(PoisonError::into_inner).push(compressor);
    }

    /// Refuses records from now on. What was accepted is in some batch, and the task will hear of all of them.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        self.memory.close();
        self.topics.close();
    }

    /// Fails what is still open. For when the producer's task ends before its time, as with its runtime.
    pub(super) fn abandon(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        self.memory.close();
        drop(self.topics.drain());
    }

    /// What waits for the batches that exist now. The task must hear of the flush, too.
    pub(super) fn generations(&self) -> &Generations {
        &self.generations
    }

    /// Whether records are refused. One that gets past this look meets the closed partition.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// Marks the caller as waiting for memory until the returned value is dropped.
    pub(super) fn starve(&self) -> Starving<'_> {
        self.starving.fetch_add(1, Ordering::Relaxed);
        self.tell(Event::Starved);
        Starving(self)
    }

    pub(super) fn tell(&self, event: Event) {
        // Without its task the producer is closed, and what the event carries fails as it is dropped.
        let _ = self.events.send(Input::Event(event));
    }
}

/// A caller that waits for memory.
pub(super) struct Starving<'a>(&'a Accumulator);

impl Drop for Starving<'_> {
    fn drop(&mut self) {
        self.0.starving.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cold]
fn no_such_time(record: &Record, timestamp_ms: i64) -> Append {
    let message = format!(
        "a record for topic '{}' has the timestamp {timestamp_ms}: it must not be negative; leave it out for the time \
         of sending",
        record.topic()
    );
    Append::Refused(Box::new(KrafkaError::config(message)))
}

/// Asks the user's partitioner.
fn ask(partitioner: &dyn Partitioner, record: &Record, topic: &Topic, count: i32) -> Result<i32> {
    let partition = partitioner.partition(record, &Partitions::new(count, &topic.available()));
    if (0..count).contains(&partition) {
        return Ok(partition);
    }
    Err(KrafkaError::config(format!(
        "the partitioner chose partition {partition} for topic '{}', which has the partitions 0 to {}",
        record.topic(),
        count - 1
    )))
}

#[cold]
pub(super) fn closed() -> KrafkaError {
    KrafkaError::closed("the producer is closed: build another one to send")
}
