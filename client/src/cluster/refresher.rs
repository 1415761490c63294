//! Decides when metadata is fetched, from whom, and what becomes of the answer.
//!
//! ```text
//!   wanted ──▶ in flight ──answer──▶ merged, published, waiters answered
//!                 │  ▲
//!                 │  └── the next node, then the bootstrap servers (KIP-899)
//!                 └── nobody left ──▶ waiters told why; what nobody waits for is tried again after a backoff
//! ```
//!
//! One fetch is in flight at a time; what is wanted meanwhile goes together into the next. The same topic is asked
//! about again and again only at a growing distance, while a topic that was not asked about just now is fetched at
//! once.

mod failures;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use krafka_protocol::machine::Machine;
use krafka_protocol::{ErrorCode, MetadataResponse, Str};

use self::failures::Failures;
use super::merge::{LeaderHint, apply_hint, merge, nodes};
use super::snapshot::{Node, Snapshot};
use crate::backoff::Backoff;
use crate::error::KrafkaError;
use crate::limits::MAX_WAITERS;
use crate::metrics::Registry;
use crate::network::is_no_room;
use crate::rng::Rng;

/// Kafka's `retry.backoff.ms` and `retry.backoff.max.ms`.
const RETRY: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));

/// A topic that was left alone for this long is asked about at once again.
const CALM: Duration = Duration::from_secs(3);

/// What happens again within this time is one story.
const SERIES: Duration = Duration::from_secs(60);

/// How much refreshes by age are spread, so that clients that started together do not ask together.
const AGE_JITTER: f64 = 0.1;

/// What to do when no known broker can be reached (KIP-899).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetadataRecoveryStrategy {
    /// Keep trying the brokers that are known.
    None,
    /// Begin again with the bootstrap servers.
    #[default]
    Rebootstrap,
}

/// What the refresher is told once.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) bootstrap: Vec<Node>,
    pub(crate) max_age: Duration,
    pub(crate) recovery: MetadataRecoveryStrategy,
    /// Without a successful fetch for this long, begin again with the bootstrap servers (KIP-1102).
    pub(crate) rebootstrap_trigger: Duration,
    pub(crate) seed: u64,
}

/// What happened.
#[derive(Debug)]
pub(crate) enum Input<W> {
    /// Somebody waits for a fetch that covers these topics (none: the brokers only).
    Loaded { topics: Vec<Str>, waiter: W },
    /// Somebody will do with what is known of these topics, unless it is old or in doubt.
    Needed { topics: Vec<Str>, waiter: W },
    /// Somebody waits no longer, and wants to know why nothing came.
    GivenUp { waiter: W },
    /// Somebody found that what is known of these topics is wrong.
    Doubted { topics: Vec<Str> },
    /// These are the topics that `owner` wants to be kept fresh; they replace those it named before.
    Watched { owner: u64, topics: Vec<Str> },
    /// A broker named a leader.
    Hinted(LeaderHint),
    /// A broker said that the known brokers are the wrong ones.
    RebootstrapRequired,
    /// The user said so, who knows better than any strategy.
    Rebootstrap,
    /// These are the bootstrap servers from now on.
    Seeded(Vec<Node>),
    /// A fetch ended.
    Fetched { fetch: u64, node: Node, result: Result<MetadataResponse, KrafkaError> },
}

/// What to do.
#[derive(Debug)]
pub(crate) enum Action<W> {
    /// Ask one of the candidates, the least loaded.
    Fetch { fetch: u64, candidates: Vec<Node>, topics: Vec<Str> },
    /// Use these bootstrap servers from now on.
    Seed(Vec<Node>),
    /// Let everybody see a new snapshot.
    Publish(Arc<Snapshot>),
    /// Tell somebody who waits.
    Answer { waiter: W, result: Result<Arc<Snapshot>, KrafkaError> },
}

/// What somebody wants to be fetched.
#[derive(Debug)]
struct Want<W> {
    topics: BTreeSet<Str>,
    /// `None` where nobody waits: then it is wanted until it succeeds.
    waiter: Option<W>,
}

/// The fetch in flight.
#[derive(Debug)]
struct Fetching<W> {
    id: u64,
    wants: Vec<Want<W>>,
    /// In order.
    topics: Vec<Str>,
    candidates: Vec<Node>,
    is_bootstrap: bool,
    /// Whether it covers everything that is watched.
    is_full: bool,
    failures: Failures,
}

/// When a topic may be asked about again.
#[derive(Clone, Copy, Debug)]
struct Pace {
    attempts: u32,
    asked: Instant,
    not_before: Instant,
}

/// The machine of the cluster's metadata.
#[derive(Debug)]
pub(crate) struct Refresher<W> {
    rules: Rules,
    registry: Arc<Registry>,
    current: Arc<Snapshot>,
    /// Whether it has changed since it was published: hints that come together are published together.
    is_unpublished: bool,
    watched: BTreeMap<u64, BTreeSet<Str>>,
    wanted: Vec<Want<W>>,
    fetching: Option<Fetching<W>>,
    next_fetch: u64,
    /// By topic; the empty name stands for "the brokers only".
    paces: BTreeMap<Str, Pace>,
    /// When topics were last asked about by somebody who may not watch them.
    used: BTreeMap<Str, Instant>,
    /// The next refresh by age, from the first success on.
    due: Option<Instant>,
    is_bootstrapping: bool,
    failed_rounds: u32,
    failing_since: Option<Instant>,
    /// What the last round has met with, if it failed.
    last_failures: Failures,
    /// When the bootstrap servers were gone back to last.
    rebootstrapped: Option<Instant>,
    not_before: Option<Instant>,
    rng: Rng,
    actions: VecDeque<Action<W>>,
}

impl<W> Refresher<W> {
    pub(crate) fn new(rules: Rules, registry: Arc<Registry>) -> Self {
        let rng = Rng::stream(rules.seed, "metadata");
        Self {
            rules,
            registry,
            current: Arc::default(),
            is_unpublished: false,
            watched: BTreeMap::new(),
            wanted: Vec::new(),
            fetching: None,
            next_fetch: 0,
            paces: BTreeMap::new(),
            used: BTreeMap::new(),
            due: None,
            is_bootstrapping: true,
            failed_rounds: 0,
            failing_since: None,
            last_failures: Failures::default(),
            rebootstrapped: None,
            not_before: None,
            rng,
            actions: VecDeque::new(),
        }
    }

    fn loaded(&mut self, topics: Vec<Str>, waiter: W, now: Instant) {
        self.used(&topics, now);
        let want = Want { topics: topics.into_iter().collect(), waiter: Some(waiter) };
        match &mut self.fetching {
            Some(fetching) if want.topics.iter().all(|topic| fetching.topics.binary_search(topic).is_ok()) => {
                fetching.wants.push(want);
            }
            _ if self.wanted.len() >= MAX_WAITERS => {
                let error = KrafkaError::illegal_state("too many callers wait for metadata already");
                self.answer(want, Err(error));
            }
            _ => self.wanted.push(want),
        }
    }

    fn needed(&mut self, topics: Vec<Str>, waiter: W, now: Instant) {
        if topics.iter().all(|topic| self.is_sound(topic, now)) {
            let result = Ok(self.current.clone());
            self.actions.push_back(Action::Answer { waiter, result });
        } else {
            self.loaded(topics, waiter, now);
        }
    }

    /// Why there is nothing yet: what each server has met with, in the round under way or in the one before.
    fn given_up(&mut self, waiter: W) {
        let result = match &self.fetching {
            _ if !self.is_bootstrapping => Ok(self.current.clone()),
            Some(fetching) => Err(fetching.failures.so_far(&fetching.candidates, &self.last_failures)),
            None => Err(self.last_failures.as_one()),
        };
        self.actions.push_back(Action::Answer { waiter, result });
    }

    /// Whether what is known of a topic is as good as an answer: it is there, is no older than the rules allow, and
    /// nobody called it wrong.
    fn is_sound(&self, topic: &Str, now: Instant) -> bool {
        let is_there = self.current.topics.get(topic).is_some_and(|view| !view.partitions.is_empty());
        let is_young =
            self.is_watched(topic) || self.used.get(topic).is_some_and(|used| now < *used + self.rules.max_age);
        let mut wants = self.wanted.iter().chain(self.fetching.iter().flat_map(|fetching| &fetching.wants));
        let is_doubted = wants.any(|want| want.waiter.is_none() && want.topics.contains(topic));
        is_there && is_young && !is_doubted && !self.is_bootstrapping
    }

    fn used(&mut self, topics: &[Str], now: Instant) {
        self.used.extend(topics.iter().map(|topic| (topic.clone(), now)));
    }

    /// What nobody waits for is one want, however often it is asked for.
    fn doubted(&mut self, topics: impl IntoIterator<Item = Str>) {
        match self.wanted.iter_mut().find(|want| want.waiter.is_none()) {
            Some(want) => want.topics.extend(topics),
            None => self.wanted.push(Want { topics: topics.into_iter().collect(), waiter: None }),
        }
    }

    /// Whether somebody wants a topic to be kept fresh.
    fn is_watched(&self, topic: &Str) -> bool {
        self.watched.values().any(|topics| topics.contains(topic))
    }

    fn watched(&mut self, owner: u64, topics: Vec<Str>) {
        let topics: BTreeSet<Str> = topics.into_iter().collect();
        let before = self.watched.remove(&owner).unwrap_or_default();
        // What nobody keeps fresh any more is as old as it is, however young when it was asked for.
        for topic in before.difference(&topics) {
            if !self.is_watched(topic) {
                self.used.remove(topic);
            }
        }
        let is_old = |topic: &&Str| !self.used.contains_key(*topic) && !self.is_watched(topic);
        let old: Vec<Str> = topics.difference(&before).filter(is_old).cloned().collect();
        if !old.is_empty() {
            self.doubted(old);
        }
        if !topics.is_empty() {
            self.watched.insert(owner, topics);
        }
    }

    fn hinted(&mut self, hint: &LeaderHint) {
        let version = self.current.version + u64::from(!self.is_unpublished);
        if apply_hint(&mut self.current, hint) {
            Arc::make_mut(&mut self.current).version = version;
            self.is_unpublished = true;
        }
    }

    fn rebootstrap_required(&mut self, now: Instant) {
        match self.rules.recovery {
            MetadataRecoveryStrategy::Rebootstrap => self.rebootstrap(now),
            MetadataRecoveryStrategy::None => {}
        }
    }

    fn rebootstrap(&mut self, now: Instant) {
        self.registry.metadata.rebootstraps.add(u64::from(!self.is_bootstrapping));
        self.is_bootstrapping = true;
        // The new cluster view must cover everything that is in use.
        self.due = Some(now);
        // What the wrong brokers answer does not matter any more.
        if let Some(fetching) = self.fetching.take_if(|fetching| !fetching.is_bootstrap) {
            self.start(fetching.wants);
        }
    }

    /// Whoever waits for the former servers to answer waits for these instead, without what they are waiting out.
    fn seeded(&mut self, bootstrap: Vec<Node>) {
        self.rules.bootstrap.clone_from(&bootstrap);
        self.actions.push_back(Action::Seed(bootstrap));
        (self.failed_rounds, self.not_before) = (0, None);
        if let Some(fetching) = self.fetching.take_if(|fetching| fetching.is_bootstrap) {
            self.start(fetching.wants);
        }
    }

    fn fetched(&mut self, fetch: u64, node: &Node, result: Result<MetadataResponse, KrafkaError>, now: Instant) {
        let Some(mut fetching) = self.fetching.take_if(|fetching| fetching.id == fetch) else { return };
        let failure = match result {
            Ok(answer) if ErrorCode(answer.error_code).is_ok() && !nodes(&answer).is_empty() => {
                return self.succeeded(fetching, &answer, now);
            }
            Ok(answer) if ErrorCode(answer.error_code).is_ok() => failures::unaware(node),
            Ok(answer) => KrafkaError::broker(ErrorCode(answer.error_code), format!("fetching metadata from {node}")),
            Err(error) if is_no_room(&error) => return self.postponed(fetching, node, error, now),
            Err(error) => error,
        };
        let code = match &failure {
            KrafkaError::Broker { code, .. } => *code,
            _ => ErrorCode::NONE,
        };
        let is_closed = matches!(failure, KrafkaError::Closed { .. });
        fetching.candidates.retain(|candidate| candidate != node);
        fetching.failures.note(node, failure);
        if is_closed {
            // By the user: nobody else is to be asked, and nothing is wrong with the brokers.
            return self.failed(fetching, now);
        }
        self.failing_since.get_or_insert(now);

        let is_stale = self.failing_since.is_some_and(|since| now >= since + self.rules.rebootstrap_trigger);
        let is_over = fetching.candidates.is_empty() || code == ErrorCode::REBOOTSTRAP_REQUIRED || is_stale;
        if is_over && !fetching.is_bootstrap && self.rules.recovery == MetadataRecoveryStrategy::Rebootstrap {
            self.tell_of_rebootstrap(node, now);
            self.registry.metadata.rebootstraps.add(u64::from(!self.is_bootstrapping));
            self.is_bootstrapping = true;
            self.start(fetching.wants);
        } else if fetching.candidates.is_empty() {
            self.failed(fetching, now);
        } else {
            self.ask(fetching);
        }
    }

    /// Nobody was asked, as `max_connections` left no room: that is no failure of any broker, and asked is anew.
    #[cold]
    fn postponed(&mut self, fetching: Fetching<W>, node: &Node, why: KrafkaError, now: Instant) {
        tracing::debug!(%why, "metadata have to wait");
        self.last_failures = Failures::of(node, why);
        self.not_before = Some(now + RETRY.delay(0, &mut self.rng));
        for want in fetching.wants {
            match want.waiter {
                Some(_) => self.wanted.push(want),
                None => self.doubted(want.topics),
            }
        }
    }

    /// One line for a series: where brokers advertise addresses that lead nowhere, it is done again and again.
    #[cold]
    fn tell_of_rebootstrap(&mut self, node: &Node, now: Instant) {
        let is_news = self.rebootstrapped.is_none_or(|last| last + SERIES < now);
        self.rebootstrapped = Some(now);
        match is_news {
            true => {
                tracing::info!(%node, "no broker that we know is of use: beginning again with the bootstrap servers")
            }
            false => tracing::debug!(%node, "beginning again with the bootstrap servers"),
        }
    }

    fn succeeded(&mut self, fetching: Fetching<W>, answer: &MetadataResponse, now: Instant) {
        let before = self.current.clone();
        let mut after = merge(&before, &fetching.topics, answer);
        let is_elsewhere = before.cluster_id.is_some() && before.cluster_id != after.cluster_id;
        self.registry.metadata.refreshed(now);
        self.registry.metadata.cluster_changes.add(u64::from(is_elsewhere));
        if fetching.is_full {
            self.forget_unused(&mut after, now);
            self.due = Some(now + self.rules.max_age.mul_f64(self.rng.jitter(AGE_JITTER)));
        }
        self.due.get_or_insert(now + self.rules.max_age);
        if is_elsewhere && !fetching.is_full {
            // What was known of the other topics was of another cluster.
            self.due = Some(now);
        }
        self.is_bootstrapping = after.nodes.is_empty();
        self.failed_rounds = 0;
        self.failing_since = None;
        self.last_failures = Failures::default();
        self.not_before = None;
        self.publish(after);
        self.set_pace(&before, &fetching.topics, now);
        for want in fetching.wants {
            let current = self.current.clone();
            self.answer(want, Ok(current));
        }
    }

    /// Topics that nobody watches, and nobody loaded for a while, leave the snapshot.
    fn forget_unused(&mut self, after: &mut Snapshot, now: Instant) {
        let max_age = self.rules.max_age;
        self.used.retain(|_, used| now < *used + max_age);
        let keep: BTreeSet<&Str> = self.watched.values().flatten().chain(self.used.keys()).collect();
        after.topics.retain(|name, _| keep.contains(name));
        after.errors.retain(|name, _| keep.contains(name));
        after.past.retain(|name, _| keep.contains(name));
    }

    fn set_pace(&mut self, before: &Snapshot, topics: &[Str], now: Instant) {
        self.paces.retain(|_, pace| now < pace.asked + CALM);
        let brokers_only = [Str::default()];
        for topic in if topics.is_empty() { &brokers_only } else { topics } {
            let is_news = before.topics.get(topic) != self.current.topics.get(topic);
            let attempts = match self.paces.get(topic) {
                Some(pace) if !is_news => pace.attempts + 1,
                _ => 0,
            };
            let not_before = now + RETRY.delay(attempts, &mut self.rng);
            self.paces.insert(topic.clone(), Pace { attempts, asked: now, not_before });
        }
    }

    fn failed(&mut self, fetching: Fetching<W>, now: Instant) {
        let error = fetching.failures.as_one();
        self.last_failures = fetching.failures;
        self.registry.metadata.failures.add(1);
        let is_closed = matches!(error, KrafkaError::Closed { .. });
        if is_closed {
            // The connections were closed for good: an open task must not go on asking for the rest of its life.
            self.due = None;
        } else {
            match self.failed_rounds {
                0 => tracing::warn!(%error, "no metadata; they are asked for until they come"),
                rounds => tracing::debug!(%error, rounds, "no metadata"),
            }
        }
        self.not_before = Some(now + RETRY.delay(self.failed_rounds, &mut self.rng));
        self.failed_rounds = self.failed_rounds.saturating_add(1);
        for want in fetching.wants {
            match want.waiter {
                Some(_) => self.answer(want, Err(error.clone())),
                None if is_closed => {}
                None => self.doubted(want.topics),
            }
        }
    }

    fn publish(&mut self, mut after: Snapshot) {
        if after != *self.current {
            after.version = self.current.version + 1;
            self.current = Arc::new(after);
            self.is_unpublished = true;
        }
        self.publish_current();
    }

    fn publish_current(&mut self) {
        if std::mem::take(&mut self.is_unpublished) {
            self.actions.push_back(Action::Publish(self.current.clone()));
        }
    }

    fn answer(&mut self, want: Want<W>, result: Result<Arc<Snapshot>, KrafkaError>) {
        if let Some(waiter) = want.waiter {
            self.actions.push_back(Action::Answer { waiter, result });
        }
    }

    /// Starts a fetch for everything that may be asked about now.
    fn start_due(&mut self, now: Instant) {
        if self.fetching.is_some() || self.not_before.is_some_and(|at| now < at) {
            return;
        }
        if self.due.is_some_and(|due| due <= now) {
            self.due = None;
            self.doubted([]);
            let all: Vec<Str> = self.watched.values().flatten().cloned().collect();
            self.doubted(all);
        }
        let (ready, rest) =
            std::mem::take(&mut self.wanted).into_iter().partition(|want| self.ready_at(want) <= Some(now));
        self.wanted = rest;
        self.start(ready);
    }

    /// When a want may be fetched, as far as its topics are concerned. Of what nobody waits for any topic will do: one
    /// that is in doubt for the first time does not wait for those that are asked about again and again, which go
    /// along.
    fn ready_at(&self, want: &Want<W>) -> Option<Instant> {
        let pace = |topic: &Str| self.paces.get(topic).map(|pace| pace.not_before);
        match &want.waiter {
            _ if want.topics.is_empty() => pace(&Str::default()),
            Some(_) => want.topics.iter().filter_map(pace).max(),
            None => want.topics.iter().map(pace).min().flatten(),
        }
    }

    fn start(&mut self, wants: Vec<Want<W>>) {
        if wants.is_empty() {
            return;
        }
        let topics: BTreeSet<&Str> = wants.iter().flat_map(|want| &want.topics).collect();
        let is_full = self.watched.values().flatten().all(|topic| topics.contains(topic));
        let topics = topics.into_iter().cloned().collect();
        let is_bootstrap = self.is_bootstrapping || self.current.nodes.is_empty();
        let mut candidates: Vec<Node> = match is_bootstrap {
            true => self.rules.bootstrap.clone(),
            false => self.current.nodes.values().map(|node| Node::clone(node)).collect(),
        };
        self.rng.shuffle(&mut candidates);
        let id = self.next_fetch;
        self.ask(Fetching { id, wants, topics, candidates, is_bootstrap, is_full, failures: Failures::default() });
    }

    fn ask(&mut self, mut fetching: Fetching<W>) {
        fetching.id = self.next_fetch;
        self.next_fetch += 1;
        self.actions.push_back(Action::Fetch {
            fetch: fetching.id,
            candidates: fetching.candidates.clone(),
            topics: fetching.topics.clone(),
        });
        self.fetching = Some(fetching);
    }
}

impl<W> Machine for Refresher<W> {
    type Input = Input<W>;
    type Action = Action<W>;

    fn handle(&mut self, input: Self::Input, now: Instant) {
        match input {
            Input::Loaded { topics, waiter } => self.loaded(topics, waiter, now),
            Input::Needed { topics, waiter } => self.needed(topics, waiter, now),
            Input::GivenUp { waiter } => self.given_up(waiter),
            Input::Doubted { topics } => {
                self.used(&topics, now);
                self.doubted(topics);
            }
            Input::Watched { owner, topics } => self.watched(owner, topics),
            Input::Hinted(hint) => self.hinted(&hint),
            Input::RebootstrapRequired => self.rebootstrap_required(now),
            Input::Rebootstrap => self.rebootstrap(now),
            Input::Seeded(bootstrap) => self.seeded(bootstrap),
            Input::Fetched { fetch, node, result } => self.fetched(fetch, &node, result, now),
        }
    }

    fn poll(&mut self, now: Instant) -> Option<Self::Action> {
        if self.actions.is_empty() {
            self.publish_current();
            self.start_due(now);
        }
        self.actions.pop_front()
    }

    fn deadline(&self) -> Option<Instant> {
        if self.fetching.is_some() {
            return None;
        }
        // A want without a pace is started by the next poll; what is left has to wait for one.
        let wanted = self.wanted.iter().filter_map(|want| self.ready_at(want).or(self.not_before)).min();
        let next = [wanted, self.due].into_iter().flatten().min()?;
        Some(self.not_before.map_or(next, |not_before| not_before.max(next)))
    }
}

#[cfg(test)]
mod tests;
