//! AlterConfigs: sets the configs of something to exactly what comes, so that all others are forgotten.
//!
//! IncrementalAlterConfigs has taken its place; Kafka serves both.

use krafka_protocol::api::alter_configs::AlterConfigsResourceResponse;
use krafka_protocol::{AlterConfigsRequest, AlterConfigsResponse, Str};

use super::incremental_alter_configs::{Twice, denied};
use crate::configs::Refusal;
use crate::configs::alter::Doing;
use crate::context::{Context, Outcome};
use crate::state::State;

pub(crate) fn handle(state: &mut State, cx: &Context, request: &AlterConfigsRequest) -> Outcome<AlterConfigsResponse> {
    let doing = if request.validate_only { Doing::ValidateOnly } else { Doing::CarryOut };
    let twice = Twice::new(request.resources.iter().map(|r| (r.resource_type, &r.resource_name)));
    let mut responses = Vec::with_capacity(request.resources.len());
    for resource in &request.resources {
        let (kind, name) = (resource.resource_type, &resource.resource_name);
        let configs: Vec<_> =
            resource.configs.iter().map(|config| (config.name.clone(), config.value.clone())).collect();
        let outcome = twice
            .admit(kind, name)
            .and_then(|()| denied(state, cx, kind, name).map_or(Ok(()), Err))
            .and_then(|()| state.set_configs(cx.node, kind, name, &configs, doing));
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
    Outcome::Reply(AlterConfigsResponse { responses, ..AlterConfigsResponse::default() })
}
