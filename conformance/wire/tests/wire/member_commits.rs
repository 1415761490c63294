//! Commits and offsets of members of KIP-848, who must say in which epoch they are.

use krafka_fake_broker::KafkaVersion;
use krafka_protocol::api::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic, OffsetCommitResponse,
};
use krafka_protocol::api::offset_fetch::{OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics};
use krafka_protocol::{ErrorCode, Str};

use crate::consumer::Consumer;
use crate::target::{Target, Topic, run};

fn commit(member: &Consumer, topic: &Topic, epoch: i32, partitions: &[i32]) -> OffsetCommitRequest {
    let partitions = partitions.iter().map(|index| OffsetCommitRequestPartition {
        partition_index: *index,
        committed_offset: 5,
        ..OffsetCommitRequestPartition::default()
    });
    let topics = vec![OffsetCommitRequestTopic {
        name: topic.name.clone(),
        topic_id: topic.id,
        partitions: partitions.collect(),
    }];
    OffsetCommitRequest {
        group_id: member.group.clone(),
        member_id: member.id.clone(),
        generation_id_or_member_epoch: epoch,
        topics,
        ..OffsetCommitRequest::default()
    }
}

fn fetch(member: &Consumer, topic: &Topic, member_id: Option<&Str>, epoch: i32) -> OffsetFetchRequest {
    let topics =
        vec![OffsetFetchRequestTopics { name: topic.name.clone(), topic_id: topic.id, partition_indexes: vec![0] }];
    let group = OffsetFetchRequestGroup {
        group_id: member.group.clone(),
        member_id: member_id.cloned(),
        member_epoch: epoch,
        topics: Some(topics),
    };
    OffsetFetchRequest { groups: vec![group], ..OffsetFetchRequest::default() }
}

fn names(response: &OffsetCommitResponse) -> Vec<&'static str> {
    let partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
    partitions.map(|partition| ErrorCode(partition.error_code).name()).collect()
}

/// A member with two partitions of one topic, an epoch later with one of another.
async fn in_its_second_epoch(target: &Target) -> (Consumer, Topic, Topic) {
    let (topic, later) = (target.topic(2).await, target.topic(1).await);
    let mut member = Consumer::new(target, &target.fresh("group"), &[&topic]).await;
    member.join().await;
    member.settle(2).await;
    let before = member.epoch;
    member.topics.push(later.name.clone());
    member.say(member.full()).await;
    member.settle(3).await;
    assert!(member.epoch > before);
    (member, topic, later)
}

/// GN-05.
#[test]
fn commit_needs_the_members_epoch() {
    run(async |target| {
        let (mut member, topic, _) = in_its_second_epoch(&target).await;
        let epoch = member.epoch;
        let stranger = OffsetCommitRequest { member_id: Str::from("x"), ..commit(&member, &topic, epoch, &[0]) };
        let outsider = OffsetCommitRequest { member_id: Str::default(), ..commit(&member, &topic, -1, &[0]) };

        let table = [
            (commit(&member, &topic, epoch, &[0, 1]), 9, vec!["NONE", "NONE"]),
            (commit(&member, &topic, epoch + 1, &[0]), 9, vec!["STALE_MEMBER_EPOCH"]),
            (commit(&member, &topic, epoch, &[0]), 8, vec!["UNSUPPORTED_VERSION"]),
            (stranger, 9, vec!["UNKNOWN_MEMBER_ID"]),
            (outsider, 9, vec!["UNKNOWN_MEMBER_ID"]),
        ];
        for (request, version, errors) in table {
            assert_eq!(names(&member.wire.call(request, version).await), errors);
        }
    });
}

/// KIP-1251.
#[test]
fn commit_of_an_earlier_epoch_will_do_for_what_the_member_had_then() {
    run(async |target| {
        let (mut member, topic, later) = in_its_second_epoch(&target).await;
        let past = member.epoch - 1;
        target.differs_before(KafkaVersion::V4_3, "any other epoch is stale").await;

        let response = member.wire.call(commit(&member, &topic, past, &[0, 1]), 9).await;
        assert_eq!(names(&response), ["NONE", "NONE"]);

        let response = member.wire.call(commit(&member, &later, past, &[0]), 9).await;
        assert_eq!(names(&response), ["STALE_MEMBER_EPOCH"], "it has this one since the second epoch");
        let mut mixed = commit(&member, &topic, past, &[0]);
        mixed.topics.extend(commit(&member, &later, past, &[0]).topics);
        let response = member.wire.call(mixed, 9).await;
        assert_eq!(names(&response), ["STALE_MEMBER_EPOCH", "STALE_MEMBER_EPOCH"], "one spoils all");
    });
}

#[test]
fn offsets_are_told_to_members_of_this_epoch_and_to_outsiders() {
    run(async |target| {
        let (mut member, topic, _) = in_its_second_epoch(&target).await;
        member.wire.call(commit(&member, &topic, member.epoch, &[0]), 9).await;
        let (id, epoch) = (member.id.clone(), member.epoch);

        let table = [
            (Some(id.clone()), epoch, "NONE"),
            (Some(id.clone()), epoch - 1, "STALE_MEMBER_EPOCH"),
            (Some(id), epoch + 1, "STALE_MEMBER_EPOCH"),
            (Some(Str::from("x")), epoch, "UNKNOWN_MEMBER_ID"),
            (None, -1, "NONE"),
        ];
        for (id, epoch, error) in table {
            let request = fetch(&member, &topic, id.as_ref(), epoch);
            let group = member.wire.call(request, 9).await.groups.remove(0);
            assert_eq!(ErrorCode(group.error_code).name(), error, "{id:?} {epoch}");
            if error == "NONE" {
                assert_eq!(group.topics[0].partitions[0].committed_offset, 5);
            } else {
                assert!(group.topics.is_empty());
            }
        }
    });
}
