//! Stories of sessions that end (KIP-368). The fake renews them as brokers do; what becomes of it on a real one is
//! asked by `conformance`, at its doors.

use std::time::Duration;

use krafka::consumer::AutoOffsetReset;
use krafka_protocol::ApiKey;

use super::SESSION;
use crate::workload::Readers;
use crate::world::PATIENCE;
use crate::{Kind, Result, World, ensure, workload};

/// How many records are sent, a few at a time, over the length of several sessions.
const RECORDS: u64 = 1_200;

/// AU-07: traffic before, between and behind renewals, in both directions.
pub async fn sessions_end_under_load(world: &World) -> Result<()> {
    let fake = world.fake()?;
    let connections = || fake.history().count(ApiKey::ApiVersions);
    let logins = || fake.history().count(ApiKey::SaslHandshake);

    let (mut before, mut renewed) = ((0, 0), 0);
    work(world, Duration::from_secs(10), async || before = (connections(), logins())).await?;
    renewed += logins() - before.1;

    ensure!(renewed >= 3, "{renewed} renewals in four sessions");
    if world.kind() == Kind::Scripted {
        // Only a fault costs a connection; at the end its invariants ask the cluster by a client of their own.
        let made = connections() - before.0;
        ensure!(made == 0, "{made} connections were made anew");
    }
    Ok(())
}

/// AU-09, AU-14: connections that die, fall silent or are slow just when their sessions are renewed.
pub async fn renewals_fail(world: &World) -> Result<()> {
    let fake = world.fake()?;
    work(world, Duration::from_secs(3), async || {
        fake.when(ApiKey::SaslHandshake).times(1).drop_connection();
        fake.when(ApiKey::SaslAuthenticate).nth(3).times(1).drop_connection();
        fake.when(ApiKey::SaslHandshake).nth(4).times(1).silence();
        fake.when(ApiKey::SaslAuthenticate).nth(8).times(2).delay(Duration::from_secs(1));
        fake.when(ApiKey::SaslAuthenticate).nth(12).times(1).after_handling().drop_connection();
    })
    .await
}

/// A producer and a group at work for four sessions; `settled` runs when the first records are acknowledged.
async fn work(world: &World, connect_timeout: Duration, settled: impl AsyncFnOnce()) -> Result<()> {
    let topic = world.topic("orders").partitions(3).create().await?;
    let connect = world.kafka_builder().connect_timeout(connect_timeout).connect();
    let kafka = world.calls().within(PATIENCE, "connect", connect).await??;
    let producer = kafka.producer().linger(Duration::ZERO).build().await?;
    let consumer = kafka.consumer("readers").auto_offset_reset(AutoOffsetReset::Earliest).build().await?;
    world.calls().within(PATIENCE, "subscribe", consumer.subscribe(&[&topic.name])).await??;
    let mut readers = Readers::of(world, "readers");
    readers.add(world, "one", consumer);

    let pause = (20, 4 * SESSION / (RECORDS / 20) as u32);
    let sending = workload::send_paced(world, &producer, &topic, "a", 1..=RECORDS, pause);
    sending.acked(200).await?;
    settled().await;
    let sent = sending.finish().await?;
    sent.all_acked()?;
    readers.read_all(world, &[&sent]).await?;

    crate::invariants::group::read_all(&sent, &readers.finish().await?)
}
