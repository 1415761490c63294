//! What administrators and brokers ask of transactions: to list, to describe, to verify, and to end one by force.

use std::time::Duration;

use krafka_fake_broker::KafkaVersion;
use krafka_protocol::api::add_partitions_to_txn::{
    AddPartitionsToTxnRequest, AddPartitionsToTxnTopic, AddPartitionsToTxnTransaction,
};
use krafka_protocol::api::describe_producers::{DescribeProducersRequest, PartitionResponse, TopicRequest};
use krafka_protocol::api::describe_transactions::DescribeTransactionsRequest;
use krafka_protocol::api::list_transactions::{ListTransactionsRequest, ListTransactionsResponse};
use krafka_protocol::api::write_txn_markers::{WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest};
use krafka_protocol::{ErrorCode, Str};

use crate::target::{Topic, Wire, run, run_on_three};
use crate::transactional::{PLAIN_END, PLAIN_PRODUCE, Producer, committed_values, read};

#[test]
fn transaction_is_described_by_its_coordinator() {
    run(async |target| {
        let topic = target.topic(3).await;
        let mut producer = Producer::new(&target).await;
        let empty = producer.describe().await;
        assert_eq!((&*empty.transaction_state, empty.transaction_timeout_ms), ("Empty", 60_000));
        assert_eq!((empty.producer_id, empty.producer_epoch), (producer.id, producer.epoch));
        assert_eq!((empty.transaction_start_time_ms, empty.topics.len()), (-1, 0));

        producer.add(&topic.name, &[2, 0]).await;
        let ongoing = producer.describe().await;
        assert_eq!(&*ongoing.transaction_state, "Ongoing");
        assert!(ongoing.transaction_start_time_ms > 1_600_000_000_000);
        let mut partitions = ongoing.topics[0].partitions.clone();
        partitions.sort_unstable();
        assert_eq!((&ongoing.topics[0].topic, partitions), (&topic.name, vec![0, 2]));

        producer.finish(PLAIN_END, true).await;
        let done = producer.describe().await;
        assert_eq!((&*done.transaction_state, done.topics.len()), ("CompleteCommit", 0));
        assert_eq!(done.transaction_start_time_ms, ongoing.transaction_start_time_ms);

        let transactional_ids = vec![Str::default(), producer.name.clone()];
        let answer = producer.coordinator.call(DescribeTransactionsRequest { transactional_ids }, 0).await;
        let errors: Vec<_> = answer.transaction_states.iter().map(|state| ErrorCode(state.error_code).name()).collect();
        assert_eq!(errors, ["INVALID_REQUEST", "NONE"]);
    });
}

async fn list(wire: &mut Wire, request: ListTransactionsRequest, version: i16) -> ListTransactionsResponse {
    wire.call(request, version).await
}

fn ids(answer: &ListTransactionsResponse) -> Vec<&str> {
    answer.transaction_states.iter().map(|state| &*state.transactional_id).collect()
}

#[test]
fn transactions_are_listed_by_state_producer_and_age() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut producer = Producer::new(&target).await;
        producer.add(&topic.name, &[0]).await;
        let ask = ListTransactionsRequest { producer_id_filters: vec![producer.id], ..Default::default() };
        let name = producer.name.clone();
        let wire = &mut producer.coordinator;

        let found = list(wire, ask.clone(), 1).await;
        assert_eq!((ids(&found), &*found.transaction_states[0].transaction_state), (vec![&*name], "Ongoing"));
        assert_eq!(found.transaction_states[0].producer_id, producer.id);
        for (states, count, unknown) in [
            (&["Ongoing", "Dead"][..], 1, 0),
            (&["Empty", "PrepareEpochFence"], 0, 0),
            (&["ongoing"], 0, 1),
            (&["Ongoing", "Sleeping"], 1, 1),
        ] {
            let state_filters = states.iter().map(|state| Str::from(*state)).collect();
            let found = list(wire, ListTransactionsRequest { state_filters, ..ask.clone() }, 1).await;
            assert_eq!((ids(&found).len(), found.unknown_state_filters.len()), (count, unknown), "{states:?}");
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
        for (duration_filter, count) in [(-1, 1), (0, 1), (60_000, 0)] {
            let found = list(wire, ListTransactionsRequest { duration_filter, ..ask.clone() }, 1).await;
            assert_eq!(ids(&found).len(), count, "{duration_filter}");
        }
    });
}

/// KIP-1152.
#[test]
fn transactions_are_listed_by_pattern() {
    run(async |target| {
        target.since(KafkaVersion::V4_1, "patterns for transactional ids").await;
        let mut producer = Producer::new(&target).await;
        let name = producer.name.clone();
        let wire = &mut producer.coordinator;
        let ask = |pattern: &str| ListTransactionsRequest {
            transactional_id_pattern: Some(pattern.into()),
            ..ListTransactionsRequest::default()
        };

        for (pattern, is_found) in [
            (format!("{name}"), true),
            (format!("{}.*", &name[..name.len() - 3]), true),
            (name[..name.len() - 3].to_owned(), false),
            (format!("nothing|{name}"), true),
            (format!("\\Q{name}\\E"), true),
            (format!("(?i){}", name.to_uppercase()), true),
            (String::new(), true),
        ] {
            let found = list(wire, ask(&pattern), 2).await;
            assert_eq!(ids(&found).contains(&&*name), is_found, "{pattern}");
        }
        // The last three are none of RE2, though other languages know them.
        for wrong in ["(", "a)(b", "a)|(b", "[", "*", "(?=x)", "(?x)a", "a**", "a{1001}"] {
            let refused = list(wire, ask(wrong), 2).await;
            assert_eq!(ErrorCode(refused.error_code), ErrorCode::INVALID_REGULAR_EXPRESSION, "{wrong}");
        }
    });
}

async fn producers(wire: &mut Wire, topic: &str, index: i32) -> PartitionResponse {
    let topics = vec![TopicRequest { name: topic.into(), partition_indexes: vec![index] }];
    wire.call(DescribeProducersRequest { topics }, 0).await.topics.remove(0).partitions.remove(0)
}

#[test]
fn leader_tells_of_its_producers() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut producer = Producer::new(&target).await;
        assert_eq!(producers(&mut producer.broker, &topic.name, 0).await.active_producers, []);

        producer.add(&topic.name, &[0]).await;
        producer.send(PLAIN_PRODUCE, &topic, 0, &["a", "b"]).await.expect("appended");
        producer.send(PLAIN_PRODUCE, &topic, 2, &["c"]).await.expect("appended");
        let open = producers(&mut producer.broker, &topic.name, 0).await.active_producers.remove(0);
        assert_eq!((open.producer_id, open.producer_epoch), (producer.id, i32::from(producer.epoch)));
        assert_eq!((open.last_sequence, open.current_txn_start_offset, open.coordinator_epoch), (2, 0, -1));
        assert!(open.last_timestamp > 1_600_000_000_000);

        producer.finish(PLAIN_END, true).await;
        let idle = producers(&mut producer.broker, &topic.name, 0).await.active_producers.remove(0);
        assert_eq!((idle.last_sequence, idle.current_txn_start_offset), (2, -1));
        assert!(idle.coordinator_epoch >= 0);
        for (name, index, error) in [
            (&*topic.name, 7, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
            ("no-such-topic", 0, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
            ("no such topic", 0, ErrorCode::INVALID_TOPIC_EXCEPTION),
        ] {
            let refused = producers(&mut producer.broker, name, index).await;
            assert_eq!(ErrorCode(refused.error_code), error, "{name} {index}");
        }
    });
}

/// KIP-664: kafka-transactions looks for hanging ones on any broker that it is told to ask.
#[test]
fn followers_tell_of_producers_too() {
    run_on_three(async |target| {
        let topic = target.topic_on(&[1, 2]).await;
        for (node, error) in [(1, "NONE"), (2, "NONE"), (3, "NOT_LEADER_OR_FOLLOWER")] {
            let mut wire = target.node(node).await;
            let told = producers(&mut wire, &topic.name, 0).await;
            assert_eq!((ErrorCode(told.error_code).name(), told.error_message), (error, None), "{node}");
        }
    });
}

async fn mark(wire: &mut Wire, topic: &Topic, marker: WritableTxnMarker) -> &'static str {
    let topics = vec![WritableTxnMarkerTopic { name: topic.name.clone(), partition_indexes: vec![0] }];
    let request = WriteTxnMarkersRequest { markers: vec![WritableTxnMarker { topics, ..marker }] };
    let answer = wire.call(request, 1).await;
    ErrorCode(answer.markers[0].topics[0].partitions[0].error_code).name()
}

/// KIP-664: a transaction that hangs is ended by who knows its producer and its coordinator.
#[test]
fn markers_are_written_by_force() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut producer = Producer::new(&target).await;
        producer.begin().await;
        producer.add(&topic.name, &[0]).await;
        producer.send(PLAIN_PRODUCE, &topic, 0, &["v"]).await.expect("appended");
        let marker = WritableTxnMarker {
            producer_id: producer.id,
            producer_epoch: producer.epoch,
            transaction_result: false,
            coordinator_epoch: 1_000,
            ..WritableTxnMarker::default()
        };

        let old = WritableTxnMarker { producer_epoch: producer.epoch - 1, ..marker.clone() };
        assert_eq!(mark(&mut producer.broker, &topic, old).await, "INVALID_PRODUCER_EPOCH");
        assert_eq!(mark(&mut producer.broker, &topic, marker.clone()).await, "NONE");
        assert_eq!(committed_values(&mut producer.broker, &topic).await, [""; 0]);
        assert_eq!(read(&mut producer.broker, &topic, 0, true).await.last_stable_offset, 2);
        let fenced = WritableTxnMarker { coordinator_epoch: 999, ..marker.clone() };
        assert_eq!(mark(&mut producer.broker, &topic, fenced).await, "TRANSACTION_COORDINATOR_FENCED");
        let nowhere = Topic { name: "no-such-topic".into(), ..topic };
        assert_eq!(mark(&mut producer.broker, &nowhere, marker).await, "UNKNOWN_TOPIC_OR_PARTITION");
    });
}

/// KIP-1228: a marker of a newer transaction must have a higher epoch than its records.
#[test]
fn newer_markers_must_raise_the_epoch() {
    run(async |target| {
        target.since(KafkaVersion::V4_2, "markers with the version of the transaction").await;
        let topic = target.topic(1).await;
        let mut producer = Producer::new(&target).await;
        producer.add(&topic.name, &[0]).await;
        producer.send(PLAIN_PRODUCE, &topic, 0, &["v"]).await.expect("appended");
        let topics = vec![WritableTxnMarkerTopic { name: topic.name.clone(), partition_indexes: vec![0] }];
        let mut write = async |producer_epoch| {
            let marker = WritableTxnMarker {
                producer_id: producer.id,
                producer_epoch,
                coordinator_epoch: 1_000,
                transaction_version: 2,
                topics: topics.clone(),
                ..WritableTxnMarker::default()
            };
            let answer = producer.broker.call(WriteTxnMarkersRequest { markers: vec![marker] }, 2).await;
            ErrorCode(answer.markers[0].topics[0].partitions[0].error_code).name()
        };

        assert_eq!(write(-1).await, "UNKNOWN_SERVER_ERROR", "no batch is without an epoch");
        assert_eq!(write(0).await, "INVALID_PRODUCER_EPOCH");
        assert_eq!(write(1).await, "NONE");
        assert_eq!(write(1).await, "NONE", "repeated, with nothing open");
        assert_eq!(write(0).await, "INVALID_PRODUCER_EPOCH");
    });
}

/// What the leaders of partitions ask coordinators (KIP-890).
#[test]
fn partitions_are_verified_for_many_transactions_at_once() {
    run(async |target| {
        let topic = target.topic(2).await;
        let mut producer = Producer::new(&target).await;
        producer.add(&topic.name, &[0]).await;
        let ask = |producer: &Producer, verify_only, partitions: &[i32]| {
            let topics = vec![AddPartitionsToTxnTopic { name: topic.name.clone(), partitions: partitions.to_vec() }];
            let transaction = AddPartitionsToTxnTransaction {
                transactional_id: producer.name.clone(),
                producer_id: producer.id,
                producer_epoch: producer.epoch,
                verify_only,
                topics,
            };
            AddPartitionsToTxnRequest { transactions: vec![transaction], ..AddPartitionsToTxnRequest::default() }
        };
        let call = async |producer: &mut Producer, verify_only, partitions: &[i32]| {
            let request = ask(producer, verify_only, partitions);
            let answer = producer.coordinator.call(request, 4).await;
            assert_eq!(answer.error_code, 0);
            let result = &answer.results_by_transaction[0];
            assert_eq!(result.transactional_id, producer.name);
            let mut found = result.topic_results[0].results_by_partition.clone();
            found.sort_by_key(|partition| partition.partition_index);
            found.iter().map(|partition| ErrorCode(partition.partition_error_code).name()).collect::<Vec<_>>()
        };

        assert_eq!(call(&mut producer, true, &[0, 1]).await, ["NONE", "TRANSACTION_ABORTABLE"]);
        assert_eq!(call(&mut producer, true, &[0, 7]).await, ["OPERATION_NOT_ATTEMPTED", "UNKNOWN_TOPIC_OR_PARTITION"]);
        assert_eq!(call(&mut producer, false, &[1]).await, ["NONE"]);
        assert_eq!(call(&mut producer, true, &[1]).await, ["NONE"]);
        producer.epoch += 1;
        assert_eq!(call(&mut producer, true, &[0]).await, ["PRODUCER_FENCED"]);
        producer.id += 1;
        assert_eq!(call(&mut producer, true, &[0]).await, ["INVALID_PRODUCER_ID_MAPPING"]);
    });
}
