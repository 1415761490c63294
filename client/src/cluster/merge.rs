//! How an answer changes the snapshot: what is newer wins, and what was not asked about stays.
//!
//! Brokers learn of changes at different times, so an answer may be older than what is known already. Within one
//! topic id a leader epoch never goes back (KIP-320); another id under the same name is another topic, and starts
//! afresh.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use krafka_protocol::api::metadata::{MetadataResponsePartition, MetadataResponseTopic};
use krafka_protocol::{ErrorCode, MetadataResponse, Str, Uuid};

use super::snapshot::{Node, PartitionView, Snapshot, TopicView};

/// How many partitions an answer may leave out before the last that it names. Brokers name all of them: a number far
/// beyond is garbled, and what it seems to skip would take memory.
const MAX_LEFT_OUT: usize = 1_000;

/// How many nodes hints may add until metadata come, which tell of all. A broker that invents others in each answer
/// would fill the memory.
const MAX_HINTED: usize = 100;

/// A leader that a broker named in a Produce or Fetch response (KIP-951).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeaderHint {
    pub(crate) topic: Str,
    /// The id of the topic that was asked about, or zero if it has none.
    pub(crate) topic_id: Uuid,
    pub(crate) partition: i32,
    pub(crate) leader: i32,
    pub(crate) leader_epoch: i32,
    /// Where the leader is, if the broker said so.
    pub(crate) node: Option<Node>,
}

/// The snapshot after an answer to a question about `asked`.
///
/// Its version is that of `before`; whoever publishes it counts it up.
pub(crate) fn merge(before: &Snapshot, asked: &[Str], answer: &MetadataResponse) -> Snapshot {
    let mut after = before.clone();
    after.nodes = nodes(answer);
    after.hinted = 0;
    after.controller = Some(answer.controller_id).filter(|id| after.nodes.contains_key(id));
    if answer.cluster_id.is_some() && answer.cluster_id != before.cluster_id {
        if before.cluster_id.is_some() {
            tracing::warn!(before = ?before.cluster_id, now = ?answer.cluster_id, "this is another cluster");
            after.topics.clear();
            after.errors.clear();
            after.past.clear();
        }
        after.cluster_id.clone_from(&answer.cluster_id);
    }
    let answered: BTreeSet<&Str> = answer.topics.iter().filter_map(|topic| topic.name.as_ref()).collect();
    for name in asked {
        if !answered.contains(name) {
            remove(&mut after, name, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
        }
    }
    let asked: BTreeSet<&Str> = asked.iter().collect();
    for topic in &answer.topics {
        // A topic without a name was asked for by an id that the broker does not know.
        let Some(name) = &topic.name else { continue };
        // What is said of topics that nobody ever asked about would only fill the memory.
        let is_known = |name| {
            before.topics.contains_key(name) || before.errors.contains_key(name) || before.past.contains_key(name)
        };
        if !asked.contains(name) && !is_known(name) {
            continue;
        }
        merge_topic(&mut after, name, topic);
    }
    after
}

/// Writes a hint into the snapshot; whether it was news. What nobody else holds of the snapshot is changed in place:
/// after a broker's end there are thousands of hints, each of which would take a copy of the list of topics.
pub(crate) fn apply_hint(snapshot: &mut Arc<Snapshot>, hint: &LeaderHint) -> bool {
    let Some((index, node)) = news(snapshot, hint) else { return false };
    let after = Arc::make_mut(snapshot);
    // Who knows of a newer epoch knows better where its leader is.
    if let Some(node) = node {
        let known = after.nodes.insert(hint.leader, node);
        after.hinted += usize::from(known.is_none());
    }
    let topic = after.topics.get_mut(&hint.topic).expect("the topic was just looked at");
    let partition = &mut Arc::make_mut(topic).partitions[index];
    (partition.leader, partition.leader_epoch) = (Some(hint.leader), hint.leader_epoch);
    true
}

/// If a hint is news: the partition's index, and the leader's node where it is not known, or elsewhere by now.
fn news(before: &Snapshot, hint: &LeaderHint) -> Option<(usize, Option<Arc<Node>>)> {
    let topic = before.topic(&hint.topic)?;
    let index = usize::try_from(hint.partition).ok()?;
    let known = topic.partitions.get(index)?;
    let known_node = before.node(hint.leader);
    let node = hint.node.as_ref().or_else(|| known_node.map(|node| &**node))?;
    // A late answer may be about a topic that had the same name before.
    let is_other = topic.id != hint.topic_id && !topic.id.is_zero() && !hint.topic_id.is_zero();
    let is_one_too_many = known_node.is_none() && before.hinted >= MAX_HINTED;
    if is_other || is_one_too_many || hint.leader_epoch <= known.leader_epoch {
        return None;
    }
    let is_new = known_node.is_none_or(|known| **known != *node);
    Some((index, is_new.then(|| Arc::new(node.clone()))))
}

/// The brokers that an answer names and that can be connected to.
pub(crate) fn nodes(answer: &MetadataResponse) -> BTreeMap<i32, Arc<Node>> {
    let node = |broker: &krafka_protocol::api::metadata::MetadataResponseBroker| {
        // A port that does not fit cannot be connected to: its broker is as good as absent.
        let port = u16::try_from(broker.port).ok()?;
        let node = Node { id: broker.node_id, host: broker.host.clone(), port, rack: broker.rack.clone() };
        (node.id >= 0).then(|| (node.id, Arc::new(node)))
    };
    answer.brokers.iter().filter_map(node).collect()
}

fn merge_topic(after: &mut Snapshot, name: &Str, topic: &MetadataResponseTopic) {
    let code = ErrorCode(topic.error_code);
    if !code.is_ok() {
        // While a topic is being created or elected, what is known of it stays true.
        match code {
            ErrorCode::LEADER_NOT_AVAILABLE => drop(after.errors.insert(name.clone(), code)),
            _ => remove(after, name, code),
        }
        return;
    }
    let known = after
        .topics
        .get(name)
        .or_else(|| after.past.get(name))
        .filter(|known| known.id == topic.topic_id || known.id.is_zero() || topic.topic_id.is_zero());
    let partitions = merge_partitions(known.map_or(&[], |known| &known.partitions), &topic.partitions, &after.nodes);
    if partitions.is_empty() {
        // A topic without partitions is one in the middle of its creation: a partitioner could not use it.
        after.errors.insert(name.clone(), ErrorCode::LEADER_NOT_AVAILABLE);
        return;
    }
    let id = if topic.topic_id.is_zero() { known.map_or(topic.topic_id, |known| known.id) } else { topic.topic_id };
    let view = TopicView { name: name.clone(), id, is_internal: topic.is_internal, partitions };
    let is_news = after.topics.get(name).is_none_or(|known| **known != view);
    after.errors.remove(name);
    after.past.remove(name);
    if is_news {
        after.topics.insert(name.clone(), Arc::new(view));
    }
}

/// A broker does not know the topic, or does not show it. It may just have started, and know it in a moment.
fn remove(after: &mut Snapshot, name: &Str, why: ErrorCode) {
    if let Some(view) = after.topics.remove(name) {
        after.past.insert(name.clone(), view);
    }
    after.errors.insert(name.clone(), why);
}

fn merge_partitions(
    known: &[PartitionView],
    answered: &[MetadataResponsePartition],
    nodes: &BTreeMap<i32, Arc<Node>>,
) -> Vec<PartitionView> {
    // Partitions are never taken away from a topic: one that an answer leaves out is still there.
    let mut merged = known.to_vec();
    let most = known.len() + answered.len() + MAX_LEFT_OUT;
    for partition in answered {
        let Ok(index) = usize::try_from(partition.partition_index) else { continue };
        if index >= most {
            continue;
        }
        if index >= merged.len() {
            merged.resize(index + 1, PartitionView::leaderless());
        }
        let view = &mut merged[index];
        if partition.leader_epoch >= 0 && partition.leader_epoch < view.leader_epoch {
            // This broker lags behind the one that told us the present leader.
            continue;
        }
        *view = PartitionView {
            leader: Some(partition.leader_id).filter(|id| nodes.contains_key(id)),
            // Without a leader a broker may say -1, which is no epoch and must not let older answers in again.
            leader_epoch: partition.leader_epoch.max(view.leader_epoch),
            replicas: partition.replica_nodes.clone(),
            isr: partition.isr_nodes.clone(),
            offline: partition.offline_replicas.clone(),
        };
    }
    merged
}

#[cfg(test)]
mod tests;
