//! Members that speak the classic protocol to a group of KIP-848: what the group is on the way from one to the other.
//!
//! Such a member's JoinGroup is its heartbeat with everything in it; its generation is its member epoch, and SyncGroup
//! tells it what it is assigned. It is told to join again as often as there is something to give up or to take over. It
//! is never parked: the coordinator has the assignment already.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use krafka_protocol::api::consumer_group_heartbeat::TopicPartitions;
use krafka_protocol::api::heartbeat::HeartbeatRequest;
use krafka_protocol::api::join_group::{JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse};
use krafka_protocol::api::leave_group::{MemberIdentity, MemberResponse};
use krafka_protocol::api::sync_group::{SyncGroupRequest, SyncGroupResponse};
use krafka_protocol::group::{Assignment, Subscription, TopicPartition};
use krafka_protocol::{ErrorCode, Str, Uuid};

use super::ConsumerGroup;
use super::member::{ClassicSide, Member, MemberState, Partitions, millis, partitions_of};
use super::patterns::Change;
use crate::config::MigrationPolicy;
use crate::faults::KafkaVersion;
use crate::groups::desk::{Desk, Refusal};
use crate::groups::image::Image;
use crate::groups::{Caller, left};

/// The type of groups whose members are consumers.
pub(in crate::groups) const CONSUMER: &str = "consumer";

/// A JoinGroup that was carried out.
pub(in crate::groups) struct Joined {
    pub(in crate::groups) response: JoinGroupResponse,
    /// Set when nobody is left who speaks KIP-848: whether the classic group that it becomes begins with a rebalance.
    pub(in crate::groups) becomes_classic: Option<bool>,
}

impl ConsumerGroup {
    /// Joins or rejoins a member of the classic protocol.
    pub(in crate::groups) fn join_classic(
        &mut self,
        request: &JoinGroupRequest,
        caller: &Caller,
        new_id: impl FnOnce() -> Str,
        desk: &Desk<'_>,
    ) -> Result<Joined, Refusal> {
        let instance_id = request.group_instance_id.as_ref();
        let is_new = request.member_id.is_empty();
        let id = if is_new { new_id() } else { request.member_id.clone() };
        if desk.image.version >= KafkaVersion::V4_2 && desk.migration_policy() == MigrationPolicy::Disabled {
            let message = "The group is of another protocol, and migration is disabled.";
            return Err(Refusal::new(ErrorCode::INCONSISTENT_GROUP_PROTOCOL, message));
        }
        self.check_room(&id, instance_id, desk)?;
        if !self.speaks(&request.protocol_type, &request.protocols) {
            let message = format!("Member {id}'s protocols are not supported.");
            return Err(Refusal::new(ErrorCode::INCONSISTENT_GROUP_PROTOCOL, message));
        }
        if is_new && instance_id.is_none() && caller.version >= 4 {
            let response = JoinGroupResponse {
                error_code: ErrorCode::MEMBER_ID_REQUIRED.0,
                generation_id: -1,
                protocol_name: None,
                member_id: id,
                ..JoinGroupResponse::default()
            };
            return Ok(Joined { response, becomes_classic: None });
        }
        let malformed = |_| {
            let message = "The member's subscription cannot be read.";
            Refusal::new(ErrorCode::INCONSISTENT_GROUP_PROTOCOL, message)
        };
        let metadata = request.protocols.first().map(|protocol| protocol.metadata.clone()).unwrap_or_default();
        let subscription = Subscription::from_bytes(metadata).map_err(malformed)?;
        let (before, replaces) = self.admit_classic(id, instance_id, is_new)?;
        let ends_migration = replaces.as_ref().is_some_and(|old| self.may_become_classic_without(old, desk));

        let mut member = before.clone();
        member.instance_id = instance_id.cloned().or(member.instance_id);
        member.rack = subscription.rack_id.clone().or(member.rack);
        if request.rebalance_timeout_ms != -1 {
            member.rebalance_timeout = millis(request.rebalance_timeout_ms);
        }
        member.topics = subscription.topics.iter().cloned().collect();
        member.regex = None;
        member.heard_from(caller);
        let session_timeout = millis(request.session_timeout_ms);
        member.classic = Some(ClassicSide { session_timeout, protocols: request.protocols.clone() });
        let id = member.id.clone();
        let has_other_topics = member.topics != before.topics;
        self.put(member, replaces.as_ref());
        let expression = self.expression_changed(before.regex(), &id, desk);
        let has_changed = has_other_topics || expression != Change::Nothing;
        let owned = by_id(&subscription.owned_partitions, &desk.image);
        // A group that becomes a classic one goes on at the epoch that it had.
        if !ends_migration {
            self.raise_epoch(has_changed, desk);
            self.assign(desk);
        }
        if !ends_migration || !has_changed {
            self.step(&id, has_changed, Some(&owned), desk);
        }
        let Some(member) = self.members.get_mut(&id) else { return Err(super::unknown_member(&id, &request.group_id)) };
        member.timers.join = None;
        member.timers.session = Some(desk.now + session_timeout);
        member.timers.sync = Some(desk.now + millis(request.rebalance_timeout_ms));
        let response = JoinGroupResponse {
            generation_id: member.epoch,
            protocol_type: Some(Str::from_static(CONSUMER)),
            protocol_name: request.protocols.first().map(|protocol| protocol.name.clone()),
            member_id: id,
            ..JoinGroupResponse::default()
        };
        Ok(Joined { response, becomes_classic: ends_migration.then_some(has_changed) })
    }

    /// Tells a member what it is assigned.
    pub(in crate::groups) fn sync_classic(
        &mut self,
        request: &SyncGroupRequest,
        desk: &Desk<'_>,
    ) -> Result<SyncGroupResponse, ErrorCode> {
        let wanted_epoch = self.epoch_to_join_for(desk);
        let session = self.classic_member(&request.member_id, request.group_instance_id.as_ref())?;
        let member = self.members.get_mut(&request.member_id).ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?;
        if request.generation_id != member.epoch {
            return Err(ErrorCode::ILLEGAL_GENERATION);
        }
        let protocol = member.classic.as_ref().and_then(|side| side.protocols.first()).map(|p| p.name.clone());
        let is_other_type = request.protocol_type.as_ref().is_some_and(|theirs| &**theirs != CONSUMER);
        if is_other_type || request.protocol_name.as_ref().is_some_and(|theirs| Some(theirs) != protocol.as_ref()) {
            return Err(ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
        }
        // One that gives partitions up has joined already, and joins again when it is done.
        if wanted_epoch > member.epoch && member.state != MemberState::UnrevokedPartitions {
            member.timers.join.get_or_insert(desk.now + member.rebalance_timeout);
            return Err(ErrorCode::REBALANCE_IN_PROGRESS);
        }
        member.timers.sync = None;
        member.timers.session = Some(desk.now + session);
        Ok(SyncGroupResponse {
            protocol_type: request.protocol_type.clone(),
            protocol_name: request.protocol_name.clone(),
            assignment: as_assignment(&partitions_of(&member.assigned), &member.classic_metadata(), &desk.image),
            ..SyncGroupResponse::default()
        })
    }

    /// Keeps a member's session alive, and tells it whether there is a reason to join again.
    pub(in crate::groups) fn heartbeat_classic(&mut self, request: &HeartbeatRequest, desk: &Desk<'_>) -> ErrorCode {
        let session = match self.classic_member(&request.member_id, request.group_instance_id.as_ref()) {
            Ok(session) => session,
            Err(error) => return error,
        };
        let wanted_epoch = self.epoch_to_join_for(desk);
        let may_get_the_rest = self.may_get_the_rest(&request.member_id);
        let Some(member) = self.members.get_mut(&request.member_id) else { return ErrorCode::UNKNOWN_MEMBER_ID };
        if request.generation_id != member.epoch {
            return ErrorCode::ILLEGAL_GENERATION;
        }
        member.timers.session = Some(desk.now + session);
        if member.epoch < wanted_epoch || member.state == MemberState::UnrevokedPartitions || may_get_the_rest {
            member.timers.join.get_or_insert(desk.now + member.rebalance_timeout);
            return ErrorCode::REBALANCE_IN_PROGRESS;
        }
        ErrorCode::NONE
    }

    /// Finds who leaves by LeaveGroup, with the answer for each.
    pub(in crate::groups) fn leave_classic(
        &self,
        leaving: &[MemberIdentity],
        image: &Image<'_>,
    ) -> (Vec<MemberResponse>, BTreeSet<Str>) {
        let mut gone = BTreeSet::new();
        let mut answer = |identity: &MemberIdentity| match self.leaves(identity, image) {
            Ok(id) => {
                gone.insert(id);
                left(identity, ErrorCode::NONE)
            }
            Err(error) => left(identity, error),
        };
        let responses = leaving.iter().map(&mut answer).collect();
        (responses, gone)
    }

    /// The epoch behind which a member must join again. Since 4.3 that is the target's: before there is one, joining
    /// would be in vain.
    fn epoch_to_join_for(&self, desk: &Desk<'_>) -> i32 {
        if desk.image.version >= KafkaVersion::V4_3 { self.target_epoch } else { self.epoch }
    }

    fn leaves(&self, identity: &MemberIdentity, image: &Image<'_>) -> Result<Str, ErrorCode> {
        let member = match &identity.group_instance_id {
            None => self.members.get(&identity.member_id).ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?,
            // An administrator names a static member by its instance id alone.
            Some(instance_id) if identity.member_id.is_empty() => {
                self.static_member(Some(instance_id)).ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?
            }
            Some(instance_id) => self.holder(instance_id, &identity.member_id).map_err(|refusal| refusal.error)?,
        };
        // Since 4.0 an administrator may take out members of either protocol.
        let may_leave = member.classic.is_some() || image.version >= KafkaVersion::V4_0;
        if may_leave { Ok(member.id.clone()) } else { Err(ErrorCode::UNKNOWN_MEMBER_ID) }
    }

    /// The session timeout of a member that speaks the classic protocol, if these names are its own.
    fn classic_member(&self, member_id: &Str, instance_id: Option<&Str>) -> Result<Duration, ErrorCode> {
        let member = match instance_id {
            Some(instance_id) => self.holder(instance_id, member_id).map_err(|refusal| refusal.error)?,
            None => self.members.get(member_id).ok_or(ErrorCode::UNKNOWN_MEMBER_ID)?,
        };
        member.classic.as_ref().map(|side| side.session_timeout).ok_or(ErrorCode::UNKNOWN_MEMBER_ID)
    }

    fn admit_classic(
        &self,
        id: Str,
        instance_id: Option<&Str>,
        is_new: bool,
    ) -> Result<(Member, Option<Str>), Refusal> {
        let known_or_new = |id: Str| self.members.get(&id).cloned().unwrap_or_else(|| Member::new(id));
        match instance_id {
            None => Ok((known_or_new(id), None)),
            Some(instance_id) if !is_new => Ok((self.holder(instance_id, &id)?.clone(), None)),
            Some(instance_id) => match self.static_member(Some(instance_id)) {
                Some(holder) => Ok((holder.reborn(id), Some(holder.id.clone()))),
                None => Ok((known_or_new(id), None)),
            },
        }
    }

    /// Whether all members of the classic protocol know one of these protocols.
    fn speaks(&self, protocol_type: &str, protocols: &[JoinGroupRequestProtocol]) -> bool {
        let sides: Vec<&ClassicSide> = self.members.values().filter_map(|member| member.classic.as_ref()).collect();
        let is_common = |name: &Str| sides.iter().all(|side| side.protocols.iter().any(|known| known.name == *name));
        protocol_type == CONSUMER && protocols.iter().any(|protocol| is_common(&protocol.name))
    }

    /// Whether a member waits for partitions that are all free by now.
    fn may_get_the_rest(&self, id: &Str) -> bool {
        let Some(member) = self.members.get(id).filter(|m| m.state == MemberState::UnreleasedPartitions) else {
            return false;
        };
        let target = self.targets.get(id);
        let mut missing =
            target.into_iter().flatten().flat_map(|(topic, indexes)| indexes.iter().map(|i| (*topic, *i)));
        !missing.any(|(topic, index)| {
            let is_assigned = member.assigned.get(&topic).is_some_and(|held| held.contains_key(&index));
            !is_assigned && self.members.values().any(|other| other.holds(topic, index))
        })
    }
}

/// Partitions as a classic member reads them, in the layout in which it speaks itself.
pub(super) fn as_assignment(partitions: &Partitions, metadata: &Bytes, image: &Image<'_>) -> Bytes {
    let topic = |(id, indexes): (&Uuid, &BTreeSet<i32>)| {
        Some(TopicPartition { topic: image.name_of(*id)?, partitions: indexes.iter().copied().collect() })
    };
    let assigned_partitions = partitions.iter().filter_map(topic).collect();
    let version = metadata.get(..2).map_or(0, |bytes| i16::from_be_bytes([bytes[0], bytes[1]])).clamp(0, 3);
    Assignment { assigned_partitions, user_data: None }.to_bytes(version).unwrap_or_default()
}

fn by_id(owned: &[TopicPartition], image: &Image<'_>) -> Vec<TopicPartitions> {
    let known = |topic: &TopicPartition| {
        Some(TopicPartitions { topic_id: image.id_of(&topic.topic)?, partitions: topic.partitions.clone() })
    };
    owned.iter().filter_map(known).collect()
}
