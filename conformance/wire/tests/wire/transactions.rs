//! Transactions on the wire: what they write, who sees it when, and who is fenced.

use krafka_fake_broker::KafkaVersion;
use krafka_protocol::api::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use krafka_protocol::api::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use krafka_protocol::compression::Decompressor;
use krafka_protocol::records::ControlRecord;
use krafka_protocol::{ErrorCode, Str};

use crate::java::partition_for;
use crate::target::{Target, Topic, Wire, run};
use crate::transactional::{
    ADD, END, PLAIN_END, PLAIN_PRODUCE, PRODUCE, Producer, all_values, batches, committed_values, produce_request,
    read, stamped,
};

/// Producers have an epoch for each transaction since then.
const BUMPS: KafkaVersion = KafkaVersion::V4_0;

/// TX-01.
#[test]
fn partitions_that_were_added_are_written_and_committed() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut producer = Producer::new(&target).await;

        assert_eq!(producer.add(&topic.name, &[0]).await, "NONE");
        assert_eq!(producer.send(PLAIN_PRODUCE, &topic, 0, &["a", "b"]).await, Ok(0));
        assert_eq!(producer.send(PLAIN_PRODUCE, &topic, 2, &["c"]).await, Ok(2));
        producer.finish(PLAIN_END, true).await;

        assert_eq!(committed_values(&mut producer.broker, &topic).await, ["a", "b", "c"]);
        let data = read(&mut producer.broker, &topic, 0, true).await;
        assert_eq!((data.high_watermark, data.last_stable_offset), (4, 4), "the marker has an offset too");

        // The producer goes on with its epoch and its sequences.
        producer.add_when_ready(&topic.name, 0).await;
        assert_eq!(producer.send(PLAIN_PRODUCE, &topic, 3, &["d"]).await, Ok(4));
        producer.finish(PLAIN_END, true).await;
        assert_eq!(committed_values(&mut producer.broker, &topic).await, ["a", "b", "c", "d"]);
    });
}

/// TX-01, KIP-890: the partition's leader adds the partition, and the end raises the epoch.
#[test]
fn newer_producer_adds_no_partitions_and_gets_the_next_epoch() {
    run(async |target| {
        target.since(BUMPS, "epochs for each transaction").await;
        let topic = target.topic(1).await;
        let mut producer = Producer::new(&target).await;
        let (id, epoch) = (producer.id, producer.epoch);

        assert_eq!(producer.send(PRODUCE, &topic, 0, &["a"]).await, Ok(0));
        assert_eq!(producer.send(PRODUCE, &topic, 1, &["b"]).await, Ok(1));
        producer.finish(END, true).await;
        assert_eq!((producer.id, producer.epoch), (id, epoch + 1));

        // Each transaction begins with sequence 0.
        assert_eq!(producer.send_when_ready(&topic, 0, &["c"]).await, 3);
        producer.finish(END, false).await;
        assert_eq!((producer.id, producer.epoch), (id, epoch + 2));

        assert_eq!(committed_values(&mut producer.broker, &topic).await, ["a", "b"]);
        assert_eq!(all_values(&mut producer.broker, &topic).await, ["a", "b", "c"]);
    });
}

/// TX-02.
#[test]
fn interleaved_transactions_are_told_apart() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut first = Producer::new(&target).await;
        let mut second = Producer::new(&target).await;
        for producer in [&mut first, &mut second] {
            assert_eq!(producer.add(&topic.name, &[0]).await, "NONE");
        }

        first.send(PLAIN_PRODUCE, &topic, 0, &["aborted 0"]).await.expect("appended");
        second.send(PLAIN_PRODUCE, &topic, 0, &["committed 1"]).await.expect("appended");
        first.send(PLAIN_PRODUCE, &topic, 1, &["aborted 2"]).await.expect("appended");
        assert_eq!(committed_values(&mut first.broker, &topic).await, [""; 0]);

        first.finish(PLAIN_END, false).await;
        let data = read(&mut first.broker, &topic, 0, true).await;
        assert_eq!((data.last_stable_offset, data.high_watermark), (1, 4), "up to the transaction that is open");
        assert_eq!(committed_values(&mut first.broker, &topic).await, [""; 0]);

        second.finish(PLAIN_END, true).await;
        assert_eq!(committed_values(&mut first.broker, &topic).await, ["committed 1"]);
        assert_eq!(all_values(&mut first.broker, &topic).await, ["aborted 0", "committed 1", "aborted 2"]);
        let data = read(&mut first.broker, &topic, 0, true).await;
        let aborted = data.aborted_transactions.expect("a list");
        assert_eq!(aborted.iter().map(|txn| (txn.producer_id, txn.first_offset)).collect::<Vec<_>>(), [(first.id, 0)]);
        let behind = read(&mut first.broker, &topic, 4, true).await;
        assert_eq!(behind.aborted_transactions, Some(Vec::new()), "its end is before what was asked for");
    });
}

/// FI-05. The marker's key has a version and a type, its value a version and the coordinator's epoch.
#[test]
fn markers_are_control_batches_of_the_producer() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut producer = Producer::new(&target).await;
        for (sequence, commit) in [(0, true), (1, false)] {
            producer.add_when_ready(&topic.name, 0).await;
            producer.send(PLAIN_PRODUCE, &topic, sequence, &["v"]).await.expect("appended");
            producer.finish(PLAIN_END, commit).await;
        }

        let data = read(&mut producer.broker, &topic, 0, false).await;
        let markers: Vec<_> =
            batches(&data).into_iter().filter(|batch| batch.header().attributes.is_control()).collect();
        assert_eq!(markers.len(), 2);
        for (marker, (offset, kind)) in markers.iter().zip([(1, 1), (3, 0)]) {
            let header = marker.header();
            assert_eq!((header.base_offset, header.count, header.base_sequence), (offset, 1, -1));
            assert_eq!((header.producer_id, header.producer_epoch), (producer.id, producer.epoch));
            assert!(header.attributes.is_transactional());
            assert_eq!(marker.verify_crc(), Ok(()));
            let records = marker.records(&mut Decompressor::default()).expect("a record").to_vec().expect("a record");
            let (key, value) = (records[0].key.clone().expect("a key"), records[0].value.clone().expect("a value"));
            assert_eq!(key[..], [0, 0, 0, kind]);
            assert_eq!((value.len(), &value[..2]), (6, &[0, 0][..]));
            let parsed = ControlRecord::parse(Some(&key), Some(&value)).expect("a marker");
            let (ControlRecord::Commit { coordinator_epoch } | ControlRecord::Abort { coordinator_epoch }) = parsed
            else {
                panic!("{parsed:?}");
            };
            assert!(coordinator_epoch >= 0);
        }
    });
}

/// The marker of a transaction that has its own epoch has the next one.
#[test]
fn newer_markers_have_the_next_epoch() {
    run(async |target| {
        target.since(BUMPS, "epochs for each transaction").await;
        let topic = target.topic(1).await;
        let mut producer = Producer::new(&target).await;
        let epoch = producer.epoch;
        producer.send_when_ready(&topic, 0, &["v"]).await;
        producer.finish(END, true).await;

        let epochs: Vec<_> = batches(&read(&mut producer.broker, &topic, 0, false).await)
            .iter()
            .map(|batch| batch.header().producer_epoch)
            .collect();
        assert_eq!(epochs, [epoch, epoch + 1]);
    });
}

/// FI-03b.
#[test]
fn latest_offset_for_who_reads_what_is_committed_is_the_last_stable_one() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut producer = Producer::new(&target).await;
        producer.add_when_ready(&topic.name, 0).await;
        producer.send(PLAIN_PRODUCE, &topic, 0, &["a", "b"]).await.expect("appended");

        assert_eq!(latest(&mut producer.broker, &topic, 1).await, 0);
        assert_eq!(latest(&mut producer.broker, &topic, 0).await, 2);
        producer.finish(PLAIN_END, false).await;
        assert_eq!(latest(&mut producer.broker, &topic, 1).await, 3);
    });
}

async fn latest(wire: &mut Wire, topic: &Topic, isolation_level: i8) -> i64 {
    let partition = ListOffsetsPartition { timestamp: -1, ..ListOffsetsPartition::default() };
    let topics = vec![ListOffsetsTopic { name: topic.name.clone(), partitions: vec![partition] }];
    let request = ListOffsetsRequest { replica_id: -1, isolation_level, topics, ..ListOffsetsRequest::default() };
    wire.call(request, 7).await.topics[0].partitions[0].offset
}

/// TX-27. The next incarnation aborts what the last one left open, and gets an epoch above the one that did it.
#[test]
fn next_incarnation_aborts_what_is_open() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut crashed = Producer::new(&target).await;
        crashed.add_when_ready(&topic.name, 0).await;
        crashed.send(PLAIN_PRODUCE, &topic, 0, &["lost"]).await.expect("appended");

        let mut next = crashed.twin(&target).await;
        let first = next.init(None).await;
        assert_eq!(ErrorCode(first.error_code), ErrorCode::CONCURRENT_TRANSACTIONS);
        next.begin().await;

        assert_eq!((next.id, next.epoch), (crashed.id, crashed.epoch + 2));
        assert_eq!(committed_values(&mut next.broker, &topic).await, [""; 0]);
        assert_eq!(latest(&mut next.broker, &topic, 1).await, 2);
    });
}

/// TX-07.
#[test]
fn second_producer_fences_the_first() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut first = Producer::new(&target).await;
        let mut second = first.twin(&target).await;
        second.begin().await;
        assert_eq!((second.id, second.epoch), (first.id, first.epoch + 1));

        assert_eq!(first.add(&topic.name, &[0]).await, "PRODUCER_FENCED");
        assert_eq!(first.add_in(1, &topic.name, &[0]).await, "INVALID_PRODUCER_EPOCH");
        assert_eq!(first.ends(PLAIN_END, true).await, "PRODUCER_FENCED");
        assert_eq!(first.ends(1, true).await, "INVALID_PRODUCER_EPOCH");
        let group = target.fresh("group");
        assert_eq!(first.add_offsets(ADD, &group).await, "PRODUCER_FENCED");
        assert_eq!(first.add_offsets(1, &group).await, "INVALID_PRODUCER_EPOCH");
        assert_eq!(first.send(PLAIN_PRODUCE, &topic, 0, &["v"]).await, Err("INVALID_PRODUCER_EPOCH"));
        let again = first.init(Some((first.id, first.epoch))).await;
        assert_eq!(ErrorCode(again.error_code), ErrorCode::PRODUCER_FENCED);

        second.add_when_ready(&topic.name, 0).await;
        assert_eq!(second.send(PLAIN_PRODUCE, &topic, 0, &["v"]).await, Ok(0));
        assert_eq!(first.send(PLAIN_PRODUCE, &topic, 0, &["v"]).await, Err("INVALID_PRODUCER_EPOCH"));
        second.finish(PLAIN_END, true).await;
    });
}

/// The coordinator is asked before the first batch of a transaction is taken, and answers as the client understands it.
#[test]
fn batch_outside_of_a_transaction_is_refused() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut producer = Producer::new(&target).await;

        let refused = producer.produce(PLAIN_PRODUCE, &topic, 0, &["v"]).await;
        assert_eq!(ErrorCode(refused.error_code), ErrorCode::TRANSACTION_ABORTABLE);
        assert_eq!((refused.base_offset, refused.log_start_offset), (-1, -1));
        let old = producer.produce(10, &topic, 0, &["v"]).await;
        assert_eq!(ErrorCode(old.error_code), ErrorCode::INVALID_TXN_STATE);
        assert_eq!(old.error_message.as_deref(), Some("Partition was not added to the transaction"));

        producer.add_when_ready(&topic.name, 0).await;
        assert_eq!(producer.send(PLAIN_PRODUCE, &topic, 0, &["v"]).await, Ok(0));
        producer.id += 1_000_000;
        assert_eq!(producer.send(PLAIN_PRODUCE, &topic, 0, &["v"]).await, Err("INVALID_PRODUCER_ID_MAPPING"));
    });
}

/// FI-01f, KAFKA-15591: whatever comes first after a refusal must not begin behind what was refused.
#[test]
fn batch_behind_one_that_was_refused_is_out_of_order() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut producer = Producer::new(&target).await;
        assert_eq!(producer.send(PLAIN_PRODUCE, &topic, 0, &["a"]).await, Err("TRANSACTION_ABORTABLE"));
        producer.add_when_ready(&topic.name, 0).await;

        assert_eq!(producer.send(PLAIN_PRODUCE, &topic, 1, &["b"]).await, Err("OUT_OF_ORDER_SEQUENCE_NUMBER"));
        assert_eq!(producer.send(PLAIN_PRODUCE, &topic, 0, &["a"]).await, Ok(0));
        assert_eq!(producer.send(PLAIN_PRODUCE, &topic, 1, &["b"]).await, Ok(1));
    });
}

/// KIP-890: a transaction with an epoch of its own begins with sequence 0, even where nobody knows the producer.
#[test]
fn newer_transaction_begins_with_sequence_0() {
    run(async |target| {
        target.since(KafkaVersion::V4_1, "first batches of transactions that begin with sequence 0").await;
        let topic = target.topic(1).await;
        let mut producer = Producer::new(&target).await;

        assert_eq!(producer.send(PRODUCE, &topic, 3, &["v"]).await, Err("OUT_OF_ORDER_SEQUENCE_NUMBER"));
        assert_eq!(producer.send(PRODUCE, &topic, 0, &["v"]).await, Ok(0));
        producer.finish(END, true).await;
    });
}

#[test]
fn producer_with_an_open_transaction_writes_nothing_else() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut producer = Producer::new(&target).await;
        producer.add_when_ready(&topic.name, 0).await;
        producer.send(PLAIN_PRODUCE, &topic, 0, &["v"]).await.expect("appended");

        let outside = stamped(producer.id, producer.epoch, 1, false, &["v"]);
        let request = produce_request(&topic, Some(producer.name.clone()), outside);
        let answer = producer.broker.call(request, PLAIN_PRODUCE).await;
        let refused = &answer.responses[0].partition_responses[0];
        assert_eq!(ErrorCode(refused.error_code), ErrorCode::INVALID_TXN_STATE);
    });
}

#[test]
fn transactional_request_is_of_one_producer_that_may_use_its_id() {
    run(async |target| {
        let (topic, other) = (target.topic(1).await, target.topic(1).await);
        let producer = Producer::new(&target).await;
        let mut wire = target.connect().await;

        let nameless = produce_request(&topic, None, producer.batch(0, &["v"]));
        assert_eq!(refusals(&mut wire, nameless).await, ["TRANSACTIONAL_ID_AUTHORIZATION_FAILED"]);

        let data = |topic: &Topic, id: i64| TopicProduceData {
            name: topic.name.clone(),
            partition_data: vec![PartitionProduceData {
                index: 0,
                records: Some(stamped(id, producer.epoch, 0, true, &["v"])),
            }],
            ..TopicProduceData::default()
        };
        let two = ProduceRequest {
            transactional_id: Some(producer.name.clone()),
            acks: -1,
            timeout_ms: 5_000,
            topic_data: vec![data(&topic, producer.id), data(&other, producer.id + 1)],
        };
        let refused = refusals(&mut wire, two).await;
        assert_eq!(refused, ["INVALID_PRODUCER_ID_MAPPING"; 2]);
    });
}

async fn refusals(wire: &mut Wire, request: ProduceRequest) -> Vec<&'static str> {
    let answer = wire.call(request, PLAIN_PRODUCE).await;
    let partitions = answer.responses.iter().flat_map(|topic| &topic.partition_responses);
    partitions.map(|partition| ErrorCode(partition.error_code).name()).collect()
}

/// What the coordinator's requests are refused for, whatever state the transaction is in.
#[test]
fn coordinator_knows_its_producers() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut producer = Producer::new(&target).await;

        let id = producer.id;
        producer.id += 1;
        assert_eq!(producer.add(&topic.name, &[0]).await, "INVALID_PRODUCER_ID_MAPPING");
        assert_eq!(producer.ends(PLAIN_END, true).await, "INVALID_PRODUCER_ID_MAPPING");
        producer.id = id;
        let name = std::mem::take(&mut producer.name);
        assert_eq!(producer.add(&topic.name, &[0]).await, "INVALID_REQUEST");
        assert_eq!(producer.ends(PLAIN_END, true).await, "INVALID_REQUEST");
        producer.name = unknown_beside(&target, &name);
        assert_eq!(producer.add(&topic.name, &[0]).await, "INVALID_PRODUCER_ID_MAPPING");
        assert_eq!(producer.ends(PLAIN_END, true).await, "INVALID_PRODUCER_ID_MAPPING");
    });
}

/// An id that nobody uses, on the same partition of the coordinators' topic.
fn unknown_beside(target: &Target, name: &Str) -> Str {
    let wanted = partition_for(name, 50);
    let mut candidates = std::iter::repeat_with(|| target.fresh("unknown"));
    candidates.find(|candidate| partition_for(candidate, 50) == wanted).expect("one in fifty")
}

#[test]
fn partitions_are_added_together_or_not_at_all() {
    run(async |target| {
        let topic = target.topic(2).await;
        let mut producer = Producer::new(&target).await;

        assert_eq!(producer.add(&topic.name, &[0, 7]).await, "OPERATION_NOT_ATTEMPTED");
        assert_eq!(producer.add(&topic.name, &[7]).await, "UNKNOWN_TOPIC_OR_PARTITION");
        let state = producer.describe().await;
        assert_eq!((&*state.transaction_state, state.topics.len()), ("Empty", 0));
        assert_eq!(producer.add(&topic.name, &[0, 1]).await, "NONE");
        assert_eq!(producer.add(&topic.name, &[1]).await, "NONE");
        assert_eq!(producer.describe().await.topics[0].partitions.len(), 2);
    });
}
