//! Loads the group's committed offsets, where its partitions start.

pub(crate) mod layout;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Instant;

use krafka_protocol::api::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics, OffsetFetchResponse,
};
use krafka_protocol::machine::Machine;
use krafka_protocol::{ErrorCode, Str};

use super::attempts::{self, Attempts};
use super::fetcher::Complaint;
use super::record::OffsetAndMetadata;
use super::subscription::{Claim, Position};
use crate::backoff::Backoff;
use crate::rng::Rng;
use crate::{KrafkaError, TopicPartition};

/// A partition whose committed offset is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Want {
    pub(crate) claim: Claim,
    pub(crate) topic: Str,
    pub(crate) partition: i32,
}

impl attempts::Want for Want {
    fn claim(&self) -> Claim {
        self.claim
    }
}

#[derive(Debug)]
pub(crate) enum Input {
    /// All partitions that wait for their committed offset.
    Wanted(Vec<Want>),
    Answered {
        asked: Vec<Want>,
        answer: Result<OffsetFetchResponse, KrafkaError>,
    },
}

#[derive(Debug, PartialEq)]
pub(crate) enum Action {
    Ask {
        request: OffsetFetchRequest,
        asked: Vec<Want>,
    },
    Found {
        claim: Claim,
        position: Position,
    },
    /// The group has committed nothing there.
    Nothing {
        claim: Claim,
    },
    Refresh {
        topics: Vec<Str>,
    },
    Report(Complaint),
}

/// See the file's head.
#[derive(Debug)]
pub(crate) struct Loader {
    group: Str,
    attempts: Attempts<Want>,
    actions: VecDeque<Action>,
    now: Option<Instant>,
}

impl Loader {
    pub(crate) fn new(group: Str, backoff: Backoff, rng: Rng) -> Self {
        let attempts = Attempts::new(backoff, rng);
        Self { group, attempts, actions: VecDeque::new(), now: None }
    }

    fn ask(&mut self, now: Instant) {
        let asked = self.attempts.take_due(now);
        if asked.is_empty() {
            return;
        }
        let partitions = asked.iter().map(|want| (want.topic.clone(), want.partition));
        let request = request(&self.group, partitions);
        self.actions.push_back(Action::Ask { request, asked });
    }

    fn answered(&mut self, asked: Vec<Want>, answer: Result<OffsetFetchResponse, KrafkaError>, now: Instant) {
        let mut answers = match answer.and_then(|response| read(&self.group, response)) {
            Ok(answers) => answers,
            Err(error) => {
                if !error.is_retriable() {
                    self.actions.push_back(Action::Report(Complaint(error)));
                }
                BTreeMap::new()
            }
        };
        let mut stale = BTreeSet::new();
        for want in asked {
            match answers.remove(&(want.topic.clone(), want.partition)) {
                Some(Ok(Some(found))) => {
                    self.attempts.succeeded(want.claim);
                    let position = Position::new(found.offset, found.leader_epoch.unwrap_or(-1));
                    self.actions.push_back(Action::Found { claim: want.claim, position });
                }
                Some(Ok(None)) => {
                    self.attempts.succeeded(want.claim);
                    self.actions.push_back(Action::Nothing { claim: want.claim });
                }
                Some(Err(code)) => {
                    self.attempts.failed(want.claim, now);
                    if !code.is_retriable() {
                        let context = format!("loading the committed offset of {}-{}", want.topic, want.partition);
                        self.actions.push_back(Action::Report(Complaint(KrafkaError::broker(code, context))));
                    }
                    stale.insert(want.topic);
                }
                // An offset that the answer leaves out is not "none": taking it so would skip or repeat records.
                None => self.attempts.failed(want.claim, now),
            }
        }
        if !stale.is_empty() {
            self.actions.push_back(Action::Refresh { topics: stale.into_iter().collect() });
        }
    }
}

impl Loader {
    /// The next action that is decided already. Nothing new is decided, by what may be out of date.
    pub(crate) fn decided(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }
}

impl Machine for Loader {
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

/// Asks for the committed offsets of these partitions.
///
/// Only stable ones (KIP-447): an offset that an open transaction is about to replace is waited for.
pub(crate) fn request(group: &Str, partitions: impl Iterator<Item = (Str, i32)>) -> OffsetFetchRequest {
    let mut topics: BTreeMap<Str, Vec<i32>> = BTreeMap::new();
    for (topic, partition) in partitions {
        topics.entry(topic).or_default().push(partition);
    }
    let topics = topics.into_iter().map(|(name, partition_indexes)| OffsetFetchRequestTopics {
        name,
        partition_indexes,
        ..OffsetFetchRequestTopics::default()
    });
    OffsetFetchRequest {
        groups: vec![OffsetFetchRequestGroup {
            group_id: group.clone(),
            topics: Some(topics.collect()),
            ..OffsetFetchRequestGroup::default()
        }],
        require_stable: true,
        ..OffsetFetchRequest::default()
    }
}

/// What one partition has committed, or why it is not known.
pub(crate) type Answer = Result<Option<OffsetAndMetadata>, ErrorCode>;

/// Reads the answer about one group: per partition, or the error of the whole.
pub(crate) fn read(group: &Str, response: OffsetFetchResponse) -> Result<BTreeMap<(Str, i32), Answer>, KrafkaError> {
    let mut found = BTreeMap::new();
    for answer in response.groups.into_iter().filter(|answer| answer.group_id == *group) {
        let code = ErrorCode(answer.error_code);
        if !code.is_ok() {
            return Err(KrafkaError::broker(code, format!("loading the committed offsets of group '{group}'")));
        }
        for topic in answer.topics {
            for partition in topic.partitions {
                let code = ErrorCode(partition.error_code);
                let answer = if !code.is_ok() {
                    Err(code)
                } else if partition.committed_offset < 0 {
                    Ok(None)
                } else {
                    let epoch = partition.committed_leader_epoch;
                    let metadata = partition.metadata.map(|text| text.to_string()).unwrap_or_default();
                    let mut offset = OffsetAndMetadata::new(partition.committed_offset).metadata(metadata);
                    offset.leader_epoch = (epoch >= 0).then_some(epoch);
                    Ok(Some(offset))
                };
                found.insert((topic.name.clone(), partition.partition_index), answer);
            }
        }
    }
    Ok(found)
}

/// Reads the answer about these partitions: all of it, or the first error.
pub(crate) fn all(
    group: &Str,
    partitions: &[TopicPartition],
    response: OffsetFetchResponse,
) -> Result<BTreeMap<TopicPartition, OffsetAndMetadata>, KrafkaError> {
    let mut answers = read(group, response)?;
    let mut found = BTreeMap::new();
    for name in partitions {
        let answer = answers.remove(&(Str::from(name.topic.clone()), name.partition));
        // An answer that leaves a partition out is not an answer; asking again may bring one.
        let answer = answer.unwrap_or(Err(ErrorCode::UNSTABLE_OFFSET_COMMIT));
        let answer =
            answer.map_err(|code| KrafkaError::broker(code, format!("loading the committed offset of {name}")))?;
        if let Some(offset) = answer {
            found.insert(name.clone(), offset);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
