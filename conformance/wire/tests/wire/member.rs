//! A member of a classic group, request by request.

use std::time::Duration;

use krafka_protocol::api::join_group::{JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse};
use krafka_protocol::api::leave_group::{LeaveGroupRequest, MemberIdentity};
use krafka_protocol::api::sync_group::{SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse};
use krafka_protocol::group::{Assignment, Subscription, TopicPartition};
use krafka_protocol::{Bytes, ErrorCode, HeartbeatRequest, Str};

use crate::target::{Target, Topic, Wire};

pub(crate) const JOIN: i16 = 9;
pub(crate) const SYNC: i16 = 5;
pub(crate) const HEARTBEAT: i16 = 4;
pub(crate) const LEAVE: i16 = 5;
/// Not `consumer`: Kafka reads what consumers say about themselves, and 3.9.2 never answers a JoinGroup that it cannot
/// read.
pub(crate) const TYPE: &str = "wire";

/// A member with a connection of its own.
pub(crate) struct Member {
    pub(crate) wire: Wire,
    pub(crate) group: Str,
    pub(crate) id: Str,
    pub(crate) generation: i32,
    pub(crate) instance: Option<Str>,
    /// How long the member may be silent.
    pub(crate) session: Duration,
    pub(crate) protocols: Vec<(&'static str, &'static str)>,
    /// The type of its group.
    pub(crate) kind: &'static str,
    /// What a consumer says of itself for each protocol, instead of the words there.
    pub(crate) subscription: Option<Bytes>,
}

impl Member {
    pub(crate) async fn new(target: &Target, group: &Str) -> Self {
        let wire = target.coordinator(group).await;
        let (id, session) = (Str::default(), Duration::from_secs(30));
        let protocols = vec![("range", "about me")];
        Self {
            wire,
            group: group.clone(),
            id,
            generation: -1,
            instance: None,
            session,
            protocols,
            kind: TYPE,
            subscription: None,
        }
    }

    pub(crate) async fn static_of(target: &Target, group: &Str, instance: &'static str) -> Self {
        Self { instance: Some(Str::from_static(instance)), ..Self::new(target, group).await }
    }

    /// A member of a group of consumers, which the coordinator understands.
    pub(crate) async fn consumer(target: &Target, group: &Str, topics: &[&Str]) -> Self {
        let topics = topics.iter().map(|topic| (*topic).clone()).collect();
        let subscription = Subscription { topics, ..Subscription::default() }.to_bytes(3).expect("a legal version");
        Self { kind: "consumer", subscription: Some(subscription), ..Self::new(target, group).await }
    }

    pub(crate) fn join_request(&self) -> JoinGroupRequest {
        let protocols = self.protocols.iter().map(|(name, metadata)| JoinGroupRequestProtocol {
            name: Str::from_static(name),
            metadata: self.subscription.clone().unwrap_or_else(|| Bytes::from_static(metadata.as_bytes())),
        });
        JoinGroupRequest {
            group_id: self.group.clone(),
            session_timeout_ms: self.session.as_millis() as i32,
            rebalance_timeout_ms: 5_000,
            member_id: self.id.clone(),
            group_instance_id: self.instance.clone(),
            protocol_type: Str::from_static(self.kind),
            protocols: protocols.collect(),
            reason: None,
        }
    }

    /// Sends a JoinGroup with an id, which a dynamic member asks for first.
    pub(crate) async fn send_join(&mut self) {
        if self.id.is_empty() && self.instance.is_none() {
            let refused = self.wire.call(self.join_request(), JOIN).await;
            assert_eq!(ErrorCode(refused.error_code), ErrorCode::MEMBER_ID_REQUIRED);
            self.id = refused.member_id;
        }
        self.wire.send(self.join_request(), JOIN).await;
    }

    pub(crate) async fn joined(&mut self) -> JoinGroupResponse {
        let answer = self.wire.receive::<JoinGroupRequest>(JOIN).await;
        if answer.error_code == 0 {
            self.id = answer.member_id.clone();
            self.generation = answer.generation_id;
        }
        answer
    }

    pub(crate) async fn join(&mut self) -> JoinGroupResponse {
        self.send_join().await;
        self.joined().await
    }

    pub(crate) fn sync_request(&self, shares: &[(&Str, &'static str)]) -> SyncGroupRequest {
        let assignments = shares.iter().map(|(id, share)| SyncGroupRequestAssignment {
            member_id: (*id).clone(),
            assignment: Bytes::from_static(share.as_bytes()),
        });
        SyncGroupRequest {
            group_id: self.group.clone(),
            generation_id: self.generation,
            member_id: self.id.clone(),
            group_instance_id: self.instance.clone(),
            protocol_type: Some(Str::from_static(self.kind)),
            protocol_name: Some(Str::from_static("range")),
            assignments: assignments.collect(),
        }
    }

    /// A SyncGroup of the leader that gives itself an assignment.
    pub(crate) fn sync_request_with(&self, assignment: Bytes) -> SyncGroupRequest {
        let assignments = vec![SyncGroupRequestAssignment { member_id: self.id.clone(), assignment }];
        SyncGroupRequest { assignments, ..self.sync_request(&[]) }
    }

    /// Partitions of a topic as a leader of consumers assigns them.
    pub(crate) fn assignment_of(&self, topic: &Topic, partitions: &[i32]) -> Bytes {
        let assigned = TopicPartition { topic: topic.name.clone(), partitions: partitions.to_vec() };
        let assignment = Assignment { assigned_partitions: vec![assigned], user_data: None };
        assignment.to_bytes(3).expect("a legal version")
    }

    /// Notes what the consumer holds: it says so when it joins next.
    pub(crate) fn owns(&mut self, topic: &Topic, partitions: &[i32]) {
        let owned = TopicPartition { topic: topic.name.clone(), partitions: partitions.to_vec() };
        let said = Subscription {
            topics: vec![topic.name.clone()],
            owned_partitions: vec![owned],
            generation_id: self.generation,
            ..Subscription::default()
        };
        self.subscription = Some(said.to_bytes(3).expect("a legal version"));
    }

    pub(crate) async fn send_sync(&mut self, shares: &[(&Str, &'static str)]) {
        self.wire.send(self.sync_request(shares), SYNC).await;
    }

    pub(crate) async fn synced(&mut self) -> SyncGroupResponse {
        self.wire.receive::<SyncGroupRequest>(SYNC).await
    }

    pub(crate) async fn sync(&mut self, shares: &[(&Str, &'static str)]) -> SyncGroupResponse {
        self.send_sync(shares).await;
        self.synced().await
    }

    pub(crate) async fn heartbeat(&mut self) -> ErrorCode {
        let request = HeartbeatRequest {
            group_id: self.group.clone(),
            generation_id: self.generation,
            member_id: self.id.clone(),
            group_instance_id: self.instance.clone(),
        };
        ErrorCode(self.wire.call(request, HEARTBEAT).await.error_code)
    }

    pub(crate) async fn leave(&mut self) -> ErrorCode {
        let identity = MemberIdentity { member_id: self.id.clone(), ..MemberIdentity::default() };
        let members = vec![identity];
        let request = LeaveGroupRequest { group_id: self.group.clone(), members, ..LeaveGroupRequest::default() };
        let response = self.wire.call(request, LEAVE).await;
        assert_eq!(response.error_code, 0);
        ErrorCode(response.members[0].error_code)
    }
}

/// A stable group of a leader and a follower.
pub(crate) async fn pair(target: &Target) -> (Member, Member) {
    let group = target.fresh("group");
    let mut leader = Member::new(target, &group).await;
    let mut follower = Member::new(target, &group).await;
    leader.join().await;
    leader.sync(&[]).await;
    follower.send_join().await;
    leader.join().await;
    follower.joined().await;
    follower.send_sync(&[]).await;
    leader.sync(&[(&leader.id.clone(), "half"), (&follower.id.clone(), "other half")]).await;
    follower.synced().await;
    (leader, follower)
}

/// Takes both through a rebalance that the leader calls, up to their syncs.
pub(crate) async fn rebalance(leader: &mut Member, follower: &mut Member) {
    leader.send_join().await;
    // Their connections race: the follower must not be there first, or nothing has changed for it.
    while follower.heartbeat().await != ErrorCode::REBALANCE_IN_PROGRESS {}
    follower.join().await;
    leader.joined().await;
}
