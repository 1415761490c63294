//! The topics that a producer sends to, and their partitions, as callers see them.
//!
//! A topic is looked up for each record. So that this takes neither a lock nor a shared counter, the table only
//! grows, a topic's partitions only grow, and what does change of a topic is kept in atomics. Everything that changes
//! them holds the [`Registry`].

use std::collections::BTreeSet;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use arc_swap::ArcSwap;
use hashbrown::DefaultHashBuilder;
use krafka_protocol::Str;

use super::batch::OpenBatch;
use super::delivery::Destination;
use super::partitioner::{Partitions, Sticky};
use crate::cluster::{Snapshot, TopicView};
use crate::rng::Rng;

/// All topics that were ever loaded, by name.
pub(super) struct Topics {
    buckets: Box<[OnceLock<Box<Entry>>]>,
    /// Seeded by chance, which nobody sees: the table is never walked.
    hasher: DefaultHashBuilder,
    registry: Mutex<Registry>,
    seed: u64,
}

/// A topic, and the next one in its bucket.
struct Entry {
    topic: Topic,
    next: OnceLock<Box<Self>>,
}

/// What changes are made under.
#[derive(Default)]
struct Registry {
    /// Topics that were loaded and are sent to.
    names: BTreeSet<Str>,
    /// By slot.
    partitions: Vec<Arc<Partition>>,
    is_closed: bool,
}

/// One topic.
pub(super) struct Topic {
    name: Str,
    /// How many partitions it has at present; 0 while it does not exist, or rests.
    count: AtomicI32,
    partitions: OnceLock<Box<Segment>>,
    sticky: Sticky,
    /// The partitions with a leader.
    available: ArcSwap<Vec<i32>>,
    /// What it was when it was seen last.
    view: Mutex<Option<Arc<TopicView>>>,
}

/// Partitions that became known together, and those that were added later.
struct Segment {
    partitions: Vec<Arc<Partition>>,
    next: OnceLock<Box<Self>>,
}

/// One partition: the batch that is open, if any.
pub(super) struct Partition {
    pub(super) destination: Arc<Destination>,
    open: Mutex<Open>,
}

/// What callers append to.
#[derive(Default)]
pub(super) struct Open {
    pub(super) batch: Option<OpenBatch>,
    pub(super) next_number: u64,
    /// What the last batch grew to: the next one starts with a buffer of that size.
    pub(super) last_len: usize,
    /// How much keyless records have brought since the partition was drawn.
    pub(super) stuck_len: usize,
    pub(super) is_closed: bool,
}

impl Topics {
    /// Enough that thousands of topics make short chains, and 16 KiB.
    const BUCKETS: usize = 1024;

    pub(super) fn new(seed: u64) -> Self {
        let buckets = (0..Self::BUCKETS).map(|_| OnceLock::new()).collect();
        Self { buckets, hasher: DefaultHashBuilder::default(), registry: Mutex::default(), seed }
    }

    /// The topic of that name, if it was ever loaded.
    #[inline]
    pub(super) fn get(&self, name: &[u8]) -> Option<&Topic> {
        let mut entry = self.bucket(name).get()?;
        while entry.topic.name.as_bytes() != name {
            entry = entry.next.get()?;
        }
        Some(&entry.topic)
    }

    #[inline]
    fn bucket(&self, name: &[u8]) -> &OnceLock<Box<Entry>> {
        &self.buckets[self.hasher.hash_one(name) as usize % Self::BUCKETS]
    }

    /// Takes note of what a topic is: callers may send to it from now on.
    pub(super) fn load(&self, view: &Arc<TopicView>) {
        let mut registry = self.registry();
        let mut cell = self.bucket(view.name.as_bytes());
        let topic = loop {
            let entry = cell
                .get_or_init(|| Box::new(Entry { topic: Topic::new(&view.name, self.seed), next: OnceLock::new() }));
            if entry.topic.name == view.name {
                break &entry.topic;
            }
            cell = &entry.next;
        };
        registry.names.insert(view.name.clone());
        topic.show(view, &mut registry);
    }

    /// Has callers load a topic anew before they send to it.
    pub(super) fn rest(&self, name: &Str) {
        let mut registry = self.registry();
        registry.names.remove(name);
        self.get(name.as_bytes()).into_iter().for_each(Topic::hide);
    }

    /// Takes note of what became of the topics that are loaded.
    pub(super) fn observe(&self, snapshot: &Snapshot) {
        let mut registry = self.registry();
        let names = registry.names.clone();
        for topic in names.iter().filter_map(|name| self.get(name.as_bytes())) {
            match snapshot.topic(&topic.name) {
                Some(view) if !view.partitions.is_empty() => topic.show(view, &mut registry),
                // Not mentioned at all means not asked about.
                None if snapshot.errors.contains_key(&topic.name) => topic.hide(),
                _ => {}
            }
        }
    }

    /// The partition of a slot.
    pub(super) fn partition(&self, slot: usize) -> Option<Arc<Partition>> {
        self.registry().partitions.get(slot).cloned()
    }

    /// Refuses records to all partitions, present and future.
    pub(super) fn close(&self) {
        let mut registry = self.registry();
        registry.is_closed = true;
        let partitions = registry.partitions.clone();
        drop(registry);
        partitions.iter().for_each(|partition| partition.open().is_closed = true);
    }

    /// Refuses records, and takes out what is open.
    pub(super) fn drain(&self) -> Vec<OpenBatch> {
        self.close();
        let partitions = self.registry().partitions.clone();
        partitions.iter().filter_map(|partition| partition.open().batch.take()).collect()
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Topic {
    fn new(name: &Str, seed: u64) -> Self {
        Self {
            name: name.clone(),
            count: AtomicI32::new(0),
            partitions: OnceLock::new(),
            sticky: Sticky::new(Rng::stream(seed, name)),
            available: ArcSwap::default(),
            view: Mutex::default(),
        }
    }

    /// How many partitions it has; 0 while it does not exist, or rests.
    #[inline]
    pub(super) fn count(&self) -> i32 {
        self.count.load(Ordering::Acquire)
    }

    /// A partition by its number, if there is one.
    #[inline]
    pub(super) fn partition(&self, index: i32) -> Option<&Arc<Partition>> {
        if !(0..self.count()).contains(&index) {
            return None;
        }
        let mut index = index as usize;
        let mut segment = self.partitions.get()?;
        loop {
            match segment.partitions.get(index) {
                Some(partition) => return Some(partition),
                None => index -= segment.partitions.len(),
            }
            segment = segment.next.get()?;
        }
    }

    /// The partition that keyless records go to at present.
    #[inline]
    pub(super) fn sticky(&self) -> i32 {
        self.sticky.current().unwrap_or_else(|| self.switch(None))
    }

    /// Moves keyless records to another partition.
    #[inline(never)]
    pub(super) fn switch(&self, left: Option<i32>) -> i32 {
        let available = self.available.load();
        let backlog = |index: i32| {
            self.partition(index).map_or(0, |partition| partition.destination.backlog.load(Ordering::Relaxed))
        };
        self.sticky.switch(left, Partitions::new(self.count().max(1), &available), backlog)
    }

    /// Whether keyless records have more than one partition to go to.
    pub(super) fn has_choice(&self) -> bool {
        self.available.load().len() > 1
    }

    /// The partitions with a leader.
    pub(super) fn available(&self) -> Arc<Vec<i32>> {
        self.available.load_full()
    }

    /// Takes over what the metadata says. Partitions that were met before stay the same ones.
    fn show(&self, view: &Arc<TopicView>, registry: &mut Registry) {
        let mut seen = self.view.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.as_ref().is_some_and(|seen| Arc::ptr_eq(seen, view)) {
            return;
        }
        *seen = Some(view.clone());
        let mut known = 0;
        let mut shared: Option<Arc<str>> = None;
        let mut cell = &self.partitions;
        while let Some(segment) = cell.get() {
            known += segment.partitions.len();
            shared = segment.partitions.first().map(|partition| partition.destination.topic.clone());
            cell = &segment.next;
        }
        if known < view.partitions.len() {
            let shared = shared.unwrap_or_else(|| Arc::from(&*view.name));
            let partitions = (known..view.partitions.len()).map(|index| {
                let destination = Destination::new(registry.partitions.len(), shared.clone(), index as i32);
                let open = Mutex::new(Open { is_closed: registry.is_closed, ..Open::default() });
                let partition = Arc::new(Partition { destination: Arc::new(destination), open });
                registry.partitions.push(partition.clone());
                partition
            });
            let segment = Segment { partitions: partitions.collect(), next: OnceLock::new() };
            cell.get_or_init(|| Box::new(segment));
        }
        let led = view.partitions.iter().enumerate().filter(|(_, partition)| partition.leader.is_some());
        let available: Vec<i32> = led.map(|(index, _)| index as i32).collect();
        // Neither a leaderless partition nor one that a smaller topic of the same name does not have.
        let is_led = self.sticky.current().is_none_or(|current| available.binary_search(&current).is_ok());
        let has_any = !available.is_empty();
        self.available.store(Arc::new(available));
        // A topic that was created again may have fewer than before.
        self.count.store(view.partitions.len() as i32, Ordering::Release);
        if !is_led && (has_any || self.sticky.current() >= Some(self.count())) {
            self.switch(self.sticky.current());
        }
    }

    /// The topic does not exist any more, or is not looked at.
    fn hide(&self) {
        self.view.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.count.store(0, Ordering::Release);
    }
}

impl Partition {
    #[inline]
    pub(super) fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use krafka_protocol::{ErrorCode, Uuid};

    use super::*;
    use crate::cluster::PartitionView;

    fn view(name: &str, leaders: &[Option<i32>]) -> Arc<TopicView> {
        let partitions = leaders.iter().map(|leader| PartitionView { leader: *leader, ..PartitionView::leaderless() });
        Arc::new(TopicView {
            name: Str::from(name),
            id: Uuid::ZERO,
            is_internal: false,
            partitions: partitions.collect(),
        })
    }

    fn snapshot(view: Arc<TopicView>) -> Snapshot {
        let mut snapshot = Snapshot::default();
        snapshot.topics.insert(view.name.clone(), view);
        snapshot
    }

    #[test]
    fn topics_are_found_among_thousands() {
        let topics = Topics::new(1);
        let names: Vec<_> = (0..3_000).map(|n| format!("topic-{n}")).collect();

        names.iter().for_each(|name| topics.load(&view(name, &[Some(1), None])));

        for name in &names {
            let topic = topics.get(name.as_bytes()).expect("it was loaded");
            assert_eq!((&*topic.name, topic.count()), (&name[..], 2));
        }
        assert!(topics.get(b"topic-3000").is_none());
    }

    #[test]
    fn partitions_that_are_added_leave_the_others_as_they_are() {
        let topics = Topics::new(1);
        topics.load(&view("orders", &[Some(1)]));
        let first = topics.get(b"orders").and_then(|topic| topic.partition(0)).cloned().expect("it has one");

        topics.observe(&snapshot(view("orders", &[Some(1), Some(1), None])));
        topics.observe(&snapshot(view("orders", &[Some(1), Some(1), None, Some(2)])));

        let topic = topics.get(b"orders").expect("it was loaded");
        assert!(Arc::ptr_eq(&first, topic.partition(0).expect("it stays")));
        for index in 0..4 {
            assert_eq!(topic.partition(index).expect("it was added").destination.partition, index);
        }
        assert!(topic.partition(4).is_none() && topic.partition(-1).is_none());
        assert_eq!(*topic.available(), [0, 1, 3]);
    }

    #[test]
    fn keyless_records_leave_a_partition_that_lost_its_leader() {
        let topics = Topics::new(1);
        topics.load(&view("orders", &[Some(1), Some(1)]));
        let topic = topics.get(b"orders").expect("it was loaded");
        let stuck = topic.sticky();

        let mut leaders = [Some(1), Some(1)];
        leaders[stuck as usize] = None;
        topics.observe(&snapshot(view("orders", &leaders)));

        assert_ne!(topic.sticky(), stuck);
        topics.observe(&snapshot(view("orders", &[None, None])));
        assert!((0..2).contains(&topic.sticky()), "without any leader it stays where it is");
    }

    #[test]
    fn a_topic_that_is_created_again_smaller_has_fewer_partitions() {
        let topics = Topics::new(1);
        topics.load(&view("orders", &[Some(1); 8]));
        let topic = topics.get(b"orders").expect("it was loaded");
        let mut gone = Snapshot::default();
        gone.errors.insert(Str::from("orders"), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);

        topics.observe(&gone);
        assert_eq!((topic.count(), topic.partition(0).is_none()), (0, true));
        topics.observe(&snapshot(view("orders", &[None, None])));

        assert_eq!((topic.count(), topic.partition(2).is_none()), (2, true));
        assert!((0..2).contains(&topic.sticky()));
    }

    #[test]
    fn what_is_added_after_closing_is_closed() {
        let topics = Topics::new(1);
        topics.load(&view("orders", &[Some(1)]));

        topics.close();
        topics.observe(&snapshot(view("orders", &[Some(1), Some(1)])));

        let topic = topics.get(b"orders").expect("it was loaded");
        assert!((0..2).all(|index| topic.partition(index).expect("it exists").open().is_closed));
    }
}
