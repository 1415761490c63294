//! Leaders that die, fall silent and are replaced, while records are written and read.

use std::time::Duration;

use krafka::Kafka;
use krafka::consumer::OffsetAndMetadata;
use krafka::protocol::api::alter_partition_reassignments::{ReassignablePartition, ReassignableTopic};
use krafka::protocol::{AlterPartitionReassignmentsRequest, ApiKey};

use super::road::Road;
use super::work::Work;
use super::{AutoOffsetReset, NODES, NewTopic, Record, Result, Stage, client, ensure, topic, until, within};

const SECOND: Duration = Duration::from_secs(1);

pub(super) async fn leader(kafka: &Kafka, topic: &str, partition: usize) -> Option<i32> {
    let described = kafka.admin().describe_topics([topic]).await.ok()?.into_values().next()?.ok()?;
    described.partitions.get(partition)?.leader
}

pub(super) fn replicated(name: &str) -> NewTopic {
    NewTopic::new(name, NODES).replication_factor(3).config("min.insync.replicas", "2")
}

/// LE-08, LE-19: the leader of a partition is killed, and for seconds there is none. Nothing is lost or comes twice,
/// and the reader asks the new leader where the former one's epoch ended before it goes on.
pub(super) async fn nothing_is_lost_with_a_killed_leader(stage: &Stage) -> Result<()> {
    let road = Road::default();
    let kafka = client(stage)?.environment(road.environment()).connect().await?;
    let name = topic(stage, replicated).await?;
    let mut work = Work::begin(&kafka, &name, NODES, stage.name("group")).await?;
    let leads = leader(&kafka, &name, 0).await.unwrap_or(1);

    work.beside(stage.crash(leads)).await?;
    let other = async || leader(&kafka, &name, 0).await.filter(|other| *other != leads);
    work.beside(until("another node leads", other)).await?;
    work.until_more().await?;
    work.beside(stage.restart(leads)).await?;
    work.until_more().await?;
    work.finish().await?;

    let asked = road.heard_of(ApiKey::OffsetForLeaderEpoch).len();
    ensure!(asked > 0, "nobody asked where the epoch ended");
    Ok(())
}

/// LE-19: a leader falls silent for longer than the others wait for it, and goes on after they have chosen
/// another.
pub(super) async fn nothing_is_lost_with_a_silent_leader(stage: &Stage) -> Result<()> {
    let kafka = client(stage)?.request_timeout(2 * SECOND).connect().await?;
    let name = topic(stage, replicated).await?;
    let mut work = Work::begin(&kafka, &name, NODES, stage.name("group")).await?;
    let leads = leader(&kafka, &name, 0).await.unwrap_or(1);

    work.beside(stage.pause(leads)).await?;
    let other = async || leader(&kafka, &name, 0).await.filter(|other| *other != leads);
    work.beside(until("another node leads", other)).await?;
    work.beside(stage.resume(leads)).await?;
    work.until_more().await?;
    work.finish().await
}

/// Moves all partitions of a topic to one node.
pub(super) async fn reassign(kafka: &Kafka, topic: &str, node: i32) -> Result<()> {
    let partition = |index| ReassignablePartition { partition_index: index, replicas: Some(vec![node]) };
    let moved = ReassignableTopic { name: topic.into(), partitions: (0..NODES).map(partition).collect() };
    let request = AlterPartitionReassignmentsRequest {
        timeout_ms: 10_000,
        topics: vec![moved],
        ..AlterPartitionReassignmentsRequest::default()
    };
    let answer = kafka.broker_connection(node).await?.call(request).await?;
    let partitions = answer.responses.iter().flat_map(|topic| &topic.partitions);
    let codes: Vec<_> = partitions.map(|partition| partition.error_code).chain([answer.error_code]).collect();
    ensure!(codes.iter().all(|code| *code == 0), "errors {codes:?}");
    let there = async || {
        for partition in 0..NODES as usize {
            leader(kafka, topic, partition).await.filter(|leader| *leader == node)?;
        }
        Some(())
    };
    until("the node leads all partitions", there).await
}

/// LE-28, MD-08: all replicas move from node to node, one of which is killed and comes back in between: while it is
/// down nobody leads, which is no epoch.
pub(super) async fn nothing_is_lost_while_replicas_move(stage: &Stage) -> Result<()> {
    let kafka = client(stage)?.connect().await?;
    let name = topic(stage, |name| NewTopic::new(name, NODES).replication_factor(1)).await?;
    let mut work = Work::begin(&kafka, &name, NODES, stage.name("group")).await?;

    work.beside(reassign(&kafka, &name, 1)).await?;
    work.until_more().await?;
    work.beside(reassign(&kafka, &name, 2)).await?;
    work.until_more().await?;
    work.beside(stage.crash(2)).await?;
    work.beside(stage.restart(2)).await?;
    work.until_more().await?;
    work.beside(reassign(&kafka, &name, 3)).await?;
    work.until_more().await?;
    work.finish().await
}

/// LE-01: who writes to a former leader hears who leads now, and writes there at once, without asking for metadata
/// (KIP-951).
pub(super) async fn a_former_leader_names_the_next(stage: &Stage) -> Result<()> {
    let road = Road::default();
    let name = topic(stage, |name| NewTopic::new(name, NODES).replication_factor(1)).await?;
    let admin = client(stage)?.connect().await?;
    reassign(&admin, &name, 1).await?;
    let kafka = client(stage)?.environment(road.environment()).connect().await?;
    let producer = kafka.producer().linger(Duration::ZERO).build().await?;
    for node in 1..=NODES {
        // The first to come knows nobody yet; and connections to all nodes are there.
        kafka.broker_connection(node).await?;
        producer.send(Record::new(&*name, "tea").partition(0)).await?;
    }
    let before = road.heard().len();

    reassign(&admin, &name, 2).await?;
    let sent = within(20 * SECOND, "send", producer.send(Record::new(&*name, "milk").partition(0))).await??;

    let heard = road.heard().split_off(before);
    let words: Vec<_> = heard
        .iter()
        .filter(|heard| heard.is(ApiKey::Produce) || heard.is(ApiKey::Metadata))
        .map(|heard| (heard.is(ApiKey::Produce), &*heard.to))
        .collect();
    let expected = [(true, stage.address(1)?), (true, stage.address(2)?)];
    ensure!(words == expected, "{words:?} instead of {expected:?}");
    ensure!(sent.offset == i64::from(NODES), "offset {}", sent.offset);
    Ok(())
}

/// LE-15: a seek behind the end of an epoch that is over lands where it ended.
pub(super) async fn a_seek_with_an_older_epoch_lands_where_it_ended(stage: &Stage) -> Result<()> {
    let name = topic(stage, |name| NewTopic::new(name, NODES).replication_factor(1)).await?;
    let kafka = client(stage)?.connect().await?;
    let producer = kafka.producer().linger(Duration::ZERO).build().await?;
    let builder = kafka.consumer_without_group().auto_offset_reset(AutoOffsetReset::Earliest);
    let consumer = builder.build().await?;
    consumer.assign(&name, vec![0]).await?;
    let mut epochs = Vec::new();
    for node in [1, 2] {
        reassign(&kafka, &name, node).await?;
        for _ in 0..5 {
            producer.send(Record::new(&*name, "tea").partition(0)).await?;
        }
        let mut read = Vec::new();
        while read.len() < 5 {
            read.extend(within(20 * SECOND, "records", consumer.poll(20 * SECOND)).await??);
        }
        epochs.extend(read.first().and_then(|record| record.leader_epoch));
    }
    ensure!(epochs.len() == 2 && epochs[0] < epochs[1], "the epochs were {epochs:?}");

    let mut landed = Vec::new();
    for epoch in &epochs {
        consumer.seek(&name, 0, OffsetAndMetadata::new(8).leader_epoch(*epoch)).await?;
        let read = within(20 * SECOND, "records", consumer.poll(20 * SECOND)).await??;
        landed.extend(read.first().map(|record| record.offset));
    }

    ensure!(landed == [5, 8], "the seeks landed at {landed:?}");
    Ok(())
}

/// MD-22, RB-06: all nodes are killed and started again, one after the other, twice. There was always one to ask, so
/// the client never begins again with its bootstrap servers.
pub(super) async fn nothing_is_lost_while_all_nodes_are_restarted(stage: &Stage) -> Result<()> {
    let kafka = client(stage)?.connect().await?;
    let name = topic(stage, replicated).await?;
    let mut work = Work::begin(&kafka, &name, NODES, stage.name("group")).await?;

    for node in [1, 2, 3] {
        work.beside(stage.crash(node)).await?;
        work.go_on(SECOND).await?;
        work.beside(stage.restart(node)).await?;
        work.until_more().await?;
        let in_sync = async || {
            let described = kafka.admin().describe_topics([&*name]).await.ok()?.into_values().next()?.ok()?;
            described.partitions.iter().all(|partition| partition.isr.len() == NODES as usize).then_some(())
        };
        work.beside(until("all replicas are in sync", in_sync)).await?;
    }
    work.finish().await?;

    let rebootstraps = kafka.metrics().metadata.rebootstraps;
    ensure!(rebootstraps == 0, "it began again {rebootstraps} times");
    Ok(())
}
