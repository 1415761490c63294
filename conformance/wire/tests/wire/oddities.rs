//! What hardly a client asks: fields that make no sense, and lists with nothing in them. Found by sending the same
//! requests, drawn at random from Kafka's schemas, to Kafka and to the fake.

use krafka_fake_broker::KafkaVersion;
use krafka_protocol::api::alter_configs::{AlterConfigsRequest, AlterConfigsResource, AlterableConfig};
use krafka_protocol::api::alter_partition_reassignments::AlterPartitionReassignmentsRequest;
use krafka_protocol::api::alter_share_group_offsets::{
    AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsRequestPartition, AlterShareGroupOffsetsRequestTopic,
};
use krafka_protocol::api::create_delegation_token::CreateDelegationTokenRequest;
use krafka_protocol::api::create_topics::{CreatableTopic, CreateTopicsRequest};
use krafka_protocol::api::delete_groups::DeleteGroupsRequest;
use krafka_protocol::api::describe_client_quotas::DescribeClientQuotasRequest;
use krafka_protocol::api::describe_share_group_offsets::{
    DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsRequestGroup, DescribeShareGroupOffsetsRequestTopic,
};
use krafka_protocol::api::describe_topic_partitions::{Cursor, DescribeTopicPartitionsRequest, TopicRequest};
use krafka_protocol::api::fetch::FetchRequest;
use krafka_protocol::api::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use krafka_protocol::{DescribeClusterRequest, Str, Uuid};

use crate::member::pair;
use crate::records::{error, fetch_request, nowhere, only};
use crate::target::run;

/// A session over nothing has an id, and is gone when it is used.
#[test]
fn session_of_no_partitions_is_opened() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        let nothing = |session_id, session_epoch| FetchRequest {
            session_id,
            session_epoch,
            topics: vec![],
            ..fetch_request(&topic, 0)
        };

        let opened = wire.call(nothing(0, 0), 13).await;
        assert!(opened.session_id > 0 && opened.error_code == 0);
        let next = wire.call(nothing(opened.session_id, 1), 13).await;
        assert_eq!((error(next.error_code), next.session_id), ("NONE", 0));
        let gone = wire.call(nothing(opened.session_id, 2), 13).await;
        assert_eq!(error(gone.error_code), "FETCH_SESSION_ID_NOT_FOUND");
    });
}

/// A partition that is refused before Kafka looks at its log has no aborted transactions, and not none that are known.
#[test]
fn partitions_that_are_not_there_have_an_empty_list_of_aborted_transactions() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        let mut beyond = fetch_request(&topic, 0);
        beyond.topics[0].partitions[0].partition = 9;
        let unknown = fetch_request(&nowhere("nowhere"), 0);
        let out_of_range = fetch_request(&topic, 77);
        let mut nameless = fetch_request(&topic, 0);
        nameless.topics[0].topic_id = Uuid::ZERO;

        for (request, version, expected) in [
            (beyond, 12, ("UNKNOWN_TOPIC_OR_PARTITION", Some(0))),
            (unknown, 12, ("UNKNOWN_TOPIC_OR_PARTITION", Some(0))),
            (nameless, 13, ("UNKNOWN_TOPIC_ID", Some(0))),
            (out_of_range, 12, ("OFFSET_OUT_OF_RANGE", None)),
        ] {
            let told = only(wire.call(request, version).await);
            assert_eq!((error(told.error_code), told.aborted_transactions.map(|it| it.len())), expected);
        }
    });
}

#[test]
fn isolation_levels_that_are_none_trip_the_broker() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        let fetched = wire.call(FetchRequest { isolation_level: 2, ..fetch_request(&topic, 0) }, 12).await;
        assert_eq!((error(fetched.error_code), fetched.session_id), ("UNKNOWN_SERVER_ERROR", 0));
        let told = &fetched.responses[0].partitions[0];
        assert_eq!((error(told.error_code), told.high_watermark), ("UNKNOWN_SERVER_ERROR", -1));

        let ask = ListOffsetsPartition { timestamp: -1, ..ListOffsetsPartition::default() };
        let asked = ListOffsetsTopic { name: topic.name.clone(), partitions: vec![ask] };
        let nothing = ListOffsetsTopic { partitions: vec![], ..asked.clone() };
        let topics = vec![nothing, asked.clone(), asked];
        let request = ListOffsetsRequest { replica_id: -1, isolation_level: 2, topics, timeout_ms: 0 };
        let told = wire.call(request, 5).await.topics;
        let told = told.iter().map(|topic| topic.partitions.iter().map(|p| (error(p.error_code), p.offset)).collect());
        // Kafka 3.9 looks first whether a partition comes twice.
        let is_old = target.version().await < KafkaVersion::V4_0;
        let failed = vec![(if is_old { "INVALID_REQUEST" } else { "UNKNOWN_SERVER_ERROR" }, -1)];
        assert_eq!(told.collect::<Vec<Vec<_>>>(), [vec![], failed.clone(), failed], "it is answered as it was asked");
    });
}

/// A topic without a name spoils the whole request. A cursor that leads nowhere is found before.
#[test]
fn topic_without_a_name_trips_the_broker() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        let asked = [&topic.name, &Str::default()].map(|name| TopicRequest { name: name.clone() });
        let request = DescribeTopicPartitionsRequest {
            topics: asked.to_vec(),
            response_partition_limit: 10,
            ..DescribeTopicPartitionsRequest::default()
        };

        let cursor = Some(Cursor { topic_name: target.fresh("missing"), partition_index: 0 });
        for (cursor, expected) in [(None, "UNKNOWN_SERVER_ERROR"), (cursor, "INVALID_REQUEST")] {
            let told = wire.call(DescribeTopicPartitionsRequest { cursor, ..request.clone() }, 0).await.topics;
            let told: Vec<_> = told.iter().map(|topic| (error(topic.error_code), topic.partitions.len())).collect();
            assert_eq!(told, [(expected, 0), (expected, 0)]);
        }
    });
}

#[test]
fn endpoint_types_that_are_not_served_are_named() {
    run(async |target| {
        let mut wire = target.connect().await;
        let mismatch =
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER";
        for (endpoint_type, code, words) in
            [(2, "MISMATCHED_ENDPOINT_TYPE", mismatch), (3, "UNSUPPORTED_ENDPOINT_TYPE", "Unsupported endpoint type 3")]
        {
            let told =
                wire.call(DescribeClusterRequest { endpoint_type, ..DescribeClusterRequest::default() }, 1).await;
            assert_eq!((error(told.error_code), told.error_message.as_deref()), (code, Some(words)));
        }
    });
}

#[test]
fn messages_are_null_or_empty_as_kafka_leaves_them() {
    run(async |target| {
        let mut wire = target.connect().await;
        let quotas = wire.call(DescribeClientQuotasRequest::default(), 1).await;
        assert_eq!((quotas.error_code, quotas.error_message.as_deref()), (0, Some("")));

        let request = AlterPartitionReassignmentsRequest {
            allow_replication_factor_change: false,
            ..AlterPartitionReassignmentsRequest::default()
        };
        if target.version().await >= KafkaVersion::V4_1 {
            let moved = wire.call(request, 1).await;
            assert_eq!((moved.allow_replication_factor_change, moved.error_message.as_deref()), (true, Some("")));
        }

        let bad = CreatableTopic { name: "bad/name".into(), num_partitions: 1, ..CreatableTopic::default() };
        let topics = vec![CreatableTopic { replication_factor: 1, ..bad }];
        let request = CreateTopicsRequest { topics, timeout_ms: 5_000, ..CreateTopicsRequest::default() };
        let refused = wire.call(request, 5).await.topics.remove(0);
        assert_eq!((error(refused.error_code), refused.configs), ("INVALID_TOPIC_EXCEPTION", Some(vec![])));
    });
}

#[test]
fn groups_that_stay_are_told_without_a_word() {
    run(async |target| {
        let (mut member, _follower) = pair(&target).await;
        let request = DeleteGroupsRequest { groups_names: vec![member.group.clone()] };
        let told = member.wire.call(request.clone(), 2).await.results.remove(0);
        assert_eq!(error(told.error_code), "NON_EMPTY_GROUP");
        if target.version().await >= KafkaVersion::V4_4 {
            let told = member.wire.call(request, 3).await.results.remove(0);
            assert_eq!((error(told.error_code), told.error_message), ("NON_EMPTY_GROUP", None));
        }
    });
}

/// Values are judged before anybody asks whether there is such a topic.
#[test]
fn configs_of_a_topic_that_is_not_there_are_judged_first() {
    run(async |target| {
        let mut wire = target.connect().await;
        let name = target.fresh("nowhere");
        let mut alter = async |resource_type, resource_name: &Str, configs: &[(&str, Option<&str>)]| {
            let config = |&(name, value): &(&str, Option<&str>)| AlterableConfig {
                name: name.into(),
                value: value.map(Str::from),
            };
            let configs = configs.iter().map(config).collect();
            let resource = AlterConfigsResource { resource_type, resource_name: resource_name.clone(), configs };
            let request = AlterConfigsRequest { resources: vec![resource], validate_only: true };
            let told = wire.call(request, 1).await.responses.remove(0);
            (error(told.error_code), told.error_message.map(String::from).unwrap_or_default())
        };

        let unknown = ("UNKNOWN_TOPIC_OR_PARTITION", format!("The topic '{name}' does not exist."));
        assert_eq!(alter(2, &name, &[("retention.ms", Some("1"))]).await, unknown);
        let bad = "Invalid value x for configuration retention.ms: Not a number of type LONG".to_owned();
        assert_eq!(alter(2, &name, &[("retention.ms", Some("x"))]).await, ("INVALID_CONFIG", bad));
        let nulls = alter(2, &name, &[("a", None), ("b", None)]).await;
        assert_eq!(nulls, ("INVALID_REQUEST", "Null value not supported for : a, b".to_owned()));
        let loggers = alter(8, &Str::from("1"), &[("root", Some("INFO"))]).await;
        assert_eq!(loggers, ("INVALID_REQUEST", "Unknown resource type 8".to_owned()));
    });
}

/// Share groups keep nothing of topics that are not there, and say so of any partition.
#[test]
fn share_offsets_of_topics_that_are_not_there_are_none() {
    run(async |target| {
        target.since(KafkaVersion::V4_4, "DescribeShareGroupOffsets 1").await;
        let (topic, group) = (target.topic(2).await, target.fresh("group"));
        let mut wire = target.coordinator(&group).await;
        let asked = |name: &Str, partitions: &[i32]| DescribeShareGroupOffsetsRequestTopic {
            topic_name: name.clone(),
            partitions: partitions.to_vec(),
        };
        let gone = Str::from("nowhere");
        let topics = Some(vec![asked(&gone, &[3, -1, 3]), asked(&topic.name, &[1, 0, 0]), asked(&gone, &[])]);
        let group = DescribeShareGroupOffsetsRequestGroup { group_id: group.clone(), topics };
        let told =
            wire.call(DescribeShareGroupOffsetsRequest { groups: vec![group.clone()] }, 1).await.groups.remove(0);

        let found: Vec<_> = told
            .topics
            .iter()
            .map(|it| {
                (it.topic_name.clone(), it.partitions.iter().map(|p| (p.partition_index, p.start_offset)).collect())
            })
            .collect();
        let expected: [(Str, Vec<(i32, i64)>); 3] = [
            (topic.name.clone(), vec![(0, -1), (1, -1)]),
            (gone.clone(), vec![(3, -1), (-1, -1), (3, -1)]),
            (gone.clone(), vec![]),
        ];
        assert_eq!((error(told.error_code), found), ("NONE", expected.to_vec()));

        let to = |partition_index| AlterShareGroupOffsetsRequestPartition { partition_index, start_offset: 0 };
        let altered = |partitions| AlterShareGroupOffsetsRequestTopic { topic_name: topic.name.clone(), partitions };
        let nothing = AlterShareGroupOffsetsRequestTopic { topic_name: gone, partitions: vec![] };
        let topics = vec![altered(vec![]), altered(vec![to(0)]), altered(vec![to(1)]), nothing];
        let request = AlterShareGroupOffsetsRequest { group_id: group.group_id, topics };
        let told = wire.call(request, 0).await.responses;
        let found: Vec<Vec<_>> =
            told.iter().map(|it| it.partitions.iter().map(|p| p.partition_index).collect()).collect();
        assert_eq!(found, [[0, 1]], "a topic that comes again is answered once");
    });
}

#[test]
fn token_for_a_name_without_a_type_trips_the_broker() {
    run(async |target| {
        let mut wire = target.connect().await;
        let owner_principal_name = Some("x".into());
        let request =
            CreateDelegationTokenRequest { owner_principal_name, owner_principal_type: None, ..Default::default() };
        assert_eq!(error(wire.call(request, 3).await.error_code), "UNKNOWN_SERVER_ERROR");
    });
}
