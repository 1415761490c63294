//! A classic group as its coordinator writes it into `__consumer_offsets`.

use std::time::{Duration, Instant};

use krafka_protocol::coordinator::group::{GroupMetadataValue, MemberMetadata};

use super::{ClassicGroup, Member};

impl ClassicGroup {
    /// A group that its first member makes, which is written before anybody is in it.
    pub(in crate::groups) fn founded(now: Instant) -> Self {
        Self { is_unwritten: true, ..Self::new(now) }
    }

    /// What there is to write since this was last asked: nothing, unless a rebalance has ended or the group is new.
    /// `millis` tells the time of day.
    pub(in crate::groups) fn take_record(&mut self, millis: impl Fn(Instant) -> i64) -> Option<GroupMetadataValue> {
        let is_refused = self.generation == 0 && self.members.is_empty() && self.pending_joins.is_empty();
        if !self.is_unwritten || is_refused {
            return None;
        }
        self.is_unwritten = false;
        let written = &self.written;
        Some(GroupMetadataValue {
            protocol_type: written.protocol_type.clone().unwrap_or_default(),
            generation: written.generation,
            protocol: written.protocol.clone(),
            leader: written.leader.clone(),
            current_state_timestamp: millis(self.since),
            members: written.members.iter().map(record).collect(),
        })
    }
}

fn record(member: &Member) -> MemberMetadata {
    let millis = |timeout: Duration| i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
    MemberMetadata {
        member_id: member.id.clone(),
        group_instance_id: member.instance_id.clone(),
        client_id: member.client_id.clone(),
        client_host: member.client_host.clone(),
        rebalance_timeout: millis(member.rebalance_timeout),
        session_timeout: millis(member.session_timeout),
        // Of all that it speaks, the chosen protocol alone is kept.
        subscription: member.protocols.first().map(|chosen| chosen.metadata.clone()).unwrap_or_default(),
        assignment: member.assignment.clone(),
    }
}
