//! What Kafka checks in a batch before it appends it, and what it makes of it.
//!
//! The order is that of Kafka's `ProduceRequest`, `UnifiedLog` and `LogValidator`: the first rule that is broken gives
//! the error. Other than Kafka, which never answers a request without any records, the fake calls those invalid; and it
//! reads no more than 128 MiB of what is compressed. The levels of `compression.*.level` are the codecs' defaults. It
//! refuses some bytes that Java's reader passes over: what stands behind a compressed stream, lengths of keys below -1,
//! and offsets of records below the first.

use bytes::{Bytes, BytesMut};
use krafka_protocol::ErrorCode;
use krafka_protocol::compression::{Compression, Decompressor};
use krafka_protocol::records::{self, Batch, BatchHeader, Batches, MAGIC, RecordRef, Records, RecordsError};

use crate::log;
use crate::log::old_formats::{self, Unfit};
use crate::topics::TopicSettings;

/// The first version of Produce that carries batches only; the ones before may carry messages of the old formats.
const FIRST_BATCH_VERSION: i16 = 3;

/// The first version of Produce that may carry zstd (KIP-110).
const FIRST_ZSTD_VERSION: i16 = 7;

/// Where each format says which it is.
const MAGIC_AT: usize = 16;

/// Where a batch says how long it is, behind this.
const LENGTH_AT: usize = 8;

/// What the length of a batch does not count.
const OVERHEAD: i32 = 12;

/// No message of any format is shorter, by its own length.
const LEAST_LENGTH: i32 = 14;

/// The timestamp of a record that has none.
const NO_TIMESTAMP: i64 = -1;

/// What is wrong with a batch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BatchError {
    /// An error that Kafka gives without the log's start.
    Batch(ErrorCode),
    /// The same, with words.
    Told(ErrorCode, String),
    /// An error that comes with the log's start.
    Invalid(ErrorCode),
    /// Some records are wrong: which, and why.
    Records { code: ErrorCode, records: Vec<(i32, String)>, message: String },
}

const INVALID_BATCH: BatchError = BatchError::Batch(ErrorCode::INVALID_RECORD);
const INVALID: BatchError = BatchError::Invalid(ErrorCode::INVALID_RECORD);
/// Kafka is not prepared for bytes that a codec cannot read.
const UNREADABLE: BatchError = BatchError::Invalid(ErrorCode::UNKNOWN_SERVER_ERROR);

/// The one batch that a partition's records must be. This is checked before anything that depends on the partition.
/// A piece of another batch behind it is no matter.
pub(crate) fn only_batch(version: i16, records: Option<&Bytes>) -> Result<Batch, BatchError> {
    let records = records.cloned().unwrap_or_default();
    if version < FIRST_BATCH_VERSION && records.get(MAGIC_AT).is_none_or(|&magic| magic < MAGIC as u8) {
        return old_formats::to_batch(records).map_err(|unfit| match unfit {
            Unfit::Corrupt => BatchError::Batch(ErrorCode::CORRUPT_MESSAGE),
            Unfit::Invalid => INVALID_BATCH,
        });
    }
    check_length(&records)?;
    let mut batches = Batches::new(records.clone());
    let read = |batch: Option<Result<Batch, RecordsError>>| match batch {
        Some(Err(RecordsError::UnsupportedMagic { magic, .. })) => {
            let text = format!("Invalid magic found in record: {magic}");
            Err(BatchError::Told(ErrorCode::CORRUPT_MESSAGE, text))
        }
        Some(Err(RecordsError::Count { .. })) => Err(INVALID),
        Some(Err(_)) => Err(BatchError::Batch(ErrorCode::CORRUPT_MESSAGE)),
        Some(Ok(batch)) => Ok(Some(batch)),
        None => Ok(None),
    };
    let batch = read(batches.next())?.ok_or(INVALID_BATCH)?;
    check_length(&records[batch.bytes().len()..])?;
    if batch.header().magic != MAGIC || read(batches.next())?.is_some() {
        return Err(INVALID_BATCH);
    }
    match batch.header().attributes.compression() {
        Ok(Compression::Zstd) if version < FIRST_ZSTD_VERSION => {
            Err(BatchError::Batch(ErrorCode::UNSUPPORTED_COMPRESSION_TYPE))
        }
        _ => Ok(batch),
    }
}

/// Whether the batch in front says how long it is in a number that can be. Bytes too few to say so are no batch.
fn check_length(records: &[u8]) -> Result<(), BatchError> {
    let length = records.get(LENGTH_AT..).and_then(|rest| rest.first_chunk()).map(|bytes| i32::from_be_bytes(*bytes));
    match length {
        Some(length) if length < LEAST_LENGTH => {
            let text = format!("Record size {length} is less than the minimum record overhead ({LEAST_LENGTH})");
            Err(BatchError::Told(ErrorCode::CORRUPT_MESSAGE, text))
        }
        // Kafka adds the two up, and is not prepared for a sum that is negative.
        Some(length) if length > i32::MAX - OVERHEAD => Err(BatchError::Batch(ErrorCode::UNKNOWN_SERVER_ERROR)),
        _ => Ok(()),
    }
}

/// Checks a batch as the log of `topic_partition` does: its size and checksum, what it says about itself, and each of
/// its records. Returns the batch to append, which need not be the same.
pub(crate) fn check(
    settings: &TopicSettings,
    batch: Batch,
    topic_partition: &str,
    wall_ms: i64,
) -> Result<Batch, BatchError> {
    let header = batch.header();
    if header.base_offset != 0 {
        return Err(INVALID);
    }
    let is_too_large = |batch: &Batch| batch.bytes().len() > usize::try_from(settings.max_message_bytes).unwrap_or(0);
    if is_too_large(&batch) {
        return Err(BatchError::Batch(ErrorCode::MESSAGE_TOO_LARGE));
    }
    if batch.verify_crc().is_err() {
        return Err(BatchError::Batch(ErrorCode::CORRUPT_MESSAGE));
    }
    if header.attributes.compression().is_err() {
        return Err(UNREADABLE);
    }
    if header.count <= 0 || header.last_offset_delta != header.count - 1 || header.attributes.is_control() {
        return Err(INVALID);
    }
    if header.has_producer_id() && header.base_sequence < 0 {
        return Err(INVALID);
    }
    // A stream that ends before it begins is none of any codec, but for zstd.
    let is_bare = batch.bytes().len() == records::HEADER_LEN;
    if is_bare && !matches!(header.attributes.compression(), Ok(Compression::None | Compression::Zstd)) {
        return Err(UNREADABLE);
    }
    let batch = check_records(settings, batch, topic_partition, wall_ms)?;
    if is_too_large(&batch) {
        return Err(BatchError::Batch(ErrorCode::MESSAGE_TOO_LARGE));
    }
    if batch.bytes().len() > settings.segment_bytes {
        return Err(BatchError::Batch(ErrorCode::RECORD_LIST_TOO_LARGE));
    }
    Ok(batch)
}

/// Checks the records: readable, on a compacted topic with keys, and of a time that the topic takes.
fn check_records(
    settings: &TopicSettings,
    batch: Batch,
    topic_partition: &str,
    wall_ms: i64,
) -> Result<Batch, BatchError> {
    let header = *batch.header();
    let read = read(&batch)?;
    let mut records: Vec<RecordRef<'_>> = Vec::with_capacity(read.iter().size_hint().0);
    let mut rejected = Vec::new();
    let mut code = ErrorCode::INVALID_RECORD;
    let mut has_gaps = false;
    let is_stamped = header.timestamp_type() == Some(records::TimestampType::LogAppendTime);
    for (index, record) in (0_i32..).zip(read.iter()) {
        let record = record.map_err(|_| INVALID)?;
        has_gaps |= record.offset != i64::from(index);
        if settings.compacted && record.key.is_none() {
            let text =
                format!("Compacted topic cannot accept message without key in topic partition {topic_partition}");
            rejected.push((index, text));
        } else if let Some(text) = untimely(settings, &record, wall_ms) {
            code = ErrorCode::INVALID_TIMESTAMP;
            rejected.push((index, text));
        } else if is_stamped && (settings.log_append_time || record.timestamp == NO_TIMESTAMP) {
            code = ErrorCode::INVALID_TIMESTAMP;
            rejected.push((index, stamped(&record)));
        }
        records.push(record);
    }
    if !rejected.is_empty() {
        let message = summary(code, &rejected);
        return Err(BatchError::Records { code, records: rejected, message });
    }

    let source = header.attributes.compression().map_err(|_| UNREADABLE)?;
    let target = settings.compression.unwrap_or(source);
    let max_timestamp = records.iter().map(|record| record.timestamp).max().unwrap_or(NO_TIMESTAMP);
    if source != target {
        if records.iter().any(|record| record.timestamp < 0 && record.timestamp != NO_TIMESTAMP) {
            // Kafka's builder of batches is not prepared for it.
            return Err(UNREADABLE);
        }
        return log::recompressed(&header, &records, target, max_timestamp).ok_or(UNREADABLE);
    }
    if has_gaps && source != Compression::None {
        // Kafka means to write such a batch anew, and then has not read what it needs.
        return Err(UNREADABLE);
    }
    let is_honest =
        header.timestamp_type() == Some(records::TimestampType::CreateTime) && header.max_timestamp == max_timestamp;
    if is_honest || settings.log_append_time {
        return Ok(batch);
    }
    let mut bytes = BytesMut::from(&batch.bytes()[..]);
    records::set_create_time(&mut bytes, max_timestamp).map_err(|_| INVALID)?;
    Batch::new(bytes.freeze()).map_err(|_| INVALID)
}

/// The records of a batch, wherever their offsets lie: Kafka does not look at those of a batch that is not compressed.
fn read(batch: &Batch) -> Result<Records, BatchError> {
    let mut decompressor = Decompressor::default();
    let unreadable = |error| match error {
        RecordsError::Decompression { .. } => UNREADABLE,
        _ => INVALID,
    };
    let read = batch.records(&mut decompressor).map_err(unreadable)?;
    if read.iter().all(|record| record.is_ok()) {
        return Ok(read);
    }
    let wide = BatchHeader { last_offset_delta: i32::MAX, ..*batch.header() };
    let mut bytes = BytesMut::from(&batch.bytes()[..]);
    wide.write(bytes.first_chunk_mut().ok_or(INVALID)?);
    Batch::new(bytes.freeze()).and_then(|wide| wide.records(&mut decompressor)).map_err(unreadable)
}

/// What is wrong with a record's time, if anything is. Like in Kafka the distance wraps: so far back that it does not
/// fit an i64, a time comes out as the future.
fn untimely(settings: &TopicSettings, record: &RecordRef<'_>, wall_ms: i64) -> Option<String> {
    if settings.log_append_time || record.timestamp == NO_TIMESTAMP {
        return None;
    }
    let (before, after) = (settings.timestamp_before_max_ms, settings.timestamp_after_max_ms);
    let age = wall_ms.wrapping_sub(record.timestamp);
    if age <= before && age.wrapping_neg() <= after {
        return None;
    }
    let (earliest, latest) = (wall_ms.wrapping_sub(before), wall_ms.wrapping_add(after));
    Some(format!(
        "Timestamp {} of message with offset {} is out of range. The timestamp should be within [{earliest}, {latest}]",
        record.timestamp, record.offset
    ))
}

/// What Kafka says of a record whose batch claims to have a broker's time.
fn stamped(record: &RecordRef<'_>) -> String {
    let length = |bytes: Option<&[u8]>| bytes.map_or(0, <[u8]>::len);
    format!(
        "Invalid timestamp type in message DefaultRecord(offset={}, timestamp={}, key={} bytes, value={} bytes). \
         Producer should not set timestamp type to LogAppendTime.",
        record.offset,
        record.timestamp,
        length(record.key),
        length(record.value),
    )
}

/// What Kafka says of a batch some of whose records are wrong.
fn summary(code: ErrorCode, rejected: &[(i32, String)]) -> String {
    if code == ErrorCode::INVALID_TIMESTAMP {
        return "One or more records have been rejected due to invalid timestamp".to_owned();
    }
    let first =
        rejected.iter().take(3).map(|(index, text)| format!("RecordError(batchIndex={index}, message='{text}')"));
    format!(
        "One or more records have been rejected due to {} record errors in total, and only showing the first three \
         errors at most: [{}]",
        rejected.len(),
        first.collect::<Vec<_>>().join(", ")
    )
}
