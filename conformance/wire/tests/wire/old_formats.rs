//! What brokers up to 3.9 do for clients from before Kafka 0.11: messages of formats 0 and 1, and offsets of segments.

use krafka_fake_broker::KafkaVersion;
use krafka_protocol::Bytes;
use krafka_protocol::api::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use krafka_protocol::compression::{Compression, Decompressor};
use krafka_protocol::records::{Batches, Record};

use crate::records::{batch, batch_at, compressed, error, fetch_request, only, produce_request, time, written};
use crate::target::{Target, Topic, Wire, run, run_as};

async fn is_old(target: &Target) {
    target.until(KafkaVersion::V3_9, "versions of before Kafka 2.1").await;
}

/// CRC-32 as zip has it.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    !bytes.iter().fold(u32::MAX, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step))
}

/// A message of an old format with this value, and no key.
fn message(format: u8, timestamp: i64, value: &str) -> Vec<u8> {
    let mut body = vec![format, 0];
    if format == 1 {
        body.extend(timestamp.to_be_bytes());
    }
    body.extend((-1_i32).to_be_bytes());
    body.extend((value.len() as i32).to_be_bytes());
    body.extend(value.as_bytes());
    let mut message = 0_i64.to_be_bytes().to_vec();
    message.extend((body.len() as i32 + 4).to_be_bytes());
    message.extend(crc32(&body).to_be_bytes());
    message.extend(body);
    message
}

/// The format of what a broker answers, and the records in it.
async fn read(wire: &mut Wire, topic: &Topic, offset: i64, version: i16) -> (Vec<i8>, Vec<Record>) {
    let data = only(wire.call(fetch_request(topic, offset), version).await);
    assert_eq!(error(data.error_code), "NONE", "version {version}");
    let batches: Vec<_> =
        Batches::new(data.records.expect("records")).map(|batch| batch.expect("a batch or a message")).collect();
    let mut decompressor = Decompressor::default();
    let mut records = Vec::new();
    for batch in &batches {
        batch.verify_crc().expect("the checksum is right");
        records.extend(batch.records(&mut decompressor).expect("records").to_vec().expect("whole records"));
    }
    let mut formats: Vec<_> = batches.iter().map(|batch| batch.header().magic).collect();
    formats.dedup();
    (formats, records)
}

#[test]
fn messages_become_one_batch() {
    run_as(KafkaVersion::V3_9, async |target| {
        is_old(&target).await;
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        let now = time();
        for (version, format) in [(0, 0), (1, 0), (2, 0), (2, 1)] {
            let messages = [message(format, now, "a"), message(format, now + 5, "b")].concat();
            let answer = wire.call(produce_request(&topic, -1, Some(Bytes::from(messages))), version).await;
            let answer = &answer.responses[0].partition_responses[0];
            assert_eq!(error(answer.error_code), "NONE", "version {version}");

            let (formats, records) = read(&mut wire, &topic, answer.base_offset, 12).await;
            assert_eq!((formats, records.len()), (vec![2], 2));
            let times: Vec<_> = records.iter().map(|record| record.timestamp).collect();
            assert_eq!(times, if format == 0 { [-1, -1] } else { [now, now + 5] });
            assert_eq!(records[1].value.as_deref(), Some(&b"b"[..]));
            assert_eq!(records[1].offset, answer.base_offset + 1);
        }
    });
}

#[test]
fn old_requests_may_have_new_batches() {
    run_as(KafkaVersion::V3_9, async |target| {
        is_old(&target).await;
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        let answer = wire.call(produce_request(&topic, -1, Some(batch(&["a"]))), 2).await;

        assert_eq!(error(answer.responses[0].partition_responses[0].error_code), "NONE");
    });
}

#[test]
fn broken_messages_are_corrupt() {
    run_as(KafkaVersion::V3_9, async |target| {
        is_old(&target).await;
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        let mut broken = message(1, time(), "a");
        *broken.last_mut().expect("a byte") ^= 1;
        let answer = wire.call(produce_request(&topic, -1, Some(Bytes::from(broken))), 2).await;

        assert_eq!(error(answer.responses[0].partition_responses[0].error_code), "CORRUPT_MESSAGE");
    });
}

#[test]
fn batches_become_messages_for_old_readers() {
    run_as(KafkaVersion::V3_9, async |target| {
        is_old(&target).await;
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        let now = time();
        written(&mut wire, &topic, batch_at(now, &["a", "b"])).await;
        written(&mut wire, &topic, compressed(Compression::Gzip, now, &["c", "d"])).await;

        for (version, format) in [(0, 0), (1, 0), (2, 1), (3, 1)] {
            let (formats, records) = read(&mut wire, &topic, 0, version).await;
            assert_eq!(formats, [format], "version {version}");
            let told: Vec<_> = records.iter().map(|record| (record.offset, record.value.clone())).collect();
            let values = ["a", "b", "c", "d"].map(|value| Some(Bytes::from_static(value.as_bytes())));
            assert_eq!(told, (0..).zip(values).collect::<Vec<_>>());
            assert_eq!(records[1].timestamp, if format == 0 { -1 } else { now + 1 });
        }
    });
}

#[test]
fn offsets_of_segments() {
    run_as(KafkaVersion::V3_9, async |target| {
        is_old(&target).await;
        let topic = target.topic_with(1, &[("segment.ms", "1000")]).await;
        let mut wire = target.connect().await;
        for after in [0, 5_000, 10_000] {
            written(&mut wire, &topic, batch_at(time() + after, &["a", "b"])).await;
        }
        let mut ask = async |timestamp, max_num_offsets| {
            let partition = ListOffsetsPartition { timestamp, max_num_offsets, ..ListOffsetsPartition::default() };
            let topic = ListOffsetsTopic { name: topic.name.clone(), partitions: vec![partition] };
            let request = ListOffsetsRequest { replica_id: -1, topics: vec![topic], ..ListOffsetsRequest::default() };
            let answer = wire.call(request, 0).await.topics.remove(0).partitions.remove(0);
            assert_eq!(error(answer.error_code), "NONE");
            answer.old_style_offsets
        };

        assert_eq!(ask(-1, 10).await, [6, 4, 2, 0]);
        assert_eq!(ask(-1, 1).await, [6]);
        assert_eq!(ask(-1, 3).await, [6, 4, 2]);
        assert_eq!(ask(-2, 10).await, [0]);
        assert_eq!(ask(1_000, 10).await, [] as [i64; 0], "nothing is that old");
        assert_eq!(ask(time() + 3_600_000, 2).await, [6, 4]);
    });
}

/// KIP-110. Kafka 4 looks no more at what the topic says.
#[test]
fn readers_from_before_zstd_are_refused_a_topic_of_zstd() {
    run_as(KafkaVersion::V3_9, async |target| {
        is_old(&target).await;
        let topic = target.topic_with(1, &[("compression.type", "zstd")]).await;
        let mut wire = target.connect().await;
        written(&mut wire, &topic, batch(&["a"])).await;

        for (version, expected) in
            [(3, "UNSUPPORTED_COMPRESSION_TYPE"), (9, "UNSUPPORTED_COMPRESSION_TYPE"), (10, "NONE")]
        {
            let data = only(wire.call(fetch_request(&topic, 0), version).await);
            assert_eq!(error(data.error_code), expected, "version {version}");
        }
    });
}

#[test]
fn kafka_4_gives_zstd_to_all_readers() {
    run(async |target| {
        target.since(KafkaVersion::V4_0, "zstd for versions of Fetch from before it").await;
        let topic = target.topic_with(1, &[("compression.type", "zstd")]).await;
        let mut wire = target.connect().await;
        written(&mut wire, &topic, batch(&["a"])).await;

        assert_eq!(error(only(wire.call(fetch_request(&topic, 0), 4).await).error_code), "NONE");
    });
}
