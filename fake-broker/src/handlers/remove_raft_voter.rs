//! RemoveRaftVoter: takes the vote from a controller (KIP-853). It goes on as an observer.
//!
//! The last voter cannot be removed here.

use krafka_protocol::{ErrorCode, RemoveRaftVoterRequest, RemoveRaftVoterResponse, Str};

use super::add_raft_voter::check_cluster;
use crate::context::{Context, Outcome};
use crate::quorum::voter_in_words;
use crate::security::acls::Operation;
use crate::state::State;
use crate::words::words;

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &RemoveRaftVoterRequest,
) -> Outcome<RemoveRaftVoterResponse> {
    let removed = remove(state, cx, request);
    let (code, message) = removed.err().unwrap_or((ErrorCode::NONE, None));
    Outcome::Reply(RemoveRaftVoterResponse {
        error_code: code.0,
        error_message: message.map(Str::from),
        ..RemoveRaftVoterResponse::default()
    })
}

fn remove(
    state: &mut State,
    cx: &Context,
    request: &RemoveRaftVoterRequest,
) -> Result<(), (ErrorCode, Option<String>)> {
    let refuse = |code, text: String| Err((code, Some(text)));
    if let Some(code) = cx.cluster_error(state, Operation::Alter) {
        return refuse(code, words(code).to_owned());
    }
    check_cluster(state, request.cluster_id.as_ref())?;
    let (id, directory) = (request.voter_id, request.voter_directory_id);
    if id < 0 || directory.is_zero() {
        return refuse(ErrorCode::INVALID_REQUEST, "Remove voter request didn't include a valid voter".to_owned());
    }
    let voters = state.voters();
    if !voters.contains(&id) || state.metadata_directory(id) != directory || voters.len() == 1 {
        return refuse(
            ErrorCode::VOTER_NOT_FOUND,
            format!(
                "Cannot remove voter {} from the set of voters {}",
                voter_in_words(id, directory),
                state.voters_in_words()
            ),
        );
    }
    state.quorum.observers.insert(id);
    // Who does not vote does not lead.
    if state.nodes.controller() == id {
        let next = voters.into_iter().find(|&voter| voter != id && state.nodes.is_up(voter));
        if let Some(next) = next {
            state.nodes.set_controller(next);
        }
    }
    Ok(())
}
