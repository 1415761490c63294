//! Configs on the wire: what is told of them, how they are changed, and what is refused.

use std::time::Duration;

use krafka_fake_broker::KafkaVersion;
use krafka_protocol::Str;
use krafka_protocol::api::alter_configs::{self, AlterConfigsRequest};
use krafka_protocol::api::describe_configs::{
    DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResourceResult, DescribeConfigsResult,
};
use krafka_protocol::api::incremental_alter_configs::{
    AlterConfigsResource, AlterConfigsResourceResponse, AlterableConfig, IncrementalAlterConfigsRequest,
};
use krafka_protocol::api::list_config_resources::ListConfigResourcesRequest;
use krafka_protocol::api::metadata::MetadataRequest;

use crate::records::error;
use crate::target::{PATIENCE, Wire, fresh, run};

pub(crate) const TOPIC: i8 = 2;
pub(crate) const BROKER: i8 = 4;
const LOGGER: i8 = 8;
const CLIENT_METRICS: i8 = 16;
const GROUP: i8 = 32;

pub(crate) const SET: i8 = 0;
pub(crate) const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

pub(crate) async fn describe(wire: &mut Wire, resource_type: i8, name: &str) -> DescribeConfigsResult {
    let resource = DescribeConfigsResource { resource_type, resource_name: name.into(), configuration_keys: None };
    let request =
        DescribeConfigsRequest { resources: vec![resource], include_synonyms: true, include_documentation: true };
    wire.call(request, 4).await.results.remove(0)
}

/// One config of something.
pub(crate) async fn config(wire: &mut Wire, resource_type: i8, name: &str, key: &str) -> DescribeConfigsResourceResult {
    let mut told = describe(wire, resource_type, name).await;
    assert_eq!(error(told.error_code), "NONE", "{:?}", told.error_message);
    let index = told.configs.iter().position(|config| config.name == key).expect("a config");
    told.configs.remove(index)
}

/// The value of a config, and the code of where it comes from.
async fn value(wire: &mut Wire, resource_type: i8, name: &str, key: &str) -> (Option<Str>, i8) {
    let config = config(wire, resource_type, name, key).await;
    (config.value, config.config_source)
}

pub(crate) fn change(name: &str, config_operation: i8, value: Option<&str>) -> AlterableConfig {
    AlterableConfig { name: name.into(), config_operation, value: value.map(Str::from) }
}

async fn alter(
    wire: &mut Wire,
    resource_type: i8,
    name: &str,
    configs: Vec<AlterableConfig>,
) -> AlterConfigsResourceResponse {
    let resources = vec![AlterConfigsResource { resource_type, resource_name: name.into(), configs }];
    let request = IncrementalAlterConfigsRequest { resources, validate_only: false };
    let answer = wire.call(request, 1).await.responses.remove(0);
    if answer.error_code == 0 {
        catch_up(wire).await;
    }
    answer
}

/// Waits until the broker that is asked has heard of all changes so far, which the controller makes. Brokers hear of
/// them in their order, but tell of a change a moment before they act on it: hence a second change, which is made when
/// the first is told, so that what lies before that one is done. It takes back the first.
async fn catch_up(wire: &mut Wire) {
    let mark = fresh("mark");
    for operation in [SET, DELETE] {
        let value = (operation == SET).then_some("1000");
        let configs = vec![change("interval.ms", operation, value)];
        let resources =
            vec![AlterConfigsResource { resource_type: CLIENT_METRICS, resource_name: mark.clone(), configs }];
        let request = IncrementalAlterConfigsRequest { resources, validate_only: false };
        assert_eq!(error(wire.call(request, 1).await.responses[0].error_code), "NONE");
        let heard = async {
            loop {
                let told = describe(wire, CLIENT_METRICS, &mark).await.configs;
                let found = told.iter().any(|config| config.value.as_deref() == Some("1000"));
                if found == (operation == SET) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, heard).await.expect("the broker hears of the change");
    }
}

/// The error of a change, with Kafka's words for it.
pub(crate) async fn refusal(
    wire: &mut Wire,
    resource_type: i8,
    name: &str,
    changes: Vec<AlterableConfig>,
) -> (&'static str, String) {
    let answer = alter(wire, resource_type, name, changes).await;
    (error(answer.error_code), answer.error_message.map(String::from).unwrap_or_default())
}

/// The id of the node that a connection leads to, and of no node at all.
pub(crate) async fn node_of(wire: &mut Wire) -> String {
    let brokers = wire.call(MetadataRequest::default(), 12).await.brokers;
    let lowest = brokers.iter().map(|broker| broker.node_id).min().expect("a node");
    lowest.to_string()
}

/// FI-11e.
#[test]
fn topic_configs_are_told_with_sources_and_synonyms() {
    run(async |target| {
        let topic = target.topic_with(1, &[("retention.bytes", "5000")]).await;
        let mut wire = target.connect().await;

        let told = describe(&mut wire, TOPIC, &topic.name).await;
        assert_eq!((error(told.error_code), told.error_message.as_deref()), ("NONE", Some("")));
        assert!(told.configs.len() >= 33, "{}", told.configs.len());

        let given = config(&mut wire, TOPIC, &topic.name, "retention.bytes").await;
        assert_eq!((given.value.as_deref(), given.config_source, given.config_type), (Some("5000"), 1, 5));
        let synonyms: Vec<_> = given.synonyms.iter().map(|s| (&*s.name, s.value.as_deref(), s.source)).collect();
        assert_eq!(synonyms, [("retention.bytes", Some("5000"), 1), ("log.retention.bytes", Some("-1"), 5)]);
        assert!(given.documentation.is_some_and(|text| !text.is_empty()));

        let default = config(&mut wire, TOPIC, &topic.name, "retention.ms").await;
        assert_eq!((default.value.as_deref(), default.config_source), (Some("604800000"), 5));
        assert_eq!(default.synonyms, []);

        // Any number is a size to Kafka: what is below 0 is no limit.
        let unlimited = target.topic_with(1, &[("retention.bytes", "-2")]).await;
        let given = config(&mut wire, TOPIC, &unlimited.name, "retention.bytes").await;
        assert_eq!((given.value.as_deref(), given.config_source), (Some("-2"), 1));
    });
}

#[test]
fn only_the_keys_asked_for_are_told() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        let keys = ["retention.ms", "no.such.key"].map(Str::from).to_vec();
        let resource =
            DescribeConfigsResource { resource_type: TOPIC, resource_name: topic.name, configuration_keys: Some(keys) };
        for version in 1..=4 {
            let resources = vec![resource.clone()];
            let request = DescribeConfigsRequest { resources, ..DescribeConfigsRequest::default() };
            let told = wire.call(request, version).await.results.remove(0);

            let names: Vec<_> = told.configs.iter().map(|config| &*config.name).collect();
            assert_eq!(names, ["retention.ms"]);
            assert_eq!(told.configs[0].synonyms, []);
            // Before version 3 there is no room for it.
            assert_eq!(told.configs[0].documentation.as_deref(), if version < 3 { Some("") } else { None });
        }
    });
}

#[test]
fn what_is_not_there_is_not_described() {
    run(async |target| {
        let mut wire = target.connect().await;
        let nowhere = target.fresh("nowhere");
        let cases = [
            (TOPIC, &*nowhere, "UNKNOWN_TOPIC_OR_PARTITION", ""),
            (TOPIC, "", "INVALID_TOPIC_EXCEPTION", "Topic name is invalid: the empty string is not allowed"),
            (BROKER, "x", "INVALID_REQUEST", "Broker id must be an integer, but it is: x"),
            (LOGGER, "", "INVALID_REQUEST", "Broker id must not be empty"),
            (CLIENT_METRICS, "", "INVALID_REQUEST", "Client metrics subscription name must not be empty"),
        ];
        for (resource, name, expected, message) in cases {
            let told = describe(&mut wire, resource, name).await;
            assert_eq!((error(told.error_code), told.error_message.as_deref()), (expected, Some(message)));
            assert_eq!(told.configs, []);
        }
        assert_eq!(error(describe(&mut wire, 3, "x").await.error_code), "INVALID_REQUEST");
    });
}

/// AD-15, for topics.
#[test]
fn topic_configs_are_set_and_deleted_and_lists_changed_in_part() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        let name = &*topic.name;
        let mut apply = async |key: &str, operation, given: Option<&str>| {
            let answer = alter(&mut wire, TOPIC, name, vec![change(key, operation, given)]).await;
            assert_eq!((error(answer.error_code), answer.error_message), ("NONE", None));
            let (value, source) = value(&mut wire, TOPIC, name, key).await;
            (value.expect("a value").to_string(), source)
        };

        assert_eq!(apply("retention.ms", SET, Some("1000")).await, ("1000".to_owned(), 1));
        assert_eq!(apply("retention.ms", DELETE, None).await, ("604800000".to_owned(), 5));
        assert_eq!(apply("cleanup.policy", APPEND, Some("compact")).await, ("delete,compact".to_owned(), 1));
        assert_eq!(apply("cleanup.policy", APPEND, Some("compact")).await, ("delete,compact".to_owned(), 1));
        assert_eq!(apply("cleanup.policy", SUBTRACT, Some("delete")).await, ("compact".to_owned(), 1));
        assert_eq!(apply("cleanup.policy", SET, Some("compact, delete")).await, ("compact,delete".to_owned(), 1));
        assert_eq!(apply("retention.bytes", SET, Some(" 5 ")).await, ("5".to_owned(), 1));
    });
}

#[test]
fn impossible_changes_are_refused_in_kafkas_words() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        let name = &*topic.name;
        let twice = vec![change("retention.ms", SET, Some("1")), change("retention.ms", SET, Some("2"))];
        let cases = [
            (vec![change("no.such.key", SET, Some("1"))], "INVALID_CONFIG", "Unknown topic config name: no.such.key"),
            (
                vec![change("retention.ms", SET, Some("soon"))],
                "INVALID_CONFIG",
                "Invalid value soon for configuration retention.ms: Not a number of type LONG",
            ),
            (
                vec![change("retention.ms", SET, Some("-2"))],
                "INVALID_CONFIG",
                "Invalid value -2 for configuration retention.ms: Value must be at least -1",
            ),
            (
                vec![change("segment.bytes", SET, Some("99999999999"))],
                "INVALID_CONFIG",
                "Invalid value 99999999999 for configuration segment.bytes: Not a number of type INT",
            ),
            (
                vec![change("compression.gzip.level", SET, Some("0"))],
                "INVALID_CONFIG",
                "Invalid value 0 for configuration compression.gzip.level: Value must be between 1 and 9 or equal to \
                 -1",
            ),
            (
                vec![change("min.cleanable.dirty.ratio", SET, Some("1.5"))],
                "INVALID_CONFIG",
                "Invalid value 1.5 for configuration min.cleanable.dirty.ratio: Value must be no more than 1",
            ),
            (
                vec![change("preallocate", SET, Some("maybe"))],
                "INVALID_CONFIG",
                "Invalid value maybe for configuration preallocate: Expected value to be either true or false",
            ),
            (
                vec![change("retention.ms", APPEND, Some("1"))],
                "INVALID_CONFIG",
                "Can't APPEND to key retention.ms because its type is not LIST.",
            ),
            (
                vec![change("retention.ms", SUBTRACT, Some("1"))],
                "INVALID_CONFIG",
                "Can't SUBTRACT to key retention.ms because its type is not LIST.",
            ),
            (vec![change("retention.ms", 9, Some("1"))], "UNKNOWN_SERVER_ERROR", ""),
            (vec![change("retention.ms", SET, None)], "INVALID_REQUEST", "Null value not supported for : retention.ms"),
            (twice, "INVALID_REQUEST", "Error due to duplicate config keys"),
            (
                vec![change("min.compaction.lag.ms", SET, Some("9")), change("max.compaction.lag.ms", SET, Some("1"))],
                "INVALID_CONFIG",
                "conflict topic config setting min.compaction.lag.ms (9) > max.compaction.lag.ms (1)",
            ),
        ];
        for (changes, code, message) in cases {
            assert_eq!(refusal(&mut wire, TOPIC, name, changes).await, (code, message.to_owned()));
        }

        let set = || vec![change("retention.ms", SET, Some("1"))];
        assert_eq!(refusal(&mut wire, TOPIC, "", set()).await.1, "Default topic resources are not allowed.");
        assert_eq!(refusal(&mut wire, TOPIC, "a/b", set()).await.0, "INVALID_TOPIC_EXCEPTION");
        let nowhere = target.fresh("nowhere");
        let expected = ("UNKNOWN_TOPIC_OR_PARTITION", format!("The topic '{nowhere}' does not exist."));
        assert_eq!(refusal(&mut wire, TOPIC, &nowhere, set()).await, expected);
        assert_eq!(refusal(&mut wire, 3, "x", set()).await.1, "Unknown resource type 3");
        assert_eq!(value(&mut wire, TOPIC, name, "retention.ms").await, (Some("604800000".into()), 5));
    });
}

/// Neither groups nor subscriptions of client metrics have lists that could grow, though some of their settings are
/// lists.
#[test]
fn lists_of_groups_and_client_metrics_are_set_as_a_whole() {
    run(async |target| {
        target.since(KafkaVersion::V4_4, "lists among the settings of groups").await;
        let mut wire = target.connect().await;
        let name = target.fresh("any");
        for (operation, verb) in [(APPEND, "APPEND"), (SUBTRACT, "SUBTRACT")] {
            for (resource, config) in
                [(GROUP, "streams.rack.aware.assignment.tags"), (CLIENT_METRICS, "metrics"), (CLIENT_METRICS, "match")]
            {
                let told = refusal(&mut wire, resource, &name, vec![change(config, operation, Some("x"))]).await;
                let words = format!("Can't {verb} to key {config} because its type is not LIST.");
                assert_eq!(told, ("INVALID_CONFIG", words));
            }
        }
        let empty = refusal(&mut wire, CLIENT_METRICS, &name, vec![change("metrics", SET, Some(","))]).await;
        assert_eq!(empty, ("INVALID_CONFIG", "Configuration 'metrics' values must not be empty.".to_owned()));
    });
}

#[test]
fn resource_that_comes_twice_is_not_changed() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        let resource = AlterConfigsResource {
            resource_type: TOPIC,
            resource_name: topic.name.clone(),
            configs: vec![change("retention.ms", SET, Some("1"))],
        };
        let resources = vec![resource.clone(), resource];
        let request = IncrementalAlterConfigsRequest { resources, validate_only: false };
        let answers = wire.call(request, 1).await.responses;

        let told: Vec<_> = answers.iter().map(|a| (error(a.error_code), a.error_message.as_deref())).collect();
        let expected = ("INVALID_REQUEST", Some("Each resource must appear at most once."));
        assert_eq!(told, [expected, expected]);
        assert_eq!(value(&mut wire, TOPIC, &topic.name, "retention.ms").await.1, 5);
    });
}

#[test]
fn validation_alone_changes_nothing() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        let mut tried = async |given: &str| {
            let resources = vec![AlterConfigsResource {
                resource_type: TOPIC,
                resource_name: topic.name.clone(),
                configs: vec![change("retention.ms", SET, Some(given))],
            }];
            let request = IncrementalAlterConfigsRequest { resources, validate_only: true };
            error(wire.call(request, 1).await.responses[0].error_code)
        };

        assert_eq!(tried("1").await, "NONE");
        assert_eq!(tried("x").await, "INVALID_CONFIG");
        assert_eq!(value(&mut target.connect().await, TOPIC, &topic.name, "retention.ms").await.1, 5);
    });
}

#[test]
fn older_request_replaces_all_configs() {
    run(async |target| {
        let topic = target.topic_with(1, &[("retention.ms", "1000"), ("retention.bytes", "2000")]).await;
        let mut wire = target.connect().await;
        let mut set = async |key: &str, given: Option<&str>| {
            let configs = vec![alter_configs::AlterableConfig { name: key.into(), value: given.map(Str::from) }];
            let resources = vec![alter_configs::AlterConfigsResource {
                resource_type: TOPIC,
                resource_name: topic.name.clone(),
                configs,
            }];
            let request = AlterConfigsRequest { resources, validate_only: false };
            let answer = wire.call(request, 2).await.responses.remove(0);
            (error(answer.error_code), answer.error_message.map(String::from).unwrap_or_default())
        };

        assert_eq!(set("retention.ms", None).await.0, "INVALID_REQUEST");
        assert_eq!(set("no.such.key", Some("1")).await.0, "INVALID_CONFIG");
        assert_eq!(set("retention.ms", Some("3000")).await, ("NONE", String::new()));
        let mut wire = target.connect().await;
        catch_up(&mut wire).await;
        assert_eq!(value(&mut wire, TOPIC, &topic.name, "retention.ms").await, (Some("3000".into()), 1));
        assert_eq!(value(&mut wire, TOPIC, &topic.name, "retention.bytes").await, (Some("-1".into()), 5));
    });
}

#[test]
fn broker_configs_are_told_by_the_broker_alone() {
    run(async |target| {
        let mut wire = target.connect().await;
        let node = node_of(&mut wire).await;

        let told = describe(&mut wire, BROKER, &node).await;
        assert!(told.configs.len() > 250, "{}", told.configs.len());
        let id = config(&mut wire, BROKER, &node, "node.id").await;
        assert_eq!((id.value.as_deref(), id.config_source, id.read_only), (Some(&*node), 4, true));
        let policy = config(&mut wire, BROKER, &node, "log.cleanup.policy").await;
        assert_eq!((policy.value.as_deref(), policy.config_source, policy.read_only), (Some("delete"), 5, false));
        let secret = config(&mut wire, BROKER, &node, "ssl.key.password").await;
        assert_eq!((secret.value, secret.is_sensitive, secret.config_type), (None, true, 9));
        let other = describe(&mut wire, BROKER, "9999").await;
        let expected = format!("Unexpected broker id, expected {node} or empty string, but received 9999");
        assert_eq!((error(other.error_code), other.error_message), ("INVALID_REQUEST", Some(expected.into())));
    });
}

#[test]
fn broker_configs_that_cannot_change_are_refused() {
    run(async |target| {
        let mut wire = target.connect().await;
        let node = node_of(&mut wire).await;
        let cases = [
            (
                &*node,
                change("num.io.threads", SET, Some("0")),
                "INVALID_REQUEST",
                "Invalid value 0 for configuration num.io.threads: Value must be at least 1",
            ),
            (
                &*node,
                change("log.retention.ms", APPEND, Some("1")),
                "INVALID_CONFIG",
                "Config value append is not allowed for config key: log.retention.ms",
            ),
            (
                "x",
                change("log.retention.ms", SET, Some("1")),
                "INVALID_REQUEST",
                "Node id must be an integer, but it is: x",
            ),
        ];
        for (name, change, code, message) in cases {
            assert_eq!(refusal(&mut wire, BROKER, name, vec![change]).await, (code, message.to_owned()));
        }
        // Kafka prints the names as a set or as a list, by its version.
        let (code, message) = refusal(&mut wire, BROKER, &node, vec![change("node.id", SET, Some("1"))]).await;
        assert_eq!(code, "INVALID_REQUEST");
        assert!(message.starts_with("Cannot update these configs dynamically: "), "{message}");
        let (code, message) = refusal(&mut wire, BROKER, "", vec![change("listeners", SET, Some("A://:1"))]).await;
        assert_eq!(code, "INVALID_REQUEST");
        assert!(message.starts_with("Cannot update these configs at default cluster level"), "{message}");
        let (code, message) = refusal(&mut wire, BROKER, &node, vec![change("ssl.key.password", SET, Some("x"))]).await;
        assert_eq!(code, "INVALID_REQUEST");
        assert!(message.contains("only per-listener"), "{message}");
    });
}

#[test]
fn loggers_have_levels() {
    run(async |target| {
        let mut wire = target.connect().await;
        let node = node_of(&mut wire).await;
        let logger = "org.apache.kafka.clients.NetworkClient";

        let (code, message) = refusal(&mut wire, LOGGER, &node, vec![change("no.logger", SET, Some("INFO"))]).await;
        assert_eq!((code, &*message), ("INVALID_CONFIG", "Logger no.logger does not exist!"));
        let (code, message) = refusal(&mut wire, LOGGER, &node, vec![change("root", SET, Some("LOUD"))]).await;
        assert_eq!(code, "INVALID_CONFIG");
        assert!(message.starts_with("Cannot set the log level of root to LOUD"), "{message}");
        assert_eq!(refusal(&mut wire, LOGGER, &node, vec![change("root", DELETE, None)]).await.0, "INVALID_REQUEST");
        let appended = refusal(&mut wire, LOGGER, &node, vec![change("root", APPEND, Some("INFO"))]).await;
        assert_eq!(appended.1, "APPEND operation is not allowed for the BROKER_LOGGER resource");

        assert_eq!(refusal(&mut wire, LOGGER, &node, vec![change(logger, SET, Some("ERROR"))]).await.0, "NONE");
        assert_eq!(value(&mut wire, LOGGER, &node, logger).await, (Some("ERROR".into()), 6));
        assert_eq!(refusal(&mut wire, LOGGER, &node, vec![change(logger, DELETE, None)]).await.0, "NONE");
        assert_eq!(value(&mut wire, LOGGER, &node, logger).await, (Some("INFO".into()), 6));
    });
}

/// AD-15, for client metrics.
#[test]
fn subscriptions_to_client_metrics_are_configs() {
    run(async |target| {
        let mut wire = target.connect().await;
        let name = target.fresh("metrics");
        let cases = [
            (
                change("interval.ms", SET, Some("50")),
                "INVALID_REQUEST",
                "Invalid value 50 for interval.ms, interval must be between 100 and 3600000 (1 hour)",
            ),
            (
                change("no.such.key", SET, Some("1")),
                "INVALID_REQUEST",
                "Unknown client metrics configuration: no.such.key",
            ),
            (change("match", SET, Some("foo=bar")), "INVALID_CONFIG", "Illegal client matching pattern: foo=bar"),
            (
                change("match", SET, Some("client_id=[")),
                "INVALID_CONFIG",
                "Illegal client matching pattern: client_id=[",
            ),
        ];
        for (change, code, message) in cases {
            assert_eq!(refusal(&mut wire, CLIENT_METRICS, &name, vec![change]).await, (code, message.to_owned()));
        }
        let set = change("interval.ms", SET, Some("1000"));
        assert_eq!(
            refusal(&mut wire, CLIENT_METRICS, "", vec![set.clone()]).await.1,
            "Subscription name can't be empty"
        );

        // Nobody matches, so that no client of another test pushes.
        let none = change("match", SET, Some("client_id=nobody"));
        assert_eq!(refusal(&mut wire, CLIENT_METRICS, &name, vec![set, none]).await.0, "NONE");
        assert_eq!(value(&mut wire, CLIENT_METRICS, &name, "interval.ms").await, (Some("1000".into()), 7));
        let listed = wire.call(ListConfigResourcesRequest::default(), 0).await.config_resources;
        assert!(listed.iter().any(|resource| resource.resource_name == name));

        let deleted = vec![change("interval.ms", DELETE, None), change("match", DELETE, None)];
        assert_eq!(refusal(&mut wire, CLIENT_METRICS, &name, deleted).await.0, "NONE");
        let listed = wire.call(ListConfigResourcesRequest::default(), 0).await.config_resources;
        assert!(!listed.iter().any(|resource| resource.resource_name == name));
    });
}

/// AD-15, for groups.
#[test]
fn groups_have_configs_before_they_have_members() {
    run(async |target| {
        target.since(KafkaVersion::V4_4, "all configs of groups").await;
        let mut wire = target.connect().await;
        let group = target.fresh("group");
        let reset = "Invalid value sometime for configuration share.auto.offset.reset: Invalid value `sometime` for \
                     configuration share.auto.offset.reset. The value must be either 'earliest', 'latest' or of the \
                     format 'by_duration:<PnDTnHnMn.nS>'.";
        let cases = [
            ("no.such.key", "1", "Unknown group config name: no.such.key"),
            (
                "consumer.session.timeout.ms",
                "-5",
                "Invalid value -5 for configuration consumer.session.timeout.ms: Value must be at least 1",
            ),
            (
                "consumer.session.timeout.ms",
                "1",
                "consumer.session.timeout.ms must be in the range 45000 to 60000 inclusive.",
            ),
            ("share.delivery.count.limit", "11", "share.delivery.count.limit must be in the range 2 to 10 inclusive."),
            ("streams.num.standby.replicas", "3", "streams.num.standby.replicas must be less than or equal to 2"),
            ("share.auto.offset.reset", "sometime", reset),
            (
                "errors.deadletterqueue.topic.name",
                "__dlq",
                "errors.deadletterqueue.topic.name: DLQ topic name must not start with '__'",
            ),
        ];
        for (key, given, message) in cases {
            let refused = refusal(&mut wire, GROUP, &group, vec![change(key, SET, Some(given))]).await;
            assert_eq!(refused, ("INVALID_CONFIG", message.to_owned()));
        }
        let set = vec![change("share.auto.offset.reset", SET, Some("by_duration:PT1H"))];
        assert_eq!(refusal(&mut wire, GROUP, "", set.clone()).await.1, "Default group resources are not allowed.");

        assert_eq!(describe(&mut wire, GROUP, &group).await.configs.len(), 21);
        assert_eq!(refusal(&mut wire, GROUP, &group, set).await.0, "NONE");
        let told = config(&mut wire, GROUP, &group, "share.auto.offset.reset").await;
        assert_eq!((told.value.as_deref(), told.config_source), (Some("by_duration:PT1H"), 8));
        let inherited = config(&mut wire, GROUP, &group, "consumer.session.timeout.ms").await;
        assert_eq!((inherited.value.as_deref(), inherited.config_source), (Some("45000"), 5));
        assert_eq!(inherited.synonyms[0].name, "group.consumer.session.timeout.ms");
        assert_eq!(describe(&mut wire, GROUP, "").await.error_message.as_deref(), Some("Group name must not be empty"));

        let deleted = vec![change("share.auto.offset.reset", DELETE, None)];
        assert_eq!(refusal(&mut wire, GROUP, &group, deleted).await.0, "NONE");
        assert_eq!(value(&mut wire, GROUP, &group, "share.auto.offset.reset").await, (Some("latest".into()), 5));
    });
}

/// KIP-1142.
#[test]
fn what_has_configs_is_listed() {
    run(async |target| {
        target.since(KafkaVersion::V4_1, "ListConfigResources 1").await;
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        let group = target.fresh("group");
        let set = vec![change("consumer.session.timeout.ms", SET, Some("50000"))];
        assert_eq!(refusal(&mut wire, GROUP, &group, set).await.0, "NONE");
        let list = |resource_types: &[i8]| ListConfigResourcesRequest { resource_types: resource_types.to_vec() };

        let all = wire.call(list(&[]), 1).await.config_resources;
        assert!(all.iter().any(|found| found.resource_type == TOPIC && found.resource_name == topic.name));
        assert!(all.iter().any(|found| found.resource_type == GROUP && found.resource_name == group));
        assert!(all.iter().any(|found| found.resource_type == BROKER && found.resource_name == "1"));
        let groups = wire.call(list(&[GROUP]), 1).await.config_resources;
        assert!(groups.iter().any(|found| found.resource_name == group));
        assert!(groups.iter().all(|found| found.resource_type == GROUP));
        assert_eq!(error(wire.call(list(&[TOPIC, 99]), 1).await.error_code), "UNSUPPORTED_VERSION");

        let deleted = vec![change("consumer.session.timeout.ms", DELETE, None)];
        assert_eq!(refusal(&mut wire, GROUP, &group, deleted).await.0, "NONE");
        let groups = wire.call(list(&[GROUP]), 1).await.config_resources;
        assert!(!groups.iter().any(|found| found.resource_name == group));
    });
}

#[test]
fn defaults_of_client_metrics_are_told() {
    run(async |target| {
        target.since(KafkaVersion::V4_1, "defaults of client metrics").await;
        let mut wire = target.connect().await;
        let name = target.fresh("metrics");

        assert_eq!(value(&mut wire, CLIENT_METRICS, &name, "metrics").await, (Some("".into()), 5));
        assert_eq!(value(&mut wire, CLIENT_METRICS, &name, "interval.ms").await, (Some("300000".into()), 5));
    });
}
