//! The groups of a cluster.

use std::time::Instant;

use krafka_protocol::Str;

use crate::state::State;

/// All groups.
#[derive(Debug, Default)]
pub(crate) struct Groups {}

/// Something that is due inside a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Timer {
    /// The group.
    pub(crate) group: Str,
}

/// Does what a group's timer is for.
pub(crate) fn timer_fired(_state: &mut State, _timer: Timer, _now: Instant) {}
