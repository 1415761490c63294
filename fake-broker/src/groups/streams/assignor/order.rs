//! The orders in which Java walks through its collections: they decide between assignments that are equally good.
//!
//! Kafka's assignor keeps members and processes in hash maps and picks the least loaded from a priority queue. Whoever
//! wants the same tasks at the same members has to walk through them as Java does.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use krafka_protocol::Str;

use crate::java;

/// Ids in the order of a `HashMap` of which nothing is said, in which they are put one after the other.
pub(in crate::groups::streams) fn hash_order<'a>(ids: impl IntoIterator<Item = &'a Str>) -> Vec<&'a Str> {
    java::in_hash_order(ids.into_iter().collect(), |id| java::hash(id))
}

/// Ids, some of them more than once, in the order of a `HashMap` for `expected` of them, where each is made when it is
/// first asked for.
pub(super) fn computed_order<'a>(asked: impl IntoIterator<Item = &'a Str>, expected: usize) -> Vec<&'a Str> {
    let mut ids: Vec<&Str> = Vec::new();
    let mut seen = BTreeSet::new();
    let mut table = expected.max(1).next_power_of_two();
    for id in asked {
        // Whether there is room is looked at before, and not after.
        if ids.len() > table * 3 / 4 {
            table *= 2;
        }
        if seen.insert(id) {
            ids.push(id);
        }
    }
    // Of those that meet in a slot, the last that came is in front.
    ids.reverse();
    ids.sort_by_key(|id| java::slot(java::hash(id), table));
    ids
}

/// Ids in the order of the coordinator's own table, a `TimelineHashMap`.
///
/// Those that meet in a slot are in the order of the ids; with Kafka it depends on who came first.
pub(super) fn timeline_order<'a>(ids: impl IntoIterator<Item = &'a Str>) -> Vec<&'a Str> {
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut ids: Vec<&Str> = ids.into_iter().collect();
    let mut bits: u32 = 1;
    while ids.len() * 3 > 4 << bits {
        bits += 1;
    }
    // The hash is signed, and grows with its sign.
    ids.sort_by_key(|id| (i64::from(java::hash(id)).cast_unsigned().wrapping_mul(GOLDEN) >> (u64::BITS - bits), *id));
    ids
}

/// A binary heap that puts the least in front, and of equals the one that Java's `PriorityQueue` does.
#[derive(Debug, Default)]
pub(super) struct Heap {
    items: Vec<usize>,
}

impl Heap {
    /// Takes an item in.
    pub(super) fn push(&mut self, item: usize, order: impl Fn(usize, usize) -> Ordering) {
        self.items.push(item);
        let mut at = self.items.len() - 1;
        while at > 0 {
            let parent = (at - 1) / 2;
            if order(self.items[at], self.items[parent]).is_ge() {
                break;
            }
            self.items.swap(at, parent);
            at = parent;
        }
    }

    /// Takes the least one out.
    pub(super) fn pop(&mut self, order: impl Fn(usize, usize) -> Ordering) -> Option<usize> {
        if self.items.is_empty() {
            return None;
        }
        let least = self.items.swap_remove(0);
        let mut at = 0;
        while 2 * at + 1 < self.items.len() {
            let (left, right) = (2 * at + 1, 2 * at + 2);
            let prefers_right = right < self.items.len() && order(self.items[left], self.items[right]).is_gt();
            let child = if prefers_right { right } else { left };
            if order(self.items[at], self.items[child]).is_le() {
                break;
            }
            self.items.swap(at, child);
            at = child;
        }
        Some(least)
    }
}
