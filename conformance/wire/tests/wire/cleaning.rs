//! What brokers do to logs by themselves: retention and compaction. In virtual time on the fake; on a real broker that
//! does both often.

use std::time::Duration;

use krafka_fake_broker::{Clock, TokioClock};
use krafka_protocol::api::fetch::FetchRequest;
use krafka_protocol::api::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use krafka_protocol::compression::{Compression, Compressor, Decompressor};
use krafka_protocol::records::{Batch, BatchBuilder, Batches, NO_HEADERS, Stamp};
use krafka_protocol::{Bytes, Str};

use crate::records::{base_offsets, batch_at, error, fetch, fetch_request, only, produce, time, written};
use crate::target::{Target, Topic, Wire, run_on_brisk};

/// So far apart that each batch begins a segment of its own.
const SEGMENT: (&str, &str) = ("segment.ms", "1000");
/// Any dirt is enough.
const DIRTY: (&str, &str) = ("min.cleanable.dirty.ratio", "0.01");
const COMPACT: (&str, &str) = ("cleanup.policy", "compact");

/// A batch of records with these keys and values, at one time.
pub(crate) fn keyed(
    codec: Compression,
    timestamp: i64,
    records: &[(&str, Option<&str>)],
    stamp: Option<Stamp>,
) -> Bytes {
    let mut builder = BatchBuilder::new();
    for (key, value) in records {
        let (key, value) = (Some(key.as_bytes()), value.map(str::as_bytes));
        builder.try_append(timestamp, key, value, NO_HEADERS).expect("there is room");
    }
    let mut sealed = builder.seal(&mut Compressor::new(codec, None).expect("a codec")).expect("a batch");
    if let Some(stamp) = stamp {
        sealed.stamp(stamp);
    }
    sealed.bytes()
}

pub(crate) fn plain(timestamp: i64, records: &[(&str, Option<&str>)]) -> Bytes {
    keyed(Compression::None, timestamp, records, None)
}

/// All batches of a log, segment by segment.
pub(crate) async fn batches(wire: &mut Wire, topic: &Topic) -> Vec<Batch> {
    let mut all: Vec<Batch> = Vec::new();
    let mut offset = earliest(wire, topic).await;
    loop {
        let data = fetch(wire, topic, offset).await;
        assert_eq!(error(data.error_code), "NONE");
        let read: Vec<_> = Batches::new(data.records.unwrap_or_default()).map(|batch| batch.expect("whole")).collect();
        let Some(last) = read.last() else { return all };
        offset = last.header().next_offset();
        all.extend(read);
    }
}

/// The offsets, keys and values of a log.
async fn contents(wire: &mut Wire, topic: &Topic) -> Vec<(i64, Str, Option<Str>)> {
    let text = |bytes: &Bytes| Str::from(String::from_utf8_lossy(bytes).into_owned());
    let mut all = Vec::new();
    for batch in batches(wire, topic).await {
        batch.verify_crc().expect("the checksum is right");
        let records = batch.records(&mut Decompressor::default()).expect("records").to_vec().expect("whole records");
        all.extend(records.iter().map(|record| {
            (record.offset, record.key.as_ref().map(text).unwrap_or_default(), record.value.as_ref().map(text))
        }));
    }
    all
}

/// The same in short: `0 k1=a`, and `1 k1` for a tombstone.
pub(crate) async fn told(wire: &mut Wire, topic: &Topic) -> Vec<String> {
    let line = |(offset, key, value): (i64, Str, Option<Str>)| match value {
        Some(value) => format!("{offset} {key}={value}"),
        None => format!("{offset} {key}"),
    };
    contents(wire, topic).await.into_iter().map(line).collect()
}

/// Waits until a log has so many records.
async fn until(wire: &mut Wire, topic: &Topic, records: usize) -> Vec<String> {
    for _ in 0..200 {
        let told = told(wire, topic).await;
        if told.len() == records {
            return told;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the log is {:?}", told(wire, topic).await);
}

async fn earliest(wire: &mut Wire, topic: &Topic) -> i64 {
    let partition = ListOffsetsPartition { timestamp: -2, ..ListOffsetsPartition::default() };
    let topic = ListOffsetsTopic { name: topic.name.clone(), partitions: vec![partition] };
    let request = ListOffsetsRequest { replica_id: -1, topics: vec![topic], ..ListOffsetsRequest::default() };
    wire.call(request, 7).await.topics.remove(0).partitions.remove(0).offset
}

/// Waits until a log begins at an offset, for as long as retention may take: five minutes, if it is not brisk.
async fn until_earliest(wire: &mut Wire, topic: &Topic, offset: i64) {
    for _ in 0..4_000 {
        if earliest(wire, topic).await == offset {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the log begins at {}", earliest(wire, topic).await);
}

pub(crate) async fn compacted(target: &Target, more: &[(&str, &str)]) -> (Topic, Wire) {
    let settings: Vec<_> = [COMPACT, SEGMENT, DIRTY].iter().chain(more).copied().collect();
    (target.topic_with(1, &settings).await, target.connect().await)
}

#[test]
fn last_record_of_each_key_stays_at_its_offset() {
    run_on_brisk(async |target| {
        for codec in [Compression::None, Compression::Gzip] {
            let (topic, mut wire) = compacted(&target, &[]).await;
            let start = time();
            let first = [("k1", Some("a")), ("k2", Some("b")), ("k3", Some("c"))];
            written(&mut wire, &topic, keyed(codec, start, &first, None)).await;
            written(&mut wire, &topic, keyed(codec, start + 10, &[("k1", Some("d")), ("k4", Some("e"))], None)).await;
            written(&mut wire, &topic, keyed(codec, start + 5_000, &[("k2", Some("f"))], None)).await;

            // The newest record lies in the segment that is written to: it does not count yet.
            let left = until(&mut wire, &topic, 5).await;
            assert_eq!(left, ["1 k2=b", "2 k3=c", "3 k1=d", "4 k4=e", "5 k2=f"]);
            let batches = batches(&mut wire, &topic).await;
            let header = batches[0].header();
            assert_eq!((header.base_offset, header.last_offset_delta, header.count), (0, 2, 2));
            assert_eq!(header.attributes.compression().ok(), Some(codec));
            assert_eq!(earliest(&mut wire, &topic).await, 0, "the log begins where it did");
        }
    });
}

/// Neither do young records count for what is older, nor go; and with them stays all that is behind them.
#[test]
fn what_is_young_is_not_compacted() {
    run_on_brisk(async |target| {
        let lag = ("min.compaction.lag.ms", "3600000");
        let (topic, mut wire) = compacted(&target, &[lag]).await;
        let (young, old) = (time(), time() - 2 * 3_600_000);
        for (key, value, timestamp) in [
            ("k1", "a", old),
            ("k1", "b", old + 5_000),
            ("k1", "c", young),
            ("k1", "d", young + 5_000),
            ("k1", "e", young + 10_000),
        ] {
            written(&mut wire, &topic, plain(timestamp, &[(key, Some(value))])).await;
        }

        let left = until(&mut wire, &topic, 4).await;
        assert_eq!(left, ["1 k1=b", "2 k1=c", "3 k1=d", "4 k1=e"]);
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        assert_eq!(told(&mut wire, &topic).await, left);
    });
}

/// KIP-534.
#[test]
fn tombstone_gets_a_horizon_and_goes_after_it() {
    run_on_brisk(async |target| {
        for (retention, stays) in [("0", false), ("3600000", true)] {
            let (topic, mut wire) = compacted(&target, &[("delete.retention.ms", retention)]).await;
            let start = time();
            written(&mut wire, &topic, plain(start, &[("k1", Some("a")), ("k1", None)])).await;
            written(&mut wire, &topic, plain(start + 5_000, &[("k9", Some("x"))])).await;
            assert_eq!(until(&mut wire, &topic, 2).await, ["1 k1", "2 k9=x"]);
            let batches = batches(&mut wire, &topic).await;
            let horizon = batches[0].header().delete_horizon_ms().expect("a delete horizon");
            assert!(horizon - start >= 60_000, "{horizon} counts from the compaction");
            assert_eq!(batches[0].header().max_timestamp, start);
            assert_eq!(batches[1].header().delete_horizon_ms(), None);

            tokio::time::sleep(Duration::from_millis(10)).await;
            written(&mut wire, &topic, plain(start + 10_000, &[("k8", Some("y"))])).await;
            written(&mut wire, &topic, plain(start + 15_000, &[("k8", Some("z"))])).await;
            written(&mut wire, &topic, plain(start + 20_000, &[("k7", Some("w"))])).await;
            let expected = if stays { 4 } else { 3 };
            let left = until(&mut wire, &topic, expected).await;
            assert_eq!(left.contains(&"1 k1".to_owned()), stays, "{left:?}");
        }
    });
}

/// What compaction leaves of a producer is enough to recognise its next batch.
#[test]
fn last_batch_of_a_producer_stays_empty() {
    run_on_brisk(async |target| {
        let (topic, mut wire) = compacted(&target, &[]).await;
        let start = time();
        let stamp = |base_sequence| {
            Some(Stamp { producer_id: 9_000_001, producer_epoch: 2, base_sequence, transactional: false })
        };
        written(&mut wire, &topic, keyed(Compression::None, start, &[("k1", Some("a"))], stamp(0))).await;
        written(&mut wire, &topic, keyed(Compression::None, start, &[("k1", Some("b"))], stamp(1))).await;
        written(&mut wire, &topic, plain(start, &[("k1", Some("c"))])).await;
        written(&mut wire, &topic, plain(start + 5_000, &[("k2", Some("d"))])).await;

        assert_eq!(until(&mut wire, &topic, 2).await, ["2 k1=c", "3 k2=d"]);
        let batches = batches(&mut wire, &topic).await;
        let header = batches[0].header();
        assert_eq!((header.base_offset, header.count, header.base_sequence), (1, 0, 1), "the first is gone as a whole");
        assert_eq!((header.producer_id, header.producer_epoch, header.base_timestamp), (9_000_001, 2, -1));
        let next = keyed(Compression::None, start + 5_000, &[("k1", Some("e"))], stamp(2));
        assert_eq!(written(&mut wire, &topic, next).await, 4);
        let again = keyed(Compression::None, start, &[("k1", Some("b"))], stamp(1));
        assert_eq!(produce(&mut wire, &topic, again).await.base_offset, 1, "a repetition");
    });
}

/// FI-02b. Whoever is in an older segment gets what there is of it at once: no more will come.
#[test]
fn fetch_reads_one_segment_and_does_not_wait_there() {
    run_on_brisk(async |target| {
        let topic = target.topic_with(1, &[SEGMENT]).await;
        let mut wire = target.connect().await;
        let start = time();
        for after in [0, 10, 5_000] {
            written(&mut wire, &topic, batch_at(start + after, &["a"])).await;
        }
        let patient =
            |offset| FetchRequest { max_wait_ms: 10_000, min_bytes: 1 << 19, ..fetch_request(&topic, offset) };
        let began = TokioClock.now();

        assert_eq!(base_offsets(&only(wire.call(patient(0), 12).await)), [0, 1]);
        assert_eq!(base_offsets(&only(wire.call(patient(1), 12).await)), [1]);
        assert!(TokioClock.now() - began < Duration::from_secs(5), "it did not wait");
        wire.send(FetchRequest { max_wait_ms: 400, ..patient(2) }, 12).await;
        assert!(wire.is_quiet().await, "the segment that is written to may get more");
        assert_eq!(base_offsets(&only(wire.receive::<FetchRequest>(12).await)), [2]);
    });
}

#[test]
fn segments_older_than_retention_go() {
    run_on_brisk(async |target| {
        let topic = target.topic_with(1, &[SEGMENT, ("retention.ms", "1800000")]).await;
        let mut wire = target.connect().await;
        for age in [3_600_000, 3_590_000, 60_000] {
            written(&mut wire, &topic, batch_at(time() - age, &["a", "b"])).await;
        }

        until_earliest(&mut wire, &topic, 4).await;
        assert_eq!(error(fetch(&mut wire, &topic, 3).await.error_code), "OFFSET_OUT_OF_RANGE");
        assert_eq!(batches(&mut wire, &topic).await.len(), 1);
    });
}

#[test]
fn segment_that_is_written_to_goes_too_when_all_of_it_is_old() {
    run_on_brisk(async |target| {
        let topic = target.topic_with(1, &[("retention.ms", "60000")]).await;
        let mut wire = target.connect().await;
        written(&mut wire, &topic, batch_at(time() - 3_600_000, &["a", "b"])).await;

        until_earliest(&mut wire, &topic, 2).await;
        assert_eq!(fetch(&mut wire, &topic, 2).await.high_watermark, 2);
        assert_eq!(written(&mut wire, &topic, batch_at(time() + 60_000, &["c"])).await, 2);
        assert_eq!(batches(&mut wire, &topic).await.len(), 1);
    });
}

#[test]
fn segments_beyond_the_size_go() {
    run_on_brisk(async |target| {
        let size = batch_at(time(), &["a"]).len();
        let most = (size + size / 2).to_string();
        let topic = target.topic_with(1, &[SEGMENT, ("retention.bytes", &most)]).await;
        let mut wire = target.connect().await;
        for segment in 0..4 {
            written(&mut wire, &topic, batch_at(time() + segment * 5_000, &["a"])).await;
        }

        // Of 4 there may be 1.5: two may go whole, a third would be too many.
        until_earliest(&mut wire, &topic, 2).await;
    });
}

#[test]
fn compacted_topics_keep_what_is_old_unless_they_delete_as_well() {
    run_on_brisk(async |target| {
        let (kept, mut wire) = compacted(&target, &[("retention.ms", "1000")]).await;
        let both = [("cleanup.policy", "compact,delete"), SEGMENT, ("retention.ms", "1800000")];
        let deleted = target.topic_with(1, &both).await;
        for topic in [&kept, &deleted] {
            for (age, key) in [(3_600_000, "k1"), (60_000, "k2")] {
                written(&mut wire, topic, plain(time() - age, &[(key, Some("a"))])).await;
            }
        }

        until_earliest(&mut wire, &deleted, 1).await;
        assert_eq!(told(&mut wire, &kept).await, ["0 k1=a", "1 k2=a"]);
    });
}
