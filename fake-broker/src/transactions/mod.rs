//! The transaction coordinators: which transactional ids there are, and what a node must look at before one of them.
//!
//! A transactional id lives on its coordinator's partition of `__transaction_state`, so that it outlives the node: when
//! the coordinator moves, the next one finds it as it was, and tells the partitions of a transaction that is about to
//! end (`markers.rs`). The rules of one id are in `transaction.rs`; what the leaders of partitions ask a coordinator is
//! in `verification.rs`; offsets of groups in transactions are in `pending_offsets.rs`.

mod markers;
mod pending_offsets;
mod sweep;
mod transaction;
mod unwritable;
pub(crate) mod verification;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use krafka_protocol::coordinator::transaction::TransactionLogValue;
use krafka_protocol::{ErrorCode, Str};

pub(crate) use markers::{delay as delay_markers, tell_all, write as write_marker};
pub(crate) use pending_offsets::PendingOffsets;
pub(crate) use sweep::{Timer, timer_fired};
pub use transaction::TransactionState;
use transaction::{Ended, Initialised};
pub(crate) use transaction::{Protocol, Transaction};
pub use view::TransactionView;

use crate::coordinators::{self, CoordinatorKind, log};
use crate::faults::KafkaVersion;
use crate::features::TRANSACTION_VERSION;
use crate::producer_ids::IdAndEpoch;
use crate::state::State;
use crate::timers::TimerId;

/// Every transactional id of the cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transactions {
    by_id: BTreeMap<Str, Transaction>,
    /// The ids whose partitions are not told of an end: a test holds the markers back.
    held: BTreeSet<Str>,
    /// How long it takes until the partitions are told of an end.
    marker_delay: Duration,
    /// The ids whose partitions are not told yet, and when they will be.
    delayed: BTreeMap<Str, Instant>,
    /// The ids with a change under way that their coordinators cannot write, and never finish.
    unwritable: BTreeSet<Str>,
    /// The partitions of `__transaction_state` that their leaders are reading, and until when.
    loading: BTreeMap<i32, Instant>,
    /// When the coordinators look for transactions that are open for too long, if there are any that are open.
    sweep: Option<TimerId>,
}

impl Transactions {
    /// What is known of an id.
    pub(crate) fn find(&self, id: &str) -> Option<&Transaction> {
        self.by_id.get(id)
    }

    /// All ids with what is known of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Str, &Transaction)> {
        self.by_id.iter()
    }

    /// Whether a coordinator is still reading its partition.
    pub(crate) fn is_loading(&self, partition: i32, now: Instant) -> bool {
        self.loading.get(&partition).is_some_and(|&until| now < until)
    }

    /// Whether a node is still reading any of the partitions that it leads.
    pub(crate) fn loads_any(&self, state: &State, node: i32, now: Instant) -> bool {
        let topic = CoordinatorKind::Transaction.topic();
        let leads = |index| state.topics.partition(topic, index).is_some_and(|led| led.leader == Some(node));
        self.loading.iter().any(|(&index, &until)| now < until && leads(index))
    }

    /// Holds back the markers of an id.
    pub(crate) fn hold(&mut self, id: &str) {
        self.held.insert(Str::from(id));
    }

    /// What there is to write of an id into the coordinator's log.
    pub(crate) fn take_record(&mut self, id: &str, is_flexible: bool) -> Option<TransactionLogValue> {
        self.by_id.get_mut(id)?.take_record(is_flexible)
    }
}

/// Forgets an id, as a coordinator does after `transactional.id.expiration.ms`. Says if it was there and idle.
pub(crate) fn forget(state: &mut State, id: &str, now: Instant) -> bool {
    let is_idle = state.transactions.by_id.get(id).is_some_and(|txn| txn.is_expired(i64::MAX, 0));
    let forgotten = is_idle.then(|| state.transactions.by_id.remove_entry(id)).flatten();
    if let Some((id, _)) = &forgotten {
        log::forget_transaction(state, id, now);
    }
    forgotten.is_some()
}

/// Why a node does not answer for an id: another one coordinates it, or it is still reading what it must know.
pub(crate) fn refusal(state: &State, node: i32, id: &str, now: Instant) -> Option<ErrorCode> {
    if coordinators::find(state, CoordinatorKind::Transaction, id) != Some(node) {
        return Some(ErrorCode::NOT_COORDINATOR);
    }
    let index = state.spread.partition_for(CoordinatorKind::Transaction, id);
    let is_loading = state.transactions.is_loading(index, now);
    is_loading.then_some(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS)
}

/// The protocol that the coordinators use when they abort a transaction themselves: by the finalized level of
/// `transaction.version`.
pub(crate) fn protocol(state: &State) -> Protocol {
    Protocol::of_level(state.feature_level(TRANSACTION_VERSION))
}

/// How a producer claims a transactional id.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    /// What it believes to have.
    pub(crate) expected: Option<IdAndEpoch>,
    /// For how long its transactions may be open.
    pub(crate) timeout_ms: i32,
    /// Whether they may be open for ever, as parts of another system's two-phase commits.
    pub(crate) two_phases: bool,
    /// Whether it wants to end what its predecessor has prepared.
    pub(crate) keeps_prepared: bool,
}

/// Gives a transactional producer its id and the next epoch. What an earlier one left open is aborted first, and the
/// producer has to come again.
///
/// # Errors
///
/// `INVALID_REQUEST` for an empty id, `TRANSACTIONAL_ID_AUTHORIZATION_FAILED` for two phases where the brokers do not
/// allow them to anybody, `UNSUPPORTED_VERSION` for a transaction to be kept, which no Kafka up to 4.4 can,
/// `INVALID_TRANSACTION_TIMEOUT`, those of [`refusal`] and of [`Transaction::initialise`].
pub(crate) fn initialise(
    state: &mut State,
    node: i32,
    id: &Str,
    claim: &Claim,
    now: Instant,
) -> Result<IdAndEpoch, ErrorCode> {
    let &Claim { expected, timeout_ms, two_phases, keeps_prepared } = claim;
    if id.is_empty() {
        return Err(ErrorCode::INVALID_REQUEST);
    }
    if two_phases && !state.config.two_phase_commit {
        return Err(ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
    }
    if keeps_prepared {
        return Err(ErrorCode::UNSUPPORTED_VERSION);
    }
    if !two_phases && !(1..=state.config.transaction_max_timeout_ms).contains(&timeout_ms) {
        return Err(ErrorCode::INVALID_TRANSACTION_TIMEOUT);
    }
    let timeout_ms = if two_phases { transaction::NO_TIMEOUT_MS } else { timeout_ms };
    if let Some(error) = refusal(state, node, id, now) {
        return Err(error);
    }
    unwritable::check(state, id)?;
    forget_expired(state, now);
    let wall_ms = state.clock.millis(now);
    let keeps_start = state.version_of(node) < KafkaVersion::V4_1;
    let (transactions, ids) = (&mut state.transactions, &mut state.producer_ids);
    let transaction = transactions
        .by_id
        .entry(id.clone())
        .or_insert_with(|| Transaction::new(ids.allocate(node).producer_id, timeout_ms, wall_ms));
    let start_ms = transaction.start_ms();
    match transaction.initialise(expected, timeout_ms, wall_ms, || ids.allocate(node).producer_id)? {
        Initialised::Ready(producer) => {
            if keeps_start {
                transaction.keep_start(start_ms);
            }
            log::write_transaction(state, id, now);
            Ok(producer)
        }
        Initialised::Open => {
            abort(state, node, id, now);
            Err(ErrorCode::CONCURRENT_TRANSACTIONS)
        }
    }
}

/// Adds partitions to the transaction of an id, in the protocol that its producer follows.
///
/// # Errors
///
/// `INVALID_REQUEST` for an empty id, `INVALID_PRODUCER_ID_MAPPING` for one that nobody knows, those of [`refusal`]
/// and of [`Transaction::add`].
pub(crate) fn add_partitions(
    state: &mut State,
    node: i32,
    id: &Str,
    producer: IdAndEpoch,
    partitions: BTreeSet<(Str, i32)>,
    protocol: Protocol,
    now: Instant,
) -> Result<(), ErrorCode> {
    let wall_ms = state.clock.millis(now);
    known(state, node, id, now)?;
    unwritable::check(state, id)?;
    unwritable::change(state, id, protocol, |_, transaction| transaction.add(producer, partitions, protocol, wall_ms))?;
    log::write_transaction(state, id, now);
    sweep::ensure(state, now);
    Ok(())
}

/// Whether a partition is in the transaction of an id.
///
/// # Errors
///
/// As [`add_partitions`], and those of [`Transaction::verify`].
pub(crate) fn verify(
    state: &mut State,
    node: i32,
    id: &Str,
    producer: IdAndEpoch,
    partition: &(Str, i32),
    now: Instant,
) -> Result<(), ErrorCode> {
    known(state, node, id, now)?.verify(producer, partition)
}

/// Ends the transaction of an id, and returns with which identity its producer goes on.
///
/// # Errors
///
/// As [`add_partitions`], and those of [`Transaction::end`].
pub(crate) fn end(
    state: &mut State,
    node: i32,
    id: &Str,
    producer: IdAndEpoch,
    commit: bool,
    protocol: Protocol,
    now: Instant,
) -> Result<IdAndEpoch, ErrorCode> {
    known(state, node, id, now)?;
    unwritable::check(state, id)?;
    let wall_ms = state.clock.millis(now);
    let ended = unwritable::change(state, id, protocol, |ids, transaction| {
        transaction.end(producer, commit, protocol, wall_ms, || ids.allocate(node).producer_id)
    })?;
    match ended {
        Ended::Repeated(producer) => Ok(producer),
        Ended::Decided(producer) => {
            log::write_transaction(state, id, now);
            markers::send(state, id, now);
            Ok(producer)
        }
    }
}

/// Aborts the open transaction of an id, whose producer is fenced by it.
fn abort(state: &mut State, node: i32, id: &Str, now: Instant) {
    let (protocol, wall_ms) = (protocol(state), state.clock.millis(now));
    let (transactions, ids) = (&mut state.transactions, &mut state.producer_ids);
    if let Some(transaction) = transactions.by_id.get_mut(id) {
        transaction.fence(protocol, wall_ms, || ids.allocate(node).producer_id);
        log::write_transaction(state, id, now);
        markers::send(state, id, now);
    }
}

/// Lets the markers of an id go that were held back.
pub(crate) fn release(state: &mut State, id: &str, now: Instant) {
    if let Some(id) = state.transactions.held.take(id) {
        markers::tell(state, &id, now);
    }
}

/// Makes the ids on a partition of `__transaction_state` known to its new leader, which may take a while to read them.
pub(crate) fn coordinator_moved(state: &mut State, partition: i32, now: Instant) {
    let load_time = state.config.coordinator_load_time;
    if !load_time.is_zero() {
        state.transactions.loading.insert(partition, now + load_time);
        sweep::when_loaded(state, now + load_time);
    }
    unwritable::reload(state, partition);
    tell_all(state, now);
}

/// The transaction of an id that a node coordinates.
fn known<'a>(state: &'a mut State, node: i32, id: &Str, now: Instant) -> Result<&'a mut Transaction, ErrorCode> {
    if id.is_empty() {
        return Err(ErrorCode::INVALID_REQUEST);
    }
    if let Some(error) = refusal(state, node, id, now) {
        return Err(error);
    }
    forget_expired(state, now);
    state.transactions.by_id.get_mut(id).ok_or(ErrorCode::INVALID_PRODUCER_ID_MAPPING)
}

/// Forgets the ids that nothing happened to for long. Kafka looks for them once in an hour, which shows only to those
/// who ask, so that it is done when somebody does.
pub(crate) fn forget_expired(state: &mut State, now: Instant) {
    let Some(looked_ms) = state.clock.last_multiple_ms(now, sweep::FORGET_INTERVAL) else { return };
    let expiration_ms = state.config.transactional_id_expiration_ms;
    let is_expired = |transaction: &Transaction| transaction.is_expired(looked_ms, expiration_ms);
    let Transactions { by_id, unwritable, .. } = &state.transactions;
    let expired = by_id.iter().filter(|(id, it)| !unwritable.contains(*id) && is_expired(it));
    let expired: Vec<Str> = expired.map(|(id, _)| id.clone()).collect();
    for id in expired {
        state.transactions.by_id.remove(&id);
        log::forget_transaction(state, &id, now);
    }
}
