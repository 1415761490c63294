//! All the groups of the cluster, and the rules that hold before a request reaches one of them.
//!
//! A group lives on its coordinator's partition of `__consumer_offsets`, so it outlives the node: when the coordinator
//! moves, the next one reads the group back as it was last written ([`Groups::reload`]). Who the coordinator is, is not
//! known here (`coordinators.rs`).
//!
//! A group is of one kind at a time: `classic`, `consumer` (KIP-848), `share` (KIP-932) or `streams` (KIP-1071). Of the
//! first two, one becomes the other when it is empty and a member of that kind comes, and with members in it by online
//! migration (`consumer/convert.rs`).

mod admin;
mod classic;
mod classic_requests;
mod consumer;
mod consumer_requests;
mod desk;
mod expiry;
mod image;
pub(crate) mod share;
pub(crate) mod streams;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use krafka_protocol::api::consumer_group_heartbeat::ConsumerGroupHeartbeatRequest;
use krafka_protocol::api::leave_group::{MemberIdentity, MemberResponse};
use krafka_protocol::coordinator::group::GroupMetadataValue;
use krafka_protocol::{AnyResponse, ErrorCode, Str, Uuid};

use classic::ClassicGroup;
use consumer::ConsumerGroup;
pub(crate) use consumer::assignors::NAMES as ASSIGNORS;
use desk::Desk;
pub(crate) use desk::Refusal;
pub(crate) use image::Image;
use share::ShareGroup;
use streams::StreamsGroup;
pub use view::{GroupKind, GroupState, GroupView, MemberView};

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

/// Who wants to commit offsets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Committer<'a> {
    pub(crate) group_id: &'a Str,
    pub(crate) member_id: &'a Str,
    pub(crate) instance_id: Option<&'a Str>,
    /// The generation, or the member epoch; negative for one that is no member.
    pub(crate) epoch: i32,
    /// The version of OffsetCommit; a transaction's own API has no bearing on it.
    pub(crate) version: i16,
    pub(crate) is_transactional: bool,
}

/// Which offsets may be committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CommitScope {
    /// Those of all partitions.
    All,
    /// Those of partitions that the member has had for long enough; another one among them spoils all.
    Held {
        /// Which they are.
        partitions: BTreeSet<(Uuid, i32)>,
        /// What a commit of others is answered with.
        error: ErrorCode,
    },
}

impl CommitScope {
    /// The error of a commit for this partition.
    pub(crate) fn check(&self, topic: Uuid, partition: i32) -> ErrorCode {
        match self {
            Self::Held { partitions, error } if !partitions.contains(&(topic, partition)) => *error,
            _ => ErrorCode::NONE,
        }
    }
}

/// Something is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Timer {
    /// Inside a group: a session that ends, a rebalance that has waited long enough.
    Group(Str),
    /// The search for offsets and groups that nobody has used for long.
    Expiry,
}

/// Does what is due.
pub(crate) fn timer_fired(state: &mut State, timer: &Timer, now: Instant) {
    match timer {
        Timer::Group(group) => {
            state.groups.timers.remove(group);
            let node = coordinators::find(state, CoordinatorKind::Group, group).unwrap_or(-1);
            let (groups, image) = at(state, node);
            groups.expire(&image, group, now);
            share::expire(state, node, group, now);
            settle(state, group, now);
        }
        Timer::Expiry => expiry::run(state, now),
    }
}

/// The groups, and what a node sees of the rest.
pub(crate) fn at(state: &mut State, node: i32) -> (&mut Groups, Image<'_>) {
    let State { groups, topics, nodes, .. } = state;
    (groups, Image::of(topics, nodes, node))
}

/// A group as a test sees it.
pub(crate) fn view(state: &State, group: &str) -> Option<GroupView> {
    state.groups.view(&Image::of(&state.topics, &state.nodes, -1), group)
}

/// Why a node does not serve a request of a member, if it does not: a fault refuses it, it names no group, or another
/// node coordinates the group.
pub(crate) fn refusal(state: &State, cx: &Context, group: &Str) -> Option<ErrorCode> {
    let nameless = || group.is_empty().then_some(ErrorCode::INVALID_GROUP_ID);
    cx.group_error(state, Operation::Read, group).or_else(nameless).or_else(|| not_coordinator(state, cx, group))
}

/// Whether a heartbeat makes sense by itself.
pub(crate) fn is_sound(state: &State, cx: &Context, request: &ConsumerGroupHeartbeatRequest) -> bool {
    let image = Image::of(&state.topics, &state.nodes, cx.node);
    consumer::validate(request, cx.version, &image, &state.config.assignors()).is_ok()
}

/// NOT_COORDINATOR on every node but one.
pub(crate) fn not_coordinator(state: &State, cx: &Context, group: &Str) -> Option<ErrorCode> {
    let coordinator = coordinators::find(state, CoordinatorKind::Group, group);
    (coordinator != Some(cx.node)).then_some(ErrorCode::NOT_COORDINATOR)
}

/// Makes the groups on a partition of `__consumer_offsets` known to its new leader.
pub(crate) fn coordinator_moved(state: &mut State, partition: i32, now: Instant) {
    let is_there = |group: &&Str| state.spread.partition_for(CoordinatorKind::Group, group) == partition;
    let moved: Vec<Str> = state.groups.groups.keys().filter(is_there).cloned().collect();
    let leader = coordinators::find_on(state, CoordinatorKind::Group, partition).unwrap_or(-1);
    for group in &moved {
        let (groups, image) = at(state, leader);
        groups.reload(&image, group, now);
        settle(state, group, now);
    }
}

/// Follows up on what has happened in a group: answers those whose wait is over, and sets the group's next timer.
pub(crate) fn settle(state: &mut State, group: &Str, now: Instant) {
    for answer in std::mem::take(&mut state.groups.answers) {
        state.answer(answer.request, answer.response);
    }
    coordinators::log::write_group(state, group, now);
    expiry::keep_watch(state, now);
    let groups = &mut state.groups;
    let due = groups.groups.get(group).and_then(Group::deadline);
    if groups.timers.get(group).map(|(at, _)| *at) == due {
        return;
    }
    if let Some((_, timer)) = groups.timers.remove(group) {
        state.timers.cancel(timer);
    }
    if let Some(due) = due {
        let timer = state.timers.set(due, timers::Timer::Group(Timer::Group(group.clone())));
        groups.timers.insert(group.clone(), (due, timer));
    }
}

/// Lets a request wait for its group's answer, which may be known already.
pub(crate) fn await_answer<R>(state: &mut State, group: &Str, now: Instant) -> Outcome<R> {
    settle(state, group, now);
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

/// A group of one of the kinds.
#[derive(Clone, Debug)]
enum Group {
    Classic(Box<ClassicGroup>),
    Consumer(Box<ConsumerGroup>),
    Share(Box<ShareGroup>),
    Streams(Box<StreamsGroup>),
}

impl Group {
    fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Classic(group) => group.deadline(),
            Self::Consumer(group) => group.deadline(),
            Self::Share(group) => group.deadline(),
            Self::Streams(group) => group.deadline(),
        }
    }

    fn kind(&self) -> GroupKind {
        match self {
            Self::Classic(_) => GroupKind::Classic,
            Self::Consumer(_) => GroupKind::Consumer,
            Self::Share(_) => GroupKind::Share,
            Self::Streams(_) => GroupKind::Streams,
        }
    }

    fn state(&self) -> GroupState {
        match self {
            Self::Classic(group) => group.state(),
            Self::Consumer(group) => group.state(),
            Self::Share(group) => group.state(),
            Self::Streams(group) => group.state(),
        }
    }
}

/// Every group, by id.
#[derive(Clone, Debug)]
pub(crate) struct Groups {
    config: Arc<Config>,
    groups: BTreeMap<Str, Group>,
    member_ids: MemberIds,
    /// What was set for single groups, by Kafka's names of the settings.
    settings: BTreeMap<Str, BTreeMap<Str, Str>>,
    /// The timer of each group that has one, and when it is due.
    timers: BTreeMap<Str, (Instant, TimerId)>,
    /// Set while the search for what has expired is planned.
    expiry: Option<TimerId>,
    answers: Vec<Answer>,
    /// Classic groups that are gone since the log took note of it.
    forgotten: Vec<Str>,
}

impl Groups {
    /// No groups; member ids are drawn from the configured seed.
    pub(crate) fn new(config: Arc<Config>) -> Self {
        let member_ids = MemberIds { chance: Rng::stream(config.seed, "member ids") };
        Self {
            config,
            groups: BTreeMap::new(),
            member_ids,
            settings: BTreeMap::new(),
            timers: BTreeMap::new(),
            expiry: None,
            answers: Vec::new(),
            forgotten: Vec::new(),
        }
    }

    /// What there is to write of a classic group; `millis` tells the time of day.
    pub(crate) fn take_record(&mut self, group: &str, millis: impl Fn(Instant) -> i64) -> Option<GroupMetadataValue> {
        match self.groups.get_mut(group)? {
            Group::Classic(group) => group.take_record(millis),
            _ => None,
        }
    }

    /// Classic groups that are gone since this was last asked.
    pub(crate) fn take_forgotten(&mut self) -> Vec<Str> {
        std::mem::take(&mut self.forgotten)
    }

    /// Drops a group, or what it was before it became one of another kind.
    fn remove(&mut self, group: &Str) {
        if let Some(Group::Classic(_)) = self.groups.remove(group) {
            self.forgotten.push(group.clone());
        }
    }

    /// Sets something for one group, by Kafka's name of it; `None` takes the cluster's setting again.
    pub(crate) fn set(&mut self, group: &Str, name: &Str, value: Option<Str>) {
        let own = self.settings.entry(group.clone()).or_default();
        match value {
            Some(value) => own.insert(name.clone(), value),
            None => own.remove(name),
        };
        if own.is_empty() {
            self.settings.remove(group);
        }
    }

    /// Reads a group back from the log, as its next coordinator does: what was not written is forgotten, the sessions
    /// run anew, and whoever waited for an answer of the last coordinator is sent away.
    pub(crate) fn reload(&mut self, image: &Image<'_>, group_id: &Str, now: Instant) {
        let desk = Desk { config: &self.config, own: self.settings.get(group_id), image: *image, now };
        match self.groups.get_mut(group_id) {
            Some(Group::Classic(group)) => group.with(&self.config, now, &mut self.answers).reload(),
            Some(Group::Consumer(group)) => group.reload(&desk),
            Some(Group::Share(group)) => group.reload(now),
            Some(Group::Streams(group)) => group.reload(now),
            None => {}
        }
    }

    /// A group as a test or an administrator sees it.
    pub(crate) fn view(&self, image: &Image<'_>, group_id: &str) -> Option<GroupView> {
        match self.groups.get(group_id)? {
            Group::Classic(group) => Some(group.view()),
            Group::Consumer(group) => Some(group.view(image, &self.config)),
            Group::Share(group) => Some(group.view(image)),
            Group::Streams(group) => Some(group.view(image)),
        }
    }

    /// Lets the timers of a group run out that are due: sessions, rebalances, missing syncs.
    fn expire(&mut self, image: &Image<'_>, group_id: &Str, now: Instant) {
        let desk = Desk { config: &self.config, own: self.settings.get(group_id), image: *image, now };
        match self.groups.get_mut(group_id) {
            Some(Group::Classic(group)) => group.with(&self.config, now, &mut self.answers).expire(),
            Some(Group::Consumer(group)) => {
                let lost = group.expire(&desk);
                self.fence(image, group_id, &lost, now);
            }
            Some(Group::Streams(group)) => group.expire(now, image.version),
            // Those of a share group have more to give back than the group knows.
            Some(Group::Share(_)) | None => {}
        }
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

    /// The next id as Kafka draws it for members of KIP-848: a UUID in its own text.
    fn next_uuid(&mut self) -> Str {
        Str::from(self.chance.uuid().to_string())
    }
}
