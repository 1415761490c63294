//! OffsetFetch as older brokers speak it: one group in the message itself (before KIP-709).

use krafka_protocol::api::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestTopic, OffsetFetchResponse, OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions, OffsetFetchResponseTopics,
};

/// The first version in which one request asks for many groups.
const GROUPS_SINCE: i16 = 8;

/// The first version that can ask for stable offsets only (KIP-447).
const STABLE_SINCE: i16 = 7;

/// The question about one group in the layout of a version.
pub(crate) fn question(request: OffsetFetchRequest, version: i16) -> OffsetFetchRequest {
    if version >= GROUPS_SINCE {
        return request;
    }
    let Some(group) = request.groups.into_iter().next() else { return OffsetFetchRequest::default() };
    let topics = group.topics.unwrap_or_default().into_iter();
    let topics =
        topics.map(|topic| OffsetFetchRequestTopic { name: topic.name, partition_indexes: topic.partition_indexes });
    OffsetFetchRequest {
        group_id: group.group_id,
        topics: Some(topics.collect()),
        groups: Vec::new(),
        require_stable: request.require_stable && version >= STABLE_SINCE,
    }
}

/// The answer to that question in the layout of today.
pub(crate) fn answer(response: OffsetFetchResponse, asked: &OffsetFetchRequest, version: i16) -> OffsetFetchResponse {
    if version >= GROUPS_SINCE {
        return response;
    }
    let topics = response.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.into_iter().map(|partition| OffsetFetchResponsePartitions {
            partition_index: partition.partition_index,
            committed_offset: partition.committed_offset,
            committed_leader_epoch: partition.committed_leader_epoch,
            metadata: partition.metadata,
            error_code: partition.error_code,
        });
        OffsetFetchResponseTopics { name: topic.name, partitions: partitions.collect(), ..Default::default() }
    });
    let group = OffsetFetchResponseGroup {
        group_id: asked.group_id.clone(),
        topics: topics.collect(),
        error_code: response.error_code,
    };
    OffsetFetchResponse {
        throttle_time_ms: response.throttle_time_ms,
        groups: vec![group],
        ..OffsetFetchResponse::default()
    }
}
