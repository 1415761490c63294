//! Asks a new leader whether its log has the past that a position was read from (KIP-320), before it is fetched from.
//!
//! ```text
//!   position, epoch of the record before it ──▶ where does that epoch end in your log?
//!        end ≥ position ──▶ valid          end < position ──▶ truncated there          no such epoch ──▶ undefined
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Instant;

use krafka_protocol::api::offset_for_leader_epoch::{
    OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use krafka_protocol::machine::Machine;
use krafka_protocol::{ErrorCode, Str};

use super::attempts::{self, Attempts};
use super::fetcher::Complaint;
use super::subscription::{Claim, Position};
use crate::KrafkaError;
use crate::backoff::Backoff;
use crate::error::ProtocolErrorKind;
use crate::rng::Rng;

/// A position to validate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Want {
    pub(crate) claim: Claim,
    pub(crate) topic: Str,
    pub(crate) partition: i32,
    /// Node and epoch.
    pub(crate) leader: Option<(i32, i32)>,
    pub(crate) position: Position,
}

impl attempts::Want for Want {
    fn claim(&self) -> Claim {
        self.claim
    }
}

impl attempts::WantOfLeader for Want {
    fn topic(&self) -> &Str {
        &self.topic
    }

    fn leader(&self) -> Option<i32> {
        // A leader of an older epoch than the position's cannot know where that one ends (KIP-320): metadata name the
        // next one soon.
        let (node, epoch) = self.leader?;
        (epoch < 0 || self.position.epoch <= epoch).then_some(node)
    }
}

#[derive(Debug)]
pub(crate) enum Input {
    /// All positions that wait to be validated.
    Wanted(Vec<Want>),
    Answered {
        asked: Vec<Want>,
        answer: Result<OffsetForLeaderEpochResponse, KrafkaError>,
    },
}

#[derive(Debug, PartialEq)]
pub(crate) enum Action {
    Ask {
        node: i32,
        request: OffsetForLeaderEpochRequest,
        asked: Vec<Want>,
    },
    Valid {
        claim: Claim,
    },
    /// The leader's log parts from ours: `epoch` ended at `end_offset` there.
    Truncated {
        claim: Claim,
        epoch: i32,
        end_offset: i64,
    },
    /// The leader knows nothing that old.
    Undefined {
        claim: Claim,
    },
    Refresh {
        topics: Vec<Str>,
    },
    Report(Complaint),
}

/// See the file's head.
#[derive(Debug)]
pub(crate) struct Validator {
    attempts: Attempts<Want>,
    actions: VecDeque<Action>,
    now: Option<Instant>,
}

impl Validator {
    pub(crate) fn new(backoff: Backoff, rng: Rng) -> Self {
        let attempts = Attempts::new(backoff, rng);
        Self { attempts, actions: VecDeque::new(), now: None }
    }

    fn ask(&mut self, now: Instant) {
        let (by_node, leaderless) = self.attempts.take_due_by_leader(now);
        if !leaderless.is_empty() {
            self.actions.push_back(Action::Refresh { topics: leaderless.into_iter().collect() });
        }
        for (node, asked) in by_node {
            self.actions.push_back(Action::Ask { node, request: request(&asked), asked });
        }
    }

    fn answered(&mut self, asked: Vec<Want>, answer: Result<OffsetForLeaderEpochResponse, KrafkaError>, now: Instant) {
        let mut answers = BTreeMap::new();
        match answer {
            Ok(response) => {
                for topic in response.topics {
                    for partition in topic.partitions {
                        answers.insert((topic.topic.clone(), partition.partition), partition);
                    }
                }
            }
            // A broker that cannot tell is taken at its word, as the Java client does: there is nobody else to ask.
            Err(KrafkaError::Protocol { kind: ProtocolErrorKind::UnsupportedVersion, .. }) => {
                for want in asked {
                    self.attempts.succeeded(want.claim);
                    self.actions.push_back(Action::Valid { claim: want.claim });
                }
                return;
            }
            Err(error) if !error.is_retriable() => self.actions.push_back(Action::Report(Complaint(error))),
            Err(_) => {}
        }
        let mut stale = BTreeSet::new();
        for want in asked {
            let answer = answers.get(&(want.topic.clone(), want.partition));
            match answer.map(|answer| (ErrorCode(answer.error_code), answer.leader_epoch, answer.end_offset)) {
                Some((code, epoch, end_offset)) if code.is_ok() => {
                    self.attempts.succeeded(want.claim);
                    self.actions.push_back(if epoch < 0 || end_offset < 0 {
                        Action::Undefined { claim: want.claim }
                    } else if end_offset < want.position.offset {
                        Action::Truncated { claim: want.claim, epoch, end_offset }
                    } else {
                        Action::Valid { claim: want.claim }
                    });
                }
                other => {
                    self.attempts.failed(want.claim, now);
                    if let Some((code, ..)) = other
                        && !code.is_retriable()
                    {
                        let context = format!("validating the position in {}-{}", want.topic, want.partition);
                        self.actions.push_back(Action::Report(Complaint(KrafkaError::broker(code, context))));
                    }
                    stale.insert(want.topic);
                }
            }
        }
        if !stale.is_empty() {
            self.actions.push_back(Action::Refresh { topics: stale.into_iter().collect() });
        }
    }
}

impl Validator {
    /// The next action that is decided already. Nothing new is decided, by what may be out of date.
    pub(crate) fn decided(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }
}

impl Machine for Validator {
    type Input = Input;
    type Action = Action;

    fn handle(&mut self, input: Input, now: Instant) {
        self.now = Some(now);
        match input {
            Input::Wanted(wanted) => self.attempts.want(wanted),
            Input::Answered { asked, answer } => {
                self.attempts.answered(&asked);
                self.answered(asked, answer, now);
            }
        }
    }

    fn poll(&mut self, now: Instant) -> Option<Action> {
        self.now = Some(now);
        if self.actions.is_empty() {
            self.ask(now);
        }
        self.actions.pop_front()
    }

    fn deadline(&self) -> Option<Instant> {
        self.attempts.deadline(self.now)
    }
}

fn request(asked: &[Want]) -> OffsetForLeaderEpochRequest {
    let mut topics: BTreeMap<Str, Vec<OffsetForLeaderPartition>> = BTreeMap::new();
    for want in asked {
        topics.entry(want.topic.clone()).or_default().push(OffsetForLeaderPartition {
            partition: want.partition,
            current_leader_epoch: want.leader.map_or(-1, |(_, epoch)| epoch),
            leader_epoch: want.position.epoch,
        });
    }
    OffsetForLeaderEpochRequest {
        replica_id: -1,
        topics: topics.into_iter().map(|(topic, partitions)| OffsetForLeaderTopic { topic, partitions }).collect(),
    }
}

#[cfg(test)]
mod tests;
