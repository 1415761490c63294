//! AlterUserScramCredentials (51): gives users credentials, and takes them away. It acts on the logins from then on.
//!
//! All that a request says of one user is done, or nothing of it.

use std::collections::{BTreeMap, BTreeSet};

use krafka_protocol::api::alter_user_scram_credentials::{
    AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse, AlterUserScramCredentialsResult,
    ScramCredentialDeletion, ScramCredentialUpsertion,
};
use krafka_protocol::{ErrorCode, Str};

use crate::context::{Context, Outcome};
use crate::security::acls::Operation;
use crate::security::sasl::scram::{MAX_ITERATIONS, MIN_ITERATIONS, ScramCredential, ScramMechanism};
use crate::state::State;
use crate::words::words;

type Refusal = (ErrorCode, &'static str);

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &AlterUserScramCredentialsRequest,
) -> Outcome<AlterUserScramCredentialsResponse> {
    let denied = cx.cluster_error(state, Operation::Alter);
    let mut refusals: BTreeMap<&Str, Option<Refusal>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let deletions = request.deletions.iter().map(|deletion| (&deletion.name, check_deletion(state, deletion)));
    let upsertions = request.upsertions.iter().map(|upsertion| (&upsertion.name, check_upsertion(upsertion)));
    for (name, refusal) in deletions.chain(upsertions) {
        let refusal = match denied {
            Some(code) => Some((code, words(code))),
            None if !seen.insert(name) => {
                Some((ErrorCode::DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"))
            }
            None => refusal,
        };
        let known = refusals.entry(name).or_default();
        *known = known.or(refusal);
    }
    for deletion in request.deletions.iter().filter(|deletion| refusals[&deletion.name].is_none()) {
        if let Some(mechanism) = ScramMechanism::of_code(deletion.mechanism) {
            state.logins.scram.remove(&deletion.name, mechanism);
        }
    }
    for upsertion in request.upsertions.iter().filter(|upsertion| refusals[&upsertion.name].is_none()) {
        if let Some(mechanism) = ScramMechanism::of_code(upsertion.mechanism) {
            let ScramCredentialUpsertion { salted_password, salt, iterations, .. } = upsertion;
            let salt = krafka_protocol::Bytes::copy_from_slice(salt);
            let credential = ScramCredential::of_salted(mechanism, salted_password, salt, *iterations);
            state.logins.scram.set(upsertion.name.detached(), mechanism, credential);
        }
    }
    let results = refusals.into_iter().map(|(user, refusal)| AlterUserScramCredentialsResult {
        user: user.clone(),
        error_code: refusal.map_or(0, |(code, _)| code.0),
        error_message: refusal.filter(|(_, text)| !text.is_empty()).map(|(_, text)| Str::from(text)),
    });
    Outcome::Reply(AlterUserScramCredentialsResponse {
        results: results.collect(),
        ..AlterUserScramCredentialsResponse::default()
    })
}

fn check_name(name: &Str, mechanism: i8) -> Result<ScramMechanism, Refusal> {
    if name.is_empty() {
        return Err((ErrorCode::UNACCEPTABLE_CREDENTIAL, "Username must not be empty"));
    }
    let unknown = (ErrorCode::UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism");
    ScramMechanism::of_code(mechanism).ok_or(unknown)
}

fn check_deletion(state: &State, deletion: &ScramCredentialDeletion) -> Option<Refusal> {
    let mechanism = match check_name(&deletion.name, deletion.mechanism) {
        Ok(mechanism) => mechanism,
        Err(refusal) => return Some(refusal),
    };
    let credentials = state.logins.scram.of_user(&deletion.name);
    let exists = credentials.is_some_and(|credentials| credentials.contains_key(&mechanism));
    let missing = (ErrorCode::RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist");
    (!exists).then_some(missing)
}

fn check_upsertion(upsertion: &ScramCredentialUpsertion) -> Option<Refusal> {
    if let Err(refusal) = check_name(&upsertion.name, upsertion.mechanism) {
        return Some(refusal);
    }
    match upsertion.iterations {
        ..MIN_ITERATIONS => Some((ErrorCode::UNACCEPTABLE_CREDENTIAL, "Too few iterations")),
        // Kafka trips over what it cannot make a key of.
        MIN_ITERATIONS..=MAX_ITERATIONS if upsertion.salted_password.is_empty() => {
            Some((ErrorCode::UNKNOWN_SERVER_ERROR, ""))
        }
        MIN_ITERATIONS..=MAX_ITERATIONS => None,
        _ => Some((ErrorCode::UNACCEPTABLE_CREDENTIAL, "Too many iterations")),
    }
}
