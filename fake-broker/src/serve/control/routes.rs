//! What the control port can be asked: one line for each method and path.

use std::time::Duration;

use krafka_protocol::ApiKey;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::http::{Reply, Request};
use super::record::RecordBody;
use super::{telemetry, transactions, views};
use crate::faults::{KafkaVersion, Listed, Never, Rule, RuleText, UnknownVersion};
use crate::handle::FakeCluster;
use crate::json_words;
use crate::operations::Operation;
use crate::operator::Unasked;

/// How long a wait lasts that does not say.
const PATIENCE_MS: u64 = 10_000;
/// The longest wait.
const MAX_PATIENCE_MS: u64 = 600_000;
/// How many records and events are shown that nobody asked fewer of.
pub(super) const SHOWN: usize = 100;

/// What a route comes to.
pub(super) enum Answer {
    /// The answer.
    Now(Reply),
    /// A node is to be added, which looks like a version of Kafka, or like the others.
    Node(FakeCluster, Option<KafkaVersion>),
    /// A rule is waited for.
    Wait(Wait),
}

/// Somebody waits for a rule to have acted so often.
pub(super) struct Wait {
    rule: Rule,
    hits: u64,
    patience: Duration,
    /// How long the rule may still act, if its time is limited.
    left: Option<Duration>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WaitBody {
    #[serde(default = "one")]
    hits: u64,
    #[serde(default = "patience")]
    timeout_ms: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestBody {
    api: String,
    #[serde(default)]
    node: Option<i32>,
    #[serde(default)]
    version: Option<i16>,
    #[serde(default)]
    fields: Value,
}

/// What is read where nothing is wanted.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoBody {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeBody {
    #[serde(default)]
    version: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OffsetBody {
    topic: String,
    partition: i32,
    offset: i64,
    #[serde(default)]
    metadata: String,
}

/// The paths, for who asks for none.
const PATHS: &[&str] = &[
    "GET /rules",
    "POST /rules",
    "DELETE /rules",
    "GET /rules/{id}",
    "DELETE /rules/{id}",
    "POST /rules/{id}/wait",
    "GET /complaints",
    "POST /requests",
    "POST /cluster",
    "GET /nodes",
    "POST /nodes",
    "GET /topics",
    "GET /topics/{topic}",
    "GET /topics/{topic}/{partition}/records?offset=&limit=",
    "POST /topics/{topic}/{partition}/records",
    "GET /groups",
    "GET /groups/{group}",
    "POST /groups/{group}/offsets",
    "GET /transactions",
    "GET /transactions/{transactional_id}",
    "POST /transactions/{transactional_id}",
    "POST /transactions/{transactional_id}/records",
    "POST /transactions/{transactional_id}/end",
    "POST /transactions/{transactional_id}/hold",
    "POST /transactions/{transactional_id}/release",
    "DELETE /transactions/{transactional_id}",
    "GET /snapshots",
    "POST /snapshots",
    "POST /snapshots/{number}/restore",
    "DELETE /snapshots/{number}",
    "GET /telemetry?client_id=&client_instance_id=&node=&since=&limit=",
    "GET /history?api=&client_id=&node=&connection=&since=&limit=",
];

/// Answers a request, or says how to.
///
/// # Errors
///
/// The answer to a request that asks for what is not there, or in a form that is none.
pub(super) fn route(fake: FakeCluster, request: &Request) -> Result<Answer, Reply> {
    let path: Vec<&str> = request.path.iter().map(String::as_str).collect();
    if path != ["history"] && path != ["telemetry"] && path.last() != Some(&"records") {
        known_query(request, &[])?;
    }
    if takes_no_body(&request.method, &path) {
        let NoBody {} = body(request)?;
    }
    let reply = match (request.method.as_str(), path.as_slice()) {
        ("GET", []) => Reply::ok(json!({ "bootstrap": fake.bootstrap(), "paths": PATHS })),
        ("GET", ["rules"]) => Reply::ok(fake.book().list().iter().map(rule_view).collect()),
        ("POST", ["rules"]) => {
            let text: RuleText = shown_body(request)?;
            let rule = fake.install(text).map_err(|reason| Reply::error(400, reason))?;
            Reply { status: 201, body: json!({ "id": rule.id() }) }
        }
        ("DELETE", ["rules"]) => {
            fake.clear_faults();
            Reply::ok(json!({}))
        }
        ("GET", ["rules", id]) => {
            let id = number(id)?;
            let listed = fake.book().list().into_iter().find(|rule| rule.id == id);
            Reply::ok(rule_view(&listed.ok_or_else(|| no_rule(id))?))
        }
        ("DELETE", ["rules", id]) => {
            let id = number(id)?;
            if !fake.book().remove(id) {
                return Err(no_rule(id));
            }
            Reply::ok(json!({}))
        }
        ("POST", ["rules", id, "wait"]) => {
            let id = number(id)?;
            let WaitBody { hits, timeout_ms } = body(request)?;
            let patience = Duration::from_millis(timeout_ms.min(MAX_PATIENCE_MS));
            let rule = fake.book().find(id).ok_or_else(|| no_rule(id))?;
            let left = fake.book().time_left(id, fake.look_at(|_, now| now));
            return Ok(Answer::Wait(Wait { rule, hits, patience, left }));
        }
        ("GET", ["complaints"]) => Reply::ok(json!(fake.complaints())),
        ("POST", ["cluster"]) => {
            let operation: Operation = shown_body(request)?;
            fake.change(&operation).map_err(|reason| Reply::error(409, reason))?;
            Reply::ok(json!({}))
        }
        ("POST", ["requests"]) => {
            let RequestBody { api, node, version, fields } = body(request)?;
            let answer = fake.request(&api, node, version, &fields);
            Reply::ok(answer.map_err(|reason| Reply::error(status_of(&reason), String::from(reason)))?)
        }
        ("GET", ["nodes"]) => Reply::ok(fake.look(views::nodes)),
        ("POST", ["nodes"]) => {
            let NodeBody { version } = body(request)?;
            let version = version.map(|named| named.parse());
            let version = version.transpose().map_err(|error: UnknownVersion| Reply::error(400, error.to_string()))?;
            return Ok(Answer::Node(fake, version));
        }
        ("GET", ["topics"]) => Reply::ok(fake.look(views::topics)),
        ("GET", ["topics", topic]) => {
            let view = fake.look(|state| state.topics.by_name(topic).map(views::topic));
            Reply::ok(view.ok_or_else(|| Reply::error(404, format!("there is no topic {topic}")))?)
        }
        ("GET", ["topics", topic, partition, "records"]) => {
            known_query(request, &["offset", "limit"])?;
            let partition = known_partition(&fake, topic, partition)?;
            let from = query(request, "offset")?.unwrap_or(0_i64);
            let limit = query(request, "limit")?.unwrap_or(SHOWN);
            let records = fake.partition_records(topic, partition);
            Reply::ok(records.iter().filter(|record| record.offset >= from).take(limit).map(views::record).collect())
        }
        ("POST", ["topics", topic, partition, "records"]) => {
            known_query(request, &[])?;
            let partition = known_partition(&fake, topic, partition)?;
            let record = body::<RecordBody>(request)?.record()?;
            let offset =
                fake.try_append_record(topic, partition, &record).map_err(|reason| Reply::error(409, reason))?;
            Reply { status: 201, body: json!({ "offset": offset }) }
        }
        ("GET", ["groups"]) => Reply::ok(fake.look_at(views::groups)),
        ("GET", ["groups", group]) => {
            let view = fake.look_at(|state, now| views::group(state, group, now));
            Reply::ok(view.ok_or_else(|| Reply::error(404, format!("there is no group {group}")))?)
        }
        ("POST", ["groups", group, "offsets"]) => {
            let OffsetBody { topic, partition, offset, metadata } = body(request)?;
            let committed = fake.try_commit(group, &topic, partition, offset, &metadata);
            committed.map_err(|reason| Reply::error(409, reason))?;
            Reply::ok(json!({}))
        }
        ("GET", ["transactions"]) => Reply::ok(fake.look_at(views::transactions)),
        (method, ["transactions", id, rest @ ..]) => transactions::route(&fake, method, id, rest, request)?,
        ("GET", ["snapshots"]) => Reply::ok(json!(fake.kept_snapshots())),
        ("POST", ["snapshots"]) => Reply { status: 201, body: json!({ "snapshot": fake.keep_snapshot() }) },
        ("POST", ["snapshots", id, "restore"]) => {
            let id = number(id)?;
            known_snapshot(id, fake.restore_kept(id))?
        }
        ("DELETE", ["snapshots", id]) => {
            let id = number(id)?;
            known_snapshot(id, fake.drop_snapshot(id))?
        }
        ("GET", ["telemetry"]) => telemetry::pushes(&fake, request)?,
        ("GET", ["history"]) => history(&fake, request)?,
        _ => return Err(no_path(request)),
    };
    Ok(Answer::Now(reply))
}

/// Adds a node, which listens at once.
pub(super) async fn add_node(fake: &FakeCluster, version: Option<KafkaVersion>) -> Reply {
    let added = match version {
        Some(version) => fake.add_node_as_version(version).await,
        None => fake.add_node().await,
    };
    match added {
        Ok(node) => {
            let address = fake.address(node).map(|(host, port)| format!("{host}:{port}"));
            Reply { status: 201, body: json!({ "node": node, "address": address }) }
        }
        Err(error) => Reply::error(409, error.to_string()),
    }
}

impl Wait {
    /// Waits. A rule that has not acted often enough in time is answered with 408, and its hits; one that never will,
    /// with the reason.
    pub(super) async fn reply(self) -> Reply {
        let Self { rule, hits, patience, left } = self;
        let id = rule.id();
        let time = left.map_or(patience, |left| left.min(patience));
        match tokio::time::timeout(time, rule.reach(hits)).await {
            Ok(Ok(())) => Reply::ok(json!({ "hits": rule.hits() })),
            Ok(Err(never @ Never::Ended { .. })) => Reply::error(404, format!("rule {id} {never}")),
            Ok(Err(never @ Never::TooMany { .. })) => Reply::error(409, format!("rule {id} {never}")),
            Err(_) if time < patience => {
                let had = rule.hits();
                Reply::error(409, format!("rule {id} is over after {had} of {hits} hits: its `until_ms` has passed"))
            }
            Err(_) => Reply { status: 408, body: json!({ "hits": rule.hits() }) },
        }
    }
}

fn history(fake: &FakeCluster, request: &Request) -> Result<Reply, Reply> {
    known_query(request, &["api", "client_id", "node", "connection", "since", "limit"])?;
    let text = |name: &str| request.query.get(name).map(String::as_str);
    let (api, client_id) = (text("api"), text("client_id"));
    if let Some(api) = api.filter(|api| ApiKey::ALL.iter().all(|key| key.name() != *api)) {
        return Err(Reply::error(400, format!("there is no API called `{api}`")));
    }
    let node: Option<i32> = query(request, "node")?;
    let connection: Option<u64> = query(request, "connection")?;
    let since: u64 = query(request, "since")?.unwrap_or(0);
    let limit = query(request, "limit")?.unwrap_or(SHOWN);
    let history = fake.history();
    let events = history.iter().filter(|event| {
        api.is_none_or(|api| event.key.name() == api)
            && client_id.is_none_or(|id| event.client_id.as_deref() == Some(id))
            && node.is_none_or(|node| event.node == node)
            && connection.is_none_or(|connection| event.connection.0 == connection)
            && event.id.0 >= since
    });
    let events: Value = events.take(limit).map(views::event).collect();
    Ok(Reply::ok(json!({ "dropped": history.dropped(), "events": events })))
}

fn rule_view(rule: &Listed) -> Value {
    // A rule that came from Rust may hold functions, which JSON has no words for.
    let text = serde_json::to_value(&rule.text).unwrap_or(Value::Null);
    json!({ "id": rule.id, "words": rule.words, "rule": text, "hits": rule.hits, "spent": rule.is_spent })
}

pub(super) fn no_path(request: &Request) -> Reply {
    let path = request.path.join("/");
    Reply::error(404, format!("there is no {} /{path}; GET / lists what there is", request.method))
}

fn no_rule(id: u64) -> Reply {
    Reply::error(404, format!("there is no rule {id}"))
}

fn known_snapshot(id: u64, is_known: bool) -> Result<Reply, Reply> {
    let absent = || Reply::error(404, format!("there is no snapshot {id}"));
    is_known.then(|| Reply::ok(json!({}))).ok_or_else(absent)
}

fn known_partition(fake: &FakeCluster, topic: &str, partition: &str) -> Result<i32, Reply> {
    let index: i32 = partition.parse().map_err(|_| Reply::error(400, format!("`{partition}` is no partition")))?;
    let is_there = fake.leader_epoch(topic, index).is_some();
    if is_there { Ok(index) } else { Err(Reply::error(404, format!("there is no partition {topic}-{index}"))) }
}

/// Whether a path wants no body. One that has fields all the same was meant for something else, and is not obeyed.
fn takes_no_body(method: &str, path: &[&str]) -> bool {
    let is_posted = matches!(path, ["snapshots", ..] | ["transactions", _, "hold" | "release"]);
    matches!(method, "GET" | "DELETE") || is_posted
}

/// Reads the body. An unknown field is refused by its name; an empty body is an object without fields.
///
/// # Errors
///
/// The answer to a body that is something else, which says what in words of JSON.
pub(super) fn body<T: DeserializeOwned>(request: &Request) -> Result<T, Reply> {
    let body: &[u8] = if request.body.is_empty() { b"{}" } else { &request.body };
    // Or serde would take the fields in their order.
    if body.trim_ascii_start().starts_with(b"[") {
        return Err(Reply::error(400, "expected an object, found an array"));
    }
    serde_json::from_slice(body).map_err(|error| Reply::error(400, json_words::explain(&error, body)))
}

/// Reads a body as [`body`] does, of what can be shown again: in all of it, fields have names.
fn shown_body<T: DeserializeOwned + Serialize>(request: &Request) -> Result<T, Reply> {
    // For what is empty or a list as a whole.
    let _: Value = body(request)?;
    let body: &[u8] = if request.body.is_empty() { b"{}" } else { &request.body };
    json_words::read(body).map_err(|reason| Reply::error(400, reason))
}

/// The status of a request that nobody was asked.
fn status_of(reason: &Unasked) -> u16 {
    match reason {
        Unasked::Wrong(_) => 400,
        Unasked::NotThere(_) => 404,
        Unasked::Impossible(_) => 409,
    }
}

pub(super) fn query<T: std::str::FromStr>(request: &Request, name: &str) -> Result<Option<T>, Reply> {
    let Some(text) = request.query.get(name) else { return Ok(None) };
    text.parse().map(Some).map_err(|_| Reply::error(400, format!("{name}: `{text}` is not a number")))
}

pub(super) fn known_query(request: &Request, known: &[&str]) -> Result<(), Reply> {
    match request.query.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) => Err(Reply::error(400, format!("unknown parameter `{name}`, expected one of {known:?}"))),
        None => Ok(()),
    }
}

fn number(text: &str) -> Result<u64, Reply> {
    text.parse().map_err(|_| Reply::error(400, format!("`{text}` is not a number")))
}

fn one() -> u64 {
    1
}

fn patience() -> u64 {
    PATIENCE_MS
}
