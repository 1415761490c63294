//! All rules of a cluster, in the order in which they were written.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use krafka_protocol::AnyRequest;

use super::builder::Rule;
use super::entities::Entities;
use super::hits::{Ending, Hits};
use super::network::{Passage, Passing};
use super::rule::{ActiveRule, RuleText};
use super::verdict::{Opening, Verdict};
use crate::context::Context;
use crate::rng::Rng;

/// How many rules there may be. Those that have done their work go first, the oldest before the others.
const MAX_RULES: usize = 10_000;

/// The rules of a cluster, as it has them. A clone is a copy that goes its own way, as all of a cluster's state does.
pub(crate) struct Faults {
    book: Book,
}

/// Where the rules are written. A clone is another handle to the same rules: one is the cluster's, the others belong to
/// the tests that write rules.
#[derive(Clone)]
pub(crate) struct Book {
    rules: Arc<Mutex<Rules>>,
}

#[derive(Clone)]
struct Rules {
    /// All of them, spent ones too, so that their hits can be asked for.
    rules: Vec<ActiveRule>,
    next_id: u64,
    chance: Rng,
    /// Counts the changes of rules about the network: what they hold has to be looked at again.
    network_changes: Hits,
}

/// A rule as a list shows it.
pub(crate) struct Listed {
    pub(crate) id: u64,
    pub(crate) words: String,
    pub(crate) text: RuleText,
    pub(crate) hits: u64,
    pub(crate) is_spent: bool,
}

impl Faults {
    /// No rules; what they leave to chance is drawn from the seed.
    pub(crate) fn new(seed: u64) -> Self {
        let chance = Rng::stream(seed, "faults");
        Self { book: Book::new(Rules { rules: Vec::new(), next_id: 1, chance, network_changes: Hits::default() }) }
    }

    /// Where a test writes its rules.
    pub(crate) fn book(&self) -> Book {
        self.book.clone()
    }

    /// Judges a request before it is handled: counts it for the rules that match, and says what they do to it.
    /// `entities` is asked only if there are rules.
    pub(crate) fn judge(&self, cx: &Context, request: &AnyRequest, entities: impl FnOnce() -> Entities) -> Verdict {
        let mut verdict = Verdict::default();
        let Rules { rules, chance, .. } = &mut *self.book.lock();
        if rules.iter().all(ActiveRule::is_spent) {
            return verdict;
        }
        let entities = entities();
        verdict.whole = entities.whole();
        for rule in rules {
            rule.judge(cx, request, &entities, chance, &mut verdict);
        }
        verdict
    }

    /// Judges a new connection.
    pub(crate) fn judge_connection(&self, connection: u64, node: i32, now: Instant) -> Opening {
        let mut opening = Opening::default();
        let Rules { rules, chance, .. } = &mut *self.book.lock();
        for rule in rules {
            rule.judge_connection(connection, node, now, chance, &mut opening);
        }
        opening
    }

    /// Says how a frame gets through, and counts it for the rules that match.
    pub(crate) fn judge_frame(&self, passing: &Passing, now: Instant) -> Passage {
        let mut passage = Passage::default();
        let Rules { rules, chance, .. } = &mut *self.book.lock();
        for rule in rules.iter_mut().filter(|rule| rule.is_networks()) {
            rule.judge_frame(passing, now, chance, &mut passage);
        }
        passage
    }

    /// Whether there is any rule about the network that may still act.
    pub(crate) fn has_network_rules(&self, now: Instant) -> bool {
        self.book.lock().rules.iter().any(|rule| rule.is_networks() && !rule.is_over(now))
    }

    /// How often rules about the network have changed.
    pub(crate) fn network_changes(&self) -> u64 {
        self.book.lock().network_changes.count()
    }

    /// Whether nothing can pass where a frame is.
    pub(crate) fn holds(&self, passing: &Passing, now: Instant) -> bool {
        self.book.lock().rules.iter().any(|rule| rule.holds(passing, now))
    }

    /// The pairs of nodes that cannot reach each other, the lower id first.
    pub(crate) fn separated(&self, now: Instant) -> BTreeSet<(i32, i32)> {
        let book = self.book.lock();
        let pairs = book.rules.iter().filter_map(|rule| rule.separates(now));
        pairs.filter(|(a, b)| a != b).map(|(a, b)| (a.min(b), a.max(b))).collect()
    }

    /// When a rule about the network next wakes or ends by its time.
    pub(crate) fn next_network_turn(&self, now: Instant) -> Option<Instant> {
        let book = self.book.lock();
        book.rules.iter().filter(|rule| rule.is_networks()).filter_map(|rule| rule.next_turn(now)).min()
    }

    /// A number below `bound`, for what a rule leaves to chance.
    pub(crate) fn chance(&self) -> Rng {
        let chance = &mut self.book.lock().chance;
        // A stream of its own, so that how much is drawn from it does not shift the others.
        Rng::stream(chance.next_u64(), "damage")
    }

    /// The rules that have not acted yet, in words. A test that expects its faults to happen asks at its end.
    pub(crate) fn unfired(&self) -> Vec<String> {
        self.book.lock().rules.iter().filter(|rule| rule.hits.count() == 0).map(ToString::to_string).collect()
    }

    /// Ends all rules.
    pub(crate) fn clear(&self) {
        let ended = self.book.change(|rules| {
            let ended = std::mem::take(&mut rules.rules);
            let is_networks = ended.iter().any(ActiveRule::is_networks);
            (ended, is_networks)
        });
        ended.iter().for_each(|rule| rule.hits.end(Ending::Removed));
    }

    /// Lets those go who wait for a rule to act, as the cluster that it could act in is gone.
    pub(crate) fn end_waits(&self) {
        let hits: Vec<_> = self.book.lock().rules.iter().map(|rule| rule.hits.share()).collect();
        hits.iter().for_each(|hits| hits.end(Ending::ClusterEnded));
    }
}

impl Book {
    fn new(rules: Rules) -> Self {
        Self { rules: Arc::new(Mutex::new(rules)) }
    }

    /// Puts a rule to work.
    ///
    /// # Errors
    ///
    /// What is wrong with it, in words.
    pub(crate) fn install(&self, text: RuleText, now: Instant) -> Result<Rule, String> {
        text.check()?;
        let (id, hits) = self.change(|book| match book.install(text, now) {
            Ok((id, hits, is_networks)) => (Ok((id, hits)), is_networks),
            Err(reason) => (Err(reason), false),
        })?;
        Ok(Rule::new(self.clone(), id, hits))
    }

    /// Ends a rule. Says if it was there.
    pub(crate) fn remove(&self, id: u64) -> bool {
        let found = self.change(|book| {
            let found = book.rules.iter().position(|rule| rule.id == id).map(|index| book.rules.remove(index));
            let is_networks = found.as_ref().is_some_and(ActiveRule::is_networks);
            (found, is_networks)
        });
        // Outside the lock: who is let go may look into the book at once.
        found.map(|rule| rule.hits.end(Ending::Removed)).is_some()
    }

    /// How long a rule still lives, if its time is limited.
    pub(crate) fn time_left(&self, id: u64, now: Instant) -> Option<Duration> {
        self.lock().rules.iter().find(|rule| rule.id == id)?.time_left(now)
    }

    /// A handle to a rule.
    pub(crate) fn find(&self, id: u64) -> Option<Rule> {
        let hits = self.lock().rules.iter().find(|rule| rule.id == id)?.hits.share();
        Some(Rule::new(self.clone(), id, hits))
    }

    /// All rules.
    pub(crate) fn list(&self) -> Vec<Listed> {
        let listed = |rule: &ActiveRule| Listed {
            id: rule.id,
            words: rule.to_string(),
            text: rule.text.clone(),
            hits: rule.hits.count(),
            is_spent: rule.is_spent(),
        };
        self.lock().rules.iter().map(listed).collect()
    }

    /// The count of changes of rules about the network; it can be waited for the next.
    pub(crate) fn network_changes(&self) -> Hits {
        self.lock().network_changes.share()
    }

    /// Changes the rules, and tells those who wait for it if that was about the network.
    fn change<T>(&self, change: impl FnOnce(&mut Rules) -> (T, bool)) -> T {
        let mut book = self.lock();
        let (result, is_networks) = change(&mut book);
        let changes = book.network_changes.share();
        // Who waits may look into the book at once.
        drop(book);
        if is_networks {
            changes.raise();
        }
        result
    }

    fn lock(&self) -> MutexGuard<'_, Rules> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rules {
    /// Puts a rule to work: its id, its hits, and whether it is about the network.
    fn install(&mut self, text: RuleText, now: Instant) -> Result<(u64, Hits, bool), String> {
        if self.rules.len() >= MAX_RULES {
            let done = self.rules.iter().position(ActiveRule::is_spent);
            let done = done.ok_or_else(|| format!("there are {MAX_RULES} rules at work already"))?;
            self.rules.remove(done);
        }
        let id = self.next_id;
        self.next_id += 1;
        let rule = ActiveRule::new(id, text, now);
        let (hits, is_networks) = (rule.hits.share(), rule.is_networks());
        self.rules.push(rule);
        Ok((id, hits, is_networks))
    }
}

impl Clone for Faults {
    fn clone(&self) -> Self {
        Self { book: Book::new(self.book.lock().clone()) }
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.book.lock().rules).finish()
    }
}
