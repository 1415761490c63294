//! A member of a classic group: joins, syncs, sends heartbeats, and gives everything up when the group rebalances.
//!
//! ```text
//!              subscribed                       released                    answered
//!   Outside ───────────────▶ (nothing to give up) ──────────▶ Joining ─────────────────┬──▶ Counting (leader)
//!      ▲                              ▲                        ▲    │ retriable         │        │ counted
//!      │ unsubscribed,                │ rebalance, new topics, │    ▼                   ▼        ▼
//!      │ idle, closed                 │ session lost           └─ Resting ◀──────── Syncing ◀────┘
//!      └───────── (any) ────────── Releasing ◀───────────── Stable ◀──── answered ─────┘
//!                                                              Failed: the coordinator refuses this member for good
//! ```
//!
//! Rebalancing is eager: partitions are released before the member joins again. It is never in a hurry to do so: a
//! member releases only when its application has worked off what it was given, and keeps its session alive until then.

mod refusal;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Instant;

use krafka_protocol::api::heartbeat::{HeartbeatRequest, HeartbeatResponse};
use krafka_protocol::api::join_group::{JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse};
use krafka_protocol::api::leave_group::{LeaveGroupRequest, MemberIdentity};
use krafka_protocol::api::sync_group::{SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse};
use krafka_protocol::group::{Assignment, HIGHEST_VERSION, Subscription, TopicPartition};
use krafka_protocol::machine::Machine;
use krafka_protocol::{ErrorCode, Str};

use super::{Identity, MemberConfig};
use crate::KrafkaError;
use crate::consumer::assign::{Candidate, Whereabouts, range};
use crate::consumer::fetcher::Complaint;
use crate::rng::Rng;

/// The only protocol that is offered. What it gives out is defined by Kafka's range assignor.
const PROTOCOL: &str = "range";

/// The type of all groups of consumers.
const PROTOCOL_TYPE: &str = "consumer";

#[derive(Debug)]
pub(crate) enum Input {
    /// The user wants these topics, all of them.
    Subscribed(BTreeSet<Str>),
    Unsubscribed,
    /// What `Count` asked for.
    Counted {
        round: u64,
        counts: Whereabouts,
    },
    /// The metadata changed: partitions of the topics that the group reads, as it has them now.
    Recounted(Whereabouts),
    /// What was to be given up has been.
    Released,
    Joined {
        round: u64,
        answer: Result<JoinGroupResponse, KrafkaError>,
    },
    Synced {
        round: u64,
        answer: Result<SyncGroupResponse, KrafkaError>,
    },
    /// The heartbeat of this generation was answered, or not.
    Beaten {
        generation: i32,
        answer: Result<HeartbeatResponse, KrafkaError>,
    },
    /// A commit was refused: the coordinator does not know the member or its generation.
    Ousted(ErrorCode),
    /// The user has not polled for the maximum poll interval.
    Idle,
    /// The user polls again.
    Returned,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Action {
    /// Give all partitions up, and say `Released`. If they are lost, they may be another member's already.
    Release {
        lost: bool,
    },
    Join {
        round: u64,
        request: JoinGroupRequest,
    },
    /// Count the partitions of these topics, the group's, and find their racks; then say `Counted`.
    Count {
        round: u64,
        topics: BTreeSet<Str>,
    },
    Sync {
        round: u64,
        request: SyncGroupRequest,
    },
    Beat(HeartbeatRequest),
    Leave(LeaveGroupRequest),
    Assigned(Vec<(Str, i32)>),
    /// This member can be no member; the user must know.
    Failed(Complaint),
}

/// See the file's head.
#[derive(Debug)]
enum State {
    Outside,
    Releasing,
    Resting { until: Instant },
    Joining,
    Counting { members: Vec<Candidate>, skip: bool },
    Syncing,
    Stable,
    Failed,
}

#[derive(Debug)]
pub(crate) struct Member {
    config: MemberConfig,
    rng: Rng,
    state: State,
    identity: Identity,
    topics: BTreeSet<Str>,
    /// What `topics` was when it last joined.
    joined_for: BTreeSet<Str>,
    /// As leader: what the assignment was made from.
    counted: Option<Whereabouts>,
    /// Counts joins, so that an answer to an older one is not taken for this one's.
    round: u64,
    /// Joins in a row that failed.
    failures: u32,
    /// Why it joins, for the broker's log (KIP-800).
    reason: Str,
    beat: Beat,
    actions: VecDeque<Action>,
    now: Option<Instant>,
}

#[derive(Debug, Default)]
struct Beat {
    due: Option<Instant>,
    /// The session ends then, unless a heartbeat is answered before.
    session_ends: Option<Instant>,
    in_flight: bool,
}

impl Member {
    pub(crate) fn new(config: MemberConfig, rng: Rng) -> Self {
        let identity = Identity { group_instance_id: config.group_instance_id.clone(), ..Identity::outside() };
        Self {
            config,
            rng,
            state: State::Outside,
            identity,
            topics: BTreeSet::new(),
            joined_for: BTreeSet::new(),
            counted: None,
            round: 0,
            failures: 0,
            reason: Str::default(),
            beat: Beat::default(),
            actions: VecDeque::new(),
            now: None,
        }
    }

    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Whether it takes no part in the group.
    pub(crate) fn is_outside(&self) -> bool {
        matches!(self.state, State::Outside | State::Failed)
    }

    /// Whether it is something to it in which racks partitions are.
    pub(crate) fn minds_racks(&self) -> bool {
        self.config.rack.is_some()
    }

    /// Whether it has an assignment that holds.
    pub(crate) fn is_stable(&self) -> bool {
        matches!(self.state, State::Stable)
    }

    fn subscribed(&mut self, topics: BTreeSet<Str>) {
        self.topics = topics;
        match self.state {
            State::Outside | State::Failed => self.join("the consumer subscribes"),
            State::Stable if self.topics != self.joined_for => self.release("the subscription has changed"),
            // A join on its way is for other topics; the assignment that it brings is answered by another join.
            _ => {}
        }
    }

    fn unsubscribed(&mut self, reason: &'static str) {
        self.topics.clear();
        self.leave(reason);
    }

    /// Leaves, unless the member is static: its place is kept until it returns or its session ends.
    fn leave(&mut self, reason: &'static str) {
        if !self.is_outside() {
            let member_id = std::mem::take(&mut self.identity.member_id);
            self.send_leave(member_id, reason);
        }
        self.identity.generation = -1;
        self.beat = Beat::default();
        self.counted = None;
        self.state = State::Outside;
    }

    fn send_leave(&mut self, member_id: Str, reason: &'static str) {
        if member_id.is_empty() || self.identity.group_instance_id.is_some() {
            return;
        }
        self.actions.push_back(Action::Leave(LeaveGroupRequest {
            group_id: self.config.group_id.clone(),
            members: vec![MemberIdentity {
                member_id,
                group_instance_id: None,
                reason: Some(Str::from_static(reason)),
            }],
            ..LeaveGroupRequest::default()
        }));
    }

    /// Asks for the partitions to be given up in good order, then joins.
    fn release(&mut self, reason: &'static str) {
        self.reason = Str::from_static(reason);
        self.state = State::Releasing;
        self.actions.push_back(Action::Release { lost: false });
    }

    /// The group has given up on this member: so have the partitions been, already.
    fn lose(&mut self, reason: &'static str) {
        let was_told = matches!(self.state, State::Stable | State::Releasing);
        self.identity.generation = -1;
        self.beat = Beat::default();
        self.counted = None;
        if was_told {
            self.reason = Str::from_static(reason);
            self.state = State::Releasing;
            self.actions.push_back(Action::Release { lost: true });
        } else {
            self.join(reason);
        }
    }

    fn join(&mut self, reason: &'static str) {
        self.reason = Str::from_static(reason);
        self.send_join();
    }

    fn send_join(&mut self) {
        let subscription = Subscription {
            topics: self.topics.iter().cloned().collect(),
            rack_id: self.config.rack.clone(),
            ..Subscription::default()
        };
        let metadata = match subscription.to_bytes(HIGHEST_VERSION) {
            Ok(metadata) => metadata,
            Err(error) => {
                return self.fail(KrafkaError::config(format!("the subscription cannot be encoded: {error}")));
            }
        };
        self.joined_for = self.topics.clone();
        self.state = State::Joining;
        // While the coordinator holds the join, it does not expect heartbeats.
        self.beat = Beat::default();
        self.round += 1;
        let request = JoinGroupRequest {
            group_id: self.config.group_id.clone(),
            session_timeout_ms: millis(self.config.session_timeout),
            rebalance_timeout_ms: millis(self.config.rebalance_timeout),
            member_id: self.identity.member_id.clone(),
            group_instance_id: self.identity.group_instance_id.clone(),
            protocol_type: Str::from_static(PROTOCOL_TYPE),
            protocols: vec![JoinGroupRequestProtocol { name: Str::from_static(PROTOCOL), metadata }],
            reason: Some(self.reason.clone()),
        };
        self.actions.push_back(Action::Join { round: self.round, request });
    }

    fn rest(&mut self, now: Instant) {
        let until = now + self.config.backoff.delay(self.failures, &mut self.rng);
        self.failures = self.failures.saturating_add(1);
        self.state = State::Resting { until };
    }

    fn fail(&mut self, error: KrafkaError) {
        let had_partitions = matches!(self.state, State::Stable | State::Releasing);
        self.state = State::Failed;
        self.identity.generation = -1;
        self.identity.member_id = Str::default();
        self.beat = Beat::default();
        if had_partitions {
            self.actions.push_back(Action::Release { lost: true });
        }
        self.actions.push_back(Action::Failed(Complaint(error)));
    }

    fn joined(&mut self, round: u64, answer: Result<JoinGroupResponse, KrafkaError>, now: Instant) {
        if !matches!(self.state, State::Joining) || round != self.round {
            // It was given up while it was on its way. Nobody must wait for a member that will not come.
            if let Ok(response) = answer
                && response.member_id != self.identity.member_id
            {
                self.send_leave(response.member_id, "the consumer gave the join up");
            }
            return;
        }
        let response = match answer {
            Ok(response) => response,
            // The coordinator may have registered us; the next join names the same member if we know its id.
            Err(error) if error.is_retriable() => return self.rest(now),
            Err(error) => return self.fail(error),
        };
        match ErrorCode(response.error_code) {
            code if code.is_ok() => self.admitted(response, now),
            ErrorCode::MEMBER_ID_REQUIRED => {
                self.identity.member_id = response.member_id;
                self.send_join();
            }
            ErrorCode::UNKNOWN_MEMBER_ID => {
                self.identity.member_id = Str::default();
                if self.failures == 0 {
                    self.failures = 1;
                    self.send_join();
                } else {
                    self.rest(now);
                }
            }
            code @ (ErrorCode::REBALANCE_IN_PROGRESS | ErrorCode::ILLEGAL_GENERATION) => {
                tracing::debug!(group = %self.config.group_id, code = code.name(), "joining again");
                self.rest(now);
            }
            code if code.is_retriable() => self.rest(now),
            code => self.fail(self.refused(code, "joining")),
        }
    }

    fn admitted(&mut self, response: JoinGroupResponse, now: Instant) {
        self.identity.generation = response.generation_id;
        self.identity.member_id = response.member_id.clone();
        if response.leader != response.member_id {
            self.counted = None;
            return self.sync(Vec::new());
        }
        let candidates = response.members.into_iter().map(|member| {
            let subscription = Subscription::from_bytes(member.metadata)?;
            let (member_id, group_instance_id) = (member.member_id, member.group_instance_id);
            let rack = subscription.rack_id.filter(|rack| !rack.is_empty());
            Ok(Candidate { member_id, group_instance_id, rack, topics: subscription.topics })
        });
        match candidates.collect::<Result<Vec<_>, krafka_protocol::DecodeError>>() {
            Ok(members) => {
                let topics = members.iter().flat_map(|member| member.topics.iter().cloned()).collect();
                self.state = State::Counting { members, skip: response.skip_assignment };
                self.actions.push_back(Action::Count { round: self.round, topics });
            }
            Err(error) => {
                tracing::warn!(group = %self.config.group_id, %error, "a member's subscription does not decode");
                self.rest(now);
            }
        }
    }

    fn counted(&mut self, round: u64, counts: Whereabouts) {
        if round != self.round {
            return;
        }
        let (members, skip) = match std::mem::replace(&mut self.state, State::Outside) {
            State::Counting { members, skip } => (members, skip),
            state => return self.state = state,
        };
        let shares = range(&members, &counts.placement());
        self.counted = Some(counts);
        // A static leader that returns is told to leave the assignment as it is (KIP-814).
        let assignments = if skip { Ok(Vec::new()) } else { shares.into_iter().map(encode).collect() };
        match assignments {
            Ok(assignments) => self.sync(assignments),
            Err(error) => self.fail(KrafkaError::config(format!("the assignment cannot be encoded: {error}"))),
        }
    }

    /// Whether racks have changed matters to a leader that has one itself, as in Java.
    fn recounted(&mut self, counts: &Whereabouts) {
        let Some(before) = self.counted.as_ref().filter(|_| matches!(self.state, State::Stable)) else { return };
        if !before.is_as_large_as(counts) {
            self.release("the partitions of the group's topics have changed");
        } else if self.minds_racks() && !before.is_equivalent_to(counts) {
            self.release("the racks of the group's partitions have changed");
        }
    }

    fn sync(&mut self, assignments: Vec<SyncGroupRequestAssignment>) {
        self.state = State::Syncing;
        let request = SyncGroupRequest {
            group_id: self.config.group_id.clone(),
            generation_id: self.identity.generation,
            member_id: self.identity.member_id.clone(),
            group_instance_id: self.identity.group_instance_id.clone(),
            protocol_type: Some(Str::from_static(PROTOCOL_TYPE)),
            protocol_name: Some(Str::from_static(PROTOCOL)),
            assignments,
        };
        self.actions.push_back(Action::Sync { round: self.round, request });
    }

    fn synced(&mut self, round: u64, answer: Result<SyncGroupResponse, KrafkaError>, now: Instant) {
        if !matches!(self.state, State::Syncing) || round != self.round {
            return;
        }
        let response = match answer {
            Ok(response) => response,
            Err(error) if error.is_retriable() => return self.rest(now),
            Err(error) => return self.fail(error),
        };
        match ErrorCode(response.error_code) {
            code if code.is_ok() => match Assignment::from_bytes(response.assignment) {
                Ok(assignment) => self.assigned(&assignment, now),
                Err(error) => {
                    tracing::warn!(group = %self.config.group_id, %error, "the assignment does not decode");
                    self.rest(now);
                }
            },
            ErrorCode::REBALANCE_IN_PROGRESS => self.join("the group rebalanced again"),
            ErrorCode::UNKNOWN_MEMBER_ID => {
                self.identity =
                    Identity { group_instance_id: self.identity.group_instance_id.clone(), ..Identity::outside() };
                self.rest(now);
            }
            ErrorCode::ILLEGAL_GENERATION => self.rest(now),
            code if code.is_retriable() => self.rest(now),
            code => self.fail(self.refused(code, "syncing")),
        }
    }

    fn assigned(&mut self, assignment: &Assignment, now: Instant) {
        self.state = State::Stable;
        self.failures = 0;
        self.beat.due = Some(now + self.config.heartbeat_interval);
        self.beat.session_ends = Some(now + self.config.session_timeout);
        let partitions = assignment.assigned_partitions.iter();
        let partitions = partitions.flat_map(|topic| topic.partitions.iter().map(|&p| (topic.topic.clone(), p)));
        self.actions.push_back(Action::Assigned(partitions.collect()));
        if self.topics != self.joined_for {
            self.release("the subscription has changed");
        }
    }

    fn beaten(&mut self, generation: i32, answer: Result<HeartbeatResponse, KrafkaError>, now: Instant) {
        // An answer about an older generation says nothing about this one.
        if generation != self.identity.generation || !matches!(self.state, State::Stable | State::Releasing) {
            return;
        }
        self.beat.in_flight = false;
        match answer.map(|response| ErrorCode(response.error_code)) {
            Ok(code) if code.is_ok() => self.alive(now),
            Ok(ErrorCode::REBALANCE_IN_PROGRESS) => {
                self.alive(now);
                if matches!(self.state, State::Stable) {
                    self.release("the group rebalances");
                }
            }
            Ok(
                code @ (ErrorCode::UNKNOWN_MEMBER_ID | ErrorCode::ILLEGAL_GENERATION | ErrorCode::FENCED_INSTANCE_ID),
            ) => {
                self.ousted(code);
            }
            Ok(code) if !code.is_retriable() => self.fail(self.refused(code, "sending a heartbeat")),
            Err(error) if !error.is_retriable() => self.fail(error),
            // The coordinator has moved or does not answer: asked again soon, for as long as the session lasts.
            Ok(_) | Err(_) => self.beat.due = Some(now + self.config.backoff.delay(0, &mut self.rng)),
        }
    }

    fn alive(&mut self, now: Instant) {
        self.beat.due = Some(now + self.config.heartbeat_interval);
        self.beat.session_ends = Some(now + self.config.session_timeout);
    }

    fn ousted(&mut self, code: ErrorCode) {
        if !matches!(self.state, State::Stable | State::Releasing) {
            return;
        }
        match code {
            ErrorCode::FENCED_INSTANCE_ID => self.fail(self.refused(code, "speaking as a static member")),
            ErrorCode::UNKNOWN_MEMBER_ID => {
                self.identity.member_id = Str::default();
                self.lose("the group has forgotten this member");
            }
            _ => self.lose("the group has moved on without this member"),
        }
    }

    #[cold]
    fn refused(&self, code: ErrorCode, doing: &str) -> KrafkaError {
        refusal::of(code, doing, &self.config)
    }

    fn tick(&mut self, now: Instant) {
        if let State::Resting { until } = self.state
            && until <= now
        {
            self.send_join();
        }
        if !matches!(self.state, State::Stable | State::Releasing) || self.identity.generation < 0 {
            return;
        }
        if self.beat.session_ends.is_some_and(|end| end <= now) {
            // The coordinator has taken our partitions by now, whatever a late answer will say.
            return self.lose("no heartbeat was answered for the session timeout");
        }
        if self.beat.due.is_some_and(|due| due <= now) && !self.beat.in_flight {
            self.beat.due = None;
            self.beat.in_flight = true;
            self.actions.push_back(Action::Beat(HeartbeatRequest {
                group_id: self.config.group_id.clone(),
                generation_id: self.identity.generation,
                member_id: self.identity.member_id.clone(),
                group_instance_id: self.identity.group_instance_id.clone(),
            }));
        }
    }
}

impl Machine for Member {
    type Input = Input;
    type Action = Action;

    fn handle(&mut self, input: Input, now: Instant) {
        self.now = Some(now);
        match input {
            Input::Subscribed(topics) => self.subscribed(topics),
            Input::Unsubscribed => self.unsubscribed("the consumer unsubscribed or was closed"),
            Input::Counted { round, counts } => self.counted(round, counts),
            Input::Recounted(counts) => self.recounted(&counts),
            Input::Released if matches!(self.state, State::Releasing) => self.send_join(),
            Input::Released => {}
            Input::Joined { round, answer } => self.joined(round, answer, now),
            Input::Synced { round, answer } => self.synced(round, answer, now),
            Input::Beaten { generation, answer } => self.beaten(generation, answer, now),
            Input::Ousted(code) => self.ousted(code),
            Input::Idle => {
                if !self.is_outside() {
                    self.leave("the application did not poll within the maximum poll interval");
                    self.actions.push_back(Action::Release { lost: true });
                }
            }
            Input::Returned => {
                if matches!(self.state, State::Outside) && !self.topics.is_empty() {
                    self.join("the application polls again");
                }
            }
        }
    }

    fn poll(&mut self, now: Instant) -> Option<Action> {
        self.now = Some(now);
        if self.actions.is_empty() {
            self.tick(now);
        }
        self.actions.pop_front()
    }

    fn deadline(&self) -> Option<Instant> {
        let due = self.beat.due.filter(|_| !self.beat.in_flight);
        let times = match self.state {
            State::Resting { until } => [Some(until), None],
            State::Stable | State::Releasing => [due, self.beat.session_ends],
            _ => [None, None],
        };
        times.into_iter().flatten().filter(|&time| self.now.is_none_or(|now| time > now)).min()
    }
}

fn encode(
    (member_id, topics): (Str, BTreeMap<Str, Vec<i32>>),
) -> Result<SyncGroupRequestAssignment, krafka_protocol::EncodeError> {
    let topics = topics.into_iter().map(|(topic, partitions)| TopicPartition { topic, partitions });
    let assignment = Assignment { assigned_partitions: topics.collect(), user_data: None };
    Ok(SyncGroupRequestAssignment { member_id, assignment: assignment.to_bytes(HIGHEST_VERSION)? })
}

fn millis(duration: std::time::Duration) -> i32 {
    i32::try_from(duration.as_millis()).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests;
