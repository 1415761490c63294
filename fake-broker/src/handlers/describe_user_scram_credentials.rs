//! DescribeUserScramCredentials (50): who has which credentials, without their secrets.

use std::collections::{BTreeMap, BTreeSet};

use krafka_protocol::api::describe_user_scram_credentials::{
    CredentialInfo, DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
};
use krafka_protocol::{ErrorCode, Str};

use crate::context::{Context, Outcome};
use crate::java;
use crate::security::acls::Operation;
use crate::security::sasl::scram::{ScramCredential, ScramMechanism};
use crate::state::State;

pub(crate) fn handle(
    state: &State,
    cx: &Context,
    request: &DescribeUserScramCredentialsRequest,
) -> Outcome<DescribeUserScramCredentialsResponse> {
    if let Some(code) = cx.cluster_error(state, Operation::Describe) {
        // Kafka repeats the error in a result for nobody.
        let result = DescribeUserScramCredentialsResult {
            user: Str::default(),
            error_code: code.0,
            error_message: None,
            credential_infos: Vec::new(),
        };
        return Outcome::Reply(DescribeUserScramCredentialsResponse {
            error_code: code.0,
            error_message: None,
            results: vec![result],
            ..DescribeUserScramCredentialsResponse::default()
        });
    }
    let scram = &state.logins.scram;
    let asked = request.users.as_deref().unwrap_or_default();
    let results = if asked.is_empty() {
        scram.iter().map(|(user, credentials)| described(user, credentials)).collect::<Vec<_>>()
    } else {
        let mut seen = BTreeSet::new();
        let twice: BTreeSet<&Str> = asked.iter().map(|user| &user.name).filter(|name| !seen.insert(*name)).collect();
        let describe = |name: &Str| {
            if twice.contains(name) {
                let text =
                    format!("Cannot describe SCRAM credentials for the same user twice in a single request: {name}");
                return refused(name, ErrorCode::DUPLICATE_RESOURCE, text);
            }
            match scram.of_user(name) {
                Some(credentials) => described(name, credentials),
                None => {
                    let text = format!("Attempt to describe a user credential that does not exist: {name}");
                    refused(name, ErrorCode::RESOURCE_NOT_FOUND, text)
                }
            }
        };
        seen.into_iter().map(describe).collect()
    };
    let results = java::in_hash_order(results, |result| java::hash(&result.user));
    Outcome::Reply(DescribeUserScramCredentialsResponse { results, ..DescribeUserScramCredentialsResponse::default() })
}

fn described(
    user: &Str,
    credentials: &BTreeMap<ScramMechanism, ScramCredential>,
) -> DescribeUserScramCredentialsResult {
    let info = |(mechanism, credential): (&ScramMechanism, &ScramCredential)| CredentialInfo {
        mechanism: *mechanism as i8,
        iterations: credential.iterations,
    };
    DescribeUserScramCredentialsResult {
        user: user.clone(),
        error_code: 0,
        error_message: Some(Str::default()),
        credential_infos: credentials.iter().map(info).collect(),
    }
}

fn refused(user: &Str, code: ErrorCode, message: String) -> DescribeUserScramCredentialsResult {
    DescribeUserScramCredentialsResult {
        user: user.clone(),
        error_code: code.0,
        error_message: Some(Str::from(message)),
        credential_infos: Vec::new(),
    }
}
