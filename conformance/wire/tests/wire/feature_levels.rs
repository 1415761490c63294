//! What the levels of features switch: the protocols of groups, and the one of transactions (KIP-584, KIP-890).

use std::time::Duration;

use krafka_fake_broker::{FakeCluster, KafkaVersion};
use krafka_protocol::api::consumer_group_describe::ConsumerGroupDescribeRequest;
use krafka_protocol::api::delete_share_group_offsets::{
    DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsRequestTopic,
};
use krafka_protocol::api::describe_share_group_offsets::{
    DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsRequestGroup,
};
use krafka_protocol::api::list_groups::{ListGroupsRequest, ListedGroup};
use krafka_protocol::api::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use krafka_protocol::api::share_group_describe::ShareGroupDescribeRequest;
use krafka_protocol::api::streams_group_describe::StreamsGroupDescribeRequest;
use krafka_protocol::api::streams_group_heartbeat::StreamsGroupHeartbeatRequest;
use krafka_protocol::api::streams_group_topology_description_update::StreamsGroupTopologyDescriptionUpdateRequest;
use krafka_protocol::api::update_features::{FeatureUpdateKey, UpdateFeaturesRequest};
use krafka_protocol::{ApiKey, ErrorCode, Str};

use crate::consumer::Consumer;
use crate::share_member::{ACCEPT, HEARTBEAT, ShareMember};
use crate::target::{Target, Wire, on_fake, run_on_levels};
use crate::transactional::{END, PLAIN_END, PLAIN_PRODUCE, PRODUCE, Producer, committed_values};

const UPGRADE: i8 = 1;
const SAFE_DOWNGRADE: i8 = 2;

/// Asks for a level of a feature: the reason why not.
async fn ask(target: &Target, feature: &str, level: i16, upgrade_type: i8) -> Option<Str> {
    let asked =
        FeatureUpdateKey { feature: feature.into(), max_version_level: level, upgrade_type, ..Default::default() };
    let request =
        UpdateFeaturesRequest { feature_updates: vec![asked], timeout_ms: 5_000, ..UpdateFeaturesRequest::default() };
    target.connect().await.call(request, 1).await.error_message
}

/// Sets the level of a feature, and waits until the broker knows of it.
pub(crate) async fn set(target: &Target, feature: &str, level: i16) {
    let upgrade_type = if level_of(target, feature).await < level { UPGRADE } else { SAFE_DOWNGRADE };
    assert_eq!(ask(target, feature, level, upgrade_type).await, None);
    while level_of(target, feature).await != level {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The finalized level of a feature; 0 if it is not told.
async fn level_of(target: &Target, feature: &str) -> i16 {
    let told = target.api_versions().await.finalized_features;
    told.iter().find(|told| &*told.name == feature).map_or(0, |told| told.max_version_level)
}

async fn advertises(target: &Target, api: ApiKey) -> bool {
    target.api_versions().await.api_keys.iter().any(|told| told.api_key == api.code())
}

async fn listed(wire: &mut Wire, group: &Str) -> ListedGroup {
    let groups = wire.call(ListGroupsRequest::default(), 5).await.groups;
    groups.into_iter().find(|listed| listed.group_id == *group).expect("a group that is listed")
}

fn names(codes: impl IntoIterator<Item = i16>) -> Vec<&'static str> {
    codes.into_iter().map(|code| ErrorCode(code).name()).collect()
}

/// GN-24. What the groups are stays as it is, and old members may go on to commit.
#[test]
fn kip_848_is_switched_off() {
    run_on_levels(async |target| {
        target.since(KafkaVersion::V4_0, "group.version").await;
        set(&target, "group.version", 1).await;
        let topic = target.topic(1).await;
        let mut member = Consumer::new(&target, &target.fresh("group"), &[&topic]).await;
        member.join().await;
        member.settle(1).await;

        set(&target, "group.version", 0).await;
        let beat = member.say(member.brief()).await;
        assert_eq!((names([beat.error_code]), beat.error_message), (vec!["UNSUPPORTED_VERSION"], None));
        let wrong = member.brief();
        let (nameless, asked) = (Str::default(), vec![member.group.clone(), Str::default(), member.group.clone()]);
        let wrong = krafka_protocol::ConsumerGroupHeartbeatRequest { group_id: nameless, ..wrong };
        assert_eq!(member.error(wrong).await, "UNSUPPORTED_VERSION", "nothing else is looked at");
        let request = ConsumerGroupDescribeRequest { group_ids: asked, ..Default::default() };
        let described = member.wire.call(request, 0).await.groups;
        assert_eq!(names(described.iter().map(|group| group.error_code)), ["UNSUPPORTED_VERSION"; 3]);
        assert_eq!((described[0].group_id.clone(), &*described[0].group_state), (member.group.clone(), ""));
        let partition = OffsetCommitRequestPartition { committed_offset: 1, ..Default::default() };
        let commit = OffsetCommitRequest {
            group_id: member.group.clone(),
            generation_id_or_member_epoch: member.epoch,
            member_id: member.id.clone(),
            topics: vec![OffsetCommitRequestTopic {
                name: topic.name.clone(),
                partitions: vec![partition],
                ..Default::default()
            }],
            ..OffsetCommitRequest::default()
        };
        assert_eq!(member.wire.call(commit, 9).await.topics[0].partitions[0].error_code, 0);
        let found = listed(&mut member.wire, &member.group.clone()).await;
        assert_eq!((&*found.group_state, &*found.group_type), ("Stable", "consumer"));
        assert!(advertises(&target, ApiKey::ConsumerGroupHeartbeat).await, "it is advertised all the same");

        set(&target, "group.version", 1).await;
        assert_eq!(member.error(member.brief()).await, "NONE");
    });
}

/// The leaders drop what they have in memory: a member must begin its session anew.
#[test]
fn share_groups_are_switched_off() {
    run_on_levels(async |target| {
        target.since(KafkaVersion::V4_4, "share.version 2").await;
        set(&target, "share.version", 2).await;
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        let mut member = ShareMember::reading(&target, &group, &topic, "m1").await;

        set(&target, "share.version", 0).await;
        let off = "UNSUPPORTED_VERSION";
        let beat = member.coordinator.call(member.heartbeat(member.epoch), HEARTBEAT).await;
        assert_eq!((names([beat.error_code]), beat.error_message), (vec![off], None));
        let group_ids = vec![group.clone(), Str::default(), group.clone()];
        let request = ShareGroupDescribeRequest { group_ids, ..Default::default() };
        let described = member.coordinator.call(request, 1).await.groups;
        assert_eq!(names(described.iter().map(|group| group.error_code)), [off; 3], "in the order asked for");
        assert_eq!(member.refused(member.request(&[])).await, off);
        let acknowledged = member.leader.call(member.acknowledge_request(&[(0, 0, &[ACCEPT])]), 2).await;
        assert_eq!(names([acknowledged.error_code]), [off]);
        let asked = DescribeShareGroupOffsetsRequestGroup { group_id: group.clone(), topics: None };
        let request = DescribeShareGroupOffsetsRequest { groups: vec![asked] };
        let offsets = member.coordinator.call(request, 1).await.groups.remove(0);
        assert_eq!((names([offsets.error_code]), offsets.error_message), (vec![off], None));
        let topics = vec![DeleteShareGroupOffsetsRequestTopic { topic_name: topic.name.clone() }];
        let request = DeleteShareGroupOffsetsRequest { group_id: group.clone(), topics };
        assert_eq!(names([member.coordinator.call(request, 0).await.error_code]), [off]);
        assert_eq!(&*listed(&mut member.coordinator, &group).await.group_type, "share");
        assert!(advertises(&target, ApiKey::ShareFetch).await);

        set(&target, "share.version", 2).await;
        member.beat(None).await;
        assert_eq!(member.refused(member.request(&[])).await, "SHARE_SESSION_NOT_FOUND");
    });
}

#[test]
fn streams_groups_are_switched_off() {
    run_on_levels(async |target| {
        target.since(KafkaVersion::V4_4, "StreamsGroupHeartbeat 1").await;
        set(&target, "streams.version", 0).await;
        let group = target.fresh("app");
        let mut wire = target.coordinator(&group).await;

        let request =
            StreamsGroupHeartbeatRequest { group_id: group.clone(), member_id: "m".into(), ..Default::default() };
        let beat = wire.call(request, 1).await;
        let request =
            StreamsGroupDescribeRequest { group_ids: vec![group.clone(), Str::default()], ..Default::default() };
        let described = wire.call(request, 1).await.groups;
        let request = StreamsGroupTopologyDescriptionUpdateRequest { group_id: group.clone(), ..Default::default() };
        let updated = wire.call(request, 0).await;

        let off = "UNSUPPORTED_VERSION";
        assert_eq!((names([beat.error_code]), beat.error_message), (vec![off], None));
        assert_eq!(names(described.iter().map(|group| group.error_code)), [off; 2]);
        assert_eq!((names([updated.error_code]), updated.error_message), (vec![off], None));
        assert!(advertises(&target, ApiKey::StreamsGroupHeartbeat).await);
        set(&target, "streams.version", 1).await;
    });
}

/// FI-09. Producers of the older way do not notice. Who has an epoch for each transaction is refused once the
/// coordinator finds that it cannot write that down; and then Kafka never takes the change back.
#[test]
fn transactions_at_level_0_have_no_room_for_newer_producers() {
    run_on_levels(async |target| {
        target.since(KafkaVersion::V4_0, "transaction.version").await;
        set(&target, "transaction.version", 0).await;
        let topic = target.topic(2).await;
        let mut plain = Producer::new(&target).await;
        assert_eq!(plain.add(&topic.name, &[0]).await, "NONE");
        assert_eq!(plain.send(PLAIN_PRODUCE, &topic, 0, &["a"]).await, Ok(0));
        assert_eq!(plain.send(PRODUCE, &topic, 1, &["b"]).await, Ok(1), "there is nothing to write down");
        plain.finish(PLAIN_END, true).await;
        assert_eq!(committed_values(&mut plain.broker, &topic).await, ["a", "b"]);
        let raised = plain.init(Some((plain.id, plain.epoch))).await;
        assert_eq!((raised.error_code, raised.producer_id, raised.producer_epoch), (0, plain.id, plain.epoch + 1));

        let mut newer = Producer::new(&target).await;
        assert_eq!(newer.send(PRODUCE, &topic, 0, &["a"]).await, Err("UNSUPPORTED_VERSION"));
        assert_eq!(newer.ends(END, true).await, "CONCURRENT_TRANSACTIONS");
        assert_eq!(newer.add(&topic.name, &[0]).await, "CONCURRENT_TRANSACTIONS");
        assert_eq!(&*newer.describe().await.transaction_state, "Empty");

        let mut ending = Producer::new(&target).await;
        assert_eq!(ending.add(&topic.name, &[0]).await, "NONE");
        assert_eq!(ending.ends(END, true).await, "UNSUPPORTED_VERSION");
        assert_eq!(ending.ends(PLAIN_END, true).await, "CONCURRENT_TRANSACTIONS");
        assert_eq!(&*ending.describe().await.transaction_state, "Ongoing");
        let refused = ending.init(None).await;
        assert_eq!(names([refused.error_code]), ["CONCURRENT_TRANSACTIONS"]);
        set(&target, "transaction.version", 2).await;
        assert_eq!(ending.ends(PLAIN_END, true).await, "CONCURRENT_TRANSACTIONS", "a level does not help");
    });
}

/// FI-09. It is the coordinator's log that changes with level 1, so that what a producer may do does not hang on 2.
#[test]
fn transactions_at_level_1_have_epochs_for_those_who_ask() {
    run_on_levels(async |target| {
        target.since(KafkaVersion::V4_0, "transaction.version").await;
        set(&target, "transaction.version", 1).await;
        let topic = target.topic(1).await;
        let mut newer = Producer::new(&target).await;
        assert_eq!(newer.send(PRODUCE, &topic, 0, &["a"]).await, Ok(0));
        let ended = newer.end(END, true).await;
        assert_eq!((ended.error_code, ended.producer_id, ended.producer_epoch), (0, newer.id, newer.epoch + 1));
        let mut plain = Producer::new(&target).await;
        assert_eq!(plain.send(PLAIN_PRODUCE, &topic, 0, &["b"]).await, Err("TRANSACTION_ABORTABLE"));
        assert_eq!(plain.add(&topic.name, &[0]).await, "NONE");
        assert_eq!(plain.send(PLAIN_PRODUCE, &topic, 0, &["b"]).await, Ok(2));

        // A transaction that was begun at one level may end at another.
        set(&target, "transaction.version", 2).await;
        plain.finish(PLAIN_END, true).await;

        assert_eq!(plain.ends(PLAIN_END, true).await, "NONE", "it repeats itself");
        assert_eq!(plain.ends(END, true).await, "INVALID_TXN_STATE");
        assert_eq!(committed_values(&mut plain.broker, &topic).await, ["a", "b"]);
    });
}

/// A level is raised as an upgrade only.
#[test]
fn no_level_is_downgraded_to_a_higher_one() {
    run_on_levels(async |target| {
        target.since(KafkaVersion::V4_4, "the levels of 4.4").await;
        set(&target, "group.version", 0).await;

        let refused = ask(&target, "group.version", 1, SAFE_DOWNGRADE).await.expect("a reason");
        let same = ask(&target, "group.version", 0, SAFE_DOWNGRADE).await;

        assert!(refused.ends_with("for feature group.version. Can't downgrade to a newer version."), "{refused}");
        assert_eq!(same, None);
        set(&target, "group.version", 1).await;
    });
}

/// A cluster may be formatted with a level.
///
/// Fake only: a real cluster is formatted when it is made.
#[test]
fn cluster_begins_at_the_level_that_it_is_built_with() {
    on_fake(FakeCluster::builder().feature("group.version", 0), async |target, _| {
        let topic = target.topic(1).await;
        let mut member = Consumer::new(&target, &target.fresh("group"), &[&topic]).await;

        assert_eq!(level_of(&target, "group.version").await, 0);
        assert_eq!(member.error(member.full()).await, "UNSUPPORTED_VERSION");
    });
}
