//! The story that only a seed makes interesting: everybody works for as long as faults may strike.

use std::time::Duration;

use krafka::Compression;
use krafka::consumer::AutoOffsetReset;

use crate::nemesis::Plan;
use crate::workload::Readers;
use crate::world::PATIENCE;
use crate::{Result, World, workload};

/// How many records each sender sends while faults may strike.
const RECORDS: u64 = 1_200;

/// How many records come at once: enough for several batches of each partition to be in flight when a fault strikes.
const BURST: u64 = 60;

/// Two producers of different settings, a group that grows and shrinks, six partitions on three nodes.
pub async fn everything_at_once(world: &World) -> Result<()> {
    let topic = world.topic("orders").partitions(6).create().await?;
    let patient = world.kafka().await?;
    let hasty = world.kafka_builder().request_timeout(Duration::from_secs(3)).connect();
    let hasty = world.calls().within(PATIENCE, "connect", hasty).await??;
    let small = patient.producer().linger(Duration::ZERO).batch_size(150).build().await?;
    let packed = hasty.producer().linger(Duration::from_millis(20)).compression(Compression::Lz4).build().await?;
    let mut readers = Readers::of(world, "readers");
    let join = async |readers: &mut Readers, name: &str| {
        let kafka = world.kafka().await?;
        let consumer = kafka.consumer("readers").auto_offset_reset(AutoOffsetReset::Earliest).build().await?;
        world.calls().within(PATIENCE, "subscribe", consumer.subscribe(&[&topic.name])).await??;
        readers.add(world, name, consumer);
        Ok::<_, crate::Failure>(())
    };

    let pause = (BURST, Plan::LENGTH / (RECORDS / BURST) as u32);
    let one = workload::send_paced(world, &small, &topic, "small", 1..=RECORDS, pause);
    let other = workload::send_paced(world, &packed, &topic, "packed", 1..=RECORDS, pause);
    join(&mut readers, "one").await?;
    join(&mut readers, "two").await?;
    one.acked(RECORDS as usize / 3).await?;
    join(&mut readers, "three").await?;
    one.acked(RECORDS as usize * 2 / 3).await?;
    readers.stop("one").await?;
    let (one, other) = (one.finish().await?, other.finish().await?);
    one.all_acked()?;
    other.all_acked()?;
    readers.read_all(world, &[&one, &other]).await?;
    readers.finish().await?;
    Ok(())
}
