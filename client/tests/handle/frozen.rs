//! MD-10, LE-21: brokers that do not hear any more how the cluster changes, and a client that nobody can tell where to
//! go. It asks on at its pace, its calls come back in time, and it works as soon as somebody knows.

use std::time::Duration;

use krafka::consumer::{AutoOffsetReset, Consumer, OffsetAndMetadata};
use krafka::testing::FakeCluster;
use krafka::{ErrorCode, Kafka, TopicPartition};
use krafka_protocol::{AnyResponse, ApiKey};
use tokio::time::{Instant, timeout};

use super::client;

const SECOND: Duration = Duration::from_secs(1);

fn cluster() -> FakeCluster {
    let builder = FakeCluster::builder().nodes(3).topic("orders", 1);
    builder.group_initial_rebalance_delay(Duration::ZERO).fresh_coordinators(true).start_on_pipes()
}

fn freeze(fake: &FakeCluster) {
    fake.nodes().into_iter().for_each(|node| fake.freeze_metadata(node));
}

fn thaw(fake: &FakeCluster) {
    fake.nodes().into_iter().for_each(|node| fake.thaw_metadata(node));
}

/// A broker that does not know where coordinators live has the controller make their topic, and tells nobody of one
/// that it does not see. Told of one that no other broker knows, a client would go to and fro for ever.
#[tokio::test(start_paused = true)]
async fn a_coordinator_that_nobody_knows_is_asked_for_until_somebody_does() {
    let fake = cluster();
    let kafka = client(&fake).connect().await.expect("the fake is up");
    freeze(&fake);
    let consumer = kafka.consumer("g").build().await.expect("valid");
    consumer.subscribe(&["orders"]).await.expect("it waits for nobody");
    let start = Instant::now();

    let records = timeout(61 * SECOND, consumer.poll(60 * SECOND)).await.expect("in time").expect("no error");

    assert!(records.is_empty() && consumer.assignment().is_empty());
    assert_eq!(start.elapsed(), 60 * SECOND);
    let asked = fake.history().count(ApiKey::FindCoordinator);
    assert!((30..=120).contains(&asked), "{asked} requests in a minute");
    assert_eq!(fake.history().count(ApiKey::JoinGroup), 0);
    for event in fake.history().of(ApiKey::FindCoordinator) {
        let Some(AnyResponse::FindCoordinator(answer)) = event.response.as_deref() else { panic!("{event:?}") };
        assert_eq!(answer.coordinators[0].error_code, ErrorCode::COORDINATOR_NOT_AVAILABLE.0);
    }

    thaw(&fake);
    let (start, asked) = (Instant::now(), fake.history().count(ApiKey::FindCoordinator));
    while consumer.assignment().is_empty() && start.elapsed() < 10 * SECOND {
        consumer.poll(SECOND).await.expect("no error");
    }
    assert_eq!(consumer.assignment().len(), 1);
    // The topic is there: the first who is asked knows.
    assert_eq!(fake.history().count(ApiKey::FindCoordinator), asked + 1);
}

/// A group has committed with the epoch of a leader that no broker tells of. Its predecessor does not know that epoch:
/// it is not asked, as what it says would send the reader to its reset policy.
#[tokio::test(start_paused = true)]
async fn a_commit_that_is_newer_than_all_metadata_is_where_reading_begins() {
    let fake = cluster();
    // The one hears of the new leader where it reads, which the other must not.
    let kafka = client(&fake).connect().await.expect("the fake is up");
    let elsewhere = client(&fake).connect().await.expect("the fake is up");
    for value in ["a", "b", "c"] {
        fake.append("orders", 0, None, Some(value.as_bytes()));
    }
    let committer = member(&elsewhere).await;
    let former = fake.leader("orders", 0).expect("led");
    freeze(&fake);
    fake.move_leader("orders", 0, former % 3 + 1);
    let offset = OffsetAndMetadata::new(2).leader_epoch(fake.leader_epoch("orders", 0).expect("an epoch"));
    committer.commit_offsets([(TopicPartition::new("orders", 0), offset)]).await.expect("committed");
    committer.close().await.expect("closed");
    let unaware = fake.when(ApiKey::OffsetForLeaderEpoch).on(former).forever().edit(|response| {
        let AnyResponse::OffsetForLeaderEpoch(answer) = response else { return };
        for partition in answer.topics.iter_mut().flat_map(|topic| &mut topic.partitions) {
            (partition.error_code, partition.leader_epoch, partition.end_offset) = (0, -1, -1);
        }
    });

    let consumer = member(&kafka).await;
    let early = consumer.poll(10 * SECOND).await.expect("no error");
    thaw(&fake);
    let records = consumer.poll(10 * SECOND).await.expect("no error");

    let values: Vec<_> = records.iter().map(|record| record.value.as_deref().expect("a value")).collect();
    assert_eq!((early.len(), values), (0, vec![b"c".as_slice()]));
    assert_eq!(unaware.hits(), 0);
}

/// A member of the group that has its partition.
async fn member(kafka: &Kafka) -> Consumer {
    let consumer = kafka.consumer("g").auto_offset_reset(AutoOffsetReset::Latest).auto_commit(false);
    let consumer = consumer.build().await.expect("valid");
    consumer.subscribe(&["orders"]).await.expect("subscribed");
    let start = Instant::now();
    while consumer.assignment().is_empty() {
        consumer.poll(SECOND).await.expect("no error");
        assert!(start.elapsed() < 30 * SECOND, "it gets no partition");
    }
    consumer
}
