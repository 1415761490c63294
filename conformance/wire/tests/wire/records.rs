//! Batches, and the requests that carry them, for the tests that produce and fetch.

use krafka_protocol::api::fetch::{FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData};
use krafka_protocol::api::produce::{PartitionProduceData, PartitionProduceResponse, ProduceRequest, TopicProduceData};
use krafka_protocol::compression::{Compression, Compressor};
use krafka_protocol::records::{BatchBuilder, Batches};
use krafka_protocol::{Bytes, ErrorCode, Uuid};

use crate::target::{Topic, Wire};

/// A time in the past, but not so far that retention takes it.
pub(crate) fn time() -> i64 {
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().expect("after 1970");
    i64::try_from(now.as_millis()).expect("before the year 292278994") - 60_000
}

/// A batch with these values, a millisecond apart from `timestamp` on.
pub(crate) fn batch_at(timestamp: i64, values: &[&str]) -> Bytes {
    compressed(Compression::None, timestamp, values)
}

/// A batch with these values.
pub(crate) fn batch(values: &[&str]) -> Bytes {
    batch_at(time(), values)
}

/// A compressed batch.
pub(crate) fn compressed(codec: Compression, timestamp: i64, values: &[&str]) -> Bytes {
    let mut builder = BatchBuilder::new();
    for (index, value) in (0..).zip(values) {
        builder.try_append::<&str, &str>(timestamp + index, None, Some(value.as_bytes()), &[]).expect("there is room");
    }
    let mut compressor = Compressor::new(codec, None).expect("a codec");
    builder.seal(&mut compressor).expect("a batch").bytes()
}

/// A produce request for partition 0 of a topic, by name and by id.
pub(crate) fn produce_request(topic: &Topic, acks: i16, records: Option<Bytes>) -> ProduceRequest {
    let partition_data = vec![PartitionProduceData { index: 0, records }];
    let topic = TopicProduceData { name: topic.name.clone(), topic_id: topic.id, partition_data };
    ProduceRequest { acks, timeout_ms: 5_000, topic_data: vec![topic], ..ProduceRequest::default() }
}

/// What a broker says to one batch for partition 0.
pub(crate) async fn produce(wire: &mut Wire, topic: &Topic, records: Bytes) -> PartitionProduceResponse {
    let request = produce_request(topic, -1, Some(records));
    wire.call(request, 9).await.responses.remove(0).partition_responses.remove(0)
}

/// The same, for one that is accepted: its offset.
pub(crate) async fn written(wire: &mut Wire, topic: &Topic, records: Bytes) -> i64 {
    let response = produce(wire, topic, records).await;
    assert_eq!(ErrorCode(response.error_code).name(), "NONE");
    response.base_offset
}

/// A fetch of partition 0 from an offset on, that waits for nothing.
pub(crate) fn fetch_request(topic: &Topic, offset: i64) -> FetchRequest {
    let partition = FetchPartition { fetch_offset: offset, partition_max_bytes: 1 << 20, ..FetchPartition::default() };
    let topic = FetchTopic { topic: topic.name.clone(), topic_id: topic.id, partitions: vec![partition] };
    FetchRequest { max_wait_ms: 0, min_bytes: 1, topics: vec![topic], ..FetchRequest::default() }
}

/// The one partition of an answer.
pub(crate) fn only(mut response: FetchResponse) -> PartitionData {
    assert_eq!(ErrorCode(response.error_code).name(), "NONE");
    response.responses.remove(0).partitions.remove(0)
}

/// What a broker answers to a fetch of partition 0, by id.
pub(crate) async fn fetch(wire: &mut Wire, topic: &Topic, offset: i64) -> PartitionData {
    only(wire.call(fetch_request(topic, offset), 17).await)
}

/// The base offsets of the whole batches of an answer.
pub(crate) fn base_offsets(data: &PartitionData) -> Vec<i64> {
    let batches = Batches::new(data.records.clone().unwrap_or_default());
    batches.map(|batch| batch.expect("a batch").header().base_offset).collect()
}

/// The name of a partition's error.
pub(crate) fn error(code: i16) -> &'static str {
    ErrorCode(code).name()
}

/// A topic that is not there.
pub(crate) fn nowhere(name: &str) -> Topic {
    Topic { name: name.into(), id: Uuid([7; 16]) }
}
