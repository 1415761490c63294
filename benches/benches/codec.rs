//! What it costs to read and write the messages that a busy client sees most.
//!
//! The shapes are those of the table in the performance notes: metadata of 100 topics with 10
//! partitions and 3 replicas each, a fetch of as many partitions, a produce of six full batches.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use krafka_protocol::api::api_versions::ApiVersion;
use krafka_protocol::api::fetch::{FetchableTopicResponse, PartitionData};
use krafka_protocol::api::metadata::{MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic};
use krafka_protocol::api::produce::{PartitionProduceData, TopicProduceData};
use krafka_protocol::frame::{encode_request, encode_response};
use krafka_protocol::{
    ApiKey, ApiVersionsResponse, Bytes, FetchResponse, Message, MetadataResponse, ProduceRequest, Reader, Uuid, Writer,
};

fn metadata() -> MetadataResponse {
    let broker = |node_id| MetadataResponseBroker {
        node_id,
        host: format!("broker-{node_id}.example.org").into(),
        port: 9092,
        ..Default::default()
    };
    let partition = |partition_index| MetadataResponsePartition {
        partition_index,
        leader_id: partition_index % 3,
        leader_epoch: 5,
        replica_nodes: [0, 1, 2].into(),
        isr_nodes: [0, 1, 2].into(),
        ..Default::default()
    };
    let topic = |number: u8| MetadataResponseTopic {
        name: Some(format!("topic-name-{number:04}").into()),
        topic_id: Uuid([number; 16]),
        partitions: (0..10).map(partition).collect(),
        ..Default::default()
    };
    MetadataResponse {
        brokers: (0..3).map(broker).collect(),
        cluster_id: Some("cluster".into()),
        controller_id: 1,
        topics: (0..100).map(topic).collect(),
        ..Default::default()
    }
}

fn fetch() -> FetchResponse {
    let records = Bytes::from(vec![7; 1024]);
    let partition = |partition_index| PartitionData {
        partition_index,
        high_watermark: 100,
        last_stable_offset: 100,
        log_start_offset: 0,
        aborted_transactions: None,
        records: Some(records.clone()),
        ..Default::default()
    };
    let topic = |number: u8| FetchableTopicResponse {
        topic_id: Uuid([number; 16]),
        partitions: (0..10).map(partition).collect(),
        ..Default::default()
    };
    FetchResponse { session_id: 1, responses: (0..100).map(topic).collect(), ..Default::default() }
}

/// A request for some topics with some partitions each, every one with a batch of `len` bytes.
fn produce(topics: usize, partitions: i32, len: usize) -> ProduceRequest {
    let records = Bytes::from(vec![7; len]);
    let partition = |index| PartitionProduceData { index, records: Some(records.clone()) };
    let topic = |number| TopicProduceData {
        name: format!("topic-name-{number:04}").into(),
        partition_data: (0..partitions).map(partition).collect(),
        ..Default::default()
    };
    ProduceRequest { acks: -1, timeout_ms: 30_000, topic_data: (0..topics).map(topic).collect(), ..Default::default() }
}

fn api_versions() -> ApiVersionsResponse {
    let api = |key: &ApiKey| ApiVersion { api_key: key.code(), min_version: 0, max_version: 9 };
    ApiVersionsResponse { api_keys: ApiKey::ALL.iter().map(api).collect(), ..Default::default() }
}

/// The body as it comes in: one piece.
fn body<M: Message>(message: &M, version: i16) -> Bytes {
    let mut out = Writer::new();
    message.encode(&mut out, version).expect("the message fits its version");
    out.into_bytes()
}

fn decode<M: Message>(criterion: &mut Criterion, name: &str, message: &M, version: i16) {
    let body = body(message, version);
    criterion.bench_function(&format!("decode/{name}"), |bencher| {
        bencher.iter(|| M::decode(&mut Reader::new(body.clone()), version).expect("we have written it"));
    });
}

fn codec(criterion: &mut Criterion) {
    let (metadata, fetch, api_versions) = (metadata(), fetch(), api_versions());
    let (large, small) = (produce(1, 6, 128 << 10), produce(100, 10, 1024));

    decode(criterion, "metadata v12, 100 x 10 x 3", &metadata, 12);
    criterion.bench_function("encode/metadata v12, 100 x 10 x 3", |bencher| {
        bencher.iter(|| encode_response(ApiKey::Metadata, black_box(&metadata), 12, 1));
    });

    decode(criterion, "fetch v13, 100 x 10 x 1 KiB", &fetch, 13);
    criterion.bench_function("encode/fetch v13, 100 x 10 x 1 KiB", |bencher| {
        bencher.iter(|| encode_response(ApiKey::Fetch, black_box(&fetch), 13, 1));
    });

    decode(criterion, "produce v11, 6 x 128 KiB", &large, 11);
    criterion.bench_function("encode/produce v11, 6 x 128 KiB", |bencher| {
        bencher.iter(|| encode_request(black_box(&large), 11, 1, Some("bench")));
    });
    criterion.bench_function("encode/produce v11, 100 x 10 x 1 KiB", |bencher| {
        bencher.iter(|| encode_request(black_box(&small), 11, 1, Some("bench")));
    });

    decode(criterion, "api_versions v3", &api_versions, 3);
    criterion.bench_function("encode/api_versions v3", |bencher| {
        bencher.iter(|| encode_response(ApiKey::ApiVersions, black_box(&api_versions), 3, 1));
    });
}

criterion_group!(benches, codec);
criterion_main!(benches);
