//! How a client's epoch becomes one of the past.

use krafka_protocol::records::Batches;
use krafka_protocol::{AnyRequest, AnyResponse, ApiKey, ErrorCode};

/// What fences the client of an API.
pub(crate) enum Fencing {
    /// It knows the leader by its epoch: there is an election, which the same leader wins.
    Leader,
    /// It is fenced with an error, as if another had taken its place.
    Code(ErrorCode),
}

pub(crate) fn fencing(key: ApiKey) -> Option<Fencing> {
    match key {
        ApiKey::Fetch | ApiKey::ListOffsets | ApiKey::OffsetForLeaderEpoch => Some(Fencing::Leader),
        ApiKey::Produce => Some(Fencing::Code(ErrorCode::INVALID_PRODUCER_EPOCH)),
        ApiKey::InitProducerId | ApiKey::AddPartitionsToTxn | ApiKey::AddOffsetsToTxn | ApiKey::EndTxn => {
            Some(Fencing::Code(ErrorCode::PRODUCER_FENCED))
        }
        ApiKey::SyncGroup | ApiKey::Heartbeat | ApiKey::OffsetCommit => {
            Some(Fencing::Code(ErrorCode::ILLEGAL_GENERATION))
        }
        ApiKey::ConsumerGroupHeartbeat => Some(Fencing::Code(ErrorCode::FENCED_MEMBER_EPOCH)),
        _ => None,
    }
}

/// Whether a request tells an epoch that can become one of the past: that of a producer without an id does not.
pub(crate) fn carries_epoch(request: &AnyRequest) -> bool {
    let AnyRequest::Produce(produce) = request else { return fencing(request.key()).is_some() };
    let records = produce.topic_data.iter().flat_map(|topic| &topic.partition_data).filter_map(|it| it.records.clone());
    let mut batches = records.flat_map(Batches::new).flatten();
    batches.any(|batch| batch.header().producer_id >= 0)
}

/// Makes an answer that of a broker to a client that must forget the cluster it knows (KIP-1102).
pub(crate) fn rebootstrap(response: &mut AnyResponse) {
    if let AnyResponse::Metadata(metadata) = response {
        metadata.error_code = ErrorCode::REBOOTSTRAP_REQUIRED.0;
        metadata.brokers.clear();
        metadata.topics.clear();
        metadata.cluster_id = None;
        metadata.controller_id = -1;
    }
}
