//! Stories of bad networks.

use std::time::Duration;

use krafka::Record;
use krafka::consumer::AutoOffsetReset;

use crate::workload::Readers;
use crate::world::PATIENCE;
use crate::{Result, World, ensure, workload};

/// Every link goes silent for longer than a request may take, then comes back.
pub async fn partitioned_client(world: &World) -> Result<()> {
    let topic = world.topic("orders").partitions(3).create().await?;
    let kafka = world.kafka_builder().request_timeout(Duration::from_secs(5)).connect().await?;
    let producer = kafka.producer().build().await?;
    let consumer = kafka.consumer("readers").auto_offset_reset(AutoOffsetReset::Earliest).build().await?;
    world.calls().within(PATIENCE, "subscribe", consumer.subscribe(&[&topic.name])).await??;
    let mut readers = Readers::of(world, "readers");
    readers.add(world, "one", consumer);
    let sending = workload::send(world, &producer, &topic, "a", 1..=2_000);

    sending.acked(500).await?;
    let fake = world.fake()?;
    let addresses: Vec<String> = fake.nodes().into_iter().map(|node| world.address(node)).collect();
    addresses.iter().for_each(|address| world.links().hold(address));
    world.pass(Duration::from_secs(20)).await;
    addresses.iter().for_each(|address| world.links().release(address));
    let sent = sending.finish().await?;
    sent.all_acked()?;
    readers.read_all(world, &[&sent]).await?;

    crate::invariants::group::read_all(&sent, &readers.finish().await?)
}

/// One of three brokers goes silent: the others' partitions flow on, and polls keep their timeout.
pub async fn silent_broker_stalls_nobody_else(world: &World) -> Result<()> {
    let topic = world.topic("orders").partitions(3).create().await?;
    let kafka = world.kafka().await?;
    let producer = kafka.producer().linger(Duration::ZERO).build().await?;
    let consumer = kafka.consumer_without_group().auto_offset_reset(AutoOffsetReset::Earliest).build().await?;
    world.calls().within(PATIENCE, "assign", consumer.assign(&topic.name, topic.all())).await??;
    let fake = world.fake()?;
    for (partition, node) in fake.nodes().into_iter().enumerate() {
        fake.move_leader(&topic.name, partition as i32, node);
    }
    for partition in topic.all() {
        let record = Record::new(&*topic.name, format!("p{partition}:0")).partition(partition);
        world.calls().within(PATIENCE, "send", producer.send(record)).await??;
        world.calls().within(PATIENCE, "recv", consumer.recv()).await??;
    }

    let silent = fake.leader(&topic.name, 2).unwrap_or(1);
    world.links().hold(&world.address(silent));
    for number in 1..=20 {
        for partition in [0, 1] {
            let record = Record::new(&*topic.name, format!("p{partition}:{number}")).partition(partition);
            let second = Duration::from_secs(1);
            world.calls().within(second, "a send beside a silent broker", producer.send(record)).await??;
            let began = world.elapsed();
            let records = world.calls().within(second * 2, "a poll", consumer.poll(second)).await??;
            ensure!(!records.is_empty(), "a poll of one second saw nothing of a healthy broker");
            ensure!(world.elapsed() - began <= second, "a poll of one second took {:?}", world.elapsed() - began);
        }
    }
    world.links().heal();
    world.calls().within(PATIENCE, "close", consumer.close()).await??;
    Ok(())
}

/// Every read returns at most seven bytes, in both directions.
pub async fn bytes_in_small_pieces(world: &World) -> Result<()> {
    let fake = world.fake()?;
    for node in fake.nodes() {
        world.links().dribble(&world.address(node), 7);
    }
    let topic = world.topic("orders").partitions(2).create().await?;
    let kafka = world.kafka().await?;
    let producer = kafka.producer().build().await?;
    let consumer = kafka.consumer("readers").auto_offset_reset(AutoOffsetReset::Earliest).build().await?;
    world.calls().within(PATIENCE, "subscribe", consumer.subscribe(&[&topic.name])).await??;
    let mut readers = Readers::of(world, "readers");
    readers.add(world, "one", consumer);

    let sent = workload::send(world, &producer, &topic, "a", 1..=200).finish().await?;
    sent.all_acked()?;
    readers.read_all(world, &[&sent]).await?;

    crate::invariants::group::read_all(&sent, &readers.finish().await?)
}
