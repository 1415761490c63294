//! What news of the cluster mean for the batches, and how batches end without an answer.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use krafka_protocol::{ErrorCode, Str};

use super::{Action, Link, Peer, Sender, Topic};
use crate::cluster::{Snapshot, TopicView};
use crate::error::KrafkaError;
use crate::producer::batch::Batch;
use crate::producer::delivery::{Receipt, Settled};

impl<L: Clone> Sender<L> {
    pub(super) fn changed(&mut self, snapshot: Arc<Snapshot>, now: Instant) {
        self.snapshot = snapshot;
        for (id, peer) in &mut self.peers {
            if let Some(node) = self.snapshot.nodes.get(id)
                && *node != peer.node
            {
                // It moved to another address: what is in flight ends with the old connection.
                (peer.node, peer.link, peer.not_before, peer.failures) = (node.clone(), Link::Idle, None, 0);
                self.stirred.insert(*id);
            }
        }
        let mut topics = std::mem::take(&mut self.topics);
        let mut moved = Vec::new();
        for (name, topic) in topics.iter_mut().filter(|(_, topic)| topic.is_kept) {
            if self.follow(name, topic) {
                moved.extend(&topic.slots);
            }
        }
        self.topics = topics;
        self.stir_moved(moved, now);
    }

    /// Takes over what the snapshot says of a topic, if that is news.
    pub(super) fn follow(&mut self, name: &Str, topic: &mut Topic) -> bool {
        let view = self.snapshot.topic(name).cloned();
        if let (Some(old), Some(new)) = (&topic.view, &view)
            && Arc::ptr_eq(old, new)
        {
            return false;
        }
        let is_same = is_same_topic(topic.view.as_deref(), view.as_deref());
        for slot in &topic.slots {
            let partition = self.partition(*slot);
            if !is_same && partition.sequences.producer().is_some() {
                // The new topic's log knows nothing of the old one's sequences.
                partition.needs_restart = true;
                partition.sequences.forgotten();
            }
            if partition.lead(view.as_deref(), is_same) {
                // A new leader ends the wait for one, and whatever the old one was left alone for.
                (partition.not_before, partition.failures, partition.listed) = (None, 0, None);
            }
        }
        // The view of a topic that is gone is kept, to notice when another one takes its name.
        if view.is_some() {
            topic.view = view;
        }
        true
    }

    /// Sees to partitions of which there are news.
    pub(super) fn stir_moved(&mut self, slots: Vec<usize>, now: Instant) {
        for slot in slots {
            match self.refusal(slot) {
                Some(code) => self.refuse(slot, code),
                None => self.stir(slot, now),
            }
        }
        self.forget_strangers();
    }

    /// Forgets brokers that the cluster does not have, and that nothing is to be sent to: brokers may name any.
    pub(super) fn forget_strangers(&mut self) {
        let (snapshot, partitions) = (&self.snapshot, &self.partitions);
        let is_listed = |slot: &usize, id| partitions[*slot].as_ref().is_some_and(|at| at.listed == Some(id));
        let is_stranger = |id: i32, peer: &Peer<L>| {
            let is_idle = peer.in_flight == 0 && !peer.ready.iter().any(|slot| is_listed(slot, id));
            is_idle && snapshot.node(id).is_none()
        };
        if self.peers.iter().any(|(id, peer)| is_stranger(*id, peer)) {
            let leaders: BTreeSet<i32> = partitions.iter().flatten().filter_map(|partition| partition.leader).collect();
            self.peers.retain(|id, peer| leaders.contains(id) || !is_stranger(*id, peer));
        }
    }

    /// Why nothing can be sent to the topic of a partition, if waiting does not help.
    pub(super) fn refusal(&self, slot: usize) -> Option<ErrorCode> {
        if self.snapshot.errors.is_empty() {
            return None;
        }
        let code = *self.snapshot.errors.get(&self.partitions[slot].as_ref()?.destination.name)?;
        matches!(code, ErrorCode::TOPIC_AUTHORIZATION_FAILED | ErrorCode::INVALID_TOPIC_EXCEPTION).then_some(code)
    }

    /// Fails what waits for a topic that cannot be sent to.
    pub(super) fn refuse(&mut self, slot: usize, code: ErrorCode) {
        let what = format!("producing to {}: the broker refuses the topic", self.partition(slot).destination);
        self.fail_all(slot, &KrafkaError::broker(code, what));
        self.order_seal(slot);
    }

    /// Fails everything in a partition's queue.
    pub(super) fn fail_all(&mut self, slot: usize, error: &KrafkaError) {
        for batch in std::mem::take(&mut self.partition(slot).queue) {
            self.give_up(batch, Settled::Failed(error.clone()));
        }
    }

    /// Answers a batch that will not be sent again, and minds the hole that it leaves in the sequence.
    pub(super) fn give_up(&mut self, mut batch: Batch, settled: Settled) {
        if batch.stamp.is_some() && self.settings.is_idempotent {
            let partition = self.partition(batch.destination.slot);
            match batch.possibly_written {
                true => partition.is_unresolved = true,
                false => partition.needs_restart = true,
            }
        }
        if let Some(receipt) = batch.take_receipt() {
            self.counters.add(|counters| &counters.records_failed, u64::from(batch.count()));
            self.settle(receipt, settled);
        }
        self.actions.push_back(Action::Recycle(batch));
    }

    pub(super) fn settle(&mut self, receipt: Receipt, settled: Settled) {
        self.outstanding -= 1;
        self.actions.push_back(Action::Settle(receipt, settled));
    }

    /// Fails the batches of a partition that have had their time.
    pub(super) fn expire(&mut self, slot: usize, now: Instant) {
        let timeout = self.settings.delivery_timeout;
        let is_idempotent = self.settings.is_idempotent;
        let partition = self.partition(slot);
        partition.is_timed = false;
        let mut in_flight = Vec::new();
        for flight in &mut partition.in_flight {
            if flight.batch.created + timeout <= now
                && let Some(receipt) = flight.batch.take_receipt()
            {
                partition.is_unresolved |= is_idempotent;
                in_flight.push((receipt, flight.batch.count()));
            }
        }
        let unsent = partition.expire(timeout, now);
        let is_open_late = partition.open.is_some_and(|open| open.at + timeout <= now);
        for (receipt, count) in in_flight {
            self.counters.add(|counters| &counters.records_failed, u64::from(count));
            let error = self.late(slot, true, "its last request has no answer yet".into());
            self.settle(receipt, Settled::Failed(error));
        }
        for batch in unsent {
            let why = match &batch.last_error {
                Some(error) => format!("it was sent {} times; the last time: {error}", batch.attempts),
                None => self.why_unsent(slot, now),
            };
            let error = self.late(slot, batch.possibly_written, why);
            self.give_up(batch, Settled::Failed(error));
        }
        if is_open_late {
            self.order_seal(slot);
        }
        self.watch_age(slot);
        self.stir(slot, now);
    }

    #[cold]
    fn late(&mut self, slot: usize, possibly_written: bool, why: String) -> KrafkaError {
        let timeout = self.settings.delivery_timeout;
        let destination = &self.partition(slot).destination;
        let message =
            format!("producing to {destination}: not acknowledged within {timeout:?} (delivery_timeout): {why}");
        KrafkaError::DeliveryTimeout { possibly_written, message: message.into() }
    }

    /// Why a batch was never sent.
    #[cold]
    fn why_unsent(&mut self, slot: usize, now: Instant) -> String {
        let leader = self.partition(slot).leader;
        let peer = leader.and_then(|leader| self.peers.get(&leader));
        match (leader, peer, &self.identity_error) {
            (None, ..) => "it was never sent, for the partition has no leader".into(),
            (_, Some(peer), _) if peer.error.is_some() => {
                let error = peer.error.as_ref().expect("the guard saw it");
                format!("it was never sent, for its leader cannot be reached: {error}")
            }
            (_, Some(peer), None) if peer.not_before.is_some_and(|at| at > now) => {
                let (node, left) = (&peer.node, peer.not_before.expect("the guard saw it") - now);
                format!("it was never sent, for {node} throttles this client: it asked for silence for {left:?} more")
            }
            (_, _, Some(error)) => format!("it was never sent, for the producer has no id yet: {error}"),
            _ => "it was never sent, for those before it were not acknowledged, or its leader was busy".into(),
        }
    }

    /// Closing has taken long enough: fails whatever is left.
    pub(super) fn end(&mut self) {
        self.is_closed = true;
        for slot in 0..self.partitions.len() {
            let Some(partition) = &mut self.partitions[slot] else { continue };
            let in_flight: Vec<_> =
                partition.in_flight.iter_mut().filter_map(|flight| flight.batch.take_receipt()).collect();
            let queue = std::mem::take(&mut partition.queue);
            for receipt in in_flight {
                let error = self.unfinished(slot, true);
                self.settle(receipt, Settled::Failed(error));
            }
            for batch in queue {
                let error = self.unfinished(slot, batch.possibly_written);
                self.give_up(batch, Settled::Failed(error));
            }
        }
    }

    #[cold]
    pub(super) fn unfinished(&mut self, slot: usize, possibly_written: bool) -> KrafkaError {
        let destination = &self.partition(slot).destination;
        let outcome = if possibly_written { "it may have been written" } else { "it was not written" };
        KrafkaError::closed(format!(
            "producing to {destination}: the producer was closed, and its timeout passed before the record was \
             acknowledged; {outcome}"
        ))
    }
}

/// Whether two views are of one topic, not of two that had the same name one after the other.
fn is_same_topic(before: Option<&TopicView>, after: Option<&TopicView>) -> bool {
    match (before, after) {
        (Some(before), Some(after)) => before.id == after.id || before.id.is_zero() || after.id.is_zero(),
        // Gone, or not seen yet: nothing to compare.
        _ => true,
    }
}
