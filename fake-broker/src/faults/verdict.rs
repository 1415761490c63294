//! What all rules that match a request make of it together.

use std::fmt;
use std::time::Duration;

use krafka_protocol::{ErrorCode, Str};

use super::action::Edit;
use super::answers::Change;
use super::damage::Damage;
use super::hints::Hint;
use super::place::Place;
use crate::operations::Operation;

/// What is to be done with one request.
#[derive(Clone, Default)]
pub(crate) struct Verdict {
    /// Before the request is handled, wait.
    pub(crate) delay: Option<Duration>,
    /// Refuse the request, or parts of it, before anything is done for them.
    pub(crate) denials: Vec<Denial>,
    /// Close the connection instead of handling the request.
    pub(crate) drop: bool,
    /// Close the connection by a reset, if it is to be closed.
    pub(crate) reset: bool,
    /// Forget the connection without telling the client.
    pub(crate) half_open: bool,
    /// The same after the request was handled, in place of answering it.
    pub(crate) half_open_answer: bool,
    /// Deliver the request again once so much time has passed.
    pub(crate) redeliver: Vec<Duration>,
    /// Neither handle nor answer it.
    pub(crate) silence: bool,
    /// Do this to the cluster before the request is handled.
    pub(crate) operations: Vec<Operation>,
    /// After the request was handled, do this to the cluster.
    pub(crate) late_operations: Vec<Operation>,
    /// After the request was handled, answer as if it, or parts of it, had been refused.
    pub(crate) late_denials: Vec<Denial>,
    /// What the request is about, where its answer does not repeat it.
    pub(crate) whole: Place,
    /// After the request was handled, change parts of the answer.
    pub(crate) changes: Vec<(Change, Target)>,
    /// After the request was handled, give these hints.
    pub(crate) hints: Vec<(Hint, Target)>,
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
    /// Write the answer as this version has it.
    pub(crate) layout: Option<i16>,
    /// What becomes of the bytes of the answer.
    pub(crate) damages: Vec<Damage>,
}

impl Verdict {
    /// Whether an answer may become one that no broker has.
    pub(crate) fn is_editing(&self) -> bool {
        let Self { changes, hints, edits, layout, .. } = self;
        !(changes.is_empty() && hints.is_empty() && edits.is_empty() && layout.is_none())
    }
}

/// What is to be done with a new connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Opening {
    /// Reset it.
    pub(crate) refuse: bool,
    /// Read from it only after this time.
    pub(crate) delay: Option<Duration>,
    /// Write this before anything is asked.
    pub(crate) greeting: String,
    /// Never read from it.
    pub(crate) black_hole: bool,
    /// Do this to the cluster first.
    pub(crate) operations: Vec<Operation>,
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
    /// Whether it is about the whole.
    pub(crate) fn names_nothing(&self) -> bool {
        *self == Self::default()
    }

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

impl fmt::Debug for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verdict").field("denials", &self.denials).finish_non_exhaustive()
    }
}
