//! Rules that could never act are refused when they are written, in JSON as in Rust.

use std::panic::{AssertUnwindSafe, catch_unwind};

use krafka_fake_broker::{FakeCluster, Rule};
use krafka_protocol::{ApiKey, ErrorCode};

/// A rule that could never act is refused, so that no test waits for it.
#[tokio::test]
async fn rule_that_could_never_act_is_refused() {
    let fake = FakeCluster::builder().topic("orders", 1).start_on_pipes();
    let cases = [
        (r#"{"do": "observe", "times": 0}"#, "a rule acts at least once"),
        (r#"{"do": "observe", "after_ms": 100, "until_ms": 50}"#, "begins before that"),
        (r#"{"when": {"versions": [9, 0]}, "do": "observe"}"#, "the first and the last"),
        (r#"{"when": {"event": "connect", "topic": "orders"}, "do": "refuse"}"#, "a connection is known by"),
        (r#"{"when": {"event": "connect", "client_id": "shop"}, "do": "refuse"}"#, "a connection is known by"),
        (r#"{"when": {"apis": ["Produce"], "fields": {"ack": 0}}, "do": "observe"}"#, "Produce has no field `ack`"),
        (r#"{"when": {"fields": {"nope": 0}}, "do": "observe"}"#, "no request has a field `nope`"),
        (r#"{"when": {"apis": ["Produce"]}, "do": "rebootstrap"}"#, "only an answer to Metadata"),
        (r#"{"when": {"apis": ["ApiVersions"]}, "do": "fence_epoch"}"#, "carry no epoch"),
        (r#"{"when": {"apis": ["Metadata"]}, "do": {"hint": "no_leader"}}"#, "are not answered with such a hint"),
        (r#"{"do": "observe", "nth": 0}"#, "`nth` counts matches from 1 on"),
        (r#"{"do": "observe", "probability": 0}"#, "`probability` is between 0 and 1, and not 0 itself"),
        (r#"{"do": "observe", "probability": -0.5}"#, "it cannot be -0.5"),
        (r#"{"when": {"event": "connect"}, "after_handling": true, "do": "refuse"}"#, "`after_handling` is for rules"),
        (r#"{"when": {"node": 0}, "do": "observe"}"#, "nodes are numbered from 1 on"),
        (r#"{"when": {"apis": ["Vote"]}, "do": "observe"}"#, "no node speaks Vote"),
        (r#"{"when": {"apis": []}, "do": "observe"}"#, "`apis` names none: leave it away to mean all"),
        (r#"{"when": {"partitions": []}, "do": "observe"}"#, "`partitions` names none: leave it away"),
    ];
    refused(&fake, &cases);
    let legal = [
        r#"{"when": {"event": "connect", "node": 1}, "do": "refuse"}"#,
        r#"{"when": {"apis": ["Fetch", "Produce"], "fields": {"topic_data.name": "x"}}, "do": "observe"}"#,
        r#"{"when": {"apis": ["Fetch", "Metadata"]}, "do": "rebootstrap"}"#,
        r#"{"do": "fence_epoch"}"#,
        r#"{"do": "observe", "probability": 1}"#,
    ];
    for rule in legal {
        fake.install_json(rule).expect(rule);
    }
}

/// What a rule asks a request for is something that a request of its APIs can have, in its versions.
#[tokio::test]
async fn rule_for_what_no_request_has_is_refused() {
    let fake = FakeCluster::builder().topic("orders", 1).start_on_pipes();
    let when = |when: &str| format!(r#"{{"when": {when}, "do": "observe"}}"#);
    let cases = [
        (r#"{"apis": ["Produce"], "fields": {"acks": "x"}}"#, "`acks` of a request of Produce cannot be \"x\""),
        (r#"{"apis": ["Produce"], "fields": {"acks": 99999}}"#, "`acks` of a request of Produce cannot be 99999"),
        (r#"{"apis": ["Produce"], "fields": {"acks": null}}"#, "cannot be null"),
        (r#"{"apis": ["Metadata"], "group": "g"}"#, "a request of Metadata has no `group`"),
        (r#"{"apis": ["Fetch"], "transactional_id": "t"}"#, "a request of Fetch has no `transactional_id`"),
        (r#"{"apis": ["Produce"], "resource": "r"}"#, "a request of Produce has no `resource`"),
        (r#"{"apis": ["ApiVersions"], "topic": "orders"}"#, "a request of ApiVersions has no `topic`"),
        (r#"{"apis": ["Heartbeat"], "partitions": [0]}"#, "a request of Heartbeat has no `partitions`"),
        (
            r#"{"apis": ["Fetch"], "versions": [0, 12], "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ"}"#,
            "a request of Fetch has no `topic_id` in versions 0 to 12",
        ),
        (r#"{"apis": ["Produce", "Heartbeat"], "topic": "orders", "group": "g"}"#, "has no `group` beside `topic`"),
        (r#"{"apis": ["Produce"], "versions": [500, 600]}"#, "`versions` [500, 600] are none of Produce"),
        (r#"{"versions": [500, 600]}"#, "`versions` [500, 600] are none of all APIs"),
        (r#"{"apis": ["Produce"], "versions": [-3, -1]}"#, "`versions` [-3, -1] are none of Produce"),
    ];
    let cases = cases.map(|(selector, reason)| (when(selector), reason));
    refused(&fake, &cases.each_ref().map(|(rule, reason)| (rule.as_str(), *reason)));
    let legal = [
        r#"{"apis": ["Produce", "Heartbeat"], "topic": "orders"}"#,
        r#"{"apis": ["Produce"], "versions": [9, 600]}"#,
        r#"{"apis": ["Produce"], "fields": {"acks": -1, "transactional_id": null}}"#,
        r#"{"apis": ["FindCoordinator"], "group": "g"}"#,
        r#"{"apis": ["DescribeConfigs"], "topic": "orders", "resource": "orders"}"#,
        r#"{"apis": ["AlterClientQuotas"], "fields": {"entries.ops.value": 1}}"#,
        r#"{"topic": "orders", "partitions": [0], "group": "g"}"#,
    ];
    for rule in legal.map(when) {
        fake.install_json(&rule).expect(&rule);
    }
}

/// What a rule does is something that can be done to what it asks for.
#[tokio::test]
async fn rule_that_could_do_nothing_is_refused() {
    let fake = FakeCluster::builder().topic("orders", 1).start_on_pipes();
    let cases = [
        (r#"{"apis": ["Metadata"]}"#, r#"{"layout": -1}"#, "none of these has a version -1"),
        (r#"{"apis": ["Metadata"]}"#, r#"{"layout": 99}"#, "none of these has a version 99"),
        (r#"{"apis": ["Produce"]}"#, r#"{"reply_error": "NONE"}"#, "`reply_error` NONE is no error"),
        (r#"{"apis": ["Produce"]}"#, r#"{"reply_error": 0}"#, "`reply_error` NONE is no error"),
        ("{}", r#"{"damage": {"flip": {"mask": 0}}}"#, "`mask`"),
        ("{}", r#"{"damage": {"chunk": {"bytes": 0, "pause_ms": 1}}}"#, "`bytes` is not 0"),
        ("{}", r#"{"damage": {"garbage": {"bytes": 0}}}"#, "`bytes` is not 0"),
        (r#"{"event": "connect"}"#, r#"{"speak_first": ""}"#, "`speak_first` has something to say"),
        (r#"{"apis": ["Metadata"]}"#, r#""move_leader_away""#, "name no partition whose leader could move"),
        (r#"{"apis": ["Fetch"]}"#, r#"{"move_leader": 0}"#, "nodes are numbered from 1 on"),
        (r#"{"apis": ["Heartbeat"]}"#, r#""drop_entity""#, "list nothing"),
        (r#"{"apis": ["Metadata"], "versions": [0, 12]}"#, r#""rebootstrap""#, "from version 13 on"),
        (
            r#"{"apis": ["Produce"]}"#,
            r#"{"set": {"field": "responses.partition_responses.error_code", "value": 70000}}"#,
            "cannot be 70000",
        ),
        (
            r#"{"apis": ["Metadata"], "versions": [0, 1]}"#,
            r#"{"set": {"field": "topics.topic_id", "value": "AAAAAAAAAAAAAAAAAAAAAQ"}}"#,
            "in no answer of these versions",
        ),
        ("{}", r#"{"change_cluster": {"request": {"api": "JoinGroup"}}}"#, "JoinGroup needs a connection"),
        ("{}", r#"{"change_cluster": {"request": {"api": "Nope"}}}"#, "there is no API called `Nope`"),
        ("{}", r#"{"change_cluster": {"request": {"api": "DeleteTopics", "version": 99}}}"#, "and not in 99"),
        (
            "{}",
            r#"{"change_cluster": {"request": {"api": "DeleteTopics", "fields": {"topiks": []}}}}"#,
            "unknown field `DeleteTopics.topiks`",
        ),
        ("{}", r#"{"change_cluster": {"create_topic": {"topic": "no good"}}}"#, "no good"),
        ("{}", r#"{"change_cluster": {"create_topic": {"topic": "x", "partitions": 0}}}"#, "`partitions` is from 1"),
        ("{}", r#"{"change_cluster": {"move_leader": {"topic": "x", "partition": -1}}}"#, "from 0 on, not -1"),
        ("{}", r#"{"change_cluster": {"crash": {"node": 0}}}"#, "there is no node 0"),
        (
            "{}",
            r#"{"change_cluster": {"truncate": {"topic": "x", "partition": 0, "offset": -1}}}"#,
            "`offset` is at least 0",
        ),
        (
            "{}",
            r#"{"change_cluster": {"delete_records": {"topic": "x", "partition": 0, "before": -2}}}"#,
            "at least -1",
        ),
        ("{}", r#"{"change_cluster": {"move_coordinator": {"node": 1}}}"#, "either a group or a transactional_id"),
    ];
    let cases = cases.map(|(when, action, reason)| (format!(r#"{{"when": {when}, "do": {action}}}"#), reason));
    refused(&fake, &cases.each_ref().map(|(rule, reason)| (rule.as_str(), *reason)));
    let legal = [
        // What the cluster is like in that moment, nobody knows yet.
        r#"{"do": {"change_cluster": {"move_leader": {"topic": "x", "partition": 7, "node": 9}}}}"#,
        r#"{"do": {"change_cluster": {"request": {"api": "DeleteTopics", "fields": {"topic_names": ["x"]}}}}}"#,
        r#"{"do": {"layout": 1}}"#,
        r#"{"do": "move_leader_away"}"#,
        r#"{"do": {"delay_ms": 0}}"#,
        r#"{"do": {"reply_error": -1}}"#,
    ];
    for rule in legal {
        fake.install_json(rule).expect(rule);
    }
}

/// In Rust the same rules are refused in the same words.
#[tokio::test]
async fn rule_in_rust_that_could_never_act_panics() {
    let fake = FakeCluster::builder().topic("orders", 1).start_on_pipes();
    let cases: [(&dyn Fn() -> Rule, &str); 7] = [
        (&|| fake.when(ApiKey::Produce).partitions("orders", []).observe(), "`partitions` names none"),
        (&|| fake.when(ApiKey::Heartbeat).topic("orders").observe(), "a request of Heartbeat has no `topic`"),
        (&|| fake.when(ApiKey::Produce).probability(0.0).observe(), "`probability` is between 0 and 1"),
        (&|| fake.when(ApiKey::Produce).probability(f64::NAN).observe(), "it cannot be NaN"),
        (&|| fake.when(ApiKey::Produce).nth(0).observe(), "`nth` counts matches from 1 on"),
        (&|| fake.when(ApiKey::Produce).reply_error(ErrorCode::NONE), "NONE is no error"),
        (&|| fake.when(ApiKey::Produce).versions(500..=600).observe(), "`versions` [500, 600]"),
    ];
    for (rule, reason) in cases {
        let panic = catch_unwind(AssertUnwindSafe(rule)).expect_err(reason);
        let words = panic.downcast_ref::<String>().expect("a text");
        assert!(words.contains(reason), "{words}");
    }
}

/// Sees that each rule is refused for its reason.
fn refused(fake: &FakeCluster, cases: &[(&str, &str)]) {
    for (rule, reason) in cases {
        let error = fake.install_json(rule).expect_err(rule);
        assert!(error.contains(reason), "{rule}: {error}");
    }
}
