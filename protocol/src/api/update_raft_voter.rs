//! UpdateRaftVoter (82): a voter of the metadata quorum tells the leader where it listens and what it can speak.
//!
//! A controller does so after each start, when what the quorum has written down of it is no longer so.
//!
//! Version 0 came with KIP-853.

use crate::{Message, Str, Uuid};

/// Changes what is known of a voter.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 82, versions = 0..=0, flexible = 0.., response = UpdateRaftVoterResponse)]
pub struct UpdateRaftVoterRequest {
    /// The cluster that the voter believes it is talking to, `None` if it does not care.
    pub cluster_id: Option<Str>,
    /// The leader's epoch as the voter knows it, -1 if it does not.
    pub current_leader_epoch: i32,
    /// The voter's node id.
    pub voter_id: i32,
    /// The directory where it keeps the metadata log.
    pub voter_directory_id: Uuid,
    /// Where it listens, for the other voters.
    pub listeners: Vec<Listener>,
    /// Which levels of `kraft.version` it can speak.
    pub k_raft_version_feature: KRaftVersionFeature,
}

/// Where a voter listens.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
pub struct Listener {
    /// The listener's name, `CONTROLLER` for instance.
    pub name: Str,
    /// The host name or address.
    pub host: Str,
    /// The port.
    pub port: u16,
}

/// Levels of the quorum's protocol.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
pub struct KRaftVersionFeature {
    /// The lowest level.
    pub min_supported_version: i16,
    /// The highest level.
    pub max_supported_version: i16,
}

/// Whether the change was made, and who leads.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 82, versions = 0..=0, flexible = 0..)]
pub struct UpdateRaftVoterResponse {
    /// For how many milliseconds a quota makes the voter wait; 0 for none.
    pub throttle_time_ms: i32,
    /// Why it was not, 0 if it was: VOTER_NOT_FOUND, REQUEST_TIMED_OUT if another change is under way (worth another
    /// try), INVALID_REQUEST if it cannot speak the quorum's level or leaves the quorum's listener out,
    /// INCONSISTENT_CLUSTER_ID, CLUSTER_AUTHORIZATION_FAILED; NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH or
    /// UNKNOWN_LEADER_EPOCH where voter and receiver do not agree on the leader.
    pub error_code: i16,
    /// Who leads, as far as the receiver knows; absent if it knows of nobody.
    #[field(tag = 0)]
    pub current_leader: CurrentLeader,
}

/// The leader of the quorum.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
pub struct CurrentLeader {
    /// The leader's node id, -1 if unknown.
    #[field(default = -1)]
    pub leader_id: i32,
    /// The latest epoch that the receiver knows, -1 if none.
    #[field(default = -1)]
    pub leader_epoch: i32,
    /// The host name or address where it listens; empty if unknown.
    pub host: Str,
    /// The port; 0 if unknown.
    pub port: i32,
}
