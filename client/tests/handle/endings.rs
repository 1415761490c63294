//! Clients that end: twice, in the middle of everything, inside of their own callbacks, a thousand times.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use krafka::consumer::{AutoOffsetReset, ListenerFuture, RebalanceListener};
use krafka::testing::{FakeCluster, Pipes};
use krafka::{Connect, Connecting, Consumer, Environment, KrafkaError, Record, Stream, TopicPartition};
use krafka_protocol::{ApiKey, ApiVersionsRequest};
use tokio::time::{Instant, sleep, timeout};

use super::client;

const SECOND: Duration = Duration::from_secs(1);

fn one_node() -> FakeCluster {
    FakeCluster::builder().nodes(1).topic("orders", 3).group_initial_rebalance_delay(Duration::ZERO).start_on_pipes()
}

#[track_caller]
fn assert_done_or_closed<T>(result: Result<T, KrafkaError>) {
    match result {
        Ok(_) | Err(KrafkaError::Closed { .. }) => {}
        Err(other) => panic!("{other:?}, and neither done nor closed"),
    }
}

/// LC-03: whatever is going on, and however often it is said.
#[tokio::test(start_paused = true)]
async fn closing_beside_every_call_ends_them_all() {
    for delay in [0, 1, 5, 20, 200] {
        let fake = one_node();
        fake.when(ApiKey::DescribeCluster).forever().delay(Duration::from_millis(50));
        let kafka = client(&fake).connect().await.expect("it is up");
        let producer = kafka.producer().build().await.expect("valid");
        let consumer = kafka.consumer("g").auto_offset_reset(AutoOffsetReset::Earliest).build().await.expect("valid");
        consumer.subscribe(&["orders"]).await.expect("a topic's name");
        let admin = kafka.admin();
        let start = Instant::now();

        let close = async {
            sleep(Duration::from_millis(delay)).await;
            let (first, second) = tokio::join!(producer.close(), producer.close());
            assert_done_or_closed(first);
            assert_done_or_closed(second);
            let (first, second) = tokio::join!(consumer.close(), consumer.close());
            assert_done_or_closed(first);
            assert_done_or_closed(second);
            kafka.close();
            kafka.close();
        };
        let (described, sent, polled, committed, ()) = tokio::join!(
            admin.describe_cluster(),
            producer.send(Record::new("orders", "tea")),
            consumer.poll(30 * SECOND),
            consumer.commit(),
            close,
        );

        assert_done_or_closed(described);
        assert_done_or_closed(sent);
        assert_done_or_closed(polled);
        assert_done_or_closed(committed);
        assert!(start.elapsed() < 40 * SECOND, "{delay} ms: {:?}", start.elapsed());
        sleep(SECOND).await;
        assert_eq!(fake.connections(1), 0, "{delay} ms");
    }
}

/// Closes its consumer as soon as it is given partitions.
#[derive(Clone, Default)]
struct Leaving {
    consumer: Arc<OnceLock<Consumer>>,
    closed: Arc<Mutex<Option<krafka::Result<()>>>>,
}

impl RebalanceListener for Leaving {
    fn on_assigned<'a>(&'a self, _partitions: &'a [TopicPartition]) -> ListenerFuture<'a> {
        Box::pin(async {
            let closed = self.consumer.get().expect("it was built").close().await;
            *self.closed.lock().expect("nobody panics with it") = Some(closed);
        })
    }
}

/// LC-04: the callback is waited for, and waits itself: the close timeout is the bound.
#[tokio::test(start_paused = true)]
async fn a_consumer_may_be_closed_in_its_own_callback() {
    let fake = one_node();
    let kafka = client(&fake).connect().await.expect("it is up");
    let leaving = Leaving::default();
    let builder = kafka.consumer("g").rebalance_listener(leaving.clone()).close_timeout(10 * SECOND);
    let consumer = builder.build().await.expect("valid");
    consumer.subscribe(&["orders"]).await.expect("a topic's name");
    assert!(leaving.consumer.set(consumer).is_ok());
    let consumer = leaving.consumer.get().expect("it was just set");

    let polled = timeout(60 * SECOND, consumer.poll(30 * SECOND)).await.expect("it returns");
    sleep(20 * SECOND).await;

    assert_done_or_closed(polled);
    assert!(leaving.closed.lock().expect("nobody panics with it").is_some(), "close() returned");
    assert!(matches!(consumer.recv().await, Err(KrafkaError::Closed { .. })));
}

/// LC-06.
#[tokio::test(start_paused = true)]
async fn a_thousand_clients_leave_nothing_behind() {
    let fake = one_node();
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let live = async || {
        let kafka = client(&fake).connect().await.expect("it is up");
        let producer = kafka.producer().build().await.expect("valid");
        producer.send(Record::new("orders", "tea")).await.expect("written");
        producer.close().await.expect("closed");
        kafka.close();
        sleep(SECOND).await;
    };
    live().await;
    let before = tasks();

    for _ in 0..1_000 {
        live().await;
    }

    assert_eq!(tasks(), before);
    assert_eq!(fake.connections(1), 0);
}

/// TH-05: a member whose coordinator asks for silence keeps its place, if the silence is shorter than its session.
#[tokio::test(start_paused = true)]
async fn a_throttled_member_stays() {
    let fake = one_node();
    let kafka = client(&fake).connect().await.expect("it is up");
    let consumer = kafka.consumer("g").auto_offset_reset(AutoOffsetReset::Earliest).build().await.expect("valid");
    consumer.subscribe(&["orders"]).await.expect("a topic's name");
    consumer.poll(5 * SECOND).await.expect("nothing yet");
    let joins = fake.history().count(ApiKey::JoinGroup);
    let rule = fake.when(ApiKey::Heartbeat).forever().throttle(20 * SECOND);

    for _ in 0..60 {
        consumer.poll(5 * SECOND).await.expect("nothing yet");
    }

    assert!((10..=20).contains(&rule.hits()), "{} heartbeats in five minutes", rule.hits());
    assert_eq!(fake.history().count(ApiKey::JoinGroup), joins);
    assert_eq!(consumer.assignment().len(), 3);
}

/// AV-15 (KIP-1242): who the client takes a broker for is said only where the cluster told it.
#[tokio::test(start_paused = true)]
async fn cluster_and_node_are_named_on_learned_connections_only() {
    let fake = one_node();
    let kafka = client(&fake).connect().await.expect("it is up");
    kafka.admin().describe_cluster().await.expect("it is up");

    let history = fake.history();
    let named: Vec<_> =
        history.requests::<ApiVersionsRequest>().map(|asked| (asked.cluster_id.is_some(), asked.node_id)).collect();

    assert_eq!(named, [(false, -1), (true, 1)]);
}

/// Never makes its second connection, which is the first to a broker that the cluster named.
struct HangsOnce {
    pipes: Pipes,
    asked: AtomicUsize,
}

impl Connect for HangsOnce {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a> {
        Box::pin(async move {
            if self.asked.fetch_add(1, Ordering::Relaxed) == 1 {
                std::future::pending::<()>().await;
            }
            let stream: Box<dyn Stream> = Box::new(self.pipes.connect(host, port).await?);
            Ok(stream)
        })
    }
}

/// LC-05: somebody asks from a runtime that ends before the connection is there, which others wait for, too.
#[test]
fn a_runtime_that_ends_takes_no_connection_along_that_others_wait_for() {
    let runtime =
        || tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().expect("one");
    let (own, other) = (runtime(), runtime());
    let (_fake, kafka) = own.block_on(async {
        let fake = one_node();
        let connect = HangsOnce { pipes: fake.pipes(), asked: AtomicUsize::new(0) };
        let kafka = client(&fake).environment(Environment::new(connect, 1)).connect().await.expect("it is up");
        (fake, kafka)
    });

    let asked = other.block_on(async { timeout(SECOND, kafka.admin().describe_cluster()).await });
    drop(other);

    assert!(asked.is_err(), "nobody has answered");
    let asked = own.block_on(async { timeout(30 * SECOND, kafka.admin().describe_cluster()).await });
    asked.expect("it does not hang").expect("the broker answers");
}
