//! Producing, with everything that can happen on the way.

mod basics;

use std::time::Duration;

use krafka::producer::ProducerBuilder;
use krafka::testing::FakeCluster;
use krafka::{Environment, Kafka};

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

    /// The values in a partition, in order.
    fn values(&self, partition: i32) -> Vec<String> {
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        let records = self.fake.records("orders", partition);
        records.iter().map(|record| record.value.as_deref().map_or_else(|| "null".into(), text)).collect()
    }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
