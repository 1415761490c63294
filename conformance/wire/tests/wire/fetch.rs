//! Fetch on the wire: what comes, how much of it, and when.

use krafka_protocol::api::delete_topics::{DeleteTopicState, DeleteTopicsRequest};
use krafka_protocol::api::fetch::{FetchPartition, FetchRequest};
use krafka_protocol::records::Batches;
use krafka_protocol::{ApiKey, Uuid};

use crate::records::{base_offsets, batch, error, fetch, fetch_request, nowhere, only, produce_request, written};
use crate::target::{Target, Topic, Wire, run};

/// A topic with three batches at the offsets 0, 2 and 4.
async fn filled(target: &Target) -> (Topic, Wire) {
    let topic = target.topic(1).await;
    let mut wire = target.connect().await;
    for values in [["a", "b"], ["c", "d"], ["e", "f"]] {
        written(&mut wire, &topic, batch(&values)).await;
    }
    (topic, wire)
}

/// The same request with its one partition changed.
fn with(mut request: FetchRequest, change: impl FnOnce(&mut FetchPartition)) -> FetchRequest {
    change(&mut request.topics[0].partitions[0]);
    request
}

#[test]
fn every_version_reads_the_same() {
    run(async |target| {
        let (topic, mut wire) = filled(&target).await;
        for version in target.spoken(ApiKey::Fetch, 4..=18).await {
            let data = only(wire.call(fetch_request(&topic, 0), version).await);

            assert_eq!(error(data.error_code), "NONE", "version {version}");
            assert_eq!((data.high_watermark, data.last_stable_offset), (6, 6));
            assert_eq!(data.log_start_offset, if version >= 5 { 0 } else { -1 });
            assert_eq!((data.aborted_transactions.as_deref(), data.preferred_read_replica), (None, -1));
            assert_eq!(base_offsets(&data), [0, 2, 4]);
        }
    });
}

/// FI-02a.
#[test]
fn offset_inside_a_batch_brings_the_whole_batch() {
    run(async |target| {
        let (topic, mut wire) = filled(&target).await;

        assert_eq!(base_offsets(&fetch(&mut wire, &topic, 3).await), [2, 4]);
        assert_eq!(base_offsets(&fetch(&mut wire, &topic, 6).await), [] as [i64; 0]);
    });
}

/// FI-02b, FI-02c.
#[test]
fn first_batch_comes_whole_and_the_last_may_be_cut() {
    run(async |target| {
        let (topic, mut wire) = filled(&target).await;
        let size = batch(&["a", "b"]).len();
        let limited = |bytes: usize| with(fetch_request(&topic, 0), |p| p.partition_max_bytes = bytes as i32);

        let tiny = only(wire.call(limited(1), 12).await).records.expect("records");
        assert_eq!(tiny.len(), size, "one batch, whatever its size");
        let cut = only(wire.call(limited(size + size / 2), 12).await).records.expect("records");
        assert_eq!(cut.len(), size + size / 2, "Kafka cuts where the bytes end");
        assert_eq!(Batches::new(cut).count(), 1);
        let total = FetchRequest { max_bytes: 1, ..fetch_request(&topic, 0) };
        assert_eq!(base_offsets(&only(wire.call(total, 12).await)), [0]);
    });
}

/// FI-02b.
#[test]
fn second_partition_gets_what_is_left() {
    run(async |target| {
        let topic = target.topic(2).await;
        let mut wire = target.connect().await;
        let mut produce = produce_request(&topic, -1, Some(batch(&["a"])));
        let mut second = produce.topic_data[0].partition_data[0].clone();
        second.index = 1;
        produce.topic_data[0].partition_data.push(second);
        wire.call(produce, 9).await;

        let mut request = fetch_request(&topic, 0);
        let mut second = request.topics[0].partitions[0].clone();
        second.partition = 1;
        request.topics[0].partitions.push(second);
        request.max_bytes = 10;
        let answer = wire.call(request, 12).await.responses.remove(0).partitions;

        assert_eq!(base_offsets(&answer[0]), [0]);
        assert_eq!((error(answer[1].error_code), base_offsets(&answer[1]).len()), ("NONE", 0));
    });
}

#[test]
fn offsets_beyond_the_log_are_out_of_range() {
    run(async |target| {
        let (topic, mut wire) = filled(&target).await;
        for offset in [-1, 7] {
            let data = fetch(&mut wire, &topic, offset).await;

            assert_eq!(error(data.error_code), "OFFSET_OUT_OF_RANGE");
            assert_eq!((data.high_watermark, data.log_start_offset), (-1, -1));
            assert!(data.records.is_none_or(|records| records.is_empty()));
        }
    });
}

#[test]
fn unknown_topics_and_partitions() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        let beyond = with(fetch_request(&topic, 0), |partition| partition.partition = 7);
        let lost = fetch_request(&nowhere(&target.fresh("nowhere")), 0);

        for (request, version, expected) in [
            (beyond.clone(), 12, "UNKNOWN_TOPIC_OR_PARTITION"),
            (beyond, 13, "UNKNOWN_TOPIC_OR_PARTITION"),
            (lost.clone(), 12, "UNKNOWN_TOPIC_OR_PARTITION"),
            (lost, 13, "UNKNOWN_TOPIC_ID"),
        ] {
            assert_eq!(error(only(wire.call(request, version).await).error_code), expected, "version {version}");
        }
    });
}

/// LE-06, LE-07.
#[test]
fn leader_epochs_are_checked() {
    run(async |target| {
        let (topic, mut wire) = filled(&target).await;
        let believing = |epoch| with(fetch_request(&topic, 0), |partition| partition.current_leader_epoch = epoch);

        assert_eq!(error(only(wire.call(believing(0), 12).await).error_code), "NONE");
        assert_eq!(error(only(wire.call(believing(1), 12).await).error_code), "UNKNOWN_LEADER_EPOCH");
    });
}

/// LE-18, KIP-595.
#[test]
fn last_fetched_epoch_of_the_future_is_out_of_range() {
    run(async |target| {
        let (topic, mut wire) = filled(&target).await;
        let after =
            |epoch, offset| with(fetch_request(&topic, offset), |partition| partition.last_fetched_epoch = epoch);

        assert_eq!(base_offsets(&only(wire.call(after(0, 4), 12).await)), [4]);
        assert_eq!(error(only(wire.call(after(3, 4), 12).await).error_code), "OFFSET_OUT_OF_RANGE");
        let beyond = only(wire.call(after(0, 9), 12).await);
        assert_eq!((beyond.diverging_epoch.epoch, beyond.diverging_epoch.end_offset), (0, 6));
    });
}

/// FI-02b.
#[test]
fn fetch_waits_for_min_bytes_until_records_come() {
    run(async |target| {
        let topic = target.topic(1).await;
        let (mut reader, mut writer) = (target.connect().await, target.connect().await);
        reader.send(FetchRequest { max_wait_ms: 15_000, ..fetch_request(&topic, 0) }, 12).await;
        assert!(reader.is_quiet().await);

        written(&mut writer, &topic, batch(&["a"])).await;

        let data = only(reader.receive::<FetchRequest>(12).await);
        assert_eq!((base_offsets(&data), data.high_watermark), (vec![0], 1));
    });
}

#[test]
fn fetch_that_has_waited_long_enough_is_answered_with_what_there_is() {
    run(async |target| {
        let (topic, mut wire) = filled(&target).await;
        let patient = FetchRequest { max_wait_ms: 400, min_bytes: 1 << 19, ..fetch_request(&topic, 4) };
        wire.send(patient, 12).await;
        assert!(wire.is_quiet().await);

        assert_eq!(base_offsets(&only(wire.receive::<FetchRequest>(12).await)), [4]);
    });
}

#[test]
fn error_in_one_partition_ends_the_wait() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        let patient = FetchRequest { max_wait_ms: 60_000, ..fetch_request(&topic, 5) };

        assert_eq!(error(only(wire.call(patient, 12).await).error_code), "OFFSET_OUT_OF_RANGE");
    });
}

/// FI-13a.
#[test]
fn request_behind_a_waiting_fetch_waits_too() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        wire.send(FetchRequest { max_wait_ms: 400, ..fetch_request(&topic, 0) }, 12).await;
        wire.send(fetch_request(&topic, 5), 12).await;
        assert!(wire.is_quiet().await);

        assert_eq!(error(only(wire.receive::<FetchRequest>(12).await).error_code), "NONE");
        assert_eq!(error(only(wire.receive::<FetchRequest>(12).await).error_code), "OFFSET_OUT_OF_RANGE");
    });
}

#[test]
fn reader_of_committed_records_is_given_a_list_of_aborted_transactions() {
    run(async |target| {
        let (topic, mut wire) = filled(&target).await;
        let committed = FetchRequest { isolation_level: 1, ..fetch_request(&topic, 0) };
        let data = only(wire.call(committed, 12).await);

        assert_eq!((data.aborted_transactions, data.last_stable_offset), (Some(vec![]), 6));
    });
}

/// A batch for which there is too little room is left out, and with it the list. No room at all is another matter.
#[test]
fn batch_without_room_has_no_list_of_aborted_transactions() {
    run(async |target| {
        let (topic, mut wire) = filled(&target).await;
        let both = target.topic(2).await;
        for partition in [0, 1] {
            let mut request = produce_request(&both, -1, Some(batch(&["a"])));
            request.topic_data[0].partition_data[0].index = partition;
            wire.call(request, 9).await;
        }
        let mut request = FetchRequest { isolation_level: 1, ..fetch_request(&both, 0) };
        let first = request.topics[0].partitions[0].clone();
        for (room, list) in [(10, None), (0, Some(0)), (1 << 20, Some(0))] {
            let second = FetchPartition { partition: 1, partition_max_bytes: room, ..first.clone() };
            request.topics[0].partitions = vec![first.clone(), second];

            let data = wire.call(request.clone(), 12).await.responses.remove(0).partitions.remove(1);

            assert_eq!(data.records.is_some_and(|records| records.is_empty()), room < 100);
            assert_eq!(data.aborted_transactions.map(|list| list.len()), list, "{room}");
        }

        let below = with(fetch_request(&topic, 0), |partition| partition.partition_max_bytes = -1);
        let data = only(wire.call(below, 12).await);
        assert_eq!((error(data.error_code), data.high_watermark), ("UNKNOWN_SERVER_ERROR", -1));
    });
}

#[test]
fn waiting_fetch_learns_that_its_topic_is_gone() {
    run(async |target| {
        let topic = target.topic(1).await;
        let (mut reader, mut admin) = (target.connect().await, target.connect().await);
        reader.send(FetchRequest { max_wait_ms: 15_000, ..fetch_request(&topic, 0) }, 13).await;
        assert!(reader.is_quiet().await);

        let gone = DeleteTopicState { name: Some(topic.name.clone()), topic_id: Uuid::ZERO };
        let delete = DeleteTopicsRequest { topics: vec![gone], timeout_ms: 10_000, ..Default::default() };
        assert_eq!(error(admin.call(delete, 6).await.responses[0].error_code), "NONE");

        assert_eq!(error(only(reader.receive::<FetchRequest>(13).await).error_code), "UNKNOWN_TOPIC_OR_PARTITION");
    });
}
