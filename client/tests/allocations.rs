//! What the hot paths allocate per record: nothing, with all that is counted on the way. And what the metadata of a
//! large cluster takes.
//!
//! Only what the calling thread does is measured, while it does it: batches and answers are the business of other
//! tasks, and cost a few allocations for many records.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use krafka::consumer::AutoOffsetReset;
use krafka::testing::{Clients, FakeCluster};
use krafka::{DeliveryHandle, Record};
use krafka_protocol::api::metadata::{MetadataResponsePartition, MetadataResponseTopic};
use krafka_protocol::{AnyResponse, ApiKey};

const RECORDS: usize = 1_000;

/// The output of a future that need not wait.
fn ready<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it has to wait"),
    }
}

fn cluster() -> FakeCluster {
    FakeCluster::builder().nodes(1).topic("orders", 1).start_on_pipes()
}

#[tokio::test(start_paused = true)]
async fn to_enqueue_a_record_allocates_nothing_of_its_own() {
    let fake = cluster();
    let kafka = fake.client().connect().await.expect("it is up");
    let builder = kafka.producer().batch_size(1 << 20).linger(Duration::from_secs(60));
    let producer = builder.build().await.expect("valid");
    let records: Vec<Record> = (0..RECORDS).map(|_| Record::new("orders", &b"tea"[..]).key(&b"table 4"[..])).collect();
    let mut handles: Vec<DeliveryHandle> = Vec::with_capacity(RECORDS + 1);
    // The topic is loaded, and the batch opened.
    handles.push(producer.enqueue(Record::new("orders", "first")).await.expect("there is room"));

    let counted = allocation_counter::measure(|| {
        for record in records {
            handles.push(ready(producer.enqueue(record)).expect("there is room"));
        }
    });

    // The buffer of a batch doubles as it grows, up to its size.
    assert!(counted.count_total <= 10, "{} for {RECORDS} records", counted.count_total);
    producer.close().await.expect("all are written");
    assert_eq!(kafka.metrics().producers.records_acknowledged, RECORDS as u64 + 1);
}

#[tokio::test(start_paused = true)]
async fn to_receive_a_record_allocates_nothing() {
    let fake = cluster();
    let kafka = fake.client().connect().await.expect("it is up");
    let producer = kafka.producer().linger(Duration::from_millis(5)).build().await.expect("valid");
    for _ in 0..=RECORDS {
        drop(producer.enqueue(Record::new("orders", "tea").key("table 4")).await.expect("there is room"));
    }
    producer.flush().await.expect("all are written");
    let consumer = kafka.consumer_without_group().auto_offset_reset(AutoOffsetReset::Earliest);
    let consumer = consumer.build().await.expect("valid");
    consumer.assign("orders", vec![0]).await.expect("the topic exists");
    // All are fetched, and what is made once is made.
    consumer.recv().await.expect("they were written");
    tokio::time::sleep(Duration::from_secs(5)).await;

    let counted = allocation_counter::measure(|| {
        for _ in 0..RECORDS {
            ready(consumer.recv()).expect("it has come");
        }
    });

    assert_eq!(counted.count_total, 0);
    assert_eq!(kafka.metrics().consumers.records, RECORDS as u64 + 1);
}

/// A user who keeps a record keeps the answer that it came in, and no more: not the buffer of 64 KiB that the
/// connection reads many small answers into.
#[test]
fn a_record_that_is_kept_does_not_pin_a_read_buffer() {
    const KEPT: usize = 200;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let runtime = runtime.expect("a runtime can be built");
    let (fake, consumer) = runtime.block_on(async {
        let fake = cluster();
        let kafka = fake.client().connect().await.expect("it is up");
        let consumer = kafka.consumer_without_group().auto_offset_reset(AutoOffsetReset::Earliest);
        let consumer = consumer.build().await.expect("valid");
        consumer.assign("orders", vec![0]).await.expect("the topic exists");
        (fake, consumer)
    });
    let mut kept = Vec::with_capacity(KEPT);

    let counted = allocation_counter::measure(|| {
        runtime.block_on(async {
            for _ in 0..KEPT {
                fake.append("orders", 0, None, Some(b"tea"));
                kept.push(consumer.recv().await.expect("it was written"));
            }
        });
    });

    assert!(kept.iter().all(|record| record.value.as_deref() == Some(b"tea")));
    // What the fake keeps of each record, and of each request in its history, is in it, too.
    let each = counted.bytes_current / KEPT as i64;
    assert!(each < 8 << 10, "{each} bytes are kept for each record");
}

/// MD-25: ten thousand topics of ten partitions, whose answer has some megabytes, are listed in a small multiple of
/// that; and a member of a group on another connection goes on beating.
#[test]
fn a_large_cluster_is_listed_in_bounded_memory() {
    const TOPICS: usize = 10_000;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let runtime = runtime.expect("a runtime can be built");
    let (fake, kafka, consumer) = runtime.block_on(async {
        let fake = cluster();
        let kafka = fake.client().connect().await.expect("it is up");
        let consumer = kafka.consumer("readers").build().await.expect("valid");
        consumer.subscribe(&["orders"]).await.expect("a topic's name");
        consumer.poll(Duration::from_secs(10)).await.expect("nothing yet");
        fake.when(ApiKey::Metadata).times(1).edit(|response| {
            let AnyResponse::Metadata(metadata) = response else { return };
            let partition = |partition_index| MetadataResponsePartition {
                partition_index,
                leader_id: 1,
                leader_epoch: 7,
                replica_nodes: [1, 2, 3].into_iter().collect(),
                isr_nodes: [1, 2, 3].into_iter().collect(),
                ..MetadataResponsePartition::default()
            };
            let topic = |number| MetadataResponseTopic {
                name: Some(format!("topic-{number}").into()),
                partitions: (0..10).map(partition).collect(),
                ..MetadataResponseTopic::default()
            };
            metadata.topics = (0..TOPICS).map(topic).collect();
        });
        (fake, kafka, consumer)
    });
    let (mut listed, joins) = (Vec::new(), fake.history().count(ApiKey::JoinGroup));

    let counted = allocation_counter::measure(|| {
        runtime.block_on(async { listed = kafka.admin().list_topics().await.expect("it is answered") });
    });
    runtime.block_on(async { tokio::time::sleep(Duration::from_secs(60)).await });

    assert!(listed.len() == TOPICS && listed.iter().all(|topic| topic.partitions.len() == 10));
    assert!(counted.bytes_max < 100 << 20, "{} bytes at a time, the fake's own among them", counted.bytes_max);
    assert_eq!(fake.history().count(ApiKey::JoinGroup), joins, "the member was not thrown out");
    assert!(fake.history().count(ApiKey::Heartbeat) > 15);
    drop(consumer);
}

/// How many allocations it takes a member to begin to read so many topics.
fn allocations_to_begin(topics: usize) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let runtime = runtime.expect("a runtime can be built");
    let names: Vec<String> = (0..topics).map(|number| format!("topic-{number}")).collect();
    let (_fake, consumer) = runtime.block_on(async {
        let builder = FakeCluster::builder().nodes(1).group_initial_rebalance_delay(Duration::ZERO);
        let fake = names.iter().fold(builder, |builder, name| builder.topic(name.as_str(), 1)).start_on_pipes();
        let kafka = fake.client().connect().await.expect("it is up");
        let consumer = kafka.consumer("readers").build().await.expect("valid");
        consumer.subscribe(&names).await.expect("names of topics");
        (fake, consumer)
    });
    let counted = allocation_counter::measure(|| {
        runtime.block_on(async { consumer.poll(Duration::from_secs(10)).await.expect("nothing yet") });
    });
    assert_eq!(consumer.assignment().len(), topics);
    counted.count_total
}

/// MD-25: what an answer says of each of many partitions is taken in before all are looked at anew. One look for each
/// would make the work grow with the square, and a member of thousands of topics would miss its heartbeats.
#[test]
fn the_work_of_a_member_grows_with_its_partitions() {
    let (few, many) = (allocations_to_begin(100), allocations_to_begin(400));

    assert!(many < 5 * few, "{few} allocations for 100 topics, {many} for 400");
}
