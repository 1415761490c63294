//! Offsets and groups that nobody has used for long are forgotten.
//!
//! Kafka looks every `offsets.retention.check.interval.ms`. An offset is dropped when nothing has been committed for it
//! for `offsets.retention.minutes` and nobody reads its topic; in a classic group that had members, the time counts
//! from when the last one left. One that a transaction is about to change stays. A group without offsets goes when it
//! is empty, and no transaction is to bring it some. As long as there is nothing that could expire, no timer runs.

use std::time::{Duration, Instant};

use krafka_protocol::Str;

use super::{Group, GroupState, Groups, Timer};
use crate::state::State;
use crate::timers;

/// From when on an offset's age counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AgeCounts {
    /// From its commit.
    FromCommit,
    /// From when the group became empty.
    From(Instant),
    /// It does not age as long as the group is as it is.
    Never,
}

/// Plans the next look, if there is something that may expire and none is planned.
pub(super) fn keep_watch(state: &mut State, now: Instant) {
    if state.groups.expiry.is_none() && !state.groups.groups.is_empty() {
        let due = now + state.config.offsets_retention_check_interval;
        state.groups.expiry = Some(state.timers.set(due, timers::Timer::Group(Timer::Expiry)));
    }
}

/// Looks for what has expired, and drops it.
pub(super) fn run(state: &mut State, now: Instant) {
    state.groups.expiry = None;
    let retention = state.config.offsets_retention;
    let ids: Vec<Str> = state.groups.groups.keys().cloned().collect();
    for id in ids {
        let State { groups, offsets, pending_offsets, .. } = state;
        let counts = groups.age_of_offsets(&id);
        let is_left = offsets.expire(&id, |topic, partition, committed_at, expires| {
            let from = match counts {
                AgeCounts::FromCommit => committed_at,
                AgeCounts::From(since) => since,
                AgeCounts::Never => return false,
            };
            !groups.is_subscribed(&id, topic)
                && is_over(now, from, expires, retention)
                && !pending_offsets.is_unstable(&id, topic, partition)
        });
        // What a share group has read is no offset of it, and does not age.
        let is_empty = state
            .groups
            .groups
            .get(&id)
            .is_some_and(|group| group.state() == GroupState::Empty && !matches!(group, Group::Share(_)));
        if is_empty && !is_left && !state.pending_offsets.has_group(&id) {
            state.groups.remove(&id);
        }
    }
    keep_watch(state, now);
}

/// A commit may have brought a time of its own, in versions 2 to 4.
fn is_over(now: Instant, from: Instant, expires: Option<Instant>, retention: Duration) -> bool {
    match expires {
        Some(at) => now >= at,
        None => now - from >= retention,
    }
}

impl Groups {
    fn age_of_offsets(&self, group_id: &str) -> AgeCounts {
        match self.groups.get(group_id) {
            Some(Group::Classic(group)) => group.age_of_offsets(),
            Some(Group::Consumer(_) | Group::Streams(_)) => AgeCounts::FromCommit,
            Some(Group::Share(_)) | None => AgeCounts::Never,
        }
    }
}
