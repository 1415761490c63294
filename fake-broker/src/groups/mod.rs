//! All the consumer groups of the cluster, and the rules that hold before a request reaches one of them.
//!
//! A group lives on its coordinator's partition of `__consumer_offsets`, so it outlives the node: when the coordinator
//! moves, the next one reads the group back as it was last written ([`Groups::reload`]). Who the coordinator is, is not
//! known here (`coordinators.rs`).

mod classic;
mod member;
mod view;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use krafka_protocol::api::heartbeat::HeartbeatRequest;
use krafka_protocol::api::join_group::{JoinGroupRequest, JoinGroupResponse};
use krafka_protocol::api::leave_group::{LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, MemberResponse};
use krafka_protocol::api::offset_commit::OffsetCommitRequest;
use krafka_protocol::api::sync_group::{SyncGroupRequest, SyncGroupResponse};
use krafka_protocol::{AnyResponse, ErrorCode, Str};

use classic::ClassicGroup;
pub use view::{GroupState, GroupView, MemberView};

use crate::config::Config;
use crate::context::{Context, Outcome, RequestId};
use crate::coordinators::{self, CoordinatorKind};
use crate::purgatory::Waiting;
use crate::rng::Rng;
use crate::security::acls::Operation;
use crate::state::State;
use crate::timers::{self, TimerId};

/// Who asks, and in which version: what a group remembers of a request's origin.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caller {
    /// The client id of the request, empty if it had none.
    client_id: Str,
    /// The client's address as Kafka prints it, `/127.0.0.1`.
    client_host: Str,
    version: i16,
}

impl From<&Context> for Caller {
    fn from(cx: &Context) -> Self {
        let client_id = cx.client_id.clone().unwrap_or_default();
        Self { client_id, client_host: cx.client_host.clone(), version: cx.version }
    }
}

/// Something is due inside a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Timer {
    group: Str,
}

/// Lets the timers of a group run out that are due.
pub(crate) fn timer_fired(state: &mut State, timer: &Timer, now: Instant) {
    state.groups.timers.remove(&timer.group);
    state.groups.expire(&timer.group, now);
    settle(state, &timer.group);
}

/// Why a node does not serve a request of a member, if it does not: a fault refuses it, it names no group, or another
/// node coordinates the group.
pub(crate) fn refusal(state: &State, cx: &Context, group: &Str) -> Option<ErrorCode> {
    let nameless = || group.is_empty().then_some(ErrorCode::INVALID_GROUP_ID);
    cx.group_error(state, Operation::Read, group).or_else(nameless).or_else(|| not_coordinator(state, cx, group))
}

/// NOT_COORDINATOR on every node but one.
pub(crate) fn not_coordinator(state: &State, cx: &Context, group: &Str) -> Option<ErrorCode> {
    let coordinator = coordinators::find(state, CoordinatorKind::Group, group);
    (coordinator != Some(cx.node)).then_some(ErrorCode::NOT_COORDINATOR)
}

/// Makes the groups on a partition of `__consumer_offsets` known to its new leader.
pub(crate) fn coordinator_moved(state: &mut State, partition: i32, now: Instant) {
    let is_there = |group: &&Str| coordinators::partition_for(group) == partition;
    let moved: Vec<Str> = state.groups.groups.keys().filter(is_there).cloned().collect();
    for group in &moved {
        state.groups.reload(group, now);
        settle(state, group);
    }
}

/// Follows up on what has happened in a group: answers those whose wait is over, and sets the group's next timer.
pub(crate) fn settle(state: &mut State, group: &Str) {
    for answer in std::mem::take(&mut state.groups.answers) {
        state.answer(answer.request, answer.response);
    }
    let groups = &mut state.groups;
    let due = groups.groups.get(group).and_then(ClassicGroup::deadline);
    if groups.timers.get(group).map(|(at, _)| *at) == due {
        return;
    }
    if let Some((_, timer)) = groups.timers.remove(group) {
        state.timers.cancel(timer);
    }
    if let Some(due) = due {
        let timer = state.timers.set(due, timers::Timer::Group(Timer { group: group.clone() }));
        groups.timers.insert(group.clone(), (due, timer));
    }
}

/// Lets a request wait for its group's answer, which may be known already.
pub(crate) fn await_answer<R>(state: &mut State, group: &Str) -> Outcome<R> {
    settle(state, group);
    Outcome::Park(Waiting::Group)
}

/// A parked request and the version that its answer must speak.
#[derive(Clone, Copy, Debug)]
struct Parked {
    request: RequestId,
    version: i16,
}

/// An answer to a request that may have waited for a long time.
#[derive(Clone, Debug, PartialEq)]
struct Answer {
    request: RequestId,
    response: AnyResponse,
}

/// Every classic group, by id.
#[derive(Clone, Debug)]
pub(crate) struct Groups {
    config: Arc<Config>,
    groups: BTreeMap<Str, ClassicGroup>,
    member_ids: MemberIds,
    /// The timer of each group that has one, and when it is due.
    timers: BTreeMap<Str, (Instant, TimerId)>,
    answers: Vec<Answer>,
}

impl Groups {
    /// No groups; member ids are drawn from the configured seed.
    pub(crate) fn new(config: Arc<Config>) -> Self {
        let member_ids = MemberIds { chance: Rng::stream(config.seed, "member ids") };
        Self { config, groups: BTreeMap::new(), member_ids, timers: BTreeMap::new(), answers: Vec::new() }
    }

    /// Whether a member may have the session timeout that it asks for.
    pub(crate) fn allows_session_timeout(&self, request: &JoinGroupRequest) -> bool {
        let bounds = self.config.group_min_session_timeout..=self.config.group_max_session_timeout;
        bounds.contains(&member::session_timeout(request))
    }

    /// Joins or rejoins a member. The answer comes through [`Groups::take_answers`], now or later.
    pub(crate) fn join(&mut self, caller: &Caller, request: &JoinGroupRequest, id: RequestId, now: Instant) {
        let parked = Parked { request: id, version: caller.version };
        if !request.member_id.is_empty() && !self.groups.contains_key(&request.group_id) {
            let error = ErrorCode::UNKNOWN_MEMBER_ID;
            return self.answers.push(parked.join_error(request.member_id.clone(), error));
        }
        let group = self.groups.entry(request.group_id.clone()).or_insert_with(ClassicGroup::new);
        let mut group = group.with(&self.config, now, &mut self.answers);
        group.join(caller, request, parked, &mut self.member_ids);
    }

    /// Hands out, or waits for, the assignment of a generation. The answer comes as for [`Groups::join`].
    pub(crate) fn sync(&mut self, caller: &Caller, request: &SyncGroupRequest, id: RequestId, now: Instant) {
        let parked = Parked { request: id, version: caller.version };
        match self.groups.get_mut(&request.group_id) {
            Some(group) => group.with(&self.config, now, &mut self.answers).sync(request, parked),
            None => self.answers.push(parked.sync_error(ErrorCode::UNKNOWN_MEMBER_ID)),
        }
    }

    /// Keeps a member's session alive and tells it whether a rebalance is going on.
    pub(crate) fn heartbeat(&mut self, request: &HeartbeatRequest, now: Instant) -> ErrorCode {
        match self.groups.get_mut(&request.group_id) {
            Some(group) => group.with(&self.config, now, &mut self.answers).heartbeat(request),
            None => ErrorCode::UNKNOWN_MEMBER_ID,
        }
    }

    /// Removes members on their own or an administrator's wish.
    pub(crate) fn leave(&mut self, caller: &Caller, request: &LeaveGroupRequest, now: Instant) -> LeaveGroupResponse {
        // Before version 3 there is one member, and it has no list of its own.
        let single = [MemberIdentity { member_id: request.member_id.clone(), ..MemberIdentity::default() }];
        let leaving = if caller.version < 3 { &single[..] } else { &request.members[..] };
        let members = match self.groups.get_mut(&request.group_id) {
            Some(group) => group.with(&self.config, now, &mut self.answers).leave(leaving),
            None => leaving.iter().map(|m| left(m, ErrorCode::UNKNOWN_MEMBER_ID)).collect(),
        };
        if caller.version < 3 {
            let error_code = members.first().map_or(0, |m: &MemberResponse| m.error_code);
            return LeaveGroupResponse { error_code, ..LeaveGroupResponse::default() };
        }
        LeaveGroupResponse { members, ..LeaveGroupResponse::default() }
    }

    /// Whether offsets may be committed with this member and generation. A commit counts as a sign of life.
    pub(crate) fn check_commit(&mut self, caller: &Caller, request: &OffsetCommitRequest, now: Instant) -> ErrorCode {
        if let Some(group) = self.groups.get_mut(&request.group_id) {
            return group.with(&self.config, now, &mut self.answers).check_commit(request);
        }
        if request.generation_id_or_member_epoch < 0 {
            // The first commit of a consumer that manages its partitions itself makes the group.
            self.groups.insert(request.group_id.clone(), ClassicGroup::new());
            return ErrorCode::NONE;
        }
        // Both mean the same; clients from before version 9 know only the older code.
        if caller.version >= 9 { ErrorCode::GROUP_ID_NOT_FOUND } else { ErrorCode::ILLEGAL_GENERATION }
    }

    /// Reads a group back from the log, as its next coordinator does: what was not written is forgotten, the sessions
    /// run anew, and whoever waited for an answer of the last coordinator is sent away.
    pub(crate) fn reload(&mut self, group_id: &Str, now: Instant) {
        if let Some(group) = self.groups.get_mut(group_id) {
            group.with(&self.config, now, &mut self.answers).reload();
        }
    }

    /// A group as a test or an administrator sees it.
    pub(crate) fn view(&self, group_id: &str) -> Option<GroupView> {
        self.groups.get(group_id).map(ClassicGroup::view)
    }

    /// Lets the timers of a group run out that are due: sessions, rebalances, missing syncs.
    fn expire(&mut self, group_id: &str, now: Instant) {
        if let Some(group) = self.groups.get_mut(group_id) {
            group.with(&self.config, now, &mut self.answers).expire();
        }
    }
}

impl Parked {
    fn join(self, mut response: JoinGroupResponse) -> Answer {
        // The name could not be null before version 7; Kafka sends an empty one then.
        if self.version < 7 {
            response.protocol_name.get_or_insert_default();
        }
        Answer { request: self.request, response: response.into() }
    }

    fn join_error(self, member_id: Str, error: ErrorCode) -> Answer {
        self.join(JoinGroupResponse {
            error_code: error.0,
            generation_id: -1,
            protocol_name: None,
            member_id,
            ..JoinGroupResponse::default()
        })
    }

    fn sync(self, response: SyncGroupResponse) -> Answer {
        Answer { request: self.request, response: response.into() }
    }

    fn sync_error(self, error: ErrorCode) -> Answer {
        self.sync(SyncGroupResponse { error_code: error.0, ..SyncGroupResponse::default() })
    }
}

/// The answer for one member that wants to leave.
fn left(member: &MemberIdentity, error: ErrorCode) -> MemberResponse {
    MemberResponse {
        member_id: member.member_id.clone(),
        group_instance_id: member.group_instance_id.clone(),
        error_code: error.0,
    }
}

/// Draws the ids of new members: a prefix and a UUID, as Kafka makes them, but from a seed.
#[derive(Clone, Debug)]
struct MemberIds {
    chance: Rng,
}

impl MemberIds {
    /// The next id, with the instance id or the client id in front.
    fn next(&mut self, prefix: &str) -> Str {
        let n = u128::from_be_bytes(self.chance.uuid().0);
        let part = |shift: u32, bits: u32| n >> shift & ((1 << bits) - 1);
        let (time_low, time_mid, time_high) = (part(96, 32), part(80, 16), part(64, 16));
        let (clock, node) = (part(48, 16), part(0, 48));
        Str::from(format!("{prefix}-{time_low:08x}-{time_mid:04x}-{time_high:04x}-{clock:04x}-{node:012x}"))
    }
}
