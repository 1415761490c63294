//! What is wrong with an operation in itself, however the cluster is: a rule with such a one is refused when it is
//! written, as the moment to do it may be far away.

use serde_json::Value;

use super::{MAX_PARTITIONS, Operation, Secret, coordinated};
use crate::faults::request_of;
use crate::handlers::SERVED;
use crate::handlers::delete_records::HIGH_WATERMARK;
use crate::operator;
#[cfg(feature = "tls")]
use crate::serve::tls::ServerTls;
use crate::topics;

/// The farthest that a clock is set at once: a hundred years.
const MAX_JUMP_MS: u64 = 100 * 365 * 86_400_000;

impl Operation {
    /// Says what is wrong with it.
    ///
    /// # Errors
    ///
    /// No cluster could do it.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self {
            Self::CreateTopic { topic, partitions } => {
                topics::validate_name(topic)?;
                count("partitions", *partitions)
            }
            Self::AddPartitions { total, .. } => count("total", *total),
            Self::MoveLeader { partition, node, .. } => {
                index(*partition)?;
                node.map_or(Ok(()), numbered)
            }
            Self::Truncate { partition, offset, .. } => {
                index(*partition)?;
                least("offset", *offset, 0)
            }
            Self::DeleteRecords { partition, before, .. } => {
                index(*partition)?;
                least("before", *before, HIGH_WATERMARK)
            }
            Self::BumpLeaderEpoch { partition, .. }
            | Self::ForgetProducers { partition, .. }
            | Self::LoseLeader { partition, .. }
            | Self::Compact { partition, .. } => index(*partition),
            Self::Lag { partition, node, .. } | Self::CatchUp { partition, node, .. } => {
                index(*partition)?;
                numbered(*node)
            }
            Self::MoveCoordinator { group, transactional_id, node } => {
                coordinated(group, transactional_id)?;
                numbered(*node)
            }
            Self::PinCoordinator { group, transactional_id, node } => {
                coordinated(group, transactional_id)?;
                node.map_or(Ok(()), numbered)
            }
            Self::LoadCoordinator { group, transactional_id, .. } => coordinated(group, transactional_id).map(|_| ()),
            Self::MoveController { node }
            | Self::Crash { node, .. }
            | Self::Restart { node }
            | Self::Pause { node }
            | Self::Resume { node }
            | Self::Disconnect { node }
            | Self::RefuseConnections { node, .. }
            | Self::HideNode { node, .. }
            | Self::MoveNode { node, .. }
            | Self::Advertise { node, .. }
            | Self::RemoveNode { node }
            | Self::FreezeMetadata { node }
            | Self::ThawMetadata { node }
            | Self::EvictFetchSessions { node } => numbered(*node),
            Self::Request { api, node, version, fields } => {
                node.map_or(Ok(()), numbered)?;
                request(api, *version, fields)
            }
            Self::SetPassword { user, password } => named_and_not_empty(user, password),
            Self::SwapCertificate { certificate, key } => usable(certificate, key),
            Self::DeleteTopic { .. }
            | Self::HoldReassignments { .. }
            | Self::ApplyRetention {}
            | Self::HoldMarkers { .. }
            | Self::DelayMarkers { .. } => Ok(()),
            Self::SwapClusterId { cluster_id: Some(id) } if id.is_empty() => {
                Err("`cluster_id` is empty: leave it away, and one is drawn".to_owned())
            }
            Self::SwapClusterId { .. } => Ok(()),
            Self::JumpClock { by_ms } if by_ms.unsigned_abs() > MAX_JUMP_MS => {
                Err(format!("`by_ms` is a hundred years at most, {MAX_JUMP_MS}, not {by_ms}"))
            }
            Self::JumpClock { .. } => Ok(()),
        }
    }
}

fn count(field: &str, partitions: i32) -> Result<(), String> {
    match partitions {
        1..=MAX_PARTITIONS => Ok(()),
        _ => Err(format!("`{field}` is from 1 to {MAX_PARTITIONS}, not {partitions}")),
    }
}

fn least(field: &str, offset: i64, least: i64) -> Result<(), String> {
    if offset < least { Err(format!("`{field}` is at least {least}, not {offset}")) } else { Ok(()) }
}

fn index(partition: i32) -> Result<(), String> {
    if partition < 0 { Err(format!("partitions are numbered from 0 on, not {partition}")) } else { Ok(()) }
}

fn numbered(node: i32) -> Result<(), String> {
    if node < 1 { Err(format!("nodes are numbered from 1 on: there is no node {node}")) } else { Ok(()) }
}

/// Kafka lets nobody log in whose name or password is empty.
pub(super) fn named_and_not_empty(user: &str, password: &Secret) -> Result<(), String> {
    match (user, password.reveal()) {
        ("", _) => Err("`user` is empty, and nobody logs in as such a one".to_owned()),
        (_, "") => Err("`password` is empty, and nobody logs in with such a one".to_owned()),
        _ => Ok(()),
    }
}

#[cfg(feature = "tls")]
fn usable(certificate: &str, key: &Secret) -> Result<(), String> {
    let tls = ServerTls::from_pem(certificate.as_bytes(), key.reveal().as_bytes());
    tls.and_then(|tls| tls.acceptor()).map(|_| ()).map_err(|error| error.to_string())
}

#[cfg(not(feature = "tls"))]
fn usable(_: &str, _: &Secret) -> Result<(), String> {
    Err("this build of the fake broker speaks no TLS".to_owned())
}

/// Checks a request that nobody sends: in the version that is given, or in any that the API has.
fn request(api: &str, version: Option<i16>, fields: &Value) -> Result<(), String> {
    let key = operator::api_of(api)?;
    let spoken = key.versions().filter(|_| SERVED.contains(&key)).ok_or_else(|| format!("no node speaks {api}"))?;
    match version {
        Some(version) if !spoken.contains(version) => {
            Err(format!("{api} is spoken in versions {spoken}, and not in {version}"))
        }
        Some(version) => request_of(key, version, fields).map(|_| ()),
        // The newest comes first, as what it says is wrong is the most helpful.
        None => {
            let newest = request_of(key, spoken.max, fields).map(|_| ());
            newest.or_else(|wrong| match spoken.iter().any(|version| request_of(key, version, fields).is_ok()) {
                true => Ok(()),
                false => Err(wrong),
            })
        }
    }
}
