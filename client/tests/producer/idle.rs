//! MD-18: topics that a producer sends nothing to for a while are asked about no more, until it does again (KIP-526).

use std::time::Duration;

use krafka::Record;
use krafka::producer::{Partitioner, Partitions};
use krafka::testing::FakeCluster;
use krafka_protocol::{ApiKey, MetadataRequest};

use super::{Stage, now};

const SECOND: Duration = Duration::from_secs(1);

async fn two_topics() -> Stage {
    Stage::of(FakeCluster::builder().nodes(3).topic("orders", 1).topic("once", 1).start_on_pipes()).await
}

/// The topics that brokers were asked about since then.
fn asked_since(stage: &Stage, since: tokio::time::Instant) -> Vec<String> {
    let history = stage.fake.history();
    let requests = history.since(since.into_std()).filter_map(|event| event.request::<MetadataRequest>());
    let topics = requests.flat_map(|request| request.topics.iter().flatten());
    topics.filter_map(|topic| topic.name.as_ref().map(ToString::to_string)).collect()
}

/// Sends to "orders" for so long.
async fn send_on(producer: &krafka::Producer, duration: Duration) {
    let begin = now();
    while begin.elapsed() < duration {
        producer.send(Record::new("orders", "x")).await.expect("written");
        tokio::time::sleep(10 * SECOND).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_nothing_is_sent_to_is_asked_about_no_more() {
    let stage = two_topics().await;
    let producer = stage.producer().metadata_max_idle(1_000 * SECOND).build().await.expect("valid");
    producer.send(Record::new("once", "x")).await.expect("written");
    let early = now();
    send_on(&producer, 990 * SECOND).await;
    let kept = asked_since(&stage, early);
    tokio::time::sleep(20 * SECOND).await;
    let late = now();
    send_on(&producer, 1_800 * SECOND).await;

    let times = kept.iter().filter(|name| *name == "once").count();
    assert!((2..=4).contains(&times), "so long it is kept fresh: {kept:?}");
    let asked = asked_since(&stage, late);
    assert!(asked.len() >= 5 && asked.iter().all(|name| name == "orders"), "{asked:?}");
}

/// It waits for the metadata, not for a backoff, and finds what has changed.
#[tokio::test(start_paused = true)]
async fn a_topic_that_rested_is_sent_to_as_it_is_by_then() {
    let stage = two_topics().await;
    let producer = stage.producer().metadata_max_idle(5 * SECOND).linger(Duration::ZERO).build().await.expect("valid");
    producer.send(Record::new("once", "x").key("k")).await.expect("written");
    tokio::time::sleep(600 * SECOND).await;
    stage.fake.add_partitions("once", 50);
    let (asked, begin) = (stage.fake.history().count(ApiKey::Metadata), now());

    let first = producer.send(Record::new("once", "x").key("k")).await.expect("written");

    assert!(begin.elapsed() < Duration::from_millis(50), "{:?}", begin.elapsed());
    assert_eq!(stage.fake.history().count(ApiKey::Metadata), asked + 1);
    let second = producer.send(Record::new("once", "x").key("k")).await.expect("written");
    assert_eq!((first.partition, first.offset, second.offset), (second.partition, 0, 1), "on its key's new partition");
    assert_ne!(first.partition, 0);
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_was_made_again_while_it_rested_begins_anew() {
    let stage = two_topics().await;
    let producer = stage.build().await;
    for _ in 0..3 {
        producer.send(Record::new("once", "x")).await.expect("written");
    }
    send_on(&producer, 900 * SECOND).await;
    stage.fake.delete_topic("once");
    stage.fake.create_topic("once", 2);

    let at = producer.send(Record::new("once", "x")).await.expect("written");

    assert_eq!(at.offset, 0);
}

/// Before, in, and after the moment in which the topic is put to rest.
#[tokio::test(start_paused = true)]
async fn sending_about_the_moment_of_rest_waits_for_nothing() {
    let stage = two_topics().await;
    let producer = stage.producer().metadata_max_idle(5 * SECOND).build().await.expect("valid");
    for n in 0..40_u64 {
        let begin = now();
        let at = producer.send(Record::new("once", "x")).await.expect("written");
        assert_eq!(at.offset, n as i64);
        assert!(begin.elapsed() < Duration::from_millis(50), "{n}: {:?}", begin.elapsed());
        tokio::time::sleep(5 * SECOND - Duration::from_millis(20) + Duration::from_millis(n)).await;
    }
}

/// By the last of the partitions with a leader, and by a number of its own.
struct Last;

impl Partitioner for Last {
    fn partition(&self, record: &Record, partitions: &Partitions<'_>) -> i32 {
        match record.key_bytes() {
            Some(_) => 7,
            None => *partitions.available().last().expect("there is a leader"),
        }
    }
}

/// Nobody is asked about a topic that rests, and a partition that it has is not said to be missing.
#[tokio::test(start_paused = true)]
async fn records_for_a_topic_that_rests_are_placed_when_it_is_known_again() {
    let stage = Stage::new(8).await;
    let producer = stage.producer().metadata_max_idle(5 * SECOND).partitioner(Last).build().await.expect("valid");
    for _ in 0..3 {
        for record in
            [Record::new("orders", "x"), Record::new("orders", "x").key("k"), Record::new("orders", "x").partition(7)]
        {
            let at = producer.send(record).await.expect("it is there");
            assert_eq!(at.partition, 7);
            tokio::time::sleep(6 * SECOND).await;
        }
    }
}
