//! Where a group's partitions are: what its leader shares them out by, and whether that has changed since.
//!
//! A broker that is down is in no rack, so that nobody is given a partition for being near it. But it will be back: to
//! rebalance when it goes, and again when it comes, would stop the group twice for nothing. So a rack is taken for
//! unchanged where its replica is only offline on the other side, as in Kafka 4.4 (`PartitionRackInfo.equivalentTo`).

use std::collections::{BTreeMap, BTreeSet};

use krafka_protocol::Str;

use super::Placement;
use crate::cluster::{PartitionView, Snapshot};

/// See the file's head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Whereabouts(BTreeMap<Str, Vec<Replicas>>);

/// The replicas of a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Replicas {
    /// The rack of each whose broker is up and says where it stands.
    pub(crate) online: BTreeMap<i32, Str>,
    /// Those whose broker is down.
    pub(crate) offline: BTreeSet<i32>,
}

impl Whereabouts {
    /// Where the partitions of those topics are that exist.
    pub(crate) fn of(topics: &BTreeSet<Str>, snapshot: &Snapshot) -> Self {
        Self::from_each(topics, snapshot, |partition| Replicas::of(&partition.replicas, snapshot))
    }

    /// The same for those to whom racks are nothing: how many partitions there are.
    pub(crate) fn anywhere(topics: &BTreeSet<Str>, snapshot: &Snapshot) -> Self {
        Self::from_each(topics, snapshot, |_| Replicas::default())
    }

    fn from_each(topics: &BTreeSet<Str>, snapshot: &Snapshot, replicas: impl Fn(&PartitionView) -> Replicas) -> Self {
        let known = topics.iter().filter_map(|topic| Some((topic, snapshot.topics.get(topic)?)));
        known.map(|(topic, view)| (topic.clone(), view.partitions.iter().map(&replicas).collect())).collect()
    }

    /// By racks alone, as assignors want it.
    pub(crate) fn placement(&self) -> Placement {
        let racks = |replicas: &Replicas| replicas.online.values().cloned().collect();
        let topics = self.0.iter();
        topics.map(|(topic, partitions)| (topic.clone(), partitions.iter().map(racks).collect())).collect()
    }

    /// Whether there are as many partitions of the same topics.
    pub(crate) fn is_as_large_as(&self, other: &Self) -> bool {
        let is_same =
            |(ours, theirs): ((&Str, &Vec<_>), (&Str, &Vec<_>))| ours.0 == theirs.0 && ours.1.len() == theirs.1.len();
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(is_same)
    }

    /// Whether they are in the same racks, but for brokers that are down on one side.
    pub(crate) fn is_equivalent_to(&self, other: &Self) -> bool {
        let theirs = |topic: &Str| other.0.get(topic).map_or(&[][..], Vec::as_slice);
        let mut pairs = self.0.iter().flat_map(|(topic, partitions)| partitions.iter().zip(theirs(topic)));
        self.is_as_large_as(other) && pairs.all(|(ours, theirs)| ours.is_equivalent_to(theirs))
    }
}

impl FromIterator<(Str, Vec<Replicas>)> for Whereabouts {
    fn from_iter<T: IntoIterator<Item = (Str, Vec<Replicas>)>>(topics: T) -> Self {
        Self(topics.into_iter().collect())
    }
}

impl Replicas {
    fn of(nodes: &[i32], snapshot: &Snapshot) -> Self {
        let mut replicas = Self::default();
        for &id in nodes {
            match snapshot.node(id).map(|node| &node.rack) {
                Some(Some(rack)) if !rack.is_empty() => drop(replicas.online.insert(id, rack.clone())),
                Some(_) => {}
                None => drop(replicas.offline.insert(id)),
            }
        }
        replicas
    }

    fn is_equivalent_to(&self, other: &Self) -> bool {
        self.is_accounted_for_in(other) && other.is_accounted_for_in(self)
    }

    /// Whether each of the racks has a replica there, too, or would have, were it up.
    fn is_accounted_for_in(&self, other: &Self) -> bool {
        let is_there = |rack: &Str| other.online.values().any(|there| there == rack);
        self.online.iter().all(|(id, rack)| is_there(rack) || other.offline.contains(id))
    }
}
