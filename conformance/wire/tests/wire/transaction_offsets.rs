//! Offsets that a group commits inside of a transaction.

use std::time::Duration;

use krafka_fake_broker::{FakeCluster, KafkaVersion};
use krafka_protocol::api::delete_groups::DeleteGroupsRequest;
use krafka_protocol::api::list_groups::ListGroupsRequest;
use krafka_protocol::api::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use krafka_protocol::api::offset_delete::{
    OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use krafka_protocol::api::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics, OffsetFetchResponsePartitions,
};
use krafka_protocol::api::txn_offset_commit::{
    TxnOffsetCommitRequest, TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};
use krafka_protocol::{ErrorCode, Str};

use crate::target::{Target, Topic, Wire, on_fake, patient, run};
use crate::transactional::{ADD, END, PLAIN_END, Producer};

/// Versions of the request for producers that announce their offsets, and for those that need not.
const PLAIN: i16 = 3;
const NEWER: i16 = 5;

/// A group, its coordinator, and a topic.
struct Group {
    id: Str,
    wire: Wire,
    topic: Topic,
}

impl Group {
    async fn new(target: &Target) -> Self {
        let id = target.fresh("group");
        Self { wire: target.coordinator(&id).await, topic: target.topic(2).await, id }
    }

    /// What a commit asks: position `offset` in partition 0.
    fn ask(&self, producer: &Producer, offset: i64) -> TxnOffsetCommitRequest {
        let partition = TxnOffsetCommitRequestPartition {
            partition_index: 0,
            committed_offset: offset,
            committed_metadata: Some("kept".into()),
            ..TxnOffsetCommitRequestPartition::default()
        };
        TxnOffsetCommitRequest {
            transactional_id: producer.name.clone(),
            group_id: self.id.clone(),
            producer_id: producer.id,
            producer_epoch: producer.epoch,
            topics: vec![TxnOffsetCommitRequestTopic {
                name: self.topic.name.clone(),
                topic_id: self.topic.id,
                partitions: vec![partition],
            }],
            ..TxnOffsetCommitRequest::default()
        }
    }

    async fn send(&mut self, request: TxnOffsetCommitRequest, version: i16) -> &'static str {
        let answer = self.wire.call(request, version).await;
        ErrorCode(answer.topics[0].partitions[0].error_code).name()
    }

    async fn commit(&mut self, producer: &Producer, version: i16, offset: i64) -> &'static str {
        loop {
            let request = self.ask(producer, offset);
            match self.send(request, version).await {
                // The markers of the last transaction are on their way.
                "CONCURRENT_TRANSACTIONS" => tokio::time::sleep(Duration::from_millis(20)).await,
                error => return error,
            }
        }
    }

    /// Commits without a transaction.
    async fn commit_plainly(&mut self, offset: i64) -> &'static str {
        let partition = OffsetCommitRequestPartition { committed_offset: offset, ..Default::default() };
        let topic = OffsetCommitRequestTopic {
            name: self.topic.name.clone(),
            partitions: vec![partition],
            ..OffsetCommitRequestTopic::default()
        };
        let request = OffsetCommitRequest {
            group_id: self.id.clone(),
            generation_id_or_member_epoch: -1,
            topics: vec![topic],
            ..OffsetCommitRequest::default()
        };
        let answer = self.wire.call(request, 8).await;
        ErrorCode(answer.topics[0].partitions[0].error_code).name()
    }

    /// What the group has committed in partition 0: the offset, or the error.
    async fn fetch(&mut self, require_stable: bool) -> Result<i64, &'static str> {
        let topic = OffsetFetchRequestTopics {
            name: self.topic.name.clone(),
            partition_indexes: vec![0],
            ..OffsetFetchRequestTopics::default()
        };
        let found = self.fetch_topics(Some(vec![topic]), require_stable).await.remove(0);
        if found.error_code == 0 { Ok(found.committed_offset) } else { Err(ErrorCode(found.error_code).name()) }
    }

    async fn fetch_topics(
        &mut self,
        topics: Option<Vec<OffsetFetchRequestTopics>>,
        require_stable: bool,
    ) -> Vec<OffsetFetchResponsePartitions> {
        let group = OffsetFetchRequestGroup { group_id: self.id.clone(), topics, ..Default::default() };
        let request = OffsetFetchRequest { groups: vec![group], require_stable, ..OffsetFetchRequest::default() };
        let answer = self.wire.call(request, 8).await.groups.remove(0);
        assert_eq!(answer.error_code, 0);
        answer.topics.into_iter().flat_map(|topic| topic.partitions).collect()
    }
}

/// TX-23.
#[test]
fn offset_counts_when_the_transaction_is_committed() {
    run(async |target| {
        let mut group = Group::new(&target).await;
        let mut producer = Producer::new(&target).await;

        assert_eq!(producer.add_offsets(ADD, &group.id).await, "NONE");
        assert_eq!(group.commit(&producer, PLAIN, 5).await, "NONE");
        assert_eq!(group.fetch(false).await, Ok(-1));
        assert_eq!(group.fetch(true).await, Err("UNSTABLE_OFFSET_COMMIT"));

        producer.finish(PLAIN_END, true).await;
        assert_eq!(group.fetch(true).await, Ok(5));
        let all = group.fetch_topics(None, true).await;
        assert_eq!((all.len(), all[0].metadata.as_deref()), (1, Some("kept")));
    });
}

#[test]
fn offset_of_an_aborted_transaction_never_counts() {
    run(async |target| {
        let mut group = Group::new(&target).await;
        let mut producer = Producer::new(&target).await;
        assert_eq!(group.commit_plainly(3).await, "NONE");
        producer.add_offsets(ADD, &group.id).await;
        group.commit(&producer, PLAIN, 5).await;
        assert_eq!(group.fetch(false).await, Ok(3));
        let all = group.fetch_topics(None, true).await;
        assert_eq!(ErrorCode(all[0].error_code), ErrorCode::UNSTABLE_OFFSET_COMMIT);

        producer.finish(PLAIN_END, false).await;

        assert_eq!(group.fetch(true).await, Ok(3));
    });
}

/// The later commit in the log wins, whatever becomes of the transaction.
#[test]
fn plain_commit_overtakes_one_in_a_transaction() {
    run(async |target| {
        let mut group = Group::new(&target).await;
        let mut producer = Producer::new(&target).await;
        producer.add_offsets(ADD, &group.id).await;
        group.commit(&producer, PLAIN, 5).await;
        assert_eq!(group.commit_plainly(3).await, "NONE");
        assert_eq!(group.fetch(true).await, Err("UNSTABLE_OFFSET_COMMIT"));

        producer.finish(PLAIN_END, true).await;

        assert_eq!(group.fetch(true).await, Ok(3));
    });
}

/// KIP-890: the group's coordinator adds its partition to the transaction.
#[test]
fn newer_producer_announces_no_offsets() {
    run(async |target| {
        target.since(KafkaVersion::V4_0, "epochs for each transaction").await;
        let mut group = Group::new(&target).await;
        let mut producer = Producer::new(&target).await;

        assert_eq!(group.commit(&producer, NEWER, 5).await, "NONE");
        assert_eq!(producer.describe().await.topics[0].topic, "__consumer_offsets");
        producer.finish(END, true).await;
        assert_eq!(group.fetch(true).await, Ok(5));

        let late = Producer { epoch: producer.epoch - 1, ..producer };
        assert_eq!(group.commit(&late, NEWER, 9).await, "INVALID_PRODUCER_EPOCH", "TX-38");
    });
}

#[test]
fn offsets_outside_of_a_transaction_are_refused() {
    run(async |target| {
        let mut group = Group::new(&target).await;
        let mut producer = Producer::new(&target).await;

        assert_eq!(group.commit(&producer, PLAIN, 5).await, "INVALID_TXN_STATE");
        assert_eq!(group.commit(&producer, 4, 5).await, "TRANSACTION_ABORTABLE");
        producer.add_offsets(ADD, &group.id).await;
        let nameless = TxnOffsetCommitRequest { group_id: Str::default(), ..group.ask(&producer, 5) };
        assert_eq!(group.send(nameless, PLAIN).await, "INVALID_GROUP_ID");
        let mut unknown = group.ask(&producer, 5);
        unknown.topics[0].partitions[0].partition_index = 9;
        assert_eq!(group.send(unknown, PLAIN).await, "UNKNOWN_TOPIC_OR_PARTITION");
        let mut wordy = group.ask(&producer, 5);
        wordy.topics[0].partitions[0].committed_metadata = Some("x".repeat(5_000).into());
        assert_eq!(group.send(wordy, PLAIN).await, "OFFSET_METADATA_TOO_LARGE");
    });
}

/// TX-21.
#[test]
fn offsets_of_a_member_that_is_gone_are_refused() {
    run(async |target| {
        let mut group = Group::new(&target).await;
        let mut producer = Producer::new(&target).await;
        producer.add_offsets(ADD, &group.id).await;

        let stale = TxnOffsetCommitRequest { generation_id_or_member_epoch: 4, ..group.ask(&producer, 5) };
        assert_eq!(group.send(stale.clone(), PLAIN).await, "ILLEGAL_GENERATION", "there is no such group");
        assert_eq!(group.commit(&producer, PLAIN, 5).await, "NONE", "which makes the group");
        let unknown = TxnOffsetCommitRequest { member_id: "gone".into(), ..stale };
        assert_eq!(group.send(unknown, PLAIN).await, "UNKNOWN_MEMBER_ID");
        producer.finish(PLAIN_END, true).await;
        assert_eq!(group.fetch(true).await, Ok(5));
    });
}

/// FI-10. What is deleted with the group does not come back when the transaction is committed.
#[test]
fn deleted_group_loses_what_its_transactions_would_bring() {
    run(async |target| {
        let mut group = Group::new(&target).await;
        let mut producer = Producer::new(&target).await;
        producer.add_offsets(ADD, &group.id).await;
        assert_eq!(group.commit(&producer, PLAIN, 5).await, "NONE");

        let request = DeleteGroupsRequest { groups_names: vec![group.id.clone()] };
        let deleted = group.wire.call(request, 2).await.results.remove(0);
        assert_eq!(ErrorCode(deleted.error_code), ErrorCode::NONE);
        assert_eq!(group.fetch(true).await, Ok(-1));
        producer.finish(PLAIN_END, true).await;

        assert_eq!(group.fetch(true).await, Ok(-1));
        let listed = group.wire.call(ListGroupsRequest::default(), 4).await.groups;
        assert!(!listed.iter().any(|listed| listed.group_id == group.id));
    });
}

/// FI-10. The same of a single offset, whether or not there was an older one.
#[test]
fn deleted_offset_does_not_come_back_with_a_transaction() {
    run(async |target| {
        for was_committed in [false, true] {
            let mut group = Group::new(&target).await;
            let mut producer = Producer::new(&target).await;
            if was_committed {
                assert_eq!(group.commit_plainly(3).await, "NONE");
            }
            producer.add_offsets(ADD, &group.id).await;
            assert_eq!(group.commit(&producer, PLAIN, 5).await, "NONE");

            let partitions = vec![OffsetDeleteRequestPartition { partition_index: 0 }];
            let topics = vec![OffsetDeleteRequestTopic { name: group.topic.name.clone(), partitions }];
            let request = OffsetDeleteRequest { group_id: group.id.clone(), topics };
            let deleted = group.wire.call(request, 0).await;
            assert_eq!((deleted.error_code, deleted.topics[0].partitions[0].error_code), (0, 0));
            let before = group.fetch(true).await;
            producer.finish(PLAIN_END, true).await;

            assert_eq!((before, group.fetch(true).await), (Ok(-1), Ok(-1)), "{was_committed}");
        }
    });
}

/// FI-10. An offset that a transaction is about to change does not expire, nor does the group.
///
/// Fake only: Kafka keeps offsets for a minute at least, and looks every ten minutes.
#[test]
fn offset_in_a_transaction_does_not_expire() {
    let retention = Duration::from_secs(3600);
    let builder = FakeCluster::builder().offsets_retention(retention).transaction_max_timeout(retention * 10);
    on_fake(patient(builder), async |target, fake| {
        let mut group = Group::new(&target).await;
        let mut producer = Producer::with_timeout(&target, 36_000_000).await;
        assert_eq!(group.commit_plainly(3).await, "NONE");
        producer.add_offsets(ADD, &group.id).await;
        assert_eq!(group.commit(&producer, PLAIN, 5).await, "NONE");

        tokio::time::sleep(retention * 2).await;
        assert_eq!(group.fetch(false).await, Ok(3));
        producer.finish(PLAIN_END, false).await;
        tokio::time::sleep(retention).await;

        assert_eq!((group.fetch(true).await, fake.group(&group.id)), (Ok(-1), None));
    });
}
