//! The classic group protocol: JoinGroup collects the members, SyncGroup spreads what their leader decided.
//!
//! This is Kafka's GroupCoordinator, rule by rule and no more leniently (read in `GroupMetadataManager.java` of 4.0 and
//! checked on 4.4.0 by `conformance/wire`); the states are drawn at [`GroupState`]. Its fifth state, Dead, is the
//! instant between two coordinators, which nobody can see here. A rebalance:
//!
//! 1. somebody joins, leaves or is lost, or the leader joins again → PreparingRebalance. Heartbeats answer
//!    REBALANCE_IN_PROGRESS, each JoinGroup is parked;
//! 2. all members have joined, or the longest of their rebalance timeouts is over → the generation counts up, dynamic
//!    members that are missing are out, every parked JoinGroup is answered, the leader's with the list of members;
//! 3. each member sends SyncGroup, parked until the leader's brings the assignment → Stable. Who sends none within
//!    the rebalance timeout is out, and it begins again.
//!
//! Timers are fields of what they end, so one that belongs to an earlier rebalance or a removed member cannot fire.

mod describe;
pub(super) mod member;
mod rebalance;
mod record;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use bytes::Bytes;
use krafka_protocol::api::heartbeat::HeartbeatRequest;
use krafka_protocol::api::join_group::{JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse};
use krafka_protocol::api::leave_group::{MemberIdentity, MemberResponse};
use krafka_protocol::api::sync_group::{SyncGroupRequest, SyncGroupResponse};
use krafka_protocol::{ErrorCode, Str};

use member::Member;
pub(super) use member::session_timeout;

use super::{Answer, Caller, Committer, MemberIds, Parked, left};
use crate::config::Config;

/// Kafka's bound on how long a new member's JoinGroup stays parked: it cannot tell whether the client is still there.
const NEW_MEMBER_JOIN_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// Where a group is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Empty,
    PreparingRebalance,
    CompletingRebalance,
    Stable,
}

/// One group.
#[derive(Clone, Debug)]
pub(super) struct ClassicGroup {
    state: Phase,
    /// Since when.
    since: Instant,
    generation: i32,
    protocol_type: Option<Str>,
    protocol: Option<Str>,
    leader: Option<Str>,
    /// Oldest first: the order in which leaders succeed each other.
    members: Vec<Member>,
    /// Ids that were given out and must come back with a second JoinGroup, and until when.
    pending_joins: BTreeMap<Str, Instant>,
    /// Members of this generation that have not sent SyncGroup.
    pending_syncs: BTreeSet<Str>,
    join_timer: Option<JoinTimer>,
    sync_timer: Option<Instant>,
    /// Somebody has joined since the initial delay began, so it is granted once more.
    new_member_added: bool,
    /// The topics that the members read; `None` if they are no consumers, or say nothing that can be read.
    subscribed: Option<BTreeSet<Str>>,
    /// What the next coordinator would read.
    written: Written,
    /// Whether that is not in the log yet.
    is_unwritten: bool,
}

/// When the members that have joined stop waiting for the others.
#[derive(Clone, Copy, Debug)]
struct JoinTimer {
    at: Instant,
    /// Set in the first rebalance of an empty group: the delay that was granted, and what may still be.
    initial: Option<(Duration, Duration)>,
}

/// A group's record in `__consumer_offsets`: no waiting requests, no members that only wish to join.
#[derive(Clone, Debug, Default)]
struct Written {
    generation: i32,
    protocol_type: Option<Str>,
    protocol: Option<Str>,
    leader: Option<Str>,
    members: Vec<Member>,
}

/// A group at work: with the settings, the time, and the place for its answers.
pub(super) struct AtWork<'a> {
    group: &'a mut ClassicGroup,
    config: &'a Config,
    now: Instant,
    answers: &'a mut Vec<Answer>,
}

impl ClassicGroup {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            state: Phase::Empty,
            since: now,
            generation: 0,
            protocol_type: None,
            protocol: None,
            leader: None,
            members: Vec::new(),
            pending_joins: BTreeMap::new(),
            pending_syncs: BTreeSet::new(),
            join_timer: None,
            sync_timer: None,
            new_member_added: false,
            subscribed: None,
            written: Written::default(),
            is_unwritten: false,
        }
    }

    pub(super) fn with<'a>(&'a mut self, config: &'a Config, now: Instant, answers: &'a mut Vec<Answer>) -> AtWork<'a> {
        AtWork { group: self, config, now, answers }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let sessions = self.members.iter().filter_map(|m| m.session_ends);
        let pending = self.pending_joins.values().copied();
        sessions.chain(pending).chain(self.join_timer.map(|t| t.at)).chain(self.sync_timer).min()
    }

    fn position(&self, member_id: &str) -> Option<usize> {
        self.members.iter().position(|m| &*m.id == member_id)
    }

    fn static_member(&self, instance_id: &str) -> Option<&Member> {
        self.members.iter().find(|m| m.instance_id.as_deref() == Some(instance_id))
    }

    fn is_leader(&self, member_id: &str) -> bool {
        self.leader.as_deref() == Some(member_id)
    }

    /// Whether the first members of an empty group are still being collected.
    fn is_initial_rebalance(&self) -> bool {
        self.join_timer.is_some_and(|t| t.initial.is_some())
    }

    fn have_all_joined(&self) -> bool {
        self.pending_joins.is_empty() && self.members.iter().all(|m| m.parked_join.is_some())
    }

    /// The longest that a member may take to come back.
    fn rebalance_timeout(&self) -> Duration {
        self.members.iter().map(|m| m.rebalance_timeout).max().unwrap_or_default()
    }

    /// Whether a member with these protocols can be part of the group.
    fn fits(&self, protocol_type: &str, protocols: &[JoinGroupRequestProtocol]) -> bool {
        if self.state == Phase::Empty {
            return !protocol_type.is_empty() && !protocols.is_empty();
        }
        self.protocol_type.as_deref() == Some(protocol_type) && protocols.iter().any(|p| self.all_support(&p.name))
    }

    fn all_support(&self, protocol: &str) -> bool {
        self.members.iter().all(|m| m.supports(protocol))
    }

    /// The protocol that all speak and most prefer. Among equals the first by name: Kafka takes whichever its hash map
    /// lists first.
    fn elect_protocol(&self) -> Option<Str> {
        let mut votes: BTreeMap<&Str, usize> = BTreeMap::new();
        for protocol in self.members.iter().filter_map(|m| m.vote(|name| self.all_support(name))) {
            *votes.entry(protocol).or_default() += 1;
        }
        let most = votes.values().copied().max();
        votes.into_iter().find(|(_, count)| Some(*count) == most).map(|(protocol, _)| protocol.clone())
    }

    /// Whether the two names of a request belong to a member, and to the one that holds the instance id.
    fn check_member(&self, member_id: &str, instance_id: Option<&Str>) -> ErrorCode {
        if let Some(instance_id) = instance_id {
            match self.static_member(instance_id) {
                None => return ErrorCode::UNKNOWN_MEMBER_ID,
                Some(holder) if &*holder.id != member_id => return ErrorCode::FENCED_INSTANCE_ID,
                Some(_) => {}
            }
        }
        if self.position(member_id).is_some() { ErrorCode::NONE } else { ErrorCode::UNKNOWN_MEMBER_ID }
    }

    /// Makes the present state the one that the next coordinator finds. Only the chosen protocol is written.
    fn write(&mut self) {
        let members = self.members.iter().map(|m| {
            let chosen = self.protocol.iter();
            Member {
                protocols: chosen
                    .map(|name| JoinGroupRequestProtocol { name: name.clone(), metadata: m.metadata(Some(name)) })
                    .collect(),
                parked_join: None,
                parked_sync: None,
                is_new: false,
                session_ends: None,
                ..m.clone()
            }
        });
        self.is_unwritten = true;
        self.written = Written {
            generation: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone(),
            leader: self.leader.clone(),
            members: members.collect(),
        };
    }
}

impl AtWork<'_> {
    pub(super) fn join(
        &mut self,
        caller: &Caller,
        request: &JoinGroupRequest,
        parked: Parked,
        member_ids: &mut MemberIds,
    ) {
        let (member_id, instance_id) = (&request.member_id, request.group_instance_id.as_ref());
        let refusal = if !self.has_room_for(member_id) {
            self.remove(member_id);
            Some((Str::default(), ErrorCode::GROUP_MAX_SIZE_REACHED))
        } else if !self.group.fits(&request.protocol_type, &request.protocols) {
            Some((member_id.clone(), ErrorCode::INCONSISTENT_GROUP_PROTOCOL))
        } else {
            None
        };
        if let Some((member_id, error)) = refusal {
            return self.answers.push(parked.join_error(member_id, error));
        }
        if member_id.is_empty() {
            let new_id = member_ids.next(instance_id.unwrap_or(&caller.client_id));
            let replaced = instance_id.and_then(|i| self.group.static_member(i)).map(|m| m.id.clone());
            match (instance_id, replaced) {
                (Some(_), Some(old_id)) => self.replace_static(request, &old_id, new_id, parked),
                // A dynamic member must come back with its id before it counts (KIP-394): else each retry of a client
                // whose answer was lost would leave a member behind that nobody is.
                (None, _) if caller.version >= 4 => {
                    let expires = self.now + session_timeout(request);
                    self.group.pending_joins.insert(new_id.clone(), expires);
                    self.answers.push(parked.join_error(new_id, ErrorCode::MEMBER_ID_REQUIRED));
                }
                _ => self.add(caller, request, new_id, parked),
            }
        } else if self.group.pending_joins.contains_key(member_id) {
            if instance_id.is_some() {
                // Only dynamic members are ever pending; Kafka trips over its own assertion here.
                return self.answers.push(parked.join_error(member_id.clone(), ErrorCode::UNKNOWN_SERVER_ERROR));
            }
            self.add(caller, request, member_id.clone(), parked);
        } else {
            self.rejoin(request, parked);
        }
    }

    pub(super) fn sync(&mut self, request: &SyncGroupRequest, parked: Parked) {
        let group = &mut *self.group;
        let differs = |theirs: &Option<Str>, ours: &Option<Str>| theirs.is_some() && ours.is_some() && theirs != ours;
        let checked = group.check_member(&request.member_id, request.group_instance_id.as_ref());
        let error = if group.state == Phase::Empty {
            ErrorCode::UNKNOWN_MEMBER_ID
        } else if !checked.is_ok() {
            checked
        } else if request.generation_id != group.generation {
            ErrorCode::ILLEGAL_GENERATION
        } else if differs(&request.protocol_type, &group.protocol_type)
            || differs(&request.protocol_name, &group.protocol)
        {
            ErrorCode::INCONSISTENT_GROUP_PROTOCOL
        } else if group.state == Phase::PreparingRebalance {
            ErrorCode::REBALANCE_IN_PROGRESS
        } else {
            ErrorCode::NONE
        };
        let Some(member) = group.members.iter_mut().find(|m| error.is_ok() && m.id == request.member_id) else {
            return self.answers.push(parked.sync_error(error));
        };
        group.pending_syncs.remove(&request.member_id);
        if group.pending_syncs.is_empty() {
            group.sync_timer = None;
        }
        if group.state == Phase::Stable {
            let response = SyncGroupResponse {
                protocol_type: group.protocol_type.clone(),
                protocol_name: group.protocol.clone(),
                assignment: member.assignment.clone(),
                ..SyncGroupResponse::default()
            };
            return self.answers.push(parked.sync(response));
        }
        // A second SyncGroup of the same member takes the first one's place, which Kafka leaves unanswered: its
        // connection has given up on it.
        member.parked_sync = Some(parked);
        if group.is_leader(&request.member_id) {
            let assignments: BTreeMap<&Str, &Bytes> =
                request.assignments.iter().map(|a| (&a.member_id, &a.assignment)).collect();
            for member in &mut group.members {
                member.assignment = assignments.get(&member.id).map(|a| Bytes::clone(a)).unwrap_or_default();
            }
            group.enter(Phase::Stable, self.now);
            group.write();
            self.answer_syncs(ErrorCode::NONE);
        }
    }

    pub(super) fn heartbeat(&mut self, request: &HeartbeatRequest) -> ErrorCode {
        let error = self.group.check_member(&request.member_id, request.group_instance_id.as_ref());
        if !error.is_ok() {
            return error;
        }
        if request.generation_id != self.group.generation {
            return ErrorCode::ILLEGAL_GENERATION;
        }
        self.hear(&request.member_id);
        match self.group.state {
            Phase::PreparingRebalance => ErrorCode::REBALANCE_IN_PROGRESS,
            _ => ErrorCode::NONE,
        }
    }

    pub(super) fn leave(&mut self, leaving: &[MemberIdentity]) -> Vec<MemberResponse> {
        let mut has_left = false;
        let mut responses = Vec::with_capacity(leaving.len());
        for identity in leaving {
            // An administrator names a static member by its instance id alone.
            let by_instance = identity.group_instance_id.as_ref().filter(|_| identity.member_id.is_empty());
            let member_id = match by_instance.and_then(|i| self.group.static_member(i)) {
                Some(member) => member.id.clone(),
                None => identity.member_id.clone(),
            };
            let error = if self.group.pending_joins.contains_key(&member_id) {
                ErrorCode::NONE
            } else {
                self.group.check_member(&member_id, identity.group_instance_id.as_ref())
            };
            if error.is_ok() {
                has_left = true;
                self.send_away(&member_id);
            }
            responses.push(left(identity, error));
        }
        if has_left {
            self.rebalance_or_complete();
        }
        responses
    }

    pub(super) fn check_commit(&mut self, by: &Committer<'_>) -> ErrorCode {
        let group = &*self.group;
        let (member_id, instance_id, generation) = (by.member_id, by.instance_id, by.epoch);
        if generation < 0 && group.state == Phase::Empty {
            return ErrorCode::NONE;
        }
        if generation < 0 && member_id.is_empty() && instance_id.is_none() {
            // An outsider must not move the offsets of a group at work. A transaction may: old versions of its API
            // do not tell who commits.
            return if by.is_transactional { ErrorCode::NONE } else { ErrorCode::UNKNOWN_MEMBER_ID };
        }
        let error = group.check_member(member_id, instance_id);
        if !error.is_ok() {
            return error;
        }
        if generation != group.generation {
            return ErrorCode::ILLEGAL_GENERATION;
        }
        if by.is_transactional {
            return ErrorCode::NONE;
        }
        if group.state == Phase::CompletingRebalance {
            return ErrorCode::REBALANCE_IN_PROGRESS;
        }
        self.hear(member_id);
        ErrorCode::NONE
    }

    pub(super) fn reload(&mut self) {
        self.send_all_away(ErrorCode::NOT_COORDINATOR);
        let written = self.group.written.clone();
        *self.group = ClassicGroup {
            state: if written.members.is_empty() { Phase::Empty } else { Phase::Stable },
            generation: written.generation,
            protocol_type: written.protocol_type.clone(),
            protocol: written.protocol.clone(),
            leader: written.leader.clone(),
            members: written.members.clone(),
            written,
            ..ClassicGroup::new(self.now)
        };
        self.group.read_subscriptions();
        for member in &mut self.group.members {
            member.heard(self.now);
        }
        if self.group.members.len() > self.config.group_max_size {
            self.prepare_rebalance();
        }
    }

    /// Ends the wait of everyone with an error.
    pub(super) fn send_all_away(&mut self, error: ErrorCode) {
        for index in 0..self.group.members.len() {
            let id = self.group.members[index].id.clone();
            if let Some(parked) = self.group.members[index].parked_join.take() {
                self.answers.push(parked.join_error(id, error));
            }
        }
        self.answer_syncs(error);
    }

    /// A member that the group knows asks to join again.
    fn rejoin(&mut self, request: &JoinGroupRequest, parked: Parked) {
        let member_id = &request.member_id;
        let error = self.group.check_member(member_id, request.group_instance_id.as_ref());
        let Some(index) = self.group.position(member_id).filter(|_| error.is_ok()) else {
            return self.answers.push(parked.join_error(member_id.clone(), error));
        };
        let is_same = self.group.members[index].protocols == request.protocols;
        let forces_rebalance = match self.group.state {
            Phase::PreparingRebalance => true,
            // It has not seen the answer to its last JoinGroup.
            Phase::CompletingRebalance => !is_same,
            // A leader joins again when something changed that the members' metadata does not show: partitions were
            // added to a topic.
            Phase::Stable => !is_same || self.group.is_leader(member_id),
            Phase::Empty => {
                return self.answers.push(parked.join_error(member_id.clone(), ErrorCode::UNKNOWN_MEMBER_ID));
            }
        };
        if !forces_rebalance {
            let lists_members = self.group.state == Phase::CompletingRebalance;
            let response = self.joined(member_id.clone(), lists_members);
            return self.answers.push(parked.join(response));
        }
        let member = &mut self.group.members[index];
        member.update(request);
        member.parked_join = Some(parked);
        self.rebalance_or_complete();
    }

    fn add(&mut self, caller: &Caller, request: &JoinGroupRequest, id: Str, parked: Parked) {
        let mut member = Member::joining(id, caller, request);
        member.parked_join = Some(parked);
        // Its client can neither heartbeat nor be seen to vanish while the answer waits.
        member.session_ends = Some(self.now + NEW_MEMBER_JOIN_TIMEOUT);
        let group = &mut *self.group;
        group.new_member_added |= group.is_initial_rebalance();
        if group.members.is_empty() {
            group.protocol_type = Some(request.protocol_type.clone());
        }
        group.pending_joins.remove(&member.id);
        group.leader.get_or_insert_with(|| member.id.clone());
        group.members.push(member);
        self.rebalance_or_complete();
    }

    /// A static member has restarted: it takes its old place under a new id, and whoever still uses the old one is
    /// fenced. Unless the group's protocol changes with it, nobody else notices.
    fn replace_static(&mut self, request: &JoinGroupRequest, old_id: &Str, new_id: Str, parked: Parked) {
        let group = &mut *self.group;
        let Some(index) = group.position(old_id) else { return };
        let mut member = group.members.remove(index);
        if let Some(waiting) = member.parked_join.take() {
            self.answers.push(waiting.join_error(old_id.clone(), ErrorCode::FENCED_INSTANCE_ID));
        }
        if let Some(waiting) = member.parked_sync.take() {
            self.answers.push(waiting.sync_error(ErrorCode::FENCED_INSTANCE_ID));
        }
        let old_leader = group.leader.clone();
        if group.is_leader(old_id) {
            group.leader = Some(new_id.clone());
        }
        member.id = new_id.clone();
        // The new session starts with the old timeout, as in Kafka; the new one counts from the next heartbeat.
        member.heard(self.now);
        member.is_new = false;
        member.update(request);
        member.parked_join = Some(parked);
        group.members.push(member);

        match group.state {
            Phase::Stable if group.elect_protocol() == group.protocol => {
                group.write();
                if let Some(member) = group.members.last_mut() {
                    member.parked_join = None;
                }
                let mut response = self.joined(new_id.clone(), true);
                if parked.version >= 9 {
                    // The leader learns who is there, but must leave the assignment alone (KIP-814).
                    response.skip_assignment = self.group.is_leader(&new_id);
                } else {
                    // An older client takes itself for a follower, since the leader's name is not its own.
                    response.members = Vec::new();
                    response.leader = old_leader.unwrap_or_default();
                }
                self.answers.push(parked.join(response));
            }
            // The leader may be computing an assignment for the old id at this moment.
            Phase::Stable | Phase::CompletingRebalance => self.prepare_rebalance(),
            Phase::PreparingRebalance | Phase::Empty => self.complete_when_all_joined(),
        }
    }

    /// The answer that tells a member its generation; the leader's may list all members.
    fn joined(&self, member_id: Str, lists_members: bool) -> JoinGroupResponse {
        let group = &*self.group;
        let listed = group.members.iter().map(|m| m.as_listed(group.protocol.as_ref()));
        JoinGroupResponse {
            generation_id: group.generation,
            protocol_type: group.protocol_type.clone(),
            protocol_name: group.protocol.clone(),
            leader: group.leader.clone().unwrap_or_default(),
            members: if lists_members && group.is_leader(&member_id) { listed.collect() } else { Vec::new() },
            member_id,
            ..JoinGroupResponse::default()
        }
    }

    /// Answers whoever waits for an assignment: with it, or with an error.
    fn answer_syncs(&mut self, error: ErrorCode) {
        let group = &mut *self.group;
        for member in &mut group.members {
            let Some(parked) = member.parked_sync.take() else { continue };
            // The session timer may have run out in vain while the answer waited.
            member.heard(self.now);
            self.answers.push(if error.is_ok() {
                parked.sync(SyncGroupResponse {
                    protocol_type: group.protocol_type.clone(),
                    protocol_name: group.protocol.clone(),
                    assignment: member.assignment.clone(),
                    ..SyncGroupResponse::default()
                })
            } else {
                parked.sync_error(error)
            });
        }
    }

    fn remove(&mut self, member_id: &Str) {
        let group = &mut *self.group;
        group.members.retain(|m| m.id != *member_id);
        group.pending_joins.remove(member_id);
        group.pending_syncs.remove(member_id);
        if group.is_leader(member_id) {
            group.leader = group.members.first().map(|m| m.id.clone());
        }
    }

    fn hear(&mut self, member_id: &Str) {
        let now = self.now;
        if let Some(member) = self.group.members.iter_mut().find(|m| m.id == *member_id) {
            member.heard(now);
        }
    }

    /// Whether one more fits in; those who are in stay in.
    fn has_room_for(&self, member_id: &str) -> bool {
        let group = &*self.group;
        match group.state {
            Phase::Empty => true,
            // Counted by who has come back, so that it is the last to come who must go.
            Phase::PreparingRebalance => {
                let has_joined = |m: &&Member| m.parked_join.is_some();
                group.members.iter().filter(has_joined).any(|m| &*m.id == member_id)
                    || group.members.iter().filter(has_joined).count() < self.config.group_max_size
            }
            Phase::CompletingRebalance | Phase::Stable => {
                group.position(member_id).is_some() || group.members.len() < self.config.group_max_size
            }
        }
    }
}

#[cfg(test)]
mod tests;
