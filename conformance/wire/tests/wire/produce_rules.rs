//! What a topic's settings make of a batch: timestamps, codecs, sizes and keys; and which records are named when it is
//! refused.

use krafka_protocol::Bytes;
use krafka_protocol::api::produce::PartitionProduceResponse;
use krafka_protocol::compression::{Compression, Compressor, Decompressor};
use krafka_protocol::records::{Batch, BatchBuilder, BatchHeader, Batches, NO_HEADERS, Record, Stamp, TimestampType};

use crate::produce::altered;
use crate::records::{batch, batch_at, compressed, error, fetch, produce, produce_request, time, written};
use crate::target::{Topic, Wire, run};

/// A batch of records with keys or without, each at its own time.
fn keyed(records: &[(i64, Option<&str>)]) -> Bytes {
    let mut builder = BatchBuilder::new();
    for (timestamp, key) in records {
        let value = Some("value".as_bytes());
        builder.try_append(*timestamp, key.map(str::as_bytes), value, NO_HEADERS).expect("there is room");
    }
    builder.seal(&mut Compressor::none()).expect("a batch").bytes()
}

/// The batch that a broker stored at an offset, and its records.
async fn stored(wire: &mut Wire, topic: &Topic, offset: i64) -> (Batch, Vec<Record>) {
    let bytes = fetch(wire, topic, offset).await.records.expect("records");
    let batch = Batches::new(bytes).next().expect("a batch").expect("whole");
    batch.verify_crc().expect("the checksum is right");
    let records = batch.records(&mut Decompressor::default()).expect("records").to_vec().expect("whole records");
    (batch, records)
}

/// The code of a refusal, the records that it names, and what it says of them and of the whole.
fn refusal(answer: &PartitionProduceResponse) -> (&'static str, Vec<i32>, Vec<&str>, &str) {
    let texts = answer.record_errors.iter().map(|record| record.batch_index_error_message.as_deref().unwrap_or("-"));
    (
        error(answer.error_code),
        answer.record_errors.iter().map(|record| record.batch_index).collect(),
        texts.collect(),
        answer.error_message.as_deref().unwrap_or("-"),
    )
}

/// FI-11c, PR-16, KIP-467.
#[test]
fn each_record_without_a_key_is_named() {
    run(async |target| {
        let topic = target.topic_with(1, &[("cleanup.policy", "compact")]).await;
        let mut wire = target.connect().await;
        let now = time();
        let records = [(now, None), (now, Some("k")), (now, None), (now, None), (now, None)];
        let answer = produce(&mut wire, &topic, keyed(&records)).await;

        let (code, named, texts, whole) = refusal(&answer);
        assert_eq!((code, named), ("INVALID_RECORD", vec![0, 2, 3, 4]));
        let name = &topic.name;
        let text = format!("Compacted topic cannot accept message without key in topic partition {name}-0");
        assert!(texts.iter().all(|told| *told == text), "{texts:?}");
        assert!(whole.starts_with("One or more records have been rejected due to 4 record errors in total"), "{whole}");
        assert_eq!((answer.base_offset, answer.log_start_offset), (-1, 0));
        assert_eq!(written(&mut wire, &topic, keyed(&[(now, Some("k"))])).await, 0);
    });
}

#[test]
fn time_out_of_range_is_the_code_when_both_are_wrong() {
    run(async |target| {
        let settings = [("cleanup.policy", "compact"), ("message.timestamp.after.max.ms", "3600000")];
        let topic = target.topic_with(1, &settings).await;
        let mut wire = target.connect().await;
        let (now, far) = (time(), time() + 7_200_000);
        let records = [(now, None), (far, Some("k")), (now, Some("k")), (far, None)];
        let answer = produce(&mut wire, &topic, keyed(&records)).await;

        let (code, named, texts, whole) = refusal(&answer);
        assert_eq!((code, named), ("INVALID_TIMESTAMP", vec![0, 1, 3]));
        assert_eq!(whole, "One or more records have been rejected due to invalid timestamp");
        assert!(texts[0].starts_with("Compacted topic cannot accept message without key"), "{texts:?}");
        assert!(
            texts[1].starts_with(&format!("Timestamp {far} of message with offset 1 is out of range.")),
            "{texts:?}"
        );
        assert!(texts[2].starts_with("Compacted topic cannot accept message without key"), "{texts:?}");
    });
}

#[test]
fn topic_bounds_its_records_times() {
    run(async |target| {
        let bounds = [("message.timestamp.before.max.ms", "600000"), ("message.timestamp.after.max.ms", "60000")];
        let topic = target.topic_with(1, &bounds).await;
        let mut wire = target.connect().await;
        let now = time();

        for (after, code) in
            [(-700_000, "INVALID_TIMESTAMP"), (-300_000, "NONE"), (90_000, "NONE"), (200_000, "INVALID_TIMESTAMP")]
        {
            let answer = produce(&mut wire, &topic, batch_at(now + after, &["a"])).await;
            assert_eq!(error(answer.error_code), code, "{after}");
        }
        let answer = produce(&mut wire, &topic, batch_at(-1, &["a"])).await;
        assert_eq!(error(answer.error_code), "NONE", "no timestamp at all");
    });
}

#[test]
fn log_append_time_minds_no_bounds() {
    run(async |target| {
        let settings = [("message.timestamp.type", "LogAppendTime"), ("message.timestamp.before.max.ms", "1000")];
        let topic = target.topic_with(1, &settings).await;
        let mut wire = target.connect().await;

        written(&mut wire, &topic, batch_at(1_000, &["a"])).await;
        written(&mut wire, &topic, batch_at(time() + 7_200_000, &["a"])).await;
        written(&mut wire, &topic, compressed(Compression::Gzip, 1_000, &["a", "b"])).await;
        let (batch, records) = stored(&mut wire, &topic, 2).await;
        assert_eq!(batch.header().timestamp_type(), Some(TimestampType::LogAppendTime));
        assert!(records.iter().all(|record| record.timestamp == batch.header().max_timestamp));
    });
}

/// Where the broker's time counts, a producer must not claim it; elsewhere only for records that have no time.
#[test]
fn producer_that_claims_the_brokers_time_is_refused_where_it_counts() {
    run(async |target| {
        let topic = target.topic_with(1, &[("message.timestamp.type", "LogAppendTime")]).await;
        let plain = target.topic(1).await;
        let mut wire = target.connect().await;
        let claimed = |timestamp| altered(&batch_at(timestamp, &["ab"]), 21, &0x08_i16.to_be_bytes());
        let start = time();
        let of_all = "One or more records have been rejected due to invalid timestamp";
        for (topic, timestamp) in [(&topic, start), (&plain, -1)] {
            let answer = produce(&mut wire, topic, claimed(timestamp)).await;

            let of_one = format!(
                "Invalid timestamp type in message DefaultRecord(offset=0, timestamp={timestamp}, key=0 bytes, \
                 value=2 bytes). Producer should not set timestamp type to LogAppendTime."
            );
            assert_eq!(refusal(&answer), ("INVALID_TIMESTAMP", vec![0], vec![&*of_one], of_all));
        }
    });
}

/// Kafka writes a batch anew for another codec. It is not prepared for times before 1970 then, and of the attributes
/// only those that a producer may set stay.
#[test]
fn batches_that_are_written_anew_lose_what_is_not_theirs() {
    run(async |target| {
        let topic = target.topic_with(1, &[("compression.type", "gzip")]).await;
        let mut wire = target.connect().await;

        let answer = produce(&mut wire, &topic, batch_at(-5, &["a"])).await;
        assert_eq!((error(answer.error_code), answer.error_message), ("UNKNOWN_SERVER_ERROR", None));

        let strange = altered(&batch(&["a"]), 21, &0x0140_i16.to_be_bytes());
        let offset = written(&mut wire, &topic, strange).await;
        assert_eq!(stored(&mut wire, &topic, offset).await.0.header().attributes.0, 1, "gzip, and nothing else");
    });
}

#[test]
fn producer_that_claims_the_brokers_time_is_put_right() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        let claimed = altered(&batch(&["a", "b"]), 21, &0x08_i16.to_be_bytes());
        written(&mut wire, &topic, claimed).await;

        let header = *stored(&mut wire, &topic, 0).await.0.header();
        assert_eq!(header.timestamp_type(), Some(TimestampType::CreateTime));
        assert_eq!(header.max_timestamp, header.base_timestamp + 1);
    });
}

#[test]
fn greatest_timestamp_is_counted_again() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        let start = time();
        let lying = altered(&batch_at(start, &["a", "b"]), 35, &7_i64.to_be_bytes());
        written(&mut wire, &topic, lying).await;
        let lying = altered(&compressed(Compression::Gzip, start, &["a", "b"]), 35, &7_i64.to_be_bytes());
        written(&mut wire, &topic, lying).await;

        assert_eq!(stored(&mut wire, &topic, 0).await.0.header().max_timestamp, start + 1);
        assert_eq!(stored(&mut wire, &topic, 2).await.0.header().max_timestamp, start + 1);
    });
}

/// A batch of two records whose offsets are 0 and 5, though it counts two.
fn with_a_gap(codec: Compression) -> Bytes {
    let honest = batch(&["a", "b"]);
    let header = BatchHeader::peek(&honest).expect("a header");
    let records = Batch::new(honest).expect("a batch").records(&mut Decompressor::default()).expect("records");
    let wide = BatchHeader { last_offset_delta: 5, ..header };
    let moved = records.iter().map(|record| record.expect("a record"));
    let moved = moved.map(|record| krafka_protocol::records::RecordRef { offset: record.offset * 5, ..record });
    let mut compressor = Compressor::new(codec, None).expect("a codec");
    let bytes = krafka_protocol::records::rewrite_batch(&wide, moved, &mut compressor).expect("a batch");
    altered(&bytes.freeze(), 23, &1_i32.to_be_bytes())
}

#[test]
fn offsets_inside_a_batch_are_looked_at_only_when_it_is_compressed() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        let strange = with_a_gap(Compression::None);

        let refused = produce(&mut wire, &topic, with_a_gap(Compression::Gzip)).await;
        assert_eq!((error(refused.error_code), refused.log_start_offset), ("UNKNOWN_SERVER_ERROR", 0));
        assert_eq!(written(&mut wire, &topic, strange.clone()).await, 0);
        assert_eq!(fetch(&mut wire, &topic, 0).await.records.expect("records")[21..], strange[21..]);
        assert_eq!(written(&mut wire, &topic, batch(&["c"])).await, 2);

        let topic = target.topic_with(1, &[("compression.type", "gzip")]).await;
        assert_eq!(written(&mut wire, &topic, strange).await, 0);
        let (_, records) = stored(&mut wire, &topic, 0).await;
        assert_eq!(records.iter().map(|record| record.offset).collect::<Vec<_>>(), [0, 1], "written anew");
    });
}

/// `compression.type`: the broker stores with the topic's codec, whatever the producer took.
#[test]
fn batches_are_stored_in_the_topics_codec() {
    run(async |target| {
        for (setting, codec) in [
            ("uncompressed", Compression::None),
            ("gzip", Compression::Gzip),
            ("snappy", Compression::Snappy),
            ("lz4", Compression::Lz4),
            ("zstd", Compression::Zstd),
        ] {
            let topic = target.topic_with(1, &[("compression.type", setting)]).await;
            let mut wire = target.connect().await;
            let start = time();
            for sent in [Compression::None, Compression::Lz4] {
                let mut builder = BatchBuilder::new();
                for after in [0, 5] {
                    let headers = [("h", Some("x"))];
                    builder.try_append(start + after, Some(b"k"), Some(b"v"), &headers).expect("there is room");
                }
                let mut compressor = Compressor::new(sent, None).expect("a codec");
                let mut sealed = builder.seal(&mut compressor).expect("a batch");
                sealed.stamp(Stamp {
                    producer_id: 9_000_000,
                    producer_epoch: 3,
                    base_sequence: if sent == Compression::None { 0 } else { 2 },
                    transactional: false,
                });
                let offset = written(&mut wire, &topic, sealed.bytes()).await;

                let (batch, records) = stored(&mut wire, &topic, offset).await;
                let header = batch.header();
                assert_eq!(header.attributes.compression().ok(), Some(codec), "{setting} from {sent:?}");
                assert_eq!((header.base_offset, header.last_offset_delta, header.count), (offset, 1, 2));
                assert_eq!((header.producer_id, header.producer_epoch), (9_000_000, 3));
                assert_eq!(header.base_sequence, if offset == 0 { 0 } else { 2 });
                assert_eq!((header.base_timestamp, header.max_timestamp), (start, start + 5));
                let times: Vec<_> = records.iter().map(|record| (record.offset, record.timestamp)).collect();
                assert_eq!(times, [(offset, start), (offset + 1, start + 5)]);
                assert!(records.iter().all(|record| record.key.as_deref() == Some(b"k") && record.headers.len() == 1));
            }
        }
    });
}

#[test]
fn batch_larger_than_a_segment_is_too_large_for_the_log() {
    run(async |target| {
        let settings = [("segment.bytes", "1048576"), ("max.message.bytes", "4000000")];
        let topic = target.topic_with(1, &settings).await;
        let mut wire = target.connect().await;
        let (small, large) = ("x".repeat(1_000_000), "x".repeat(1_100_000));

        assert_eq!(written(&mut wire, &topic, batch(&[&small])).await, 0);
        let answer = produce(&mut wire, &topic, batch(&[&large])).await;
        assert_eq!(error(answer.error_code), "RECORD_LIST_TOO_LARGE");
        assert_eq!((answer.log_start_offset, refusal(&answer).3), (-1, "-"));
    });
}

#[test]
fn partition_named_twice() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        let mut request = produce_request(&topic, -1, Some(batch(&["a"])));
        let mut second = request.topic_data[0].partition_data[0].clone();
        second.records = Some(batch(&["b", "c"]));
        request.topic_data[0].partition_data.push(second);
        let answer = wire.call(request, 9).await;
        let answers = &answer.responses[0].partition_responses;
        assert_eq!(answers.len(), 1);
        assert_eq!(fetch(&mut wire, &topic, 0).await.high_watermark, 2);
    });
}

/// BY-05, BY-06, BY-07, BY-08, BY-09. Each way in which bytes can fail to be a batch, with the error and the log's
/// start in the answer.
#[test]
fn what_cannot_be_read() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        let honest = batch(&["a", "b"]);
        let counted = |bytes: &Bytes, count: i32| {
            altered(&altered(bytes, 57, &count.to_be_bytes()), 23, &(count - 1).to_be_bytes())
        };
        let gzip = compressed(Compression::Gzip, time(), &["a", "b"]);
        let codec = |number: i16| altered(&honest, 21, &number.to_be_bytes());
        let empty = altered(&counted(&honest, 0).slice(..61), 8, &49_i32.to_be_bytes());
        let (invalid, unknown) = (("INVALID_RECORD", 0), ("UNKNOWN_SERVER_ERROR", 0));

        for (name, bytes, expected) in [
            ("a record less than counted", counted(&honest, 3), invalid),
            ("a record more than counted", counted(&honest, 1), invalid),
            ("a record less, compressed", counted(&gzip, 3), invalid),
            ("a record more, compressed", counted(&gzip, 1), invalid),
            ("a record longer than the batch", altered(&honest, 61, &[0x7e]), invalid),
            ("a record shorter than it is", altered(&honest, 61, &[0x02]), invalid),
            ("a key longer than its record", altered(&honest, 65, &[0x40]), invalid),
            ("no records", empty, invalid),
            ("no gzip", altered(&gzip, 61, &[0xff, 0xff]), unknown),
            ("broken gzip", altered(&gzip, 75, &[0xff, 0xff]), unknown),
            ("no snappy", codec(2), unknown),
            ("no lz4", codec(3), unknown),
            ("no zstd", codec(4), unknown),
            ("no codec", codec(5), unknown),
            ("a format of the future", altered(&honest, 16, &[3]), ("CORRUPT_MESSAGE", -1)),
            ("an old format", altered(&honest, 16, &[1]), ("INVALID_RECORD", -1)),
            ("a batch that is cut", honest.slice(..honest.len() - 1), ("INVALID_RECORD", -1)),
            ("a header that is cut", honest.slice(..40), ("INVALID_RECORD", -1)),
            ("less than the magic", honest.slice(..16), ("INVALID_RECORD", -1)),
        ] {
            let answer = produce(&mut wire, &topic, bytes).await;
            assert_eq!((error(answer.error_code), answer.log_start_offset), expected, "{name}");
            let told = (expected.0 == "CORRUPT_MESSAGE").then_some("Invalid magic found in record: 3");
            assert_eq!(answer.error_message.as_deref(), told, "{name}");
        }
        for bytes in [codec(0x40), codec(0x80), Bytes::from([&honest[..], &honest[..50]].concat())] {
            written(&mut wire, &topic, bytes).await;
        }
    });
}

#[test]
fn min_insync_replicas_counts_no_more_than_there_are() {
    run(async |target| {
        let topic = target.topic_with(1, &[("min.insync.replicas", "5")]).await;
        let mut wire = target.connect().await;
        let answer = produce(&mut wire, &topic, batch(&["a"])).await;
        assert_eq!(error(answer.error_code), "NONE");
    });
}
