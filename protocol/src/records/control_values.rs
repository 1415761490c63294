//! What control records say: contents of the marks that brokers write for each other.
//!
//! Those of the Raft log begin with their own version, and so does the key of every control record; an [`EndTxnMarker`]
//! and a [`ControlRecordTypeSchema`] stand behind an `i16` that says it. [`ControlRecord`](super::ControlRecord) does
//! that for all of them.

use crate::{Message, Str, Uuid};

/// The key of a control record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Message)]
#[message(versions = 0)]
pub struct ControlRecordTypeSchema {
    /// What kind of mark it is: [`ControlRecord::ABORT`](super::ControlRecord::ABORT) and the like.
    pub r#type: i16,
}

/// The end of a transaction; the key says whether it was committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Message)]
#[message(versions = 0)]
pub struct EndTxnMarker {
    /// The epoch of the transaction coordinator that decided so.
    pub coordinator_epoch: i32,
}

/// A new leader of a Raft log (KIP-595), the first record of its epoch. Version 1 has directory ids (KIP-853).
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct LeaderChangeMessage {
    /// The version in which this is written.
    pub version: i16,
    /// The node that leads.
    pub leader_id: i32,
    /// Who could vote.
    pub voters: Vec<Voter>,
    /// Who voted for the leader.
    pub granting_voters: Vec<Voter>,
}

/// A voter of a Raft log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct Voter {
    /// The node.
    pub voter_id: i32,
    /// The directory in which it keeps the log; zero if unknown.
    #[field(versions = 1..)]
    pub voter_directory_id: Uuid,
}

/// The start of a snapshot (KIP-630).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct SnapshotHeaderRecord {
    /// The version in which this is written.
    pub version: i16,
    /// When the last record of the log was appended that is in the snapshot, in milliseconds since 1970.
    pub last_contained_log_timestamp: i64,
}

/// The end of a snapshot (KIP-630): without it, the snapshot is not whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct SnapshotFooterRecord {
    /// The version in which this is written.
    pub version: i16,
}

/// The version of the Raft protocol that holds from here on (KIP-853).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct KRaftVersionRecord {
    /// The version in which this is written.
    pub version: i16,
    /// The protocol: 1 if voters can come and go, 0 if they stand in the configuration.
    pub k_raft_version: i16,
}

/// The voters of a Raft log from here on (KIP-853).
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct VotersRecord {
    /// The version in which this is written.
    pub version: i16,
    /// The voters.
    pub voters: Vec<VotersRecordVoter>,
}

/// A voter, and where it is reached.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(name = "Voter", versions = 0, flexible = 0..)]
pub struct VotersRecordVoter {
    /// The node.
    pub voter_id: i32,
    /// The directory in which it keeps the log.
    pub voter_directory_id: Uuid,
    /// Where other controllers reach it, once for each listener.
    pub endpoints: Vec<VoterEndpoint>,
    /// Which versions of the Raft protocol it speaks.
    pub k_raft_version_feature: KRaftVersionFeature,
}

/// Where a voter is reached.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(name = "Endpoint", versions = 0, flexible = 0..)]
pub struct VoterEndpoint {
    /// The listener's name.
    pub name: Str,
    /// The host's name or address.
    pub host: Str,
    /// The port.
    pub port: u16,
}

/// Versions of the Raft protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Message)]
#[message(versions = 0, flexible = 0..)]
pub struct KRaftVersionFeature {
    /// The lowest.
    pub min_supported_version: i16,
    /// The highest.
    pub max_supported_version: i16,
}
