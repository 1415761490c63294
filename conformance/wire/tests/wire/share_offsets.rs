//! Where share groups read on, and how it is changed: AD-16.

use std::time::Duration;

use krafka_fake_broker::KafkaVersion;
use krafka_protocol::api::alter_share_group_offsets::{
    AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsRequestPartition, AlterShareGroupOffsetsRequestTopic,
};
use krafka_protocol::api::delete_share_group_offsets::{
    DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsRequestTopic,
};
use krafka_protocol::api::describe_share_group_offsets::{
    DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsRequestGroup, DescribeShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsResponse,
};
use krafka_protocol::api::share_group_describe::ShareGroupDescribeRequest;
use krafka_protocol::{ApiKey, ErrorCode, Message, Reader, Str, decode_response_header};

use crate::records::{batch, written};
use crate::share_member::{ACCEPT, ShareMember};
use crate::target::{Wire, run};

/// Start offset and lag of each partition whose state is kept.
async fn describe(wire: &mut Wire, group: &Str) -> Vec<(i64, i64)> {
    let group = DescribeShareGroupOffsetsRequestGroup { group_id: group.clone(), topics: None };
    let answer = wire.call(DescribeShareGroupOffsetsRequest { groups: vec![group] }, 1).await.groups.remove(0);
    assert_eq!(ErrorCode(answer.error_code).name(), "NONE");
    let partitions = answer.topics.into_iter().flat_map(|topic| topic.partitions);
    partitions.map(|partition| (partition.start_offset, partition.lag)).collect()
}

/// What is said to new offsets of partitions of a topic.
async fn alter(wire: &mut Wire, group: &Str, topic: &Str, offsets: &[(i32, i64)]) -> Vec<&'static str> {
    let partition = |&(partition_index, start_offset): &(i32, i64)| AlterShareGroupOffsetsRequestPartition {
        partition_index,
        start_offset,
    };
    let partitions = offsets.iter().map(partition).collect();
    let topics = vec![AlterShareGroupOffsetsRequestTopic { topic_name: topic.clone(), partitions }];
    let answer = wire.call(AlterShareGroupOffsetsRequest { group_id: group.clone(), topics }, 0).await;
    if answer.error_code != 0 {
        return vec![ErrorCode(answer.error_code).name()];
    }
    let partitions = answer.responses.into_iter().flat_map(|topic| topic.partitions);
    partitions.map(|partition| ErrorCode(partition.error_code).name()).collect()
}

async fn delete(wire: &mut Wire, group: &Str, topics: &[&Str]) -> Vec<&'static str> {
    let topic = |name: &&Str| DeleteShareGroupOffsetsRequestTopic { topic_name: (*name).clone() };
    let topics = topics.iter().map(topic).collect();
    let answer = wire.call(DeleteShareGroupOffsetsRequest { group_id: group.clone(), topics }, 0).await;
    if answer.error_code != 0 {
        return vec![ErrorCode(answer.error_code).name()];
    }
    answer.responses.iter().map(|topic| ErrorCode(topic.error_code).name()).collect()
}

/// KIP-1226: the lag is what is there and not done with. The start offset told is as old as the last write.
#[test]
fn offsets_and_lag_are_described() {
    run(async |target| {
        target.since(KafkaVersion::V4_2, "DescribeShareGroupOffsets 1").await;
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        let mut member = ShareMember::reading(&target, &group, &topic, "m1").await;
        let before = describe(&mut member.coordinator, &group).await;
        let mut wire = target.connect().await;
        written(&mut wire, &topic, batch(&["a", "b", "c"])).await;
        assert_eq!(member.poll_until().await, [(0, 2, 1)]);

        assert_eq!(member.acknowledge(&[(0, 1, &[ACCEPT])]).await, "NONE");
        let some = describe(&mut member.coordinator, &group).await;
        assert_eq!(member.acknowledge(&[(2, 2, &[ACCEPT])]).await, "NONE");
        let all = describe(&mut member.coordinator, &group).await;
        written(&mut wire, &topic, batch(&["d"])).await;
        let more = describe(&mut member.coordinator, &group).await;

        assert_eq!(before, [(-1, -1)]);
        assert_eq!((some, all, more), (vec![(0, 1)], vec![(2, 0)], vec![(2, 1)]));
    });
}

/// The state of a partition that is not there is looked for, for half a minute, and then described as absent.
#[test]
fn partition_that_is_not_there_is_looked_for() {
    run(async |target| {
        target.since(KafkaVersion::V4_2, "DescribeShareGroupOffsets 1").await;
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        ShareMember::reading(&target, &group, &topic, "m1").await;
        let mut wire = target.coordinator(&group).await;
        let named = DescribeShareGroupOffsetsRequestTopic { topic_name: topic.name.clone(), partitions: vec![7] };
        let asked = DescribeShareGroupOffsetsRequestGroup { group_id: group, topics: Some(vec![named]) };
        wire.send(DescribeShareGroupOffsetsRequest { groups: vec![asked] }, 1).await;

        assert!(wire.is_quiet().await);
        // It is more than the patience of the others.
        let body = tokio::time::timeout(Duration::from_secs(60), wire.frame()).await.expect("an answer in the end");
        let mut reader = Reader::new(body.expect("an answer"));
        decode_response_header(ApiKey::DescribeShareGroupOffsets, 1, &mut reader).expect("a header");
        let mut answer = DescribeShareGroupOffsetsResponse::decode(&mut reader, 1).expect("a legal answer");

        let partition = answer.groups.remove(0).topics.remove(0).partitions.remove(0);
        assert_eq!((partition.partition_index, partition.error_code), (7, 0));
        assert_eq!((partition.start_offset, partition.leader_epoch, partition.lag), (-1, 0, -1));
    });
}

/// A topic and a group that are not there have no offsets, which is no error.
#[test]
fn what_is_not_there_is_described_as_unread() {
    run(async |target| {
        target.since(KafkaVersion::V4_1, "share groups").await;
        let group = target.fresh("share");
        let mut wire = target.coordinator(&group).await;
        let nosuch = DescribeShareGroupOffsetsRequestTopic { topic_name: target.fresh("nosuch"), partitions: vec![0] };
        let request = |topics| {
            let group_id = group.clone();
            DescribeShareGroupOffsetsRequest {
                groups: vec![DescribeShareGroupOffsetsRequestGroup { group_id, topics }],
            }
        };

        let all = wire.call(request(None), 0).await.groups.remove(0);
        let one = wire.call(request(Some(vec![nosuch])), 0).await.groups.remove(0);

        assert_eq!((all.error_code, all.topics.len()), (0, 0));
        let partition = &one.topics[0].partitions[0];
        assert_eq!((one.error_code, partition.error_code, partition.start_offset), (0, 0, -1));
    });
}

/// AD-16: offsets are changed for groups without members; the next one begins there.
#[test]
fn offsets_are_altered_for_empty_groups() {
    run(async |target| {
        target.since(KafkaVersion::V4_2, "ShareFetch 2").await;
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        written(&mut target.connect().await, &topic, batch(&["a", "b", "c"])).await;
        let mut member = ShareMember::joined(&target, &group, &topic, "m1").await;

        let with_members = alter(&mut member.coordinator, &group, &topic.name, &[(0, 1)]).await;
        member.leave().await;
        let codes = alter(&mut member.coordinator, &group, &topic.name, &[(0, 1), (7, 0)]).await;
        let unknown = alter(&mut member.coordinator, &group, &target.fresh("nosuch"), &[(0, 0)]).await;
        let described = describe(&mut member.coordinator, &group).await;
        member.join().await;
        let got = member.poll_until().await;

        assert_eq!(with_members, ["NON_EMPTY_GROUP"]);
        assert_eq!((codes, unknown), (vec!["NONE", "UNKNOWN_TOPIC_OR_PARTITION"], vec!["UNKNOWN_TOPIC_OR_PARTITION"]));
        assert_eq!(described, [(1, 2)]);
        assert_eq!(got, [(1, 2, 1)]);
    });
}

/// A group that nobody has joined is made by setting its offsets.
#[test]
fn altering_offsets_makes_a_group() {
    run(async |target| {
        target.since(KafkaVersion::V4_1, "share groups").await;
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        let mut wire = target.coordinator(&group).await;

        let missing = delete(&mut wire, &group, &[&topic.name]).await;
        let made = alter(&mut wire, &group, &topic.name, &[(0, 0)]).await;
        let nameless = alter(&mut wire, &Str::default(), &topic.name, &[(0, 0)]).await;
        let deleted = delete(&mut wire, &group, &[&topic.name]).await;

        assert_eq!((missing, made), (vec!["GROUP_ID_NOT_FOUND"], vec!["NONE"]));
        assert_eq!((nameless, deleted), (vec!["INVALID_GROUP_ID"], vec!["NONE"]));
    });
}

/// A partition whose number is below zero, of a topic that is there, spoils the whole request. The group is made all
/// the same.
#[test]
fn partitions_below_zero_spoil_all_alterations() {
    run(async |target| {
        target.since(KafkaVersion::V4_4, "words of what went wrong").await;
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        let mut wire = target.coordinator(&group).await;
        let partition = |partition_index| AlterShareGroupOffsetsRequestPartition { partition_index, start_offset: 3 };
        let partitions = vec![partition(0), partition(-1), partition(7)];
        let topics = vec![AlterShareGroupOffsetsRequestTopic { topic_name: topic.name.clone(), partitions }];

        let answer = wire.call(AlterShareGroupOffsetsRequest { group_id: group.clone(), topics }, 0).await;
        let elsewhere = alter(&mut wire, &group, &target.fresh("nosuch"), &[(-1, 0)]).await;
        let described = describe(&mut wire, &group).await;

        let words = format!(
            "Initialize share group parameters has invalid partitionId - {group} {topic_id} -1",
            topic_id = topic.id
        );
        assert_eq!((ErrorCode(answer.error_code).name(), answer.responses), ("UNKNOWN_SERVER_ERROR", vec![]));
        assert_eq!(answer.error_message.as_deref(), Some(&*words));
        assert_eq!((elsewhere, described), (vec!["UNKNOWN_TOPIC_OR_PARTITION"], vec![]));
    });
}

/// AD-16: offsets of topics are deleted for groups without members, once.
#[test]
fn offsets_are_deleted_for_empty_groups() {
    run(async |target| {
        target.since(KafkaVersion::V4_2, "DescribeShareGroupOffsets 1").await;
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        let mut member = ShareMember::joined(&target, &group, &topic, "m1").await;
        let (name, nosuch) = (topic.name.clone(), target.fresh("nosuch"));

        let with_members = delete(&mut member.coordinator, &group, &[&name]).await;
        member.leave().await;
        let first = delete(&mut member.coordinator, &group, &[&name, &nosuch]).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        let second = delete(&mut member.coordinator, &group, &[&name]).await;
        let left = describe(&mut member.coordinator, &group).await;

        assert_eq!(with_members, ["NON_EMPTY_GROUP"]);
        assert_eq!((first, second), (vec!["NONE", "UNKNOWN_TOPIC_OR_PARTITION"], vec!["UNKNOWN_TOPIC_OR_PARTITION"]));
        assert_eq!(left, []);
    });
}

/// What a group is asked for twice it tells once, topics that are not there last; partitions that cannot be, or none at
/// all, are more than Kafka looks at, and so are any of a group without a name.
#[test]
fn each_partition_is_described_once() {
    run(async |target| {
        target.since(KafkaVersion::V4_4, "descriptions of groups that do not trip over each other").await;
        let (group, topic, nosuch) = (target.fresh("share"), target.topic(2).await, target.fresh("nosuch"));
        let mut wire = target.coordinator(&group).await;
        let asked = |name: &Str, partitions: &[i32]| DescribeShareGroupOffsetsRequestTopic {
            topic_name: name.clone(),
            partitions: partitions.to_vec(),
        };
        let of = |group: &Str, topics| DescribeShareGroupOffsetsRequestGroup {
            group_id: group.clone(),
            topics: Some(topics),
        };
        let twice = vec![asked(&nosuch, &[0]), asked(&topic.name, &[1, 1]), asked(&topic.name, &[0])];
        let groups = vec![
            of(&group, twice),
            of(&group, vec![asked(&topic.name, &[0, -1])]),
            of(&group, vec![asked(&topic.name, &[])]),
            of(&Str::default(), vec![asked(&topic.name, &[0])]),
        ];

        let groups = wire.call(DescribeShareGroupOffsetsRequest { groups }, 1).await.groups;

        let codes: Vec<_> = groups.iter().map(|group| ErrorCode(group.error_code).name()).collect();
        let trip = "UNKNOWN_SERVER_ERROR";
        assert_eq!(codes, ["NONE", trip, trip, trip]);
        let told: Vec<(&Str, Vec<i32>)> = groups[0]
            .topics
            .iter()
            .map(|topic| {
                (&topic.topic_name, topic.partitions.iter().map(|partition| partition.partition_index).collect())
            })
            .collect();
        assert_eq!(told, [(&topic.name, vec![0, 1]), (&nosuch, vec![0])]);
    });
}

/// New offsets are no change of the group: its epochs stay. Where nothing is kept no group is made.
#[test]
fn altering_offsets_leaves_the_epochs() {
    run(async |target| {
        target.since(KafkaVersion::V4_3, "groups that begin at epoch 1").await;
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        let mut wire = target.coordinator(&group).await;
        let epochs = async |wire: &mut Wire| {
            let request = ShareGroupDescribeRequest { group_ids: vec![group.clone()], ..Default::default() };
            let told = wire.call(request, 1).await.groups.remove(0);
            (ErrorCode(told.error_code).name(), told.group_epoch, told.assignment_epoch)
        };

        alter(&mut wire, &group, &target.fresh("nosuch"), &[(0, 1)]).await;
        let nothing_kept = epochs(&mut wire).await;
        alter(&mut wire, &group, &topic.name, &[(0, 1)]).await;
        let made = epochs(&mut wire).await;
        alter(&mut wire, &group, &topic.name, &[(0, 2)]).await;
        let again = epochs(&mut wire).await;

        assert_eq!(nothing_kept, ("GROUP_ID_NOT_FOUND", 0, 0));
        assert_eq!((made, again), (("NONE", 1, 1), ("NONE", 1, 1)));
    });
}

/// Answers come in an order of their own: refusals of topics that are not there first when offsets are changed, and
/// last when they are deleted. A topic that is deleted twice is answered once.
#[test]
fn refusals_come_first_or_last() {
    run(async |target| {
        target.since(KafkaVersion::V4_2, "DescribeShareGroupOffsets 1").await;
        let (group, topic, nosuch) = (target.fresh("share"), target.topic(1).await, target.fresh("nosuch"));
        let mut wire = target.coordinator(&group).await;
        let topic_of = |name: &Str| AlterShareGroupOffsetsRequestTopic {
            topic_name: name.clone(),
            partitions: vec![AlterShareGroupOffsetsRequestPartition { partition_index: 0, start_offset: 1 }],
        };
        let topics = vec![topic_of(&topic.name), topic_of(&nosuch)];

        let altered = wire.call(AlterShareGroupOffsetsRequest { group_id: group.clone(), topics }, 0).await.responses;
        let deleted = delete(&mut wire, &group, &[&nosuch, &topic.name, &topic.name]).await;

        assert_eq!(altered.iter().map(|topic| &topic.topic_name).collect::<Vec<_>>(), [&nosuch, &topic.name]);
        assert_eq!(deleted, ["NONE", "UNKNOWN_TOPIC_OR_PARTITION"]);
    });
}
