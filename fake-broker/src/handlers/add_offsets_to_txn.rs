//! AddOffsetsToTxn (25): adds a group's partition of `__consumer_offsets` to a transaction.

use std::collections::BTreeSet;

use krafka_protocol::api::add_offsets_to_txn::{AddOffsetsToTxnRequest, AddOffsetsToTxnResponse};
use krafka_protocol::{ErrorCode, Str};

use crate::context::{Context, Outcome};
use crate::coordinators::{self, CoordinatorKind};
use crate::producer_ids::IdAndEpoch;
use crate::security::acls::Operation;
use crate::state::State;
use crate::transactions::{self, Protocol};

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &AddOffsetsToTxnRequest,
) -> Outcome<AddOffsetsToTxnResponse> {
    let error_code = match add(state, cx, request) {
        Ok(()) => ErrorCode::NONE,
        // Older clients do not know the newer code, which means the same to them.
        Err(ErrorCode::PRODUCER_FENCED) if cx.version < 2 => ErrorCode::INVALID_PRODUCER_EPOCH,
        Err(error) => error,
    };
    Outcome::Reply(AddOffsetsToTxnResponse { error_code: error_code.0, ..AddOffsetsToTxnResponse::default() })
}

fn add(state: &mut State, cx: &Context, request: &AddOffsetsToTxnRequest) -> Result<(), ErrorCode> {
    let AddOffsetsToTxnRequest { transactional_id, producer_id, producer_epoch, group_id } = request;
    let denied = cx.transactional_id_error(state, Operation::Write, transactional_id);
    if let Some(error) = denied.or_else(|| cx.group_error(state, Operation::Read, group_id)) {
        return Err(error);
    }
    let producer = IdAndEpoch { producer_id: *producer_id, producer_epoch: *producer_epoch };
    let index = state.spread.partition_for(CoordinatorKind::Group, group_id);
    let partition = (Str::from_static(coordinators::OFFSETS_TOPIC), index);
    let partitions = BTreeSet::from([partition]);
    transactions::add_partitions(state, cx.node, transactional_id, producer, partitions, Protocol::Plain, cx.now)
}
