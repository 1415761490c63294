//! The view of the cluster, against the fake over pipes with a paused clock.

#![expect(clippy::disallowed_methods, reason = "tests ask for the virtual time to see how long something took")]

use krafka_protocol::{ApiKey, ErrorCode, MetadataRequest, Uuid};
use tokio::time::{Instant, sleep, timeout};

use super::*;
use crate::environment::Environment;
use crate::kafka::Kafka;
use crate::testing::FakeCluster;

const SECOND: Duration = Duration::from_secs(1);

async fn three_nodes() -> (FakeCluster, Kafka) {
    let fake = FakeCluster::builder().nodes(3).topic("orders", 3).topic("other", 1).start_on_pipes();
    let kafka = connect(&fake).await;
    (fake, kafka)
}

async fn connect(fake: &FakeCluster) -> Kafka {
    let builder = Kafka::builder(fake.bootstrap()).environment(Environment::new(fake.pipes(), 1));
    builder.connect().await.expect("it is up")
}

fn topics(names: &[&str]) -> Vec<Str> {
    names.iter().map(|name| Str::from(*name)).collect()
}

/// What each Metadata request since the `skip`-th asked for.
fn asked(fake: &FakeCluster, skip: usize) -> Vec<Vec<String>> {
    let names = |request: &MetadataRequest| {
        let topics = request.topics.iter().flatten();
        topics.map(|topic| topic.name.as_ref().expect("by name").to_string()).collect()
    };
    fake.history().requests::<MetadataRequest>().skip(skip).map(names).collect()
}

fn leader(snapshot: &Snapshot, topic: &str, partition: i32) -> Option<i32> {
    snapshot.leader(topic, partition).map(|(node, _)| node.id)
}

#[tokio::test(start_paused = true)]
async fn loading_tells_the_leaders() {
    let (fake, kafka) = three_nodes().await;

    let snapshot = kafka.cluster().load(&topics(&["orders"])).await.expect("it is up");

    for partition in 0..3 {
        assert_eq!(leader(&snapshot, "orders", partition), fake.leader("orders", partition));
    }
    assert!(!snapshot.topic("orders").expect("it was loaded").id.is_zero());
    assert!(snapshot.topic("other").is_none(), "nobody asked for it");
    assert_eq!(*kafka.cluster().snapshot(), *snapshot);
}

/// MD-01.
#[tokio::test(start_paused = true)]
async fn a_hundred_loads_are_one_request() {
    let (fake, kafka) = three_nodes().await;
    let names = topics(&["orders"]);

    let loads: Vec<_> = (0..100)
        .map(|_| {
            let (cluster, names) = (kafka.cluster().clone(), names.clone());
            tokio::spawn(async move { cluster.load(&names).await })
        })
        .collect();
    for load in loads {
        load.await.expect("no panic").expect("it is up");
    }

    assert_eq!(asked(&fake, 1), [["orders"]]);
}

/// MD-02, MD-03: how often a missing topic is asked for is bounded by the backoff.
#[tokio::test(start_paused = true)]
async fn a_topic_that_appears_is_found_without_a_storm() {
    let (fake, kafka) = three_nodes().await;
    let making = tokio::spawn({
        let fake = fake.clone();
        async move {
            sleep(10 * SECOND).await;
            fake.create_topic("late", 1);
        }
    });
    let start = Instant::now();

    while kafka.cluster().load(&topics(&["late"])).await.expect("it is up").topic("late").is_none() {}

    assert!((10..12).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
    let requests = asked(&fake, 1).len();
    assert!((11..=20).contains(&requests), "{requests} requests in ten seconds");
    making.await.expect("no panic");
}

#[tokio::test(start_paused = true)]
async fn a_refresh_finds_the_new_leader() {
    let (fake, kafka) = three_nodes().await;
    let before = kafka.cluster().load(&topics(&["orders"])).await.expect("it is up");
    let to = if leader(&before, "orders", 0) == Some(2) { 3 } else { 2 };
    fake.move_leader("orders", 0, to);

    kafka.cluster().refresh(&topics(&["orders"]));
    let after = timeout(SECOND, kafka.cluster().changed(before.version)).await.expect("within the backoff");

    assert_eq!(leader(&after, "orders", 0), Some(to));
}

/// LE-01: no request is needed.
#[tokio::test(start_paused = true)]
async fn a_hint_moves_the_leader_at_once() {
    let (fake, kafka) = three_nodes().await;
    let before = kafka.cluster().load(&topics(&["orders"])).await.expect("it is up");
    let (_, epoch) = before.leader("orders", 0).expect("it has a leader");

    let hint = LeaderHint {
        topic: Str::from("orders"),
        topic_id: Uuid::ZERO,
        partition: 0,
        leader: 3,
        leader_epoch: epoch + 1,
        node: None,
    };
    kafka.cluster().leader_hint(hint);
    let after = timeout(SECOND, kafka.cluster().changed(before.version)).await.expect("at once");

    assert_eq!(leader(&after, "orders", 0), Some(3));
    assert_eq!(asked(&fake, 2).len(), 0);
}

/// MD-12: added partitions are noticed by age.
#[tokio::test(start_paused = true)]
async fn watched_topics_are_kept_fresh() {
    let (fake, kafka) = three_nodes().await;
    kafka.cluster().load(&topics(&["orders"])).await.expect("it is up");
    kafka.cluster().watch_topics(1, topics(&["orders"]));
    fake.add_partitions("orders", 5);

    sleep(400 * SECOND).await;

    let snapshot = kafka.cluster().snapshot();
    assert_eq!(snapshot.topic("orders").expect("it was loaded").partitions.len(), 5);
    assert_eq!(asked(&fake, 2), [["orders"]]);
}

/// MD-05.
#[tokio::test(start_paused = true)]
async fn an_error_about_one_topic_leaves_the_others() {
    let (fake, kafka) = three_nodes().await;
    let rule = fake.when(ApiKey::Metadata).topic("orders").times(1).reply_error(ErrorCode::TOPIC_AUTHORIZATION_FAILED);

    let snapshot = kafka.cluster().load(&topics(&["orders", "other"])).await.expect("it is up");
    assert_eq!(rule.hits(), 1);
    assert_eq!(snapshot.errors.get("orders"), Some(&ErrorCode::TOPIC_AUTHORIZATION_FAILED));
    assert!(snapshot.topic("orders").is_none());

    let granted = kafka.cluster().load(&topics(&["orders", "other"])).await.expect("it is up");
    assert!(granted.topic("orders").is_some() && granted.errors.is_empty());
}

/// RB-03.
#[tokio::test(start_paused = true)]
async fn code_129_leads_to_the_bootstrap_servers() {
    let (fake, kafka) = three_nodes().await;
    let rule = fake.when(ApiKey::Metadata).times(1).rebootstrap();

    let snapshot = kafka.cluster().load(&topics(&["orders"])).await.expect("a bootstrap server answers");

    assert_eq!(rule.hits(), 1);
    assert!(snapshot.topic("orders").is_some());
}

/// RB-01, RB-10: all brokers die, and come back.
#[tokio::test(start_paused = true)]
async fn a_cluster_that_comes_back_is_found() {
    let (fake, kafka) = three_nodes().await;
    (1..=3).for_each(|node| fake.crash(node));

    let error = kafka.cluster().load(&topics(&["orders"])).await.expect_err("all are down");
    assert!(error.is_retriable(), "{error:?}");
    for address in fake.bootstrap().split(',') {
        assert!(error.to_string().contains(address), "'{error}' lacks {address}");
    }
    kafka.cluster().refresh(&topics(&["orders"]));
    sleep(60 * SECOND).await;
    fake.restart(2);
    sleep(3 * SECOND).await;

    assert!(kafka.cluster().snapshot().topic("orders").is_some(), "the refresh was tried until it succeeded");
}

#[tokio::test(start_paused = true)]
async fn one_dead_broker_is_not_waited_for() {
    let (fake, kafka) = three_nodes().await;
    fake.crash(1);
    fake.crash(3);
    let start = Instant::now();

    kafka.cluster().load(&topics(&["orders"])).await.expect("node 2 is up");

    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn coordinators_are_found_and_remembered() {
    let (fake, kafka) = three_nodes().await;
    let group = Str::from("group");

    let first = kafka.cluster().coordinator(CoordinatorKind::Group, &group).await.expect("it is up");
    let second = kafka.cluster().coordinator(CoordinatorKind::Group, &group).await.expect("it is known");

    assert_eq!(first.id, fake.coordinator("group"));
    assert_eq!(first, second);
    assert_eq!(fake.history().count(ApiKey::FindCoordinator), 1);
}

/// The very first request of a cluster brings the coordinators about, and finds none.
#[tokio::test(start_paused = true)]
async fn coordinators_of_a_fresh_cluster_are_asked_for_twice() {
    let fake = FakeCluster::builder().nodes(3).fresh_coordinators(true).start_on_pipes();
    let kafka = connect(&fake).await;

    let found = kafka.cluster().coordinator(CoordinatorKind::Group, &Str::from("group")).await.expect("it is up");

    assert_eq!(found.id, fake.coordinator("group"));
    assert_eq!(fake.history().count(ApiKey::FindCoordinator), 2);
}

#[tokio::test(start_paused = true)]
async fn a_coordinator_that_moved_is_found_when_it_is_lost() {
    let (fake, kafka) = three_nodes().await;
    let group = Str::from("group");
    let first = kafka.cluster().coordinator(CoordinatorKind::Group, &group).await.expect("it is up");
    let to = if first.id == 1 { 2 } else { 1 };
    fake.move_coordinator("group", to);

    kafka.cluster().coordinator_lost(CoordinatorKind::Group, &group, &first);
    let second = kafka.cluster().coordinator(CoordinatorKind::Group, &group).await.expect("it is up");

    assert_eq!(second.id, to);
}

#[tokio::test(start_paused = true)]
async fn a_coordinator_that_is_loading_is_waited_for() {
    let (fake, kafka) = three_nodes().await;
    let rule = fake.when(ApiKey::FindCoordinator).times(3).reply_error(ErrorCode::COORDINATOR_NOT_AVAILABLE);
    let start = Instant::now();

    kafka
        .cluster()
        .coordinator(CoordinatorKind::Group, &Str::from("group"))
        .await
        .expect("the fourth look-up finds it");

    assert_eq!(rule.hits(), 3);
    let waited = start.elapsed().as_millis();
    assert!((560..=840).contains(&waited), "{waited} ms, not about 100 + 200 + 400");
}

#[tokio::test(start_paused = true)]
async fn a_coordinator_that_may_not_be_asked_for_is_an_error() {
    let (fake, kafka) = three_nodes().await;
    fake.when(ApiKey::FindCoordinator).times(1).reply_error(ErrorCode::GROUP_AUTHORIZATION_FAILED);

    let error = kafka.cluster().coordinator(CoordinatorKind::Group, &Str::from("group")).await.expect_err("refused");

    assert!(error.to_string().contains("finding the coordinator of group 'group'"), "{error}");
}

/// RB-01: a look-up alone is enough to notice that all brokers were replaced.
#[tokio::test(start_paused = true)]
async fn a_coordinator_is_found_after_all_brokers_were_gone() {
    let (fake, kafka) = three_nodes().await;
    (1..=3).for_each(|node| fake.crash(node));
    let finding = tokio::spawn({
        let cluster = kafka.cluster().clone();
        async move { cluster.coordinator(CoordinatorKind::Group, &Str::from("group")).await }
    });
    sleep(30 * SECOND).await;

    fake.restart(3);

    let found = timeout(5 * SECOND, finding).await.expect("soon").expect("no panic").expect("node 3 is up");
    assert_eq!(found.id, 3);
}
