//! CreateTopics. Any node may be asked: it forwards to the controller, which is one and the same here.

use std::collections::{BTreeMap, BTreeSet};

use krafka_protocol::api::create_topics::{CreatableTopic, CreatableTopicConfigs, CreatableTopicResult};
use krafka_protocol::{CreateTopicsRequest, CreateTopicsResponse, ErrorCode, Str};

use super::assignment::{self, Refusal};
use crate::context::{Context, Outcome};
use crate::security::acls::{Operation, ResourceType};
use crate::state::State;
use crate::topic_configs;
use crate::topics::{self, TopicSettings};

/// The most partitions that one request may create, as in Kafka.
const MAX_PARTITIONS: usize = 10_000;

pub(crate) fn handle(state: &mut State, cx: &Context, request: &CreateTopicsRequest) -> Outcome<CreateTopicsResponse> {
    let mut seen = BTreeSet::new();
    let twice: BTreeSet<_> =
        request.topics.iter().map(|topic| &topic.name).filter(|name| !seen.insert(*name)).collect();
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        // A name that comes twice is answered once, and not created.
        if twice.contains(&topic.name) {
            if seen.remove(&topic.name) {
                topics.push(refused(topic, (ErrorCode::INVALID_REQUEST, "Duplicate topic name.".to_owned())));
            }
            continue;
        }
        topics.push(match create(state, cx, topic, request.validate_only) {
            Ok(created) => created,
            Err(refusal) => refused(topic, refusal),
        });
    }
    Outcome::Reply(CreateTopicsResponse { topics, ..CreateTopicsResponse::default() })
}

fn create(
    state: &mut State,
    cx: &Context,
    topic: &CreatableTopic,
    validate_only: bool,
) -> Result<CreatableTopicResult, Refusal> {
    if let Some(code) = cx.topic_error(state, Operation::Create, &topic.name) {
        return Err((code, "Authorization failed.".to_owned()));
    }
    topics::validate_name(&topic.name).map_err(|text| (ErrorCode::INVALID_TOPIC_EXCEPTION, text))?;
    if state.topics.by_name(&topic.name).is_some() {
        return Err((ErrorCode::TOPIC_ALREADY_EXISTS, format!("Topic '{}' already exists.", topic.name)));
    }
    if let Some(other) = state.topics.colliding(&topic.name) {
        let text = format!("Topic '{}' collides with existing topic: {other}", topic.name);
        return Err((ErrorCode::INVALID_TOPIC_EXCEPTION, text));
    }
    let settings = topic_configs::parse(topic.configs.iter().map(|config| (&config.name, config.value.as_ref())))
        .map_err(|text| (ErrorCode::INVALID_CONFIG, text))?;
    let assignments = if topic.assignments.is_empty() { place(state, topic)? } else { manual(state, topic)? };

    let configs = describe(&settings);
    let num_partitions = i32::try_from(assignments.len()).unwrap_or(i32::MAX);
    let replicas = assignments.first().map_or(0, Vec::len);
    // Kafka tells an id even if it only validates; nobody will ever see that one again.
    let topic_id =
        if validate_only { state.ids.uuid() } else { state.add_topic_on(topic.name.clone(), assignments, settings) };
    if !cx.may(state, Operation::DescribeConfigs, ResourceType::Topic, &topic.name) {
        // Who made a topic does not see what it is like without a permission of its own.
        return Ok(CreatableTopicResult {
            name: topic.name.clone(),
            topic_id,
            error_message: None,
            topic_config_error_code: ErrorCode::TOPIC_AUTHORIZATION_FAILED.0,
            num_partitions: -1,
            replication_factor: -1,
            configs: Some(Vec::new()),
            ..CreatableTopicResult::default()
        });
    }
    Ok(CreatableTopicResult {
        name: topic.name.clone(),
        topic_id,
        num_partitions,
        replication_factor: i16::try_from(replicas).unwrap_or(i16::MAX),
        configs: Some(configs),
        error_message: None,
        ..CreatableTopicResult::default()
    })
}

/// Places the replicas of as many partitions as asked for.
fn place(state: &State, topic: &CreatableTopic) -> Result<Vec<Vec<i32>>, Refusal> {
    let replicas = match topic.replication_factor {
        -1 => state.config.replication_factor,
        1.. => topic.replication_factor,
        _ => {
            let text = "Replication factor must be larger than 0, or -1 to use the default value.";
            return Err((ErrorCode::INVALID_REPLICATION_FACTOR, text.to_owned()));
        }
    };
    let partitions = match topic.num_partitions {
        -1 => state.config.default_partitions,
        1.. => topic.num_partitions,
        _ => {
            let text = "Number of partitions was set to an invalid non-positive value.";
            return Err((ErrorCode::INVALID_PARTITIONS, text.to_owned()));
        }
    };
    if usize::try_from(partitions).is_ok_and(|partitions| partitions > MAX_PARTITIONS) {
        let text = format!("Excessively large number of partitions per request: {partitions}");
        return Err((ErrorCode::POLICY_VIOLATION, text));
    }
    assignment::check_replication(state, replicas)?;
    Ok((0..partitions).map(|index| state.place(index, replicas)).collect())
}

/// Takes the replicas as the request gives them.
fn manual(state: &State, topic: &CreatableTopic) -> Result<Vec<Vec<i32>>, Refusal> {
    let refuse = |text: &str| Err((ErrorCode::INVALID_REQUEST, text.to_owned()));
    if topic.replication_factor != -1 {
        return refuse("A manual partition assignment was specified, but replication factor was not set to -1.");
    }
    if topic.num_partitions != -1 {
        return refuse("A manual partition assignment was specified, but numPartitions was not set to -1.");
    }
    let mut assignments = BTreeMap::new();
    let mut replication = None;
    for given in &topic.assignments {
        let index = given.partition_index;
        if assignments.contains_key(&index) {
            let text = format!("Found multiple manual partition assignments for partition {index}");
            return Err((ErrorCode::INVALID_REPLICA_ASSIGNMENT, text));
        }
        assignment::check_manual(state, &given.broker_ids, replication)?;
        replication = Some(given.broker_ids.len());
        assignments.insert(index, given.broker_ids.clone());
    }
    if (0_i32..).zip(assignments.keys()).any(|(expected, &index)| expected != index) {
        let text = "partitions should be a consecutive 0-based integer sequence".to_owned();
        return Err((ErrorCode::INVALID_REPLICA_ASSIGNMENT, text));
    }
    Ok(assignments.into_values().collect())
}

/// The settings of a topic as Kafka shows them.
fn describe(settings: &TopicSettings) -> Vec<CreatableTopicConfigs> {
    let described = topic_configs::describe(settings).into_iter().map(|config| CreatableTopicConfigs {
        name: Str::from_static(config.name),
        value: Some(config.value),
        read_only: false,
        config_source: config.source,
        is_sensitive: false,
    });
    described.collect()
}

fn refused(topic: &CreatableTopic, (code, message): Refusal) -> CreatableTopicResult {
    CreatableTopicResult {
        name: topic.name.clone(),
        error_code: code.0,
        error_message: Some(Str::from(message)),
        num_partitions: -1,
        replication_factor: -1,
        configs: None,
        ..CreatableTopicResult::default()
    }
}
