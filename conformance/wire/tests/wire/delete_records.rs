//! DeleteRecords on the wire, and what a log looks like whose beginning is gone.

use krafka_protocol::api::delete_records::{DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic};
use krafka_protocol::api::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};

use crate::records::{base_offsets, batch, batch_at, error, fetch, nowhere, time, written};
use crate::target::{Target, Topic, Wire, run, run_on_three};

/// A topic with three batches at the offsets 0, 2 and 4.
async fn filled(target: &Target, configs: &[(&str, &str)]) -> (Topic, Wire) {
    let topic = target.topic_with(1, configs).await;
    let mut wire = target.connect().await;
    for values in [["a", "b"], ["c", "d"], ["e", "f"]] {
        written(&mut wire, &topic, batch(&values)).await;
    }
    (topic, wire)
}

fn request(topic: &Topic, partition_index: i32, offset: i64) -> DeleteRecordsRequest {
    let partitions = vec![DeleteRecordsPartition { partition_index, offset }];
    let topic = DeleteRecordsTopic { name: topic.name.clone(), partitions };
    DeleteRecordsRequest { topics: vec![topic], timeout_ms: 10_000 }
}

/// The error and the low watermark of an answer.
async fn deleted(wire: &mut Wire, request: DeleteRecordsRequest, version: i16) -> (&'static str, i64) {
    let answer = wire.call(request, version).await.topics.remove(0).partitions.remove(0);
    (error(answer.error_code), answer.low_watermark)
}

/// The first offset that ListOffsets tells, with its epoch.
async fn earliest(wire: &mut Wire, topic: &Topic, timestamp: i64) -> (i64, i32) {
    let partition = ListOffsetsPartition { timestamp, ..ListOffsetsPartition::default() };
    let topic = ListOffsetsTopic { name: topic.name.clone(), partitions: vec![partition] };
    let request = ListOffsetsRequest { replica_id: -1, topics: vec![topic], ..ListOffsetsRequest::default() };
    let answer = wire.call(request, 7).await.topics.remove(0).partitions.remove(0);
    (answer.offset, answer.leader_epoch)
}

#[test]
fn log_begins_at_the_offset_given() {
    run(async |target| {
        let (topic, mut wire) = filled(&target, &[]).await;
        for (version, offset) in [(0, 1), (1, 2), (2, 3)] {
            assert_eq!(deleted(&mut wire, request(&topic, 0, offset), version).await, ("NONE", offset));
        }

        assert_eq!(error(fetch(&mut wire, &topic, 2).await.error_code), "OFFSET_OUT_OF_RANGE");
        let rest = fetch(&mut wire, &topic, 3).await;
        assert_eq!((rest.log_start_offset, base_offsets(&rest)), (3, vec![2, 4]), "its batch comes whole");
        assert_eq!(earliest(&mut wire, &topic, -2).await, (3, 0));
        assert_eq!(earliest(&mut wire, &topic, 0).await, (3, 0), "the batch has an older record, which is gone");
    });
}

/// The record with the greatest timestamp has it for as long as its segment is there, though nobody can read it.
#[test]
fn deleted_record_has_the_greatest_timestamp_still() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        for after in [5_000, 0] {
            written(&mut wire, &topic, batch_at(time() + after, &["a"])).await;
        }
        assert_eq!(deleted(&mut wire, request(&topic, 0, 1), 2).await, ("NONE", 1));

        assert_eq!(earliest(&mut wire, &topic, -3).await, (0, 0));
    });
}

#[test]
fn offset_below_the_start_changes_nothing() {
    run(async |target| {
        let (topic, mut wire) = filled(&target, &[]).await;
        deleted(&mut wire, request(&topic, 0, 3), 2).await;

        assert_eq!(deleted(&mut wire, request(&topic, 0, 1), 2).await, ("NONE", 3));
        assert_eq!(deleted(&mut wire, request(&topic, 0, 3), 2).await, ("NONE", 3));
    });
}

#[test]
fn minus_one_deletes_all_that_is_committed() {
    run(async |target| {
        let (topic, mut wire) = filled(&target, &[]).await;

        assert_eq!(deleted(&mut wire, request(&topic, 0, -1), 2).await, ("NONE", 6));
        assert_eq!(earliest(&mut wire, &topic, -2).await, (6, 0));
        assert_eq!(earliest(&mut wire, &topic, 0).await, (-1, -1));
        assert_eq!(written(&mut wire, &topic, batch(&["g"])).await, 6);
        assert_eq!(base_offsets(&fetch(&mut wire, &topic, 6).await), [6]);
    });
}

#[test]
fn offsets_that_are_not_there_are_out_of_range() {
    run(async |target| {
        let (topic, mut wire) = filled(&target, &[]).await;

        for offset in [7, -2, i64::MAX, i64::MIN] {
            assert_eq!(deleted(&mut wire, request(&topic, 0, offset), 2).await, ("OFFSET_OUT_OF_RANGE", -1));
        }
    });
}

#[test]
fn topics_that_only_compact_do_not_delete() {
    run(async |target| {
        let compacted = target.topic_with(1, &[("cleanup.policy", "compact")]).await;
        let both = target.topic_with(1, &[("cleanup.policy", "compact,delete")]).await;
        let mut wire = target.connect().await;

        assert_eq!(deleted(&mut wire, request(&compacted, 0, 0), 2).await, ("POLICY_VIOLATION", -1));
        assert_eq!(deleted(&mut wire, request(&compacted, 0, 9), 2).await, ("POLICY_VIOLATION", -1));
        assert_eq!(deleted(&mut wire, request(&both, 0, 0), 2).await, ("NONE", 0));
    });
}

#[test]
fn unknown_topics_and_partitions() {
    run(async |target| {
        let (topic, mut wire) = filled(&target, &[]).await;
        let lost = nowhere(&target.fresh("nowhere"));

        let unknown = ("UNKNOWN_TOPIC_OR_PARTITION", -1);
        assert_eq!(deleted(&mut wire, request(&topic, 1, 0), 2).await, unknown);
        assert_eq!(deleted(&mut wire, request(&lost, 0, 0), 2).await, unknown);
    });
}

#[test]
fn internal_topics_are_left_alone() {
    run(async |target| {
        let mut wire = target.coordinator(&target.fresh("group")).await;
        let offsets = Topic { name: "__consumer_offsets".into(), id: krafka_protocol::Uuid::ZERO };

        assert_eq!(deleted(&mut wire, request(&offsets, 0, 0), 2).await, ("INVALID_TOPIC_EXCEPTION", -1));
    });
}

#[test]
fn only_the_leader_deletes() {
    run_on_three(async |target| {
        let topic = target.topic_on(&[1, 2]).await;
        let refused = ("NOT_LEADER_OR_FOLLOWER", -1);

        assert_eq!(deleted(&mut target.node(2).await, request(&topic, 0, 0), 2).await, refused);
        assert_eq!(deleted(&mut target.node(3).await, request(&topic, 0, 0), 2).await, refused);
        written(&mut target.node(1).await, &topic, batch(&["a"])).await;
        assert_eq!(deleted(&mut target.node(1).await, request(&topic, 0, 1), 2).await, ("NONE", 1));
    });
}
