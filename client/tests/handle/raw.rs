//! Connections of one's own to a broker: `krafka::protocol::BrokerConnection`.

use std::time::Duration;

use krafka::KrafkaError;
use krafka::protocol::{
    ApiKey, DescribeClusterRequest, MetadataRequest, ProduceRequest, RecordBatchBuilder, Versions, versions,
};
use krafka::testing::FakeCluster;
use krafka_protocol::api::describe_topic_partitions::TopicRequest;
use krafka_protocol::api::produce::{PartitionProduceData, TopicProduceData};
use krafka_protocol::{AnyResponse, DescribeTopicPartitionsRequest};

use super::{assert_says, client};

fn cluster() -> FakeCluster {
    FakeCluster::builder().nodes(3).topic("orders", 1).start_on_pipes()
}

#[tokio::test(start_paused = true)]
async fn a_request_goes_to_the_broker_that_was_asked_for() {
    let fake = cluster();
    let kafka = client(&fake).connect().await.expect("it is up");

    let connection = kafka.broker_connection(2).await.expect("there is a broker 2");
    let answer = connection.call(DescribeClusterRequest::default()).await.expect("it answers");

    assert_eq!(connection.broker_id(), 2);
    assert_eq!(answer.brokers.len(), 3);
    assert_eq!(fake.history().count_on(2, ApiKey::DescribeCluster), 1);
}

#[tokio::test(start_paused = true)]
async fn a_version_is_negotiated_between_the_bounds_of_all_three() {
    let fake = cluster();
    let kafka = client(&fake).connect().await.expect("it is up");
    let connection = kafka.broker_connection(1).await.expect("it is up");

    assert_eq!(connection.negotiate_api_version(ApiKey::Fetch, 12, 4).await.expect("both speak it"), 12);
    let highest = connection.negotiate_api_version(ApiKey::Fetch, i16::MAX, 0).await.expect("both speak it");
    assert_eq!(highest, versions::FETCH_MAX);
    let served = Some(Versions::new(versions::FETCH_MIN, versions::FETCH_MAX));
    assert_eq!(connection.api_versions(ApiKey::Fetch).await.expect("it is connected"), served);

    let error = connection.negotiate_api_version(ApiKey::Fetch, 99, 90).await.expect_err("nobody speaks it");
    assert_says(&error, &["broker 1", "Fetch"]);
    let error = connection
        .negotiate_api_version(ApiKey::ControllerRegistration, 9, 0)
        .await
        .expect_err("a broker does not serve it");
    assert_says(&error, &["broker 1", "ControllerRegistration"]);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_the_broker_does_not_serve_is_not_sent() {
    let fake = cluster();
    let kafka = client(&fake).connect().await.expect("it is up");
    let connection = kafka.broker_connection(1).await.expect("it is up");
    let before = fake.history().count(ApiKey::Metadata);

    let old = connection.call_at(MetadataRequest::all_topics(), 4).await.expect("version 4 is served");
    let error = connection.call_at(MetadataRequest::all_topics(), 99).await.expect_err("99 is not");

    assert_eq!(old.topics.len(), 1);
    assert_says(&error, &["Metadata", "99"]);
    assert_eq!(fake.history().count(ApiKey::Metadata), before + 1);
}

#[tokio::test(start_paused = true)]
async fn the_features_of_the_cluster_are_visible() {
    let fake = cluster();
    let kafka = client(&fake).connect().await.expect("it is up");

    let features =
        kafka.broker_connection(1).await.expect("it is up").broker_features().await.expect("it is connected");

    let (name, level) = features.finalized().next().expect("Kafka 4.4 has some");
    assert_eq!(features.finalized_level(name), Some(level));
    assert!(features.supported_range(name).is_some_and(|range| range.contains(level)), "{features:?}");
}

/// AV-11: a broker that was away knows the features of before.
#[tokio::test(start_paused = true)]
async fn a_broker_that_is_behind_is_not_believed_in_what_is_switched_on() {
    let fake = cluster();
    let kafka = client(&fake).connect().await.expect("it is up");
    let features = async || kafka.broker_connection(1).await?.broker_features().await;
    let now = features().await.expect("it is connected");
    let old = fake.when(ApiKey::ApiVersions).forever().edit(|response| {
        if let AnyResponse::ApiVersions(versions) = response {
            versions.finalized_features_epoch -= 1;
            versions.finalized_features.clear();
        }
    });

    assert_eq!(features().await.expect("it is connected"), now);
    assert!(old.hits() > 0 && now.finalized().count() > 0);
}

#[tokio::test(start_paused = true)]
async fn a_produce_request_without_acknowledgement_returns_when_it_is_written() {
    let fake = cluster();
    let kafka = client(&fake).connect().await.expect("it is up");
    let leader = fake.leader("orders", 0).expect("it has one");
    let connection = kafka.broker_connection(leader).await.expect("it is up");
    let batch = RecordBatchBuilder::new().add_record(None, Some(b"apple"), vec![]).build().expect("one record");
    let partition = PartitionProduceData { index: 0, records: Some(batch) };
    let topic = TopicProduceData { name: "orders".into(), partition_data: vec![partition], ..Default::default() };
    let request = ProduceRequest { acks: 0, timeout_ms: 1_000, topic_data: vec![topic], ..Default::default() };

    let answer = connection.call_at(request, 9).await.expect("it is written");

    assert_eq!(answer.responses, []);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(fake.partition_records("orders", 0).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_was_lost_is_opened_again_and_one_that_is_dropped_closes() {
    let fake = cluster();
    let kafka = client(&fake).connect().await.expect("it is up");
    let before = fake.connections(3);
    let connection = kafka.broker_connection(3).await.expect("it is up");
    assert_eq!(fake.connections(3), before + 1);

    fake.disconnect(3);
    tokio::time::sleep(Duration::from_millis(1)).await;
    connection.call(DescribeClusterRequest::default()).await.expect("a new connection answers");
    let reopened = fake.connections(3);
    drop(connection);
    tokio::time::sleep(Duration::from_millis(1)).await;

    assert_eq!(fake.connections(3), reopened - 1);
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_the_cluster_does_not_have_is_named() {
    let fake = cluster();
    let kafka = client(&fake).connect().await.expect("it is up");

    let error = kafka.broker_connection(9).await.expect_err("there are three");

    assert!(matches!(error, KrafkaError::Network(_)), "{error:?}");
    assert_says(&error, &["broker 9", "no broker with this id"]);
}

/// MD-24 (KIP-966): page by page, each partition comes once; a topic that is deleted on the way is passed over.
#[tokio::test(start_paused = true)]
async fn partitions_are_described_page_by_page() {
    let topics = [("a", 3), ("b", 5), ("c", 2)];
    let builder = FakeCluster::builder().nodes(1);
    let fake = topics.iter().fold(builder, |builder, (name, partitions)| builder.topic(*name, *partitions));
    let fake = fake.start_on_pipes();
    let kafka = client(&fake).connect().await.expect("it is up");
    let connection = kafka.broker_connection(1).await.expect("it is up");
    let describe = async |deleted: Option<&str>| {
        let (mut described, mut cursor) = (Vec::new(), None);
        loop {
            let asked = topics.map(|(name, _)| TopicRequest { name: name.into() }).to_vec();
            let request = DescribeTopicPartitionsRequest { topics: asked, response_partition_limit: 4, cursor };
            let answer = connection.call(request).await.expect("it is answered");
            let partitions: usize = answer.topics.iter().map(|topic| topic.partitions.len()).sum();
            assert!(partitions <= 4, "{partitions} partitions on a page of 4");
            for topic in &answer.topics {
                let name = topic.name.as_ref().expect("it has a name").to_string();
                described.extend(topic.partitions.iter().map(|partition| (name.clone(), partition.partition_index)));
            }
            match answer.next_cursor {
                Some(next) => cursor = Some(next),
                None => return described,
            }
            deleted.map(|name| fake.delete_topic(name));
        }
    };
    let all = |names: &[&str]| -> Vec<(String, i32)> {
        let named = topics.iter().filter(|(name, _)| names.contains(name));
        named.flat_map(|(name, count)| (0..*count).map(|partition| (name.to_string(), partition))).collect()
    };

    assert_eq!(describe(None).await, all(&["a", "b", "c"]));
    let mut left = describe(Some("b")).await;
    left.retain(|(name, _)| name != "b");
    assert_eq!(left, all(&["a", "c"]));
}
