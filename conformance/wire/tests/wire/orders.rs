//! In which order an answer has its parts, where that is not by chance, and what becomes of parts that are asked for
//! twice: many handlers refuse first what they can refuse by themselves, and keep the rest in maps.

use krafka_fake_broker::KafkaVersion;
use krafka_protocol::api::delete_records::{DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic};
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
use krafka_protocol::{Request, Str};

use crate::records::{error, nowhere};
use crate::target::{Target, Topic, Wire, run, run_as};
use crate::transactional::Producer;

/// What is asked for: topics with their partitions. A and B have two partitions each, and N is not there.
const ASKED: [(char, &[i32]); 4] = [('A', &[1, 7, 0]), ('N', &[0]), ('B', &[0, 1]), ('A', &[1])];

/// What is told by who refuses first, then asks the coordinator, and puts topics together.
const REFUSED_FIRST: [&str; 7] = [
    "A7 UNKNOWN_TOPIC_OR_PARTITION",
    "A1 NONE",
    "A0 NONE",
    "A1 NONE",
    "N0 UNKNOWN_TOPIC_OR_PARTITION",
    "B0 NONE",
    "B1 NONE",
];

/// The topics that the letters stand for.
struct Topics(Vec<(char, Topic)>);

impl Topics {
    async fn new(target: &Target) -> Self {
        let (a, b) = (target.topic(2).await, target.topic(2).await);
        Self(vec![('A', a), ('B', b), ('N', nowhere(&target.fresh("nowhere")))])
    }

    fn get(&self, letter: char) -> &Topic {
        &self.0.iter().find(|(it, _)| *it == letter).expect("it is one of them").1
    }

    /// What is asked for, in the words of a request.
    fn ask<T, P>(&self, partition: impl Fn(i32) -> P, topic: impl Fn(&Topic, Vec<P>) -> T) -> Vec<T> {
        let asked = ASKED.iter();
        asked.map(|(letter, them)| topic(self.get(*letter), them.iter().copied().map(&partition).collect())).collect()
    }

    /// A part of an answer, of which the topic is told by its name or its id.
    fn say(&self, is_it: impl Fn(&Topic) -> bool, partition: i32, code: i16) -> String {
        let letter = self.0.iter().find(|(_, topic)| is_it(topic)).map_or('?', |(letter, _)| *letter);
        format!("{letter}{partition} {}", error(code))
    }

    fn named(&self, name: &Str, partition: i32, code: i16) -> String {
        self.say(|topic| topic.name == *name, partition, code)
    }
}

/// An answer, asked for until the coordinator has read its log.
async fn loaded<R: Request + Clone>(
    wire: &mut Wire,
    request: R,
    version: i16,
    told: impl Fn(R::Response) -> Vec<String>,
) -> Vec<String> {
    loop {
        let said = told(wire.call(request.clone(), version).await);
        if !said.iter().any(|part| part.ends_with("COORDINATOR_LOAD_IN_PROGRESS")) {
            return said;
        }
    }
}

/// GC-22.
#[test]
fn commits_and_deleted_offsets_have_first_what_is_refused() {
    run(async |target| {
        let topics = Topics::new(&target).await;
        let group_id = target.fresh("group");
        let mut wire = target.coordinator(&group_id).await;

        let partition = |partition_index| OffsetCommitRequestPartition {
            partition_index,
            committed_offset: 1,
            ..OffsetCommitRequestPartition::default()
        };
        let commit = OffsetCommitRequest {
            group_id: group_id.clone(),
            generation_id_or_member_epoch: -1,
            topics: topics.ask(partition, |topic, partitions| OffsetCommitRequestTopic {
                name: topic.name.clone(),
                topic_id: topic.id,
                partitions,
            }),
            ..OffsetCommitRequest::default()
        };
        let told = loaded(&mut wire, commit, 9, |answer| {
            let parts = answer.topics.iter().flat_map(|topic| topic.partitions.iter().map(move |it| (&topic.name, it)));
            parts.map(|(name, it)| topics.named(name, it.partition_index, it.error_code)).collect()
        });
        assert_eq!(told.await, REFUSED_FIRST);

        let delete = OffsetDeleteRequest {
            group_id,
            topics: topics.ask(
                |partition_index| OffsetDeleteRequestPartition { partition_index },
                |topic, partitions| OffsetDeleteRequestTopic { name: topic.name.clone(), partitions },
            ),
        };
        let answer = wire.call(delete, 0).await;
        let parts = answer.topics.iter().flat_map(|topic| topic.partitions.iter().map(move |it| (&topic.name, it)));
        let told = parts.map(|(name, it)| topics.named(name, it.partition_index, it.error_code));
        assert_eq!(told.collect::<Vec<_>>(), REFUSED_FIRST);
    });
}

#[test]
fn transactional_commits_have_first_what_is_refused() {
    run(async |target| {
        let topics = Topics::new(&target).await;
        let group_id = target.fresh("group");
        let mut wire = target.coordinator(&group_id).await;
        let producer = Producer::new(&target).await;

        let partition = |partition_index| TxnOffsetCommitRequestPartition {
            partition_index,
            ..TxnOffsetCommitRequestPartition::default()
        };
        let commit = TxnOffsetCommitRequest {
            transactional_id: producer.name.clone(),
            group_id,
            producer_id: producer.id,
            producer_epoch: producer.epoch,
            topics: topics.ask(partition, |topic, partitions| TxnOffsetCommitRequestTopic {
                name: topic.name.clone(),
                topic_id: topic.id,
                partitions,
            }),
            ..TxnOffsetCommitRequest::default()
        };
        let told = loaded(&mut wire, commit, 3, |answer| {
            let parts = answer.topics.iter().flat_map(|topic| topic.partitions.iter().map(move |it| (&topic.name, it)));
            let told = parts.map(|(name, it)| topics.named(name, it.partition_index, it.error_code));
            // The partition of the group's coordinator was never added: what it says of that is no matter of order.
            told.map(|part| part.replace("INVALID_TXN_STATE", "NONE")).collect()
        });
        assert_eq!(told.await, REFUSED_FIRST);
    });
}

fn metadata(topics: Vec<MetadataRequestTopic>) -> MetadataRequest {
    MetadataRequest { topics: Some(topics), ..MetadataRequest::default() }
}

#[test]
fn metadata_has_each_topic_once_and_last_what_is_not_there() {
    run(async |target| {
        let topics = Topics::new(&target).await;
        let mut wire = target.connect().await;
        let asked = ['N', 'B', 'A', 'N', 'A'].map(|letter| topics.get(letter));

        let by_name = asked
            .iter()
            .map(|topic| MetadataRequestTopic { name: Some(topic.name.clone()), ..MetadataRequestTopic::default() });
        let answer = wire.call(metadata(by_name.collect()), 12).await;
        let told = answer.topics.iter().map(|it| topics.named(it.name.as_ref().unwrap(), 0, it.error_code));
        let told = told.collect::<Vec<_>>();
        assert_eq!(told, ["B0 NONE", "A0 NONE", "N0 UNKNOWN_TOPIC_OR_PARTITION"]);

        let by_id =
            asked.iter().map(|topic| MetadataRequestTopic { topic_id: topic.id, ..MetadataRequestTopic::default() });
        let answer = wire.call(metadata(by_id.collect()), 12).await;
        let told = answer.topics.iter().map(|it| topics.say(|topic| topic.id == it.topic_id, 0, it.error_code));
        let mut told = told.collect::<Vec<_>>();
        // By chance, as Kafka looks ids up in a hash table.
        told[1..].sort();
        assert_eq!(told, ["N0 UNKNOWN_TOPIC_ID", "A0 NONE", "B0 NONE"]);
    });
}

#[test]
fn fetch_has_each_partition_once_and_last_what_is_refused() {
    run(async |target| {
        let topics = Topics::new(&target).await;
        let mut wire = target.connect().await;
        let partition =
            |partition| FetchPartition { partition, partition_max_bytes: 1024, ..FetchPartition::default() };
        let mut request = FetchRequest {
            max_bytes: 1024,
            session_epoch: -1,
            topics: topics.ask(partition, |topic, partitions| FetchTopic {
                topic: topic.name.clone(),
                topic_id: topic.id,
                partitions,
            }),
            ..FetchRequest::default()
        };
        // Of a partition that is asked for twice the later counts.
        request.topics[0].partitions[0].fetch_offset = 99;

        let answer = wire.call(request.clone(), 12).await;
        let parts = answer.responses.iter().flat_map(|topic| topic.partitions.iter().map(move |it| (&topic.topic, it)));
        let told = parts.map(|(name, it)| topics.named(name, it.partition_index, it.error_code));
        assert_eq!(
            told.collect::<Vec<_>>(),
            [
                "A1 NONE",
                "A0 NONE",
                "B0 NONE",
                "B1 NONE",
                "A7 UNKNOWN_TOPIC_OR_PARTITION",
                "N0 UNKNOWN_TOPIC_OR_PARTITION",
            ]
        );

        let answer = wire.call(request, 16).await;
        let parts =
            answer.responses.iter().flat_map(|topic| topic.partitions.iter().map(move |it| (topic.topic_id, it)));
        let told = parts.map(|(id, it)| topics.say(|topic| topic.id == id, it.partition_index, it.error_code));
        assert_eq!(
            told.collect::<Vec<_>>(),
            ["A1 NONE", "A0 NONE", "B0 NONE", "B1 NONE", "N0 UNKNOWN_TOPIC_ID", "A7 UNKNOWN_TOPIC_OR_PARTITION",]
        );
    });
}

/// In which order is chance: Kafka has them in hash tables.
#[test]
fn offsets_have_each_partition_once() {
    run(async |target| {
        target.since(KafkaVersion::V4_0, "what is asked for twice is answered once").await;
        let (topics, mut wire) = (Topics::new(&target).await, target.connect().await);

        let told = list_offsets(&topics, &mut wire).await;

        let mut parts = told.concat();
        parts.sort();
        assert_eq!(told.len(), 3, "each topic once");
        assert_eq!(
            parts,
            [
                "A0 NONE",
                "A1 INVALID_REQUEST",
                "A7 UNKNOWN_TOPIC_OR_PARTITION",
                "B0 NONE",
                "B1 NONE",
                "N0 UNKNOWN_TOPIC_OR_PARTITION",
            ]
        );
    });
}

#[test]
fn offsets_were_told_as_they_were_asked_for() {
    run_as(KafkaVersion::V3_9, async |target| {
        target.until(KafkaVersion::V3_9, "what is asked for twice is answered twice").await;
        let (topics, mut wire) = (Topics::new(&target).await, target.connect().await);

        let told = list_offsets(&topics, &mut wire).await;

        assert_eq!(
            told,
            [
                vec!["A1 INVALID_REQUEST", "A7 UNKNOWN_TOPIC_OR_PARTITION", "A0 NONE"],
                vec!["N0 UNKNOWN_TOPIC_OR_PARTITION"],
                vec!["B0 NONE", "B1 NONE"],
                vec!["A1 INVALID_REQUEST"],
            ]
        );
    });
}

/// What ListOffsets tells, topic by topic.
async fn list_offsets(topics: &Topics, wire: &mut Wire) -> Vec<Vec<String>> {
    let partition = |partition_index| ListOffsetsPartition {
        partition_index,
        current_leader_epoch: -1,
        timestamp: -1,
        ..ListOffsetsPartition::default()
    };
    let request = ListOffsetsRequest {
        replica_id: -1,
        topics: topics.ask(partition, |topic, partitions| ListOffsetsTopic { name: topic.name.clone(), partitions }),
        ..ListOffsetsRequest::default()
    };
    let answer = wire.call(request, 7).await;
    let told = answer.topics.iter().map(|topic| {
        topic.partitions.iter().map(|it| topics.named(&topic.name, it.partition_index, it.error_code)).collect()
    });
    told.collect()
}

/// In which order is chance here, too.
#[test]
fn deleted_records_have_each_partition_once() {
    run(async |target| {
        let (topics, mut wire) = (Topics::new(&target).await, target.connect().await);
        let mut delete = DeleteRecordsRequest {
            timeout_ms: 10_000,
            topics: topics.ask(
                |partition_index| DeleteRecordsPartition { partition_index, offset: 0 },
                |topic, partitions| DeleteRecordsTopic { name: topic.name.clone(), partitions },
            ),
        };
        // Of a partition that is named twice the later counts.
        delete.topics[0].partitions[0].offset = 99;

        let answer = wire.call(delete, 2).await;

        let parts = answer.topics.iter().flat_map(|topic| topic.partitions.iter().map(move |it| (&topic.name, it)));
        let told = parts.map(|(name, it)| topics.named(name, it.partition_index, it.error_code));
        let mut told = told.collect::<Vec<_>>();
        told.sort();
        assert_eq!(answer.topics.len(), 3, "each topic once");
        assert_eq!(
            told,
            [
                "A0 NONE",
                "A1 NONE",
                "A7 UNKNOWN_TOPIC_OR_PARTITION",
                "B0 NONE",
                "B1 NONE",
                "N0 UNKNOWN_TOPIC_OR_PARTITION",
            ]
        );
    });
}
