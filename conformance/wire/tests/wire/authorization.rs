//! What somebody may do whom access rules allow this and that: who asks is alice, to whom nothing is allowed at first.

use krafka_fake_broker::KafkaVersion;
use krafka_protocol::api::create_acls::AclCreation;
use krafka_protocol::api::create_topics::{CreatableTopic, CreateTopicsRequest};
use krafka_protocol::api::delete_topics::{DeleteTopicState, DeleteTopicsRequest};
use krafka_protocol::api::fetch::{FetchPartition, FetchRequest, FetchTopic};
use krafka_protocol::api::find_coordinator::FindCoordinatorRequest;
use krafka_protocol::api::init_producer_id::InitProducerIdRequest;
use krafka_protocol::api::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use krafka_protocol::api::metadata::{MetadataRequest, MetadataRequestTopic, MetadataResponseTopic};
use krafka_protocol::api::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use krafka_protocol::api::offset_fetch::{OffsetFetchRequest, OffsetFetchRequestGroup};
use krafka_protocol::api::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use krafka_protocol::{DescribeClusterRequest, ErrorCode, HeartbeatRequest, Str};

use crate::acls::{
    ALL, ALTER, CREATE, DELETE, DENY, DESCRIBE, GROUP, PREFIXED, READ, TOPIC, TRANSACTIONAL_ID, WRITE, allow, create,
};
use crate::records::batch;
use crate::secured::{Secured, run};
use crate::target::{Topic, Wire};

const TOPIC_REFUSED: ErrorCode = ErrorCode::TOPIC_AUTHORIZATION_FAILED;

/// Gives alice what she shall have.
async fn grant(secured: &Secured, rules: Vec<AclCreation>) {
    create(&mut secured.login("admin").await, rules).await;
}

async fn produce(wire: &mut Wire, topic: &str) -> ErrorCode {
    let data = PartitionProduceData { index: 0, records: Some(batch(&["value"])) };
    let request = ProduceRequest {
        acks: -1,
        timeout_ms: 5_000,
        topic_data: vec![TopicProduceData { name: topic.into(), partition_data: vec![data], ..Default::default() }],
        ..ProduceRequest::default()
    };
    ErrorCode(wire.call(request, 9).await.responses[0].partition_responses[0].error_code)
}

async fn fetch(wire: &mut Wire, topic: &str) -> ErrorCode {
    let partition = FetchPartition { partition_max_bytes: 1024, ..FetchPartition::default() };
    let request = FetchRequest {
        max_bytes: 1024,
        topics: vec![FetchTopic { topic: topic.into(), partitions: vec![partition], ..FetchTopic::default() }],
        ..FetchRequest::default()
    };
    ErrorCode(wire.call(request, 12).await.responses[0].partitions[0].error_code)
}

async fn list_offsets(wire: &mut Wire, topic: &str) -> ErrorCode {
    let ask = ListOffsetsPartition { timestamp: -1, ..ListOffsetsPartition::default() };
    let topic = ListOffsetsTopic { name: topic.into(), partitions: vec![ask] };
    let request = ListOffsetsRequest { replica_id: -1, topics: vec![topic], ..ListOffsetsRequest::default() };
    ErrorCode(wire.call(request, 7).await.topics[0].partitions[0].error_code)
}

async fn metadata(wire: &mut Wire, topic: MetadataRequestTopic) -> MetadataResponseTopic {
    let request = MetadataRequest { topics: Some(vec![topic]), ..MetadataRequest::default() };
    wire.call(request, 12).await.topics.remove(0)
}

fn named(name: &str) -> MetadataRequestTopic {
    MetadataRequestTopic { name: Some(name.into()), ..MetadataRequestTopic::default() }
}

/// What alice is told when she uses a topic in every way.
async fn uses(wire: &mut Wire, topic: &Topic) -> [ErrorCode; 4] {
    let described = ErrorCode(metadata(wire, named(&topic.name)).await.error_code);
    [produce(wire, &topic.name).await, fetch(wire, &topic.name).await, list_offsets(wire, &topic.name).await, described]
}

#[test]
fn topics_are_for_those_who_may_use_them() {
    run(async |secured| {
        let no = TOPIC_REFUSED;
        let yes = ErrorCode::NONE;
        let table = [
            (vec![], [no, no, no, no]),
            (vec![DESCRIBE], [no, no, yes, yes]),
            (vec![READ], [no, yes, yes, yes]),
            (vec![WRITE], [yes, no, yes, yes]),
            (vec![DELETE], [no, no, yes, yes]),
            (vec![ALTER], [no, no, yes, yes]),
            (vec![CREATE], [no, no, no, no]),
            (vec![ALL], [yes, yes, yes, yes]),
        ];
        let mut alice = secured.login("alice").await;

        for (operations, told) in table {
            let topic = secured.target.topic(1).await;
            grant(&secured, operations.iter().map(|operation| allow(TOPIC, &topic.name, *operation)).collect()).await;

            assert_eq!(uses(&mut alice, &topic).await, told, "{operations:?}");
        }
    });
}

#[test]
fn refusals_and_prefixes_and_hosts_count() {
    run(async |secured| {
        let mut alice = secured.login("alice").await;
        let topic = secured.target.topic(1).await;
        let beginning = Str::from(&topic.name[..topic.name.len() - 1]);
        let prefixed = AclCreation { resource_pattern_type: PREFIXED, ..allow(TOPIC, &beginning, ALL) };
        let elsewhere =
            AclCreation { host: "10.1.2.3".into(), permission_type: DENY, ..allow(TOPIC, &topic.name, ALL) };
        let for_bob = AclCreation { principal: "User:bob".into(), ..elsewhere.clone() };

        grant(&secured, vec![prefixed, elsewhere, for_bob]).await;
        assert_eq!(uses(&mut alice, &topic).await, [ErrorCode::NONE; 4]);

        grant(&secured, vec![AclCreation { permission_type: DENY, ..allow(TOPIC, &topic.name, READ) }]).await;
        let (no, yes) = (TOPIC_REFUSED, ErrorCode::NONE);
        assert_eq!(uses(&mut alice, &topic).await, [yes, no, yes, yes]);

        let everyone =
            AclCreation { principal: "User:*".into(), permission_type: DENY, ..allow(TOPIC, &topic.name, DESCRIBE) };
        grant(&secured, vec![everyone]).await;
        assert_eq!(uses(&mut alice, &topic).await, [yes, no, no, no]);
    });
}

#[test]
fn ranges_of_hosts_count() {
    run(async |secured| {
        secured.target.since(KafkaVersion::V4_4, "ranges of hosts (KIP-1276)").await;
        let mut alice = secured.login("alice").await;
        let topic = secured.target.topic(1).await;
        let deny = |host: &'static str, operation| AclCreation {
            host: host.into(),
            permission_type: DENY,
            ..allow(TOPIC, &topic.name, operation)
        };
        let rules = vec![allow(TOPIC, &topic.name, ALL), deny("127.0.0.0/8", WRITE), deny("10.0.0.0/8", READ)];

        grant(&secured, rules).await;

        assert_eq!(produce(&mut alice, &topic.name).await, TOPIC_REFUSED);
        assert_eq!(fetch(&mut alice, &topic.name).await, ErrorCode::NONE);
    });
}

#[test]
fn topics_one_may_not_see_are_as_those_that_are_not_there() {
    run(async |secured| {
        let mut alice = secured.login("alice").await;
        let topic = secured.target.topic(1).await;
        let missing = secured.target.fresh("missing");

        for name in [&topic.name, &missing] {
            let told = metadata(&mut alice, named(name)).await;
            assert_eq!((ErrorCode(told.error_code), told.name.as_ref()), (TOPIC_REFUSED, Some(name)));
            assert!(told.topic_id.is_zero() && told.partitions.is_empty());
            assert_eq!(produce(&mut alice, name).await, TOPIC_REFUSED);
            assert_eq!(fetch(&mut alice, name).await, TOPIC_REFUSED);
        }
        let by_id = MetadataRequestTopic { topic_id: topic.id, name: None };
        let told = metadata(&mut alice, by_id).await;
        assert_eq!((ErrorCode(told.error_code), told.name, told.topic_id), (TOPIC_REFUSED, None, topic.id));
        let all = alice.call(MetadataRequest { topics: None, ..MetadataRequest::default() }, 12).await;
        assert!(all.topics.iter().all(|other| other.name.as_ref() != Some(&topic.name)));

        grant(&secured, vec![allow(TOPIC, &missing, DESCRIBE)]).await;
        let told = metadata(&mut alice, named(&missing)).await;
        assert_eq!(ErrorCode(told.error_code), ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    });
}

/// Who asks for all offsets of a group is told of the topics that it may see, as if there were no others.
#[test]
fn offsets_of_topics_one_may_not_see_are_not_told() {
    run(async |secured| {
        let mut alice = secured.login("alice").await;
        let (seen, hidden) = (secured.target.topic(1).await, secured.target.topic(1).await);
        let group = secured.target.fresh("group");
        let granted = [(GROUP, &group, READ), (TOPIC, &seen.name, READ)];
        grant(&secured, granted.map(|(kind, name, operation)| allow(kind, name, operation)).to_vec()).await;
        let mut wire = secured.target.coordinator(&group).await;
        let partitions = vec![OffsetCommitRequestPartition { committed_offset: 1, ..Default::default() }];
        let topics = [&seen, &hidden].map(|topic| OffsetCommitRequestTopic {
            name: topic.name.clone(),
            partitions: partitions.clone(),
            ..Default::default()
        });
        let commit = OffsetCommitRequest {
            group_id: group.clone(),
            generation_id_or_member_epoch: -1,
            topics: topics.to_vec(),
            ..OffsetCommitRequest::default()
        };
        let told = wire.call(commit, 8).await.topics;
        assert!(told.iter().all(|topic| topic.partitions[0].error_code == 0), "{told:?}");

        for version in [2, 7] {
            let asked = OffsetFetchRequest { group_id: group.clone(), topics: None, ..Default::default() };
            let told = alice.call(asked, version).await;
            let names: Vec<_> = told.topics.iter().map(|topic| &topic.name).collect();
            assert_eq!((told.error_code, names), (0, vec![&seen.name]), "version {version}");
        }
        let asked = OffsetFetchRequestGroup { group_id: group.clone(), topics: None, ..Default::default() };
        let told =
            alice.call(OffsetFetchRequest { groups: vec![asked], ..Default::default() }, 8).await.groups.remove(0);
        let names: Vec<_> = told.topics.iter().map(|topic| &topic.name).collect();
        assert_eq!((told.error_code, names), (0, vec![&seen.name]));
    });
}

#[test]
fn groups_and_transactional_ids_have_owners() {
    run(async |secured| {
        let mut alice = secured.login("alice").await;
        let (group, other) = (secured.target.fresh("group"), secured.target.fresh("group"));
        grant(&secured, vec![allow(GROUP, &group, READ), allow(TRANSACTIONAL_ID, &group, WRITE)]).await;
        let find = |key_type| FindCoordinatorRequest {
            key_type,
            coordinator_keys: vec![group.clone(), other.clone()],
            ..FindCoordinatorRequest::default()
        };

        let groups = alice.call(find(0), 4).await.coordinators;
        let transactions = alice.call(find(1), 4).await.coordinators;
        let beat = |group: &Str| HeartbeatRequest { group_id: group.clone(), ..HeartbeatRequest::default() };
        let asked = OffsetFetchRequestGroup { group_id: other.clone(), ..OffsetFetchRequestGroup::default() };
        let offsets = alice.call(OffsetFetchRequest { groups: vec![asked], ..Default::default() }, 8).await.groups;
        let init = InitProducerIdRequest {
            transactional_id: Some(other.clone()),
            transaction_timeout_ms: 60_000,
            producer_id: -1,
            producer_epoch: -1,
            ..InitProducerIdRequest::default()
        };

        assert_ne!(ErrorCode(groups[0].error_code), ErrorCode::GROUP_AUTHORIZATION_FAILED);
        assert_eq!(ErrorCode(groups[1].error_code), ErrorCode::GROUP_AUTHORIZATION_FAILED);
        let refused = ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED;
        assert_ne!(ErrorCode(transactions[0].error_code), refused);
        assert_eq!(ErrorCode(transactions[1].error_code), refused);
        let told = ErrorCode(alice.call(beat(&other), 4).await.error_code);
        assert_eq!(told, ErrorCode::GROUP_AUTHORIZATION_FAILED);
        assert_ne!(ErrorCode(alice.call(beat(&group), 4).await.error_code), ErrorCode::GROUP_AUTHORIZATION_FAILED);
        assert_eq!(ErrorCode(offsets[0].error_code), ErrorCode::GROUP_AUTHORIZATION_FAILED);
        assert_eq!(ErrorCode(alice.call(init, 4).await.error_code), refused);
    });
}

#[test]
fn who_may_write_anywhere_may_write_idempotently() {
    run(async |secured| {
        let mut alice = secured.login("alice").await;
        let init = InitProducerIdRequest {
            transactional_id: None,
            producer_id: -1,
            producer_epoch: -1,
            ..InitProducerIdRequest::default()
        };
        let mut bob = secured.login("bob").await;
        let told = ErrorCode(bob.call(init.clone(), 4).await.error_code);
        assert_eq!(told, ErrorCode::CLUSTER_AUTHORIZATION_FAILED);

        grant(&secured, vec![allow(TOPIC, &secured.target.fresh("topic"), WRITE)]).await;

        loop {
            match ErrorCode(alice.call(init.clone(), 4).await.error_code) {
                ErrorCode::COORDINATOR_LOAD_IN_PROGRESS => {}
                told => return assert_eq!(told, ErrorCode::NONE),
            }
        }
    });
}

#[test]
fn topics_are_made_and_unmade_by_who_may() {
    run(async |secured| {
        let mut alice = secured.login("alice").await;
        let (mine, other) = (secured.target.fresh("topic"), secured.target.fresh("topic"));
        let topic = |name: &Str| CreatableTopic {
            name: name.clone(),
            num_partitions: 1,
            replication_factor: 1,
            ..CreatableTopic::default()
        };
        let make = CreateTopicsRequest {
            topics: vec![topic(&mine), topic(&other)],
            timeout_ms: 5_000,
            ..CreateTopicsRequest::default()
        };
        grant(&secured, vec![allow(TOPIC, &mine, CREATE)]).await;

        let made = alice.call(make, 7).await.topics;
        let told: Vec<_> =
            made.iter().map(|t| (&t.name, ErrorCode(t.error_code), t.error_message.as_deref())).collect();
        let words = Some("Authorization failed.");
        assert_eq!(told, [(&mine, ErrorCode::NONE, None), (&other, TOPIC_REFUSED, words)]);
        assert!(!made[0].topic_id.is_zero() && made[1].topic_id.is_zero());
        // To see what it is like is another permission.
        assert_eq!(ErrorCode(made[0].topic_config_error_code), TOPIC_REFUSED);
        assert_eq!((made[0].num_partitions, made[0].replication_factor), (-1, -1));
        assert!(made[0].configs.as_ref().is_some_and(Vec::is_empty));

        let topic = |name: &Str| DeleteTopicState { name: Some(name.clone()), ..DeleteTopicState::default() };
        let unmake = DeleteTopicsRequest { topics: vec![topic(&mine)], timeout_ms: 5_000, ..Default::default() };
        let unmade = alice.call(unmake.clone(), 6).await.responses.remove(0);
        assert_eq!((ErrorCode(unmade.error_code), unmade.topic_id.is_zero()), (TOPIC_REFUSED, true));
        // By its id it has a name for those who may see it.
        let by_id = DeleteTopicState { topic_id: made[0].topic_id, ..DeleteTopicState::default() };
        let by_id = DeleteTopicsRequest { topics: vec![by_id], timeout_ms: 5_000, ..Default::default() };
        let unmade = alice.call(by_id.clone(), 6).await.responses.remove(0);
        assert_eq!((ErrorCode(unmade.error_code), unmade.name), (TOPIC_REFUSED, None));
        grant(&secured, vec![allow(TOPIC, &mine, DESCRIBE)]).await;
        let unmade = alice.call(by_id, 6).await.responses.remove(0);
        assert_eq!((ErrorCode(unmade.error_code), unmade.name), (TOPIC_REFUSED, Some(mine.clone())));
        grant(&secured, vec![allow(TOPIC, &mine, DELETE)]).await;
        assert_eq!(ErrorCode(alice.call(unmake, 6).await.responses[0].error_code), ErrorCode::NONE);
    });
}

#[test]
fn answers_tell_what_one_may_do() {
    run(async |secured| {
        let mut alice = secured.login("alice").await;
        let topic = secured.target.topic(1).await;
        grant(&secured, vec![allow(TOPIC, &topic.name, READ), allow(TOPIC, &topic.name, CREATE)]).await;
        let ask = |name: &Str| MetadataRequest {
            topics: Some(vec![named(name)]),
            include_topic_authorized_operations: true,
            ..MetadataRequest::default()
        };
        let cluster = DescribeClusterRequest {
            endpoint_type: 1,
            include_cluster_authorized_operations: true,
            ..DescribeClusterRequest::default()
        };

        let told = alice.call(ask(&topic.name), 12).await.topics.remove(0);
        assert_eq!(told.topic_authorized_operations, 1 << READ | 1 << CREATE | 1 << DESCRIBE);
        assert_eq!(alice.call(cluster.clone(), 1).await.cluster_authorized_operations, 0);

        let mut admin = secured.login("admin").await;
        let told = admin.call(ask(&topic.name), 12).await.topics.remove(0);
        assert_eq!(told.topic_authorized_operations, 0b1101_1111_1000);
        assert_eq!(admin.call(cluster, 1).await.cluster_authorized_operations, 0b1_1111_1010_0000);
    });
}
