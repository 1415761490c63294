//! EndTxn (26): commits or aborts a transaction.
//!
//! Version 5 is how a producer says that each of its transactions has an epoch of its own (KIP-890).

use krafka_protocol::ErrorCode;
use krafka_protocol::api::end_txn::{EndTxnRequest, EndTxnResponse};

use crate::context::{Context, Outcome};
use crate::producer_ids::IdAndEpoch;
use crate::security::acls::Operation;
use crate::state::State;
use crate::transactions::{self, Protocol};

/// From this version on the end of a transaction raises the producer's epoch.
const EPOCH_VERSION: i16 = 5;

pub(crate) fn handle(state: &mut State, cx: &Context, request: &EndTxnRequest) -> Outcome<EndTxnResponse> {
    let response = match end(state, cx, request) {
        Ok(IdAndEpoch { producer_id, producer_epoch }) => {
            EndTxnResponse { producer_id, producer_epoch, ..EndTxnResponse::default() }
        }
        // Older clients do not know the newer code, which means the same to them.
        Err(ErrorCode::PRODUCER_FENCED) if cx.version < 2 => failed(ErrorCode::INVALID_PRODUCER_EPOCH),
        Err(error) => failed(error),
    };
    Outcome::Reply(response)
}

fn end(state: &mut State, cx: &Context, request: &EndTxnRequest) -> Result<IdAndEpoch, ErrorCode> {
    let EndTxnRequest { transactional_id, producer_id, producer_epoch, committed } = request;
    if let Some(error) = cx.transactional_id_error(state, Operation::Write, transactional_id) {
        return Err(error);
    }
    let producer = IdAndEpoch { producer_id: *producer_id, producer_epoch: *producer_epoch };
    let protocol = if cx.version >= EPOCH_VERSION { Protocol::EpochPerTransaction } else { Protocol::Plain };
    transactions::end(state, cx.node, transactional_id, producer, *committed, protocol, cx.now)
}

fn failed(error: ErrorCode) -> EndTxnResponse {
    EndTxnResponse { error_code: error.0, ..EndTxnResponse::default() }
}
