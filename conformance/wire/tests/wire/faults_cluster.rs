//! Faults of the cluster: what is done to nodes, coordinators, metadata and time, by a test or by a rule.

use std::time::Duration;

use krafka_fake_broker::{Apis, Durability, FakeCluster, Operation, Profile};
use krafka_protocol::api::api_versions::ApiVersionsRequest;
use krafka_protocol::api::fetch::{FetchPartition, FetchRequest, FetchTopic};
use krafka_protocol::api::find_coordinator::FindCoordinatorRequest;
use krafka_protocol::api::heartbeat::HeartbeatRequest;
use krafka_protocol::api::metadata::{MetadataRequest, MetadataRequestTopic};
use krafka_protocol::api::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use krafka_protocol::{ApiKey, ErrorCode, MetadataResponse};

use crate::producers::batch;
use crate::target::{Target, Wire, on_fake};

const TOPIC: &str = "orders";

fn run(test: impl AsyncFnOnce(Target, FakeCluster)) {
    on_fake(FakeCluster::builder().nodes(3).topic(TOPIC, 1), test);
}

async fn metadata(wire: &mut Wire) -> MetadataResponse {
    let topic = MetadataRequestTopic { name: Some(TOPIC.into()), ..MetadataRequestTopic::default() };
    wire.call(MetadataRequest { topics: Some(vec![topic]), ..MetadataRequest::default() }, 13).await
}

fn leader(response: &MetadataResponse) -> (i32, i32) {
    let partition = &response.topics[0].partitions[0];
    (partition.leader_id, partition.leader_epoch)
}

fn nodes(response: &MetadataResponse) -> Vec<i32> {
    response.brokers.iter().map(|broker| broker.node_id).collect()
}

fn produce(sequence: i32) -> ProduceRequest {
    let partition = PartitionProduceData { index: 0, records: Some(batch(7, 0, sequence, 1)) };
    let topic = TopicProduceData { name: TOPIC.into(), partition_data: vec![partition], ..TopicProduceData::default() };
    ProduceRequest { acks: -1, timeout_ms: 1_000, topic_data: vec![topic], ..ProduceRequest::default() }
}

async fn write(wire: &mut Wire, sequence: i32) -> ErrorCode {
    ErrorCode(wire.call(produce(sequence), 9).await.responses[0].partition_responses[0].error_code)
}

async fn heartbeat(wire: &mut Wire, group: &'static str) -> ErrorCode {
    let request = HeartbeatRequest { group_id: group.into(), ..HeartbeatRequest::default() };
    ErrorCode(wire.call(request, 4).await.error_code)
}

/// LE-21, MD-10: one broker has not heard yet what the others know.
#[test]
fn frozen_metadata_stays_while_the_cluster_moves() {
    run(async |target, fake| {
        let (mut one, mut three) = (target.node(1).await, target.node(3).await);
        fake.freeze_metadata(3);
        fake.move_leader(TOPIC, 0, 2);

        assert_eq!((leader(&metadata(&mut one).await), leader(&metadata(&mut three).await)), ((2, 1), (1, 0)));

        fake.thaw_metadata(3);
        assert_eq!(leader(&metadata(&mut three).await), (2, 1));
    });
}

/// MD-21.
#[test]
fn hidden_node_serves_all_the_same() {
    run(async |target, fake| {
        let mut two = target.node(2).await;
        fake.hide_node(2, true);

        assert_eq!(nodes(&metadata(&mut two).await), [1, 3]);

        fake.hide_node(2, false);
        assert_eq!(nodes(&metadata(&mut two).await), [1, 2, 3]);
    });
}

/// CB-22, MD-22.
#[test]
fn nodes_move_come_and_go() {
    run(async |target, fake| {
        let mut one = target.node(1).await;
        fake.move_node(2, "elsewhere", 1234);
        assert_eq!(fake.address(2), Some(("elsewhere".into(), 1234)));
        metadata(&mut target.node(2).await).await;

        let four = fake.add_node().await.expect("in memory there is room");
        assert_eq!((four, nodes(&metadata(&mut target.node(4).await).await)), (4, vec![1, 2, 3, 4]));
        fake.move_leader(TOPIC, 0, 4);
        assert_eq!(write(&mut target.node(4).await, 0).await, ErrorCode::NONE);

        fake.remove_node(4);
        let after = metadata(&mut one).await;
        assert_eq!((nodes(&after), leader(&after)), (vec![1, 2, 3], (1, 2)));
    });
}

/// RB-03, RB-05 (KIP-1102, KIP-1242): another cluster answers at the old addresses.
#[test]
fn clients_of_a_former_cluster_are_told_to_rebootstrap() {
    run(async |target, fake| {
        let mut before = target.node(1).await;
        let former = metadata(&mut before).await.cluster_id.expect("an id");
        fake.swap_cluster_id();
        let ask = || ApiVersionsRequest {
            client_software_name: "a".into(),
            client_software_version: "1".into(),
            cluster_id: Some(former.clone()),
            node_id: 1,
        };

        assert_eq!(ErrorCode(metadata(&mut before).await.error_code), ErrorCode::REBOOTSTRAP_REQUIRED);
        let mut after = target.node(1).await;
        let told = after.call(ask(), 5).await.error_code;
        let now = metadata(&mut after).await;

        assert_eq!(ErrorCode(told), ErrorCode::REBOOTSTRAP_REQUIRED);
        assert_eq!((ErrorCode(now.error_code), now.cluster_id == Some(former)), (ErrorCode::NONE, false));
    });
}

#[test]
fn coordinator_is_pinned_and_loads() {
    run(async |target, fake| {
        let natural = fake.coordinator("g");
        let node = natural % 3 + 1;
        let pin = |node| Operation::PinCoordinator { group: Some("g".into()), transactional_id: None, node };
        fake.change(&pin(Some(node))).expect("a legal change");
        let ask = FindCoordinatorRequest { coordinator_keys: vec!["g".into()], ..FindCoordinatorRequest::default() };
        let found = target.node(1).await.call(ask, 4).await.coordinators.remove(0);
        assert_eq!(found.node_id, node);
        let (mut pinned, mut former) = (target.node(node).await, target.node(natural).await);
        assert_eq!(heartbeat(&mut former, "g").await, ErrorCode::NOT_COORDINATOR);
        assert_eq!(heartbeat(&mut pinned, "g").await, ErrorCode::UNKNOWN_MEMBER_ID);

        let time = Duration::from_secs(5);
        let load = Operation::LoadCoordinator { group: Some("g".into()), transactional_id: None, time };
        fake.change(&load).expect("a legal change");
        assert_eq!(heartbeat(&mut pinned, "g").await, ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
        tokio::time::sleep(time).await;
        assert_eq!(heartbeat(&mut pinned, "g").await, ErrorCode::UNKNOWN_MEMBER_ID);

        fake.change(&pin(None)).expect("a legal change");
        assert_eq!(fake.coordinator("g"), natural);
    });
}

#[test]
fn evicted_fetch_session_is_not_found() {
    run(async |target, fake| {
        let mut wire = target.node(1).await;
        let partition = FetchPartition { partition_max_bytes: 1_000, ..FetchPartition::default() };
        let topics = vec![FetchTopic { topic: TOPIC.into(), partitions: vec![partition], ..FetchTopic::default() }];
        let first = FetchRequest { max_bytes: 1_000, session_epoch: 0, topics, ..FetchRequest::default() };
        let session_id = wire.call(first, 12).await.session_id;
        fake.evict_fetch_sessions(1);

        let next = FetchRequest { max_bytes: 1_000, session_id, session_epoch: 1, ..FetchRequest::default() };
        let response = wire.call(next, 12).await;

        assert_eq!(ErrorCode(response.error_code), ErrorCode::FETCH_SESSION_ID_NOT_FOUND);
    });
}

#[test]
fn crash_spares_what_it_is_told_to() {
    let left = |durability| {
        let mut left = (0, ErrorCode::NONE);
        run(async |target, fake| {
            let mut one = target.node(1).await;
            for sequence in 0..5 {
                assert_eq!(write(&mut one, sequence).await, ErrorCode::NONE);
            }
            fake.crash_losing(1, durability);
            let mut two = target.node(2).await;
            let records = fake.partition_records(TOPIC, 0).len();
            // A sequence from before is a repetition for who remembers it, and anything for who does not.
            left = (records, write(&mut two, 40).await);
        });
        left
    };

    assert_eq!(left(Durability::KeepAll), (5, ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER));
    assert_eq!(left(Durability::LoseTail(2)), (3, ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER));
    assert_eq!(left(Durability::LoseProducerState), (5, ErrorCode::NONE));
}

#[test]
fn rule_changes_the_cluster_in_the_moment_of_a_request() {
    run(async |target, fake| {
        let mut one = target.node(1).await;
        let crash = Operation::Crash { node: 1, durability: Durability::KeepAll };
        fake.when(ApiKey::Produce).nth(2).after_handling().change_cluster(crash);

        assert_eq!(write(&mut one, 0).await, ErrorCode::NONE);
        one.send(produce(1), 9).await;

        assert!(one.is_closed().await, "it went down before it could answer");
        assert_eq!((fake.partition_records(TOPIC, 0).len(), fake.leader(TOPIC, 0)), (2, Some(2)));
    });
}

#[test]
fn time_of_day_jumps_and_timers_do_not() {
    run(async |target, fake| {
        let mut one = target.node(1).await;
        let late = fake.when(Apis::ANY).after(Duration::from_secs(60)).observe();

        fake.jump_clock(24 * 3_600_000);
        metadata(&mut one).await;
        assert_eq!(late.hits(), 0);
        tokio::time::sleep(Duration::from_secs(60)).await;
        metadata(&mut one).await;
        assert_eq!(late.hits(), 1);
    });
}

#[test]
fn rule_lives_as_long_as_told() {
    run(async |target, fake| {
        let mut one = target.node(1).await;
        let early = fake.when(ApiKey::Metadata).until(Duration::from_secs(10)).observe();
        metadata(&mut one).await;

        tokio::time::sleep(Duration::from_secs(10)).await;
        metadata(&mut one).await;

        assert_eq!(early.hits(), 1);
    });
}

#[test]
fn what_cannot_be_done_says_why() {
    run(async |_, fake| {
        let why = |operation| fake.change(&operation).expect_err("it is impossible");
        assert_eq!(why(Operation::Pause { node: 9 }), "there is no node 9");
        let move_leader = Operation::MoveLeader { topic: "nope".into(), partition: 0, node: Some(1) };
        assert_eq!(why(move_leader), "there is no partition nope-0");
        let create = Operation::CreateTopic { topic: TOPIC.into(), partitions: 1 };
        assert_eq!(why(create), "the topic orders exists already");
    });
}

/// A service that is not Kafka begins above version 0, ends early, lacks APIs and has no features.
#[test]
fn services_advertise_what_they_were_seen_to() {
    let builder =
        FakeCluster::builder().nodes(2).as_service(Profile::EventHubs).node_service(2, Profile::MskServerless);
    on_fake(builder, async |target, _| {
        let mut ranges = Vec::new();
        for (node, version) in [(1, 1), (2, 3)] {
            let software = || "a".into();
            let (client_software_name, client_software_version) = (software(), software());
            let ask = ApiVersionsRequest { client_software_name, client_software_version, ..Default::default() };
            let told = target.node(node).await.call(ask, version).await;
            assert!(told.supported_features.is_empty() && told.finalized_features.is_empty());
            let range = |key: ApiKey| {
                let api = told.api_keys.iter().find(|api| api.api_key == key.code())?;
                Some((api.min_version, api.max_version))
            };
            ranges.push([ApiKey::Produce, ApiKey::Fetch, ApiKey::DeleteRecords].map(range));
        }

        assert_eq!(ranges, [[Some((0, 7)), Some((4, 6)), None], [Some((7, 9)), Some((10, 12)), None]]);
    });
}

/// Nobody leads, until somebody is made to.
#[test]
fn leader_is_taken_away_and_given_back() {
    run(async |target, fake| {
        let mut wire = target.node(1).await;
        let lost = Operation::LoseLeader { topic: TOPIC.to_owned(), partition: 0 };
        fake.change(&lost).expect("it has a leader");
        assert_eq!(leader(&metadata(&mut wire).await), (-1, 1));
        assert_eq!(write(&mut wire, 0).await, ErrorCode::NOT_LEADER_OR_FOLLOWER);

        fake.move_leader(TOPIC, 0, 1);

        assert_eq!((leader(&metadata(&mut wire).await), write(&mut wire, 0).await), ((1, 2), ErrorCode::NONE));
    });
}

/// Whatever an API can change, a rule can change in the moment that a request comes.
#[test]
fn rule_does_what_a_request_asks_for() {
    run(async |target, fake| {
        let mut wire = target.node(1).await;
        let rule = r#"{"when": {"apis": ["Produce"]}, "nth": 2, "do": {"change_cluster": {"request": {
            "api": "DeleteTopics", "fields": {"topics": [{"name": "orders"}], "timeout_ms": 1000}}}}}"#;
        let deleted = fake.install_json(rule).expect("a legal rule");

        assert_eq!(write(&mut wire, 0).await, ErrorCode::NONE);
        assert_eq!(write(&mut wire, 1).await, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
        assert_eq!((deleted.hits(), fake.topics().len()), (1, 0));
    });
}
