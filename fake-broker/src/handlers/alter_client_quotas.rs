//! AlterClientQuotas (49): sets quotas and removes them, all of one entity or none. They hold from the next request on.
//!
//! Kafka keeps entities in maps: one that is named twice is answered once, that it is, though what came first is done;
//! and of two parts of one type the last counts. The answer is in the order of those maps.
//!
//! Kafka resolves the name of a host that has a quota. The fake asks no name server: it takes what can be a name.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use krafka_protocol::api::alter_client_quotas::{
    AlterClientQuotasRequest, AlterClientQuotasResponse, EntityData, EntryData, EntryResponse, OpData,
};
use krafka_protocol::{ErrorCode, Str};

use super::parts;
use crate::context::{Context, Outcome};
use crate::java;
use crate::quotas::Entity;
use crate::security::acls::Operation;
use crate::state::State;
use crate::words::words;

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &AlterClientQuotasRequest,
) -> Outcome<AlterClientQuotasResponse> {
    if let Some(code) = cx.cluster_error(state, Operation::AlterConfigs) {
        let refused = |entry: &EntryData| answer(code, words(code), entry.entity.clone());
        return Outcome::Reply(AlterClientQuotasResponse {
            entries: request.entries.iter().map(refused).collect(),
            ..AlterClientQuotasResponse::default()
        });
    }
    let mut answers: Vec<(Vec<EntityData>, Result<(), String>)> = Vec::new();
    let mut places: BTreeMap<Vec<(Str, Option<Str>)>, usize> = BTreeMap::new();
    for entry in &request.entries {
        let parts = parts_of(entry);
        let key = parts.iter().map(|part| (part.entity_type.clone(), part.entity_name.clone())).collect();
        if let Some(&place) = places.get(&key) {
            answers[place].1 = Err(duplicate(&parts));
            continue;
        }
        places.insert(key, answers.len());
        let checked = check(&parts, &entry.ops);
        if let Ok(entity) = &checked {
            for op in entry.ops.iter().filter(|_| !request.validate_only) {
                state.quotas.set(entity, &op.key.detached(), (!op.remove).then_some(op.value));
            }
        }
        answers.push((parts, checked.map(|_| ())));
    }
    let entries = java::in_hash_order(answers, |(parts, _)| hash(parts)).into_iter().map(|(parts, answered)| {
        let (code, text) =
            answered.err().map_or((ErrorCode::NONE, None), |text| (ErrorCode::INVALID_REQUEST, Some(text)));
        EntryResponse { error_code: code.0, error_message: text.map(Str::from), entity: parts }
    });
    let entries = entries.collect();
    Outcome::Reply(AlterClientQuotasResponse { entries, ..AlterClientQuotasResponse::default() })
}

fn answer(code: ErrorCode, text: &'static str, entity: Vec<EntityData>) -> EntryResponse {
    EntryResponse { error_code: code.0, error_message: Some(Str::from_static(text)), entity }
}

/// The parts of an entity, each type once, in the order of Kafka's map.
fn parts_of(entry: &EntryData) -> Vec<EntityData> {
    let parts = parts::once(entry.entity.iter().map(|part| (&part.entity_type, part)));
    java::in_hash_order(parts, |(kind, _)| java::hash(kind)).into_iter().map(|(_, part)| part.clone()).collect()
}

/// The `hashCode` of Kafka's entity: that of a list with one map in it.
fn hash(parts: &[EntityData]) -> i32 {
    let part = |part: &EntityData| java::hash(&part.entity_type) ^ part.entity_name.as_deref().map_or(0, java::hash);
    parts.iter().map(part).fold(31, i32::wrapping_add)
}

/// Kafka says so of an entity that is named twice, and of a key.
fn duplicate(parts: &[EntityData]) -> String {
    let part = |part: &EntityData| format!("{}={}", part.entity_type, part.entity_name.as_deref().unwrap_or("null"));
    let entries: Vec<String> = parts.iter().map(part).collect();
    format!("Ignoring duplicate entity ClientQuotaEntity(entries={{{}}})", entries.join(", "))
}

/// Checks a change, and says whom it is for. The error says in Kafka's words what is wrong with it.
fn check(parts: &[EntityData], ops: &[OpData]) -> Result<Entity, String> {
    let mut seen = BTreeSet::new();
    if !ops.iter().all(|op| seen.insert(&op.key)) {
        return Err(duplicate(parts));
    }
    let entity = Entity::parse(parts.iter().map(|part| (&part.entity_type, &part.entity_name)))?;
    if let Some(host) = entity.ip.as_ref().and_then(Option::as_ref).filter(|host| !may_resolve(host)) {
        return Err(format!("{host} is not a valid IP or resolvable host."));
    }
    for op in ops.iter().filter(|op| !op.remove) {
        let key = &op.key;
        let known = entity.keys().iter().find(|(known, _)| *known == &**key);
        let (_, is_whole) = known.ok_or_else(|| format!("Invalid configuration key {key}"))?;
        if op.value <= 0.0 {
            return Err(format!("Quota {key} must be greater than 0"));
        }
        if *is_whole && op.value > i64::MAX as f64 {
            return Err(format!("Proposed value for {key} is too large for a LONG."));
        }
        if *is_whole && op.value.fract() != 0.0 {
            return Err(format!("{key} cannot be a fractional value."));
        }
    }
    Ok(entity)
}

/// Whether this is an address, or the name of a host that may have one: `.invalid` is reserved for those that have
/// none.
fn may_resolve(host: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    host.parse::<IpAddr>().is_ok() || host.split('.').all(is_label) && !host.ends_with(".invalid")
}
