//! Followers that lag: what they hold back, what they serve, and what is lost with them.

use std::time::Duration;

use krafka_fake_broker::{Clock, KafkaVersion, TokioClock};
use krafka_protocol::api::delete_records::{DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic};
use krafka_protocol::api::fetch::FetchRequest;
use krafka_protocol::api::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use krafka_protocol::api::list_partition_reassignments::ListPartitionReassignmentsRequest;
use krafka_protocol::api::offset_for_leader_epoch::{
    OffsetForLeaderEpochRequest, OffsetForLeaderPartition, OffsetForLeaderTopic,
};
use krafka_protocol::api::produce::{PartitionProduceResponse, ProduceRequest};

use crate::admin::{elect, reassign, replicas_are};
use crate::leaders::{in_sync, orders, three};
use crate::mortals::{comes, partition, run_on_mortals};
use crate::records::{base_offsets, batch, error, fetch_request, only, produce_request, written};
use crate::target::{Topic, Wire, on_fake};

/// All replicas of the topics here, of which node 3 is the one that lags.
const ALL: [i32; 3] = [1, 2, 3];

/// How late it may be before it is out of sync: `replica.lag.time.max.ms` of these clusters.
const LAG_TIME_MAX: Duration = Duration::from_secs(3);

fn answer(response: krafka_protocol::ProduceResponse) -> PartitionProduceResponse {
    response.responses.into_iter().next().expect("a topic").partition_responses.remove(0)
}

/// A produce with `acks=1`: a follower that lags does not hold it back.
async fn written_by_the_leader(wire: &mut Wire, topic: &Topic, values: &[&str]) -> i64 {
    let answer = answer(wire.call(produce_request(topic, 1, Some(batch(values))), 9).await);
    assert_eq!(error(answer.error_code), "NONE");
    answer.base_offset
}

/// What a fetch of all finds: the batches, the high watermark, the last stable offset, and where the log begins.
async fn log(wire: &mut Wire, topic: &Topic) -> (Vec<i64>, i64, i64, i64) {
    let data = only(wire.call(fetch_request(topic, 0), 12).await);
    (base_offsets(&data), data.high_watermark, data.last_stable_offset, data.log_start_offset)
}

/// Makes node 2 the leader, and waits until it says so.
async fn lead_by_the_second(wire: &mut Wire, second: &mut Wire, topic: &Topic) {
    assert_eq!(reassign(wire, &topic.name, 0, Some(&[2, 1, 3])).await.0, "NONE");
    replicas_are(wire, &topic.name, &[2, 1, 3]).await;
    assert_eq!(elect(wire, 0, &topic.name, 0).await, ("NONE", "NONE"));
    comes(2, async || partition(second, &topic.name).await.leader_id).await;
}

#[test]
fn high_watermark_waits_for_all_in_sync() {
    run_on_mortals(async |target, nodes| {
        let topic = target.topic_on(&ALL).await;
        let mut wire = target.node(1).await;
        written(&mut wire, &topic, batch(&["a"])).await;
        nodes.pause(3).await;
        written_by_the_leader(&mut wire, &topic, &["b"]).await;

        assert_eq!(log(&mut wire, &topic).await, (vec![0], 1, 1, 0));
        nodes.resume(3).await;
        comes((vec![0, 1], 2, 2, 0), async || log(&mut wire, &topic).await).await;
    });
}

/// LE-28: a partition is not left to a replica that lacks what is committed. Found by the laws.
#[test]
fn reassignment_waits_for_who_is_to_stay() {
    run_on_mortals(async |target, nodes| {
        let topic = target.topic_on(&ALL).await;
        let mut wire = target.node(1).await;
        nodes.pause(3).await;
        written_by_the_leader(&mut wire, &topic, &["a"]).await;
        comes(vec![1, 2], async || in_sync(&mut wire, &topic).await).await;

        assert_eq!(reassign(&mut wire, &topic.name, 0, Some(&[3])).await.0, "NONE");
        let ongoing = wire.call(ListPartitionReassignmentsRequest::default(), 0).await.topics.remove(0);
        assert_eq!(ongoing.partitions[0].removing_replicas, [1, 2]);
        assert!(wire.is_quiet().await);
        assert_eq!(partition(&mut wire, &topic.name).await.leader_id, 1, "who stays is out of sync");

        nodes.resume(3).await;

        assert_eq!(replicas_are(&mut wire, &topic.name, &[3]).await.0, 3);
        let mut wire = target.node(3).await;
        comes(vec![0], async || base_offsets(&only(wire.call(fetch_request(&topic, 0), 12).await))).await;
    });
}

#[test]
fn waiting_fetch_is_woken_by_the_high_watermark() {
    run_on_mortals(async |target, nodes| {
        let topic = target.topic_on(&ALL).await;
        let (mut writer, mut reader) = (target.node(1).await, target.node(1).await);
        nodes.pause(3).await;
        reader.send(FetchRequest { max_wait_ms: 15_000, ..fetch_request(&topic, 0) }, 12).await;
        written_by_the_leader(&mut writer, &topic, &["a"]).await;
        assert!(reader.is_quiet().await);

        nodes.resume(3).await;

        assert_eq!(base_offsets(&only(reader.receive::<FetchRequest>(12).await)), [0]);
    });
}

#[test]
fn acks_all_waits_for_who_lags_and_gives_up_in_time() {
    run_on_mortals(async |target, nodes| {
        let topic = target.topic_on(&ALL).await;
        let mut wire = target.node(1).await;
        nodes.pause(3).await;
        let produce =
            |value, timeout_ms| ProduceRequest { timeout_ms, ..produce_request(&topic, -1, Some(batch(&[value]))) };
        wire.send(produce("a", 1_000), 9).await;
        assert!(wire.is_quiet().await);
        let late = answer(wire.receive::<ProduceRequest>(9).await);
        assert_eq!((error(late.error_code), late.base_offset), ("REQUEST_TIMED_OUT", 0), "it is in the log");

        wire.send(produce("b", 10_000), 9).await;
        assert!(wire.is_quiet().await);
        nodes.resume(3).await;
        let done = answer(wire.receive::<ProduceRequest>(9).await);
        assert_eq!((error(done.error_code), done.base_offset), ("NONE", 1));
    });
}

/// The time counts from when it was in step last: not from when something was written that it lacks.
#[test]
fn who_lags_for_too_long_is_out_of_sync() {
    run_on_mortals(async |target, nodes| {
        let topic = target.topic_on(&ALL).await;
        let mut wire = target.node(1).await;
        // A follower that has never fetched is not in step, whatever there is.
        written(&mut wire, &topic, batch(&["first"])).await;
        nodes.pause(3).await;
        tokio::time::sleep(LAG_TIME_MAX + LAG_TIME_MAX / 3).await;
        assert_eq!(in_sync(&mut wire, &topic).await, ALL, "it has all that there is");
        let start = TokioClock.now();
        let patient = ProduceRequest { timeout_ms: 60_000, ..produce_request(&topic, -1, Some(batch(&["a"]))) };

        let done = answer(wire.call(patient, 9).await);

        assert_eq!((error(done.error_code), done.base_offset), ("NONE", 1));
        let took = TokioClock.now() - start;
        assert!(took < LAG_TIME_MAX, "a leader looks after half that time: {took:?}");
        comes(vec![1, 2], async || in_sync(&mut wire, &topic).await).await;
        nodes.resume(3).await;
        comes(ALL.to_vec(), async || in_sync(&mut wire, &topic).await).await;
    });
}

/// What lags a little is waited for.
#[test]
fn who_lags_is_in_sync_for_a_while() {
    run_on_mortals(async |target, nodes| {
        let topic = target.topic_on(&ALL).await;
        let mut wire = target.node(1).await;
        nodes.pause(3).await;
        let start = TokioClock.now();
        let patient = ProduceRequest { timeout_ms: 60_000, ..produce_request(&topic, -1, Some(batch(&["a"]))) };

        let done = answer(wire.call(patient, 9).await);

        assert_eq!((error(done.error_code), done.base_offset), ("NONE", 0));
        // It was in step up to half a second before, when it had nothing to fetch.
        let (least, most) = (LAG_TIME_MAX - Duration::from_secs(1), 2 * LAG_TIME_MAX);
        let took = TokioClock.now() - start;
        assert!((least..most).contains(&took), "{took:?}");
    });
}

/// PR-07. KIP-966: below `min.insync.replicas` nothing is committed any more.
#[test]
fn too_few_replicas_after_the_append_commit_nothing() {
    run_on_mortals(async |target, nodes| {
        let topic = target.topic_on_with(&ALL, &[("min.insync.replicas", "3")]).await;
        let mut wire = target.node(1).await;
        written(&mut wire, &topic, batch(&["a"])).await;
        nodes.crash(3).await;
        comes(vec![1, 2], async || in_sync(&mut wire, &topic).await).await;
        let refused = answer(wire.call(produce_request(&topic, -1, Some(batch(&["b"]))), 9).await);
        assert_eq!(error(refused.error_code), "NOT_ENOUGH_REPLICAS");

        assert_eq!(written_by_the_leader(&mut wire, &topic, &["b"]).await, 1);
        target.since(KafkaVersion::V4_1, "what too few have is not committed").await;
        assert!(wire.is_quiet().await);
        assert_eq!(log(&mut wire, &topic).await, (vec![0], 1, 1, 0));
        nodes.restart(3).await;
        comes((vec![0, 1], 2, 2, 0), async || log(&mut wire, &topic).await).await;
    });
}

#[test]
fn batch_whose_leader_moves_is_not_acknowledged() {
    run_on_mortals(async |target, nodes| {
        let topic = target.topic_on(&ALL).await;
        let (mut wire, mut second) = (target.node(1).await, target.node(2).await);
        nodes.pause(3).await;
        wire.send(produce_request(&topic, -1, Some(batch(&["a"]))), 10).await;
        assert!(wire.is_quiet().await);

        lead_by_the_second(&mut target.node(1).await, &mut second, &topic).await;

        let moved = wire.receive::<ProduceRequest>(10).await;
        assert_eq!(moved.node_endpoints[0].node_id, 2);
        let moved = answer(moved);
        assert_eq!((error(moved.error_code), moved.current_leader.leader_id), ("NOT_LEADER_OR_FOLLOWER", 2));
    });
}

/// LE-25, KIP-392.
///
/// Fake only: a follower that lags and serves is one whose fetches hang: Kafka's cannot be told to.
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
    run_on_mortals(async |target, nodes| {
        let topic = target.topic_on(&[1, 3]).await;
        let (mut wire, mut other) = (target.node(1).await, target.node(2).await);
        written(&mut wire, &topic, batch(&["a"])).await;
        nodes.crash(3).await;
        comes(vec![1], async || in_sync(&mut wire, &topic).await).await;
        assert_eq!(written(&mut wire, &topic, batch(&["b", "c"])).await, 1);
        assert_eq!(written(&mut wire, &topic, batch(&["d"])).await, 3);
        let before = partition(&mut wire, &topic.name).await.leader_epoch;
        nodes.crash(1).await;
        comes(-1, async || partition(&mut other, &topic.name).await.leader_id).await;
        nodes.restart(3).await;

        assert_eq!(elect(&mut other, 1, &topic.name, 0).await, ("NONE", "NONE"));

        let mut wire = target.node(3).await;
        comes(3, async || partition(&mut wire, &topic.name).await.leader_id).await;
        comes((vec![0], 1, 1, 0), async || log(&mut wire, &topic).await).await;
        assert_eq!(written(&mut wire, &topic, batch(&["e"])).await, 1);
        nodes.restart(1).await;
        let mut behind = fetch_request(&topic, 4);
        behind.topics[0].partitions[0].last_fetched_epoch = before;
        let diverging = only(wire.call(behind, 12).await).diverging_epoch;
        assert_eq!((diverging.epoch, diverging.end_offset), (before, 1));
        let partition = OffsetForLeaderPartition { leader_epoch: before, ..OffsetForLeaderPartition::default() };
        let request = OffsetForLeaderTopic { topic: topic.name.clone(), partitions: vec![partition] };
        let request = OffsetForLeaderEpochRequest { replica_id: -1, topics: vec![request] };
        let end = wire.call(request, 4).await.topics.remove(0).partitions.remove(0);
        assert_eq!((end.leader_epoch, end.end_offset), (before, 1));
        // Who led before is cut to what the others have.
        comes(vec![1, 3], async || in_sync(&mut wire, &topic).await).await;
        let mut first = target.node(1).await;
        comes(vec![0, 1], async || base_offsets(&only(first.call(fetch_request(&topic, 0), 12).await))).await;
    });
}

#[test]
fn crash_elects_a_replica_out_of_sync_only_where_that_is_allowed() {
    run_on_mortals(async |target, nodes| {
        let strict = target.topic_on(&ALL).await;
        let lax = target.topic_on_with(&ALL, &[("unclean.leader.election.enable", "true")]).await;
        let (mut wire, mut other) = (target.node(1).await, target.node(4).await);
        for topic in [&strict, &lax] {
            written(&mut wire, topic, batch(&["a"])).await;
        }
        nodes.crash(2).await;
        nodes.crash(3).await;
        for topic in [&strict, &lax] {
            comes(vec![1], async || in_sync(&mut wire, topic).await).await;
            written(&mut wire, topic, batch(&["b"])).await;
        }
        nodes.crash(1).await;
        comes(-1, async || partition(&mut other, &lax.name).await.leader_id).await;

        nodes.restart(3).await;

        comes(3, async || partition(&mut other, &lax.name).await.leader_id).await;
        assert_eq!(partition(&mut other, &strict.name).await.leader_id, -1);
        let mut third = target.node(3).await;
        comes((vec![0], 1, 1, 0), async || log(&mut third, &lax).await).await;
        nodes.restart(1).await;
        comes(1, async || partition(&mut other, &strict.name).await.leader_id).await;
        let mut first = target.node(1).await;
        comes((vec![0, 1], 2, 2, 0), async || log(&mut first, &strict).await).await;
        comes(vec![1, 3], async || in_sync(&mut other, &lax).await).await;
    });
}

/// FE-32. The new leader does not know yet that what it has is committed.
#[test]
fn latest_offset_is_not_available_before_the_high_watermark_is() {
    run_on_mortals(async |target, nodes| {
        let late = "OFFSET_NOT_AVAILABLE";
        for attempt in 1..=5 {
            let topic = target.topic_on(&ALL).await;
            let (mut first, mut wire) = (target.node(1).await, target.node(2).await);
            comes(vec![1, 2, 3], async || in_sync(&mut wire, &topic).await).await;
            nodes.pause(3).await;
            written_by_the_leader(&mut first, &topic, &["a"]).await;
            lead_by_the_second(&mut first, &mut wire, &topic).await;
            let mut codes = Vec::new();
            for (version, timestamp) in [(4, -1), (5, -1), (5, 0), (7, -3), (5, -2)] {
                let partition = ListOffsetsPartition { timestamp, ..ListOffsetsPartition::default() };
                let asked = ListOffsetsTopic { name: topic.name.clone(), partitions: vec![partition] };
                let topics = vec![asked];
                let request = ListOffsetsRequest { replica_id: -1, topics, ..ListOffsetsRequest::default() };
                codes.push(error(wire.call(request, version).await.topics.remove(0).partitions.remove(0).error_code));
            }

            let expected = ["LEADER_NOT_AVAILABLE", late, late, late, "NONE"];
            // The third is given up on within three seconds, and on a busy machine that may be before anybody asks.
            if codes == expected {
                return;
            }
            assert!(attempt < 5, "{codes:?}");
            nodes.resume(3).await;
        }
    });
}

#[test]
fn deletion_waits_for_who_lags() {
    run_on_mortals(async |target, nodes| {
        let topic = target.topic_on(&ALL).await;
        let mut wire = target.node(1).await;
        written(&mut wire, &topic, batch(&["a", "b"])).await;
        nodes.pause(3).await;
        let partitions = vec![DeleteRecordsPartition { partition_index: 0, offset: 1 }];
        let named = DeleteRecordsTopic { name: topic.name.clone(), partitions };
        let request = |timeout_ms| DeleteRecordsRequest { topics: vec![named.clone()], timeout_ms };
        wire.send(request(1_000), 2).await;
        assert!(wire.is_quiet().await);
        let late = wire.receive::<DeleteRecordsRequest>(2).await.topics.remove(0).partitions.remove(0);
        assert_eq!((error(late.error_code), late.low_watermark), ("REQUEST_TIMED_OUT", 0));
        let rest = only(wire.call(fetch_request(&topic, 1), 12).await);
        assert_eq!(rest.log_start_offset, 1, "the leader deletes at once");

        wire.send(request(10_000), 2).await;
        assert!(wire.is_quiet().await);
        nodes.resume(3).await;
        let done = wire.receive::<DeleteRecordsRequest>(2).await.topics.remove(0).partitions.remove(0);
        assert_eq!((error(done.error_code), done.low_watermark), ("NONE", 1));
    });
}
