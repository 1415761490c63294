//! How a consumer behaves, seen from its application and from the brokers.

#![allow(clippy::disallowed_methods, reason = "tests measure the virtual time that calls take")]

mod close;
mod commits;
mod fetch;
mod group;
mod mistakes;
mod poll;
mod positions;
mod racks;

use std::time::Duration;

use krafka::consumer::{AutoOffsetReset, Consumer, ConsumerRecord};
use krafka::testing::{FakeCluster, FakeClusterBuilder};
use krafka::{Environment, Kafka};
use krafka_protocol::api::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use krafka_protocol::compression::{Compression, Compressor};
use krafka_protocol::records::{BatchBuilder, NO_HEADERS};
use krafka_protocol::{Bytes, ErrorCode, Message, ProduceResponse, Reader, Str, frame};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Long enough for whatever is on its way to arrive, in virtual time.
const SOON: Duration = Duration::from_secs(5);

/// A cluster on pipes, and a client of it.
struct World {
    fake: FakeCluster,
    kafka: Kafka,
}

impl World {
    async fn new(topics: &[(&str, i32)]) -> Self {
        let builder = FakeCluster::builder().nodes(3).group_initial_rebalance_delay(Duration::ZERO);
        Self::of(topics.iter().fold(builder, |builder, (name, partitions)| builder.topic(*name, *partitions))).await
    }

    async fn of(builder: FakeClusterBuilder) -> Self {
        // The records are of 1970, and so is the cluster: else its retention would take them away.
        let fake = builder.start_time_ms(1_000).start_on_pipes();
        let kafka = Self::connect(&fake, 1).await;
        Self { fake, kafka }
    }

    async fn connect(fake: &FakeCluster, seed: u64) -> Kafka {
        let environment = Environment::new(fake.pipes(), seed);
        Kafka::builder(fake.bootstrap()).environment(environment).connect().await.expect("the fake is up")
    }

    /// A consumer without a group that reads from the start.
    async fn reader(&self, topic: &str, partitions: &[i32]) -> Consumer {
        let builder = self.kafka.consumer_without_group().auto_offset_reset(AutoOffsetReset::Earliest);
        let consumer = builder.build().await.expect("the settings are valid");
        consumer.assign(topic, partitions.to_vec()).await.expect("the topic exists");
        consumer
    }

    /// Writes records with these values, in one batch, to the partition's leader.
    async fn produce(&self, topic: &str, partition: i32, values: &[&str]) {
        self.produce_with(Compression::None, topic, partition, values).await;
    }

    async fn produce_with(&self, codec: Compression, topic: &str, partition: i32, values: &[&str]) {
        let mut batch = BatchBuilder::new();
        for (index, value) in values.iter().enumerate() {
            let timestamp = 1_000 + index as i64;
            batch.try_append(timestamp, Some(b"key"), Some(value.as_bytes()), NO_HEADERS).expect("it is small");
        }
        let mut batch = batch.seal(&mut Compressor::new(codec, None).expect("a codec of ours")).expect("it compresses");
        self.append(topic, partition, batch.bytes()).await;
    }

    async fn append(&self, topic: &str, partition: i32, records: Bytes) {
        const VERSION: i16 = 11;
        let leader = self.fake.leader(topic, partition).expect("the partition has a leader");
        let (host, port) = self.fake.address(leader).expect("the node is there");
        let mut stream = self.fake.pipes().connect(&host, port).await.expect("the node is up");
        let data = PartitionProduceData { index: partition, records: Some(records) };
        let topic =
            TopicProduceData { name: Str::from(topic.to_owned()), partition_data: vec![data], ..Default::default() };
        let request = ProduceRequest { acks: -1, timeout_ms: 1_000, topic_data: vec![topic], ..Default::default() };
        let frame = frame::encode_request(&request, VERSION, 1, Some("test")).expect("it fits");
        stream.write_all(&frame.to_bytes()).await.expect("the node reads");
        let length = stream.read_i32().await.expect("the node answers");
        let mut body = vec![0; length as usize];
        stream.read_exact(&mut body).await.expect("the whole answer");
        let mut reader = Reader::new(body.into());
        krafka_protocol::decode_response_header(krafka_protocol::ApiKey::Produce, VERSION, &mut reader)
            .expect("a header");
        let answer = ProduceResponse::decode(&mut reader, VERSION).expect("an answer");
        let code = ErrorCode(answer.responses[0].partition_responses[0].error_code);
        assert!(code.is_ok(), "the records were not written: {code}");
    }
}

fn value(record: &ConsumerRecord) -> String {
    String::from_utf8(record.value.as_deref().expect("a value").to_vec()).expect("text")
}

fn values(records: &[ConsumerRecord]) -> Vec<String> {
    records.iter().map(value).collect()
}

/// Polls until that many records have come.
async fn take(consumer: &Consumer, count: usize) -> Vec<ConsumerRecord> {
    let mut records = Vec::new();
    while records.len() < count {
        let more = consumer.poll(SOON).await.expect("records");
        assert!(!more.is_empty(), "only {} of {count} records came: {:?}", records.len(), values(&records));
        records.extend(more);
    }
    records
}

/// Numbers from `first` to `last`, as text.
fn numbers(first: usize, last: usize) -> Vec<String> {
    (first..=last).map(|number| number.to_string()).collect()
}

fn texts(numbers: &[String]) -> Vec<&str> {
    numbers.iter().map(String::as_str).collect()
}
