//! What a caller waits for before a record is queued, and what it is told at once.

use std::time::Duration;

use krafka::testing::FakeCluster;
use krafka::{Environment, Kafka, KrafkaError, Record};
use krafka_protocol::ApiKey;

use super::{Stage, cut, enqueue, ms, now, numbers, offsets};

#[tokio::test(start_paused = true)]
async fn a_record_that_is_too_large_is_refused_by_size_limit_and_setting() {
    let stage = Stage::new(1).await;
    let producer = stage.producer().max_request_size(10_000).build().await.expect("valid");

    let error = producer.enqueue(Record::new("orders", vec![0; 10_000])).await.expect_err("too large");

    let message = error.to_string();
    assert!(matches!(error, KrafkaError::Config { .. }));
    assert!(message.contains("10000 bytes") && message.contains("max_request_size"), "{message}");
    assert_eq!(producer.buffer_available(), 32 * 1024 * 1024);
    producer.send(Record::new("orders", vec![0; 9_800])).await.expect("the producer goes on");
}

/// A record beyond the batch size goes alone.
#[tokio::test(start_paused = true)]
async fn a_large_record_makes_a_batch_of_its_own() {
    let stage = Stage::new(1).await;
    let producer = stage.producer().batch_size(1_000).build().await.expect("valid");
    let small = producer.enqueue(Record::new("orders", "small")).await.expect("there is room");

    let large = producer.enqueue(Record::new("orders", vec![b'x'; 500_000])).await.expect("there is room");

    assert_eq!((small.await.expect("written").offset, large.await.expect("written").offset), (0, 1));
    assert_eq!(producer.metrics().batches, 2);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_topic_is_an_error_at_the_deadline() {
    let stage = Stage::new(1).await;
    let producer = stage.producer().max_block(Duration::from_secs(5)).build().await.expect("valid");
    let start = now();

    let error = producer.send(Record::new("nowhere", "x")).await.expect_err("no such topic");

    assert!(matches!(&error, KrafkaError::UnknownTopic { topic } if &**topic == "nowhere"), "{error}");
    assert!((ms(5_000)..ms(5_100)).contains(&start.elapsed()), "{:?}", start.elapsed());
    assert!(
        stage.fake.history().count(ApiKey::Metadata) < 30,
        "it asked {} times",
        stage.fake.history().count(ApiKey::Metadata)
    );
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_appears_in_time_is_written_to() {
    let stage = Stage::new(1).await;
    let producer = stage.build().await;
    let sending = tokio::spawn(async move { producer.send(Record::new("late", "x")).await });
    tokio::time::sleep(Duration::from_secs(3)).await;

    stage.fake.create_topic("late", 2);

    assert_eq!(sending.await.expect("no panic").expect("written").offset, 0);
}

#[tokio::test(start_paused = true)]
async fn an_impossible_name_is_refused_at_once() {
    let stage = Stage::new(1).await;
    let producer = stage.build().await;
    let start = now();

    for name in ["", ".", "..", "a b", "ä", &"x".repeat(250)] {
        let error = producer.send(Record::new(name, "x")).await.expect_err("no such name");
        assert!(matches!(error, KrafkaError::Config { .. }), "{name}: {error}");
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_negative_timestamp_is_refused_at_once() {
    let stage = Stage::new(1).await;
    let producer = stage.build().await;

    for timestamp in [-1, i64::MIN] {
        let record = Record::new("t", "x").timestamp_ms(timestamp);
        let error = producer.send(record).await.expect_err("Kafka takes it for no timestamp");
        assert!(error.to_string().contains(&format!("timestamp {timestamp}: it must not be negative")), "{error}");
    }
}

/// Trap 33.
#[tokio::test(start_paused = true)]
async fn a_partition_that_does_not_exist_is_refused_after_one_look() {
    let stage = Stage::new(2).await;
    let producer = stage.build().await;
    producer.send(Record::new("orders", "x").partition(1)).await.expect("written");
    let asked = stage.fake.history().count(ApiKey::Metadata);

    let error = producer.send(Record::new("orders", "x").partition(2)).await.expect_err("there are two");

    assert!(error.to_string().contains("no partition 2"), "{error}");
    assert_eq!(stage.fake.history().count(ApiKey::Metadata), asked + 1);
    let error = producer.send(Record::new("orders", "x").partition(-1)).await.expect_err("there are two");
    assert!(error.to_string().contains("no partition -1"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_partition_that_was_added_is_found() {
    let stage = Stage::new(2).await;
    let producer = stage.build().await;
    producer.send(Record::new("orders", "x").partition(1)).await.expect("written");

    stage.fake.add_partitions("orders", 5);

    assert_eq!(producer.send(Record::new("orders", "x").partition(4)).await.expect("written").partition, 4);
}

#[tokio::test(start_paused = true)]
async fn a_topic_is_created_where_both_sides_allow_it() {
    let fake = FakeCluster::builder().nodes(3).auto_create_topics(true).start_on_pipes();
    let environment = Environment::new(fake.pipes(), 7);
    let kafka = Kafka::builder(fake.bootstrap()).environment(environment).allow_auto_create_topics(true);
    let producer = kafka.connect().await.expect("up").producer().build().await.expect("valid");

    producer.send(Record::new("fresh", "x")).await.expect("written");

    assert_eq!(fake.topics(), ["fresh"]);
}

/// PR-17.
#[tokio::test(start_paused = true)]
async fn without_memory_senders_wait_and_then_fail_by_name() {
    let stage = Stage::new(1).await;
    let builder = stage.producer().batch_size(1_000).buffer_memory(20_000).max_block(Duration::from_secs(2));
    let producer = builder.build().await.expect("valid");
    let total = producer.buffer_available();
    let silent = stage.fake.when(ApiKey::Produce).forever().delay(Duration::from_secs(5));

    let start = now();
    let mut handles = Vec::new();
    let error = loop {
        match producer.enqueue(Record::new("orders", vec![b'x'; 700])).await {
            Ok(handle) => handles.push(handle),
            Err(error) => break error,
        }
    };

    assert!((8..25).contains(&handles.len()), "{} records of 0.7 kB fit into 20 kB", handles.len());
    assert!((ms(2_000)..ms(2_100)).contains(&start.elapsed()));
    assert!(error.to_string().contains("buffer_memory") && error.to_string().contains("max_block"), "{error}");
    silent.remove();
    let expected: Vec<_> = (0..handles.len() as i64).collect();
    assert_eq!(offsets(handles).await, expected);
    producer.flush().await.expect("flushed");
    assert_eq!(producer.buffer_available(), total);
}

#[tokio::test(start_paused = true)]
async fn memory_that_comes_free_lets_senders_go_on() {
    let stage = Stage::new(1).await;
    let producer = stage.producer().batch_size(1_000).buffer_memory(5_000).build().await.expect("valid");

    let handles = enqueue(&producer, 3_000).await;

    assert_eq!(offsets(handles).await, (0..3_000).collect::<Vec<_>>());
    assert_eq!(stage.values(0), numbers(3_000));
}

/// A batch that lingers would hold the memory that somebody waits for.
#[tokio::test(start_paused = true)]
async fn waiting_for_memory_ends_the_linger_of_everything() {
    let stage = Stage::new(3).await;
    let linger = Duration::from_secs(60);
    let builder = stage.producer().linger(linger).batch_size(4_000).buffer_memory(6_000);
    let producer = builder.build().await.expect("valid");
    let start = now();

    for n in 0..200 {
        let record = Record::new("orders", vec![b'x'; 300]).partition(n % 3);
        drop(producer.enqueue(record).await.expect("there is room again and again"));
    }
    producer.flush().await.expect("flushed");

    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
}

/// BR-051.
#[tokio::test(start_paused = true)]
async fn senders_that_give_up_waiting_leave_no_trace() {
    let stage = Stage::new(1).await;
    let producer = stage.producer().batch_size(1_000).buffer_memory(4_000).build().await.expect("valid");
    let total = producer.buffer_available();
    producer.send(Record::new("orders", "warm")).await.expect("written");
    stage.fake.when(ApiKey::Produce).delay(Duration::from_secs(3));
    let mut held = Vec::new();
    while let Some(handle) = cut(producer.enqueue(Record::new("orders", vec![b'x'; 900])), 1).await {
        held.push(handle.expect("there was room"));
    }
    let waiting: Vec<_> = (0..100)
        .map(|n| {
            let producer = producer.clone();
            tokio::spawn(async move {
                let wait = if n % 2 == 0 { ms(500) } else { Duration::from_secs(30) };
                let sending = producer.send(Record::new("orders", vec![b'y'; 900]));
                tokio::time::timeout(wait, sending).await.is_ok()
            })
        })
        .collect();

    let mut sent = 0;
    for task in waiting {
        sent += usize::from(task.await.expect("no panic"));
    }

    assert_eq!(sent, 50);
    producer.flush().await.expect("flushed");
    assert_eq!(stage.fake.partition_records("orders", 0).len(), 1 + held.len() + 50);
    assert_eq!(producer.buffer_available(), total);
}

/// LC-01: wherever the future is dropped, the record is either sent or not, and nothing is leaked.
#[tokio::test(start_paused = true)]
async fn enqueue_may_be_dropped_at_any_point() {
    for polls in 1..12 {
        let stage = Stage::new(1).await;
        let producer = stage.producer().batch_size(1_000).buffer_memory(2_000).build().await.expect("valid");
        let total = producer.buffer_available();
        let mut accepted = 0;

        for _ in 0..10 {
            accepted +=
                usize::from(cut(producer.enqueue(Record::new("orders", vec![b'x'; 900])), polls).await.is_some());
        }
        producer.flush().await.expect("flushed");

        assert_eq!(stage.fake.partition_records("orders", 0).len(), accepted, "after {polls} polls");
        assert_eq!(producer.buffer_available(), total);
        producer.send(Record::new("orders", "still alive")).await.expect("written");
    }
}
