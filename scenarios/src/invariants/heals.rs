//! Once the faults are over, every partition takes a record and gives back all that it holds, in bounded time.

use std::collections::BTreeSet;
use std::time::Duration;

use krafka::Record;
use krafka::consumer::AutoOffsetReset;

use super::{Log, Logged};
use crate::world::PATIENCE;
use crate::{Failure, Result, Topic, World, ensure};

/// How long a healed cluster may take to write one record to each partition and to be read: longer than any backoff
/// or connection timeout of the client, shorter than its delivery timeout.
const BOUND: Duration = Duration::from_secs(90);

/// Writes a marker to each partition with a new client, reads each partition up to its marker with another, and
/// returns what lies before the markers.
///
/// # Errors
/// If that does not end in bounded time, or (on the fake) what was read is not what the cluster holds.
pub async fn heals(world: &World, topic: &Topic) -> Result<Log> {
    let marker = format!("marker-{}", world.elapsed().as_nanos());
    let kafka = world.kafka().await?;
    let producer = kafka.producer().build().await?;
    for partition in topic.all() {
        let record = Record::new(&*topic.name, marker.clone()).partition(partition);
        let name = format!("heals: the write to {}-{partition}", topic.name);
        world.calls().within(BOUND, name, producer.send(record)).await??;
    }
    world.calls().within(PATIENCE, "close of the marker's producer", producer.close()).await??;

    let kafka = world.kafka().await?;
    let consumer = kafka.consumer_without_group().auto_offset_reset(AutoOffsetReset::Earliest).build().await?;
    world.calls().within(BOUND, "assign", consumer.assign(&topic.name, topic.all())).await??;
    let mut unread: BTreeSet<i32> = topic.all().into_iter().collect();
    let mut log = Log { topic: topic.name.clone(), records: Vec::new() };
    let deadline = world.elapsed() + BOUND;
    while !unread.is_empty() {
        ensure!(world.elapsed() < deadline, "heals: after {BOUND:?}, {}-{unread:?} cannot be read", topic.name);
        let poll = consumer.poll(Duration::from_millis(500));
        let records = world.calls().within(Duration::from_secs(5), "heals: a poll of half a second", poll).await??;
        for record in records {
            let value = String::from_utf8_lossy(record.value.as_deref().unwrap_or_default()).into_owned();
            if value == marker {
                unread.remove(&record.partition);
            } else {
                log.records.push(Logged { partition: record.partition, offset: record.offset, value });
            }
        }
    }
    world.calls().within(PATIENCE, "close of the reader", consumer.close()).await??;
    log.records.sort_by_key(|record| (record.partition, record.offset));
    agrees_with_the_cluster(world, topic, &marker, &log)?;
    Ok(log)
}

/// What the client read is what the cluster holds, record by record.
fn agrees_with_the_cluster(world: &World, topic: &Topic, marker: &str, log: &Log) -> Result<()> {
    let Some(fake) = world.try_fake() else { return Ok(()) };
    let mut held = Vec::new();
    for partition in topic.all() {
        for record in fake.partition_records(&topic.name, partition) {
            let value = String::from_utf8_lossy(record.value.as_deref().unwrap_or_default()).into_owned();
            if value != marker {
                held.push(Logged { partition, offset: record.offset, value });
            }
        }
    }
    match held.iter().zip(&log.records).find(|(held, read)| held != read) {
        Some((held, read)) => {
            Err(Failure::new(format!("the log of {} holds {held:?} where {read:?} was read", topic.name)))
        }
        None if held.len() != log.records.len() => {
            let (all, read) = (held.len(), log.records.len());
            Err(Failure::new(format!("the log of {} holds {all} records, and {read} were read", topic.name)))
        }
        None => Ok(()),
    }
}
