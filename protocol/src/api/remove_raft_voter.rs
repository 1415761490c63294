//! RemoveRaftVoter (81): an administrator's tool takes a controller's vote in the metadata quorum away.
//!
//! A leader that is told to remove itself does so, and then steps down. What the controller has registered about itself
//! stays: see [`unregister_controller`](super::unregister_controller). Brokers pass the request on to the quorum's
//! leader.
//!
//! Version 0 came with KIP-853.

use crate::{Message, Str, Uuid};

/// Removes a voter.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 81, versions = 0..=0, flexible = 0.., response = RemoveRaftVoterResponse)]
pub struct RemoveRaftVoterRequest {
    /// The cluster that the sender believes it is talking to, `None` if it does not care.
    pub cluster_id: Option<Str>,
    /// The voter's node id.
    pub voter_id: i32,
    /// The directory where it keeps the metadata log: a voter with the same id and another directory stays.
    pub voter_directory_id: Uuid,
}

/// Whether the voter was removed.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 81, versions = 0..=0, flexible = 0..)]
pub struct RemoveRaftVoterResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// Why it was not, 0 if it was: VOTER_NOT_FOUND, also for the last voter; REQUEST_TIMED_OUT if another change is
    /// under way or this one was not committed in time (worth another try), UNSUPPORTED_VERSION while `kraft.version`
    /// is 0, INCONSISTENT_CLUSTER_ID, CLUSTER_AUTHORIZATION_FAILED, INVALID_REQUEST, or NOT_LEADER_OR_FOLLOWER.
    pub error_code: i16,
    /// The reason in words, `None` without an error.
    #[field(ignorable)]
    pub error_message: Option<Str>,
}
