//! Kafka's assignor for streams groups, which it calls sticky: every task has one member that works on it, as evenly as
//! can be, and as few tasks move as possible. Standby copies go to other processes.
//!
//! It places tasks as Kafka 4.4 does, also where several assignments are equally good:
//!
//! ```text
//! active   1. who works on it keeps it, within its share          by partition, so that partitions stay together
//!          2. who has a copy of its state takes it                by partition
//!          3. the least loaded process takes it, and there        by subtopology
//!             the least loaded member
//! standby  who worked on it, who has a copy, the least loaded     the same, backwards
//! ```
//!
//! What a member has is what it was given already, not what it is meant to get. No member is given a task to warm up,
//! and tasks are not spread over racks or client tags: up to 4.4 Kafka's assignor does neither, whatever the request
//! and the configs have room for.
//!
//! Where it differs from Kafka on purpose: members whose ids' hashes meet in all tables are taken in the order of their
//! ids; with Kafka it depends on who joined when.

mod load;
mod order;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use krafka_protocol::Str;

use self::load::{Kind, Load};
pub(super) use self::order::hash_order;
use super::topology::Task;

/// The tasks of one member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tasks {
    pub(crate) active: BTreeSet<Task>,
    pub(crate) standby: BTreeSet<Task>,
    pub(crate) warmup: BTreeSet<Task>,
}

impl Tasks {
    pub(super) fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }

    /// The tasks of all kinds.
    pub(super) fn all(&self) -> impl Iterator<Item = &Task> {
        self.active.iter().chain(&self.standby).chain(&self.warmup)
    }

    /// Whether there is a task that is there, too, as one of the same kind.
    pub(super) fn shares_with(&self, other: &Self) -> bool {
        !self.and(other).is_empty()
    }

    /// What is there as well, kind by kind.
    pub(super) fn and(&self, other: &Self) -> Self {
        Self {
            active: &self.active & &other.active,
            standby: &self.standby & &other.standby,
            warmup: &self.warmup & &other.warmup,
        }
    }

    /// What is not there, kind by kind.
    pub(super) fn without(&self, other: &Self) -> Self {
        Self {
            active: &self.active - &other.active,
            standby: &self.standby - &other.standby,
            warmup: &self.warmup - &other.warmup,
        }
    }

    pub(super) fn extend(&mut self, other: Self) {
        self.active.extend(other.active);
        self.standby.extend(other.standby);
        self.warmup.extend(other.warmup);
    }
}

/// A subtopology, as far as it matters here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) tasks: i32,
    /// Only what has state is kept in reserve.
    pub(crate) is_stateful: bool,
}

/// What a member has before the assignment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Holder {
    pub(crate) process: Str,
    pub(crate) tasks: Tasks,
    /// How far the copies of states on its disk have come, for all that it has told.
    pub(crate) offsets: BTreeMap<Task, i64>,
    /// Whether it joins with the heartbeat that asks for the assignment: then it comes behind the others.
    pub(crate) is_new: bool,
}

/// Assigns all tasks of these subtopologies.
pub(crate) fn assign(
    parts: &BTreeMap<Str, Part>,
    holders: &BTreeMap<Str, Holder>,
    standby_replicas: usize,
) -> BTreeMap<Str, Tasks> {
    let tasks_of = |wanted: fn(&Part) -> bool| -> Vec<Task> {
        let parts = parts.iter().filter(|(_, part)| wanted(part));
        parts.flat_map(|(id, part)| (0..part.tasks).map(move |partition| (id.clone(), partition))).collect()
    };
    let (tasks, stateful) = (tasks_of(|_| true), tasks_of(|part| part.is_stateful));
    let load = Load::new(holders, tasks.len(), tasks.len() + stateful.len() * standby_replicas);
    let had = Had::of(&load, holders);
    let mut placing = Placing { load, had };
    if !holders.is_empty() {
        placing.place_active(tasks);
        placing.place_standby(stateful, standby_replicas);
    }
    placing.load.members.into_iter().map(|member| (member.id.clone(), member.gets)).collect()
}

/// Who had what before.
#[derive(Debug, Default)]
struct Had {
    active: BTreeMap<Task, usize>,
    /// Who has a copy of a task's state: first those to whom it was assigned, then others who have it on disk; among
    /// them those in front who are furthest.
    copies: BTreeMap<Task, Vec<usize>>,
}

impl Had {
    fn of(load: &Load<'_>, holders: &BTreeMap<Str, Holder>) -> Self {
        let mut active = BTreeMap::new();
        let mut copies: BTreeMap<Task, Vec<(bool, Reverse<i64>, usize)>> = BTreeMap::new();
        for (at, holder) in load.members.iter().enumerate().map(|(at, member)| (at, &holders[member.id])) {
            active.extend(holder.tasks.active.iter().map(|task| (task.clone(), at)));
            for task in &holder.tasks.standby {
                let offset = holder.offsets.get(task).copied().unwrap_or(0);
                copies.entry(task.clone()).or_default().push((false, Reverse(offset), at));
            }
            for (task, offset) in holder.offsets.iter().filter(|(task, _)| !holder.tasks.standby.contains(*task)) {
                copies.entry(task.clone()).or_default().push((true, Reverse(*offset), at));
            }
        }
        let ranked = copies.into_iter().map(|(task, mut candidates)| {
            candidates.sort_unstable();
            (task, candidates.into_iter().map(|(.., at)| at).collect())
        });
        Self { active, copies: ranked.collect() }
    }
}

/// An assignment in the making.
#[derive(Debug)]
struct Placing<'a> {
    load: Load<'a>,
    had: Had,
}

impl Placing<'_> {
    /// Finds a member for each task.
    fn place_active(&mut self, mut tasks: Vec<Task>) {
        tasks.sort_by(|(a, m), (b, n)| (m, a).cmp(&(n, b)));
        tasks.retain(|task| !self.keep(self.had.active.get(task).copied(), task));
        tasks.retain(|task| !self.keep(self.least_loaded_copy(task, |_| true), task));
        tasks.sort();
        let mut queue = self.load.by_load();
        for task in &tasks {
            if let Some(process) = queue.pop(|a, b| self.load.compare(a, b)) {
                self.load.give_to_process(process, task, Kind::Active);
                queue.push(process, |a, b| self.load.compare(a, b));
            }
        }
    }

    /// Gives the task to a member that knows it, if that is within its share.
    fn keep(&mut self, member: Option<usize>, task: &Task) -> bool {
        let fits = |member: &usize| self.load.active.has_room(self.load.members[*member].count());
        let Some(member) = member.filter(fits) else { return false };
        self.load.give(member, task, Kind::Active);
        true
    }

    /// Finds processes for the copies of each task.
    fn place_standby(&mut self, mut tasks: Vec<Task>, replicas: usize) {
        tasks.sort_by(|(a, m), (b, n)| (n, b).cmp(&(m, a)));
        let mut open: Vec<(Task, usize)> = Vec::new();
        for task in tasks {
            let missing = (0..replicas).find(|_| !self.keep_copy(&task)).map(|placed| replicas - placed);
            open.extend(missing.map(|missing| (task, missing)));
        }
        open.sort_by(|(a, _), (b, _)| b.cmp(a));
        let mut queue = self.load.by_load();
        for (task, missing) in &open {
            for _ in 0..*missing {
                // Those that have the task already wait aside; the last one that was set aside comes back first.
                let mut aside = Vec::new();
                while let Some(process) = queue.pop(|a, b| self.load.compare(a, b)) {
                    let is_free = !self.load.has(process, task);
                    aside.push(process);
                    if is_free {
                        self.load.give_to_process(process, task, Kind::Standby);
                        break;
                    }
                }
                for process in aside.into_iter().rev() {
                    queue.push(process, |a, b| self.load.compare(a, b));
                }
            }
        }
    }

    /// Leaves a copy with a member that worked on the task or has a copy, if that is within its share.
    fn keep_copy(&mut self, task: &Task) -> bool {
        let is_free = |member: usize| !self.load.has(self.load.members[member].process, task);
        let fits = |member: &usize| self.load.total.has_room(self.load.members[*member].count());
        let worked = self.had.active.get(task).copied().filter(|member| is_free(*member)).filter(fits);
        let Some(member) = worked.or_else(|| self.least_loaded_copy(task, is_free).filter(fits)) else { return false };
        self.load.give(member, task, Kind::Standby);
        true
    }

    /// Of those that have a copy, the first one but for those who have less to do, in their process and themselves.
    fn least_loaded_copy(&self, task: &Task, may: impl Fn(usize) -> bool) -> Option<usize> {
        let copies = self.had.copies.get(task)?.iter().copied().filter(|member| may(*member));
        copies.reduce(|best, other| {
            let (mine, its) = (&self.load.members[best], &self.load.members[other]);
            let is_better = self.load.compare(its.process, mine.process).is_lt() && its.count() < mine.count();
            if is_better { other } else { best }
        })
    }
}

#[cfg(test)]
mod tests;
