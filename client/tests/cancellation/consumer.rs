//! Calls of a consumer. No record is lost with a dropped call, and none comes twice.

use std::collections::BTreeSet;
use std::time::Duration;

use krafka::TopicPartition;
use krafka::consumer::{AutoOffsetReset, Consumer, ConsumerRecord};

use super::{World, at_each_poll};

const SOON: Duration = Duration::from_secs(20);

/// A member of a group that reads from the start, and commits when it is told.
async fn member(world: &World) -> Consumer {
    let builder = world.kafka.consumer("g").auto_offset_reset(AutoOffsetReset::Earliest);
    let consumer = builder.auto_commit(false).build().await.expect("valid");
    consumer.subscribe(&["orders"]).await.expect("it does not wait");
    consumer
}

/// One that reads what it was told to, and has the group's offsets.
async fn reader(world: &World) -> Consumer {
    let builder = world.kafka.consumer("g").auto_offset_reset(AutoOffsetReset::Earliest);
    let consumer = builder.auto_commit(false).build().await.expect("valid");
    consumer.assign("orders", vec![0, 1]).await.expect("it exists");
    consumer
}

fn value(record: &ConsumerRecord) -> String {
    String::from_utf8(record.value.as_deref().expect("a value").to_vec()).expect("text")
}

/// Reads six records, and no more.
async fn all_of_them(consumer: &Consumer) {
    let mut read = Vec::new();
    while read.len() < 6 {
        let records = consumer.poll(SOON).await.expect("no error");
        assert!(!records.is_empty(), "only {read:?}");
        read.extend(records.iter().map(value));
    }
    let distinct: BTreeSet<_> = read.iter().collect();
    assert_eq!((read.len(), distinct.len()), (6, 6), "{read:?}");
    assert!(consumer.poll(Duration::from_secs(1)).await.expect("no error").is_empty(), "there were six");
}

#[tokio::test(start_paused = true)]
async fn polling() {
    // What a call that was not dropped returned is not read again: it takes nothing.
    let poll = async |consumer: &Consumer| {
        let records = consumer.poll(Duration::MAX).await.expect("no error");
        for partition in [0, 1] {
            consumer.seek("orders", partition, 0).await.expect("it is assigned");
        }
        assert!(!records.is_empty());
    };
    let check = async |_: &World, consumer: &Consumer| all_of_them(consumer).await;

    assert!(at_each_poll(reader, poll, check).await > 0);
    assert!(at_each_poll(member, poll, check).await > 0);
}

#[tokio::test(start_paused = true)]
async fn receiving() {
    let receive = async |consumer: &Consumer| {
        let record = consumer.recv().await.expect("no error");
        consumer.seek("orders", record.partition, 0).await.expect("it is assigned");
    };
    let check = async |_: &World, consumer: &Consumer| all_of_them(consumer).await;

    assert!(at_each_poll(reader, receive, check).await > 0);
    assert!(at_each_poll(member, receive, check).await > 0);
}

#[tokio::test(start_paused = true)]
async fn assigning_and_unsubscribing() {
    let prepare = async |world: &World| {
        let builder = world.kafka.consumer_without_group().auto_offset_reset(AutoOffsetReset::Earliest);
        builder.build().await.expect("valid")
    };
    let assign = async |consumer: &Consumer| consumer.assign("orders", vec![0, 1]).await.expect("it exists");
    let check = async |_: &World, consumer: &Consumer| {
        assign(consumer).await;
        all_of_them(consumer).await;
    };
    assert!(at_each_poll(prepare, assign, check).await > 0);

    let prepare = async |world: &World| {
        let consumer = member(world).await;
        all_of_them(&consumer).await;
        consumer
    };
    let unsubscribe = async |consumer: &Consumer| consumer.unsubscribe().await.expect("it is open");
    let check = async |_: &World, consumer: &Consumer| {
        unsubscribe(consumer).await;
        assert!(consumer.assignment().is_empty());
        consumer.subscribe(&["orders"]).await.expect("it does not wait");
        all_of_them(consumer).await;
    };
    assert!(at_each_poll(prepare, unsubscribe, check).await > 0);
}

#[tokio::test(start_paused = true)]
async fn committing_and_reading_what_is_committed() {
    let prepare = async |world: &World| {
        let consumer = reader(world).await;
        all_of_them(&consumer).await;
        consumer
    };
    let partitions = [TopicPartition::new("orders", 0), TopicPartition::new("orders", 1)];
    let commit = async |consumer: &Consumer| consumer.commit().await.expect("it is answered");
    let check = async |world: &World, consumer: &Consumer| {
        commit(consumer).await;
        assert_eq!(world.fake.committed("g")[&("orders".into(), 1)], 3);
    };
    assert!(at_each_poll(&prepare, commit, check).await > 0);

    let commit = async |consumer: &Consumer| {
        consumer.commit_offsets([(TopicPartition::new("orders", 0), 2)]).await.expect("it is answered");
    };
    let check = async |world: &World, consumer: &Consumer| {
        commit(consumer).await;
        assert_eq!(world.fake.committed("g")[&("orders".into(), 0)], 2);
    };
    assert!(at_each_poll(&prepare, commit, check).await > 0);

    let committed = async |consumer: &Consumer| {
        assert_eq!(consumer.committed(&partitions).await.expect("it is answered").len(), 0);
    };
    assert!(at_each_poll(&prepare, committed, async |_, consumer| committed(consumer).await).await > 0);
}

#[tokio::test(start_paused = true)]
async fn asking_for_a_position() {
    let position = async |consumer: &Consumer| {
        assert_eq!(consumer.position("orders", 0).await.expect("it is known"), 0);
    };
    let check = async |_: &World, consumer: &Consumer| {
        position(consumer).await;
        all_of_them(consumer).await;
    };

    assert!(at_each_poll(reader, position, check).await > 0);
}

#[tokio::test(start_paused = true)]
async fn seeking() {
    let seek = async |consumer: &Consumer| {
        consumer.seek("orders", 0, 1).await.expect("it is assigned");
        consumer.seek_to_end("orders", 0).await.expect("it is assigned");
        consumer.seek_to_beginning("orders", 0).await.expect("it is assigned");
    };
    let check = async |_: &World, consumer: &Consumer| {
        seek(consumer).await;
        all_of_them(consumer).await;
    };

    assert_eq!(at_each_poll(reader, seek, check).await, 0, "as documented, it does not wait");
}

#[tokio::test(start_paused = true)]
async fn closing() {
    let prepare = async |world: &World| {
        let consumer = member(world).await;
        all_of_them(&consumer).await;
        consumer
    };
    let close = async |consumer: &Consumer| consumer.close().await.expect("nothing is to be committed");
    let check = async |world: &World, consumer: &Consumer| {
        close(consumer).await;
        let group = world.fake.group("g").expect("it is known");
        assert!(group.members.is_empty(), "it has left: {group:?}");
    };

    assert!(at_each_poll(prepare, close, check).await > 0);
}
