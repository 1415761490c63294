//! The assignor against what Kafka 4.4.0 assigns.

use super::order::{Heap, computed_order, hash_order, timeline_order};
use super::*;

const STATELESS: Part = Part { tasks: 4, is_stateful: false };
const STATEFUL: Part = Part { tasks: 4, is_stateful: true };

fn parts(parts: &[Part]) -> BTreeMap<Str, Part> {
    parts.iter().enumerate().map(|(id, part)| (Str::from(id.to_string()), *part)).collect()
}

/// Members with their processes, which have what an assignment gave them.
fn holders(ids: &[(&'static str, &'static str)], had: &BTreeMap<Str, Tasks>) -> BTreeMap<Str, Holder> {
    let holder = |&(id, process): &(&'static str, &'static str)| {
        let tasks = had.get(id).cloned().unwrap_or_default();
        let process = Str::from_static(process);
        (Str::from_static(id), Holder { process, tasks, ..Holder::default() })
    };
    ids.iter().map(holder).collect()
}

fn shown(tasks: &BTreeSet<Task>) -> Vec<String> {
    tasks.iter().map(|(part, partition)| format!("{part}_{partition}")).collect()
}

fn active(assignment: &BTreeMap<Str, Tasks>) -> Vec<(&str, String)> {
    assignment.iter().map(|(id, tasks)| (&**id, shown(&tasks.active).join(" "))).collect()
}

fn standby(assignment: &BTreeMap<Str, Tasks>) -> Vec<(&str, String)> {
    assignment.iter().map(|(id, tasks)| (&**id, shown(&tasks.standby).join(" "))).collect()
}

const ONE: &[(&str, &str)] = &[("a1", "p"), ("a2", "p")];
const TWO: &[(&str, &str)] = &[("a1", "p"), ("a2", "p"), ("b1", "q"), ("b2", "q")];
const THREE: &[(&str, &str)] = &[("a1", "p"), ("a2", "p"), ("b1", "q"), ("b2", "q"), ("c1", "r"), ("c2", "r")];

/// Instances with two threads each come and go; nobody is without a task as long as there are enough.
#[test]
fn partitions_stay_together_and_nobody_is_idle() {
    let parts = parts(&[STATELESS, STATELESS]);
    let one = assign(&parts, &holders(ONE, &BTreeMap::new()), 0);
    let two = assign(&parts, &holders(TWO, &one), 0);
    let three = assign(&parts, &holders(THREE, &two), 0);
    let left = [("a1", "p"), ("a2", "p"), ("c1", "r"), ("c2", "r")];
    let after = assign(&parts, &holders(&left, &three), 0);

    assert_eq!(active(&one).len(), 2);
    let mut pairs: Vec<_> = two.values().map(|tasks| shown(&tasks.active).join(" ")).collect();
    pairs.sort_unstable();
    assert_eq!(pairs, ["0_0 1_0", "0_1 1_1", "0_2 1_2", "0_3 1_3"]);
    let mut counts: Vec<_> = three.values().map(|tasks| tasks.active.len()).collect();
    counts.sort_unstable();
    assert_eq!(counts, [1, 1, 1, 1, 2, 2]);
    let mut pairs: Vec<_> = after.values().map(|tasks| shown(&tasks.active).join(" ")).collect();
    pairs.sort_unstable();
    assert_eq!(pairs, ["0_0 1_0", "0_1 1_1", "0_2 1_2", "0_3 1_3"]);
}

/// A second assignment of the same changes nothing.
#[test]
fn nothing_moves_without_a_reason() {
    let parts = parts(&[STATEFUL, STATELESS]);
    let first = assign(&parts, &holders(THREE, &BTreeMap::new()), 1);

    assert_eq!(assign(&parts, &holders(THREE, &first), 1), first);
}

/// Copies are only kept of what has state, and never in the process that works on it.
#[test]
fn copies_are_in_other_processes() {
    let parts = parts(&[STATEFUL, STATELESS]);
    let assignment = assign(&parts, &holders(THREE, &BTreeMap::new()), 2);

    let mut copies = BTreeMap::new();
    for (id, process) in THREE {
        for task in &assignment[*id].standby {
            copies.entry(task).or_insert_with(BTreeSet::new).insert(process);
            let of_process = THREE.iter().filter(|(_, other)| other == process);
            assert!(of_process.clone().all(|(id, _)| !assignment[*id].active.contains(task)), "{task:?} in {process}");
        }
    }
    let copies: Vec<_> = copies.into_iter().map(|((part, _), processes)| (&**part, processes.len())).collect();
    assert_eq!(copies, [("0", 2); 4]);
}

/// With one process there is no room for copies.
#[test]
fn one_process_keeps_no_copies() {
    let assignment = assign(&parts(&[STATEFUL]), &holders(ONE, &BTreeMap::new()), 1);

    assert_eq!(standby(&assignment), [("a1", String::new()), ("a2", String::new())]);
}

/// Who has a copy takes over, and of two who have one on disk who has come further.
#[test]
fn copies_take_over() {
    let parts = parts(&[Part { tasks: 1, is_stateful: true }]);
    let task = (Str::from_static("0"), 0);
    let mut others = holders(&[("a1", "p"), ("b1", "q"), ("c1", "r")], &BTreeMap::new());
    let at = |others: &mut BTreeMap<Str, Holder>, id: &str, offset| {
        others.get_mut(id).expect("it is there").offsets.insert(task.clone(), offset);
    };
    at(&mut others, "b1", 5);
    at(&mut others, "c1", 7);
    let furthest = assign(&parts, &others, 0);
    others.get_mut("b1").expect("it is there").tasks.standby.insert(task.clone());
    let assigned = assign(&parts, &others, 0);

    let who = |assignment: &BTreeMap<Str, Tasks>| {
        let working = assignment.iter().find(|(_, tasks)| tasks.active.contains(&task));
        working.map(|(id, _)| id.to_string())
    };
    assert_eq!((who(&furthest).as_deref(), who(&assigned).as_deref()), (Some("c1"), Some("b1")));
}

/// A process with more members gets more.
#[test]
fn larger_processes_get_more() {
    let ids = [("a1", "p"), ("a2", "p"), ("a3", "p"), ("b1", "q")];
    let assignment = assign(&parts(&[STATELESS, STATELESS]), &holders(&ids, &BTreeMap::new()), 0);

    assert!(assignment.values().all(|tasks| tasks.active.len() == 2), "{assignment:?}");
}

#[test]
fn nobody_gets_nothing() {
    assert_eq!(assign(&parts(&[STATELESS]), &BTreeMap::new(), 1), BTreeMap::new());
}

/// As a Java program walks: by the hash, of which small tables see only the last bits.
#[test]
fn ids_are_in_the_order_of_their_hashes() {
    let ids: Vec<Str> = ["polygenelubricants", "b", "Aa", "BB", "a"].iter().map(|id| Str::from_static(id)).collect();
    let names: Vec<Str> = ["delta", "gamma", "alpha", "beta", "alpha"].iter().map(|id| Str::from_static(id)).collect();
    let shown = |ids: Vec<&Str>| ids.into_iter().map(|id| id.to_string()).collect::<Vec<_>>();

    assert_eq!(shown(hash_order(&ids)), ["polygenelubricants", "Aa", "BB", "a", "b"]);
    assert_eq!(shown(computed_order(&names[..5], 5)), ["delta", "beta", "gamma", "alpha"]);
    assert_eq!(shown(computed_order(&names[..4], 4)), ["delta", "beta", "gamma", "alpha"]);
    assert_eq!(shown(computed_order(&names[..5], 4)), ["delta", "beta", "gamma", "alpha"]);
    let different = ids.iter().filter(|id| **id != "BB");
    assert_eq!(shown(timeline_order(different)), ["Aa", "polygenelubricants", "b", "a"]);
    assert_eq!(shown(timeline_order(&ids[..2])), ["polygenelubricants", "b"]);
}

/// As Java's `PriorityQueue` of these numbers gives them, by their tens.
#[test]
fn equals_leave_the_heap_as_in_java() {
    let mut heap = Heap::default();
    let by_tens = |a: usize, b: usize| (a / 10).cmp(&(b / 10));
    for number in [21, 11, 22, 12, 31, 13, 23, 1, 14, 2] {
        heap.push(number, by_tens);
    }
    let popped: Vec<usize> = std::iter::from_fn(|| heap.pop(by_tens)).collect();

    assert_eq!(popped, [1, 2, 12, 14, 11, 13, 23, 21, 22, 31]);
}
