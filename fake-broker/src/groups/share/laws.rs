//! What holds of a share partition whatever members do: FI-08, and the broker's side of SH-21.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use krafka_protocol::Str;

use super::acknowledge::Acknowledgement;
use super::acquire::{Acquired, Extent, Wish};
use super::batch::{Batch, Lock, RecordState};
use super::partition::{Limits, SharePartition};
use super::persister::{Kept, StateBatch};
use crate::rng::Rng;

const LIMITS: Limits = Limits { max_delivery_count: 4, lock_duration: Duration::from_secs(30), max_record_locks: 60 };

/// A share partition beside what its members know.
struct World {
    partition: SharePartition,
    kept: Kept,
    /// The batches of the log.
    log: Vec<Extent>,
    /// Who has which record.
    held: BTreeMap<i64, Str>,
    /// The records that were accepted or rejected.
    done: BTreeSet<i64>,
    deliveries: BTreeMap<i64, i16>,
    now: Instant,
}

impl World {
    fn new() -> Self {
        let kept = Kept::new(1, 0);
        Self {
            partition: SharePartition::load(&kept, 0, 0),
            kept,
            log: Vec::new(),
            held: BTreeMap::new(),
            done: BTreeSet::new(),
            deliveries: BTreeMap::new(),
            now: begin(),
        }
    }

    fn write(&mut self, changes: &[StateBatch]) {
        if changes.is_empty() {
            return;
        }
        self.kept.write(self.partition.start_offset(), self.partition.delivery_complete_count(), changes);
        self.partition.advance();
    }

    fn produce(&mut self, records: i64) {
        let base = self.log.last().map_or(0, |batch| batch.last + 1);
        self.log.push(Extent { base, last: base + records - 1 });
    }

    fn acquire(&mut self, member: &Str, max_records: i64, is_strict: bool) {
        if !self.partition.can_acquire(&LIMITS) {
            return;
        }
        let from = self.partition.next_fetch_offset();
        let read: Vec<Extent> = self.log.iter().copied().filter(|batch| batch.last >= from).take(3).collect();
        let lock = Lock { member: member.clone(), until: self.now + LIMITS.lock_duration };
        let wish = Wish { lock, max_records, batch_size: 5, is_strict };
        let got = self.partition.acquire(&wish, from, &read, &LIMITS);

        let count: i64 = got.iter().map(|got| got.last - got.first + 1).sum();
        assert!(!is_strict || count <= max_records, "asked for {max_records}, got {got:?}");
        for Acquired { first, last, delivery_count } in got {
            for offset in first..=last {
                assert!(!self.done.contains(&offset), "{offset} was answered for, and is delivered again");
                assert_eq!(self.held.insert(offset, member.clone()), None, "{offset} has two holders");
                let seen = self.deliveries.entry(offset).or_insert(0);
                *seen += 1;
                assert_eq!(*seen, delivery_count, "{offset} is counted");
                assert!(delivery_count <= LIMITS.max_delivery_count, "{offset} is delivered too often");
            }
        }
    }

    fn acknowledge(&mut self, member: &Str, first: i64, last: i64, kind: i8) {
        let is_own = (first..=last).all(|offset| self.held.get(&offset) == Some(member));
        let acks = [Acknowledgement { first, last, types: vec![kind] }];
        let before = self.partition.clone();
        match self.partition.acknowledge(member, &acks, &LIMITS, self.now) {
            Ok(changes) => {
                assert!(is_own, "{member} answers for {first} to {last}, which it does not have");
                for offset in first..=last {
                    match kind {
                        4 => {}
                        2 => drop(self.held.remove(&offset)),
                        _ => {
                            self.held.remove(&offset);
                            self.done.insert(offset);
                        }
                    }
                }
                self.write(&changes);
            }
            Err(_) => {
                assert!(!is_own, "{member} cannot answer for {first} to {last}, which it has");
                assert_eq!(self.partition, before, "what is refused leaves no trace");
            }
        }
    }

    fn check(&self) {
        let mut acquired = BTreeSet::new();
        let mut next = None;
        for run in self.partition.batches.values().flat_map(Batch::runs) {
            assert!(next.is_none_or(|next| next <= run.first), "batches are in order");
            next = Some(run.last + 1);
            assert_eq!(run.lock.is_some(), run.state == RecordState::Acquired);
            if run.state == RecordState::Acquired {
                acquired.extend(run.first..=run.last);
            }
        }
        assert_eq!(acquired, self.held.keys().copied().collect(), "members and leader agree");
        assert!(self.partition.start_offset() <= self.partition.next_fetch_offset());
        assert!(next.is_none_or(|next| next == self.partition.next_offset));
    }
}

#[allow(clippy::disallowed_methods, reason = "a test has to begin at some moment")]
fn begin() -> Instant {
    Instant::now()
}

#[test]
fn records_have_one_holder_and_are_done_once() {
    for seed in 0..300 {
        let mut rng = Rng::stream(seed, "share partitions");
        let members = [Str::from_static("a"), Str::from_static("b"), Str::from_static("c")];
        let mut world = World::new();
        for _ in 0..120 {
            let member = members[rng.below(3) as usize].clone();
            match rng.below(12) {
                0 | 1 => world.produce(1 + rng.below(8) as i64),
                2..=4 => {
                    let (most, is_strict) = (1 + rng.below(9) as i64, rng.below(2) == 0);
                    world.acquire(&member, most, is_strict);
                }
                5..=8 => {
                    let mine: Vec<i64> =
                        world.held.iter().filter(|(_, holder)| **holder == member).map(|(&offset, _)| offset).collect();
                    if let Some(&first) = mine.get(rng.below(mine.len().max(1) as u64) as usize) {
                        let last = first + rng.below(3) as i64;
                        if last < world.partition.next_offset {
                            world.acknowledge(&member, first, last, rng.below(5) as i8);
                        }
                    }
                }
                9 => {
                    world.now += Duration::from_secs(rng.below(40));
                    let over = world.now;
                    let changes = world.partition.expire(over, &LIMITS);
                    for batch in &changes {
                        (batch.first..=batch.last).for_each(|offset| drop(world.held.remove(&offset)));
                    }
                    world.write(&changes);
                }
                10 => {
                    let changes = world.partition.release(&member, &LIMITS);
                    world.held.retain(|_, holder| *holder != member);
                    world.write(&changes);
                }
                _ => {
                    // Another leader: it knows what was written, and nobody has anything.
                    let unwritten: Vec<i64> = world.held.keys().copied().collect();
                    world.held.clear();
                    for offset in unwritten {
                        let kept = world.kept.batches.iter().find(|batch| (batch.first..=batch.last).contains(&offset));
                        world.deliveries.insert(offset, kept.map_or(0, |batch| batch.delivery_count));
                    }
                    world.partition = SharePartition::load(&world.kept, 1, 0);
                }
            }
            world.check();
        }
    }
}
