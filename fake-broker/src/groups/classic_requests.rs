//! JoinGroup, SyncGroup, Heartbeat, LeaveGroup and commits: from the request to the group that it is for.

use std::collections::BTreeSet;
use std::time::Instant;

use krafka_protocol::api::heartbeat::HeartbeatRequest;
use krafka_protocol::api::join_group::{JoinGroupRequest, JoinGroupResponse};
use krafka_protocol::api::leave_group::{LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse};
use krafka_protocol::api::sync_group::{SyncGroupRequest, SyncGroupResponse};
use krafka_protocol::{ErrorCode, Str};

use super::classic::{self, ClassicGroup};
use super::desk::{Desk, Refusal};
use super::{Answer, Caller, CommitScope, Committer, Group, Groups, Image, Parked, left};
use crate::context::RequestId;
use crate::words::words;

impl Groups {
    /// Whether a member may have the session timeout that it asks for.
    pub(crate) fn allows_session_timeout(&self, request: &JoinGroupRequest) -> bool {
        let bounds = self.config.group_min_session_timeout..=self.config.group_max_session_timeout;
        bounds.contains(&classic::session_timeout(request))
    }

    /// Joins or rejoins a member. The answer is left for [`settle`](super::settle), now or later.
    pub(crate) fn join(
        &mut self,
        image: &Image<'_>,
        caller: &Caller,
        request: &JoinGroupRequest,
        id: RequestId,
        now: Instant,
    ) {
        let parked = Parked { request: id, version: caller.version };
        if let Some(Group::Consumer(group)) = self.groups.get(&request.group_id) {
            if !group.is_empty() {
                return self.join_consumer_group(image, caller, request, parked, now);
            }
            // An empty group changes over to whatever comes next.
            self.groups.remove(&request.group_id);
        }
        if !request.member_id.is_empty() && !self.groups.contains_key(&request.group_id) {
            let error = ErrorCode::UNKNOWN_MEMBER_ID;
            return self.answers.push(parked.join_error(request.member_id.clone(), error));
        }
        let group = self.groups.entry(request.group_id.clone());
        let Group::Classic(group) = group.or_insert_with(|| Group::Classic(Box::new(ClassicGroup::founded(now))))
        else {
            let error = ErrorCode::INCONSISTENT_GROUP_PROTOCOL;
            return self.answers.push(parked.join_error(request.member_id.clone(), error));
        };
        group.with(&self.config, now, &mut self.answers).join(caller, request, parked, &mut self.member_ids);
    }

    /// Hands out, or waits for, the assignment of a generation. The answer comes as for [`Groups::join`].
    pub(crate) fn sync(
        &mut self,
        image: &Image<'_>,
        caller: &Caller,
        request: &SyncGroupRequest,
        id: RequestId,
        now: Instant,
    ) {
        let parked = Parked { request: id, version: caller.version };
        let desk = Desk { config: &self.config, own: self.settings.get(&request.group_id), image: *image, now };
        match self.groups.get_mut(&request.group_id) {
            Some(Group::Classic(group)) => group.with(&self.config, now, &mut self.answers).sync(request, parked),
            Some(Group::Consumer(group)) => {
                let answer = match group.sync_classic(request, &desk) {
                    Ok(response) => parked.sync(response),
                    Err(error) => parked.sync_error(error),
                };
                self.answers.push(answer);
            }
            Some(Group::Share(_) | Group::Streams(_)) => {
                self.answers.push(parked.sync_error(ErrorCode::INCONSISTENT_GROUP_PROTOCOL))
            }
            None => self.answers.push(parked.sync_error(ErrorCode::UNKNOWN_MEMBER_ID)),
        }
    }

    /// Keeps a member's session alive and tells it whether a rebalance is going on.
    pub(crate) fn heartbeat(&mut self, image: &Image<'_>, request: &HeartbeatRequest, now: Instant) -> ErrorCode {
        let desk = Desk { config: &self.config, own: self.settings.get(&request.group_id), image: *image, now };
        match self.groups.get_mut(&request.group_id) {
            Some(Group::Classic(group)) => group.with(&self.config, now, &mut self.answers).heartbeat(request),
            Some(Group::Consumer(group)) => group.heartbeat_classic(request, &desk),
            Some(Group::Share(_) | Group::Streams(_)) | None => ErrorCode::UNKNOWN_MEMBER_ID,
        }
    }

    /// Removes members on their own or an administrator's wish.
    pub(crate) fn leave(
        &mut self,
        image: &Image<'_>,
        caller: &Caller,
        request: &LeaveGroupRequest,
        now: Instant,
    ) -> LeaveGroupResponse {
        // Before version 3 there is one member, and it has no list of its own.
        let single = [MemberIdentity { member_id: request.member_id.clone(), ..MemberIdentity::default() }];
        let leaving = if caller.version < 3 { &single[..] } else { &request.members[..] };
        let members = match self.groups.get_mut(&request.group_id) {
            Some(Group::Classic(group)) => group.with(&self.config, now, &mut self.answers).leave(leaving),
            Some(Group::Consumer(group)) => {
                let (responses, gone) = group.leave_classic(leaving, image);
                self.fence(image, &request.group_id, &gone, now);
                responses
            }
            Some(Group::Share(_) | Group::Streams(_)) | None => {
                leaving.iter().map(|m| left(m, ErrorCode::UNKNOWN_MEMBER_ID)).collect()
            }
        };
        if caller.version < 3 {
            let error_code = members.first().map_or(0, |m: &MemberResponse| m.error_code);
            return LeaveGroupResponse { error_code, ..LeaveGroupResponse::default() };
        }
        LeaveGroupResponse { members, ..LeaveGroupResponse::default() }
    }

    /// Whether offsets may be committed by who says so, and which. A commit counts as a sign of life of a classic
    /// member.
    pub(crate) fn check_commit(
        &mut self,
        image: &Image<'_>,
        by: &Committer<'_>,
        now: Instant,
    ) -> Result<CommitScope, Refusal> {
        let desk = Desk { config: &self.config, own: self.settings.get(by.group_id), image: *image, now };
        match self.groups.get_mut(by.group_id) {
            Some(Group::Classic(group)) => match group.with(&self.config, now, &mut self.answers).check_commit(by) {
                ErrorCode::NONE => Ok(CommitScope::All),
                error => Err(Refusal::new(error, words(error))),
            },
            Some(Group::Consumer(group)) => group.check_commit(by, &desk),
            Some(Group::Streams(group)) => group.check_commit(by).map(|()| CommitScope::All),
            Some(Group::Share(_)) => {
                let reason = format!("Group {} is not a consumer group.", by.group_id);
                Err(Refusal::new(ErrorCode::GROUP_ID_NOT_FOUND, reason))
            }
            None if by.epoch < 0 => {
                // The first commit of a consumer that manages its partitions itself makes the group.
                self.groups.insert(by.group_id.clone(), Group::Classic(Box::new(ClassicGroup::new(now))));
                Ok(CommitScope::All)
            }
            None => {
                // Both mean the same; clients from before version 9 know only the older code.
                let is_new = by.version >= 9 && !by.is_transactional;
                let error = if is_new { ErrorCode::GROUP_ID_NOT_FOUND } else { ErrorCode::ILLEGAL_GENERATION };
                Err(Refusal::new(error, format!("Group {} not found.", by.group_id)))
            }
        }
    }

    /// Whether a group's offsets may be told to who asks: groups of KIP-848 and streams groups mind.
    pub(crate) fn check_fetch(&self, group_id: &str, member_id: Option<&Str>, epoch: i32) -> Result<(), Refusal> {
        match self.groups.get(group_id) {
            Some(Group::Consumer(group)) => group.check_fetch(group_id, member_id, epoch),
            Some(Group::Streams(group)) => group.check_fetch(group_id, member_id, epoch),
            _ => Ok(()),
        }
    }

    fn join_consumer_group(
        &mut self,
        image: &Image<'_>,
        caller: &Caller,
        request: &JoinGroupRequest,
        parked: Parked,
        now: Instant,
    ) {
        let desk = Desk { config: &self.config, own: self.settings.get(&request.group_id), image: *image, now };
        let Some(Group::Consumer(group)) = self.groups.get_mut(&request.group_id) else { return };
        let ids = &mut self.member_ids;
        let answer = match group.join_classic(request, caller, || ids.next_uuid(), &desk) {
            Ok(joined) => {
                if let Some(begins_with_a_rebalance) = joined.becomes_classic {
                    let mut classic = group.downgrade(&BTreeSet::new(), &desk);
                    if begins_with_a_rebalance {
                        classic.with(&self.config, now, &mut self.answers).prepare_rebalance();
                    }
                    self.groups.insert(request.group_id.clone(), Group::Classic(Box::new(classic)));
                }
                parked.join(joined.response)
            }
            // Here Kafka makes the answer of the error alone.
            Err(refusal) => parked.join_error(Str::default(), refusal.error),
        };
        self.answers.push(answer);
    }
}

impl Parked {
    pub(super) fn join(self, mut response: JoinGroupResponse) -> Answer {
        // The name could not be null before version 7; Kafka sends an empty one then.
        if self.version < 7 {
            response.protocol_name.get_or_insert_default();
        }
        Answer { request: self.request, response: response.into() }
    }

    pub(super) fn join_error(self, member_id: Str, error: ErrorCode) -> Answer {
        self.join(JoinGroupResponse {
            error_code: error.0,
            generation_id: -1,
            protocol_name: None,
            member_id,
            ..JoinGroupResponse::default()
        })
    }

    pub(super) fn sync(self, response: SyncGroupResponse) -> Answer {
        Answer { request: self.request, response: response.into() }
    }

    pub(super) fn sync_error(self, error: ErrorCode) -> Answer {
        self.sync(SyncGroupResponse { error_code: error.0, ..SyncGroupResponse::default() })
    }
}
