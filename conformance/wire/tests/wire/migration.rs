//! Groups that go from one protocol to the other with members in them.

use krafka_fake_broker::{FakeCluster, KafkaVersion, MigrationPolicy};
use krafka_protocol::group::Assignment;
use krafka_protocol::{Bytes, ErrorCode, Str};

use crate::consumer::Consumer;
use crate::member::{JOIN, Member};
use crate::target::{Target, Topic, on_fake, run};

/// Both protocols are at home in one group since 4.0; before, a setting must allow it.
async fn both_ways(target: &Target) {
    target.since(KafkaVersion::V4_0, "online migration by default").await;
}

fn partitions(assignment: &Bytes, topic: &Topic) -> Vec<i32> {
    let read = Assignment::from_bytes(assignment.clone()).expect("an assignment");
    let mut all: Vec<i32> = read
        .assigned_partitions
        .into_iter()
        .filter(|assigned| assigned.topic == topic.name)
        .flat_map(|assigned| assigned.partitions)
        .collect();
    all.sort_unstable();
    all
}

/// A classic group of one consumer, which has assigned everything to itself.
async fn old_member(target: &Target, group: &Str, topic: &Topic, count: i32) -> Member {
    let mut old = Member::consumer(target, group, &[&topic.name]).await;
    old.join().await;
    let share = old.assignment_of(topic, &(0..count).collect::<Vec<_>>());
    let request = old.sync_request_with(share);
    assert_eq!(old.wire.call(request, 5).await.error_code, 0);
    old
}

/// Lets the old member do what it is told until it has so many partitions.
async fn follow(old: &mut Member, new: &mut Consumer, topic: &Topic, count: usize) -> Vec<i32> {
    for _ in 0..100 {
        let told = old.heartbeat().await;
        if told == ErrorCode::REBALANCE_IN_PROGRESS {
            let joined = old.join().await;
            assert_eq!(joined.error_code, 0);
            let synced = old.wire.call(old.sync_request(&[]), 5).await;
            let has = partitions(&synced.assignment, topic);
            old.owns(topic, &has);
            if synced.error_code == 0 && has.len() == count && old.heartbeat().await == ErrorCode::NONE {
                return has;
            }
        }
        new.say(new.holding()).await;
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the old member never had {count}");
}

/// GN-23, up.
#[test]
fn first_new_member_makes_the_group_one_of_kip_848() {
    run(async |target| {
        both_ways(&target).await;
        let (group, topic) = (target.fresh("group"), target.topic(4).await);
        let mut old = old_member(&target, &group, &topic, 4).await;
        let mut new = Consumer::new(&target, &group, &[&topic]).await;

        let joined = new.join().await;
        assert_eq!((joined.error_code, joined.member_epoch), (0, old.generation + 1));
        assert_eq!(new.size(), 0, "the old member has them all");
        let described = new.describe().await;
        assert_eq!((described.error_code, described.members.len()), (0, 2));
        let of_old = described.members.iter().find(|member| member.member_id == old.id).expect("it is still in");
        assert_eq!((of_old.member_epoch, &of_old.subscribed_topic_names), (old.generation, &vec![topic.name.clone()]));
        assert_eq!(of_old.assignment.topic_partitions[0].partitions.len(), 4);

        let kept = follow(&mut old, &mut new, &topic, 2).await;
        new.settle(2).await;

        let mut all = [kept, new.assigned[&topic.id].clone()].concat();
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3]);
        assert_eq!(&*new.state().await, "Stable");
        assert_eq!(old.generation, new.epoch, "the generation is the member's epoch");
    });
}

#[test]
fn old_member_in_a_new_group_is_checked_as_ever() {
    run(async |target| {
        both_ways(&target).await;
        let (group, topic) = (target.fresh("group"), target.topic(2).await);
        let mut new = Consumer::new(&target, &group, &[&topic]).await;
        new.join().await;
        let mut old = Member::consumer(&target, &group, &[&topic.name]).await;

        let refused = old.wire.call(old.join_request(), JOIN).await;
        assert_eq!(ErrorCode(refused.error_code), ErrorCode::MEMBER_ID_REQUIRED);
        assert_eq!(refused.member_id.len(), 22, "a UUID, other than a classic group's: {}", refused.member_id);
        let joined = old.join().await;
        assert_eq!((joined.error_code, joined.leader.as_str(), joined.members.len()), (0, "", 0), "nobody leads");
        assert_eq!(
            (joined.protocol_type.as_deref(), joined.protocol_name.as_deref()),
            (Some("consumer"), Some("range"))
        );

        let ours = old.generation;
        old.generation = ours + 5;
        assert_eq!(old.heartbeat().await, ErrorCode::ILLEGAL_GENERATION);
        let error = old.wire.call(old.sync_request(&[]), 5).await.error_code;
        assert_eq!(ErrorCode(error), ErrorCode::ILLEGAL_GENERATION);
        old.generation = ours;
        let mut stranger = Member::new(&target, &group).await;
        let error = stranger.wire.call(stranger.join_request(), JOIN).await.error_code;
        assert_eq!(ErrorCode(error), ErrorCode::INCONSISTENT_GROUP_PROTOCOL, "no consumer");
        old.protocols = vec![("sticky", "")];
        let error = old.wire.call(old.sync_request(&[]), 5).await.error_code;
        assert_eq!(ErrorCode(error), ErrorCode::NONE, "what it said when it joined counts");
        old.id = new.id.clone();
        assert_eq!(old.heartbeat().await, ErrorCode::UNKNOWN_MEMBER_ID, "a member of the other protocol");
        assert_eq!(old.leave().await, ErrorCode::NONE, "whoever is in the group may be taken out of it");
        assert_eq!(new.error(new.brief()).await, "GROUP_ID_NOT_FOUND", "and the group is classic again");
    });
}

/// What a member says of itself must be a consumer's subscription. A classic group does not look at it.
#[test]
fn old_member_that_cannot_be_read_is_refused_in_a_new_group() {
    run(async |target| {
        both_ways(&target).await;
        let (group, topic) = (target.fresh("group"), target.topic(1).await);
        let mut new = Consumer::new(&target, &group, &[&topic]).await;
        new.join().await;

        for unreadable in [&b""[..], &b"\0"[..], &b"\0\0\0\0\0\x01\0\x09name"[..]] {
            let mut old = Member::consumer(&target, &group, &[&topic.name]).await;
            old.subscription = Some(Bytes::copy_from_slice(unreadable));
            let refused = old.join().await;
            let error = ErrorCode(refused.error_code);
            assert_eq!(error, ErrorCode::INCONSISTENT_GROUP_PROTOCOL, "{unreadable:?}");
            assert_eq!(&*refused.member_id, "", "a classic group would repeat it");
        }
    });
}

/// GN-23, down.
#[test]
fn group_is_classic_again_when_the_last_new_member_leaves() {
    run(async |target| {
        both_ways(&target).await;
        let (group, topic) = (target.fresh("group"), target.topic(4).await);
        let mut old = old_member(&target, &group, &topic, 4).await;
        let mut new = Consumer::new(&target, &group, &[&topic]).await;
        new.join().await;
        follow(&mut old, &mut new, &topic, 2).await;
        new.settle(2).await;
        let generation = old.generation;

        assert_eq!(new.leave().await.error_code, 0);

        assert_eq!(ErrorCode(new.describe().await.error_code), ErrorCode::GROUP_ID_NOT_FOUND);
        assert_eq!(old.heartbeat().await, ErrorCode::REBALANCE_IN_PROGRESS);
        let joined = old.join().await;
        assert_eq!((joined.generation_id, joined.leader), (generation + 1, old.id.clone()));
        assert_eq!(joined.members.len(), 1, "it assigns itself again");
    });
}

/// GN-23, down: the last new member is replaced by an old one of the same name. The generation goes on where the epoch
/// was, and once up for the other topics.
#[test]
fn group_is_classic_again_when_an_old_member_takes_the_place_of_the_last_new_one() {
    run(async |target| {
        both_ways(&target).await;
        let (group, topic, other) = (target.fresh("group"), target.topic(1).await, target.topic(1).await);
        let mut new = Consumer::new(&target, &group, &[&topic]).await;
        new.instance = Some("shelf".into());
        new.join().await;
        let mut old = Member::consumer(&target, &group, &[&topic.name, &other.name]).await;
        old.instance = new.instance.clone();

        let joined = old.join().await;
        assert_eq!((joined.error_code, joined.generation_id), (0, 0), "it is in no generation yet");
        assert_eq!(ErrorCode(new.describe().await.error_code), ErrorCode::GROUP_ID_NOT_FOUND);
        let again = old.join().await;

        assert_eq!((again.error_code, again.generation_id), (0, new.epoch + 1));
    });
}

#[test]
fn group_of_no_consumers_stays_as_it_is() {
    run(async |target| {
        both_ways(&target).await;
        let (group, topic) = (target.fresh("group"), target.topic(1).await);
        let mut other = Member::new(&target, &group).await;
        other.join().await;
        other.sync(&[]).await;
        let mut new = Consumer::new(&target, &group, &[&topic]).await;

        let refused = new.say(new.full()).await;

        assert_eq!(ErrorCode(refused.error_code), ErrorCode::GROUP_ID_NOT_FOUND);
        let expected = format!(
            "Cannot upgrade classic group {group} to consumer group because the group does not use the consumer \
             embedded protocol."
        );
        assert_eq!(refused.error_message.as_deref(), Some(&*expected));
        assert_eq!(other.heartbeat().await, ErrorCode::NONE);
    });
}

/// Fake only: `group.consumer.migration.policy` is set when a broker starts.
#[test]
fn policy_says_which_way_is_open() {
    let builder = |policy| FakeCluster::builder().topic("t", 2).group_consumer_migration_policy(policy);
    on_fake(builder(MigrationPolicy::Downgrade), async |target, _| {
        let (group, topic) = (target.fresh("group"), topic(&target, "t").await);
        old_member(&target, &group, &topic, 2).await;
        let mut new = Consumer::new(&target, &group, &[&topic]).await;

        let refused = new.say(new.full()).await;

        let expected =
            format!("Cannot upgrade classic group {group} to consumer group because online upgrade is disabled.");
        assert_eq!(refused.error_message.as_deref(), Some(&*expected));
    });
    on_fake(builder(MigrationPolicy::Upgrade), async |target, _| {
        let (group, topic) = (target.fresh("group"), topic(&target, "t").await);
        old_member(&target, &group, &topic, 2).await;
        let mut new = Consumer::new(&target, &group, &[&topic]).await;
        new.join().await;

        new.leave().await;

        assert_eq!(new.describe().await.members.len(), 1, "it stays a group of KIP-848");
    });
    on_fake(builder(MigrationPolicy::Disabled), async |target, _| {
        let (group, topic) = (target.fresh("group"), topic(&target, "t").await);
        let mut new = Consumer::new(&target, &group, &[&topic]).await;
        new.join().await;
        let mut old = Member::consumer(&target, &group, &[&topic.name]).await;

        let refused = old.wire.call(old.join_request(), JOIN).await;

        assert_eq!(ErrorCode(refused.error_code), ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    });
}

async fn topic(target: &Target, name: &'static str) -> Topic {
    let ask = krafka_protocol::api::metadata::MetadataRequestTopic {
        name: Some(name.into()),
        ..krafka_protocol::api::metadata::MetadataRequestTopic::default()
    };
    let request = krafka_protocol::MetadataRequest { topics: Some(vec![ask]), ..Default::default() };
    let found = target.connect().await.call(request, 12).await.topics.remove(0);
    Topic { name: name.into(), id: found.topic_id }
}
