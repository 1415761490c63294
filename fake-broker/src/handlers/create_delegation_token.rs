//! CreateDelegationToken (38): a token for the client, or for somebody else. The rules are in
//! [`tokens`](crate::security::tokens).

use krafka_protocol::ErrorCode;
use krafka_protocol::api::create_delegation_token::{CreateDelegationTokenRequest, CreateDelegationTokenResponse};

use super::delegation;
use crate::context::{Context, Outcome};
use crate::security::acls::{Operation, ResourceType};
use crate::security::principal::{Principal, USER};
use crate::security::tokens::Token;
use crate::state::State;

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &CreateDelegationTokenRequest,
) -> Outcome<CreateDelegationTokenResponse> {
    let name = request.owner_principal_name.as_ref().filter(|name| !name.is_empty());
    let (owner, is_known) = match (&request.owner_principal_type, name) {
        (Some(kind), Some(name)) => (Principal { kind: kind.detached(), name: name.detached() }, true),
        (_, None) => (cx.principal.clone(), true),
        // Kafka trips over a name without a type.
        (None, Some(_)) => (cx.principal.clone(), false),
    };
    let requester = (cx.version >= 3).then(|| cx.principal.clone());
    let (requester_type, requester_name) = requester.map(|by| (by.kind, by.name)).unwrap_or_default();
    let mut response = CreateDelegationTokenResponse {
        principal_type: owner.kind.clone(),
        principal_name: owner.name.clone(),
        token_requester_principal_type: requester_type,
        token_requester_principal_name: requester_name,
        issue_timestamp_ms: -1,
        expiry_timestamp_ms: -1,
        max_timestamp_ms: -1,
        ..CreateDelegationTokenResponse::default()
    };
    let created = if is_known { create(state, cx, request, owner) } else { Err(ErrorCode::UNKNOWN_SERVER_ERROR) };
    match created {
        Ok(token) => {
            response.issue_timestamp_ms = token.issued_ms;
            response.expiry_timestamp_ms = token.expires_ms;
            response.max_timestamp_ms = token.ends_ms;
            response.token_id = token.id;
            response.hmac = token.hmac;
        }
        Err(code) => response.error_code = code.0,
    }
    Outcome::Reply(response)
}

fn create(
    state: &mut State,
    cx: &Context,
    request: &CreateDelegationTokenRequest,
    owner: Principal,
) -> Result<Token, ErrorCode> {
    delegation::check(state, cx)?;
    let may = |owner: &Principal| cx.may(state, Operation::CreateTokens, ResourceType::User, &owner.to_string());
    if owner != cx.principal && !may(&owner) {
        return Err(ErrorCode::DELEGATION_TOKEN_AUTHORIZATION_FAILED);
    }
    if request.renewers.iter().any(|renewer| *renewer.principal_type != *USER) {
        return Err(ErrorCode::INVALID_PRINCIPAL_TYPE);
    }
    let renewers = request.renewers.iter().map(|renewer| Principal::user(renewer.principal_name.detached())).collect();
    let logins = &mut state.logins;
    let id = logins.chance.uuid().to_string().into();
    logins.tokens.create(id, (owner, cx.principal.clone()), renewers, request.max_lifetime_ms, cx.wall_ms)
}
