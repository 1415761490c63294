//! ElectLeaders: lets the preferred replica lead again, or, where nobody leads, one that is not in sync.

use krafka_protocol::api::elect_leaders::{PartitionResult, ReplicaElectionResult};
use krafka_protocol::{ElectLeadersRequest, ElectLeadersResponse, ErrorCode, Str};

use crate::context::{Context, Outcome};
use crate::security::acls::Operation;
use crate::state::State;
use crate::words::words;

const PREFERRED: i8 = 0;
const UNCLEAN: i8 = 1;

pub(crate) fn handle(state: &mut State, cx: &Context, request: &ElectLeadersRequest) -> Outcome<ElectLeadersResponse> {
    let asked: Vec<(Str, Vec<i32>)> = match &request.topic_partitions {
        Some(topics) => topics.iter().map(|topic| (topic.topic.clone(), topic.partitions.clone())).collect(),
        None => {
            let all = state.topics.iter();
            all.map(|topic| (topic.name.clone(), topic.indexed().map(|(index, _)| index).collect())).collect()
        }
    };
    // Who asks for all partitions is refused without a word on any of them.
    let refused = |code: ErrorCode, text: Option<&str>| {
        let named = if request.topic_partitions.is_some() { &asked[..] } else { &[] };
        Outcome::Reply(failed(cx, code, named, text))
    };
    if let Some(code) = cx.cluster_error(state, Operation::Alter) {
        return refused(code, Some(words(code)));
    }
    // Nothing is to be done in no time.
    let is_nothing = request.topic_partitions.as_ref().is_some_and(Vec::is_empty);
    if cx.is_out_of_time(request.timeout_ms) && !is_nothing {
        return refused(ErrorCode::REQUEST_TIMED_OUT, None);
    }
    let kind = if cx.version == 0 { PREFERRED } else { request.election_type };
    if kind != PREFERRED && kind != UNCLEAN {
        let text = format!("Unknown election type {kind}");
        return refused(ErrorCode::INVALID_REQUEST, Some(&text));
    }
    let mut results = Vec::with_capacity(asked.len());
    for (topic, partitions) in asked {
        let mut partition_result = Vec::with_capacity(partitions.len());
        for partition_id in partitions {
            let (code, message) = match elect(state, cx, &topic, partition_id, kind) {
                Ok(()) => (ErrorCode::NONE, None),
                // Who asks for all partitions hears of those alone that an election was needed for.
                Err((ErrorCode::ELECTION_NOT_NEEDED, _)) if request.topic_partitions.is_none() => continue,
                Err((code, message)) => (code, Some(Str::from(message))),
            };
            partition_result.push(PartitionResult { partition_id, error_code: code.0, error_message: message });
        }
        results.push(ReplicaElectionResult { topic, partition_result });
    }
    Outcome::Reply(ElectLeadersResponse { replica_election_results: results, ..ElectLeadersResponse::default() })
}

fn elect(state: &mut State, cx: &Context, topic: &str, index: i32, kind: i8) -> Result<(), (ErrorCode, String)> {
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    let found = state.topics.by_name(topic).ok_or_else(|| (unknown, format!("No such topic as {topic}")))?;
    let partition = found.partition(index).ok_or_else(|| (unknown, format!("No such partition as {topic}-{index}")))?;
    let preferred = partition.replicas.first().copied();
    if (kind == PREFERRED && partition.leader == preferred) || (kind == UNCLEAN && partition.leader.is_some()) {
        let text = "Leader election not needed for topic partition.";
        return Err((ErrorCode::ELECTION_NOT_NEEDED, text.to_owned()));
    }
    let is_up = |node| state.nodes.is_up(node);
    let successor = if kind == PREFERRED {
        preferred.filter(|&node| is_up(node) && partition.may_lead(node))
    } else {
        partition.successor(is_up, true)
    };
    let Some(successor) = successor else {
        let code = if kind == PREFERRED {
            ErrorCode::PREFERRED_LEADER_NOT_AVAILABLE
        } else {
            ErrorCode::ELIGIBLE_LEADERS_NOT_AVAILABLE
        };
        return Err((code, words(code).to_owned()));
    };
    state.move_leader(topic, index, successor, cx.now);
    Ok(())
}

fn failed(cx: &Context, code: ErrorCode, asked: &[(Str, Vec<i32>)], text: Option<&str>) -> ElectLeadersResponse {
    let results = asked.iter().map(|(topic, partitions)| ReplicaElectionResult {
        topic: topic.clone(),
        partition_result: partitions
            .iter()
            .map(|&partition_id| PartitionResult {
                partition_id,
                error_code: code.0,
                error_message: text.map(Str::from),
            })
            .collect(),
    });
    let replica_election_results = results.collect();
    // The oldest version has no error of its own.
    let error_code = if cx.version == 0 { 0 } else { code.0 };
    ElectLeadersResponse { error_code, replica_election_results, ..ElectLeadersResponse::default() }
}
