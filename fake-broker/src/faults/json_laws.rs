//! Laws of the JSON form of rules: what is written is read, what is read is written the same, and nothing unknown
//! passes.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::rule::RuleText;

fn object(fields: Vec<(&'static str, Option<Value>)>) -> Value {
    let fields = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(fields.collect::<Map<_, _>>())
}

fn some<T: Into<Value> + Clone + std::fmt::Debug>(
    strategy: impl Strategy<Value = T>,
) -> impl Strategy<Value = Option<Value>> {
    prop::option::of(strategy.prop_map(Into::into))
}

/// Any selector, in the form that is written: without what is at its default.
fn selector() -> impl Strategy<Value = Value> {
    let name = || some("[a-z.]{1,8}");
    let apis = prop::option::of(prop::sample::subsequence(vec!["Produce", "Fetch", "Metadata", "JoinGroup"], 1..=4));
    let versions = prop::option::of((0_i16..20, 0_i16..20).prop_map(|(min, max)| json!([min, max])));
    let partitions = prop::option::of(prop::collection::vec(0_i32..9, 1..4));
    let fields = prop::option::of((-5_i64..5).prop_map(|acks| json!({ "acks": acks })));
    let towards = some(prop::sample::select(vec!["node", "peer"]));
    let who = (apis, versions, some(0_i32..9), some(0_u64..99), name(), some(0_i32..9), towards);
    let what = (name(), partitions, name(), name(), name(), fields);
    (who, what).prop_map(|((apis, versions, node, connection, client_id, peer, towards), what)| {
        let (topic, partitions, group, transactional_id, resource, fields) = what;
        object(vec![
            ("apis", apis.map(Value::from)),
            ("versions", versions),
            ("node", node),
            ("connection", connection),
            ("peer", peer),
            ("towards", towards),
            ("client_id", client_id),
            ("topic", topic),
            ("topic_id", None),
            ("partitions", partitions.map(Value::from)),
            ("group", group),
            ("transactional_id", transactional_id),
            ("resource", resource),
            ("fields", fields),
        ])
    })
}

/// Every action, each of its fields at some value.
fn actions() -> Vec<Value> {
    vec![
        json!("observe"),
        json!({"reply_error": "NOT_LEADER_OR_FOLLOWER"}),
        json!({"reply_error": 9_999}),
        json!({"throttle_ms": 5}),
        json!({"delay_ms": 5}),
        json!("drop_connection"),
        json!("reset_connection"),
        json!("silence"),
        json!("rebootstrap"),
        json!("fence_epoch"),
        json!({"move_leader": 2}),
        json!("move_leader_away"),
        json!("drop_entity"),
        json!("duplicate_entity"),
        json!({"set": {"field": "throttle_time_ms", "value": 7}}),
        json!({"hint": "no_leader"}),
        json!({"hint": {"leader": {"node": 1, "epoch": 2, "endpoint": true}}}),
        json!({"hint": {"preferred_replica": {"node": 1}}}),
        json!({"hint": {"coordinator": {"node": 1}}}),
        json!({"hint": {"metadata": {"node": 1, "epoch": -1}}}),
        json!({"layout": 3}),
        json!({"damage": {"chunk": {"bytes": 1, "pause_ms": 2}}}),
        json!({"damage": {"truncate": {"bytes": 1, "reset": true}}}),
        json!({"damage": {"flip": {"at": 1, "mask": 255}}}),
        json!({"damage": {"garbage": {"bytes": 1}}}),
        json!({"damage": {"length": {"length": -1}}}),
        json!({"damage": {"coalesce": {"within_ms": 1}}}),
        json!("half_open"),
        json!({"redeliver_ms": 5}),
        json!({"latency": {"ms": 50, "jitter_ms": 20}}),
        json!({"bandwidth": {"bytes_per_second": 100}}),
        json!({"loss": {"probability": 0.25, "retransmit_ms": 200}}),
        json!("partition"),
        json!("refuse"),
        json!({"slow_accept_ms": 5}),
        json!("black_hole"),
        json!({"speak_first": "SSH-2.0-x"}),
        json!({"change_cluster": {"create_topic": {"topic": "x", "partitions": 3}}}),
        json!({"change_cluster": {"move_leader": {"topic": "x", "partition": 0, "node": 1}}}),
        json!({"change_cluster": {"crash": {"node": 1, "durability": {"lose_tail": 4}}}}),
        json!({"change_cluster": {"move_coordinator": {"group": "g", "transactional_id": null, "node": 1}}}),
        json!({"change_cluster": {"load_coordinator": {"group": "g", "transactional_id": null, "for_ms": 10}}}),
        json!({"change_cluster": {"swap_cluster_id": {"cluster_id": "other"}}}),
        json!({"change_cluster": {"jump_clock": {"by_ms": -5}}}),
        json!({"change_cluster": {"lose_leader": {"topic": "x", "partition": 0}}}),
        json!({"change_cluster": {"apply_retention": {}}}),
        json!({"change_cluster": {"compact": {"topic": "x", "partition": 0}}}),
        json!({"change_cluster": {"hold_markers": {"transactional_id": "t", "hold": true}}}),
        json!({"change_cluster": {"hold_reassignments": {"hold": true}}}),
        // A secret is shown as this, and nothing else is written the same.
        json!({"change_cluster": {"set_password": {"user": "alice", "password": "[hidden]"}}}),
        json!({"change_cluster": {"swap_certificate": {"certificate": "x", "key": "[hidden]"}}}),
        json!({"change_cluster": {"request": {
            "api": "DeleteTopics", "node": 1, "version": 6, "fields": {"timeout_ms": 5}
        }}}),
        json!({"change_cluster": {"advertise": {"node": 1, "host": "nowhere.invalid", "port": 9}}}),
    ]
}

fn rule() -> impl Strategy<Value = Value> {
    let times = prop::option::of(prop_oneof![Just(json!("forever")), (0_u64..99).prop_map(Value::from)]);
    let budget = (some(2_u64..99), times, some(Just(0.5)), some(1_u64..99), some(1_u64..99));
    (selector(), budget, any::<bool>(), prop::sample::select(actions())).prop_map(|(when, budget, late, action)| {
        let (nth, times, probability, after_ms, until_ms) = budget;
        object(vec![
            ("when", Some(when)),
            ("nth", nth),
            ("times", times),
            ("probability", probability),
            ("after_ms", after_ms),
            ("until_ms", until_ms),
            ("after_handling", late.then_some(json!(true))),
            ("do", Some(action)),
        ])
    })
}

/// Puts an unknown field into each structure of a rule in turn.
fn spoilt(rule: &Value) -> Vec<Value> {
    let structures = [
        "/when",
        "/do/set",
        "/do/hint/leader",
        "/do/damage/chunk",
        "/do/damage/flip",
        "/do/change_cluster/crash",
        "/do/latency",
        "/do/loss",
    ];
    let mut spoilt = Vec::new();
    for path in std::iter::once("").chain(structures) {
        let mut copy = rule.clone();
        if let Some(Value::Object(structure)) = copy.pointer_mut(path) {
            structure.insert("surplus".to_owned(), json!(1));
            spoilt.push(copy);
        }
    }
    spoilt
}

proptest! {
    #[test]
    fn rule_is_written_as_it_was_read(rule in rule()) {
        let text: RuleText = serde_json::from_value(rule.clone()).expect("a legal rule");
        prop_assert_eq!(serde_json::to_value(&text).expect("it has no functions"), rule);
    }

    #[test]
    fn unknown_field_is_refused_by_its_name(rule in rule()) {
        for rule in spoilt(&rule) {
            let error = serde_json::from_value::<RuleText>(rule.clone()).err().map(|error| error.to_string());
            let error = error.unwrap_or_else(|| panic!("{rule} passed"));
            prop_assert!(error.contains("unknown field `surplus`"), "{}: {}", rule, error);
        }
    }
}
