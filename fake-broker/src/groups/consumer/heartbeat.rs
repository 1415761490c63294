//! ConsumerGroupHeartbeat at a group that is there, and leaving by it.

use std::collections::BTreeSet;

use krafka_protocol::api::consumer_group_heartbeat::{
    Assignment, ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, TopicPartitions,
};
use krafka_protocol::{ErrorCode, Str};

use super::ConsumerGroup;
use super::member::{Held, Member};
use super::patterns::Change;
use crate::faults::KafkaVersion;
use crate::groups::Caller;
use crate::groups::desk::{Desk, Refusal};

/// A member that may go on, as it was before this request.
struct Admitted {
    before: Member,
    /// The incarnation of a static member that this one takes the place of.
    replaces: Option<Str>,
}

impl ConsumerGroup {
    /// Answers a heartbeat of a member that is in the group or joins it. `new_id` is for one that has no id.
    pub(in crate::groups) fn heartbeat(
        &mut self,
        request: &ConsumerGroupHeartbeatRequest,
        caller: &Caller,
        new_id: impl FnOnce() -> Str,
        desk: &Desk<'_>,
    ) -> Result<ConsumerGroupHeartbeatResponse, Refusal> {
        self.check_room(&request.member_id, request.instance_id.as_ref(), desk)?;
        let id = if request.member_id.is_empty() { new_id() } else { request.member_id.clone() };
        let owned = request.topic_partitions.as_deref();
        let Admitted { before, replaces } = self.admit(request, id, desk)?;
        self.check_expression(&before, request.subscribed_topic_regex.as_ref())?;
        let assignor_before = self.preferred_assignor(desk.config);

        let mut member = before.clone();
        member.update(request, caller);
        let id = member.id.clone();
        let has_other_topics = member.topics != before.topics;
        self.put(member, replaces.as_ref());
        let expression = self.expression_changed(before.regex(), &id, desk);
        let has_other_assignor =
            desk.image.version >= KafkaVersion::V4_4 && self.preferred_assignor(desk.config) != assignor_before;
        let is_other = self.epoch == 0 || has_other_topics || has_other_assignor || expression == Change::Resolved;
        self.raise_epoch(is_other, desk);
        self.assign(desk);
        self.step(&id, has_other_topics || expression != Change::Nothing, owned, desk);

        let Some(member) = self.members.get_mut(&id) else { return Err(super::unknown_member(&id, &request.group_id)) };
        member.timers.session = Some(desk.now + desk.session_timeout());
        let is_full = request.rebalance_timeout_ms != -1
            && (request.subscribed_topic_names.is_some() || request.subscribed_topic_regex.is_some())
            && owned.is_some();
        let must_tell = request.member_epoch == 0 || is_full || member.is_assigned_others_than(&before);
        Ok(ConsumerGroupHeartbeatResponse {
            member_id: Some(id),
            member_epoch: member.epoch,
            heartbeat_interval_ms: i32::try_from(desk.heartbeat_interval().as_millis()).unwrap_or(i32::MAX),
            assignment: must_tell.then(|| Assignment { topic_partitions: listed(&member.assigned) }),
            ..ConsumerGroupHeartbeatResponse::default()
        })
    }

    /// Finds who wants to leave for good; a static member that says it will be back only lets go.
    pub(in crate::groups) fn leave(
        &mut self,
        request: &ConsumerGroupHeartbeatRequest,
        desk: &Desk<'_>,
    ) -> Result<BTreeSet<Str>, Refusal> {
        let Some(instance_id) = &request.instance_id else {
            let member = self.find(&request.member_id, &request.group_id)?;
            return Ok([member.id.clone()].into());
        };
        let id = self.holder(instance_id, &request.member_id)?.id.clone();
        if request.member_epoch != -2 {
            return Ok([id].into());
        }
        if let Some(member) = self.members.get_mut(&id) {
            member.epoch = -2;
            member.revoking = Held::new();
            if desk.image.version >= KafkaVersion::V4_3 {
                member.assigned.values_mut().flat_map(|held| held.values_mut()).for_each(|epoch| *epoch = 0);
            }
        }
        Ok(BTreeSet::new())
    }

    /// Whether one more member fits in.
    pub(super) fn check_room(&self, id: &Str, instance_id: Option<&Str>, desk: &Desk<'_>) -> Result<(), Refusal> {
        let limit = desk.config.group_consumer_max_size;
        let is_in = self.members.contains_key(id) || self.static_member(instance_id).is_some();
        if is_in || self.members.len() < limit {
            return Ok(());
        }
        let message = format!("The consumer group has reached its maximum capacity of {limit} members.");
        Err(Refusal::new(ErrorCode::GROUP_MAX_SIZE_REACHED, message))
    }

    /// The member that has an instance id, if it is the one that a request names.
    pub(super) fn holder(&self, instance_id: &Str, member_id: &str) -> Result<&Member, Refusal> {
        let Some(holder) = self.static_member(Some(instance_id)) else {
            let message = format!("Instance id {instance_id} is unknown.");
            return Err(Refusal::new(ErrorCode::UNKNOWN_MEMBER_ID, message));
        };
        if &*holder.id == member_id {
            return Ok(holder);
        }
        let message =
            format!("Static member {member_id} with instance id {instance_id} was fenced by member {}.", holder.id);
        Err(Refusal::new(ErrorCode::FENCED_INSTANCE_ID, message))
    }

    fn admit(&self, request: &ConsumerGroupHeartbeatRequest, id: Str, desk: &Desk<'_>) -> Result<Admitted, Refusal> {
        let joins = request.member_epoch == 0;
        let known = |member: &Member| Admitted { before: member.clone(), replaces: None };
        let Some(instance_id) = &request.instance_id else {
            return match self.members.get(&id) {
                Some(member) => check_epoch(member, request, desk).map(|()| known(member)),
                None if joins => Ok(Admitted { before: Member::new(id), replaces: None }),
                None => Err(super::unknown_member(&id, &request.group_id)),
            };
        };
        if !joins {
            let member = self.holder(instance_id, &id)?;
            return check_epoch(member, request, desk).map(|()| known(member));
        }
        let Some(holder) = self.static_member(Some(instance_id)) else {
            let before = self.members.get(&id).cloned().unwrap_or_else(|| Member::new(id));
            return Ok(Admitted { before, replaces: None });
        };
        if holder.classic.is_none() && holder.epoch != -2 {
            let message = format!(
                "Static member {id} with instance id {instance_id} cannot join the group because the instance id is \
                 owned by {} member.",
                holder.id
            );
            return Err(Refusal::new(ErrorCode::UNRELEASED_INSTANCE_ID, message));
        }
        Ok(Admitted { before: holder.reborn(id), replaces: Some(holder.id.clone()) })
    }
}

/// Whether a member is where the coordinator takes it to be. One that is an epoch behind has missed an answer, if it
/// holds nothing that it should not.
fn check_epoch(member: &Member, request: &ConsumerGroupHeartbeatRequest, desk: &Desk<'_>) -> Result<(), Refusal> {
    let epoch = request.member_epoch;
    let owned = request.topic_partitions.as_deref();
    let begins_anew = epoch == 0 && desk.image.version >= KafkaVersion::V4_2;
    let missed_an_answer = epoch == member.previous_epoch && member.is_assigned_all(owned);
    if begins_anew || epoch == member.epoch || (epoch < member.epoch && missed_an_answer) {
        return Ok(());
    }
    let than = if epoch > member.epoch { "greater" } else { "smaller" };
    let message = format!(
        "The consumer group member has a {than} member epoch ({epoch}) than the one known by the group coordinator \
         ({}). The member must abandon all its partitions and rejoin.",
        member.epoch
    );
    Err(Refusal::new(ErrorCode::FENCED_MEMBER_EPOCH, message))
}

fn listed(held: &Held) -> Vec<TopicPartitions> {
    let topic = |(topic, indexes): (&_, &std::collections::BTreeMap<i32, i32>)| TopicPartitions {
        topic_id: *topic,
        partitions: indexes.keys().copied().collect(),
    };
    held.iter().map(topic).collect()
}
