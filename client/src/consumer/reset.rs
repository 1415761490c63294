//! Looks up offsets for partitions that have no valid position: by ListOffsets, at each one's leader.
//!
//! A partition stays in it until an answer settles it or nobody wants it any more. Errors are retried, with fresh
//! metadata, for ever: the user sees those that time does not heal, and the partition recovers when the cause is gone.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Instant;

use krafka_protocol::api::list_offsets::{
    ListOffsetsPartition, ListOffsetsRequest, ListOffsetsResponse, ListOffsetsTopic,
};
use krafka_protocol::machine::Machine;
use krafka_protocol::{ErrorCode, Str};

use super::attempts::{self, Attempts};
use super::fetcher::Complaint;
use super::subscription::{Claim, Position, Start};
use crate::KrafkaError;
use crate::backoff::Backoff;
use crate::rng::Rng;

/// A partition to look up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Want {
    pub(crate) claim: Claim,
    pub(crate) topic: Str,
    pub(crate) partition: i32,
    /// Node and epoch.
    pub(crate) leader: Option<(i32, i32)>,
    pub(crate) start: Start,
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
        self.leader.map(|(node, _)| node)
    }
}

#[derive(Debug)]
pub(crate) enum Input {
    /// All partitions that need an offset.
    Wanted(Vec<Want>),
    Answered {
        asked: Vec<Want>,
        answer: Result<ListOffsetsResponse, KrafkaError>,
    },
}

#[derive(Debug, PartialEq)]
pub(crate) enum Action {
    Ask {
        node: i32,
        request: ListOffsetsRequest,
        asked: Vec<Want>,
    },
    Found {
        claim: Claim,
        position: Position,
    },
    /// No record is as young as the timestamp: the log's end is where the next one will be.
    NothingSince {
        claim: Claim,
    },
    Refresh {
        topics: Vec<Str>,
    },
    Report(Complaint),
}

/// See the file's head.
#[derive(Debug)]
pub(crate) struct Resetter {
    attempts: Attempts<Want>,
    actions: VecDeque<Action>,
    now: Option<Instant>,
}

impl Resetter {
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

    fn answered(&mut self, asked: Vec<Want>, answer: Result<ListOffsetsResponse, KrafkaError>, now: Instant) {
        let mut answers = BTreeMap::new();
        match answer {
            Ok(response) => {
                for topic in response.topics {
                    for partition in topic.partitions {
                        answers.insert((topic.name.clone(), partition.partition_index), partition);
                    }
                }
            }
            Err(error) if !error.is_retriable() => self.actions.push_back(Action::Report(Complaint(error))),
            Err(_) => {}
        }
        let mut stale = BTreeSet::new();
        for want in asked {
            // A partition that the answer leaves out is asked about again, like one that failed.
            let answer = answers.get(&(want.topic.clone(), want.partition));
            let code = answer.map(|answer| ErrorCode(answer.error_code));
            match answer {
                Some(answer) if code.is_some_and(|code| code.is_ok()) && answer.offset >= 0 => {
                    self.attempts.succeeded(want.claim);
                    let position = Position::new(answer.offset, answer.leader_epoch);
                    self.actions.push_back(Action::Found { claim: want.claim, position });
                }
                Some(_) if code.is_some_and(|code| code.is_ok()) && matches!(want.start, Start::At(_)) => {
                    self.attempts.succeeded(want.claim);
                    self.actions.push_back(Action::NothingSince { claim: want.claim });
                }
                _ => {
                    self.attempts.failed(want.claim, now);
                    if let Some(code) = code
                        && !code.is_ok()
                        && !code.is_retriable()
                    {
                        let context = format!("looking up an offset of {}-{}", want.topic, want.partition);
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

impl Resetter {
    /// The next action that is decided already. Nothing new is decided, by what may be out of date.
    pub(crate) fn decided(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }
}

impl Machine for Resetter {
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

fn request(asked: &[Want]) -> ListOffsetsRequest {
    let mut topics: BTreeMap<Str, Vec<ListOffsetsPartition>> = BTreeMap::new();
    for want in asked {
        topics.entry(want.topic.clone()).or_default().push(ListOffsetsPartition {
            partition_index: want.partition,
            current_leader_epoch: want.leader.map_or(-1, |(_, epoch)| epoch),
            timestamp: want.start.timestamp(),
            ..ListOffsetsPartition::default()
        });
    }
    ListOffsetsRequest {
        replica_id: -1,
        topics: topics.into_iter().map(|(name, partitions)| ListOffsetsTopic { name, partitions }).collect(),
        ..ListOffsetsRequest::default()
    }
}

#[cfg(test)]
mod tests;
