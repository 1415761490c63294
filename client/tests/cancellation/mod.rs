//! LC-01: each public call is dropped at its first pending poll, at its second, and so on; and each time it is shown
//! that the connections still answer right, and that the same call, made again, does what it says.
//!
//! What a request is on the wire when its caller leaves in the middle of a write is in `client/src/network/tests.rs`.

mod admin;
mod consumer;
mod producer;
mod raw;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use krafka::testing::FakeCluster;
use krafka::{Environment, Kafka, KafkaBuilder};
use tokio::time::sleep;

/// No call has as many pending polls.
const MANY: usize = 200;

/// A future that is given up at a pending poll.
struct Impatient<F> {
    future: Pin<Box<F>>,
    polls: usize,
}

impl<F: Future> Future for Impatient<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(output) = self.future.as_mut().poll(cx) {
            return Poll::Ready(Some(output));
        }
        if self.polls == 0 {
            return Poll::Ready(None);
        }
        self.polls -= 1;
        Poll::Pending
    }
}

/// A cluster whose every answer takes a while, so that calls are given up with requests under way, and a client of it.
struct World {
    fake: FakeCluster,
    kafka: Kafka,
}

fn cluster() -> FakeCluster {
    let fake = FakeCluster::builder().nodes(2).topic("orders", 2).start_on_pipes();
    for number in 0..6 {
        fake.append("orders", number % 2, None, Some(format!("{number}").as_bytes()));
    }
    fake
}

fn client(fake: &FakeCluster) -> KafkaBuilder {
    Kafka::builder(fake.bootstrap()).environment(Environment::new(fake.pipes(), 1))
}

impl World {
    async fn new() -> Self {
        let fake = cluster();
        let kafka = client(&fake).connect().await.expect("it is up");
        Self { fake, kafka }
    }

    /// Each connection gives each request its own answer.
    async fn answers_right(&self) {
        let admin = self.kafka.admin();
        let (cluster, topics) = tokio::join!(admin.describe_cluster(), admin.list_topics());
        assert_eq!(cluster.expect("it is answered").brokers.len(), 2);
        assert!(topics.expect("it is answered").iter().any(|topic| &*topic.name == "orders"));
        let version = krafka_protocol::ApiKey::ApiVersions;
        let hellos = self.fake.history().count(version);
        assert!(hellos < 20, "{hellos} connections were opened: what was dropped is not used");
    }
}

/// Drops `call` at each of its pending polls, each time in a world of its own, in which `prepare` went before, and
/// `check` has the last word; how many pending polls there were.
async fn at_each_poll<T>(
    prepare: impl AsyncFn(&World) -> T,
    call: impl AsyncFn(&T),
    check: impl AsyncFn(&World, &T),
) -> usize {
    for polls in 0..MANY {
        let world = World::new().await;
        let prepared = prepare(&world).await;

        let finished = Impatient { future: Box::pin(call(&prepared)), polls }.await;

        world.answers_right().await;
        check(&world, &prepared).await;
        if finished.is_some() {
            return polls;
        }
    }
    panic!("{MANY} polls were not enough");
}

/// Long enough for whatever was dropped to be done with.
async fn settle() {
    sleep(Duration::from_secs(1)).await;
}

/// Dropping the future closes what was opened.
#[tokio::test(start_paused = true)]
async fn connecting() {
    let mut polls = 0;
    loop {
        let fake = cluster();
        let finished = Impatient { future: Box::pin(client(&fake).connect()), polls }.await;

        let is_finished = finished.is_some();
        drop(finished);
        settle().await;
        let open: usize = fake.nodes().into_iter().map(|node| fake.connections(node)).sum();
        assert_eq!(open, 0, "after {polls} polls");
        let kafka = client(&fake).connect().await.expect("it is up");
        World { fake, kafka }.answers_right().await;
        if is_finished {
            break;
        }
        polls += 1;
    }
    assert!(polls > 0, "it was never dropped in the middle");
}
