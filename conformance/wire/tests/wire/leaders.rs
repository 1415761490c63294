//! Leaders that move and nodes that die, on a fake of three nodes.

use krafka_fake_broker::{Clock, FakeCluster, FakeClusterBuilder, TokioClock};
use krafka_protocol::api::describe_topic_partitions::{DescribeTopicPartitionsRequest, TopicRequest};
use krafka_protocol::api::fetch::{FetchRequest, PartitionData};
use krafka_protocol::api::metadata::{MetadataRequest, MetadataRequestTopic, MetadataResponse};
use krafka_protocol::api::offset_for_leader_epoch::{
    OffsetForLeaderEpochRequest, OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use krafka_protocol::api::produce::ProduceRequest;

use crate::records::{base_offsets, batch, error, fetch_request, only, produce_request, written};
use crate::target::{Target, Topic, Wire, on_fake};

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

/// The hint of an answer.
fn hint(data: &PartitionData) -> (&'static str, i32, i32) {
    (error(data.error_code), data.current_leader.leader_id, data.current_leader.leader_epoch)
}

/// LE-01, KIP-951.
#[test]
fn wrong_leader_says_who_leads_from_version_10_on() {
    on_fake(three(), async |target, fake| {
        let topic = orders(&target).await;
        fake.move_leader("orders", 0, 2);
        let mut wire = target.node(1).await;
        let request = produce_request(&topic, -1, Some(batch(&["a"])));
        let old = wire.call(request.clone(), 9).await;
        let new = wire.call(request, 10).await;

        assert_eq!(error(old.responses[0].partition_responses[0].error_code), "NOT_LEADER_OR_FOLLOWER");
        let told = &new.responses[0].partition_responses[0];
        assert_eq!((told.current_leader.leader_id, told.current_leader.leader_epoch), (2, 1));
        let endpoint = &new.node_endpoints[0];
        assert_eq!((endpoint.node_id, &*endpoint.host, endpoint.port), (2, "broker-2", 9092));
        assert_eq!(new.node_endpoints.len(), 1);
    });
}

/// LE-05, LE-06. A follower that is in step serves consumers that say where they are (KIP-392).
#[test]
fn old_leader_fences_old_epochs_and_serves_as_a_follower() {
    on_fake(three(), async |target, fake| {
        let topic = orders(&target).await;
        written(&mut target.node(1).await, &topic, batch(&["a"])).await;
        fake.move_leader("orders", 0, 2);
        let mut wire = target.node(1).await;

        let fenced = wire.call(believing(&topic, 0), 16).await;
        assert_eq!(fenced.node_endpoints[0].node_id, 2);
        assert_eq!(hint(&only(fenced)), ("FENCED_LEADER_EPOCH", 2, 1));
        let before = wire.call(believing(&topic, 0), 15).await;
        assert_eq!(hint(&only(before)), ("FENCED_LEADER_EPOCH", -1, -1), "hints came in version 16");
        assert_eq!(base_offsets(&only(wire.call(believing(&topic, 1), 11).await)), [0]);
        assert_eq!(error(only(wire.call(believing(&topic, 1), 10).await).error_code), "NOT_LEADER_OR_FOLLOWER");
    });
}

#[test]
fn node_without_a_replica_is_neither_leader_nor_follower() {
    on_fake(three().replication_factor(1), async |target, _| {
        let topic = orders(&target).await;
        let mut wire = target.node(3).await;
        let answer = only(wire.call(believing(&topic, 0), 16).await);

        assert_eq!(hint(&answer), ("NOT_LEADER_OR_FOLLOWER", 1, 0));
    });
}

#[test]
fn waiting_fetch_is_answered_when_its_leader_moves() {
    on_fake(three(), async |target, fake| {
        let topic = orders(&target).await;
        let mut wire = target.node(1).await;
        wire.send(FetchRequest { max_wait_ms: 60_000, ..believing(&topic, 0) }, 16).await;
        assert!(wire.is_quiet().await);

        fake.move_leader("orders", 0, 3);

        assert_eq!(hint(&only(wire.receive::<FetchRequest>(16).await)), ("FENCED_LEADER_EPOCH", 3, 1));
    });
}

#[test]
fn crash_cuts_connections_and_keeps_records() {
    on_fake(three(), async |target, fake| {
        let topic = orders(&target).await;
        let mut wire = target.node(1).await;
        written(&mut wire, &topic, batch(&["a"])).await;
        wire.send(FetchRequest { max_wait_ms: 60_000, ..fetch_request(&topic, 1) }, 12).await;
        assert!(wire.is_quiet().await);

        fake.crash(1);

        assert!(wire.is_closed().await);
        assert!(fake.pipes().connect("broker-1", 9092).await.is_err());
        let answer = metadata(&mut target.node(2).await, "orders").await;
        let partition = &answer.topics[0].partitions[0];
        assert_eq!((partition.leader_id, partition.leader_epoch), (2, 1));
        assert_eq!((&partition.isr_nodes[..], &partition.offline_replicas[..]), (&[2, 3][..], &[1][..]));
        assert_eq!(answer.brokers.iter().map(|broker| broker.node_id).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(answer.controller_id, 2);
        assert_eq!(written(&mut target.node(2).await, &topic, batch(&["b"])).await, 1);
        assert_eq!(fake.partition_records("orders", 0).len(), 2);

        fake.restart(1);

        let back = metadata(&mut target.node(1).await, "orders").await.topics.remove(0).partitions.remove(0);
        assert_eq!((back.leader_id, &back.isr_nodes[..]), (2, &[1, 2, 3][..]));
    });
}

/// What DescribeTopicPartitions tells of the only partition: who leads, who is in sync, who may lead besides, and who
/// led last.
async fn told(wire: &mut Wire) -> (i32, Vec<i32>, Vec<i32>, Vec<i32>) {
    let topics = vec![TopicRequest { name: "orders".into() }];
    let request = DescribeTopicPartitionsRequest { topics, response_partition_limit: 9, cursor: None };
    let it = wire.call(request, 0).await.topics.remove(0).partitions.remove(0);
    let (eligible, last) = (it.eligible_leader_replicas.expect("told"), it.last_known_elr.expect("told"));
    (it.leader_id, it.isr_nodes, eligible, last)
}

/// KIP-966, as nodes of Kafka 4.4.0 were seen doing it that were killed one by one: with fewer in sync than
/// `min.insync.replicas` who falls out may lead again, and the last leader where nobody may.
#[test]
fn replica_is_eligible_while_too_few_are_in_sync() {
    on_fake(three().nodes(4), async |target, fake| {
        fake.set_topic_config("orders", "min.insync.replicas", Some("2"));
        let mut wire = target.node(4).await;
        fake.crash(1);
        assert_eq!(told(&mut wire).await, (2, vec![2, 3], vec![], vec![]));
        fake.crash(2);
        assert_eq!(told(&mut wire).await, (3, vec![3], vec![2], vec![]));
        fake.crash(3);
        assert_eq!(told(&mut wire).await, (-1, vec![], vec![2, 3], vec![3]));

        // It died, so that nobody knows what it still has.
        fake.restart(2);
        assert_eq!(told(&mut wire).await, (-1, vec![], vec![3], vec![3]));
        fake.restart(3);
        assert_eq!(told(&mut wire).await, (3, vec![2, 3], vec![], vec![]));
    });
}

/// What a replica looks like that never got the last records: it fences those who know the old epoch, tells where that
/// one ended, and has never heard of the sequences that are gone.
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
    on_fake(three().replication_factor(1), async |target, fake| {
        let topic = orders(&target).await;
        fake.crash(1);
        let mut wire = target.node(2).await;
        let partition = metadata(&mut wire, "orders").await.topics.remove(0).partitions.remove(0);
        assert_eq!((error(partition.error_code), partition.leader_id), ("LEADER_NOT_AVAILABLE", -1));
        let refused = wire.call(produce_request(&topic, 1, Some(batch(&["a"]))), 10).await;
        assert_eq!(error(refused.responses[0].partition_responses[0].error_code), "NOT_LEADER_OR_FOLLOWER");
        assert_eq!(refused.node_endpoints.len(), 0);

        fake.restart(1);

        assert_eq!(written(&mut target.node(1).await, &topic, batch(&["a"])).await, 0);
    });
}

/// PR-18.
#[test]
fn acks_all_needs_enough_replicas() {
    on_fake(three(), async |target, fake| {
        let topic = target.topic_with(1, &[("min.insync.replicas", "2")]).await;
        fake.crash(2);
        fake.crash(3);
        let mut wire = target.node(1).await;
        let answer = |acks| produce_request(&topic, acks, Some(batch(&["a"])));

        let all = wire.call(answer(-1), 9).await.responses.remove(0).partition_responses.remove(0);
        assert_eq!(error(all.error_code), "NOT_ENOUGH_REPLICAS");
        let one = wire.call(answer(1), 9).await.responses.remove(0).partition_responses.remove(0);
        assert_eq!((error(one.error_code), one.base_offset), ("NONE", 0));
    });
}

/// FI-04a, LE-08, LE-18.
#[test]
fn epochs_end_where_the_next_leader_began() {
    on_fake(three(), async |target, fake| {
        let topic = orders(&target).await;
        let mut wire = target.node(1).await;
        written(&mut wire, &topic, batch(&["a", "b"])).await;
        fake.bump_leader_epoch("orders", 0);
        fake.bump_leader_epoch("orders", 0);
        written(&mut wire, &topic, batch(&["c"])).await;

        for (asked, expected) in [(0, (0, 2)), (1, (0, 2)), (2, (2, 3)), (3, (-1, -1))] {
            let partition = OffsetForLeaderPartition { leader_epoch: asked, ..OffsetForLeaderPartition::default() };
            let request = OffsetForLeaderTopic { topic: topic.name.clone(), partitions: vec![partition] };
            let request = OffsetForLeaderEpochRequest { replica_id: -1, topics: vec![request] };
            let answer = wire.call(request, 4).await.topics.remove(0).partitions.remove(0);
            assert_eq!((answer.leader_epoch, answer.end_offset), expected, "epoch {asked}");
        }
        let mut diverged = fetch_request(&topic, 3);
        diverged.topics[0].partitions[0].last_fetched_epoch = 1;
        let answer = only(wire.call(diverged, 12).await);
        assert_eq!((answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset), (0, 2));
    });
}

#[test]
fn sessions_do_not_outlive_their_node() {
    on_fake(three(), async |target, fake| {
        let topic = orders(&target).await;
        let opening = FetchRequest { session_epoch: 0, ..fetch_request(&topic, 0) };
        let session_id = target.node(1).await.call(opening, 13).await.session_id;
        fake.crash(1);
        fake.restart(1);
        let next = FetchRequest { session_id, session_epoch: 1, topics: vec![], ..FetchRequest::default() };

        assert!(session_id > 0);
        assert_eq!(error(target.node(1).await.call(next, 13).await.error_code), "FETCH_SESSION_ID_NOT_FOUND");
    });
}

#[test]
fn deleted_records_are_out_of_range() {
    on_fake(three(), async |target, fake| {
        let topic = orders(&target).await;
        let mut wire = target.node(1).await;
        written(&mut wire, &topic, batch(&["a", "b", "c"])).await;
        fake.delete_records("orders", 0, 2);

        assert_eq!(error(only(wire.call(fetch_request(&topic, 1), 12).await).error_code), "OFFSET_OUT_OF_RANGE");
        let rest = only(wire.call(fetch_request(&topic, 2), 12).await);
        assert_eq!((base_offsets(&rest), rest.log_start_offset), (vec![0], 2), "the batch is there as a whole");
    });
}

/// MD-26.
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
