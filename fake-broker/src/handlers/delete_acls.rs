//! DeleteAcls (31): removes the access rules that filters find. A rule that two filters find is named by the first.

use krafka_protocol::api::delete_acls::{
    DeleteAclsFilter, DeleteAclsFilterResult, DeleteAclsMatchingAcl, DeleteAclsRequest, DeleteAclsResponse,
};
use krafka_protocol::{ErrorCode, Str};

use crate::context::{Context, Outcome};
use crate::security::acl_filter::{Filter, code_of};
use crate::security::acls::{NO_AUTHORIZER, Operation, Rule};
use crate::state::State;
use crate::words::words;

pub(crate) fn handle(state: &mut State, cx: &Context, request: &DeleteAclsRequest) -> Outcome<DeleteAclsResponse> {
    let filters: Vec<Filter> = request.filters.iter().map(parse).collect();
    if filters.iter().any(Filter::is_unreadable) {
        return Outcome::Close;
    }
    if let Some(code) = cx.cluster_error(state, Operation::Alter) {
        return Outcome::Reply(failed(&filters, code, words(code)));
    }
    if !state.acls.enabled {
        return Outcome::Reply(failed(&filters, ErrorCode::SECURITY_DISABLED, NO_AUTHORIZER));
    }
    let filter_results = filters.iter().map(|filter| {
        if let Some(fault) = filter.fault() {
            return refused(ErrorCode::INVALID_REQUEST, fault);
        }
        let found: Vec<Rule> = state.acls.find(filter).cloned().collect();
        found.iter().for_each(|rule| state.acls.remove(rule));
        DeleteAclsFilterResult {
            error_code: 0,
            error_message: None,
            matching_acls: found.into_iter().map(removed).collect(),
        }
    });
    let filter_results = filter_results.collect();
    Outcome::Reply(DeleteAclsResponse { filter_results, ..DeleteAclsResponse::default() })
}

fn parse(filter: &DeleteAclsFilter) -> Filter {
    Filter {
        resource_type: filter.resource_type_filter,
        name: filter.resource_name_filter.clone(),
        pattern_type: filter.pattern_type_filter,
        principal: filter.principal_filter.clone(),
        host: filter.host_filter.clone(),
        operation: filter.operation,
        permission: filter.permission_type,
    }
}

fn removed(rule: Rule) -> DeleteAclsMatchingAcl {
    DeleteAclsMatchingAcl {
        error_code: 0,
        error_message: None,
        resource_type: rule.resource_type as i8,
        resource_name: rule.name,
        pattern_type: rule.pattern_type as i8,
        principal: rule.principal,
        host: rule.host,
        operation: code_of(rule.operation),
        permission_type: rule.permission as i8,
    }
}

fn failed(filters: &[Filter], code: ErrorCode, message: &str) -> DeleteAclsResponse {
    let filter_results = filters.iter().map(|_| refused(code, message)).collect();
    DeleteAclsResponse { filter_results, ..DeleteAclsResponse::default() }
}

fn refused(code: ErrorCode, message: &str) -> DeleteAclsFilterResult {
    DeleteAclsFilterResult { error_code: code.0, error_message: Some(Str::from(message)), matching_acls: Vec::new() }
}
