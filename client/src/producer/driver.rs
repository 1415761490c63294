//! The producer's task: carries out what the [`Sender`] decides.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use krafka_protocol::api::produce::{PartitionProduceData, TopicProduceData};
use krafka_protocol::{ApiKey, ErrorCode, InitProducerIdRequest, ProduceRequest};
use tokio::sync::mpsc::UnboundedReceiver;

use super::accumulator::Accumulator;
use super::builder::{Acks, Settings};
use super::identity::ProducerId;
use super::metrics::ProducerCounters;
use super::sender::{Action, Input, Outgoing, Sender};
use crate::cluster::{Cluster, Node};
use crate::drive::{self, Work};
use crate::error::KrafkaError;
use crate::network::{CallError, Connection, Lane, Network, throttle};
use crate::rng::Rng;

/// What the task acts on.
pub(super) struct World {
    pub(super) network: Network,
    pub(super) cluster: Cluster,
    pub(super) accumulator: Arc<Accumulator>,
    pub(super) settings: Settings,
    pub(super) owner: u64,
}

/// Fails what callers appended, when the task ends: after a proper close there is nothing left, but a runtime may be
/// shut down at any time, and nobody may wait for ever.
struct LastWill(Arc<Accumulator>);

impl Drop for LastWill {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

pub(super) async fn run(
    world: World,
    inputs: UnboundedReceiver<Input<Connection>>,
    counters: Arc<ProducerCounters>,
    seed: u64,
) {
    let _last_will = LastWill(world.accumulator.clone());
    world.network.hold(Lane::Produce);
    let rng = Rng::stream(seed, "producer");
    let mut sender = Sender::new(world.settings.clone(), counters, world.cluster.snapshot(), rng);
    drive::run(&mut sender, inputs, |action, work| world.carry_out(action, work)).await;
    world.cluster.watch_topics(world.owner, Vec::new());
    world.network.release(vec![Lane::Produce]);
}

impl World {
    fn carry_out(&self, action: Action<Connection>, work: &mut Work<Input<Connection>>) -> ControlFlow<()> {
        match action {
            Action::Seal { slot, number } => self.accumulator.seal(slot, number),
            Action::Connect(node) => {
                let network = self.network.clone();
                work.start(async move {
                    match network.connection(&node, Lane::Produce).await {
                        Ok(link) => Input::Connected { node: node.id, link },
                        Err(error) => Input::Unreachable { node: node.id, error: error.into() },
                    }
                });
            }
            Action::Produce { request, link, batches } => self.produce(request, &link, batches, work),
            Action::Identify => {
                let (network, cluster, timeout) =
                    (self.network.clone(), self.cluster.clone(), self.settings.request_timeout);
                work.start(async move {
                    match identify(&network, &cluster, timeout).await {
                        Ok(producer) => Input::Identified(producer),
                        Err(error) => Input::Unidentified { is_final: !error.is_retriable(), error },
                    }
                });
            }
            Action::Refresh(topic) => self.cluster.refresh(&[topic]),
            Action::Keep(topics) => self.cluster.watch_topics(self.owner, topics),
            Action::Rest(topic) => self.accumulator.topics.rest(&topic),
            Action::Hint(hint) => self.cluster.leader_hint(hint),
            Action::Watch(since) => {
                let (cluster, accumulator) = (self.cluster.clone(), self.accumulator.clone());
                work.start(async move {
                    let snapshot = cluster.changed(since).await;
                    accumulator.topics.observe(&snapshot);
                    Input::Changed(snapshot)
                });
            }
            Action::Settle(receipt, settled) => receipt.settle(settled),
            Action::Recycle(batch) => {
                if let Some(buffer) = batch.into_buffer() {
                    self.accumulator.memory.recycle(buffer);
                }
            }
            Action::Stop => return ControlFlow::Break(()),
        }
        ControlFlow::Continue(())
    }

    fn produce(&self, request: u64, link: &Connection, batches: Vec<Outgoing>, work: &mut Work<Input<Connection>>) {
        let timeout = self.settings.request_timeout;
        let lost = move |error: CallError| Input::Lost {
            request,
            possibly_written: error.possibly_written(),
            is_retriable: error.is_retriable(),
            error: error.into(),
        };
        let version = match link.version::<ProduceRequest>() {
            // From version 13 on topics go by their ids. A broker that tells no ids in its metadata wants the names.
            Ok(version) if batches.iter().any(|batch| batch.topic_id.is_zero()) => version.min(LAST_WITH_NAMES),
            Ok(version) => version,
            Err(error) => return work.start(std::future::ready(lost(error))),
        };
        let produce = ProduceRequest {
            transactional_id: None,
            acks: self.settings.acks.code(),
            timeout_ms: i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX),
            topic_data: by_topic(batches),
        };
        if self.settings.acks == Acks::None {
            let pending = link.submit_unanswered(produce, version, timeout);
            work.start(async move {
                match pending.await {
                    Ok(()) => Input::Written { request },
                    Err(error) => lost(error),
                }
            });
        } else {
            let pending = link.submit_at(produce, version, timeout);
            work.start(async move {
                match pending.await {
                    Ok(response) => {
                        Input::Answered { request, pause: throttle(ApiKey::Produce, version, &response), response }
                    }
                    Err(error) => lost(error),
                }
            });
        }
    }
}

/// The last version of Produce that names topics.
const LAST_WITH_NAMES: i16 = 12;

/// The batches as a request wants them: those of a topic together.
fn by_topic(mut batches: Vec<Outgoing>) -> Vec<TopicProduceData> {
    batches.sort_by(|a, b| a.destination.name.cmp(&b.destination.name));
    let mut topics: Vec<TopicProduceData> = Vec::new();
    for Outgoing { destination, topic_id, records } in batches {
        let data = PartitionProduceData { index: destination.partition, records: Some(records) };
        match topics.last_mut() {
            Some(topic) if topic.name == destination.name => topic.partition_data.push(data),
            _ => topics.push(TopicProduceData { name: destination.name.clone(), topic_id, partition_data: vec![data] }),
        }
    }
    topics
}

/// Asks any broker for a producer id.
async fn identify(network: &Network, cluster: &Cluster, timeout: Duration) -> Result<ProducerId, KrafkaError> {
    let mut snapshot = cluster.snapshot();
    if snapshot.nodes.is_empty() {
        snapshot = cluster.load(&[]).await?;
    }
    let best = snapshot.nodes.values().min_by_key(|node| network.cost(node, Lane::Control));
    let Some(node) = best else {
        return Err(KrafkaError::timeout("asking for a producer id: no broker is known"));
    };
    let request = InitProducerIdRequest {
        transactional_id: None,
        // Of no effect without a transactional id; what the Java client sends.
        transaction_timeout_ms: i32::MAX,
        ..InitProducerIdRequest::default()
    };
    let connection = network.connection(node, Lane::Control).await.map_err(|error| explained(error.into()))?;
    let response = connection.call(request, timeout).await.map_err(|error| explained(error.into()))?;
    match ErrorCode(response.error_code) {
        ErrorCode::NONE => Ok(ProducerId { id: response.producer_id, epoch: response.producer_epoch }),
        code => Err(refused(code, node)),
    }
}

#[cold]
fn refused(code: ErrorCode, node: &Node) -> KrafkaError {
    let remedy = if code.is_retriable() { "" } else { REMEDY };
    KrafkaError::broker(code, format!("asking {node} for a producer id{remedy}"))
}

/// Adds the remedy to an error that says that the broker cannot give ids.
#[cold]
fn explained(error: KrafkaError) -> KrafkaError {
    match &error {
        KrafkaError::Protocol { message, .. } => error.saying(format!("{message}{REMEDY}")),
        _ => error,
    }
}

const REMEDY: &str = " (an idempotent producer needs one: grant Write on the topic or IdempotentWrite on the cluster, \
                      or build the producer with idempotent(false))";
