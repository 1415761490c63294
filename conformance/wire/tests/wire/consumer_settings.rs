//! Groups of KIP-848 with settings of their own, and with a test that has the cluster in its hands.

use std::time::Duration;

use krafka_fake_broker::{FakeCluster, GroupKind, GroupState};
use krafka_protocol::ErrorCode;

use crate::consumer::Consumer;
use crate::target::on_fake;

/// Silence for longer than the session.
///
/// Fake only: Kafka's least session is 45 s, unless its brokers are started otherwise.
#[test]
fn silent_member_is_lost() {
    let builder = FakeCluster::builder().group_consumer_session_timeout(Duration::from_secs(2)).topic("t", 2);
    on_fake(builder, async |target, fake| {
        let group = target.fresh("group");
        let mut member = Consumer { topics: vec!["t".into()], ..Consumer::new(&target, &group, &[]).await };
        member.join().await;
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_millis(1_500)).await;
            assert_eq!(member.error(member.brief()).await, "NONE");
        }
        let view = fake.group(&group).expect("a group");
        assert_eq!((view.kind, view.state, view.is_stable_with(1)), (GroupKind::Consumer, GroupState::Stable, true));
        assert_eq!(view.members[0].partitions, [("t".into(), 0), ("t".into(), 1)]);

        tokio::time::sleep(Duration::from_millis(2_500)).await;

        assert_eq!(member.error(member.brief()).await, "UNKNOWN_MEMBER_ID");
        assert_eq!(fake.group(&group).expect("a group").state, GroupState::Empty);
    });
}

/// Fake only: it sets through the fake's own handle; `configs` does so by requests.
#[test]
fn settings_of_one_group_hold_for_it_alone() {
    on_fake(FakeCluster::builder().topic("t", 1), async |target, fake| {
        let group = target.fresh("group");
        fake.set_group_config(&group, "consumer.heartbeat.interval.ms", Some("7000"));
        let mut member = Consumer { topics: vec!["t".into()], ..Consumer::new(&target, &group, &[]).await };
        let mut other = Consumer { topics: vec!["t".into()], ..Consumer::new(&target, &target.fresh("g"), &[]).await };

        assert_eq!(member.join().await.heartbeat_interval_ms, 7_000);
        assert_eq!(other.join().await.heartbeat_interval_ms, 5_000);
    });
}

/// Fake only: `group.consumer.max.size` is set when a broker starts, for all groups.
#[test]
fn full_group_refuses_newcomers() {
    on_fake(FakeCluster::builder().group_consumer_max_size(1).topic("t", 1), async |target, _| {
        let group = target.fresh("group");
        let mut member = Consumer { topics: vec!["t".into()], ..Consumer::new(&target, &group, &[]).await };
        let mut other = Consumer { topics: vec!["t".into()], ..Consumer::new(&target, &group, &[]).await };
        member.join().await;

        let answer = other.say(other.full()).await;

        assert_eq!(ErrorCode(answer.error_code), ErrorCode::GROUP_MAX_SIZE_REACHED);
        let expected = "The consumer group has reached its maximum capacity of 1 members.";
        assert_eq!(answer.error_message.as_deref(), Some(expected));
        assert_eq!(member.error(member.full()).await, "NONE");
    });
}
