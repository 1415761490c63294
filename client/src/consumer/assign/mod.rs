//! Assignors: how a group's leader shares out partitions.

mod range;

use std::collections::{BTreeMap, BTreeSet};

use krafka_protocol::Str;

pub(crate) use range::range;

use crate::cluster::{PartitionView, Snapshot};

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

/// Where the partitions of these topics are. A replica whose broker is down is in no rack.
pub(crate) fn placement(snapshot: &Snapshot, topics: &BTreeSet<Str>) -> Placement {
    placed(snapshot, topics, |partition| {
        let nodes = partition.replicas.iter().filter_map(|&node| snapshot.node(node));
        nodes.filter_map(|node| node.rack.clone()).filter(|rack| !rack.is_empty()).collect()
    })
}

/// The same for those to whom racks are nothing: how many partitions there are.
pub(crate) fn placement_anywhere(snapshot: &Snapshot, topics: &BTreeSet<Str>) -> Placement {
    placed(snapshot, topics, |_| Racks::new())
}

fn placed(snapshot: &Snapshot, topics: &BTreeSet<Str>, racks: impl Fn(&PartitionView) -> Racks) -> Placement {
    let known = topics.iter().filter_map(|topic| Some((topic, snapshot.topics.get(topic)?)));
    known.map(|(topic, view)| (topic.clone(), view.partitions.iter().map(&racks).collect())).collect()
}
