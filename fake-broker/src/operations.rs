//! What can be done to a running cluster, as data: a test calls it on [`FakeCluster`](crate::FakeCluster), a rule does
//! it in the moment that a request comes, and the control port takes it as JSON.

mod check;
mod secret;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use krafka_protocol::{ErrorCode, Str};
use serde::{Deserialize, Serialize};

use crate::cluster::Cluster;
use crate::coordinators::{self, CoordinatorKind};
use crate::faults::{KafkaVersion, RuleText, millis};
use crate::groups::share;
use crate::handlers::delete_records::HIGH_WATERMARK;
use crate::listeners::SecurityProtocol;
use crate::nodes::{Advertised, Node};
use crate::operator;
use crate::state::State;
use crate::topics::{self, Partition};
use crate::transactions;

pub use secret::Secret;

/// Something to do to a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the names of the fields say it, and mean the same everywhere")]
pub enum Operation {
    /// Creates a topic with the cluster's replication factor.
    CreateTopic {
        topic: String,
        #[serde(default = "one")]
        partitions: i32,
    },
    /// Deletes a topic with all its records.
    DeleteTopic { topic: String },
    /// Gives a topic more partitions, so that it has `total` of them.
    AddPartitions { topic: String, total: i32 },
    /// Makes a node the leader of a partition, and a replica if it is none; without a node, another replica in sync.
    MoveLeader {
        topic: String,
        partition: i32,
        #[serde(default)]
        node: Option<i32>,
    },
    /// Elects the leader of a partition again: only the epoch changes.
    BumpLeaderEpoch { topic: String, partition: i32 },
    /// Loses the records from `offset` on, as an unclean election does. The partition has it, or it is its end.
    Truncate { topic: String, partition: i32, offset: i64 },
    /// Deletes the records below an offset, as retention does: up to the high watermark, which -1 stands for.
    DeleteRecords { topic: String, partition: i32, before: i64 },
    /// Makes a follower stop fetching.
    Lag { topic: String, partition: i32, node: i32 },
    /// Lets a follower fetch again.
    CatchUp { topic: String, partition: i32, node: i32 },
    /// Forgets what a partition knows of its idempotent producers, as after `producer.id.expiration.ms`.
    ForgetProducers { topic: String, partition: i32 },
    /// Makes a live node the controller.
    MoveController { node: i32 },
    /// Makes a node the coordinator of a group, or of a transactional id, and of all that share its partition of the
    /// internal topic.
    MoveCoordinator {
        #[serde(default)]
        group: Option<String>,
        #[serde(default)]
        transactional_id: Option<String>,
        node: i32,
    },
    /// Makes a node the coordinator of one group or transactional id alone, wherever its partition is led; without a
    /// node, no longer.
    PinCoordinator {
        #[serde(default)]
        group: Option<String>,
        #[serde(default)]
        transactional_id: Option<String>,
        #[serde(default)]
        node: Option<i32>,
    },
    /// Makes the coordinator of a group, or of a transactional id, load for a while: it answers
    /// COORDINATOR_LOAD_IN_PROGRESS.
    LoadCoordinator {
        #[serde(default)]
        group: Option<String>,
        #[serde(default)]
        transactional_id: Option<String>,
        #[serde(rename = "for_ms", with = "millis")]
        time: Duration,
    },
    /// Takes a node down.
    Crash {
        node: i32,
        #[serde(default)]
        durability: Durability,
    },
    /// Brings a node back up.
    Restart { node: i32 },
    /// Stops a node in its tracks, as SIGSTOP does: its connections stay, and nothing is read or answered. It lags
    /// behind those that it follows, and after `broker.session.timeout.ms` the others go on without it.
    Pause { node: i32 },
    /// Lets a paused node go on.
    Resume { node: i32 },
    /// Cuts all connections of a node, which stays up.
    Disconnect { node: i32 },
    /// Refuses new connections to a node, which stays up and keeps those that it has; or takes them again.
    RefuseConnections { node: i32, refuse: bool },
    /// Leaves a live node out of Metadata and DescribeCluster, or names it again. It serves all the same.
    HideNode { node: i32, hidden: bool },
    /// Changes where a node says that its first listener is. On TCP it listens there from now on, on 127.0.0.1.
    MoveNode { node: i32, host: String, port: u16 },
    /// Lets a node say that it is somewhere else than it is: at a name that does not resolve, at another node's
    /// address, at a port where nobody listens. What is absent is the truth; without both, it says again where it is.
    Advertise {
        node: i32,
        #[serde(default)]
        host: Option<String>,
        #[serde(default)]
        port: Option<u16>,
    },
    /// Takes a node out of the cluster for good. Partitions keep it among their replicas.
    RemoveNode { node: i32 },
    /// Freezes what a node answers to Metadata, DescribeTopicPartitions, DescribeCluster and FindCoordinator: it knows
    /// the cluster as it is now, however it changes.
    FreezeMetadata { node: i32 },
    /// Lets a node know the cluster as it is.
    ThawMetadata { node: i32 },
    /// Forgets all fetch sessions of a node, as when its cache is full of others.
    EvictFetchSessions { node: i32 },
    /// Puts another cluster in the place of this one: its id changes, and clients that came before are told to
    /// rebootstrap (129) in Metadata from version 13 on, and in ApiVersions from version 5 on if they say whom they
    /// mean. Without an id, one is drawn.
    SwapClusterId {
        #[serde(default)]
        cluster_id: Option<String>,
    },
    /// Takes the leader of a partition away, until one is moved there or a node that may lead comes back.
    LoseLeader { topic: String, partition: i32 },
    /// Deletes what the topics need not keep any longer.
    ApplyRetention {},
    /// Compacts a partition, however dirty it is.
    Compact { topic: String, partition: i32 },
    /// Holds back the markers of a transactional id's next transactions, or lets them go.
    HoldMarkers { transactional_id: String, hold: bool },
    /// Sets how long it takes from now on until the partitions of a transaction are told how it ends, counted from the
    /// answer to EndTxn: what its producer asks meanwhile is answered CONCURRENT_TRANSACTIONS.
    DelayMarkers {
        #[serde(rename = "by_ms", with = "millis")]
        delay: Duration,
    },
    /// Keeps reassignments of partitions from ending, so that they can be listed and cancelled; or lets them end.
    HoldReassignments { hold: bool },
    /// Lets somebody log in with this password, by every mechanism that takes one. Who has logged in with another
    /// stays until it must log in again.
    SetPassword { user: String, password: Secret },
    /// Gives all nodes another certificate and its key, in PEM, as an operator does before the old one expires: new
    /// connections see it, those that are open stay. What clients must show stays as well.
    SwapCertificate { certificate: String, key: Secret },
    /// Does what a request of any API asks for, as an administrator who may do everything: a change of a config, an
    /// access rule, a feature's level, a quota. The fields have the names that the structs of `krafka_protocol` give
    /// them. If it is answered with an error, it counts as impossible.
    Request {
        api: String,
        #[serde(default)]
        node: Option<i32>,
        #[serde(default)]
        version: Option<i16>,
        #[serde(default)]
        fields: serde_json::Value,
    },
    /// Moves the cluster's time of day, forward or back. Timers are not touched: they count time that passes.
    JumpClock {
        #[serde(rename = "by_ms")]
        by_ms: i64,
    },
}

/// What a crash spares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Durability {
    /// Everything: the other replicas have all that was acknowledged, as with `acks=all`.
    #[default]
    KeepAll,
    /// The partitions that the node led lose up to so many of their newest records, acknowledged or not: what was not
    /// on its disk yet, nor anywhere else.
    LoseTail(u32),
    /// The partitions that the node led forget their idempotent producers.
    LoseProducerState,
}

impl Cluster {
    /// Does something to the cluster.
    ///
    /// # Errors
    ///
    /// Why it cannot be done, in words. Nothing has changed then.
    pub(crate) fn operate(&mut self, operation: &Operation, now: Instant) -> Result<(), String> {
        match operation {
            Operation::Crash { node, durability } => {
                known(&self.state, *node)?;
                share::node_died(&mut self.state, *node);
                self.disconnect(*node, now);
                self.state.crash(*node, *durability, now);
            }
            Operation::RemoveNode { node } => {
                known(&self.state, *node)?;
                share::node_died(&mut self.state, *node);
                self.disconnect(*node, now);
                self.state.node_died(*node, now);
                self.state.nodes.remove(*node);
            }
            Operation::Disconnect { node } => {
                known(&self.state, *node)?;
                self.disconnect(*node, now);
            }
            Operation::Pause { node } => {
                known(&self.state, *node)?;
                self.state.nodes.change(*node, |node| node.paused = true);
                self.state.mind_links(now);
            }
            Operation::Resume { node } => {
                known(&self.state, *node)?;
                self.state.nodes.change(*node, |node| node.paused = false);
                self.state.mind_links(now);
                self.resume(*node, now);
            }
            other => self.state.operate(other, now)?,
        }
        Ok(())
    }
}

impl State {
    fn operate(&mut self, operation: &Operation, now: Instant) -> Result<(), String> {
        match operation {
            Operation::CreateTopic { topic, partitions } => {
                topics::validate_name(topic)?;
                if self.topics.by_name(topic).is_some() {
                    return Err(format!("the topic {topic} exists already"));
                }
                if let Some(other) = self.topics.colliding(topic) {
                    return Err(topics::collision(topic, other));
                }
                if !(1..=MAX_PARTITIONS).contains(partitions) {
                    return Err(format!("the topic {topic} needs from 1 to {MAX_PARTITIONS} partitions"));
                }
                self.has_room()?;
                let replicas = self.config.replication_factor;
                self.add_topic(Str::from(topic.as_str()), *partitions, replicas);
            }
            Operation::DeleteTopic { topic } => {
                let id = self.topics.by_name(topic).ok_or_else(|| no_topic(topic))?.id;
                self.delete_topic(id);
            }
            Operation::AddPartitions { topic, total } => {
                let found = self.topics.by_name(topic).ok_or_else(|| no_topic(topic))?;
                let (id, present) = (found.id, found.partitions.len() as i32);
                if *total <= present {
                    return Err(format!("the topic {topic} has {present} partitions already"));
                }
                if *total > MAX_PARTITIONS {
                    return Err(format!("a topic has at most {MAX_PARTITIONS} partitions"));
                }
                self.has_room()?;
                let replicas = self.config.replication_factor;
                let assignments = (present..*total).map(|index| self.place(index, replicas)).collect();
                self.grow_topic(id, assignments);
            }
            Operation::MoveLeader { topic, partition, node } => self.lead_from(topic, *partition, *node, now)?,
            Operation::BumpLeaderEpoch { topic, partition } => {
                self.known_partition(topic, *partition)?;
                self.bump_leader_epoch(topic, *partition, now);
            }
            Operation::Truncate { topic, partition, offset } => {
                let log = &self.known_partition(topic, *partition)?.log;
                let (start, end) = (log.start_offset(), log.end_offset());
                if !(start..=end).contains(offset) {
                    return Err(format!("{topic}-{partition} has offsets from {start} to its end {end}, not {offset}"));
                }
                self.truncate(topic, *partition, *offset, now);
            }
            Operation::DeleteRecords { topic, partition, before } => {
                let high_watermark = self.known_partition(topic, *partition)?.log.high_watermark();
                let before = if *before == HIGH_WATERMARK { high_watermark } else { *before };
                if !(0..=high_watermark).contains(&before) {
                    let name = ErrorCode::OFFSET_OUT_OF_RANGE.name();
                    let words = format!("the high watermark of {topic}-{partition} is {high_watermark}");
                    return Err(format!("{name}: {words}, and `before` {before}"));
                }
                let id = self.topics.by_name(topic).ok_or_else(|| no_topic(topic))?.id;
                self.delete_records(id, *partition, before);
            }
            Operation::Lag { topic, partition, node } => {
                if !self.set_lag(topic, *partition, *node, true, Some(now)) {
                    return Err(format!("node {node} does not follow the leader of {topic}-{partition}"));
                }
            }
            Operation::CatchUp { topic, partition, node } => {
                if !self.set_lag(topic, *partition, *node, false, Some(now)) {
                    return Err(format!("node {node} has no replica of {topic}-{partition}"));
                }
                self.finish_reassignments(now);
            }
            Operation::ForgetProducers { topic, partition } => {
                self.known_partition(topic, *partition)?;
                if let Some(partition) = self.topics.partition_mut(topic, *partition) {
                    partition.log.producers.forget_idle();
                }
            }
            Operation::MoveController { node } => {
                live(self, *node)?;
                self.nodes.set_controller(*node);
            }
            Operation::MoveCoordinator { group, transactional_id, node } => {
                let (kind, key) = coordinated(group, transactional_id)?;
                live(self, *node)?;
                coordinators::ensure_topic(self, kind);
                let index = self.spread.partition_for(kind, key);
                self.lead_from(kind.topic(), index, Some(*node), now)?;
            }
            Operation::PinCoordinator { group, transactional_id, node } => {
                let (kind, key) = coordinated(group, transactional_id)?;
                if let Some(node) = node {
                    known(self, *node)?;
                }
                coordinators::ensure_topic(self, kind);
                coordinators::pin(self, kind, key, *node);
            }
            Operation::LoadCoordinator { group, transactional_id, time } => {
                coordinated(group, transactional_id)?;
                if !time.is_zero() {
                    let rule = RuleText::loading(group.clone(), transactional_id.clone(), *time);
                    self.faults.book().install(rule, now)?;
                }
            }
            other => return self.operate_further(other, now),
        }
        Ok(())
    }

    fn operate_further(&mut self, operation: &Operation, now: Instant) -> Result<(), String> {
        match operation {
            Operation::LoseLeader { topic, partition } => {
                self.known_partition(topic, *partition)?;
                if let Some(found) = self.topics.partition_mut(topic, *partition) {
                    found.lose_leader();
                }
                self.leader_changed(topic, *partition, now);
            }
            Operation::ApplyRetention {} => self.apply_retention(now),
            Operation::Compact { topic, partition } => {
                self.known_partition(topic, *partition)?;
                self.compact(topic, *partition, now);
            }
            Operation::HoldMarkers { transactional_id, hold: true } => self.transactions.hold(transactional_id),
            Operation::HoldMarkers { transactional_id, hold: false } => {
                transactions::release(self, transactional_id, now);
            }
            Operation::DelayMarkers { delay } => transactions::delay_markers(self, *delay),
            Operation::HoldReassignments { hold } => {
                self.reassignments.held = *hold;
                self.finish_reassignments(now);
            }
            Operation::SetPassword { user, password } => {
                check::named_and_not_empty(user, password)?;
                self.logins.set_password(&Str::from(user.as_str()), &Str::from(password.reveal()));
            }
            Operation::SwapCertificate { certificate, key } => self.swap_certificate(certificate, key)?,
            Operation::Request { api, node, version, fields } => {
                let answer = self.request(api, *node, *version, fields, now)?;
                if let Some(code) = operator::error_in(&answer) {
                    return Err(format!("{api} was answered with {}", code.name()));
                }
            }
            other => return self.operate_nodes(other, now),
        }
        Ok(())
    }

    fn operate_nodes(&mut self, operation: &Operation, now: Instant) -> Result<(), String> {
        match operation {
            Operation::Restart { node } => {
                known(self, *node)?;
                self.spread_keys_anew(now);
                self.node_returned(*node, now);
            }
            Operation::RefuseConnections { node, refuse } => {
                known(self, *node)?;
                self.nodes.change(*node, |node| node.refusing = *refuse);
            }
            Operation::HideNode { node, hidden } => {
                known(self, *node)?;
                self.nodes.change(*node, |node| node.hidden = *hidden);
            }
            Operation::MoveNode { node, host, port } => {
                known(self, *node)?;
                let first = self.config.listeners.first();
                self.nodes.change(*node, |node| {
                    node.host = Str::from(host.as_str());
                    node.ports.insert(first, *port);
                });
            }
            Operation::Advertise { node, host, port } => {
                known(self, *node)?;
                let own = self.nodes.find(*node).map(|node| node.host.clone()).unwrap_or_default();
                let is_true = host.is_none() && port.is_none();
                let host = host.as_deref().map_or(own, Str::from);
                let told = (!is_true).then_some(Advertised { host, port: *port });
                self.nodes.change(*node, |node| node.advertised = told);
            }
            Operation::FreezeMetadata { node } => {
                known(self, *node)?;
                self.freeze(*node);
            }
            Operation::ThawMetadata { node } => {
                known(self, *node)?;
                self.frozen.remove(node);
            }
            Operation::EvictFetchSessions { node } => {
                known(self, *node)?;
                if let Some(sessions) = self.sessions.get_mut(node) {
                    sessions.clear();
                }
            }
            Operation::SwapClusterId { cluster_id } => {
                operation.check()?;
                let drawn = || self.ids.uuid().to_string();
                let id = cluster_id.clone().unwrap_or_else(drawn);
                std::sync::Arc::make_mut(&mut self.config).cluster_id = Str::from(id);
                for open in self.connections.values_mut() {
                    open.is_of_former_cluster = true;
                }
            }
            Operation::JumpClock { by_ms } => {
                operation.check()?;
                self.clock.jump(*by_ms);
            }
            // The others are done where they are told from these.
            _ => {}
        }
        Ok(())
    }

    /// Adds a node, which looks like a version of Kafka, or else like the first one there is.
    pub(crate) fn add_node(
        &mut self,
        node: i32,
        host: Str,
        ports: BTreeMap<SecurityProtocol, u16>,
        version: Option<KafkaVersion>,
    ) {
        let (version, profile) = version.map_or_else(|| self.nodes.look(), |version| (version, None));
        self.nodes.insert(node, Node { profile, ..Node::new(host, ports, None, version) });
        self.sessions.insert(node, self.new_sessions());
    }

    #[cfg(feature = "tls")]
    fn swap_certificate(&mut self, certificate: &str, key: &Secret) -> Result<(), String> {
        let tls = self.tls.as_ref().ok_or("no listener of the cluster speaks TLS")?;
        let swapped = tls.with_certificate(certificate.as_bytes(), key.reveal().as_bytes());
        self.tls = Some(swapped.map_err(|error| error.to_string())?);
        Ok(())
    }

    #[cfg(not(feature = "tls"))]
    fn swap_certificate(&self, _: &str, _: &Secret) -> Result<(), String> {
        Err("this build of the fake broker speaks no TLS".to_owned())
    }

    /// Moves a leader to a node, or to another replica in sync that is up.
    fn lead_from(&mut self, topic: &str, index: i32, node: Option<i32>, now: Instant) -> Result<(), String> {
        let found = self.known_partition(topic, index)?;
        let other = || found.isr.iter().copied().find(|node| Some(*node) != found.leader && self.nodes.is_up(*node));
        let node = node.or_else(other).ok_or_else(|| format!("no other replica of {topic}-{index} is in sync"))?;
        live(self, node)?;
        if let Some(partition) = self.topics.partition_mut(topic, index)
            && !partition.replicas.contains(&node)
        {
            partition.replicas.push(node);
        }
        self.move_leader(topic, index, node, now);
        Ok(())
    }

    fn known_partition(&self, topic: &str, index: i32) -> Result<&Partition, String> {
        self.topics.partition(topic, index).ok_or_else(|| format!("there is no partition {topic}-{index}"))
    }

    /// Takes a node down, and what it had not saved.
    fn crash(&mut self, node: i32, durability: Durability, now: Instant) {
        let led: Vec<(Str, i32)> = self
            .topics
            .iter()
            .flat_map(|topic| topic.indexed().map(move |(index, partition)| (topic, index, partition)))
            .filter(|(.., partition)| partition.leader == Some(node))
            .map(|(topic, index, _)| (topic.name.clone(), index))
            .collect();
        self.node_died(node, now);
        for (topic, index) in led {
            match durability {
                Durability::KeepAll => {}
                Durability::LoseTail(records) => {
                    let end = self.topics.partition(&topic, index).map_or(0, |partition| partition.log.end_offset());
                    self.truncate(&topic, index, end - i64::from(records), now);
                }
                Durability::LoseProducerState => {
                    if let Some(partition) = self.topics.partition_mut(&topic, index) {
                        partition.log.producers.clear();
                    }
                }
            }
        }
    }
}

/// The most partitions that a topic has.
pub(crate) const MAX_PARTITIONS: i32 = 100_000;

fn one() -> i32 {
    1
}

fn known(state: &State, node: i32) -> Result<(), String> {
    state.nodes.find(node).map(|_| ()).ok_or_else(|| format!("there is no node {node}"))
}

fn live(state: &State, node: i32) -> Result<(), String> {
    known(state, node)?;
    if state.nodes.is_up(node) { Ok(()) } else { Err(format!("node {node} is not up")) }
}

/// What a coordinator is asked to do something about: one of the two.
fn coordinated<'a>(
    group: &'a Option<String>,
    transactional_id: &'a Option<String>,
) -> Result<(CoordinatorKind, &'a str), String> {
    match (group, transactional_id) {
        (Some(group), None) => Ok((CoordinatorKind::Group, group)),
        (None, Some(id)) => Ok((CoordinatorKind::Transaction, id)),
        _ => Err("a coordinator is that of either a group or a transactional_id".to_owned()),
    }
}

fn no_topic(topic: &str) -> String {
    format!("there is no topic {topic}")
}
