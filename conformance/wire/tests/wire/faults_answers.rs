//! Faults of answers: entities that are gone or doubled, fields and hints that are wrong, other layouts; rules in JSON;
//! what a strict cluster complains of.

use std::panic::{AssertUnwindSafe, catch_unwind};

use krafka_fake_broker::{Apis, FakeCluster, Hint};
use krafka_protocol::api::alter_client_quotas::{AlterClientQuotasRequest, EntryData};
use krafka_protocol::api::create_topics::{CreatableTopic, CreateTopicsRequest};
use krafka_protocol::api::find_coordinator::FindCoordinatorRequest;
use krafka_protocol::api::metadata::{MetadataRequest, MetadataRequestTopic};
use krafka_protocol::api::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use krafka_protocol::{ApiKey, ApiVersionsRequest, ErrorCode, HeartbeatRequest, MetadataResponse, Str};

use crate::producers::batch;
use crate::target::{Target, Wire, on_fake};

fn run(test: impl AsyncFnOnce(Target, FakeCluster)) {
    on_fake(FakeCluster::builder().nodes(3).topic("orders", 2).topic("bills", 1), test);
}

async fn metadata(wire: &mut Wire, topics: &[&str]) -> MetadataResponse {
    let named = |name: &&str| MetadataRequestTopic { name: Some(Str::from(*name)), ..MetadataRequestTopic::default() };
    let topics = Some(topics.iter().map(named).collect());
    wire.call(MetadataRequest { topics, ..MetadataRequest::default() }, 12).await
}

fn produce(acks: i16) -> ProduceRequest {
    let partition = |index| PartitionProduceData { index, records: Some(batch(-1, -1, -1, 1)) };
    let partition_data = vec![partition(0), partition(1)];
    let topic = TopicProduceData { name: "orders".into(), partition_data, ..TopicProduceData::default() };
    ProduceRequest { acks, timeout_ms: 1_000, topic_data: vec![topic], ..ProduceRequest::default() }
}

/// AV-02: who asks for too much is answered in version 0, which everybody reads, also when a rule says that it was too
/// much.
#[test]
fn versions_that_are_refused_are_refused_in_version_0() {
    run(async |target, fake| {
        let mut wire = target.connect().await;
        fake.when(ApiKey::ApiVersions).times(2).reply_error(ErrorCode::UNSUPPORTED_VERSION);
        fake.when(ApiKey::ApiVersions).reply_error(ErrorCode::INVALID_REQUEST);
        for version in [4, 0] {
            wire.send(ApiVersionsRequest::default(), version).await;
            let refused = wire.receive::<ApiVersionsRequest>(0).await;
            assert_eq!(ErrorCode(refused.error_code), ErrorCode::UNSUPPORTED_VERSION);
        }

        let other = wire.call(ApiVersionsRequest::default(), 4).await;

        assert_eq!(ErrorCode(other.error_code), ErrorCode::INVALID_REQUEST, "others are read in the version asked for");
        assert_eq!(wire.call(ApiVersionsRequest::default(), 0).await.error_code, 0);
    });
}

/// BY-12, MD-13.
#[test]
fn entity_is_left_out_or_comes_twice() {
    run(async |target, fake| {
        let mut wire = target.connect().await;
        let shape = |response: &MetadataResponse| -> Vec<(String, Vec<i32>)> {
            let partitions = |t: &krafka_protocol::api::metadata::MetadataResponseTopic| {
                t.partitions.iter().map(|p| p.partition_index).collect()
            };
            response.topics.iter().map(|t| (t.name.as_deref().unwrap_or("").to_owned(), partitions(t))).collect()
        };
        let topic = |name: &str, partitions: &[i32]| (name.to_owned(), partitions.to_vec());

        fake.when(ApiKey::Metadata).topic("orders").drop_entity();
        let response = metadata(&mut wire, &["orders", "bills"]).await;
        assert_eq!(shape(&response), [topic("bills", &[0])]);

        fake.when(ApiKey::Metadata).drop_entity();
        let response = metadata(&mut wire, &["bills"]).await;
        assert_eq!(shape(&response), []);

        fake.when(ApiKey::Metadata).topic("bills").duplicate_entity();
        let response = metadata(&mut wire, &["orders", "bills"]).await;
        assert_eq!(shape(&response), [topic("orders", &[0, 1]), topic("bills", &[0]), topic("bills", &[0])]);
    });
}

/// BY-12.
#[test]
fn field_is_set_where_the_rule_says() {
    run(async |target, fake| {
        let mut wire = target.connect().await;
        fake.when(ApiKey::Metadata).topic("orders").set("topics.partitions.leader_id", 99);
        fake.when(ApiKey::Metadata).set("controller_id", 77);

        let response = metadata(&mut wire, &["orders", "bills"]).await;

        let leaders = |index: usize| response.topics[index].partitions.iter().map(|p| p.leader_id).collect::<Vec<_>>();
        assert_eq!((leaders(0), leaders(1), response.controller_id), (vec![99, 99], vec![1], 77));
        let reason =
            fake.install_json(r#"{"when": {"apis": ["Metadata"]}, "do": {"set": {"field": "x", "value": 1}}}"#);
        assert_eq!(reason.expect_err("there is no x"), "an answer to Metadata has no field `x`");
    });
}

/// LE-03, LE-04, FE: hints that are false, or not given.
#[test]
fn hints_are_wrong_or_missing() {
    run(async |target, fake| {
        let mut wire = target.connect().await;
        fake.move_leader("orders", 0, 2);
        let hint = |r: &krafka_protocol::ProduceResponse| {
            let partition = r.responses[0].partition_responses.iter().find(|p| p.index == 0).expect("partition 0");
            let nodes: Vec<i32> = r.node_endpoints.iter().map(|node| node.node_id).collect();
            (partition.current_leader.leader_id, partition.current_leader.leader_epoch, nodes)
        };
        assert_eq!(hint(&wire.call(produce(1), 10).await), (2, 1, vec![2]), "the truth");

        fake.when(ApiKey::Produce).hint(Hint::NoLeader);
        assert_eq!(hint(&wire.call(produce(1), 10).await), (-1, -1, vec![]));
        fake.when(ApiKey::Produce).partition("orders", 0).hint(Hint::Leader { node: 9, epoch: 5, endpoint: true });
        assert_eq!(hint(&wire.call(produce(1), 10).await), (9, 5, vec![]), "nobody knows node 9");
        fake.when(ApiKey::Produce).partition("orders", 0).hint(Hint::Leader { node: 3, epoch: 5, endpoint: true });
        assert_eq!(hint(&wire.call(produce(1), 10).await), (3, 5, vec![3]));
        let old = fake.when(ApiKey::Produce).hint(Hint::NoLeader);
        wire.call(produce(1), 9).await;
        assert_eq!(old.hits(), 0, "version 9 has no room for hints");

        fake.when(ApiKey::FindCoordinator).hint(Hint::Coordinator { node: 3 });
        let ask = FindCoordinatorRequest { coordinator_keys: vec!["g".into()], ..FindCoordinatorRequest::default() };
        let found = wire.call(ask, 4).await.coordinators.remove(0);
        assert_eq!((found.node_id, found.host.as_str()), (3, "broker-3"));
    });
}

/// BY-11.
#[test]
fn answer_can_have_another_versions_layout() {
    run(async |target, fake| {
        let mut wire = target.connect().await;
        wire.send(MetadataRequest { topics: Some(Vec::new()), ..MetadataRequest::default() }, 1).await;
        let old = wire.frame().await.expect("an answer");
        fake.when(ApiKey::Metadata).layout(1);

        wire.send(MetadataRequest { topics: Some(Vec::new()), ..MetadataRequest::default() }, 12).await;
        let new = wire.frame().await.expect("an answer");

        assert_eq!((&new[4..5], &new[5..]), (&[0][..], &old[4..]), "the header of 12 around the body of 1");
    });
}

/// FI-14: Produce can fail after the append, in some ways; a Heartbeat, which writes nothing, cannot.
#[test]
fn late_errors_are_those_that_a_broker_can_give() {
    run(async |target, fake| {
        let refuse = |rule: krafka_fake_broker::RuleBuilder, code| {
            let panic = catch_unwind(AssertUnwindSafe(|| rule.after_handling().reply_error(code)));
            let panic = panic.expect_err("no broker does so");
            panic.downcast_ref::<String>().expect("a text").clone()
        };
        let words = refuse(fake.when(ApiKey::Produce), ErrorCode::MESSAGE_TOO_LARGE);
        assert!(words.contains("REQUEST_TIMED_OUT, NOT_ENOUGH_REPLICAS_AFTER_APPEND"), "{words}");
        let words = refuse(fake.when(ApiKey::Heartbeat), ErrorCode::REQUEST_TIMED_OUT);
        assert!(words.contains("changes nothing"), "{words}");

        let mut wire = target.connect().await;
        let code = ErrorCode::NOT_ENOUGH_REPLICAS_AFTER_APPEND;
        fake.when(ApiKey::Produce).partition("orders", 0).reply_error(code);
        let answer = wire.call(produce(1), 9).await.responses.remove(0).partition_responses.remove(0);
        assert_eq!((ErrorCode(answer.error_code), fake.high_watermark("orders", 0)), (code, Some(1)), "by itself");
    });
}

#[test]
fn rules_come_from_json_and_name_what_is_wrong_with_it() {
    run(async |target, fake| {
        let mut wire = target.connect().await;
        let text = r#"{
            "when": {"apis": ["Produce"], "topic": "orders", "partitions": [1], "fields": {"acks": 1}},
            "times": "forever",
            "do": {"reply_error": "NOT_LEADER_OR_FOLLOWER"}
        }"#;
        let rule = fake.install_json(text).expect("a legal rule");

        let leader = target.node(2).await.call(produce(1), 9).await;
        wire.call(produce(-1), 9).await;

        let mut errors: Vec<_> =
            leader.responses[0].partition_responses.iter().map(|p| (p.index, ErrorCode(p.error_code))).collect();
        errors.sort_unstable_by_key(|(index, _)| *index);
        assert_eq!(errors[1], (1, ErrorCode::NOT_LEADER_OR_FOLLOWER));
        assert_eq!(rule.hits(), 1, "acks was 1 in one of them");

        let wrong = [
            (r#"{"do": "observe", "tims": 2}"#, "unknown field `tims`"),
            (r#"{"when": {"topik": "x"}, "do": "observe"}"#, "unknown field `topik`"),
            (r#"{"when": {"apis": ["Prodcue"]}, "do": "observe"}"#, "there is no API called `Prodcue`"),
            (r#"{"do": {"reply_error": "NOPE"}}"#, "there is no error code called `NOPE`"),
            (r#"{"do": {"damage": {"chunk": {"bytes": 1, "pause": 1}}}}"#, "unknown field `pause`"),
            (r#"{"do": {"change_cluster": {"crash": {"nod": 1}}}}"#, "unknown field `nod`"),
            (r#"{"do": "refuse"}"#, "is for rules whose event is \"connect\""),
            (r#"{"do": "observe", "probability": 1.5}"#, "between 0 and 1"),
            (
                r#"{"do": "observe", "nth": "one"}"#,
                "expected a whole number from 0 on that is not too large, found the text",
            ),
            (r#"{"do": {"change_cluster": {"crash": 1}}}"#, "expected an object, found the number `1`"),
            (r#"["observe"]"#, "expected "),
            (r#"{"when": {"topic": ["a"]}, "do": "observe"}"#, "expected a string, found an array"),
            (r#"{"do": "explode"}"#, "unknown name `explode`, expected one of"),
            (r#"{"times": 1}"#, "missing field `do`"),
        ];
        for (text, reason) in wrong {
            let words = fake.install_json(text).expect_err(text);
            assert!(words.contains(reason), "{text}: {words}");
        }
    });
}

#[test]
fn strict_cluster_complains_of_what_did_not_happen_and_of_what_kafka_refuses() {
    let outcome = catch_unwind(|| {
        on_fake(FakeCluster::builder().topic("orders", 2).strict(), async |target, fake| {
            fake.when(ApiKey::Fetch).topic("orders").observe();
            let mut wire = target.connect().await;
            let blamed = wire.call(produce(7), 9).await.responses.remove(0).partition_responses.remove(0);
            assert_eq!(ErrorCode(blamed.error_code), ErrorCode::INVALID_REQUIRED_ACKS);
            wire.send(HeartbeatRequest::default(), 4).await;
            let nameless = MetadataRequestTopic { name: Some("no name".into()), ..MetadataRequestTopic::default() };
            let asked = MetadataRequest { topics: Some(vec![nameless]), ..MetadataRequest::default() };
            target.connect().await.call(asked, 12).await;
            let mut wire = target.connect().await;
            wire.send_raw(&[0, 0, 0, 2, 0, 0]).await;
            assert!(wire.is_closed().await);
        });
    });

    let panic = outcome.expect_err("it is strict");
    let words = panic.downcast_ref::<String>().expect("a text");
    let lines: Vec<&str> = words.lines().skip(1).collect();
    assert_eq!(lines.len(), 4, "{words}");
    assert_eq!(lines[0], "a rule never acted: Fetch for orders → observe");
    assert_eq!(lines[1], "Produce in version 9 was refused with INVALID_REQUIRED_ACKS");
    assert_eq!(lines[2], "Metadata in version 12 was refused with INVALID_TOPIC_EXCEPTION");
    assert!(lines[3].contains("a frame whose header cannot be read"), "{words}");
}

#[test]
fn strict_cluster_is_content_when_all_happened() {
    on_fake(FakeCluster::builder().strict(), async |target, fake| {
        let refused = fake.when(Apis::ANY).reply_error(ErrorCode::INVALID_REQUEST);
        target.connect().await.call(HeartbeatRequest::default(), 4).await;
        assert_eq!((refused.hits(), fake.complaints()), (1, Vec::new()), "an error that a rule gave is nobody's fault");
    });
}

/// An error that a rule gives stands beside its own words, whatever the authorizer says of the same request.
#[test]
fn error_comes_with_its_own_words() {
    run(async |target, fake| {
        let mut wire = target.connect().await;
        for (code, words) in [
            (ErrorCode::NOT_CONTROLLER, "This is not the correct controller for this cluster."),
            (ErrorCode::REQUEST_TIMED_OUT, "The request timed out."),
            (ErrorCode::TOPIC_AUTHORIZATION_FAILED, "Authorization failed."),
        ] {
            fake.when(ApiKey::CreateTopics).reply_error(code);
            let topic = CreatableTopic { name: "new".into(), num_partitions: 1, ..CreatableTopic::default() };
            let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 1_000, ..Default::default() };
            let told = wire.call(request, 5).await.topics.remove(0);
            assert_eq!((ErrorCode(told.error_code), told.error_message.as_deref()), (code, Some(words)));
        }

        fake.when(ApiKey::AlterClientQuotas).reply_error(ErrorCode::NOT_CONTROLLER);
        let entry = EntryData { entity: vec![], ops: vec![] };
        let told = wire.call(AlterClientQuotasRequest { entries: vec![entry], validate_only: true }, 1).await;
        let told = told.entries.into_iter().next().expect("an answer for each entry");
        let words = "This is not the correct controller for this cluster.";
        assert_eq!(
            (ErrorCode(told.error_code), told.error_message.as_deref()),
            (ErrorCode::NOT_CONTROLLER, Some(words))
        );
    });
}
