//! Kafka's assignor for share groups, which it calls simple: every partition has somebody to read it, nobody has
//! nothing as long as partitions can be shared, and as little moves as possible.
//!
//! A partition is read by as many members as it takes for all to have something. Where all members subscribe to the
//! same topics, their partitions are one pool; else each topic is shared out among its subscribers.
//!
//! Where it differs from Kafka on purpose: of several assignments that are equally good, it picks the one by the order
//! of member ids, where Kafka goes by the order of its hash tables.

use std::collections::{BTreeMap, BTreeSet};

use krafka_protocol::{Str, Uuid};

/// A partition of a topic.
pub(crate) type Slot = (Uuid, i32);

/// Who reads what.
pub(crate) type Assignment = BTreeMap<Str, BTreeSet<Slot>>;

/// Shares out the partitions of the topics among their subscribers. `topics` has the partitions that may be read.
pub(crate) fn assign(
    subscriptions: &BTreeMap<Str, BTreeSet<Uuid>>,
    topics: &BTreeMap<Uuid, Vec<i32>>,
    current: &Assignment,
) -> Assignment {
    let mut assignment: Assignment = subscriptions.keys().map(|member| (member.clone(), BTreeSet::new())).collect();
    let slots = |topic: &Uuid| {
        let partitions = topics.get(topic).into_iter().flatten();
        partitions.map(|&partition| (*topic, partition)).collect::<Vec<_>>()
    };
    let mut subscribed: Vec<&BTreeSet<Uuid>> = subscriptions.values().collect();
    subscribed.dedup();
    if let [topics] = subscribed[..] {
        let pool: Vec<Slot> = topics.iter().flat_map(slots).collect();
        let members: Vec<&Str> = subscriptions.keys().collect();
        share_out(&pool, &members, current, &mut assignment);
        return assignment;
    }
    for topic in topics.keys() {
        let subscribers = subscriptions.iter().filter(|(_, topics)| topics.contains(topic));
        let members: Vec<&Str> = subscribers.map(|(member, _)| member).collect();
        share_out(&slots(topic), &members, current, &mut assignment);
    }
    assignment
}

/// Shares out a pool of partitions among members that may have any of them.
fn share_out(pool: &[Slot], members: &[&Str], current: &Assignment, assignment: &mut Assignment) {
    if pool.is_empty() || members.is_empty() {
        return;
    }
    let readers_each = members.len().div_ceil(pool.len());
    let total = pool.len() * readers_each;
    let quota = |index: usize| (total * (index + 1)).div_ceil(members.len()) - (total * index).div_ceil(members.len());

    // Everybody keeps what it has, within its quota and the partition's.
    let mut readers: BTreeMap<Slot, usize> = pool.iter().map(|slot| (*slot, 0)).collect();
    let mut wanting: Vec<(&Str, usize)> = Vec::new();
    for (index, member) in members.iter().enumerate() {
        let mut left = quota(index);
        for slot in current.get(*member).into_iter().flatten() {
            if let Some(count) = readers.get_mut(slot).filter(|count| **count < readers_each)
                && left > 0
            {
                *count += 1;
                left -= 1;
                assignment.entry((*member).clone()).or_default().insert(*slot);
            }
        }
        wanting.push((member, left));
    }
    // The partitions that lack readers the most go first to whoever lacks partitions the most.
    let mut lacking: Vec<Slot> = Vec::new();
    for round in 0..readers_each {
        lacking.extend(readers.iter().filter(|(_, count)| readers_each - **count > round).map(|(slot, _)| *slot));
    }
    for slot in lacking {
        let may_have = |member: &Str| !assignment.get(member).is_some_and(|slots| slots.contains(&slot));
        let open = wanting.iter_mut().filter(|(member, left)| *left > 0 && may_have(member));
        // Of equals the first: `max_by_key` would give the last.
        let Some((member, left)) = open.rev().max_by_key(|(_, left)| *left) else { continue };
        *left -= 1;
        assignment.entry((*member).clone()).or_default().insert(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic(n: u8) -> Uuid {
        Uuid([n; 16])
    }

    fn subscriptions(members: &[(&'static str, &[u8])]) -> BTreeMap<Str, BTreeSet<Uuid>> {
        let topics = |topics: &[u8]| topics.iter().map(|n| topic(*n)).collect();
        members.iter().map(|(member, subscribed)| (Str::from_static(member), topics(subscribed))).collect()
    }

    fn counts(assignment: &Assignment) -> Vec<usize> {
        assignment.values().map(BTreeSet::len).collect()
    }

    #[test]
    fn partitions_are_shared_out_evenly_and_each_is_read() {
        let topics = BTreeMap::from([(topic(1), vec![0, 1, 2]), (topic(2), vec![0, 1])]);

        let two = assign(&subscriptions(&[("a", &[1, 2]), ("b", &[1, 2])]), &topics, &Assignment::new());

        assert_eq!(counts(&two), [3, 2]);
        assert_eq!(two.values().flatten().collect::<BTreeSet<_>>().len(), 5);
    }

    #[test]
    fn more_members_than_partitions_share_them() {
        let topics = BTreeMap::from([(topic(1), vec![0, 1])]);
        let members = subscriptions(&[("a", &[1]), ("b", &[1]), ("c", &[1]), ("d", &[1]), ("e", &[1])]);

        let shared = assign(&members, &topics, &Assignment::new());

        assert_eq!(counts(&shared).iter().sum::<usize>(), 6);
        assert!(counts(&shared).iter().all(|count| (1..=2).contains(count)), "{shared:?}");
    }

    #[test]
    fn a_member_keeps_what_it_may_keep() {
        let topics = BTreeMap::from([(topic(1), vec![0, 1, 2, 3])]);
        let alone = assign(&subscriptions(&[("b", &[1])]), &topics, &Assignment::new());

        let both = assign(&subscriptions(&[("a", &[1]), ("b", &[1])]), &topics, &alone);
        let again = assign(&subscriptions(&[("a", &[1]), ("b", &[1])]), &topics, &both);

        assert_eq!(counts(&both), [2, 2]);
        assert!(both["b"].is_subset(&alone["b"]));
        assert_eq!(again, both);
    }

    #[test]
    fn each_topic_goes_to_its_subscribers() {
        let topics = BTreeMap::from([(topic(1), vec![0, 1]), (topic(2), vec![0])]);

        let mixed = assign(&subscriptions(&[("a", &[1]), ("b", &[1, 2])]), &topics, &Assignment::new());

        assert_eq!(mixed["a"], BTreeSet::from([(topic(1), 0)]));
        assert_eq!(mixed["b"], BTreeSet::from([(topic(1), 1), (topic(2), 0)]));
    }
}
