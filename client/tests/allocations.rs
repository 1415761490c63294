//! What the hot paths allocate per record: nothing, with all that is counted on the way.
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
