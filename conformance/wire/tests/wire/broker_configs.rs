//! What running brokers refuse of their own configs, although each value by itself is valid.

use std::collections::BTreeMap;

use krafka_fake_broker::KafkaVersion;
use krafka_protocol::api::describe_configs::{DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResult};
use krafka_protocol::api::incremental_alter_configs::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
};

use crate::records::error;
use crate::target::{PATIENCE, Wire, fresh, run};

const TOPIC: i8 = 2;
const BROKER: i8 = 4;

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;

/// The answer to changes, which are only checked, or carried out.
async fn alter(
    wire: &mut Wire,
    name: &str,
    changes: &[(&str, i8, Option<&str>)],
    validate_only: bool,
) -> (&'static str, String) {
    let configs = changes.iter().map(|(name, config_operation, value)| AlterableConfig {
        name: (*name).into(),
        config_operation: *config_operation,
        value: value.map(Into::into),
    });
    let resource =
        AlterConfigsResource { resource_type: BROKER, resource_name: name.into(), configs: configs.collect() };
    let request = IncrementalAlterConfigsRequest { resources: vec![resource], validate_only };
    let answer = wire.call(request, 1).await.responses.remove(0);
    (error(answer.error_code), answer.error_message.map(String::from).unwrap_or_default())
}

/// What a broker would say to other values of its configs.
async fn check(wire: &mut Wire, node: &str, values: &[(&str, &str)]) -> (&'static str, String) {
    let changes: Vec<_> = values.iter().map(|(name, value)| (*name, SET, Some(*value))).collect();
    alter(wire, node, &changes, true).await
}

async fn describe(wire: &mut Wire, resources: &[(i8, &str)]) -> Vec<DescribeConfigsResult> {
    let resources = resources.iter().map(|(resource_type, name)| DescribeConfigsResource {
        resource_type: *resource_type,
        resource_name: (*name).into(),
        configuration_keys: None,
    });
    let resources = resources.collect();
    let request = DescribeConfigsRequest { resources, include_synonyms: true, include_documentation: false };
    wire.call(request, 4).await.results
}

/// The node that a connection leads to: the only one that describes itself.
async fn node_of(wire: &mut Wire) -> String {
    for node in 0..10 {
        let node = node.to_string();
        if describe(wire, &[(BROKER, &node)]).await[0].error_code == 0 {
            return node;
        }
    }
    panic!("no node");
}

fn invalid(text: &str) -> (&'static str, String) {
    ("INVALID_REQUEST", text.to_owned())
}

/// The words for what a running broker cannot become.
fn step(text: &str) -> (&'static str, String) {
    let exception = "Invalid value org.apache.kafka.common.config.ConfigException";
    ("INVALID_REQUEST", format!("{exception}: {text} for configuration Invalid dynamic configuration"))
}

/// AD-15, for pools of threads.
#[test]
fn pools_of_threads_are_halved_or_doubled_at_most() {
    run(async |target| {
        let mut wire = target.connect().await;
        let node = &*node_of(&mut wire).await;
        let told = describe(&mut wire, &[(BROKER, node)]).await.remove(0);
        let told: BTreeMap<_, _> = told.configs.into_iter().map(|config| (config.name, config.value)).collect();
        for name in ["num.io.threads", "num.replica.fetchers", "background.threads", "num.network.threads"] {
            let now: i64 = told[name].as_deref().and_then(|value| value.parse().ok()).expect("a number");

            let twice = (now * 2).to_string();
            assert_eq!(check(&mut wire, node, &[(name, &twice)]).await, ("NONE", String::new()));
            let more = now * 2 + 1;
            let text = format!("Dynamic thread count update validation failed for {name}={more}");
            let text = format!("{text}, value should not be greater than double the current value {now}");
            assert_eq!(check(&mut wire, node, &[(name, &more.to_string())]).await, step(&text));
            let text = format!("Dynamic thread count update validation failed for {name}=1");
            let text = format!("{text}, value should be at least half the current value {now}");
            let expected = if now < 4 { ("NONE", String::new()) } else { step(&text) };
            assert_eq!(check(&mut wire, node, &[(name, "1")]).await, expected);
        }
        let text = "Log cleaner threads cannot be increased to more than double the current value 1";
        assert_eq!(check(&mut wire, node, &[("log.cleaner.threads", "3")]).await, step(text));
    });
}

#[test]
fn configs_of_a_broker_must_agree_with_each_other() {
    run(async |target| {
        let mut wire = target.connect().await;
        let node = &*node_of(&mut wire).await;

        for (name, value, least) in [("log.roll.ms", "0", 1), ("log.roll.ms", "-1", 1), ("log.roll.jitter.ms", "-2", 0)]
        {
            let text = format!("{name} must be greater than or equal to {least}");
            let expected = invalid(&format!("requirement failed: {text}"));
            assert_eq!(check(&mut wire, node, &[(name, value)]).await, expected);
        }
        let text = "log.retention.ms must be unlimited (-1) or, greater than or equal to 1";
        let expected = invalid(&format!("requirement failed: {text}"));
        assert_eq!(check(&mut wire, node, &[("log.retention.ms", "0")]).await, expected);

        let text = "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.";
        let expected = invalid(&format!("requirement failed: {text}"));
        assert_eq!(check(&mut wire, node, &[("log.cleaner.dedupe.buffer.size", "1048576")]).await, expected);
        let enough = [("log.cleaner.dedupe.buffer.size", "1048577")];
        assert_eq!(check(&mut wire, node, &enough).await, ("NONE", String::new()));

        let text =
            "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set.";
        let expected = invalid(&format!("requirement failed: {text}"));
        assert_eq!(check(&mut wire, node, &[("max.connections.per.ip", "0")]).await, expected);
        let both = [("max.connections.per.ip", "0"), ("max.connections.per.ip.overrides", "127.0.0.1:5")];
        assert_eq!(check(&mut wire, node, &both).await, ("NONE", String::new()));

        let expected = step("Invalid max.connections 0");
        assert_eq!(check(&mut wire, node, &[("max.connections", "0")]).await, expected);

        let text = "Invalid value -1 for configuration log.local.retention.bytes: Value must not be -1 as \
                    log.retention.bytes value is set as 3.";
        let both = [("log.local.retention.bytes", "-1"), ("log.retention.bytes", "3")];
        assert_eq!(check(&mut wire, node, &both).await, step(text));
        let text = "Invalid value 5 for configuration log.local.retention.bytes: Value must not be more than \
                    log.retention.bytes property value: 3";
        let both = [("log.local.retention.bytes", "5"), ("log.retention.bytes", "3")];
        assert_eq!(check(&mut wire, node, &both).await, step(text));
    });
}

/// AD-15: of several that are wrong, always the same one is named.
#[test]
fn first_of_two_wrong_pools_is_named() {
    run(async |target| {
        let mut wire = target.connect().await;
        let node = &*node_of(&mut wire).await;
        let pools =
            ["num.network.threads", "num.recovery.threads.per.data.dir", "num.replica.fetchers", "background.threads"];
        for (index, first) in pools.into_iter().enumerate() {
            for second in pools.into_iter().skip(index + 1).chain(["num.io.threads"]) {
                let (_, words) = check(&mut wire, node, &[(second, "1000"), (first, "1000")]).await;
                assert!(words.contains(&format!("failed for {first}=1000, value should not be")), "{second}: {words}");
            }
        }
        let (_, words) = check(&mut wire, node, &[("num.network.threads", "1000"), ("max.connections", "0")]).await;
        assert!(words.contains("Invalid max.connections 0"), "{words}");
        let stranger = check(&mut wire, node, &[(&*fresh("stranger"), "x")]).await;
        assert_eq!(stranger, ("NONE", String::new()), "no pool changes, whatever its size stands for");
    });
}

#[test]
fn entries_of_lists_have_words_of_their_own() {
    run(async |target| {
        let mut wire = target.connect().await;
        let node = &*node_of(&mut wire).await;
        let name = "max.connections.per.ip.overrides";
        for (value, words) in [
            ("127.0.0.1:many", "For input string: \"many\""),
            ("127.0.0.1:", "For input string: \"\""),
            ("127.0.0.1:5,c:1x", "For input string: \"1x\""),
            ("127.0.0.1:2147483648", "For input string: \"2147483648\""),
            ("[::1]:7", "max.connections.per.ip.overrides contains invalid addresses : [::1]"),
            (
                "localhost",
                "Error parsing configuration property 'max.connections.per.ip.overrides': begin 0, end -1, length 9",
            ),
        ] {
            assert_eq!(check(&mut wire, node, &[(name, value)]).await, invalid(words), "{value}");
        }
        for legal in ["127.0.0.1:-1", ":5", "nosuch.invalid: 5", "127.0.0.1:5 , ::1:+7"] {
            assert_eq!(check(&mut wire, node, &[(name, legal)]).await, ("NONE", String::new()), "{legal}");
        }

        let name = "listener.security.protocol.map";
        for (value, words) in [
            ("PLAINTEXT:NOPE", "Invalid security protocol `NOPE` defined in listener.security.protocol.map"),
            ("A:B:C", "Invalid security protocol `C` defined in listener.security.protocol.map"),
            (":PLAINTEXT", "The provided listener name is null or empty string"),
        ] {
            assert_eq!(check(&mut wire, node, &[(name, value)]).await, invalid(words), "{value}");
        }
        let both = [("max.connections.per.ip.overrides", "x:y"), (name, "A:B")];
        let words = "Invalid security protocol `B` defined in listener.security.protocol.map";
        assert_eq!(check(&mut wire, node, &both).await, invalid(words));
        let (code, words) = check(&mut wire, node, &[(name, "CONTROLLER:plaintext")]).await;
        assert_eq!(code, "INVALID_REQUEST");
        assert!(words.starts_with("Error creating broker listeners from '"), "{words}");
        assert!(words.ends_with("': No security protocol defined for listener PLAINTEXT"), "{words}");
    });
}

/// KIP-966: where there are eligible leader replicas, all brokers have the same value.
#[test]
fn brokers_have_one_least_number_of_replicas_in_sync() {
    run(async |target| {
        let mut wire = target.connect().await;
        let node = &*node_of(&mut wire).await;
        let told = describe(&mut wire, &[(BROKER, "")]).await.remove(0);
        let has_elr = told.configs.iter().any(|config| config.name == "min.insync.replicas");

        let answer = check(&mut wire, node, &[("min.insync.replicas", "1")]).await;

        let text = "Broker-level min.insync.replicas cannot be altered while ELR is enabled.";
        assert_eq!(answer, if has_elr { ("INVALID_CONFIG", text.to_owned()) } else { ("NONE", String::new()) });
        let answer = alter(&mut wire, "", &[("min.insync.replicas", DELETE, None)], true).await;
        let text = "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.";
        assert_eq!(answer, if has_elr { ("INVALID_CONFIG", text.to_owned()) } else { ("NONE", String::new()) });
    });
}

/// As kafka-reassign-partitions sets them.
#[test]
fn throttles_of_moved_replicas_are_numbers_that_are_told() {
    run(async |target| {
        let mut wire = target.connect().await;
        let node = &*node_of(&mut wire).await;
        let name = "replica.alter.log.dirs.io.max.bytes.per.second";

        let expected = invalid(&format!("Invalid value abc for configuration {name}: Not a number of type LONG"));
        assert_eq!(check(&mut wire, node, &[(name, "abc")]).await, expected);
        let expected = invalid(&format!("Invalid value -1 for configuration {name}: Value must be at least 0"));
        assert_eq!(check(&mut wire, node, &[(name, "-1")]).await, expected);
        // Kafka 3.9 stumbles over a name that it looks for in the wrong place.
        let expected = match target.version().await {
            KafkaVersion::V3_9 => ("UNKNOWN_SERVER_ERROR", String::new()),
            _ => ("INVALID_CONFIG", format!("Unknown config name: {name}")),
        };
        assert_eq!(alter(&mut wire, node, &[(name, APPEND, Some("5"))], true).await, expected);

        let stranger = &*fresh("stranger");
        let set = [(name, SET, Some("1000000000")), (stranger, SET, Some("x"))];
        assert_eq!(alter(&mut wire, node, &set, false).await, ("NONE", String::new()));
        let configs = tokio::time::timeout(PATIENCE, async {
            loop {
                let configs = describe(&mut wire, &[(BROKER, node)]).await.remove(0).configs;
                if configs.iter().any(|config| config.name == *stranger) {
                    return configs;
                }
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        });
        let configs = configs.await.expect("the broker hears of it");
        let config = |name: &str| configs.iter().find(|config| config.name == *name).expect("a config");
        let found = config(name);
        assert_eq!(found.value.as_deref(), Some("1000000000"));
        assert_eq!((found.config_source, found.is_sensitive, found.synonyms.len()), (2, false, 1));
        let found = config(stranger);
        assert_eq!((found.value.as_deref(), found.is_sensitive, found.read_only), (None, true, true));
        let unset = [(name, DELETE, None), (stranger, DELETE, None)];
        assert_eq!(alter(&mut wire, node, &unset, false).await, ("NONE", String::new()));
    });
}

#[test]
fn one_resource_of_no_known_type_is_the_end_of_all() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;

        let told = describe(&mut wire, &[(TOPIC, &topic.name), (3, "x")]).await;

        let mut told: Vec<_> = told.iter().map(|told| (&*told.resource_name, error(told.error_code))).collect();
        told.sort_unstable();
        let mut expected = vec![(&*topic.name, "INVALID_REQUEST"), ("x", "INVALID_REQUEST")];
        expected.sort_unstable();
        assert_eq!(told, expected);
    });
}
