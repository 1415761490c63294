//! What is in a cluster, as JSON. Groups and transactions are told in the words of the admin API: the cluster, or
//! rather a copy of it, is asked as any client would ask.

use std::time::Instant;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use krafka_protocol::api::consumer_group_describe::ConsumerGroupDescribeRequest;
use krafka_protocol::api::describe_groups::DescribeGroupsRequest;
use krafka_protocol::api::describe_transactions::DescribeTransactionsRequest;
use krafka_protocol::api::list_groups::ListGroupsRequest;
use krafka_protocol::api::list_transactions::ListTransactionsRequest;
use krafka_protocol::api::share_group_describe::ShareGroupDescribeRequest;
use krafka_protocol::api::streams_group_describe::StreamsGroupDescribeRequest;
use krafka_protocol::records::Record;
use krafka_protocol::{AnyRequest, ErrorCode, Str};
use serde_json::{Map, Value, json};

use super::telemetry;
use crate::context::{Context, Outcome};
use crate::coordinators::{self, CoordinatorKind};
use crate::faults::Node;
use crate::groups;
use crate::handlers;
use crate::history::Event;
use crate::state::State;
use crate::topics::Topic;

pub(super) fn nodes(state: &State) -> Value {
    let controller = state.nodes.controller();
    let view = |(id, node): (i32, &crate::nodes::Node)| {
        let connections = state.connections.values().filter(|open| open.node == id).count();
        let ports = node.ports.iter().map(|(listener, port)| (listener.to_string(), json!(port)));
        let ports = Value::Object(ports.collect());
        json!({
            "node": id,
            "host": &*node.host,
            "advertised": node.told(state.config.listeners.first()).0.to_string(),
            "ports": ports,
            "up": node.up,
            "fenced": node.fenced,
            "paused": node.paused,
            "hidden": node.hidden,
            "refusing": node.refusing,
            "controller": id == controller,
            "connections": connections,
            "kafka": node.version.to_string(),
        })
    };
    state.nodes.iter().map(view).collect()
}

pub(super) fn topics(state: &State) -> Value {
    state.topics.iter().map(|topic| json!({ "topic": &*topic.name, "internal": topic.internal })).collect()
}

pub(super) fn topic(topic: &Topic) -> Value {
    let partitions = topic.indexed().map(|(index, partition)| {
        json!({
            "partition": index,
            "leader": partition.leader,
            "leader_epoch": partition.leader_epoch,
            "replicas": partition.replicas,
            "isr": partition.isr,
            "eligible_leader_replicas": partition.eligible.replicas,
            "log_start_offset": partition.log.start_offset(),
            "last_stable_offset": partition.log.last_stable_offset(),
            "high_watermark": partition.log.high_watermark(),
            "end_offset": partition.log.end_offset(),
        })
    });
    let partitions: Value = partitions.collect();
    json!({
        "topic": &*topic.name,
        "topic_id": topic.id.to_string(),
        "internal": topic.internal,
        "partitions": partitions,
    })
}

pub(super) fn record(record: &Record) -> Value {
    let headers = record.headers.iter().map(|header| json!([header.name(), header.value.map(text)]));
    let headers: Value = headers.collect();
    json!({
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": record.key.as_deref().map(text),
        "value": record.value.as_deref().map(text),
        "headers": headers,
    })
}

/// All groups, as their coordinators list them.
pub(super) fn groups(state: &State, now: Instant) -> Value {
    list(state, now, "/groups", &|| ListGroupsRequest::default().into())
}

/// All transactions, as their coordinators list them.
pub(super) fn transactions(state: &State, now: Instant) -> Value {
    list(state, now, "/transaction_states", &|| ListTransactionsRequest::default().into())
}

/// A group, as its coordinator describes it, and what it committed; nothing if there is no such group.
pub(super) fn group(state: &State, group: &str, now: Instant) -> Option<Value> {
    let group = Str::from(group);
    if groups::view(state, &group).is_none() && state.offsets.of_group(&group).next().is_none() {
        return None;
    }
    let node = coordinators::find(state, CoordinatorKind::Group, &group);
    let requests: [AnyRequest; 4] = [
        ConsumerGroupDescribeRequest { group_ids: vec![group.clone()], ..Default::default() }.into(),
        ShareGroupDescribeRequest { group_ids: vec![group.clone()], ..Default::default() }.into(),
        StreamsGroupDescribeRequest { group_ids: vec![group.clone()], ..Default::default() }.into(),
        DescribeGroupsRequest { groups: vec![group.clone()], ..Default::default() }.into(),
    ];
    let mut described = Value::Null;
    for request in requests {
        let mut answer = node.map_or(Value::Null, |node| ask(state, node, &request, now));
        let mut found = take(&mut answer, "/groups/0");
        let is_found = found.pointer("/error_code") == Some(&json!(ErrorCode::NONE.0));
        if described.is_null() || is_found {
            described = found.take();
        }
        if is_found {
            break;
        }
    }
    let mut committed = Map::new();
    for (topic, partitions) in state.offsets.of_group(&group) {
        let offset = |(index, at): (i32, &crate::offsets::Committed)| {
            (
                index.to_string(),
                json!({ "offset": at.offset, "leader_epoch": at.leader_epoch, "metadata": &*at.metadata }),
            )
        };
        committed.insert(topic.to_string(), Value::Object(partitions.into_iter().map(offset).collect()));
    }
    Some(json!({ "group": &*group, "coordinator": node, "described": described, "committed": committed }))
}

/// A transaction, as its coordinator describes it; nothing if nobody used that id.
pub(super) fn transaction(state: &State, id: &str, now: Instant) -> Option<Value> {
    state.transactions.find(id)?;
    let node = coordinators::find(state, CoordinatorKind::Transaction, id);
    let request = DescribeTransactionsRequest { transactional_ids: vec![Str::from(id)] }.into();
    let mut answer = node.map_or(Value::Null, |node| ask(state, node, &request, now));
    let described = take(&mut answer, "/transaction_states/0");
    Some(json!({ "transactional_id": id, "coordinator": node, "described": described }))
}

pub(super) fn event(event: &Event) -> Value {
    let mut request = Node::of(event.request.structure()).to_json();
    telemetry::explain(&event.request, &mut request);
    json!({
        "id": event.id.0,
        "node": event.node,
        "connection": event.connection.0,
        "client_id": event.client_id.as_deref(),
        "api": event.key.name(),
        "version": event.version,
        "correlation_id": event.correlation_id,
        "request": request,
        "response": event.response.as_ref().map(|response| Node::of(response.structure()).to_json()),
    })
}

/// What all live nodes list, together.
fn list(state: &State, now: Instant, field: &str, request: &dyn Fn() -> AnyRequest) -> Value {
    let mut all = Vec::new();
    for (node, _) in state.nodes.live() {
        if let Value::Array(listed) = take(&mut ask(state, node, &request(), now), field) {
            all.extend(listed);
        }
    }
    Value::Array(all)
}

/// Asks a copy of the cluster, in which nobody is refused anything.
fn ask(state: &State, node: i32, request: &AnyRequest, now: Instant) -> Value {
    let mut copy = state.clone();
    copy.acls.enabled = false;
    let Some(versions) = handlers::versions(state, node, request.key()) else { return Value::Null };
    let cx = Context::own(&copy, node, request.key(), versions.max, now);
    match handlers::handle(&mut copy, &cx, request) {
        Outcome::Reply(response)
        | Outcome::ReplyAndClose(response)
        | Outcome::ReplyLate(response, _)
        | Outcome::ReplyLateAndClose(response, _) => Node::of(response.structure()).to_json(),
        Outcome::Park(_) | Outcome::NoReply | Outcome::Close => Value::Null,
    }
}

/// Takes a part out of an answer: null if it is not there.
fn take(answer: &mut Value, pointer: &str) -> Value {
    answer.pointer_mut(pointer).map(Value::take).unwrap_or_default()
}

/// Bytes as text, or in base64 where they are none.
fn text(bytes: &[u8]) -> Value {
    std::str::from_utf8(bytes).map_or_else(|_| json!({ "base64": STANDARD.encode(bytes) }), |text| json!(text))
}
