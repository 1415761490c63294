//! `uniform`: everyone gets as many partitions as anyone else, and keeps as much as that allows.
//!
//! Kafka has one algorithm for members that all want the same topics and another for the rest, and takes members in the
//! order of a hash map, so that nobody can rely on who gets the odd partition. Here one algorithm does both: it fills
//! up from the least loaded, and then levels out. Its result is balanced and moves no more than Kafka's.

use std::collections::{BTreeMap, BTreeSet};

use krafka_protocol::{Str, Uuid};

use super::super::member::Partitions;
use super::Problem;

/// How often all topics are gone through to level out. Kafka gives up after as many rounds.
const MAX_ROUNDS: usize = 16;

/// Shares out evenly.
pub(super) fn assign(problem: &Problem) -> BTreeMap<Str, Partitions> {
    let mut shares = Shares::keeping_the_old(problem);
    let order = shares.topics_in_order(problem);
    for topic in &order {
        shares.give_out(problem, *topic);
    }
    for _ in 0..MAX_ROUNDS {
        if order.iter().filter(|topic| shares.level(problem, **topic)).count() == 0 {
            break;
        }
    }
    shares.members.into_iter().map(|(id, share)| (id, share.partitions)).collect()
}

/// What each member has so far.
struct Shares {
    members: BTreeMap<Str, Share>,
}

#[derive(Default)]
struct Share {
    partitions: Partitions,
    size: usize,
}

impl Share {
    fn add(&mut self, topic: Uuid, index: i32) {
        self.size += usize::from(self.partitions.entry(topic).or_default().insert(index));
    }

    /// Takes away the last partition of a topic.
    fn take(&mut self, topic: Uuid) -> Option<i32> {
        let indexes = self.partitions.get_mut(&topic)?;
        let index = indexes.pop_last()?;
        if indexes.is_empty() {
            self.partitions.remove(&topic);
        }
        self.size -= 1;
        Some(index)
    }
}

impl Shares {
    /// Everyone keeps what it had and still wants.
    fn keeping_the_old(problem: &Problem) -> Self {
        let mut taken = BTreeSet::new();
        let mut members = BTreeMap::new();
        for (id, member) in &problem.members {
            let mut share = Share::default();
            for (topic, indexes) in member.target.iter().filter(|(topic, _)| member.topics.contains(*topic)) {
                let count = problem.topics.get(topic).copied().unwrap_or(0);
                for index in indexes.iter().filter(|index| **index < count) {
                    if taken.insert((*topic, *index)) {
                        share.add(*topic, *index);
                    }
                }
            }
            members.insert(id.clone(), share);
        }
        Self { members }
    }

    /// Those with the fewest readers for their partitions come first: they have the least choice.
    fn topics_in_order(&self, problem: &Problem) -> Vec<Uuid> {
        let readers = |topic: &Uuid| problem.members.values().filter(|member| member.topics.contains(topic)).count();
        let mut order: Vec<(Uuid, u64, usize)> = problem
            .topics
            .iter()
            .map(|(topic, count)| (*topic, u64::from(count.unsigned_abs()), readers(topic)))
            .filter(|(_, _, readers)| *readers > 0)
            .collect();
        order.sort_by(|(a, a_count, a_readers), (b, b_count, b_readers)| {
            let per_reader = (b_count * *a_readers as u64).cmp(&(a_count * *b_readers as u64));
            per_reader.then(a_readers.cmp(b_readers)).then(a.cmp(b))
        });
        order.into_iter().map(|(topic, ..)| topic).collect()
    }

    /// Gives what nobody has to those who have least.
    fn give_out(&mut self, problem: &Problem, topic: Uuid) {
        let had: BTreeSet<i32> =
            self.members.values().filter_map(|share| share.partitions.get(&topic)).flatten().copied().collect();
        for index in (0..problem.topics[&topic]).filter(|index| !had.contains(index)) {
            if let Some(share) = self.least_loaded(problem, topic).and_then(|id| self.members.get_mut(&id)) {
                share.add(topic, index);
            }
        }
    }

    /// Moves partitions of a topic from those who have more to those who have less, until the difference is one.
    /// Says whether any moved.
    fn level(&mut self, problem: &Problem, topic: Uuid) -> bool {
        let mut has_moved = false;
        while let Some((most, least)) = self.most_loaded(topic).zip(self.least_loaded(problem, topic)) {
            if self.members[&most].size <= self.members[&least].size + 1 {
                break;
            }
            let Some(index) = self.members.get_mut(&most).and_then(|share| share.take(topic)) else { break };
            if let Some(share) = self.members.get_mut(&least) {
                share.add(topic, index);
            }
            has_moved = true;
        }
        has_moved
    }

    /// The reader of a topic that has least; the first of several.
    fn least_loaded(&self, problem: &Problem, topic: Uuid) -> Option<Str> {
        let reads = |id: &Str| problem.members[id].topics.contains(&topic);
        let readers = self.members.iter().filter(|(id, _)| reads(id));
        readers.min_by_key(|(_, share)| share.size).map(|(id, _)| id.clone())
    }

    /// The holder of some of a topic that has most; the last of several.
    fn most_loaded(&self, topic: Uuid) -> Option<Str> {
        let holders = self.members.iter().filter(|(_, share)| share.partitions.contains_key(&topic));
        holders.max_by_key(|(_, share)| share.size).map(|(id, _)| id.clone())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::{check, moved, problem, size, topic};
    use super::*;

    fn sizes(shares: &BTreeMap<Str, Partitions>) -> Vec<usize> {
        shares.values().map(size).collect()
    }

    /// The problem as it is when an assignment is in force.
    fn after(mut problem: Problem, shares: BTreeMap<Str, Partitions>) -> Problem {
        for (id, share) in shares {
            if let Some(member) = problem.members.get_mut(&id) {
                member.target = share;
            }
        }
        problem
    }

    #[test]
    fn everyone_gets_as_much() {
        let problem = problem(&[("a", &[1, 2]), ("b", &[1, 2]), ("c", &[1, 2])], &[(1, 4), (2, 4)]);

        let shares = assign(&problem);

        check(&problem, &shares);
        let mut sizes = sizes(&shares);
        sizes.sort_unstable();
        assert_eq!(sizes, [2, 3, 3]);
    }

    #[test]
    fn newcomer_gets_its_share_and_nothing_else_moves() {
        let two = problem(&[("a", &[1]), ("b", &[1])], &[(1, 6)]);
        let shares = assign(&two);
        let three = after(problem(&[("a", &[1]), ("b", &[1]), ("c", &[1])], &[(1, 6)]), shares);

        let shares = assign(&three);

        check(&three, &shares);
        assert_eq!((sizes(&shares), moved(&three, &shares)), (vec![2, 2, 2], 2));
    }

    #[test]
    fn shares_of_one_that_is_gone_go_to_the_others() {
        let three = problem(&[("a", &[1]), ("b", &[1]), ("c", &[1])], &[(1, 6)]);
        let shares = assign(&three);
        let two = after(problem(&[("a", &[1]), ("c", &[1])], &[(1, 6)]), shares);

        let shares = assign(&two);

        check(&two, &shares);
        assert_eq!((sizes(&shares), moved(&two, &shares)), (vec![3, 3], 2));
    }

    #[test]
    fn different_wishes_are_levelled_out() {
        let problem = problem(&[("a", &[1]), ("b", &[1, 2])], &[(1, 4), (2, 4)]);

        let shares = assign(&problem);

        check(&problem, &shares);
        assert_eq!(sizes(&shares), [4, 4]);
        assert!(!shares["a"].contains_key(&topic(2)));
    }

    proptest! {
        /// Whoever wants the same topics gets the same number but for one, whatever was before; and doing it again
        /// moves nothing.
        #[test]
        fn assignment_is_complete_balanced_and_sticky(
            counts in prop::collection::vec(0..6_i32, 1..4),
            wishes in prop::collection::vec(prop::collection::btree_set(1..4_u8, 0..3), 1..5),
        ) {
            let ids = ["a", "b", "c", "d", "e"];
            let wishes: Vec<Vec<u8>> = wishes.into_iter().map(|w| w.into_iter().collect()).collect();
            let topics: Vec<(u8, i32)> = (1..).zip(counts).collect();
            let known = |w: &Vec<u8>| w.iter().copied().filter(|t| (*t as usize) <= topics.len()).collect::<Vec<_>>();
            let wishes: Vec<Vec<u8>> = wishes.iter().map(known).collect();
            let members: Vec<(&'static str, &[u8])> = ids.into_iter().zip(wishes.iter().map(Vec::as_slice)).collect();
            let problem = problem(&members, &topics);

            let shares = assign(&problem);
            check(&problem, &shares);
            for (one, share) in &shares {
                for (other, rest) in &shares {
                    if problem.members[one].topics == problem.members[other].topics {
                        prop_assert!(size(share).abs_diff(size(rest)) <= 1);
                    }
                }
            }

            let again = after(problem, shares);
            prop_assert_eq!(moved(&again, &assign(&again)), 0);
        }
    }
}
