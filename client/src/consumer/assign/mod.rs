//! Assignors: how a group's leader shares out partitions.

mod range;

use std::collections::BTreeMap;

use krafka_protocol::Str;

pub(crate) use range::range;

/// A member, as an assignor sees it.
///
/// Assignors order members by their static instance id where there is one, so that a static member gets the same
/// partitions after a restart, when the group gives it another member id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) member_id: Str,
    pub(crate) group_instance_id: Option<Str>,
    pub(crate) topics: Vec<Str>,
}

/// What each member gets: topic → partitions in ascending order. Each candidate has an entry, be it empty.
pub(crate) type Shares = BTreeMap<Str, BTreeMap<Str, Vec<i32>>>;
