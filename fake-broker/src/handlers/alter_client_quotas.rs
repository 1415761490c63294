//! AlterClientQuotas (49): sets quotas and removes them, all of one entity or none. They hold from the next request on.

use std::collections::BTreeSet;

use krafka_protocol::api::alter_client_quotas::{
    AlterClientQuotasRequest, AlterClientQuotasResponse, EntryData, EntryResponse,
};
use krafka_protocol::{ErrorCode, Str};

use crate::context::{Context, Outcome};
use crate::quotas::Entity;
use crate::security::acls::Operation;
use crate::state::State;

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &AlterClientQuotasRequest,
) -> Outcome<AlterClientQuotasResponse> {
    let denied = cx.cluster_error(state, Operation::AlterConfigs);
    let entries = request.entries.iter().map(|entry| {
        let checked = match denied {
            Some(code) => Err((code, "Cluster authorization failed.".to_owned())),
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
