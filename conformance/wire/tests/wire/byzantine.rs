//! Bytes that nobody should send, and what a broker makes of them: it answers what it can read, and closes the
//! connection on the rest. No other connection notices.

use std::time::Duration;

use krafka_protocol::api::metadata::{MetadataRequest, MetadataResponse, MetadataResponseTopic};
use krafka_protocol::compression::Compression;
use krafka_protocol::{ApiKey, Bytes, Message, Reader, decode_response_header};

use crate::produce::altered;
use crate::records::{batch, compressed, error, produce, time};
use crate::target::{Target, run};

/// Longer than a broker thinks.
const PATIENCE: Duration = Duration::from_secs(20);

/// A frame: a request header of the kind that the version has, and whatever stands behind it.
fn frame(key: ApiKey, version: i16, body: &[u8]) -> Vec<u8> {
    let mut frame = vec![];
    frame.extend_from_slice(&key.code().to_be_bytes());
    frame.extend_from_slice(&version.to_be_bytes());
    frame.extend_from_slice(&7_i32.to_be_bytes());
    frame.extend_from_slice(&[0, 1, b'k']);
    if key.flexible_version().is_some_and(|first| version >= first) {
        frame.push(0);
    }
    frame.extend_from_slice(body);
    let length = i32::try_from(frame.len()).expect("a short frame");
    [&length.to_be_bytes()[..], &frame].concat()
}

/// The answer to bytes; none if the broker closes the connection.
async fn fate(target: &Target, bytes: &[u8]) -> Option<Bytes> {
    let mut wire = target.connect().await;
    wire.send_raw(bytes).await;
    tokio::time::timeout(PATIENCE, wire.frame()).await.expect("something in time")
}

/// The topics that an answer to Metadata tells of, with their errors.
async fn topics(target: &Target, version: i16, body: &[u8]) -> Option<Vec<(String, &'static str)>> {
    let answer = fate(target, &frame(ApiKey::Metadata, version, body)).await?;
    let mut reader = Reader::new(answer);
    decode_response_header(ApiKey::Metadata, version, &mut reader).expect("a header");
    let answer = MetadataResponse::decode(&mut reader, version).expect("a legal answer");
    let told = |topic: MetadataResponseTopic| (topic.name.unwrap_or_default().to_string(), error(topic.error_code));
    Some(answer.topics.into_iter().map(told).collect())
}

/// BY-03. A request that Kafka can read is answered, however odd it is: a negative length of an array is that of none,
/// which stands for all topics here.
#[test]
fn odd_lengths_are_read_as_kafka_reads_them() {
    run(async |target| {
        let topic = target.topic(1).await;
        let has_all =
            |told: Option<Vec<(String, _)>>| told.expect("an answer").iter().any(|(name, _)| *name == *topic.name);
        assert!(has_all(topics(&target, 4, b"\xff\xff\xff\xff\0").await), "no array");
        assert!(has_all(topics(&target, 4, b"\xff\xff\xff\xfe\0").await), "an array of -2");
        for (name, version, body) in [
            ("an array of none", 4, &b"\0\0\0\0\0"[..]),
            ("a bool of two", 4, b"\0\0\0\0\x02"),
            ("bytes behind the request", 4, b"\0\0\0\0\0abc"),
            ("bytes behind a flexible request", 12, b"\x01\0\0\0abc"),
            ("a varint of five bytes that says one", 12, b"\x81\x80\x80\x80\x00\0\0\0"),
        ] {
            assert_eq!(topics(&target, version, body).await, Some(vec![]), "{name}");
        }
    });
}

/// BY-03.
#[test]
fn lengths_that_cannot_be_close_the_connection() {
    run(async |target| {
        let bystander = &mut target.connect().await;
        for (name, key, version, body) in [
            ("an array of more than there is", ApiKey::Metadata, 4, &b"\0\0\0\x02\0\x01a\0"[..]),
            ("an array of two thousand million", ApiKey::Metadata, 4, b"\x7f\xff\xff\xff\0"),
            ("a string of -1 where there must be one", ApiKey::Metadata, 4, b"\0\0\0\x01\xff\xff\0"),
            ("a string of -2", ApiKey::Metadata, 4, b"\0\0\0\x01\xff\xfe\0"),
            ("a string longer than the frame", ApiKey::Metadata, 4, b"\0\0\0\x01\0\x7fa\0"),
            ("a request that is cut", ApiKey::Metadata, 4, b"\0\0\0\0"),
            ("a compact array of two thousand million", ApiKey::Metadata, 12, b"\xff\xff\xff\xff\x07\0\0\0"),
            ("a varint beyond 32 bits", ApiKey::Metadata, 12, b"\xff\xff\xff\xff\xff\x01\0\0\0"),
            ("a varint of six bytes", ApiKey::Metadata, 12, b"\x81\x80\x80\x80\x80\x00\0\0\0"),
            ("a compact string that must be there", ApiKey::FindCoordinator, 4, b"\0\x02\0\0"),
            ("a compact array that must be there", ApiKey::FindCoordinator, 4, b"\0\0\0"),
            ("a compact string longer than the frame", ApiKey::FindCoordinator, 4, b"\0\x02\x7fab\0"),
            ("a compact string of 2 GiB", ApiKey::FindCoordinator, 4, b"\0\x02\xff\xff\xff\xff\x07ab\0"),
        ] {
            assert_eq!(fate(&target, &frame(key, version, body)).await, None, "{name}");
        }
        let asked = MetadataRequest { topics: Some(vec![]), ..MetadataRequest::default() };
        assert!(!bystander.call(asked, 12).await.brokers.is_empty(), "nobody else noticed");
    });
}

/// BY-03.
#[test]
fn string_that_is_no_text_is_a_name_that_cannot_be() {
    run(async |target| {
        target.differs_on_fake("the codec refuses strings that are no UTF-8, and the connection is closed");

        let told = topics(&target, 4, b"\0\0\0\x01\0\x02\xff\xfe\0").await;

        assert_eq!(told, Some(vec![("\u{fffd}\u{fffd}".to_owned(), "INVALID_TOPIC_EXCEPTION")]));
    });
}

/// BY-03.
#[test]
fn compact_array_of_a_negative_length_is_none() {
    run(async |target| {
        target.differs_on_fake("the codec refuses lengths beyond 31 bits, and the connection is closed");
        let topic = target.topic(1).await;

        let told = topics(&target, 12, b"\xff\xff\xff\xff\x0f\0\0\0").await.expect("an answer");

        assert!(told.iter().any(|(name, _)| *name == *topic.name));
    });
}

/// BY-04.
#[test]
fn tagged_fields_that_nobody_knows_are_passed_over() {
    run(async |target| {
        for (name, body, is_read) in [
            ("one", &b"\x01\0\0\x01\x63\x02ab"[..], true),
            ("the same twice", b"\x01\0\0\x02\x63\x01a\x63\x01b", true),
            ("in falling order", b"\x01\0\0\x02\x63\x01a\x62\x01b", true),
            ("longer than the frame", b"\x01\0\0\x01\x63\x7fab", false),
            ("more than there are", b"\x01\0\0\xff\xff\xff\xff\x07", false),
            ("not even their number", b"\x01\0\0", false),
        ] {
            assert_eq!(topics(&target, 12, body).await, is_read.then(Vec::new), "{name}");
        }
    });
}

/// BY-01, BY-15.
#[test]
fn frames_that_are_none_close_the_connection() {
    run(async |target| {
        for (name, bytes) in [
            ("nothing in it", &b"\0\0\0\0"[..]),
            ("less than a header", b"\0\0\0\x03abc"),
            ("a piece of a header", b"\0\0\0\x07\0\x03\0\x0c\0\0\0"),
            ("a negative length", b"\xff\xff\xff\xff"),
            ("a length of 2 GiB", b"\x7f\xff\xff\xff"),
            ("the beginning of TLS", b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03"),
        ] {
            assert_eq!(fate(&target, bytes).await, None, "{name}");
        }
    });
}

/// A batch that says of itself that it is as long as it is.
fn sized(bytes: &[u8]) -> Bytes {
    altered(&Bytes::from(bytes.to_vec()), 8, &(bytes.len() as i32 - 12).to_be_bytes())
}

/// What a broker says of a batch: the error, the log's start, and its words.
type Answer<'a> = (&'a str, i64, Option<&'a str>);

/// Checks what a broker says of each of these.
async fn assert_answers(target: &Target, cases: &[(&str, Bytes, Answer<'_>)]) {
    let topic = target.topic(1).await;
    let mut wire = target.connect().await;
    for (name, bytes, expected) in cases {
        let answer = produce(&mut wire, &topic, bytes.clone()).await;

        let told = (error(answer.error_code), answer.log_start_offset, answer.error_message.as_deref());
        assert_eq!(told, *expected, "{name}");
    }
}

/// BY-05, BY-06.
#[test]
fn batches_of_impossible_lengths_and_counts_are_refused() {
    run(async |target| {
        let honest = batch(&["a", "b"]);
        let gzip = compressed(Compression::Gzip, time(), &["a", "b"]);
        let long = |length: i32| altered(&honest, 8, &length.to_be_bytes());
        let counted = |bytes: &Bytes, count: i32| altered(bytes, 57, &count.to_be_bytes());
        let ends = |bytes: &Bytes, delta: i32| altered(bytes, 23, &delta.to_be_bytes());
        let (corrupt, cut, invalid) =
            (("CORRUPT_MESSAGE", -1, None), ("INVALID_RECORD", -1, None), ("INVALID_RECORD", 0, None));
        let words = |length: i32| format!("Record size {length} is less than the minimum record overhead (14)");
        let (min, minus_one, none, short) = (words(i32::MIN), words(-1), words(0), words(13));
        let told = |words| ("CORRUPT_MESSAGE", -1, Some(words));

        assert_answers(
            &target,
            &[
                ("of the least number", long(i32::MIN), told(&*min)),
                ("of -1", long(-1), told(&*minus_one)),
                ("of 0", long(0), told(&*none)),
                ("shorter than any message", long(13), told(&*short)),
                ("shorter than its header", long(48), corrupt),
                ("one byte too short", long(honest.len() as i32 - 13), corrupt),
                ("one byte too long", long(honest.len() as i32 - 11), cut),
                ("of the greatest number", long(i32::MAX), ("UNKNOWN_SERVER_ERROR", -1, None)),
                ("-1 records", counted(&honest, -1), invalid),
                ("two thousand million records", counted(&honest, i32::MAX), invalid),
                ("the same, to the end", ends(&counted(&honest, i32::MAX), i32::MAX - 1), invalid),
                ("-1 records, compressed", counted(&gzip, -1), invalid),
                ("two thousand million, compressed", ends(&counted(&gzip, i32::MAX), i32::MAX - 1), invalid),
                ("an end before its beginning", ends(&honest, -1), invalid),
            ],
        )
        .await;
    });
}

/// BY-08: streams that end early, or begin as no stream of that codec does.
#[test]
fn streams_that_are_none_are_refused() {
    run(async |target| {
        let packed = |codec| compressed(codec, time(), &["a", "b"]);
        let (gzip, snappy, lz4) = (packed(Compression::Gzip), packed(Compression::Snappy), packed(Compression::Lz4));
        let cut = |bytes: &Bytes, by: usize| sized(&bytes[..bytes.len() - by]);
        let empty = |bytes: &Bytes| sized(&bytes[..61]);
        let unreadable = ("UNKNOWN_SERVER_ERROR", 0, None);

        assert_answers(
            &target,
            &[
                ("gzip cut", cut(&gzip, 3), unreadable),
                ("gzip empty", empty(&gzip), unreadable),
                ("gzip twice", sized(&[&gzip[..], &gzip[61..]].concat()), ("INVALID_RECORD", 0, None)),
                ("snappy cut", cut(&snappy, 3), unreadable),
                ("snappy empty", empty(&snappy), unreadable),
                ("snappy of another kind", altered(&snappy, 61, &[0x81]), unreadable),
                ("a block of snappy that is too long", altered(&snappy, 77, &[0x7f]), unreadable),
                ("lz4 cut", cut(&lz4, 3), unreadable),
                ("lz4 cut by much", cut(&lz4, 12), unreadable),
                ("lz4 empty", empty(&lz4), unreadable),
                ("lz4 of another kind", altered(&lz4, 61, &[0x05]), unreadable),
                ("lz4 of another version", altered(&lz4, 65, &[0x00]), unreadable),
                ("lz4 with a wrong sum of its header", altered(&lz4, 67, &[0x00]), unreadable),
                ("zstd empty", altered(&empty(&gzip), 21, &4_i16.to_be_bytes()), ("INVALID_RECORD", 0, None)),
            ],
        )
        .await;
    });
}

/// BY-09.
#[test]
fn records_of_impossible_lengths_are_refused() {
    run(async |target| {
        let honest = batch(&["a", "b"]);
        let invalid = ("INVALID_RECORD", 0, None);
        let at = |place: usize, byte: u8| altered(&honest, place, &[byte]);

        assert_answers(
            &target,
            &[
                ("a record of -1", at(61, 0x01), invalid),
                ("a record of none", at(61, 0x00), invalid),
                ("a value of -5", at(66, 0x09), invalid),
                ("a value behind the end", at(66, 0x7e), invalid),
                ("-1 headers", at(68, 0x01), invalid),
                ("40 headers", at(68, 0x50), invalid),
                ("no key at all", at(65, 0x01), ("NONE", 0, None)),
                ("an offset beyond the batch", at(64, 0x0a), ("NONE", 0, None)),
            ],
        )
        .await;
    });
}

/// BY-08, BY-09: what Java's reader passes over.
#[test]
fn what_nobody_looks_at_may_be_anything() {
    run(async |target| {
        target.differs_on_fake("bytes behind a compressed stream, and lengths and offsets below none, are refused");
        let packed = |codec| sized(&[&compressed(codec, time(), &["a", "b"])[..], b"abc"].concat());
        let honest = batch(&["a", "b"]);

        assert_answers(
            &target,
            &[
                ("behind gzip", packed(Compression::Gzip), ("NONE", 0, None)),
                ("behind snappy", packed(Compression::Snappy), ("NONE", 0, None)),
                ("behind lz4", packed(Compression::Lz4), ("NONE", 0, None)),
                ("a key of -5", altered(&honest, 65, &[0x09]), ("NONE", 0, None)),
                ("an offset of -1", altered(&honest, 64, &[0x01]), ("NONE", 0, None)),
            ],
        )
        .await;
    });
}

/// BY-07.
#[test]
fn strange_numbers_in_a_header_are_stored_as_they_are() {
    run(async |target| {
        let honest = batch(&["a", "b"]);

        assert_answers(
            &target,
            &[
                ("a greatest time that is not", altered(&honest, 35, &0_i64.to_be_bytes()), ("NONE", 0, None)),
                ("a producer of -2", altered(&honest, 43, &(-2_i64).to_be_bytes()), ("NONE", 0, None)),
                ("a sequence of -2", altered(&honest, 53, &(-2_i32).to_be_bytes()), ("NONE", 0, None)),
                (
                    "a transaction of nobody",
                    altered(&honest, 21, &0x10_i16.to_be_bytes()),
                    ("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", -1, None),
                ),
            ],
        )
        .await;
    });
}
