//! One rule: which requests it matches, what it does to them, how often.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use krafka_protocol::{AnyRequest, AnyResponse, ApiKey, ErrorCode, Str};

use super::entities::Entities;
use super::hits::Hits;
use super::verdict::{Denial, Operation, Target, Verdict};
use crate::context::Context;
use crate::rng::Rng;

/// Changes an answer.
pub(crate) type Edit = Arc<dyn Fn(&mut AnyResponse) + Send + Sync>;
/// Asks a question about a request.
pub(crate) type Predicate = Arc<dyn Fn(&AnyRequest) -> bool + Send + Sync>;

/// What must all hold for a request to match. What a request does not carry, it does not match: a rule for a topic
/// never matches a Heartbeat.
#[derive(Clone, Default)]
pub(crate) struct Selector {
    /// Any API, if empty.
    pub(crate) keys: Vec<ApiKey>,
    pub(crate) versions: Option<RangeInclusive<i16>>,
    pub(crate) node: Option<i32>,
    pub(crate) connection: Option<u64>,
    pub(crate) client_id: Option<Str>,
    pub(crate) topic: Option<Str>,
    pub(crate) partition: Option<i32>,
    pub(crate) group: Option<Str>,
    pub(crate) predicate: Option<Predicate>,
}

/// What a rule does to the requests that it matches.
#[derive(Clone)]
pub(crate) enum Action {
    /// Counts them.
    Observe,
    /// Answers an error.
    Error(ErrorCode),
    /// Tells the client to be silent, and mutes its connection.
    Throttle(Duration),
    /// Waits.
    Delay(Duration),
    /// Closes the connection.
    Drop,
    /// Answers nothing, for ever.
    Silence,
    /// Answers that the client shall start again from its bootstrap servers.
    Rebootstrap,
    /// Makes the client's epoch one of the past.
    FenceEpoch,
    /// Moves the leaders of the partitions that are asked for.
    MoveLeader(Option<i32>),
    /// Changes the answer.
    Edit(Edit),
}

/// A rule at work.
#[derive(Clone)]
pub(crate) struct ActiveRule {
    pub(crate) id: u64,
    pub(crate) selector: Selector,
    pub(crate) action: Action,
    /// Whether the request is handled first, and the rule is about its answer.
    pub(crate) after_handling: bool,
    /// How many matches are let pass before the rule acts.
    pub(crate) skip: u64,
    /// How often the rule still acts; `None` for ever.
    pub(crate) budget: Option<u64>,
    /// The chance that a match counts; `None` if each does.
    pub(crate) probability: Option<f64>,
    pub(crate) hits: Hits,
}

impl ActiveRule {
    /// Counts a request that matches, and adds what the rule does to it to the verdict.
    pub(crate) fn judge(
        &mut self,
        cx: &Context,
        request: &AnyRequest,
        entities: &Entities,
        chance: &mut Rng,
        verdict: &mut Verdict,
    ) {
        if self.is_spent() || !self.selector.matches(cx, request, entities) || !self.can_act_on(cx) {
            return;
        }
        if self.probability.is_some_and(|p| (chance.below(1 << 32) as f64) >= p * f64::from(u32::MAX)) {
            return;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return;
        }
        self.budget = self.budget.map(|left| left - 1);
        self.hits.raise();
        self.act(cx, entities, verdict);
    }

    /// Whether the rule has acted as often as it shall.
    pub(crate) fn is_spent(&self) -> bool {
        self.budget == Some(0)
    }

    /// Whether what the rule does can be said in this API and version.
    fn can_act_on(&self, cx: &Context) -> bool {
        match self.action {
            Action::Rebootstrap => cx.key == ApiKey::Metadata && cx.version >= 13,
            Action::FenceEpoch => fencing(cx.key).is_some(),
            _ => true,
        }
    }

    fn act(&self, cx: &Context, entities: &Entities, verdict: &mut Verdict) {
        let denial = |code| Denial { code, target: self.selector.target() };
        match (&self.action, self.after_handling) {
            (Action::Observe, _) => {}
            (Action::Error(code), false) => verdict.denials.push(denial(*code)),
            (Action::Error(code), true) => verdict.late_denials.push(denial(*code)),
            (Action::Throttle(time), _) => longest(&mut verdict.throttle, *time),
            (Action::Delay(time), false) => longest(&mut verdict.delay, *time),
            (Action::Delay(time), true) => longest(&mut verdict.delay_answer, *time),
            (Action::Drop, false) => verdict.drop = true,
            (Action::Drop, true) => verdict.drop_answer = true,
            (Action::Silence, false) => verdict.silence = true,
            (Action::Silence, true) => verdict.silence_answer = true,
            (Action::Rebootstrap, _) => verdict.edits.push(Arc::new(rebootstrap)),
            (Action::Edit(edit), _) => verdict.edits.push(edit.clone()),
            (Action::FenceEpoch, _) => match fencing(cx.key) {
                Some(Fencing::Leader) => {
                    let partitions = self.selector.partitions_of(entities);
                    verdict.operations.extend(partitions.map(|(topic, p)| Operation::BumpLeaderEpoch(topic, p)));
                }
                Some(Fencing::Code(code)) => verdict.denials.push(denial(code)),
                None => {}
            },
            (Action::MoveLeader(to), _) => {
                let partitions = self.selector.partitions_of(entities);
                verdict.operations.extend(partitions.map(|(topic, p)| Operation::MoveLeader(topic, p, *to)));
            }
        }
    }
}

impl Selector {
    fn matches(&self, cx: &Context, request: &AnyRequest, entities: &Entities) -> bool {
        let is = |wanted: Option<i32>, actual: i32| wanted.is_none_or(|w| w == actual);
        (self.keys.is_empty() || self.keys.contains(&cx.key))
            && self.versions.as_ref().is_none_or(|v| v.contains(&cx.version))
            && is(self.node, cx.node)
            && self.connection.is_none_or(|c| c == cx.connection.0)
            && (self.client_id.is_none() || self.client_id == cx.client_id)
            && self.group.as_ref().is_none_or(|group| entities.groups.contains(group))
            && (self.topic.is_none() || self.topics_of(entities).next().is_some())
            && (self.partition.is_none() || self.partitions_of(entities).next().is_some())
            && self.predicate.as_ref().is_none_or(|holds| holds(request))
    }

    /// The parts of a request that the rule is about.
    fn target(&self) -> Target {
        let (topic, partitions) = (self.topic.clone(), self.partition.into_iter().collect());
        Target { topic, partitions, group: self.group.clone(), ..Target::default() }
    }

    fn topics_of<'a>(&'a self, entities: &'a Entities) -> impl Iterator<Item = &'a (Str, Vec<i32>)> {
        entities.topics.iter().filter(|(topic, _)| self.topic.as_ref().is_none_or(|wanted| wanted == topic))
    }

    /// The partitions of a request that the rule is about.
    fn partitions_of<'a>(&'a self, entities: &'a Entities) -> impl Iterator<Item = (Str, i32)> + 'a {
        let partitions = self.topics_of(entities).flat_map(|(topic, ps)| ps.iter().map(|p| (topic.clone(), *p)));
        partitions.filter(|(_, p)| self.partition.is_none_or(|wanted| wanted == *p))
    }
}

/// How a client's epoch becomes one of the past.
enum Fencing {
    /// It knows the leader by its epoch: there is an election, which the same leader wins.
    Leader,
    /// It is fenced with an error, as if another had taken its place.
    Code(ErrorCode),
}

fn fencing(key: ApiKey) -> Option<Fencing> {
    match key {
        ApiKey::Fetch | ApiKey::ListOffsets | ApiKey::OffsetForLeaderEpoch => Some(Fencing::Leader),
        ApiKey::Produce => Some(Fencing::Code(ErrorCode::INVALID_PRODUCER_EPOCH)),
        ApiKey::InitProducerId => Some(Fencing::Code(ErrorCode::PRODUCER_FENCED)),
        ApiKey::SyncGroup | ApiKey::Heartbeat | ApiKey::OffsetCommit => {
            Some(Fencing::Code(ErrorCode::ILLEGAL_GENERATION))
        }
        _ => None,
    }
}

/// The answer of a broker to a client that must forget the cluster it knows (KIP-1102).
fn rebootstrap(response: &mut AnyResponse) {
    if let AnyResponse::Metadata(metadata) = response {
        metadata.error_code = ErrorCode::REBOOTSTRAP_REQUIRED.0;
        metadata.brokers.clear();
        metadata.topics.clear();
        metadata.cluster_id = None;
        metadata.controller_id = -1;
    }
}

fn longest(slot: &mut Option<Duration>, time: Duration) {
    *slot = (*slot).max(Some(time));
}

impl fmt::Display for ActiveRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} → {}", self.selector, self.action)?;
        if self.after_handling {
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

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.keys.iter().map(|key| key.name()).collect();
        f.write_str(if names.is_empty() { "any request" } else { "" })?;
        f.write_str(&names.join(" or "))?;
        if let Some(node) = self.node {
            write!(f, " on node {node}")?;
        }
        match (&self.topic, self.partition) {
            (Some(topic), Some(partition)) => write!(f, " for {topic}-{partition}")?,
            (Some(topic), None) => write!(f, " for {topic}")?,
            (None, Some(partition)) => write!(f, " for partition {partition}")?,
            (None, None) => {}
        }
        if let Some(group) = &self.group {
            write!(f, " of group {group}")?;
        }
        if let Some(client_id) = &self.client_id {
            write!(f, " of client {client_id}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Observe => f.write_str("observe"),
            Self::Error(code) => write!(f, "answer {}", code.name()),
            Self::Throttle(time) => write!(f, "throttle for {time:?}"),
            Self::Delay(time) => write!(f, "delay by {time:?}"),
            Self::Drop => f.write_str("drop the connection"),
            Self::Silence => f.write_str("silence"),
            Self::Rebootstrap => f.write_str("rebootstrap"),
            Self::FenceEpoch => f.write_str("fence the epoch"),
            Self::MoveLeader(Some(node)) => write!(f, "move the leader to {node}"),
            Self::MoveLeader(None) => f.write_str("move the leader"),
            Self::Edit(_) => f.write_str("edit the answer"),
        }
    }
}
