//! What a request is about, and where its answer tells of it: one table for each direction.
//!
//! Requests name topics by name or by id, single groups or lists; here all of them have the same form.

use krafka_protocol::{AnyRequest, AnyResponse, ErrorCode, Str, Uuid};

use super::verdict::Denial;
use crate::context::Context;
use crate::state::State;

/// The topics with their partitions, and the groups, that a request is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entities {
    pub(crate) topics: Vec<(Str, Vec<i32>)>,
    pub(crate) groups: Vec<Str>,
}

impl Entities {
    /// Reads them out of a request.
    pub(crate) fn of(cx: &Context, request: &AnyRequest, state: &State) -> Self {
        let name_of = |id: &Uuid| state.topics.name_of(id);
        let named = |name: &Str, id: &Uuid| if id.is_zero() { Some(name.clone()) } else { name_of(id) };
        let mut entities = Self::default();
        match request {
            AnyRequest::Produce(r) => {
                let partitions = r.topic_data.iter();
                entities
                    .add(partitions.map(|t| (named(&t.name, &t.topic_id), indexes(&t.partition_data, |p| p.index))));
            }
            AnyRequest::Fetch(r) => {
                let topics = r.topics.iter();
                entities.add(topics.map(|t| (named(&t.topic, &t.topic_id), indexes(&t.partitions, |p| p.partition))));
                // A request within a session is also about what the session remembers.
                if let Some(sessions) = state.sessions.get(&cx.node).filter(|_| r.session_epoch > 0) {
                    let partitions = sessions.partitions(r.session_id);
                    entities.add(partitions.map(|(topic, index)| (Some(topic.clone()), vec![index])));
                }
            }
            AnyRequest::ListOffsets(r) => entities
                .add(r.topics.iter().map(|t| (Some(t.name.clone()), indexes(&t.partitions, |p| p.partition_index)))),
            AnyRequest::OffsetForLeaderEpoch(r) => {
                entities.add(r.topics.iter().map(|t| (Some(t.topic.clone()), indexes(&t.partitions, |p| p.partition))))
            }
            AnyRequest::Metadata(r) => {
                let topics = r.topics.iter().flatten();
                entities.add(topics.map(|t| (t.name.clone().or_else(|| name_of(&t.topic_id)), Vec::new())));
            }
            AnyRequest::OffsetCommit(r) => {
                entities.groups.push(r.group_id.clone());
                let topics = r.topics.iter();
                entities
                    .add(topics.map(|t| (named(&t.name, &t.topic_id), indexes(&t.partitions, |p| p.partition_index))));
            }
            AnyRequest::OffsetFetch(r) => {
                entities.groups.extend(r.groups.iter().map(|g| g.group_id.clone()));
                if r.groups.is_empty() {
                    entities.groups.push(r.group_id.clone());
                }
                let of_one = r.topics.iter().flatten();
                entities.add(of_one.map(|t| (Some(t.name.clone()), t.partition_indexes.clone())));
                let of_each = r.groups.iter().flat_map(|g| g.topics.iter().flatten());
                entities.add(of_each.map(|t| (named(&t.name, &t.topic_id), t.partition_indexes.clone())));
            }
            AnyRequest::CreateTopics(r) => entities.add(r.topics.iter().map(|t| (Some(t.name.clone()), Vec::new()))),
            AnyRequest::CreatePartitions(r) => {
                entities.add(r.topics.iter().map(|t| (Some(t.name.clone()), Vec::new())));
            }
            AnyRequest::DeleteTopics(r) => {
                entities.add(r.topic_names.iter().map(|name| (Some(name.clone()), Vec::new())));
                let by_state = r.topics.iter();
                entities.add(by_state.map(|t| (t.name.clone().or_else(|| name_of(&t.topic_id)), Vec::new())));
            }
            AnyRequest::DeleteRecords(r) => entities
                .add(r.topics.iter().map(|t| (Some(t.name.clone()), indexes(&t.partitions, |p| p.partition_index)))),
            AnyRequest::FindCoordinator(r) if r.key_type == 0 => {
                entities.groups.clone_from(&r.coordinator_keys);
                if r.coordinator_keys.is_empty() {
                    entities.groups.push(r.key.clone());
                }
            }
            AnyRequest::JoinGroup(r) => entities.groups.push(r.group_id.clone()),
            AnyRequest::SyncGroup(r) => entities.groups.push(r.group_id.clone()),
            AnyRequest::Heartbeat(r) => entities.groups.push(r.group_id.clone()),
            AnyRequest::LeaveGroup(r) => entities.groups.push(r.group_id.clone()),
            // The other APIs that have a handler name neither; the protocol knows more than those.
            _ => {}
        }
        entities
    }

    /// Adds topics, but for those that nobody knows.
    pub(crate) fn add(&mut self, topics: impl Iterator<Item = (Option<Str>, Vec<i32>)>) {
        self.topics.extend(topics.filter_map(|(name, partitions)| Some((name?, partitions))));
    }
}

fn indexes<T>(partitions: &[T], index: impl Fn(&T) -> i32) -> Vec<i32> {
    partitions.iter().map(index).collect()
}

/// Writes errors into an answer whose request was carried out. What goes with a success (offsets, members) stays, as
/// clients must not look at it.
pub(crate) fn deny_late(response: &mut AnyResponse, denials: &[Denial], state: &State) {
    let name_of = |id: &Uuid| state.topics.name_of(id);
    let named = |name: &Str, id: &Uuid| if id.is_zero() { Some(name.clone()) } else { name_of(id) };
    let whole = |slot: &mut i16| set(slot, denials.iter().find_map(Denial::request));
    let topic = |slot: &mut i16, name: Option<Str>| {
        set(slot, name.and_then(|name| denials.iter().find_map(|d| d.topic(&name))));
    };
    let partition = |slot: &mut i16, name: &Option<Str>, index: i32| {
        set(slot, name.as_ref().and_then(|name| denials.iter().find_map(|d| d.partition(name, index))));
    };
    let group = |slot: &mut i16, id: &Str| set(slot, denials.iter().find_map(|d| d.group(id)));
    match response {
        AnyResponse::Produce(r) => r.responses.iter_mut().for_each(|t| {
            let name = named(&t.name, &t.topic_id);
            t.partition_responses.iter_mut().for_each(|p| partition(&mut p.error_code, &name, p.index));
        }),
        AnyResponse::Fetch(r) => r.responses.iter_mut().for_each(|t| {
            let name = named(&t.topic, &t.topic_id);
            t.partitions.iter_mut().for_each(|p| partition(&mut p.error_code, &name, p.partition_index));
        }),
        AnyResponse::ListOffsets(r) => r.topics.iter_mut().for_each(|t| {
            let name = Some(t.name.clone());
            t.partitions.iter_mut().for_each(|p| partition(&mut p.error_code, &name, p.partition_index));
        }),
        AnyResponse::OffsetForLeaderEpoch(r) => r.topics.iter_mut().for_each(|t| {
            let name = Some(t.topic.clone());
            t.partitions.iter_mut().for_each(|p| partition(&mut p.error_code, &name, p.partition));
        }),
        AnyResponse::OffsetCommit(r) => r.topics.iter_mut().for_each(|t| {
            let name = named(&t.name, &t.topic_id);
            t.partitions.iter_mut().for_each(|p| partition(&mut p.error_code, &name, p.partition_index));
        }),
        AnyResponse::OffsetFetch(r) => {
            whole(&mut r.error_code);
            r.groups.iter_mut().for_each(|g| group(&mut g.error_code, &g.group_id));
        }
        AnyResponse::Metadata(r) => {
            whole(&mut r.error_code);
            r.topics.iter_mut().for_each(|t| topic(&mut t.error_code, t.name.clone()));
        }
        AnyResponse::CreateTopics(r) => {
            r.topics.iter_mut().for_each(|t| topic(&mut t.error_code, Some(t.name.clone())));
        }
        AnyResponse::CreatePartitions(r) => {
            r.results.iter_mut().for_each(|t| topic(&mut t.error_code, Some(t.name.clone())));
        }
        AnyResponse::DeleteTopics(r) => r.responses.iter_mut().for_each(|t| topic(&mut t.error_code, t.name.clone())),
        AnyResponse::DeleteRecords(r) => r.topics.iter_mut().for_each(|t| {
            let name = Some(t.name.clone());
            t.partitions.iter_mut().for_each(|p| partition(&mut p.error_code, &name, p.partition_index));
        }),
        AnyResponse::FindCoordinator(r) => {
            whole(&mut r.error_code);
            r.coordinators.iter_mut().for_each(|c| group(&mut c.error_code, &c.key));
        }
        AnyResponse::JoinGroup(r) => whole(&mut r.error_code),
        AnyResponse::SyncGroup(r) => whole(&mut r.error_code),
        AnyResponse::Heartbeat(r) => whole(&mut r.error_code),
        AnyResponse::LeaveGroup(r) => whole(&mut r.error_code),
        AnyResponse::InitProducerId(r) => whole(&mut r.error_code),
        AnyResponse::ApiVersions(r) => whole(&mut r.error_code),
        AnyResponse::DescribeCluster(r) => whole(&mut r.error_code),
        AnyResponse::SaslHandshake(r) => whole(&mut r.error_code),
        AnyResponse::SaslAuthenticate(r) => whole(&mut r.error_code),
        AnyResponse::DescribeAcls(r) => whole(&mut r.error_code),
        AnyResponse::CreateAcls(r) => r.results.iter_mut().for_each(|result| whole(&mut result.error_code)),
        AnyResponse::DeleteAcls(r) => r.filter_results.iter_mut().for_each(|result| whole(&mut result.error_code)),
        // Without a handler there is no answer.
        _ => {}
    }
}

fn set(slot: &mut i16, code: Option<ErrorCode>) {
    if let Some(code) = code {
        *slot = code.0;
    }
}
