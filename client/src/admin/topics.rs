//! Topics: the requests about them, and what their answers say.

use std::sync::Arc;
use std::time::Duration;

use krafka_protocol::api::create_partitions::CreatePartitionsTopic;
use krafka_protocol::api::create_topics::{CreatableTopic, CreatableTopicConfig};
use krafka_protocol::api::delete_topics::DeleteTopicState;
use krafka_protocol::api::metadata::{MetadataRequestTopic, MetadataResponseTopic};
use krafka_protocol::{
    CreatePartitionsRequest, CreatePartitionsResponse, CreateTopicsRequest, CreateTopicsResponse, DeleteTopicsRequest,
    DeleteTopicsResponse, ErrorCode, MetadataRequest, MetadataResponse, Str,
};

use super::route::ItemAnswer;
use crate::error::KrafkaError;
use crate::limits::MAX_STRING;
use crate::types::{PartitionInfo, TopicInfo};

/// DeleteTopics takes names in a list of structs from this version on (KIP-516).
const DELETE_BY_STATE_SINCE: i16 = 6;

/// A topic to be created.
///
/// ```
/// use krafka::NewTopic;
///
/// let topic = NewTopic::new("orders", 12).replication_factor(3).config("cleanup.policy", "compact");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTopic {
    pub(super) name: Str,
    partitions: i32,
    replication_factor: i16,
    configs: Vec<(Str, Str)>,
}

impl NewTopic {
    /// Returns a topic of this name with so many partitions; -1 leaves their number to the broker (`num.partitions`).
    pub fn new(name: impl Into<String>, partitions: i32) -> Self {
        Self { name: Str::from(name.into()), partitions, replication_factor: -1, configs: Vec::new() }
    }

    /// Sets on how many brokers each partition is kept. Default: -1, which leaves it to the broker
    /// (`default.replication.factor`).
    #[must_use]
    pub fn replication_factor(mut self, replicas: i16) -> Self {
        self.replication_factor = replicas;
        self
    }

    /// Sets one of the topic's configs, such as `retention.ms`. The broker's default holds for those that are not set.
    #[must_use]
    pub fn config(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.configs.push((Str::from(name.into()), Str::from(value.into())));
        self
    }

    /// Refuses what no request can carry: it would spoil the request of all topics, and no broker could say which.
    pub(super) fn check(&self) -> Result<(), KrafkaError> {
        let Some((name, value)) = self.configs.iter().find(|(name, value)| name.len().max(value.len()) > MAX_STRING)
        else {
            return Ok(());
        };
        let (topic, given) = (&self.name, name.len().max(value.len()));
        let begin: String = name.chars().take(40).collect();
        let message =
            format!("config '{begin}' of topic '{topic}' has {given} bytes: Kafka takes {MAX_STRING} at most");
        Err(KrafkaError::config(message))
    }
}

pub(super) fn create_request(topics: &[NewTopic], names: &[Str], time: Duration) -> CreateTopicsRequest {
    let topic = |topic: &NewTopic| CreatableTopic {
        name: topic.name.clone(),
        num_partitions: topic.partitions,
        replication_factor: topic.replication_factor,
        configs: topic
            .configs
            .iter()
            .map(|(name, value)| CreatableTopicConfig { name: name.clone(), value: Some(value.clone()) })
            .collect(),
        ..CreatableTopic::default()
    };
    CreateTopicsRequest {
        topics: topics.iter().filter(|topic| names.contains(&topic.name)).map(topic).collect(),
        timeout_ms: millis(time),
        ..CreateTopicsRequest::default()
    }
}

pub(super) fn created(response: CreateTopicsResponse) -> Vec<(Str, ItemAnswer<()>)> {
    response.topics.into_iter().map(|topic| (topic.name, verdict(topic.error_code, topic.error_message))).collect()
}

pub(super) fn delete_request(names: Vec<Str>, version: i16, time: Duration) -> DeleteTopicsRequest {
    let mut request = DeleteTopicsRequest { timeout_ms: millis(time), ..DeleteTopicsRequest::default() };
    if version >= DELETE_BY_STATE_SINCE {
        let state = |name| DeleteTopicState { name: Some(name), ..DeleteTopicState::default() };
        request.topics = names.into_iter().map(state).collect();
    } else {
        request.topic_names = names;
    }
    request
}

pub(super) fn deleted(response: DeleteTopicsResponse) -> Vec<(Str, ItemAnswer<()>)> {
    let result = |topic: krafka_protocol::api::delete_topics::DeletableTopicResult| {
        Some((topic.name?, verdict(topic.error_code, topic.error_message)))
    };
    response.responses.into_iter().filter_map(result).collect()
}

pub(super) fn partitions_request(counts: &[(Str, i32)], names: &[Str], time: Duration) -> CreatePartitionsRequest {
    let topic = |(name, count): &(Str, i32)| CreatePartitionsTopic {
        name: name.clone(),
        count: *count,
        // The broker chooses where the new replicas go.
        assignments: None,
    };
    CreatePartitionsRequest {
        topics: counts.iter().filter(|(name, _)| names.contains(name)).map(topic).collect(),
        timeout_ms: millis(time),
        ..CreatePartitionsRequest::default()
    }
}

pub(super) fn partitions_created(response: CreatePartitionsResponse) -> Vec<(Str, ItemAnswer<()>)> {
    response.results.into_iter().map(|topic| (topic.name, verdict(topic.error_code, topic.error_message))).collect()
}

/// Asks about these topics, or about all of them.
pub(super) fn describe_request(names: Option<Vec<Str>>) -> MetadataRequest {
    let topic = |name| MetadataRequestTopic { name: Some(name), ..MetadataRequestTopic::default() };
    MetadataRequest {
        topics: names.map(|names| names.into_iter().map(topic).collect()),
        // A description must not bring forth what it describes.
        allow_auto_topic_creation: false,
        ..MetadataRequest::default()
    }
}

pub(super) fn described(response: MetadataResponse) -> Vec<(Str, ItemAnswer<TopicInfo>)> {
    let topic = |topic: MetadataResponseTopic| {
        let name = topic.name.clone()?;
        let info = verdict(topic.error_code, None).map(|()| info(&name, topic));
        Some((name, info))
    };
    response.topics.into_iter().filter_map(topic).collect()
}

fn info(name: &Str, topic: MetadataResponseTopic) -> TopicInfo {
    let mut partitions: Vec<_> = topic
        .partitions
        .into_iter()
        .map(|partition| PartitionInfo {
            partition: partition.partition_index,
            leader: Some(partition.leader_id).filter(|id| *id >= 0),
            leader_epoch: Some(partition.leader_epoch).filter(|epoch| *epoch >= 0),
            replicas: partition.replica_nodes.to_vec(),
            isr: partition.isr_nodes.to_vec(),
            offline_replicas: partition.offline_replicas.to_vec(),
        })
        .collect();
    partitions.sort_unstable_by_key(|partition| partition.partition);
    TopicInfo {
        name: (&**name).into(),
        topic_id: (!topic.topic_id.is_zero()).then(|| Arc::from(topic.topic_id.to_string())),
        is_internal: topic.is_internal,
        partitions,
    }
}

fn verdict(code: i16, message: Option<Str>) -> ItemAnswer<()> {
    match ErrorCode(code) {
        code if code.is_ok() => Ok(()),
        code => Err((code, message)),
    }
}

fn millis(time: Duration) -> i32 {
    i32::try_from(time.as_millis()).unwrap_or(i32::MAX)
}
