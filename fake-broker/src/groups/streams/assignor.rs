//! Kafka's assignor for streams groups, which it calls sticky: every task has one member that works on it, as evenly as
//! can be, and as few tasks move as possible. Standby copies go to other processes.
//!
//! No member is given a task to warm up, and tasks are not spread over racks or client tags: up to 4.4 Kafka's assignor
//! does neither, whatever the request and the configs have room for.
//!
//! Where it differs from Kafka on purpose: of several assignments that are equally good, it picks the one by the order
//! of member ids; and of several members that have a copy of a task's state, Kafka 4.4 prefers the one that has told
//! to be the furthest.

use std::collections::{BTreeMap, BTreeSet};

use krafka_protocol::Str;

use super::topology::Task;

/// The tasks of one member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tasks {
    pub(crate) active: BTreeSet<Task>,
    pub(crate) standby: BTreeSet<Task>,
    pub(crate) warmup: BTreeSet<Task>,
}

impl Tasks {
    fn len(&self) -> usize {
        self.active.len() + self.standby.len()
    }
}

/// Assigns all tasks. `members` has each member's process, `current` the last assignment.
pub(crate) fn assign(
    tasks: &[Task],
    members: &BTreeMap<Str, Str>,
    current: &BTreeMap<Str, Tasks>,
    standby_replicas: usize,
) -> BTreeMap<Str, Tasks> {
    let mut assignment: BTreeMap<Str, Tasks> = members.keys().map(|id| (id.clone(), Tasks::default())).collect();
    if members.is_empty() {
        return assignment;
    }
    let quota = tasks.len().div_ceil(members.len());
    let had = |id: &Str, task: &Task, kind: fn(&Tasks) -> &BTreeSet<Task>| {
        current.get(id).is_some_and(|tasks| kind(tasks).contains(task))
    };
    let kinds: [fn(&Tasks) -> &BTreeSet<Task>; 2] = [|tasks| &tasks.active, |tasks| &tasks.standby];
    let mut left: Vec<&Task> = tasks.iter().collect();
    // Who worked on a task, or has a copy of its state, keeps it within its quota.
    for kind in kinds {
        left.retain(|task| {
            let fits = |(id, tasks): &(&Str, &mut Tasks)| had(id, task, kind) && tasks.active.len() < quota;
            let keeper = assignment.iter_mut().find(fits);
            keeper.is_none_or(|(_, tasks)| !tasks.active.insert((*task).clone()))
        });
    }
    for task in left {
        // The process that has the least to do for each of its members, and there the member that has.
        let id = least_loaded(&assignment, members, |_| true);
        if let Some(tasks) = id.and_then(|id| assignment.get_mut(&id)) {
            tasks.active.insert(task.clone());
        }
    }
    for _ in 0..standby_replicas {
        for task in tasks {
            let holds = |process: &Str| {
                let of_process = assignment.iter().filter(|(id, _)| members.get(*id) == Some(process));
                of_process.into_iter().any(|(_, tasks)| tasks.active.contains(task) || tasks.standby.contains(task))
            };
            let free: BTreeSet<Str> = members.values().filter(|process| !holds(process)).cloned().collect();
            let is_free = |id: &Str| members.get(id).is_some_and(|process| free.contains(process));
            let keeper = members.keys().find(|id| is_free(id) && had(id, task, kinds[1])).cloned();
            let id = keeper.or_else(|| least_loaded(&assignment, members, is_free));
            if let Some(tasks) = id.and_then(|id| assignment.get_mut(&id)) {
                tasks.standby.insert(task.clone());
            }
        }
    }
    assignment
}

fn least_loaded(
    assignment: &BTreeMap<Str, Tasks>,
    members: &BTreeMap<Str, Str>,
    may: impl Fn(&Str) -> bool,
) -> Option<Str> {
    let load_of = |process: &Str| {
        let of_process = members.iter().filter(|(_, other)| *other == process).map(|(id, _)| id);
        let counts: Vec<usize> = of_process.filter_map(|id| assignment.get(id)).map(Tasks::len).collect();
        // Tasks for each member, in thousandths.
        counts.iter().sum::<usize>() * 1000 / counts.len().max(1)
    };
    let open = members.iter().filter(|(id, _)| may(id));
    let loads = open.map(|(id, process)| (load_of(process), assignment.get(id).map_or(0, Tasks::len), id));
    loads.min().map(|(_, _, id)| id.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks(count: i32) -> Vec<Task> {
        (0..count).map(|partition| (Str::from_static("0"), partition)).collect()
    }

    fn members(ids: &[(&'static str, &'static str)]) -> BTreeMap<Str, Str> {
        ids.iter().map(|(id, process)| (Str::from_static(id), Str::from_static(process))).collect()
    }

    fn counts(assignment: &BTreeMap<Str, Tasks>) -> Vec<usize> {
        assignment.values().map(|tasks| tasks.active.len()).collect()
    }

    #[test]
    fn tasks_are_shared_out_evenly_and_stay_where_they_are() {
        let alone = assign(&tasks(5), &members(&[("a", "p")]), &BTreeMap::new(), 0);
        let two = assign(&tasks(5), &members(&[("a", "p"), ("b", "q")]), &alone, 0);
        let again = assign(&tasks(5), &members(&[("a", "p"), ("b", "q")]), &two, 0);

        assert_eq!((counts(&alone), counts(&two)), (vec![5], vec![3, 2]));
        assert!(two["a"].active.is_subset(&alone["a"].active));
        assert_eq!(again, two);
    }

    #[test]
    fn standby_copies_go_to_other_processes_and_take_over() {
        let ids = members(&[("a", "p"), ("b", "p"), ("c", "q")]);
        let all = assign(&tasks(3), &ids, &BTreeMap::new(), 1);
        let after = assign(&tasks(3), &members(&[("c", "q")]), &all, 1);

        for (id, tasks) in &all {
            let mine: BTreeSet<_> = tasks.active.intersection(&tasks.standby).collect();
            assert!(mine.is_empty(), "{id} has a copy of its own task");
        }
        assert_eq!(all.values().map(|tasks| tasks.standby.len()).sum::<usize>(), 3);
        assert_eq!((counts(&after), after["c"].standby.len()), (vec![3], 0));
    }
}
