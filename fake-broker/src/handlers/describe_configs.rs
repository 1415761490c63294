//! DescribeConfigs: what is set, and what holds where nothing is.
//!
//! Configs of one broker and of its loggers are told by that broker alone, all others by any.

use krafka_protocol::api::describe_configs::{
    DescribeConfigsResource, DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use krafka_protocol::{DescribeConfigsRequest, DescribeConfigsResponse, ErrorCode, Str};

use crate::configs::describe::Entry;
use crate::configs::{Refusal, ResourceType};
use crate::context::{Context, Outcome};
use crate::faults::KafkaVersion;
use crate::security::acls::Operation;
use crate::state::State;
use crate::words::words;

pub(crate) fn handle(
    state: &State,
    cx: &Context,
    request: &DescribeConfigsRequest,
) -> Outcome<DescribeConfigsResponse> {
    // One resource of a type that nobody knows is the end of the whole request.
    let is_known = |resource: &DescribeConfigsResource| kind(state, cx, resource).is_some();
    if !request.resources.iter().all(is_known) {
        let results = request.resources.iter().map(|resource| DescribeConfigsResult {
            error_code: ErrorCode::INVALID_REQUEST.0,
            error_message: Some(Str::from_static(words(ErrorCode::INVALID_REQUEST))),
            resource_type: resource.resource_type,
            resource_name: resource.resource_name.clone(),
            configs: Vec::new(),
        });
        let results = results.collect();
        return Outcome::Reply(DescribeConfigsResponse { results, ..DescribeConfigsResponse::default() });
    }
    let results = request.resources.iter().map(|resource| {
        let (code, message, entries) = match describe(state, cx, resource) {
            // Kafka says nothing, where for its other answers it has no message at all.
            Ok(entries) => (ErrorCode::NONE, Some(String::new()), entries),
            Err(Refusal { code, message }) => (code, message, Vec::new()),
        };
        // An empty list asks for all of them, as none does.
        let keys = resource.configuration_keys.as_ref().filter(|keys| !keys.is_empty());
        let asked = |name: &Str| keys.is_none_or(|keys| keys.contains(name));
        DescribeConfigsResult {
            error_code: code.0,
            error_message: message.map(Str::from),
            resource_type: resource.resource_type,
            resource_name: resource.resource_name.clone(),
            configs: entries.into_iter().filter(|entry| asked(&entry.name)).map(|entry| tell(entry, request)).collect(),
        }
    });
    Outcome::Reply(DescribeConfigsResponse { results: results.collect(), ..DescribeConfigsResponse::default() })
}

fn describe(state: &State, cx: &Context, resource: &DescribeConfigsResource) -> Result<Vec<Entry>, Refusal> {
    let name = &resource.resource_name;
    let Some(known) = kind(state, cx, resource) else {
        let code = ErrorCode::INVALID_REQUEST;
        return Err(Refusal::new(code, words(code)));
    };
    let denied = match known {
        ResourceType::Topic => cx.topic_error(state, Operation::DescribeConfigs, name),
        ResourceType::Group => cx.group_error(state, Operation::DescribeConfigs, name),
        _ => cx.cluster_error(state, Operation::DescribeConfigs),
    };
    if let Some(code) = denied {
        return Err(Refusal::new(code, words(code)));
    }
    state.describe_configs(cx.node, known, name)
}

/// The type of a resource that has configs.
fn kind(state: &State, cx: &Context, resource: &DescribeConfigsResource) -> Option<ResourceType> {
    ResourceType::from_code(resource.resource_type)
        .filter(|known| *known != ResourceType::Group || state.version_of(cx.node) >= KafkaVersion::V4_0)
}

fn tell(entry: Entry, request: &DescribeConfigsRequest) -> DescribeConfigsResourceResult {
    let synonyms = entry.synonyms.into_iter().map(|synonym| DescribeConfigsSynonym {
        name: synonym.name,
        value: synonym.value,
        source: synonym.source as i8,
    });
    DescribeConfigsResourceResult {
        name: entry.name,
        value: entry.value,
        read_only: entry.is_read_only,
        // Only version 0 has it, and Kafka leaves it as it is.
        is_default: false,
        config_source: entry.source as i8,
        is_sensitive: entry.is_sensitive,
        synonyms: if request.include_synonyms { synonyms.collect() } else { Vec::new() },
        config_type: entry.kind.code(),
        documentation: request
            .include_documentation
            .then_some(entry.text)
            .filter(|text| !text.is_empty())
            .map(Str::from_static),
    }
}
