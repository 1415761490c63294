//! Laws of the rules that hold for every API that has a handler, without a line for any of them.

use std::time::Instant;

use krafka_protocol::frame::{Frame, encode_any_request};
use krafka_protocol::schema::{FieldType, MessageSchema};
use krafka_protocol::{AnyRequest, AnyResponse, ApiKey, Bytes, ErrorCode, Machine, Reader, Str, Uuid};
use krafka_protocol::{Versions, decode_response_header};

use super::place::Meaning;
use super::tree::{Node, Tree};
use super::{Apis, RuleBuilder};
use crate::cluster::{Action, Cluster, Input};
use crate::context::ConnectionId;
use crate::faults::Faults;
use crate::handle::FakeCluster;
use crate::history::History;
use crate::listeners::SecurityProtocol;
use crate::rng::Rng;
use crate::{handlers, state::State};

/// A code that no handler gives by itself.
const CODE: ErrorCode = ErrorCode(9_999);
const CONNECTION: ConnectionId = ConnectionId(1);

#[expect(clippy::disallowed_methods, reason = "a test may begin at any time")]
fn some_time() -> Instant {
    Instant::now()
}

fn cluster(now: Instant) -> Cluster {
    let builder = FakeCluster::builder().topic("orders", 2).start_time_ms(1_700_000_000_000);
    // A connection that ends leaves no trace if no timer watches it.
    let builder = builder.property("connections.max.idle.ms", "-1").expect("a setting of Kafka");
    let mut cluster = builder.build_machine(now);
    cluster.handle(
        Input::Opened { connection: CONNECTION, node: 1, listener: SecurityProtocol::Plaintext, subject: None },
        now,
    );
    drain(&mut cluster, now);
    cluster
}

/// What is written, or nothing if the cluster closes the connection or is silent.
fn drain(cluster: &mut Cluster, now: Instant) -> Option<Frame> {
    let mut written = None;
    while let Some(action) = cluster.poll(now) {
        if let Action::Write { frame, .. } = action {
            written = Some(frame);
        }
    }
    written
}

/// A request that names the topic, its first partition and a group wherever it can name any.
fn sample(key: ApiKey, version: i16, topic_id: Uuid) -> AnyRequest {
    let [schema, _] = key.schemas().expect("it is spoken");
    // Kafka has no answer for a request that uses ids before it could, although it had the field.
    let topic_id = if key == ApiKey::Metadata && version < 12 { Uuid::ZERO } else { topic_id };
    let mut bytes = Vec::new();
    fill(schema, topic_id).encode(version, schema.is_flexible(version), &mut bytes);
    AnyRequest::decode(key, version, &mut Reader::new(Bytes::from(bytes))).expect("a request that was just written")
}

fn fill(schema: &'static MessageSchema, topic_id: Uuid) -> Node {
    let fields = schema.fields.iter().map(|field| value(schema.name, field.name, &field.field_type, topic_id));
    Node { schema, fields: fields.collect() }
}

fn value(structure: &str, field: &str, field_type: &FieldType, topic_id: Uuid) -> Tree {
    let text = match Meaning::of(structure, field) {
        Some(Meaning::Topic) => "orders",
        Some(Meaning::Group | Meaning::CoordinatorKey) => "g",
        _ => "x",
    };
    match field_type {
        FieldType::Bool => Tree::Bool(false),
        FieldType::Float64 => Tree::Float(1.0),
        FieldType::String => Tree::Str(Str::from(text)),
        FieldType::Bytes | FieldType::Records => Tree::Bytes(Bytes::new()),
        FieldType::Uuid => Tree::Uuid(topic_id),
        FieldType::Array(element) => Tree::Array(vec![value(structure, field, element, topic_id)]),
        FieldType::Struct(schema) => Tree::Struct(fill(schema, topic_id)),
        _ if Meaning::of(structure, field) == Some(Meaning::Partition) || field == "key_type" => Tree::Int(0),
        _ => Tree::Int(1),
    }
}

/// Whether a message has the code anywhere.
fn has_code(node: &Node) -> bool {
    node.fields.iter().any(|value| match value {
        Tree::Int(code) => *code == i64::from(CODE.0),
        Tree::Array(elements) => elements.iter().any(|element| matches!(element, Tree::Struct(node) if has_code(node))),
        Tree::Struct(node) => has_code(node),
        _ => false,
    })
}

/// All that a request can change for good, in words.
fn lasting(state: &State) -> String {
    let mut state = state.clone();
    state.connections.clear();
    state.history = History::default();
    state.faults = Faults::new(0);
    state.ids = Rng::stream(0, "");
    format!("{state:?}")
}

fn served(cluster: &Cluster) -> Vec<(ApiKey, Versions)> {
    let keys = ApiKey::SPOKEN.iter().copied();
    keys.filter_map(|key| Some((key, handlers::versions(cluster.state(), 1, key)?))).collect()
}

/// FI-14: a rule that names nothing finds the place for its error in the answer of each API in each version, and
/// nothing that lasts is done.
#[test]
fn every_api_can_be_refused_in_every_version() {
    let now = some_time();
    for (key, versions) in served(&cluster(now)) {
        for version in versions.iter() {
            let mut cluster = cluster(now);
            let topic_id = cluster.state().topics.by_name("orders").expect("it was made").id;
            let rule = RuleBuilder::new(cluster.state().faults.book(), Apis::from(key), now).reply_error(CODE);
            let before = lasting(cluster.state());
            let request = sample(key, version, topic_id);

            let frame = encode_any_request(&request, version, 7, Some("test")).expect("a legal request");
            let frame = frame.to_bytes().slice(4..);
            cluster.handle(Input::Received { connection: CONNECTION, frame }, now);

            let what = format!("{} {version}", key.name());
            let answer = drain(&mut cluster, now).unwrap_or_else(|| panic!("{what}: no answer to {request:?}"));
            let mut reader = Reader::new(answer.to_bytes().slice(4..));
            decode_response_header(key, version, &mut reader).expect("a header");
            let answer = AnyResponse::decode(key, version, &mut reader).expect("a legal answer");
            // DescribeLogDirs has room for it since version 3; before that Kafka just tells of no directory.
            let has_no_room = key == ApiKey::DescribeLogDirs && version < 3;
            let is_told = has_no_room || has_code(&Node::of(answer.structure()));
            assert!(is_told, "{what}: {answer:?}");
            assert_eq!(rule.hits(), 1, "{what}");
            assert_eq!(before, lasting(cluster.state()), "{what}: it was refused, and did something");
        }
    }
}
