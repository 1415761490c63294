//! Commits offsets, one request at a time, so that a commit that is retried never lands after a newer one.
//!
//! ```text
//!   queued ──first in line──▶ in flight ──ok──▶ done
//!                                 │  └──retriable──▶ waiting ──time──▶ in flight
//!                                 └──refused, deadline──▶ failed
//! ```
//!
//! A commit speaks for the member and generation that it was made in, also when it is retried: after a rebalance the
//! broker refuses it, and must, since the partitions may be another member's.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Instant;

use krafka_protocol::api::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic, OffsetCommitResponse,
};
use krafka_protocol::machine::Machine;
use krafka_protocol::{ErrorCode, Str};

use super::group::Identity;
use super::record::OffsetAndMetadata;
use crate::backoff::Backoff;
use crate::rng::Rng;
use crate::{KrafkaError, TopicPartition};

/// What brokers say of partitions that are not there.
const MISSING: [ErrorCode; 2] = [ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, ErrorCode::UNKNOWN_TOPIC_ID];

/// Offsets by partition.
pub(crate) type Offsets = BTreeMap<TopicPartition, OffsetAndMetadata>;

/// Who waits for a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(pub(crate) u64);

#[derive(Debug)]
pub(crate) enum Input {
    /// Commit these, for this member. `Ticket` is `None` for automatic commits.
    Requested {
        ticket: Option<Ticket>,
        offsets: Offsets,
        identity: Identity,
        deadline: Instant,
        /// Whether partitions that are not there are waited for: those that the user names are meant.
        awaits_partitions: bool,
    },
    Answered(Result<OffsetCommitResponse, KrafkaError>),
}

#[derive(Debug)]
pub(crate) enum Action {
    Send(OffsetCommitRequest),
    Done {
        ticket: Option<Ticket>,
        result: Result<(), KrafkaError>,
    },
    /// The coordinator no longer knows this member, or its generation. (It may be one that the consumer has left
    /// behind.)
    Ousted {
        code: ErrorCode,
        identity: Identity,
    },
    Refresh {
        topics: Vec<Str>,
    },
}

#[derive(Debug)]
struct Job {
    ticket: Option<Ticket>,
    offsets: Offsets,
    identity: Identity,
    deadline: Instant,
    awaits_partitions: bool,
    /// Whoever waited has been answered: the job stays only until its request has ended.
    answered: bool,
    failures: u32,
    not_before: Option<Instant>,
    last_error: Option<KrafkaError>,
}

/// See the file's head.
#[derive(Debug)]
pub(crate) struct Committer {
    group: Str,
    backoff: Backoff,
    rng: Rng,
    /// The first is in flight, or waits to be sent again.
    jobs: VecDeque<Job>,
    in_flight: bool,
    actions: VecDeque<Action>,
    now: Option<Instant>,
}

impl Committer {
    pub(crate) fn new(group: Str, backoff: Backoff, rng: Rng) -> Self {
        let (jobs, actions) = (VecDeque::new(), VecDeque::new());
        Self { group, backoff, rng, jobs, in_flight: false, actions, now: None }
    }

    /// Whether nothing is queued or in flight.
    pub(crate) fn is_idle(&self) -> bool {
        self.jobs.is_empty()
    }

    fn answered(&mut self, answer: Result<OffsetCommitResponse, KrafkaError>, now: Instant) {
        self.in_flight = false;
        let Some(job) = self.jobs.front_mut() else { return };
        let failure = match answer {
            Ok(response) => first_error(&response, job),
            Err(error) => Some((None, error)),
        };
        let Some((code, error)) = failure else { return self.finish(Ok(())) };
        if let Some(
            code @ (ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::ILLEGAL_GENERATION | ErrorCode::FENCED_INSTANCE_ID),
        ) = code
        {
            self.actions.push_back(Action::Ousted { code, identity: job.identity.clone() });
        }
        let is_missing = code.is_some_and(|code| MISSING.contains(&code));
        if is_missing {
            let topics: BTreeSet<_> = job.offsets.keys().map(|name| Str::from(name.topic.clone())).collect();
            self.actions.push_back(Action::Refresh { topics: topics.into_iter().collect() });
        }
        // Topics come and go, and a group is between generations for a moment: both may pass before the deadline does.
        // But nothing waits for what was committed of a partition that nobody may ever see again, least of all a
        // rebalance; the others were committed with it.
        let passes = match code {
            Some(ErrorCode::REBALANCE_IN_PROGRESS) => true,
            _ if is_missing => job.awaits_partitions,
            _ => error.is_retriable(),
        };
        if job.answered || !passes {
            return self.finish(Err(error));
        }
        job.not_before = Some(now + self.backoff.delay(job.failures, &mut self.rng));
        job.failures = job.failures.saturating_add(1);
        job.last_error = Some(error);
    }

    /// The first job has ended.
    fn finish(&mut self, result: Result<(), KrafkaError>) {
        if let Some(job) = self.jobs.pop_front()
            && !job.answered
        {
            self.actions.push_back(Action::Done { ticket: job.ticket, result });
        }
    }

    /// Answers those whose time is over, wherever in the queue they are.
    fn expire(&mut self, now: Instant) {
        let in_flight = self.in_flight;
        for (index, job) in self.jobs.iter_mut().enumerate() {
            if !job.answered && job.deadline <= now {
                job.answered = true;
                let possibly = if index == 0 && in_flight { "; the offsets may have been committed" } else { "" };
                let last = job.last_error.take().map_or_else(String::new, |error| format!(" (last: {error})"));
                let error = KrafkaError::timeout(format!(
                    "committing offsets of group '{}' took too long{last}{possibly}",
                    self.group
                ));
                self.actions.push_back(Action::Done { ticket: job.ticket, result: Err(error) });
            }
        }
        let mut index = 0;
        self.jobs.retain(|job| {
            index += 1;
            !job.answered || (index == 1 && in_flight)
        });
    }
}

impl Machine for Committer {
    type Input = Input;
    type Action = Action;

    fn handle(&mut self, input: Input, now: Instant) {
        self.now = Some(now);
        match input {
            Input::Requested { ticket, offsets, identity, deadline, awaits_partitions } => self.jobs.push_back(Job {
                ticket,
                offsets,
                identity,
                deadline,
                awaits_partitions,
                answered: false,
                failures: 0,
                not_before: None,
                last_error: None,
            }),
            Input::Answered(answer) => self.answered(answer, now),
        }
    }

    fn poll(&mut self, now: Instant) -> Option<Action> {
        self.now = Some(now);
        self.expire(now);
        if self.actions.is_empty()
            && !self.in_flight
            && let Some(job) = self.jobs.front()
            && job.not_before.is_none_or(|time| time <= now)
        {
            if job.offsets.is_empty() {
                self.finish(Ok(()));
            } else {
                self.in_flight = true;
                self.actions.push_back(Action::Send(request(&self.group, job)));
            }
        }
        self.actions.pop_front()
    }

    fn deadline(&self) -> Option<Instant> {
        let retry = self.jobs.front().filter(|_| !self.in_flight).and_then(|job| job.not_before);
        let expiry = self.jobs.iter().filter(|job| !job.answered).map(|job| job.deadline).min();
        [retry, expiry].into_iter().flatten().filter(|&time| self.now.is_none_or(|now| time > now)).min()
    }
}

fn request(group: &Str, job: &Job) -> OffsetCommitRequest {
    let mut topics: Vec<OffsetCommitRequestTopic> = Vec::new();
    for (name, offset) in &job.offsets {
        let partition = OffsetCommitRequestPartition {
            partition_index: name.partition,
            committed_offset: offset.offset,
            committed_leader_epoch: offset.leader_epoch.unwrap_or(-1),
            committed_metadata: Some(Str::from(offset.metadata.clone())),
            ..OffsetCommitRequestPartition::default()
        };
        match topics.last_mut() {
            Some(last) if *last.name == *name.topic => last.partitions.push(partition),
            _ => topics.push(OffsetCommitRequestTopic {
                name: Str::from(name.topic.clone()),
                partitions: vec![partition],
                ..OffsetCommitRequestTopic::default()
            }),
        }
    }
    OffsetCommitRequest {
        group_id: group.clone(),
        generation_id_or_member_epoch: job.identity.generation,
        member_id: job.identity.member_id.clone(),
        group_instance_id: job.identity.group_instance_id.clone(),
        topics,
        ..OffsetCommitRequest::default()
    }
}

/// The first partition's error, if any failed. One that time does not heal comes before one that it does.
fn first_error(response: &OffsetCommitResponse, job: &Job) -> Option<(Option<ErrorCode>, KrafkaError)> {
    let failed = response.topics.iter().flat_map(|topic| {
        topic
            .partitions
            .iter()
            .map(move |partition| (&topic.name, partition.partition_index, ErrorCode(partition.error_code)))
    });
    let failed = failed.filter(|(.., code)| !code.is_ok());
    let (topic, partition, code) = failed.min_by_key(|(.., code)| code.is_retriable())?;
    let context = format!("committing {topic}-{partition} of {} partitions", job.offsets.len());
    Some((Some(code), KrafkaError::broker(code, context)))
}

#[cfg(test)]
mod tests;
