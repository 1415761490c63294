//! DescribeDelegationToken (41): the tokens that the client may see.

use krafka_protocol::ErrorCode;
use krafka_protocol::api::describe_delegation_token::{
    DescribeDelegationTokenRequest, DescribeDelegationTokenResponse, DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
};

use super::delegation;
use crate::context::{Context, Outcome};
use crate::security::acls::{Operation, ResourceType};
use crate::security::principal::Principal;
use crate::security::tokens::Token;
use crate::state::State;

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &DescribeDelegationTokenRequest,
) -> Outcome<DescribeDelegationTokenResponse> {
    let is_served = delegation::check(state, cx).and_then(|()| {
        let secret = state.logins.tokens.secret.as_ref();
        secret.ok_or(ErrorCode::DELEGATION_TOKEN_AUTH_DISABLED)
    });
    if let Err(code) = is_served {
        let response = DescribeDelegationTokenResponse { error_code: code.0, ..Default::default() };
        return Outcome::Reply(response);
    }
    let owners: Option<Vec<Principal>> = request.owners.as_ref().map(|owners| {
        let owner = owners
            .iter()
            .map(|owner| Principal { kind: owner.principal_type.clone(), name: owner.principal_name.clone() });
        owner.collect()
    });
    let is_asked = |token: &&Token| owners.as_ref().is_none_or(|owners| owners.iter().any(|it| token.concerns(it)));
    let is_shown = |token: &&Token| {
        token.concerns(&cx.principal)
            || cx.may(state, Operation::Describe, ResourceType::DelegationToken, &token.id)
            || cx.may(state, Operation::DescribeTokens, ResourceType::User, &token.owner.to_string())
    };
    let tokens =
        state.logins.tokens.iter().filter(is_asked).filter(is_shown).map(|token| describe(token, cx.version)).collect();
    Outcome::Reply(DescribeDelegationTokenResponse { tokens, ..DescribeDelegationTokenResponse::default() })
}

fn describe(token: &Token, version: i16) -> DescribedDelegationToken {
    let requester = (version >= 3).then(|| token.requester.clone());
    let (requester_type, requester_name) = requester.map(|by| (by.kind, by.name)).unwrap_or_default();
    let renewer = |renewer: &Principal| DescribedDelegationTokenRenewer {
        principal_type: renewer.kind.clone(),
        principal_name: renewer.name.clone(),
    };
    DescribedDelegationToken {
        principal_type: token.owner.kind.clone(),
        principal_name: token.owner.name.clone(),
        token_requester_principal_type: requester_type,
        token_requester_principal_name: requester_name,
        issue_timestamp: token.issued_ms,
        expiry_timestamp: token.expires_ms,
        max_timestamp: token.ends_ms,
        token_id: token.id.clone(),
        hmac: token.hmac.clone(),
        renewers: token.renewers.iter().map(renewer).collect(),
    }
}
