//! DeleteShareGroupState (86): a group's coordinator has a state forgotten.

use krafka_protocol::api::delete_share_group_state::{
    DeleteShareGroupStateRequest, DeleteShareGroupStateResponse, DeleteStateResult, PartitionResult,
};

use super::{admit, exists, failure, key};
use crate::context::{Context, Outcome};
use crate::groups::share;
use crate::state::State;

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &DeleteShareGroupStateRequest,
) -> Outcome<DeleteShareGroupStateResponse> {
    let mut results = Vec::new();
    for topic in request.topics.iter().filter(|_| !request.group_id.is_empty()) {
        let mut partitions = Vec::new();
        for asked in &topic.partitions {
            let key = key(&request.group_id, topic.topic_id, asked.partition);
            let found = admit(state, cx, &key, "delete share group state").and_then(|()| exists(state, &key));
            if found.is_ok() {
                state.share.persister.remove(&key);
                share::forget_partition(state, &key);
            }
            let (error_code, error_message) = failure(found);
            partitions.push(PartitionResult { partition: asked.partition, error_code, error_message });
        }
        results.push(DeleteStateResult { topic_id: topic.topic_id, partitions });
    }
    Outcome::Reply(DeleteShareGroupStateResponse { results })
}
