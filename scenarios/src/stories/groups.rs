//! Stories of consumer groups.

use std::time::Duration;

use krafka::consumer::AutoOffsetReset;
use krafka::{Consumer, Record, TopicPartition};

use crate::invariants::group;
use crate::links::Links;
use crate::workload::Readers;
use crate::world::PATIENCE;
use crate::{Result, Topic, World, ensure, workload};

/// A new member of a group, subscribed to the topic, on a client of its own.
async fn member(world: &World, group: &str, topic: &Topic) -> Result<Consumer> {
    member_over(world, world.links(), group, topic).await
}

/// The same, over links of its own.
async fn member_over(world: &World, links: &Links, group: &str, topic: &Topic) -> Result<Consumer> {
    let call = world.kafka_builder_over(links).connect();
    let kafka = world.calls().within(PATIENCE, "connect", call).await??;
    let consumer = kafka.consumer(group).auto_offset_reset(AutoOffsetReset::Earliest).build().await?;
    world.calls().within(PATIENCE, "subscribe", consumer.subscribe(&[&topic.name])).await??;
    Ok(consumer)
}

/// Two members from the start: both read, and together they read everything once.
pub async fn two_members_share(world: &World) -> Result<()> {
    let topic = world.topic("orders").partitions(4).create().await?;
    let group = world.name("readers");
    let mut readers = Readers::of(world, &group);
    readers.add(world, "one", member(world, &group, &topic).await?);
    readers.add(world, "two", member(world, &group, &topic).await?);
    let producer = world.kafka().await?.producer().build().await?;

    // Records flow until both members have some; a member that joined second gets its share by a rebalance.
    let mut all = Vec::new();
    for round in 0.. {
        let sent = workload::send(world, &producer, &topic, &format!("round-{round}"), 1..=200).finish().await?;
        sent.all_acked()?;
        all.push(sent);
        readers.read_all(world, &all.iter().collect::<Vec<_>>()).await?;
        if readers.count("one") > 0 && readers.count("two") > 0 {
            break;
        }
        ensure!(round < 100, "after 100 rounds, one has {}, two has {}", readers.count("one"), readers.count("two"));
        world.pass(Duration::from_millis(300)).await;
    }
    let read = readers.finish().await?;

    for sent in &all {
        group::read_all(sent, &read)?;
    }
    if world.kind() == crate::Kind::Simulated { Ok(()) } else { group::read_once(&read) }
}

/// Members come and go, one of them without a word, while records flow.
pub async fn rebalance_under_load(world: &World) -> Result<()> {
    let topic = world.topic("orders").partitions(6).create().await?;
    let mut readers = Readers::of(world, "readers");
    readers.add(world, "one", member(world, "readers", &topic).await?);
    let producer = world.kafka().await?.producer().build().await?;
    let sending = workload::send(world, &producer, &topic, "a", 1..=4_000);

    sending.acked(500).await?;
    let cable = Links::default();
    readers.add(world, "two", member_over(world, &cable, "readers", &topic).await?);
    sending.acked(1_500).await?;
    readers.add(world, "three", member(world, "readers", &topic).await?);
    sending.acked(2_500).await?;
    readers.stop("one").await?;
    sending.acked(3_000).await?;
    pull(world, &cable);
    readers.kill("two");
    let sent = sending.finish().await?;
    sent.all_acked()?;
    readers.read_all(world, &[&sent]).await?;

    group::read_all(&sent, &readers.finish().await?)
}

/// One of two members is gone without a word; after its session, the other has everything.
pub async fn dead_member_is_replaced(world: &World) -> Result<()> {
    let topic = world.topic("orders").partitions(4).create().await?;
    let cable = Links::default();
    let mut readers = Readers::of(world, "readers");
    readers.add(world, "one", member(world, "readers", &topic).await?);
    readers.add(world, "two", member_over(world, &cable, "readers", &topic).await?);
    let producer = world.kafka().await?.producer().build().await?;
    let mut sent = Vec::new();
    for round in 0.. {
        let records = workload::send(world, &producer, &topic, &format!("round-{round}"), 1..=100).finish().await?;
        readers.read_all(world, &[&records]).await?;
        sent.push(records);
        if readers.count("two") > 0 {
            break;
        }
        ensure!(round < 100, "the second member reads nothing");
        world.pass(Duration::from_millis(500)).await;
    }

    pull(world, &cable);
    readers.kill("two");
    let died = world.elapsed();
    let after = workload::send(world, &producer, &topic, "after", 1..=400).finish().await?;
    readers.read_all(world, &[&after]).await?;

    let took = world.elapsed() - died;
    let session = Duration::from_secs(45);
    let is_exact = world.kind() == crate::Kind::Scripted;
    ensure!(!is_exact || took > session / 2, "the dead member was replaced in {took:?}, before its session ended");
    ensure!(took < session * 2, "the dead member was replaced in {took:?}; its session is {session:?}");
    group::read_all(&after, &readers.finish().await?)
}

/// A member is handed records, works on them for longer than the interval of automatic commits, and dies before it is
/// done: it has not polled again, so nothing may be committed, and the next member gets them all.
pub async fn dead_members_work_is_done_again(world: &World) -> Result<()> {
    let topic = world.topic("orders").create().await?;
    let producer = world.kafka().await?.producer().build().await?;
    workload::send(world, &producer, &topic, "a", 1..=20).finish().await?.all_acked()?;
    let cable = Links::default();
    let first = member_over(world, &cable, "readers", &topic).await?;
    let handed = async || {
        let records = first.poll(Duration::from_secs(1)).await.unwrap_or_default();
        (!records.is_empty()).then_some(records)
    };
    let handed = world.until_some("the first member is handed records", handed).await?;

    world.pass(Duration::from_secs(20)).await;
    pull(world, &cable);
    drop(first);
    let second = member(world, "readers", &topic).await?;
    let again = world.calls().within(PATIENCE, "recv", second.recv()).await??;

    let committed = world.fake()?.committed("readers");
    ensure!(handed[0].offset == 0, "the first member began at {}", handed[0].offset);
    ensure!(again.offset == 0, "the second member began at {}; committed is {committed:?}", again.offset);
    world.calls().within(PATIENCE, "close", second.close()).await??;
    Ok(())
}

/// Pulls a client's cable: nothing comes or goes any more, and nobody is told.
fn pull(world: &World, cable: &Links) {
    let nodes = world.try_fake().map(|fake| fake.nodes()).unwrap_or_default();
    nodes.into_iter().for_each(|node| cable.hold(&world.address(node)));
}

/// A group reads half, commits, goes away and comes back.
pub async fn group_resumes_where_it_committed(world: &World) -> Result<()> {
    let topic = world.topic("orders").create().await?;
    let group = world.name("readers");
    let producer = world.kafka().await?.producer().build().await?;
    for number in 0..20 {
        let record = Record::new(&*topic.name, format!("a:{number}"));
        world.calls().within(PATIENCE, "send", producer.send(record)).await??;
    }
    let first = member(world, &group, &topic).await?;
    for expected in 0..10 {
        let offset = world.calls().within(PATIENCE, "recv", first.recv()).await??.offset;
        ensure!(offset == expected, "offset {offset} came instead of {expected}");
    }

    world.calls().within(PATIENCE, "commit", first.commit()).await??;
    world.calls().within(PATIENCE, "close", first.close()).await??;
    let second = member(world, &group, &topic).await?;
    let next = world.calls().within(PATIENCE, "recv", second.recv()).await??.offset;

    ensure!(next == 10, "the group went on at {next} instead of 10");
    let nowhere = [TopicPartition::new(world.name("nowhere"), 0)];
    let committed = world.calls().within(PATIENCE, "committed", second.committed(&nowhere)).await??;
    ensure!(committed.is_empty(), "{committed:?} is committed for a topic that does not exist");
    if let Some(fake) = world.try_fake() {
        let committed = fake.committed(&group).values().copied().max();
        ensure!(committed == Some(10), "the cluster has {committed:?} committed");
    }
    world.calls().within(PATIENCE, "close", second.close()).await??;
    Ok(())
}

/// The coordinator moves twice under a group at work.
pub async fn coordinator_moves(world: &World) -> Result<()> {
    let topic = world.topic("orders").partitions(2).create().await?;
    let mut readers = Readers::of(world, "readers");
    readers.add(world, "one", member(world, "readers", &topic).await?);
    readers.add(world, "two", member(world, "readers", &topic).await?);
    let producer = world.kafka().await?.producer().build().await?;
    let sending = workload::send(world, &producer, &topic, "a", 1..=2_000);

    for acked in [500, 1_000] {
        sending.acked(acked).await?;
        let fake = world.fake()?;
        let from = fake.coordinator("readers");
        let to = fake.live_nodes().into_iter().find(|node| *node != from).unwrap_or(from);
        fake.move_coordinator("readers", to);
    }
    let sent = sending.finish().await?;
    sent.all_acked()?;
    readers.read_all(world, &[&sent]).await?;

    group::read_all(&sent, &readers.finish().await?)
}
