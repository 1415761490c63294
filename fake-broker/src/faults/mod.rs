//! What goes wrong on purpose: rules that match requests, and what they make of them.

mod kafka_versions;

use std::fmt;
use std::time::Duration;

use krafka_protocol::{AnyRequest, AnyResponse, ErrorCode};

use crate::context::Context;

pub use kafka_versions::KafkaVersion;

/// The rules of a cluster.
#[derive(Debug, Default)]
pub(crate) struct Faults {}

/// What all rules that match a request make of it together.
#[derive(Clone, Default)]
pub(crate) struct Verdict {
    /// Before the request is looked at, wait.
    pub(crate) delay: Option<Duration>,
    /// Refuse the request, or a part of it, with an error.
    pub(crate) denial: Option<Denial>,
    /// Close the connection instead of handling the request.
    pub(crate) drop: bool,
    /// Neither handle nor answer it.
    pub(crate) silence: bool,
    /// Tell the client to wait, and mute its connection for that time.
    pub(crate) throttle: Option<Duration>,
    /// After the request was handled, wait before the answer is written.
    pub(crate) delay_answer: Option<Duration>,
    /// After the request was handled, close the connection instead of answering.
    pub(crate) drop_answer: bool,
    /// After the request was handled, change the answer.
    pub(crate) edits: Vec<Edit>,
}

/// Changes an answer.
pub(crate) type Edit = std::sync::Arc<dyn Fn(&mut AnyResponse) + Send + Sync>;

impl fmt::Debug for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verdict").field("denial", &self.denial).finish_non_exhaustive()
    }
}

/// An error for the whole of a request, or for one of its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Denial {
    code: ErrorCode,
}

impl Denial {
    /// The error for the request as a whole.
    pub(crate) fn request(&self) -> Option<ErrorCode> {
        Some(self.code)
    }

    /// The error for a topic.
    pub(crate) fn topic(&self, _topic: &str) -> Option<ErrorCode> {
        Some(self.code)
    }

    /// The error for a partition.
    pub(crate) fn partition(&self, _topic: &str, _partition: i32) -> Option<ErrorCode> {
        Some(self.code)
    }

    /// The error for a group.
    pub(crate) fn group(&self, _group: &str) -> Option<ErrorCode> {
        Some(self.code)
    }
}

impl Faults {
    /// Judges a request before it is handled: counts the rules that match it, and says what they do to it.
    pub(crate) fn judge(&mut self, _cx: &Context, _request: &AnyRequest) -> Verdict {
        Verdict::default()
    }
}
