//! What is set for a share group: by the group's own configs, else by the broker's.

use std::time::Duration;

use krafka_protocol::Str;

use super::partition::Limits;
use crate::configs::OffsetReset;
use crate::state::State;

/// The settings of one share group.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) session_timeout: Duration,
    pub(crate) heartbeat_interval: Duration,
    /// How long at least lies between two assignments.
    pub(crate) assignment_interval: Duration,
    /// Where a group begins to read that has read nothing yet.
    pub(crate) reset: OffsetReset,
    pub(crate) read_committed: bool,
    pub(crate) may_renew: bool,
    /// The topic for records that are given up; empty for none.
    pub(crate) dead_letter_topic: Str,
    /// Whether they go there with their contents.
    pub(crate) copies_dead_letters: bool,
    pub(crate) limits: Limits,
}

impl Settings {
    /// The settings that hold for a group now.
    pub(crate) fn of(state: &State, group: &str) -> Self {
        let configs = state.group_settings(group);
        Self {
            session_timeout: configs.share_session_timeout,
            heartbeat_interval: configs.share_heartbeat_interval,
            assignment_interval: configs.share_assignment_interval,
            reset: configs.share_auto_offset_reset,
            read_committed: configs.share_read_committed,
            may_renew: configs.share_renew_acknowledge,
            dead_letter_topic: configs.share_dead_letter_topic,
            copies_dead_letters: configs.share_copies_dead_letters,
            limits: Limits {
                max_delivery_count: configs.share_delivery_count_limit,
                lock_duration: configs.share_record_lock_duration,
                max_record_locks: i64::try_from(configs.share_partition_max_record_locks).unwrap_or(i64::MAX),
            },
        }
    }
}
