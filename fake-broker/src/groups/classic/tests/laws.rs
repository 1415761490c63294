//! Laws of the classic group, whatever its members do.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use krafka_protocol::api::join_group::{JoinGroupRequest, JoinGroupRequestProtocol};
use krafka_protocol::api::leave_group::{LeaveGroupRequest, MemberIdentity};
use krafka_protocol::api::sync_group::SyncGroupRequest;
use krafka_protocol::{AnyResponse, Bytes, HeartbeatRequest, Str};
use proptest::prelude::*;

use crate::config::Config;
use crate::context::RequestId;
use crate::groups::{Caller, Group, GroupState, Groups, Image};
use crate::nodes::Nodes;
use crate::topics::Topics;

const GROUP: Str = Str::from_static("g");
const INSTANCES: [&str; 2] = ["one", "two"];

/// What somebody does. Members are numbered in the order in which their ids became known.
#[derive(Clone, Debug)]
enum Step {
    Arrive { session_ms: i32, rebalance_ms: i32 },
    ArriveStatic(usize),
    Rejoin { member: usize, metadata: u8 },
    Sync(usize),
    Heartbeat(usize),
    Leave(usize),
    Pass(u64),
    Reload,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let member = 0..8_usize;
    let arrivals =
        (6_000..30_000, 0..60_000).prop_map(|(session_ms, rebalance_ms)| Step::Arrive { session_ms, rebalance_ms });
    let step = prop_oneof![
        2 => arrivals,
        1 => (0..INSTANCES.len()).prop_map(Step::ArriveStatic),
        6 => (member.clone(), 0..2_u8).prop_map(|(member, metadata)| Step::Rejoin { member, metadata }),
        6 => member.clone().prop_map(Step::Sync),
        3 => member.clone().prop_map(Step::Heartbeat),
        1 => member.prop_map(Step::Leave),
        3 => (0..40_000_u64).prop_map(Step::Pass),
        1 => Just(Step::Reload),
    ];
    prop::collection::vec(step, 0..60)
}

struct Run {
    topics: Topics,
    nodes: Nodes,
    groups: Groups,
    now: Instant,
    next: u64,
    ids: Vec<Str>,
    answered: BTreeSet<RequestId>,
}

impl Run {
    fn take(&mut self, step: Step) {
        let id = |run: &Self, member: usize| run.ids.get(member).cloned().unwrap_or_default();
        let generation =
            self.groups.view(&Image::of(&self.topics, &self.nodes, -1), &GROUP).map_or(0, |view| view.generation);
        match step {
            Step::Arrive { session_ms, rebalance_ms } => self.join(|r| {
                r.session_timeout_ms = session_ms;
                r.rebalance_timeout_ms = rebalance_ms;
            }),
            Step::ArriveStatic(instance) => self.join(|r| r.group_instance_id = Some(INSTANCES[instance].into())),
            Step::Rejoin { member, metadata } => {
                let member_id = id(self, member);
                let instance = INSTANCES.into_iter().find(|name| member_id.starts_with(name));
                self.join(|r| {
                    r.member_id = member_id;
                    r.group_instance_id = instance.map(Str::from);
                    r.protocols[0].metadata = Bytes::copy_from_slice(&[metadata]);
                });
            }
            Step::Sync(member) => {
                let member_id = id(self, member);
                let request = SyncGroupRequest {
                    group_id: GROUP,
                    generation_id: generation,
                    member_id,
                    group_instance_id: None,
                    protocol_type: None,
                    protocol_name: None,
                    assignments: Vec::new(),
                };
                let request_id = self.request();
                self.groups.sync(
                    &Image::of(&self.topics, &self.nodes, -1),
                    &Caller::default(),
                    &request,
                    request_id,
                    self.now,
                );
            }
            Step::Heartbeat(member) => {
                let (member_id, group_instance_id) = (id(self, member), None);
                let request =
                    HeartbeatRequest { group_id: GROUP, generation_id: generation, member_id, group_instance_id };
                self.groups.heartbeat(&Image::of(&self.topics, &self.nodes, -1), &request, self.now);
            }
            Step::Leave(member) => {
                let identity = MemberIdentity { member_id: id(self, member), group_instance_id: None, reason: None };
                let request = LeaveGroupRequest { group_id: GROUP, members: vec![identity], ..Default::default() };
                self.groups.leave(
                    &Image::of(&self.topics, &self.nodes, -1),
                    &Caller { version: 5, ..Caller::default() },
                    &request,
                    self.now,
                );
            }
            Step::Pass(ms) => self.now += Duration::from_millis(ms),
            Step::Reload => self.groups.reload(&Image::of(&self.topics, &self.nodes, -1), &GROUP, self.now),
        }
        self.groups.expire(&Image::of(&self.topics, &self.nodes, -1), &GROUP, self.now);
        self.read_answers();
    }

    fn join(&mut self, change: impl FnOnce(&mut JoinGroupRequest)) {
        let protocol = JoinGroupRequestProtocol { name: "range".into(), metadata: Bytes::new() };
        let mut request = JoinGroupRequest {
            group_id: GROUP,
            session_timeout_ms: 10_000,
            rebalance_timeout_ms: 20_000,
            member_id: Str::default(),
            group_instance_id: None,
            protocol_type: "consumer".into(),
            protocols: vec![protocol],
            reason: None,
        };
        change(&mut request);
        let id = self.request();
        self.groups.join(
            &Image::of(&self.topics, &self.nodes, -1),
            &Caller { version: 9, ..Caller::default() },
            &request,
            id,
            self.now,
        );
    }

    fn request(&mut self) -> RequestId {
        self.next += 1;
        RequestId(self.next)
    }

    fn read_answers(&mut self) {
        for answer in std::mem::take(&mut self.groups.answers) {
            assert!(self.answered.insert(answer.request), "answered twice");
            if let AnyResponse::JoinGroup(joined) = answer.response
                && !joined.member_id.is_empty()
                && !self.ids.contains(&joined.member_id)
            {
                self.ids.push(joined.member_id);
            }
        }
    }

    fn check(&self) {
        let Some(view) = self.groups.view(&Image::of(&self.topics, &self.nodes, -1), &GROUP) else { return };
        assert_eq!(view.members.is_empty(), view.leader.is_none(), "{view:?}");
        match view.state {
            GroupState::Empty => assert!(view.members.is_empty(), "{view:?}"),
            // The last member may leave while one that has only asked for its id is waited for.
            GroupState::PreparingRebalance => {}
            GroupState::CompletingRebalance | GroupState::Stable => {
                assert!(!view.members.is_empty() && view.generation > 0 && view.protocol.is_some(), "{view:?}");
            }
            GroupState::NotReady | GroupState::Assigning | GroupState::Reconciling => {
                panic!("no states of a classic group: {view:?}")
            }
        }
        let mut names: Vec<_> = view.members.iter().filter_map(|m| m.instance_id.as_ref()).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "a name is held once: {view:?}");
        if let Some(leader) = &view.leader {
            assert!(view.members.iter().any(|m| m.id == *leader), "the leader is a member: {view:?}");
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a test may begin at any time")]
fn some_time() -> Instant {
    Instant::now()
}

proptest! {
    /// Nobody is answered twice, the leader is a member, a name is held once; and when nothing more is heard, every
    /// timer runs out and nobody is left.
    #[test]
    fn group_is_sound_and_ends_when_nothing_is_heard(steps in steps()) {
        let groups = Groups::new(Arc::new(Config::default()));
        let (topics, nodes) = (Topics::default(), Nodes::default());
        let (ids, answered) = (Vec::new(), BTreeSet::new());
        let mut run = Run { topics, nodes, groups, now: some_time(), next: 0, ids, answered };
        for step in steps {
            run.take(step);
            run.check();
        }

        for _ in 0..200 {
            let Some(due) = run.groups.groups.get(&GROUP).and_then(Group::deadline) else { break };
            prop_assert!(due > run.now, "what is due was done");
            run.now = due;
            run.take(Step::Pass(0));
            run.check();
        }
        let view = run.groups.view(&Image::of(&run.topics, &run.nodes, -1), &GROUP);
        let left = view.map_or(0, |view| view.members.len());
        prop_assert_eq!(left, 0);
    }
}
