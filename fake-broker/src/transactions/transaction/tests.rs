//! The state machine of one transactional id: every state with every request, for both protocols.

use super::*;

const NOW: i64 = 1_000;
const MINUTE: i32 = 60_000;

fn id(producer_id: i64, producer_epoch: i16) -> IdAndEpoch {
    IdAndEpoch { producer_id, producer_epoch }
}

fn partition() -> (Str, i32) {
    (Str::from("topic"), 0)
}

/// An id whose producer is 7 with epoch 4.
fn empty() -> Transaction {
    let mut transaction = Transaction::new(7, MINUTE, NOW);
    for _ in 0..5 {
        transaction.initialise(None, MINUTE, NOW, || 8).expect("nothing is open");
    }
    transaction
}

/// The same in a state, reached by the epoch-for-each-transaction protocol or the plain one. The producer that got it
/// there has epoch 4.
fn in_state(state: TransactionState, protocol: Protocol) -> Transaction {
    let mut transaction = empty();
    if state == TransactionState::Empty {
        return transaction;
    }
    transaction.add(id(7, 4), BTreeSet::from([partition()]), Protocol::Plain, NOW).expect("nothing is open");
    if state == TransactionState::Ongoing {
        return transaction;
    }
    let commit = matches!(state, TransactionState::PrepareCommit | TransactionState::CompleteCommit);
    transaction.end(id(7, 4), commit, protocol, NOW, || 8).expect("it is open");
    if !state.is_preparing() {
        transaction.told(&partition());
        transaction.complete(NOW);
    }
    assert_eq!(transaction.state(), state);
    transaction
}

fn end(state: TransactionState, protocol: Protocol, epoch: i16, commit: bool) -> Result<Ended, &'static str> {
    let mut transaction = in_state(state, protocol);
    transaction.end(id(7, epoch), commit, protocol, NOW, || 8).map_err(|code| code.name())
}

const FENCED: Result<Ended, &str> = Err("PRODUCER_FENCED");
const STATE: Result<Ended, &str> = Err("INVALID_TXN_STATE");
const BUSY: Result<Ended, &str> = Err("CONCURRENT_TRANSACTIONS");

/// FI-09. One epoch for all transactions: the epoch must be the producer's.
#[test]
fn end_under_the_plain_protocol() {
    use TransactionState::{CompleteAbort, CompleteCommit, Empty, Ongoing, PrepareAbort, PrepareCommit};
    let decided = Ok(Ended::Decided(id(7, 4)));
    let repeated = Ok(Ended::Repeated(id(7, 4)));

    for (state, commit, abort) in [
        (Empty, STATE, STATE),
        (Ongoing, decided, decided),
        (PrepareCommit, BUSY, BUSY),
        (PrepareAbort, BUSY, BUSY),
        (CompleteCommit, repeated, STATE),
        (CompleteAbort, STATE, repeated),
    ] {
        assert_eq!(end(state, Protocol::Plain, 4, true), commit, "{state:?}");
        assert_eq!(end(state, Protocol::Plain, 4, false), abort, "{state:?}");
        for epoch in [3, 5] {
            assert_eq!(end(state, Protocol::Plain, epoch, true), FENCED, "{state:?}");
        }
    }
}

/// FI-09. An epoch for each transaction: who has the epoch before repeats the last end, who has the next one ends a
/// transaction of which the coordinator knows nothing.
#[test]
fn end_under_the_protocol_that_bumps_epochs() {
    use TransactionState::{CompleteAbort, CompleteCommit, Empty, Ongoing, PrepareAbort, PrepareCommit};
    let next = |epoch| Ok(Ended::Decided(id(7, epoch)));
    let repeated = Ok(Ended::Repeated(id(7, 5)));

    for (state, epoch, commit, abort) in [
        (Empty, 3, FENCED, FENCED),
        (Empty, 4, STATE, next(5)),
        (Empty, 5, FENCED, FENCED),
        (Ongoing, 3, FENCED, FENCED),
        (Ongoing, 4, next(5), next(5)),
        (Ongoing, 5, FENCED, FENCED),
        (PrepareCommit, 4, BUSY, BUSY),
        (PrepareAbort, 3, BUSY, BUSY),
        (CompleteCommit, 3, FENCED, FENCED),
        (CompleteCommit, 4, repeated, STATE),
        (CompleteCommit, 5, STATE, next(6)),
        (CompleteCommit, 6, FENCED, FENCED),
        (CompleteAbort, 3, FENCED, FENCED),
        (CompleteAbort, 4, STATE, repeated),
        (CompleteAbort, 5, STATE, next(6)),
        (CompleteAbort, 6, FENCED, FENCED),
    ] {
        assert_eq!(end(state, Protocol::EpochPerTransaction, epoch, true), commit, "{state:?} {epoch}");
        assert_eq!(end(state, Protocol::EpochPerTransaction, epoch, false), abort, "{state:?} {epoch}");
    }
}

#[test]
fn partitions_are_added_in_every_state_but_near_the_end() {
    for state in TransactionState::ALL {
        let mut transaction = in_state(state, Protocol::Plain);
        let other = BTreeSet::from([(Str::from("topic"), 1)]);
        let added = transaction.add(id(7, 4), other, Protocol::Plain, NOW + 1);

        if state.is_preparing() {
            assert_eq!(added, Err(ErrorCode::CONCURRENT_TRANSACTIONS));
            continue;
        }
        assert_eq!((added, transaction.state()), (Ok(()), TransactionState::Ongoing));
        let began = if state == TransactionState::Ongoing { NOW } else { NOW + 1 };
        assert_eq!(transaction.start_ms(), began, "{state:?}");
        let foreign = transaction.add(id(9, 4), BTreeSet::new(), Protocol::Plain, NOW);
        assert_eq!(foreign, Err(ErrorCode::INVALID_PRODUCER_ID_MAPPING));
        assert_eq!(transaction.add(id(7, 3), BTreeSet::new(), Protocol::Plain, NOW), Err(ErrorCode::PRODUCER_FENCED));
    }
}

#[test]
fn only_partitions_of_the_open_transaction_are_verified() {
    for state in TransactionState::ALL {
        let expected = match state {
            TransactionState::Ongoing => Ok(()),
            state if state.is_preparing() => Err(ErrorCode::CONCURRENT_TRANSACTIONS),
            _ => Err(ErrorCode::TRANSACTION_ABORTABLE),
        };
        assert_eq!(in_state(state, Protocol::Plain).verify(id(7, 4), &partition()), expected, "{state:?}");
    }
}

#[test]
fn initialising_raises_the_epoch_and_knows_a_repetition() {
    let mut transaction = Transaction::new(7, MINUTE, NOW);
    let mut ask = |expected| transaction.initialise(expected, MINUTE, NOW, || 8);
    let ready = |epoch| Ok(Initialised::Ready(id(7, epoch)));

    assert_eq!(ask(None), ready(0));
    assert_eq!(ask(None), ready(1));
    assert_eq!(ask(Some(id(7, 1))), ready(2));
    assert_eq!(ask(Some(id(7, 1))), ready(2), "repeated");
    assert_eq!(ask(None), ready(3));
    assert_eq!(ask(Some(id(7, 2))), Err(ErrorCode::PRODUCER_FENCED));
    assert_eq!(ask(Some(id(9, 3))), Err(ErrorCode::PRODUCER_FENCED));
}

#[test]
fn initialising_waits_for_what_is_open() {
    for state in TransactionState::ALL {
        let answer = in_state(state, Protocol::Plain).initialise(None, MINUTE, NOW, || 8);
        let expected = match state {
            TransactionState::Ongoing => Ok(Initialised::Open),
            state if state.is_preparing() => Err(ErrorCode::CONCURRENT_TRANSACTIONS),
            _ => Ok(Initialised::Ready(id(7, 5))),
        };
        assert_eq!(answer, expected, "{state:?}");
    }
}

/// The producer that was too slow is fenced in both protocols; under the newer it may ask for the next epoch itself.
#[test]
fn fenced_producer_may_go_on_only_under_the_newer_protocol() {
    for (protocol, initialised) in [
        (Protocol::Plain, Err(ErrorCode::PRODUCER_FENCED)),
        (Protocol::EpochPerTransaction, Ok(Initialised::Ready(id(7, 5)))),
    ] {
        let mut transaction = in_state(TransactionState::Ongoing, protocol);
        transaction.fence(protocol, NOW, || 8);
        assert_eq!((transaction.state(), transaction.producer()), (TransactionState::PrepareAbort, id(7, 5)));
        transaction.told(&partition());
        transaction.complete(NOW);

        assert_eq!(transaction.initialise(Some(id(7, 4)), MINUTE, NOW, || 8), initialised);
    }
}

fn worn() -> Transaction {
    let mut transaction = empty();
    transaction.producer.producer_epoch = LAST_USABLE_EPOCH;
    transaction
}

#[test]
fn used_up_epochs_rotate_the_producer_id() {
    let mut transaction = worn();

    let expected = Some(id(7, LAST_USABLE_EPOCH));
    assert_eq!(transaction.initialise(expected, MINUTE, NOW, || 8), Ok(Initialised::Ready(id(8, 0))));
    assert_eq!(transaction.initialise(expected, MINUTE, NOW, || 9), Ok(Initialised::Ready(id(8, 0))), "repeated");
}

#[test]
fn used_up_epochs_rotate_the_producer_id_at_the_end_of_a_transaction() {
    let (last, protocol) = (id(7, LAST_USABLE_EPOCH), Protocol::EpochPerTransaction);
    let mut transaction = worn();
    transaction.add(last, BTreeSet::new(), Protocol::Plain, NOW).expect("nothing is open");

    assert_eq!(transaction.end(last, true, protocol, NOW, || 8), Ok(Ended::Decided(id(8, 0))));
    assert_eq!(transaction.producer(), id(7, i16::MAX), "which the marker carries");
    transaction.complete(NOW);

    assert_eq!(transaction.producer(), id(8, 0));
    assert_eq!(transaction.end(last, true, protocol, NOW, || 9), Ok(Ended::Repeated(id(8, 0))));
}

/// TX-35, KAFKA-20090.
#[test]
fn last_epoch_is_fenced_by_the_one_above() {
    for protocol in [Protocol::Plain, Protocol::EpochPerTransaction] {
        let mut transaction = worn();
        transaction.add(id(7, LAST_USABLE_EPOCH), BTreeSet::new(), Protocol::Plain, NOW).expect("nothing is open");

        transaction.fence(protocol, NOW, || 8);
        transaction.complete(NOW);

        let next = transaction.initialise(None, MINUTE, NOW, || 9);
        let rotated = if protocol == Protocol::Plain { id(9, 0) } else { id(8, 1) };
        assert_eq!(next, Ok(Initialised::Ready(rotated)), "{protocol:?}");
    }
}

#[test]
fn transaction_is_overdue_after_its_timeout() {
    let transaction = in_state(TransactionState::Ongoing, Protocol::Plain);
    let due = NOW + i64::from(MINUTE);

    assert!(!transaction.is_overdue(due));
    assert!(transaction.is_overdue(due + 1));
    assert!(!in_state(TransactionState::CompleteAbort, Protocol::Plain).is_overdue(due + 1));
}

#[test]
fn idle_ids_expire() {
    for state in TransactionState::ALL {
        let is_idle = state != TransactionState::Ongoing && !state.is_preparing();
        assert_eq!(in_state(state, Protocol::Plain).is_expired(NOW + 10, 10), is_idle, "{state:?}");
        assert!(!in_state(state, Protocol::Plain).is_expired(NOW + 9, 10));
    }
}
