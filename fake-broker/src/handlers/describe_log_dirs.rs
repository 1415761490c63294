//! DescribeLogDirs: what is in the log directories of the node that is asked.

use std::collections::BTreeMap;

use krafka_protocol::api::describe_log_dirs::{DescribeLogDirsPartition, DescribeLogDirsResult, DescribeLogDirsTopic};
use krafka_protocol::{DescribeLogDirsRequest, DescribeLogDirsResponse, Str};

use crate::configs::statics::LOG_DIRS;
use crate::context::{Context, Outcome};
use crate::log_dirs::{TOTAL_BYTES, USABLE_BYTES};
use crate::security::acls::Operation;
use crate::state::State;

pub(crate) fn handle(
    state: &State,
    cx: &Context,
    request: &DescribeLogDirsRequest,
) -> Outcome<DescribeLogDirsResponse> {
    if let Some(code) = cx.cluster_error(state, Operation::Describe) {
        return Outcome::Reply(DescribeLogDirsResponse { error_code: code.0, ..DescribeLogDirsResponse::default() });
    }
    let asked = |topic: &Str, index: i32| {
        let Some(topics) = &request.topics else { return true };
        topics.iter().any(|asked| asked.topic == *topic && asked.partitions.contains(&index))
    };
    let mut dirs: Vec<BTreeMap<Str, Vec<DescribeLogDirsPartition>>> = vec![BTreeMap::new(); LOG_DIRS.len()];
    for topic in state.topics.iter() {
        for (partition_index, _) in topic.indexed().filter(|(index, _)| asked(&topic.name, *index)) {
            let Some((partition_size, offset_lag)) = state.replica_size(cx.node, topic.id, partition_index) else {
                continue;
            };
            let dir = state.log_dirs.of((cx.node, topic.id, partition_index));
            let described =
                DescribeLogDirsPartition { partition_index, partition_size, offset_lag, is_future_key: false };
            dirs[dir].entry(topic.name.clone()).or_default().push(described);
        }
    }
    let results = LOG_DIRS.into_iter().zip(dirs).map(|(dir, topics)| DescribeLogDirsResult {
        error_code: 0,
        log_dir: Str::from_static(dir),
        topics: topics.into_iter().map(|(name, partitions)| DescribeLogDirsTopic { name, partitions }).collect(),
        total_bytes: TOTAL_BYTES,
        usable_bytes: USABLE_BYTES,
        is_cordoned: false,
    });
    Outcome::Reply(DescribeLogDirsResponse { results: results.collect(), ..DescribeLogDirsResponse::default() })
}
