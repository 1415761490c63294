//! Clusters that are gone as a whole: back where they were, or somewhere else (KIP-899).

use std::time::Duration;

use krafka::MetadataRecoveryStrategy;

use super::road::Road;
use super::{
    AutoOffsetReset, Failure, Kafka, NODES, NewTopic, PATIENCE, Record, Result, Stage, client, ensure, refused, topic,
    until, within,
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
    stage.restart_elsewhere(0).await?;
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

/// CB-22: a node comes back at another port. The others say where; what waited for it goes there, and nothing more to
/// where it was.
pub(super) async fn a_node_that_moved_is_found(stage: &Stage) -> Result<()> {
    let road = Road::default();
    let kafka = client(stage)?.environment(road.environment()).connect().await?;
    let name = topic(stage, |name| NewTopic::new(name, 6).replication_factor(1)).await?;
    let described = kafka.admin().describe_topics([&*name]).await?.into_values().next();
    let partitions = described.and_then(krafka::Result::ok).map(|topic| topic.partitions).unwrap_or_default();
    let led = partitions.iter().find(|partition| partition.leader == Some(3)).map(|led| led.partition);
    let Some(partition) = led else { return Err(Failure::new("node 3 leads none of six partitions")) };
    let producer = kafka.producer().linger(Duration::ZERO).build().await?;
    let record = |value: &'static str| Record::new(&*name, value).partition(partition);
    producer.send(record("before")).await?;
    let former = stage.present_address(3)?;

    stage.crash(3).await?;
    let waiting = producer.enqueue(record("meanwhile")).await?;
    stage.restart_elsewhere(3).await?;
    let present = stage.present_address(3)?;
    let meanwhile = within(PATIENCE, "the record", waiting).await??;
    let moved = road.dials().len();
    let after = within(PATIENCE, "send", producer.send(record("after"))).await??;

    ensure!(present != former, "node 3 is still at {former}");
    ensure!((meanwhile.offset, after.offset) == (1, 2), "offsets {} and {}", meanwhile.offset, after.offset);
    ensure!(road.dials().contains(&present), "{present} was not dialled");
    let back = road.dials().split_off(moved);
    ensure!(!back.contains(&former), "{former} was dialled behind the move");
    stage.crash(3).await?;
    stage.restart_elsewhere(3).await
}

/// RB-05: at a node's address another one answers. It says so, since it is told whom the client means (KIP-1242): the
/// client begins again, and finds the node when it is back. Brokers before 4.4 are not told, and cannot say.
pub(super) async fn another_node_at_an_address_is_noticed(stage: &Stage) -> Result<()> {
    let road = Road::default();
    let kafka = client(stage)?.environment(road.environment()).connect().await?;
    kafka.admin().describe_cluster().await?;
    let (one, other) = (stage.address(1)?, stage.address(2)?);

    road.lead(one, other);
    let misled = within(PATIENCE, "connect", kafka.broker_connection(1)).await?;
    if stage.is_3() {
        return misled.map(drop).map_err(Into::into);
    }
    let error = refused(misled, "a connection to the wrong node")?;
    ensure!(error.is_retriable(), "{error:?}");
    let misrouted = kafka.metrics().connections.misrouted;
    ensure!(misrouted > 0, "nobody noticed");
    road.lead(one, one);
    let right = async || kafka.broker_connection(1).await.ok();
    until("node 1 is found", right).await?;

    let began_again = async || (kafka.metrics().metadata.rebootstraps > 0).then_some(());
    until("the client begins again", began_again).await?;
    within(PATIENCE, "describe", kafka.admin().describe_cluster()).await??;
    Ok(())
}
