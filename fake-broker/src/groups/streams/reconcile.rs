//! How a member of a streams group gets from the tasks that it has to those that it shall have.
//!
//! ```text
//!   has ──gives up what it shall not have──▶ revoking ──says it has none of it──▶ the target's epoch ──▶ has
//! ```
//!
//! A task is worked on by one member, and only one member of a process has a task in whatever way. What others have not
//! let go of yet comes at a later heartbeat.
//!
//! Since Kafka 4.4 a member that shall keep a copy of what it works on gets the copy at once, and one that shall work
//! on what it has a copy of keeps the copy until it is given the task. The kinds of tasks do not meet otherwise.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use krafka_protocol::Str;

use super::assignor::Tasks;
use super::group::StreamsGroup;
use super::topology::Task;
use crate::faults::KafkaVersion;

/// What stands in the way of giving a member tasks.
#[derive(Debug, Default)]
struct Taken {
    /// What somebody else works on, or has not given up.
    active: BTreeSet<Task>,
    /// What others of the member's own process have, in whatever way.
    here: BTreeSet<Task>,
}

impl StreamsGroup {
    /// Brings a member nearer to what it shall have. Says if its tasks changed.
    pub(crate) fn reconcile(&mut self, id: &Str, owned: Option<&Tasks>, version: KafkaVersion, now: Instant) -> bool {
        let target = self.target.get(id).cloned().unwrap_or_default();
        let target_epoch = self.assignment_epoch;
        let taken = self.taken_by_others(id);
        let Some(member) = self.members.get_mut(id) else { return false };
        let may_have = |tasks: &Tasks| owned.is_none_or(|owned| owned.shares_with(tasks));
        let has_given_up = !member.revoking.is_empty();
        if has_given_up {
            if may_have(&member.revoking) {
                return false;
            }
            member.revoking = Tasks::default();
            member.revoke_by = None;
        }

        let before = member.tasks.clone();
        let (mut keeps, mut surplus) = (before.and(&target), before.without(&target));
        let mut gets = target.without(&before);
        gets.active.retain(|task| !taken.active.contains(task) && !taken.here.contains(task));
        gets.standby.retain(|task| !taken.here.contains(task));
        gets.warmup.retain(|task| !taken.here.contains(task));
        if version >= KafkaVersion::V4_4 {
            let demoted: BTreeSet<Task> = gets.standby.intersection(&before.active).cloned().collect();
            keeps.standby.extend(demoted);
            surplus.standby.retain(|task| !target.active.contains(task));
            let is_held_up = !surplus.is_empty() && may_have(&surplus);
            let promoted = before.standby.intersection(&target.active);
            let waits = promoted.filter(|task| is_held_up || !gets.active.contains(*task));
            keeps.standby.extend(waits.cloned());
        }
        if !surplus.is_empty() && may_have(&surplus) {
            let timeout = Duration::from_millis(u64::try_from(member.about.rebalance_timeout_ms).unwrap_or(0));
            member.tasks = keeps;
            member.revoking = surplus;
            member.revoke_by = Some(now + timeout);
            if has_given_up {
                // It has done what its epoch asked for, and goes on to the next, where there is more to give up.
                member.previous_epoch = member.epoch;
                member.epoch += 1;
            }
            return member.tasks != before;
        }
        if member.epoch != target_epoch {
            member.previous_epoch = member.epoch;
            member.epoch = target_epoch;
        }
        keeps.extend(gets);
        member.tasks = keeps;
        member.tasks != before
    }

    /// What other members have or have not given up.
    fn taken_by_others(&self, id: &Str) -> Taken {
        let process = self.members.get(id).map(|member| &member.about.process_id);
        let mut taken = Taken::default();
        for (_, member) in self.members.iter().filter(|(other, _)| *other != id) {
            taken.active.extend(member.tasks.active.iter().chain(&member.revoking.active).cloned());
            if process == Some(&member.about.process_id) {
                taken.here.extend(member.tasks.all().chain(member.revoking.all()).cloned());
            }
        }
        taken
    }
}
