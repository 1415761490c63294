//! The end of a transaction reaches its partitions: a marker in each log, and the offsets of groups that wait for it.
//!
//! A coordinator decides first and tells the partitions then. A partition whose leader is out of reach, or with fewer
//! replicas in sync than it must have, is told when that is over; one that is gone needs not be told. Until all are,
//! the transaction is about to end. A leader that has the marker is told, though its replicas may not have it yet, for
//! which Kafka waits.
//!
//! A partition without any leader is told when it has one, up to Kafka 4.2. Since 4.3 it is never told, as if it were
//! gone, and the transaction is over without it: its readers of committed records wait there for ever. That is a fault
//! of Kafka's (`KRaftMetadataCache.getPartitionLeaderEndpoint` finds nothing where it used to find nobody), which
//! clients meet.
//!
//! Kafka answers EndTxn when it has decided, and tells the partitions then: who goes on at once is nearly always told
//! CONCURRENT_TRANSACTIONS, for some milliseconds, and asks again. Here the partitions are told before the answer is
//! written, unless there is a delay, which is set for all ids, or a test holds the markers of an id back.

use std::time::{Duration, Instant};

use krafka_protocol::{ErrorCode, Str};

use super::Transactions;
use super::transaction::TransactionState;
use crate::coordinators::{CoordinatorKind, OFFSETS_TOPIC, log};
use crate::faults::KafkaVersion;
use crate::log::producers::Marker;
use crate::state::State;

/// The longest delay: more than any test waits, and no more than a clock can count.
const LONGEST_DELAY: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Tells the partitions of an id's transaction how it ends, now or after the delay that is set: it was just decided.
pub(super) fn send(state: &mut State, id: &Str, now: Instant) {
    let delay = state.transactions.marker_delay;
    if !delay.is_zero() {
        let due = now + delay;
        state.transactions.delayed.insert(id.clone(), due);
        super::sweep::when_sent(state, id, due);
    }
    tell(state, id, now);
}

/// Sets how long it takes from now on until the partitions of a transaction are told how it ends.
pub(crate) fn delay(state: &mut State, delay: Duration) {
    state.transactions.marker_delay = delay.min(LONGEST_DELAY);
}

/// Tells the partitions of an id's transaction how it ends, as far as they can be told, if it is about to end.
pub(crate) fn tell(state: &mut State, id: &Str, now: Instant) {
    let Some(transaction) = state.transactions.by_id.get(id).filter(|txn| txn.state().is_preparing()) else { return };
    let index = state.spread.partition_for(CoordinatorKind::Transaction, id);
    let Transactions { held, delayed, .. } = &state.transactions;
    let is_delayed = delayed.get(id).is_some_and(|due| now < *due);
    if is_delayed || held.contains(id) || state.transactions.is_loading(index, now) {
        return;
    }
    state.transactions.delayed.remove(id);
    let Some(coordinator) = state.topics.partition(CoordinatorKind::Transaction.topic(), index) else { return };
    let Some(coordinator_node) = coordinator.leader else { return };
    let producer = transaction.producer();
    let marker = Marker {
        producer_id: producer.producer_id,
        producer_epoch: producer.producer_epoch,
        commit: transaction.state() == TransactionState::PrepareCommit,
        coordinator_epoch: coordinator.leader_epoch,
        version: transaction.protocol().level(),
    };
    let forgets_leaderless = state.version_of(coordinator_node) >= KafkaVersion::V4_3;
    let partitions = transaction.partitions().clone();
    let told: Vec<_> = partitions
        .into_iter()
        .filter(|(topic, index)| {
            let leader = state.topics.partition(topic, *index).and_then(|partition| partition.leader);
            !leader.is_some_and(|leader| state.are_apart(leader, coordinator_node))
                && is_told(state, &marker, topic, *index, forgets_leaderless, now)
        })
        .collect();

    let wall_ms = state.clock.millis(now);
    let Some(transaction) = state.transactions.by_id.get_mut(id) else { return };
    for partition in &told {
        transaction.told(partition);
    }
    if transaction.partitions().is_empty() {
        transaction.complete(wall_ms);
        log::write_transaction(state, id, now);
    }
}

/// Tells the partitions of all transactions that are about to end: something has changed.
pub(crate) fn tell_all(state: &mut State, now: Instant) {
    let preparing = state.transactions.by_id.iter().filter(|(_, txn)| txn.state().is_preparing());
    let ids: Vec<Str> = preparing.map(|(id, _)| id.clone()).collect();
    for id in ids {
        tell(state, &id, now);
    }
}

/// Writes a marker into a partition, at its leader.
///
/// # Errors
///
/// `NOT_LEADER_OR_FOLLOWER`, `NOT_ENOUGH_REPLICAS`, and those of
/// [`Producers::check_marker`](crate::log::producers::Producers::check_marker).
pub(crate) fn write(
    state: &mut State,
    marker: &Marker,
    topic: &Str,
    index: i32,
    now: Instant,
) -> Result<(), ErrorCode> {
    let found = state.topics.by_name(topic).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
    let id = found.id;
    let partition = found.partition(index).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
    if partition.leader.is_none() {
        return Err(ErrorCode::NOT_LEADER_OR_FOLLOWER);
    }
    if partition.is_under_min_isr() {
        return Err(ErrorCode::NOT_ENOUGH_REPLICAS);
    }
    partition.log.producers.check_marker(marker)?;
    let batch = marker.to_batch(state.clock.millis(now));
    state.append(id, index, &batch, now);
    if topic == OFFSETS_TOPIC {
        let spread = state.spread;
        let is_there = |group: &str| spread.partition_for(CoordinatorKind::Group, group) == index;
        state.pending_offsets.end(&mut state.offsets, is_there, marker.producer_id, marker.commit, now);
    }
    Ok(())
}

/// Whether a partition needs not be told any more.
fn is_told(
    state: &mut State,
    marker: &Marker,
    topic: &Str,
    index: i32,
    forgets_leaderless: bool,
    now: Instant,
) -> bool {
    match write(state, marker, topic, index, now) {
        Ok(()) | Err(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION) => true,
        Err(ErrorCode::NOT_LEADER_OR_FOLLOWER) => forgets_leaderless,
        Err(_) => false,
    }
}
