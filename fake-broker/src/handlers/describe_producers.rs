//! DescribeProducers (61): what a partition's replicas know of the producers that write to it.

use krafka_protocol::api::describe_producers::{
    DescribeProducersRequest, DescribeProducersResponse, PartitionResponse, ProducerState, TopicResponse,
};
use krafka_protocol::{ErrorCode, Str};

use crate::context::{Context, Outcome};
use crate::log::producers::ActiveProducer;
use crate::security::acls::Operation;
use crate::state::State;
use crate::topics;
use crate::words::words;

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &DescribeProducersRequest,
) -> Outcome<DescribeProducersResponse> {
    let mut response = DescribeProducersResponse::default();
    for topic in &request.topics {
        let partitions = topic.partition_indexes.iter().map(|&partition_index| {
            let described = describe(state, cx, &topic.name, partition_index);
            let (error, error_message, active_producers) = match described {
                Ok(producers) => (ErrorCode::NONE, None, producers),
                Err((error, message)) => (error, message, Vec::new()),
            };
            PartitionResponse { partition_index, error_code: error.0, error_message, active_producers }
        });
        response.topics.push(TopicResponse { name: topic.name.clone(), partitions: partitions.collect() });
    }
    Outcome::Reply(response)
}

fn describe(
    state: &mut State,
    cx: &Context,
    name: &str,
    index: i32,
) -> Result<Vec<ProducerState>, (ErrorCode, Option<Str>)> {
    if let Err(fault) = topics::validate_name(name) {
        return Err((ErrorCode::INVALID_TOPIC_EXCEPTION, Some(Str::from(fault))));
    }
    if let Some(error) = cx.partition_error(state, Operation::Read, name, index) {
        return Err((error, Some(Str::from(words(error)))));
    }
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    if state.topics.by_name(name).is_none() {
        return Err((unknown, Some(Str::from(words(unknown)))));
    }
    let swept_ms = state.producers_swept_ms(cx.now);
    let expiration_ms = state.config.producer_id_expiration_ms;
    let partition = state.topics.partition_mut(name, index).ok_or((unknown, None))?;
    // Followers know them as the leader does (KIP-664).
    if !partition.replicas.contains(&cx.node) {
        return Err((ErrorCode::NOT_LEADER_OR_FOLLOWER, None));
    }
    partition.log.producers.expire(swept_ms, expiration_ms);
    Ok(partition.log.producers.active().map(tell).collect())
}

fn tell(producer: ActiveProducer) -> ProducerState {
    ProducerState {
        producer_id: producer.producer_id,
        producer_epoch: i32::from(producer.producer_epoch),
        last_sequence: producer.last_sequence,
        last_timestamp: producer.last_timestamp,
        coordinator_epoch: producer.coordinator_epoch,
        current_txn_start_offset: producer.open_since,
    }
}
