//! Which partition a record goes to.
//!
//! A record that names its partition goes there; one with a key goes where the Java client would send it (murmur2); one
//! without a key *sticks* to a partition until a batch has gone there, so that batches fill (KIP-480, KIP-794). The
//! next sticky partition is drawn from those that have a leader, and the one with the shorter queue of two draws
//! wins: a slow broker gets less, at the price of two random numbers a batch, whatever the number of partitions.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use super::record::Record;
use crate::rng::Rng;

/// Chooses the partition of each record that does not name one itself.
///
/// Install one with [`ProducerBuilder::partitioner`](crate::producer::ProducerBuilder::partitioner) when records must
/// be placed by something other than the hash of their key. It is called on the sending task, once a record (again if
/// the record had to wait for memory), so it must not block. Returning a partition that does not exist fails that
/// record with [`KrafkaError::Config`](crate::KrafkaError::Config), and no other.
///
/// ```
/// use krafka::Record;
/// use krafka::producer::{Partitioner, Partitions};
///
/// /// Sends orders of the first customer to partition 0 and everything else to the last partition.
/// struct Vip;
///
/// impl Partitioner for Vip {
///     fn partition(&self, record: &Record, partitions: &Partitions<'_>) -> i32 {
///         if record.key_bytes().is_some_and(|key| key == b"customer-1") { 0 } else { partitions.count() - 1 }
///     }
/// }
/// ```
pub trait Partitioner: Send + Sync + 'static {
    /// Returns the partition for `record`, from 0 to `partitions.count() - 1`.
    fn partition(&self, record: &Record, partitions: &Partitions<'_>) -> i32;
}

/// What a [`Partitioner`] may know of a topic.
#[derive(Clone, Copy, Debug)]
pub struct Partitions<'a> {
    count: i32,
    available: &'a [i32],
}

impl<'a> Partitions<'a> {
    pub(super) fn new(count: i32, available: &'a [i32]) -> Self {
        Self { count, available }
    }

    /// Returns how many partitions the topic has. At least one.
    #[must_use]
    pub fn count(&self) -> i32 {
        self.count
    }

    /// Returns the partitions that have a leader at the moment, in ascending order. May be empty.
    #[must_use]
    pub fn available(&self) -> &'a [i32] {
        self.available
    }
}

/// Returns the hash that Kafka's clients place keys by: murmur2, seeded as the Java client seeds it.
///
/// A key goes to partition `(murmur2(key) & 0x7fff_ffff) % partition_count`.
///
/// ```
/// use krafka::producer::murmur2;
///
/// assert_eq!(murmur2(b"foobar"), -790_332_482_i32 as u32);
/// ```
#[must_use]
#[inline]
pub fn murmur2(key: &[u8]) -> u32 {
    const SEED: u32 = 0x9747_b28c;
    const M: u32 = 0x5bd1_e995;
    // Java keeps the length in an int, so a longer slice could only come from elsewhere; it wraps alike.
    let mut hash = SEED ^ key.len() as u32;
    let (words, tail) = key.as_chunks::<4>();
    for word in words {
        let mut k = u32::from_le_bytes(*word).wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    if !tail.is_empty() {
        for (i, byte) in tail.iter().enumerate() {
            hash ^= u32::from(*byte) << (8 * i);
        }
        hash = hash.wrapping_mul(M);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(M);
    hash ^ (hash >> 15)
}

/// The partition that a key belongs to, among `count`.
#[inline]
pub(super) fn partition_of_key(key: &[u8], count: i32) -> i32 {
    debug_assert!(count > 0, "a topic without partitions is never loaded");
    ((murmur2(key) & 0x7fff_ffff) % count as u32) as i32
}

/// The partition that keyless records of one topic stick to at present.
#[derive(Debug)]
pub(super) struct Sticky {
    current: AtomicU32,
    rng: Mutex<Rng>,
}

impl Sticky {
    /// Nothing is drawn yet.
    const UNSET: u32 = u32::MAX;

    pub(super) fn new(rng: Rng) -> Self {
        Self { current: AtomicU32::new(Self::UNSET), rng: Mutex::new(rng) }
    }

    /// The partition to go to, if one is drawn.
    #[inline]
    pub(super) fn current(&self) -> Option<i32> {
        let current = self.current.load(Ordering::Relaxed);
        (current != Self::UNSET).then_some(current as i32)
    }

    /// Draws another partition, unless another task already moved away from `left`.
    ///
    /// `backlog` tells how many batches of a partition wait for their answer.
    pub(super) fn switch(&self, left: Option<i32>, partitions: Partitions<'_>, backlog: impl Fn(i32) -> u32) -> i32 {
        let mut rng = self.rng.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(current) = self.current().filter(|current| Some(*current) != left) {
            return current;
        }
        let mut draw = || match partitions.available {
            // Nobody leads anything: any partition may be the first to come back.
            [] => rng.below(partitions.count as u64) as i32,
            available => available[rng.below(available.len() as u64) as usize],
        };
        let (one, two) = (draw(), draw());
        let next = if backlog(two) < backlog(one) { two } else { one };
        self.current.store(next as u32, Ordering::Relaxed);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of Kafka's own test of `Utils.murmur2`.
    #[test]
    fn murmur2_is_javas() {
        let table = [
            ("", 275_646_681),
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            ("abc", 479_470_107),
        ];

        for (key, hash) in table {
            assert_eq!(murmur2(key.as_bytes()) as i32, hash, "{key:?}");
        }
    }

    /// The sign bit is masked before the modulo, and an empty key is a key.
    #[test]
    fn keys_land_where_java_puts_them() {
        let table = [("", 1), ("21", 0), ("foobar", 6), ("a-little-bit-long-string", 2), ("abc", 7)];

        for (key, partition) in table {
            assert_eq!(partition_of_key(key.as_bytes(), 10), partition, "{key:?}");
        }
    }

    fn drawn(available: &[i32], backlog: impl Fn(i32) -> u32 + Copy) -> [u32; 4] {
        let sticky = Sticky::new(Rng::new(7));
        let mut counts = [0; 4];
        for _ in 0..4_000 {
            counts[sticky.switch(sticky.current(), Partitions::new(4, available), backlog) as usize] += 1;
        }
        counts
    }

    #[test]
    fn equal_queues_are_drawn_evenly() {
        assert!(drawn(&[0, 1, 2, 3], |_| 0).iter().all(|count| (800..1_200).contains(count)));
    }

    #[test]
    fn leaderless_partitions_are_not_drawn() {
        let counts = drawn(&[1, 3], |_| 0);

        assert_eq!((counts[0], counts[2]), (0, 0));
        assert!(counts[1] > 1_700 && counts[3] > 1_700);
    }

    #[test]
    fn without_any_leader_all_are_drawn() {
        assert!(drawn(&[], |_| 0).iter().all(|count| *count > 0));
    }

    #[test]
    fn a_long_queue_is_drawn_seldom() {
        let counts = drawn(&[0, 1, 2, 3], |partition| if partition == 2 { 9 } else { 0 });

        assert!(counts[2] < 400, "both draws must hit it: one in sixteen, but got {counts:?}");
        assert!(counts[2] > 0, "a slow partition is not given up");
    }

    #[test]
    fn two_tasks_that_leave_the_same_partition_switch_once() {
        let sticky = Sticky::new(Rng::new(1));
        let partitions = Partitions::new(4, &[0, 1, 2, 3]);
        let first = sticky.switch(None, partitions, |_| 0);

        let busy = |partition: i32| u32::from(partition == first);
        let second = loop {
            let next = sticky.switch(Some(first), partitions, busy);
            if next != first {
                break next;
            }
        };

        assert_eq!(sticky.switch(Some(first), partitions, busy), second);
    }
}
