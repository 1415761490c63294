//! All rules of a cluster, in the order in which they were written.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use krafka_protocol::AnyRequest;

use super::builder::Rule;
use super::entities::Entities;
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
        Self { book: Book::new(Rules { rules: Vec::new(), next_id: 1, chance }) }
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
        self.book.lock().rules.clear();
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
        let mut book = self.lock();
        if book.rules.len() >= MAX_RULES {
            let done = book.rules.iter().position(ActiveRule::is_spent);
            let done = done.ok_or_else(|| format!("there are {MAX_RULES} rules at work already"))?;
            book.rules.remove(done);
        }
        let id = book.next_id;
        book.next_id += 1;
        let rule = ActiveRule::new(id, text, now);
        let hits = rule.hits.share();
        book.rules.push(rule);
        drop(book);
        Ok(Rule::new(self.clone(), id, hits))
    }

    /// Ends a rule. Says if it was there.
    pub(crate) fn remove(&self, id: u64) -> bool {
        let mut book = self.lock();
        let before = book.rules.len();
        book.rules.retain(|rule| rule.id != id);
        book.rules.len() < before
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

    fn lock(&self) -> MutexGuard<'_, Rules> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
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
