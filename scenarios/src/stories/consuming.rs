//! Stories of consumers without a group.

use std::time::Duration;

use krafka::consumer::AutoOffsetReset;
use krafka::{Consumer, Record, TopicPartition};
use krafka_protocol::{ApiKey, ErrorCode};
use tokio::time::timeout;

use crate::world::PATIENCE;
use crate::{Result, Topic, World, ensure, workload};

/// A consumer of all partitions, from the beginning.
async fn reader(world: &World, topic: &Topic) -> Result<Consumer> {
    let kafka = world.kafka().await?;
    let consumer = kafka.consumer_without_group().auto_offset_reset(AutoOffsetReset::Earliest).build().await?;
    world.calls().within(PATIENCE, "assign", consumer.assign(&topic.name, topic.all())).await??;
    Ok(consumer)
}

/// Reads so many records, each of which must be the next of its partition.
async fn read_in_order(world: &World, consumer: &Consumer, count: usize) -> Result<Vec<(i32, i64, String)>> {
    let mut read: Vec<(i32, i64, String)> = Vec::new();
    while read.len() < count {
        let record = world.calls().within(PATIENCE, "recv", consumer.recv()).await??;
        let last = read.iter().rev().find(|(partition, ..)| *partition == record.partition);
        if let Some((partition, offset, _)) = last {
            let next = record.offset;
            ensure!(next == offset + 1, "in partition {partition}, offset {next} came after {offset}");
        }
        let value = String::from_utf8_lossy(record.value.as_deref().unwrap_or_default()).into_owned();
        read.push((record.partition, record.offset, value));
    }
    Ok(read)
}

/// Leaders move between the records; each partition's offsets come without a gap or a repetition.
pub async fn consumer_follows_a_moving_leader(world: &World) -> Result<()> {
    let topic = world.topic("orders").partitions(3).create().await?;
    let producer = world.kafka().await?.producer().build().await?;
    let consumer = reader(world, &topic).await?;
    let sending = workload::send(world, &producer, &topic, "a", 1..=1_000);

    for round in 0..5 {
        read_in_order(world, &consumer, 100).await?;
        let fake = world.fake()?;
        for partition in topic.all() {
            let nodes = fake.live_nodes();
            if let Some(to) = nodes.get((round + partition as usize) % nodes.len().max(1)) {
                fake.move_leader(&topic.name, partition, *to);
            }
        }
    }
    read_in_order(world, &consumer, 500).await?;

    sending.finish().await?.all_acked()?;
    world.calls().within(PATIENCE, "close", consumer.close()).await??;
    Ok(())
}

/// The leader's epoch rises without a move: what the consumer knows is fenced, twice.
pub async fn fenced_epoch(world: &World) -> Result<()> {
    let topic = world.topic("orders").create().await?;
    let producer = world.kafka().await?.producer().build().await?;
    let consumer = reader(world, &topic).await?;
    workload::send(world, &producer, &topic, "a", 1..=100).finish().await?.all_acked()?;
    read_in_order(world, &consumer, 100).await?;
    let fake = world.fake()?;
    let answers = fake.when(ApiKey::Fetch).reply_error(ErrorCode::FENCED_LEADER_EPOCH);

    fake.bump_leader_epoch(&topic.name, 0);
    workload::send(world, &producer, &topic, "b", 1..=100).finish().await?.all_acked()?;
    let read = read_in_order(world, &consumer, 100).await?;

    ensure!(answers.hits() == 1, "a fetch should have been fenced, {} were", answers.hits());
    ensure!(read[0].1 == 100, "the consumer went on at {} instead of 100", read[0].1);
    world.calls().within(PATIENCE, "close", consumer.close()).await??;
    Ok(())
}

/// A seek past the end is out of range; the policy is "earliest", so the consumer starts over.
pub async fn out_of_range_resets(world: &World) -> Result<()> {
    let topic = world.topic("orders").create().await?;
    let producer = world.kafka().await?.producer().build().await?;
    workload::send(world, &producer, &topic, "a", 1..=20).finish().await?.all_acked()?;
    let consumer = reader(world, &topic).await?;
    read_in_order(world, &consumer, 20).await?;

    world.calls().within(PATIENCE, "seek", consumer.seek(&topic.name, 0, 1_000_000)).await??;
    let record = world.calls().within(PATIENCE, "recv", consumer.recv()).await??;

    ensure!(record.offset == 0, "after a reset to the earliest offset, the next record is {}", record.offset);
    world.calls().within(PATIENCE, "close", consumer.close()).await??;
    Ok(())
}

/// The broker answers as one that has evicted the session, between two reads.
pub async fn lost_fetch_session(world: &World) -> Result<()> {
    let topic = world.topic("orders").partitions(3).create().await?;
    let producer = world.kafka().await?.producer().build().await?;
    let consumer = reader(world, &topic).await?;
    workload::send(world, &producer, &topic, "a", 1..=100).finish().await?.all_acked()?;
    read_in_order(world, &consumer, 100).await?;

    let fake = world.fake()?;
    let lost = fake.when(ApiKey::Fetch).times(2).reply_error(ErrorCode::FETCH_SESSION_ID_NOT_FOUND);
    let wrong = fake.when(ApiKey::Fetch).reply_error(ErrorCode::INVALID_FETCH_SESSION_EPOCH);
    workload::send(world, &producer, &topic, "b", 1..=100).finish().await?.all_acked()?;
    read_in_order(world, &consumer, 100).await?;

    ensure!(lost.hits() + wrong.hits() >= 2, "{} and {} fetches met the fault", lost.hits(), wrong.hits());
    world.calls().within(PATIENCE, "close", consumer.close()).await??;
    Ok(())
}

/// LE-09, LE-20: an unclean election takes half of what was read and acknowledged, and the log grows past the reader's
/// position again before it looks: only the leader epochs tell that other records lie there now.
pub async fn truncated_log(world: &World) -> Result<()> {
    let topic = world.topic("orders").create().await?;
    let producer = world.kafka().await?.producer().linger(Duration::ZERO).build().await?;
    let send = async |name: &str| {
        for number in 0..20 {
            let record = Record::new(&*topic.name, format!("{name}:{number}"));
            world.calls().within(PATIENCE, "send", producer.send(record)).await??;
        }
        Ok::<_, crate::Failure>(())
    };
    let consumer = reader(world, &topic).await?;
    send("lost").await?;
    read_in_order(world, &consumer, 20).await?;

    world.fake()?.truncate(&topic.name, 0, 10);
    send("new").await?;
    let read = read_in_order(world, &consumer, 20).await?;

    let first = (read[0].1, &*read[0].2);
    ensure!(first == (10, "new:0"), "after the truncation to offset 10, the consumer went on with {first:?}");
    world.calls().within(PATIENCE, "close", consumer.close()).await??;
    Ok(())
}

/// Every poll is dropped unless it returns when it is first looked at, as a `select!` over something busy does.
pub async fn dropped_polls_lose_nothing(world: &World) -> Result<()> {
    let topic = world.topic("orders").partitions(2).create().await?;
    let producer = world.kafka().await?.producer().batch_size(500).build().await?;
    let consumer = reader(world, &topic).await?;
    let sending = workload::send(world, &producer, &topic, "a", 1..=300);

    let (mut next, mut count) = (std::collections::BTreeMap::new(), 0);
    let deadline = world.elapsed() + PATIENCE;
    for turn in 0_u64.. {
        let records = if turn.is_multiple_of(2) {
            timeout(Duration::ZERO, consumer.poll(Duration::from_secs(1))).await
        } else {
            timeout(Duration::ZERO, consumer.recv()).await.map(|record| record.map(|record| vec![record]))
        };
        for record in records.unwrap_or(Ok(Vec::new()))? {
            let expected = next.insert(record.partition, record.offset + 1).unwrap_or(0);
            let (partition, offset) = (record.partition, record.offset);
            ensure!(offset == expected, "in partition {partition}, offset {offset} came instead of {expected}");
            count += 1;
        }
        if count == 300 {
            break;
        }
        ensure!(world.elapsed() < deadline, "only {count} of 300 records came");
        world.pass(Duration::from_millis(10)).await;
    }

    sending.finish().await?.all_acked()?;
    world.calls().within(PATIENCE, "close", consumer.close()).await??;
    Ok(())
}

/// Seeks, begins anew, and pauses one of two partitions.
pub async fn seek_and_pause(world: &World) -> Result<()> {
    let topic = world.topic("orders").partitions(2).create().await?;
    let producer = world.kafka().await?.producer().build().await?;
    for (partition, number) in (0..2).flat_map(|partition| (0..10).map(move |number| (partition, number))) {
        let record = Record::new(&*topic.name, format!("p{partition}:{number}")).partition(partition);
        world.calls().within(PATIENCE, "send", producer.send(record)).await??;
    }
    let consumer = reader(world, &topic).await?;
    read_in_order(world, &consumer, 20).await?;

    consumer.pause(&[TopicPartition::new(&*topic.name, 1)])?;
    world.calls().within(PATIENCE, "seek", consumer.seek(&topic.name, 0, 7)).await??;
    world.calls().within(PATIENCE, "seek", consumer.seek(&topic.name, 1, 7)).await??;
    let first = read_in_order(world, &consumer, 3).await?;
    let quiet = world.calls().within(PATIENCE, "poll", consumer.poll(Duration::from_secs(1))).await??;
    consumer.resume(&[TopicPartition::new(&*topic.name, 1)])?;
    let second = read_in_order(world, &consumer, 3).await?;

    let offsets = |read: &[(i32, i64, String)]| read.iter().map(|(p, o, _)| (*p, *o)).collect::<Vec<_>>();
    ensure!(offsets(&first) == [(0, 7), (0, 8), (0, 9)], "after the seek came {:?}", offsets(&first));
    ensure!(quiet.is_empty(), "a paused partition gave {} records", quiet.len());
    ensure!(offsets(&second) == [(1, 7), (1, 8), (1, 9)], "after the resume came {:?}", offsets(&second));
    world.calls().within(PATIENCE, "close", consumer.close()).await??;
    Ok(())
}

/// A producer without keys and a group both use partitions that were added behind their back.
pub async fn added_partitions_are_noticed(world: &World) -> Result<()> {
    let topic = world.topic("orders").create().await?;
    let age = Duration::from_secs(5);
    let kafka = world.kafka_builder().metadata_max_age(age).connect().await?;
    let producer = kafka.producer().linger(Duration::ZERO).batch_size(200).build().await?;
    let consumer = kafka.consumer("readers").auto_offset_reset(AutoOffsetReset::Earliest).build().await?;
    consumer.subscribe(&[&topic.name]).await?;
    world.calls().within(PATIENCE, "send", producer.send(Record::new(&*topic.name, "a:0"))).await??;
    world.calls().within(PATIENCE, "recv", consumer.recv()).await??;

    world.fake()?.add_partitions(&topic.name, 4);
    world.pass(age * 3).await;
    let mut partitions = std::collections::BTreeSet::new();
    for number in 1..=200 {
        let record = Record::new(&*topic.name, format!("a:{number}"));
        partitions.insert(world.calls().within(PATIENCE, "send", producer.send(record)).await??.partition);
    }
    let mut read = std::collections::BTreeSet::new();
    for _ in 1..=200 {
        read.insert(world.calls().within(PATIENCE, "recv", consumer.recv()).await??.partition);
    }

    ensure!(partitions.len() == 4, "the producer uses partitions {partitions:?}");
    ensure!(read.len() == 4, "the group reads partitions {read:?}");
    world.calls().within(PATIENCE, "close", consumer.close()).await??;
    Ok(())
}
