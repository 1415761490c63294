//! Answers that are valid and absurd, and errors that no broker gives: what rules can make of any answer. Only the fake
//! has them.

use krafka_fake_broker::{FakeCluster, FakeClusterBuilder};
use krafka_protocol::api::metadata::{MetadataRequest, MetadataRequestTopic, MetadataResponseTopic};
use krafka_protocol::api::offset_for_leader_epoch::{
    OffsetForLeaderEpochRequest, OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use krafka_protocol::{ApiKey, ErrorCode};

use crate::leaders::orders;
use crate::preferred::from_rack;
use crate::records::{batch, fetch_request, only, produce_request, written};
use crate::target::{Topic, Wire, on_fake};

fn three() -> FakeClusterBuilder {
    FakeCluster::builder().nodes(3).topic("orders", 1)
}

async fn metadata(wire: &mut Wire, topic: &Topic) -> MetadataResponseTopic {
    let named = MetadataRequestTopic { name: Some(topic.name.clone()), ..MetadataRequestTopic::default() };
    let request = MetadataRequest { topics: Some(vec![named]), ..MetadataRequest::default() };
    wire.call(request, 12).await.topics.remove(0)
}

/// LE-11, LE-22, LE-23, BY-13: any code, also one that nobody knows, as long as the rule is there; and nothing is done.
#[test]
fn any_code_can_be_answered_for_as_long_as_told() {
    on_fake(three(), async |target, fake| {
        let topic = orders(&target).await;
        let mut wire = target.node(1).await;
        written(&mut wire, &topic, batch(&["a"])).await;
        let codes = [
            ErrorCode::KAFKA_STORAGE_ERROR,
            ErrorCode::REPLICA_NOT_AVAILABLE,
            ErrorCode::TOPIC_AUTHORIZATION_FAILED,
            ErrorCode(9_999),
            ErrorCode(-2),
        ];
        for code in codes {
            let apis = [ApiKey::Produce, ApiKey::Fetch, ApiKey::OffsetForLeaderEpoch];
            let rules = apis.map(|api| fake.when(api).forever().reply_error(code));
            for _ in 0..3 {
                let answer = wire.call(produce_request(&topic, -1, Some(batch(&["b"]))), 9).await;
                assert_eq!(answer.responses[0].partition_responses[0].error_code, code.0);
                assert_eq!(only(wire.call(fetch_request(&topic, 0), 12).await).error_code, code.0);
                let partition = OffsetForLeaderPartition { leader_epoch: 0, ..OffsetForLeaderPartition::default() };
                let asked = OffsetForLeaderTopic { topic: topic.name.clone(), partitions: vec![partition] };
                let request = OffsetForLeaderEpochRequest { replica_id: -1, topics: vec![asked] };
                assert_eq!(wire.call(request, 4).await.topics[0].partitions[0].error_code, code.0);
            }
            for rule in rules {
                assert_eq!(rule.hits(), 3);
                rule.remove();
            }
        }
        assert_eq!(written(&mut wire, &topic, batch(&["b"])).await, 1);
    });
}

/// LE-13, BY-12: metadata without epochs, without a leader, with nodes that are none and epochs that cannot be.
#[test]
fn metadata_can_tell_what_no_broker_tells() {
    on_fake(three(), async |target, fake| {
        let topic = orders(&target).await;
        let mut wire = target.node(1).await;
        for (field, value) in [
            ("leader_epoch", -1),
            ("leader_epoch", i32::MIN),
            ("leader_id", -1),
            ("leader_id", 99),
            ("partition_index", 7),
            ("error_code", 9_999),
        ] {
            let rule = fake.when(ApiKey::Metadata).set(format!("topics.partitions.{field}"), value);
            let partition = metadata(&mut wire, &topic).await.partitions.remove(0);
            let told = match field {
                "leader_epoch" => partition.leader_epoch,
                "leader_id" => partition.leader_id,
                "partition_index" => partition.partition_index,
                _ => i32::from(partition.error_code),
            };
            assert_eq!((told, rule.hits()), (value, 1), "{field}");
        }
    });
}

/// BY-14: null wherever it may be, in an answer that is a success.
#[test]
fn what_may_be_null_can_be() {
    on_fake(three(), async |target, fake| {
        let topic = orders(&target).await;
        let mut wire = target.node(1).await;
        let null = |api: &str, field: &str| {
            let rule =
                format!(r#"{{"when": {{"apis": ["{api}"]}}, "do": {{"set": {{"field": "{field}", "value": null}}}}}}"#);
            fake.install_json(&rule)
        };

        null("Metadata", "topics.name").expect("a topic's name may be null");
        let told = metadata(&mut wire, &topic).await;
        assert_eq!((told.error_code, told.name), (0, None));
        null("Fetch", "responses.partitions.records").expect("records may be null");
        let data = only(wire.call(fetch_request(&topic, 0), 12).await);
        assert_eq!((data.error_code, data.records), (0, None));
        null("Produce", "responses.partition_responses.error_message").expect("words may be null");
        let answer = wire.call(produce_request(&topic, -1, Some(batch(&["a"]))), 9).await;
        assert_eq!(answer.responses[0].partition_responses[0].error_message, None);
    });
}

/// LE-26: a replica that dies is preferred no more, and one whose records are served elsewhere says so.
#[test]
fn replica_that_dies_is_not_preferred() {
    let builder = three().racks(["rack-1", "rack-2", "rack-3"]).rack_aware_replica_selector(true);
    on_fake(builder, async |target, fake| {
        let topic = orders(&target).await;
        let mut wire = target.node(1).await;
        written(&mut wire, &topic, batch(&["a"])).await;
        let preferred = async |wire: &mut Wire| {
            let data = only(wire.call(from_rack("rack-2", &topic, 0), 12).await);
            (ErrorCode(data.error_code), data.preferred_read_replica, data.records.is_some_and(|it| !it.is_empty()))
        };
        assert_eq!(preferred(&mut wire).await, (ErrorCode::NONE, 2, false));

        fake.crash(2);

        assert_eq!(preferred(&mut wire).await, (ErrorCode::NONE, -1, true));
        fake.restart(2);
        assert_eq!(preferred(&mut wire).await, (ErrorCode::NONE, 2, false));
    });
}
