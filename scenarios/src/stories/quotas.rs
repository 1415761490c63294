//! Stories of quotas: a broker holds a client back by asking for silence, and the client keeps it.

use std::time::Duration;

use krafka::protocol::api::alter_client_quotas::{EntityData, EntryData, OpData};
use krafka::protocol::api::describe_client_quotas::ComponentData;
use krafka::protocol::{AlterClientQuotasRequest, DescribeClientQuotasRequest, ErrorCode, Str};
use krafka::{Kafka, KrafkaError, NewTopic, Record};

use crate::world::PATIENCE;
use crate::{Kind, Result, World, ensure};

/// Kafka measures over so many seconds, and lets a client that was quiet so far do their work at once.
const WINDOWS: u32 = 10;

/// A client of its own name, with a quota; nobody else feels it.
async fn limited(world: &World, quota: &'static str, rate: f64) -> Result<Kafka> {
    let name = Str::from(world.name("client"));
    let admin = world.kafka().await?;
    let entity = vec![EntityData { entity_type: "client-id".into(), entity_name: Some(name.clone()) }];
    let ops = vec![OpData { key: quota.into(), value: rate, remove: false }];
    let request = AlterClientQuotasRequest { entries: vec![EntryData { entity, ops }], validate_only: false };
    let set = async || {
        let id = admin.admin().describe_cluster().await.ok()?.controller?;
        let answer = admin.broker_connection(id).await.ok()?.call(request.clone()).await.ok()?;
        answer.entries.iter().all(|entry| entry.error_code == 0).then_some(())
    };
    world.until_some("the quota is set", set).await?;
    let exactly = ComponentData { entity_type: "client-id".into(), match_type: 0, r#match: Some(name.clone()) };
    let question = DescribeClientQuotasRequest { components: vec![exactly], strict: true };
    // Each broker must have heard of it, whichever is asked for what is limited.
    let seen = async || {
        for broker in admin.admin().describe_cluster().await.ok()?.brokers {
            let answer = admin.broker_connection(broker.id).await.ok()?.call(question.clone()).await.ok()?;
            answer.entries.filter(|entries| !entries.is_empty())?;
        }
        Some(())
    };
    world.until_some("all brokers know of the quota", seen).await?;
    let builder = world.kafka_builder().client_id(name.to_string());
    Ok(world.calls().within(PATIENCE, "connect", builder.connect()).await??)
}

/// How long the brokers asked the client to be silent, in all.
fn silence(kafka: &Kafka) -> Duration {
    kafka.metrics().brokers.values().map(|broker| broker.throttled).sum()
}

/// TH-10: eight megabytes at half a megabyte for each second, of which five are free at first.
pub async fn producer_over_its_quota(world: &World) -> Result<()> {
    const RATE: u32 = 500_000;
    const RECORDS: u32 = 800;
    let topic = world.topic("orders").create().await?;
    let kafka = limited(world, "producer_byte_rate", f64::from(RATE)).await?;
    let producer = kafka.producer().linger(Duration::ZERO).build().await?;
    let began = world.elapsed();

    let mut sent = Vec::new();
    for number in 0..RECORDS {
        let record = Record::new(&*topic.name, vec![number as u8; 10_000]);
        sent.push(world.calls().within(PATIENCE, "enqueue", producer.enqueue(record)).await??);
    }
    for handle in sent {
        world.calls().within(PATIENCE, "delivery", handle).await??;
    }

    let (took, silence) = (world.elapsed() - began, silence(&kafka));
    let over = RECORDS * 10_000 - WINDOWS * RATE;
    let least = Duration::from_secs((over / RATE).into()) / 2;
    // A connection that a drawn fault resets takes its throttle with it, and what a fault holds up takes longer.
    if world.kind() != Kind::Simulated {
        ensure!(silence > Duration::ZERO, "nobody asked for silence");
        ensure!((least..5 * least).contains(&took), "{took:?} for what takes {:?} at the quota", 2 * least);
    }
    world.forget(&topic);
    world.calls().within(PATIENCE, "close", producer.close()).await??;
    Ok(())
}

/// TH-11, AD-08: sixty partitions are made at five for each second, which is more than is free at first.
pub async fn makers_of_topics_over_their_quota(world: &World) -> Result<()> {
    let kafka = limited(world, "controller_mutation_rate", 5.0).await?;
    let admin = kafka.admin();
    let (many, few) = (world.name("many"), world.name("few"));
    let make = |name: &str, partitions| NewTopic::new(name, partitions).replication_factor(1);
    let began = world.elapsed();

    let made = world.calls().within(PATIENCE, "create", admin.create_topics([make(&many, 60)])).await??;
    made.into_values().collect::<krafka::Result<()>>()?;
    let brief = admin.clone().with_timeout(Duration::from_millis(50));
    let hasty = brief.create_topics([make(&few, 1)]);
    let hasty: krafka::Result<()> = world.calls().within(PATIENCE, "create", hasty).await??.into_values().collect();
    let made = world.calls().within(PATIENCE, "create", admin.create_topics([make(&few, 1)])).await??;
    let made: krafka::Result<()> = made.into_values().collect();
    let grown = world.calls().within(PATIENCE, "extend", admin.create_partitions([(&few, 6)])).await??;
    grown.into_values().collect::<krafka::Result<()>>()?;
    let gone = world.calls().within(PATIENCE, "delete", admin.delete_topics([&few, &many])).await??;
    gone.into_values().collect::<krafka::Result<()>>()?;

    let took = world.elapsed() - began;
    if world.kind() != Kind::Simulated {
        let refused = matches!(&hasty, Err(error) if error.is_retriable());
        ensure!(refused, "a call that does not wait gave {hasty:?}");
        ensure!(made.is_ok(), "a call that waits gave {made:?}");
        ensure!(took >= Duration::from_secs(1), "it took {took:?}, where more was made than is free");
        ensure!(silence(&kafka) > Duration::ZERO, "nobody asked for silence");
    } else if let Err(error) = &made {
        // The hasty one came through a fault, and was answered late.
        let there = matches!(error, KrafkaError::Broker { code: ErrorCode::TOPIC_ALREADY_EXISTS, .. });
        ensure!(there, "a call that waits gave {error:?}");
    }
    Ok(())
}
