//! Changes that a coordinator takes up and cannot write, and what it is to be stuck in one.
//!
//! The records of a cluster whose `transaction.version` is 0 have no room for the protocol of KIP-890. A producer that
//! follows it all the same is answered UNSUPPORTED_VERSION, and Kafka forgets to take the change back: until another
//! node coordinates the id, and reads what was written, whoever asks for anything is told CONCURRENT_TRANSACTIONS, and
//! the transaction is not aborted when its time is up. Seen in Kafka 4.4.

use krafka_protocol::{ErrorCode, Str};

use super::{Protocol, Transaction};
use crate::coordinators::CoordinatorKind;
use crate::features::TRANSACTION_VERSION;
use crate::producer_ids::ProducerIds;
use crate::state::State;

/// Refuses what changes an id that is stuck.
pub(super) fn check(state: &State, id: &Str) -> Result<(), ErrorCode> {
    if state.transactions.unwritable.contains(id) { Err(ErrorCode::CONCURRENT_TRANSACTIONS) } else { Ok(()) }
}

/// Changes the transaction of an id, if the coordinator can write what becomes of it.
///
/// # Errors
///
/// Those of the change, `INVALID_PRODUCER_ID_MAPPING` for an id that nobody knows, and `UNSUPPORTED_VERSION` for what
/// cannot be written.
pub(super) fn change<R>(
    state: &mut State,
    id: &Str,
    protocol: Protocol,
    change: impl FnOnce(&mut ProducerIds, &mut Transaction) -> Result<R, ErrorCode>,
) -> Result<R, ErrorCode> {
    let has_room = protocol == Protocol::Plain || state.is_on(TRANSACTION_VERSION);
    let (transactions, ids) = (&mut state.transactions, &mut state.producer_ids);
    let transaction = transactions.by_id.get_mut(id).ok_or(ErrorCode::INVALID_PRODUCER_ID_MAPPING)?;
    if has_room {
        return change(ids, transaction);
    }
    let mut changed = transaction.clone();
    let result = change(ids, &mut changed)?;
    if changed == *transaction {
        return Ok(result);
    }
    transactions.unwritable.insert(id.clone());
    Err(ErrorCode::UNSUPPORTED_VERSION)
}

/// A coordinator has read a partition of `__transaction_state`: what was never written is over.
pub(super) fn reload(state: &mut State, partition: i32) {
    let spread = state.spread;
    let is_there = |id: &str| spread.partition_for(CoordinatorKind::Transaction, id) == partition;
    state.transactions.unwritable.retain(|id| !is_there(id));
}
