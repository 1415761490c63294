//! What older Kafkas tell otherwise than the newest: small things, which Java's Admin prints.

use krafka_fake_broker::KafkaVersion;
use krafka_protocol::api::describe_configs::{DescribeConfigsRequest, DescribeConfigsResource};
use krafka_protocol::api::describe_groups::DescribeGroupsRequest;
use krafka_protocol::api::incremental_alter_configs::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
};
use krafka_protocol::api::update_features::{FeatureUpdateKey, UpdateFeaturesRequest};
use krafka_protocol::{ErrorCode, Str};

use crate::target::{Target, run, run_as};
use crate::transactional::{PLAIN_END, PLAIN_PRODUCE, Producer};

const TOPIC: i8 = 2;
const CLIENT_METRICS: i8 = 16;
const SET: i8 = 0;

const UPGRADE: i8 = 1;
const SAFE_DOWNGRADE: i8 = 2;
const UNSAFE_DOWNGRADE: i8 = 3;

/// What is said to the level of a feature, if it is only validated.
async fn said(target: &Target, feature: &str, max_version_level: i16, upgrade_type: i8) -> Result<(), String> {
    let update =
        FeatureUpdateKey { feature: feature.into(), max_version_level, upgrade_type, ..FeatureUpdateKey::default() };
    let request = UpdateFeaturesRequest { feature_updates: vec![update], validate_only: true, timeout_ms: 5_000 };
    let answer = target.connect().await.call(request, 1).await;
    let result = answer.results.first().expect("a result for each");
    match ErrorCode(result.error_code) {
        ErrorCode::NONE => Ok(()),
        _ => Err(result.error_message.as_deref().unwrap_or_default().to_owned()),
    }
}

/// Before Kafka 4 a lower metadata.version was taken where nothing is lost by it.
#[test]
fn older_metadata_is_gone_back_to_where_nothing_is_lost() {
    run(async |target| {
        target.until(KafkaVersion::V3_9, "lower levels of metadata.version").await;
        for level in 1..=20 {
            let refused = |reason: &str| Err(format!("Invalid metadata.version {level}. {reason}"));
            let (safe, unsafe_one) = match level {
                ..4 => {
                    let reason = "Unable to set a metadata.version less than 3.3-IV0";
                    (refused(reason), refused(reason))
                }
                4..17 => {
                    let reason = "Refusing to perform the requested downgrade because it might delete metadata";
                    let unsafe_reason = "Unsafe metadata downgrade is not supported in this version.";
                    (refused(&format!("{reason} information.")), refused(unsafe_reason))
                }
                _ => (Ok(()), Ok(())),
            };
            assert_eq!(said(&target, "metadata.version", level, SAFE_DOWNGRADE).await, safe, "{level}");
            assert_eq!(said(&target, "metadata.version", level, UNSAFE_DOWNGRADE).await, unsafe_one, "{level}");
        }
    });
}

/// Before Kafka 4 it was looked for where it was not kept.
#[test]
fn kraft_version_had_no_level() {
    run(async |target| {
        target.until(KafkaVersion::V3_9, "kraft.version without a level").await;
        let newer = "Invalid update version 1 for feature kraft.version. Can't downgrade to a newer version.";

        assert_eq!(said(&target, "kraft.version", 0, SAFE_DOWNGRADE).await, Ok(()));
        assert_eq!(said(&target, "kraft.version", 1, UPGRADE).await, Ok(()));
        assert_eq!(said(&target, "kraft.version", 1, SAFE_DOWNGRADE).await, Err(newer.to_owned()));
    });
}

/// Configs of groups are something to be allowed since Kafka 4.
#[test]
fn operations_on_a_group_are_told() {
    run(async |target| {
        let group = target.fresh("group");
        let mut wire = target.coordinator(&group).await;
        let request = DescribeGroupsRequest { groups: vec![group], include_authorized_operations: true };

        let told = wire.call(request, 5).await.groups.remove(0);

        // Read, Delete and Describe; DescribeConfigs and AlterConfigs.
        let expected = if target.version().await < KafkaVersion::V4_0 { 0b1_0100_1000 } else { 0b1101_0100_1000 };
        assert_eq!(told.authorized_operations, expected, "{:b}", told.authorized_operations);
    });
}

/// When the last transaction began was forgotten only in the log, before Kafka 4.1.
#[test]
fn producer_that_begins_has_no_transaction() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut producer = Producer::new(&target).await;
        producer.add(&topic.name, &[0]).await;
        producer.send(PLAIN_PRODUCE, &topic, 0, &["v"]).await.expect("appended");
        producer.finish(PLAIN_END, true).await;
        let done = producer.describe().await;

        producer.begin().await;

        let begun = producer.describe().await;
        let expected = if target.version().await < KafkaVersion::V4_1 { done.transaction_start_time_ms } else { -1 };
        assert_eq!((&*begun.transaction_state, begun.transaction_start_time_ms), ("Empty", expected));
    });
}

/// KIP-714: what is set of a subscription was told without its type, before Kafka 4.1.
#[test]
fn configs_of_subscriptions_have_types() {
    run(async |target| {
        let name = target.fresh("metrics");
        let mut wire = target.connect().await;
        let config = |name: &str, value: Option<&str>| AlterableConfig {
            name: name.into(),
            config_operation: if value.is_some() { SET } else { 1 },
            value: value.map(Str::from),
        };
        let alter = async |values: [Option<&str>; 2]| {
            let configs = vec![config("interval.ms", values[0]), config("match", values[1])];
            let resource = AlterConfigsResource { resource_type: CLIENT_METRICS, resource_name: name.clone(), configs };
            let request = IncrementalAlterConfigsRequest { resources: vec![resource], validate_only: false };
            let answer = target.connect().await.call(request, 1).await;
            assert_eq!(answer.responses[0].error_code, 0);
        };
        // Nobody matches, so that no client of another test pushes.
        alter([Some("1000"), Some("client_id=nobody")]).await;
        let told = loop {
            let resource = DescribeConfigsResource {
                resource_type: CLIENT_METRICS,
                resource_name: name.clone(),
                configuration_keys: None,
            };
            let request = DescribeConfigsRequest {
                resources: vec![resource],
                include_synonyms: true,
                include_documentation: false,
            };
            let mut told = wire.call(request, 4).await.results.remove(0).configs;
            told.retain(|config| config.config_source == 7);
            if told.len() == 2 {
                told.sort_by(|a, b| a.name.cmp(&b.name));
                break told;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        };
        alter([None, None]).await;

        let told: Vec<_> =
            told.iter().map(|config| (&*config.name, config.config_type, config.synonyms.len())).collect();
        // A number and a list, each of which is its own synonym.
        let is_typed = target.version().await >= KafkaVersion::V4_1;
        let expected =
            if is_typed { [("interval.ms", 3, 1), ("match", 7, 1)] } else { [("interval.ms", 0, 0), ("match", 0, 0)] };
        assert_eq!(told, expected);
    });
}

/// The first version of DescribeConfigs says of each config whether it is the default. Kafka says so of none.
#[test]
fn no_config_is_told_to_be_the_default() {
    run_as(KafkaVersion::V3_9, async |target| {
        target.until(KafkaVersion::V3_9, "DescribeConfigs 0").await;
        let topic = target.topic(1).await;
        let resource =
            DescribeConfigsResource { resource_type: TOPIC, resource_name: topic.name, ..Default::default() };
        let request = DescribeConfigsRequest { resources: vec![resource], ..DescribeConfigsRequest::default() };

        let told = target.connect().await.call(request, 0).await.results.remove(0).configs;

        assert!(told.iter().any(|config| config.name == "retention.ms"), "{told:?}");
        assert!(told.iter().all(|config| !config.is_default), "{told:?}");
    });
}
