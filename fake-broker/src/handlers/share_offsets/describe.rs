//! DescribeShareGroupOffsets (90): where groups read on, and how far behind they are (KIP-1226).
//!
//! A partition that its topic does not have is described, too: as one without state, when it was looked for for long
//! enough. All that was asked for waits for it.

use std::collections::BTreeSet;
use std::time::Duration;

use krafka_protocol::api::describe_share_group_offsets::{
    DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsRequestGroup, DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup, DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
};
use krafka_protocol::{ErrorCode, Str, Uuid};

use crate::context::{Context, Outcome};
use crate::features::SHARE_VERSION;
use crate::groups;
use crate::groups::share::ShareKey;
use crate::security::acls::Operation;
use crate::state::State;
use crate::words::words;

/// How long Kafka looks for the state of a partition that is not there: it asks five times more, after one second and
/// then after twice the time before. It adds up to a fifth by chance, which is left out here.
const SEARCH: Duration = Duration::from_secs(31);

pub(crate) fn handle(
    state: &State,
    cx: &Context,
    request: &DescribeShareGroupOffsetsRequest,
) -> Outcome<DescribeShareGroupOffsetsResponse> {
    let groups = request.groups.iter().map(|asked| group(state, cx, asked)).collect();
    let response = DescribeShareGroupOffsetsResponse { groups, ..DescribeShareGroupOffsetsResponse::default() };
    if has_missing(state, &response) { Outcome::ReplyLate(response, SEARCH) } else { Outcome::Reply(response) }
}

/// Whether there is a partition that its topic does not have. A topic that is not there is not looked for.
fn has_missing(state: &State, response: &DescribeShareGroupOffsetsResponse) -> bool {
    response.groups.iter().flat_map(|group| &group.topics).any(|described| {
        state.topics.by_id(described.topic_id).is_some_and(|topic| {
            described.partitions.iter().any(|it| it.error_code == 0 && topic.partition(it.partition_index).is_none())
        })
    })
}

fn group(
    state: &State,
    cx: &Context,
    asked: &DescribeShareGroupOffsetsRequestGroup,
) -> DescribeShareGroupOffsetsResponseGroup {
    let mut answer = DescribeShareGroupOffsetsResponseGroup {
        group_id: asked.group_id.clone(),
        error_message: None,
        ..DescribeShareGroupOffsetsResponseGroup::default()
    };
    if !state.is_on(SHARE_VERSION) {
        answer.error_code = ErrorCode::UNSUPPORTED_VERSION.0;
        return answer;
    }
    if let Some(code) = cx.group_error(state, Operation::Describe, &asked.group_id) {
        answer.error_code = code.0;
        answer.error_message = Some(Str::from_static(words(code)));
        return answer;
    }
    // Over partitions that cannot be, and over any of a group without a name, Kafka trips: where the topic is there.
    let cannot_be = |partitions: &[i32]| partitions.is_empty() || partitions.iter().any(|&index| index < 0);
    let id_of = |name: &Str| state.topics.by_name(name).map_or(Uuid::ZERO, |found| found.id);
    let mut topics = asked.topics.iter().flatten().filter(|topic| id_of(&topic.topic_name) != Uuid::ZERO);
    if topics.any(|topic| asked.group_id.is_empty() || cannot_be(&topic.partitions)) {
        answer.error_code = ErrorCode::UNKNOWN_SERVER_ERROR.0;
        answer.error_message = Some(Str::from_static(words(ErrorCode::UNKNOWN_SERVER_ERROR)));
        return answer;
    }
    if let Some(code) = groups::not_coordinator(state, cx, &asked.group_id) {
        answer.error_code = code.0;
        answer.error_message = Some(Str::from_static(words(code)));
        return answer;
    }
    answer.topics = match &asked.topics {
        Some(topics) => {
            // Each topic is answered once. Those that are not there come last, each time that they were asked for.
            let (there, nowhere): (Vec<_>, Vec<_>) =
                topics.iter().partition(|topic| id_of(&topic.topic_name) != Uuid::ZERO);
            let mut wanted: Vec<(Str, BTreeSet<i32>)> = Vec::new();
            for topic in there {
                match wanted.iter_mut().find(|(name, _)| *name == topic.topic_name) {
                    Some((_, partitions)) => partitions.extend(&topic.partitions),
                    None => wanted.push((topic.topic_name.clone(), topic.partitions.iter().copied().collect())),
                }
            }
            let wanted = wanted.into_iter().map(|(name, partitions)| (name, partitions.into_iter().collect()));
            let nowhere = nowhere.into_iter().map(|topic| (topic.topic_name.clone(), topic.partitions.clone()));
            let describe = |(name, partitions): (Str, Vec<i32>)| {
                let may = cx.topic_error(state, Operation::Describe, &name);
                let id = id_of(&name);
                describe(state, &asked.group_id, name, id, &partitions, may)
            };
            wanted.chain(nowhere).map(describe).collect()
        }
        None => {
            let kept = state.share.initialized(&asked.group_id).into_iter();
            let named = kept.filter_map(|(id, partitions)| Some((state.topics.name_of(&id)?, id, partitions)));
            let shown = named.filter(|(name, ..)| cx.topic_error(state, Operation::Describe, name).is_none());
            shown.map(|(name, id, kept)| describe(state, &asked.group_id, name, id, &kept, None)).collect()
        }
    };
    answer
}

fn describe(
    state: &State,
    group: &Str,
    name: Str,
    id: Uuid,
    partitions: &[i32],
    denied: Option<ErrorCode>,
) -> DescribeShareGroupOffsetsResponseTopic {
    let partition = |&partition: &i32| {
        let key = ShareKey { group: group.clone(), topic: id, partition };
        let kept = state.share.persister.get(&key).filter(|_| denied.is_none());
        let start_offset = kept.map_or(-1, |kept| kept.start_offset);
        let begun = kept.filter(|kept| kept.start_offset >= 0);
        let end = state.topics.by_id(id).and_then(|topic| topic.partition(partition));
        let end = end.map(|partition| partition.log.high_watermark());
        let lag =
            begun.zip(end).map(|(kept, end)| end - kept.start_offset - i64::from(kept.delivery_complete_count.max(0)));
        DescribeShareGroupOffsetsResponsePartition {
            partition_index: partition,
            start_offset,
            leader_epoch: kept.filter(|_| start_offset >= 0).map_or(0, |kept| kept.leader_epoch),
            lag: lag.unwrap_or(-1),
            error_code: denied.map_or(0, |code| code.0),
            error_message: denied.map(|code| Str::from_static(words(code))),
        }
    };
    let partitions = partitions.iter().map(partition).collect();
    DescribeShareGroupOffsetsResponseTopic { topic_name: name, topic_id: id, partitions }
}
