//! What all rules that match a request make of it together.

use std::fmt;
use std::time::{Duration, Instant};

use krafka_protocol::{ErrorCode, Str};

use super::rule::{Edit, Selector};
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

/// An error for the whole of a request, or for some of its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Denial {
    code: ErrorCode,
    topic: Option<Str>,
    partition: Option<i32>,
    group: Option<Str>,
}

impl Denial {
    /// An error for the parts that a rule names, or for the whole if it names none.
    pub(crate) fn new(code: ErrorCode, selector: &Selector) -> Self {
        let Selector { topic, partition, group, .. } = selector;
        Self { code, topic: topic.clone(), partition: *partition, group: group.clone() }
    }

    /// An error for the whole request.
    pub(crate) fn whole(code: ErrorCode) -> Self {
        Self { code, topic: None, partition: None, group: None }
    }

    /// The error for the request as a whole. A request that names one group is refused as a whole for its group's sake.
    pub(crate) fn request(&self) -> Option<ErrorCode> {
        (self.topic.is_none() && self.partition.is_none()).then_some(self.code)
    }

    /// The error for a topic.
    pub(crate) fn topic(&self, topic: &str) -> Option<ErrorCode> {
        (self.partition.is_none() && self.topic.as_deref().is_none_or(|t| t == topic)).then_some(self.code)
    }

    /// The error for a partition.
    pub(crate) fn partition(&self, topic: &str, partition: i32) -> Option<ErrorCode> {
        let is_meant =
            self.topic.as_deref().is_none_or(|t| t == topic) && self.partition.is_none_or(|p| p == partition);
        is_meant.then_some(self.code)
    }

    /// The error for a group.
    pub(crate) fn group(&self, group: &str) -> Option<ErrorCode> {
        let is_meant = self.topic.is_none() && self.partition.is_none();
        (is_meant && self.group.as_deref().is_none_or(|g| g == group)).then_some(self.code)
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
