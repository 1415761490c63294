//! The parts of requests and answers that Kafka keeps in maps: what comes twice is one part, and topics have all their
//! partitions together.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use krafka_protocol::ErrorCode;

/// Leaves of parts of the same key the last, at the place of the first.
pub(super) fn once<K: Ord + Clone, P>(parts: impl IntoIterator<Item = (K, P)>) -> Vec<(K, P)> {
    let mut places = BTreeMap::new();
    let mut kept: Vec<(K, P)> = Vec::new();
    for (key, part) in parts {
        match places.entry(key.clone()) {
            Entry::Vacant(place) => {
                place.insert(kept.len());
                kept.push((key, part));
            }
            Entry::Occupied(place) => kept[*place.get()].1 = part,
        }
    }
    kept
}

/// Each key once.
pub(super) fn keys<K: Ord + Clone>(keys: impl IntoIterator<Item = K>) -> Vec<K> {
    once(keys.into_iter().map(|key| (key, ()))).into_iter().map(|(key, ())| key).collect()
}

/// Puts parts together by topic, each topic where it comes first; also one of which there is no part.
pub(super) fn by_topic<K: Ord, P, T>(
    parts: impl IntoIterator<Item = (K, impl Into<Option<P>>)>,
    begin: impl Fn(&K) -> T,
    partitions: impl Fn(&mut T) -> &mut Vec<P>,
) -> Vec<T> {
    let mut places = BTreeMap::new();
    let mut topics: Vec<T> = Vec::new();
    for (key, part) in parts {
        let place = *places.entry(key).or_insert_with_key(|key| {
            topics.push(begin(key));
            topics.len() - 1
        });
        partitions(&mut topics[place]).extend(part.into());
    }
    topics
}

/// Which partitions are refused, by topic and partition, going by their errors so far.
pub(super) fn refusals(errors: &[Vec<ErrorCode>]) -> Vec<Vec<bool>> {
    errors.iter().map(|partitions| partitions.iter().map(|error| !error.is_ok()).collect()).collect()
}

/// The places of partitions, by topic and partition: first those that are refused without their coordinator, and with
/// them the topics that have none and would be refused as a whole.
pub(super) fn refused_first(
    is_refused: &[Vec<bool>],
    is_unknown: impl Fn(usize) -> bool,
) -> impl Iterator<Item = (usize, Option<usize>)> {
    let mut places = Vec::new();
    for (topic, partitions) in is_refused.iter().enumerate() {
        if partitions.is_empty() && is_unknown(topic) {
            places.push((topic, None));
        }
        let refused = partitions.iter().enumerate().filter(|(_, refused)| **refused);
        places.extend(refused.map(|(partition, _)| (topic, Some(partition))));
    }
    for (topic, partitions) in is_refused.iter().enumerate() {
        let others = partitions.iter().enumerate().filter(|(_, refused)| !**refused);
        places.extend(others.map(|(partition, _)| (topic, Some(partition))));
    }
    places.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_a_key_takes_the_place_of_the_first() {
        assert_eq!(once([("b", 1), ("a", 2), ("b", 3)]), [("b", 3), ("a", 2)]);
    }

    #[test]
    fn topics_are_where_their_first_partition_was() {
        let topics = by_topic([("b", 1), ("a", 2), ("b", 3)], |name| (*name, Vec::new()), |topic| &mut topic.1);
        assert_eq!(topics, [("b", vec![1, 3]), ("a", vec![2])]);
    }

    #[test]
    fn places_of_the_refused_come_first() {
        let is_refused = [vec![false, true], vec![], vec![], vec![true]];
        let places = refused_first(&is_refused, |topic| topic != 1).collect::<Vec<_>>();
        assert_eq!(places, [(0, Some(1)), (2, None), (3, Some(0)), (0, Some(0))]);
    }
}
