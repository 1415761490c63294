//! Produce on the wire: what is appended, what is refused, and how.

use krafka_fake_broker::KafkaVersion;
use krafka_protocol::compression::Compression;
use krafka_protocol::records::Batches;
use krafka_protocol::{ApiKey, Bytes, ErrorCode};

use crate::records::{batch, batch_at, compressed, error, fetch, nowhere, produce, produce_request, time, written};
use crate::target::{Topic, Wire, run};

/// The same batch with some of its bytes replaced, and its checksum right again.
pub(crate) fn altered(bytes: &Bytes, at: usize, with: &[u8]) -> Bytes {
    let mut bytes = bytes.to_vec();
    bytes[at..at + with.len()].copy_from_slice(with);
    let crc = crc32c::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    Bytes::from(bytes)
}

async fn refusal(wire: &mut Wire, topic: &Topic, records: Bytes) -> &'static str {
    let response = produce(wire, topic, records).await;
    assert_eq!(response.base_offset, -1);
    error(response.error_code)
}

#[test]
fn offsets_count_on_in_every_version() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        for (index, version) in (0..).zip(target.spoken(ApiKey::Produce, 3..=13).await) {
            for acks in [-1, 1] {
                let request = produce_request(&topic, acks, Some(batch(&["a", "b"])));
                let answer = wire.call(request, version).await.responses.remove(0).partition_responses.remove(0);

                let expected = 4 * index + if acks == 1 { 2 } else { 0 };
                assert_eq!((error(answer.error_code), answer.base_offset), ("NONE", expected), "version {version}");
                assert_eq!(answer.log_start_offset, if version >= 5 { 0 } else { -1 });
                assert_eq!(answer.log_append_time_ms, -1);
            }
        }
    });
}

#[test]
fn every_codec_comes_back_as_it_was_sent() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        let codecs = [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4];
        for (index, codec) in (0..).zip(codecs) {
            let sent = compressed(codec, time(), &["value", "value", "value"]);
            let offset = written(&mut wire, &topic, sent.clone()).await;
            assert_eq!(offset, 3 * index);

            let records = fetch(&mut wire, &topic, offset).await.records.expect("records");
            // Base offset and leader epoch are the broker's; from the magic on, everything is the producer's.
            assert_eq!(records[..8], offset.to_be_bytes());
            assert_eq!(records[12..16], 0_i32.to_be_bytes());
            assert_eq!(records[16..], sent[16..]);
        }
    });
}

#[test]
fn corrupt_batches_are_refused() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        let mut flipped = batch(&["a"]).to_vec();
        *flipped.last_mut().expect("a byte") ^= 1;

        assert_eq!(refusal(&mut wire, &topic, Bytes::from(flipped)).await, "CORRUPT_MESSAGE");
        assert_eq!(written(&mut wire, &topic, batch(&["a"])).await, 0);
    });
}

#[test]
fn records_must_be_exactly_one_batch_of_format_2() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        let one = batch(&["a"]);
        let two = Bytes::from([&one[..], &one[..]].concat());

        assert_eq!(refusal(&mut wire, &topic, two).await, "INVALID_RECORD");
        assert_eq!(refusal(&mut wire, &topic, Bytes::new()).await, "INVALID_RECORD");
    });
}

/// FI-12f.
#[test]
fn batches_that_lie_are_refused() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        let honest = batch(&["a", "b"]);

        let elsewhere = altered(&honest, 0, &5_i64.to_be_bytes());
        assert_eq!(refusal(&mut wire, &topic, elsewhere).await, "INVALID_RECORD", "a base offset");
        let longer = altered(&honest, 23, &7_i32.to_be_bytes());
        assert_eq!(refusal(&mut wire, &topic, longer).await, "INVALID_RECORD", "a last offset that is not the count's");
        let control = altered(&honest, 21, &0x20_i16.to_be_bytes());
        assert_eq!(refusal(&mut wire, &topic, control).await, "INVALID_RECORD", "a control batch");
        let unnumbered = altered(&honest, 43, &9_i64.to_be_bytes());
        assert_eq!(refusal(&mut wire, &topic, unnumbered).await, "INVALID_RECORD", "a producer without a sequence");
    });
}

/// FI-11b.
#[test]
fn batch_beyond_the_topics_limit_is_too_large() {
    run(async |target| {
        let topic = target.topic_with(1, &[("max.message.bytes", "200")]).await;
        let mut wire = target.connect().await;

        assert_eq!(written(&mut wire, &topic, batch(&[&"x".repeat(100)])).await, 0);
        assert_eq!(refusal(&mut wire, &topic, batch(&[&"x".repeat(200)])).await, "MESSAGE_TOO_LARGE");
    });
}

/// FI-11c, PR-16, KIP-467.
#[test]
fn compacted_topic_names_the_records_without_keys() {
    run(async |target| {
        let topic = target.topic_with(1, &[("cleanup.policy", "compact")]).await;
        let mut wire = target.connect().await;
        let answer = produce(&mut wire, &topic, batch(&["a", "b"])).await;

        assert_eq!(error(answer.error_code), "INVALID_RECORD");
        assert_eq!(answer.record_errors.iter().map(|record| record.batch_index).collect::<Vec<_>>(), [0, 1]);
        assert!(answer.error_message.is_some());
    });
}

#[test]
fn records_of_the_far_future_are_refused() {
    run(async |target| {
        target.differs_before(KafkaVersion::V4_0, "message.timestamp.after.max.ms has no limit by default").await;
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;

        assert_eq!(refusal(&mut wire, &topic, batch_at(time() + 7_200_000, &["a"])).await, "INVALID_TIMESTAMP");
        assert_eq!(refusal(&mut wire, &topic, batch_at(i64::MIN, &["a"])).await, "INVALID_TIMESTAMP");
        assert_eq!(written(&mut wire, &topic, batch_at(time() + 600_000, &["a"])).await, 0);
    });
}

/// PR-32.
#[test]
fn log_append_time_is_the_brokers() {
    run(async |target| {
        let topic = target.topic_with(1, &[("message.timestamp.type", "LogAppendTime")]).await;
        let mut wire = target.connect().await;
        let before = time();
        let answer = produce(&mut wire, &topic, batch_at(1_000, &["a", "b"])).await;
        let records = fetch(&mut wire, &topic, 0).await.records.expect("records");
        let stored = Batches::new(records).next().expect("a batch").expect("whole");

        assert!(answer.log_append_time_ms > before);
        stored.verify_crc().expect("a new checksum");
        assert_eq!(stored.header().max_timestamp, answer.log_append_time_ms);
        let mut decompressor = krafka_protocol::compression::Decompressor::default();
        let records = stored.records(&mut decompressor).expect("records");
        assert!(records.iter().all(|record| record.is_ok_and(|record| record.timestamp == answer.log_append_time_ms)));
    });
}

/// FI-12e.
#[test]
fn acks_are_0_or_1_or_all() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        for acks in [-2, 2] {
            let answer = wire.call(produce_request(&topic, acks, Some(batch(&["a"]))), 9).await;

            assert_eq!(error(answer.responses[0].partition_responses[0].error_code), "INVALID_REQUIRED_ACKS");
        }
    });
}

/// FI-13b.
#[test]
fn acks_0_is_not_answered_and_the_connection_goes_on() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        wire.send(produce_request(&topic, 0, Some(batch(&["a"]))), 9).await;

        assert_eq!(written(&mut wire, &topic, batch(&["b"])).await, 1);
    });
}

/// CB-26.
#[test]
fn acks_0_that_fails_closes_the_connection() {
    run(async |target| {
        let mut wire = target.connect().await;
        wire.send(produce_request(&nowhere("nowhere"), 0, Some(batch(&["a"]))), 9).await;

        assert!(wire.is_closed().await);
    });
}

#[test]
fn unknown_topics_and_partitions() {
    run(async |target| {
        target.since(KafkaVersion::V4_1, "Produce 13, by topic id").await;
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        let mut beyond = produce_request(&topic, -1, Some(batch(&["a"])));
        beyond.topic_data[0].partition_data[0].index = 1;
        let lost = nowhere(&target.fresh("nowhere"));

        for version in [9, 12, 13] {
            let answer = wire.call(beyond.clone(), version).await;
            assert_eq!(error(answer.responses[0].partition_responses[0].error_code), "UNKNOWN_TOPIC_OR_PARTITION");
        }
        for (version, expected) in [(12, "UNKNOWN_TOPIC_OR_PARTITION"), (13, "UNKNOWN_TOPIC_ID")] {
            let answer = wire.call(produce_request(&lost, -1, Some(batch(&["a"]))), version).await;
            assert_eq!(error(answer.responses[0].partition_responses[0].error_code), expected);
        }
    });
}

#[test]
fn one_partition_fails_alone() {
    run(async |target| {
        let topic = target.topic(2).await;
        let mut wire = target.connect().await;
        let mut request = produce_request(&topic, -1, Some(batch(&["a"])));
        let mut second = request.topic_data[0].partition_data[0].clone();
        second.index = 1;
        second.records = Some(Bytes::from_static(b"nonsense"));
        request.topic_data[0].partition_data.push(second);
        let mut answers = wire.call(request, 9).await.responses.remove(0).partition_responses;
        answers.sort_by_key(|answer| answer.index);

        assert_eq!((error(answers[0].error_code), answers[0].base_offset), ("NONE", 0));
        assert_ne!(ErrorCode(answers[1].error_code), ErrorCode::NONE);
        assert_eq!(fetch(&mut wire, &topic, 0).await.high_watermark, 1);
    });
}
