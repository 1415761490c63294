//! [`Turns`]: who waits for a connection, and in which order, where there are fewer than are wanted.
//!
//! Without an order, whoever has a connection would keep it, as long polls keep it busy, and whoever comes in the right
//! moment would get what another has waited for.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::Key;
use crate::cluster::Node;
use crate::limits::MAX_WAITERS;
use crate::network::Waiter;

/// For how long a connection that is kept busy is had before others get their turn: long beside what it takes to make
/// one, short beside what those who wait can bear.
pub(super) const TURN: Duration = Duration::from_millis(40);

/// The same where all that there are wait for rebalances: the coordinator must have got a JoinGroup by then, which is
/// what counts for it.
pub(super) const JOIN_TURN: Duration = Duration::from_millis(500);

/// How long whoever was handed a connection has to use it. It does not count as idle before.
pub(super) const GRACE: Duration = Duration::from_millis(10);

/// How often a connection may be given up for another at most, of all that there are: each costs a handshake. With 50
/// connections to 60 brokers none would live for longer than a turn.
pub(super) const PACE: Duration = Duration::from_millis(50);

/// How long one waits for a turn: as long as a connection may take to be made.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// A connection that has not ended for so long after it was given up may take a while: its broker hangs, or asked for
/// silence. Then another is given up in its place, in time for those who wait.
pub(super) const SLOW: Duration = Duration::from_secs(5);

/// How long after somebody waited for another connections count as scarce.
pub(super) const SCARCE: Duration = Duration::from_secs(3);

/// Who waits beyond this has no place in the order.
const MAX_WAITING: usize = 1_000;

/// Who waits for the connection of a slot.
#[derive(Debug)]
pub(super) struct Turn<W> {
    pub(super) key: Key,
    pub(super) node: Node,
    waiters: Vec<(W, Instant)>,
}

impl<W> Turn<W> {
    pub(super) fn into_waiters(self) -> Vec<W> {
        self.waiters.into_iter().map(|(waiter, _)| waiter).collect()
    }
}

/// Those who wait, in the order in which they came.
#[derive(Debug)]
pub(super) struct Turns<W> {
    waiting: VecDeque<Turn<W>>,
    scarce_until: Option<Instant>,
}

impl<W> Default for Turns<W> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), scarce_until: None }
    }
}

impl<W: Waiter> Turns<W> {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// For how many connections somebody waits.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn is_waiting(&self, key: &Key) -> bool {
        self.waiting.iter().any(|turn| turn.key == *key)
    }

    /// Somebody had to wait behind others.
    pub(super) fn note_scarce(&mut self, now: Instant) {
        self.scarce_until = Some(now + SCARCE);
    }

    /// Whether somebody had to wait behind others not long ago.
    pub(super) fn is_scarce(&self, now: Instant) -> bool {
        !self.is_empty() || self.scarce_until.is_some_and(|until| now < until)
    }

    /// Puts somebody at the end, or to those who wait for the same; gives it back if there is no place.
    pub(super) fn wait(&mut self, key: Key, node: Node, waiter: W, now: Instant) -> Result<(), W> {
        self.note_scarce(now);
        let has_room = self.waiting.len() < MAX_WAITING;
        let waiter = (waiter, now + PATIENCE);
        match self.waiting.iter_mut().find(|turn| turn.key == key) {
            Some(turn) if turn.waiters.len() < MAX_WAITERS => turn.waiters.push(waiter),
            None if has_room => {
                self.waiting.push_back(Turn { key, node, waiters: vec![waiter] });
            }
            Some(_) | None => return Err(waiter.0),
        }
        Ok(())
    }

    /// Whose turn it is.
    pub(super) fn next(&mut self) -> Option<Turn<W>> {
        self.waiting.pop_front()
    }

    /// It was not its turn after all.
    pub(super) fn put_back(&mut self, turn: Turn<W>) {
        self.waiting.push_front(turn);
    }

    /// Takes out those who can go along with a connection, at most so many.
    pub(super) fn companions(&mut self, host: &Key, most: usize) -> Vec<W> {
        let goes_along =
            |turn: &Turn<W>| turn.key.with_lane(host.lane) == *host && turn.key.lane.reluctance(host.lane).is_some();
        let mut taken = Vec::new();
        for turn in &mut self.waiting {
            if goes_along(turn) {
                let room = most.saturating_sub(taken.len()).min(turn.waiters.len());
                taken.extend(turn.waiters.drain(..room).map(|(waiter, _)| waiter));
            }
        }
        self.waiting.retain(|turn| !turn.waiters.is_empty());
        taken
    }

    /// When the next will have waited for too long.
    pub(super) fn first_in_vain(&self) -> Option<Instant> {
        self.waiting.iter().flat_map(|turn| turn.waiters.first()).map(|(_, until)| *until).min()
    }

    /// Takes out those who waited for too long, and drops those who want nothing any more.
    pub(super) fn expired(&mut self, now: Instant) -> Vec<W> {
        let mut expired = Vec::new();
        for turn in &mut self.waiting {
            turn.waiters.retain(|(waiter, _)| !waiter.is_abandoned());
            let late = turn.waiters.iter().take_while(|(_, until)| *until <= now).count();
            expired.extend(turn.waiters.drain(..late).map(|(waiter, _)| waiter));
        }
        self.waiting.retain(|turn| !turn.waiters.is_empty());
        expired
    }

    /// Takes out those who wait for some of the slots.
    pub(super) fn remove(&mut self, which: impl Fn(&Key) -> bool) -> Vec<W> {
        let (gone, kept) = std::mem::take(&mut self.waiting).into_iter().partition(|turn| which(&turn.key));
        self.waiting = kept;
        let gone: VecDeque<Turn<W>> = gone;
        gone.into_iter().flat_map(Turn::into_waiters).collect()
    }
}
