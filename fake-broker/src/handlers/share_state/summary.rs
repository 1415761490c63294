//! ReadShareGroupStateSummary (87): a group's coordinator asks how far a group has read.

use krafka_protocol::api::read_share_group_state_summary::{
    PartitionResult, ReadShareGroupStateSummaryRequest, ReadShareGroupStateSummaryResponse, ReadStateSummaryResult,
};

use super::{admit, exists, failure, key};
use crate::context::{Context, Outcome};
use crate::groups::share::Kept;
use crate::state::State;

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &ReadShareGroupStateSummaryRequest,
) -> Outcome<ReadShareGroupStateSummaryResponse> {
    let mut results = Vec::new();
    for topic in request.topics.iter().filter(|_| !request.group_id.is_empty()) {
        let mut partitions = Vec::new();
        for asked in &topic.partitions {
            let key = key(&request.group_id, topic.topic_id, asked.partition);
            let found = admit(state, cx, &key, "read share group state summary").and_then(|()| exists(state, &key));
            let unknown = Kept { leader_epoch: 0, ..Kept::new(0, -1) };
            let kept = state.share.persister.get(&key).unwrap_or(&unknown);
            let is_known = found.is_ok();
            let (error_code, error_message) = failure(found);
            partitions.push(PartitionResult {
                partition: asked.partition,
                error_code,
                error_message,
                state_epoch: if is_known { kept.state_epoch } else { 0 },
                leader_epoch: if is_known { kept.leader_epoch } else { 0 },
                start_offset: if is_known { kept.start_offset } else { 0 },
                delivery_complete_count: if is_known { kept.delivery_complete_count } else { -1 },
            });
        }
        results.push(ReadStateSummaryResult { topic_id: topic.topic_id, partitions });
    }
    Outcome::Reply(ReadShareGroupStateSummaryResponse { results })
}
