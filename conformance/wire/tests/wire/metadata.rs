//! Metadata and DescribeCluster on the wire.

use std::collections::BTreeMap;

use krafka_fake_broker::KafkaVersion;
use krafka_protocol::api::describe_cluster::DescribeClusterRequest;
use krafka_protocol::api::metadata::{MetadataRequest, MetadataRequestTopic};
use krafka_protocol::{ApiKey, ErrorCode, Str, Uuid};

use crate::records::error;
use crate::target::{Topic, run};

/// Asks for topics by name, and creates none.
fn named(names: &[&Str]) -> MetadataRequest {
    let topic = |name: &&Str| MetadataRequestTopic { name: Some((*name).clone()), ..MetadataRequestTopic::default() };
    MetadataRequest {
        topics: Some(names.iter().map(topic).collect()),
        allow_auto_topic_creation: false,
        ..MetadataRequest::default()
    }
}

fn by_id(topic_id: Uuid) -> MetadataRequest {
    let topic = MetadataRequestTopic { topic_id, name: None };
    MetadataRequest { topics: Some(vec![topic]), allow_auto_topic_creation: false, ..MetadataRequest::default() }
}

#[test]
fn every_version_tells_the_leader() {
    run(async |target| {
        let Topic { name, id } = target.topic(2).await;
        let mut wire = target.connect().await;
        for version in target.spoken(ApiKey::Metadata, 1..=13).await {
            let asked = MetadataRequest { allow_auto_topic_creation: true, ..named(&[&name]) };
            let answer = wire.call(asked, version).await;

            let leader = answer.brokers[0].node_id;
            let topic = &answer.topics[0];
            assert_eq!(
                (error(topic.error_code), topic.name.as_ref(), topic.partitions.len()),
                ("NONE", Some(&name), 2)
            );
            assert_eq!(topic.topic_id, if version >= 10 { id } else { Uuid::ZERO });
            for partition in &topic.partitions {
                assert!(answer.brokers.iter().any(|broker| broker.node_id == partition.leader_id), "{leader}");
                assert_eq!(partition.leader_epoch, if version >= 7 { 0 } else { -1 });
                assert_eq!((partition.replica_nodes.len(), partition.offline_replicas.len()), (1, 0));
            }
        }
    });
}

#[test]
fn no_list_means_all_topics_and_an_empty_one_means_none() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        let all = wire.call(MetadataRequest { topics: None, ..MetadataRequest::default() }, 12).await;
        let none = wire.call(named(&[]), 12).await;

        assert!(all.topics.iter().any(|found| found.name.as_ref() == Some(&topic.name)));
        assert_eq!(none.topics.len(), 0);
        assert_eq!(none.brokers, all.brokers);
        assert!(all.cluster_id.is_some_and(|id| id.len() == 22));
    });
}

#[test]
fn unknown_and_impossible_topics_have_their_own_errors() {
    run(async |target| {
        let mut wire = target.connect().await;
        let (unknown, impossible) = (target.fresh("unknown"), Str::from("no/topic"));
        let mut topics = wire.call(named(&[&unknown, &impossible]), 12).await.topics;
        topics.sort_by_key(|topic| topic.error_code);

        assert_eq!(
            (error(topics[0].error_code), topics[0].name.as_ref()),
            ("UNKNOWN_TOPIC_OR_PARTITION", Some(&unknown))
        );
        assert_eq!(
            (error(topics[1].error_code), topics[1].name.as_ref()),
            ("INVALID_TOPIC_EXCEPTION", Some(&impossible))
        );
    });
}

#[test]
fn topics_are_found_by_id_from_version_12_on() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        let found = wire.call(by_id(topic.id), 12).await.topics.remove(0);
        let missing = wire.call(by_id(Uuid([9; 16])), 12).await.topics.remove(0);

        assert_eq!((error(found.error_code), found.name), ("NONE", Some(topic.name)));
        assert_eq!((error(missing.error_code), missing.name), ("UNKNOWN_TOPIC_ID", None));
        assert_eq!(missing.topic_id, Uuid([9; 16]));
    });
}

/// Without an authorizer everybody may do everything.
#[test]
fn authorized_operations_are_told_when_asked_for() {
    run(async |target| {
        let Topic { name, .. } = target.topic(1).await;
        let mut wire = target.connect().await;
        let silent = wire.call(named(&[&name]), 10).await;
        let asked = MetadataRequest {
            include_cluster_authorized_operations: true,
            include_topic_authorized_operations: true,
            ..named(&[&name])
        };
        let told = wire.call(asked, 10).await;

        assert_eq!(
            (silent.cluster_authorized_operations, silent.topics[0].topic_authorized_operations),
            (i32::MIN, i32::MIN)
        );
        assert_eq!((told.cluster_authorized_operations, told.topics[0].topic_authorized_operations), (8096, 3576));
    });
}

/// What one might do with a topic that is not there is told as well, though not of an id that says no name.
#[test]
fn authorized_operations_are_told_of_topics_that_are_not_there() {
    run(async |target| {
        let (unknown, illegal) = (target.fresh("unknown"), Str::from("a b"));
        let mut wire = target.connect().await;
        let ask = |request| MetadataRequest { include_topic_authorized_operations: true, ..request };

        let by_name = wire.call(ask(named(&[&unknown, &illegal])), 12).await;
        let by_id = wire.call(ask(by_id(Uuid([7; 16]))), 12).await;

        let told = by_name.topics.iter().chain(&by_id.topics);
        let told: BTreeMap<_, _> =
            told.map(|topic| (error(topic.error_code), topic.topic_authorized_operations)).collect();
        let expected =
            [("UNKNOWN_TOPIC_OR_PARTITION", 3576), ("INVALID_TOPIC_EXCEPTION", 3576), ("UNKNOWN_TOPIC_ID", i32::MIN)];
        assert_eq!(told, expected.into());
    });
}

#[test]
fn cluster_is_described() {
    run(async |target| {
        target.since(KafkaVersion::V4_0, "DescribeCluster 2").await;
        let mut wire = target.connect().await;
        let metadata = wire.call(named(&[]), 12).await;
        let asked =
            DescribeClusterRequest { include_cluster_authorized_operations: true, ..DescribeClusterRequest::default() };
        let answer = wire.call(asked, 2).await;
        let wrong =
            wire.call(DescribeClusterRequest { endpoint_type: 2, ..DescribeClusterRequest::default() }, 2).await;
        let unknown =
            wire.call(DescribeClusterRequest { endpoint_type: 9, ..DescribeClusterRequest::default() }, 2).await;

        assert_eq!((error(answer.error_code), Some(answer.cluster_id)), ("NONE", metadata.cluster_id));
        assert_eq!(answer.brokers.len(), metadata.brokers.len());
        assert_eq!((answer.endpoint_type, answer.cluster_authorized_operations), (1, 8096));
        assert_eq!(error(wrong.error_code), "MISMATCHED_ENDPOINT_TYPE");
        assert_eq!(error(unknown.error_code), "UNSUPPORTED_ENDPOINT_TYPE");
    });
}

/// Ids came in version 12: what uses them before is refused as a whole, and nothing is told of the cluster.
#[test]
fn ids_before_their_time_are_refused() {
    run(async |target| {
        let mut wire = target.connect().await;
        let topic =
            |id: u8, name: Option<&str>| MetadataRequestTopic { topic_id: Uuid([id; 16]), name: name.map(Str::from) };
        for version in [10, 11] {
            for topics in [vec![topic(1, Some("q"))], vec![topic(1, None)], vec![topic(0, None), topic(0, Some("w"))]] {
                let asked: Vec<_> =
                    topics.iter().map(|topic| (topic.topic_id, topic.name.clone().unwrap_or_default())).collect();
                let request = MetadataRequest { topics: Some(topics), ..MetadataRequest::default() };

                let told = wire.call(request, version).await;

                assert_eq!((told.brokers.len(), told.cluster_id, told.controller_id), (0, None, -1));
                assert!(told.topics.iter().all(|topic| ErrorCode(topic.error_code) == ErrorCode::INVALID_REQUEST));
                let told: Vec<_> =
                    told.topics.into_iter().map(|topic| (topic.topic_id, topic.name.unwrap_or_default())).collect();
                assert_eq!(told, asked, "version {version}");
            }
        }
    });
}
