//! AddPartitionsToTxn (24): adds partitions to transactions, or verifies that they are in them.
//!
//! Producers send versions 0 to 3 for their one transaction; 4 and 5 are for brokers, which act for the cluster. If one
//! partition of a transaction is refused, none is added. Where the partitions of a transaction fare differently, Kafka
//! answers from a map, in which a topic that came twice is one; else it answers as it was asked.

use std::collections::BTreeSet;

use krafka_protocol::api::add_partitions_to_txn::{
    AddPartitionsToTxnPartitionResult, AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic, AddPartitionsToTxnTopicResult, AddPartitionsToTxnTransaction,
};
use krafka_protocol::{ErrorCode, Str};

use super::parts;
use crate::context::{Context, Outcome};
use crate::producer_ids::IdAndEpoch;
use crate::purgatory::Waiting;
use crate::security::acls::Operation;
use crate::state::State;
use crate::transactions::{self, Protocol};
use crate::{coordinators, java};

/// From this version on brokers ask, for many transactions at once.
const BROKER_VERSION: i16 = 4;

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &AddPartitionsToTxnRequest,
) -> Outcome<AddPartitionsToTxnResponse> {
    let mut response = AddPartitionsToTxnResponse::default();
    if cx.version >= BROKER_VERSION && request.transactions.is_empty() {
        return Outcome::Park(Waiting::Nothing);
    }
    if cx.version < BROKER_VERSION {
        let transaction = AddPartitionsToTxnTransaction {
            transactional_id: request.v3_and_below_transactional_id.clone(),
            producer_id: request.v3_and_below_producer_id,
            producer_epoch: request.v3_and_below_producer_epoch,
            verify_only: false,
            topics: request.v3_and_below_topics.clone(),
        };
        response.results_by_topic_v3_and_below = add(state, cx, &transaction);
        return Outcome::Reply(response);
    }
    if let Some(error) = cx.cluster_error(state, Operation::ClusterAction) {
        response.error_code = error.0;
        return Outcome::Reply(response);
    }
    response.results_by_transaction = request
        .transactions
        .iter()
        .map(|transaction| AddPartitionsToTxnResult {
            transactional_id: transaction.transactional_id.clone(),
            topic_results: add(state, cx, transaction),
        })
        .collect();
    Outcome::Reply(response)
}

/// Adds or verifies the partitions of one transaction.
fn add(
    state: &mut State,
    cx: &Context,
    transaction: &AddPartitionsToTxnTransaction,
) -> Vec<AddPartitionsToTxnTopicResult> {
    let id = &transaction.transactional_id;
    if cx.version < BROKER_VERSION
        && let Some(error) = cx.transactional_id_error(state, Operation::Write, id)
    {
        return answer(&transaction.topics, error);
    }
    let refused = |topic: &Str, partition| {
        let denied = if cx.version < BROKER_VERSION && !coordinators::is_internal(topic) {
            cx.partition_error(state, Operation::Write, topic, partition)
        } else if cx.version < BROKER_VERSION {
            // Nobody may have a transaction write to a coordinator's topic itself.
            Some(ErrorCode::TOPIC_AUTHORIZATION_FAILED)
        } else {
            None
        };
        let exists = state.topics.partition(topic, partition).is_some();
        denied.or_else(|| (!exists).then_some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION))
    };
    let asked: BTreeSet<(Str, i32)> = partitions(&transaction.topics).collect();
    if asked.iter().any(|(topic, partition)| refused(topic, *partition).is_some()) {
        let error = |topic: &Str, partition| refused(topic, partition).unwrap_or(ErrorCode::OPERATION_NOT_ATTEMPTED);
        return answer_each(&transaction.topics, error);
    }

    let AddPartitionsToTxnTransaction { producer_id, producer_epoch, .. } = *transaction;
    let producer = IdAndEpoch { producer_id, producer_epoch };
    if transaction.verify_only {
        return answer_each(&transaction.topics, |topic, partition| {
            let partition = (topic.clone(), partition);
            code(transactions::verify(state, cx.node, id, producer, &partition, cx.now))
        });
    }
    let protocol = if cx.version < BROKER_VERSION { Protocol::Plain } else { Protocol::EpochPerTransaction };
    let added = code(transactions::add_partitions(state, cx.node, id, producer, asked, protocol, cx.now));
    // Older clients do not know the newer code, which means the same to them.
    let error =
        if added == ErrorCode::PRODUCER_FENCED && cx.version < 2 { ErrorCode::INVALID_PRODUCER_EPOCH } else { added };
    answer(&transaction.topics, error)
}

fn partitions(topics: &[AddPartitionsToTxnTopic]) -> impl Iterator<Item = (Str, i32)> {
    topics.iter().flat_map(|topic| topic.partitions.iter().map(|&partition| (topic.name.clone(), partition)))
}

/// One answer to all, as it was asked.
fn answer(topics: &[AddPartitionsToTxnTopic], error: ErrorCode) -> Vec<AddPartitionsToTxnTopicResult> {
    let result = |topic: &AddPartitionsToTxnTopic| AddPartitionsToTxnTopicResult {
        name: topic.name.clone(),
        results_by_partition: topic.partitions.iter().map(|&index| told(index, error)).collect(),
    };
    topics.iter().map(result).collect()
}

/// An answer to each partition, once, by topic and in the order of Kafka's map.
fn answer_each(
    topics: &[AddPartitionsToTxnTopic],
    mut error: impl FnMut(&Str, i32) -> ErrorCode,
) -> Vec<AddPartitionsToTxnTopicResult> {
    let results = parts::keys(partitions(topics)).into_iter().map(|(topic, index)| {
        let result = told(index, error(&topic, index));
        (topic, result)
    });
    let begin = |name: &Str| AddPartitionsToTxnTopicResult { name: name.clone(), results_by_partition: Vec::new() };
    let topics = parts::by_topic(results, begin, |topic| &mut topic.results_by_partition);
    java::in_hash_order(topics, |topic| java::hash(&topic.name))
}

fn told(partition_index: i32, error: ErrorCode) -> AddPartitionsToTxnPartitionResult {
    AddPartitionsToTxnPartitionResult { partition_index, partition_error_code: error.0 }
}

fn code(result: Result<(), ErrorCode>) -> ErrorCode {
    result.err().unwrap_or(ErrorCode::NONE)
}
