//! Online migration: a classic group of consumers becomes a group of KIP-848 when the first such member joins, and a
//! classic group again when the last one is gone.

use std::collections::{BTreeMap, BTreeSet};

use krafka_protocol::group::{Assignment, Subscription};
use krafka_protocol::{Bytes, ErrorCode, Str};

use super::classic_side::{CONSUMER, as_assignment};
use super::member::{ClassicSide, Held, Member, Partitions, Timers, partitions_of};
use super::{ConsumerGroup, Desk, Refusal};
use crate::config::MigrationPolicy;
use crate::groups::classic::ClassicGroup;
use crate::groups::classic::member::Member as ClassicMember;

/// Says why a classic group with members stays what it is, whatever they say of themselves.
pub(in crate::groups) fn may_upgrade(id: &str, group: &ClassicGroup, desk: &Desk<'_>) -> Result<(), Refusal> {
    let refused = |reason: &str| Err(stays(id, reason));
    if !desk.migration_policy().allows_upgrade() {
        return refused("online upgrade is disabled");
    }
    if group.protocol_type().is_none_or(|kind| &**kind != CONSUMER) {
        return refused("the group does not use the consumer embedded protocol");
    }
    if group.members().len() > desk.config.group_consumer_max_size {
        return refused("the group size exceeds the consumer group maximum size");
    }
    Ok(())
}

fn stays(id: &str, reason: &str) -> Refusal {
    let message = format!("Cannot upgrade classic group {id} to consumer group because {reason}.");
    Refusal::new(ErrorCode::GROUP_ID_NOT_FOUND, message)
}

/// Makes a classic group with members one of KIP-848, or says why it stays what it is: because of what a member says.
pub(in crate::groups) fn upgrade(id: &str, group: &ClassicGroup, desk: &Desk<'_>) -> Result<ConsumerGroup, Refusal> {
    let refused = |reason: &str| stays(id, reason);
    let generation = group.generation();
    let mut upgraded = ConsumerGroup { epoch: generation, target_epoch: generation, ..ConsumerGroup::default() };
    for member in group.members() {
        let speaks = |name: &Str| member.protocols.iter().any(|protocol| protocol.name == *name);
        if group.protocol().is_some_and(|name| !speaks(name)) {
            // Kafka trips over one that has come back without it.
            return Err(Refusal::new(ErrorCode::UNKNOWN_SERVER_ERROR, String::new()));
        }
        let preferred = || member.protocols.first().map(|protocol| &protocol.name);
        let metadata = member.metadata(group.protocol().or_else(preferred));
        let malformed = |_| refused("the embedded consumer protocol is malformed");
        let subscription = Subscription::from_bytes(metadata).map_err(malformed)?;
        let assignment = Assignment::from_bytes(member.assignment.clone()).map_err(malformed)?;
        if assignment.user_data.as_ref().is_some_and(|data| !data.is_empty()) {
            return Err(refused(
                "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default \
                 assignor before re-attempting the upgrade",
            ));
        }
        let mut assigned = Held::new();
        for topic in &assignment.assigned_partitions {
            if let Some(id) = desk.image.id_of(&topic.topic) {
                assigned.entry(id).or_default().extend(topic.partitions.iter().map(|index| (*index, generation)));
            }
        }
        upgraded.targets.insert(member.id.clone(), partitions_of(&assigned));
        let session = Some(desk.now + member.session_timeout);
        upgraded.members.insert(
            member.id.clone(),
            Member {
                instance_id: member.instance_id.clone(),
                rack: subscription.rack_id.clone(),
                rebalance_timeout: member.rebalance_timeout,
                client_id: member.client_id.clone(),
                client_host: member.client_host.clone(),
                topics: subscription.topics.iter().cloned().collect(),
                epoch: generation,
                previous_epoch: generation,
                assigned,
                classic: Some(ClassicSide {
                    session_timeout: member.session_timeout,
                    protocols: member.protocols.clone(),
                }),
                timers: Timers { session, ..Timers::default() },
                ..Member::new(member.id.clone())
            },
        );
    }
    upgraded.metadata = upgraded.present_metadata(desk);
    Ok(upgraded)
}

impl ConsumerGroup {
    /// Whether only members of the classic protocol are left without these, and the group may be theirs.
    pub(in crate::groups) fn may_become_classic(&self, leaving: &BTreeSet<Str>, desk: &Desk<'_>) -> bool {
        let speaks_new = |id: &Str| self.members.get(id).is_some_and(|member| member.classic.is_none());
        let stay = self.members.keys().filter(|id| !leaving.contains(*id)).count();
        leaving.iter().any(speaks_new)
            && stay > 0
            && !self.members.keys().any(|id| !leaving.contains(id) && speaks_new(id))
            && desk.migration_policy().allows_downgrade()
            && stay <= desk.config.group_max_size
    }

    /// Whether the group may be a classic one when a member of the classic protocol takes the place of this one.
    pub(super) fn may_become_classic_without(&self, replaced: &Str, desk: &Desk<'_>) -> bool {
        let speaks_new = |id: &Str| self.members.get(id).is_some_and(|member| member.classic.is_none());
        speaks_new(replaced)
            && !self.members.keys().any(|id| id != replaced && speaks_new(id))
            && desk.migration_policy().allows_downgrade()
            && self.members.len() <= desk.config.group_max_size
    }

    /// The classic group of all members but these, in its last generation and stable.
    pub(in crate::groups) fn downgrade(&self, leaving: &BTreeSet<Str>, desk: &Desk<'_>) -> ClassicGroup {
        let mut members = Vec::new();
        let mut targets: BTreeMap<Str, Partitions> = BTreeMap::new();
        for (id, member) in self.members.iter().filter(|(id, _)| !leaving.contains(*id)) {
            let Some(side) = &member.classic else { continue };
            targets.insert(id.clone(), self.targets.get(id).cloned().unwrap_or_default());
            members.push(ClassicMember {
                id: id.clone(),
                instance_id: member.instance_id.clone(),
                client_id: member.client_id.clone(),
                client_host: member.client_host.clone(),
                session_timeout: side.session_timeout,
                rebalance_timeout: member.rebalance_timeout,
                protocols: side.protocols.clone(),
                assignment: Bytes::new(),
                parked_join: None,
                parked_sync: None,
                is_new: false,
                session_ends: Some(desk.now + side.session_timeout),
            });
        }
        let assignment = |id: &Str, metadata: &Bytes| {
            as_assignment(targets.get(id).unwrap_or(&Partitions::new()), metadata, &desk.image)
        };
        ClassicGroup::stable(self.epoch, Str::from_static(CONSUMER), members, desk.now, assignment)
    }
}

impl MigrationPolicy {
    fn allows_upgrade(self) -> bool {
        matches!(self, Self::Bidirectional | Self::Upgrade)
    }

    fn allows_downgrade(self) -> bool {
        matches!(self, Self::Bidirectional | Self::Downgrade)
    }
}
