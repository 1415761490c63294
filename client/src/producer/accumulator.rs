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
//! Compression happens outside of the lock, so sealed batches may reach the sender out of order; they are numbered under the
//! lock, and the sender puts them right.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use arc_swap::ArcSwap;
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
use super::metrics::Counters;
use super::partitioner::{Partitioner, Partitions, Sticky, partition_of_key};
use super::record::Record;
use super::sender::Input;
use crate::cluster::{Snapshot, TopicView};
use crate::error::{KrafkaError, Result};
use crate::network::Connection;
use crate::rng::Rng;

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
    Loaded(Arc<Snapshot>),
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
}

/// The topics that are loaded, by name.
type Table = hashbrown::HashMap<Str, Arc<Topic>>;

/// One topic, as callers see it. Replaced as a whole when the metadata changes.
struct Topic {
    partitions: Vec<Arc<Partition>>,
    available: Vec<i32>,
    sticky: Arc<Sticky>,
}

/// One partition: the batch that is open, if any.
struct Partition {
    destination: Arc<Destination>,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    batch: Option<OpenBatch>,
    next_number: u64,
    /// What the last batch grew to: the next one starts with a buffer of that size.
    last_len: usize,
    /// How much keyless records have brought since the partition was drawn.
    stuck_len: usize,
    is_closed: bool,
}

/// Every topic and partition that the producer ever met. Callers read [`Accumulator::table`] instead.
#[derive(Default)]
struct Registry {
    topics: BTreeMap<Str, Known>,
    partitions: Vec<Arc<Partition>>,
    is_closed: bool,
}

/// What callers and the producer's task share.
pub(super) struct Accumulator {
    settings: Settings,
    partitioner: Option<Box<dyn Partitioner>>,
    table: ArcSwap<Table>,
    registry: Mutex<Registry>,
    pub(super) memory: Memory,
    /// Whether records are refused.
    is_closed: AtomicBool,
    /// How many callers wait for memory.
    starving: AtomicUsize,
    generations: Generations,
    compressors: Mutex<Vec<Compressor>>,
    events: UnboundedSender<Input<Connection>>,
    pub(super) counters: Arc<Counters>,
    seed: u64,
}

impl Accumulator {
    pub(super) fn new(
        settings: Settings,
        partitioner: Option<Box<dyn Partitioner>>,
        events: UnboundedSender<Input<Connection>>,
        counters: Arc<Counters>,
        seed: u64,
    ) -> Self {
        Self {
            memory: Memory::new(settings.buffer_memory, settings.batch_size),
            settings,
            partitioner,
            table: ArcSwap::default(),
            registry: Mutex::default(),
            is_closed: AtomicBool::new(false),
            starving: AtomicUsize::new(0),
            generations: Generations::default(),
            compressors: Mutex::default(),
            events,
            counters,
            seed,
        }
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Appends a record to the open batch of its partition.
    ///
    /// `grant` is memory that the caller waited for; it is taken if a batch must be opened, and else left.
    ///
    /// # Errors
    ///
    /// If the record can never be sent, or the producer is closed.
    #[inline]
    pub(super) fn append(&self, record: &Record, time: &impl Time, grant: &mut Option<Lease>) -> Result<Append> {
        let len = self.check_size(record)?;
        let table = self.table.load();
        let Some(topic) = table.get(&*record.topic) else { return Ok(Append::NeedsTopic) };
        // Moving away from a sticky partition takes another turn, and may meet another task doing the same.
        loop {
            let is_sticky;
            let partition = if let Some(partition) = record.partition {
                is_sticky = false;
                partition
            } else if let Some(partitioner) = &self.partitioner {
                is_sticky = false;
                self.ask(&**partitioner, record, topic)?
            } else if let Some(key) = &record.key {
                is_sticky = false;
                partition_of_key(key, topic.partitions.len() as i32)
            } else {
                is_sticky = true;
                topic.sticky.current().unwrap_or_else(|| topic.switch(None))
            };
            let Some(partition) = usize::try_from(partition).ok().and_then(|at| topic.partitions.get(at)) else {
                return Ok(Append::NeedsTopic);
            };
            let mut open = partition.open();
            if open.is_closed {
                return Err(closed());
            }
            // What does not fit any more makes room, and is handed over when the lock is released.
            let full = open.batch.take_if(|batch| batch.encoded_len() + len > self.settings.batch_size);
            // Keyless records leave a partition between batches, so that they leave a full one behind.
            let is_stuck = full.is_some() || open.batch.is_none() && open.stuck_len >= self.settings.batch_size;
            if is_sticky && is_stuck && topic.available.len() > 1 {
                open.stuck_len = 0;
                drop(open);
                self.hand_over(partition, full);
                topic.switch(Some(partition.destination.partition));
                continue;
            }
            return self.append_to(partition, open, full, record, len, is_sticky.then_some(&**topic), time, grant);
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
    ) -> Result<Append> {
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
            return Ok(Append::NeedsMemory(needed));
        }
        let batch = open.batch.as_mut().expect("it was there, or was opened");
        let handle = batch.append(record, time);
        // Full for a record like this one is full: its successor is likely to be alike.
        let filled = open.batch.take_if(|batch| batch.encoded_len() + len > self.settings.batch_size);
        let mut left = None;
        if let Some(topic) = sticky {
            open.stuck_len += len;
            if filled.is_some() && topic.available.len() > 1 {
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
        let handle =
            handle.map_err(|error| KrafkaError::config(format!("a record for {}: {error}", record.topic())))?;
        Ok(Append::Done(handle))
    }

    /// The most that the record may take in a batch, if that is not too much.
    #[inline]
    fn check_size(&self, record: &Record) -> Result<usize> {
        let len = BatchBuilder::max_record_len(record.key.as_deref(), record.value.as_deref(), &record.headers);
        if len + HEADER_LEN > self.settings.max_request_size || len + HEADER_LEN + OVERHEAD > self.memory.total() {
            return Err(self.too_large(record, len + HEADER_LEN));
        }
        Ok(len)
    }

    #[cold]
    fn too_large(&self, record: &Record, len: usize) -> KrafkaError {
        let (limit, name, java) = if len > self.settings.max_request_size {
            (self.settings.max_request_size, "max_request_size", "max.request.size")
        } else {
            (self.memory.total(), "buffer_memory", "buffer.memory")
        };
        KrafkaError::config(format!(
            "a record of {len} bytes for topic '{}' is larger than {name} ({limit} bytes; Java's {java}): raise it, and the \
             topic's max.message.bytes with it, or send a smaller record",
            record.topic()
        ))
    }

    /// Asks the user's partitioner.
    fn ask(&self, partitioner: &dyn Partitioner, record: &Record, topic: &Topic) -> Result<i32> {
        let count = topic.partitions.len() as i32;
        let partition = partitioner.partition(record, &Partitions::new(count, &topic.available));
        if (0..count).contains(&partition) {
            return Ok(partition);
        }
        Err(KrafkaError::config(format!(
            "the partitioner chose partition {partition} for topic '{}', which has the partitions 0 to {}",
            record.topic(),
            count - 1
        )))
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
        // A partition that fills its batches gets a whole buffer at once, a used one if there is any. Others start small,
        // and double until they have a whole one.
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
                // Little memory: what was waited for is enough for this record, and the batch is sealed when it must grow.
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
        let Some(partition) = self.registry().partitions.get(slot).cloned() else { return };
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

    /// Loads a topic: callers may send to it from now on.
    pub(super) fn load(&self, view: &Arc<TopicView>) {
        let mut registry = self.registry();
        let mut table = (**self.table.load()).clone();
        table.insert(view.name.clone(), registry.topic(view, self.seed));
        self.table.store(Arc::new(table));
    }

    /// Takes note of what became of the topics that are loaded.
    pub(super) fn observe(&self, snapshot: &Snapshot) {
        let mut registry = self.registry();
        let names: Vec<_> = registry.topics.keys().cloned().collect();
        let mut table = None;
        for name in names {
            let known = &registry.topics[&name];
            match snapshot.topic(&name) {
                Some(view) if !known.is_gone && Arc::ptr_eq(view, &known.view) => {}
                Some(view) if view.partitions.is_empty() => {}
                Some(view) => {
                    let topic = registry.topic(view, self.seed);
                    topic.leave_leaderless();
                    table.get_or_insert_with(|| (**self.table.load()).clone()).insert(name, topic);
                }
                // Not mentioned at all means not asked about.
                None if known.is_gone || !snapshot.errors.contains_key(&name) => {}
                None => {
                    table.get_or_insert_with(|| (**self.table.load()).clone()).remove(&name);
                    registry.topics.entry(name).and_modify(|known| known.is_gone = true);
                }
            }
        }
        if let Some(table) = table {
            self.table.store(Arc::new(table));
        }
    }

    /// Refuses records from now on. What was accepted is in some batch, and the task will hear of all of them.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        let mut registry = self.registry();
        registry.is_closed = true;
        let partitions = registry.partitions.clone();
        drop(registry);
        self.memory.close();
        partitions.iter().for_each(|partition| partition.open().is_closed = true);
    }

    /// Fails what is still open. For when the producer's task ends before its time, as with its runtime.
    pub(super) fn abandon(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        self.memory.close();
        let open = self.registry().drain();
        // Outside of the lock: the callers that this wakes may look at the producer.
        drop(open);
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

    /// The topics that callers may send to.
    pub(super) fn loaded(&self) -> Vec<Str> {
        self.registry().topics.keys().cloned().collect()
    }

    /// How many partitions a topic has, if it is loaded.
    pub(super) fn partition_count(&self, topic: &str) -> Option<usize> {
        self.table.load().get(topic).map(|topic| topic.partitions.len())
    }

    pub(super) fn tell(&self, event: Event) {
        // Without its task the producer is closed, and what the event carries fails as it is dropped.
        let _ = self.events.send(Input::Event(event));
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A caller that waits for memory.
pub(super) struct Starving<'a>(&'a Accumulator);

impl Drop for Starving<'_> {
    fn drop(&mut self) {
        self.0.starving.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Topic {
    /// Moves keyless records away from a partition that lost its leader, if there is a better one.
    fn leave_leaderless(&self) {
        if let Some(current) = self.sticky.current()
            && !self.available.is_empty()
            && self.available.binary_search(&current).is_err()
        {
            self.switch(Some(current));
        }
    }

    /// Moves keyless records to another partition.
    #[inline(never)]
    fn switch(&self, left: Option<i32>) -> i32 {
        let partitions = Partitions::new(self.partitions.len() as i32, &self.available);
        let backlog = |at: i32| self.partitions[at as usize].destination.backlog.load(Ordering::Relaxed);
        self.sticky.switch(left, partitions, backlog)
    }
}

impl Partition {
    #[inline]
    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What stays of a topic while its metadata changes, even when it is deleted and created again.
struct Known {
    name: Arc<str>,
    /// What it was when it was last seen.
    view: Arc<TopicView>,
    /// Whether it is known not to exist any more.
    is_gone: bool,
    partitions: Vec<Arc<Partition>>,
    sticky: Arc<Sticky>,
}

impl Registry {
    /// The topic with what `view` says of it; partitions that were met before stay the same ones.
    fn topic(&mut self, view: &Arc<TopicView>, seed: u64) -> Arc<Topic> {
        let known = self.topics.entry(view.name.clone()).or_insert_with(|| Known {
            name: Arc::from(&*view.name),
            view: view.clone(),
            is_gone: false,
            partitions: Vec::new(),
            sticky: Arc::new(Sticky::new(Rng::stream(seed, &view.name))),
        });
        (known.view, known.is_gone) = (view.clone(), false);
        for index in known.partitions.len()..view.partitions.len() {
            let destination = Destination::new(self.partitions.len(), known.name.clone(), index as i32);
            let open = Mutex::new(Open { is_closed: self.is_closed, ..Open::default() });
            let partition = Arc::new(Partition { destination: Arc::new(destination), open });
            self.partitions.push(partition.clone());
            known.partitions.push(partition);
        }
        let led = view.partitions.iter().enumerate().filter(|(_, partition)| partition.leader.is_some());
        Arc::new(Topic {
            // A topic that was created again may have fewer than before.
            partitions: known.partitions[..view.partitions.len()].to_vec(),
            available: led.map(|(index, _)| index as i32).collect(),
            sticky: known.sticky.clone(),
        })
    }

    /// Takes what is open out of all partitions, and refuses more.
    fn drain(&mut self) -> Vec<OpenBatch> {
        self.is_closed = true;
        let close = |partition: &Arc<Partition>| {
            let mut open = partition.open();
            open.is_closed = true;
            open.batch.take()
        };
        self.partitions.iter().filter_map(close).collect()
    }
}

#[cold]
pub(super) fn closed() -> KrafkaError {
    KrafkaError::closed("the producer is closed: build another one to send")
}
