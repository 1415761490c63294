//! ListPartitionReassignments: the partitions that are on their way to other replicas.

use krafka_protocol::api::list_partition_reassignments::{OngoingPartitionReassignment, OngoingTopicReassignment};
use krafka_protocol::{ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse, Str};

use crate::context::{Context, Outcome};
use crate::security::acls::Operation;
use crate::state::State;
use crate::topics::Topic;
use crate::words::words;

pub(crate) fn handle(
    state: &State,
    cx: &Context,
    request: &ListPartitionReassignmentsRequest,
) -> Outcome<ListPartitionReassignmentsResponse> {
    let mut response =
        ListPartitionReassignmentsResponse { error_message: None, ..ListPartitionReassignmentsResponse::default() };
    if let Some(code) = cx.cluster_error(state, Operation::Describe) {
        response.error_code = code.0;
        response.error_message = Some(Str::from(words(code)));
        return Outcome::Reply(response);
    }
    let asked: Vec<(&Topic, Option<&[i32]>)> = match &request.topics {
        None => state.topics.iter().map(|topic| (topic, None)).collect(),
        Some(topics) => topics
            .iter()
            .filter_map(|topic| Some((state.topics.by_name(&topic.name)?, Some(&topic.partition_indexes[..]))))
            .collect(),
    };
    for (topic, indexes) in asked {
        let wanted = |index: &i32| indexes.is_none_or(|indexes| indexes.contains(index));
        let partitions: Vec<_> = topic
            .indexed()
            .filter(|(index, _)| wanted(index))
            .filter_map(|(partition_index, partition)| {
                let ongoing = state.reassignments.find(topic.id, partition_index)?;
                Some(OngoingPartitionReassignment {
                    partition_index,
                    replicas: partition.replicas.clone(),
                    adding_replicas: ongoing.adding(),
                    removing_replicas: ongoing.removing(),
                })
            })
            .collect();
        // A topic of which nothing moves is not told.
        if !partitions.is_empty() {
            response.topics.push(OngoingTopicReassignment { name: topic.name.clone(), partitions });
        }
    }
    Outcome::Reply(response)
}
