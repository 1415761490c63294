//! DescribeAcls (29): the access rules that a filter finds. They come by resource, in the order of their names; Kafka
//! gives them in none.

use krafka_protocol::api::describe_acls::{
    AclDescription, DescribeAclsRequest, DescribeAclsResource, DescribeAclsResponse,
};
use krafka_protocol::{ErrorCode, Str};

use crate::context::{Context, Outcome};
use crate::security::acl_filter::{Filter, code_of};
use crate::security::acls::{NO_AUTHORIZER, Operation, Rule};
use crate::state::State;
use crate::words::words;

pub(crate) fn handle(state: &State, cx: &Context, request: &DescribeAclsRequest) -> Outcome<DescribeAclsResponse> {
    let filter = Filter {
        resource_type: request.resource_type_filter,
        name: request.resource_name_filter.clone(),
        pattern_type: request.pattern_type_filter,
        principal: request.principal_filter.clone(),
        host: request.host_filter.clone(),
        operation: request.operation,
        permission: request.permission_type,
    };
    if filter.is_unreadable() {
        return Outcome::Close;
    }
    if let Some(code) = cx.cluster_error(state, Operation::Describe) {
        return Outcome::Reply(failed(code, words(code)));
    }
    if !state.acls.enabled {
        return Outcome::Reply(failed(ErrorCode::SECURITY_DISABLED, NO_AUTHORIZER));
    }
    let mut resources: Vec<DescribeAclsResource> = Vec::new();
    for rule in state.acls.find(&filter) {
        match resources.last_mut() {
            Some(last) if is_about(last, rule) => last.acls.push(describe(rule)),
            _ => resources.push(DescribeAclsResource {
                resource_type: rule.resource_type as i8,
                resource_name: rule.name.clone(),
                pattern_type: rule.pattern_type as i8,
                acls: vec![describe(rule)],
            }),
        }
    }
    Outcome::Reply(DescribeAclsResponse { resources, ..DescribeAclsResponse::default() })
}

fn is_about(resource: &DescribeAclsResource, rule: &Rule) -> bool {
    resource.resource_type == rule.resource_type as i8
        && resource.resource_name == rule.name
        && resource.pattern_type == rule.pattern_type as i8
}

fn describe(rule: &Rule) -> AclDescription {
    AclDescription {
        principal: rule.principal.clone(),
        host: rule.host.clone(),
        operation: code_of(rule.operation),
        permission_type: rule.permission as i8,
    }
}

fn failed(code: ErrorCode, message: &str) -> DescribeAclsResponse {
    DescribeAclsResponse {
        error_code: code.0,
        error_message: Some(Str::from(message)),
        ..DescribeAclsResponse::default()
    }
}
