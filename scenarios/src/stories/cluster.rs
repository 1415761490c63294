//! Stories of clusters that change.

use std::time::Duration;

use krafka::{KrafkaError, Record};
use krafka_fake_broker::Event;
use krafka_protocol::{ApiKey, ErrorCode, MetadataResponse};

use crate::workload::Readers;
use crate::world::PATIENCE;
use crate::{Result, Topic, World, ensure, workload};

/// Each node crashes in turn while a producer and a group are at work.
pub async fn crashed_broker(world: &World) -> Result<()> {
    let topic = world.topic("orders").partitions(6).create().await?;
    let kafka = world.kafka().await?;
    let producer = kafka.producer().build().await?;
    let consumer =
        kafka.consumer("readers").auto_offset_reset(krafka::consumer::AutoOffsetReset::Earliest).build().await?;
    world.calls().within(PATIENCE, "subscribe", consumer.subscribe(&[&topic.name])).await??;
    let mut readers = Readers::of(world, "readers");
    readers.add(world, "one", consumer);
    let sending = workload::send(world, &producer, &topic, "a", 1..=3_000);

    let fake = world.fake()?;
    for (round, node) in fake.nodes().into_iter().enumerate() {
        sending.acked(500 + 700 * round).await?;
        fake.crash(node);
        world.pass(Duration::from_secs(2)).await;
        fake.restart(node);
    }
    let sent = sending.finish().await?;
    sent.all_acked()?;
    readers.read_all(world, &[&sent]).await?;

    crate::invariants::group::read_all(&sent, &readers.finish().await?)
}

/// The broker says REBOOTSTRAP_REQUIRED (129): the client asks a bootstrap server anew, and goes on.
pub async fn rebootstrap_required(world: &World) -> Result<()> {
    let topic = world.topic("orders").create().await?;
    let age = Duration::from_secs(5);
    let fake = world.fake()?;
    // One of three only, so that going back to it is no chance.
    let builder = world.kafka_builder_from(&world.address(2), world.links()).metadata_max_age(age);
    let kafka = world.calls().within(PATIENCE, "connect", builder.connect()).await??;
    let producer = kafka.producer().build().await?;
    workload::send(world, &producer, &topic, "before", 1..=50).finish().await?.all_acked()?;
    let rule = fake.when(ApiKey::Metadata).rebootstrap();

    world.until("a Metadata request was answered with code 129", || rule.hits() == 1).await?;
    // A drawn fault may swallow the answer or hold up the next request; without one, what follows is known exactly.
    if world.kind() == crate::Kind::Scripted {
        let next = || {
            let history = fake.history();
            history.of(ApiKey::Metadata).skip_while(|event| !is_refusal(event)).nth(1).map(|event| event.node)
        };
        world.until("the client asked again", || next().is_some()).await?;
        ensure!(next() == Some(2), "after code 129, the client asked node {:?}, no bootstrap server", next());
    }

    workload::send(world, &producer, &topic, "after", 1..=50).finish().await?.all_acked()
}

fn is_refusal(event: &Event) -> bool {
    let answer = event.response::<MetadataResponse>();
    answer.is_some_and(|answer| answer.error_code == ErrorCode::REBOOTSTRAP_REQUIRED.0)
}

/// RB-08, RB-09: the user has the client begin again and again while a producer and a group are at work, each time with
/// the seed brokers in another order.
pub async fn beginning_again_under_load(world: &World) -> Result<()> {
    let topic = world.topic("orders").partitions(6).create().await?;
    let kafka = world.kafka().await?;
    let producer = kafka.producer().build().await?;
    let consumer =
        kafka.consumer("readers").auto_offset_reset(krafka::consumer::AutoOffsetReset::Earliest).build().await?;
    world.calls().within(PATIENCE, "subscribe", consumer.subscribe(&[&topic.name])).await??;
    let mut readers = Readers::of(world, "readers");
    readers.add(world, "one", consumer);
    let sending = workload::send(world, &producer, &topic, "a", 1..=2_000);

    let mut seeds: Vec<&str> = world.bootstrap().split(',').collect();
    for round in 1..=4 {
        sending.acked(400 * round).await?;
        seeds.rotate_left(1);
        kafka.update_seed_brokers(&seeds.join(","))?;
        kafka.rebootstrap();
    }
    let sent = sending.finish().await?;
    sent.all_acked()?;
    readers.read_all(world, &[&sent]).await?;

    let rebootstraps = kafka.metrics().metadata.rebootstraps;
    ensure!(rebootstraps >= 1, "the client was told four times to begin again, and did {rebootstraps} times");
    crate::invariants::group::read_all(&sent, &readers.finish().await?)
}

/// RB-05, RB-07 (KIP-1102, KIP-1242): another cluster, with copies of the topics, answers at the old addresses. The
/// client notices, says so, and goes on there.
pub async fn another_cluster_at_the_old_addresses(world: &World) -> Result<()> {
    let topic = world.topic("orders").partitions(3).create().await?;
    let kafka = world.kafka().await?;
    let producer = kafka.producer().build().await?;
    let sending = workload::send(world, &producer, &topic, "a", 1..=1_000);

    sending.acked(300).await?;
    let fake = world.fake()?;
    fake.swap_cluster_id();
    fake.nodes().into_iter().for_each(|node| fake.disconnect(node));
    sending.finish().await?.all_acked()?;

    world.until("the client noticed", || kafka.metrics().metadata.cluster_changes == 1).await
}

/// The first send comes before the topic does; a topic that never comes is named at the deadline.
pub async fn topic_that_comes_late(world: &World) -> Result<()> {
    let kafka = world.kafka().await?;
    let producer = kafka.producer().max_block(Duration::from_secs(30)).build().await?;
    let late = Topic { name: "late".to_owned(), partitions: 1 };
    let send = workload::send(world, &producer, &late, "a", 1..=1);

    world.pass(Duration::from_secs(3)).await;
    let created = world.topic("late").create().await?;
    send.finish().await?.all_acked()?;
    let never = world.calls().within(PATIENCE, "send", producer.send(Record::new("never", "a:2"))).await?;

    ensure!(created == late, "created {created:?}");
    let named = matches!(&never, Err(KrafkaError::UnknownTopic { topic }) if &**topic == "never");
    ensure!(named, "a send to a topic that never comes gave {never:?}");
    Ok(())
}
