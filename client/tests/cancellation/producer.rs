//! Calls of a producer. A record whose call was dropped is in the log once or not at all, as the call's documentation
//! says; what is sent afterwards is there once, and behind it.

use krafka::{Producer, Record};

use super::{World, at_each_poll};

async fn producer(world: &World) -> Producer {
    world.kafka.producer().build().await.expect("valid")
}

fn record(value: &'static str) -> Record {
    Record::new("orders", value).partition(0)
}

/// How often each of these values is in partition 0, in the order of the log, without those from before.
fn written(world: &World) -> Vec<String> {
    let records = world.fake.partition_records("orders", 0);
    let value = |value: &[u8]| String::from_utf8(value.to_vec()).expect("text");
    records.iter().skip(3).map(|record| value(record.value.as_deref().expect("a value"))).collect()
}

async fn goes_on(world: &World, producer: &Producer) {
    producer.send(record("after")).await.expect("it is written");
    producer.flush().await.expect("nothing is left");
    let written = written(world);
    assert!(written == ["after"] || written == ["first", "after"], "{written:?}");
}

#[tokio::test(start_paused = true)]
async fn sending() {
    let send = async |producer: &Producer| {
        producer.send(record("first")).await.expect("it is written");
    };

    assert!(at_each_poll(producer, send, goes_on).await > 1, "metadata and an acknowledgement are waited for");
}

#[tokio::test(start_paused = true)]
async fn enqueueing_and_waiting_for_the_delivery() {
    let enqueue = async |producer: &Producer| {
        let handle = producer.enqueue(record("first")).await.expect("there is room");
        assert_eq!(handle.await.expect("it is written").offset, 3);
    };

    assert!(at_each_poll(producer, enqueue, goes_on).await > 1);
}

#[tokio::test(start_paused = true)]
async fn flushing() {
    let prepare = async |world: &World| {
        let producer = producer(world).await;
        drop(producer.enqueue(record("first")).await.expect("there is room"));
        producer
    };
    let flush = async |producer: &Producer| producer.flush().await.expect("it is written");
    let check = async |world: &World, producer: &Producer| {
        goes_on(world, producer).await;
        assert_eq!(written(world), ["first", "after"], "what was enqueued is sent, whoever waits");
    };

    assert!(at_each_poll(prepare, flush, check).await > 0);
}

#[tokio::test(start_paused = true)]
async fn closing() {
    let prepare = async |world: &World| {
        let producer = producer(world).await;
        drop(producer.enqueue(record("first")).await.expect("there is room"));
        producer
    };
    let close = async |producer: &Producer| producer.close().await.expect("all is written");
    let check = async |world: &World, producer: &Producer| {
        close(producer).await;
        assert_eq!(written(world), ["first"]);
    };

    assert!(at_each_poll(prepare, close, check).await > 0);
}
