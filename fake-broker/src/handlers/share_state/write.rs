//! WriteShareGroupState (85): a partition's leader has what changed kept.

use krafka_protocol::api::write_share_group_state::{
    PartitionData, PartitionResult, WriteShareGroupStateRequest, WriteShareGroupStateResponse, WriteStateResult,
};

use super::{Refused, admit, failure, fenced_leader, fenced_state, invalid, key};
use crate::context::{Context, Outcome};
use crate::groups::share::{RecordState, ShareKey, StateBatch};
use crate::state::State;

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &WriteShareGroupStateRequest,
) -> Outcome<WriteShareGroupStateResponse> {
    let mut results = Vec::new();
    for topic in request.topics.iter().filter(|_| !request.group_id.is_empty()) {
        let mut partitions = Vec::new();
        for asked in &topic.partitions {
            let key = key(&request.group_id, topic.topic_id, asked.partition);
            let found = admit(state, cx, &key, "write share group state").and_then(|()| keep(state, &key, asked));
            let (error_code, error_message) = failure(found);
            partitions.push(PartitionResult { partition: asked.partition, error_code, error_message });
        }
        results.push(WriteStateResult { topic_id: topic.topic_id, partitions });
    }
    Outcome::Reply(WriteShareGroupStateResponse { results })
}

fn keep(state: &mut State, key: &ShareKey, asked: &PartitionData) -> Result<(), Refused> {
    let Some(kept) = state.share.persister.get_mut(key) else {
        return Err(invalid("Write operation on uninitialized share partition not allowed."));
    };
    if kept.leader_epoch > asked.leader_epoch {
        return Err(fenced_leader());
    }
    if kept.state_epoch > asked.state_epoch {
        return Err(fenced_state());
    }
    let batches = asked.state_batches.iter().filter_map(|batch| {
        let state = RecordState::from_code(batch.delivery_state)?;
        let (first, last) = (batch.first_offset, batch.last_offset);
        (first >= 0 && first <= last && last < i64::MAX).then_some(StateBatch {
            first,
            last,
            state,
            delivery_count: batch.delivery_count,
        })
    });
    let batches: Vec<StateBatch> = batches.collect();
    kept.leader_epoch = asked.leader_epoch;
    kept.write(asked.start_offset, asked.delivery_complete_count, &batches);
    Ok(())
}
