//! A connection's life: loss, timeouts, throttling, idleness, limits.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use krafka::consumer::AutoOffsetReset;
use krafka::testing::FakeCluster;
use krafka::{Connect, Connecting, Environment, Kafka, KrafkaError, Record, Stream};
use krafka_protocol::{AnyResponse, ApiKey, DescribeClusterRequest};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
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

/// TH-01, TH-04: the answer that a connection begins with may ask for it, with SASL before the handshake goes on.
#[tokio::test(start_paused = true)]
async fn a_throttle_in_the_handshake_is_waited_out() {
    for has_users in [false, true] {
        let mut builder = FakeCluster::builder().nodes(1);
        if has_users {
            builder = builder.user("alice", "secret");
        }
        let fake = builder.start_on_pipes();
        fake.when(ApiKey::ApiVersions).forever().throttle(40 * SECOND);
        let mut kafka = client(&fake).bootstrap_timeout(300 * SECOND).request_timeout(10 * SECOND);
        if has_users {
            kafka = kafka.sasl_plain("alice", "secret");
        }
        let start = Instant::now();

        let kafka = kafka.connect().await.expect("it is up, and slow");

        assert_eq!(start.elapsed().as_secs(), 40, "{:?}", start.elapsed());
        let history = fake.history();
        assert_eq!((history.count(ApiKey::ApiVersions), history.count(ApiKey::Metadata)), (1, 1));
        let silence: Duration = kafka.metrics().brokers.values().map(|broker| broker.throttled).sum();
        assert_eq!(silence, 40 * SECOND);
    }
}

/// KIP-219 bounds nothing; this client does.
#[tokio::test(start_paused = true)]
async fn a_throttle_in_the_handshake_is_capped() {
    let fake = one_node();
    fake.when(ApiKey::ApiVersions).times(1).throttle(3_600 * SECOND);
    let start = Instant::now();

    let _ = client(&fake).bootstrap_timeout(7_200 * SECOND).connect().await;

    let history = fake.history();
    let asked = history.of(ApiKey::Metadata).next().expect("it was asked in the end").at;
    let silence = asked.duration_since(start.into_std());
    assert!(silence >= 300 * SECOND, "{silence:?}");
}

/// A peer that has answered, and reset the connection: what it sent can be read, nothing can be written.
#[tokio::test(start_paused = true)]
async fn an_answer_that_has_arrived_is_not_lost_with_a_failed_write() {
    let (fake, valve) = (one_node(), Arc::new(Valve::default()));
    let road = Environment::new(Valved(fake.pipes(), valve.clone()), 1);
    let kafka = Kafka::builder(fake.bootstrap()).environment(road).connect().await.expect("it is up");
    let connection = Arc::new(kafka.broker_connection(1).await.expect("it is up"));
    let call = || {
        let connection = connection.clone();
        tokio::spawn(async move { connection.call(DescribeClusterRequest::default()).await })
    };

    valve.is_silent.store(true, Ordering::Relaxed);
    let first = call();
    settle().await;
    valve.is_full.store(true, Ordering::Relaxed);
    let second = call();
    settle().await;
    assert_eq!(fake.history().count(ApiKey::DescribeCluster), 1, "the second one waits for the socket");
    valve.is_broken.store(true, Ordering::Relaxed);
    valve.is_silent.store(false, Ordering::Relaxed);
    let third = call();

    assert!(first.await.expect("no panic").is_ok(), "it was answered");
    for lost in [second, third] {
        let error = lost.await.expect("no panic").expect_err("it was never sent");
        assert!(error.is_retriable() && error.to_string().contains("broken pipe"), "{error}");
    }
}

/// What a socket does at present.
#[derive(Default)]
struct Valve {
    is_silent: AtomicBool,
    is_full: AtomicBool,
    is_broken: AtomicBool,
}

/// Makes sockets with a valve.
struct Valved<C>(C, Arc<Valve>);

impl<C: Connect> Connect for Valved<C> {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a> {
        Box::pin(async move {
            let stream: Box<dyn Stream> = Box::new(Piped(self.0.connect(host, port).await?, self.1.clone()));
            Ok(stream)
        })
    }
}

struct Piped(Box<dyn Stream>, Arc<Valve>);

impl AsyncRead for Piped {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.1.is_silent.load(Ordering::Relaxed) {
            true => Poll::Pending,
            false => Pin::new(&mut *self.0).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Piped {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.1.is_broken.load(Ordering::Relaxed) {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        match self.1.is_full.load(Ordering::Relaxed) {
            true => Poll::Pending,
            false => Pin::new(&mut *self.0).poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_shutdown(cx)
    }
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
    let answered = connection.call(DescribeClusterRequest::default());
    assert_eq!(answered.await.expect("it had arrived").brokers.len(), 1);
    fake.when(ApiKey::DescribeCluster).times(2).reset_connection();

    let error = connection.call(DescribeClusterRequest::default()).await.expect_err("it is reset");
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
