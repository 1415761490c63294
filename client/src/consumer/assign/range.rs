//! The range assignor: each topic's partitions in contiguous ranges.
//!
//! It works topic by topic, so members that subscribe to the same topics get the same ranges of each: topics with as
//! many partitions as one another are co-partitioned, and a join by key finds both sides in one member.

use std::collections::BTreeMap;

use krafka_protocol::Str;

use super::{Candidate, Shares};

/// Shares out `partitions` (topic → how many) among `candidates`.
///
/// A topic that nobody subscribes to, or that does not exist, is given to nobody.
pub(crate) fn range(candidates: &[Candidate], partitions: &BTreeMap<Str, i32>) -> Shares {
    let mut ordered: Vec<&Candidate> = candidates.iter().collect();
    // As in the Java client: static members come first, by instance id; the others follow by member id.
    ordered.sort_by(|a, b| match (&a.group_instance_id, &b.group_instance_id) {
        (Some(x), Some(y)) => x.cmp(y),
        (Some(_), None) => std::cmp::Ordering::Less,
        (None, Some(_)) => std::cmp::Ordering::Greater,
        (None, None) => a.member_id.cmp(&b.member_id),
    });
    let mut shares: Shares =
        candidates.iter().map(|candidate| (candidate.member_id.clone(), BTreeMap::new())).collect();
    for (topic, &count) in partitions {
        let members: Vec<_> = ordered.iter().filter(|candidate| candidate.topics.contains(topic)).collect();
        let Ok(heads) = i32::try_from(members.len()) else { continue };
        if heads == 0 || count <= 0 {
            continue;
        }
        let (each, extra) = (count / heads, count % heads);
        let mut next = 0;
        for (index, member) in members.iter().enumerate() {
            // The first `extra` members take one more each.
            let share = each + i32::from((index as i32) < extra);
            if share > 0 {
                let topics = shares.get_mut(&member.member_id).expect("each candidate has an entry");
                topics.insert(topic.clone(), (next..next + share).collect());
            }
            next += share;
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(id: &'static str, topics: &[&'static str]) -> Candidate {
        Candidate {
            member_id: Str::from(id),
            group_instance_id: None,
            topics: topics.iter().map(|&topic| Str::from(topic)).collect(),
        }
    }

    fn counts(topics: &[(&'static str, i32)]) -> BTreeMap<Str, i32> {
        topics.iter().map(|&(topic, count)| (Str::from(topic), count)).collect()
    }

    fn shown(shares: &Shares) -> String {
        let member = |(member, topics): (&Str, &BTreeMap<Str, Vec<i32>>)| {
            let topics: Vec<_> = topics.iter().map(|(topic, list)| format!("{topic}{list:?}")).collect();
            format!("{member}: {}", topics.join(" "))
        };
        shares.iter().map(member).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn the_first_members_take_the_remainder() {
        let shares = range(&[member("a", &["t"]), member("b", &["t"]), member("c", &["t"])], &counts(&[("t", 8)]));

        assert_eq!(shown(&shares), "a: t[0, 1, 2]; b: t[3, 4, 5]; c: t[6, 7]");
    }

    #[test]
    fn equal_topics_are_co_partitioned() {
        let members = [member("b", &["t1", "t2"]), member("a", &["t2", "t1"])];

        let shares = range(&members, &counts(&[("t1", 3), ("t2", 3)]));

        assert_eq!(shown(&shares), "a: t1[0, 1] t2[0, 1]; b: t1[2] t2[2]");
    }

    #[test]
    fn only_subscribers_get_a_topic() {
        let members = [member("a", &["t1"]), member("b", &["t1", "t2"]), member("c", &[])];

        let shares = range(&members, &counts(&[("t1", 2), ("t2", 2), ("t3", 2)]));

        assert_eq!(shown(&shares), "a: t1[0]; b: t1[1] t2[0, 1]; c: ");
    }

    #[test]
    fn more_members_than_partitions_leaves_the_last_without() {
        let shares = range(&[member("a", &["t"]), member("b", &["t"])], &counts(&[("t", 1)]));

        assert_eq!(shown(&shares), "a: t[0]; b: ");
    }

    #[test]
    fn static_members_are_ordered_by_instance_id_before_the_others() {
        let mut one = member("z", &["t"]);
        one.group_instance_id = Some(Str::from("i1"));
        let mut two = member("y", &["t"]);
        two.group_instance_id = Some(Str::from("i2"));

        let shares = range(&[member("a", &["t"]), two, one], &counts(&[("t", 3)]));

        assert_eq!(shown(&shares), "a: t[2]; y: t[1]; z: t[0]");
    }

    #[test]
    fn a_missing_topic_is_given_to_nobody() {
        let shares = range(&[member("a", &["t", "gone"])], &counts(&[("t", 1), ("gone", 0)]));

        assert_eq!(shown(&shares), "a: t[0]");
    }
}
