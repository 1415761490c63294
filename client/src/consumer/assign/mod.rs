//! Assignors: how a group's leader shares out partitions.

mod range;
mod whereabouts;

use std::collections::{BTreeMap, BTreeSet};

use krafka_protocol::Str;

pub(crate) use range::range;
#[cfg(test)]
pub(crate) use whereabouts::Replicas;
pub(crate) use whereabouts::Whereabouts;

/// A member, as an assignor sees it.
///
/// Assignors order members by their static instance id where there is one, so that a static member gets the same
/// partitions after a restart, when the group gives it another member id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) member_id: Str,
    pub(crate) group_instance_id: Option<Str>,
    /// Where it stands, if it says (KIP-881).
    pub(crate) rack: Option<Str>,
    pub(crate) topics: Vec<Str>,
}

/// The racks that have a replica of a partition.
pub(crate) type Racks = BTreeSet<Str>;

/// The partitions of topics that exist, in order, each with its racks.
pub(crate) type Placement = BTreeMap<Str, Vec<Racks>>;

/// What each member gets: topic → partitions in ascending order. Each candidate has an entry, be it empty.
pub(crate) type Shares = BTreeMap<Str, BTreeMap<Str, Vec<i32>>>;
