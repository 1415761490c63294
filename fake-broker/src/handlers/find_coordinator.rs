//! FindCoordinator (10): which node looks after a group or a transactional id.
//!
//! Any node answers. The coordinators' topic is made when it is first asked for. In a fresh Kafka that request is
//! answered COORDINATOR_NOT_AVAILABLE, and clients ask again; other than there, the topic is made in no time, and a
//! cluster that is not told to be that fresh answers at once. The keys of share partitions are for brokers; before
//! version 6, and on a node without share groups, they are refused. A node that learns nothing more has the controller
//! make the topic, and goes on to say that there is no coordinator.

use krafka_protocol::api::find_coordinator::{Coordinator, FindCoordinatorRequest, FindCoordinatorResponse};
use krafka_protocol::{ApiKey, ErrorCode, Str};

use super::{share_state, versions};
use crate::context::{Context, Outcome};
use crate::coordinators::{self, CoordinatorKind};
use crate::security::acls::Operation;
use crate::state::State;
use crate::words::words;

/// From this version on a request may ask for share coordinators (KIP-932).
const SHARE_VERSION: i16 = 6;

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &FindCoordinatorRequest,
) -> Outcome<FindCoordinatorResponse> {
    // What this request brings about is there for the next one: the other keys of this one have no coordinator either.
    let missing = missing_topics(state);
    if cx.version < 4 {
        let found = find(state, cx, request.key_type, &request.key, &missing);
        let error = ErrorCode(found.error_code);
        return Outcome::Reply(FindCoordinatorResponse {
            error_code: found.error_code,
            // Kafka writes the name of the absence of an error here.
            error_message: Some(Str::from(if error.is_ok() { "NONE" } else { words(error) })),
            node_id: found.node_id,
            host: found.host,
            port: found.port,
            ..FindCoordinatorResponse::default()
        });
    }
    let keys = request.coordinator_keys.iter();
    let coordinators = keys.map(|key| find(state, cx, request.key_type, key, &missing)).collect();
    Outcome::Reply(FindCoordinatorResponse { coordinators, ..FindCoordinatorResponse::default() })
}

/// A node whose metadata is frozen has the controller make the topic that it does not see, and will not see it.
pub(crate) fn make_topics(state: &mut State, request: &FindCoordinatorRequest, said: &FindCoordinatorResponse) {
    let codes = said.coordinators.iter().map(|found| found.error_code).chain([said.error_code]);
    let kinds = [CoordinatorKind::Group, CoordinatorKind::Transaction, CoordinatorKind::Share];
    let kind = usize::try_from(request.key_type).ok().and_then(|code| kinds.get(code));
    if let Some(kind) = kind.filter(|_| codes.map(ErrorCode).any(|code| code == ErrorCode::COORDINATOR_NOT_AVAILABLE)) {
        coordinators::ensure_topic(state, *kind);
    }
}

/// The kinds of coordinators whose topics are not there.
fn missing_topics(state: &State) -> Vec<CoordinatorKind> {
    let all = [CoordinatorKind::Group, CoordinatorKind::Transaction, CoordinatorKind::Share];
    all.into_iter().filter(|kind| state.topics.by_name(kind.topic()).is_none()).collect()
}

fn find(state: &mut State, cx: &Context, key_type: i8, key: &Str, missing: &[CoordinatorKind]) -> Coordinator {
    let refused = |error: ErrorCode, message: Str| Coordinator {
        key: key.clone(),
        node_id: -1,
        host: Str::default(),
        port: -1,
        error_code: error.0,
        error_message: Some(message),
    };
    let kind = match key_type {
        0 => CoordinatorKind::Group,
        1 => CoordinatorKind::Transaction,
        2 if has_share(state, cx) && share_state::is_key(key) => CoordinatorKind::Share,
        2 => return refused(ErrorCode::INVALID_REQUEST, Str::default()),
        _ => return refused(ErrorCode::INVALID_REQUEST, Str::from(words(ErrorCode::INVALID_REQUEST))),
    };
    let denied = match kind {
        CoordinatorKind::Group => cx.group_error(state, Operation::Describe, key),
        CoordinatorKind::Transaction => cx.transactional_id_error(state, Operation::Describe, key),
        CoordinatorKind::Share => cx.cluster_error(state, Operation::ClusterAction),
    };
    if let Some(error) = denied {
        return refused(error, Str::default());
    }
    if missing.contains(&kind) {
        if !state.is_belief {
            coordinators::ensure_topic(state, kind);
        }
        if state.is_belief || state.config.fresh_coordinators {
            return refused(ErrorCode::COORDINATOR_NOT_AVAILABLE, Str::default());
        }
    }
    let coordinator = coordinators::find(state, kind, key);
    match coordinator.and_then(|node| Some((node, state.endpoint(node, cx.listener)?))) {
        Some((node_id, (host, port))) => Coordinator {
            key: key.clone(),
            node_id,
            host,
            port,
            error_code: ErrorCode::NONE.0,
            error_message: Some(Str::default()),
        },
        None => refused(ErrorCode::COORDINATOR_NOT_AVAILABLE, Str::default()),
    }
}

/// Whether the node knows share coordinators, and the client may ask for them.
fn has_share(state: &State, cx: &Context) -> bool {
    cx.version >= SHARE_VERSION && versions(state, cx.node, ApiKey::ShareFetch).is_some()
}
