//! Which partitions this consumer reads, at which position, in which state, from whom. The one owner of that.
//!
//! ```text
//!              ┌──────────────────── seek ◀───────────────────┐
//!              ▼                                              │ (from every state)
//!   Loading ──committed offset──▶ Validating ──▶ Fetching ──out of range──▶ Resetting ──▶ Fetching
//!      └─────no offset─────▶ Resetting    ▲──new leader──┘  └─undecodable, no policy─▶ Stuck
//! ```
//!
//! Everything asked on behalf of a partition carries a [`Claim`]: the slot and the generation that its position had
//! then. A seek, a reset, a rebalance give it a new generation, so an answer to an older question finds nobody and is
//! dropped. That is how a seek wins over a pending load, and how a revoked partition's records never surface.

use std::collections::{BTreeMap, BTreeSet};

use krafka_protocol::{Str, Uuid};

use super::preferred::Preferred;
use crate::cluster::Snapshot;
use crate::{KrafkaError, TopicPartition};

/// A partition as it was at some moment: its place, and the generation of its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Claim {
    pub(crate) slot: usize,
    pub(crate) generation: u64,
}

/// A place in a partition's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// The offset of the next record.
    pub(crate) offset: i64,
    /// The leader epoch of the record before it, or -1. With it, a leader can tell whether its log has the same past.
    pub(crate) epoch: i32,
}

impl Position {
    /// None at all.
    pub(crate) const UNKNOWN: Self = Self { offset: -1, epoch: -1 };

    pub(crate) fn new(offset: i64, epoch: i32) -> Self {
        Self { offset, epoch }
    }
}

/// Where to start when there is no valid position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    Earliest,
    Latest,
    /// The first record with at least this timestamp; the end if there is none.
    At(i64),
}

impl Start {
    /// The timestamp that asks for it in ListOffsets.
    pub(crate) fn timestamp(self) -> i64 {
        match self {
            Self::Latest => -1,
            Self::Earliest => -2,
            Self::At(timestamp) => timestamp,
        }
    }
}

/// What a partition needs next.
#[derive(Clone, Debug)]
pub(crate) enum Stage {
    /// The group's committed offset is asked for.
    Loading,
    /// An offset is looked up.
    Resetting(Start),
    /// The position is known, but not yet whether the present leader has the same log up to there (KIP-320).
    Validating,
    /// It is being fetched.
    Fetching,
    /// It cannot go on without a seek, and `poll` says why.
    Stuck(KrafkaError),
}

/// One partition of this consumer.
#[derive(Clone, Debug)]
pub(crate) struct Partition {
    pub(crate) name: TopicPartition,
    /// The same name as the wire has it.
    pub(crate) topic: Str,
    pub(crate) topic_id: Uuid,
    pub(crate) generation: u64,
    pub(crate) stage: Stage,
    pub(crate) paused: bool,
    /// The next record to hand out. Meaningful in `Validating` and `Fetching`.
    pub(crate) position: Position,
    /// The position when the last call of `poll` began: everything before it has been worked on.
    pub(crate) committable: Option<Position>,
    /// The next record to fetch, ahead of `position` by what is buffered.
    pub(crate) fetch: Position,
    /// The node that leads it, and its epoch.
    pub(crate) leader: Option<(i32, i32)>,
    /// The nearer replica that the leader sends us to.
    pub(crate) preferred: Option<Preferred>,
    /// The broker said that `fetch` is out of range; it is reset when what is buffered has been handed out.
    pub(crate) out_of_range: bool,
    pub(crate) high_watermark: i64,
    /// Its slot is in `touched`.
    touched: bool,
}

impl Partition {
    /// Whether there is a position that records are handed out from.
    pub(crate) fn has_position(&self) -> bool {
        matches!(self.stage, Stage::Fetching | Stage::Validating)
    }
}

/// The partitions, by slot and by name.
#[derive(Debug, Default)]
pub(crate) struct Subscription {
    /// Slots are reused; the generation tells the tenants apart.
    slots: Vec<Option<Partition>>,
    index: BTreeMap<TopicPartition, usize>,
    generation: u64,
    /// Slots whose position moved since the last `poll` began.
    touched: Vec<usize>,
}

impl Subscription {
    /// Adds a partition in the given stage, paused or not as it was if it is there already.
    pub(crate) fn add(&mut self, name: TopicPartition, stage: Stage) -> Claim {
        let generation = self.next_generation();
        let slot = match self.index.get(&name) {
            Some(&slot) => slot,
            None => self.slots.iter().position(Option::is_none).unwrap_or_else(|| {
                self.slots.push(None);
                self.slots.len() - 1
            }),
        };
        let paused = self.slots[slot].as_ref().is_some_and(|partition| partition.paused);
        self.index.insert(name.clone(), slot);
        self.slots[slot] = Some(Partition {
            topic: Str::from(name.topic.clone()),
            name,
            topic_id: Uuid::ZERO,
            generation,
            stage,
            paused,
            position: Position::UNKNOWN,
            committable: None,
            fetch: Position::UNKNOWN,
            leader: None,
            preferred: None,
            out_of_range: false,
            high_watermark: -1,
            touched: false,
        });
        self.touched.retain(|&other| other != slot);
        Claim { slot, generation }
    }

    /// Takes a partition away. Returns the slot that it had.
    pub(crate) fn remove(&mut self, name: &TopicPartition) -> Option<usize> {
        let slot = self.index.remove(name)?;
        self.slots[slot] = None;
        self.touched.retain(|&other| other != slot);
        Some(slot)
    }

    /// The names, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &TopicPartition> {
        self.index.keys()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// The partition, if it is still what the claim says.
    pub(crate) fn held(&mut self, claim: Claim) -> Option<&mut Partition> {
        let partition = self.slots.get_mut(claim.slot)?.as_mut()?;
        (partition.generation == claim.generation).then_some(partition)
    }

    pub(crate) fn partition(&self, name: &TopicPartition) -> Option<&Partition> {
        self.slots[*self.index.get(name)?].as_ref()
    }

    pub(crate) fn slot(&self, name: &TopicPartition) -> Option<usize> {
        self.index.get(name).copied()
    }

    /// Each partition with its claim, in the order of names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Claim, &Partition)> {
        self.index.values().filter_map(|&slot| {
            let partition = self.slots[slot].as_ref()?;
            Some((Claim { slot, generation: partition.generation }, partition))
        })
    }

    /// The topics, each once.
    pub(crate) fn topics(&self) -> BTreeSet<Str> {
        self.iter().map(|(_, partition)| partition.topic.clone()).collect()
    }

    /// Sets the position that the user wants, whatever the partition was doing.
    ///
    /// With the epoch of the record before it, the position is validated first, as after a restart.
    pub(crate) fn seek(&mut self, slot: usize, position: Position) {
        let stage = if position.epoch >= 0 { Stage::Validating } else { Stage::Fetching };
        self.place(slot, position, stage);
    }

    /// Looks the position up anew.
    pub(crate) fn reset(&mut self, slot: usize, start: Start) {
        self.place(slot, Position::UNKNOWN, Stage::Resetting(start));
        if let Some(partition) = &mut self.slots[slot] {
            partition.committable = None;
        }
    }

    /// Stops the partition until it is sought.
    pub(crate) fn stick(&mut self, slot: usize, error: KrafkaError) {
        let position = self.slots[slot].as_ref().map_or(Position::UNKNOWN, |partition| partition.position);
        self.place(slot, position, Stage::Stuck(error));
    }

    /// Fetches from `position` on. It came from a leader, or a leader confirmed it.
    pub(crate) fn settle(&mut self, slot: usize, position: Position) {
        self.place(slot, position, Stage::Fetching);
    }

    fn place(&mut self, slot: usize, position: Position, stage: Stage) {
        let generation = self.next_generation();
        if let Some(partition) = self.slots.get_mut(slot).and_then(Option::as_mut) {
            partition.generation = generation;
            partition.position = position;
            partition.fetch = position;
            partition.out_of_range = false;
            // What is committed never runs ahead of what was handed out, so a seek is committed only after the next
            // poll.
            partition.stage = stage;
            self.touch(slot);
        }
    }

    fn touch(&mut self, slot: usize) {
        if let Some(partition) = &mut self.slots[slot]
            && !std::mem::replace(&mut partition.touched, true)
        {
            self.touched.push(slot);
        }
    }

    /// Records up to `position` were handed out.
    pub(crate) fn delivered(&mut self, claim: Claim, position: Position) {
        if let Some(partition) = self.held(claim) {
            partition.position = position;
            self.touch(claim.slot);
        }
    }

    /// A call of `poll` begins: what was handed out before has been worked on.
    pub(crate) fn acknowledge(&mut self) {
        while let Some(slot) = self.touched.pop() {
            let Some(partition) = &mut self.slots[slot] else { continue };
            partition.touched = false;
            if partition.has_position() {
                partition.committable = Some(partition.position);
            }
        }
    }

    /// Takes leaders, epochs and topic ids from the snapshot; and that a preferred replica is gone.
    ///
    /// Returns the slots whose buffered records must be dropped: those with a new leader have to validate their
    /// position first, and a topic that was created anew under the same name starts over, as `start_over` says (or
    /// sticks, if it cannot).
    pub(crate) fn follow(
        &mut self,
        snapshot: &Snapshot,
        start_over: &dyn Fn(&TopicPartition) -> Result<Start, KrafkaError>,
    ) -> Vec<usize> {
        let mut dropped = Vec::new();
        for slot in 0..self.slots.len() {
            let Some(partition) = &mut self.slots[slot] else { continue };
            let Some(topic) = snapshot.topics.get(&partition.topic) else {
                partition.leader = None;
                continue;
            };
            let recreated = !partition.topic_id.is_zero() && !topic.id.is_zero() && partition.topic_id != topic.id;
            partition.topic_id = topic.id;
            let leader =
                snapshot.leader(&partition.topic, partition.name.partition).map(|(node, epoch)| (node.id, epoch));
            let before = partition.leader.map(|(_, epoch)| epoch);
            // A leaderless moment keeps the epoch that we had: only a newer leader has to be asked about our position.
            if leader.is_some() || partition.leader.is_none() || recreated {
                partition.leader = leader;
            }
            let number = partition.name.partition;
            let is_there = |preferred: &Preferred| snapshot.has_replica_at(preferred.node(), &partition.topic, number);
            partition.preferred = partition.preferred.filter(is_there);
            if recreated && !matches!(partition.stage, Stage::Loading) {
                match start_over(&partition.name) {
                    Ok(start) => self.reset(slot, start),
                    Err(error) => self.stick(slot, error),
                }
                dropped.push(slot);
            } else if matches!(partition.stage, Stage::Fetching | Stage::Validating)
                // What a former leader will say of the position, if it was asked, says nothing of the new one's log.
                && partition.position.epoch >= 0
                && before.is_some_and(|before| leader.is_some_and(|(_, epoch)| epoch > before))
            {
                let position = partition.position;
                self.place(slot, position, Stage::Validating);
                dropped.push(slot);
            }
        }
        dropped
    }

    fn next_generation(&mut self) -> u64 {
        self.generation += 1;
        self.generation
    }
}

#[cfg(test)]
mod tests;
