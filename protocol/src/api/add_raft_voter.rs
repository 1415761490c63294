//! AddRaftVoter (80): a controller becomes a voter of the metadata quorum.
//!
//! Sent by an administrator's tool, or by the controller itself where it joins on its own. It has to run already, as an
//! observer, and to have caught up. A voter is its id together with the id of its log directory: a lost disk makes it
//! another one. Brokers pass the request on to the quorum's leader.
//!
//! Version 0 came with KIP-853; 1 can do without waiting until the change is committed, so that a controller that joins
//! on its own does not time out on a commit which needs its own vote (KIP-1186).

use crate::{Message, Str, Uuid};

/// Adds a voter.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 80, versions = 0..=1, flexible = 0.., response = AddRaftVoterResponse)]
pub struct AddRaftVoterRequest {
    /// The cluster that the sender believes it is talking to, `None` if it does not care.
    pub cluster_id: Option<Str>,
    /// For how many milliseconds to wait for the change.
    pub timeout_ms: i32,
    /// The new voter's node id.
    pub voter_id: i32,
    /// The directory where it keeps the metadata log.
    pub voter_directory_id: Uuid,
    /// Where it listens, for the other voters; the quorum's own listener is among them.
    pub listeners: Vec<Listener>,
    /// Whether to answer once a majority of the new voters has the change, or as soon as the leader has written it.
    #[field(versions = 1.., default = true)]
    pub ack_when_committed: bool,
}

/// Where a voter listens.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct Listener {
    /// The listener's name, `CONTROLLER` for instance.
    pub name: Str,
    /// The host name or address.
    pub host: Str,
    /// The port.
    pub port: u16,
}

/// Whether the voter was added.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 80, versions = 0..=1, flexible = 0..)]
pub struct AddRaftVoterResponse {
    /// For how many milliseconds a quota makes the sender wait; 0 for none.
    pub throttle_time_ms: i32,
    /// Why it was not, 0 if it was: DUPLICATE_VOTER if the id votes already, REQUEST_TIMED_OUT if it has not caught
    /// up or another change is under way (worth another try), INVALID_REQUEST if it cannot speak the quorum's
    /// protocol, UNSUPPORTED_VERSION while `kraft.version` is 0, INCONSISTENT_CLUSTER_ID,
    /// CLUSTER_AUTHORIZATION_FAILED, or NOT_LEADER_OR_FOLLOWER.
    pub error_code: i16,
    /// The reason in words, `None` without an error.
    #[field(ignorable)]
    pub error_message: Option<Str>,
}
