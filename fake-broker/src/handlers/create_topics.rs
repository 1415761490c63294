//! CreateTopics. Any node may be asked: it forwards to the controller, which is one and the same here.

use std::collections::{BTreeMap, BTreeSet};

use krafka_protocol::api::create_topics::{CreatableTopic, CreatableTopicConfigs, CreatableTopicResult};
use krafka_protocol::{CreateTopicsRequest, CreateTopicsResponse, ErrorCode, Str};

use super::assignment::{self, Refusal};
use super::describe_quorum::METADATA_TOPIC;
use crate::configs::{Overrides, alter, of_topic};
use crate::context::{Context, Outcome};
use crate::quotas;
use crate::security::acls::{Operation, ResourceType};
use crate::state::State;
use crate::topics;
use crate::words::words;

/// The most partitions that one request may create, as in Kafka.
const MAX_PARTITIONS: usize = 10_000;

/// From this version on clients know the error of too many partitions at once (KIP-599).
const STRICT_QUOTA_VERSION: i16 = 6;

pub(crate) fn handle(state: &mut State, cx: &Context, request: &CreateTopicsRequest) -> Outcome<CreateTopicsResponse> {
    let mut seen = BTreeSet::new();
    let twice: BTreeSet<_> =
        request.topics.iter().map(|topic| &topic.name).filter(|name| !seen.insert(*name)).collect();
    let mut topics = Vec::with_capacity(request.topics.len());
    if cx.is_out_of_time(request.timeout_ms) {
        topics.extend(request.topics.iter().map(|topic| CreatableTopicResult {
            name: topic.name.clone(),
            error_code: ErrorCode::REQUEST_TIMED_OUT.0,
            error_message: None,
            ..CreatableTopicResult::default()
        }));
        return Outcome::Reply(CreateTopicsResponse { topics, ..CreateTopicsResponse::default() });
    }
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
        // A rule may refuse it for another reason.
        let is_refused = code == ErrorCode::TOPIC_AUTHORIZATION_FAILED;
        let text = if is_refused { "Authorization failed." } else { words(code) };
        return Err((code, text.to_owned()));
    }
    let (assignments, given) = plan(state, topic)?;

    let configs = describe(state, &given);
    let num_partitions = i32::try_from(assignments.len()).unwrap_or(i32::MAX);
    let replicas = assignments.first().map_or(0, Vec::len);
    quotas::check_mutation(state, cx, assignments.len(), STRICT_QUOTA_VERSION)?;
    // Kafka tells an id even if it only validates; nobody will ever see that one again.
    let topic_id =
        if validate_only { state.ids.uuid() } else { state.add_topic_on(topic.name.clone(), assignments, given) };
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

/// What a topic would be like, if it may be as it is asked for: the replicas of each partition, and its configs.
pub(super) fn plan(state: &State, topic: &CreatableTopic) -> Result<(Vec<Vec<i32>>, Overrides), Refusal> {
    if *topic.name == *METADATA_TOPIC {
        let text = format!("Creation of internal topic {METADATA_TOPIC} is prohibited.");
        return Err((ErrorCode::INVALID_REQUEST, text));
    }
    topics::validate_name(&topic.name).map_err(|text| (ErrorCode::INVALID_TOPIC_EXCEPTION, text))?;
    if state.topics.by_name(&topic.name).is_some() {
        return Err((ErrorCode::TOPIC_ALREADY_EXISTS, format!("Topic '{}' already exists.", topic.name)));
    }
    if let Some(other) = state.topics.colliding(&topic.name) {
        return Err((ErrorCode::INVALID_TOPIC_EXCEPTION, topics::collision(&topic.name, other)));
    }
    let given = configs(state, topic)?;
    let assignments = if topic.assignments.is_empty() { place(state, topic)? } else { manual(state, topic)? };
    Ok((assignments, given))
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
        let text = "Excessively large number of partitions per request.";
        return Err((ErrorCode::POLICY_VIOLATION, text.to_owned()));
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

/// What the request sets for a topic.
fn configs(state: &State, topic: &CreatableTopic) -> Result<Overrides, Refusal> {
    let version = state.cluster_version();
    let mut given = Overrides::new();
    for config in &topic.configs {
        let Some(value) = &config.value else {
            let text = format!("Null value not supported for topic configs: {}", config.name);
            return Err((ErrorCode::INVALID_CONFIG, text));
        };
        let kind = of_topic(&config.name, version).map(|config| config.kind);
        // Of a config that comes twice, the last one counts.
        given.insert(config.name.clone(), alter::normal(kind, value, version));
    }
    let refuse = |refusal: crate::configs::Refusal| (refusal.code, refusal.message.unwrap_or_default());
    state.check_topic_configs(&given).map_err(refuse)?;
    Ok(given)
}

/// The configs of a topic as the controller sees them, which makes it.
fn describe(state: &State, given: &Overrides) -> Vec<CreatableTopicConfigs> {
    let described =
        state.describe_topic_configs(state.nodes.controller(), given).into_iter().map(|entry| CreatableTopicConfigs {
            name: entry.name,
            value: entry.value,
            read_only: entry.is_read_only,
            config_source: entry.source as i8,
            is_sensitive: entry.is_sensitive,
        });
    described.collect()
}

fn refused(topic: &CreatableTopic, (code, message): Refusal) -> CreatableTopicResult {
    CreatableTopicResult {
        name: topic.name.clone(),
        error_code: code.0,
        error_message: (!message.is_empty()).then(|| Str::from(message)),
        num_partitions: -1,
        replication_factor: -1,
        configs: Some(Vec::new()),
        ..CreatableTopicResult::default()
    }
}
