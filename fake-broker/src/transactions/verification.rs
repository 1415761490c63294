//! What a partition's leader asks a transaction's coordinator before it takes the first batch of it (KIP-890).
//!
//! Old producers have added the partition themselves, so that the coordinator is asked if it knows of that; those that
//! have an epoch for each transaction leave it to the leader to add the partition. How much of the coordinator's answer
//! a producer is told depends on what it understands, which the version of its request says.
//!
//! Kafka asks some times more, for a tenth of a second at most, before it tells a producer that its last transaction
//! is not over; here it is told at once.

use std::collections::BTreeSet;

use krafka_protocol::{ErrorCode, Str};

use super::Protocol;
use crate::context::Context;
use crate::coordinators::{self, CoordinatorKind};
use crate::faults::KafkaVersion;
use crate::producer_ids::IdAndEpoch;
use crate::state::State;

/// What the sender of a transactional request understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Client {
    /// Nothing of the new codes.
    Plain,
    /// TRANSACTION_ABORTABLE.
    KnowsAbortable,
    /// It has an epoch for each transaction, and adds no partitions.
    BumpsEpochs,
}

impl Client {
    /// What a producer understands that sends Produce in a version.
    pub(crate) fn of_produce(version: i16) -> Self {
        match version {
            12.. => Self::BumpsEpochs,
            11 => Self::KnowsAbortable,
            _ => Self::Plain,
        }
    }

    /// What a producer understands that sends TxnOffsetCommit in a version.
    pub(crate) fn of_offset_commit(version: i16) -> Self {
        match version {
            5.. => Self::BumpsEpochs,
            4 => Self::KnowsAbortable,
            _ => Self::Plain,
        }
    }
}

/// Whether a producer's transaction may write to a partition, which is led by the node that was asked: what it is about
/// to write begins with `base_sequence`.
///
/// # Errors
///
/// `INVALID_PRODUCER_EPOCH` for a producer that is fenced, and what the coordinator answers, in codes that the client
/// understands.
pub(crate) fn admit(
    state: &mut State,
    cx: &Context,
    id: &Str,
    producer: IdAndEpoch,
    base_sequence: i32,
    partition: (Str, i32),
    client: Client,
) -> Result<(), ErrorCode> {
    let Some(led) = state.topics.partition_mut(&partition.0, partition.1) else {
        return Err(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    };
    let adds = client == Client::BumpsEpochs;
    // Kafka 4.0 did not insist on it.
    let begins_at_zero = adds && state.nodes.find(cx.node).is_some_and(|node| node.version >= KafkaVersion::V4_1);
    if !led.log.producers.begin_verification(producer, base_sequence, begins_at_zero, cx.wall_ms)? {
        return Ok(());
    }
    let answer = match coordinators::find(state, CoordinatorKind::Transaction, id) {
        None => Err(ErrorCode::COORDINATOR_NOT_AVAILABLE),
        Some(node) if adds => {
            let partitions = BTreeSet::from([partition]);
            super::add_partitions(state, node, id, producer, partitions, Protocol::EpochPerTransaction, cx.now)
        }
        Some(node) => super::verify(state, node, id, producer, &partition, cx.now),
    };
    answer.map_err(|code| match code {
        ErrorCode::PRODUCER_FENCED => ErrorCode::INVALID_PRODUCER_EPOCH,
        ErrorCode::TRANSACTION_ABORTABLE if client < Client::KnowsAbortable => ErrorCode::INVALID_TXN_STATE,
        code => code,
    })
}
