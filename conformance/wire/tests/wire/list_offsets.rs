//! ListOffsets and OffsetForLeaderEpoch on the wire.

use krafka_fake_broker::KafkaVersion;
use krafka_protocol::ApiKey;
use krafka_protocol::api::list_offsets::{
    ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsRequest, ListOffsetsTopic,
};
use krafka_protocol::api::offset_for_leader_epoch::{
    OffsetForLeaderEpochRequest, OffsetForLeaderPartition, OffsetForLeaderTopic,
};

use crate::records::{batch_at, error, nowhere, time, written};
use crate::target::{Target, Topic, Wire, run};

/// A topic with the timestamps t, t+1 | t+10, t+11 | t+5, t+6.
async fn filled(target: &Target) -> (Topic, Wire, i64) {
    let topic = target.topic(1).await;
    let mut wire = target.connect().await;
    let start = time();
    for after in [0, 10, 5] {
        written(&mut wire, &topic, batch_at(start + after, &["a", "b"])).await;
    }
    (topic, wire, start)
}

fn request(topic: &Topic, timestamp: i64) -> ListOffsetsRequest {
    let partition = ListOffsetsPartition { timestamp, ..ListOffsetsPartition::default() };
    let topic = ListOffsetsTopic { name: topic.name.clone(), partitions: vec![partition] };
    ListOffsetsRequest { replica_id: -1, topics: vec![topic], timeout_ms: 5_000, ..ListOffsetsRequest::default() }
}

async fn ask(wire: &mut Wire, request: ListOffsetsRequest, version: i16) -> ListOffsetsPartitionResponse {
    wire.call(request, version).await.topics.remove(0).partitions.remove(0)
}

/// Offset, timestamp and epoch, or the error.
async fn found(wire: &mut Wire, topic: &Topic, timestamp: i64, version: i16) -> Result<(i64, i64, i32), &'static str> {
    let answer = ask(wire, request(topic, timestamp), version).await;
    match answer.error_code {
        0 => Ok((answer.offset, answer.timestamp, answer.leader_epoch)),
        code => Err(error(code)),
    }
}

#[test]
fn ends_of_a_log() {
    run(async |target| {
        let (topic, mut wire, _) = filled(&target).await;
        let empty = target.topic(1).await;
        for version in target.spoken(ApiKey::ListOffsets, 1..=11).await {
            let epoch = if version >= 4 { 0 } else { -1 };

            assert_eq!(found(&mut wire, &topic, -2, version).await, Ok((0, -1, epoch)), "version {version}");
            assert_eq!(found(&mut wire, &topic, -1, version).await, Ok((6, -1, epoch)));
            assert_eq!(found(&mut wire, &empty, -2, version).await, Ok((0, -1, epoch)));
            assert_eq!(found(&mut wire, &empty, -1, version).await, Ok((0, -1, epoch)));
        }
    });
}

/// FI-03a.
#[test]
fn first_record_at_or_after_a_time() {
    run(async |target| {
        let (topic, mut wire, start) = filled(&target).await;
        for (after, offset, at) in [(-5, 0, 0), (0, 0, 0), (1, 1, 1), (2, 2, 10), (5, 2, 10), (11, 3, 11)] {
            let expected = Ok((offset, start + at, 0));
            assert_eq!(found(&mut wire, &topic, start + after, 7).await, expected, "after {after}");
        }
        assert_eq!(found(&mut wire, &topic, start + 12, 7).await, Ok((-1, -1, -1)));
    });
}

/// FI-03d.
#[test]
fn special_times_came_version_by_version() {
    run(async |target| {
        let (topic, mut wire, start) = filled(&target).await;
        let empty = target.topic(1).await;
        target.since(KafkaVersion::V4_2, "ListOffsets 10 and 11").await;

        assert_eq!(found(&mut wire, &topic, -3, 6).await, Err("UNSUPPORTED_VERSION"));
        assert_eq!(found(&mut wire, &topic, -3, 7).await, Ok((3, start + 11, 0)));
        assert_eq!(found(&mut wire, &empty, -3, 7).await, Ok((-1, -1, -1)));
        assert_eq!(found(&mut wire, &topic, -4, 7).await, Err("UNSUPPORTED_VERSION"));
        assert_eq!(found(&mut wire, &topic, -4, 8).await, Ok((0, -1, 0)));
        assert_eq!(found(&mut wire, &topic, -5, 8).await, Err("UNSUPPORTED_VERSION"));
        assert_eq!(found(&mut wire, &topic, -5, 9).await, Ok((-1, -1, -1)));
        assert_eq!(found(&mut wire, &topic, -6, 10).await, Err("UNSUPPORTED_VERSION"));
        assert_eq!(found(&mut wire, &topic, -6, 11).await, Ok((-1, -1, -1)));
        assert_eq!(found(&mut wire, &topic, -7, 11).await, Err("UNSUPPORTED_VERSION"));
    });
}

/// FI-03c: a partition that comes twice, among others.
#[test]
fn questions_that_cannot_be_answered() {
    run(async |target| {
        let (topic, mut wire, _) = filled(&target).await;
        let mut ahead = request(&topic, -1);
        ahead.topics[0].partitions[0].current_leader_epoch = 4;
        let mut beyond = request(&topic, -1);
        beyond.topics[0].partitions[0].partition_index = 4;
        let mut twice = request(&topic, -1);
        let again = twice.topics[0].partitions[0].clone();
        twice.topics[0].partitions.push(again);

        assert_eq!(error(ask(&mut wire, ahead, 7).await.error_code), "UNKNOWN_LEADER_EPOCH");
        assert_eq!(error(ask(&mut wire, beyond, 7).await.error_code), "UNKNOWN_TOPIC_OR_PARTITION");
        assert_eq!(error(ask(&mut wire, twice, 7).await.error_code), "INVALID_REQUEST");
        let lost = nowhere(&target.fresh("nowhere"));
        assert_eq!(found(&mut wire, &lost, -1, 7).await, Err("UNKNOWN_TOPIC_OR_PARTITION"));
    });
}

/// FI-04a, FI-04c, LE-10.
#[test]
fn epochs_end_where_they_end() {
    run(async |target| {
        let (topic, mut wire, _) = filled(&target).await;
        for (current, epoch, expected) in [
            (-1, 0, ("NONE", 0, 6)),
            (0, 0, ("NONE", 0, 6)),
            (0, 3, ("NONE", -1, -1)),
            (0, -1, ("NONE", -1, -1)),
            (2, 0, ("UNKNOWN_LEADER_EPOCH", -1, -1)),
        ] {
            let partition =
                OffsetForLeaderPartition { partition: 0, current_leader_epoch: current, leader_epoch: epoch };
            let asked = OffsetForLeaderTopic { topic: topic.name.clone(), partitions: vec![partition] };
            let request = OffsetForLeaderEpochRequest { replica_id: -1, topics: vec![asked] };
            let answer = wire.call(request, 4).await.topics.remove(0).partitions.remove(0);

            let found = (error(answer.error_code), answer.leader_epoch, answer.end_offset);
            assert_eq!(found, expected, "epoch {epoch} at {current}");
        }
    });
}
