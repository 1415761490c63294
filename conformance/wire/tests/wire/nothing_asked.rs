//! Requests that name a topic and ask nothing of it, or the same twice: what is answered, and where. FI-06, FI-04.

use krafka_fake_broker::KafkaVersion;
use krafka_protocol::api::add_partitions_to_txn::{
    AddPartitionsToTxnRequest, AddPartitionsToTxnTopic, AddPartitionsToTxnTopicResult, AddPartitionsToTxnTransaction,
};
use krafka_protocol::api::alter_share_group_offsets::{
    AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsRequestPartition, AlterShareGroupOffsetsRequestTopic,
};
use krafka_protocol::api::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use krafka_protocol::api::offset_delete::{
    OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use krafka_protocol::api::share_group_describe::ShareGroupDescribeRequest;
use krafka_protocol::api::txn_offset_commit::{
    TxnOffsetCommitRequest, TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};
use krafka_protocol::{ErrorCode, Str};

use crate::target::{Target, Topic, Wire, run};
use crate::transactional::{ADD, Producer};

/// A topic's name, and what is said of its partitions.
type Told = (Str, Vec<(i32, &'static str)>);

fn told(name: &Str, partitions: impl IntoIterator<Item = (i32, i16)>) -> Told {
    let partitions = partitions.into_iter().map(|(index, code)| (index, ErrorCode(code).name()));
    (name.clone(), partitions.collect())
}

/// Topics, of which partition 0 is asked or nothing: one that is not there, one that is, again each, in this order.
struct Asked {
    missing: Str,
    topic: Topic,
    other: Topic,
    gone: Str,
}

impl Asked {
    async fn new(target: &Target) -> Self {
        let (missing, gone) = (target.fresh("missing"), target.fresh("missing"));
        Self { missing, topic: target.topic(1).await, other: target.topic(1).await, gone }
    }

    /// Nothing is asked of the first and of the third, of the others their first partition.
    fn topics<T>(&self, ask: impl Fn(&Str, &[i32]) -> T) -> Vec<T> {
        vec![ask(&self.missing, &[]), ask(&self.topic.name, &[0]), ask(&self.other.name, &[]), ask(&self.gone, &[0])]
    }

    /// What is refused comes first, and a topic that is refused is told though nothing was asked of it.
    fn expected(&self, error: &'static str) -> Vec<Told> {
        vec![
            (self.missing.clone(), vec![]),
            (self.gone.clone(), vec![(0, "UNKNOWN_TOPIC_OR_PARTITION")]),
            (self.topic.name.clone(), vec![(0, error)]),
        ]
    }
}

#[test]
fn topic_that_is_not_there_is_told_though_nothing_is_asked_of_it() {
    run(async |target| {
        let group = target.fresh("group");
        let mut wire = target.coordinator(&group).await;
        let asked = Asked::new(&target).await;

        let topics = asked.topics(|name, partitions| {
            let ask = |&partition_index: &i32| OffsetCommitRequestPartition { partition_index, ..Default::default() };
            let partitions = partitions.iter().map(ask).collect();
            OffsetCommitRequestTopic { name: name.clone(), partitions, ..Default::default() }
        });
        let request = OffsetCommitRequest {
            group_id: group.clone(),
            generation_id_or_member_epoch: -1,
            topics,
            ..OffsetCommitRequest::default()
        };
        let answer = wire.call(request, 8).await.topics;
        let answer =
            answer.iter().map(|t| told(&t.name, t.partitions.iter().map(|p| (p.partition_index, p.error_code))));
        assert_eq!(answer.collect::<Vec<_>>(), asked.expected("NONE"));

        let topics = asked.topics(|name, partitions| {
            let ask = |&partition_index: &i32| OffsetDeleteRequestPartition { partition_index };
            OffsetDeleteRequestTopic { name: name.clone(), partitions: partitions.iter().map(ask).collect() }
        });
        let answer = wire.call(OffsetDeleteRequest { group_id: group, topics }, 0).await.topics;
        let answer =
            answer.iter().map(|t| told(&t.name, t.partitions.iter().map(|p| (p.partition_index, p.error_code))));
        assert_eq!(answer.collect::<Vec<_>>(), asked.expected("NONE"));
    });
}

#[test]
fn topic_that_is_not_there_is_told_in_a_transaction_too() {
    run(async |target| {
        let group = target.fresh("group");
        let mut wire = target.coordinator(&group).await;
        let asked = Asked::new(&target).await;
        let topics = asked.topics(|name, partitions| {
            let ask =
                |&partition_index: &i32| TxnOffsetCommitRequestPartition { partition_index, ..Default::default() };
            let partitions = partitions.iter().map(ask).collect();
            TxnOffsetCommitRequestTopic { name: name.clone(), partitions, ..Default::default() }
        });
        let transactional_id = target.fresh("transactional");
        target.transaction_coordinator(&transactional_id).await;
        let request = TxnOffsetCommitRequest {
            transactional_id,
            group_id: group,
            producer_id: 5,
            topics,
            ..TxnOffsetCommitRequest::default()
        };

        let answer = wire.call(request, 3).await.topics;

        let answer =
            answer.iter().map(|t| told(&t.name, t.partitions.iter().map(|p| (p.partition_index, p.error_code))));
        assert_eq!(answer.collect::<Vec<_>>(), asked.expected("INVALID_PRODUCER_ID_MAPPING"));
    });
}

fn results(topics: &[AddPartitionsToTxnTopicResult]) -> Vec<Told> {
    let partitions = |topic: &AddPartitionsToTxnTopicResult| {
        let results = topic.results_by_partition.iter();
        told(&topic.name, results.map(|result| (result.partition_index, result.partition_error_code)))
    };
    topics.iter().map(partitions).collect()
}

/// What all partitions fare alike is answered as it was asked, and else from a map.
#[test]
fn topic_that_comes_twice_in_a_transaction() {
    run(async |target| {
        let (topic, missing) = (target.topic(3).await, target.fresh("missing"));
        let mut producer = Producer::new(&target).await;
        let ask = |name: &Str, partitions: &[i32]| AddPartitionsToTxnTopic {
            name: name.clone(),
            partitions: partitions.to_vec(),
        };
        let mut add = async |v3_and_below_topics| {
            let request = AddPartitionsToTxnRequest {
                v3_and_below_transactional_id: producer.name.clone(),
                v3_and_below_producer_id: producer.id,
                v3_and_below_producer_epoch: producer.epoch,
                v3_and_below_topics,
                ..AddPartitionsToTxnRequest::default()
            };
            results(&producer.coordinator.call(request, ADD).await.results_by_topic_v3_and_below)
        };

        let alike = add(vec![ask(&topic.name, &[0]), ask(&topic.name, &[1, 1])]).await;
        let mut unlike = add(vec![ask(&topic.name, &[0]), ask(&missing, &[1, 1]), ask(&topic.name, &[9])]).await;

        let of_topic =
            |partitions: &[i32]| (topic.name.clone(), partitions.iter().map(|index| (*index, "NONE")).collect());
        assert_eq!(alike, [of_topic(&[0]), of_topic(&[1, 1])]);
        for (_, partitions) in &mut unlike {
            partitions.sort_unstable();
        }
        unlike.sort();
        let unknown = "UNKNOWN_TOPIC_OR_PARTITION";
        let of_topic = (topic.name.clone(), vec![(0, "OPERATION_NOT_ATTEMPTED"), (9, unknown)]);
        let mut expected = vec![of_topic, (missing, vec![(1, unknown)])];
        expected.sort();
        assert_eq!(unlike, expected);
    });
}

/// Kafka counts the transactions that it is done with, and is never done with none.
#[test]
fn request_for_no_transaction_is_not_answered() {
    run(async |target| {
        let mut wire = target.connect().await;
        wire.send(AddPartitionsToTxnRequest { transactions: vec![], ..Default::default() }, 4).await;
        assert!(wire.is_quiet().await);

        let transaction = AddPartitionsToTxnTransaction {
            transactional_id: target.fresh("transactional"),
            ..AddPartitionsToTxnTransaction::default()
        };
        wire.send(AddPartitionsToTxnRequest { transactions: vec![transaction], ..Default::default() }, 4).await;
        assert!(wire.is_quiet().await, "nor is anything behind it");
    });
}

/// What is said to new offsets of topics: each topic, and its partitions.
async fn alter(wire: &mut Wire, group: &Str, topics: &[(&Str, &[i32])]) -> Vec<Told> {
    let topic = |(name, partitions): &(&Str, &[i32])| AlterShareGroupOffsetsRequestTopic {
        topic_name: (*name).clone(),
        partitions: partitions
            .iter()
            .map(|&partition_index| AlterShareGroupOffsetsRequestPartition { partition_index, start_offset: 0 })
            .collect(),
    };
    let topics = topics.iter().map(topic).collect();
    let answer = wire.call(AlterShareGroupOffsetsRequest { group_id: group.clone(), topics }, 0).await;
    assert_eq!(answer.error_code, 0);
    let topics = answer.responses.iter();
    topics.map(|t| told(&t.topic_name, t.partitions.iter().map(|p| (p.partition_index, p.error_code)))).collect()
}

/// A topic that is there makes the share group, whatever is asked of it; and it has its place in the answer.
#[test]
fn share_group_is_made_for_a_topic_of_which_nothing_is_asked() {
    run(async |target| {
        target.since(KafkaVersion::V4_1, "share groups").await;
        let asked = Asked::new(&target).await;
        let (topic, other) = (&asked.topic.name, &asked.other.name);
        let unknown = |index| (index, "UNKNOWN_TOPIC_OR_PARTITION");
        for (topics, expected, is_made) in [
            (vec![], vec![], false),
            (vec![(&asked.missing, &[][..])], vec![], false),
            (vec![(&asked.gone, &[0][..])], vec![(asked.gone.clone(), vec![unknown(0)])], false),
            (vec![(topic, &[][..]), (&asked.missing, &[][..])], vec![(topic.clone(), vec![])], true),
            (vec![(topic, &[9][..])], vec![(topic.clone(), vec![unknown(9)])], true),
            (
                vec![(topic, &[][..]), (other, &[0][..]), (topic, &[0][..]), (&asked.gone, &[0][..])],
                vec![
                    (asked.gone.clone(), vec![unknown(0)]),
                    (topic.clone(), vec![(0, "NONE")]),
                    (other.clone(), vec![(0, "NONE")]),
                ],
                true,
            ),
        ] {
            let group = target.fresh("share");
            let mut wire = target.coordinator(&group).await;

            assert_eq!(alter(&mut wire, &group, &topics).await, expected);

            let request = ShareGroupDescribeRequest { group_ids: vec![group], ..Default::default() };
            let described = ErrorCode(wire.call(request, 1).await.groups[0].error_code).name();
            assert_eq!(described, if is_made { "NONE" } else { "GROUP_ID_NOT_FOUND" }, "{topics:?}");
        }
    });
}
