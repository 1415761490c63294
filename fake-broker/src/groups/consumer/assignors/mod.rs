//! The coordinator's assignors: who shall read what.
//!
//! Both give each partition of the subscribed topics to one member that subscribes to its topic. Kafka's have a rack in
//! their input and do not look at it, since 4.0; so neither do these.

mod range;
mod uniform;

use std::collections::{BTreeMap, BTreeSet};

use krafka_protocol::{Str, Uuid};

use super::member::Partitions;

/// The names of Kafka's default assignors, the first of which is the one for members that name none.
pub(crate) const NAMES: [&str; 2] = ["uniform", "range"];

/// A member as an assignor sees it.
#[derive(Clone, Debug)]
pub(super) struct Subscriber {
    pub(super) instance_id: Option<Str>,
    /// The topics that it subscribes to and that exist.
    pub(super) topics: BTreeSet<Uuid>,
    /// What it was to hold so far.
    pub(super) target: Partitions,
}

/// What there is to share out, among whom.
#[derive(Clone, Debug, Default)]
pub(super) struct Problem {
    pub(super) members: BTreeMap<Str, Subscriber>,
    /// How many partitions each subscribed topic has.
    pub(super) topics: BTreeMap<Uuid, i32>,
}

/// Shares out by the assignor of that name.
pub(super) fn assign(name: &str, problem: &Problem) -> BTreeMap<Str, Partitions> {
    match name {
        "range" => range::assign(problem),
        _ => uniform::assign(problem),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(super) fn topic(name: u8) -> Uuid {
        Uuid([name; 16])
    }

    /// Members with the topics they want, and topics with their numbers of partitions.
    pub(super) fn problem(members: &[(&'static str, &[u8])], topics: &[(u8, i32)]) -> Problem {
        let subscriber = |wanted: &[u8]| Subscriber {
            instance_id: None,
            topics: wanted.iter().map(|name| topic(*name)).collect(),
            target: Partitions::new(),
        };
        Problem {
            members: members.iter().map(|(id, wanted)| (Str::from_static(id), subscriber(wanted))).collect(),
            topics: topics.iter().map(|(name, count)| (topic(*name), *count)).collect(),
        }
    }

    /// Each partition is with exactly one member, which wants its topic.
    pub(super) fn check(problem: &Problem, shares: &BTreeMap<Str, Partitions>) {
        let mut seen = BTreeSet::new();
        for (member, share) in shares {
            for (topic, indexes) in share {
                assert!(problem.members[member].topics.contains(topic), "{member} did not ask for {topic}");
                assert!(!indexes.is_empty(), "an empty topic is left out");
                for index in indexes {
                    assert!(*index >= 0 && *index < problem.topics[topic], "{topic}-{index} does not exist");
                    assert!(seen.insert((*topic, *index)), "{topic}-{index} is given twice");
                }
            }
        }
        let wanted = |topic: &Uuid| problem.members.values().any(|member| member.topics.contains(topic));
        let all: usize = problem.topics.iter().filter(|(t, _)| wanted(t)).map(|(_, count)| *count as usize).sum();
        assert_eq!(seen.len(), all, "nothing is left over");
    }

    pub(super) fn size(share: &Partitions) -> usize {
        share.values().map(BTreeSet::len).sum()
    }

    /// How many partitions are with another member than before.
    pub(super) fn moved(problem: &Problem, shares: &BTreeMap<Str, Partitions>) -> usize {
        let before = |member: &Str, topic, index| {
            problem.members[member].target.get(topic).is_some_and(|indexes: &BTreeSet<i32>| indexes.contains(index))
        };
        let all = shares.iter().flat_map(|(member, share)| {
            share.iter().flat_map(move |(topic, indexes)| indexes.iter().map(move |index| (member, topic, index)))
        });
        all.filter(|(member, topic, index)| !before(member, topic, index)).count()
    }
}
