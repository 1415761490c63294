//! Finds the brokers that coordinate groups and transactions, and remembers them until somebody lost them.
//!
//! ```text
//!   unknown ──wanted──▶ looking ──found──▶ known ──lost──▶ unknown, asked again at the retry pace
//!                        │   ▲
//!                        └───┘ not available yet, or the node is gone: again after a backoff
//! ```
//!
//! The address in the answer is used as it is, even if the metadata does not list the broker: the broker that answered
//! may know more than the one that was asked for metadata.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use krafka_protocol::machine::Machine;
use krafka_protocol::{ErrorCode, FindCoordinatorRequest, FindCoordinatorResponse, Str};

use super::snapshot::Node;
use crate::backoff::Backoff;
use crate::error::KrafkaError;
use crate::limits::{MAX_COORDINATORS, MAX_WAITERS};
use crate::network::Waiter;
use crate::rng::Rng;

/// Kafka's `retry.backoff.ms` and `retry.backoff.max.ms`.
const RETRY: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));

/// A coordinator that served this long was found by more than luck: when it is lost, it is looked for at once.
const SETTLED: Duration = Duration::from_secs(3);

/// FindCoordinator asks for many keys at a time from this version on (KIP-699).
const BATCHED_SINCE: i16 = 4;

/// What a coordinator coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CoordinatorKind {
    Group,
    #[expect(dead_code, reason = "transactions are not built yet; the wire and the cache know them")]
    Transaction,
}

impl CoordinatorKind {
    fn code(self) -> i8 {
        match self {
            Self::Group => 0,
            Self::Transaction => 1,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Group => "group",
            Self::Transaction => "transactional id",
        }
    }
}

/// What is coordinated.
pub(crate) type Key = (CoordinatorKind, Str);

/// What happened.
#[derive(Debug)]
pub(crate) enum Input<W> {
    /// Somebody wants to know a coordinator.
    Wanted { key: Key, waiter: W },
    /// A broker turned out not to be the coordinator, or cannot be reached.
    Lost { key: Key, node: Node },
    /// The cluster is another one: what is known was said by brokers of the former.
    Forgotten,
    /// A look-up ended. The inner error is a broker's answer about the key.
    Answered { key: Key, result: Result<Result<Node, (ErrorCode, Option<Str>)>, KrafkaError> },
}

/// What to do.
#[derive(Debug)]
pub(crate) enum Action<W> {
    /// Ask any node, after so many failures in a row.
    Find {
        key: Key,
        failures: u32,
    },
    /// Tell somebody who waits; an error is one that no retry can help with.
    Found {
        waiter: W,
        node: Node,
    },
    Fail {
        waiter: W,
        error: KrafkaError,
    },
}

#[derive(Debug)]
struct Entry<W> {
    known: Option<Node>,
    is_looking: bool,
    waiters: Vec<W>,
    attempts: u32,
    found: Option<Instant>,
    not_before: Option<Instant>,
}

impl<W> Default for Entry<W> {
    fn default() -> Self {
        Self { known: None, is_looking: false, waiters: Vec::new(), attempts: 0, found: None, not_before: None }
    }
}

/// The machine of the coordinators.
#[derive(Debug)]
pub(crate) struct Coordinators<W> {
    entries: BTreeMap<Key, Entry<W>>,
    /// The keys that somebody waits for and that are not being looked up: all that a poll looks at.
    waiting: BTreeSet<Key>,
    rng: Rng,
    actions: VecDeque<Action<W>>,
}

impl<W: Waiter> Coordinators<W> {
    pub(crate) fn new(seed: u64) -> Self {
        let rng = Rng::stream(seed, "coordinators");
        Self { entries: BTreeMap::new(), waiting: BTreeSet::new(), rng, actions: VecDeque::new() }
    }

    fn wanted(&mut self, key: Key, waiter: W) {
        if self.entries.len() >= MAX_COORDINATORS && !self.entries.contains_key(&key) {
            // Any will do: whoever needs it asks again.
            self.entries.retain(|_, entry| !entry.waiters.is_empty());
        }
        let entry = self.entries.entry(key.clone()).or_default();
        match &entry.known {
            Some(node) => self.actions.push_back(Action::Found { waiter, node: node.clone() }),
            None if entry.waiters.len() >= MAX_WAITERS => {
                let error = KrafkaError::illegal_state("too many callers wait for the coordinator already");
                self.actions.push_back(Action::Fail { waiter, error });
            }
            None => {
                entry.waiters.push(waiter);
                if !entry.is_looking {
                    self.waiting.insert(key);
                }
            }
        }
    }

    fn lost(&mut self, key: &Key, node: &Node, now: Instant) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        // A report about an earlier coordinator says nothing of the present one.
        if entry.known.as_ref().is_none_or(|known| known != node) {
            return;
        }
        entry.known = None;
        if entry.found.is_some_and(|found| now < found + SETTLED) {
            // The brokers do not agree yet: asking again at once would go round in circles.
            entry.not_before = Some(now + RETRY.delay(entry.attempts, &mut self.rng));
            entry.attempts = entry.attempts.saturating_add(1);
        } else {
            entry.attempts = 0;
        }
    }

    fn forgotten(&mut self) {
        for entry in self.entries.values_mut() {
            (entry.known, entry.found, entry.attempts) = (None, None, 0);
        }
    }

    fn answered(
        &mut self,
        key: &Key,
        result: Result<Result<Node, (ErrorCode, Option<Str>)>, KrafkaError>,
        now: Instant,
    ) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.is_looking = false;
        let failure = match result {
            Ok(Ok(node)) => {
                entry.found = Some(now);
                for waiter in entry.waiters.drain(..) {
                    self.actions.push_back(Action::Found { waiter, node: node.clone() });
                }
                entry.known = Some(node);
                return;
            }
            Ok(Err((code, _))) if code.is_retriable() => None,
            Ok(Err((code, said))) => {
                let (kind, name) = key;
                let said = said.map(|said| format!(" ({said})")).unwrap_or_default();
                Some(KrafkaError::broker(code, format!("finding the coordinator of {} '{name}'{said}", kind.name())))
            }
            Err(error) if error.is_retriable() => None,
            Err(error) => Some(error),
        };
        match failure {
            Some(error) => {
                for waiter in self.entries.remove(key).map(|entry| entry.waiters).unwrap_or_default() {
                    self.actions.push_back(Action::Fail { waiter, error: error.clone() });
                }
            }
            None => {
                entry.not_before = Some(now + RETRY.delay(entry.attempts, &mut self.rng));
                entry.attempts = entry.attempts.saturating_add(1);
                self.waiting.insert(key.clone());
            }
        }
    }

    /// Starts the look-ups that somebody waits for and that may start.
    fn start_due(&mut self, now: Instant) {
        let Self { entries, waiting, actions, .. } = self;
        waiting.retain(|key| {
            let Some(entry) = entries.get_mut(key) else { return false };
            if entry.not_before.is_some_and(|at| now < at) {
                return true;
            }
            entry.waiters.retain(|waiter| !waiter.is_abandoned());
            if !entry.waiters.is_empty() {
                entry.is_looking = true;
                entry.not_before = None;
                actions.push_back(Action::Find { key: key.clone(), failures: entry.attempts });
            }
            false
        });
    }
}

impl<W: Waiter> Machine for Coordinators<W> {
    type Input = Input<W>;
    type Action = Action<W>;

    fn handle(&mut self, input: Self::Input, now: Instant) {
        match input {
            Input::Wanted { key, waiter } => self.wanted(key, waiter),
            Input::Lost { key, node } => self.lost(&key, &node, now),
            Input::Forgotten => self.forgotten(),
            Input::Answered { key, result } => self.answered(&key, result, now),
        }
    }

    fn poll(&mut self, now: Instant) -> Option<Self::Action> {
        if self.actions.is_empty() {
            self.start_due(now);
        }
        self.actions.pop_front()
    }

    fn deadline(&self) -> Option<Instant> {
        self.waiting.iter().filter_map(|key| self.entries.get(key)?.not_before).min()
    }
}

/// The question in the layout of a version.
pub(crate) fn question(key: &Key, version: i16) -> FindCoordinatorRequest {
    let (kind, name) = key;
    let mut request = FindCoordinatorRequest { key_type: kind.code(), ..FindCoordinatorRequest::default() };
    if version >= BATCHED_SINCE {
        request.coordinator_keys = vec![name.clone()];
    } else {
        request.key = name.clone();
    }
    request
}

/// What an answer in a version says of a key; in words, if it says nothing.
pub(crate) fn answer(
    key: &Key,
    response: FindCoordinatorResponse,
    version: i16,
) -> Result<Result<Node, (ErrorCode, Option<Str>)>, String> {
    let (code, message, id, host, port) = if version >= BATCHED_SINCE {
        let found = response.coordinators.into_iter().find(|found| found.key == key.1);
        let found = found.ok_or_else(|| format!("it does not tell of '{}', which it was asked about", key.1))?;
        (found.error_code, found.error_message, found.node_id, found.host, found.port)
    } else {
        (response.error_code, response.error_message, response.node_id, response.host, response.port)
    };
    let code = ErrorCode(code);
    if !code.is_ok() {
        return Ok(Err((code, message)));
    }
    let port = u16::try_from(port).map_err(|_| format!("{port} is no port"))?;
    Ok(Ok(Node { id, host, port, rack: None }))
}

#[cfg(test)]
mod tests;
