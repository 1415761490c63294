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

/// Puts parts together by topic, each topic where it comes first.
pub(super) fn by_topic<K: Ord, P, T>(
    parts: impl IntoIterator<Item = (K, P)>,
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
        partitions(&mut topics[place]).push(part);
    }
    topics
}

/// Which partitions are refused, by topic and partition, going by their errors so far.
pub(super) fn refusals(errors: &[Vec<ErrorCode>]) -> Vec<Vec<bool>> {
    errors.iter().map(|partitions| partitions.iter().map(|error| !error.is_ok()).collect()).collect()
}

/// The places of partitions, by topic and partition: first those that are refused without their coordinator.
pub(super) fn refused_first(is_refused: &[Vec<bool>]) -> impl Iterator<Item = (usize, usize)> {
    let places_of = move |which: bool| {
        let topics = is_refused.iter().enumerate();
        topics.flat_map(move |(topic, partitions)| {
            let partitions = partitions.iter().enumerate();
            partitions.filter(move |(_, refused)| **refused == which).map(move |(partition, _)| (topic, partition))
        })
    };
    places_of(true).chain(places_of(false))
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
        let places = refused_first(&[vec![false, true], vec![], vec![true]]).collect::<Vec<_>>();
        assert_eq!(places, [(0, 1), (2, 0), (0, 0)]);
    }
}
