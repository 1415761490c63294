//! Followers that lag, on a fake of three nodes: what they hold back, what they serve, and what is lost with them.

use std::time::Duration;

use krafka_protocol::api::delete_records::{DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic};
use krafka_protocol::api::fetch::FetchRequest;
use krafka_protocol::api::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use krafka_protocol::api::list_partition_reassignments::ListPartitionReassignmentsRequest;
use krafka_protocol::api::offset_for_leader_epoch::{
    OffsetForLeaderEpochRequest, OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use krafka_protocol::api::produce::{PartitionProduceResponse, ProduceRequest};

use crate::admin::{reassign, replicas_are};
use crate::leaders::{orders, three};
use crate::records::{base_offsets, batch, error, fetch_request, only, produce_request, written};
use crate::target::{Topic, Wire, on_fake};

fn answer(response: krafka_protocol::ProduceResponse) -> PartitionProduceResponse {
    response.responses.into_iter().next().expect("a topic").partition_responses.remove(0)
}

/// A produce with `acks=1`: the follower that lags holds it back no more than Kafka's own would.
async fn written_by_the_leader(wire: &mut Wire, topic: &Topic, values: &[&str]) -> i64 {
    let answer = answer(wire.call(produce_request(topic, 1, Some(batch(values))), 9).await);
    assert_eq!(error(answer.error_code), "NONE");
    answer.base_offset
}

#[test]
fn high_watermark_waits_for_all_in_sync() {
    on_fake(three(), async |target, fake| {
        let topic = orders(&target).await;
        let mut wire = target.node(1).await;
        written(&mut wire, &topic, batch(&["a"])).await;
        fake.lag(3, "orders", 0);
        written_by_the_leader(&mut wire, &topic, &["b"]).await;

        let data = only(wire.call(fetch_request(&topic, 0), 12).await);
        assert_eq!((base_offsets(&data), data.high_watermark, data.last_stable_offset), (vec![0], 1, 1));
        fake.catch_up(3, "orders", 0);
        let data = only(wire.call(fetch_request(&topic, 0), 12).await);
        assert_eq!((base_offsets(&data), data.high_watermark), (vec![0, 1], 2));
    });
}

/// LE-28: a partition is not left to a replica that lacks what is committed. Found by the laws.
#[test]
fn reassignment_waits_for_who_is_to_stay() {
    on_fake(three(), async |target, fake| {
        let topic = orders(&target).await;
        let mut wire = target.node(1).await;
        fake.lag(3, "orders", 0);
        written_by_the_leader(&mut wire, &topic, &["a"]).await;
        tokio::time::sleep(Duration::from_secs(40)).await;

        assert_eq!(reassign(&mut wire, "orders", 0, Some(&[3])).await.0, "NONE");
        assert_eq!(fake.leader("orders", 0), Some(1), "who stays is out of sync");
        let ongoing = wire.call(ListPartitionReassignmentsRequest::default(), 0).await.topics.remove(0);
        assert_eq!(ongoing.partitions[0].removing_replicas, [1, 2]);

        fake.catch_up(3, "orders", 0);

        assert_eq!(replicas_are(&mut wire, &topic.name, &[3]).await.0, 3);
        let mut wire = target.node(3).await;
        assert_eq!(base_offsets(&only(wire.call(fetch_request(&topic, 0), 12).await)), [0]);
    });
}

#[test]
fn waiting_fetch_is_woken_by_the_high_watermark() {
    on_fake(three(), async |target, fake| {
        let topic = orders(&target).await;
        let (mut writer, mut reader) = (target.node(1).await, target.node(1).await);
        fake.lag(3, "orders", 0);
        reader.send(FetchRequest { max_wait_ms: 15_000, ..fetch_request(&topic, 0) }, 12).await;
        written_by_the_leader(&mut writer, &topic, &["a"]).await;
        assert!(reader.is_quiet().await);

        fake.catch_up(3, "orders", 0);

        assert_eq!(base_offsets(&only(reader.receive::<FetchRequest>(12).await)), [0]);
    });
}

#[test]
fn acks_all_waits_for_who_lags_and_gives_up_in_time() {
    on_fake(three(), async |target, fake| {
        let topic = orders(&target).await;
        let mut wire = target.node(1).await;
        fake.lag(3, "orders", 0);
        wire.send(produce_request(&topic, -1, Some(batch(&["a"]))), 9).await;
        assert!(wire.is_quiet().await);
        let late = answer(wire.receive::<ProduceRequest>(9).await);
        assert_eq!((error(late.error_code), late.base_offset), ("REQUEST_TIMED_OUT", 0), "it is in the log");

        wire.send(produce_request(&topic, -1, Some(batch(&["b"]))), 9).await;
        assert!(wire.is_quiet().await);
        fake.catch_up(3, "orders", 0);
        let done = answer(wire.receive::<ProduceRequest>(9).await);
        assert_eq!((error(done.error_code), done.base_offset), ("NONE", 1));
    });
}

#[test]
fn who_lags_for_too_long_is_out_of_sync() {
    on_fake(three(), async |target, fake| {
        let topic = orders(&target).await;
        let mut wire = target.node(1).await;
        fake.lag(3, "orders", 0);
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(fake.in_sync_replicas("orders", 0), [1, 2, 3], "it has all that there is");
        let patient = ProduceRequest { timeout_ms: 60_000, ..produce_request(&topic, -1, Some(batch(&["a"]))) };
        wire.send(patient, 9).await;
        assert!(wire.is_quiet().await);
        tokio::time::advance(Duration::from_secs(29)).await;
        assert_eq!(fake.in_sync_replicas("orders", 0), [1, 2, 3]);

        let done = answer(wire.receive::<ProduceRequest>(9).await);

        assert_eq!((error(done.error_code), done.base_offset), ("NONE", 0));
        assert_eq!(fake.in_sync_replicas("orders", 0), [1, 2]);
        fake.catch_up(3, "orders", 0);
        assert_eq!(fake.in_sync_replicas("orders", 0), [1, 2, 3]);
    });
}

/// PR-07. KIP-966: below `min.insync.replicas` nothing is committed any more.
#[test]
fn too_few_replicas_after_the_append_commit_nothing() {
    on_fake(three(), async |target, fake| {
        let topic = target.topic_with(1, &[("min.insync.replicas", "3")]).await;
        let mut wire = target.node(1).await;
        written(&mut wire, &topic, batch(&["a"])).await;
        fake.crash(3);
        let refused = answer(wire.call(produce_request(&topic, -1, Some(batch(&["b"]))), 9).await);
        assert_eq!(error(refused.error_code), "NOT_ENOUGH_REPLICAS");

        assert_eq!(written_by_the_leader(&mut wire, &topic, &["b"]).await, 1);
        assert_eq!(fake.high_watermark(&topic.name, 0), Some(1));
        fake.restart(3);
        assert_eq!(fake.high_watermark(&topic.name, 0), Some(2));
    });
}

#[test]
fn batch_whose_leader_moves_is_not_acknowledged() {
    on_fake(three(), async |target, fake| {
        let topic = orders(&target).await;
        let mut wire = target.node(1).await;
        fake.lag(3, "orders", 0);
        wire.send(produce_request(&topic, -1, Some(batch(&["a"]))), 10).await;
        assert!(wire.is_quiet().await);

        fake.move_leader("orders", 0, 2);

        let moved = wire.receive::<ProduceRequest>(10).await;
        assert_eq!(moved.node_endpoints[0].node_id, 2);
        let moved = answer(moved);
        assert_eq!((error(moved.error_code), moved.current_leader.leader_id), ("NOT_LEADER_OR_FOLLOWER", 2));
    });
}

/// LE-25, KIP-392.
#[test]
fn follower_serves_what_it_has() {
    on_fake(three(), async |target, fake| {
        let topic = orders(&target).await;
        let (mut leader, mut follower) = (target.node(1).await, target.node(3).await);
        written(&mut leader, &topic, batch(&["a"])).await;
        fake.lag(3, "orders", 0);
        written_by_the_leader(&mut leader, &topic, &["b", "c"]).await;

        let data = only(follower.call(fetch_request(&topic, 0), 12).await);
        assert_eq!((base_offsets(&data), data.high_watermark), (vec![0], 1));
        assert_eq!(base_offsets(&only(follower.call(fetch_request(&topic, 1), 12).await)), [] as [i64; 0]);
        assert_eq!(error(only(follower.call(fetch_request(&topic, 2), 12).await).error_code), "OFFSET_OUT_OF_RANGE");
        assert_eq!(error(only(leader.call(fetch_request(&topic, 2), 12).await).error_code), "NONE");
    });
}

/// FI-04b, LE-09, LE-20. The replica that is elected lacks records that were acknowledged.
#[test]
fn unclean_election_makes_everyone_as_short_as_the_new_leader() {
    on_fake(three(), async |target, fake| {
        let topic = orders(&target).await;
        let mut wire = target.node(1).await;
        written(&mut wire, &topic, batch(&["a"])).await;
        fake.lag(3, "orders", 0);
        written_by_the_leader(&mut wire, &topic, &["b", "c"]).await;
        tokio::time::advance(Duration::from_secs(31)).await;
        assert_eq!(written(&mut wire, &topic, batch(&["d"])).await, 3);

        fake.move_leader("orders", 0, 3);

        assert_eq!((fake.high_watermark("orders", 0), fake.leader_epoch("orders", 0)), (Some(1), Some(1)));
        let mut wire = target.node(3).await;
        assert_eq!(written(&mut wire, &topic, batch(&["e"])).await, 1);
        let mut behind = fetch_request(&topic, 4);
        behind.topics[0].partitions[0].last_fetched_epoch = 0;
        let diverging = only(wire.call(behind, 12).await).diverging_epoch;
        assert_eq!((diverging.epoch, diverging.end_offset), (0, 1));
        let partition = OffsetForLeaderPartition { leader_epoch: 0, ..OffsetForLeaderPartition::default() };
        let request = OffsetForLeaderTopic { topic: topic.name.clone(), partitions: vec![partition] };
        let request = OffsetForLeaderEpochRequest { replica_id: -1, topics: vec![request] };
        let end = wire.call(request, 4).await.topics.remove(0).partitions.remove(0);
        assert_eq!((end.leader_epoch, end.end_offset), (0, 1));
    });
}

#[test]
fn crash_elects_a_replica_out_of_sync_only_where_that_is_allowed() {
    on_fake(three(), async |target, fake| {
        let strict = target.topic_with(1, &[]).await;
        let lax = target.topic_with(1, &[("unclean.leader.election.enable", "true")]).await;
        let mut wire = target.node(1).await;
        for topic in [&strict, &lax] {
            written(&mut wire, topic, batch(&["a"])).await;
        }
        fake.crash(2);
        fake.crash(3);
        for topic in [&strict, &lax] {
            written(&mut wire, topic, batch(&["b"])).await;
        }
        fake.crash(1);

        fake.restart(3);

        assert_eq!((fake.leader(&strict.name, 0), fake.leader(&lax.name, 0)), (None, Some(3)));
        assert_eq!(fake.high_watermark(&lax.name, 0), Some(1), "what node 3 had when it died");
        fake.restart(1);
        assert_eq!((fake.leader(&strict.name, 0), fake.high_watermark(&strict.name, 0)), (Some(1), Some(2)));
        assert_eq!(fake.in_sync_replicas(&lax.name, 0), [1, 3]);
    });
}

/// FE-32. The new leader does not know yet that what it has is committed.
#[test]
fn latest_offset_is_not_available_before_the_high_watermark_is() {
    on_fake(three(), async |target, fake| {
        let topic = orders(&target).await;
        fake.lag(3, "orders", 0);
        written_by_the_leader(&mut target.node(1).await, &topic, &["a"]).await;
        fake.move_leader("orders", 0, 2);
        let mut wire = target.node(2).await;
        let mut codes = Vec::new();
        for (version, timestamp) in [(4, -1), (5, -1), (5, 0), (7, -3), (5, -2)] {
            let partition = ListOffsetsPartition { timestamp, ..ListOffsetsPartition::default() };
            let asked = ListOffsetsTopic { name: topic.name.clone(), partitions: vec![partition] };
            let request = ListOffsetsRequest { replica_id: -1, topics: vec![asked], ..ListOffsetsRequest::default() };
            codes.push(error(wire.call(request, version).await.topics.remove(0).partitions.remove(0).error_code));
        }

        let late = "OFFSET_NOT_AVAILABLE";
        assert_eq!(codes, ["LEADER_NOT_AVAILABLE", late, late, late, "NONE"]);
    });
}

#[test]
fn deletion_waits_for_who_lags() {
    on_fake(three(), async |target, fake| {
        let topic = orders(&target).await;
        let mut wire = target.node(1).await;
        written(&mut wire, &topic, batch(&["a", "b"])).await;
        fake.lag(3, "orders", 0);
        let partitions = vec![DeleteRecordsPartition { partition_index: 0, offset: 1 }];
        let topic = DeleteRecordsTopic { name: topic.name.clone(), partitions };
        let request = DeleteRecordsRequest { topics: vec![topic], timeout_ms: 5_000 };
        wire.send(request.clone(), 2).await;
        assert!(wire.is_quiet().await);
        let late = wire.receive::<DeleteRecordsRequest>(2).await.topics.remove(0).partitions.remove(0);
        assert_eq!((error(late.error_code), late.low_watermark), ("REQUEST_TIMED_OUT", 0));
        assert_eq!(fake.log_start_offset("orders", 0), Some(1), "the leader deletes at once");

        wire.send(request, 2).await;
        assert!(wire.is_quiet().await);
        fake.catch_up(3, "orders", 0);
        let done = wire.receive::<DeleteRecordsRequest>(2).await.topics.remove(0).partitions.remove(0);
        assert_eq!((error(done.error_code), done.low_watermark), ("NONE", 1));
    });
}
