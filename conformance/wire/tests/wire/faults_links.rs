//! Links between nodes that are cut: what followers, the controller and coordinators make of it. Only the fake has the
//! rules; what follows is what Kafka does with its defaults.

use std::time::Duration;

use krafka_fake_broker::{FakeCluster, Rule, TransactionState};
use krafka_protocol::MetadataResponse;
use krafka_protocol::api::metadata::{MetadataRequest, MetadataRequestTopic};
use krafka_protocol::api::produce::ProduceRequest;

use crate::leaders::{orders, three};
use crate::records::{base_offsets, batch, error, fetch_request, only, produce_request};
use crate::target::{Topic, Wire, on_fake};
use crate::transactional::{END, PRODUCE, Producer, committed_values};

const SECOND: Duration = Duration::from_secs(1);

/// Cuts a node off from both others.
fn isolate(fake: &FakeCluster, node: i32) -> Vec<Rule> {
    let others = (1..=3).filter(|other| *other != node);
    others.map(|other| fake.when_network().on(node).peer(other).cut_off()).collect()
}

async fn produce(wire: &mut Wire, topic: &Topic, acks: i16, value: &str) -> &'static str {
    let answer = wire.call(produce_request(topic, acks, Some(batch(&[value]))), 9).await;
    error(answer.responses[0].partition_responses[0].error_code)
}

async fn metadata(wire: &mut Wire) -> MetadataResponse {
    let topic = MetadataRequestTopic { name: Some("orders".into()), ..MetadataRequestTopic::default() };
    wire.call(MetadataRequest { topics: Some(vec![topic]), ..MetadataRequest::default() }, 12).await
}

fn seen(response: &MetadataResponse) -> (Vec<i32>, i32) {
    let nodes = response.brokers.iter().map(|broker| broker.node_id).collect();
    (nodes, response.topics[0].partitions[0].leader_id)
}

/// The follower is out of sync after `replica.lag.time.max.ms`, and back when it can fetch again.
#[test]
fn follower_out_of_reach_falls_out_of_sync() {
    on_fake(three(), async |target, fake| {
        let topic = orders(&target).await;
        let mut wire = target.node(1).await;
        let cut = fake.when_network().on(3).peer(1).cut_off();

        assert_eq!(produce(&mut wire, &topic, 1, "a").await, "NONE");
        assert_eq!((fake.high_watermark("orders", 0), fake.in_sync_replicas("orders", 0)), (Some(0), vec![1, 2, 3]));
        wire.send(produce_request(&topic, -1, Some(batch(&["b"]))), 9).await;
        let late = wire.receive::<ProduceRequest>(9).await;
        assert_eq!(error(late.responses[0].partition_responses[0].error_code), "REQUEST_TIMED_OUT");

        let shrunk = |fake: &FakeCluster| (fake.in_sync_replicas("orders", 0) == [1, 2]).then_some(());
        fake.wait_for("shrunk ISR", shrunk).await;
        assert_eq!((fake.high_watermark("orders", 0), produce(&mut wire, &topic, -1, "c").await), (Some(2), "NONE"));

        cut.remove();
        fake.wait_for("whole ISR", |fake| (fake.in_sync_replicas("orders", 0).len() == 3).then_some(())).await;
    });
}

/// NET-15: the others go on without the leader after `broker.session.timeout.ms`; what it took meanwhile, and no
/// follower got, is lost. It tells what it knew, until it hears from the controller again.
#[test]
fn isolated_leader_is_replaced_and_its_tail_is_lost() {
    on_fake(three(), async |target, fake| {
        fake.move_controller(2);
        let topic = orders(&target).await;
        let (mut one, mut two) = (target.node(1).await, target.node(2).await);
        assert_eq!(produce(&mut one, &topic, -1, "kept").await, "NONE");

        let cut = isolate(&fake, 1);
        assert_eq!(produce(&mut one, &topic, 1, "lost").await, "NONE");
        assert_eq!(seen(&metadata(&mut two).await), (vec![1, 2, 3], 1));
        let moved = |fake: &FakeCluster| (fake.leader("orders", 0) == Some(2)).then_some(());
        fake.wait_for("next leader", moved).await;

        assert_eq!(seen(&metadata(&mut two).await), (vec![2, 3], 2));
        assert_eq!(seen(&metadata(&mut one).await), (vec![1, 2, 3], 1), "it has not heard");
        assert_eq!(produce(&mut two, &topic, -1, "after").await, "NONE");
        let data = only(two.call(fetch_request(&topic, 0), 12).await);
        assert_eq!((base_offsets(&data), data.high_watermark), (vec![0, 1], 2), "one record was lost");

        cut.iter().for_each(Rule::remove);
        fake.wait_for("whole ISR", |fake| (fake.in_sync_replicas("orders", 0).len() == 3).then_some(())).await;
        assert_eq!(seen(&metadata(&mut one).await), (vec![1, 2, 3], 2));
    });
}

/// A leader that cannot reach the controller cannot take anybody out of sync: what is written stays unconfirmed.
#[test]
fn isolated_leader_does_not_shrink_its_isr() {
    on_fake(three(), async |target, fake| {
        fake.move_controller(2);
        let topic = orders(&target).await;
        let mut one = target.node(1).await;
        isolate(&fake, 1);

        assert_eq!(produce(&mut one, &topic, 1, "lost").await, "NONE");
        tokio::time::sleep(8 * SECOND).await;

        assert_eq!((fake.leader("orders", 0), fake.high_watermark("orders", 0)), (Some(1), Some(0)));
        assert_eq!(fake.in_sync_replicas("orders", 0), [1, 2, 3]);
    });
}

/// The controller loses its office two seconds after it lost its majority (`controller.quorum.fetch.timeout.ms`).
#[test]
fn controller_without_a_majority_is_replaced() {
    on_fake(three(), async |_, fake| {
        assert_eq!(fake.controller(), 1);
        let cut = isolate(&fake, 1);
        tokio::time::sleep(SECOND).await;
        assert_eq!(fake.controller(), 1);

        fake.wait_for("next controller", |fake| (fake.controller() == 2).then_some(())).await;
        fake.wait_for("fenced node", |fake| (fake.live_nodes() == [2, 3]).then_some(())).await;

        cut.iter().for_each(Rule::remove);
        fake.wait_for("node that is back", |fake| (fake.live_nodes() == [1, 2, 3]).then_some(())).await;
    });
}

/// NET-05: the decision is made and answered; readers of committed records wait until the marker gets through.
#[test]
fn marker_waits_for_a_link_to_the_leader() {
    on_fake(three(), async |target, fake| {
        let topic = orders(&target).await;
        let mut producer = Producer::new(&target).await;
        producer.begin().await;
        let name = producer.name.to_string();
        let coordinator = fake.transaction_coordinator(&name);
        let leader = if coordinator == 2 { 3 } else { 2 };
        fake.move_leader("orders", 0, leader);
        let mut at_leader = target.node(leader).await;
        std::mem::swap(&mut producer.broker, &mut at_leader);
        assert_eq!(producer.send(PRODUCE, &topic, 0, &["a"]).await, Ok(0));
        let cut = fake.when_network().on(coordinator).peer(leader).cut_off();

        assert_eq!(producer.ends(END, true).await, "NONE");
        let mut reader = target.node(leader).await;
        assert_eq!(fake.transaction(&name).expect("it is known").state, TransactionState::PrepareCommit);
        assert!(committed_values(&mut reader, &topic).await.is_empty());

        cut.remove();
        let done =
            |fake: &FakeCluster| fake.transaction(&name).filter(|it| it.state == TransactionState::CompleteCommit);
        fake.wait_for("marker", done).await;
        assert_eq!(committed_values(&mut reader, &topic).await, ["a"]);
    });
}
