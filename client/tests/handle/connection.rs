//! A connection's life: loss, timeouts, throttling, idleness, limits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use krafka::consumer::AutoOffsetReset;
use krafka::testing::FakeCluster;
use krafka::{Kafka, KrafkaError, Record};
use krafka_protocol::{AnyResponse, ApiKey};
use tokio::time::{Instant, sleep, timeout};

use super::{assert_says, client};

const SECOND: Duration = Duration::from_secs(1);

async fn connected(fake: &FakeCluster) -> Kafka {
    client(fake).connect().await.expect("it is up")
}

fn one_node() -> FakeCluster {
    FakeCluster::builder().nodes(1).topic("orders", 3).start_on_pipes()
}

/// Lets all that is ready run.
async fn settle() {
    sleep(Duration::from_millis(1)).await;
}

/// CB-12, CB-14.
#[tokio::test(start_paused = true)]
async fn a_lost_connection_is_replaced_and_the_call_repeated() {
    let fake = one_node();
    let kafka = connected(&fake).await;
    let rule = fake.when(ApiKey::DescribeCluster).times(2).drop_connection();

    kafka.admin().describe_cluster().await.expect("the third attempt is answered");

    assert_eq!(rule.hits(), 2);
}

/// CB-15.
#[tokio::test(start_paused = true)]
async fn a_request_without_an_answer_is_repeated_on_another_connection() {
    let fake = one_node();
    let kafka = client(&fake).request_timeout(5 * SECOND).connect().await.expect("it is up");
    fake.when(ApiKey::DescribeCluster).times(1).silence();
    let start = Instant::now();

    kafka.admin().describe_cluster().await.expect("the second attempt is answered");

    assert!((5..8).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
    let history = fake.history();
    let connections: Vec<_> = history.of(ApiKey::DescribeCluster).map(|event| event.connection).collect();
    assert_ne!(connections[0], connections[1]);
    settle().await;
    assert_eq!(fake.connections(1), 2, "the late one is closed; bootstrap and node 1 have one each");
}

/// TH-01.
#[tokio::test(start_paused = true)]
async fn a_throttle_delays_the_next_request() {
    let fake = one_node();
    let kafka = connected(&fake).await;
    fake.when(ApiKey::DescribeCluster).times(1).throttle(7 * SECOND);
    let start = Instant::now();

    kafka.admin().describe_cluster().await.expect("it is answered at once");
    let first = start.elapsed();
    kafka.admin().describe_cluster().await.expect("it is answered after the silence");

    assert!(first < SECOND, "{first:?}");
    assert!((7..8).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
}

/// TH-03: and the request that waited is never sent.
#[tokio::test(start_paused = true)]
async fn a_caller_need_not_wait_out_a_throttle() {
    let fake = one_node();
    let kafka = connected(&fake).await;
    fake.when(ApiKey::DescribeCluster).times(1).throttle(60 * SECOND);
    kafka.admin().describe_cluster().await.expect("it is answered at once");

    let error = kafka.admin().with_timeout(2 * SECOND).describe_cluster().await.expect_err("it is too late");
    sleep(120 * SECOND).await;

    assert!(matches!(error, KrafkaError::Timeout { .. }), "{error:?}");
    assert_eq!(fake.history().count(ApiKey::DescribeCluster), 1);
}

/// TH-04.
#[tokio::test(start_paused = true)]
async fn a_throttle_longer_than_the_request_timeout_is_no_timeout() {
    let fake = one_node();
    let kafka = client(&fake).request_timeout(5 * SECOND).connect().await.expect("it is up");
    fake.when(ApiKey::DescribeCluster).times(1).throttle(40 * SECOND);
    kafka.admin().describe_cluster().await.expect("it is answered at once");
    let connections = fake.history().count(ApiKey::ApiVersions);

    kafka.admin().describe_cluster().await.expect("it is answered after the silence");

    assert_eq!(fake.history().count(ApiKey::ApiVersions), connections, "on the same connection");
}

/// CB-10.
#[tokio::test(start_paused = true)]
async fn a_hundred_calls_share_a_connection() {
    let fake = one_node();
    let kafka = connected(&fake).await;

    let calls: Vec<_> = (0..100)
        .map(|_| {
            let admin = kafka.admin();
            tokio::spawn(async move { admin.describe_cluster().await })
        })
        .collect();
    for call in calls {
        call.await.expect("no panic").expect("it is answered");
    }

    assert_eq!(fake.connections(1), 2, "one to the bootstrap server, one to node 1");
}

/// CB-11 and the cancellation of a request that was written.
#[tokio::test(start_paused = true)]
async fn a_dropped_call_does_not_disturb_the_others() {
    let fake = one_node();
    let kafka = connected(&fake).await;
    fake.when(ApiKey::DescribeCluster).times(1).delay(3 * SECOND);

    let dropped = timeout(SECOND, kafka.admin().describe_cluster()).await;
    let topics = kafka.admin().list_topics().await.expect("its answer is its own");

    assert!(dropped.is_err());
    assert_eq!(topics.len(), 1);
    assert_eq!(fake.history().count(ApiKey::DescribeCluster), 1);
}

/// CB-13: the idle connection is closed, and the next call opens another.
#[tokio::test(start_paused = true)]
async fn idle_connections_close() {
    let fake = one_node();
    let kafka = client(&fake).connections_max_idle(60 * SECOND).connect().await.expect("it is up");
    kafka.admin().describe_cluster().await.expect("it is answered");
    assert_eq!(fake.connections(1), 2);

    sleep(61 * SECOND).await;
    assert_eq!(fake.connections(1), 0);

    kafka.admin().describe_cluster().await.expect("a new connection is made");
    assert_eq!(fake.connections(1), 1);
}

/// MD-15: for an hour of virtual time, a client that nobody uses sends its refreshes and nothing else.
#[tokio::test(start_paused = true)]
async fn an_idle_client_sends_only_refreshes() {
    let fake = one_node();
    let _kafka = connected(&fake).await;
    let before = fake.history().len();

    sleep(3_600 * SECOND).await;

    let history = fake.history();
    let sent: Vec<_> = history.iter().skip(before).map(|event| event.key).collect();
    let refreshes = sent.iter().filter(|key| **key == ApiKey::Metadata).count();
    assert!((10..=14).contains(&refreshes), "{refreshes} refreshes in an hour");
    assert!(sent.iter().all(|key| matches!(key, ApiKey::Metadata | ApiKey::ApiVersions)), "{sent:?}");
}

/// CB-24.
#[tokio::test(start_paused = true)]
async fn a_response_over_the_limit_is_refused() {
    let fake = FakeCluster::builder().nodes(1).topic("orders", 200).start_on_pipes();
    let kafka = client(&fake).max_response_size(2_000).connect().await.expect("it is up");

    let error = kafka.admin().list_topics().await.expect_err("two hundred partitions do not fit");

    assert_says(&error, &["max_response_size is 2000"]);
    kafka.admin().describe_cluster().await.expect("a new connection serves what fits");
}

#[tokio::test(start_paused = true)]
async fn dropping_the_handle_closes_the_connections() {
    let fake = one_node();
    let kafka = connected(&fake).await;
    let admin = kafka.admin();
    admin.describe_cluster().await.expect("it is answered");

    drop(kafka);
    settle().await;
    assert_eq!(fake.connections(1), 2, "the admin client still uses them");

    drop(admin);
    settle().await;
    assert_eq!(fake.connections(1), 0);
}

/// CB-31.
#[tokio::test(start_paused = true)]
async fn closing_ends_everything_and_refuses_more() {
    let fake = one_node();
    let kafka = connected(&fake).await;
    fake.when(ApiKey::DescribeCluster).times(1).delay(SECOND);
    let admin = kafka.admin();
    let pending = tokio::spawn(async move { admin.describe_cluster().await });
    settle().await;

    kafka.close();

    pending.await.expect("no panic").expect("what was sent is answered");
    settle().await;
    assert_eq!(fake.connections(1), 0);
    let error = kafka.admin().describe_cluster().await.expect_err("it is closed");
    assert!(matches!(error, KrafkaError::Closed { .. }), "{error:?}");
}

/// CB-31: whoever waits for a broker that hangs, or that asked for silence, is told in bounded time.
#[tokio::test(start_paused = true)]
async fn closing_waits_for_nobody_for_long() {
    for hangs in [true, false] {
        let fake = one_node();
        let kafka = connected(&fake).await;
        let rule = fake.when(ApiKey::DescribeCluster).forever();
        let _ = if hangs { rule.silence() } else { rule.throttle(200 * SECOND) };
        let admin = kafka.admin();
        let pending = tokio::spawn(async move {
            let _ = admin.describe_cluster().await?;
            admin.describe_cluster().await
        });
        sleep(SECOND).await;
        let start = Instant::now();

        kafka.close();
        let error = pending.await.expect("no panic").expect_err("there is no answer");
        settle().await;

        assert!(matches!(error, KrafkaError::Closed { .. }), "{error:?}");
        assert!(start.elapsed() < 5 * SECOND, "{:?}", start.elapsed());
        assert_eq!(fake.connections(1), 0);
    }
}

/// CB-28: over TCP, a reset takes nothing back that had arrived, and what was pending is asked again elsewhere.
#[tokio::test]
async fn a_reset_connection_loses_only_what_was_pending() {
    let fake = FakeCluster::builder().nodes(1).start().await.expect("a free port");
    let kafka = Kafka::builder(fake.bootstrap()).connect().await.expect("it is up");
    let connection = kafka.broker_connection(1).await.expect("it is up");
    let answered = connection.call(krafka::protocol::DescribeClusterRequest::default());
    assert_eq!(answered.await.expect("it had arrived").brokers.len(), 1);
    fake.when(ApiKey::DescribeCluster).times(2).reset_connection();

    let error = connection.call(krafka::protocol::DescribeClusterRequest::default()).await.expect_err("it is reset");
    let cluster = kafka.admin().describe_cluster().await.expect("it is asked again");

    assert!(matches!(error, KrafkaError::Network(_)) && error.is_retriable(), "{error:?}");
    assert_eq!(cluster.brokers.len(), 1);
}

/// CB-20.
#[tokio::test(start_paused = true)]
async fn the_connection_limit_holds() {
    let fake = FakeCluster::builder().nodes(3).start_on_pipes();
    let kafka = client(&fake).max_connections(1).connect().await.expect("one is enough");

    for _ in 0..10 {
        kafka.admin().describe_cluster().await.expect("idle ones make room");
    }
    settle().await;

    let open: usize = fake.nodes().into_iter().map(|node| fake.connections(node)).sum();
    assert_eq!(open, 1);
}

/// CB-20: lanes share what there is, and nobody starves, neither behind long polls nor behind a rebalance. Each member
/// that joins needs a connection of its own, because the coordinator answers them together.
#[tokio::test(start_paused = true)]
async fn under_a_tight_limit_everything_still_works() {
    for (nodes, members, limit) in [(1, 1, 1), (1, 2, 3), (3, 1, 3), (3, 2, 5), (3, 1, 2), (3, 1, 1)] {
        let fake = FakeCluster::builder().nodes(nodes).topic("orders", 3).start_on_pipes();
        let kafka = client(&fake).max_connections(limit).connect().await.expect("it is up");
        let producer = kafka.producer().build().await.expect("valid");
        let mut reading = Vec::new();
        let read = Arc::new(AtomicUsize::new(0));
        for _ in 0..members {
            let consumer = kafka.consumer("g").auto_offset_reset(AutoOffsetReset::Earliest).build().await;
            let (consumer, read) = (consumer.expect("valid"), read.clone());
            consumer.subscribe(&["orders"]).await.expect("subscribed");
            reading.push(tokio::spawn(async move {
                while read.load(Ordering::Relaxed) < 60 {
                    read.fetch_add(consumer.poll(SECOND).await.expect("no error").len(), Ordering::Relaxed);
                }
            }));
        }

        for number in 0..60 {
            let record = Record::new("orders", "tea").partition(number % 3);
            timeout(20 * SECOND, producer.send(record)).await.expect("it does not starve").expect("it is written");
            // The one that made room is closed while the next is opened.
            settle().await;
            let open: usize = fake.nodes().into_iter().map(|node| fake.connections(node)).sum();
            assert!(open <= limit, "{open} connections to {nodes} nodes, not {limit}");
        }

        for reading in reading {
            timeout(60 * SECOND, reading).await.expect("nobody starves").expect("no panic");
        }
        assert_eq!(read.load(Ordering::Relaxed), 60, "{nodes} nodes, {members} members, {limit} connections");
    }
}

/// AU-07 by replacement: at a broker whose sessions end and which lets nobody renew them, requests go to a new
/// connection, and none is lost. Renewals are in `renewal.rs`.
#[tokio::test(start_paused = true)]
async fn a_session_that_ends_is_followed_by_another() {
    let fake = FakeCluster::builder().nodes(1).sasl_plain("alice", "hunter2").start_on_pipes();
    fake.when(ApiKey::SaslAuthenticate).forever().edit(|response| {
        if let AnyResponse::SaslAuthenticate(accepted) = response {
            accepted.session_lifetime_ms = 60_000;
        }
    });
    let kafka = client(&fake).sasl_plain("alice", "hunter2").connect().await.expect("the password is right");
    kafka.admin().describe_cluster().await.expect("it is answered");
    let before = fake.history().count(ApiKey::SaslAuthenticate);

    for _ in 0..30 {
        sleep(4 * SECOND).await;
        kafka.admin().describe_cluster().await.expect("there is always a session");
    }

    let sessions = fake.history().count(ApiKey::SaslAuthenticate) - before;
    assert!((2..=3).contains(&sessions), "{sessions} new sessions of a minute in two minutes");
    assert_eq!(fake.connections(1), 2, "the old ones are closed; that to the bootstrap server is idle");
}
