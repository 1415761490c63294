//! A cluster that is upgraded and downgraded again, node by node, under a client that stays.

use std::collections::BTreeSet;
use std::time::Duration;

use krafka::protocol::ApiKey;

use super::road::Road;
use super::work::Work;
use super::{Failure, NODES, NewTopic, Result, Stage, client, ensure, topic, until};
use crate::provider::NEWEST;
use crate::provider::stage::OLDEST;

/// The node that is a controller alone.
const CONTROLLER: i32 = NODES + 1;

/// The first version of Produce with ids of topics instead of their names: a broker of Kafka 3 has none with them.
const WITH_IDS: i16 = 13;

/// AV-07, AV-08, AV-09: each node is spoken to as it can, from its next connection on, and what moves from one to
/// another is said anew: topics by their ids at a new node, by their names at an old one. Nothing is lost on the way up
/// or down.
pub(super) async fn nothing_is_lost_while_the_cluster_changes_its_release(stage: &Stage) -> Result<()> {
    let road = Road::default();
    let kafka = client(stage)?.environment(road.environment()).connect().await?;
    let replicated = |name: &str| NewTopic::new(name, NODES).replication_factor(3).config("min.insync.replicas", "2");
    let name = topic(stage, replicated).await?;
    let mut work = Work::begin(&kafka, &name, NODES, stage.name("group")).await?;
    let mut heard = 0;
    let spoken = |from: &mut usize| {
        let all = road.heard_of(ApiKey::Produce);
        let versions: BTreeSet<_> = all[*from..].iter().map(|heard| heard.version >= WITH_IDS).collect();
        *from = all.len();
        versions
    };
    ensure!(spoken(&mut heard) == BTreeSet::from([false]), "a broker of {OLDEST} was asked by ids");

    let up = [CONTROLLER, 1, 2, 3].map(|node| (node, NEWEST));
    let down = [3, 2, 1, CONTROLLER].map(|node| (node, OLDEST));
    for (node, release) in up.into_iter().chain(down) {
        work.beside(stage.crash(node)).await?;
        work.beside(stage.restart_as(node, release)).await?;
        work.until_more().await?;
        let in_sync = async || {
            let described = kafka.admin().describe_topics([&*name]).await.ok()?.into_values().next()?.ok()?;
            let is_led = described.partitions.iter().all(|partition| partition.isr.len() == NODES as usize);
            is_led.then_some(())
        };
        work.beside(until("all replicas are in sync", in_sync)).await?;
        let versions = spoken(&mut heard);
        if (node, release) == (3, NEWEST) {
            // The client's connections to the first nodes that were upgraded are new ones, too.
            work.go_on(Duration::from_secs(2)).await?;
            let newest = road.heard_of(ApiKey::Produce).pop().ok_or_else(|| Failure::new("nothing was written"))?;
            ensure!(newest.version >= WITH_IDS, "Produce {} at a broker of {NEWEST}", newest.version);
        } else if release == OLDEST && node != CONTROLLER {
            ensure!(versions.contains(&false) || node == 3, "brokers of {OLDEST} and {NEWEST} were asked alike");
        }
    }
    spoken(&mut heard);
    work.until_more().await?;
    ensure!(spoken(&mut heard) == BTreeSet::from([false]), "a broker of {OLDEST} was asked by ids");
    work.finish().await
}
