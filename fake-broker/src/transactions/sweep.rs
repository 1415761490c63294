//! What the coordinators do at intervals: they abort transactions that are open for longer than their producers allow.
//!
//! Kafka's brokers look every ten seconds from their start on (`transaction.abort.timed.out.transaction.cleanup.
//! interval.ms`); all nodes look at the same moments here, and only while there is a transaction that is open.

use std::time::{Duration, Instant};

use krafka_protocol::Str;

use super::markers;
use crate::coordinators::{self, CoordinatorKind};
use crate::state::State;
use crate::timers;

/// `transaction.remove.expired.transaction.cleanup.interval.ms`.
pub(super) const FORGET_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// Something is due at the coordinators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// Look for transactions that are open for too long.
    Sweep,
    /// A coordinator has read its partition.
    Loaded,
    /// The markers of an id have been on their way for long enough.
    Sent(Str),
}

/// Does what is due.
pub(crate) fn timer_fired(state: &mut State, timer: &Timer, now: Instant) {
    match timer {
        Timer::Sweep => {
            state.transactions.sweep = None;
            abort_overdue(state, now);
            ensure(state, now);
        }
        Timer::Loaded => {
            state.transactions.loading.retain(|_, until| now < *until);
            markers::tell_all(state, now);
        }
        Timer::Sent(id) => markers::tell(state, id, now),
    }
}

/// Sets the timer of the next look, if a transaction is open and it is not set.
pub(super) fn ensure(state: &mut State, now: Instant) {
    let mut all = state.transactions.by_id.values();
    if state.transactions.sweep.is_none() && all.any(|txn| txn.state() == super::TransactionState::Ongoing) {
        let due = state.clock.next_multiple(now, state.config.transaction_abort_interval);
        state.transactions.sweep = Some(state.timers.set(due, timers::Timer::Transaction(Timer::Sweep)));
    }
}

/// Sets a timer for when a coordinator will have read its partition.
pub(super) fn when_loaded(state: &mut State, at: Instant) {
    state.timers.set(at, timers::Timer::Transaction(Timer::Loaded));
}

/// Sets a timer for when the markers of an id will have arrived.
pub(super) fn when_sent(state: &mut State, id: &Str, at: Instant) {
    state.timers.set(at, timers::Timer::Transaction(Timer::Sent(id.clone())));
}

fn abort_overdue(state: &mut State, now: Instant) {
    let wall_ms = state.clock.millis(now);
    let overdue = state.transactions.by_id.iter().filter(|(_, transaction)| transaction.is_overdue(wall_ms));
    let overdue = overdue.filter(|(id, _)| !state.transactions.unwritable.contains(*id));
    let overdue: Vec<Str> = overdue.map(|(id, _)| id.clone()).collect();
    for id in overdue {
        // Whoever is not coordinated, or by a node that does not know it yet, is aborted at a later look.
        let Some(node) = coordinators::find(state, CoordinatorKind::Transaction, &id) else { continue };
        if super::refusal(state, node, &id, now).is_none() {
            super::abort(state, node, &id, now);
        }
    }
}
