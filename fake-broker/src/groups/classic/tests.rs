//! The classic group, driven through [`Groups`] without a wire.

mod laws;

use std::time::{Duration, Instant};

use krafka_protocol::api::join_group::{JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse};
use krafka_protocol::api::leave_group::{LeaveGroupRequest, MemberIdentity};
use krafka_protocol::api::sync_group::{SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse};
use krafka_protocol::{AnyResponse, Bytes, ErrorCode, HeartbeatRequest, Str};

use crate::config::Config;
use crate::context::RequestId;
use crate::groups::{Caller, Committer, GroupState, GroupView, Groups, Image};
use crate::nodes::Nodes;
use crate::topics::Topics;

const GROUP: Str = Str::from_static("g");
const NEWEST: i16 = 9;
const SESSION: Duration = Duration::from_secs(10);
const REBALANCE: Duration = Duration::from_secs(60);

/// A coordinator with a clock.
struct Desk {
    topics: Topics,
    nodes: Nodes,
    groups: Groups,
    now: Instant,
    next: u64,
}

/// A JoinGroup or SyncGroup that was sent.
#[derive(Clone, Copy)]
struct Sent(RequestId);

#[expect(clippy::disallowed_methods, reason = "a test may begin at any time")]
fn some_time() -> Instant {
    Instant::now()
}

impl Desk {
    fn new() -> Self {
        Self::with(Config::default())
    }

    fn with(config: Config) -> Self {
        Self {
            topics: Topics::default(),
            nodes: Nodes::default(),
            groups: Groups::new(config.into()),
            now: some_time(),
            next: 0,
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.groups.expire(&Image::of(&self.topics, &self.nodes, -1), &GROUP, self.now);
    }

    fn send(&mut self) -> Sent {
        self.next += 1;
        Sent(RequestId(self.next))
    }

    fn join_as(&mut self, version: i16, change: impl FnOnce(&mut JoinGroupRequest)) -> Sent {
        let mut request = JoinGroupRequest {
            group_id: GROUP,
            session_timeout_ms: SESSION.as_millis() as i32,
            rebalance_timeout_ms: REBALANCE.as_millis() as i32,
            protocol_type: Str::from_static("consumer"),
            protocols: vec![protocol("range", "about me")],
            ..JoinGroupRequest::default()
        };
        change(&mut request);
        let sent = self.send();
        let caller = Caller { client_id: Str::from("c"), client_host: Str::from("/h"), version };
        self.groups.join(&Image::of(&self.topics, &self.nodes, -1), &caller, &request, sent.0, self.now);
        self.groups.expire(&Image::of(&self.topics, &self.nodes, -1), &GROUP, self.now);
        sent
    }

    fn rejoin(&mut self, id: &Str) -> Sent {
        self.join_as(NEWEST, |r| r.member_id = id.clone())
    }

    fn join_static(&mut self, version: i16, instance: &'static str) -> Sent {
        self.join_as(version, |r| r.group_instance_id = Some(Str::from_static(instance)))
    }

    /// Takes both steps of a new dynamic member; the second is parked.
    fn arrive(&mut self) -> (Str, Sent) {
        let first = self.join_as(NEWEST, |_| {});
        let refusal = self.joined(first).expect("answered at once");
        assert_eq!(refusal.error_code, ErrorCode::MEMBER_ID_REQUIRED.0);
        let sent = self.rejoin(&refusal.member_id);
        (refusal.member_id, sent)
    }

    /// A stable group of so many members; the first is the leader.
    fn stable(&mut self, count: usize) -> Vec<Str> {
        let mut ids = Vec::new();
        for _ in 0..count {
            let (id, _) = self.arrive();
            for other in ids.clone() {
                self.rejoin(&other);
            }
            ids.push(id);
        }
        self.sync_all(&ids);
        assert_eq!(self.view().state, GroupState::Stable);
        self.groups.answers.clear();
        ids
    }

    fn sync_all(&mut self, ids: &[Str]) {
        let leader = self.view().leader.expect("there are members");
        for id in ids.iter().filter(|id| **id != leader) {
            self.sync(id, &[]);
        }
        let shares: Vec<(&Str, &'static str)> = ids.iter().map(|id| (id, "share")).collect();
        self.sync(&leader, &shares);
    }

    fn sync(&mut self, id: &Str, assignments: &[(&Str, &'static str)]) -> Sent {
        let generation = self.view().generation;
        self.sync_as(id, generation, assignments)
    }

    fn sync_as(&mut self, id: &Str, generation: i32, assignments: &[(&Str, &'static str)]) -> Sent {
        let assignments = assignments.iter().map(|(id, assignment)| SyncGroupRequestAssignment {
            member_id: (*id).clone(),
            assignment: Bytes::from_static(assignment.as_bytes()),
        });
        let request = SyncGroupRequest {
            group_id: GROUP,
            generation_id: generation,
            member_id: id.clone(),
            assignments: assignments.collect(),
            ..SyncGroupRequest::default()
        };
        let sent = self.send();
        let caller = Caller { version: 5, ..Caller::default() };
        self.groups.sync(&Image::of(&self.topics, &self.nodes, -1), &caller, &request, sent.0, self.now);
        sent
    }

    fn heartbeat(&mut self, id: &Str) -> ErrorCode {
        let generation = self.view().generation;
        self.heartbeat_as(id, generation, None)
    }

    fn heartbeat_as(&mut self, id: &Str, generation_id: i32, instance: Option<&str>) -> ErrorCode {
        let group_instance_id = instance.map(Str::from);
        let request = HeartbeatRequest { group_id: GROUP, generation_id, member_id: id.clone(), group_instance_id };
        self.groups.heartbeat(&Image::of(&self.topics, &self.nodes, -1), &request, self.now)
    }

    fn leave(&mut self, id: &str, instance: Option<&str>) -> ErrorCode {
        let identity = MemberIdentity {
            member_id: Str::from(id),
            group_instance_id: instance.map(Str::from),
            ..MemberIdentity::default()
        };
        let request = LeaveGroupRequest { group_id: GROUP, members: vec![identity], ..LeaveGroupRequest::default() };
        let response = self.groups.leave(
            &Image::of(&self.topics, &self.nodes, -1),
            &Caller { version: 5, ..Caller::default() },
            &request,
            self.now,
        );
        ErrorCode(response.members[0].error_code)
    }

    fn commit(&mut self, id: &str, generation: i32) -> ErrorCode {
        let by = Committer {
            group_id: &GROUP,
            member_id: &Str::from(id),
            instance_id: None,
            epoch: generation,
            version: 9,
            is_transactional: false,
        };
        let checked = self.groups.check_commit(&Image::of(&self.topics, &self.nodes, -1), &by, self.now);
        checked.map_or_else(|refusal| refusal.error, |_| ErrorCode::NONE)
    }

    fn answer(&mut self, sent: Sent) -> Option<AnyResponse> {
        let index = self.groups.answers.iter().position(|answer| answer.request == sent.0)?;
        Some(self.groups.answers.remove(index).response)
    }

    fn joined(&mut self, sent: Sent) -> Option<JoinGroupResponse> {
        self.answer(sent).map(|answer| match answer {
            AnyResponse::JoinGroup(response) => response,
            other => panic!("not an answer to JoinGroup: {other:?}"),
        })
    }

    fn synced(&mut self, sent: Sent) -> Option<SyncGroupResponse> {
        self.answer(sent).map(|answer| match answer {
            AnyResponse::SyncGroup(response) => response,
            other => panic!("not an answer to SyncGroup: {other:?}"),
        })
    }

    fn join_error(&mut self, sent: Sent) -> ErrorCode {
        ErrorCode(self.joined(sent).expect("an answer").error_code)
    }

    fn sync_error(&mut self, sent: Sent) -> ErrorCode {
        ErrorCode(self.synced(sent).expect("an answer").error_code)
    }

    fn view(&self) -> GroupView {
        self.groups.view(&Image::of(&self.topics, &self.nodes, -1), &GROUP).expect("the group exists")
    }
}

fn protocol(name: &'static str, metadata: &'static str) -> JoinGroupRequestProtocol {
    JoinGroupRequestProtocol { name: Str::from_static(name), metadata: Bytes::from_static(metadata.as_bytes()) }
}

#[test]
fn new_member_must_come_back_with_its_id() {
    let mut desk = Desk::new();

    let (id, sent) = desk.arrive();

    let joined = desk.joined(sent).expect("it is alone");
    assert_eq!((joined.error_code, joined.generation_id), (0, 1));
    assert_eq!((&joined.leader, joined.members.len()), (&id, 1));
    assert!(id.starts_with("c-") && id.len() == "c-".len() + 36, "{id}");
    assert_eq!(desk.view().state, GroupState::CompletingRebalance);
}

#[test]
fn pending_member_is_forgotten_after_its_session_timeout() {
    let mut desk = Desk::new();
    let first = desk.join_as(NEWEST, |_| {});
    let id = desk.joined(first).expect("refused").member_id;

    desk.pass(SESSION);

    let second = desk.rejoin(&id);
    assert_eq!(desk.join_error(second), ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn old_versions_join_in_one_step() {
    let mut desk = Desk::new();

    let sent = desk.join_as(3, |_| {});

    assert_eq!(desk.joined(sent).expect("alone").generation_id, 1);
}

#[test]
fn join_waits_for_all_members_and_only_the_leader_sees_them() {
    let mut desk = Desk::new();
    let leader = desk.stable(1).remove(0);

    let (follower, waiting) = desk.arrive();
    assert!(desk.joined(waiting).is_none());
    assert_eq!(desk.heartbeat(&leader), ErrorCode::REBALANCE_IN_PROGRESS);
    let rejoined = desk.rejoin(&leader);

    let (of_leader, of_follower) = (desk.joined(rejoined).expect("all"), desk.joined(waiting).expect("all"));
    assert_eq!((of_leader.generation_id, of_follower.generation_id), (2, 2));
    assert_eq!((&of_leader.leader, &of_follower.leader), (&leader, &leader));
    assert_eq!(of_leader.members.len(), 2);
    assert_eq!(of_leader.members[1].member_id, follower);
    assert_eq!(of_leader.members[1].metadata, "about me");
    assert!(of_follower.members.is_empty());
}

#[test]
fn members_that_do_not_rejoin_in_time_are_out() {
    let mut desk = Desk::new();
    let ids = desk.stable(2);
    let (newcomer, waiting) = desk.arrive();
    let rejoined = desk.rejoin(&ids[1]);
    for _ in 0..11 {
        desk.pass(REBALANCE / 12);
        assert_eq!(desk.heartbeat(&ids[0]), ErrorCode::REBALANCE_IN_PROGRESS, "alive, but slow");
    }
    assert!(desk.joined(waiting).is_none());

    desk.pass(REBALANCE / 12);

    let leader = desk.joined(rejoined).expect("time is up").leader;
    assert_eq!(leader, ids[1], "the leader was the slow one");
    let left: Vec<Str> = desk.view().members.into_iter().map(|m| m.id).collect();
    assert_eq!(left, [ids[1].clone(), newcomer]);
}

#[test]
fn syncs_wait_for_the_leader_who_may_leave_members_out() {
    let mut desk = Desk::new();
    let leader = desk.stable(1).remove(0);
    let (follower, _) = desk.arrive();
    desk.rejoin(&leader);

    let waiting = desk.sync(&follower, &[]);
    assert!(desk.synced(waiting).is_none());
    let leading = desk.sync(&leader, &[(&leader, "all of it")]);

    assert_eq!(desk.synced(leading).expect("known").assignment, "all of it");
    let empty = desk.synced(waiting).expect("known");
    assert_eq!((empty.error_code, empty.assignment.len()), (0, 0));
    let again = desk.sync(&leader, &[]);
    assert_eq!(desk.synced(again).expect("stable").assignment, "all of it");
}

#[test]
fn member_that_never_syncs_is_out() {
    let mut desk = Desk::new();
    let leader = desk.stable(1).remove(0);
    let (silent, _) = desk.arrive();
    desk.rejoin(&leader);
    desk.sync(&leader, &[]);
    assert_eq!(desk.view().state, GroupState::Stable);
    for _ in 0..12 {
        desk.pass(REBALANCE / 12);
        desk.heartbeat(&leader);
        desk.heartbeat(&silent);
    }

    assert_eq!(desk.view().state, GroupState::PreparingRebalance);
    assert_eq!(desk.heartbeat(&silent), ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn session_ends_without_heartbeats_but_not_while_the_answer_waits() {
    let mut desk = Desk::new();
    let ids = desk.stable(2);
    let (_, _) = desk.arrive();
    let parked = desk.rejoin(&ids[1]);
    for _ in 0..3 {
        desk.pass(SESSION / 2);
        desk.heartbeat(&ids[0]);
    }
    assert!(desk.joined(parked).is_none(), "still a member, still waiting");

    desk.pass(SESSION);

    assert!(desk.joined(parked).is_some(), "the other was lost, so all are there");
    assert_eq!(desk.heartbeat(&ids[0]), ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn heartbeat_is_checked_against_member_and_generation() {
    let mut desk = Desk::new();
    let id = desk.stable(1).remove(0);

    assert_eq!(desk.heartbeat(&id), ErrorCode::NONE);
    assert_eq!(desk.heartbeat_as(&id, 7, None), ErrorCode::ILLEGAL_GENERATION);
    assert_eq!(desk.heartbeat_as(&Str::from("x"), 1, None), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(desk.heartbeat_as(&id, 1, Some("nobody")), ErrorCode::UNKNOWN_MEMBER_ID);
}

#[test]
fn sync_is_checked_against_member_generation_and_state() {
    let mut desk = Desk::new();
    let id = desk.stable(1).remove(0);

    let stale = desk.sync_as(&id, 0, &[]);
    let stranger = desk.sync(&Str::from("x"), &[]);
    assert_eq!(desk.sync_error(stale), ErrorCode::ILLEGAL_GENERATION);
    assert_eq!(desk.sync_error(stranger), ErrorCode::UNKNOWN_MEMBER_ID);

    desk.arrive();
    let early = desk.sync(&id, &[]);
    assert_eq!(desk.sync_error(early), ErrorCode::REBALANCE_IN_PROGRESS);
}

#[test]
fn rebalance_ends_the_wait_for_an_assignment() {
    let mut desk = Desk::new();
    let leader = desk.stable(1).remove(0);
    let (follower, _) = desk.arrive();
    desk.rejoin(&leader);
    let waiting = desk.sync(&follower, &[]);

    desk.arrive();

    assert_eq!(desk.sync_error(waiting), ErrorCode::REBALANCE_IN_PROGRESS);
}

#[test]
fn unchanged_follower_rejoins_without_a_rebalance_and_the_leader_forces_one() {
    let mut desk = Desk::new();
    let ids = desk.stable(2);

    let follower = desk.rejoin(&ids[1]);
    let answer = desk.joined(follower).expect("at once");
    assert_eq!((answer.error_code, answer.generation_id), (0, desk.view().generation));
    assert_eq!(desk.view().state, GroupState::Stable);

    let leader = desk.rejoin(&ids[0]);
    assert!(desk.joined(leader).is_none());
    assert_eq!(desk.view().state, GroupState::PreparingRebalance);
}

#[test]
fn changed_follower_forces_a_rebalance() {
    let mut desk = Desk::new();
    let ids = desk.stable(2);

    desk.join_as(NEWEST, |r| {
        r.member_id = ids[1].clone();
        r.protocols = vec![protocol("range", "about somebody else")];
    });

    assert_eq!(desk.view().state, GroupState::PreparingRebalance);
}

#[test]
fn protocol_must_be_common_and_the_majority_chooses() {
    let mut desk = Desk::new();
    let both = |r: &mut JoinGroupRequest| r.protocols = vec![protocol("sticky", ""), protocol("range", "")];
    let first = desk.join_as(3, |r| r.protocols = vec![protocol("range", ""), protocol("sticky", "")]);
    let first = desk.joined(first).expect("alone").member_id;

    let foreign = desk.join_as(3, |r| r.protocols = vec![protocol("other", "")]);
    assert_eq!(desk.join_error(foreign), ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    let other_type = desk.join_as(3, |r| r.protocol_type = Str::from("connect"));
    assert_eq!(desk.join_error(other_type), ErrorCode::INCONSISTENT_GROUP_PROTOCOL);

    desk.join_as(3, both);
    desk.join_as(3, both);
    let last = desk.join_as(3, |r| {
        r.member_id = first.clone();
        r.protocols = vec![protocol("range", ""), protocol("sticky", "")];
    });
    assert_eq!(desk.joined(last).expect("all").protocol_name.as_deref(), Some("sticky"));
}

#[test]
fn leaving_members_are_answered_one_by_one() {
    let mut desk = Desk::new();
    let ids = desk.stable(2);

    assert_eq!(desk.leave("x", None), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(desk.leave(&ids[0], None), ErrorCode::NONE);
    assert_eq!(desk.view().leader, Some(ids[1].clone()));
    assert_eq!(desk.view().state, GroupState::PreparingRebalance);
    assert_eq!(desk.leave(&ids[1], None), ErrorCode::NONE);
    assert_eq!(desk.view().state, GroupState::Empty);
}

#[test]
fn static_member_takes_its_place_again_without_a_rebalance() {
    let mut desk = Desk::new();
    let first = desk.join_static(NEWEST, "one");
    let old = desk.joined(first).expect("alone").member_id;
    desk.sync(&old, &[(&old, "share")]);

    let second = desk.join_static(NEWEST, "one");
    let answer = desk.joined(second).expect("at once");

    assert_ne!(answer.member_id, old);
    assert!(answer.member_id.starts_with("one-"));
    assert!(answer.skip_assignment, "it leads, but must not assign");
    assert_eq!((answer.generation_id, answer.members.len()), (1, 1));
    assert_eq!(desk.view().state, GroupState::Stable);
    assert_eq!(desk.heartbeat_as(&old, 1, Some("one")), ErrorCode::FENCED_INSTANCE_ID);
    let sync = desk.sync(&answer.member_id, &[]);
    assert_eq!(desk.synced(sync).expect("stable").assignment, "share");
}

#[test]
fn older_static_leader_is_told_of_its_former_self() {
    let mut desk = Desk::new();
    let first = desk.join_static(8, "one");
    let old = desk.joined(first).expect("alone").member_id;
    desk.sync(&old, &[(&old, "share")]);

    let second = desk.join_static(8, "one");

    let answer = desk.joined(second).expect("at once");
    assert_eq!((answer.leader, answer.members.len()), (old, 0));
}

#[test]
fn static_twin_fences_the_one_that_waits() {
    let mut desk = Desk::new();
    let id = desk.stable(1).remove(0);
    let waiting = desk.join_static(NEWEST, "one");

    let twin = desk.join_static(NEWEST, "one");

    assert_eq!(desk.join_error(waiting), ErrorCode::FENCED_INSTANCE_ID);
    desk.rejoin(&id);
    assert_eq!(desk.join_error(twin), ErrorCode::NONE);
}

#[test]
fn static_member_that_is_slow_to_rejoin_stays() {
    let mut desk = Desk::new();
    let first = desk.join_static(NEWEST, "one");
    let slow = desk.joined(first).expect("alone").member_id;
    desk.sync(&slow, &[]);
    let (_, waiting) = desk.arrive();
    for _ in 0..12 {
        desk.pass(REBALANCE / 12);
        desk.heartbeat(&slow);
    }

    assert_ne!(desk.joined(waiting).expect("time is up").leader, slow);
    assert_eq!(desk.view().members.len(), 2);
}

#[test]
fn administrator_removes_a_static_member_by_its_name() {
    let mut desk = Desk::new();
    let first = desk.join_static(NEWEST, "one");
    desk.joined(first).expect("alone");

    assert_eq!(desk.leave("", Some("two")), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(desk.leave("someone", Some("one")), ErrorCode::FENCED_INSTANCE_ID);
    assert_eq!(desk.leave("", Some("one")), ErrorCode::NONE);
    assert_eq!(desk.view().state, GroupState::Empty);
}

#[test]
fn commits_need_the_present_generation() {
    let mut desk = Desk::new();
    assert_eq!(desk.commit("", 1), ErrorCode::GROUP_ID_NOT_FOUND);
    assert_eq!(desk.commit("", -1), ErrorCode::NONE, "nobody's group");
    let (id, _) = desk.arrive();
    assert_eq!(desk.commit(&id, 1), ErrorCode::REBALANCE_IN_PROGRESS, "completing");
    desk.sync(&id, &[]);

    assert_eq!(desk.commit(&id, 1), ErrorCode::NONE);
    assert_eq!(desk.commit(&id, 0), ErrorCode::ILLEGAL_GENERATION);
    assert_eq!(desk.commit("x", 1), ErrorCode::UNKNOWN_MEMBER_ID);
    assert_eq!(desk.commit("", -1), ErrorCode::UNKNOWN_MEMBER_ID, "an outsider");
    desk.arrive();
    assert_eq!(desk.commit(&id, 1), ErrorCode::NONE, "the last chance before joining again");
}

#[test]
fn commit_keeps_the_session_alive() {
    let mut desk = Desk::new();
    let id = desk.stable(1).remove(0);
    for _ in 0..4 {
        desk.pass(SESSION / 2);
        assert_eq!(desk.commit(&id, 1), ErrorCode::NONE);
    }

    assert_eq!(desk.heartbeat(&id), ErrorCode::NONE);
}

#[test]
fn first_members_are_waited_for() {
    let delay = Duration::from_secs(3);
    let mut desk = Desk::with(Config { group_initial_rebalance_delay: delay, ..Config::default() });
    let (_, first) = desk.arrive();
    desk.pass(delay / 2);
    let (_, second) = desk.arrive();
    desk.pass(delay / 2);
    assert!(desk.joined(first).is_none(), "the second one earned another delay");

    desk.pass(delay);

    assert_eq!(desk.joined(first).expect("time is up").members.len(), 2);
    assert_eq!(desk.joined(second).expect("time is up").generation_id, 1);
}

#[test]
fn full_group_refuses_newcomers_only() {
    let mut desk = Desk::with(Config { group_max_size: 1, ..Config::default() });
    let id = desk.stable(1).remove(0);

    let newcomer = desk.join_as(NEWEST, |_| {});
    assert_eq!(desk.join_error(newcomer), ErrorCode::GROUP_MAX_SIZE_REACHED);
    let member = desk.rejoin(&id);
    assert_eq!(desk.join_error(member), ErrorCode::NONE);
}

#[test]
fn next_coordinator_reads_the_last_stable_generation() {
    let mut desk = Desk::new();
    let ids = desk.stable(2);
    let generation = desk.view().generation;
    let (newcomer, waiting) = desk.arrive();

    desk.groups.reload(&Image::of(&desk.topics, &desk.nodes, -1), &GROUP, desk.now);

    assert_eq!(desk.join_error(waiting), ErrorCode::NOT_COORDINATOR);
    assert_eq!((desk.view().state, desk.view().generation), (GroupState::Stable, generation));
    assert_eq!(desk.heartbeat(&ids[0]), ErrorCode::NONE);
    assert_eq!(desk.heartbeat(&newcomer), ErrorCode::UNKNOWN_MEMBER_ID);
    let again = desk.sync(&ids[1], &[]);
    assert_eq!(desk.synced(again).expect("stable").assignment, "share");
    desk.pass(SESSION);
    assert_eq!(desk.view().state, GroupState::Empty, "nobody came over");
}
