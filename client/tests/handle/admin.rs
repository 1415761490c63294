//! The admin client: topics and the cluster.

use std::time::Duration;

use krafka::testing::FakeCluster;
use krafka::{ErrorCode, Kafka, KrafkaError, NewTopic};
use krafka_protocol::ApiKey;

use super::{assert_says, client};

async fn three_nodes() -> (FakeCluster, Kafka) {
    let fake = FakeCluster::builder().nodes(3).topic("orders", 3).start_on_pipes();
    let kafka = client(&fake).connect().await.expect("it is up");
    (fake, kafka)
}

fn code(error: &KrafkaError) -> Option<ErrorCode> {
    match error {
        KrafkaError::Broker { code, .. } => Some(*code),
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn topics_are_created_described_grown_and_deleted() {
    let (fake, kafka) = three_nodes().await;
    let admin = kafka.admin();

    let created = admin.create_topics([NewTopic::new("a", 2).replication_factor(3), NewTopic::new("b", 1)]).await;
    assert!(created.expect("it is answered").values().all(Result::is_ok));
    assert!(fake.leader("a", 1).is_some());

    let grown = admin.create_partitions([("a", 5)]).await.expect("it is answered");
    assert!(grown["a"].is_ok());

    let described = admin.describe_topics(["a"]).await.expect("it is answered");
    let info = described["a"].as_ref().expect("it exists");
    assert_eq!(info.partitions.len(), 5);
    assert_eq!(info.partitions[0].replicas.len(), 3);
    assert!(info.topic_id.is_some() && info.partitions.iter().all(|partition| partition.leader.is_some()));

    let deleted = admin.delete_topics(["a", "b"]).await.expect("it is answered");
    assert!(deleted.values().all(Result::is_ok));
    let names: Vec<_> = admin.list_topics().await.expect("it is answered").into_iter().map(|t| t.name).collect();
    assert_eq!(names.iter().map(|name| &**name).collect::<Vec<_>>(), ["orders"]);
}

#[tokio::test(start_paused = true)]
async fn each_topic_has_its_own_error() {
    let (_fake, kafka) = three_nodes().await;
    let admin = kafka.admin();

    let topics = [NewTopic::new("orders", 1), NewTopic::new("bad name", 1), NewTopic::new("good", 1)];
    let created = admin.create_topics(topics).await.expect("it is answered");

    assert!(created["good"].is_ok());
    let exists = created["orders"].as_ref().expect_err("it exists");
    assert_eq!(code(exists), Some(ErrorCode::TOPIC_ALREADY_EXISTS));
    assert_says(exists, &["creating topic 'orders'"]);
    let invalid = created["bad name"].as_ref().expect_err("its name is not valid");
    assert_eq!(code(invalid), Some(ErrorCode::INVALID_TOPIC_EXCEPTION));

    let described = admin.describe_topics(["orders", "none"]).await.expect("it is answered");
    assert!(described["orders"].is_ok());
    let unknown = described["none"].as_ref().expect_err("it does not exist");
    assert!(matches!(unknown, KrafkaError::UnknownTopic { .. }), "{unknown:?}");
    assert_says(unknown, &["'none' does not exist"]);

    let deleted = admin.delete_topics(["none"]).await.expect("it is answered");
    assert!(matches!(deleted["none"], Err(KrafkaError::UnknownTopic { .. })));
}

#[tokio::test(start_paused = true)]
async fn bad_arguments_are_named_before_anything_is_sent() {
    let (fake, kafka) = three_nodes().await;
    let admin = kafka.admin();
    let before = fake.history().len();

    let twice = admin.create_topics([NewTopic::new("a", 1), NewTopic::new("a", 2)]).await.expect_err("twice");
    let empty = admin.delete_topics([""]).await.expect_err("empty");

    assert_says(&twice, &["'a' is given twice"]);
    assert_says(&empty, &["a topic name is empty"]);
    assert_eq!(fake.history().len(), before);
}

#[tokio::test(start_paused = true)]
async fn the_cluster_is_described() {
    let (_fake, kafka) = three_nodes().await;

    let cluster = kafka.admin().describe_cluster().await.expect("it is answered");

    assert!(!cluster.cluster_id.is_empty());
    assert_eq!(cluster.brokers.iter().map(|broker| broker.id).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(cluster.controller.is_some());
}

#[tokio::test(start_paused = true)]
async fn the_controller_is_asked() {
    let (fake, kafka) = three_nodes().await;

    kafka.admin().create_topics([NewTopic::new("a", 1)]).await.expect("it is answered")["a"].as_ref().expect("made");

    assert_eq!(fake.history().count_on(fake.controller(), ApiKey::CreateTopics), 1);
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_moved_is_found() {
    let (fake, kafka) = three_nodes().await;
    let rule = fake.when(ApiKey::CreateTopics).times(2).reply_error(ErrorCode::NOT_CONTROLLER);

    let created = kafka.admin().create_topics([NewTopic::new("a", 1)]).await.expect("it is answered");

    assert!(created["a"].is_ok(), "{created:?}");
    assert_eq!(rule.hits(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_crashed_is_replaced() {
    let (fake, kafka) = three_nodes().await;
    fake.crash(fake.controller());

    let created = kafka.admin().create_topics([NewTopic::new("a", 1)]).await.expect("it is answered");

    assert!(created["a"].is_ok(), "{created:?}");
}

/// The topic is made, the answer is lost: the caller learns that it may have been this very call.
#[tokio::test(start_paused = true)]
async fn a_lost_answer_leaves_a_doubt_that_is_told() {
    let (fake, kafka) = three_nodes().await;
    fake.when(ApiKey::CreateTopics).times(1).after_handling().drop_connection();

    let created = kafka.admin().create_topics([NewTopic::new("a", 1)]).await.expect("it is answered");

    let exists = created["a"].as_ref().expect_err("the second attempt finds it");
    assert_eq!(code(exists), Some(ErrorCode::TOPIC_ALREADY_EXISTS));
    assert_says(exists, &["may have created it"]);
}

#[tokio::test(start_paused = true)]
async fn the_timeout_bounds_a_call() {
    let (fake, kafka) = three_nodes().await;
    fake.when(ApiKey::CreateTopics).forever().reply_error(ErrorCode::NOT_CONTROLLER);
    let start = tokio::time::Instant::now();

    let admin = kafka.admin().with_timeout(Duration::from_secs(9));
    let created = admin.create_topics([NewTopic::new("a", 1)]).await.expect("each topic has its result");

    assert_eq!(start.elapsed(), Duration::from_secs(9));
    let error = created["a"].as_ref().expect_err("it is never done");
    assert!(matches!(error, KrafkaError::Timeout { .. }), "{error:?}");
    assert_says(error, &["creating topic 'a'", "not done within 9s", "NOT_CONTROLLER"]);
}

/// A handle that was told "unknown" learns of a topic that it makes itself.
#[tokio::test(start_paused = true)]
async fn futures_can_be_spawned() {
    let (_fake, kafka) = three_nodes().await;
    let admin = kafka.admin();

    let spawned = tokio::spawn(async move {
        admin.create_topics([NewTopic::new("a", 1)]).await?;
        admin.create_partitions([("a", 2)]).await?;
        admin.describe_topics(["a"]).await?;
        admin.delete_topics(["a"]).await?;
        admin.list_topics().await
    });

    spawned.await.expect("no panic").expect("all are answered");
}

#[tokio::test(start_paused = true)]
async fn what_no_request_can_carry_is_named() {
    let (fake, kafka) = three_nodes().await;
    let long = "x".repeat(40_000);

    let name = kafka.admin().describe_topics([long.clone()]).await.expect_err("too long");
    let topic = NewTopic::new("a", 1).config("retention.ms", long);
    let config = kafka.admin().create_topics([topic]).await.expect_err("too long");

    assert_says(&name, &["the topic name 'xxx", "40000 bytes"]);
    assert_says(&config, &["config 'retention.ms' of topic 'a'", "40000 bytes"]);
    assert_eq!(fake.history().count(ApiKey::CreateTopics), 0);
}

/// LC-05: whoever asks from another runtime, once that of the client is gone, is told so and does not wait.
#[test]
fn a_call_after_the_clients_runtime_ended_is_told_so() {
    let runtime =
        || tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().expect("one");
    let first = runtime();
    let (_fake, kafka) = first.block_on(three_nodes());

    drop(first);

    runtime().block_on(async {
        let begin = tokio::time::Instant::now();
        let error = kafka.admin().list_topics().await.expect_err("nobody is there to ask");
        assert!(matches!(error, KrafkaError::Closed { .. }), "{error:?}");
        assert_says(&error, &["the runtime that the Kafka handle was connected in has ended"]);
        assert_eq!(begin.elapsed(), Duration::ZERO);
    });
}
