//! `range`: each topic is cut into as many ranges as it has subscribers, so that topics with the same number of
//! partitions are read side by side by the same members.

use std::collections::BTreeMap;

use krafka_protocol::{Str, Uuid};

use super::super::member::Partitions;
use super::Problem;

/// Cuts each topic, static members first in the order of their names, then the others in the order of their ids.
pub(super) fn assign(problem: &Problem) -> BTreeMap<Str, Partitions> {
    let mut order: Vec<_> = problem.members.iter().collect();
    order.sort_by_key(|(id, member)| (member.instance_id.is_none(), member.instance_id.clone(), (*id).clone()));

    let mut shares: BTreeMap<Str, Partitions> =
        problem.members.keys().map(|id| (id.clone(), Partitions::new())).collect();
    for (topic, count) in &problem.topics {
        let readers: Vec<&Str> = order.iter().filter(|(_, m)| m.topics.contains(topic)).map(|(id, _)| *id).collect();
        cut(*topic, *count, &readers, &mut shares);
    }
    shares
}

fn cut(topic: Uuid, count: i32, readers: &[&Str], shares: &mut BTreeMap<Str, Partitions>) {
    let Some(among) = i32::try_from(readers.len()).ok().filter(|among| *among > 0) else { return };
    let mut start = 0;
    for (place, reader) in (0..).zip(readers) {
        let end = start + count / among + i32::from(place < count % among);
        if start < end
            && let Some(share) = shares.get_mut(*reader)
        {
            share.insert(topic, (start..end).collect());
        }
        start = end;
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{check, problem, topic};
    use super::*;

    #[test]
    fn topics_are_cut_alike_and_the_first_get_more() {
        let problem = problem(&[("a", &[1, 2]), ("b", &[1, 2])], &[(1, 3), (2, 3)]);

        let shares = assign(&problem);

        check(&problem, &shares);
        for name in [1, 2] {
            assert_eq!(shares["a"][&topic(name)], [0, 1].into());
            assert_eq!(shares["b"][&topic(name)], [2].into());
        }
    }

    #[test]
    fn static_members_come_first_by_name() {
        let mut problem = problem(&[("a", &[1]), ("b", &[1]), ("c", &[1])], &[(1, 3)]);
        problem.members.get_mut("c").expect("a member").instance_id = Some("one".into());
        problem.members.get_mut("b").expect("a member").instance_id = Some("two".into());

        let shares = assign(&problem);

        assert_eq!(["c", "b", "a"].map(|id| shares[id][&topic(1)].clone()), [[0].into(), [1].into(), [2].into()]);
    }

    #[test]
    fn only_subscribers_of_a_topic_share_it() {
        let problem = problem(&[("a", &[1]), ("b", &[1, 2]), ("c", &[2])], &[(1, 2), (2, 1)]);

        let shares = assign(&problem);

        check(&problem, &shares);
        assert_eq!(shares["b"][&topic(2)], [0].into());
        assert!(shares["c"].is_empty(), "more readers than partitions");
    }
}
