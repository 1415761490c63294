//! CreateAcls (30): adds access rules, each for itself. A rule that is there already is no error.
//!
//! Whether an operation makes sense for a type of resource is not asked, in Kafka neither.

use krafka_protocol::api::create_acls::{AclCreation, AclCreationResult, CreateAclsRequest, CreateAclsResponse};
use krafka_protocol::{ErrorCode, Str};

use crate::context::{Context, Outcome};
use crate::security::acl_filter::{operation_of, pattern_type_of, permission_of};
use crate::security::acls::{CLUSTER_NAME, NO_AUTHORIZER, Operation, ResourceType, Rule};
use crate::security::principal::Principal;
use crate::state::State;

/// The highest numbers of resource types, pattern types, operations and permissions.
const LAST: [i8; 4] = [7, 4, 15, 3];

pub(crate) fn handle(state: &mut State, cx: &Context, request: &CreateAclsRequest) -> Outcome<CreateAclsResponse> {
    if request.creations.iter().any(is_unreadable) {
        // Kafka takes it for a request that it cannot read.
        return Outcome::Close;
    }
    if let Some(code) = cx.cluster_error(state, Operation::Alter) {
        return Outcome::Reply(failed(request, code, code.message()));
    }
    if !state.acls.enabled {
        return Outcome::Reply(failed(request, ErrorCode::SECURITY_DISABLED, NO_AUTHORIZER));
    }
    let results = request.creations.iter().map(|creation| match parse(creation) {
        Ok(rule) => {
            state.acls.add(rule);
            AclCreationResult { error_code: 0, error_message: None }
        }
        Err(message) => {
            AclCreationResult { error_code: ErrorCode::INVALID_REQUEST.0, error_message: Some(Str::from(message)) }
        }
    });
    let results = results.collect();
    Outcome::Reply(CreateAclsResponse { results, ..CreateAclsResponse::default() })
}

/// Whether a number means nothing at all.
fn is_unreadable(creation: &AclCreation) -> bool {
    let numbers =
        [creation.resource_type, creation.resource_pattern_type, creation.operation, creation.permission_type];
    numbers.into_iter().zip(LAST).any(|(number, last)| !(1..=last).contains(&number))
}

/// Reads a rule. The error says in Kafka's words what is wrong with it.
fn parse(creation: &AclCreation) -> Result<Rule, String> {
    let resource_type = ResourceType::of_code(creation.resource_type);
    if resource_type == Some(ResourceType::Cluster) && *creation.resource_name != *CLUSTER_NAME {
        return Err(format!("The only valid name for the CLUSTER resource is {CLUSTER_NAME}"));
    }
    if creation.resource_name.is_empty() {
        return Err("Invalid empty resource name".to_owned());
    }
    let pattern_type = pattern_type_of(creation.resource_pattern_type);
    let pattern_name = if creation.resource_pattern_type == 2 { "MATCH" } else { "ANY" };
    let resource_type = resource_type.ok_or("Invalid resourceType ANY")?;
    let pattern_type = pattern_type.ok_or_else(|| format!("Invalid patternType {pattern_name}"))?;
    let operation = operation_of(creation.operation).ok_or("Invalid operation ANY")?;
    let permission = permission_of(creation.permission_type).ok_or("Invalid permissionType ANY")?;
    if Principal::parse(&creation.principal).is_none() {
        return Err(format!("Could not parse principal from `{}`", creation.principal));
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
