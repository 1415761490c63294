//! The administration of topics on the wire.

use krafka_protocol::api::create_partitions::{
    CreatePartitionsAssignment, CreatePartitionsRequest, CreatePartitionsTopic,
};
use krafka_protocol::api::create_topics::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig, CreatableTopicResult, CreateTopicsRequest,
};
use krafka_protocol::api::delete_topics::{DeleteTopicState, DeleteTopicsRequest};
use krafka_protocol::api::metadata::MetadataRequest;
use krafka_protocol::{Str, Uuid};

use crate::records::error;
use crate::target::{Wire, run};

fn topic(name: &Str, num_partitions: i32, replication_factor: i16) -> CreatableTopic {
    CreatableTopic { name: name.clone(), num_partitions, replication_factor, ..CreatableTopic::default() }
}

fn request(topics: Vec<CreatableTopic>) -> CreateTopicsRequest {
    CreateTopicsRequest { topics, timeout_ms: 10_000, validate_only: false }
}

async fn create(wire: &mut Wire, topic: CreatableTopic) -> CreatableTopicResult {
    wire.call(request(vec![topic]), 7).await.topics.remove(0)
}

/// The error of creating a topic.
async fn refusal(wire: &mut Wire, topic: CreatableTopic) -> &'static str {
    error(create(wire, topic).await.error_code)
}

#[test]
fn created_topic_is_told_with_its_defaults() {
    run(async |target| {
        let mut wire = target.connect().await;
        let name = target.fresh("created");
        let made = create(&mut wire, topic(&name, -1, -1)).await;

        assert_eq!((error(made.error_code), made.error_message), ("NONE", None));
        let nodes = wire.call(MetadataRequest::default(), 12).await.brokers.len();
        assert_eq!((made.num_partitions, made.replication_factor), (1, nodes.min(3) as i16));
        assert!(!made.topic_id.is_zero());
        let configs = made.configs.expect("configs");
        let retention = configs.iter().find(|config| config.name == "retention.ms").expect("a setting");
        assert_eq!((retention.value.as_deref(), retention.config_source), (Some("604800000"), 5));
        assert_eq!(refusal(&mut wire, topic(&name, 1, 1)).await, "TOPIC_ALREADY_EXISTS");
    });
}

#[test]
fn names_are_validated() {
    run(async |target| {
        let mut wire = target.connect().await;
        let dotted = target.fresh("a.b_c");
        create(&mut wire, topic(&dotted, 1, 1)).await;

        for name in ["", ".", "..", "a b", "a/b"] {
            assert_eq!(refusal(&mut wire, topic(&name.into(), 1, 1)).await, "INVALID_TOPIC_EXCEPTION", "{name:?}");
        }
        let colliding = Str::from(dotted.replace('.', "_"));
        assert_eq!(refusal(&mut wire, topic(&colliding, 1, 1)).await, "INVALID_TOPIC_EXCEPTION");
    });
}

#[test]
fn log_of_the_controllers_is_no_topic_to_create() {
    run(async |target| {
        let mut wire = target.connect().await;

        let refused = create(&mut wire, topic(&"__cluster_metadata".into(), 1, 1)).await;

        let text = "Creation of internal topic __cluster_metadata is prohibited.";
        assert_eq!((error(refused.error_code), refused.error_message.as_deref()), ("INVALID_REQUEST", Some(text)));
    });
}

#[test]
fn numbers_are_validated() {
    run(async |target| {
        let mut wire = target.connect().await;
        let name = target.fresh("numbers");

        assert_eq!(refusal(&mut wire, topic(&name, 0, 1)).await, "INVALID_PARTITIONS");
        assert_eq!(refusal(&mut wire, topic(&name, -2, 1)).await, "INVALID_PARTITIONS");
        assert_eq!(refusal(&mut wire, topic(&name, 1, 0)).await, "INVALID_REPLICATION_FACTOR");
        assert_eq!(refusal(&mut wire, topic(&name, 1, 99)).await, "INVALID_REPLICATION_FACTOR");
    });
}

#[test]
fn validation_alone_creates_nothing() {
    run(async |target| {
        let mut wire = target.connect().await;
        let name = target.fresh("tried");
        let tried = CreateTopicsRequest { validate_only: true, ..request(vec![topic(&name, 3, 1)]) };
        let answer = wire.call(tried, 7).await.topics.remove(0);

        assert_eq!((error(answer.error_code), answer.num_partitions), ("NONE", 3));
        assert!(!answer.topic_id.is_zero(), "Kafka tells an id, though nothing has it");
        assert_eq!(refusal(&mut wire, topic(&name, 1, 1)).await, "NONE");
    });
}

#[test]
fn name_that_comes_twice_is_answered_once() {
    run(async |target| {
        let mut wire = target.connect().await;
        let (twice, once) = (target.fresh("twice"), target.fresh("once"));
        let topics = vec![topic(&twice, 1, 1), topic(&once, 1, 1), topic(&twice, 1, 1)];
        let mut answers = wire.call(request(topics), 7).await.topics;
        answers.sort_by(|a, b| a.name.cmp(&b.name));

        let answers: Vec<_> = answers.iter().map(|answer| (&answer.name, error(answer.error_code))).collect();
        assert_eq!(answers, [(&once, "NONE"), (&twice, "INVALID_REQUEST")]);
    });
}

#[test]
fn replicas_may_be_given() {
    run(async |target| {
        let mut wire = target.connect().await;
        let given = |name: &Str, replicas: &[(i32, &[i32])]| CreatableTopic {
            assignments: replicas
                .iter()
                .map(|(index, nodes)| CreatableReplicaAssignment {
                    partition_index: *index,
                    broker_ids: nodes.to_vec(),
                })
                .collect(),
            ..topic(name, -1, -1)
        };
        let name = target.fresh("given");
        let bad = "INVALID_REPLICA_ASSIGNMENT";

        assert_eq!(refusal(&mut wire, given(&name, &[(0, &[])])).await, bad);
        assert_eq!(refusal(&mut wire, given(&name, &[(0, &[99])])).await, bad);
        assert_eq!(refusal(&mut wire, given(&name, &[(0, &[1, 1])])).await, bad);
        assert_eq!(refusal(&mut wire, given(&name, &[(0, &[1]), (0, &[1])])).await, bad);
        assert_eq!(refusal(&mut wire, given(&name, &[(1, &[1])])).await, bad);
        let both = CreatableTopic { num_partitions: 1, ..given(&name, &[(0, &[1])]) };
        assert_eq!(refusal(&mut wire, both).await, "INVALID_REQUEST");
        let made = create(&mut wire, given(&name, &[(1, &[1]), (0, &[1])])).await;
        assert_eq!((error(made.error_code), made.num_partitions, made.replication_factor), ("NONE", 2, 1));
    });
}

/// FI-11d.
#[test]
fn settings_are_validated_and_told() {
    run(async |target| {
        let mut wire = target.connect().await;
        let name = target.fresh("settings");
        let set = |key: &str, value: &str| CreatableTopic {
            configs: vec![CreatableTopicConfig { name: key.into(), value: Some(value.into()) }],
            ..topic(&name, 1, 1)
        };

        for (key, value) in [
            ("no.such.setting", "1"),
            ("max.message.bytes", "many"),
            ("message.timestamp.type", "Whenever"),
            ("cleanup.policy", "burn"),
            ("compression.type", "zip"),
            ("min.insync.replicas", "0"),
        ] {
            assert_eq!(refusal(&mut wire, set(key, value)).await, "INVALID_CONFIG", "{key}={value}");
        }
        let made = create(&mut wire, set("retention.ms", "1000")).await.configs.expect("configs");
        let retention = made.iter().find(|config| config.name == "retention.ms").expect("a setting");
        assert_eq!((retention.value.as_deref(), retention.config_source), (Some("1000"), 1));
    });
}

#[test]
fn topics_are_deleted_by_name_and_by_id() {
    run(async |target| {
        let (first, second) = (target.topic(1).await, target.topic(1).await);
        let mut wire = target.connect().await;
        let named = DeleteTopicState { name: Some(first.name.clone()), topic_id: Uuid::ZERO };
        let identified = DeleteTopicState { name: None, topic_id: second.id };
        let delete = |topics| DeleteTopicsRequest { topics, timeout_ms: 10_000, ..DeleteTopicsRequest::default() };
        let deleted = wire.call(delete(vec![named.clone(), identified.clone()]), 6).await.responses;

        assert!(deleted.iter().all(|answer| error(answer.error_code) == "NONE"), "{deleted:?}");
        assert!(deleted.iter().any(|answer| answer.name.as_ref() == Some(&second.name)), "the name comes back");
        let by_name = wire.call(delete(vec![named]), 6).await.responses.remove(0);
        assert_eq!(error(by_name.error_code), "UNKNOWN_TOPIC_OR_PARTITION");
        let by_id = wire.call(delete(vec![identified]), 6).await.responses.remove(0);
        assert_eq!(error(by_id.error_code), "UNKNOWN_TOPIC_ID");
        let both = DeleteTopicState { name: Some(first.name.clone()), topic_id: first.id };
        assert_eq!(error(wire.call(delete(vec![both]), 6).await.responses[0].error_code), "INVALID_REQUEST");
        let old = DeleteTopicsRequest { topic_names: vec![first.name], timeout_ms: 10_000, ..Default::default() };
        assert_eq!(error(wire.call(old, 5).await.responses[0].error_code), "UNKNOWN_TOPIC_OR_PARTITION");
    });
}

#[test]
fn partitions_are_added_and_never_taken() {
    run(async |target| {
        let topic = target.topic(2).await;
        let mut wire = target.connect().await;
        let grow = |count, assignments: Option<Vec<Vec<i32>>>| CreatePartitionsRequest {
            topics: vec![CreatePartitionsTopic {
                name: topic.name.clone(),
                count,
                assignments: assignments
                    .map(|all| all.into_iter().map(|broker_ids| CreatePartitionsAssignment { broker_ids }).collect()),
            }],
            timeout_ms: 10_000,
            validate_only: false,
        };
        let bad = "INVALID_REPLICA_ASSIGNMENT";
        let cases = [
            (grow(2, None), "INVALID_PARTITIONS"),
            (grow(1, None), "INVALID_PARTITIONS"),
            (grow(3, Some(vec![vec![99]])), bad),
            (grow(4, Some(vec![vec![1]])), bad),
            (CreatePartitionsRequest { validate_only: true, ..grow(9, None) }, "NONE"),
            (grow(3, Some(vec![vec![1]])), "NONE"),
            (grow(5, None), "NONE"),
            (grow(5, None), "INVALID_PARTITIONS"),
        ];

        for (request, expected) in cases {
            let asked = format!("{request:?}");
            let answer = wire.call(request, 3).await.results.remove(0);
            assert_eq!(error(answer.error_code), expected, "{asked}: {:?}", answer.error_message);
        }
        let mut lost = grow(9, None);
        lost.topics[0].name = target.fresh("nowhere");
        let answer = wire.call(lost, 3).await.results.remove(0);
        assert_eq!(error(answer.error_code), "UNKNOWN_TOPIC_OR_PARTITION");
    });
}
