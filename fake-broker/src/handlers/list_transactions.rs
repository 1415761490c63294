//! ListTransactions (66): the transactional ids that a node coordinates.
//!
//! All filters must hold at once. A pattern is a regular expression of RE2 (KIP-1152).

use krafka_protocol::api::list_transactions::{
    ListTransactionsRequest, ListTransactionsResponse, TransactionState as Listed,
};
use krafka_protocol::{ErrorCode, Str};

use crate::context::{Context, Outcome};
use crate::coordinators;
use crate::re2::Expression;
use crate::security::acls::{Operation, ResourceType};
use crate::state::State;
use crate::transactions::{self, Transaction, TransactionState};

/// States that Kafka is in for a moment, and knows by name.
const MOMENTARY: [&str; 2] = ["Dead", "PrepareEpochFence"];

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &ListTransactionsRequest,
) -> Outcome<ListTransactionsResponse> {
    if let Some(error) = cx.denied() {
        return Outcome::Reply(failed(error));
    }
    transactions::forget_expired(state, cx.now);
    if state.transactions.loads_any(state, cx.node, cx.now) {
        return Outcome::Reply(failed(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS));
    }
    let pattern = match request.transactional_id_pattern.as_deref().filter(|pattern| !pattern.is_empty()) {
        None => None,
        Some(pattern) => match Expression::new(pattern) {
            Ok(pattern) => Some(pattern),
            Err(_) => return Outcome::Reply(failed(ErrorCode::INVALID_REGULAR_EXPRESSION)),
        },
    };

    let is_known =
        |name: &Str| MOMENTARY.contains(&&**name) || TransactionState::ALL.iter().any(|state| state.name() == &**name);
    let mine = state.transactions.iter().filter(|(id, transaction)| {
        coordinators::find(state, coordinators::CoordinatorKind::Transaction, id) == Some(cx.node)
            && passes(request, pattern.as_ref(), id, transaction, cx.wall_ms)
            && cx.may(state, Operation::Describe, ResourceType::TransactionalId, id)
    });
    let transaction_states = mine
        .map(|(id, transaction)| Listed {
            transactional_id: id.clone(),
            producer_id: transaction.producer().producer_id,
            transaction_state: Str::from_static(transaction.state().name()),
        })
        .collect();
    Outcome::Reply(ListTransactionsResponse {
        unknown_state_filters: request.state_filters.iter().filter(|name| !is_known(name)).cloned().collect(),
        transaction_states,
        ..ListTransactionsResponse::default()
    })
}

fn passes(
    request: &ListTransactionsRequest,
    pattern: Option<&Expression>,
    id: &str,
    transaction: &Transaction,
    wall_ms: i64,
) -> bool {
    let (producers, states) = (&request.producer_id_filters, &request.state_filters);
    let duration = request.duration_filter;
    (producers.is_empty() || producers.contains(&transaction.producer().producer_id))
        && (states.is_empty() || states.iter().any(|name| name == transaction.state().name()))
        // The time since a transaction that never began counts from 1970, in Kafka as well.
        && (duration < 0 || wall_ms.saturating_sub(transaction.start_ms()) > duration)
        && pattern.is_none_or(|pattern| pattern.matches(id))
}

fn failed(error: ErrorCode) -> ListTransactionsResponse {
    ListTransactionsResponse { error_code: error.0, ..ListTransactionsResponse::default() }
}
