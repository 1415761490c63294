//! What all rules that match a request make of it together.

use std::fmt;
use std::time::{Duration, Instant};

use krafka_protocol::{ErrorCode, Str};

use super::place::Place;
use super::rule::Edit;
use crate::state::State;

/// What is to be done with one request.
#[derive(Clone, Default)]
pub(crate) struct Verdict {
    /// Before the request is handled, wait.
    pub(crate) delay: Option<Duration>,
    /// Refuse the request, or parts of it, before anything is done for them.
    pub(crate) denials: Vec<Denial>,
    /// Close the connection instead of handling the request.
    pub(crate) drop: bool,
    /// Neither handle nor answer it.
    pub(crate) silence: bool,
    /// Do this to the cluster before the request is handled.
    pub(crate) operations: Vec<Operation>,
    /// After the request was handled, answer as if it, or parts of it, had been refused.
    pub(crate) late_denials: Vec<Denial>,
    /// What the request is about, where its answer does not repeat it.
    pub(crate) whole: Place,
    /// After the request was handled, change the answer.
    pub(crate) edits: Vec<Edit>,
    /// After the request was handled, wait before the answer is written.
    pub(crate) delay_answer: Option<Duration>,
    /// After the request was handled, close the connection instead of answering.
    pub(crate) drop_answer: bool,
    /// After the request was handled, do not answer it.
    pub(crate) silence_answer: bool,
    /// Tell the client to wait, and mute its connection for that time.
    pub(crate) throttle: Option<Duration>,
}

/// Something that happens in the cluster just as a request comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Another replica, or the named one, becomes the leader of a partition.
    MoveLeader(Str, i32, Option<i32>),
    /// The leader of a partition is elected again.
    BumpLeaderEpoch(Str, i32),
}

/// The parts of a request or an answer that a rule is about; without any, it is about the whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) topic: Option<Str>,
    pub(crate) partitions: Vec<i32>,
    pub(crate) group: Option<Str>,
    pub(crate) transactional_id: Option<Str>,
    pub(crate) resource: Option<Str>,
}

/// An error for the whole of a request, or for some of its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Denial {
    pub(crate) code: ErrorCode,
    pub(crate) target: Target,
}

impl Target {
    /// Whether a part of a message is one of those meant. A group or a transactional id that the part does not tell is
    /// the request's own.
    pub(crate) fn fits(&self, place: &Place) -> bool {
        let is = |wanted: &Option<Str>, actual: &Option<Str>| wanted.is_none() || wanted == actual;
        is(&self.topic, &place.topic)
            && (self.partitions.is_empty() || place.partition.is_some_and(|p| self.partitions.contains(&p)))
            && (place.group.is_none() || is(&self.group, &place.group))
            && (place.transactional_id.is_none() || is(&self.transactional_id, &place.transactional_id))
            && is(&self.resource, &place.resource)
    }

    fn has_topic_or_partition(&self) -> bool {
        self.topic.is_some() || !self.partitions.is_empty()
    }

    fn is_topic(&self, topic: &str) -> bool {
        self.topic.as_deref().is_none_or(|wanted| wanted == topic)
    }
}

impl Denial {
    /// An error for the whole request.
    pub(crate) fn whole(code: ErrorCode) -> Self {
        Self { code, target: Target::default() }
    }

    /// The error for the request as a whole. A request that names one group is refused as a whole for its group's sake.
    pub(crate) fn request(&self) -> Option<ErrorCode> {
        let is_part = self.target.has_topic_or_partition() || self.target.resource.is_some();
        (!is_part).then_some(self.code)
    }

    /// The error for a topic.
    pub(crate) fn topic(&self, topic: &str) -> Option<ErrorCode> {
        let resource = self.target.resource.as_deref();
        let is_meant = self.target.partitions.is_empty()
            && self.target.is_topic(topic)
            && resource.is_none_or(|resource| resource == topic);
        is_meant.then_some(self.code)
    }

    /// The error for a partition.
    pub(crate) fn partition(&self, topic: &str, partition: i32) -> Option<ErrorCode> {
        let partitions = &self.target.partitions;
        let is_meant = self.target.is_topic(topic) && (partitions.is_empty() || partitions.contains(&partition));
        is_meant.then_some(self.code)
    }

    /// The error for a group.
    pub(crate) fn group(&self, group: &str) -> Option<ErrorCode> {
        let is_meant = !self.target.has_topic_or_partition() && self.target.group.as_deref().is_none_or(|g| g == group);
        is_meant.then_some(self.code)
    }

    /// The error for a transactional id.
    pub(crate) fn transactional_id(&self, id: &str) -> Option<ErrorCode> {
        let wanted = self.target.transactional_id.as_deref();
        let is_meant = !self.target.has_topic_or_partition() && wanted.is_none_or(|wanted| wanted == id);
        is_meant.then_some(self.code)
    }
}

impl Operation {
    /// Does it. What is impossible (a partition that is not there, a node that is no replica) changes nothing.
    pub(crate) fn carry_out(&self, state: &mut State, now: Instant) {
        match self {
            Self::BumpLeaderEpoch(topic, partition) => state.bump_leader_epoch(topic, *partition, now),
            Self::MoveLeader(topic, partition, to) => {
                let away = || {
                    let there = state.topics.partition(topic, *partition)?;
                    let live = there.isr.iter().copied().filter(|node| state.nodes.is_up(*node));
                    live.into_iter().find(|node| Some(*node) != there.leader)
                };
                if let Some(node) = to.or_else(away) {
                    state.move_leader(topic, *partition, node, now);
                }
            }
        }
    }
}

impl fmt::Debug for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verdict").field("denials", &self.denials).finish_non_exhaustive()
    }
}
