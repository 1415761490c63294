//! Nothing goes wrong.

use std::time::Duration;

use krafka::producer::{Acks, Partitioner, Partitions, murmur2};
use krafka::testing::FakeCluster;
use krafka::{Compression, KrafkaError, Record};
use krafka_protocol::{ApiKey, ProduceRequest};

use super::{Stage, enqueue, ms, now, numbers, offsets};

#[tokio::test(start_paused = true)]
async fn a_record_is_written_where_its_metadata_says() {
    let stage = Stage::new(3).await;
    let producer = stage.build().await;

    let metadata = producer.send(Record::new("orders", "42 apples").key("foobar")).await.expect("written");

    let records = stage.fake.partition_records("orders", metadata.partition);
    assert_eq!((&*metadata.topic, metadata.offset), ("orders", 0));
    assert_eq!(metadata.partition, (murmur2(b"foobar") & 0x7fff_ffff).cast_signed() % 3);
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].value.as_deref(), Some(&b"42 apples"[..]));
    assert_eq!(records[0].timestamp, metadata.timestamp_ms);
}

/// Traps 34 to 36: what was given arrives, null stays null, and empty stays empty.
#[tokio::test(start_paused = true)]
async fn everything_in_a_record_arrives_as_it_was_given() {
    let stage = Stage::new(1).await;
    let producer = stage.build().await;
    let full = Record::new("orders", "").key("").header("a", "1").header("a", "").null_header("b").timestamp_ms(4_711);

    let written = producer.send(full).await.expect("written");
    producer.send(Record::tombstone("orders", "k")).await.expect("written");

    let records = stage.fake.partition_records("orders", 0);
    assert_eq!(written.timestamp_ms, 4_711);
    assert_eq!((records[0].timestamp, records[0].key.as_deref()), (4_711, Some(&b""[..])));
    assert_eq!(records[0].value.as_deref(), Some(&b""[..]));
    let headers: Vec<_> = records[0].headers.iter().map(|header| (header.name().into_owned(), header.value)).collect();
    let expected = [("a", Some(&b"1"[..])), ("a", Some(&b""[..])), ("b", None)];
    assert_eq!(headers, expected.map(|(name, value)| (name.to_owned(), value)));
    assert_eq!((records[1].key.as_deref(), records[1].value.as_deref()), (Some(&b"k"[..]), None));
}

#[tokio::test(start_paused = true)]
async fn records_of_one_task_keep_their_order_over_many_batches() {
    let stage = Stage::new(1).await;
    let producer = stage.producer().batch_size(500).build().await.expect("valid");

    let handles = enqueue(&producer, 2_000).await;

    assert_eq!(offsets(handles).await, (0..2_000).collect::<Vec<_>>());
    assert_eq!(stage.values(0), numbers(2_000));
}

/// BR-042: the fake checks sequences as Kafka does.
#[tokio::test(start_paused = true)]
async fn tasks_that_send_at_once_each_keep_their_order() {
    let stage = Stage::new(3).await;
    let producer = stage.producer().batch_size(700).build().await.expect("valid");
    let tasks: Vec<_> = (0..20)
        .map(|task| {
            let producer = producer.clone();
            tokio::spawn(async move {
                for n in 0..100 {
                    let record = Record::new("orders", format!("{task} {n}")).key(format!("{task}"));
                    drop(producer.enqueue(record).await.expect("there is room"));
                    if n % 7 == task % 7 {
                        tokio::task::yield_now().await;
                    }
                }
            })
        })
        .collect();

    for task in tasks {
        task.await.expect("no panic");
    }
    producer.flush().await.expect("flushed");

    let all: Vec<_> = (0..3).flat_map(|partition| stage.values(partition)).collect();
    assert_eq!(all.len(), 2_000);
    for task in 0..20 {
        let prefix = format!("{task} ");
        let mine: Vec<_> = all.iter().filter(|value| value.starts_with(&prefix)).cloned().collect();
        assert_eq!(mine, (0..100).map(|n| format!("{task} {n}")).collect::<Vec<_>>());
    }
    assert_eq!(producer.metrics().retries, 0);
}

#[tokio::test(start_paused = true)]
async fn keyless_records_fill_a_batch_before_they_go_elsewhere() {
    let stage = Stage::new(3).await;
    let producer = stage.producer().batch_size(4_096).build().await.expect("valid");

    for _ in 0..600 {
        drop(producer.enqueue(Record::new("orders", vec![b'x'; 90])).await.expect("there is room"));
    }
    producer.flush().await.expect("flushed");

    let counts: Vec<_> = (0..3).map(|partition| stage.fake.partition_records("orders", partition).len()).collect();
    let batches = producer.metrics().batches;
    assert!(counts.iter().all(|count| *count > 100), "{counts:?}");
    assert!((15..=18).contains(&batches), "600 × 100 bytes in batches of 4 KiB, but {batches} batches");
}

/// PR-01.
#[tokio::test(start_paused = true)]
async fn every_codec_arrives() {
    for codec in [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4] {
        let stage = Stage::new(1).await;
        let producer = stage.producer().compression(codec).batch_size(2_000).build().await.expect("valid");

        let handles = enqueue(&producer, 1_000).await;

        assert_eq!(offsets(handles).await.last(), Some(&999), "{codec}");
        assert_eq!(stage.values(0), numbers(1_000), "{codec}");
    }
}

/// PR-26.
#[tokio::test(start_paused = true)]
async fn without_acks_a_record_counts_as_written_when_it_is_sent() {
    let stage = Stage::new(1).await;
    let producer = stage.producer().acks(Acks::None).batch_size(100).build().await.expect("valid");

    let handles = enqueue(&producer, 100).await;

    assert!(offsets(handles).await.iter().all(|offset| *offset == -1));
    tokio::time::sleep(ms(1)).await;
    assert_eq!(stage.values(0), numbers(100));
    assert_eq!(stage.fake.history().count(ApiKey::InitProducerId), 0);
}

#[tokio::test(start_paused = true)]
async fn with_acks_of_the_leader_only_batches_go_one_by_one() {
    let stage = Stage::new(1).await;
    let producer = stage.producer().acks(Acks::Leader).batch_size(100).build().await.expect("valid");

    let handles = enqueue(&producer, 100).await;

    assert_eq!(offsets(handles).await.last(), Some(&99));
    assert_eq!(stage.values(0), numbers(100));
    assert!(stage.fake.history().requests::<ProduceRequest>().all(|request| request.acks == 1));
}

/// BR-048.
#[tokio::test(start_paused = true)]
async fn a_batch_size_of_zero_sends_each_record_alone() {
    let stage = Stage::new(3).await;
    let producer = stage.build_single().await;

    for _ in 0..100 {
        producer.send(Record::new("orders", "x")).await.expect("written");
    }

    assert_eq!(producer.metrics().batches, 100);
}

struct Always(i32);

impl Partitioner for Always {
    fn partition(&self, record: &Record, partitions: &Partitions<'_>) -> i32 {
        assert_eq!((record.topic(), partitions.count(), partitions.available()), ("orders", 3, &[0, 1, 2][..]));
        self.0
    }
}

/// PR-27, BR-049.
#[tokio::test(start_paused = true)]
async fn a_partitioner_is_asked_and_checked() {
    let stage = Stage::new(3).await;
    let producer = stage.producer().partitioner(Always(2)).build().await.expect("valid");
    let metadata = producer.send(Record::new("orders", "x").key("k")).await.expect("written");
    assert_eq!(metadata.partition, 2);

    for wrong in [-1, 3, i32::MIN] {
        let producer = stage.producer().partitioner(Always(wrong)).build().await.expect("valid");
        let error = producer.send(Record::new("orders", "x")).await.expect_err("no such partition");
        assert!(matches!(error, KrafkaError::Config { .. }), "{error}");
        assert!(error.to_string().contains(&wrong.to_string()), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_lingers_and_then_goes() {
    let stage = Stage::new(1).await;
    let producer = stage.producer().linger(Duration::from_secs(3)).build().await.expect("valid");
    producer.send(Record::new("orders", "warm")).await.expect("written");
    let start = now();

    let first = producer.enqueue(Record::new("orders", "a")).await.expect("there is room");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let second = producer.enqueue(Record::new("orders", "b")).await.expect("there is room");

    assert_eq!((first.await.expect("written").offset, second.await.expect("written").offset), (1, 2));
    assert!((ms(3_000)..ms(3_050)).contains(&start.elapsed()), "{:?}", start.elapsed());
    assert_eq!(producer.metrics().batches, 2);
}

/// Versions 13 and up name topics by id, older ones by name.
#[tokio::test(start_paused = true)]
async fn old_and_new_brokers_are_written_to() {
    use krafka::testing::KafkaVersion;
    for version in [KafkaVersion::V3_9, KafkaVersion::V4_4] {
        let fake = FakeCluster::builder().nodes(3).topic("orders", 1).as_version(version).start_on_pipes();
        let stage = Stage::of(fake).await;

        let handles = enqueue(&stage.build().await, 10).await;

        assert_eq!(offsets(handles).await.len(), 10);
        assert_eq!(stage.values(0), numbers(10));
    }
}
