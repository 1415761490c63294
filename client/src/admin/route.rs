//! One admin call: which broker is asked, what is asked again, and when it is given up.
//!
//! ```text
//!   asking ──answers──▶ done, per item ─── all done ──▶ finished
//!     ▲  │
//!     │  └── not the controller · throttled · connection lost ──▶ waiting, with backoff
//!     └───────────────────────────────────────────────────────────────┘
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use krafka_protocol::machine::Machine;
use krafka_protocol::{ErrorCode, Str};

use crate::backoff::Backoff;
use crate::error::{KrafkaError, ProtocolErrorKind};
use crate::network::CallError;
use crate::rng::Rng;

/// Kafka's `retry.backoff.ms` and `retry.backoff.max.ms`.
const RETRY: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));

/// Who can answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Any broker; the least loaded.
    Any,
    /// The controller. In KRaft any broker forwards to it, but one that is told to be it is the better guess.
    Controller,
}

/// What a broker said of one item: a result, or a code with words.
pub(super) type ItemAnswer<T> = Result<T, (ErrorCode, Option<Str>)>;

/// What happened.
#[derive(Debug)]
pub(super) enum Input<T> {
    /// A broker answered. Items that it left out stay unanswered.
    Answered(Vec<(Str, ItemAnswer<T>)>),
    /// The request has no answer.
    Failed(CallError),
}

/// What to do.
#[derive(Debug)]
pub(super) enum Action<T> {
    /// Ask about these items. After a failure, learn first which brokers there are, and avoid the one that failed.
    Ask { items: Vec<Str>, is_retry: bool, time_left: Duration },
    /// Hand over what became of each item.
    Finish(BTreeMap<Str, Result<T, KrafkaError>>),
}

/// The machine of one call.
#[derive(Debug)]
pub(super) struct Route<T> {
    /// What is being done, for errors: "creating topic".
    what: &'static str,
    pending: BTreeMap<Str, Option<KrafkaError>>,
    done: BTreeMap<Str, Result<T, KrafkaError>>,
    deadline: Instant,
    timeout: Duration,
    attempts: u32,
    is_asking: bool,
    not_before: Option<Instant>,
    /// Whether a request without an answer may have done what it asked for.
    is_in_doubt: bool,
    is_finished: bool,
    rng: Rng,
    actions: VecDeque<Action<T>>,
}

impl<T> Route<T> {
    pub(super) fn new(what: &'static str, items: Vec<Str>, timeout: Duration, seed: u64, now: Instant) -> Self {
        Self {
            what,
            pending: items.into_iter().map(|item| (item, None)).collect(),
            done: BTreeMap::new(),
            deadline: now + timeout,
            timeout,
            attempts: 0,
            is_asking: false,
            not_before: None,
            is_in_doubt: false,
            is_finished: false,
            rng: Rng::stream(seed, what),
            actions: VecDeque::new(),
        }
    }

    fn answered(&mut self, answers: Vec<(Str, ItemAnswer<T>)>) {
        self.pending.values_mut().for_each(|last| *last = Some(left_out()));
        for (item, answer) in answers {
            if !self.pending.contains_key(&item) {
                continue;
            }
            let error = match answer {
                Ok(result) => {
                    self.pending.remove(&item);
                    self.done.insert(item, Ok(result));
                    continue;
                }
                Err((code, said)) => (code, self.explain(&item, code, said.as_deref())),
            };
            match error {
                (code, error) if is_worth_retrying(code) => {
                    self.pending.insert(item, Some(error));
                }
                (_, error) => {
                    self.pending.remove(&item);
                    self.done.insert(item, Err(error));
                }
            }
        }
    }

    #[cold]
    fn explain(&self, item: &Str, code: ErrorCode, said: Option<&str>) -> KrafkaError {
        if matches!(code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION | ErrorCode::UNKNOWN_TOPIC_ID) {
            return KrafkaError::UnknownTopic { topic: (&**item).into() };
        }
        let said = said.map(|said| format!(" ({said})")).unwrap_or_default();
        let doubt = match code {
            ErrorCode::TOPIC_ALREADY_EXISTS if self.is_in_doubt => {
                "; an earlier attempt of this call, whose answer was lost, may have created it"
            }
            _ => "",
        };
        KrafkaError::broker(code, format!("{} '{item}'{said}{doubt}", self.what))
    }

    fn failed(&mut self, error: &CallError) {
        self.is_in_doubt |= error.possibly_written();
        if error.is_retriable() {
            self.pending.values_mut().for_each(|last| *last = Some(error.error().clone()));
        } else {
            for (item, _) in std::mem::take(&mut self.pending) {
                self.done.insert(item, Err(error.error().clone()));
            }
        }
    }

    fn back_off(&mut self, now: Instant) {
        self.is_asking = false;
        self.not_before = Some(now + RETRY.delay(self.attempts, &mut self.rng));
        self.attempts = self.attempts.saturating_add(1);
    }

    fn go_on(&mut self, now: Instant) {
        if self.is_finished {
            return;
        }
        if now >= self.deadline {
            for (item, last) in std::mem::take(&mut self.pending) {
                let last = last.map_or_else(|| "no broker answered".to_owned(), |last| last.to_string());
                let what = format!("{} '{item}': not done within {:?}; last: {last}", self.what, self.timeout);
                self.done.insert(item, Err(KrafkaError::timeout(what)));
            }
        }
        if self.pending.is_empty() {
            self.is_finished = true;
            self.actions.push_back(Action::Finish(std::mem::take(&mut self.done)));
        } else if !self.is_asking && self.not_before.is_none_or(|at| at <= now) {
            self.is_asking = true;
            self.not_before = None;
            let items = self.pending.keys().cloned().collect();
            let time_left = self.deadline - now;
            self.actions.push_back(Action::Ask { items, is_retry: self.attempts > 0, time_left });
        }
    }
}

#[cold]
fn left_out() -> KrafkaError {
    KrafkaError::protocol(ProtocolErrorKind::UnexpectedResponse, "the broker's answer says nothing of it")
}

/// Whether another attempt, perhaps at another broker, may get another answer within a call's time.
fn is_worth_retrying(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::NOT_CONTROLLER
            | ErrorCode::THROTTLING_QUOTA_EXCEEDED
            | ErrorCode::BROKER_NOT_AVAILABLE
            | ErrorCode::LEADER_NOT_AVAILABLE
            | ErrorCode::NETWORK_EXCEPTION
    )
}

impl<T> Machine for Route<T> {
    type Input = Input<T>;
    type Action = Action<T>;

    fn handle(&mut self, input: Self::Input, now: Instant) {
        match input {
            Input::Answered(answers) => self.answered(answers),
            Input::Failed(error) => self.failed(&error),
        }
        self.back_off(now);
    }

    fn poll(&mut self, now: Instant) -> Option<Self::Action> {
        if self.actions.is_empty() {
            self.go_on(now);
        }
        self.actions.pop_front()
    }

    fn deadline(&self) -> Option<Instant> {
        if self.is_finished {
            return None;
        }
        Some(self.not_before.map_or(self.deadline, |at| at.min(self.deadline)))
    }
}

#[cfg(test)]
mod tests;
