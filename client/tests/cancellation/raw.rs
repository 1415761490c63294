//! Calls of a connection of one's own (feature `protocol`).

use krafka::protocol::{BrokerConnection, DescribeClusterRequest};
use krafka_protocol::{ApiKey, MetadataRequest};

use super::{World, at_each_poll, settle};

#[tokio::test(start_paused = true)]
async fn opening() {
    let open = async |kafka: &krafka::Kafka| {
        let connection = kafka.broker_connection(2).await.expect("it is up");
        assert_eq!(connection.broker_id(), 2);
    };

    assert!(at_each_poll(async |world| world.kafka.clone(), open, async |_, kafka| open(kafka).await).await > 0);
}

async fn opened(world: &World) -> BrokerConnection {
    world.kafka.broker_connection(2).await.expect("it is up")
}

/// One whose connection was lost, so that the next call opens it again.
async fn lost(world: &World) -> BrokerConnection {
    let connection = opened(world).await;
    world.fake.disconnect(2);
    settle().await;
    connection
}

async fn right(connection: &BrokerConnection) {
    let answer = connection.call(DescribeClusterRequest::default()).await.expect("it is answered");
    assert_eq!(answer.brokers.len(), 2);
    let answer = connection.call_at(MetadataRequest::all_topics(), 4).await.expect("it is answered");
    assert_eq!(answer.topics.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn calling() {
    let check = async |_: &World, connection: &BrokerConnection| right(connection).await;

    assert!(at_each_poll(opened, right, check).await > 1, "two answers are waited for");
    assert!(at_each_poll(lost, right, check).await > 2, "and a connection");
}

#[tokio::test(start_paused = true)]
async fn asking_what_is_served() {
    let ask = async |connection: &BrokerConnection| {
        let versions = connection.api_versions(ApiKey::Fetch).await.expect("it is up");
        assert!(versions.is_some_and(|versions| versions.contains(12)));
        assert_eq!(connection.negotiate_api_version(ApiKey::Fetch, 12, 4).await.expect("it is served"), 12);
        assert!(connection.broker_features().await.expect("it is up").epoch().is_some());
    };
    let check = async |_: &World, connection: &BrokerConnection| {
        ask(connection).await;
        right(connection).await;
    };

    assert!(at_each_poll(lost, ask, check).await > 0);
}
