//! ConsumerGroupHeartbeat: from the request to the group that it is for, which it may make or migrate.

use std::collections::BTreeSet;
use std::time::Instant;

use krafka_protocol::api::consumer_group_heartbeat::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse};
use krafka_protocol::{ErrorCode, Str};

use super::consumer::{self, ConsumerGroup, convert};
use super::desk::{Desk, Refusal};
use super::{Caller, Group, Groups, Image};

impl Groups {
    /// Whether members of a group, or the one that sends this, subscribe by regular expressions.
    pub(crate) fn has_expressions(&self, request: &ConsumerGroupHeartbeatRequest) -> bool {
        let group = self.groups.get(&request.group_id);
        let has_some = matches!(group, Some(Group::Consumer(group)) if group.has_expressions());
        has_some || request.subscribed_topic_regex.as_ref().is_some_and(|regex| !regex.is_empty())
    }

    /// Answers a heartbeat of a member, or lets it leave.
    pub(crate) fn consumer_heartbeat(
        &mut self,
        image: &Image<'_>,
        caller: &Caller,
        request: &ConsumerGroupHeartbeatRequest,
        now: Instant,
    ) -> Result<ConsumerGroupHeartbeatResponse, Refusal> {
        consumer::validate(request, caller.version, image, &self.config.assignors())?;
        if request.member_epoch < 0 {
            return self.consumer_leave(image, request, now);
        }
        let desk = Desk { config: &self.config, own: self.settings.get(&request.group_id), image: *image, now };
        let ids = &mut self.member_ids;
        if let Some(Group::Consumer(group)) = self.groups.get_mut(&request.group_id) {
            return group.heartbeat(request, caller, || ids.next_uuid(), &desk);
        }
        // The group is made, or made over, only if its first heartbeat succeeds.
        let id = &request.group_id;
        if request.member_epoch == 0
            && let Some(Group::Classic(old)) = self.groups.get_mut(id)
            && !old.members().is_empty()
        {
            convert::may_upgrade(id, old, &desk)?;
            // Who is in the middle of a rebalance is sent away before the members are looked at.
            old.with(&self.config, now, &mut self.answers).send_all_away(ErrorCode::REBALANCE_IN_PROGRESS);
        }
        let mut group = match self.groups.get(id) {
            _ if request.member_epoch != 0 && !self.groups.contains_key(id) => {
                return Err(Refusal::new(ErrorCode::GROUP_ID_NOT_FOUND, format!("Consumer group {id} not found.")));
            }
            Some(Group::Classic(group)) if request.member_epoch == 0 && !group.members().is_empty() => {
                convert::upgrade(id, group, &desk)?
            }
            Some(Group::Classic(_)) if request.member_epoch != 0 => return Err(not_a_consumer_group(id)),
            Some(Group::Share(_) | Group::Streams(_)) => return Err(not_a_consumer_group(id)),
            _ => ConsumerGroup::new(image.version),
        };
        let response = group.heartbeat(request, caller, || ids.next_uuid(), &desk)?;
        self.remove(id);
        self.groups.insert(id.clone(), Group::Consumer(Box::new(group)));
        Ok(response)
    }

    /// Takes members out of a group of KIP-848, which becomes a classic one if only such members stay.
    pub(super) fn fence(&mut self, image: &Image<'_>, group_id: &Str, leaving: &BTreeSet<Str>, now: Instant) {
        let desk = Desk { config: &self.config, own: self.settings.get(group_id), image: *image, now };
        let Some(Group::Consumer(group)) = self.groups.get_mut(group_id) else { return };
        if !group.may_become_classic(leaving, &desk) {
            return group.remove(leaving, &desk);
        }
        let mut classic = group.downgrade(leaving, &desk);
        classic.with(&self.config, now, &mut self.answers).prepare_rebalance();
        self.groups.insert(group_id.clone(), Group::Classic(Box::new(classic)));
    }

    fn consumer_leave(
        &mut self,
        image: &Image<'_>,
        request: &ConsumerGroupHeartbeatRequest,
        now: Instant,
    ) -> Result<ConsumerGroupHeartbeatResponse, Refusal> {
        let id = &request.group_id;
        let desk = Desk { config: &self.config, own: self.settings.get(id), image: *image, now };
        let gone = match self.groups.get_mut(id) {
            Some(Group::Consumer(group)) => group.leave(request, &desk)?,
            Some(Group::Classic(_) | Group::Share(_) | Group::Streams(_)) => {
                return Err(not_a_consumer_group(id));
            }
            None => return Err(Refusal::new(ErrorCode::GROUP_ID_NOT_FOUND, format!("Group {id} not found."))),
        };
        self.fence(image, id, &gone, now);
        Ok(ConsumerGroupHeartbeatResponse {
            member_id: Some(request.member_id.clone()),
            member_epoch: request.member_epoch,
            ..ConsumerGroupHeartbeatResponse::default()
        })
    }
}

fn not_a_consumer_group(id: &str) -> Refusal {
    Refusal::new(ErrorCode::GROUP_ID_NOT_FOUND, format!("Group {id} is not a consumer group."))
}
