//! [`Core`]: what the consumer's task and its callers share, behind one lock that is held for moments only.
//!
//! The caller's side takes a chunk out, decodes it with the lock released, and comes back to say how far it got; the
//! claim on the chunk tells whether the partition is still what it was. If it was sought away, revoked or lost
//! meanwhile, what was decoded is thrown away, and nobody has seen it.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use krafka_protocol::Str;

use super::buffer::Buffer;
use super::chunk::Chunk;
use super::fetcher::{Fetched, NodeWants, Want};
use super::preferred::Preferred;
use super::subscription::{Claim, Position, Stage, Start, Subscription};
use crate::{KrafkaError, TopicPartition};

/// Errors that wait for a `poll`. A user that does not poll needs no more to see what is wrong.
const MAX_COMPLAINTS: usize = 64;

/// How far the callers of `poll` are with a rebalance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gate {
    /// Records are handed out.
    Open,
    /// Partitions are to be given up, as soon as a `poll` says that what it returned has been worked on.
    Asked,
    /// A `poll` has said so: nothing is handed out until the new assignment is there.
    Shut,
}

/// See the file's head.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) subscription: Subscription,
    pub(crate) buffer: Buffer,
    pub(crate) gate: Gate,
    /// Callers inside `poll` or `recv` right now that found nothing to return.
    pub(crate) waiting: usize,
    /// Counts calls of `poll` and `recv`, so that the task can tell that the user is alive.
    pub(crate) calls: u64,
    /// The group gave up on a user that did not poll; it waits to hear of the next call.
    pub(crate) user_is_idle: bool,
    /// Why the consumer is of no more use, once it is.
    pub(crate) closed: Option<KrafkaError>,
    pub(crate) woken: bool,
    /// The task has been told to look, and has not looked yet.
    wake_is_sent: bool,
    pub(crate) mode: Mode,
    /// A partition is fetched again when fewer of its bytes than this are buffered.
    mark: usize,
    bound: usize,
    /// Errors for `poll`, each with the partition's slot if it is about what is to be read there.
    complaints: VecDeque<(Option<usize>, KrafkaError)>,
    /// Why the group does not take this member, until it subscribes anew.
    pub(crate) refusal: Option<KrafkaError>,
}

/// Who decides which partitions are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Idle,
    /// The application, by `assign`.
    Assigned,
    /// The group, by `subscribe` to these topics.
    Subscribed(Vec<std::sync::Arc<str>>),
}

impl Core {
    pub(crate) fn new(mark: usize, bound: usize) -> Self {
        Self {
            subscription: Subscription::default(),
            buffer: Buffer::default(),
            gate: Gate::Open,
            waiting: 0,
            calls: 0,
            user_is_idle: false,
            closed: None,
            woken: false,
            wake_is_sent: false,
            mode: Mode::Idle,
            mark,
            bound,
            complaints: VecDeque::new(),
            refusal: None,
        }
    }

    /// A call of `poll` or `recv` begins. Returns whether the task must hear of it, for a rebalance waits for it.
    pub(crate) fn enter(&mut self) -> bool {
        self.calls = self.calls.wrapping_add(1);
        self.subscription.acknowledge();
        let asked = self.gate == Gate::Asked;
        if asked {
            self.gate = Gate::Shut;
        }
        asked || self.user_is_idle
    }

    /// A call found nothing and begins to wait: it has nothing left to work on. Returns whether the task must hear of
    /// it.
    pub(crate) fn begin_waiting(&mut self) -> bool {
        self.waiting += 1;
        let asked = self.gate == Gate::Asked;
        if asked {
            self.gate = Gate::Shut;
        }
        asked
    }

    /// Returns whether the task must be told to look: it has not been told since it looked last.
    pub(crate) fn wake(&mut self) -> bool {
        !std::mem::replace(&mut self.wake_is_sent, true)
    }

    /// The task looks.
    pub(crate) fn woke(&mut self) {
        self.wake_is_sent = false;
    }

    /// What can be handed out now: a chunk to decode, if records may be handed out at all.
    pub(crate) fn take(&mut self) -> Option<(usize, Box<Chunk>)> {
        if self.gate == Gate::Shut {
            return None;
        }
        while let Some((slot, chunk)) = self.buffer.take() {
            if self.subscription.held(chunk.claim).is_some_and(|partition| matches!(partition.stage, Stage::Fetching)) {
                return Some((slot, chunk));
            }
            self.buffer.used_up(slot, chunk.bytes);
        }
        None
    }

    /// Records of a chunk were decoded up to its position. Returns whether they may be handed out, and whether the
    /// partition should be fetched again.
    pub(crate) fn delivered(&mut self, slot: usize, chunk: Box<Chunk>, is_used_up: bool) -> (bool, bool) {
        let is_held = self.subscription.held(chunk.claim).is_some() && self.gate != Gate::Shut;
        if is_held {
            self.subscription.delivered(chunk.claim, chunk.position());
        }
        let still_there = self.subscription.held(chunk.claim).is_some();
        if still_there && !is_used_up && is_held {
            self.buffer.give_back(slot, chunk);
            return (true, false);
        }
        if still_there && !is_held {
            // A rebalance began while it was decoded: the partition is about to go, and its position must not move.
            self.buffer.used_up(slot, chunk.bytes);
            return (false, true);
        }
        self.buffer.used_up(slot, chunk.bytes);
        let bytes = self.buffer.bytes_of(slot);
        (is_held, bytes < self.mark)
    }

    /// The chunk did not decode at its position: the partition waits for a seek. Returns the error, if it still
    /// matters.
    pub(crate) fn stuck(&mut self, slot: usize, chunk: &Chunk, error: KrafkaError) -> Option<KrafkaError> {
        self.buffer.used_up(slot, chunk.bytes);
        self.subscription.held(chunk.claim)?;
        self.buffer.clear(slot);
        self.subscription.stick(slot, error.clone());
        Some(error)
    }

    /// Queues an error for `poll`.
    pub(crate) fn complain(&mut self, error: KrafkaError) {
        self.complain_of(None, error);
    }

    fn complain_of(&mut self, slot: Option<usize>, error: KrafkaError) {
        let text = error.to_string();
        let is_said = self.complaints.iter().any(|(_, other)| other.to_string() == text);
        if self.complaints.len() < MAX_COMPLAINTS && !is_said {
            self.complaints.push_back((slot, error));
        }
    }

    /// What was to be read of a partition is no question any more.
    pub(crate) fn clear(&mut self, slot: usize) {
        self.buffer.clear(slot);
        self.complaints.retain(|(about, _)| *about != Some(slot));
    }

    /// The next error that a `poll` should return.
    pub(crate) fn complaint(&mut self) -> Option<KrafkaError> {
        self.complaints.pop_front().map(|(_, error)| error)
    }

    /// Why the group, or a partition, stands still, if one does: said whenever a `poll` has nothing better to return.
    pub(crate) fn standstill(&self) -> Option<KrafkaError> {
        let mut partitions = self.subscription.iter();
        let stuck = partitions.find_map(|(_, partition)| match &partition.stage {
            Stage::Stuck(error) => Some(error),
            _ => None,
        });
        self.refusal.as_ref().or(stuck).cloned()
    }

    /// Why nothing will ever be handed out, if no partition can go on.
    pub(crate) fn all_stand_still(&self) -> Option<KrafkaError> {
        let mut partitions = self.subscription.iter();
        let all = partitions.all(|(_, partition)| matches!(partition.stage, Stage::Stuck(_)));
        if all { self.standstill() } else { None }
    }

    pub(crate) fn assign(&mut self, name: TopicPartition, stage: Stage) {
        if let Some(slot) = self.subscription.slot(&name) {
            self.clear(slot);
        }
        let claim = self.subscription.add(name, stage);
        let is_paused = self.subscription.held(claim).is_some_and(|partition| partition.paused);
        if is_paused { self.buffer.pause(claim.slot) } else { self.buffer.resume(claim.slot) }
    }

    pub(crate) fn unassign(&mut self, name: &TopicPartition) {
        if let Some(slot) = self.subscription.remove(name) {
            self.clear(slot);
            self.buffer.resume(slot);
        }
    }

    pub(crate) fn unassign_all(&mut self) -> Vec<TopicPartition> {
        let names: Vec<_> = self.subscription.names().cloned().collect();
        names.iter().for_each(|name| self.unassign(name));
        names
    }

    pub(crate) fn seek(&mut self, slot: usize, position: Position) {
        self.clear(slot);
        self.subscription.seek(slot, position);
    }

    pub(crate) fn reset(&mut self, slot: usize, start: Start) {
        self.clear(slot);
        self.subscription.reset(slot, start);
    }

    pub(crate) fn stick(&mut self, slot: usize, error: KrafkaError) {
        self.clear(slot);
        self.subscription.stick(slot, error.clone());
        self.complain_of(Some(slot), error);
    }

    pub(crate) fn set_paused(&mut self, slot: usize, paused: bool) {
        let claim = self.subscription.iter().map(|(claim, _)| claim).find(|claim| claim.slot == slot);
        let Some(partition) = claim.and_then(|claim| self.subscription.held(claim)) else { return };
        partition.paused = paused;
        if paused { self.buffer.pause(slot) } else { self.buffer.resume(slot) }
    }

    /// Records have come. Dropped, if nobody waits for them any more.
    pub(crate) fn buffer(&mut self, fetched: Fetched) {
        let Some(partition) = self.subscription.held(fetched.claim) else { return };
        partition.high_watermark = fetched.high_watermark;
        // Two answers for the same offset cannot both be new.
        if fetched.records.is_empty() || fetched.from != partition.fetch {
            return;
        }
        partition.fetch = fetched.next;
        let (slot, name) = (fetched.claim.slot, partition.name.clone());
        self.buffer.push(slot, Box::new(Chunk::new(name, fetched)));
    }

    /// The leader says that the next offset to fetch is out of its range. An offset that it is not about to fetch any
    /// more is old news.
    pub(crate) fn out_of_range(&mut self, claim: Claim, offset: i64) {
        if let Some(partition) = self.subscription.held(claim)
            && partition.fetch.offset == offset
        {
            partition.out_of_range = true;
        }
    }

    /// The leader sends us to another replica.
    pub(crate) fn prefer(&mut self, claim: Claim, preferred: Preferred) {
        if let Some(partition) = self.subscription.held(claim) {
            partition.preferred = Some(preferred);
        }
    }

    /// The replica that we were sent to is of no use.
    pub(crate) fn ask_leader(&mut self, claim: Claim) {
        if let Some(partition) = self.subscription.held(claim) {
            partition.preferred = None;
        }
    }

    /// Partitions that ran out of range and have nothing left to hand out, with the offset.
    pub(crate) fn to_reset(&self) -> Vec<(usize, TopicPartition, i64)> {
        let drained = self
            .subscription
            .iter()
            .filter(|(claim, partition)| partition.out_of_range && self.buffer.bytes_of(claim.slot) == 0);
        drained.map(|(claim, partition)| (claim.slot, partition.name.clone(), partition.fetch.offset)).collect()
    }

    /// What should be fetched now, by whom to ask; how many bytes there is room for; topics with partitions that nobody
    /// leads.
    ///
    /// A broker is left alone while most of its partitions are full and none is empty: soon there will be more to ask
    /// for, and one large answer costs less than many small ones.
    pub(crate) fn wanted(&self, now: Instant) -> (BTreeMap<i32, NodeWants>, usize, Vec<Str>) {
        let mut nodes: BTreeMap<i32, NodeWants> = BTreeMap::new();
        // How many partitions of a node are full, less those that are not; minus infinity, if one is empty.
        let mut fullness: BTreeMap<i32, i64> = BTreeMap::new();
        let mut leaderless = Vec::new();
        for (claim, partition) in self.subscription.iter() {
            if !matches!(partition.stage, Stage::Fetching) || partition.paused || partition.out_of_range {
                continue;
            }
            let Some((leader, leader_epoch)) = partition.leader else {
                if leaderless.last() != Some(&partition.topic) {
                    leaderless.push(partition.topic.clone());
                }
                continue;
            };
            let preferred = partition.preferred.and_then(|preferred| preferred.under((leader, leader_epoch), now));
            let node = preferred.unwrap_or(leader);
            let wants = nodes.entry(node).or_default();
            let fullness = fullness.entry(node).or_default();
            match self.buffer.bytes_of(claim.slot) {
                0 => *fullness = i64::from(i32::MIN),
                bytes if bytes < self.mark => *fullness -= 1,
                _ => {
                    *fullness += 1;
                    wants.held_back = true;
                    continue;
                }
            }
            wants.partitions.push(Want {
                claim,
                topic: partition.topic.clone(),
                topic_id: partition.topic_id,
                partition: partition.name.partition,
                leader,
                leader_epoch,
                position: partition.fetch,
            });
        }
        for (node, wants) in &mut nodes {
            if fullness.get(node).is_some_and(|fullness| *fullness > 0) {
                wants.partitions.clear();
            }
        }
        (nodes, self.bound.saturating_sub(self.buffer.bytes()), leaderless)
    }
}

#[cfg(test)]
mod tests;
