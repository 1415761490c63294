//! Producing, with everything that can happen on the way.

mod basics;
mod blocking;
mod faults;
mod idle;
mod lifecycle;

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use krafka::producer::ProducerBuilder;
use krafka::testing::FakeCluster;
use krafka::{DeliveryHandle, Environment, Kafka, Producer, Record};

/// A fake cluster of three nodes with the topic "orders", and a client of it.
struct Stage {
    fake: FakeCluster,
    kafka: Kafka,
}

impl Stage {
    async fn new(partitions: i32) -> Self {
        Self::of(FakeCluster::builder().nodes(3).topic("orders", partitions).start_on_pipes()).await
    }

    async fn of(fake: FakeCluster) -> Self {
        let environment = Environment::new(fake.pipes(), 7);
        let kafka = Kafka::builder(fake.bootstrap()).environment(environment).connect().await.expect("the fake is up");
        Self { fake, kafka }
    }

    fn producer(&self) -> ProducerBuilder {
        self.kafka.producer()
    }

    /// A producer with the defaults.
    async fn build(&self) -> Producer {
        self.producer().build().await.expect("the defaults are valid")
    }

    /// A producer whose records each make a batch.
    async fn build_single(&self) -> Producer {
        self.producer().batch_size(0).build().await.expect("a batch holds one record at least")
    }

    /// The values in a partition, in order.
    fn values(&self, partition: i32) -> Vec<String> {
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        let records = self.fake.partition_records("orders", partition);
        records.iter().map(|record| record.value.as_deref().map_or_else(|| "null".into(), text)).collect()
    }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn now() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

/// Record `n` for partition 0.
fn record(n: usize) -> Record {
    Record::new("orders", format!("{n}")).partition(0)
}

/// `count` records for partition 0, on their way.
async fn enqueue(producer: &Producer, count: usize) -> Vec<DeliveryHandle> {
    let mut handles = Vec::new();
    for n in 0..count {
        handles.push(producer.enqueue(record(n)).await.expect("there is room"));
    }
    handles
}

/// What `enqueue` brought, as the log should have it.
fn numbers(count: usize) -> Vec<String> {
    (0..count).map(|n| n.to_string()).collect()
}

/// The offsets of records that all arrived.
async fn offsets(handles: Vec<DeliveryHandle>) -> Vec<i64> {
    let mut offsets = Vec::new();
    for handle in handles {
        offsets.push(handle.await.expect("acknowledged").offset);
    }
    offsets
}

/// Polls a future at most `polls` times, then drops it.
async fn cut<F: Future>(future: F, polls: usize) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}
