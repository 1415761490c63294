//! Over how many partitions of their topics the coordinators spread groups and transactional ids.
//!
//! What a broker's config says is tested as the broker has it: start one with `offsets.topic.num.partitions=5` and
//! `transaction.state.log.num.partitions=7` to see it differ from 50.

use std::time::Duration;

use krafka_fake_broker::FakeCluster;
use krafka_protocol::ErrorCode;
use krafka_protocol::api::create_topics::{CreatableTopic, CreateTopicsRequest};
use krafka_protocol::api::delete_topics::{DeleteTopicState, DeleteTopicsRequest};
use krafka_protocol::api::describe_configs::{DescribeConfigsRequest, DescribeConfigsResource};
use krafka_protocol::api::find_coordinator::{Coordinator, FindCoordinatorRequest};
use krafka_protocol::api::metadata::{MetadataRequest, MetadataRequestTopic, MetadataResponseTopic};

use crate::java::partition_for;
use crate::target::{Wire, on_fake, run_on_levels, run_with};

const OFFSETS: &str = "__consumer_offsets";
const TRANSACTIONS: &str = "__transaction_state";
/// The kinds of a key that FindCoordinator takes.
const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;
const BROKER_RESOURCE: i8 = 4;

async fn topic(wire: &mut Wire, name: &str) -> MetadataResponseTopic {
    let named = MetadataRequestTopic { name: Some(name.into()), ..MetadataRequestTopic::default() };
    let request = MetadataRequest { topics: Some(vec![named]), ..MetadataRequest::default() };
    wire.call(request, 12).await.topics.remove(0)
}

async fn find(wire: &mut Wire, key_type: i8, keys: &[String]) -> Vec<Coordinator> {
    let coordinator_keys = keys.iter().map(|key| key.as_str().into()).collect();
    let request = FindCoordinatorRequest { key_type, coordinator_keys, ..FindCoordinatorRequest::default() };
    wire.call(request, 4).await.coordinators
}

/// Asks until all have a coordinator: who asks first brings the topic about.
async fn found(wire: &mut Wire, key_type: i8, keys: &[String]) -> Vec<Coordinator> {
    loop {
        let found = find(wire, key_type, keys).await;
        if found.iter().all(|found| found.error_code == 0) {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// What the first node's config says, as a number.
async fn configured(wire: &mut Wire, name: &str) -> usize {
    let resource = DescribeConfigsResource {
        resource_type: BROKER_RESOURCE,
        resource_name: "1".into(),
        configuration_keys: Some(vec![name.into()]),
    };
    let request = DescribeConfigsRequest { resources: vec![resource], ..DescribeConfigsRequest::default() };
    let told = wire.call(request, 4).await.results.remove(0);
    let value = told.configs[0].value.clone().expect("a value");
    value.parse().expect("a number")
}

/// Sees that each key is coordinated by the leader of its partition, and returns how many there are.
async fn keys_follow_the_topic(wire: &mut Wire, key_type: i8, name: &str) -> usize {
    let keys: Vec<String> = (0..40).map(|number| format!("spread-{number}")).collect();
    let found = found(wire, key_type, &keys).await;
    let topic = topic(wire, name).await;
    let count = i32::try_from(topic.partitions.len()).expect("some");
    for (key, found) in keys.iter().zip(found) {
        let index = partition_for(key, count);
        let partition = topic.partitions.iter().find(|partition| partition.partition_index == index);
        assert_eq!(found.node_id, partition.expect("they are numbered through").leader_id, "{key}");
    }
    topic.partitions.len()
}

/// The topic is made with as many partitions as the brokers' config says, and the keys are spread over all of them.
#[test]
fn coordinators_topics_have_the_partitions_of_the_config() {
    let builder = FakeCluster::builder().nodes(3);
    let builder = builder.broker_config("offsets.topic.num.partitions", "5");
    let builder = builder.broker_config("transaction.state.log.num.partitions", "7");
    run_with(builder, async |target| {
        let mut wire = target.connect().await;
        for (key_type, name, config) in [
            (GROUP, OFFSETS, "offsets.topic.num.partitions"),
            (TRANSACTION, TRANSACTIONS, "transaction.state.log.num.partitions"),
        ] {
            let count = keys_follow_the_topic(&mut wire, key_type, name).await;
            assert_eq!(count, configured(&mut wire, config).await, "{name}");
        }
    });
}

/// A topic that was there before the brokers started has the partitions that count, whatever their config says.
///
/// Fake only: it makes an internal topic before the brokers start.
#[test]
fn topic_that_was_there_first_counts() {
    let builder = FakeCluster::builder().nodes(3).topic(OFFSETS, 3).topic(TRANSACTIONS, 2);
    on_fake(builder, async |target, _| {
        let mut wire = target.connect().await;
        assert_eq!(keys_follow_the_topic(&mut wire, GROUP, OFFSETS).await, 3);
        assert_eq!(keys_follow_the_topic(&mut wire, TRANSACTION, TRANSACTIONS).await, 2);
    });
}

/// A topic that is made by hand while the brokers run, and is smaller, leaves the other keys without a coordinator: a
/// broker has counted when it started.
#[test]
fn topic_that_is_made_too_small_leaves_keys_without_a_coordinator() {
    run_on_levels(async |target| {
        let mut wire = target.connect().await;
        let count = configured(&mut wire, "transaction.state.log.num.partitions").await;
        remove(&mut wire, TRANSACTIONS).await;
        let made = CreatableTopic { num_partitions: 3, replication_factor: 1, ..named(TRANSACTIONS) };
        wire.call(CreateTopicsRequest { topics: vec![made], timeout_ms: 5_000, ..Default::default() }, 7).await;
        let keys: Vec<String> = (0..60).map(|number| format!("spread-{number}")).collect();
        let partitions = i32::try_from(count).expect("a few");
        let (low, high): (Vec<_>, Vec<_>) = keys.into_iter().partition(|key| partition_for(key, partitions) < 3);

        assert!(!low.is_empty() && !high.is_empty());
        found(&mut wire, TRANSACTION, &low).await;
        for found in find(&mut wire, TRANSACTION, &high).await {
            assert_eq!(ErrorCode(found.error_code), ErrorCode::COORDINATOR_NOT_AVAILABLE, "{}", found.key);
            assert_eq!(found.node_id, -1);
        }

        // Who comes next finds it as it is in a fresh cluster.
        remove(&mut wire, TRANSACTIONS).await;
        assert_eq!(keys_follow_the_topic(&mut wire, TRANSACTION, TRANSACTIONS).await, count);
    });
}

/// A node that is started again counts anew.
///
/// Fake only: it takes the internal topics away, and with them all groups.
#[test]
fn node_that_starts_again_counts_anew() {
    on_fake(FakeCluster::builder(), async |target, fake| {
        fake.create_topic(TRANSACTIONS, 3);
        let mut wire = target.connect().await;
        let keys: Vec<String> = (0..60).map(|number| format!("spread-{number}")).collect();
        assert!(find(&mut wire, TRANSACTION, &keys).await.iter().any(|found| found.error_code != 0));

        fake.crash(1);
        fake.restart(1);

        let mut wire = target.connect().await;
        assert!(find(&mut wire, TRANSACTION, &keys).await.iter().all(|found| found.error_code == 0));
        assert_eq!(keys_follow_the_topic(&mut wire, TRANSACTION, TRANSACTIONS).await, 3);
    });
}

fn named(name: &str) -> CreatableTopic {
    CreatableTopic { name: name.into(), ..CreatableTopic::default() }
}

/// Takes a topic away, and waits until it is gone.
async fn remove(wire: &mut Wire, name: &str) {
    let topics = vec![DeleteTopicState { name: Some(name.into()), ..DeleteTopicState::default() }];
    wire.call(DeleteTopicsRequest { topics, timeout_ms: 5_000, ..DeleteTopicsRequest::default() }, 6).await;
    while topic(wire, name).await.error_code == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
