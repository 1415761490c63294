//! Claims, positions and leaders: who wins over whom.

use std::sync::Arc;

use krafka_protocol::NodeIds;

use super::*;
use crate::cluster::{Node, PartitionView, TopicView};

fn name(partition: i32) -> TopicPartition {
    TopicPartition { topic: Arc::from("t"), partition }
}

/// A cluster of nodes 1 and 2, where `leader` leads partition 0 of topic `t`.
fn snapshot(id: u8, leader: i32, epoch: i32) -> Snapshot {
    let node = |id| Arc::new(Node { id, host: Str::from("h"), port: 1, rack: None });
    let view = PartitionView {
        leader: Some(leader),
        leader_epoch: epoch,
        replicas: [1, 2].into(),
        isr: [1, 2].into(),
        offline: NodeIds::new(),
    };
    let topic = TopicView { name: Str::from("t"), id: Uuid([id; 16]), is_internal: false, partitions: vec![view] };
    Snapshot {
        nodes: BTreeMap::from([(1, node(1)), (2, node(2))]),
        topics: BTreeMap::from([(Str::from("t"), Arc::new(topic))]),
        ..Snapshot::default()
    }
}

fn earliest(_: &TopicPartition) -> Result<Start, KrafkaError> {
    Ok(Start::Earliest)
}

/// Partition 0, fetching at offset 10 behind a record of epoch 4.
fn fetching() -> (Subscription, Claim) {
    let mut subscription = Subscription::default();
    let claim = subscription.add(name(0), Stage::Loading);
    subscription.follow(&snapshot(1, 1, 4), &earliest);
    subscription.settle(claim.slot, Position::new(10, 4));
    let claim = subscription.iter().next().expect("one partition").0;
    (subscription, claim)
}

/// LE-16.
#[test]
fn a_seek_wins_over_a_pending_load() {
    let mut subscription = Subscription::default();
    let asked = subscription.add(name(0), Stage::Loading);

    subscription.seek(asked.slot, Position::new(7, -1));

    assert!(subscription.held(asked).is_none(), "the answer to the older question finds nobody");
    assert_eq!(subscription.partition(&name(0)).expect("assigned").position.offset, 7);
}

#[test]
fn a_removed_partition_is_held_by_nobody_even_if_its_slot_is_reused() {
    let (mut subscription, claim) = fetching();

    subscription.remove(&name(0));
    let other = subscription.add(name(1), Stage::Loading);

    assert_eq!(other.slot, claim.slot);
    assert!(subscription.held(claim).is_none());
}

/// LE-08.
#[test]
fn a_new_leader_epoch_makes_the_position_validate_before_it_is_fetched_on() {
    let (mut subscription, claim) = fetching();

    let dropped = subscription.follow(&snapshot(1, 2, 5), &earliest);

    assert_eq!(dropped, [claim.slot]);
    assert!(matches!(subscription.partition(&name(0)).expect("assigned").stage, Stage::Validating));
    assert!(subscription.held(claim).is_none(), "what is in flight from the old leader is dropped");
}

/// LE-12: the answer of the leader that was asked is about a log that is not the one to be read.
#[test]
fn a_newer_leader_makes_a_check_that_is_under_way_void() {
    let (mut subscription, claim) = fetching();
    let asked = |subscription: &Subscription| subscription.iter().next().expect("one partition").0;
    subscription.follow(&snapshot(1, 2, 5), &earliest);
    let first = asked(&subscription);

    assert!(subscription.follow(&snapshot(1, 2, 5), &earliest).is_empty());
    assert!(subscription.held(first).is_some(), "nothing has changed");
    assert_eq!(subscription.follow(&snapshot(1, 1, 6), &earliest), [claim.slot]);

    assert!(subscription.held(first).is_none());
    let partition = subscription.partition(&name(0)).expect("assigned");
    assert!(matches!(partition.stage, Stage::Validating));
    assert_eq!(partition.position, Position::new(10, 4));
}

#[test]
fn the_same_leader_changes_nothing() {
    let (mut subscription, claim) = fetching();

    assert!(subscription.follow(&snapshot(1, 1, 4), &earliest).is_empty());
    assert!(subscription.held(claim).is_some());
}

/// LE-13.
#[test]
fn a_position_without_epoch_is_fetched_from_the_new_leader_at_once() {
    let (mut subscription, claim) = fetching();
    subscription.settle(claim.slot, Position::new(10, -1));

    assert!(subscription.follow(&snapshot(1, 2, 5), &earliest).is_empty());

    let partition = subscription.partition(&name(0)).expect("assigned");
    assert!(matches!(partition.stage, Stage::Fetching));
    assert_eq!(partition.leader, Some((2, 5)));
}

#[test]
fn a_topic_created_anew_starts_over() {
    let (mut subscription, claim) = fetching();

    let dropped = subscription.follow(&snapshot(2, 1, 0), &earliest);

    assert_eq!(dropped, [claim.slot]);
    let partition = subscription.partition(&name(0)).expect("assigned");
    assert!(matches!(partition.stage, Stage::Resetting(Start::Earliest)));
    assert_eq!(partition.leader, Some((1, 0)), "epochs of the old topic mean nothing");
}

#[test]
fn what_the_last_poll_returned_becomes_committable_with_the_next() {
    let (mut subscription, claim) = fetching();
    subscription.acknowledge();

    subscription.delivered(claim, Position::new(15, 4));
    let during = subscription.partition(&name(0)).expect("assigned").committable;
    subscription.acknowledge();
    let after = subscription.partition(&name(0)).expect("assigned").committable;

    assert_eq!(during, Some(Position::new(10, 4)));
    assert_eq!(after, Some(Position::new(15, 4)));
}

#[test]
fn adding_a_partition_again_keeps_it_paused() {
    let (mut subscription, claim) = fetching();
    subscription.held(claim).expect("held").paused = true;

    subscription.add(name(0), Stage::Loading);

    assert!(subscription.partition(&name(0)).expect("assigned").paused);
}

/// LE-26: it is not waited for at a replica that metadata calls gone.
#[test]
fn a_preferred_replica_that_is_gone_is_forgotten() {
    #[expect(clippy::disallowed_methods, reason = "a test may begin at any time")]
    let until = std::time::Instant::now();
    let partition_of = |change: &dyn Fn(&mut Snapshot)| {
        let (mut subscription, claim) = fetching();
        subscription.held(claim).expect("held").preferred = Some(Preferred::new(2, (1, 4), until));
        let mut snapshot = snapshot(1, 1, 4);
        change(&mut snapshot);
        subscription.follow(&snapshot, &earliest);
        subscription.partition(&name(0)).expect("assigned").preferred.map(|preferred| preferred.node())
    };
    let view = |snapshot: &mut Snapshot, change: &dyn Fn(&mut PartitionView)| {
        let topic = Arc::make_mut(snapshot.topics.get_mut("t").expect("there"));
        change(&mut topic.partitions[0]);
    };

    assert_eq!(partition_of(&|_| ()), Some(2));
    assert_eq!(partition_of(&|snapshot| drop(snapshot.nodes.remove(&2))), None);
    assert_eq!(partition_of(&|snapshot| view(snapshot, &|view| view.offline = [2].into())), None);
    assert_eq!(partition_of(&|snapshot| view(snapshot, &|view| view.replicas = [1, 3].into())), None);
}
