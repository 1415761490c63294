//! IncrementalAlterConfigs: sets and deletes single configs, and changes lists in part.

use std::collections::BTreeSet;

use krafka_protocol::api::incremental_alter_configs::AlterConfigsResourceResponse;
use krafka_protocol::{ErrorCode, IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse, Str};

use crate::configs::alter::{Change, Doing};
use crate::configs::{Refusal, ResourceType};
use crate::context::{Context, Outcome};
use crate::security::acls::Operation;
use crate::state::State;
use crate::words::words;

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &IncrementalAlterConfigsRequest,
) -> Outcome<IncrementalAlterConfigsResponse> {
    let doing = if request.validate_only { Doing::ValidateOnly } else { Doing::CarryOut };
    let twice = Twice::new(request.resources.iter().map(|r| (r.resource_type, &r.resource_name)));
    let mut responses = Vec::with_capacity(request.resources.len());
    for resource in &request.resources {
        let (kind, name) = (resource.resource_type, &resource.resource_name);
        let changes: Vec<_> = resource
            .configs
            .iter()
            .map(|config| Change {
                name: config.name.clone(),
                operation: config.config_operation,
                value: config.value.clone(),
            })
            .collect();
        let outcome = twice
            .admit(kind, name)
            .and_then(|()| denied(state, cx, kind, name).map_or(Ok(()), Err))
            .and_then(|()| state.alter_configs(cx.node, kind, name, &changes, doing));
        let (error_code, message) = match outcome {
            Ok(()) => (0, None),
            Err(Refusal { code, message }) => (code.0, message),
        };
        responses.push(AlterConfigsResourceResponse {
            error_code,
            error_message: message.map(Str::from),
            resource_type: kind,
            resource_name: name.clone(),
        });
    }
    Outcome::Reply(IncrementalAlterConfigsResponse { responses, ..IncrementalAlterConfigsResponse::default() })
}

/// Why the client may not change configs of that.
pub(super) fn denied(state: &State, cx: &Context, kind: i8, name: &str) -> Option<Refusal> {
    let code = match ResourceType::from_code(kind) {
        Some(ResourceType::Topic) => cx.topic_error(state, Operation::AlterConfigs, name),
        Some(ResourceType::Group) => cx.group_error(state, Operation::AlterConfigs, name),
        _ => cx.cluster_error(state, Operation::AlterConfigs),
    }?;
    Some(Refusal::new(code, words(code)))
}

/// The resources of a request that come more than once: they are answered as often, and not changed.
pub(super) struct Twice(BTreeSet<(i8, Str)>);

impl Twice {
    pub(super) fn new<'a>(named: impl Iterator<Item = (i8, &'a Str)>) -> Self {
        let mut seen = BTreeSet::new();
        let keys = named.map(|(kind, name)| (kind, name.clone()));
        Self(keys.filter(|key| !seen.insert(key.clone())).collect())
    }

    /// Whether a resource may be worked on.
    pub(super) fn admit(&self, kind: i8, name: &Str) -> Result<(), Refusal> {
        if !self.0.contains(&(kind, name.clone())) {
            return Ok(());
        }
        Err(Refusal::new(ErrorCode::INVALID_REQUEST, "Each resource must appear at most once."))
    }
}
