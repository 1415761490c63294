//! What Kafka checks before it places the replicas of new partitions, in its words.

use std::collections::BTreeSet;

use krafka_protocol::ErrorCode;

use crate::faults::KafkaVersion;
use crate::state::State;

/// Why something was refused, for an administrator to read.
pub(crate) type Refusal = (ErrorCode, String);

/// Checks the replicas that were given for one partition. `replication` is the number that those before it have.
pub(crate) fn check_manual(state: &State, replicas: &[i32], replication: Option<usize>) -> Result<(), Refusal> {
    let refuse = |text: String| Err((ErrorCode::INVALID_REPLICA_ASSIGNMENT, text));
    if replicas.is_empty() {
        return refuse("The manual partition assignment includes an empty replica list.".to_owned());
    }
    let mut seen = BTreeSet::new();
    for &node in replicas {
        if !state.nodes.is_registered(node) {
            return refuse(format!(
                "The manual partition assignment includes broker {node}, but no such broker is registered."
            ));
        }
        if !seen.insert(node) {
            return refuse(format!("The manual partition assignment includes the broker {node} more than once."));
        }
    }
    match replication {
        Some(expected) if expected != replicas.len() => refuse(format!(
            "The manual partition assignment includes a partition with {} replica(s), but this is not consistent with \
             previous partitions, which have {expected} replica(s).",
            replicas.len()
        )),
        _ => Ok(()),
    }
}

/// Checks that there are as many nodes as each partition shall have replicas.
pub(crate) fn check_replication(state: &State, replicas: i16) -> Result<(), Refusal> {
    let nodes = state.nodes.registered_ids().len();
    if usize::try_from(replicas).is_ok_and(|replicas| replicas <= nodes) {
        return Ok(());
    }
    let or = if state.cluster_version() < KafkaVersion::V4_3 {
        ""
    } else {
        " or some brokers have all their log directories cordoned"
    };
    Err((
        ErrorCode::INVALID_REPLICATION_FACTOR,
        format!(
            "Unable to replicate the partition {replicas} time(s): The target replication factor of {replicas} cannot \
             be reached because only {nodes} broker(s) are registered{or}."
        ),
    ))
}
