//! ReadShareGroupState (84): a partition's leader loads a state.

use krafka_protocol::api::read_share_group_state::{
    PartitionResult, ReadShareGroupStateRequest, ReadShareGroupStateResponse, ReadStateResult, StateBatch as ReadBatch,
};

use super::{Refused, admit, failure, fenced_leader, invalid, key};
use crate::context::{Context, Outcome};
use crate::groups::share::{Kept, ShareKey, StateBatch};
use crate::state::State;

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &ReadShareGroupStateRequest,
) -> Outcome<ReadShareGroupStateResponse> {
    let mut results = Vec::new();
    for topic in request.topics.iter().filter(|_| !request.group_id.is_empty()) {
        let mut partitions = Vec::new();
        for asked in &topic.partitions {
            let key = key(&request.group_id, topic.topic_id, asked.partition);
            let found =
                admit(state, cx, &key, "read share group state").and_then(|()| load(state, &key, asked.leader_epoch));
            let (error_code, error_message) = failure(found.as_ref().map(|_| ()).map_err(Clone::clone));
            partitions.push(match found {
                Ok(kept) => PartitionResult {
                    partition: asked.partition,
                    state_epoch: kept.state_epoch,
                    start_offset: kept.start_offset,
                    state_batches: kept.batches.iter().map(read_batch).collect(),
                    ..PartitionResult::default()
                },
                Err(_) => PartitionResult {
                    partition: asked.partition,
                    error_code,
                    error_message,
                    ..PartitionResult::default()
                },
            });
        }
        results.push(ReadStateResult { topic_id: topic.topic_id, partitions });
    }
    Outcome::Reply(ReadShareGroupStateResponse { results })
}

fn load(state: &mut State, key: &ShareKey, leader_epoch: i32) -> Result<Kept, Refused> {
    if leader_epoch < 0 {
        return Err(invalid("The leader epoch cannot be a negative number."));
    }
    let Some(kept) = state.share.persister.get_mut(key) else {
        return Err(invalid("Read operation on uninitialized share partition not allowed."));
    };
    if kept.leader_epoch > leader_epoch {
        return Err(fenced_leader());
    }
    kept.leader_epoch = leader_epoch;
    Ok(kept.clone())
}

fn read_batch(batch: &StateBatch) -> ReadBatch {
    ReadBatch {
        first_offset: batch.first,
        last_offset: batch.last,
        delivery_state: batch.state as i8,
        delivery_count: batch.delivery_count,
    }
}
