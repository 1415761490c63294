//! The messages that a busy client sees most, in the shapes of the table in `benches/README.md`.

use krafka_protocol::api::api_versions::ApiVersion;
use krafka_protocol::api::fetch::{FetchableTopicResponse, PartitionData};
use krafka_protocol::api::metadata::{MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic};
use krafka_protocol::api::offset_commit::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use krafka_protocol::api::produce::{PartitionProduceData, TopicProduceData};
use krafka_protocol::{
    ApiVersionsResponse, Bytes, FetchResponse, Message, MetadataResponse, OffsetCommitRequest, ProduceRequest, Uuid,
    Writer,
};

/// Metadata of 100 topics with 10 partitions each, which have 3 replicas.
pub fn metadata() -> MetadataResponse {
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

/// Records of 100 topics with 10 partitions each, 1 KiB from every one.
pub fn fetch() -> FetchResponse {
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
pub fn produce(topics: usize, partitions: i32, len: usize) -> ProduceRequest {
    let records = Bytes::from(vec![7; len]);
    let partition = |index| PartitionProduceData { index, records: Some(records.clone()) };
    let topic = |number| TopicProduceData {
        name: format!("topic-name-{number:04}").into(),
        partition_data: (0..partitions).map(partition).collect(),
        ..Default::default()
    };
    ProduceRequest { acks: -1, timeout_ms: 30_000, topic_data: (0..topics).map(topic).collect(), ..Default::default() }
}

/// A commit for 100 topics with 10 partitions each.
pub fn offset_commit() -> OffsetCommitRequest {
    let partition = |partition_index| OffsetCommitRequestPartition {
        partition_index,
        committed_offset: 1_000_000 + i64::from(partition_index),
        committed_leader_epoch: 5,
        committed_metadata: Some("".into()),
        ..Default::default()
    };
    let topic = |number| OffsetCommitRequestTopic {
        name: format!("topic-name-{number:04}").into(),
        partitions: (0..10).map(partition).collect(),
        ..Default::default()
    };
    OffsetCommitRequest {
        group_id: "group".into(),
        generation_id_or_member_epoch: 7,
        member_id: "member".into(),
        topics: (0..100).map(topic).collect(),
        ..Default::default()
    }
}

/// What a broker answers to the first request of each connection: 60 APIs, whatever we speak ourselves.
pub fn api_versions() -> ApiVersionsResponse {
    let api = |api_key| ApiVersion { api_key, min_version: 0, max_version: 9 };
    ApiVersionsResponse { api_keys: (0..60).map(api).collect(), ..Default::default() }
}

/// The body as it comes in: one piece.
///
/// # Panics
/// If the message does not fit the version.
pub fn body<M: Message>(message: &M, version: i16) -> Bytes {
    let mut out = Writer::new();
    message.encode(&mut out, version).expect("the message fits its version");
    out.into_bytes()
}
