//! Consumers that know their rack, and read from the replica there (KIP-392). Node 1 stands in `rack-1`, and so on.

use std::time::Duration;

use krafka::protocol::ApiKey;
use krafka::{Consumer, Kafka};

use super::leaders::{leader, reassign, replicated};
use super::road::Road;
use super::work::Work;
use super::{AutoOffsetReset, NODES, NewTopic, Record, Result, Stage, client, ensure, topic, until};

const SECOND: Duration = Duration::from_secs(1);

/// How long a leader's word holds.
const LEASE: Duration = Duration::from_secs(4);

/// A client that stands in the rack of a node that follows the leader of a new topic's first partition.
struct Racks<'a> {
    stage: &'a Stage,
    road: Road,
    kafka: Kafka,
    topic: String,
    leader: i32,
    near: i32,
}

impl<'a> Racks<'a> {
    async fn new(stage: &'a Stage) -> Result<Self> {
        let (road, topic) = (Road::default(), topic(stage, replicated).await?);
        let admin = client(stage)?.connect().await?;
        let leader = until("the partition is led", async || leader(&admin, &topic, 0).await).await?;
        let near = leader % NODES + 1;
        let builder = client(stage)?.environment(road.environment()).metadata_max_age(LEASE);
        let kafka = builder.client_rack(format!("rack-{near}")).connect().await?;
        Ok(Self { stage, road, kafka, topic, leader, near })
    }

    /// How often a node was asked for records.
    fn fetches_of(&self, node: i32) -> Result<usize> {
        let address = self.stage.address(node)?;
        Ok(self.road.heard_of(ApiKey::Fetch).iter().filter(|heard| heard.to == address).count())
    }

    /// Waits until the near node is asked for records.
    async fn near_is_asked(&self, work: &mut Work) -> Result<()> {
        let before = self.fetches_of(self.near)?;
        let is_asked = async || (self.fetches_of(self.near).ok()? > before + 10).then_some(());
        work.beside(until("the near node is asked", is_asked)).await
    }

    /// A consumer of the first partition alone.
    async fn reader(&self) -> Result<Consumer> {
        let builder = self.kafka.consumer_without_group().auto_offset_reset(AutoOffsetReset::Earliest);
        let consumer = builder.build().await?;
        consumer.assign(&self.topic, vec![0]).await?;
        Ok(consumer)
    }
}

/// LE-24: of each partition the records come from the node in the reader's rack, and the leader is asked about that
/// once in each lease.
pub(super) async fn records_come_from_the_replica_in_ones_rack(stage: &Stage) -> Result<()> {
    let racks = Racks::new(stage).await?;
    let mut work = Work::begin(&racks.kafka, &racks.topic, NODES, stage.name("group")).await?;
    racks.near_is_asked(&mut work).await?;
    let (led, near) = (racks.fetches_of(racks.leader)?, racks.fetches_of(racks.near)?);

    work.go_on(2 * LEASE + SECOND).await?;
    let (led, near) = (racks.fetches_of(racks.leader)? - led, racks.fetches_of(racks.near)? - near);
    work.finish().await?;

    // It leads one partition, and each end of a lease may find a fetch on its way.
    ensure!((1..=12).contains(&led), "the leader was asked {led} times in two leases");
    ensure!(near > 100, "the near node was asked {near} times, the leader {led} times");
    Ok(())
}

/// LE-25: the replica is not asked whether a position is too far: a reset is for the leader to say.
pub(super) async fn a_position_that_no_replica_has_is_reset(stage: &Stage) -> Result<()> {
    let racks = Racks::new(stage).await?;
    let producer = racks.kafka.producer().linger(Duration::ZERO).build().await?;
    for _ in 0..3 {
        producer.send(Record::new(&*racks.topic, "tea").partition(0)).await?;
    }
    let consumer = racks.reader().await?;
    let read = until("a record", async || consumer.poll(SECOND).await.ok()?.first().map(|read| read.offset)).await?;
    ensure!(read == 0, "offset {read}");
    until("the near node is asked", async || (racks.fetches_of(racks.near).ok()? > 2).then_some(())).await?;
    let led = racks.fetches_of(racks.leader)?;

    consumer.seek(&racks.topic, 0, 1_000_000).await?;
    let again = until("a record", async || consumer.poll(SECOND).await.ok()?.first().map(|read| read.offset)).await?;

    ensure!(again == 0, "offset {again} instead of the first");
    let led = racks.fetches_of(racks.leader)? - led;
    ensure!(led >= 1, "the leader was not asked");
    Ok(())
}

/// MD-23: a member that knows its rack joins anew when what its group reads moves to others; one that knows none does
/// not (KIP-881).
pub(super) async fn a_group_rebalances_when_its_partitions_change_racks(stage: &Stage) -> Result<()> {
    let admin = client(stage)?.connect().await?;
    for (rack, range) in [("rack-1", 1..=3), ("", 0..=0)] {
        let name = topic(stage, |name| NewTopic::new(name, NODES).replication_factor(1)).await?;
        reassign(&admin, &name, 1).await?;
        let road = Road::default();
        let builder = client(stage)?.environment(road.environment()).metadata_max_age(SECOND);
        let kafka = builder.client_rack(rack).connect().await?;
        let consumer = kafka.consumer(stage.name("group")).build().await?;
        consumer.subscribe(&[&name]).await?;
        let has_all = async || {
            consumer.poll(SECOND / 10).await.ok()?;
            (consumer.assignment().len() == NODES as usize).then_some(())
        };
        until("all partitions are assigned", has_all).await?;
        let before = road.heard_of(ApiKey::JoinGroup).len();

        reassign(&admin, &name, 2).await?;
        for _ in 0..6 {
            consumer.poll(SECOND).await?;
        }
        let joins = road.heard_of(ApiKey::JoinGroup).len() - before;
        consumer.close().await?;

        ensure!(range.contains(&joins), "in rack '{rack}' it joined {joins} times");
    }
    Ok(())
}

/// LE-26: the node in the reader's rack is killed, and comes back: records come from the leaders meanwhile, and none
/// is lost or comes twice.
pub(super) async fn nothing_is_lost_with_a_killed_replica_in_ones_rack(stage: &Stage) -> Result<()> {
    let racks = Racks::new(stage).await?;
    let mut work = Work::begin(&racks.kafka, &racks.topic, NODES, stage.name("group")).await?;
    racks.near_is_asked(&mut work).await?;

    work.beside(stage.crash(racks.near)).await?;
    work.until_more().await?;
    work.go_on(2 * SECOND).await?;
    work.beside(stage.restart(racks.near)).await?;
    racks.near_is_asked(&mut work).await?;
    work.until_more().await?;
    work.finish().await
}
