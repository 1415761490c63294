//! Fewer connections than brokers: they take turns, and nothing takes that for a fault of the brokers'.

use std::collections::BTreeSet;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use krafka::consumer::AutoOffsetReset;
use krafka::protocol::DescribeClusterRequest;
use krafka::testing::FakeCluster;
use krafka::{Connect, Connecting, Environment, Kafka, Record, Stream};
use krafka_protocol::ApiKey;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, sleep};

use super::client;

const SECOND: Duration = Duration::from_secs(1);

/// CB-20: a producer that waits for each acknowledgement, beside a consumer whose long polls keep the connections busy.
#[tokio::test(start_paused = true)]
async fn brokers_take_short_turns_and_none_is_given_up_on() {
    for limit in [1, 2, 3] {
        let fake = FakeCluster::builder().nodes(3).topic("orders", 3).start_on_pipes();
        let kafka = client(&fake).max_connections(limit).connect().await.expect("it is up");
        let producer = kafka.producer().build().await.expect("valid");
        let consumer = kafka.consumer("g").auto_offset_reset(AutoOffsetReset::Earliest).build().await.expect("valid");
        consumer.subscribe(&["orders"]).await.expect("subscribed");
        let is_over = Arc::new(AtomicBool::new(false));
        let reading = tokio::spawn({
            let is_over = is_over.clone();
            async move {
                let mut read = 0;
                while !is_over.load(Ordering::Relaxed) || read == 0 {
                    read += consumer.poll(SECOND).await.expect("a cap is no error").len();
                }
                read
            }
        });
        // The group is there.
        sleep(10 * SECOND).await;
        let dialled = |fake: &FakeCluster| fake.history().count(ApiKey::ApiVersions);
        let (begun, before) = (Instant::now(), dialled(&fake));

        let mut acknowledged = 0;
        while begun.elapsed() < 10 * SECOND {
            producer.send(Record::new("orders", "tea").partition(acknowledged % 3)).await.expect("a cap is no error");
            acknowledged += 1;
            sleep(Duration::from_millis(10)).await;
        }
        let dials = dialled(&fake) - before;
        sleep(3 * SECOND).await;
        is_over.store(true, Ordering::Relaxed);
        let read = reading.await.expect("no panic");

        println!("limit {limit}: {acknowledged} acknowledged, {read} read, {dials} connections made in 10 s");
        assert!(acknowledged >= 40, "limit {limit}: {acknowledged} acknowledged in 10 s");
        assert_eq!(read, acknowledged as usize, "limit {limit}: the consumer has its turns, too");
        assert!(dials <= 210, "limit {limit}: {dials} connections made in 10 s");
        let metrics = kafka.metrics();
        assert_eq!(metrics.metadata.rebootstraps, 0, "limit {limit}: {:?}", metrics.metadata);
        assert_eq!(metrics.metadata.failures, 0, "limit {limit}: {:?}", metrics.metadata);
    }
}

/// CB-20: a consumer that has nothing to read leaves the connections alone for most of the time, and is there soon when
/// it has.
#[tokio::test(start_paused = true)]
async fn an_idle_consumer_makes_few_connections() {
    for limit in [1, 2] {
        let fake = FakeCluster::builder().nodes(3).topic("orders", 3).start_on_pipes();
        let kafka = client(&fake).max_connections(limit).connect().await.expect("it is up");
        let writer = client(&fake).connect().await.expect("it is up").producer().build().await.expect("valid");
        let consumer = kafka.consumer("g").auto_offset_reset(AutoOffsetReset::Earliest).build().await.expect("valid");
        consumer.subscribe(&["orders"]).await.expect("subscribed");
        consumer.poll(15 * SECOND).await.expect("a cap is no error");
        let opened = kafka.metrics().connections.opened;

        consumer.poll(20 * SECOND).await.expect("a cap is no error");
        let dials = kafka.metrics().connections.opened - opened;

        assert!(dials <= 140, "limit {limit}: {dials} connections made in 20 s");
        for number in 0..6 {
            writer.send(Record::new("orders", "tea").partition(number % 3)).await.expect("it is written");
            let written = Instant::now();
            let read = consumer.poll(5 * SECOND).await.expect("a cap is no error").len();
            let took = written.elapsed();
            assert!(read == 1 && took < SECOND, "limit {limit}: {read} read after {took:?}");
            sleep(10 * SECOND).await;
        }
    }
}

/// CB-20: a coordinator answers joins when all members have joined. Where one handle has more members than connections,
/// they all come to that, and records flow meanwhile and afterwards.
#[tokio::test(start_paused = true)]
async fn a_group_with_more_members_than_connections_gathers() {
    for (nodes, members, limit) in [(1, 2, 1), (1, 4, 3), (3, 3, 2), (3, 4, 1)] {
        let what = format!("{nodes} nodes, {members} members, {limit} connections");
        let fake = FakeCluster::builder().nodes(nodes).topic("orders", 8).topic("other", 1).start_on_pipes();
        let kafka = client(&fake).max_connections(limit).connect().await.expect("it is up");
        let producer = kafka.producer().build().await.expect("valid");
        let is_over = Arc::new(AtomicBool::new(false));
        let mut reading = Vec::new();
        let assigned: Vec<_> = (0..members).map(|_| Arc::new(AtomicUsize::new(0))).collect();
        for assigned in assigned.clone() {
            let consumer = kafka.consumer("g").auto_offset_reset(AutoOffsetReset::Earliest).build().await;
            let (consumer, is_over) = (consumer.expect("valid"), is_over.clone());
            consumer.subscribe(&["orders"]).await.expect("subscribed");
            reading.push(tokio::spawn(async move {
                let mut read = BTreeSet::new();
                while !is_over.load(Ordering::Relaxed) {
                    let records = consumer.poll(SECOND / 5).await.expect("a cap is no error");
                    read.extend(records.iter().map(|record| (record.partition, record.offset)));
                    assigned.store(consumer.assignment().len(), Ordering::Relaxed);
                }
                consumer.close().await.expect("a cap is no error");
                read
            }));
        }
        let begun = Instant::now();

        let counts = || assigned.iter().map(|count| count.load(Ordering::Relaxed)).collect::<Vec<_>>();
        while counts().iter().sum::<usize>() != 8 || counts().contains(&0) {
            let sent = tokio::time::timeout(5 * SECOND, producer.send(Record::new("other", "tea"))).await;
            sent.unwrap_or_else(|_| panic!("{what}: nothing is written while a group gathers")).expect("no error");
            sleep(Duration::from_millis(100)).await;
            assert!(begun.elapsed() < 60 * SECOND, "{what}: {assigned:?} after a minute");
        }
        println!("{what}: gathered after {:?}", begun.elapsed());
        for number in 0..40 {
            producer.send(Record::new("orders", "tea").partition(number % 8)).await.expect("a cap is no error");
        }
        sleep(10 * SECOND).await;

        is_over.store(true, Ordering::Relaxed);
        let mut read = BTreeSet::new();
        for reading in reading {
            read.extend(reading.await.expect("no panic"));
        }
        assert_eq!(read.len(), 40, "{what}");
        assert_eq!(kafka.metrics().metadata.rebootstraps, 0, "{what}");
    }
}

/// How many streams there are, and how many there were at most.
#[derive(Default)]
pub(super) struct Tally {
    now: AtomicUsize,
    pub(super) most: AtomicUsize,
}

/// Counts the streams that are open at a time.
pub(super) struct Counting {
    pub(super) inside: Arc<dyn Connect>,
    pub(super) tally: Arc<Tally>,
}

struct Counted {
    inside: Box<dyn Stream>,
    _counted: Count,
}

/// One that is counted, from the beginning of the attempt on.
struct Count(Arc<Tally>);

impl Count {
    fn new(tally: &Arc<Tally>) -> Self {
        let now = tally.now.fetch_add(1, Ordering::Relaxed) + 1;
        tally.most.fetch_max(now, Ordering::Relaxed);
        Self(tally.clone())
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Connect for Counting {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a> {
        Box::pin(async move {
            let counted = Count::new(&self.tally);
            let inside = self.inside.connect(host, port).await?;
            Ok(Box::new(Counted { inside, _counted: counted }) as Box<dyn Stream>)
        })
    }
}

impl AsyncRead for Counted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.inside).poll_read(cx, buf)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.inside).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.inside).poll_flush(cx)
    }

    /// A good-bye takes its time, as it does with TLS.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

/// CB-20: a broker that limits connections counts sockets. One that is given up is open until it has said good-bye.
#[tokio::test(start_paused = true)]
async fn there_are_never_more_sockets_than_the_cap_allows() {
    for limit in [1, 2, 3, 5] {
        let fake = FakeCluster::builder().nodes(3).topic("orders", 3).start_on_pipes();
        let tally = Arc::new(Tally::default());
        let counting = Counting { inside: Arc::new(fake.pipes()), tally: tally.clone() };
        let builder = Kafka::builder(fake.bootstrap()).environment(Environment::new(counting, 1));
        let kafka = builder.max_connections(limit).connect().await.expect("it is up");
        let producer = kafka.producer().build().await.expect("valid");
        let consumer = kafka.consumer("g").auto_offset_reset(AutoOffsetReset::Earliest).build().await.expect("valid");
        consumer.subscribe(&["orders"]).await.expect("subscribed");

        let mut read = 0;
        for number in 0..30 {
            producer.send(Record::new("orders", "tea").partition(number % 3)).await.expect("a cap is no error");
            read += consumer.poll(SECOND / 2).await.expect("a cap is no error").len();
        }
        while read < 30 {
            read += consumer.poll(SECOND).await.expect("a cap is no error").len();
        }

        assert_eq!(tally.most.load(Ordering::Relaxed), limit, "sockets at a time, at most");
    }
}

/// CB-20: while a group gathers, the only connection is there for others, too.
#[tokio::test(start_paused = true)]
async fn a_group_that_gathers_leaves_its_connection_to_others() {
    let fake = FakeCluster::builder().nodes(3).topic("orders", 3).topic("payments", 3);
    let fake = fake.group_initial_rebalance_delay(20 * SECOND).start_on_pipes();
    let kafka = client(&fake).max_connections(1).connect().await.expect("it is up");
    let consumer = kafka.consumer("g").build().await.expect("valid");
    consumer.subscribe(&["orders"]).await.expect("subscribed");
    let polling = tokio::spawn(async move { consumer.poll(40 * SECOND).await.map(|records| records.len()) });
    while fake.history().count(ApiKey::JoinGroup) == 0 {
        sleep(Duration::from_millis(10)).await;
    }
    let begun = Instant::now();

    let producer = kafka.producer().build().await.expect("valid");
    producer.send(Record::new("payments", "tea")).await.expect("it has its turn");

    assert!(begun.elapsed() < 2 * SECOND, "it has waited for {:?}", begun.elapsed());
    polling.await.expect("no panic").expect("a cap is no error");
    assert_eq!(fake.group("g").expect("it has gathered").members.len(), 1);
}

/// CB-20: a connection of the user's is nobody else's, for longer than all brokers together are waited for. Metadata
/// wait for their turn, and nothing is taken for a fault.
#[tokio::test(start_paused = true)]
async fn metadata_wait_for_their_turn() {
    let fake = FakeCluster::builder().nodes(3).topic("payments", 3).start_on_pipes();
    let kafka = client(&fake).max_connections(1).connect().await.expect("it is up");
    fake.when(ApiKey::DescribeCluster).delay(20 * SECOND);
    let own = kafka.broker_connection(1).await.expect("it has its turn");
    let calling = tokio::spawn(async move { own.call(DescribeClusterRequest::default()).await });
    while fake.history().count(ApiKey::DescribeCluster) == 0 {
        sleep(Duration::from_millis(10)).await;
    }
    let begun = Instant::now();

    let producer = kafka.producer().build().await.expect("valid");
    producer.send(Record::new("payments", "tea")).await.expect("it has its turn");

    assert!(begun.elapsed() > 17 * SECOND, "the connection was taken for {:?}", begun.elapsed());
    assert!(begun.elapsed() < 25 * SECOND, "it has waited for {:?}", begun.elapsed());
    let metadata = kafka.metrics().metadata;
    assert_eq!((metadata.rebootstraps, metadata.failures), (0, 0), "{metadata:?}");
    calling.await.expect("no panic").expect("a cap is no error");
}

/// CB-20: when the user's own connection, which nobody takes away, comes to rest, it makes room at once.
#[tokio::test(start_paused = true)]
async fn a_connection_that_comes_to_rest_makes_room_at_once() {
    let fake = FakeCluster::builder().nodes(3).topic("payments", 3).start_on_pipes();
    let kafka = client(&fake).max_connections(1).connect().await.expect("it is up");
    let producer = kafka.producer().build().await.expect("valid");
    producer.send(Record::new("payments", "tea").partition(0)).await.expect("it has its turn");
    fake.when(ApiKey::DescribeCluster).delay(14 * SECOND);
    let own = kafka.broker_connection(1).await.expect("it has its turn");
    let calling = tokio::spawn(async move { own.call(DescribeClusterRequest::default()).await.map(|_| own) });
    while fake.history().count(ApiKey::DescribeCluster) == 0 {
        sleep(Duration::from_millis(10)).await;
    }
    // Who waits for ten seconds is told, and asks anew: at 20 seconds it would find the connection by itself.
    let begun = Instant::now();

    producer.send(Record::new("payments", "tea").partition(0)).await.expect("it has its turn");

    assert!(begun.elapsed() < 15 * SECOND, "it has waited for {:?}", begun.elapsed());
    calling.await.expect("no panic").expect("a cap is no error");
}

/// CB-20: the fetches of a consumer that borrows its connection are short, which is no haste of the broker's.
#[tokio::test(start_paused = true)]
async fn a_consumer_that_borrows_its_connection_hears_of_records_soon() {
    let fake = FakeCluster::builder().nodes(1).topic("orders", 1).start_on_pipes();
    let kafka = client(&fake).max_connections(2).connect().await.expect("it is up");
    let consumer = kafka.consumer_without_group().auto_offset_reset(AutoOffsetReset::Earliest).build().await;
    let consumer = consumer.expect("valid");
    consumer.assign("orders", vec![0]).await.expect("it exists");
    let own = kafka.broker_connection(1).await.expect("there is room for one more");
    own.call(DescribeClusterRequest::default()).await.expect("it is up");
    consumer.poll(10 * SECOND).await.expect("nothing yet");
    assert!(kafka.metrics().connections.coordination_fallbacks > 0, "it borrows");

    for number in 0..20 {
        let begun = Instant::now();
        let polling = consumer.poll(5 * SECOND);
        let appending = async {
            sleep(Duration::from_millis(1_000 + 37 * number)).await;
            fake.append("orders", 0, None, Some(b"tea"));
        };
        let (polled, ()) = tokio::join!(polling, appending);
        let late = begun.elapsed() - Duration::from_millis(1_000 + 37 * number);
        assert_eq!(polled.expect("a record").len(), 1);
        assert!(late < Duration::from_millis(60), "{late:?} after it was written");
    }
}

/// CB-20: a user's own connection is the user's, and where it is the only one that may be, nobody else is asked as long
/// as it is busy. That is no failure of any broker, and no reason to begin again or to look for a coordinator.
#[tokio::test(start_paused = true)]
async fn to_wait_in_vain_for_room_says_nothing_of_the_brokers() {
    for nodes in [1, 3] {
        let fake = FakeCluster::builder().nodes(nodes).topic("orders", 1).start_on_pipes();
        let builder =
            client(&fake).max_connections(1).metadata_max_age(5 * SECOND).metadata_recovery_rebootstrap_trigger(SECOND);
        let kafka = builder.connect().await.expect("it is up");
        let consumer = kafka.consumer("g").build().await.expect("valid");
        consumer.subscribe(&["orders"]).await.expect("subscribed");
        while consumer.assignment().is_empty() {
            consumer.poll(SECOND).await.expect("a cap is no error");
        }
        let found = fake.history().count(ApiKey::FindCoordinator);
        let (own, admin) = (kafka.broker_connection(1).await.expect("it gets its turn"), kafka.admin());
        fake.when(ApiKey::DescribeCluster).delay(25 * SECOND);

        let (call, asked, polled) = tokio::join!(
            own.call(DescribeClusterRequest::default()),
            admin.describe_topics(["unheard-of"]),
            consumer.poll(25 * SECOND)
        );

        call.expect("an answer");
        asked.expect("an answer, when there is room");
        polled.expect("a cap is no error");
        let metadata = kafka.metrics().metadata;
        assert_eq!((metadata.failures, metadata.rebootstraps), (0, 0), "{nodes} nodes");
        consumer.poll(5 * SECOND).await.expect("a cap is no error");
        assert_eq!(
            fake.history().count(ApiKey::FindCoordinator),
            found,
            "{nodes} nodes: the coordinator is where it was"
        );
        assert_eq!(consumer.assignment().len(), 1, "{nodes} nodes");
    }
}

/// CB-20: a join that is taken back again and again for others has its time once, not once for each turn.
#[tokio::test(start_paused = true)]
async fn a_join_that_is_spared_has_its_time_once() {
    let fake = FakeCluster::builder().nodes(2).topic("orders", 1).start_on_pipes();
    fake.move_coordinator("g", 1);
    let kafka = client(&fake).max_connections(1).request_timeout(5 * SECOND).connect().await.expect("it is up");
    let hanging = fake.when(ApiKey::JoinGroup).forever().silence();
    let consumer = kafka.consumer("g").max_poll_interval(5 * SECOND).build().await.expect("valid");
    consumer.subscribe(&["orders"]).await.expect("subscribed");
    let others = tokio::spawn(async move {
        loop {
            let _ = kafka.admin().describe_cluster().await;
            sleep(Duration::from_millis(100)).await;
        }
    });

    consumer.poll(9 * SECOND).await.expect("a cap is no error");
    let (joins, found) = (hanging.hits(), fake.history().count(ApiKey::FindCoordinator));
    consumer.poll(8 * SECOND).await.expect("a cap is no error");
    others.abort();

    assert!(joins > 2, "{joins} joins: it is not spared");
    // A join that had no answer in ten seconds has the coordinator looked for again.
    assert_eq!((found, fake.history().count(ApiKey::FindCoordinator)), (1, 2));
}
