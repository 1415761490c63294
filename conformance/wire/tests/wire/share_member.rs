//! A member of a share group, request by request: its heartbeats to the coordinator, its session with a leader.

use std::time::Duration;

use krafka_protocol::api::share_acknowledge::{
    AcknowledgePartition, AcknowledgeTopic, AcknowledgementBatch as Said, PartitionData as Answered,
    ShareAcknowledgeRequest, ShareAcknowledgeResponse,
};
use krafka_protocol::api::share_fetch::{
    AcknowledgementBatch, FetchPartition, FetchTopic, PartitionData, ShareFetchRequest, ShareFetchResponse,
};
use krafka_protocol::api::share_group_heartbeat::{ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse};
use krafka_protocol::{ErrorCode, Str};

use crate::target::{Target, Topic, Wire};

pub(crate) const HEARTBEAT: i16 = 1;

pub(crate) const GAP: i8 = 0;
pub(crate) const ACCEPT: i8 = 1;
pub(crate) const RELEASE: i8 = 2;
pub(crate) const REJECT: i8 = 3;
pub(crate) const RENEW: i8 = 4;

/// What a member says of its records: first and last offset, one type for all or one for each.
pub(crate) type Ack<'a> = (i64, i64, &'a [i8]);

/// A member with a connection to its coordinator and one to a leader.
pub(crate) struct ShareMember {
    pub(crate) coordinator: Wire,
    pub(crate) leader: Wire,
    pub(crate) group: Str,
    pub(crate) id: Str,
    pub(crate) epoch: i32,
    pub(crate) session_epoch: i32,
    /// What its session is about, but for the first request of it.
    pub(crate) topic: Topic,
}

impl ShareMember {
    /// One that is in no group yet; it reads the topic's partition 0 from the node that the bootstrap names first.
    pub(crate) async fn new(target: &Target, group: &Str, topic: &Topic, id: &'static str) -> Self {
        let topic = Topic { name: topic.name.clone(), id: topic.id };
        Self {
            coordinator: target.coordinator(group).await,
            leader: target.connect().await,
            group: group.clone(),
            id: Str::from_static(id),
            epoch: 0,
            session_epoch: 0,
            topic,
        }
    }

    /// One that has joined and was given its topic.
    pub(crate) async fn joined(target: &Target, group: &Str, topic: &Topic, id: &'static str) -> Self {
        let mut member = Self::new(target, group, topic, id).await;
        member.join().await;
        member
    }

    /// One that has begun to read as well, before there is anything: a share group begins behind all records.
    pub(crate) async fn reading(target: &Target, group: &Str, topic: &Topic, id: &'static str) -> Self {
        let mut member = Self::joined(target, group, topic, id).await;
        member.poll().await;
        member
    }

    /// Joins, and waits for the assignment.
    pub(crate) async fn join(&mut self) {
        self.epoch = 0;
        let topics = vec![self.topic.name.clone()];
        let mut answer = self.beat(Some(topics)).await;
        while answer.assignment.is_none_or(|assignment| assignment.topic_partitions.is_empty()) {
            tokio::time::sleep(Duration::from_millis(100)).await;
            answer = self.beat(None).await;
        }
    }

    /// A heartbeat that is answered well.
    pub(crate) async fn beat(&mut self, topics: Option<Vec<Str>>) -> ShareGroupHeartbeatResponse {
        let request = ShareGroupHeartbeatRequest { subscribed_topic_names: topics, ..self.heartbeat(self.epoch) };
        let answer = self.coordinator.call(request, HEARTBEAT).await;
        assert_eq!(ErrorCode(answer.error_code).name(), "NONE", "{:?}", answer.error_message);
        self.epoch = answer.member_epoch;
        answer
    }

    pub(crate) fn heartbeat(&self, epoch: i32) -> ShareGroupHeartbeatRequest {
        ShareGroupHeartbeatRequest {
            group_id: self.group.clone(),
            member_id: self.id.clone(),
            member_epoch: epoch,
            rack_id: None,
            subscribed_topic_names: None,
        }
    }

    pub(crate) async fn leave(&mut self) {
        let answer = self.coordinator.call(self.heartbeat(-1), HEARTBEAT).await;
        assert_eq!((answer.error_code, answer.member_epoch), (0, -1));
    }

    /// A share fetch of partition 0, which carries acknowledgements.
    pub(crate) fn request(&self, acks: &[Ack<'_>]) -> ShareFetchRequest {
        let batches = acks.iter().map(|&(first_offset, last_offset, types)| AcknowledgementBatch {
            first_offset,
            last_offset,
            acknowledge_types: types.to_vec(),
        });
        let partition = FetchPartition { acknowledgement_batches: batches.collect(), ..FetchPartition::default() };
        ShareFetchRequest {
            group_id: Some(self.group.clone()),
            member_id: Some(self.id.clone()),
            share_session_epoch: self.session_epoch,
            max_wait_ms: 500,
            min_bytes: 1,
            max_bytes: 1 << 20,
            max_records: 500,
            batch_size: 500,
            topics: vec![FetchTopic { topic_id: self.topic.id, partitions: vec![partition] }],
            ..ShareFetchRequest::default()
        }
    }

    /// A share fetch that is answered well.
    pub(crate) async fn ask(&mut self, request: ShareFetchRequest) -> ShareFetchResponse {
        let answer = self.leader.call(request, 2).await;
        assert_eq!(ErrorCode(answer.error_code).name(), "NONE");
        self.session_epoch += 1;
        answer
    }

    /// A share fetch's error as a whole.
    pub(crate) async fn refused(&mut self, request: ShareFetchRequest) -> &'static str {
        ErrorCode(self.leader.call(request, 2).await.error_code).name()
    }

    /// What is acquired of partition 0: first offset, last offset, delivery count.
    pub(crate) async fn acquired(&mut self, request: ShareFetchRequest) -> Vec<(i64, i64, i16)> {
        let answer = self.ask(request).await;
        answer.responses.into_iter().flat_map(|topic| topic.partitions).flat_map(acquired).collect()
    }

    /// What is acquired by a request that has nothing special.
    pub(crate) async fn poll(&mut self) -> Vec<(i64, i64, i16)> {
        let request = self.request(&[]);
        self.acquired(request).await
    }

    /// The same, asked for again until there is something.
    pub(crate) async fn poll_until(&mut self) -> Vec<(i64, i64, i16)> {
        loop {
            let acquired = self.poll().await;
            if !acquired.is_empty() {
                return acquired;
            }
        }
    }

    pub(crate) fn acknowledge_request(&self, acks: &[Ack<'_>]) -> ShareAcknowledgeRequest {
        let batches = acks.iter().map(|&(first_offset, last_offset, types)| Said {
            first_offset,
            last_offset,
            acknowledge_types: types.to_vec(),
        });
        let partition = AcknowledgePartition { partition_index: 0, acknowledgement_batches: batches.collect() };
        ShareAcknowledgeRequest {
            group_id: Some(self.group.clone()),
            member_id: Some(self.id.clone()),
            share_session_epoch: self.session_epoch,
            is_renew_ack: acks.iter().any(|(_, _, types)| types.contains(&RENEW)),
            topics: vec![AcknowledgeTopic { topic_id: self.topic.id, partitions: vec![partition] }],
        }
    }

    /// A ShareAcknowledge that is answered well as a whole.
    pub(crate) async fn say(&mut self, request: ShareAcknowledgeRequest) -> ShareAcknowledgeResponse {
        let answer = self.leader.call(request, 2).await;
        assert_eq!(ErrorCode(answer.error_code).name(), "NONE");
        self.session_epoch += 1;
        answer
    }

    /// What is said to acknowledgements of partition 0.
    pub(crate) async fn acknowledge(&mut self, acks: &[Ack<'_>]) -> &'static str {
        let request = self.acknowledge_request(acks);
        let mut answer = self.say(request).await;
        let Answered { error_code, .. } = answer.responses.remove(0).partitions.remove(0);
        ErrorCode(error_code).name()
    }
}

/// What was acquired of a partition.
pub(crate) fn acquired(partition: PartitionData) -> Vec<(i64, i64, i16)> {
    let got = partition.acquired_records.into_iter();
    got.map(|got| (got.first_offset, got.last_offset, got.delivery_count)).collect()
}
