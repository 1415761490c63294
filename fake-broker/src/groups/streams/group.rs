//! One streams group: its members, its topology, its epochs, and who works on which task.
//!
//! ```text
//!             first member             topics are right             assigned
//!     Empty ───────────────▶ NotReady ──────────────────▶ Assigning ────────▶ Reconciling ──▶ Stable
//!                                                                                     all have what they shall have
//! ```
//!
//! A member gives up what it shall not have before it moves on to the next epoch, and gets a task only when nobody else
//! has it any more.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use bytes::Bytes;
use krafka_protocol::api::streams_group_heartbeat::{Endpoint, KeyValue, TaskOffset};
use krafka_protocol::{ErrorCode, Str, Uuid};

use super::super::{Committer, GroupKind, GroupState, GroupView, Image, MemberView, Refusal};
use super::assignor::{self, Holder, Part, Tasks};
use super::topology::{self, Configured, Task, Topology};
use crate::faults::KafkaVersion;
use crate::words::words;

/// The epoch of a request that joins.
pub(crate) const JOIN_EPOCH: i32 = 0;
/// The epoch of a static member that will come back.
pub(crate) const LEAVE_STATIC_EPOCH: i32 = -2;

/// What a member says of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct About {
    pub(crate) instance_id: Option<Str>,
    pub(crate) rack: Option<Str>,
    pub(crate) rebalance_timeout_ms: i32,
    pub(crate) topology_epoch: i32,
    pub(crate) process_id: Str,
    pub(crate) endpoint: Option<Endpoint>,
    pub(crate) tags: Vec<KeyValue>,
    pub(crate) client_id: Str,
    pub(crate) client_host: Str,
}

/// A member of a streams group.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) epoch: i32,
    pub(super) previous_epoch: i32,
    pub(crate) about: About,
    pub(crate) tasks: Tasks,
    /// What it is to give up.
    pub(super) revoking: Tasks,
    /// When it must have given them up.
    pub(super) revoke_by: Option<Instant>,
    session_ends: Instant,
    session_timeout: Duration,
    pub(crate) task_offsets: Vec<TaskOffset>,
    pub(crate) task_end_offsets: Vec<TaskOffset>,
}

/// The times that hold for a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) session_timeout: Duration,
    pub(crate) initial_delay: Duration,
    pub(crate) assignment_interval: Duration,
    pub(crate) standby_replicas: usize,
}

/// A streams group: see the module's page.
#[derive(Clone, Debug)]
pub(crate) struct StreamsGroup {
    pub(crate) epoch: i32,
    pub(crate) assignment_epoch: i32,
    assigned_at: Option<Instant>,
    delayed_until: Option<Instant>,
    pub(crate) members: BTreeMap<Str, Member>,
    pub(crate) target: BTreeMap<Str, Tasks>,
    pub(crate) topology: Option<Topology>,
    pub(crate) configured: Configured,
    pub(crate) shows_configured: Shown,
    was_ready: bool,
    seen: BTreeMap<Str, (Uuid, i32)>,
    /// How many copies the group's config asked for when its epoch was last raised.
    standby_replicas: Option<usize>,
    pub(crate) endpoint_epoch: i32,
    /// Who was the first to ask all members to stop; that holds until they have.
    pub(crate) shutdown_by: Option<Str>,
    /// Why topics inside the application could not be created, and until when that is told.
    pub(crate) failures: BTreeMap<Str, (String, Instant)>,
}

/// Whether descriptions show what came of comparing the topology with the topics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// The heartbeat that makes a group leaves it without, and so does a coordinator that is lost.
    No,
    /// From the next time on that something of the group is written to its log.
    Soon,
    Yes,
}

/// Why the assignment is not made yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delay {
    /// More members may come.
    Initial,
    /// The last one was made a moment ago.
    Interval,
}

impl Member {
    /// The member as the assignor sees it.
    fn holder(&self) -> Holder {
        let offset = |told: &TaskOffset| ((told.subtopology_id.clone(), told.partition), told.offset);
        Holder {
            process: self.about.process_id.clone(),
            tasks: self.tasks.clone(),
            offsets: self.task_offsets.iter().map(offset).collect(),
            is_new: self.epoch == JOIN_EPOCH,
        }
    }
}

impl StreamsGroup {
    /// A group without members.
    pub(crate) fn new() -> Self {
        Self {
            epoch: 1,
            assignment_epoch: 1,
            assigned_at: None,
            delayed_until: None,
            members: BTreeMap::new(),
            target: BTreeMap::new(),
            topology: None,
            configured: Configured::default(),
            shows_configured: Shown::No,
            was_ready: false,
            seen: BTreeMap::new(),
            standby_replicas: None,
            endpoint_epoch: 0,
            shutdown_by: None,
            failures: BTreeMap::new(),
        }
    }

    pub(crate) fn state(&self) -> GroupState {
        if self.members.is_empty() {
            GroupState::Empty
        } else if !self.configured.is_ready() {
            GroupState::NotReady
        } else if self.epoch > self.assignment_epoch {
            GroupState::Assigning
        } else if self.members.keys().all(|id| self.is_reconciled(id)) {
            GroupState::Stable
        } else {
            GroupState::Reconciling
        }
    }

    fn is_reconciled(&self, id: &Str) -> bool {
        let (Some(member), target) = (self.members.get(id), self.target.get(id)) else { return true };
        let has_all = target.is_none_or(|target| *target == member.tasks);
        member.epoch == self.assignment_epoch && member.revoking.is_empty() && has_all
    }

    /// The static member of that name.
    pub(crate) fn static_member(&self, instance: &Str) -> Option<&Str> {
        let mut found = self.members.iter().filter(|(_, member)| member.about.instance_id.as_ref() == Some(instance));
        found.next().map(|(id, _)| id)
    }

    /// Whether a heartbeat of a member that stays, with these tasks, may be taken up.
    pub(crate) fn check(&self, group: &str, id: &Str, epoch: i32, owned: Option<&Tasks>) -> Result<(), Refusal> {
        let Some(member) = self.members.get(id) else {
            return if epoch == JOIN_EPOCH { Ok(()) } else { Err(no_member(group, id)) };
        };
        let known = member.epoch;
        let advice = "The member must abandon all its partitions and rejoin.";
        let fenced = |how: &str| {
            let reason = format!(
                "The streams group member has a {how} member epoch ({epoch}) than the one known by the group \
                 coordinator ({known}). {advice}"
            );
            Err(Refusal::new(ErrorCode::FENCED_MEMBER_EPOCH, reason))
        };
        if epoch > known {
            return fenced("greater");
        }
        // The answer that told of the new epoch may have been lost: then it has no other tasks than it was given.
        let is_late = epoch == member.previous_epoch
            && owned.is_some_and(|owned| {
                owned.active.is_subset(&member.tasks.active)
                    && owned.standby.is_subset(&member.tasks.standby)
                    && owned.warmup.is_subset(&member.tasks.warmup)
            });
        if epoch != JOIN_EPOCH && epoch < known && !is_late { fenced("smaller") } else { Ok(()) }
    }

    /// Whether the tasks that a member says it has can be.
    pub(crate) fn check_tasks(&self, owned: &Tasks) -> Result<(), Refusal> {
        if !self.configured.is_ready() {
            return Ok(());
        }
        for (part, partition) in owned.active.iter().chain(&owned.standby).chain(&owned.warmup) {
            let Some(&count) = self.configured.tasks.get(part) else {
                let reason = format!("Subtopology {part} does not exist in the topology.");
                return Err(Refusal::new(ErrorCode::INVALID_REQUEST, reason));
            };
            if !(0..count).contains(partition) {
                let reason = format!(
                    "Task {partition} for subtopology {part} is invalid. Number of tasks for this subtopology: {count}"
                );
                return Err(Refusal::new(ErrorCode::INVALID_REQUEST, reason));
            }
        }
        Ok(())
    }

    /// Takes up what a member says of itself. Says if anything is new.
    pub(crate) fn update_member(&mut self, id: &Str, about: About, times: &Times, now: Instant) -> bool {
        if self.members.is_empty() {
            self.delayed_until = Some(now + times.initial_delay);
        }
        let is_new = self.members.get(id).is_none_or(|member| member.about != about);
        let new = || Member {
            epoch: 0,
            previous_epoch: -1,
            about: About::default(),
            tasks: Tasks::default(),
            revoking: Tasks::default(),
            revoke_by: None,
            session_ends: now,
            session_timeout: times.session_timeout,
            task_offsets: Vec::new(),
            task_end_offsets: Vec::new(),
        };
        let member = self.members.entry(id.clone()).or_insert_with(new);
        member.about = about;
        member.session_timeout = times.session_timeout;
        member.session_ends = now + times.session_timeout;
        is_new
    }

    /// Lets a member take the place of a static one that has left for a while.
    pub(crate) fn replace(&mut self, old: &Str, new: &Str) {
        if let Some(mut member) = self.members.remove(old) {
            member.epoch = 0;
            member.previous_epoch = -1;
            self.members.insert(new.clone(), member);
        }
        if let Some(target) = self.target.remove(old) {
            self.target.insert(new.clone(), target);
        }
    }

    /// Compares the topology with the topics, and raises the epoch if that, the members or the configs changed.
    pub(crate) fn refresh(&mut self, image: &Image<'_>, times: &Times, members_changed: bool) -> Result<(), Refusal> {
        let Some(topology) = &self.topology else { return Ok(()) };
        self.configured = topology.configure(image)?;
        let seen = topology.topics().into_iter().filter_map(|name| {
            let id = image.id_of(name)?;
            Some((name.clone(), (id, image.partitions(id))))
        });
        let seen: BTreeMap<_, _> = seen.collect();
        let is_ready = self.configured.is_ready();
        let configs_changed = self.standby_replicas.replace(times.standby_replicas) != Some(times.standby_replicas);
        if members_changed || configs_changed || seen != self.seen || is_ready != self.was_ready {
            self.epoch += 1;
        }
        self.seen = seen;
        self.was_ready = is_ready;
        Ok(())
    }

    /// Makes the next assignment, if one is due. Says why not, if it waits.
    pub(crate) fn assign(&mut self, times: &Times, now: Instant) -> Option<Delay> {
        if self.epoch <= self.assignment_epoch {
            return None;
        }
        if self.delayed_until.is_some_and(|until| now < until) {
            return Some(Delay::Initial);
        }
        if self.assigned_at.is_some_and(|at| now.saturating_duration_since(at) < times.assignment_interval) {
            return Some(Delay::Interval);
        }
        let holders = self.members.iter().map(|(id, member)| (id.clone(), member.holder())).collect();
        self.target = assignor::assign(&self.parts(), &holders, times.standby_replicas);
        self.assignment_epoch = self.epoch;
        self.assigned_at = Some(now);
        None
    }

    /// What there is to assign: nothing as long as the topology is not ready.
    fn parts(&self) -> BTreeMap<Str, Part> {
        let is_stateful = |id: &Str| {
            let part = self.topology.as_ref().and_then(|topology| topology.subtopologies.get(id));
            part.is_some_and(|part| !part.changelogs().is_empty())
        };
        let parts = self.configured.tasks.iter().filter(|_| self.configured.is_ready());
        parts.map(|(id, &tasks)| (id.clone(), Part { tasks, is_stateful: is_stateful(id) })).collect()
    }

    /// Takes a member out. When the last one goes, Kafka 4.4 and later have an assignment for nobody, which the next
    /// member's does not have to wait for.
    pub(crate) fn remove(&mut self, id: &str, version: KafkaVersion) {
        if self.members.remove(id).is_none() {
            return;
        }
        self.target.remove(id);
        self.epoch += 1;
        if self.members.is_empty() {
            self.shutdown_by = None;
        }
        if self.members.is_empty() && version >= KafkaVersion::V4_4 {
            (self.assignment_epoch, self.assigned_at, self.delayed_until) = (self.epoch, None, None);
        }
    }

    /// What a heartbeat of a member may write to the group's log.
    pub(crate) fn written(&self, id: &Str) -> impl PartialEq + use<> {
        let member = self.members.get(id);
        let member = member.map(|it| (it.epoch, it.about.clone(), it.tasks.clone(), it.revoking.clone()));
        (self.epoch, self.assignment_epoch, member)
    }

    /// A static member leaves for a while. It keeps its tasks, but none that it was to give up.
    pub(crate) fn suspend(&mut self, id: &str) {
        if let Some(member) = self.members.get_mut(id) {
            member.epoch = LEAVE_STATIC_EPOCH;
            member.revoking = Tasks::default();
            member.revoke_by = None;
        }
    }

    /// When the first session ends, or somebody must have given its tasks up.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let ends = self.members.values().flat_map(|member| [Some(member.session_ends), member.revoke_by]);
        ends.flatten().min()
    }

    /// Takes out who was silent, or held on to tasks, for too long.
    pub(crate) fn expire(&mut self, now: Instant, version: KafkaVersion) {
        let is_over = |member: &Member| member.session_ends <= now || member.revoke_by.is_some_and(|by| by <= now);
        let expired: Vec<Str> =
            self.members.iter().filter(|(_, member)| is_over(member)).map(|(id, _)| id.clone()).collect();
        for id in expired {
            self.remove(&id, version);
        }
    }

    /// Lets all sessions run anew, as a new coordinator does.
    pub(crate) fn reload(&mut self, now: Instant) {
        for member in self.members.values_mut() {
            member.session_ends = now + member.session_timeout;
            member.revoke_by = None;
        }
        (self.assigned_at, self.delayed_until, self.endpoint_epoch) = (None, None, 0);
        (self.shows_configured, self.shutdown_by) = (Shown::No, None);
        self.failures.clear();
    }

    /// Whether a member may commit offsets.
    pub(crate) fn check_commit(&self, by: &Committer<'_>) -> Result<(), Refusal> {
        if by.epoch < 0 && self.members.is_empty() {
            return Ok(());
        }
        let member = self.members.get(by.member_id).ok_or_else(|| no_member(by.group_id, by.member_id))?;
        if by.epoch == member.epoch {
            return Ok(());
        }
        let code = ErrorCode::STALE_MEMBER_EPOCH;
        Err(Refusal::new(code, words(code)))
    }

    /// Whether the group's offsets may be told to who asks.
    pub(crate) fn check_fetch(&self, group: &str, member_id: Option<&Str>, epoch: i32) -> Result<(), Refusal> {
        let Some(id) = member_id else {
            // Kafka trips over nobody who has an epoch.
            return if epoch < 0 { Ok(()) } else { Err(topology::trip()) };
        };
        let member = self.members.get(id).ok_or_else(|| no_member(group, id))?;
        if epoch == member.epoch {
            return Ok(());
        }
        let code = ErrorCode::STALE_MEMBER_EPOCH;
        Err(Refusal::new(code, words(code)))
    }

    /// Whether the application reads a topic.
    pub(crate) fn is_subscribed_to(&self, topic: &str) -> bool {
        let parts = self.topology.iter().flat_map(|topology| topology.subtopologies.values());
        !self.members.is_empty() && parts.flat_map(|part| part.inputs()).any(|name| **name == *topic)
    }

    /// The group as a test sees it; of the tasks, only the partitions of topics are shown.
    pub(crate) fn view(&self, image: &Image<'_>) -> GroupView {
        let members = self.members.iter().map(|(id, member)| MemberView {
            id: id.clone(),
            instance_id: member.about.instance_id.clone(),
            client_id: member.about.client_id.clone(),
            client_host: member.about.client_host.clone(),
            kind: GroupKind::Streams,
            epoch: member.epoch,
            metadata: Bytes::new(),
            assignment: Bytes::new(),
            partitions: self.partitions_of(image, &member.tasks.active),
            target: self.target.get(id).map(|tasks| self.partitions_of(image, &tasks.active)).unwrap_or_default(),
        });
        GroupView {
            kind: GroupKind::Streams,
            state: self.state(),
            generation: self.epoch,
            protocol_type: Some(Str::from_static("streams")),
            protocol: Some(Str::from_static("sticky")),
            leader: None,
            members: members.collect(),
        }
    }

    /// The partitions that tasks read.
    pub(crate) fn partitions_of(&self, image: &Image<'_>, tasks: &BTreeSet<Task>) -> Vec<(Str, i32)> {
        let part_of = |part: &Str| self.topology.as_ref().and_then(|topology| topology.subtopologies.get(part));
        let inputs = tasks.iter().flat_map(|(part, partition)| {
            part_of(part).into_iter().flat_map(|part| part.inputs()).map(move |topic| (topic.clone(), *partition))
        });
        let count = |topic: &Str| image.id_of(topic).map_or(0, |id| image.partitions(id));
        let mut partitions: Vec<(Str, i32)> = inputs.filter(|(topic, partition)| *partition < count(topic)).collect();
        partitions.sort_unstable();
        partitions.dedup();
        partitions
    }
}

/// Kafka's answer to who is no member.
pub(crate) fn no_member(group: &str, member: &str) -> Refusal {
    Refusal::new(ErrorCode::UNKNOWN_MEMBER_ID, format!("Member {member} is not a member of group {group}."))
}
