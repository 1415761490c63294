//! InitProducerId (22): an identity for idempotent producers and for transactional ones.
//!
//! Any node gives ids to producers without a transactional id, and what such a producer says it has is not looked at.
//! The others must ask their coordinator. The rules of epochs are in `transactions/transaction.rs`.
//!
//! Version 6, for two-phase commits (KIP-939), is spoken where unstable versions are. As in Kafka up to 4.4, a producer
//! can ask there that no timeout aborts its transactions; to take over a transaction that its predecessor has prepared
//! is told to be unsupported, and the answer never names one.

use krafka_protocol::ErrorCode;
use krafka_protocol::api::init_producer_id::{InitProducerIdRequest, InitProducerIdResponse};

use crate::context::{Context, Outcome};
use crate::producer_ids::IdAndEpoch;
use crate::security::acls::Operation;
use crate::state::State;
use crate::transactions::{self, Claim};

/// The first version in which a producer can take part in two-phase commits, which Kafka calls unstable.
pub(super) const TWO_PHASE_VERSION: i16 = 6;

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
    if let Some(id) = request.transactional_id.as_ref().filter(|_| request.enable2_pc)
        && let Some(error) = cx.transactional_id_error(state, Operation::TwoPhaseCommit, id)
    {
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
    let claim = Claim {
        expected,
        timeout_ms: request.transaction_timeout_ms,
        two_phases: request.enable2_pc,
        keeps_prepared: request.keep_prepared_txn,
    };
    transactions::initialise(state, cx.node, transactional_id, &claim, cx.now)
}
