//! How a member of a share group ends, and what the nodes that it read from forget then. FI-08, and what SH-08, SH-09
//! say of the broker.
//!
//! A node knows nobody of a group but those that have a session on it. When the connection of the last one is gone, the
//! node drops what it has of the group in memory, and loads it again from what was kept.

use std::time::Duration;

use krafka_fake_broker::KafkaVersion;
use krafka_protocol::api::share_fetch::{ForgottenTopic, ShareFetchRequest};

use crate::records::{batch, written};
use crate::share_dead_letters::configure;
use crate::share_member::{ACCEPT, RELEASE, ShareMember};
use crate::target::{run, run_on_three};

const EARLIEST: (&str, &str) = ("share.auto.offset.reset", "earliest");

/// Long enough for a node to see that a connection is gone, and to write what follows.
const MOMENT: Duration = Duration::from_millis(400);

/// Leaving is between a member and its coordinator: its sessions and its records last, and count.
#[test]
fn a_member_that_leaves_keeps_its_records() {
    run_on_three(async |target| {
        target.since(KafkaVersion::V4_2, "ShareFetch 2").await;
        for node in 1..=3 {
            let (group, topic) = (target.fresh("share"), target.topic_on(&[node]).await);
            configure(&target, &group, &[EARLIEST]).await;
            let mut leaver = ShareMember::joined(&target, &group, &topic, "m1").await;
            let mut other = ShareMember::joined(&target, &group, &topic, "m2").await;
            (leaver.leader, other.leader) = (target.node(node).await, target.node(node).await);
            written(&mut target.node(node).await, &topic, batch(&["a", "b"])).await;
            assert_eq!(leaver.poll_until().await, [(0, 1, 1)]);

            leaver.leave().await;
            other.leave().await;
            tokio::time::sleep(MOMENT).await;
            let others = other.poll().await;
            let accepted = leaver.acknowledge(&[(0, 0, &[ACCEPT])]).await;
            let again = leaver.poll().await;

            assert_eq!((others, accepted, again), (vec![], "NONE", vec![]), "read from {node}");
        }
    });
}

/// What a session was not about any more is not given back with it, until its connection is gone and nobody else of the
/// group is there: the node drops all it has in memory, and nothing was kept of who had what.
#[test]
fn a_node_forgets_a_group_with_its_last_connection() {
    run_on_three(async |target| {
        target.since(KafkaVersion::V4_2, "ShareFetch 2").await;
        for node in 1..=3 {
            let (group, topic) = (target.fresh("share"), target.topic_on(&[node]).await);
            configure(&target, &group, &[EARLIEST]).await;
            let mut first = ShareMember::joined(&target, &group, &topic, "m1").await;
            let mut second = ShareMember::joined(&target, &group, &topic, "m2").await;
            (first.leader, second.leader) = (target.node(node).await, target.node(node).await);
            written(&mut target.node(node).await, &topic, batch(&["a", "b"])).await;
            assert_eq!(first.poll_until().await, [(0, 1, 1)]);

            let forgotten_topics_data = vec![ForgottenTopic { topic_id: topic.id, partitions: vec![0] }];
            let forget = ShareFetchRequest { topics: vec![], forgotten_topics_data, ..first.request(&[]) };
            first.ask(forget).await;
            first.ask(ShareFetchRequest { topics: vec![], share_session_epoch: -1, ..first.request(&[]) }).await;
            let closed = second.poll().await;
            second.ask(ShareFetchRequest { topics: vec![], share_session_epoch: -1, ..second.request(&[]) }).await;
            second.session_epoch = 0;
            let both_closed = second.poll().await;
            first.leader = target.node(node).await;
            tokio::time::sleep(MOMENT).await;
            let one_lost = second.poll().await;
            second.leader = target.node(node).await;
            tokio::time::sleep(MOMENT).await;
            second.session_epoch = 0;
            let both_lost = second.poll().await;

            assert_eq!((closed, both_closed, one_lost), (vec![], vec![], vec![]), "read from {node}");
            assert_eq!(both_lost, [(0, 1, 1)], "read from {node}");
        }
    });
}

/// Records that were often delivered come in smaller stretches, the smaller the batch is that a leader knows: after the
/// last connection of a group is gone, that is what was kept of each state.
#[test]
fn a_node_that_has_forgotten_knows_smaller_batches() {
    run_on_three(async |target| {
        target.since(KafkaVersion::V4_4, "smaller stretches for what was often delivered").await;
        for node in 1..=3 {
            let (group, topic) = (target.fresh("share"), target.topic_on(&[node]).await);
            configure(&target, &group, &[EARLIEST, ("share.delivery.count.limit", "4")]).await;
            let mut member = ShareMember::joined(&target, &group, &topic, "m1").await;
            member.leader = target.node(node).await;
            written(&mut target.node(node).await, &topic, batch(&["a", "b", "c", "d", "e", "f"])).await;
            assert_eq!(member.poll_until().await, [(0, 5, 1)]);
            let said = [ACCEPT, RELEASE, RELEASE, ACCEPT, RELEASE, RELEASE];
            assert_eq!(member.acknowledge(&[(0, 5, &said)]).await, "NONE");
            assert_eq!(member.poll_until().await, [(1, 2, 2), (4, 5, 2)]);

            member.leader = target.node(node).await;
            tokio::time::sleep(MOMENT).await;
            member.session_epoch = 0;
            let anew = [member.poll_until().await, member.poll_until().await];

            assert_eq!(anew, [[(1, 1, 3)], [(2, 2, 3)]], "read from {node}");
        }
    });
}

/// A group that begins at the end begins there again, as long as nothing was kept.
#[test]
fn a_group_that_kept_nothing_begins_anew() {
    run(async |target| {
        target.since(KafkaVersion::V4_2, "ShareFetch 2").await;
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        let mut member = ShareMember::reading(&target, &group, &topic, "m1").await;
        let mut wire = target.connect().await;

        member.leader = target.connect().await;
        tokio::time::sleep(MOMENT).await;
        written(&mut wire, &topic, batch(&["missed"])).await;
        member.session_epoch = 0;
        let missed = member.poll().await;
        written(&mut wire, &topic, batch(&["seen"])).await;
        let seen = member.poll_until().await;

        assert_eq!((missed, seen), (vec![], vec![(1, 1, 1)]));
    });
}

/// Records that were given up do not hold up those behind them: only what may be handed out counts as often delivered.
#[test]
fn given_up_records_hold_nothing_up() {
    run(async |target| {
        target.since(KafkaVersion::V4_3, "share.delivery.count.limit").await;
        let (group, topic) = (target.fresh("share"), target.topic(1).await);
        configure(&target, &group, &[EARLIEST, ("share.delivery.count.limit", "2")]).await;
        let mut member = ShareMember::joined(&target, &group, &topic, "m1").await;
        for value in ["a", "b", "c"] {
            written(&mut target.connect().await, &topic, batch(&[value])).await;
        }
        let one = |member: &ShareMember| ShareFetchRequest { max_records: 1, ..member.request(&[]) };
        let mut got = Vec::new();
        while got.len() < 3 {
            got.extend(member.acquired(one(&member)).await);
        }
        assert_eq!(got, [(0, 0, 1), (1, 1, 1), (2, 2, 1)]);

        assert_eq!(member.acknowledge(&[(1, 1, &[RELEASE])]).await, "NONE");
        assert_eq!(member.poll_until().await, [(1, 1, 2)]);
        assert_eq!(member.acknowledge(&[(0, 2, &[RELEASE])]).await, "NONE");

        assert_eq!(member.poll_until().await, [(0, 0, 2), (2, 2, 2)]);
    });
}
