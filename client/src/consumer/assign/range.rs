//! The range assignor: each topic's partitions in contiguous ranges.
//!
//! It works topic by topic, so members that subscribe to the same topics get the same ranges of each: topics with as
//! many partitions as one another are co-partitioned, and a join by key finds both sides in one member.
//!
//! Where members say in which rack they stand, and not every rack has all of a topic's partitions, each is given
//! partitions first that have a replica in its rack, up to its share, and then what is left (KIP-881). Co-partitioned
//! topics stay so: of these a partition has a near replica if it has one in each topic.

use std::collections::BTreeMap;

use krafka_protocol::Str;

use super::{Candidate, Placement, Racks, Shares};

/// Shares out partitions among `candidates`.
///
/// A topic that nobody subscribes to, or that does not exist, is given to nobody.
pub(crate) fn range(candidates: &[Candidate], placement: &Placement) -> Shares {
    let mut ordered: Vec<&Candidate> = candidates.iter().collect();
    // As in the Java client: static members come first, by instance id; the others follow by member id.
    ordered.sort_by(|a, b| match (&a.group_instance_id, &b.group_instance_id) {
        (Some(x), Some(y)) => x.cmp(y),
        (Some(_), None) => std::cmp::Ordering::Less,
        (None, Some(_)) => std::cmp::Ordering::Greater,
        (None, None) => a.member_id.cmp(&b.member_id),
    });
    let mut topics: Vec<Topic<'_>> = placement
        .iter()
        .map(|(name, racks)| {
            let members = ordered.iter().copied().filter(|candidate| candidate.topics.contains(name));
            Topic::new(name, racks, members.collect())
        })
        .filter(|topic| !topic.members.is_empty())
        .collect();
    if topics.iter().any(|topic| topic.minds_racks) {
        match_racks(&mut topics);
    }
    let mut shares: Shares =
        candidates.iter().map(|candidate| (candidate.member_id.clone(), BTreeMap::new())).collect();
    for topic in &mut topics {
        topic.give_ranges(|_, _, _| true);
        for (partition, owner) in (0..).zip(&topic.owners) {
            let owner = topic.members[owner.expect("there is room for all")];
            let share = shares.get_mut(&owner.member_id).expect("each candidate has an entry");
            share.entry(topic.name.clone()).or_default().push(partition);
        }
    }
    shares
}

/// Gives members partitions with replicas in their racks.
fn match_racks(topics: &mut [Topic<'_>]) {
    // Members of a topic are in order, so that the same members are equal lists.
    let mut groups: Vec<Vec<&mut Topic<'_>>> = Vec::new();
    for topic in topics {
        let is_one = |group: &&mut Vec<&mut Topic<'_>>| {
            group[0].members == topic.members && group[0].racks.len() == topic.racks.len()
        };
        match groups.iter_mut().find(is_one) {
            Some(group) => group.push(topic),
            None => groups.push(vec![topic]),
        }
    }
    for mut group in groups {
        match &mut group[..] {
            [topic] if topic.minds_racks => topic.give_ranges(Topic::is_near),
            [_] => {}
            topics => match_racks_of_all(topics),
        }
    }
}

/// The same for topics that have the same members and as many partitions, which go together.
fn match_racks_of_all(topics: &mut [&mut Topic<'_>]) {
    if topics[0].members.iter().all(|member| member.rack.is_none()) {
        return;
    }
    for partition in 0..topics[0].racks.len() {
        let suits =
            |member: &usize| topics.iter().all(|topic| topic.is_near(*member, partition) && topic.room(*member) > 0);
        if let Some(member) = (0..topics[0].members.len()).find(suits) {
            topics.iter_mut().for_each(|topic| topic.give(partition, member));
        }
    }
}

/// A topic that is being shared out.
struct Topic<'a> {
    name: &'a Str,
    racks: &'a [Racks],
    /// Those who read it, in order.
    members: Vec<&'a Candidate>,
    /// Whether it matters to whom a partition is given: some members are near some partitions, and not to all.
    minds_racks: bool,
    /// The member that has each partition.
    owners: Vec<Option<usize>>,
    /// How many partitions each member has.
    counts: Vec<usize>,
    /// How many it gets at least; so many members get one more.
    each: usize,
    extra: usize,
}

impl<'a> Topic<'a> {
    fn new(name: &'a Str, racks: &'a [Racks], members: Vec<&'a Candidate>) -> Self {
        let everywhere: Racks = racks.iter().flatten().cloned().collect();
        let is_anybody_near = members.iter().flat_map(|member| &member.rack).any(|rack| everywhere.contains(rack));
        let heads = members.len().max(1);
        Self {
            name,
            racks,
            minds_racks: is_anybody_near && racks.iter().any(|some| *some != everywhere),
            owners: vec![None; racks.len()],
            counts: vec![0; members.len()],
            each: racks.len() / heads,
            extra: racks.len() % heads,
            members,
        }
    }

    /// Gives each member in turn the first partitions that are left and that it may have, as many as it has room for.
    fn give_ranges(&mut self, may_have: impl Fn(&Self, usize, usize) -> bool) {
        for member in 0..self.members.len() {
            for partition in 0..self.owners.len() {
                if self.room(member) == 0 {
                    break;
                }
                if self.owners[partition].is_none() && may_have(self, member, partition) {
                    self.give(partition, member);
                }
            }
        }
    }

    fn give(&mut self, partition: usize, member: usize) {
        self.owners[partition] = Some(member);
        self.counts[member] += 1;
        if self.counts[member] > self.each {
            self.extra -= 1;
        }
    }

    fn room(&self, member: usize) -> usize {
        (self.each + usize::from(self.extra > 0)).saturating_sub(self.counts[member])
    }

    /// Whether a partition has a replica in the member's rack. Who has no rack is near to all.
    fn is_near(&self, member: usize, partition: usize) -> bool {
        self.members[member].rack.as_ref().is_none_or(|rack| self.racks[partition].contains(rack))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(id: &'static str, topics: &[&'static str]) -> Candidate {
        Candidate {
            member_id: Str::from(id),
            group_instance_id: None,
            rack: None,
            topics: topics.iter().map(|&topic| Str::from(topic)).collect(),
        }
    }

    fn counts(topics: &[(&'static str, usize)]) -> Placement {
        topics.iter().map(|&(topic, count)| (Str::from(topic), vec![Racks::new(); count])).collect()
    }

    /// A member that stands in the rack of its name's first letter.
    fn near(id: &'static str, topics: &[&'static str]) -> Candidate {
        Candidate { rack: Some(Str::from(&id[..1])), ..member(id, topics) }
    }

    /// A topic's partitions by the letters of their racks.
    fn placed(topics: &[(&'static str, &[&'static str])]) -> Placement {
        let racks = |letters: &&'static str| (0..letters.len()).map(|at| Str::from(&letters[at..=at])).collect();
        topics.iter().map(|(topic, partitions)| (Str::from(*topic), partitions.iter().map(racks).collect())).collect()
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

    /// Nobody else gets one more than is left for all.
    #[test]
    fn a_remainder_is_taken_only_once() {
        let members = ["a", "b", "c", "d"];

        let shares = range(&members.map(|id| member(id, &["t"])), &counts(&[("t", 5)]));
        assert_eq!(shown(&shares), "a: t[0, 1]; b: t[2]; c: t[3]; d: t[4]");

        let shares = range(&members.map(|id| near(id, &["t"])), &placed(&[("t", &["c", "c", "b", "b", "d"])]));
        assert_eq!(shown(&shares), "a: t[1]; b: t[2, 3]; c: t[0]; d: t[4]");
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

    /// MD-23.
    #[test]
    fn members_get_partitions_that_have_replicas_in_their_racks() {
        let members = [near("a", &["t"]), near("b", &["t"]), near("c", &["t"])];

        let shares = range(&members, &placed(&[("t", &["bc", "ca", "ab", "bc", "ca", "ab"])]));

        assert_eq!(shown(&shares), "a: t[1, 2]; b: t[0, 3]; c: t[4, 5]");
    }

    #[test]
    fn shares_stay_even_whatever_the_racks_are() {
        let members = [near("a", &["t"]), near("b", &["t"])];

        let shares = range(&members, &placed(&[("t", &["a", "a", "a", "a", "b"])]));

        assert_eq!(shown(&shares), "a: t[0, 1, 2]; b: t[3, 4]");
    }

    #[test]
    fn who_has_no_rack_is_near_to_all_and_comes_in_its_turn() {
        let members = [member("a", &["t"]), near("b", &["t"])];

        let shares = range(&members, &placed(&[("t", &["b", "c", "b", "b"])]));

        assert_eq!(shown(&shares), "a: t[0, 1]; b: t[2, 3]");
    }

    /// Then the ranges are those of a group that knows no racks.
    #[test]
    fn racks_that_make_no_difference_change_nothing() {
        let plain = [member("a", &["t"]), member("b", &["t"])];
        let members = [near("a", &["t"]), near("b", &["t"])];
        let ranges = "a: t[0, 1]; b: t[2, 3]";

        for partitions in [["ba"; 4], ["c"; 4], ["d", "c", "d", "c"], [""; 4]] {
            assert_eq!(shown(&range(&members, &placed(&[("t", &partitions)]))), ranges, "{partitions:?}");
        }
        assert_eq!(shown(&range(&plain, &placed(&[("t", &["b", "b", "a", "a"])]))), ranges, "nobody says where it is");
    }

    #[test]
    fn co_partitioned_topics_stay_so_where_all_are_near() {
        let members = [near("a", &["t", "u"]), near("b", &["t", "u"])];

        let shares = range(&members, &placed(&[("t", &["b", "a", "b", "a"]), ("u", &["bc", "ac", "ba", "ab"])]));

        assert_eq!(shown(&shares), "a: t[1, 3] u[1, 3]; b: t[0, 2] u[0, 2]");
    }

    /// A partition that is near in one topic alone is given when all that are near in both have been.
    #[test]
    fn co_partitioned_topics_stay_so_where_one_is_not_near() {
        let members = [near("a", &["t", "u"]), near("b", &["t", "u"])];

        let shares = range(&members, &placed(&[("t", &["b", "a", "a", "b"]), ("u", &["b", "b", "a", "a"])]));

        assert_eq!(shown(&shares), "a: t[1, 2] u[1, 2]; b: t[0, 3] u[0, 3]");
    }

    /// Groups of up to five members and three topics, drawn by chance, and what the assignor of Java's client made of
    /// them (4.4.0 and 3.9.2 alike; `range/Ranges.java` says how). A member is `id/instance@rack=topics`, a topic
    /// `name:racks,racks`.
    #[test]
    fn ranges_are_those_of_java() {
        let candidate = |text: &'static str| {
            let (who, topics) = text.split_once('=')?;
            let (who, rack) = who.split_once('@')?;
            let (id, instance) = who.split_once('/')?;
            let some = |name: &'static str| (!name.is_empty()).then(|| Str::from(name));
            let topics = (0..topics.len()).map(|at| Str::from(&topics[at..=at])).collect();
            Some(Candidate { member_id: Str::from(id), group_instance_id: some(instance), rack: some(rack), topics })
        };
        let topic = |text: &'static str| {
            let (name, partitions) = text.split_once(':')?;
            let letters = |racks: &'static str| (0..racks.len()).map(move |at| &racks[at..=at]);
            let racks = |racks| letters(racks).filter(|rack| *rack != "-").map(Str::from).collect();
            Some((Str::from(name), partitions.split(',').map(racks).collect()))
        };
        for line in include_str!("range/java.tsv").lines() {
            let [members, topics, expected] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
            let members: Option<Vec<_>> = members.split(' ').map(candidate).collect();
            let topics: Option<Placement> = topics.split(' ').map(topic).collect();

            let shares = range(&members.expect("members"), &topics.expect("topics"));

            assert_eq!(shown(&shares), expected, "{line}");
        }
    }

    #[test]
    fn topics_of_other_members_or_sizes_are_matched_by_themselves() {
        let members = [near("a", &["t", "u"]), near("b", &["t", "u", "v"]), member("c", &["v"])];

        let topics = placed(&[("t", &["b", "a"]), ("u", &["b", "a", "b"]), ("v", &["c", "b"])]);
        let shares = range(&members, &topics);

        assert_eq!(shown(&shares), "a: t[1] u[1]; b: t[0] u[0, 2] v[1]; c: v[0]");
    }
}
