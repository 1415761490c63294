//! Leaders that move and nodes that die.

use krafka_fake_broker::{Clock, FakeCluster, FakeClusterBuilder, TokioClock};
use krafka_protocol::api::describe_topic_partitions::{DescribeTopicPartitionsRequest, TopicRequest};
use krafka_protocol::api::fetch::FetchRequest;
use krafka_protocol::api::metadata::{MetadataRequest, MetadataRequestTopic, MetadataResponse};
use krafka_protocol::api::produce::ProduceRequest;

use crate::elections::{hint, lead};
use crate::mortals::{comes, partition, run_on_mortals};
use crate::records::{base_offsets, batch, error, fetch_request, only, produce, produce_request, written};
use crate::target::{Target, Topic, Wire, on_fake, run_on_three};

pub(crate) fn three() -> FakeClusterBuilder {
    FakeCluster::builder().nodes(3).topic("orders", 1)
}

/// The topic of the cluster, with its id.
pub(crate) async fn orders(target: &Target) -> Topic {
    Topic { name: "orders".into(), id: metadata(&mut target.node(3).await, "orders").await.topics[0].topic_id }
}

async fn metadata(wire: &mut Wire, topic: &str) -> MetadataResponse {
    let topic = MetadataRequestTopic { name: Some(topic.into()), ..MetadataRequestTopic::default() };
    wire.call(MetadataRequest { topics: Some(vec![topic]), ..MetadataRequest::default() }, 12).await
}

/// A fetch that believes in a leader epoch.
fn believing(topic: &Topic, epoch: i32) -> FetchRequest {
    let mut request = fetch_request(topic, 0);
    request.topics[0].partitions[0].current_leader_epoch = epoch;
    request
}

/// Who leads a topic's partition, as this node knows it, and in which epoch.
async fn led(wire: &mut Wire, topic: &Topic) -> (i32, i32) {
    let partition = partition(wire, &topic.name).await;
    (partition.leader_id, partition.leader_epoch)
}

/// Who is in sync, as this node knows it.
pub(crate) async fn in_sync(wire: &mut Wire, topic: &Topic) -> Vec<i32> {
    let mut nodes = partition(wire, &topic.name).await.isr_nodes.to_vec();
    nodes.sort_unstable();
    nodes
}

/// LE-01, KIP-951.
#[test]
fn wrong_leader_says_who_leads_from_version_10_on() {
    run_on_three(async |target| {
        let topic = target.topic_on(&[1, 2]).await;
        lead(&target, &topic, 2).await;
        let mut wire = target.node(1).await;
        let request = produce_request(&topic, -1, Some(batch(&["a"])));
        let old = wire.call(request.clone(), 9).await;
        let new = wire.call(request, 10).await;

        assert_eq!(error(old.responses[0].partition_responses[0].error_code), "NOT_LEADER_OR_FOLLOWER");
        let told = &new.responses[0].partition_responses[0].current_leader;
        assert_eq!((told.leader_id, told.leader_epoch), led(&mut wire, &topic).await);
        assert_eq!(told.leader_id, 2);
        let brokers = metadata(&mut wire, &topic.name).await.brokers;
        let at = brokers.iter().find(|broker| broker.node_id == 2).expect("the leader");
        let endpoints: Vec<_> =
            new.node_endpoints.iter().map(|it| (it.node_id, &it.host, it.port, it.rack.as_ref())).collect();
        assert_eq!(endpoints, [(2, &at.host, at.port, at.rack.as_ref())]);
    });
}

/// LE-05, LE-06. A follower that is in step serves consumers that say where they are (KIP-392).
#[test]
fn old_leader_fences_old_epochs_and_serves_as_a_follower() {
    run_on_three(async |target| {
        let topic = target.topic_on(&[1, 2]).await;
        written(&mut target.node(1).await, &topic, batch(&["a"])).await;
        lead(&target, &topic, 2).await;
        let mut wire = target.node(1).await;
        let (_, epoch) = led(&mut wire, &topic).await;

        let fenced = wire.call(believing(&topic, epoch - 1), 16).await;
        assert_eq!(fenced.node_endpoints[0].node_id, 2);
        assert_eq!(hint(&only(fenced)), ("FENCED_LEADER_EPOCH", 2, epoch));
        let before = wire.call(believing(&topic, epoch - 1), 15).await;
        assert_eq!(hint(&only(before)), ("FENCED_LEADER_EPOCH", -1, -1), "hints came in version 16");
        // It is a follower once it has fetched from the leader.
        comes(vec![0], async || base_offsets(&only(wire.call(believing(&topic, epoch), 11).await))).await;
        assert_eq!(error(only(wire.call(believing(&topic, epoch), 10).await).error_code), "NOT_LEADER_OR_FOLLOWER");
    });
}

#[test]
fn node_without_a_replica_is_neither_leader_nor_follower() {
    run_on_three(async |target| {
        let topic = target.topic_on(&[1]).await;
        let answer = only(target.node(3).await.call(believing(&topic, 0), 16).await);

        assert_eq!(hint(&answer), ("NOT_LEADER_OR_FOLLOWER", 1, 0));
    });
}

#[test]
fn waiting_fetch_is_answered_when_its_leader_moves() {
    run_on_three(async |target| {
        let topic = target.topic_on(&[1, 2]).await;
        let mut wire = target.node(1).await;
        wire.send(FetchRequest { max_wait_ms: 60_000, ..believing(&topic, 0) }, 16).await;
        assert!(wire.is_quiet().await);

        lead(&target, &topic, 2).await;

        let (leader, epoch) = led(&mut target.node(2).await, &topic).await;
        assert_eq!(hint(&only(wire.receive::<FetchRequest>(16).await)), ("FENCED_LEADER_EPOCH", leader, epoch));
    });
}

#[test]
fn crash_cuts_connections_and_keeps_records() {
    run_on_mortals(async |target, nodes| {
        let topic = target.topic_on(&[1, 2, 3]).await;
        let mut wire = target.node(1).await;
        written(&mut wire, &topic, batch(&["a"])).await;
        wire.send(FetchRequest { max_wait_ms: 60_000, ..fetch_request(&topic, 1) }, 12).await;
        assert!(wire.is_quiet().await);

        nodes.crash(1).await;

        assert!(wire.is_closed().await);
        let mut wire = target.node(2).await;
        comes((2, 1), async || led(&mut wire, &topic).await).await;
        comes((vec![2, 3], vec![1]), async || {
            let found = partition(&mut wire, &topic.name).await;
            (found.isr_nodes.to_vec(), found.offline_replicas.to_vec())
        })
        .await;
        let mut brokers: Vec<_> = metadata(&mut wire, &topic.name).await.brokers.iter().map(|it| it.node_id).collect();
        brokers.sort_unstable();
        assert_eq!(brokers, [2, 3, 4]);
        // Who is told to lead does so a little later.
        comes(("NONE", 1), async || {
            let answer = produce(&mut wire, &topic, batch(&["b"])).await;
            (error(answer.error_code), answer.base_offset)
        })
        .await;

        nodes.restart(1).await;

        comes(vec![1, 2, 3], async || in_sync(&mut wire, &topic).await).await;
        assert_eq!(led(&mut wire, &topic).await.0, 2, "who comes back follows");
        let back = FetchRequest { max_bytes: 1 << 20, ..believing(&topic, 1) };
        comes(vec![0, 1], async || base_offsets(&only(target.node(1).await.call(back.clone(), 12).await))).await;
    });
}

/// What DescribeTopicPartitions tells of the only partition: who leads, who is in sync, who may lead besides, and who
/// led last.
async fn told(wire: &mut Wire, topic: &Topic) -> (i32, Vec<i32>, Vec<i32>, Vec<i32>) {
    let topics = vec![TopicRequest { name: topic.name.clone() }];
    let request = DescribeTopicPartitionsRequest { topics, response_partition_limit: 9, cursor: None };
    let it = wire.call(request, 0).await.topics.remove(0).partitions.remove(0);
    let (eligible, last) = (it.eligible_leader_replicas.unwrap_or_default(), it.last_known_elr.unwrap_or_default());
    (it.leader_id, it.isr_nodes, eligible, last)
}

/// KIP-966: with fewer in sync than `min.insync.replicas` who falls out may lead again, and the last leader where
/// nobody may.
#[test]
fn replica_is_eligible_while_too_few_are_in_sync() {
    run_on_mortals(async |target, nodes| {
        target.since(krafka_fake_broker::KafkaVersion::V4_1, "eligible leader replicas are on").await;
        let topic = target.topic_on_with(&[1, 2, 3], &[("min.insync.replicas", "2")]).await;
        let mut wire = target.node(4).await;
        nodes.crash(1).await;
        comes((2, vec![2, 3], vec![], vec![]), async || told(&mut wire, &topic).await).await;
        nodes.crash(2).await;
        comes((3, vec![3], vec![2], vec![]), async || told(&mut wire, &topic).await).await;
        nodes.crash(3).await;
        comes((-1, vec![], vec![2, 3], vec![3]), async || told(&mut wire, &topic).await).await;

        // It died, so that nobody knows what it still has.
        nodes.restart(2).await;
        comes((-1, vec![], vec![3], vec![3]), async || told(&mut wire, &topic).await).await;
        nodes.restart(3).await;
        comes((3, vec![2, 3], vec![], vec![]), async || told(&mut wire, &topic).await).await;
    });
}

/// What a replica looks like that never got the last records: it fences those who know the old epoch, tells where that
/// one ended, and has never heard of the sequences that are gone.
///
/// Fake only: a log is cut by hand; `lagging` does it by killing nodes.
#[test]
fn unclean_election_loses_records_epochs_and_sequences() {
    on_fake(three(), async |target, fake| {
        let topic = orders(&target).await;
        let mut wire = target.node(1).await;
        for values in [&["a", "b"][..], &["c"], &["d", "e"]] {
            written(&mut wire, &topic, batch(values)).await;
        }
        fake.move_leader("orders", 0, 2);
        let mut wire = target.node(2).await;
        written(&mut wire, &topic, batch(&["f"])).await;

        fake.truncate("orders", 0, 4);

        assert_eq!(fake.high_watermark("orders", 0), Some(3), "the batch that holds the offset goes as a whole");
        assert_eq!(hint(&only(wire.call(believing(&topic, 1), 16).await)), ("FENCED_LEADER_EPOCH", 2, 2));
        let mut behind = believing(&topic, 2);
        behind.topics[0].partitions[0].fetch_offset = 6;
        behind.topics[0].partitions[0].last_fetched_epoch = 1;
        let diverging = only(wire.call(behind, 16).await).diverging_epoch;
        assert_eq!((diverging.epoch, diverging.end_offset), (0, 3));
        assert_eq!(written(&mut wire, &topic, batch(&["g"])).await, 3);
    });
}

/// LE-19, MD-08.
#[test]
fn partition_without_a_live_replica_has_no_leader() {
    run_on_mortals(async |target, nodes| {
        let topic = target.topic_on(&[1]).await;
        nodes.crash(1).await;
        let mut wire = target.node(2).await;
        comes(("LEADER_NOT_AVAILABLE", -1), async || {
            let found = partition(&mut wire, &topic.name).await;
            (error(found.error_code), found.leader_id)
        })
        .await;
        let refused = wire.call(produce_request(&topic, 1, Some(batch(&["a"]))), 10).await;
        assert_eq!(error(refused.responses[0].partition_responses[0].error_code), "NOT_LEADER_OR_FOLLOWER");
        assert_eq!(refused.node_endpoints.len(), 0);

        nodes.restart(1).await;

        comes(1, async || led(&mut wire, &topic).await.0).await;
        assert_eq!(written(&mut target.node(1).await, &topic, batch(&["a"])).await, 0);
    });
}

/// PR-18.
#[test]
fn acks_all_needs_enough_replicas() {
    run_on_mortals(async |target, nodes| {
        let topic = target.topic_on_with(&[1, 2, 3], &[("min.insync.replicas", "2")]).await;
        nodes.crash(2).await;
        nodes.crash(3).await;
        let mut wire = target.node(1).await;
        comes(vec![1], async || in_sync(&mut wire, &topic).await).await;
        let answer = |acks| produce_request(&topic, acks, Some(batch(&["a"])));

        // The leader hears a little later than others what it is to know of the others.
        comes("NOT_ENOUGH_REPLICAS", async || {
            error(wire.call(answer(-1), 9).await.responses[0].partition_responses[0].error_code)
        })
        .await;
        let one = wire.call(answer(1), 9).await.responses.remove(0).partition_responses.remove(0);
        assert_eq!(error(one.error_code), "NONE");
    });
}

#[test]
fn sessions_do_not_outlive_their_node() {
    run_on_mortals(async |target, nodes| {
        let topic = target.topic_on(&[1]).await;
        let opening = FetchRequest { session_epoch: 0, ..fetch_request(&topic, 0) };
        let session_id = target.node(1).await.call(opening, 13).await.session_id;
        nodes.crash(1).await;
        nodes.restart(1).await;
        let next = FetchRequest { session_id, session_epoch: 1, topics: vec![], ..FetchRequest::default() };

        assert!(session_id > 0);
        assert_eq!(error(target.node(1).await.call(next, 13).await.error_code), "FETCH_SESSION_ID_NOT_FOUND");
    });
}

/// MD-26.
///
/// Fake only: `auto.create.topics.enable` is set when a broker starts.
#[test]
fn unknown_topic_is_created_when_that_is_on() {
    on_fake(three().auto_create_topics(true).default_partitions(4), async |target, _| {
        let mut wire = target.node(1).await;
        let first = metadata(&mut wire, "new").await.topics.remove(0);
        let second = metadata(&mut wire, "new").await.topics.remove(0);

        assert_eq!(error(first.error_code), "UNKNOWN_TOPIC_OR_PARTITION", "it is only being created");
        assert_eq!((error(second.error_code), second.partitions.len()), ("NONE", 4));
    });
}

/// TH: the answer comes at once and tells the time, and nothing is read before it is over.
///
/// Fake only: a rule throttles at once; `quotas` has throttles of Kafka.
#[test]
fn throttled_connection_is_muted_for_as_long_as_it_is_told() {
    on_fake(three(), async |target, fake| {
        let topic = orders(&target).await;
        let rule = fake.when(krafka_protocol::ApiKey::Produce).throttle(std::time::Duration::from_secs(5));
        let mut wire = target.node(1).await;
        let start = TokioClock.now();
        let told = wire.call(produce_request(&topic, -1, Some(batch(&["a"]))), 9).await;
        assert_eq!((told.throttle_time_ms, (TokioClock.now() - start).as_secs()), (5_000, 0));
        wire.send(produce_request(&topic, -1, Some(batch(&["b"]))), 9).await;
        wire.receive::<ProduceRequest>(9).await;

        assert_eq!(((TokioClock.now() - start).as_secs(), rule.hits()), (5, 1));
    });
}
