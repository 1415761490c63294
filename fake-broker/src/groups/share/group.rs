//! One share group: its members, its epochs, and who shall read what.
//!
//! The group's epoch rises when its members or their topics change; the assignment follows it, at once or when the
//! assignment interval is over, and each member learns of its part at its next heartbeat. Partitions are shared, so
//! nobody has to give anything up before another begins.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use bytes::Bytes;
use krafka_protocol::{ErrorCode, Str, Uuid};

use super::super::{GroupKind, GroupState, GroupView, Image, MemberView, Refusal};
use super::assignor::{self, Assignment, Slot};
use crate::faults::KafkaVersion;

/// The epoch of a request that joins.
pub(crate) const JOIN_EPOCH: i32 = 0;
/// The epoch of a request that leaves, and of its answer.
pub(crate) const LEAVE_EPOCH: i32 = -1;

/// A member of a share group.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) epoch: i32,
    previous_epoch: i32,
    pub(crate) rack: Option<Str>,
    pub(crate) client_id: Str,
    pub(crate) client_host: Str,
    pub(crate) topics: BTreeSet<Str>,
    pub(crate) assigned: BTreeSet<Slot>,
    session_timeout: Duration,
    session_ends: Instant,
}

/// A share group: see the module's page.
#[derive(Clone, Debug)]
pub(crate) struct ShareGroup {
    pub(crate) epoch: i32,
    pub(crate) assignment_epoch: i32,
    assigned_at: Option<Instant>,
    pub(crate) members: BTreeMap<Str, Member>,
    target: Assignment,
    /// The subscribed topics as they were when the epoch was last looked at: name, id and number of partitions.
    seen: BTreeMap<Str, (Uuid, usize)>,
}

/// What a heartbeat says of its member.
#[derive(Clone, Debug)]
pub(crate) struct Beat<'a> {
    pub(crate) member: &'a Str,
    pub(crate) epoch: i32,
    pub(crate) rack: Option<&'a Str>,
    pub(crate) topics: Option<&'a [Str]>,
    pub(crate) client_id: Str,
    pub(crate) client_host: Str,
}

/// What the group knows of the cluster as a heartbeat comes.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings {
    /// The topics of all subscriptions that exist: id and number of partitions.
    pub(crate) topics: BTreeMap<Str, (Uuid, usize)>,
    /// The partitions whose state the share coordinator keeps: only they can be assigned.
    pub(crate) initialized: BTreeMap<Uuid, Vec<i32>>,
    pub(crate) assignment_interval: Duration,
    pub(crate) session_timeout: Duration,
}

impl ShareGroup {
    /// A group without members. Kafka 4.3 and later begin at 1, and raise the epoch when the first member joins.
    pub(crate) fn new(version: KafkaVersion) -> Self {
        let epoch = i32::from(version >= KafkaVersion::V4_3);
        Self {
            epoch,
            assignment_epoch: epoch,
            assigned_at: None,
            members: BTreeMap::new(),
            target: Assignment::new(),
            seen: BTreeMap::new(),
        }
    }

    /// Share groups have two states only.
    pub(crate) fn state(&self) -> GroupState {
        if self.members.is_empty() { GroupState::Empty } else { GroupState::Stable }
    }

    /// The topics that the group would subscribe to after a heartbeat.
    pub(crate) fn subscriptions_with(&self, beat: &Beat<'_>) -> BTreeSet<Str> {
        let others = self.members.iter().filter(|(id, _)| *id != beat.member).flat_map(|(_, member)| &member.topics);
        let own = self.members.get(beat.member).map(|member| &member.topics);
        let kept = own.filter(|_| beat.topics.is_none()).into_iter().flatten();
        others.chain(kept).chain(beat.topics.unwrap_or_default()).cloned().collect()
    }

    /// Whether a heartbeat may be taken up.
    pub(crate) fn check(&self, group: &str, beat: &Beat<'_>, max_size: usize) -> Result<(), Refusal> {
        let Some(member) = self.members.get(beat.member) else {
            if beat.epoch != JOIN_EPOCH {
                return Err(no_member(group, beat.member));
            }
            if self.members.len() >= max_size {
                let reason = format!("The share group has reached its maximum capacity of {max_size} members.");
                return Err(Refusal::new(ErrorCode::GROUP_MAX_SIZE_REACHED, reason));
            }
            return Ok(());
        };
        let (received, known, previous) = (beat.epoch, member.epoch, member.previous_epoch);
        let advice = "The member must abandon all its partitions and rejoin.";
        if received > known {
            let reason = format!(
                "The share group member has a greater member epoch ({received}) than the one known by the group \
                 coordinator ({known}). {advice}"
            );
            return Err(Refusal::new(ErrorCode::FENCED_MEMBER_EPOCH, reason));
        }
        // The answer that told of the new epoch may have been lost.
        if received != JOIN_EPOCH && received < known && received != previous {
            let reason = format!(
                "The share group member has a smaller member epoch ({received}) than the one known by the group \
                 coordinator ({known}), and it does not match the previous member epoch ({previous}). {advice}"
            );
            return Err(Refusal::new(ErrorCode::FENCED_MEMBER_EPOCH, reason));
        }
        Ok(())
    }

    /// Takes up a heartbeat that was checked. Returns the member's epoch, and its partitions if it is to be told.
    pub(crate) fn heartbeat(
        &mut self,
        beat: &Beat<'_>,
        around: &Surroundings,
        now: Instant,
    ) -> (i32, Option<BTreeSet<Slot>>) {
        let new = || Member {
            epoch: 0,
            previous_epoch: -1,
            rack: None,
            client_id: Str::default(),
            client_host: Str::default(),
            topics: BTreeSet::new(),
            assigned: BTreeSet::new(),
            session_timeout: around.session_timeout,
            session_ends: now,
        };
        let member = self.members.entry(beat.member.clone()).or_insert_with(new);
        let assigned_before = member.assigned.clone();
        member.session_timeout = around.session_timeout;
        member.session_ends = now + around.session_timeout;
        member.client_id = beat.client_id.clone();
        member.client_host = beat.client_host.clone();
        if let Some(rack) = beat.rack {
            member.rack = Some(rack.clone());
        }
        let topics: Option<BTreeSet<Str>> = beat.topics.map(|topics| topics.iter().cloned().collect());
        let subscribes_anew = topics.as_ref().is_some_and(|topics| *topics != member.topics);
        if let Some(topics) = topics {
            member.topics = topics;
        }

        if subscribes_anew || around.topics != self.seen || self.lacks_assignment(around) {
            self.epoch += 1;
            self.seen.clone_from(&around.topics);
        }
        let is_due = self.assigned_at.is_none_or(|at| now.saturating_duration_since(at) >= around.assignment_interval);
        if self.epoch > self.assignment_epoch && is_due {
            self.assign(around);
            self.assigned_at = Some(now);
        }

        let (target_epoch, target) = (self.assignment_epoch, self.target.get(beat.member));
        let Some(member) = self.members.get_mut(beat.member) else { return (beat.epoch, None) };
        if member.epoch < target_epoch {
            member.previous_epoch = member.epoch;
            member.epoch = target_epoch;
            member.assigned = target.cloned().unwrap_or_default();
        }
        if subscribes_anew {
            let subscribed: BTreeSet<Uuid> =
                member.topics.iter().filter_map(|name| around.topics.get(name)).map(|t| t.0).collect();
            member.assigned.retain(|(topic, _)| subscribed.contains(topic));
        }
        let is_told = beat.epoch == JOIN_EPOCH || beat.topics.is_some() || member.assigned != assigned_before;
        (member.epoch, is_told.then(|| member.assigned.clone()))
    }

    /// Whether there are partitions to assign that were not there at the last assignment.
    fn lacks_assignment(&self, around: &Surroundings) -> bool {
        if self.epoch > self.assignment_epoch {
            return false;
        }
        let assigned: BTreeSet<&Slot> = self.target.values().flatten().collect();
        let initialized = around.topics.values().filter_map(|(id, _)| Some((id, around.initialized.get(id)?)));
        let mut slots = initialized.flat_map(|(id, partitions)| partitions.iter().map(|&partition| (*id, partition)));
        slots.any(|slot| !assigned.contains(&slot))
    }

    fn assign(&mut self, around: &Surroundings) {
        let id_of = |name: &Str| around.topics.get(name).map(|(id, _)| *id);
        let subscriptions: BTreeMap<Str, BTreeSet<Uuid>> = self
            .members
            .iter()
            .map(|(id, member)| (id.clone(), member.topics.iter().filter_map(id_of).collect()))
            .collect();
        self.target = assignor::assign(&subscriptions, &around.initialized, &self.target);
        self.assignment_epoch = self.epoch;
    }

    /// Takes a member out. When the last one goes, Kafka 4.4 and later have an assignment for nobody, which is as new
    /// as the group and which the next member's does not have to wait for.
    pub(crate) fn remove(&mut self, member: &str, version: KafkaVersion) {
        if self.members.remove(member).is_none() {
            return;
        }
        self.target.remove(member);
        self.epoch += 1;
        if self.members.is_empty() && version >= KafkaVersion::V4_4 {
            self.assignment_epoch = self.epoch;
            self.assigned_at = None;
        }
    }

    /// When the first session ends.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.members.values().map(|member| member.session_ends).min()
    }

    /// The members whose session is over.
    pub(crate) fn expired(&self, now: Instant) -> Vec<Str> {
        let over = self.members.iter().filter(|(_, member)| member.session_ends <= now);
        over.map(|(id, _)| id.clone()).collect()
    }

    /// Lets all sessions run anew, as a new coordinator does.
    pub(crate) fn reload(&mut self, now: Instant) {
        for member in self.members.values_mut() {
            member.session_ends = now + member.session_timeout;
        }
        self.assigned_at = None;
    }

    /// The group as a test sees it.
    pub(crate) fn view(&self, image: &Image<'_>) -> GroupView {
        let named = |slots: &BTreeSet<Slot>| -> Vec<(Str, i32)> {
            let slots = slots.iter();
            slots.filter_map(|(topic, partition)| Some((image.name_of(*topic)?, *partition))).collect()
        };
        let members = self.members.iter().map(|(id, member)| MemberView {
            id: id.clone(),
            instance_id: None,
            client_id: member.client_id.clone(),
            client_host: member.client_host.clone(),
            kind: GroupKind::Share,
            epoch: member.epoch,
            metadata: Bytes::new(),
            assignment: Bytes::new(),
            partitions: named(&member.assigned),
            target: self.target.get(id).map(named).unwrap_or_default(),
        });
        GroupView {
            kind: GroupKind::Share,
            state: self.state(),
            generation: self.epoch,
            protocol_type: Some(Str::from_static("share")),
            protocol: Some(Str::from_static("simple")),
            leader: None,
            members: members.collect(),
        }
    }
}

/// Kafka's answer to who is no member.
pub(crate) fn no_member(group: &str, member: &str) -> Refusal {
    Refusal::new(ErrorCode::UNKNOWN_MEMBER_ID, format!("Member {member} is not a member of group {group}."))
}
