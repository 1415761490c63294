//! Followers on the wire, on a cluster of three nodes: what they refuse, what they serve, and whom they name.

use krafka_protocol::ApiKey;
use krafka_protocol::api::fetch::FetchRequest;
use krafka_protocol::api::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use krafka_protocol::api::offset_for_leader_epoch::{
    OffsetForLeaderEpochRequest, OffsetForLeaderPartition, OffsetForLeaderTopic,
};

use crate::records::{base_offsets, batch, error, fetch_request, only, produce_request, written};
use crate::target::{Target, Topic, run_on_three};

/// A topic that node 1 leads and node 2 follows, with one record in it.
async fn followed(target: &Target) -> Topic {
    let topic = target.topic_on(&[1, 2]).await;
    written(&mut target.node(1).await, &topic, batch(&["a"])).await;
    topic
}

/// LE-01, KIP-951.
#[test]
fn follower_refuses_records_and_names_the_leader_from_version_10_on() {
    run_on_three(async |target| {
        let topic = followed(&target).await;
        for node in [2, 3] {
            let mut wire = target.node(node).await;
            for version in target.spoken(ApiKey::Produce, 8..=13).await {
                let answer = wire.call(produce_request(&topic, -1, Some(batch(&["b"]))), version).await;
                let refused = &answer.responses[0].partition_responses[0];
                let named: Vec<_> = answer.node_endpoints.iter().map(|endpoint| endpoint.node_id).collect();

                assert_eq!(error(refused.error_code), "NOT_LEADER_OR_FOLLOWER", "node {node}");
                let hint = (refused.current_leader.leader_id, refused.current_leader.leader_epoch);
                let expected = if version >= 10 { ((1, 0), vec![1]) } else { ((-1, -1), vec![]) };
                assert_eq!((hint, named), expected, "version {version}");
            }
        }
    });
}

/// LE-05, KIP-392.
#[test]
fn follower_serves_consumers_that_say_where_they_are() {
    run_on_three(async |target| {
        let topic = followed(&target).await;
        let mut wire = target.node(2).await;
        let old = only(wire.call(fetch_request(&topic, 0), 10).await);
        assert_eq!(error(old.error_code), "NOT_LEADER_OR_FOLLOWER");

        // A real follower takes a moment to have what the leader has.
        let patient = FetchRequest { max_wait_ms: 10_000, ..fetch_request(&topic, 0) };
        assert_eq!(base_offsets(&only(wire.call(patient, 11).await)), [0]);
    });
}

#[test]
fn node_without_a_replica_refuses_and_names_the_leader_from_version_16_on() {
    run_on_three(async |target| {
        let topic = followed(&target).await;
        let mut wire = target.node(3).await;
        for version in [4, 11, 12, 13, 15, 16, 17] {
            let answer = wire.call(fetch_request(&topic, 0), version).await;
            let named: Vec<_> = answer.node_endpoints.iter().map(|endpoint| endpoint.node_id).collect();
            let data = only(answer);

            assert_eq!(error(data.error_code), "NOT_LEADER_OR_FOLLOWER", "version {version}");
            let hint = (data.current_leader.leader_id, data.current_leader.leader_epoch);
            assert_eq!((hint, named), if version >= 16 { ((1, 0), vec![1]) } else { ((-1, -1), vec![]) });
        }
    });
}

#[test]
fn only_the_leader_tells_offsets_and_epochs() {
    run_on_three(async |target| {
        let topic = followed(&target).await;
        let mut wire = target.node(2).await;
        let partition = ListOffsetsPartition { timestamp: -1, ..ListOffsetsPartition::default() };
        let asked = ListOffsetsTopic { name: topic.name.clone(), partitions: vec![partition] };
        let offsets = ListOffsetsRequest { replica_id: -1, topics: vec![asked], ..ListOffsetsRequest::default() };
        let partition = OffsetForLeaderPartition { current_leader_epoch: 0, ..OffsetForLeaderPartition::default() };
        let asked = OffsetForLeaderTopic { topic: topic.name.clone(), partitions: vec![partition] };
        let epochs = OffsetForLeaderEpochRequest { replica_id: -1, topics: vec![asked] };

        let answer = wire.call(offsets, 7).await.topics.remove(0).partitions.remove(0);
        assert_eq!((error(answer.error_code), answer.offset), ("NOT_LEADER_OR_FOLLOWER", -1));
        let answer = wire.call(epochs, 4).await.topics.remove(0).partitions.remove(0);
        assert_eq!((error(answer.error_code), answer.end_offset), ("NOT_LEADER_OR_FOLLOWER", -1));
    });
}
