//! AlterClientQuotas (49): sets quotas and removes them, all of one entity or none. They hold from the next request on.
//!
//! Kafka resolves the name of a host that has a quota. The fake asks no name server: it takes what can be a name.

use std::collections::BTreeSet;
use std::net::IpAddr;

use krafka_protocol::api::alter_client_quotas::{
    AlterClientQuotasRequest, AlterClientQuotasResponse, EntryData, EntryResponse,
};
use krafka_protocol::{ErrorCode, Str};

use crate::context::{Context, Outcome};
use crate::quotas::Entity;
use crate::security::acls::Operation;
use crate::state::State;
use crate::words::words;

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &AlterClientQuotasRequest,
) -> Outcome<AlterClientQuotasResponse> {
    let denied = cx.cluster_error(state, Operation::AlterConfigs);
    let entries = request.entries.iter().map(|entry| {
        let checked = match denied {
            Some(code) => Err((code, words(code).to_owned())),
            None => check(entry).map_err(|text| (ErrorCode::INVALID_REQUEST, text)),
        };
        let (code, message) = match checked {
            Ok(entity) => {
                for op in entry.ops.iter().filter(|_| !request.validate_only) {
                    state.quotas.set(&entity, &op.key.detached(), (!op.remove).then_some(op.value));
                }
                (ErrorCode::NONE, None)
            }
            Err((code, text)) => (code, Some(Str::from(text))),
        };
        EntryResponse { error_code: code.0, error_message: message, entity: entry.entity.clone() }
    });
    let entries = entries.collect();
    Outcome::Reply(AlterClientQuotasResponse { entries, ..AlterClientQuotasResponse::default() })
}

/// Checks a change, and says whom it is for. The error says in Kafka's words what is wrong with it.
fn check(entry: &EntryData) -> Result<Entity, String> {
    let entity = Entity::parse(entry.entity.iter().map(|part| (&part.entity_type, &part.entity_name)))?;
    if let Some(host) = entity.ip.as_ref().and_then(Option::as_ref).filter(|host| !may_resolve(host)) {
        return Err(format!("{host} is not a valid IP or resolvable host."));
    }
    let mut seen = BTreeSet::new();
    for op in &entry.ops {
        let key = &op.key;
        if !seen.insert(key) {
            return Err(format!("Ignoring duplicate entity {entity}"));
        }
        if op.remove {
            continue;
        }
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
