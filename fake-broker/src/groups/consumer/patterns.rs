//! Subscriptions by regular expression: which topics each one stands for.
//!
//! The coordinator looks for topics again when a member brings an expression that is not resolved, when there are
//! topics that it has not seen, or when the last look is too long ago; and at most once in ten seconds. It looks with
//! the eyes of whose heartbeat made it look, for all members: it finds what that one may describe.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use krafka_protocol::{ErrorCode, Str};

use super::super::desk::{Desk, Refusal};
use super::ConsumerGroup;
use super::member::Member;
use crate::re2::Expression;

/// Kafka's pause between two looks.
const MIN_INTERVAL: Duration = Duration::from_secs(10);

/// The expressions of a group with their topics.
#[derive(Clone, Debug, Default)]
pub(super) struct Patterns {
    resolved: BTreeMap<Str, BTreeSet<Str>>,
    resolved_at: Option<Instant>,
    /// The topics that there were then.
    seen: BTreeSet<Str>,
    /// When to look again.
    due: Option<Instant>,
    /// What who made it look may not describe.
    hidden: BTreeSet<Str>,
}

/// What a heartbeat does to the group's expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Nothing,
    /// To one whose topics are to be found yet.
    Unresolved,
    /// To one whose topics are known, or to none.
    Resolved,
}

impl Patterns {
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// The topics of an expression, as far as they are known.
    pub(super) fn topics(&self, regex: &Str) -> impl Iterator<Item = &Str> {
        self.resolved.get(regex).into_iter().flatten()
    }

    /// Forgets all expressions but these.
    pub(super) fn keep(&mut self, expressions: &BTreeSet<Str>) {
        self.resolved.retain(|regex, _| expressions.contains(regex));
        if self.resolved.is_empty() {
            self.resolved_at = None;
        }
    }
}

impl ConsumerGroup {
    /// Whether a member may subscribe by a new expression.
    pub(super) fn check_expression(&self, before: &Member, wanted: Option<&Str>) -> Result<(), Refusal> {
        let Some(wanted) = wanted.filter(|regex| !regex.is_empty() && before.regex() != Some(regex)) else {
            return Ok(());
        };
        if self.expressions().contains(wanted) {
            return Ok(());
        }
        let wrong = |reason| {
            let message = format!("SubscribedTopicRegex `{wanted}` is not a valid regular expression: {reason}.");
            Refusal::new(ErrorCode::INVALID_REGULAR_EXPRESSION, message)
        };
        Expression::new(wanted).map(drop).map_err(wrong)
    }

    /// Notes that a member, which is in its place already, subscribes by another expression, or by the same; and plans
    /// a look for topics if there must be one.
    pub(super) fn expression_changed(&mut self, before: Option<&Str>, id: &Str, desk: &Desk<'_>) -> Change {
        let after = self.members.get(id).and_then(Member::regex).cloned();
        let mut change = Change::Nothing;
        if before != after.as_ref() {
            let is_known = after.as_ref().is_none_or(|regex| self.patterns.resolved.contains_key(regex));
            change = if is_known { Change::Resolved } else { Change::Unresolved };
        }
        let expressions = self.expressions();
        self.patterns.keep(&expressions);
        let patterns = &mut self.patterns;
        if expressions.is_empty() || patterns.due.is_some() {
            return change;
        }
        let age = patterns.resolved_at.map(|at| desk.now - at);
        if age.is_some_and(|age| age <= MIN_INTERVAL) {
            return change;
        }
        let is_old = age.is_some_and(|age| age > desk.config.group_consumer_regex_refresh_interval);
        let is_unresolved = expressions.iter().any(|regex| !patterns.resolved.contains_key(regex));
        if is_old || is_unresolved || desk.image.topic_names().any(|name| !patterns.seen.contains(name)) {
            patterns.due = Some(desk.now);
            patterns.hidden = desk.image.hidden();
        }
        change
    }

    /// Looks for the topics of all expressions.
    pub(super) fn resolve(&mut self, desk: &Desk<'_>) {
        self.patterns.due = None;
        let hidden = std::mem::take(&mut self.patterns.hidden);
        let names: BTreeSet<Str> = desk.image.topic_names().cloned().collect();
        let mut has_changed = false;
        for regex in self.expressions() {
            let Ok(expression) = Expression::new(&regex) else { continue };
            let is_found = |name: &&Str| expression.matches(name) && !hidden.contains(*name);
            let topics: BTreeSet<Str> = names.iter().filter(is_found).cloned().collect();
            let old = self.patterns.resolved.insert(regex, topics.clone()).unwrap_or_default();
            has_changed |= old != topics;
        }
        self.patterns.resolved_at = Some(desk.now);
        self.patterns.seen = names;
        if !self.is_empty() {
            self.raise_epoch(has_changed, desk);
        }
    }
}
