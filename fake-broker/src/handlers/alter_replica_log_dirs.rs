//! AlterReplicaLogDirs: moves replicas of the node that is asked to another of its log directories.

use std::collections::BTreeMap;

use krafka_protocol::api::alter_replica_log_dirs::{AlterReplicaLogDirPartitionResult, AlterReplicaLogDirTopicResult};
use krafka_protocol::{AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse, ErrorCode, Str};

use crate::configs::statics::LOG_DIRS;
use crate::context::{Context, Outcome};
use crate::security::acls::Operation;
use crate::state::State;

pub(crate) fn handle(
    state: &mut State,
    cx: &Context,
    request: &AlterReplicaLogDirsRequest,
) -> Outcome<AlterReplicaLogDirsResponse> {
    let denied = cx.cluster_error(state, Operation::Alter);
    let mut topics: BTreeMap<Str, BTreeMap<i32, ErrorCode>> = BTreeMap::new();
    for dir in &request.dirs {
        let place = LOG_DIRS.iter().position(|known| dir.path == **known);
        for topic in &dir.topics {
            for &index in &topic.partitions {
                let code = match denied {
                    Some(code) => code,
                    None => move_replica(state, cx.node, &topic.name, index, place),
                };
                topics.entry(topic.name.clone()).or_default().insert(index, code);
            }
        }
    }
    let results = topics.into_iter().map(|(topic_name, partitions)| AlterReplicaLogDirTopicResult {
        topic_name,
        partitions: partitions
            .into_iter()
            .map(|(partition_index, code)| AlterReplicaLogDirPartitionResult { partition_index, error_code: code.0 })
            .collect(),
    });
    Outcome::Reply(AlterReplicaLogDirsResponse { results: results.collect(), ..AlterReplicaLogDirsResponse::default() })
}

fn move_replica(state: &mut State, node: i32, name: &str, index: i32, dir: Option<usize>) -> ErrorCode {
    let Some(dir) = dir else { return ErrorCode::LOG_DIR_NOT_FOUND };
    let Some(topic) = state.topics.by_name(name) else { return ErrorCode::UNKNOWN_TOPIC_OR_PARTITION };
    let Some(partition) = topic.partition(index) else { return ErrorCode::UNKNOWN_TOPIC_OR_PARTITION };
    let (id, is_here) = (topic.id, partition.replicas.contains(&node));
    // The directory is kept in mind for a replica that is not here yet.
    state.log_dirs.set((node, id, index), dir);
    if is_here { ErrorCode::NONE } else { ErrorCode::REPLICA_NOT_AVAILABLE }
}
