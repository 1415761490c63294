//! One transactional id: its producer, and its transaction as a state machine.
//!
//! ```text
//!     InitProducerId                    EndTxn(commit)
//!   ┌───────────────▶ Empty           ┌────────────────▶ PrepareCommit ──all marked──▶ CompleteCommit
//!   │                   │ add         │                                                   │ add
//!   │                   ▼             │ EndTxn(abort), timeout, InitProducerId            ▼
//!   └── any Complete  Ongoing ────────┴────────────────▶ PrepareAbort ──all marked──▶ CompleteAbort
//! ```
//!
//! These are the rules of Kafka's `TransactionCoordinator` and `TransactionMetadata`, as 4.4 has them. While a
//! transaction is about to end, every request of its producer is told to come again (CONCURRENT_TRANSACTIONS).
//!
//! What is different from Kafka on purpose: a change of state is in the log at once, so that it is never pending but
//! while markers are missing; the state PrepareEpochFence, which Kafka is in for as long as it writes that, is not
//! seen, nor is Dead, in which Kafka is while it writes that it has forgotten an id. Versions before 4.0 check the
//! producer's id and epoch before they say CONCURRENT_TRANSACTIONS; here all of them say it first, as 4.4.
//! Of two-phase commit (KIP-939) there is what Kafka up to 4.4 has: transactions that no timeout aborts.

use std::collections::BTreeSet;

use krafka_protocol::{ErrorCode, Str};

use crate::producer_ids::IdAndEpoch;

/// The last epoch that a producer gets. The one above is kept to fence it with.
const LAST_USABLE_EPOCH: i16 = i16::MAX - 1;

/// The timeout that stands for none: the transaction is part of a two-phase commit.
pub(super) const NO_TIMEOUT_MS: i32 = i32::MAX;

/// How a transactional id stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TransactionState {
    /// Its producer has begun no transaction yet.
    Empty,
    /// A transaction is open.
    Ongoing,
    /// It was decided to commit, and not all partitions are told.
    PrepareCommit,
    /// It was decided to abort, and not all partitions are told.
    PrepareAbort,
    /// The last transaction is committed.
    CompleteCommit,
    /// The last transaction is aborted.
    CompleteAbort,
}

/// A version of the transactions, as the difference that it makes: what ends one does to the producer's epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// The epoch stays: `transaction.version` 0 and 1, which are the same but for how the coordinator writes its log.
    Plain,
    /// Each transaction has an epoch of its own: `transaction.version` 2 (KIP-890).
    EpochPerTransaction,
}

/// What InitProducerId leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Initialised {
    /// The producer may begin.
    Ready(IdAndEpoch),
    /// A transaction is open, which must be aborted first.
    Open,
}

/// What EndTxn leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The end is decided: the partitions must be told. The producer goes on with this identity.
    Decided(IdAndEpoch),
    /// It is the same end as before: the producer has not seen the answer.
    Repeated(IdAndEpoch),
}

/// A transactional id with its transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Transaction {
    producer: IdAndEpoch,
    /// The epoch that the producer had before, if it may still ask with it; or -1.
    last_epoch: i16,
    /// The producer id before the last change of state: another one right after the epochs were used up.
    previous_id: i64,
    /// The producer id to go on with when the epochs are used up, or -1.
    next_id: i64,
    timeout_ms: i32,
    state: TransactionState,
    /// The partitions of the transaction; while it ends, those that are not told.
    partitions: BTreeSet<(Str, i32)>,
    /// When the transaction began, or -1.
    start_ms: i64,
    update_ms: i64,
    /// How the transaction was ended, or its last partition added.
    protocol: Protocol,
    /// Whether this state is not in the coordinator's log yet.
    is_unwritten: bool,
}

impl Transaction {
    /// A transactional id that is asked for the first time.
    pub(crate) fn new(producer_id: i64, timeout_ms: i32, now_ms: i64) -> Self {
        Self {
            producer: IdAndEpoch { producer_id, producer_epoch: -1 },
            last_epoch: -1,
            previous_id: -1,
            next_id: -1,
            timeout_ms,
            state: TransactionState::Empty,
            partitions: BTreeSet::new(),
            start_ms: -1,
            update_ms: now_ms,
            protocol: Protocol::Plain,
            is_unwritten: false,
        }
    }

    /// Raises the epoch for a producer that begins, or goes on after a failure with what it `expected` to have.
    ///
    /// # Errors
    ///
    /// `CONCURRENT_TRANSACTIONS` while a transaction ends, `PRODUCER_FENCED` if what the producer expects has since
    /// been given to another. Kafka fails itself when it is asked for an epoch before the last one of an id.
    pub(crate) fn initialise(
        &mut self,
        expected: Option<IdAndEpoch>,
        timeout_ms: i32,
        now_ms: i64,
        fresh_id: impl FnOnce() -> i64,
    ) -> Result<Initialised, ErrorCode> {
        if self.state.is_preparing() {
            return Err(ErrorCode::CONCURRENT_TRANSACTIONS);
        }
        let IdAndEpoch { producer_id, producer_epoch } = self.producer;
        let is_known = |expected: IdAndEpoch| {
            let repeats_a_rotation = expected.producer_id == self.previous_id && is_used_up(expected.producer_epoch);
            producer_epoch == -1 || expected.producer_id == producer_id || repeats_a_rotation
        };
        if !expected.is_none_or(is_known) {
            return Err(ErrorCode::PRODUCER_FENCED);
        }
        if self.state == TransactionState::Ongoing {
            return Ok(Initialised::Open);
        }
        let expected_epoch = expected.map(|expected| expected.producer_epoch);
        let (next, last_epoch) = if is_used_up(producer_epoch) {
            if expected_epoch.is_some_and(|epoch| epoch != producer_epoch) {
                return Err(ErrorCode::UNKNOWN_SERVER_ERROR);
            }
            let rotated = IdAndEpoch { producer_id: fresh_id(), producer_epoch: 0 };
            (rotated, expected_epoch.map_or(-1, |_| producer_epoch))
        } else {
            let raised = IdAndEpoch { producer_id, producer_epoch: producer_epoch + 1 };
            match expected_epoch {
                None => (raised, -1),
                Some(epoch) if producer_epoch == -1 || epoch == producer_epoch => (raised, producer_epoch),
                // It did not see the answer to its last request.
                Some(epoch) if epoch == self.last_epoch => (self.producer, self.last_epoch),
                Some(_) => return Err(ErrorCode::PRODUCER_FENCED),
            }
        };
        self.previous_id = producer_id;
        self.producer = next;
        self.last_epoch = last_epoch;
        self.timeout_ms = timeout_ms;
        self.partitions.clear();
        self.start_ms = -1;
        self.enter(TransactionState::Empty, now_ms);
        Ok(Initialised::Ready(next))
    }

    /// Remembers when the last transaction began though none has begun since, as Kafka did before 4.1 until another
    /// node coordinated the id: it is not in the log.
    pub(crate) fn keep_start(&mut self, start_ms: i64) {
        self.start_ms = start_ms;
    }

    /// Adds partitions to the transaction, which begins with the first of them.
    ///
    /// # Errors
    ///
    /// As [`Transaction::check`].
    pub(crate) fn add(
        &mut self,
        producer: IdAndEpoch,
        partitions: BTreeSet<(Str, i32)>,
        protocol: Protocol,
        now_ms: i64,
    ) -> Result<(), ErrorCode> {
        if self.state.is_preparing() {
            return Err(ErrorCode::CONCURRENT_TRANSACTIONS);
        }
        self.check(producer)?;
        if self.state == TransactionState::Ongoing {
            if partitions.is_subset(&self.partitions) {
                return Ok(());
            }
        } else {
            self.start_ms = now_ms;
        }
        self.partitions.extend(partitions);
        self.previous_id = self.producer.producer_id;
        self.protocol = protocol;
        self.enter(TransactionState::Ongoing, now_ms);
        Ok(())
    }

    /// Whether a partition is in the transaction.
    ///
    /// # Errors
    ///
    /// As [`Transaction::check`], `CONCURRENT_TRANSACTIONS` while the transaction ends, and `TRANSACTION_ABORTABLE` if
    /// it is not.
    pub(crate) fn verify(&self, producer: IdAndEpoch, partition: &(Str, i32)) -> Result<(), ErrorCode> {
        self.check(producer)?;
        if self.state.is_preparing() {
            return Err(ErrorCode::CONCURRENT_TRANSACTIONS);
        }
        if self.partitions.contains(partition) { Ok(()) } else { Err(ErrorCode::TRANSACTION_ABORTABLE) }
    }

    /// Decides how the transaction ends.
    ///
    /// # Errors
    ///
    /// As [`Transaction::check`], `CONCURRENT_TRANSACTIONS` while it ends already, and `INVALID_TXN_STATE` if there is
    /// nothing to end, or it has ended in the other way.
    pub(crate) fn end(
        &mut self,
        producer: IdAndEpoch,
        commit: bool,
        protocol: Protocol,
        now_ms: i64,
        fresh_id: impl FnOnce() -> i64,
    ) -> Result<Ended, ErrorCode> {
        let done = match self.state {
            TransactionState::CompleteCommit => Some(true),
            TransactionState::CompleteAbort => Some(false),
            _ => None,
        };
        if protocol == Protocol::Plain {
            self.check(producer)?;
            return match self.state {
                TransactionState::Ongoing => Ok(self.prepare(commit, protocol, now_ms, fresh_id)),
                TransactionState::PrepareCommit | TransactionState::PrepareAbort => {
                    Err(ErrorCode::CONCURRENT_TRANSACTIONS)
                }
                _ if done == Some(commit) => Ok(Ended::Repeated(self.producer)),
                _ => Err(ErrorCode::INVALID_TXN_STATE),
            };
        }

        if self.state.is_preparing() {
            return Err(ErrorCode::CONCURRENT_TRANSACTIONS);
        }
        let IdAndEpoch { producer_id, producer_epoch } = self.producer;
        // With an epoch for each transaction, who repeats an end is known by the epoch that it had before.
        let repeats_a_rotation = self.previous_id == producer.producer_id
            && producer.producer_epoch == LAST_USABLE_EPOCH
            && producer_epoch == 0;
        let repeats = repeats_a_rotation || i32::from(producer_epoch) == i32::from(producer.producer_epoch) + 1;
        if producer_id != producer.producer_id && !repeats_a_rotation {
            return Err(ErrorCode::INVALID_PRODUCER_ID_MAPPING);
        }
        if producer_epoch != producer.producer_epoch && !(repeats && done.is_some()) {
            return Err(ErrorCode::PRODUCER_FENCED);
        }
        match done {
            None if self.state == TransactionState::Ongoing => Ok(self.prepare(commit, protocol, now_ms, fresh_id)),
            Some(done) if repeats => {
                if done == commit {
                    Ok(Ended::Repeated(self.producer))
                } else {
                    Err(ErrorCode::INVALID_TXN_STATE)
                }
            }
            // A producer that does not know if anything of its transaction came through aborts to get a new epoch.
            _ if !commit => {
                self.start_ms = now_ms;
                Ok(self.prepare(false, protocol, now_ms, fresh_id))
            }
            _ => Err(ErrorCode::INVALID_TXN_STATE),
        }
    }

    /// Decides to abort the open transaction, whose producer is replaced or was too slow, and raises the epoch so that
    /// it cannot go on.
    pub(crate) fn fence(&mut self, protocol: Protocol, now_ms: i64, fresh_id: impl FnOnce() -> i64) {
        assert_eq!(self.state, TransactionState::Ongoing, "only an open transaction is aborted");
        if protocol == Protocol::Plain {
            self.producer.producer_epoch = self.producer.producer_epoch.saturating_add(1);
            self.last_epoch = -1;
        }
        self.prepare(false, protocol, now_ms, fresh_id);
    }

    /// Takes note that a partition was told of the end, or is gone.
    pub(crate) fn told(&mut self, partition: &(Str, i32)) {
        self.partitions.remove(partition);
    }

    /// Ends the transaction, when all partitions are told.
    pub(crate) fn complete(&mut self, now_ms: i64) {
        assert!(self.partitions.is_empty(), "all partitions are told");
        let completed = match self.state {
            TransactionState::PrepareCommit => TransactionState::CompleteCommit,
            TransactionState::PrepareAbort => TransactionState::CompleteAbort,
            state => panic!("a transaction in {state:?} is not about to end"),
        };
        self.previous_id = self.producer.producer_id;
        self.producer = self.successor();
        self.next_id = -1;
        self.enter(completed, now_ms);
    }

    /// Whether the coordinator should abort the transaction: it is open for longer than its producer allowed.
    pub(crate) fn is_overdue(&self, now_ms: i64) -> bool {
        self.state == TransactionState::Ongoing
            && self.timeout_ms != NO_TIMEOUT_MS
            && self.start_ms.saturating_add(i64::from(self.timeout_ms)) < now_ms
    }

    /// Whether nothing happened to the id for `expiration_ms` before `sweep_ms`, and nothing is under way.
    pub(crate) fn is_expired(&self, sweep_ms: i64, expiration_ms: i64) -> bool {
        let is_idle = self.state != TransactionState::Ongoing && !self.state.is_preparing();
        is_idle && self.update_ms <= sweep_ms.saturating_sub(expiration_ms)
    }

    /// The producer id and epoch that the transactional id stands for now.
    pub(crate) fn producer(&self) -> IdAndEpoch {
        self.producer
    }

    /// How it stands.
    pub(crate) fn state(&self) -> TransactionState {
        self.state
    }

    /// How the transaction was ended.
    pub(crate) fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// The partitions in the transaction; while it ends, those that are not told.
    pub(crate) fn partitions(&self) -> &BTreeSet<(Str, i32)> {
        &self.partitions
    }

    /// After how many milliseconds the coordinator aborts a transaction.
    pub(crate) fn timeout_ms(&self) -> i32 {
        self.timeout_ms
    }

    /// When the transaction began, or -1.
    pub(crate) fn start_ms(&self) -> i64 {
        self.start_ms
    }

    /// Whether a producer is who the transactional id stands for.
    ///
    /// # Errors
    ///
    /// `INVALID_PRODUCER_ID_MAPPING` for another id, `PRODUCER_FENCED` for another epoch.
    fn check(&self, producer: IdAndEpoch) -> Result<(), ErrorCode> {
        if producer.producer_id != self.producer.producer_id {
            Err(ErrorCode::INVALID_PRODUCER_ID_MAPPING)
        } else if producer.producer_epoch != self.producer.producer_epoch {
            Err(ErrorCode::PRODUCER_FENCED)
        } else {
            Ok(())
        }
    }

    fn prepare(&mut self, commit: bool, protocol: Protocol, now_ms: i64, fresh_id: impl FnOnce() -> i64) -> Ended {
        self.previous_id = self.producer.producer_id;
        if protocol == Protocol::EpochPerTransaction {
            let epoch = self.producer.producer_epoch;
            self.next_id = if is_used_up(epoch) { fresh_id() } else { -1 };
            self.last_epoch = epoch;
            self.producer.producer_epoch = epoch.saturating_add(1);
        }
        self.protocol = protocol;
        self.enter(if commit { TransactionState::PrepareCommit } else { TransactionState::PrepareAbort }, now_ms);
        Ended::Decided(self.successor())
    }

    /// Who the producer is when the transaction has ended.
    fn successor(&self) -> IdAndEpoch {
        match self.next_id {
            -1 => self.producer,
            producer_id => IdAndEpoch { producer_id, producer_epoch: 0 },
        }
    }

    fn enter(&mut self, state: TransactionState, now_ms: i64) {
        self.state = state;
        self.update_ms = now_ms;
        self.is_unwritten = true;
    }
}

impl TransactionState {
    /// All states.
    pub const ALL: [Self; 6] = [
        Self::Empty,
        Self::Ongoing,
        Self::PrepareCommit,
        Self::PrepareAbort,
        Self::CompleteCommit,
        Self::CompleteAbort,
    ];

    /// Kafka's name of the state.
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::Ongoing => "Ongoing",
            Self::PrepareCommit => "PrepareCommit",
            Self::PrepareAbort => "PrepareAbort",
            Self::CompleteCommit => "CompleteCommit",
            Self::CompleteAbort => "CompleteAbort",
        }
    }

    /// Whether it is decided how the transaction ends, and not all partitions are told.
    pub fn is_preparing(self) -> bool {
        matches!(self, Self::PrepareCommit | Self::PrepareAbort)
    }
}

impl Protocol {
    /// The protocol of a level of the feature `transaction.version`.
    pub(crate) fn of_level(level: i16) -> Self {
        if level >= 2 { Self::EpochPerTransaction } else { Self::Plain }
    }

    /// The version of a transaction, as markers carry it.
    pub(crate) fn level(self) -> i16 {
        match self {
            Self::Plain => 0,
            Self::EpochPerTransaction => 2,
        }
    }
}

fn is_used_up(epoch: i16) -> bool {
    epoch >= LAST_USABLE_EPOCH
}

mod record;
#[cfg(test)]
mod tests;
