//! Who has how much to do while tasks are placed: members, their processes, and how many tasks make a fair share.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use krafka_protocol::Str;

use super::order::{Heap, computed_order, hash_order, timeline_order};
use super::{Holder, Task, Tasks};

/// How many tasks a member takes before the others have theirs.
///
/// Whoever has its share is out, and what is left is shared by those who are not: of 8 tasks for 6 members two take 2,
/// and then 1 is enough.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    tasks: usize,
    members: usize,
}

impl Share {
    pub(super) fn new(tasks: usize, members: usize) -> Self {
        Self { tasks, members }
    }

    /// Whether a member with so many tasks may keep one more.
    pub(super) fn has_room(&self, count: usize) -> bool {
        count < self.limit()
    }

    fn limit(&self) -> usize {
        if self.members == 0 { 0 } else { self.tasks.div_ceil(self.members) }
    }

    fn grown_to(&mut self, count: usize) {
        if count == self.limit() {
            self.members = self.members.saturating_sub(1);
            self.tasks = self.tasks.saturating_sub(count);
        }
    }
}

/// A member and the tasks that it has got so far.
#[derive(Debug)]
pub(super) struct Member<'a> {
    pub(super) id: &'a Str,
    pub(super) process: usize,
    pub(super) gets: Tasks,
}

impl Member<'_> {
    pub(super) fn count(&self) -> usize {
        self.gets.active.len() + self.gets.standby.len()
    }
}

/// The members of one process.
#[derive(Debug, Default)]
struct Process {
    members: Vec<usize>,
    tasks: BTreeSet<Task>,
    /// Its members by load, as long as tasks go only to the least loaded.
    queue: Option<Heap>,
}

/// Whether a task is worked on, or only kept in reserve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Active,
    Standby,
}

/// All members with what they have got so far.
#[derive(Debug)]
pub(super) struct Load<'a> {
    pub(super) members: Vec<Member<'a>>,
    processes: Vec<Process>,
    pub(super) active: Share,
    pub(super) total: Share,
}

impl<'a> Load<'a> {
    /// Nobody has anything yet.
    pub(super) fn new(holders: &'a BTreeMap<Str, Holder>, active: usize, total: usize) -> Self {
        let (new, known): (Vec<_>, Vec<_>) = holders.keys().partition(|id| holders[*id].is_new);
        let ids = hash_order(timeline_order(known).into_iter().chain(new));
        let names = computed_order(ids.iter().map(|id| &holders[*id].process), ids.len());
        let places: BTreeMap<&Str, usize> = names.iter().enumerate().map(|(at, name)| (*name, at)).collect();
        let of = |id: &'a Str| Member { id, process: places[&holders[id].process], gets: Tasks::default() };
        let members: Vec<Member<'_>> = ids.into_iter().map(of).collect();

        let mut processes: Vec<Process> = names.iter().map(|_| Process::default()).collect();
        let at: BTreeMap<&Str, usize> = members.iter().enumerate().map(|(at, member)| (member.id, at)).collect();
        for (place, process) in processes.iter_mut().enumerate() {
            let ids = members.iter().filter(|member| member.process == place).map(|member| member.id);
            process.members = hash_order(ids).into_iter().map(|id| at[id]).collect();
        }
        let count = members.len();
        Self { members, processes, active: Share::new(active, count), total: Share::new(total, count) }
    }

    /// Whether some member of the process has the task, to work on or in reserve.
    pub(super) fn has(&self, process: usize, task: &Task) -> bool {
        self.processes[process].tasks.contains(task)
    }

    /// Gives a task to a member that is known to be right for it.
    pub(super) fn give(&mut self, member: usize, task: &Task, kind: Kind) {
        self.processes[self.members[member].process].queue = None;
        self.add(member, task, kind);
    }

    /// Gives a task to the least loaded member of a process.
    pub(super) fn give_to_process(&mut self, process: usize, task: &Task, kind: Kind) {
        let by_load = |members: &[Member<'_>], a: usize, b: usize| members[a].count().cmp(&members[b].count());
        let mut queue = self.processes[process].queue.take().unwrap_or_else(|| {
            let mut queue = Heap::default();
            for &member in &self.processes[process].members {
                queue.push(member, |a, b| by_load(&self.members, a, b));
            }
            queue
        });
        if let Some(member) = queue.pop(|a, b| by_load(&self.members, a, b)) {
            self.add(member, task, kind);
            queue.push(member, |a, b| by_load(&self.members, a, b));
        }
        self.processes[process].queue = Some(queue);
    }

    fn add(&mut self, member: usize, task: &Task, kind: Kind) {
        let to = &mut self.members[member];
        self.processes[to.process].tasks.insert(task.clone());
        match kind {
            Kind::Active => to.gets.active.insert(task.clone()),
            Kind::Standby => to.gets.standby.insert(task.clone()),
        };
        let count = to.count();
        if kind == Kind::Active {
            self.active.grown_to(count);
        }
        self.total.grown_to(count);
    }

    /// The processes, the least loaded in front.
    pub(super) fn by_load(&self) -> Heap {
        let mut queue = Heap::default();
        for process in 0..self.processes.len() {
            queue.push(process, |a, b| self.compare(a, b));
        }
        queue
    }

    /// Which of two processes has less to do for each of its members.
    pub(super) fn compare(&self, a: usize, b: usize) -> Ordering {
        let (a, b) = (&self.processes[a], &self.processes[b]);
        // That is a fraction; no member, no process.
        (a.tasks.len() * b.members.len()).cmp(&(b.tasks.len() * a.members.len()))
    }
}
