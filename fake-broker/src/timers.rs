//! Timers as data: what is due, when, in an order that is the same in every run.
//!
//! A timer names what it acts on by an identity that is never used twice (a request, a connection, a generation), so
//! that one that fires late finds nothing and does nothing.

use std::collections::BTreeMap;
use std::time::Instant;

use krafka_protocol::Uuid;

use crate::context::{ConnectionId, RequestId};
use crate::groups;
use crate::maintenance;
use crate::transactions;

/// What to do when the time comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// Answer a parked request with what there is.
    Expire(RequestId),
    /// Handle a request that a fault held back.
    Handle(RequestId),
    /// Write an answer that a fault held back.
    Write(RequestId),
    /// Write what a connection keeps for its next answer, if the answer to this request is among it.
    Flush(ConnectionId, RequestId),
    /// Hand a node what has arrived of what a client sent.
    Arrive(ConnectionId),
    /// Hand a client what has arrived of what a node sent.
    Deliver(ConnectionId),
    /// A rule about the network wakes or ends: look at what is held again.
    Network,
    /// Links between nodes were cut for long enough: look at what follows.
    Links,
    /// Deliver a request that was recorded once more.
    Redeliver(RequestId),
    /// Read on from a connection that was throttled.
    Unmute(ConnectionId),
    /// Close a connection that was one too many.
    HangUp(ConnectionId),
    /// Throw a partition's replicas out of sync that have lagged too long.
    ShrinkIsr {
        /// The topic's id.
        topic: Uuid,
        /// The partition's index.
        partition: i32,
    },
    /// Close a connection on which nothing came or went for long enough.
    Idle(ConnectionId),
    /// Delete or compact what is in logs.
    Maintain(maintenance::Task),
    /// Something inside a group, or the search for groups that nobody uses.
    Group(groups::Timer),
    /// Something at the transaction coordinators: transactions that are open for too long.
    Transaction(transactions::Timer),
    /// Something in a share group: a session that ends, a lock that has held long enough.
    Share(groups::share::Timer),
}

/// Names a timer that was set, to cancel it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TimerId {
    due: Instant,
    sequence: u64,
}

/// All timers of a cluster, the first due first; among equals, the first set first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timers {
    pending: BTreeMap<TimerId, Timer>,
    next_sequence: u64,
}

impl Timers {
    /// Sets a timer.
    pub(crate) fn set(&mut self, due: Instant, timer: Timer) -> TimerId {
        let id = TimerId { due, sequence: self.next_sequence };
        self.next_sequence += 1;
        self.pending.insert(id, timer);
        id
    }

    /// Forgets a timer; one that fired already is no matter.
    pub(crate) fn cancel(&mut self, id: TimerId) {
        self.pending.remove(&id);
    }

    /// When the next one is due.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.pending.first_key_value().map(|(id, _)| id.due)
    }

    /// Takes the first timer that is due at `now`.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<Timer> {
        let first = self.pending.first_entry()?;
        (first.key().due <= now).then(|| first.remove())
    }
}
