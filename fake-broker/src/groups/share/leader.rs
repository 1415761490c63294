//! What the leader of a partition does for share groups: it loads their share partitions, writes to the share
//! coordinator what changes, and looks after the members' locks and sessions.

use std::time::{Duration, Instant};

use krafka_protocol::{Str, Uuid};

use super::acknowledge::{Acknowledgement, Unacknowledged};
use super::partition::SharePartition;
use super::persister::{ShareKey, StateBatch};
use super::sessions::{Holder, ShareSessions, Wanted};
use super::set_timer;
use super::settings::Settings;
use crate::configs::OffsetReset;
use crate::context::ConnectionId;
use crate::state::State;

/// Loads a share partition on the partition's leader, unless it is there. There is none before the group's coordinator
/// has had its state begun.
pub(crate) fn load(state: &mut State, key: &ShareKey, settings: &Settings, now_ms: i64) -> bool {
    if state.share.partitions.contains_key(key) {
        return true;
    }
    let Some(kept) = state.share.persister.get(key) else { return false };
    let Some(partition) = state.topics.by_id(key.topic).and_then(|topic| topic.partition(key.partition)) else {
        return false;
    };
    let log = &partition.log;
    let begin = match settings.reset {
        OffsetReset::Latest => log.high_watermark(),
        OffsetReset::Earliest => log.start_offset(),
        OffsetReset::ByDuration(age) => first_since(log, now_ms, age).unwrap_or_else(|| log.high_watermark()),
    };
    let (leader_epoch, log_start) = (partition.leader_epoch, log.start_offset());
    let mut loaded = SharePartition::load(kept, leader_epoch, begin);
    loaded.log_starts_at(log_start);
    state.share.partitions.insert(key.clone(), loaded);
    if let Some(kept) = state.share.persister.get_mut(key) {
        kept.leader_epoch = leader_epoch;
    }
    true
}

/// The first offset that has a record not older than `age`, by the timestamps of batches.
fn first_since(log: &crate::log::Log, now_ms: i64, age: Duration) -> Option<i64> {
    let since = now_ms.saturating_sub(i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
    let batch = log.batches_since(since).next()?;
    krafka_protocol::records::BatchHeader::peek(batch).ok().map(|header| header.base_offset)
}

/// Does what a member says of its records on a partition. There is no such partition for whoever did not read it.
pub(crate) fn acknowledge(
    state: &mut State,
    key: &ShareKey,
    member: &Str,
    acknowledgements: &[Acknowledgement],
    now: Instant,
) -> Option<Result<(), Unacknowledged>> {
    let limits = Settings::of(state, &key.group).limits;
    let partition = state.share.partition_mut(key)?;
    match partition.acknowledge(member, acknowledgements, &limits, now) {
        Ok(changes) => {
            settle(state, key, &changes);
            Some(Ok(()))
        }
        Err(refusal) => Some(Err(refusal)),
    }
}

/// Writes what has changed, and follows up on it: the start moves on, timers are set, those who wait look again.
pub(super) fn settle(state: &mut State, key: &ShareKey, changes: &[StateBatch]) {
    let Some(partition) = state.share.partitions.get_mut(key) else { return };
    let dead = std::mem::take(&mut partition.dead);
    state.share.dead.extend(dead.into_iter().map(|dead| (key.clone(), dead)));
    if !changes.is_empty() {
        // Kafka writes before it moves the start, so that what is kept of it is one write behind.
        let (start, complete) = (partition.start_offset(), partition.delivery_complete_count());
        partition.advance();
        if let Some(kept) = state.share.persister.get_mut(key) {
            kept.write(start, complete, changes);
        }
        state.wake_partition(key.topic, key.partition);
    }
    let due = state.share.partitions.get(key).and_then(SharePartition::deadline);
    set_timer(state, key, due);
}

/// Members have got records: sets the timer of their locks.
pub(crate) fn locks_changed(state: &mut State, key: &ShareKey) {
    settle(state, key, &[]);
}

/// Takes back the records that members have had for long enough.
pub(super) fn locks_are_over(state: &mut State, key: &ShareKey, now: Instant) {
    let limits = Settings::of(state, &key.group).limits;
    let Some(partition) = state.share.partition_mut(key) else { return };
    let changes = partition.expire(now, &limits);
    settle(state, key, &changes);
}

/// Ends a session on a node, and takes back what the member has there. Says whether there was one.
pub(crate) fn close_session(state: &mut State, node: i32, holder: &Holder) -> bool {
    let Some(read) = state.share.sessions.get_mut(&node).and_then(|sessions| sessions.close(holder)) else {
        return false;
    };
    let limits = Settings::of(state, &holder.group).limits;
    for Wanted { topic, partition, .. } in read {
        let key = ShareKey { group: holder.group.clone(), topic, partition };
        // Another node may lead by now, and would have the share partition.
        if leads(state, node, topic, partition)
            && let Some(partition) = state.share.partition_mut(&key)
        {
            let changes = partition.release(&holder.member, &limits);
            settle(state, &key, &changes);
        }
    }
    true
}

/// Ends the session that was begun on a connection. If nobody else of the group has one on the node, that drops what it
/// has of the group in memory.
pub(crate) fn close_connection(state: &mut State, node: i32, connection: ConnectionId) {
    let Some(ended) = state.share.sessions.get_mut(&node).and_then(|sessions| sessions.disconnect(connection)) else {
        return;
    };
    if ended.ends_session {
        close_session(state, node, &ended.holder);
    }
    let group = &ended.holder.group;
    if !state.share.sessions.get(&node).is_some_and(|sessions| sessions.knows(group)) {
        forget_group_on(state, node, group);
    }
}

/// A node dies: whose connections break then are not those of members who went, and it takes nothing back from them.
pub(crate) fn node_died(state: &mut State, node: i32) {
    if let Some(sessions) = state.share.sessions.get_mut(&node) {
        sessions.clear();
    }
}

fn leads(state: &State, node: i32, topic: Uuid, partition: i32) -> bool {
    let found = state.topics.by_id(topic).and_then(|topic| topic.partition(partition));
    found.is_some_and(|partition| partition.leader == Some(node))
}

/// A partition has another leader, or another epoch: what the last one had in memory is gone.
pub(crate) fn leader_changed(state: &mut State, topic: Uuid, partition: i32) {
    forget(state, |key| key.topic == topic && key.partition == partition);
}

/// A topic is gone, and what was kept of it.
pub(crate) fn topic_deleted(state: &mut State, topic: Uuid) {
    state.share.persister.retain(|key, _| key.topic != topic);
    forget(state, |key| key.topic == topic);
}

/// The share partition is not led here any more, or its state was begun anew.
pub(crate) fn forget_partition(state: &mut State, gone: &ShareKey) {
    forget(state, |key| key == gone);
}

/// A group is gone.
pub(super) fn forget_group(state: &mut State, group: &Str) {
    forget(state, |key| key.group == *group);
}

/// A node has lost the last connection of a group, and drops what it leads for it.
fn forget_group_on(state: &mut State, node: i32, group: &Str) {
    let keys: Vec<ShareKey> = state.share.partitions.keys().filter(|key| key.group == *group).cloned().collect();
    for gone in keys {
        if leads(state, node, gone.topic, gone.partition) {
            forget_partition(state, &gone);
        }
    }
}

/// Share groups are switched off: the leaders drop what they have in memory, and the members' sessions with it.
pub(crate) fn switched_off(state: &mut State) {
    state.share.sessions.values_mut().for_each(ShareSessions::clear);
    forget(state, |_| true);
}

fn forget(state: &mut State, is_gone: impl Fn(&ShareKey) -> bool) {
    let gone: Vec<ShareKey> = state.share.partitions.keys().filter(|key| is_gone(key)).cloned().collect();
    for key in gone {
        state.share.partitions.remove(&key);
        set_timer(state, &key, None);
        state.wake_partition(key.topic, key.partition);
    }
}
