//! What coordinators write into `__consumer_offsets` and `__transaction_state`, as those read it who consume them.

use krafka_fake_broker::KafkaVersion;
use krafka_protocol::api::delete_groups::DeleteGroupsRequest;
use krafka_protocol::api::delete_topics::{DeleteTopicState, DeleteTopicsRequest};
use krafka_protocol::api::describe_configs::{DescribeConfigsRequest, DescribeConfigsResource};
use krafka_protocol::api::fetch::{FetchPartition, FetchRequest, FetchTopic};
use krafka_protocol::api::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use krafka_protocol::api::metadata::{MetadataRequest, MetadataRequestTopic};
use krafka_protocol::api::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use krafka_protocol::api::offset_delete::{
    OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use krafka_protocol::api::txn_offset_commit::{
    TxnOffsetCommitRequest, TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};
use krafka_protocol::compression::Decompressor;
use krafka_protocol::coordinator::group::{GroupMetadataValue, OffsetCommitValue};
use krafka_protocol::coordinator::transaction::TransactionLogValue;
use krafka_protocol::coordinator::{Entry, GroupRecord, TransactionRecord, Versioned};
use krafka_protocol::records::{BatchHeader, Batches};
use krafka_protocol::{Bytes, Str, Uuid};

use crate::java::partition_for;
use crate::member::Member;
use crate::records::error;
use crate::target::{Target, Topic, Wire, run};
use crate::transactional::{END, PLAIN_END, PRODUCE, Producer};

const OFFSETS: &str = "__consumer_offsets";
const TRANSACTIONS: &str = "__transaction_state";

/// A partition of a coordinators' topic, read by somebody who has seen all that was in it when he came.
struct Log {
    wire: Wire,
    topic: &'static str,
    partition: i32,
    next: i64,
}

/// A record, with the header of its batch.
struct Found {
    batch: BatchHeader,
    key: Bytes,
    value: Option<Bytes>,
}

impl Log {
    /// The log of a group's coordinator.
    async fn of_group(target: &Target, group: &Str) -> Self {
        Self::open(target.coordinator(group).await, OFFSETS, group).await
    }

    /// The log of a transactional id's coordinator.
    async fn of_transactions(target: &Target, id: &Str) -> Self {
        Self::open(target.transaction_coordinator(id).await, TRANSACTIONS, id).await
    }

    async fn open(mut wire: Wire, topic: &'static str, key: &str) -> Self {
        let asked = MetadataRequestTopic { name: Some(topic.into()), ..MetadataRequestTopic::default() };
        let metadata = MetadataRequest { topics: Some(vec![asked]), ..MetadataRequest::default() };
        let count = wire.call(metadata, 12).await.topics[0].partitions.len();
        let partition = partition_for(key, i32::try_from(count).expect("some partitions"));
        let ask = ListOffsetsPartition { partition_index: partition, timestamp: -1, ..Default::default() };
        let asked = ListOffsetsTopic { name: topic.into(), partitions: vec![ask] };
        let request = ListOffsetsRequest { replica_id: -1, topics: vec![asked], ..ListOffsetsRequest::default() };
        let next = wire.call(request, 7).await.topics[0].partitions[0].offset;
        Self { wire, topic, partition, next }
    }

    /// What has come since the last time, or what of it is committed.
    async fn read(&mut self, committed_only: bool) -> Vec<Found> {
        let mut found = Vec::new();
        loop {
            let partition = FetchPartition {
                partition: self.partition,
                fetch_offset: self.next,
                partition_max_bytes: 1 << 20,
                ..FetchPartition::default()
            };
            let topic = FetchTopic { topic: self.topic.into(), partitions: vec![partition], ..FetchTopic::default() };
            let request = FetchRequest {
                max_wait_ms: 0,
                max_bytes: 1 << 20,
                isolation_level: i8::from(committed_only),
                topics: vec![topic],
                ..FetchRequest::default()
            };
            let data = self.wire.call(request, 11).await.responses.remove(0).partitions.remove(0);
            assert_eq!(error(data.error_code), "NONE");
            let records = data.records.unwrap_or_default();
            if records.is_empty() {
                return found;
            }
            for batch in Batches::new(records) {
                let Ok(batch) = batch else { break };
                let header = *batch.header();
                self.next = header.base_offset + i64::from(header.last_offset_delta) + 1;
                let records = batch.records(&mut Decompressor::default()).expect("records");
                found.extend(records.iter().map(|record| record.expect("a record")).map(|record| Found {
                    batch: header,
                    key: Bytes::copy_from_slice(record.key.unwrap_or_default()),
                    value: record.value.map(Bytes::copy_from_slice),
                }));
            }
        }
    }

    /// What the log has come to say of a group, each record with the header of its batch.
    async fn of(&mut self, group: &Str) -> Vec<(BatchHeader, Said)> {
        let found = self.read(false).await.into_iter();
        let data = found.filter(|found| !found.batch.attributes.is_control());
        data.filter_map(|found| Some((found.batch, said_of(group, found.key, found.value)?))).collect()
    }

    /// What the log has come to say of a transactional id: no batch has a producer.
    async fn of_transaction(&mut self, id: &Str) -> Vec<Option<Versioned<TransactionLogValue>>> {
        let records = self.read(false).await;
        let is_counted = |it: &Found| (it.batch.producer_id, it.batch.base_sequence) != (-1, -1);
        assert_eq!(records.iter().filter(|found| is_counted(found)).count(), 0);
        let records = records.into_iter();
        let decoded = records.map(|found| TransactionRecord::decode(found.key, found.value).expect("a known record"));
        decoded
            .filter_map(|record| match record {
                TransactionRecord::TransactionLog(Entry { key, value }) if key.transactional_id == *id => Some(value),
                _ => None,
            })
            .collect()
    }
}

/// What a record says of a group.
#[derive(Debug, PartialEq)]
enum Said {
    /// Its position in a partition of the topic.
    Offset(Str, i32, Option<Versioned<OffsetCommitValue>>),
    /// How it is as a whole.
    Group(Option<Versioned<GroupMetadataValue>>),
}

fn said_of(group: &Str, key: Bytes, value: Option<Bytes>) -> Option<Said> {
    match GroupRecord::decode(key, value).expect("a known record") {
        GroupRecord::OffsetCommit(Entry { key, value }) if key.group == *group => {
            Some(Said::Offset(key.topic, key.partition, value))
        }
        GroupRecord::GroupMetadata(Entry { key, value }) if key.group == *group => Some(Said::Group(value)),
        _ => None,
    }
}

fn request(group: &Str, topic: &Topic, partitions: &[i32]) -> OffsetCommitRequest {
    let partitions = partitions.iter().map(|&partition_index| OffsetCommitRequestPartition {
        partition_index,
        committed_offset: 7,
        committed_leader_epoch: 0,
        committed_metadata: Some("note".into()),
        ..OffsetCommitRequestPartition::default()
    });
    let name = topic.name.clone();
    let topics = vec![OffsetCommitRequestTopic { name, partitions: partitions.collect(), topic_id: topic.id }];
    OffsetCommitRequest {
        group_id: group.clone(),
        generation_id_or_member_epoch: -1,
        topics,
        ..OffsetCommitRequest::default()
    }
}

async fn commit(log: &mut Log, group: &Str, topic: &Topic, partitions: &[i32]) {
    let answer = log.wire.call(request(group, topic, partitions), 8).await;
    assert!(answer.topics[0].partitions.iter().all(|partition| partition.error_code == 0));
}

/// The version of an offset's value, and the topic's id in it: since Kafka 4.4 there is one.
async fn offset_layout(target: &Target, topic: &Topic) -> (i16, Uuid) {
    if target.version().await >= KafkaVersion::V4_4 { (4, topic.id) } else { (3, Uuid::ZERO) }
}

/// FI-10b.
#[test]
fn committed_offsets_are_records() {
    run(async |target| {
        let (topic, group) = (target.topic(2).await, target.fresh("group"));
        let mut log = Log::of_group(&target, &group).await;
        let (version, topic_id) = offset_layout(&target, &topic).await;

        commit(&mut log, &group, &topic, &[1, 0]).await;

        let said = log.of(&group).await;
        assert_eq!(said.len(), 2);
        assert_eq!(said[0].0.base_offset, said[1].0.base_offset, "what came together is one batch");
        let header = said[0].0;
        assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (-1, -1, 0));
        assert!(!header.attributes.is_transactional());
        for ((_, said), index) in said.into_iter().zip([1, 0]) {
            let Said::Offset(name, partition, Some(value)) = said else { panic!("{said:?}") };
            assert_eq!((name, partition, value.version), (topic.name.clone(), index, version));
            assert!(value.message.commit_timestamp > 1_600_000_000_000);
            let expected = OffsetCommitValue {
                offset: 7,
                leader_epoch: 0,
                metadata: "note".into(),
                commit_timestamp: value.message.commit_timestamp,
                expire_timestamp: -1,
                topic_id,
            };
            assert_eq!(value.message, expected);
        }
    });
}

/// Versions 2 to 4 say how long an offset is kept.
#[test]
fn offset_with_an_end_of_its_own_says_when() {
    run(async |target| {
        let (topic, group) = (target.topic(1).await, target.fresh("group"));
        let mut log = Log::of_group(&target, &group).await;
        let kept = OffsetCommitRequest { retention_time_ms: 60_000, ..request(&group, &topic, &[0]) };

        let answer = log.wire.call(kept, 4).await;

        assert_eq!(answer.topics[0].partitions[0].error_code, 0);
        let said = log.of(&group).await;
        let [(_, Said::Offset(_, 0, Some(Versioned { version, message })))] = &said[..] else { panic!("{said:?}") };
        assert_eq!(*version, 1);
        assert_eq!(message.expire_timestamp, message.commit_timestamp + 60_000);
    });
}

#[test]
fn forgotten_offsets_are_tombstones() {
    run(async |target| {
        let (topic, group) = (target.topic(2).await, target.fresh("group"));
        let mut log = Log::of_group(&target, &group).await;
        commit(&mut log, &group, &topic, &[0, 1]).await;
        log.of(&group).await;
        let partitions = vec![OffsetDeleteRequestPartition { partition_index: 1 }];
        let topics = vec![OffsetDeleteRequestTopic { name: topic.name.clone(), partitions }];
        let answer = log.wire.call(OffsetDeleteRequest { group_id: group.clone(), topics }, 0).await;
        assert_eq!((answer.error_code, answer.topics[0].partitions[0].error_code), (0, 0));
        let tombstone = |index| Said::Offset(topic.name.clone(), index, None);

        assert_eq!(log.of(&group).await.into_iter().map(|(_, said)| said).collect::<Vec<_>>(), [tombstone(1)]);
        let answer = log.wire.call(DeleteGroupsRequest { groups_names: vec![group.clone()] }, 2).await;
        assert_eq!(answer.results[0].error_code, 0);

        let said = log.of(&group).await;
        assert_eq!(said[0].0.base_offset, said[1].0.base_offset, "what goes together is one batch");
        let said: Vec<_> = said.into_iter().map(|(_, said)| said).collect();
        assert_eq!(said, [tombstone(0), Said::Group(None)]);
    });
}

#[test]
fn offsets_of_a_deleted_topic_are_tombstones() {
    run(async |target| {
        let (topic, group) = (target.topic(1).await, target.fresh("group"));
        let mut log = Log::of_group(&target, &group).await;
        commit(&mut log, &group, &topic, &[0]).await;
        log.of(&group).await;
        let topics = vec![DeleteTopicState { name: Some(topic.name.clone()), ..DeleteTopicState::default() }];
        let request = DeleteTopicsRequest { topics, timeout_ms: 5_000, ..DeleteTopicsRequest::default() };
        assert_eq!(target.connect().await.call(request, 6).await.responses[0].error_code, 0);

        let said = loop {
            let said = log.of(&group).await;
            if !said.is_empty() {
                break said;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        };

        let said: Vec<_> = said.into_iter().map(|(_, said)| said).collect();
        assert_eq!(said, [Said::Offset(topic.name.clone(), 0, None)]);
    });
}

/// FI-05. The offsets are records of the transaction, and its end is a mark behind them.
#[test]
fn offsets_of_a_transaction_are_its_records() {
    run(async |target| {
        let (topic, group) = (target.topic(1).await, target.fresh("group"));
        let mut producer = Producer::new(&target).await;
        let mut log = Log::of_group(&target, &group).await;
        let (version, _) = offset_layout(&target, &topic).await;
        assert_eq!(producer.add_offsets(3, &group).await, "NONE");
        let partition = TxnOffsetCommitRequestPartition { committed_offset: 5, ..Default::default() };
        let (name, partitions) = (topic.name.clone(), vec![partition]);
        let request = TxnOffsetCommitRequest {
            transactional_id: producer.name.clone(),
            group_id: group.clone(),
            producer_id: producer.id,
            producer_epoch: producer.epoch,
            topics: vec![TxnOffsetCommitRequestTopic { name, topic_id: topic.id, partitions }],
            ..TxnOffsetCommitRequest::default()
        };
        let answer = log.wire.call(request, 3).await;
        assert_eq!(error(answer.topics[0].partitions[0].error_code), "NONE");

        let from = log.next;
        let is_of_producer = |found: &&Found| found.batch.producer_id == producer.id;
        let committed = log.read(true).await;
        assert_eq!(committed.iter().filter(is_of_producer).count(), 0, "nothing is committed yet");
        log.next = from;
        let said = log.of(&group).await;
        let [(header, Said::Offset(_, 0, Some(value)))] = &said[..] else { panic!("{said:?}") };
        assert_eq!((header.producer_id, header.producer_epoch), (producer.id, producer.epoch));
        assert_eq!((header.base_sequence, header.attributes.is_transactional()), (0, true));
        assert_eq!((value.version, value.message.offset), (version, 5));

        producer.finish(PLAIN_END, true).await;

        let found = log.read(true).await;
        let marks: Vec<_> = found.iter().filter(|it| it.batch.producer_id == producer.id).collect();
        assert_eq!(marks.len(), 1, "a mark, and no further offset");
        assert!(marks[0].batch.attributes.is_control());
    });
}

/// A group is written when its first member comes, and whenever a rebalance has ended.
#[test]
fn classic_groups_are_records() {
    run(async |target| {
        let group = target.fresh("group");
        let mut log = Log::of_group(&target, &group).await;
        let mut member = Member::new(&target, &group).await;

        member.join().await;
        let said = log.of(&group).await;
        let [(_, Said::Group(Some(Versioned { version: 3, message })))] = &said[..] else { panic!("{said:?}") };
        let nobody = GroupMetadataValue {
            protocol_type: Str::default(),
            generation: 0,
            protocol: None,
            leader: None,
            current_state_timestamp: message.current_state_timestamp,
            members: Vec::new(),
        };
        assert_eq!(*message, nobody);
        assert!(message.current_state_timestamp > 1_600_000_000_000);

        let id = member.id.clone();
        member.sync(&[(&id, "share")]).await;
        let said = log.of(&group).await;
        let [(_, Said::Group(Some(Versioned { version: 3, message })))] = &said[..] else { panic!("{said:?}") };
        assert_eq!((&*message.protocol_type, message.generation), (member.kind, 1));
        assert_eq!((message.protocol.as_deref(), message.leader.as_ref()), (Some("range"), Some(&id)));
        let [written] = &message.members[..] else { panic!("{:?}", message.members) };
        assert_eq!((&written.member_id, &written.group_instance_id, &*written.client_id), (&id, &None, "wire"));
        assert_eq!(&*written.client_host, "/127.0.0.1");
        assert_eq!(u128::from(written.session_timeout.unsigned_abs()), member.session.as_millis());
        assert_eq!(written.rebalance_timeout, member.join_request().rebalance_timeout_ms);
        assert_eq!(written.assignment, "share");
        assert_eq!(Some(&written.subscription), member.join_request().protocols.first().map(|it| &it.metadata));

        member.leave().await;
        let said = log.of(&group).await;
        let [(_, Said::Group(Some(Versioned { version: 3, message })))] = &said[..] else { panic!("{said:?}") };
        assert_eq!((&*message.protocol_type, message.generation, message.members.len()), (member.kind, 2, 0));
        assert_eq!((message.protocol.as_ref(), message.leader.as_ref()), (None, None));
    });
}

/// What a record says of a transaction: state, epoch, partitions if there can be any, and the version of its protocol.
fn told(values: &[Option<Versioned<TransactionLogValue>>]) -> Vec<(i8, i16, Option<usize>, i16)> {
    let values = values.iter().map(|value| &value.as_ref().expect("no tombstone").message);
    let partitions = |value: &TransactionLogValue| value.transaction_partitions.as_ref().map(Vec::len);
    let tell = |it: &TransactionLogValue| {
        (it.transaction_status, it.producer_epoch, partitions(it), it.client_transaction_version)
    };
    values.map(tell).collect()
}

const EMPTY: i8 = 0;
const ONGOING: i8 = 1;
const PREPARE_COMMIT: i8 = 2;
const PREPARE_ABORT: i8 = 3;
const COMPLETE_COMMIT: i8 = 4;
const COMPLETE_ABORT: i8 = 5;

/// FI-09a: one epoch for all transactions.
#[test]
fn states_of_a_transaction_are_records() {
    run(async |target| {
        let topic = target.topic(2).await;
        let mut producer = Producer::new(&target).await;
        let mut log = Log::of_transactions(&target, &producer.name).await;
        producer.begin().await;
        let epoch = producer.epoch;
        producer.add(&topic.name, &[0]).await;
        producer.add(&topic.name, &[0]).await;
        producer.add(&topic.name, &[1]).await;
        producer.finish(PLAIN_END, true).await;
        producer.add_when_ready(&topic.name, 0).await;
        producer.finish(PLAIN_END, false).await;

        let values = log.of_transaction(&producer.name).await;

        let expected = [
            (EMPTY, None),
            (ONGOING, Some(1)),
            (ONGOING, Some(1)),
            (PREPARE_COMMIT, Some(1)),
            (COMPLETE_COMMIT, Some(0)),
            (ONGOING, Some(1)),
            (PREPARE_ABORT, Some(1)),
            (COMPLETE_ABORT, Some(0)),
        ];
        assert_eq!(told(&values), expected.map(|(state, topics)| (state, epoch, topics, 0)));
        let is_flexible = target.version().await >= KafkaVersion::V4_0;
        for (at, value) in values.into_iter().flatten().enumerate() {
            let Versioned { version, message } = value;
            assert_eq!((version, message.producer_id), (i16::from(is_flexible), producer.id));
            assert_eq!(message.previous_producer_id, if is_flexible { producer.id } else { -1 });
            assert_eq!((message.next_producer_id, message.next_producer_epoch), (-1, -1));
            assert_eq!(message.transaction_timeout_ms, 60_000);
            assert!(message.transaction_last_update_timestamp_ms > 1_600_000_000_000);
            assert_eq!(message.transaction_start_timestamp_ms > 0, at > 0, "{at}");
            if at == 2 {
                let partitions = &message.transaction_partitions.as_ref().expect("partitions")[0];
                let mut ids = partitions.partition_ids.clone();
                ids.sort_unstable();
                assert_eq!((&partitions.topic, ids), (&topic.name, vec![0, 1]));
            }
        }
    });
}

/// FI-09b, KIP-890: an epoch for each transaction.
#[test]
fn records_of_newer_transactions_tell_their_epochs() {
    run(async |target| {
        target.since(KafkaVersion::V4_0, "epochs for each transaction").await;
        let topic = target.topic(1).await;
        let mut producer = Producer::new(&target).await;
        let mut log = Log::of_transactions(&target, &producer.name).await;
        let epoch = producer.epoch;
        producer.send_when_ready(&topic, 0, &["one"]).await;
        producer.finish(END, true).await;
        producer.finish(END, false).await;
        producer.send(PRODUCE, &topic, 0, &["two"]).await.expect("it is open");
        producer.begin().await;

        let values = log.of_transaction(&producer.name).await;

        let expected = [
            (ONGOING, epoch, Some(1), 2),
            (PREPARE_COMMIT, epoch + 1, Some(1), 2),
            (COMPLETE_COMMIT, epoch + 1, Some(0), 2),
            (PREPARE_ABORT, epoch + 2, Some(0), 2),
            (COMPLETE_ABORT, epoch + 2, Some(0), 2),
            (ONGOING, epoch + 2, Some(1), 2),
            (PREPARE_ABORT, epoch + 3, Some(1), 2),
            (COMPLETE_ABORT, epoch + 3, Some(0), 2),
            (EMPTY, epoch + 4, None, 2),
        ];
        assert_eq!(told(&values), expected);
    });
}

/// No list of names asks for all configs, and so does an empty one.
#[test]
fn topics_of_coordinators_are_compacted() {
    run(async |target| {
        let id = target.fresh("coordinated");
        drop((target.coordinator(&id).await, target.transaction_coordinator(&id).await));
        let mut wire = target.connect().await;
        for (topic, compression, elects_unclean) in
            [(OFFSETS, "producer", None), (TRANSACTIONS, "uncompressed", Some("false"))]
        {
            let resource =
                DescribeConfigsResource { resource_type: 2, resource_name: topic.into(), ..Default::default() };
            assert_eq!(resource.configuration_keys.as_deref(), Some(&[][..]));
            let request = DescribeConfigsRequest { resources: vec![resource], ..DescribeConfigsRequest::default() };
            let told = wire.call(request, 4).await.results.remove(0).configs;
            let set = |name: &str| {
                let found = told.iter().find(|config| &*config.name == name && config.config_source == 1);
                found.and_then(|config| config.value.clone())
            };
            assert_eq!(set("cleanup.policy").as_deref(), Some("compact"), "{topic}");
            assert_eq!(set("segment.bytes").as_deref(), Some("104857600"), "{topic}");
            assert_eq!(set("compression.type").as_deref(), Some(compression), "{topic}");
            assert_eq!(set("unclean.leader.election.enable").as_deref(), elects_unclean, "{topic}");
        }
    });
}
