//! One rule: which requests it matches, what it does to them, how often.

use std::fmt;
use std::time::{Duration, Instant};

use krafka_protocol::{AnyRequest, ErrorCode};
use serde::{Deserialize, Serialize};

use super::action::Action;
use super::after_apply;
use super::answers::Change;
use super::entities::Entities;
use super::fencing::{self, Fencing};
use super::hits::Hits;
use super::names::{Api, Code, Times, millis};
use super::network::{Passage, Passing};
use super::selector::{Event, Selector};
use super::tree::Tree;
use super::verdict::{Denial, Opening, Verdict};
use crate::context::Context;
use crate::operations::Operation;
use crate::rng::Rng;

/// A rule as it is written: the form that JSON has.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleText {
    #[serde(default)]
    pub(crate) when: Selector,
    /// The first match that counts, from 1 on.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub(crate) nth: u64,
    /// How often it acts; left open, once, or for ever if all that it does is to observe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) times: Option<Times>,
    /// The chance that a match counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) probability: Option<f64>,
    /// How long the rule sleeps once it is installed.
    #[serde(default, rename = "after_ms", with = "millis", skip_serializing_if = "Duration::is_zero")]
    pub(crate) after: Duration,
    /// How long the rule lives, counted from when it is installed.
    #[serde(default, rename = "until_ms", skip_serializing_if = "Option::is_none")]
    pub(crate) until_ms: Option<u64>,
    /// Whether the request is handled first, and the rule is about its answer.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) after_handling: bool,
    #[serde(rename = "do")]
    pub(crate) action: Action,
}

/// A rule at work.
#[derive(Clone)]
pub(crate) struct ActiveRule {
    pub(crate) id: u64,
    pub(crate) text: RuleText,
    pub(crate) installed: Instant,
    /// How many matches are still let pass before the rule acts.
    skip: u64,
    /// How often the rule still acts; `None` for ever.
    budget: Option<u64>,
    pub(crate) hits: Hits,
}

impl RuleText {
    /// Says what is wrong with the rule.
    ///
    /// # Errors
    ///
    /// It could never act, or Kafka could never do so.
    pub(crate) fn check(&self) -> Result<(), String> {
        if let Some(wrong) = self.probability.filter(|p| !(*p > 0.0 && *p <= 1.0)) {
            return Err(format!("`probability` is between 0 and 1, and not 0 itself: it cannot be {wrong}"));
        }
        if self.nth == 0 {
            return Err("`nth` counts matches from 1 on".to_owned());
        }
        if self.times == Some(Times::Number(0)) {
            return Err("a rule acts at least once: leave `times` away, or remove the rule".to_owned());
        }
        if self.until_ms.is_some_and(|until| Duration::from_millis(until) <= self.after) {
            return Err("a rule that ends at `until_ms` begins before that, at `after_ms`".to_owned());
        }
        if self.after_handling && self.when.event != Event::Request {
            return Err("`after_handling` is for rules about requests: nothing else is handled".to_owned());
        }
        let requests = self.when.check()?;
        let is_lasting = self.nth == 1 && self.probability.is_none() && self.times == Some(Times::Forever);
        if matches!(self.action, Action::Partition) && !is_lasting {
            return Err("a partition lasts until it is removed or its time is over: \"times\": \"forever\"".to_owned());
        }
        self.action.check(&self.when, &requests, self.after_handling)
    }
}

impl RuleText {
    /// The rule that a coordinator follows while it reads its log.
    pub(crate) fn loading(group: Option<String>, transactional_id: Option<String>, time: Duration) -> Self {
        use krafka_protocol::ApiKey::*;
        let apis = [
            OffsetCommit,
            OffsetFetch,
            JoinGroup,
            Heartbeat,
            LeaveGroup,
            SyncGroup,
            DescribeGroups,
            DeleteGroups,
            OffsetDelete,
            InitProducerId,
            AddPartitionsToTxn,
            AddOffsetsToTxn,
            EndTxn,
            TxnOffsetCommit,
            DescribeTransactions,
            ConsumerGroupHeartbeat,
            ConsumerGroupDescribe,
            ShareGroupHeartbeat,
            ShareGroupDescribe,
            StreamsGroupHeartbeat,
            StreamsGroupDescribe,
        ];
        let when = Selector { apis: apis.map(Api).to_vec(), group, transactional_id, ..Selector::default() };
        Self {
            when,
            nth: 1,
            times: Some(Times::Forever),
            probability: None,
            after: Duration::ZERO,
            until_ms: Some(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            after_handling: false,
            action: Action::ReplyError(Code(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS)),
        }
    }
}

impl ActiveRule {
    pub(crate) fn new(id: u64, text: RuleText, installed: Instant) -> Self {
        let skip = text.nth.saturating_sub(1);
        let budget = match text.times {
            Some(Times::Number(times)) => Some(times),
            Some(Times::Forever) => None,
            // What only looks on is no fault that runs out: a count that stops at one says nothing.
            None => (!matches!(text.action, Action::Observe)).then_some(1),
        };
        Self { id, text, installed, skip, budget, hits: Hits::up_to(budget) }
    }

    /// Counts a request that matches, and adds what the rule does to it to the verdict.
    pub(crate) fn judge(
        &mut self,
        cx: &Context,
        request: &AnyRequest,
        entities: &Entities,
        chance: &mut Rng,
        verdict: &mut Verdict,
    ) {
        let is_meant = self.is_awake(cx.now)
            && self.text.when.matches(cx, request, entities)
            && self.text.action.can_act_on(cx, request, self.text.after_handling)
            && (!self.text.action.moves_leaders() || self.text.when.partitions_of(entities).next().is_some());
        if is_meant && self.counts(chance) {
            self.act(cx, entities, verdict);
        }
    }

    /// Counts a connection that matches, and adds what the rule does to it.
    pub(crate) fn judge_connection(
        &mut self,
        connection: u64,
        node: i32,
        now: Instant,
        chance: &mut Rng,
        opening: &mut Opening,
    ) {
        let is_meant = self.is_awake(now) && self.text.when.matches_connection(connection, node);
        if is_meant && self.counts(chance) {
            match &self.text.action {
                Action::Refuse => opening.refuse = true,
                Action::BlackHole => opening.black_hole = true,
                Action::SpeakFirst(text) => opening.greeting.push_str(text),
                Action::SlowAccept(time) => longest(&mut opening.delay, *time),
                Action::ChangeCluster(operation) => opening.operations.push(operation.clone()),
                _ => {}
            }
        }
    }

    /// Counts a frame that matches, and adds what the rule does to it.
    pub(crate) fn judge_frame(&mut self, passing: &Passing, now: Instant, chance: &mut Rng, passage: &mut Passage) {
        if self.is_awake(now) && self.text.when.matches_frame(passing) && self.counts(chance) {
            passage.suffer(&self.text.action, passing.bytes, chance);
        }
    }

    /// Whether nothing can pass where the frame is.
    pub(crate) fn holds(&self, passing: &Passing, now: Instant) -> bool {
        matches!(self.text.action, Action::Partition) && self.is_awake(now) && self.text.when.matches_frame(passing)
    }

    /// The two nodes that the rule keeps apart.
    pub(crate) fn separates(&self, now: Instant) -> Option<(i32, i32)> {
        self.text.when.pair().filter(|_| matches!(self.text.action, Action::Partition) && self.is_awake(now))
    }

    /// Whether it is about the network.
    pub(crate) fn is_networks(&self) -> bool {
        self.text.when.event == Event::Network
    }

    /// The next moment at which it wakes or ends by its time.
    pub(crate) fn next_turn(&self, now: Instant) -> Option<Instant> {
        let end = self.text.until_ms.and_then(|until| self.installed.checked_add(Duration::from_millis(until)));
        [self.installed.checked_add(self.text.after), end].into_iter().flatten().filter(|turn| *turn > now).min()
    }

    /// Whether the rule never acts again.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        self.is_spent() || self.time_left(now).is_some_and(|left| left.is_zero())
    }

    /// How long it still lives, if its time is limited.
    pub(crate) fn time_left(&self, now: Instant) -> Option<Duration> {
        let age = now.saturating_duration_since(self.installed);
        self.text.until_ms.map(|until| Duration::from_millis(until).saturating_sub(age))
    }

    /// Whether the rule has acted as often as it shall.
    pub(crate) fn is_spent(&self) -> bool {
        self.budget == Some(0)
    }

    fn is_awake(&self, now: Instant) -> bool {
        !self.is_over(now) && now.saturating_duration_since(self.installed) >= self.text.after
    }

    /// Whether this match is one that the rule acts on.
    fn counts(&mut self, chance: &mut Rng) -> bool {
        if self.text.probability.is_some_and(|p| !chance.hits(p)) {
            return false;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        self.budget = self.budget.map(|left| left - 1);
        self.hits.raise();
        true
    }

    fn act(&self, cx: &Context, entities: &Entities, verdict: &mut Verdict) {
        let (selector, late) = (&self.text.when, self.text.after_handling);
        let target = || selector.target(entities);
        match (&self.text.action, late) {
            // These are for connections and the network.
            (
                Action::Observe | Action::Refuse | Action::SlowAccept(_) | Action::BlackHole | Action::SpeakFirst(_),
                _,
            )
            | (Action::Latency { .. } | Action::Bandwidth { .. } | Action::Loss { .. } | Action::Partition, _) => {}
            (Action::HalfOpen, false) => verdict.half_open = true,
            (Action::HalfOpen, true) => verdict.half_open_answer = true,
            (Action::Redeliver(time), _) => verdict.redeliver.push(*time),
            (Action::ReplyError(Code(code)), late) => {
                let denial = Denial { code: *code, target: target() };
                if late || after_apply::is_always_late(cx.key, *code) {
                    verdict.late_denials.push(denial);
                } else {
                    verdict.denials.push(denial);
                }
            }
            (Action::Throttle(time), _) => longest(&mut verdict.throttle, *time),
            (Action::Delay(time), false) => longest(&mut verdict.delay, *time),
            (Action::Delay(time), true) => longest(&mut verdict.delay_answer, *time),
            (Action::DropConnection, false) => verdict.drop = true,
            (Action::DropConnection, true) => verdict.drop_answer = true,
            (Action::ResetConnection, late) => {
                verdict.reset = true;
                if late {
                    verdict.drop_answer = true;
                } else {
                    verdict.drop = true;
                }
            }
            (Action::Silence, false) => verdict.silence = true,
            (Action::Silence, true) => verdict.silence_answer = true,
            (Action::Rebootstrap, _) => verdict.edits.push(std::sync::Arc::new(fencing::rebootstrap)),
            (Action::Edit(edit), _) => verdict.edits.push(edit.clone()),
            (Action::FenceEpoch, _) => {
                match fencing::fencing(cx.key) {
                    Some(Fencing::Leader) => {
                        let partitions = selector.partitions_of(entities);
                        verdict.operations.extend(partitions.map(|(topic, partition)| Operation::BumpLeaderEpoch {
                            topic: topic.to_string(),
                            partition,
                        }));
                    }
                    Some(Fencing::Code(code)) => verdict.denials.push(Denial { code, target: target() }),
                    None => {}
                }
            }
            (Action::MoveLeader(_) | Action::MoveLeaderAway, _) => {
                let node = if let Action::MoveLeader(node) = self.text.action { Some(node) } else { None };
                let partitions = selector.partitions_of(entities);
                verdict.operations.extend(partitions.map(|(topic, partition)| Operation::MoveLeader {
                    topic: topic.to_string(),
                    partition,
                    node,
                }));
            }
            (Action::DropEntity, _) => verdict.changes.push((Change::Drop, target())),
            (Action::DuplicateEntity, _) => verdict.changes.push((Change::Duplicate, target())),
            (Action::Set { field, value }, _) => {
                let change = Change::Set { path: field.clone(), value: Tree::from_json(value) };
                verdict.changes.push((change, target()));
            }
            (Action::Hint(hint), _) => verdict.hints.push((hint.clone(), target())),
            (Action::Layout(version), _) => verdict.layout = Some(*version),
            (Action::Damage(damage), _) => verdict.damages.push(damage.clone()),
            (Action::ChangeCluster(operation), false) => verdict.operations.push(operation.clone()),
            (Action::ChangeCluster(operation), true) => verdict.late_operations.push(operation.clone()),
        }
    }
}

fn longest(slot: &mut Option<Duration>, time: Duration) {
    *slot = (*slot).max(Some(time));
}

fn one() -> u64 {
    1
}

fn is_one(number: &u64) -> bool {
    *number == 1
}

fn is_false(value: &bool) -> bool {
    !value
}

impl fmt::Display for ActiveRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} → {}", self.text.when, self.text.action)?;
        if self.text.after_handling {
            f.write_str(" after handling")?;
        }
        if self.skip > 0 {
            write!(f, ", once {} more have matched", self.skip)?;
        }
        Ok(())
    }
}

impl fmt::Debug for ActiveRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
