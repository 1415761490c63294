//! `poll` and `recv`: what they return, how long they take, what dropping them costs.

use std::time::Duration;

use krafka::consumer::{AutoOffsetReset, TimestampType};
use krafka::{KrafkaError, TopicPartition};
use krafka_protocol::{ApiKey, Compression};
use tokio::time::{Instant, timeout};

use super::{SOON, World, numbers, take, texts, value, values};

#[tokio::test(start_paused = true)]
async fn records_are_read_with_all_they_carry() {
    let world = World::new(&[("t", 1)]).await;
    world.produce("t", 0, &["a", "b"]).await;

    let records = take(&world.reader("t", &[0]).await, 2).await;

    let record = &records[1];
    assert_eq!((&*record.topic, record.partition, record.offset), ("t", 0, 1));
    assert_eq!((record.timestamp_ms, record.timestamp_type), (1_001, TimestampType::CreateTime));
    assert_eq!((record.key.as_deref(), record.value.as_deref()), (Some(&b"key"[..]), Some(&b"b"[..])));
    assert!(record.headers.is_empty());
    assert_eq!(record.leader_epoch, world.fake.leader_epoch("t", 0));
}

#[tokio::test(start_paused = true)]
async fn each_codec_is_read() {
    let world = World::new(&[("t", 1)]).await;
    for codec in [Compression::Gzip, Compression::Snappy, Compression::Lz4] {
        world.produce_with(codec, "t", 0, &["a", "b", "c"]).await;
    }

    let records = take(&world.reader("t", &[0]).await, 9).await;

    assert_eq!(values(&records).concat(), "abcabcabc");
    assert_eq!(records.iter().map(|record| record.offset).collect::<Vec<_>>(), (0..9).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn poll_returns_at_once_when_something_is_there() {
    let world = World::new(&[("t", 1)]).await;
    world.produce("t", 0, &["a"]).await;
    let consumer = world.reader("t", &[0]).await;
    take(&consumer, 1).await;
    world.produce("t", 0, &["b"]).await;
    tokio::time::sleep(SOON).await;

    let begin = Instant::now();
    let records = consumer.poll(Duration::from_secs(60)).await.expect("records");

    assert_eq!(values(&records), ["b"]);
    assert_eq!(begin.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn poll_without_records_takes_its_timeout() {
    let world = World::new(&[("t", 1)]).await;
    let consumer = world.reader("t", &[0]).await;

    let begin = Instant::now();
    let records = consumer.poll(Duration::from_millis(1_234)).await.expect("no error");

    assert!(records.is_empty());
    assert_eq!(begin.elapsed(), Duration::from_millis(1_234));
}

#[tokio::test(start_paused = true)]
async fn poll_keeps_its_timeout_when_a_broker_is_silent() {
    let world = World::new(&[("t", 3)]).await;
    let silent = world.fake.leader("t", 0).expect("a leader");
    world.fake.when([ApiKey::Fetch, ApiKey::ListOffsets]).on(silent).forever().silence();
    let consumer = world.reader("t", &[0]).await;

    let begin = Instant::now();
    let records = consumer.poll(Duration::from_millis(100)).await.expect("no error");

    assert!(records.is_empty());
    assert_eq!(begin.elapsed(), Duration::from_millis(100));
}

#[tokio::test(start_paused = true)]
async fn a_silent_broker_holds_up_nobody_else() {
    let world = World::new(&[("t", 3)]).await;
    let silent = world.fake.leader("t", 0).expect("a leader");
    let other = (1..3).find(|&partition| world.fake.leader("t", partition) != Some(silent)).expect("another leader");
    world.fake.when(ApiKey::Fetch).on(silent).forever().silence();
    let consumer = world.reader("t", &[0, other]).await;
    world.produce("t", other, &["a"]).await;

    let begin = Instant::now();
    let record = consumer.recv().await.expect("a record");

    assert_eq!(value(&record), "a");
    assert!(begin.elapsed() < Duration::from_millis(600), "it took {:?}", begin.elapsed());
}

/// A branch of `select!` that wins more often than a round trip takes must not starve the consumer.
#[tokio::test(start_paused = true)]
async fn a_recv_that_is_dropped_again_and_again_loses_nothing() {
    let world = World::new(&[("t", 1)]).await;
    let sent = numbers(1, 50);
    for number in &sent {
        world.produce("t", 0, &[number]).await;
    }
    world.fake.when(ApiKey::Fetch).forever().delay(Duration::from_millis(30));
    let consumer = world.reader("t", &[0]).await;

    let mut got = Vec::new();
    let begin = Instant::now();
    while got.len() < sent.len() && begin.elapsed() < SOON {
        if let Ok(record) = timeout(Duration::from_millis(10), consumer.recv()).await {
            got.push(value(&record.expect("a record")));
        }
    }

    assert_eq!(got, sent);
}

#[tokio::test(start_paused = true)]
async fn max_poll_records_slices_batches_and_positions() {
    let world = World::new(&[("t", 1)]).await;
    let sent = numbers(1, 10);
    world.produce("t", 0, &texts(&sent)).await;
    let builder = world.kafka.consumer_without_group().auto_offset_reset(AutoOffsetReset::Earliest);
    let consumer = builder.max_poll_records(3).build().await.expect("valid");
    consumer.assign("t", vec![0]).await.expect("assigned");

    let mut sizes = Vec::new();
    let mut positions = Vec::new();
    let mut got = Vec::new();
    while got.len() < 10 {
        let records = consumer.poll(SOON).await.expect("records");
        sizes.push(records.len());
        positions.push(consumer.position("t", 0).await.expect("a position"));
        got.extend(values(&records));
    }

    assert_eq!(got, sent);
    assert_eq!((sizes, positions), (vec![3, 3, 3, 1], vec![3, 6, 9, 10]));
}

#[tokio::test(start_paused = true)]
async fn partitions_take_turns() {
    let world = World::new(&[("t", 2)]).await;
    let sent = numbers(1, 20);
    for partition in 0..2 {
        world.produce("t", partition, &texts(&sent)).await;
        world.produce("t", partition, &texts(&sent)).await;
    }
    let consumer = world.reader("t", &[0, 1]).await;
    tokio::time::sleep(SOON).await;

    let records = take(&consumer, 80).await;

    for partition in 0..2 {
        let of_one: Vec<_> = records.iter().filter(|record| record.partition == partition).collect();
        assert_eq!(of_one.iter().map(|record| record.offset).collect::<Vec<_>>(), (0..40).collect::<Vec<_>>());
    }
}

#[tokio::test(start_paused = true)]
async fn wakeup_ends_one_poll_and_loses_nothing() {
    let world = World::new(&[("t", 1)]).await;
    let consumer = std::sync::Arc::new(world.reader("t", &[0]).await);
    let waiting = tokio::spawn({
        let consumer = consumer.clone();
        async move { consumer.poll(Duration::from_secs(60)).await }
    });
    tokio::time::sleep(SOON).await;

    consumer.wakeup();
    let woken = waiting.await.expect("no panic");
    world.produce("t", 0, &["a"]).await;
    consumer.wakeup();
    tokio::time::sleep(SOON).await;
    let before = consumer.poll(SOON).await;
    let after = consumer.poll(SOON).await.expect("records");

    assert!(matches!(woken, Err(KrafkaError::Wakeup)), "{woken:?}");
    assert!(matches!(before, Err(KrafkaError::Wakeup)), "{before:?}");
    assert_eq!(values(&after), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_paused_partition_keeps_what_was_fetched() {
    let world = World::new(&[("t", 1)]).await;
    world.produce("t", 0, &["a", "b"]).await;
    let consumer = world.reader("t", &[0]).await;
    let partition = [TopicPartition::new("t", 0)];
    tokio::time::sleep(SOON).await;

    consumer.pause(&partition).expect("assigned");
    let during = consumer.poll(SOON).await.expect("no error");
    let fetches = world.fake.history().count(ApiKey::Fetch);
    consumer.resume(&partition).expect("assigned");
    let after = consumer.poll(Duration::ZERO).await.expect("records");

    assert!(during.is_empty());
    assert_eq!(values(&after), ["a", "b"]);
    assert_eq!(world.fake.history().count(ApiKey::Fetch), fetches, "nothing was fetched again");
}

#[tokio::test(start_paused = true)]
async fn a_closed_consumer_says_so() {
    let world = World::new(&[("t", 1)]).await;
    let consumer = world.reader("t", &[0]).await;

    consumer.close().await.expect("closed");
    let second = consumer.close().await;

    assert!(second.is_ok());
    assert!(matches!(consumer.poll(SOON).await, Err(KrafkaError::Closed { .. })));
    assert!(matches!(consumer.seek("t", 0, 1).await, Err(KrafkaError::Closed { .. })));
    assert!(matches!(consumer.assign("t", vec![0]).await, Err(KrafkaError::Closed { .. })));
}

#[tokio::test(start_paused = true)]
async fn closing_ends_a_poll_that_waits() {
    let world = World::new(&[("t", 1)]).await;
    let consumer = std::sync::Arc::new(world.reader("t", &[0]).await);
    let waiting = tokio::spawn({
        let consumer = consumer.clone();
        async move { consumer.recv().await }
    });
    tokio::time::sleep(SOON).await;

    let begin = Instant::now();
    consumer.close().await.expect("closed");

    assert!(matches!(waiting.await.expect("no panic"), Err(KrafkaError::Closed { .. })));
    assert!(begin.elapsed() < Duration::from_secs(1), "closing took {:?}", begin.elapsed());
}
