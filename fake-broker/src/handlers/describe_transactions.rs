//! DescribeTransactions (65): how transactional ids stand, from the node that coordinates them.

use krafka_protocol::api::describe_transactions::{
    DescribeTransactionsRequest, DescribeTransactionsResponse, TopicData, TransactionState,
};
use krafka_protocol::{ErrorCode, Str};

use crate::context::{Context, Outcome};
use crate::security::acls::{Operation, ResourceType};
use crate::state::State;
use crate::transactions::{self, Transaction};

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &DescribeTransactionsRequest,
) -> Outcome<DescribeTransactionsResponse> {
    transactions::forget_expired(state, cx.now);
    let describe = |id: &Str| match find(state, cx, id) {
        Ok(transaction) => tell(state, cx, id, transaction),
        Err(error) => {
            TransactionState { error_code: error.0, transactional_id: id.clone(), ..TransactionState::default() }
        }
    };
    let transaction_states = request.transactional_ids.iter().map(describe).collect();
    Outcome::Reply(DescribeTransactionsResponse { transaction_states, ..DescribeTransactionsResponse::default() })
}

fn find<'a>(state: &'a State, cx: &Context, id: &Str) -> Result<&'a Transaction, ErrorCode> {
    if let Some(error) = cx.transactional_id_error(state, Operation::Describe, id) {
        return Err(error);
    }
    if id.is_empty() {
        return Err(ErrorCode::INVALID_REQUEST);
    }
    if let Some(error) = transactions::refusal(state, cx.node, id, cx.now) {
        return Err(error);
    }
    state.transactions.find(id).ok_or(ErrorCode::TRANSACTIONAL_ID_NOT_FOUND)
}

/// Tells all but the topics that are not the client's to see.
fn tell(state: &State, cx: &Context, id: &Str, transaction: &Transaction) -> TransactionState {
    let mut topics: Vec<TopicData> = Vec::new();
    for (topic, partition) in transaction.partitions() {
        if !cx.may(state, Operation::Describe, ResourceType::Topic, topic) {
            continue;
        }
        match topics.last_mut().filter(|last| last.topic == *topic) {
            Some(last) => last.partitions.push(*partition),
            None => topics.push(TopicData { topic: topic.clone(), partitions: vec![*partition] }),
        }
    }
    let producer = transaction.producer();
    TransactionState {
        error_code: ErrorCode::NONE.0,
        transactional_id: id.clone(),
        transaction_state: Str::from_static(transaction.state().name()),
        transaction_timeout_ms: transaction.timeout_ms(),
        transaction_start_time_ms: transaction.start_ms(),
        producer_id: producer.producer_id,
        producer_epoch: producer.producer_epoch,
        topics,
    }
}
