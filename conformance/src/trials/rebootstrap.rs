//! Clusters that are gone as a whole: back where they were, or somewhere else (KIP-899).

use std::time::Duration;

use krafka::MetadataRecoveryStrategy;

use super::road::Road;
use super::{
    AutoOffsetReset, Kafka, NODES, NewTopic, PATIENCE, Record, Result, Stage, client, ensure, refused, topic, within,
};

const SECOND: Duration = Duration::from_secs(1);

async fn crash_all(stage: &Stage) -> Result<()> {
    for node in 1..=NODES {
        stage.crash(node).await?;
    }
    Ok(())
}

fn replicated(name: &str) -> NewTopic {
    NewTopic::new(name, 1).replication_factor(3)
}

/// RB-10: while nobody answers, the client keeps trying, with pauses that grow; when the nodes are back, it goes on by
/// itself, and sends what waited.
pub(super) async fn who_lost_all_brokers_goes_on_when_they_are_back(stage: &Stage) -> Result<()> {
    let road = Road::default();
    let kafka = client(stage)?.environment(road.environment()).connect().await?;
    let name = topic(stage, replicated).await?;
    let producer = kafka.producer().linger(Duration::ZERO).build().await?;
    producer.send(Record::new(&*name, "before")).await?;
    crash_all(stage).await?;

    let waiting = producer.enqueue(Record::new(&*name, "meanwhile")).await?;
    let dials = road.dials().len();
    tokio::time::sleep(3 * SECOND).await;
    let dialled = road.dials().len() - dials;
    stage.restart_all().await?;

    let meanwhile = within(PATIENCE, "the record", waiting).await??;
    ensure!(meanwhile.offset == 1, "offset {} instead of 1", meanwhile.offset);
    // Six addresses at most are dialled: those of the brokers, and those of the bootstrap servers, seven times each.
    ensure!((1..=42).contains(&dialled), "{dialled} dials in three seconds");
    Ok(())
}

/// RB-01, RB-02, RB-09: all nodes come back at other addresses, and the bootstrap server's name leads there. A client
/// finds them, its producer and its group go on; one that was told not to keeps looking where they were, and says so.
pub(super) async fn a_cluster_that_moved_is_found_through_its_bootstrap_servers(stage: &Stage) -> Result<()> {
    let road = Road::default();
    road.lead("seed:9092", &stage.present_address(1)?);
    let builder = || Kafka::builder("seed:9092").environment(road.environment()).request_timeout(5 * SECOND);
    let kafka = builder().connect().await?;
    let faithful = builder().metadata_recovery_strategy(MetadataRecoveryStrategy::None).connect().await?;
    faithful.admin().describe_cluster().await?;
    let name = topic(stage, replicated).await?;
    let producer = kafka.producer().linger(Duration::ZERO).build().await?;
    let consumer = kafka.consumer(stage.name("group")).auto_offset_reset(AutoOffsetReset::Earliest).build().await?;
    consumer.subscribe(&[&name]).await?;
    producer.send(Record::new(&*name, "before")).await?;
    within(PATIENCE, "recv", consumer.recv()).await??;
    consumer.commit().await?;
    let former = stage.present_address(1)?;

    crash_all(stage).await?;
    let waiting = producer.enqueue(Record::new(&*name, "meanwhile")).await?;
    stage.restart_elsewhere().await?;
    let present = stage.present_address(1)?;
    ensure!(present != former, "node 1 is still at {present}");
    road.lead("seed:9092", &present);

    let meanwhile = within(PATIENCE, "the record", waiting).await??;
    ensure!(meanwhile.offset == 1, "offset {} instead of 1", meanwhile.offset);
    let read = within(PATIENCE, "recv", consumer.recv()).await??;
    ensure!(read.value.as_deref() == Some(b"meanwhile"), "{read:?}");
    within(PATIENCE, "commit", consumer.commit()).await??;
    ensure!(kafka.metrics().metadata.rebootstraps > 0, "it did not begin again");
    let admin = faithful.admin().with_timeout(3 * SECOND);
    let error = refused(within(PATIENCE, "describe", admin.describe_cluster()).await?, "a client that must not look")?;
    ensure!(error.is_retriable(), "{error:?}");
    let rebootstraps = faithful.metrics().metadata.rebootstraps;
    ensure!(rebootstraps == 0, "it began again {rebootstraps} times, and was told not to");
    Ok(())
}
