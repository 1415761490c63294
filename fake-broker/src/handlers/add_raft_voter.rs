//! AddRaftVoter: lets a controller vote (KIP-853).
//!
//! The controllers here are the nodes of the cluster. One that does not exist cannot be reached, and Kafka then says
//! that the time is up; here it says so at once.

use krafka_protocol::{AddRaftVoterRequest, AddRaftVoterResponse, ErrorCode, Str};

use crate::context::{Context, Outcome};
use crate::quorum::voter_in_words;
use crate::security::acls::Operation;
use crate::state::State;
use crate::words::words;

pub(crate) fn handle(state: &mut State, cx: &Context, request: &AddRaftVoterRequest) -> Outcome<AddRaftVoterResponse> {
    let added = add(state, cx, request);
    let (code, message) = added.err().unwrap_or((ErrorCode::NONE, None));
    Outcome::Reply(AddRaftVoterResponse {
        error_code: code.0,
        error_message: message.map(Str::from),
        ..AddRaftVoterResponse::default()
    })
}

fn add(state: &mut State, cx: &Context, request: &AddRaftVoterRequest) -> Result<(), (ErrorCode, Option<String>)> {
    let refuse = |code, text: String| Err((code, Some(text)));
    if let Some(code) = cx.cluster_error(state, Operation::Alter) {
        return refuse(code, words(code).to_owned());
    }
    check_cluster(state, request.cluster_id.as_ref())?;
    let (id, directory) = (request.voter_id, request.voter_directory_id);
    if id < 0 || directory.is_zero() {
        return refuse(ErrorCode::INVALID_REQUEST, "Add voter request didn't include a valid voter".to_owned());
    }
    if !request.listeners.iter().any(|listener| listener.name == "CONTROLLER") {
        let given = request.listeners.iter().map(|listener| {
            format!("ListenerName({})={}/<unresolved>:{}", listener.name, listener.host, listener.port)
        });
        let given = given.collect::<Vec<_>>().join(", ");
        return refuse(
            ErrorCode::INVALID_REQUEST,
            format!(
                "Add voter request didn't include the endpoint (Endpoints(endpoints={{{given}}})) for the default \
                 listener ListenerName(CONTROLLER)"
            ),
        );
    }
    if state.voters().contains(&id) {
        return refuse(
            ErrorCode::DUPLICATE_VOTER,
            format!(
                "The voter id for {} is already part of the set of voters {}.",
                voter_in_words(id, directory),
                state.voters_in_words()
            ),
        );
    }
    if !state.nodes.is_up(id) || state.metadata_directory(id) != directory {
        return refuse(
            ErrorCode::REQUEST_TIMED_OUT,
            "Aborted add voter operation for since API_VERSIONS returned an error BROKER_NOT_AVAILABLE".to_owned(),
        );
    }
    state.quorum.observers.remove(&id);
    Ok(())
}

/// Checks that a request that names a cluster means this one.
pub(super) fn check_cluster(state: &State, cluster: Option<&Str>) -> Result<(), (ErrorCode, Option<String>)> {
    match cluster {
        Some(id) if *id != state.config.cluster_id => Err((
            ErrorCode::INCONSISTENT_CLUSTER_ID,
            Some(format!("The given id \"{id}\" doesn't match the cluster id \"{}\"", state.config.cluster_id)),
        )),
        _ => Ok(()),
    }
}
