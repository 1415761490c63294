//! A member of a group of KIP-848, heartbeat by heartbeat.

use std::collections::BTreeMap;
use std::time::Duration;

use krafka_protocol::api::consumer_group_describe::{ConsumerGroupDescribeRequest, DescribedGroup};
use krafka_protocol::api::consumer_group_heartbeat::{
    ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, TopicPartitions,
};
use krafka_protocol::{ErrorCode, Str, Uuid};

use crate::target::{Target, Topic, Wire};

/// The first version, which every broker with the protocol serves.
pub(crate) const HEARTBEAT: i16 = 0;
/// The version in which members draw their ids and may subscribe by regular expressions.
pub(crate) const WITH_REGEX: i16 = 1;

/// Partitions by topic.
pub(crate) type Partitions = BTreeMap<Uuid, Vec<i32>>;

/// A member with a connection of its own, which takes and gives up what it is told.
pub(crate) struct Consumer {
    pub(crate) wire: Wire,
    pub(crate) group: Str,
    pub(crate) id: Str,
    pub(crate) epoch: i32,
    pub(crate) instance: Option<Str>,
    pub(crate) topics: Vec<Str>,
    /// What it was told to hold.
    pub(crate) assigned: Partitions,
}

impl Consumer {
    pub(crate) async fn new(target: &Target, group: &Str, topics: &[&Topic]) -> Self {
        let wire = target.coordinator(group).await;
        let topics = topics.iter().map(|topic| topic.name.clone()).collect();
        let id = target.fresh("member");
        Self { wire, group: group.clone(), id, epoch: 0, instance: None, topics, assigned: Partitions::new() }
    }

    /// The request of a member that joins, or says all that it can.
    pub(crate) fn full(&self) -> ConsumerGroupHeartbeatRequest {
        ConsumerGroupHeartbeatRequest {
            instance_id: self.instance.clone(),
            rebalance_timeout_ms: 5_000,
            subscribed_topic_names: Some(self.topics.clone()),
            topic_partitions: Some(self.owned()),
            ..self.brief()
        }
    }

    /// The request of a member to which nothing has happened.
    pub(crate) fn brief(&self) -> ConsumerGroupHeartbeatRequest {
        ConsumerGroupHeartbeatRequest {
            group_id: self.group.clone(),
            member_id: self.id.clone(),
            member_epoch: self.epoch,
            instance_id: self.instance.clone(),
            ..ConsumerGroupHeartbeatRequest::default()
        }
    }

    /// The request of a member that says what it holds.
    pub(crate) fn holding(&self) -> ConsumerGroupHeartbeatRequest {
        ConsumerGroupHeartbeatRequest { topic_partitions: Some(self.owned()), ..self.brief() }
    }

    pub(crate) fn owned(&self) -> Vec<TopicPartitions> {
        let topic = |(topic_id, partitions): (&Uuid, &Vec<i32>)| TopicPartitions {
            topic_id: *topic_id,
            partitions: partitions.clone(),
        };
        self.assigned.iter().map(topic).collect()
    }

    /// Sends a heartbeat, and does what the answer says.
    pub(crate) async fn say(&mut self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse {
        let version = if request.subscribed_topic_regex.is_some() { WITH_REGEX } else { HEARTBEAT };
        let answer = self.wire.call(request, version).await;
        if answer.error_code == 0 {
            self.epoch = answer.member_epoch;
            self.id = answer.member_id.clone().unwrap_or_default();
            if let Some(assignment) = &answer.assignment {
                let topics = assignment.topic_partitions.iter();
                self.assigned = topics.map(|topic| (topic.topic_id, sorted(&topic.partitions))).collect();
            }
        }
        answer
    }

    pub(crate) async fn error(&mut self, request: ConsumerGroupHeartbeatRequest) -> &'static str {
        ErrorCode(self.say(request).await.error_code).name()
    }

    pub(crate) async fn join(&mut self) -> ConsumerGroupHeartbeatResponse {
        let answer = self.say(self.full()).await;
        assert_eq!(ErrorCode(answer.error_code), ErrorCode::NONE, "{answer:?}");
        answer
    }

    /// Sends heartbeats until the member holds as many partitions, and no more epochs are to come for it.
    pub(crate) async fn settle(&mut self, partitions: usize) {
        for _ in 0..200 {
            let answer = self.say(self.holding()).await;
            assert_eq!(ErrorCode(answer.error_code), ErrorCode::NONE, "{answer:?}");
            if self.size() == partitions {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{} holds {:?}", self.id, self.assigned);
    }

    /// How many partitions it holds.
    pub(crate) fn size(&self) -> usize {
        self.assigned.values().map(Vec::len).sum()
    }

    /// Leaves for good.
    pub(crate) async fn leave(&mut self) -> ConsumerGroupHeartbeatResponse {
        let request = ConsumerGroupHeartbeatRequest { member_epoch: -1, ..self.brief() };
        self.wire.call(request, HEARTBEAT).await
    }

    pub(crate) async fn describe(&mut self) -> DescribedGroup {
        let request =
            ConsumerGroupDescribeRequest { group_ids: vec![self.group.clone()], include_authorized_operations: true };
        self.wire.call(request, 0).await.groups.remove(0)
    }

    /// Waits until the group is in a state, or sends what makes it.
    pub(crate) async fn state(&mut self) -> Str {
        self.describe().await.group_state
    }
}

fn sorted(partitions: &[i32]) -> Vec<i32> {
    let mut partitions = partitions.to_vec();
    partitions.sort_unstable();
    partitions
}

/// Lets all members heartbeat until each holds as many partitions.
pub(crate) async fn settle_all(members: &mut [&mut Consumer], sizes: &[usize]) {
    for _ in 0..200 {
        for member in members.iter_mut() {
            let answer = member.say(member.holding()).await;
            assert_eq!(ErrorCode(answer.error_code), ErrorCode::NONE, "{answer:?}");
        }
        let mut held: Vec<usize> = members.iter().map(|member| member.size()).collect();
        held.sort_unstable();
        let state = members[0].state().await;
        if held == sizes && state == "Stable" {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{:?}", members.iter().map(|member| (&member.id, &member.assigned)).collect::<Vec<_>>());
}
