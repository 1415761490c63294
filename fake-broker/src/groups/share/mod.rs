//! Share groups (KIP-932): groups whose members share partitions, record by record.
//!
//! Three parties take part. The group's coordinator knows the members and says who reads what (`group.rs`,
//! `assignor.rs`). The leader of each partition hands its records out and hears what became of them (`partition.rs`,
//! `leader.rs`), within a session for each member (`sessions.rs`). A share coordinator keeps what the leaders have to
//! remember (`persister.rs`).
//!
//! Where it differs from Kafka on purpose: the parties talk to each other in no time, and never fail to.

mod acknowledge;
mod acquire;
mod assignor;
mod batch;
mod dead_letters;
mod group;
#[cfg(test)]
mod laws;
mod leader;
mod partition;
mod persister;
mod sessions;
mod settings;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use krafka_protocol::{ErrorCode, Str, Uuid};

pub(crate) use acknowledge::{Acknowledgement, Unacknowledged, is_well_formed};
pub(crate) use acquire::{Acquired, Extent, Wish};
pub(crate) use batch::{Lock, RecordState};
pub(crate) use dead_letters::bury_all;
pub(crate) use group::{Beat, JOIN_EPOCH, LEAVE_EPOCH, Member, ShareGroup, no_member};
pub(crate) use leader::{
    acknowledge, close_connection, close_session, forget_partition, leader_changed, load, locks_changed, node_died,
    switched_off, topic_deleted,
};
pub(crate) use persister::{Kept, Persister, ShareKey, StateBatch};
pub(crate) use sessions::{FINAL_EPOCH, Holder, INITIAL_EPOCH, ShareSessions, Wanted};
pub(crate) use settings::Settings;

use self::dead_letters::Dead;
use self::group::Surroundings;
use self::partition::SharePartition;
use super::{Group, Refusal, settle};
use crate::coordinators::{self, CoordinatorKind};
use crate::faults::KafkaVersion;
use crate::state::State;
use crate::timers::{self, TimerId};
use crate::words::words;

/// What a heartbeat is answered with: the member's epoch, and its partitions if it is to be told.
pub(crate) type Told = (i32, Option<BTreeSet<(Uuid, i32)>>);

/// Somebody has had a record of a share partition for long enough.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Timer(ShareKey);

/// All that the cluster knows of share groups.
#[derive(Clone, Debug, Default)]
pub(crate) struct Share {
    /// What the leaders of partitions have in memory.
    partitions: BTreeMap<ShareKey, SharePartition>,
    /// The share sessions of each node.
    pub(crate) sessions: BTreeMap<i32, ShareSessions>,
    /// What the share coordinators keep.
    pub(crate) persister: Persister,
    /// What was given up by now, and in which share partition: its letters are to be written.
    dead: Vec<(ShareKey, Dead)>,
    /// The timer of each share partition that has one, and when it is due.
    timers: BTreeMap<ShareKey, (Instant, TimerId)>,
}

impl Share {
    /// No groups, and room for so many share sessions on each node.
    pub(crate) fn new(nodes: impl IntoIterator<Item = i32>, session_slots: usize) -> Self {
        let sessions = nodes.into_iter().map(|node| (node, ShareSessions::new(session_slots))).collect();
        Self { sessions, ..Self::default() }
    }

    /// The share partition, if its leader has it in memory.
    pub(crate) fn partition_mut(&mut self, key: &ShareKey) -> Option<&mut SharePartition> {
        self.partitions.get_mut(key)
    }

    /// The partitions whose state is kept for a group, by topic.
    pub(crate) fn initialized(&self, group: &Str) -> BTreeMap<Uuid, Vec<i32>> {
        let mut initialized: BTreeMap<Uuid, Vec<i32>> = BTreeMap::new();
        for key in self.persister.keys().filter(|key| key.group == *group) {
            initialized.entry(key.topic).or_default().push(key.partition);
        }
        initialized
    }
}

/// A share group.
pub(crate) fn group<'a>(state: &'a State, id: &str) -> Option<&'a ShareGroup> {
    match state.groups.groups.get(id)? {
        Group::Share(group) => Some(group),
        _ => None,
    }
}

/// A share group, to change it.
fn group_mut<'a>(state: &'a mut State, id: &str) -> Option<&'a mut ShareGroup> {
    match state.groups.groups.get_mut(id)? {
        Group::Share(group) => Some(group),
        _ => None,
    }
}

/// A share group, which is made if it is not there; none if there is a group of another kind.
pub(crate) fn group_or_new<'a>(state: &'a mut State, node: i32, id: &Str) -> Option<&'a mut ShareGroup> {
    let version = state.version_of(node);
    let new = || Group::Share(Box::new(ShareGroup::new(version)));
    match state.groups.groups.entry(id.clone()).or_insert_with(new) {
        Group::Share(group) => Some(group),
        _ => None,
    }
}

/// The answer about a group that is there, but is no share group.
pub(crate) fn other_kind(state: &State, id: &str) -> Option<Refusal> {
    let is_other = state.groups.groups.contains_key(id) && group(state, id).is_none();
    is_other.then(|| Refusal::new(ErrorCode::GROUP_ID_NOT_FOUND, format!("Group {id} is not a share group.")))
}

/// Takes up a heartbeat of a member that stays or joins.
pub(crate) fn heartbeat(
    state: &mut State,
    node: i32,
    group_id: &Str,
    beat: &Beat<'_>,
    now: Instant,
) -> Result<Told, Refusal> {
    if let Some(refusal) = other_kind(state, group_id) {
        return Err(refusal);
    }
    let settings = Settings::of(state, group_id);
    let version = state.version_of(node);
    let empty = ShareGroup::new(version);
    let known = group(state, group_id);
    if known.is_none() && beat.epoch != JOIN_EPOCH {
        return Err(Refusal::new(ErrorCode::GROUP_ID_NOT_FOUND, format!("Share group {group_id} not found.")));
    }
    let known = known.unwrap_or(&empty);
    known.check(group_id, beat, state.config.share_group_max_size())?;
    let exists = |name: Str| {
        let topic = state.topics.by_name(&name)?;
        Some((name, (topic.id, topic.partitions.len())))
    };
    let topics: BTreeMap<_, _> = known.subscriptions_with(beat).into_iter().filter_map(exists).collect();
    let around = Surroundings {
        initialized: state.share.initialized(group_id),
        topics,
        // There is no such pause before Kafka 4.3.
        assignment_interval: if version < KafkaVersion::V4_3 { Duration::ZERO } else { settings.assignment_interval },
        session_timeout: settings.session_timeout,
    };
    let Some(group) = group_or_new(state, node, group_id) else {
        return Err(Refusal::new(ErrorCode::GROUP_ID_NOT_FOUND, words(ErrorCode::GROUP_ID_NOT_FOUND)));
    };
    let answer = group.heartbeat(beat, &around, now);
    let group_epoch = group.epoch;

    // What was subscribed to is assigned once its state is kept, which a member sees at a later heartbeat.
    coordinators::ensure_topic(state, CoordinatorKind::Share);
    for (topic, partitions) in around.topics.into_values() {
        for partition in (0..).take(partitions) {
            let key = ShareKey { group: group_id.clone(), topic, partition };
            state.share.persister.entry(key).or_insert_with(|| Kept::new(group_epoch, -1));
        }
    }
    settle(state, group_id, now);
    Ok(answer)
}

/// Takes a member out on its own wish.
pub(crate) fn leave(state: &mut State, node: i32, group_id: &Str, member: &Str, now: Instant) -> Result<(), Refusal> {
    if let Some(refusal) = other_kind(state, group_id) {
        return Err(refusal);
    }
    let Some(group) = group(state, group_id) else {
        return Err(Refusal::new(ErrorCode::GROUP_ID_NOT_FOUND, format!("Group {group_id} not found.")));
    };
    if !group.members.contains_key(member) {
        return Err(no_member(group_id, member));
    }
    remove_member(state, node, group_id, member);
    settle(state, group_id, now);
    Ok(())
}

/// A group was deleted: what is kept for it goes too.
pub(crate) fn group_deleted(state: &mut State, group_id: &Str) {
    state.share.persister.retain(|key, _| key.group != *group_id);
    leader::forget_group(state, group_id);
}

/// Does what is due on a share partition.
pub(crate) fn timer_fired(state: &mut State, Timer(key): &Timer, now: Instant) {
    state.share.timers.remove(key);
    leader::locks_are_over(state, key, now);
}

/// Takes the members out whose session is over.
pub(super) fn expire(state: &mut State, node: i32, group_id: &Str, now: Instant) {
    let expired = group(state, group_id).map(|group| group.expired(now)).unwrap_or_default();
    for member in expired {
        remove_member(state, node, group_id, &member);
    }
}

/// Takes a member out. The leaders that it reads from hear nothing of it: its sessions end with their connections.
fn remove_member(state: &mut State, node: i32, group_id: &Str, member: &Str) {
    let version = state.version_of(node);
    if let Some(group) = group_mut(state, group_id) {
        group.remove(member, version);
    }
}

/// Sets the timer of a share partition anew, if it is due at another time than before.
fn set_timer(state: &mut State, key: &ShareKey, due: Option<Instant>) {
    if state.share.timers.get(key).map(|(at, _)| *at) == due {
        return;
    }
    if let Some((_, id)) = state.share.timers.remove(key) {
        state.timers.cancel(id);
    }
    if let Some(due) = due {
        let id = state.timers.set(due, timers::Timer::Share(Timer(key.clone())));
        state.share.timers.insert(key.clone(), (due, id));
    }
}
