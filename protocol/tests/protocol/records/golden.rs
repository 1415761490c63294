//! Record sets that Kafka's Java client wrote, with what it reads from them.
//!
//! `vectors/README.md` says where they are from.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use krafka_protocol::Bytes;
use krafka_protocol::compression::{Compression, Compressor, Decompressor};
use krafka_protocol::records::{
    Batch, BatchBuilder, BatchHeader, Batches, ControlRecord, HEADER_LEN, MAGIC, Record, RecordRef, RecordsError,
    Stamp, TimestampType, assign_offsets, rewrite_batch, set_log_append_time,
};
use serde_json::Value;

use crate::recode::records::record_set_json;
use crate::vectors::{hex, lines, unhex};

/// One line of the files.
struct Case {
    name: String,
    features: String,
    bytes: Bytes,
    /// What Java lists.
    listing: Value,
}

/// All of them, unpacked once for all tests.
static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| {
    let cases: Vec<_> = lines("records")
        .into_iter()
        .map(|columns| Case {
            name: format!("{} of {}", columns[1], columns[0]),
            features: columns[6].clone(),
            bytes: unhex(&columns[8]),
            listing: serde_json::from_str(&columns[9]).expect("the last column is JSON"),
        })
        .collect();
    let of = |release| cases.iter().filter(|case| case.name.ends_with(release) || case.name.ends_with("both")).count();
    assert_eq!(RELEASES.map(of), [201, 201]);
    cases
});

/// The releases of Java's client that wrote them. A line that both wrote is there once, of `both`.
const RELEASES: [&str; 2] = ["3.9.2", "4.4.0"];

/// Everything that Java says about a record set, we say too: header fields, records, headers, markers, trailing bytes.
#[test]
fn java_and_we_list_the_same() {
    for case in &*CASES {
        let ours = record_set_json(case.bytes.clone());
        let ours: Value = serde_json::from_str(&ours).unwrap_or_else(|error| panic!("{}: {error}", case.name));

        let theirs = &case.listing;
        assert!(ours == *theirs, "{} ({})\nours   {ours}\ntheirs {theirs}", case.name, case.features);
    }
}

/// The batches of the new format of all cases.
fn batches() -> impl Iterator<Item = (String, Batch)> {
    CASES.iter().flat_map(|case| {
        let batches = Batches::new(case.bytes.clone()).map(|batch| batch.expect("Java knows its format"));
        let batches: Vec<_> = batches.filter(|batch| batch.header().magic == MAGIC).collect();
        batches.into_iter().map(move |batch| (case.name.clone(), batch))
    })
}

/// Whether a producer could have written the batch as it is: records without gaps, with their own timestamps, relative
/// to the first.
fn is_as_produced(batch: &Batch, records: &[Record]) -> bool {
    let header = batch.header();
    !records.is_empty()
        && header.attributes.timestamp_type() == TimestampType::CreateTime
        && header.delete_horizon_ms().is_none()
        && header.base_timestamp == records[0].timestamp
        && records.iter().zip(header.base_offset..).all(|(record, offset)| record.offset == offset)
        && header.last_offset_delta as usize == records.len() - 1
}

fn append_all(builder: &mut BatchBuilder, records: &[Record]) {
    for record in records {
        let headers: Vec<_> = record.headers.iter().map(|header| (header.key, header.value)).collect();
        let (key, value) = (record.key.as_deref(), record.value.as_deref());
        let expected = builder.encoded_len() + builder.record_len(record.timestamp, key, value, &headers);
        assert!(BatchBuilder::max_record_len(key, value, &headers) >= expected - builder.encoded_len());
        builder.try_append(record.timestamp, key, value, &headers).expect("it fits");
        assert_eq!(builder.encoded_len(), expected);
    }
}

/// What our builder makes of Java's records are Java's bytes: the whole batch without compression, and what is
/// compressed with it.
#[test]
fn rebuilt_batches_are_the_same_bytes() {
    let mut decompressor = Decompressor::default();
    let mut rebuilt = BTreeMap::new();
    for (name, batch) in batches() {
        let theirs = batch.records(&mut decompressor).expect("Java wrote it");
        let records = theirs.to_vec().expect("Java wrote it");
        let header = batch.header();
        if !is_as_produced(&batch, &records) || header.attributes.is_control() {
            continue;
        }
        let codec = header.attributes.compression().expect("Java knows the codec");

        let mut builder = BatchBuilder::new();
        append_all(&mut builder, &records);
        let mut sealed = builder.seal(&mut Compressor::none()).expect("there are records");
        sealed.stamp(Stamp {
            producer_id: header.producer_id,
            producer_epoch: header.producer_epoch,
            base_sequence: header.base_sequence,
            transactional: header.attributes.is_transactional(),
        });
        let mut ours = sealed.bytes().to_vec();
        assign_offsets(&mut ours, header.base_offset, header.partition_leader_epoch).expect("it is a batch");

        assert_eq!(hex(&ours[HEADER_LEN..]), hex(theirs.payload()), "{name}");
        if codec == Compression::None {
            assert_eq!(hex(&ours), hex(batch.bytes()), "{name}");
        }
        *rebuilt.entry(codec.name()).or_insert(0) += 1;
    }

    assert!(
        Compression::ALL.iter().all(|codec| rebuilt.get(codec.name()).is_some_and(|count| *count >= 10)),
        "{rebuilt:?}"
    );
}

/// What lies in a log, whatever was done to it there, is the same bytes when it is written from what we read: gaps,
/// delete horizons, batches without records, batches of several control records. Only where the log set the append
/// time in place do deltas stay in the bytes that no reader looks at.
#[test]
fn rewritten_batches_are_the_same_bytes() {
    let mut decompressor = Decompressor::default();
    let mut rewritten = 0;
    for (name, batch) in batches() {
        let header = batch.header();
        let records = batch.records(&mut decompressor).expect("Java wrote it");
        let all: Vec<_> = records.iter().map(|record| record.expect("Java wrote it")).collect();
        let codec = header.attributes.compression().expect("Java knows the codec");
        let appended = header.attributes.timestamp_type() == TimestampType::LogAppendTime;
        // Decompressed, so that the records can be compared whatever the encoder makes of them.
        let ours = rewrite_batch(header, all.iter().copied(), &mut Compressor::none()).expect("it fits");

        if !appended {
            assert_eq!(hex(&ours[HEADER_LEN..]), hex(records.payload()), "{name}");
        }
        if codec == Compression::None && (!appended || all.is_empty()) {
            assert_eq!(hex(&ours), hex(batch.bytes()), "{name}");
            rewritten += 1;
        }
    }

    assert!(rewritten >= 40, "only {rewritten}");
}

/// A batch keeps its place, whichever of its records are gone, compressed or not.
#[test]
fn what_compaction_leaves_reads_as_what_it_left() {
    let mut decompressor = Decompressor::default();
    for codec in [Compression::None, Compression::Lz4] {
        let mut compressor = Compressor::new(codec, None).expect("built in");
        for (name, batch) in batches() {
            let header = batch.header();
            let records = batch.records(&mut decompressor).expect("Java wrote it");
            let left: Vec<_> = records.iter().map(|record| record.expect("Java wrote it")).step_by(3).skip(1).collect();

            let again = rewrite_batch(header, left.iter().copied(), &mut compressor).expect("it fits");

            let again = Batch::new(again.freeze()).expect("a batch");
            again.verify_crc().expect("our own checksum");
            assert_eq!(again.header().count as usize, left.len(), "{name}");
            let place = |header: &BatchHeader| (header.base_offset, header.last_offset(), header.last_sequence());
            assert_eq!(place(again.header()), place(header), "{name}");
            assert_eq!(again.header().delete_horizon_ms(), header.delete_horizon_ms(), "{name}");
            let again = again.records(&mut decompressor).expect("we wrote it");
            let again: Vec<_> = again.iter().map(|record| record.expect("we wrote it")).collect();
            assert!(again == left, "{name} with {codec}");
        }
    }
}

#[test]
fn a_record_outside_its_batch_is_not_written() {
    let (_, batch) = batches().find(|(_, batch)| batch.header().count > 3).expect("some have");
    let records = batch.records(&mut Decompressor::default()).expect("Java wrote it");
    let record = records.iter().next().expect("there are records").expect("Java wrote it");
    let last = batch.header().last_offset();

    for offset in [batch.header().base_offset - 1, last + 1, last + (1 << 32), i64::MAX] {
        let moved = RecordRef { offset, ..record };
        let error = rewrite_batch(batch.header(), [record, moved], &mut Compressor::none()).expect_err("outside");

        assert!(matches!(error, RecordsError::Record { index: 1, .. }), "{offset}: {error}");
    }
    let old = BatchHeader { magic: 1, ..*batch.header() };
    let error = rewrite_batch(&old, [], &mut Compressor::none()).expect_err("an old format");
    assert!(matches!(error, RecordsError::UnsupportedMagic { magic: 1, .. }), "{error}");
}

/// What our codecs make of Java's records reads the same again.
#[test]
fn recompressed_batches_read_the_same() {
    let mut decompressor = Decompressor::default();
    let mut compressors: Vec<_> =
        Compression::ALL.into_iter().filter_map(|codec| Compressor::new(codec, None).ok()).collect();
    for (name, batch) in batches() {
        let records = batch.records(&mut decompressor).and_then(|records| records.to_vec()).expect("Java wrote it");
        if !is_as_produced(&batch, &records) {
            continue;
        }
        for compressor in &mut compressors {
            let mut builder = BatchBuilder::new();
            append_all(&mut builder, &records);
            let mut sealed = builder.seal(compressor).expect("there are records");
            let mut bytes = sealed.bytes().to_vec();
            assign_offsets(&mut bytes, batch.header().base_offset, 7).expect("it is a batch");

            let again = Batch::new(bytes.into()).expect("we wrote it");
            again.verify_crc().expect("we wrote it");
            let again = again.records(&mut decompressor).and_then(|records| records.to_vec()).expect("we wrote it");

            assert!(again == records, "{name} with {}", compressor.codec());
        }
    }
}

/// End markers are built from nothing but what they say.
#[test]
fn rebuilt_markers_are_the_same_bytes() {
    let mut decompressor = Decompressor::default();
    let mut markers = 0;
    for (name, batch) in batches() {
        let header = batch.header();
        let records = batch.records(&mut decompressor).and_then(|records| records.to_vec()).expect("Java wrote it");
        if !header.attributes.is_control() || records.len() != 1 {
            continue;
        }

        let control = ControlRecord::parse(records[0].key.as_deref(), records[0].value.as_deref()).expect("a mark");
        let mut ours =
            control.to_batch(header.producer_id, header.producer_epoch, records[0].timestamp).expect("marks are small");
        assign_offsets(&mut ours, header.base_offset, header.partition_leader_epoch).expect("it is a batch");

        assert_eq!(hex(&ours), hex(batch.bytes()), "{name}");
        markers += 1;
    }

    assert!(markers >= 10, "only {markers}");
}

/// Setting the append time of a batch that Java's log set it in changes nothing, down to the checksum.
#[test]
fn append_time_is_set_as_java_sets_it() {
    let mut seen = 0;
    for (name, batch) in batches() {
        if batch.header().attributes.timestamp_type() == TimestampType::LogAppendTime {
            let mut bytes = batch.bytes().to_vec();
            // Undo what the log did, then do it again.
            bytes[22] &= !8;
            bytes[35..43].fill(0);

            set_log_append_time(&mut bytes, batch.header().max_timestamp).expect("it is a batch");

            assert_eq!(hex(&bytes), hex(batch.bytes()), "{name}");
            seen += 1;
        }
    }

    assert!(seen >= 5, "only {seen}");
}
