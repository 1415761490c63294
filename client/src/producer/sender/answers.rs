//! What an answer means for each batch of its request.
//!
//! The code decides by [`Outcome`]'s table; here is what the table cannot know: which batch of its partition it was,
//! what is known of the leader by now, and whether there is a hint of a newer one.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use krafka_protocol::ErrorCode;
use krafka_protocol::api::produce::{PartitionProduceResponse, ProduceResponse};

use super::{Action, Entry, HASTY_MOVES, Link, Sender, Timer};
use crate::cluster::{LeaderHint, Node};
use crate::error::KrafkaError;
use crate::limits::MAX_THROTTLE;
use crate::producer::batch::Batch;
use crate::producer::delivery::{Destination, Settled};
use crate::producer::outcome::Outcome;

/// What to do with a batch that goes back into the queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Again {
    /// The same would happen again at once: wait.
    Later,
    /// Something is different now.
    Now,
}

impl<L: Clone> Sender<L> {
    pub(super) fn answered(&mut self, request: u64, response: &ProduceResponse, pause: Option<Duration>, now: Instant) {
        let Some(sent) = self.requests.remove(&request) else { return };
        if let Some(peer) = self.peers.get_mut(&sent.node) {
            peer.in_flight -= 1;
            if let Some(pause) = pause {
                // The connection keeps silent by itself; but batches that are not submitted meanwhile can still grow,
                // move to another leader, or expire as certainly unsent.
                let pause = pause.min(MAX_THROTTLE);
                peer.not_before = Some(now + pause);
                self.timers.insert((now + pause, Timer::Node(sent.node)));
            }
        }
        self.stirred.insert(sent.node);
        let answers = by_partition(response);
        for entry in sent.entries {
            let Some(batch) = self.partition(entry.slot).land(entry.order) else { continue };
            let destination = batch.destination.clone();
            let by_name = answers.get(&(destination.name.as_bytes(), destination.partition));
            match by_name.or_else(|| answers.get(&(&entry.topic_id.0[..], destination.partition))) {
                Some(answer) => self.judge(batch, answer, response, sent.node, now),
                None => {
                    let what =
                        format!("producing to {}: the broker's answer leaves the partition out", batch.destination);
                    let error = KrafkaError::protocol(crate::ProtocolErrorKind::UnexpectedResponse, what);
                    self.retry(batch, error, true, Again::Later, now);
                }
            }
            self.watch_age(entry.slot);
            self.stir(entry.slot, now);
        }
    }

    /// Decides about one batch. It is out of the partition's books until it is put back.
    fn judge(
        &mut self,
        mut batch: Batch,
        answer: &PartitionProduceResponse,
        response: &ProduceResponse,
        node: i32,
        now: Instant,
    ) {
        let slot = batch.destination.slot;
        let code = ErrorCode(answer.error_code);
        match Outcome::of(code) {
            Outcome::Written => self.written_at(batch, answer.base_offset, answer.log_append_time_ms, now),
            Outcome::Duplicate => self.written_at(batch, -1, -1, now),
            // Its records have their answer. What this answer says of the sequence shows when the next batch goes.
            _ if batch.is_settled() => self.actions.push_back(Action::Recycle(batch)),
            Outcome::Retry { possibly_written, refresh } => {
                let error = refused(&batch.destination, code, answer, node);
                let again = if refresh { self.look_elsewhere(slot, answer, response, node) } else { Again::Later };
                self.retry(batch, error, possibly_written, again, now);
            }
            Outcome::Split => self.split(batch, code, answer, node, now),
            Outcome::Gap if self.settings.is_idempotent => {
                let error = refused(&batch.destination, code, answer, node);
                // Behind a batch that is not written yet it could not be otherwise: it waits for that one. But if there
                // is none, the broker misses what will never come: only a new sequence helps.
                let is_first = !self.partition(slot).has_older(batch.order);
                self.partition(slot).needs_restart |= is_first;
                let again = if is_first { Again::Later } else { Again::Now };
                self.retry(batch, error, false, again, now);
            }
            Outcome::Forgotten if self.settings.is_idempotent => {
                let error = refused(&batch.destination, code, answer, node);
                // Without the log's start the broker cannot know either: it tells when asked again.
                self.partition(slot).needs_restart |= answer.log_start_offset >= 0;
                self.partition(slot).sequences.forgotten();
                self.retry(batch, error, false, Again::Later, now);
            }
            Outcome::Fenced if self.settings.is_idempotent => {
                let error = refused(&batch.destination, code, answer, node);
                if let Some(stamp) = batch.stamp {
                    self.identity.renew(stamp.producer);
                }
                self.partition(slot).needs_restart = true;
                if batch.possibly_written {
                    // The epoch is checked before duplicates are: this answer hides whether an earlier attempt is in
                    // the log, and under another id it would be written a second time.
                    let message = format!("{error}; an earlier attempt may have been written");
                    self.give_up(batch, Settled::Failed(KrafkaError::Fenced { message: message.into() }));
                } else {
                    self.retry(batch, error, false, Again::Later, now);
                }
            }
            Outcome::Gap | Outcome::Forgotten | Outcome::Fenced => {
                let error = refused(&batch.destination, code, answer, node);
                self.give_up(batch, Settled::Failed(error));
            }
            Outcome::Fail { possibly_written } => {
                batch.possibly_written |= possibly_written;
                let settled = failure(&batch, code, answer, node);
                self.give_up(batch, settled);
            }
        }
    }

    fn written_at(&mut self, mut batch: Batch, base_offset: i64, log_append_time: i64, now: Instant) {
        let partition = self.partition(batch.destination.slot);
        if let Some(stamp) = batch.stamp {
            partition.sequences.acknowledge(stamp, batch.count());
        }
        (partition.failures, partition.moves, partition.not_before) = (0, 0, None);
        if let Some(receipt) = batch.take_receipt() {
            self.counters.add(|counters| &counters.records_acknowledged, u64::from(batch.count()));
            self.counters.add(|counters| &counters.bytes_acknowledged, batch.len() as u64);
            self.counters.delivery_time(now.saturating_duration_since(batch.created));
            self.settle(receipt, Settled::Written { base_offset, log_append_time });
        }
        self.actions.push_back(Action::Recycle(batch));
    }

    fn retry(&mut self, mut batch: Batch, error: KrafkaError, possibly_written: bool, again: Again, now: Instant) {
        let slot = batch.destination.slot;
        batch.possibly_written |= possibly_written;
        batch.last_error = Some(error);
        if self.is_closed {
            let error = self.unfinished(slot, batch.possibly_written);
            return self.give_up(batch, Settled::Failed(error));
        }
        self.partition(slot).requeue(batch);
        if again == Again::Later {
            self.back_off(slot, now);
        }
    }

    /// The broker is not the leader. Takes up its hint of who is, if it is news (KIP-951), or has the metadata fetched.
    fn look_elsewhere(
        &mut self,
        slot: usize,
        answer: &PartitionProduceResponse,
        response: &ProduceResponse,
        node: i32,
    ) -> Again {
        let hint = &answer.current_leader;
        let partition = self.partition(slot);
        let (destination, topic_id) = (partition.destination.clone(), partition.topic_id);
        if hint.leader_id >= 0 && hint.leader_epoch > partition.leader_epoch {
            let endpoint = response.node_endpoints.iter().find(|endpoint| endpoint.node_id == hint.leader_id);
            let endpoint = endpoint.and_then(|endpoint| {
                let port = u16::try_from(endpoint.port).ok()?;
                Some(Node { id: endpoint.node_id, host: endpoint.host.clone(), port, rack: endpoint.rack.clone() })
            });
            if self.meet(hint.leader_id, endpoint.as_ref()) {
                let partition = self.partition(slot);
                (partition.leader, partition.leader_epoch) = (Some(hint.leader_id), hint.leader_epoch);
                (partition.listed, partition.moves) = (None, partition.moves.saturating_add(1));
                let is_hasty = partition.moves <= HASTY_MOVES;
                if is_hasty {
                    (partition.failures, partition.not_before) = (0, None);
                }
                self.actions.push_back(Action::Hint(LeaderHint {
                    topic: destination.name.clone(),
                    topic_id,
                    partition: destination.partition,
                    leader: hint.leader_id,
                    leader_epoch: hint.leader_epoch,
                    node: endpoint,
                }));
                return if is_hasty { Again::Now } else { Again::Later };
            }
        }
        if self.partition(slot).leader.is_some_and(|leader| leader != node) {
            // While the request was on its way, news of another leader came.
            return Again::Now;
        }
        self.actions.push_back(Action::Refresh(destination.name.clone()));
        Again::Later
    }

    /// Whether a broker that was named can be reached: its address is known, or was told with its name.
    fn meet(&mut self, id: i32, endpoint: Option<&Node>) -> bool {
        if self.peer(id).is_some() {
            return true;
        }
        if let Some(node) = endpoint {
            self.forget_strangers();
            self.peers.insert(id, super::Peer::new(node.clone().into()));
        }
        endpoint.is_some()
    }

    /// Makes smaller batches of one that the broker found too large; a single record that is too large fails.
    fn split(&mut self, mut batch: Batch, code: ErrorCode, answer: &PartitionProduceResponse, node: i32, now: Instant) {
        let slot = batch.destination.slot;
        if batch.count() > 1 {
            match batch.split(&mut self.compressor, &mut self.decompressor) {
                Ok(parts) => {
                    self.counters.add(|counters| &counters.splits, 1);
                    self.outstanding += parts.len() - 1;
                    self.actions.push_back(Action::Recycle(batch));
                    let partition = self.partition(slot);
                    parts.into_iter().for_each(|part| partition.requeue(part));
                    return self.stir(slot, now);
                }
                Err(error) => {
                    let what = format!(
                        "producing to {}: too large for the broker, and not to be split: {error}",
                        batch.destination
                    );
                    return self.give_up(batch, Settled::Failed(KrafkaError::broker(code, what)));
                }
            }
        }
        let what = format!(
            "producing to {}: broker {node} refuses a record of {} bytes{}; raise the topic's max.message.bytes \
             (and the broker's replica.fetch.max.bytes with it), or send a smaller record",
            batch.destination,
            batch.len(),
            said(answer),
        );
        self.give_up(batch, Settled::Failed(KrafkaError::broker(code, what)));
    }

    /// A request that nobody answers (acks=0) was handed to the network.
    pub(super) fn written(&mut self, request: u64, now: Instant) {
        let Some(sent) = self.requests.remove(&request) else { return };
        if let Some(peer) = self.peers.get_mut(&sent.node) {
            peer.in_flight -= 1;
        }
        self.stirred.insert(sent.node);
        for Entry { slot, order, .. } in sent.entries {
            if let Some(batch) = self.partition(slot).land(order) {
                self.written_at(batch, -1, -1, now);
            }
            self.stir(slot, now);
        }
    }

    /// A request will not be answered.
    pub(super) fn lost(
        &mut self,
        request: u64,
        error: &KrafkaError,
        possibly_written: bool,
        is_retriable: bool,
        now: Instant,
    ) {
        let Some(sent) = self.requests.remove(&request) else { return };
        if let Some(peer) = self.peers.get_mut(&sent.node) {
            peer.in_flight -= 1;
            if matches!(&peer.link, Link::Up(_, number) if *number == sent.link) {
                peer.link = Link::Idle;
            }
        }
        self.stirred.insert(sent.node);
        for Entry { slot, order, .. } in sent.entries {
            let Some(mut batch) = self.partition(slot).land(order) else { continue };
            if batch.is_settled() {
                self.actions.push_back(Action::Recycle(batch));
            } else if is_retriable {
                // What never left the process says little about the broker: once, it is worth another connection at
                // once. One that was closed while it was idle, or given up for another, is no news.
                let partition = self.partition(slot);
                let again = if possibly_written || partition.failures > 0 { Again::Later } else { Again::Now };
                // The others of the connection fail with it, one after the other; the first one asks.
                let asks = again == Again::Later && partition.not_before.is_none_or(|at| at <= now);
                partition.failures += u32::from(again == Again::Now);
                if asks {
                    self.actions.push_back(Action::Refresh(batch.destination.name.clone()));
                }
                self.retry(batch, error.clone(), possibly_written, again, now);
            } else {
                batch.possibly_written |= possibly_written;
                let error = if batch.possibly_written { doubtful(error) } else { error.clone() };
                self.give_up(batch, Settled::Failed(error));
            }
            self.watch_age(slot);
            self.stir(slot, now);
        }
    }
}

/// What an answer names a partition by: the topic's name, or from version 13 its id.
type Key<'a> = (&'a [u8], i32);

/// The answers by partition. One that is named twice keeps the first answer.
fn by_partition(response: &ProduceResponse) -> BTreeMap<Key<'_>, &PartitionProduceResponse> {
    let mut answers = BTreeMap::new();
    for topic in &response.responses {
        let name = if topic.name.is_empty() { &topic.topic_id.0[..] } else { topic.name.as_bytes() };
        for answer in &topic.partition_responses {
            answers.entry((name, answer.index)).or_insert(answer);
        }
    }
    answers
}

/// What the broker said beyond the code.
fn said(answer: &PartitionProduceResponse) -> String {
    answer.error_message.as_ref().map_or_else(String::new, |message| format!(" ({message})"))
}

/// Adds that the records may be in the log, for whoever is about to send them again.
#[cold]
fn doubtful(error: &KrafkaError) -> KrafkaError {
    error.saying(format!("{error}; the record may have been written"))
}

#[cold]
fn refused(destination: &Destination, code: ErrorCode, answer: &PartitionProduceResponse, node: i32) -> KrafkaError {
    KrafkaError::broker(code, format!("producing to {destination} at broker {node}{}", said(answer)))
}

/// What the records of a refused batch are told: the ones that the broker names something else than the others
/// (KIP-467).
#[cold]
fn failure(batch: &Batch, code: ErrorCode, answer: &PartitionProduceResponse, node: i32) -> Settled {
    let destination = &batch.destination;
    if answer.record_errors.is_empty() {
        let perhaps = if batch.possibly_written { "; the record may have been written" } else { "" };
        let context = format!("producing to {destination} at broker {node}{}{perhaps}", said(answer));
        return Settled::Failed(KrafkaError::broker(code, context));
    }
    let culprits = answer.record_errors.iter().filter_map(|culprit| {
        let reason = culprit.batch_index_error_message.as_deref().unwrap_or("the broker does not say why");
        let context = format!("producing to {destination}: the broker refuses the record: {reason}");
        Some((u32::try_from(culprit.batch_index).ok()?, KrafkaError::broker(code, context)))
    });
    let rest = format!(
        "producing to {destination}: the record was in a batch with one that the broker refuses{}; it was not \
         written, and can be sent again",
        said(answer)
    );
    Settled::Rejected { culprits: culprits.collect(), rest: KrafkaError::broker(code, rest) }
}
