//! InitProducerId (22): an identity for idempotent producers and for transactional ones.
//!
//! Any node gives ids to producers without a transactional id, and what such a producer says it has is not looked at.
//! The others must ask their coordinator. The rules of epochs are in `transactions/transaction.rs`. Version 6, for
//! two-phase commit (KIP-939), is not among what Kafka 4.4 calls stable, and is not served.

use krafka_protocol::ErrorCode;
use krafka_protocol::api::init_producer_id::{InitProducerIdRequest, InitProducerIdResponse};

use crate::context::{Context, Outcome};
use crate::producer_ids::IdAndEpoch;
use crate::security::acls::Operation;
use crate::state::State;
use crate::transactions;

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &InitProducerIdRequest,
) -> Outcome<InitProducerIdResponse> {
    let response = match initialise(state, cx, request) {
        Ok(IdAndEpoch { producer_id, producer_epoch }) => {
            InitProducerIdResponse { producer_id, producer_epoch, ..InitProducerIdResponse::default() }
        }
        Err(error) => InitProducerIdResponse {
            // Older clients do not know the newer code, which means the same to them.
            error_code: if error == ErrorCode::PRODUCER_FENCED && cx.version < 4 {
                ErrorCode::INVALID_PRODUCER_EPOCH.0
            } else {
                error.0
            },
            producer_id: -1,
            producer_epoch: -1,
            ..InitProducerIdResponse::default()
        },
    };
    Outcome::Reply(response)
}

fn initialise(state: &mut State, cx: &Context, request: &InitProducerIdRequest) -> Result<IdAndEpoch, ErrorCode> {
    let refusal = match &request.transactional_id {
        Some(id) => cx.transactional_id_error(state, Operation::Write, id),
        None => cx.cluster_error(state, Operation::IdempotentWrite),
    };
    if let Some(error) = refusal {
        return Err(error);
    }
    let given = IdAndEpoch { producer_id: request.producer_id, producer_epoch: request.producer_epoch };
    let expected = match given {
        IdAndEpoch { producer_id: -1, producer_epoch: -1 } => None,
        IdAndEpoch { producer_id: -1, .. } | IdAndEpoch { producer_epoch: -1, .. } => {
            return Err(ErrorCode::INVALID_REQUEST);
        }
        given => Some(given),
    };
    let Some(transactional_id) = &request.transactional_id else {
        return Ok(state.producer_ids.allocate(cx.node));
    };
    transactions::initialise(state, cx.node, transactional_id, request.transaction_timeout_ms, expected, cx.now)
}
