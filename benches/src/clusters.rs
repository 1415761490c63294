//! How long a thousand fake clusters take that each start, take a record, give it to a consumer, and stop.
//!
//!     cargo run --release -p krafka-benches --bin krafka-clusters [COUNT]
//!
//! Once in memory and once over TCP, one cluster after the other, at the time of the wall: no clock is paused. The
//! producer does not linger, which by default would be six milliseconds of waiting for each cluster.

#![expect(clippy::disallowed_methods, reason = "what is measured is real time")]

use std::time::{Duration, Instant};

use krafka::consumer::AutoOffsetReset;
use krafka::testing::{Clients, FakeCluster};
use krafka::{Kafka, KafkaBuilder, Record};

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let count = std::env::args().nth(1).map_or(Ok(1_000), |count| count.parse())?;

    let began = Instant::now();
    for _ in 0..count {
        let fake = FakeCluster::builder().topic("orders", 1).start_on_pipes();
        there_and_back(fake.client()).await?;
    }
    report(count, "in memory", began.elapsed());

    let began = Instant::now();
    for _ in 0..count {
        let fake = FakeCluster::builder().topic("orders", 1).start().await?;
        there_and_back(Kafka::builder(fake.bootstrap())).await?;
    }
    report(count, "over TCP", began.elapsed());
    Ok(())
}

/// Produces a record and consumes it.
async fn there_and_back(client: KafkaBuilder) -> Result<(), Failure> {
    let kafka = client.connect().await?;
    let producer = kafka.producer().linger(Duration::ZERO).build().await?;
    producer.send(Record::new("orders", "tea")).await?;

    let consumer = kafka.consumer("kitchen").auto_offset_reset(AutoOffsetReset::Earliest).build().await?;
    consumer.subscribe(&["orders"]).await?;
    assert_eq!(consumer.recv().await?.value.as_deref(), Some(&b"tea"[..]));

    producer.close().await?;
    consumer.close().await?;
    Ok(())
}

fn report(count: u32, how: &str, time: Duration) {
    println!(
        "{count} clusters {how}: {:.2} s, {:.2} ms each",
        time.as_secs_f64(),
        time.as_secs_f64() * 1e3 / f64::from(count)
    );
}
