//! Committed offsets on the wire.

use std::time::Duration;

use krafka_fake_broker::{FakeCluster, KafkaVersion};
use krafka_protocol::api::delete_topics::{DeleteTopicState, DeleteTopicsRequest};
use krafka_protocol::api::find_coordinator::FindCoordinatorRequest;
use krafka_protocol::api::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic, OffsetCommitResponse,
};
use krafka_protocol::api::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
    OffsetFetchResponsePartitions,
};
use krafka_protocol::{ErrorCode, Str, Uuid};

use crate::member::Member;
use crate::target::{Target, Topic, Wire, on_fake, patient, run};

/// The newest version that names topics, and the first that has their ids.
const BY_NAME: i16 = 9;
const BY_ID: i16 = 10;

fn commit(group: &Str, topic: &Topic, offsets: &[(i32, i64)]) -> OffsetCommitRequest {
    let partitions = offsets.iter().map(|(index, offset)| OffsetCommitRequestPartition {
        partition_index: *index,
        committed_offset: *offset,
        committed_leader_epoch: 3,
        committed_metadata: Some(Str::from("note")),
        ..OffsetCommitRequestPartition::default()
    });
    let topics = vec![OffsetCommitRequestTopic {
        name: topic.name.clone(),
        topic_id: topic.id,
        partitions: partitions.collect(),
    }];
    OffsetCommitRequest {
        group_id: group.clone(),
        generation_id_or_member_epoch: -1,
        topics,
        ..OffsetCommitRequest::default()
    }
}

fn fetch(group: &Str, topics: Option<&[(&Topic, &[i32])]>) -> OffsetFetchRequest {
    let topics = topics.map(|topics| {
        let topics = topics.iter().map(|(topic, partitions)| OffsetFetchRequestTopics {
            name: topic.name.clone(),
            topic_id: topic.id,
            partition_indexes: partitions.to_vec(),
        });
        topics.collect()
    });
    let group = OffsetFetchRequestGroup { group_id: group.clone(), topics, ..OffsetFetchRequestGroup::default() };
    OffsetFetchRequest { groups: vec![group], require_stable: true, ..OffsetFetchRequest::default() }
}

fn errors(response: &OffsetCommitResponse) -> Vec<&'static str> {
    let partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
    partitions.map(|partition| ErrorCode(partition.error_code).name()).collect()
}

/// The offsets of the first topic of the first group.
async fn fetched(wire: &mut Wire, request: OffsetFetchRequest, version: i16) -> Vec<OffsetFetchResponsePartitions> {
    let mut response = wire.call(request, version).await;
    let mut group = response.groups.remove(0);
    assert_eq!(group.error_code, 0);
    group.topics.remove(0).partitions
}

async fn setting(target: &Target) -> (Str, Topic, Wire) {
    let group = target.fresh("group");
    let topic = target.topic(2).await;
    let wire = target.coordinator(&group).await;
    (group, topic, wire)
}

/// FI-10b.
#[test]
fn commit_comes_back_with_epoch_and_metadata() {
    run(async |target| {
        target.since(KafkaVersion::V4_2, "OffsetCommit and OffsetFetch 10, by topic id").await;
        let (group, topic, mut wire) = setting(&target).await;

        for version in [BY_NAME, BY_ID] {
            assert_eq!(errors(&wire.call(commit(&group, &topic, &[(0, 42)]), version).await), ["NONE"]);
            let found = fetched(&mut wire, fetch(&group, Some(&[(&topic, &[0, 1])])), version).await;

            assert_eq!((found[0].committed_offset, found[0].committed_leader_epoch), (42, 3));
            assert_eq!(found[0].metadata.as_deref(), Some("note"));
            assert_eq!((found[1].committed_offset, found[1].committed_leader_epoch), (-1, -1));
            assert_eq!((found[1].metadata.as_deref(), found[1].error_code), (Some(""), 0));
        }
    });
}

#[test]
fn commit_may_go_back() {
    run(async |target| {
        let (group, topic, mut wire) = setting(&target).await;
        for offset in [42, 7] {
            wire.call(commit(&group, &topic, &[(0, offset)]), BY_NAME).await;
        }

        let found = fetched(&mut wire, fetch(&group, Some(&[(&topic, &[0])])), BY_NAME).await;

        assert_eq!(found[0].committed_offset, 7);
    });
}

/// FI-10a, GC-22.
#[test]
fn what_does_not_exist_is_refused_by_itself() {
    run(async |target| {
        target.since(KafkaVersion::V4_2, "OffsetCommit and OffsetFetch 10, by topic id").await;
        let (group, topic, mut wire) = setting(&target).await;
        let unknown = Topic { name: target.fresh("nowhere"), id: Uuid([7; 16]) };

        let mut request = commit(&group, &topic, &[(0, 1), (2, 1)]);
        request.topics.extend(commit(&group, &unknown, &[(0, 1)]).topics);
        let by_name = wire.call(request.clone(), BY_NAME).await;
        let mut by_name = errors(&by_name);
        by_name.sort_unstable();
        assert_eq!(by_name, ["NONE", "UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_OR_PARTITION"]);

        let by_id = wire.call(request, BY_ID).await;
        let mut by_id = errors(&by_id);
        by_id.sort_unstable();
        assert_eq!(by_id, ["NONE", "UNKNOWN_TOPIC_ID", "UNKNOWN_TOPIC_OR_PARTITION"]);
        let found = fetched(&mut wire, fetch(&group, Some(&[(&unknown, &[0])])), BY_ID).await;
        assert_eq!((ErrorCode(found[0].error_code), found[0].committed_offset), (ErrorCode::UNKNOWN_TOPIC_ID, -1));
        let found = fetched(&mut wire, fetch(&group, Some(&[(&unknown, &[0])])), BY_NAME).await;
        assert_eq!((found[0].error_code, found[0].committed_offset), (0, -1));
    });
}

#[test]
fn metadata_has_a_limit_in_characters() {
    run(async |target| {
        let (group, topic, mut wire) = setting(&target).await;
        let mut request = commit(&group, &topic, &[(0, 1), (1, 1)]);
        request.topics[0].partitions[0].committed_metadata = Some(Str::from("ü".repeat(4096)));
        request.topics[0].partitions[1].committed_metadata = Some(Str::from("x".repeat(4097)));

        let response = wire.call(request, BY_NAME).await;

        assert_eq!(errors(&response), ["NONE", "OFFSET_METADATA_TOO_LARGE"]);
    });
}

#[test]
fn outsiders_commit_only_where_nobody_is_a_member() {
    run(async |target| {
        let (group, topic, mut wire) = setting(&target).await;
        let of_generation = OffsetCommitRequest {
            generation_id_or_member_epoch: 1,
            member_id: Str::from("x"),
            ..commit(&group, &topic, &[(0, 1)])
        };

        assert_eq!(errors(&wire.call(of_generation.clone(), BY_NAME).await), ["GROUP_ID_NOT_FOUND"]);
        assert_eq!(errors(&wire.call(of_generation.clone(), 8).await), ["ILLEGAL_GENERATION"]);
        assert_eq!(errors(&wire.call(commit(&group, &topic, &[(0, 1)]), BY_NAME).await), ["NONE"]);
        assert_eq!(errors(&wire.call(of_generation, BY_NAME).await), ["UNKNOWN_MEMBER_ID"]);
    });
}

#[test]
fn error_of_the_group_stands_for_what_exists() {
    run(async |target| {
        let (group, topic, mut wire) = setting(&target).await;
        let unknown = Topic { name: target.fresh("nowhere"), id: Uuid::ZERO };
        let mut request = commit(&group, &topic, &[(0, 1)]);
        request.topics.extend(commit(&group, &unknown, &[(0, 1)]).topics);
        request.generation_id_or_member_epoch = 5;

        let mixed = wire.call(request.clone(), BY_NAME).await;
        let mut mixed = errors(&mixed);
        mixed.sort_unstable();
        request.topics.remove(0);
        let nothing_to_commit = wire.call(request, BY_NAME).await;

        assert_eq!(mixed, ["GROUP_ID_NOT_FOUND", "UNKNOWN_TOPIC_OR_PARTITION"]);
        assert_eq!(errors(&nothing_to_commit), ["UNKNOWN_TOPIC_OR_PARTITION"]);
    });
}

#[test]
fn null_asks_for_all_topics_of_the_group() {
    run(async |target| {
        target.since(KafkaVersion::V4_2, "OffsetCommit and OffsetFetch 10, by topic id").await;
        let (group, topic, mut wire) = setting(&target).await;
        let other = target.topic(1).await;
        wire.call(commit(&group, &topic, &[(1, 11)]), BY_NAME).await;
        wire.call(commit(&group, &other, &[(0, 22)]), BY_NAME).await;

        for version in [8, BY_NAME, BY_ID] {
            let response = wire.call(fetch(&group, None), version).await;
            let topics = &response.groups[0].topics;
            let mut offsets: Vec<i64> = topics.iter().map(|t| t.partitions[0].committed_offset).collect();
            offsets.sort_unstable();
            assert_eq!(offsets, [11, 22]);
            let is_named = |name: &Str, id: &Uuid| if version < BY_ID { !name.is_empty() } else { !id.is_zero() };
            assert!(topics.iter().all(|t| is_named(&t.name, &t.topic_id)));
        }
        let old = OffsetFetchRequest { group_id: group.clone(), topics: None, ..OffsetFetchRequest::default() };
        assert_eq!(wire.call(old, 7).await.topics.len(), 2);
        let nobody = wire.call(fetch(&target.fresh("group"), None), BY_NAME).await;
        assert!(nobody.groups[0].topics.is_empty());
    });
}

#[test]
fn old_fetch_has_one_group() {
    run(async |target| {
        let (group, topic, mut wire) = setting(&target).await;
        wire.call(commit(&group, &topic, &[(0, 5)]), 2).await;
        let asked = vec![OffsetFetchRequestTopic { name: topic.name.clone(), partition_indexes: vec![0, 1] }];

        for version in [1, 5, 7] {
            let request = OffsetFetchRequest {
                group_id: group.clone(),
                topics: Some(asked.clone()),
                ..OffsetFetchRequest::default()
            };
            let response = wire.call(request, version).await;
            let offsets: Vec<i64> = response.topics[0].partitions.iter().map(|p| p.committed_offset).collect();
            assert_eq!((response.error_code, offsets), (0, vec![5, -1]));
        }
    });
}

/// Offsets in ZooKeeper: Kafka 4 does not know the versions any more.
#[test]
fn version_0_is_for_brokers_with_zookeeper() {
    run(async |target| {
        let (group, topic, mut wire) = setting(&target).await;
        let asked = vec![OffsetFetchRequestTopic { name: topic.name.clone(), partition_indexes: vec![0] }];
        let request =
            OffsetFetchRequest { group_id: group.clone(), topics: Some(asked), ..OffsetFetchRequest::default() };

        if target.version().await >= KafkaVersion::V4_0 {
            wire.send(commit(&group, &topic, &[(0, 1)]), 0).await;
            assert!(wire.is_closed().await);
        } else {
            assert_eq!(errors(&wire.call(commit(&group, &topic, &[(0, 1)]), 0).await), ["UNSUPPORTED_VERSION"]);
            let found = wire.call(request, 0).await.topics.remove(0).partitions.remove(0);
            assert_eq!(ErrorCode(found.error_code), ErrorCode::UNSUPPORTED_VERSION);
        }
    });
}

/// FI-10c: offsets are forgotten with their topic, and one of the same name has none.
#[test]
fn offsets_go_with_their_topic() {
    run(async |target| {
        let (group, topic, mut wire) = setting(&target).await;
        let kept = target.topic(1).await;
        wire.call(commit(&group, &topic, &[(0, 5)]), BY_NAME).await;
        wire.call(commit(&group, &kept, &[(0, 6)]), BY_NAME).await;
        let gone = DeleteTopicState { name: Some(topic.name.clone()), topic_id: Uuid::ZERO };
        let delete = DeleteTopicsRequest { topics: vec![gone], timeout_ms: 10_000, ..Default::default() };
        assert_eq!(target.connect().await.call(delete, 6).await.responses[0].error_code, 0);

        let asked = fetch(&group, None);
        // The coordinator hears of it a little later.
        for _ in 0..200 {
            if wire.call(asked.clone(), BY_NAME).await.groups[0].topics.len() == 1 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }

        let left = wire.call(asked, BY_NAME).await.groups.remove(0).topics;
        let left: Vec<_> = left.iter().map(|topic| (&topic.name, topic.partitions[0].committed_offset)).collect();
        assert_eq!(left, [(&kept.name, 6)]);
        let found = fetched(&mut wire, fetch(&group, Some(&[(&topic, &[0])])), BY_NAME).await;
        assert_eq!((found[0].error_code, found[0].committed_offset), (0, -1));
    });
}

/// FI-10d: what nobody has committed for long is forgotten, and then the group.
///
/// Fake only: Kafka keeps offsets for a minute at least, and looks every ten minutes.
#[test]
fn offsets_expire_and_the_group_with_them() {
    let builder = FakeCluster::builder().topic("t", 2).offsets_retention(Duration::from_secs(3600));
    on_fake(patient(builder), async |target, fake| {
        let group = target.fresh("group");
        let mut wire = target.coordinator(&group).await;
        let topic = Topic { name: Str::from("t"), id: Uuid::ZERO };
        wire.call(commit(&group, &topic, &[(0, 1)]), BY_NAME).await;
        tokio::time::sleep(Duration::from_secs(1800)).await;
        wire.call(commit(&group, &topic, &[(1, 2)]), BY_NAME).await;

        tokio::time::sleep(Duration::from_secs(2500)).await;
        assert_eq!(fake.committed(&group), [((Str::from("t"), 1), 2)].into(), "the older one is gone");
        assert!(fake.group(&group).is_some());

        tokio::time::sleep(Duration::from_secs(2500)).await;
        assert!(fake.committed(&group).is_empty());
        assert_eq!(fake.group(&group), None);
    });
}

/// FI-10d: a group that had members keeps its offsets for that long from when the last one left.
///
/// Fake only: Kafka keeps offsets for a minute at least, and looks every ten minutes.
#[test]
fn offsets_of_a_group_with_members_do_not_expire() {
    let builder = FakeCluster::builder().topic("t", 1).offsets_retention(Duration::from_secs(3600));
    on_fake(patient(builder), async |target, fake| {
        let group = target.fresh("group");
        let mut member = Member { session: Duration::from_secs(1800), ..Member::new(&target, &group).await };
        let topic = Topic { name: Str::from("t"), id: Uuid::ZERO };
        member.wire.call(commit(&group, &topic, &[(0, 1)]), BY_NAME).await;
        member.join().await;
        member.sync(&[]).await;
        for _ in 0..6 {
            tokio::time::sleep(Duration::from_secs(1200)).await;
            assert_eq!(member.heartbeat().await, ErrorCode::NONE);
        }
        assert_eq!(fake.committed(&group).len(), 1);

        member.leave().await;
        tokio::time::sleep(Duration::from_secs(3000)).await;
        assert_eq!(fake.committed(&group).len(), 1, "not an hour ago");
        tokio::time::sleep(Duration::from_secs(1300)).await;
        assert!(fake.committed(&group).is_empty());
    });
}

/// FI-10d: of a group of consumers only the offsets of topics that it reads are kept for as long as it has members.
///
/// Fake only: Kafka keeps offsets for a minute at least, and looks every ten minutes.
#[test]
fn offsets_of_topics_that_a_group_reads_do_not_expire() {
    let builder = FakeCluster::builder().topic("t", 1).topic("u", 1).offsets_retention(Duration::from_secs(3600));
    on_fake(patient(builder), async |target, fake| {
        let group = target.fresh("group");
        let name = Str::from("t");
        let member = Member::consumer(&target, &group, &[&name]).await;
        let mut member = Member { session: Duration::from_secs(1800), ..member };
        for name in ["t", "u"] {
            let topic = Topic { name: Str::from(name), id: Uuid::ZERO };
            member.wire.call(commit(&group, &topic, &[(0, 1)]), BY_NAME).await;
        }
        member.join().await;
        member.sync(&[]).await;

        for _ in 0..6 {
            tokio::time::sleep(Duration::from_secs(1200)).await;
            assert_eq!(member.heartbeat().await, ErrorCode::NONE);
        }

        assert_eq!(fake.committed(&group), [((name, 0), 1)].into());
    });
}

/// Versions 2 to 4 bring a retention time of their own.
///
/// Fake only: Kafka looks for what has expired every ten minutes.
#[test]
fn commit_may_say_how_long_it_is_kept() {
    on_fake(FakeCluster::builder().topic("t", 1), async |target, fake| {
        let group = target.fresh("group");
        let mut wire = target.coordinator(&group).await;
        let topic = Topic { name: Str::from("t"), id: Uuid::ZERO };
        let short = OffsetCommitRequest { retention_time_ms: 60_000, ..commit(&group, &topic, &[(0, 1)]) };
        wire.call(short, 4).await;

        tokio::time::sleep(Duration::from_secs(1300)).await;

        assert!(fake.committed(&group).is_empty());
    });
}

#[test]
fn nameless_group_may_have_offsets() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut wire = target.coordinator(&Str::default()).await;

        assert_eq!(errors(&wire.call(commit(&Str::default(), &topic, &[(0, 1)]), BY_NAME).await), ["NONE"]);
        let found = fetched(&mut wire, fetch(&Str::default(), Some(&[(&topic, &[0])])), BY_NAME).await;
        assert_eq!(found[0].committed_offset, 1);
    });
}

#[test]
fn coordinators_are_found_one_by_one_and_in_bulk() {
    run(async |target| {
        let group = target.fresh("group");
        target.coordinator(&group).await;
        let mut wire = target.connect().await;
        let one = |key_type| FindCoordinatorRequest { key: group.clone(), key_type, ..Default::default() };
        let many = |key_type| FindCoordinatorRequest {
            key_type,
            coordinator_keys: vec![group.clone(), Str::default()],
            ..Default::default()
        };

        let first = wire.call(one(0), 0).await;
        assert_eq!(first.error_code, 0);
        let named = wire.call(one(0), 3).await;
        assert_eq!((named.error_code, named.error_message.as_deref()), (0, Some("NONE")));
        assert_eq!((first.node_id, first.port), (named.node_id, named.port));
        let found = wire.call(many(0), 6).await.coordinators;
        assert_eq!((found[0].node_id, found[0].error_message.as_deref()), (first.node_id, Some("")));
        assert_eq!((found.len(), found[1].error_code), (2, 0), "the nameless group has one too");

        let refused = wire.call(one(5), 3).await;
        assert_eq!(ErrorCode(refused.error_code), ErrorCode::INVALID_REQUEST);
        assert_eq!((refused.node_id, refused.port, refused.host.as_str()), (-1, -1, ""));
        let refused = wire.call(many(5), 4).await.coordinators;
        assert_eq!(refused.iter().map(|c| c.error_code).collect::<Vec<_>>(), [42, 42]);
    });
}

#[test]
fn share_group_has_a_key_of_its_own_kind() {
    run(async |target| {
        target.since(KafkaVersion::V4_1, "share groups").await;
        let key = vec![target.fresh("group")];
        let asked = FindCoordinatorRequest { key_type: 2, coordinator_keys: key, ..FindCoordinatorRequest::default() };

        let found = target.connect().await.call(asked, 6).await.coordinators;

        assert_eq!(ErrorCode(found[0].error_code), ErrorCode::INVALID_REQUEST, "a group's name alone is none");
    });
}
