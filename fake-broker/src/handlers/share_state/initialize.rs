//! InitializeShareGroupState (83): a group's coordinator has a state begun.

use krafka_protocol::api::initialize_share_group_state::{
    InitializeShareGroupStateRequest, InitializeShareGroupStateResponse, InitializeStateResult, PartitionResult,
};

use super::{Refused, admit, exists, failure, fenced_state, key};
use crate::context::{Context, Outcome};
use crate::groups::share::{self, Kept, ShareKey};
use crate::state::State;

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &InitializeShareGroupStateRequest,
) -> Outcome<InitializeShareGroupStateResponse> {
    let mut results = Vec::new();
    for topic in request.topics.iter().filter(|_| !request.group_id.is_empty()) {
        let mut partitions = Vec::new();
        for asked in &topic.partitions {
            let key = key(&request.group_id, topic.topic_id, asked.partition);
            let found = admit(state, cx, &key, "initialize share group state")
                .and_then(|()| exists(state, &key))
                .and_then(|()| begin(state, &key, asked.state_epoch, asked.start_offset));
            let (error_code, error_message) = failure(found);
            partitions.push(PartitionResult { partition: asked.partition, error_code, error_message });
        }
        results.push(InitializeStateResult { topic_id: topic.topic_id, partitions });
    }
    Outcome::Reply(InitializeShareGroupStateResponse { results })
}

fn begin(state: &mut State, key: &ShareKey, state_epoch: i32, start_offset: i64) -> Result<(), Refused> {
    if state.share.persister.get(key).is_some_and(|kept| kept.state_epoch > state_epoch) {
        return Err(fenced_state());
    }
    state.share.persister.insert(key.clone(), Kept::new(state_epoch, start_offset));
    share::forget_partition(state, key);
    Ok(())
}
