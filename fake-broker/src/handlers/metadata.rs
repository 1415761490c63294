//! Metadata: the nodes, and the leaders of topics.

use krafka_protocol::api::metadata::{MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic};
use krafka_protocol::{ErrorCode, MetadataRequest, MetadataResponse, NodeIds, Str, Uuid};

use super::{operations, parts};
use crate::context::{Context, Outcome};
use crate::coordinators::OFFSETS_TOPIC;
use crate::security::acls::Operation;
use crate::state::State;
use crate::topics::{self, Partition, Topic};

pub(crate) fn handle(state: &mut State, cx: &Context, request: &MetadataRequest) -> Outcome<MetadataResponse> {
    // Who has not logged in is not told what the cluster is like, either.
    if let Some(code) = cx.denied().filter(|code| *code == ErrorCode::ILLEGAL_SASL_STATE) {
        return Outcome::Reply(refused(request, code));
    }
    let Ok(asked) = Asked::new(request, cx.version) else {
        // Ids came in version 12.
        return Outcome::Reply(refused(request, ErrorCode::INVALID_REQUEST));
    };
    let topics = match asked {
        Asked::All => state
            .topics
            .iter()
            .filter(|topic| cx.topic_error(state, Operation::Describe, &topic.name).is_none())
            .map(|topic| describe(state, cx, topic))
            .collect(),
        Asked::Ids(ids) => in_order(ids.into_iter().map(|id| by_id(state, cx, id)).collect()),
        Asked::Names(names) => {
            let create = request.allow_auto_topic_creation && state.config.auto_create_topics;
            in_order(names.into_iter().map(|name| by_name(state, cx, name, create)).collect())
        }
    };

    let brokers = state.nodes.live().map(|(node_id, node)| {
        let (host, port) = node.told(cx.listener);
        MetadataResponseBroker { node_id, host, port, rack: node.rack.clone() }
    });
    let mut response = MetadataResponse {
        brokers: brokers.collect(),
        cluster_id: Some(state.config.cluster_id.clone()),
        controller_id: state.nodes.controller(),
        topics,
        ..MetadataResponse::default()
    };
    if (8..=10).contains(&cx.version) && request.include_cluster_authorized_operations {
        response.cluster_authorized_operations = operations::cluster(state, cx);
    }
    if cx.version >= 8 && request.include_topic_authorized_operations {
        let refused = ErrorCode::TOPIC_AUTHORIZATION_FAILED.0;
        for topic in response.topics.iter_mut().filter(|topic| topic.error_code != refused) {
            if let Some(name) = &topic.name {
                topic.topic_authorized_operations = operations::topic(state, cx, name);
            }
        }
    }
    Outcome::Reply(response)
}

/// The answer to a request that is refused as a whole: nothing but an error for each topic that it names.
fn refused(request: &MetadataRequest, code: ErrorCode) -> MetadataResponse {
    let topics = request.topics.iter().flatten().map(|topic| MetadataResponseTopic {
        error_code: code.0,
        name: Some(topic.name.clone().unwrap_or_default()),
        topic_id: topic.topic_id,
        ..MetadataResponseTopic::default()
    });
    MetadataResponse { topics: topics.collect(), cluster_id: None, controller_id: -1, ..MetadataResponse::default() }
}

/// Puts what is there before what is not, and behind both what is not the client's to see; unknown ids before all.
fn in_order(mut topics: Vec<MetadataResponseTopic>) -> Vec<MetadataResponseTopic> {
    topics.sort_by_key(|topic| match ErrorCode(topic.error_code) {
        ErrorCode::UNKNOWN_TOPIC_ID => 0,
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION | ErrorCode::INVALID_TOPIC_EXCEPTION => 2,
        ErrorCode::TOPIC_AUTHORIZATION_FAILED => 3,
        _ => 1,
    });
    topics
}

/// What a request asks for.
enum Asked {
    All,
    /// Each once, as the next.
    Ids(Vec<Uuid>),
    Names(Vec<Str>),
}

impl Asked {
    fn new(request: &MetadataRequest, version: i16) -> Result<Self, ()> {
        let Some(topics) = &request.topics else { return Ok(Self::All) };
        if version == 0 && topics.is_empty() {
            return Ok(Self::All);
        }
        if version < 12 && topics.iter().any(|topic| topic.name.is_none() || !topic.topic_id.is_zero()) {
            return Err(());
        }
        let ids: Vec<_> = topics.iter().map(|topic| topic.topic_id).filter(|id| !id.is_zero()).collect();
        // A request that has an id is looked up by ids alone, as in Kafka.
        if !ids.is_empty() {
            return Ok(Self::Ids(parts::keys(ids)));
        }
        Ok(Self::Names(parts::keys(topics.iter().filter_map(|topic| topic.name.clone()))))
    }
}

fn by_id(state: &State, cx: &Context, topic_id: Uuid) -> MetadataResponseTopic {
    match state.topics.by_id(topic_id) {
        Some(topic) => match cx.topic_error(state, Operation::Describe, &topic.name) {
            // Ids are no secret, but names are.
            Some(code) => failed(None, topic_id, code),
            None => describe(state, cx, topic),
        },
        None => failed(None, topic_id, ErrorCode::UNKNOWN_TOPIC_ID),
    }
}

fn by_name(state: &mut State, cx: &Context, name: Str, create: bool) -> MetadataResponseTopic {
    if let Some(code) = cx.topic_error(state, Operation::Describe, &name) {
        return failed(Some(name), Uuid::ZERO, code);
    }
    if let Some(topic) = state.topics.by_name(&name) {
        return describe(state, cx, topic);
    }
    if topics::validate_name(&name).is_err() {
        return failed(Some(name), Uuid::ZERO, ErrorCode::INVALID_TOPIC_EXCEPTION);
    }
    // What collides with another name is refused by the controller, of which the client hears nothing.
    if create && state.topics.colliding(&name).is_none() {
        let (partitions, replication_factor) = (state.config.default_partitions, state.config.replication_factor);
        state.add_topic(name.clone(), partitions, replication_factor);
    }
    // A topic that is being created is unknown to this answer; the next one has it.
    failed(Some(name), Uuid::ZERO, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
}

fn failed(name: Option<Str>, topic_id: Uuid, code: ErrorCode) -> MetadataResponseTopic {
    let is_internal = name.as_deref() == Some(OFFSETS_TOPIC);
    MetadataResponseTopic { error_code: code.0, name, topic_id, is_internal, ..MetadataResponseTopic::default() }
}

fn describe(state: &State, cx: &Context, topic: &Topic) -> MetadataResponseTopic {
    let partitions = topic.indexed().map(|(index, partition)| describe_partition(state, cx, index, partition));
    MetadataResponseTopic {
        error_code: 0,
        name: Some(topic.name.clone()),
        topic_id: topic.id,
        is_internal: topic.internal,
        partitions: partitions.collect(),
        ..MetadataResponseTopic::default()
    }
}

fn describe_partition(state: &State, cx: &Context, index: i32, partition: &Partition) -> MetadataResponsePartition {
    let is_up = |node: &i32| state.nodes.is_up(*node);
    // Version 0 has no list of offline replicas: it leaves dead ones out, and says so by an error.
    let shown =
        |nodes: &[i32]| -> NodeIds { nodes.iter().copied().filter(|node| cx.version > 0 || is_up(node)).collect() };
    let replica_nodes = shown(&partition.replicas);
    let error = match partition.leader {
        None => ErrorCode::LEADER_NOT_AVAILABLE,
        Some(_) if replica_nodes.len() < partition.replicas.len() => ErrorCode::REPLICA_NOT_AVAILABLE,
        Some(_) => ErrorCode::NONE,
    };
    MetadataResponsePartition {
        error_code: error.0,
        partition_index: index,
        leader_id: partition.leader.unwrap_or(-1),
        leader_epoch: partition.leader_epoch,
        isr_nodes: shown(&partition.isr),
        offline_replicas: partition.replicas.iter().copied().filter(|node| !is_up(node)).collect(),
        replica_nodes,
    }
}
