//! What the control port does with transactions: it begins, fills, holds and ends them in the name of their producers.

use std::time::Duration;

use krafka_protocol::ErrorCode;
use serde::Deserialize;
use serde_json::json;

use super::http::{Reply, Request};
use super::record::{RecordBody, Text};
use super::routes::{body, no_path};
use super::views;
use crate::handle::FakeCluster;

/// How long a transaction may be open whose beginner does not say.
const TIMEOUT_MS: u64 = 60_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BeginBody {
    #[serde(default = "timeout")]
    timeout_ms: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WriteBody {
    topic: String,
    partition: i32,
    #[serde(default)]
    key: Option<Text>,
    #[serde(default)]
    value: Option<Text>,
    #[serde(default)]
    headers: Vec<(String, Option<Text>)>,
    #[serde(default)]
    timestamp: Option<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EndBody {
    commit: bool,
}

/// Answers a request about one transactional id.
///
/// # Errors
///
/// The answer to one that cannot be done: 409 with the error that a producer is told.
pub(super) fn route(
    fake: &FakeCluster,
    method: &str,
    id: &str,
    rest: &[&str],
    request: &Request,
) -> Result<Reply, Reply> {
    let refused = |code: ErrorCode| Reply::error(409, code.name());
    let reply = match (method, rest) {
        ("GET", []) => {
            let view = fake.look_at(|state, now| views::transaction(state, id, now));
            Reply::ok(view.ok_or_else(|| unknown(id))?)
        }
        ("POST", []) => {
            let BeginBody { timeout_ms } = body(request)?;
            let begun = fake.begin_transaction(id, Duration::from_millis(timeout_ms));
            let (producer_id, producer_epoch) = begun.map_err(refused)?;
            Reply { status: 201, body: json!({ "producer_id": producer_id, "producer_epoch": producer_epoch }) }
        }
        ("POST", ["records"]) => {
            let WriteBody { topic, partition, key, value, headers, timestamp } = body(request)?;
            known(fake, id)?;
            let record = RecordBody { key, value, headers, timestamp }.record()?;
            let written = fake.append_to_transaction(id, &topic, partition, &record);
            Reply { status: 201, body: json!({ "offset": written.map_err(refused)? }) }
        }
        ("POST", ["end"]) => {
            let EndBody { commit } = body(request)?;
            known(fake, id)?;
            fake.end_transaction(id, commit).map_err(refused)?;
            Reply::ok(json!({}))
        }
        ("POST", ["hold"]) => {
            fake.hold_markers(id);
            Reply::ok(json!({}))
        }
        ("POST", ["release"]) => {
            fake.release_markers(id);
            Reply::ok(json!({}))
        }
        ("DELETE", []) => {
            known(fake, id)?;
            if !fake.forget_transactional_id(id) {
                return Err(Reply::error(409, "its transaction is open"));
            }
            Reply::ok(json!({}))
        }
        _ => return Err(no_path(request)),
    };
    Ok(reply)
}

/// Sees that somebody used the id. Only its markers can be held before anybody does.
fn known(fake: &FakeCluster, id: &str) -> Result<(), Reply> {
    fake.transaction(id).map(|_| ()).ok_or_else(|| unknown(id))
}

fn unknown(id: &str) -> Reply {
    Reply::error(404, format!("nobody used the transactional id {id}"))
}

fn timeout() -> u64 {
    TIMEOUT_MS
}
