//! Administration beyond topics and configs: pages of partitions, reassignment, elections, log directories, features,
//! controllers.

use krafka_fake_broker::{FakeCluster, KafkaVersion};
use krafka_protocol::api::alter_partition_reassignments::{
    AlterPartitionReassignmentsRequest, ReassignablePartition, ReassignableTopic,
};
use krafka_protocol::api::alter_replica_log_dirs::{
    AlterReplicaLogDir, AlterReplicaLogDirTopic, AlterReplicaLogDirsRequest,
};
use krafka_protocol::api::api_versions::{ApiVersionsRequest, ApiVersionsResponse};
use krafka_protocol::api::describe_log_dirs::{
    DescribableLogDirTopic, DescribeLogDirsRequest, DescribeLogDirsResponse,
};
use krafka_protocol::api::describe_quorum::{DescribeQuorumRequest, DescribeQuorumResponse, PartitionData, TopicData};
use krafka_protocol::api::describe_topic_partitions::{
    Cursor, DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, TopicRequest,
};
use krafka_protocol::api::elect_leaders::{ElectLeadersRequest, TopicPartitions};
use krafka_protocol::api::list_partition_reassignments::ListPartitionReassignmentsRequest;
use krafka_protocol::api::update_features::{FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse};
use krafka_protocol::{AddRaftVoterRequest, ErrorCode, RemoveRaftVoterRequest, Str, UnregisterBrokerRequest, Uuid};

use crate::mortals::{comes, partition, run_on_mortals};
use crate::records::error;
use crate::target::{Target, Topic, Wire, on_fake, run, run_on_three};

async fn pages(
    wire: &mut Wire,
    topics: &[&Str],
    limit: i32,
    cursor: Option<(&Str, i32)>,
) -> DescribeTopicPartitionsResponse {
    let request = DescribeTopicPartitionsRequest {
        topics: topics.iter().map(|name| TopicRequest { name: (*name).clone() }).collect(),
        response_partition_limit: limit,
        cursor: cursor.map(|(name, partition_index)| Cursor { topic_name: name.clone(), partition_index }),
    };
    wire.call(request, 0).await
}

/// A topic and the index of one of its partitions.
type Place = (Str, i32);

/// What a page tells: topic and partition of each, and where the next one begins.
fn told(page: &DescribeTopicPartitionsResponse) -> (Vec<Place>, Option<Place>) {
    let name = |name: &Option<Str>| name.clone().expect("a name");
    let topics = page.topics.iter();
    let partitions = topics.flat_map(|t| t.partitions.iter().map(move |p| (name(&t.name), p.partition_index)));
    let next = page.next_cursor.as_ref().map(|next| (next.topic_name.clone(), next.partition_index));
    (partitions.collect(), next)
}

#[test]
fn partitions_are_told_a_page_at_a_time() {
    run(async |target| {
        let (first, second) = (target.topic(3).await.name, target.topic(2).await.name);
        let mut wire = target.connect().await;
        let at = |topic: &Str, partition| (topic.clone(), partition);

        // In the order of the names, whatever the order of the request.
        let page = pages(&mut wire, &[&second, &first], 2, None).await;
        assert_eq!(told(&page), (vec![at(&first, 0), at(&first, 1)], Some(at(&first, 2))));
        let page = pages(&mut wire, &[&second, &first], 2, Some((&first, 2))).await;
        assert_eq!(told(&page), (vec![at(&first, 2), at(&second, 0)], Some(at(&second, 1))));
        let page = pages(&mut wire, &[&second, &first], 2, Some((&second, 1))).await;
        assert_eq!(told(&page), (vec![at(&second, 1)], None));
        // A limit of none is one of one.
        let page = pages(&mut wire, &[&first], 0, None).await;
        assert_eq!(told(&page), (vec![at(&first, 0)], Some(at(&first, 1))));
        let page = pages(&mut wire, &[&first], 9, Some((&first, 9))).await;
        assert_eq!((told(&page), error(page.topics[0].error_code)), ((vec![], None), "NONE"));

        let partition = &pages(&mut wire, &[&first], 9, None).await.topics[0].partitions[0];
        assert_eq!((partition.error_code, partition.leader_epoch), (0, 0));
        assert_eq!(partition.replica_nodes, partition.isr_nodes);
        assert_eq!((&partition.eligible_leader_replicas, &partition.last_known_elr), (&Some(vec![]), &Some(vec![])));
    });
}

#[test]
fn lost_cursors_and_unknown_topics_have_their_errors() {
    run(async |target| {
        let name = target.topic(1).await.name;
        let (unknown, impossible) = (target.fresh("unknown"), Str::from("a/b"));
        let mut wire = target.connect().await;
        let codes = |page: &DescribeTopicPartitionsResponse| {
            page.topics.iter().map(|topic| error(topic.error_code)).collect::<Vec<_>>()
        };

        let page = pages(&mut wire, &[&unknown, &impossible], 9, None).await;
        assert_eq!(codes(&page), ["INVALID_TOPIC_EXCEPTION", "UNKNOWN_TOPIC_OR_PARTITION"]);
        assert_eq!(page.topics[1].name.as_ref(), Some(&unknown));
        let elsewhere = pages(&mut wire, &[&name], 9, Some((&"zzz".into(), 0))).await;
        assert_eq!(codes(&elsewhere), ["INVALID_REQUEST"]);
        let negative = pages(&mut wire, &[&name], 9, Some((&name, -1))).await;
        assert_eq!(codes(&negative), ["INVALID_REQUEST"]);
        let all = pages(&mut wire, &[], 1, Some((&name, 0))).await;
        assert_eq!(told(&all).0, [(name, 0)]);
    });
}

/// Asks for new replicas of a partition, and returns the error with Kafka's words for it.
pub(crate) async fn reassign(
    wire: &mut Wire,
    topic: &str,
    index: i32,
    replicas: Option<&[i32]>,
) -> (&'static str, String) {
    let partition = ReassignablePartition { partition_index: index, replicas: replicas.map(<[i32]>::to_vec) };
    let topics = vec![ReassignableTopic { name: topic.into(), partitions: vec![partition] }];
    let request = AlterPartitionReassignmentsRequest { topics, ..AlterPartitionReassignmentsRequest::default() };
    let answer = wire.call(request, 0).await;
    assert_eq!((error(answer.error_code), answer.error_message), ("NONE", None));
    let partition = &answer.responses[0].partitions[0];
    (error(partition.error_code), partition.error_message.as_deref().unwrap_or_default().to_owned())
}

/// Waits until a partition has these replicas, and returns its leader and leader epoch.
pub(crate) async fn replicas_are(wire: &mut Wire, topic: &Str, replicas: &[i32]) -> (i32, i32) {
    loop {
        let partition = pages(wire, &[topic], 1, None).await.topics.remove(0).partitions.remove(0);
        if partition.replica_nodes == replicas {
            return (partition.leader_id, partition.leader_epoch);
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

/// LE-28.
#[test]
fn partitions_are_reassigned() {
    run_on_three(async |target| {
        let Topic { name, .. } = target.topic_on(&[1, 2]).await;
        let mut wire = target.node(1).await;

        assert_eq!(reassign(&mut wire, &name, 0, Some(&[3, 2])).await, ("NONE", String::new()));
        assert_eq!(replicas_are(&mut wire, &name, &[3, 2]).await, (3, 1));
        // Whoever leaves the replicas in sync raises the epoch, though the leader stays.
        assert_eq!(reassign(&mut wire, &name, 0, Some(&[3])).await.0, "NONE");
        assert_eq!(replicas_are(&mut wire, &name, &[3]).await, (3, 2));

        let cancelled = reassign(&mut wire, &name, 0, None).await;
        assert_eq!(cancelled, ("NO_REASSIGNMENT_IN_PROGRESS", String::new()));
        let list = wire.call(ListPartitionReassignmentsRequest::default(), 0).await;
        assert_eq!((error(list.error_code), list.error_message), ("NONE", None));
        assert!(!list.topics.iter().any(|topic| topic.name == name));
    });
}

#[test]
fn impossible_reassignments_are_refused() {
    run(async |target| {
        let Topic { name, .. } = target.topic(1).await;
        let nowhere = target.fresh("nowhere");
        let mut wire = target.connect().await;
        let bad = "INVALID_REPLICA_ASSIGNMENT";
        let unknown = "UNKNOWN_TOPIC_OR_PARTITION";

        let cases: [(&Str, i32, &[i32], &str, String); 5] = [
            (&nowhere, 0, &[1], unknown, format!("Unable to find a topic named {nowhere}.")),
            (&name, 9, &[1], unknown, format!("Unable to find partition {name}:9.")),
            (&name, 0, &[], bad, "The manual partition assignment includes an empty replica list.".to_owned()),
            (
                &name,
                0,
                &[99],
                bad,
                "The manual partition assignment includes broker 99, but no such broker is registered.".to_owned(),
            ),
            (
                &name,
                0,
                &[1, 1],
                bad,
                "The manual partition assignment includes the broker 1 more than once.".to_owned(),
            ),
        ];
        for (topic, index, replicas, code, message) in cases {
            assert_eq!(reassign(&mut wire, topic, index, Some(replicas)).await, (code, message));
        }
    });
}

/// KIP-860.
#[test]
fn number_of_replicas_can_be_held() {
    run_on_three(async |target| {
        target.since(KafkaVersion::V4_1, "AlterPartitionReassignments 1").await;
        let Topic { name, .. } = target.topic_on(&[1, 2]).await;
        let mut wire = target.node(1).await;
        let mut reassign = async |replicas: &[i32]| {
            let partition = ReassignablePartition { partition_index: 0, replicas: Some(replicas.to_vec()) };
            let topics = vec![ReassignableTopic { name: name.clone(), partitions: vec![partition] }];
            let allow_replication_factor_change = false;
            let request =
                AlterPartitionReassignmentsRequest { topics, allow_replication_factor_change, timeout_ms: 10_000 };
            let answer = wire.call(request, 1).await.responses.remove(0).partitions.remove(0);
            (error(answer.error_code), answer.error_message.map(String::from).unwrap_or_default())
        };

        let changed = "The replication factor is changed from 2 to 1".to_owned();
        assert_eq!(reassign(&[1]).await, ("INVALID_REPLICATION_FACTOR", changed));
        assert_eq!(reassign(&[2, 1]).await, ("NONE", String::new()));
    });
}

/// Fake only: Kafka moves replicas as fast as it can, and cannot be told to wait.
#[test]
fn held_reassignments_are_listed_and_cancelled() {
    on_fake(FakeCluster::builder().nodes(3), async |target, fake| {
        let Topic { name, .. } = target.topic_on(&[1, 2]).await;
        let mut wire = target.node(1).await;
        fake.hold_reassignments(true);

        assert_eq!(reassign(&mut wire, &name, 0, Some(&[3, 2])).await.0, "NONE");
        let ongoing = wire.call(ListPartitionReassignmentsRequest::default(), 0).await.topics.remove(0);
        let partition = &ongoing.partitions[0];
        assert_eq!((&ongoing.name, &partition.replicas), (&name, &vec![3, 2, 1]));
        assert_eq!((&partition.adding_replicas, &partition.removing_replicas), (&vec![3], &vec![1]));
        assert_eq!(reassign(&mut wire, &name, 0, None).await.0, "NONE");
        assert_eq!(replicas_are(&mut wire, &name, &[1, 2]).await, (1, 0));

        assert_eq!(reassign(&mut wire, &name, 0, Some(&[3, 2])).await.0, "NONE");
        fake.hold_reassignments(false);
        assert_eq!(replicas_are(&mut wire, &name, &[3, 2]).await, (3, 1));
    });
}

/// A reassignment to a node that is down ends when that is up.
#[test]
fn reassignment_waits_for_its_nodes() {
    run_on_mortals(async |target, nodes| {
        let Topic { name, .. } = target.topic_on(&[1]).await;
        let mut wire = target.node(1).await;
        nodes.crash(3).await;

        assert_eq!(reassign(&mut wire, &name, 0, Some(&[3])).await.0, "NONE");
        assert_eq!(replicas_are(&mut wire, &name, &[3, 1]).await.0, 1);
        nodes.restart(3).await;
        assert_eq!(replicas_are(&mut wire, &name, &[3]).await.0, 3);
    });
}

pub(crate) async fn elect(wire: &mut Wire, kind: i8, topic: &Str, partition: i32) -> (&'static str, &'static str) {
    let topic_partitions = Some(vec![TopicPartitions { topic: topic.clone(), partitions: vec![partition] }]);
    let request = ElectLeadersRequest { election_type: kind, topic_partitions, timeout_ms: 10_000 };
    let answer = wire.call(request, 2).await;
    (error(answer.error_code), error(answer.replica_election_results[0].partition_result[0].error_code))
}

#[test]
fn preferred_leader_is_elected() {
    run_on_three(async |target| {
        let Topic { name, .. } = target.topic_on(&[1, 2]).await;
        let mut wire = target.node(1).await;

        assert_eq!(elect(&mut wire, 0, &name, 0).await, ("NONE", "ELECTION_NOT_NEEDED"));
        assert_eq!(elect(&mut wire, 1, &name, 0).await, ("NONE", "ELECTION_NOT_NEEDED"));
        assert_eq!(elect(&mut wire, 0, &name, 9).await, ("NONE", "UNKNOWN_TOPIC_OR_PARTITION"));
        assert_eq!(elect(&mut wire, 2, &name, 0).await, ("INVALID_REQUEST", "INVALID_REQUEST"));
        assert_eq!(reassign(&mut wire, &name, 0, Some(&[2, 1])).await.0, "NONE");
        assert_eq!(replicas_are(&mut wire, &name, &[2, 1]).await, (1, 0));
        assert_eq!(elect(&mut wire, 0, &name, 0).await, ("NONE", "NONE"));
        let mut led = (1, 0);
        for _ in 0..100 {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            led = replicas_are(&mut wire, &name, &[2, 1]).await;
            if led.0 == 2 {
                break;
            }
        }
        assert_eq!(led, (2, 1));

        let all = ElectLeadersRequest { topic_partitions: None, ..ElectLeadersRequest::default() };
        let results = wire.call(all, 2).await.replica_election_results;
        let own = results.iter().find(|result| result.topic == name).expect("every topic is told");
        assert_eq!(own.partition_result, []);
        let odd = ElectLeadersRequest { topic_partitions: None, election_type: 2, ..ElectLeadersRequest::default() };
        let told = wire.call(odd, 2).await;
        assert_eq!((error(told.error_code), told.replica_election_results.len()), ("INVALID_REQUEST", 0));
    });
}

#[test]
fn preferred_leader_that_is_not_in_sync_is_not_available() {
    run_on_mortals(async |target, nodes| {
        let Topic { name, .. } = target.topic_on(&[2, 3]).await;
        let mut wire = target.node(1).await;
        nodes.crash(2).await;
        comes(3, async || partition(&mut wire, &name).await.leader_id).await;

        assert_eq!(elect(&mut wire, 0, &name, 0).await, ("NONE", "PREFERRED_LEADER_NOT_AVAILABLE"));
        assert_eq!(elect(&mut wire, 1, &name, 0).await, ("NONE", "ELECTION_NOT_NEEDED"));
    });
}

async fn log_dirs(wire: &mut Wire, topic: &Str, partitions: &[i32]) -> DescribeLogDirsResponse {
    let topics = Some(vec![DescribableLogDirTopic { topic: topic.clone(), partitions: partitions.to_vec() }]);
    wire.call(DescribeLogDirsRequest { topics }, 4).await
}

#[test]
fn replicas_are_in_log_directories_and_move_between_them() {
    run(async |target| {
        let Topic { name, .. } = target.topic(1).await;
        let mut wire = target.connect().await;
        let described = log_dirs(&mut wire, &name, &[0, 9]).await;

        assert_eq!((error(described.error_code), described.results.len()), ("NONE", 2));
        assert!(described.results.iter().all(|dir| dir.total_bytes > dir.usable_bytes && dir.usable_bytes > 0));
        let (here, there): (Vec<_>, Vec<_>) = described.results.iter().partition(|dir| !dir.topics.is_empty());
        let partition = &here[0].topics[0].partitions[0];
        assert_eq!((partition.partition_index, partition.partition_size), (0, 0));
        assert_eq!((partition.offset_lag, partition.is_future_key), (0, false));

        let mut move_to = async |path: &Str, topic: &Str, partition| {
            let topics = vec![AlterReplicaLogDirTopic { name: topic.clone(), partitions: vec![partition] }];
            let dirs = vec![AlterReplicaLogDir { path: path.clone(), topics }];
            let answer = wire.call(AlterReplicaLogDirsRequest { dirs }, 2).await.results.remove(0);
            error(answer.partitions[0].error_code)
        };
        assert_eq!(move_to(&"/nowhere".into(), &name, 0).await, "LOG_DIR_NOT_FOUND");
        assert_eq!(move_to(&there[0].log_dir, &name, 9).await, "UNKNOWN_TOPIC_OR_PARTITION");
        assert_eq!(move_to(&there[0].log_dir, &target.fresh("nowhere"), 0).await, "UNKNOWN_TOPIC_OR_PARTITION");
        assert_eq!(move_to(&there[0].log_dir, &name, 0).await, "NONE");
        loop {
            let described = log_dirs(&mut wire, &name, &[0]).await;
            let dirs: Vec<_> = described.results.iter().filter(|dir| !dir.topics.is_empty()).collect();
            if dirs.len() == 1 && dirs[0].log_dir == there[0].log_dir {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    });
}

async fn update(wire: &mut Wire, version: i16, updates: &[(&str, i16, i8)]) -> UpdateFeaturesResponse {
    let feature_updates = updates.iter().map(|&(feature, max_version_level, upgrade_type)| FeatureUpdateKey {
        feature: feature.into(),
        max_version_level,
        upgrade_type,
        ..FeatureUpdateKey::default()
    });
    let request = UpdateFeaturesRequest {
        feature_updates: feature_updates.collect(),
        validate_only: true,
        ..UpdateFeaturesRequest::default()
    };
    wire.call(request, version).await
}

#[test]
fn levels_of_features_are_validated() {
    run(async |target| {
        target.since(KafkaVersion::V4_4, "the levels of 4.4").await;
        let mut wire = target.connect().await;
        let fine = update(&mut wire, 1, &[("group.version", 1, 1)]).await;
        assert_eq!((error(fine.error_code), fine.error_message), ("NONE", None));
        let result = &fine.results[0];
        assert_eq!((result.error_code, result.error_message.as_deref()), (0, Some("NONE")));

        let cases = [
            ("no.such.feature", 1, 1, "Local controller 1 does not support this feature."),
            ("no.such.feature", 0, 2, "Feature no.such.feature not found."),
            ("group.version", 9, 1, "Local controller 1 only supports versions 0-1"),
            ("group.version", -1, 1, "A feature version cannot be less than 0."),
            ("group.version", 1, 9, "The controller does not support the given upgrade type."),
            (
                "transaction.version",
                1,
                1,
                "Can't downgrade the version of this feature without setting the upgrade type to either safe or \
                 unsafe downgrade.",
            ),
            ("kraft.version", 0, 2, "Can't downgrade the version of this feature."),
        ];
        for (feature, level, kind, reason) in cases {
            let answer = update(&mut wire, 2, &[("group.version", 1, 1), (feature, level, kind)]).await;
            let expected = format!(
                "The update failed for all features since the following feature had an error: Invalid update version \
                 {level} for feature {feature}. {reason}"
            );
            // Which controller is the active one is another matter.
            let message = answer.error_message.as_deref().unwrap_or_default();
            let message = message.replace("controller 2", "controller 1").replace("controller 3", "controller 1");
            assert_eq!((error(answer.error_code), &*message), ("INVALID_UPDATE_VERSION", &*expected));
        }
        let lowered = update(&mut wire, 2, &[("transaction.version", 1, 2)]).await;
        assert_eq!((error(lowered.error_code), lowered.results.len()), ("NONE", 0));
        let metadata = update(&mut wire, 2, &[("metadata.version", 32, 2)]).await;
        assert_eq!(error(metadata.error_code), "INVALID_UPDATE_VERSION");
    });
}

/// Before Kafka 4 each feature was judged on its own.
///
/// Fake only: it is about 3.9, whose levels a cluster that others use keeps.
#[test]
fn oldest_kafka_judges_features_alone() {
    on_fake(FakeCluster::builder().as_version(KafkaVersion::V3_9), async |target, _| {
        let mut wire = target.connect().await;
        let updates = [("metadata.version", 21, 1), ("no.such.feature", 1, 1)];
        let answer = update(&mut wire, 1, &updates).await;

        assert_eq!((error(answer.error_code), answer.error_message.as_deref()), ("NONE", Some("")));
        let codes: Vec<_> = answer.results.iter().map(|result| error(result.error_code)).collect();
        assert_eq!(codes, ["NONE", "INVALID_UPDATE_VERSION"]);
        assert_eq!(answer.results[0].error_message, None);
    });
}

/// Fake only: a level that goes down is down for all tests.
#[test]
fn level_that_was_changed_is_advertised() {
    on_fake(FakeCluster::builder(), async |target, _| {
        let mut wire = target.connect().await;
        let before = finalized(&target).await;
        let feature_updates = vec![FeatureUpdateKey {
            feature: "eligible.leader.replicas.version".into(),
            max_version_level: 0,
            upgrade_type: 2,
            ..FeatureUpdateKey::default()
        }];
        let request = UpdateFeaturesRequest { feature_updates, ..UpdateFeaturesRequest::default() };
        assert_eq!(error(wire.call(request, 2).await.error_code), "NONE");
        let after = finalized(&target).await;

        assert!(after.finalized_features_epoch > before.finalized_features_epoch);
        assert_eq!(after.finalized_features.len(), before.finalized_features.len() - 1);
    });
}

async fn finalized(target: &Target) -> ApiVersionsResponse {
    let (client_software_name, client_software_version) = ("wire".into(), "1".into());
    let asked = ApiVersionsRequest { client_software_name, client_software_version, ..ApiVersionsRequest::default() };
    target.connect().await.call(asked, 4).await
}

async fn quorum(wire: &mut Wire, topic: &str, partition_index: i32, version: i16) -> DescribeQuorumResponse {
    let partitions = vec![PartitionData { partition_index }];
    let topics = vec![TopicData { topic_name: topic.into(), partitions }];
    wire.call(DescribeQuorumRequest { topics }, version).await
}

#[test]
fn quorum_is_described() {
    run(async |target| {
        let mut wire = target.connect().await;
        for version in 0..=2 {
            let answer = quorum(&mut wire, "__cluster_metadata", 0, version).await;
            let partition = &answer.topics[0].partitions[0];
            assert_eq!((error(answer.error_code), error(partition.error_code)), ("NONE", "NONE"));
            let leader = partition.current_voters.iter().find(|voter| voter.replica_id == partition.leader_id);
            let leader = leader.expect("the leader votes");
            assert!(leader.log_end_offset >= partition.high_watermark && partition.high_watermark > 0);
            assert!(partition.leader_epoch > 0);
            assert_eq!(leader.last_fetch_timestamp > 0, version >= 1);
            assert_eq!(leader.replica_directory_id.is_zero(), version < 2);
            assert_eq!(answer.nodes.is_empty(), version < 2);
        }
        let elsewhere = quorum(&mut wire, "elsewhere", 0, 2).await;
        let partition = &elsewhere.topics[0].partitions[0];
        assert_eq!((error(elsewhere.error_code), elsewhere.nodes.len()), ("NONE", 0));
        assert_eq!(error(partition.error_code), "UNKNOWN_TOPIC_OR_PARTITION");
        let other = quorum(&mut wire, "__cluster_metadata", 1, 2).await;
        assert_eq!(error(other.topics[0].partitions[0].error_code), "UNKNOWN_TOPIC_OR_PARTITION");
    });
}

#[test]
fn unknown_brokers_and_voters_are_refused() {
    run(async |target| {
        target.since(KafkaVersion::V4_1, "cluster ids of voters").await;
        let mut wire = target.connect().await;
        let broker = wire.call(UnregisterBrokerRequest { broker_id: 99 }, 0).await;
        assert_eq!(error(broker.error_code), "BROKER_ID_NOT_REGISTERED");
        assert_eq!(broker.error_message.as_deref(), Some("Broker ID 99 is not currently registered"));

        let directory = Uuid([7; 16]);
        let add = |cluster_id: Option<&str>, voter_id| AddRaftVoterRequest {
            cluster_id: cluster_id.map(Str::from),
            voter_id,
            voter_directory_id: directory,
            timeout_ms: 1_000,
            ..AddRaftVoterRequest::default()
        };
        assert_eq!(error(wire.call(add(Some("wrong"), 9), 0).await.error_code), "INCONSISTENT_CLUSTER_ID");
        assert_eq!(error(wire.call(add(None, -1), 0).await.error_code), "INVALID_REQUEST");
        let nowhere = wire.call(add(None, 9), 0).await;
        assert_eq!(error(nowhere.error_code), "INVALID_REQUEST");
        assert!(nowhere.error_message.is_some_and(|text| text.contains("Endpoints(endpoints={})")));

        let remove = |cluster_id: Option<&str>, voter_id| RemoveRaftVoterRequest {
            cluster_id: cluster_id.map(Str::from),
            voter_id,
            voter_directory_id: directory,
        };
        assert_eq!(error(wire.call(remove(Some("wrong"), 9), 0).await.error_code), "INCONSISTENT_CLUSTER_ID");
        assert_eq!(error(wire.call(remove(None, -1), 0).await.error_code), "INVALID_REQUEST");
        let nobody = wire.call(remove(None, 9), 0).await;
        assert_eq!(ErrorCode(nobody.error_code), ErrorCode::VOTER_NOT_FOUND);
        let text = nobody.error_message.expect("words");
        assert!(text.starts_with("Cannot remove voter ReplicaKey(id=9, directoryId=BwcHBwcHBwcHBwcHBwcHBw)"), "{text}");
    });
}

#[test]
fn broker_that_is_gone_can_be_forgotten() {
    run_on_mortals(async |target, nodes| {
        let Topic { name, .. } = target.topic_on(&[1, 2]).await;
        let mut wire = target.node(1).await;
        nodes.crash(3).await;

        assert_eq!(error(wire.call(UnregisterBrokerRequest { broker_id: 3 }, 0).await.error_code), "NONE");
        let again = wire.call(UnregisterBrokerRequest { broker_id: 3 }, 0).await;
        assert_eq!(error(again.error_code), "BROKER_ID_NOT_REGISTERED");
        assert_eq!(reassign(&mut wire, &name, 0, Some(&[3])).await.0, "INVALID_REPLICA_ASSIGNMENT");
        nodes.restart(3).await;
        assert_eq!(reassign(&mut wire, &name, 0, Some(&[3])).await.0, "NONE");
    });
}

/// Fake only: it takes the vote of a controller that other tests need.
#[test]
fn controller_can_lose_its_vote_and_get_it_back() {
    on_fake(FakeCluster::builder().nodes(3), async |target, fake| {
        let mut wire = target.node(2).await;
        let before = quorum(&mut wire, "__cluster_metadata", 0, 2).await.topics.remove(0).partitions.remove(0);
        let voter_directory_id = before.current_voters[0].replica_directory_id;
        let remove = RemoveRaftVoterRequest { cluster_id: None, voter_id: 1, voter_directory_id };
        assert_eq!(error(wire.call(remove, 0).await.error_code), "NONE");
        let after = quorum(&mut wire, "__cluster_metadata", 0, 2).await.topics.remove(0).partitions.remove(0);

        assert_eq!((before.leader_id, after.leader_id, after.leader_epoch), (1, 2, before.leader_epoch + 1));
        assert_eq!((after.current_voters.len(), after.observers[0].replica_id), (2, 1));
        assert_eq!(fake.controller(), 2);
        let listener = krafka_protocol::api::add_raft_voter::Listener {
            name: "CONTROLLER".into(),
            host: "broker-1".into(),
            port: 9093,
        };
        let add = AddRaftVoterRequest {
            voter_id: 1,
            voter_directory_id,
            listeners: vec![listener],
            cluster_id: None,
            ..AddRaftVoterRequest::default()
        };
        assert_eq!(error(wire.call(add.clone(), 0).await.error_code), "NONE");
        assert_eq!(error(wire.call(add, 0).await.error_code), "DUPLICATE_VOTER");
    });
}
