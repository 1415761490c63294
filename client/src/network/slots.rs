//! The pool's slots: at most one connection per broker and lane, one attempt at a time, and who waits for it.
//!
//! ```text
//!   empty ──wanted──▶ dialing ──connected──▶ ready ──closed──▶ empty
//!     ▲                  │
//!     └──── failed: the address is left alone, 50 ms at first, 1 s at last
//! ```
//!
//! Idle connections close by themselves (see `channel.rs`); their slots are swept when there are twice as many as after
//! the last time.
//!
//! **The cap.** Where there is no room, the connection that was idle for longest makes some; where none is idle, a lane
//! borrows the connection of another lane to the same broker, and waits behind its requests. It gets one of its own as
//! soon as there is room, and nothing of it is on its way, so that its requests stay in order. Where there is none to
//! the broker it waits for its turn (see `turns.rs`): connections that are idle make room at once, and of those that
//! are kept busy the one that was had for longest is given up after its answers, and where all wait for rebalances, one
//! of them does so no longer. While somebody waits, connections are to say when they have nothing more to do
//! ([`Input::Rested`]).

mod attempts;
mod key;
mod turns;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use krafka_protocol::Str;
use krafka_protocol::machine::Machine;

use self::attempts::Attempts;
pub(crate) use self::key::Key;
use self::turns::{GRACE, JOIN_TURN, PACE, PATIENCE, SCARCE, SLOW, TURN, Turns};
use super::{Lane, Waiter};
use crate::backoff::Backoff;
use crate::cluster::Node;
use crate::limits::MAX_WAITERS;
use crate::rng::Rng;

/// Kafka's `reconnect.backoff.ms` and `reconnect.backoff.max.ms`.
const RECONNECT: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(1));

/// A failure this long ago is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

/// The least time between two looks for room that nothing but time is the reason of.
const MOMENT: Duration = Duration::from_millis(1);

/// Slots that need no sweeping.
const FEW: usize = 16;

/// What a slot holds.
pub(crate) trait Slotted: Clone {
    /// Whether it takes no more requests.
    fn is_closed(&self) -> bool;
    /// How many requests are not done.
    fn pending(&self) -> usize;
    /// Whether it must keep silent.
    fn is_muted(&self) -> bool;
    /// Whether its socket is closed, too: until then it is one of those that the broker counts.
    fn has_ended(&self) -> bool;
}

/// What happened.
#[derive(Debug)]
pub(crate) enum Input<C, W, E> {
    /// Somebody wants a connection.
    Wanted { node: Node, lane: Lane, waiter: W },
    /// An attempt succeeded.
    Connected { key: Key, connection: C },
    /// An attempt failed.
    Failed { key: Key, error: E },
    /// Here the brokers are, by the latest news.
    Moved { nodes: BTreeMap<i32, Arc<Node>> },
    /// One more will use a lane that several share.
    Held { lane: Lane },
    /// A connection has nothing more to do, or was closed.
    Rested,
    /// One less will use these lanes.
    Released { lanes: Vec<Lane> },
    /// The client is closing.
    Closed,
}

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Action<C, W, E> {
    /// Start an attempt.
    Dial { key: Key, node: Node },
    /// Hand over a connection.
    Give { waiter: W, connection: C },
    /// Say why there is none.
    Refuse { waiter: W, refusal: Refusal<E> },
    /// Let a connection finish what it has, then close.
    Retire(C),
    /// The same, because the client closes: it is not waited for as long.
    Leave(C),
}

/// Why there is no connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal<E> {
    /// The attempt failed, now or within the backoff before.
    Failed(E),
    /// All connections that the user allows were in use for all of this time.
    Full { max_connections: usize, waited: Duration },
    /// Too many callers wait for the same connection.
    Crowded,
    /// Who began the attempt needs it no more. Others may have waited for the same.
    Released,
    /// The client was closed.
    Closed,
}

#[derive(Debug)]
enum Slot<C, W> {
    Dialing(Vec<W>),
    Ready {
        connection: C,
        since: Instant,
        used: Instant,
    },
    /// The connection of another lane. It does not count.
    Borrowed(C),
}

/// An address that could not be connected to.
#[derive(Debug)]
struct Failing<E> {
    failures: u32,
    until: Instant,
    error: E,
}

/// The machine of the pool.
#[derive(Debug)]
pub(crate) struct Slots<C, W, E> {
    max_connections: usize,
    slots: BTreeMap<Key, Slot<C, W>>,
    attempts: Attempts,
    failing: BTreeMap<(Str, u16), Failing<E>>,
    /// How many use a lane, where more than one may.
    users: BTreeMap<Lane, usize>,
    fallbacks: u64,
    turns: Turns<W>,
    /// Not to be used any more, and since when. They count until their sockets are closed.
    leaving: Vec<(C, Instant)>,
    /// When a connection was given up for another last.
    given_up: Option<Instant>,
    /// When there may be room for those who wait without anything else happening, or one of them has waited in vain.
    look_at: Option<Instant>,
    /// With so many slots the closed ones are looked for: a walk through all of them at each attempt would take as many
    /// steps as the square of their number.
    sweep_at: usize,
    rng: Rng,
    is_closed: bool,
    actions: VecDeque<Action<C, W, E>>,
}

impl<C: Slotted, W: Waiter, E: Clone> Slots<C, W, E> {
    pub(crate) fn new(max_connections: usize, seed: u64) -> Self {
        Self {
            max_connections,
            slots: BTreeMap::new(),
            attempts: Attempts::default(),
            failing: BTreeMap::new(),
            users: BTreeMap::new(),
            fallbacks: 0,
            turns: Turns::default(),
            leaving: Vec::new(),
            given_up: None,
            look_at: None,
            sweep_at: FEW,
            rng: Rng::stream(seed, "slots"),
            is_closed: false,
            actions: VecDeque::new(),
        }
    }

    /// The usable connection of a slot, if there is one. What most look-ups need.
    pub(crate) fn ready(&mut self, key: &Key, now: Instant) -> Option<C> {
        if self.is_outgrown(key, now) {
            self.slots.remove(key);
        }
        match self.slots.get_mut(key)? {
            Slot::Ready { connection, used, .. } if !connection.is_closed() => {
                *used = now;
                Some(connection.clone())
            }
            Slot::Borrowed(connection) if !connection.is_closed() => {
                self.fallbacks += 1;
                self.turns.note_scarce(now);
                Some(connection.clone())
            }
            _ => None,
        }
    }

    /// How often a look-up found the connection of another lane.
    pub(crate) fn fallbacks(&self) -> u64 {
        self.fallbacks
    }

    /// Whether requests wait for those of others, because there are too few connections, or did so not long ago.
    pub(crate) fn is_scarce(&self, now: Instant) -> bool {
        self.turns.is_scarce(now) || self.takes_turns(now)
    }

    /// Whether connections are, or were not long ago, given up for others.
    pub(crate) fn takes_turns(&self, now: Instant) -> bool {
        self.is_waiting() || self.given_up.is_some_and(|last| now < last + SCARCE)
    }

    /// Whether somebody waits for a turn.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.turns.is_empty()
    }

    /// Whether somebody waits for the turn of this slot.
    pub(crate) fn is_waiting_for(&self, key: &Key) -> bool {
        self.turns.is_waiting(key)
    }

    /// Whether a lane that borrows may have a connection of its own.
    fn is_outgrown(&mut self, key: &Key, now: Instant) -> bool {
        let is_at_rest = |slot: &Slot<C, W>| matches!(slot, Slot::Borrowed(connection) if connection.pending() == 0);
        self.slots.get(key).is_some_and(is_at_rest) && {
            self.sweep(now);
            self.owned() < self.max_connections && self.turns.is_empty()
        }
    }

    /// How bad a choice a broker is for a request that any can serve: fewer pending requests first, then brokers
    /// without a connection, then those that must be silent, then those that could not be reached. At the cap the
    /// connections of other lanes are as good as one's own.
    pub(crate) fn cost(&self, node: &Node, lane: Lane, now: Instant) -> u64 {
        const UNCONNECTED: u64 = 1 << 32;
        const MUTED: u64 = 1 << 33;
        const FAILING: u64 = 1 << 34;
        if self.failing.get(&(node.host.clone(), node.port)).is_some_and(|failing| now < failing.until) {
            return FAILING;
        }
        let price = |connection: &C| connection.pending() as u64 + if connection.is_muted() { MUTED } else { 0 };
        let key = Key::new(node, lane);
        match self.slots.get(&key) {
            Some(Slot::Ready { connection, .. } | Slot::Borrowed(connection)) if !connection.is_closed() => {
                price(connection)
            }
            _ if self.owned() < self.max_connections => UNCONNECTED,
            _ => {
                let hosts = self
                    .slots
                    .iter()
                    .filter(|(other, _)| other.with_lane(lane) == key && lane.reluctance(other.lane).is_some());
                let prices = hosts.filter_map(|(_, slot)| match slot {
                    Slot::Ready { connection, .. } if !connection.is_closed() => Some(price(connection)),
                    Slot::Dialing(waiters) => Some(waiters.len() as u64),
                    _ => None,
                });
                prices.min().unwrap_or(UNCONNECTED)
            }
        }
    }

    /// Whether the last attempts at this address failed, and when that was is not forgotten.
    pub(crate) fn is_failing(&self, key: &Key) -> bool {
        self.failing.contains_key(&key.address())
    }

    fn wanted(&mut self, node: Node, lane: Lane, waiter: W, now: Instant) {
        let key = Key::new(&node, lane);
        if self.is_closed {
            return self.refuse(waiter, Refusal::Closed);
        }
        if let Some(connection) = self.ready(&key, now) {
            return self.actions.push_back(Action::Give { waiter, connection });
        }
        if let Some(Slot::Dialing(waiters)) = self.slots.get_mut(&key) {
            if waiters.len() >= MAX_WAITERS {
                return self.refuse(waiter, Refusal::Crowded);
            }
            return waiters.push(waiter);
        }
        if let Some(failing) = self.failing.get(&key.address()).filter(|failing| now < failing.until) {
            let refusal = Refusal::Failed(failing.error.clone());
            return self.refuse(waiter, refusal);
        }
        if let Some(Slot::Ready { connection, .. }) = self.slots.remove(&key) {
            // It is closed, but perhaps not gone.
            self.leaving.push((connection, now));
        }
        if self.turns.is_empty() && self.has_room(now) {
            return self.dial(key, node, vec![waiter]);
        }
        if self.turns.is_empty() && self.give_up_idle(now) {
            return self.queue(key, node, waiter, now);
        }
        self.borrow(key, node, waiter, now);
    }

    /// Starts an attempt, for all who can use its connection.
    fn dial(&mut self, key: Key, node: Node, mut waiters: Vec<W>) {
        waiters.extend(self.turns.companions(&key, MAX_WAITERS.saturating_sub(waiters.len())));
        self.slots.insert(key.clone(), Slot::Dialing(waiters));
        self.attempts.begin(&key);
        self.actions.push_back(Action::Dial { key, node });
    }

    /// Whether there may be one more connection.
    fn has_room(&mut self, now: Instant) -> bool {
        if self.slots.len() + self.attempts.len() + self.leaving.len() < self.sweep_at.min(self.max_connections) {
            return true;
        }
        self.sweep(now);
        self.owned() < self.max_connections
    }

    /// Gives up the connection that has been idle for longest, if there is one: when it is gone, there is room.
    fn give_up_idle(&mut self, now: Instant) -> bool {
        let idle = self.slots.iter().filter_map(|(key, slot)| match slot {
            Slot::Ready { connection, used, .. } if connection.pending() == 0 && *used + GRACE <= now => {
                Some((*used, key))
            }
            _ => None,
        });
        let Some(key) = idle.min().map(|(_, key)| key.clone()).filter(|_| self.may_give_up(now)) else { return false };
        self.give_up(&key, now);
        true
    }

    fn give_up(&mut self, key: &Key, now: Instant) {
        if let Some(Slot::Ready { connection, .. }) = self.slots.remove(key) {
            self.given_up = Some(now);
            self.part_from(connection, now);
        }
    }

    /// Has a connection end when its requests are done. It counts until it has.
    fn part_from(&mut self, connection: C, now: Instant) {
        self.leaving.push((connection.clone(), now));
        self.actions.push_back(Action::Retire(connection));
    }

    /// Since when those connections are leaving that will soon make room.
    fn coming(&self, now: Instant) -> impl Iterator<Item = Instant> {
        self.leaving.iter().map(|(_, since)| *since).filter(move |since| now < *since + SLOW)
    }

    fn may_give_up(&self, now: Instant) -> bool {
        self.given_up.is_none_or(|last| last + PACE <= now)
    }

    /// Makes connections for those who wait, as far as there is room, and sees that there will be more.
    fn give_turns(&mut self, now: Instant) {
        self.give_turns_for_now(now);
        self.look_at = self.next_look(now);
    }

    fn give_turns_for_now(&mut self, now: Instant) {
        for waiter in self.turns.expired(now) {
            self.refuse(waiter, Refusal::Full { max_connections: self.max_connections, waited: PATIENCE });
        }
        while let Some(turn) = self.turns.next() {
            let failing = self.failing.get(&turn.key.address()).filter(|failing| now < failing.until);
            if let Some(error) = failing.map(|failing| failing.error.clone()) {
                turn.into_waiters().into_iter().for_each(|waiter| self.refuse(waiter, Refusal::Failed(error.clone())));
            } else if self.has_room(now) {
                self.dial(turn.key.clone(), turn.node.clone(), turn.into_waiters());
            } else {
                self.turns.put_back(turn);
                return self.take_back(now);
            }
        }
    }

    /// Gives the connection to the same broker that is to be waited behind for least, or the one that is under way.
    /// Where there is neither, who wants one is queued.
    fn borrow(&mut self, key: Key, node: Node, waiter: W, now: Instant) {
        let to_same_broker = self.slots.iter_mut().filter(|(other, _)| other.with_lane(key.lane) == key);
        let host = to_same_broker
            .filter_map(|(other, slot)| {
                let pending = match slot {
                    Slot::Ready { connection, .. } => connection.pending(),
                    Slot::Dialing(waiters) if waiters.len() < MAX_WAITERS => 0,
                    Slot::Dialing(_) | Slot::Borrowed(_) => return None,
                };
                Some((key.lane.reluctance(other.lane)?, pending, slot))
            })
            .min_by_key(|(reluctance, pending, _)| (*reluctance, *pending));
        match host {
            Some((_, _, Slot::Ready { connection, .. })) => {
                let connection = connection.clone();
                self.slots.insert(key, Slot::Borrowed(connection.clone()));
                self.actions.push_back(Action::Give { waiter, connection });
            }
            Some((_, _, Slot::Dialing(waiters))) => waiters.push(waiter),
            Some((_, _, Slot::Borrowed(_))) | None => return self.queue(key, node, waiter, now),
        }
        self.fallbacks += 1;
        self.turns.note_scarce(now);
    }

    /// Lets somebody wait for a turn.
    fn queue(&mut self, key: Key, node: Node, waiter: W, now: Instant) {
        if let Err(waiter) = self.turns.wait(key, node, waiter, now) {
            self.refuse(waiter, Refusal::Crowded);
        }
    }

    /// If more wait than connections are leaving, gives up one that is idle, or takes the one that was had for longest
    /// from who has it, once what it was asked is answered.
    fn take_back(&mut self, now: Instant) {
        if self.coming(now).count() >= self.turns.len() || !self.may_give_up(now) {
            return;
        }
        if self.give_up_idle(now) {
            return;
        }
        let had = self.next_to_leave(now).filter(|(until, _)| *until <= now);
        if let Some(key) = had.map(|(_, key)| key.clone()) {
            self.give_up(&key, now);
        }
    }

    /// Whose connection is the next to be taken back, and from when on. A user's own is the user's. Those of joins stay
    /// as long as there are others: a coordinator answers them when the whole group is there, so that nobody waits for
    /// the answer; who joins hears that the connection goes, and joins again when it is its turn.
    fn next_to_leave(&self, now: Instant) -> Option<(Instant, &Key)> {
        let had = self.slots.iter().filter_map(|(key, slot)| match (key.lane, slot) {
            (Lane::Own(_), _) => None,
            (_, Slot::Ready { since, .. }) => Some((matches!(key.lane, Lane::Join(_)), *since, key)),
            _ => None,
        });
        let (is_for_joins, since, key) = had.min()?;
        if !is_for_joins {
            return Some((since + TURN, key));
        }
        let others_come = self.attempts.len() > 0 || self.coming(now).next().is_some();
        (!others_come).then_some((since + JOIN_TURN, key))
    }

    /// When time alone will have made room, or somebody will have waited in vain.
    fn next_look(&self, now: Instant) -> Option<Instant> {
        let in_vain = self.turns.first_in_vain()?;
        let idle = self.slots.values().filter_map(|slot| match slot {
            Slot::Ready { connection, used, .. } if connection.pending() == 0 => Some(*used + GRACE),
            _ => None,
        });
        let room = idle.chain(self.next_to_leave(now).map(|(until, _)| until)).min();
        let room = room.filter(|_| self.coming(now).count() < self.turns.len());
        let room = room.map(|time| self.given_up.map_or(time, |last| time.max(last + PACE)));
        let slow = self.coming(now).min().map(|since| since + SLOW);
        // What has changed under our eyes is told, too: there is no need to look again at once.
        [room, slow].into_iter().flatten().chain([in_vain]).min().map(|time| time.max(now + MOMENT))
    }

    fn sweep(&mut self, now: Instant) {
        let leaving = &mut self.leaving;
        self.slots.retain(|_, slot| match slot {
            Slot::Ready { connection, .. } if connection.is_closed() => {
                leaving.push((connection.clone(), now));
                false
            }
            Slot::Borrowed(connection) => !connection.is_closed(),
            Slot::Dialing(_) | Slot::Ready { .. } => true,
        });
        self.leaving.retain(|(connection, _)| !connection.has_ended());
        self.sweep_at = FEW.max(2 * (self.slots.len() + self.attempts.len() + self.leaving.len()));
    }

    /// How many there are that count: each that is, or will be, a connection.
    fn owned(&self) -> usize {
        let ready = self.slots.values().filter(|slot| matches!(slot, Slot::Ready { .. })).count();
        self.leaving.len() + self.attempts.len() + ready
    }

    fn connected(&mut self, key: Key, connection: C, now: Instant) {
        self.attempts.end(&key);
        self.failing.remove(&key.address());
        // Else the client was closed, or the lane released, while the attempt was under way; another may have been made
        // since.
        let waiting = self.slots.get_mut(&key).filter(|slot| matches!(slot, Slot::Dialing(_)));
        let ready = Slot::Ready { connection: connection.clone(), since: now, used: now };
        let Some(Slot::Dialing(waiters)) = waiting.map(|slot| std::mem::replace(slot, ready)) else {
            return self.part_from(connection, now);
        };
        for waiter in waiters {
            self.actions.push_back(Action::Give { waiter, connection: connection.clone() });
        }
    }

    fn failed(&mut self, key: &Key, error: &E, now: Instant) {
        let may_succeed = self.attempts.end(key);
        self.failing.retain(|_, failing| now < failing.until + FORGOTTEN_AFTER);
        let previous = self.failing.get(&key.address());
        // Several lanes that fail together are one failure of the address.
        if previous.is_none_or(|previous| previous.until <= now) {
            let failures = previous.map_or(0, |previous| previous.failures);
            let until = now + RECONNECT.delay(failures, &mut self.rng);
            let failing = Failing { failures: failures.saturating_add(1), until, error: error.clone() };
            self.failing.insert(key.address(), failing);
        }
        // What another attempt for the same slot has made, or may make, stays.
        if let Some(Slot::Dialing(waiters)) = self.slots.get_mut(key).filter(|_| !may_succeed) {
            let waiters = std::mem::take(waiters);
            self.slots.remove(key);
            waiters.into_iter().for_each(|waiter| self.refuse(waiter, Refusal::Failed(error.clone())));
        }
    }

    fn closed(&mut self, now: Instant) {
        self.is_closed = true;
        self.actions.extend(self.leaving.drain(..).map(|(connection, _)| Action::Leave(connection)));
        self.retire(|_| true, now);
    }

    /// A broker that moved gets new slots by its new address; what is left at the old one runs dry.
    fn moved(&mut self, nodes: &BTreeMap<i32, Arc<Node>>, now: Instant) {
        let is_former =
            |key: &Key| nodes.get(&key.id).is_some_and(|node| (&node.host, node.port) != (&key.host, key.port));
        let ready = |slot: &Slot<C, W>| matches!(slot, Slot::Ready { .. });
        let former = self.slots.iter().filter(|(key, slot)| is_former(key) && ready(slot));
        let former: Vec<Key> = former.map(|(key, _)| key.clone()).collect();
        self.retire(|key| former.contains(key), now);
    }

    fn released(&mut self, mut lanes: Vec<Lane>, now: Instant) {
        lanes.retain(|lane| {
            let others = self.users.remove(lane).map_or(0, |users| users.saturating_sub(1));
            if others > 0 {
                self.users.insert(*lane, others);
            }
            others == 0
        });
        self.retire(|key| lanes.contains(&key.lane), now);
    }

    /// Empties some slots. What is being dialed is retired when it comes.
    fn retire(&mut self, which: impl Fn(&Key) -> bool, now: Instant) {
        let (gone, kept) = std::mem::take(&mut self.slots).into_iter().partition(|(key, _)| which(key));
        self.slots = kept;
        let gone: BTreeMap<Key, Slot<C, W>> = gone;
        let refusal = if self.is_closed { Refusal::Closed } else { Refusal::Released };
        for waiter in self.turns.remove(which) {
            self.refuse(waiter, refusal.clone());
        }
        for slot in gone.into_values() {
            match slot {
                Slot::Dialing(waiters) => waiters.into_iter().for_each(|waiter| self.refuse(waiter, refusal.clone())),
                Slot::Ready { connection, .. } if self.is_closed => self.actions.push_back(Action::Leave(connection)),
                Slot::Ready { connection, .. } => self.part_from(connection, now),
                Slot::Borrowed(_) => {}
            }
        }
    }

    fn refuse(&mut self, waiter: W, refusal: Refusal<E>) {
        self.actions.push_back(Action::Refuse { waiter, refusal });
    }
}

impl<C: Slotted, W: Waiter, E: Clone> Machine for Slots<C, W, E> {
    type Input = Input<C, W, E>;
    type Action = Action<C, W, E>;

    fn handle(&mut self, input: Self::Input, now: Instant) {
        match input {
            Input::Wanted { node, lane, waiter } => self.wanted(node, lane, waiter, now),
            Input::Connected { key, connection } => self.connected(key, connection, now),
            Input::Failed { key, error } => self.failed(&key, &error, now),
            Input::Moved { nodes } => self.moved(&nodes, now),
            Input::Rested => {}
            Input::Held { lane } => *self.users.entry(lane).or_default() += 1,
            Input::Released { lanes } => self.released(lanes, now),
            Input::Closed => self.closed(now),
        }
        self.give_turns(now);
    }

    fn poll(&mut self, now: Instant) -> Option<Self::Action> {
        if self.look_at.is_some_and(|time| time <= now) {
            self.give_turns(now);
        }
        self.actions.pop_front()
    }

    /// Backoff is looked at when somebody wants a connection.
    fn deadline(&self) -> Option<Instant> {
        self.look_at
    }
}

#[cfg(test)]
mod tests;
