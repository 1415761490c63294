//! What goes wrong on purpose: rules that match requests, and what they make of them.
//!
//! A rule is a [selector](rule::Selector), an [action](rule::Action) and a budget; [`RuleBuilder`] is how it is
//! written. Each request is judged once, when its node begins to work on it, so a request that is parked for long is
//! still one match. Errors are placed where Kafka's authorizer places its own: a handler asks its
//! [`Context`](crate::context::Context) for each topic, partition or group, before it does anything for it.

mod answers;
mod builder;
mod entities;
mod hits;
mod kafka_versions;
mod place;
mod rule;
#[cfg(test)]
mod tests;
mod tree;
mod verdict;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use krafka_protocol::AnyRequest;

pub(crate) use answers::deny;
pub use builder::{Apis, Rule, RuleBuilder};
pub(crate) use entities::Entities;
pub(crate) use hits::Hits;
pub use hits::Reached;
pub(crate) use kafka_versions::Feature;
pub use kafka_versions::{KafkaVersion, UnknownVersion};
pub(crate) use verdict::{Denial, Verdict};

use crate::context::Context;
use crate::rng::Rng;
use rule::ActiveRule;

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
    active: Vec<ActiveRule>,
    next_id: u64,
    chance: Rng,
}

impl Faults {
    /// No rules; what they leave to chance is drawn from the seed.
    pub(crate) fn new(seed: u64) -> Self {
        let chance = Rng::stream(seed, "faults");
        Self { book: Book::new(Rules { active: Vec::new(), next_id: 0, chance }) }
    }

    /// Where a test writes its rules.
    pub(crate) fn book(&self) -> Book {
        self.book.clone()
    }

    /// Judges a request before it is handled: counts it for the rules that match, and says what they do to it.
    /// `entities` is asked only if there are rules.
    pub(crate) fn judge(&self, cx: &Context, request: &AnyRequest, entities: impl FnOnce() -> Entities) -> Verdict {
        let mut verdict = Verdict::default();
        let rules = &mut *self.book.lock();
        if rules.active.is_empty() {
            return verdict;
        }
        let entities = entities();
        verdict.whole = entities.whole();
        for rule in &mut rules.active {
            rule.judge(cx, request, &entities, &mut rules.chance, &mut verdict);
        }
        rules.active.retain(|rule| !rule.is_spent());
        verdict
    }

    /// The rules that have not acted yet, in words. A test that expects its faults to happen asks at its end.
    pub(crate) fn unfired(&self) -> Vec<String> {
        self.book.lock().active.iter().filter(|rule| rule.hits.count() == 0).map(ToString::to_string).collect()
    }

    /// Ends all rules.
    pub(crate) fn clear(&self) {
        self.book.lock().active.clear();
    }
}

impl Book {
    fn new(rules: Rules) -> Self {
        Self { rules: Arc::new(Mutex::new(rules)) }
    }

    fn install(&self, mut rule: ActiveRule) -> u64 {
        let mut rules = self.lock();
        rule.id = rules.next_id;
        rules.next_id += 1;
        rules.active.push(rule);
        rules.next_id - 1
    }

    fn remove(&self, id: u64) {
        self.lock().active.retain(|rule| rule.id != id);
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
        f.debug_list().entries(&self.book.lock().active).finish()
    }
}
