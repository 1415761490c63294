//! CreateAcls (30): adds access rules, each for itself. A rule that is there already is no error.
//!
//! Whether an operation makes sense for a type of resource is not asked, in Kafka neither.

use krafka_protocol::api::create_acls::{AclCreation, AclCreationResult, CreateAclsRequest, CreateAclsResponse};
use krafka_protocol::{ErrorCode, Str};

use crate::context::{Context, Outcome};
use crate::security::acl_filter::{operation_of, pattern_type_of, permission_of};
use crate::security::acls::{CLUSTER_NAME, NO_AUTHORIZER, Operation, ResourceType, Rule};
use crate::security::hosts;
use crate::state::State;
use crate::words::words;

/// The number that stands for any, of all kinds of numbers, and the pattern type that stands for all that match: for
/// filters only.
const ANY: i8 = 1;
const MATCH: i8 = 2;

pub(crate) fn handle(state: &mut State, cx: &Context, request: &CreateAclsRequest) -> Outcome<CreateAclsResponse> {
    if request.creations.iter().any(|creation| numbers(creation).contains(&0)) {
        // Kafka takes it for a request that it cannot read.
        return Outcome::Close;
    }
    if let Some(code) = cx.cluster_error(state, Operation::Alter) {
        return Outcome::Reply(failed(request, code, words(code)));
    }
    if !state.acls.enabled {
        return Outcome::Reply(failed(request, ErrorCode::SECURITY_DISABLED, NO_AUTHORIZER));
    }
    if request.creations.iter().any(is_filter) {
        // Kafka stumbles over it, and makes none of the rules.
        let result = |_| AclCreationResult { error_code: ErrorCode::UNKNOWN_SERVER_ERROR.0, error_message: None };
        let results = request.creations.iter().map(result).collect();
        return Outcome::Reply(CreateAclsResponse { results, ..CreateAclsResponse::default() });
    }
    let knows_ranges = state.acls.knows_ranges;
    let results = request.creations.iter().map(|creation| match parse(creation, knows_ranges) {
        Ok(rule) => {
            state.acls.add(rule);
            AclCreationResult { error_code: 0, error_message: Some(Str::default()) }
        }
        Err(message) => {
            AclCreationResult { error_code: ErrorCode::INVALID_REQUEST.0, error_message: Some(Str::from(message)) }
        }
    });
    let results = results.collect();
    Outcome::Reply(CreateAclsResponse { results, ..CreateAclsResponse::default() })
}

fn numbers(creation: &AclCreation) -> [i8; 4] {
    [creation.resource_type, creation.resource_pattern_type, creation.operation, creation.permission_type]
}

/// Whether it would do as a filter, but says of no rule what it is.
fn is_filter(creation: &AclCreation) -> bool {
    numbers(creation).contains(&ANY) || creation.resource_pattern_type == MATCH
}

/// Reads a rule. The error says in Kafka's words what is wrong with it.
fn parse(creation: &AclCreation, knows_ranges: bool) -> Result<Rule, String> {
    let resource_type = ResourceType::of_code(creation.resource_type);
    if resource_type == Some(ResourceType::Cluster) && *creation.resource_name != *CLUSTER_NAME {
        return Err(format!("The only valid name for the CLUSTER resource is {CLUSTER_NAME}"));
    }
    if creation.resource_name.is_empty() {
        return Err("Invalid empty resource name".to_owned());
    }
    let resource_type = resource_type.ok_or("Invalid resourceType UNKNOWN")?;
    let pattern_type = pattern_type_of(creation.resource_pattern_type).ok_or("Invalid patternType UNKNOWN")?;
    let operation = operation_of(creation.operation).ok_or("Invalid operation UNKNOWN")?;
    let permission = permission_of(creation.permission_type).ok_or("Invalid permissionType UNKNOWN")?;
    let principal = &creation.principal;
    if !principal.contains(':') {
        return Err(format!(
            "Could not parse principal from `{principal}` \
             (no colon is present separating the principal type from the principal name)"
        ));
    }
    let host = &creation.host;
    if knows_ranges && host.is_empty() {
        return Err("Host pattern cannot be null or empty".to_owned());
    }
    if knows_ranges && host.contains('/') && !hosts::is_range(host) {
        return Err(format!("Invalid CIDR notation '{host}': Could not parse [{host}]"));
    }
    Ok(Rule {
        resource_type,
        name: creation.resource_name.detached(),
        pattern_type,
        principal: creation.principal.detached(),
        host: creation.host.detached(),
        operation,
        permission,
    })
}

fn failed(request: &CreateAclsRequest, code: ErrorCode, message: &str) -> CreateAclsResponse {
    let result = |_| AclCreationResult { error_code: code.0, error_message: Some(Str::from(message)) };
    CreateAclsResponse { results: request.creations.iter().map(result).collect(), ..CreateAclsResponse::default() }
}
