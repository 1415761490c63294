//! Coordinators and leaders that die: what the next one knows.

use krafka_fake_broker::KafkaVersion;
use krafka_protocol::api::find_coordinator::FindCoordinatorRequest;
use krafka_protocol::{Bytes, ErrorCode, Str};

use crate::consumer::Consumer;
use crate::member::pair;
use crate::mortals::{Mortals, comes, partition, run_on_mortals};
use crate::records::{batch, error, written};
use crate::share_member::{ACCEPT, RELEASE, RENEW, ShareMember};
use crate::target::{Target, Topic, Wire};
use crate::transactional::{PLAIN_END, PLAIN_PRODUCE, Producer, committed_values};

const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;

/// The nodes that there are.
const ALL: [i32; 4] = [1, 2, 3, 4];

/// Who coordinates a key, as this node says. A coordinator may have to be found first.
async fn coordinator(wire: &mut Wire, key_type: i8, key: &Str) -> i32 {
    let coordinator_keys = vec![key.clone()];
    let request = FindCoordinatorRequest { key_type, coordinator_keys, ..FindCoordinatorRequest::default() };
    loop {
        let found = wire.call(request.clone(), 4).await.coordinators.remove(0);
        if found.error_code == 0 {
            return found.node_id;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}

/// Kills the coordinator of a key, and returns the number of the next one.
async fn bereave(target: &Target, nodes: &Mortals, key_type: i8, key: &Str) -> i32 {
    let first = coordinator(&mut target.node(1).await, key_type, key).await;
    let witness = ALL.into_iter().find(|node| *node != first).expect("there are others");
    nodes.crash(first).await;
    let mut wire = target.node(witness).await;
    loop {
        let next = coordinator(&mut wire, key_type, key).await;
        if next != first {
            return next;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}

/// GC-30: one step of it.
#[test]
fn classic_group_survives_its_coordinator() {
    run_on_mortals(async |target, nodes| {
        let (mut leader, mut follower) = pair(&target).await;

        let next = bereave(&target, &nodes, GROUP, &leader.group.clone()).await;

        assert!(leader.wire.is_closed().await);
        (leader.wire, follower.wire) = (target.node(next).await, target.node(next).await);
        comes(ErrorCode::NONE, async || leader.heartbeat().await).await;
        // Who is still reading the group answers heartbeats as if all was well.
        comes((ErrorCode::NONE, Bytes::from_static(b"other half")), async || {
            let synced = follower.sync(&[]).await;
            (ErrorCode(synced.error_code), synced.assignment)
        })
        .await;
        assert_eq!(follower.heartbeat().await, ErrorCode::NONE, "in its generation");
    });
}

#[test]
fn consumer_group_survives_its_coordinator() {
    run_on_mortals(async |target, nodes| {
        target.since(KafkaVersion::V4_0, "groups of KIP-848 without a switch").await;
        let (topic, group) = (target.topic_on(&[1, 2, 3]).await, target.fresh("group"));
        let mut member = Consumer::new(&target, &group, &[&topic]).await;
        member.join().await;
        member.settle(1).await;
        let epoch = member.epoch;

        let next = bereave(&target, &nodes, GROUP, &group).await;

        member.wire = target.node(next).await;
        comes("NONE", async || member.error(member.holding()).await).await;
        assert_eq!((member.epoch, member.size()), (epoch, 1));
    });
}

/// SH-08: a new leader knows what was acknowledged and how often the rest was delivered, but not who had it.
#[test]
fn new_leader_knows_what_was_kept_of_a_share_partition() {
    run_on_mortals(async |target, nodes| {
        target.since(KafkaVersion::V4_2, "ShareFetch 2").await;
        let (topic, group) = (target.topic_on(&[1, 2, 3]).await, target.fresh("group"));
        let mut member = ShareMember::reading(&target, &group, &topic, "AAAAAAAAAAAAAAAAAAAAAQ").await;
        written(&mut target.node(1).await, &topic, batch(&["a", "b", "c", "d"])).await;
        assert_eq!(member.poll_until().await, [(0, 3, 1)]);
        assert_eq!(member.acknowledge(&[(0, 3, &[ACCEPT, RELEASE, ACCEPT, RENEW])]).await, "NONE");
        assert_eq!(member.poll_until().await, [(1, 1, 2)]);

        nodes.crash(1).await;

        let mut wire = target.node(2).await;
        comes(2, async || partition(&mut wire, &topic.name).await.leader_id).await;
        member.leader = wire;
        member.session_epoch = 0;
        // Of the last record nothing was ever written.
        assert_eq!(member.poll_until().await, [(1, 1, 2), (3, 3, 1)]);
    });
}

/// A producer in a transaction, with a topic for each of so many nodes that do not coordinate it: with their numbers.
async fn in_transaction(target: &Target, topics: usize) -> (Producer, Vec<(i32, Topic)>) {
    let mut producer = Producer::new(target).await;
    let by = coordinator(&mut target.node(1).await, TRANSACTION, &producer.name).await;
    let mut led = Vec::new();
    for node in ALL.into_iter().filter(|node| *node != by).take(topics) {
        led.push((node, target.topic_on(&[node]).await));
    }
    producer.broker = target.node(led[0].0).await;
    for (_, topic) in &led {
        producer.add_when_ready(&topic.name, 0).await;
    }
    producer.send(PLAIN_PRODUCE, &led[0].1, 0, &["v"]).await.expect("appended");
    (producer, led)
}

/// What a commit is answered, once the coordinator has read its log.
async fn commit(producer: &mut Producer) {
    comes("NONE", async || match producer.ends(PLAIN_END, true).await {
        loading @ ("COORDINATOR_LOAD_IN_PROGRESS" | "NOT_COORDINATOR" | "COORDINATOR_NOT_AVAILABLE") => loading,
        other => {
            assert_eq!(other, "NONE");
            other
        }
    })
    .await;
}

/// Nobody decides for a coordinator that is dead; the next one ends what was begun.
#[test]
fn crash_of_the_coordinator_ends_no_transaction() {
    run_on_mortals(async |target, nodes| {
        let (mut producer, led) = in_transaction(&target, 1).await;

        let next = bereave(&target, &nodes, TRANSACTION, &producer.name.clone()).await;

        producer.coordinator = target.node(next).await;
        comes("Ongoing".into(), async || producer.describe().await.transaction_state).await;
        assert_eq!(committed_values(&mut producer.broker, &led[0].1).await, [""; 0]);
        commit(&mut producer).await;
        comes(vec!["v".to_owned()], async || committed_values(&mut producer.broker, &led[0].1).await).await;
    });
}

/// What was decided is in the log of the coordinators: the next one tells those who were not told. A partition whose
/// leader hangs is waited for.
#[test]
fn markers_wait_for_a_leader_and_outlive_their_coordinator() {
    run_on_mortals(async |target, nodes| {
        let (mut producer, led) = in_transaction(&target, 2).await;
        let [(_, first), (there, second)] = &led[..] else { panic!("two topics") };
        nodes.pause(*there).await;

        commit(&mut producer).await;

        let waits = ("PrepareCommit".into(), vec![second.name.clone()]);
        comes(waits.clone(), async || stands(&mut producer).await).await;
        comes(vec!["v".to_owned()], async || committed_values(&mut producer.broker, first).await).await;
        assert_eq!(producer.add(&first.name, &[0]).await, "CONCURRENT_TRANSACTIONS");

        nodes.resume(*there).await;

        comes("CompleteCommit".into(), async || producer.describe().await.transaction_state).await;
        assert_eq!(producer.ends(PLAIN_END, true).await, "NONE", "it has not seen the answer, and asks again");
        let next = bereave(&target, &nodes, TRANSACTION, &producer.name.clone()).await;
        producer.coordinator = target.node(next).await;
        comes("CompleteCommit".into(), async || producer.describe().await.transaction_state).await;
    });
}

/// A partition without any leader is told when it has one: up to 4.2. Since 4.3 the transaction is over without it, and
/// who reads what is committed waits there.
#[test]
fn markers_for_a_partition_without_a_leader_wait_or_are_lost() {
    run_on_mortals(async |target, nodes| {
        let loses = target.version().await >= KafkaVersion::V4_3;
        let (mut producer, led) = in_transaction(&target, 1).await;
        let (node, topic) = &led[0];
        let witness = ALL.into_iter().rev().find(|other| other != node).expect("there are others");
        let mut wire = target.node(witness).await;
        nodes.crash(*node).await;
        comes(-1, async || partition(&mut wire, &topic.name).await.leader_id).await;

        commit(&mut producer).await;

        let state = if loses { "CompleteCommit" } else { "PrepareCommit" };
        comes(state.into(), async || producer.describe().await.transaction_state).await;
        nodes.restart(*node).await;
        comes(*node, async || partition(&mut wire, &topic.name).await.leader_id).await;
        comes("CompleteCommit".into(), async || producer.describe().await.transaction_state).await;
        let mut leader = target.node(*node).await;
        let committed: Vec<String> = if loses { vec![] } else { vec!["v".to_owned()] };
        comes(committed, async || committed_values(&mut leader, topic).await).await;
    });
}

/// How a transaction stands, and which topics have not been told.
async fn stands(producer: &mut Producer) -> (Str, Vec<Str>) {
    let state = producer.describe().await;
    assert_eq!(error(state.error_code), "NONE");
    (state.transaction_state, state.topics.into_iter().map(|topic| topic.topic).collect())
}
