//! ApiVersions: what the node speaks, and the features of the cluster.

use krafka_protocol::api::api_versions::{ApiVersion, FinalizedFeatureKey, SupportedFeatureKey};
use krafka_protocol::{ApiKey, ApiVersionsRequest, ApiVersionsResponse, ErrorCode, Str};

use super::{advertised, versions};
use crate::context::{Context, Outcome};
use crate::faults::Feature;
use crate::state::State;

pub(crate) fn handle(state: &mut State, cx: &Context, request: &ApiVersionsRequest) -> Outcome<ApiVersionsResponse> {
    if let Some(code) = cx.denied() {
        return Outcome::Reply(failed(code));
    }
    if cx.version >= 3 {
        let (name, version) = (&request.client_software_name, &request.client_software_version);
        if !is_valid_software(name) || !is_valid_software(version) {
            return Outcome::Reply(failed(ErrorCode::INVALID_REQUEST));
        }
        if let Some(open) = state.connections.get_mut(&cx.connection) {
            open.software = Some((name.clone(), version.clone()));
        }
    }
    if cx.version >= 5
        && let Err(code) = check_destination(state, cx.node, request)
    {
        return Outcome::Reply(failed(code));
    }
    if let Some(open) = state.connections.get_mut(&cx.connection) {
        open.sasl.introduced();
    }
    let keys = advertised(state, cx.node).into_iter().map(|(key, range)| ApiVersion {
        api_key: key as i16,
        min_version: range.min,
        max_version: range.max,
    });
    // A feature whose requests nobody answers would lead clients astray.
    let is_served = |feature: &Feature| feature.needs.is_none_or(|key| versions(state, cx.node, key).is_some());
    let node = state.nodes.find(cx.node);
    let features: Vec<Feature> = node.into_iter().flat_map(|node| node.features()).filter(is_served).collect();
    // Before version 4, a client could not read a feature whose lowest level is 0, so that Kafka leaves it out.
    let supported = features.iter().filter(|feature| cx.version >= 4 || feature.min > 0);
    Outcome::Reply(ApiVersionsResponse {
        error_code: 0,
        api_keys: keys.collect(),
        throttle_time_ms: 0,
        supported_features: supported
            .map(|feature| SupportedFeatureKey {
                name: Str::from_static(feature.name),
                min_version: feature.min,
                max_version: feature.max,
            })
            .collect(),
        finalized_features_epoch: state.metadata_epoch(cx.now),
        finalized_features: features
            .iter()
            .map(|feature| (feature, state.features.level(feature)))
            .filter(|(_, level)| *level > 0)
            .map(|(feature, level)| FinalizedFeatureKey {
                name: Str::from_static(feature.name),
                max_version_level: level,
                min_version_level: level,
            })
            .collect(),
        ..ApiVersionsResponse::default()
    })
}

/// The answer, in version 0, to a request of a version that the node does not know. It names the versions of
/// ApiVersions alone, so that the client can ask again (KIP-511).
pub(crate) fn unsupported(state: &State, node: i32) -> ApiVersionsResponse {
    let range = versions(state, node, ApiKey::ApiVersions).map(|range| ApiVersion {
        api_key: ApiKey::ApiVersions as i16,
        min_version: range.min,
        max_version: range.max,
    });
    ApiVersionsResponse { api_keys: range.into_iter().collect(), ..failed(ErrorCode::UNSUPPORTED_VERSION) }
}

fn failed(code: ErrorCode) -> ApiVersionsResponse {
    ApiVersionsResponse { error_code: code.0, ..ApiVersionsResponse::default() }
}

/// Checks that the client means this cluster and this node, if it says whom it means (KIP-1242).
fn check_destination(state: &State, node: i32, request: &ApiVersionsRequest) -> Result<(), ErrorCode> {
    match &request.cluster_id {
        None if request.node_id == -1 => Ok(()),
        Some(cluster) if request.node_id != -1 => {
            let is_here = *cluster == state.config.cluster_id && request.node_id == node;
            if is_here { Ok(()) } else { Err(ErrorCode::REBOOTSTRAP_REQUIRED) }
        }
        // One comes with the other.
        _ => Err(ErrorCode::INVALID_REQUEST),
    }
}

/// Kafka's pattern for a client's software name and version: letters, digits, dots and dashes, the latter two inside.
fn is_valid_software(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    let bytes = name.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => {
            first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric() && bytes.iter().copied().all(is_inner)
        }
        _ => false,
    }
}
