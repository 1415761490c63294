//! What Kafka checks in a batch before it appends it.

use bytes::Bytes;
use krafka_protocol::ErrorCode;
use krafka_protocol::compression::{Compression, Decompressor};
use krafka_protocol::records::{Batch, Batches, MAGIC, RecordsError};

use crate::topics::TopicSettings;

/// How far in the future a record may lie: Kafka's default of `message.timestamp.after.max.ms`.
const MAX_FUTURE_MS: i64 = 3_600_000;

/// The first version of Produce that may carry zstd (KIP-110).
const FIRST_ZSTD_VERSION: i16 = 7;

/// The timestamp of a record that has none.
const NO_TIMESTAMP: i64 = -1;

/// What is wrong with a batch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BatchError {
    /// An error that Kafka gives without the log's start.
    Batch(ErrorCode),
    /// An error that comes with the log's start.
    Invalid(ErrorCode),
    /// Some records are wrong: which, and why.
    Records { code: ErrorCode, records: Vec<(i32, String)>, message: String },
}

/// The one batch that a partition's records must be. This is checked before anything that depends on the partition.
pub(crate) fn only_batch(version: i16, records: Option<&Bytes>) -> Result<Batch, BatchError> {
    const INVALID: BatchError = BatchError::Batch(ErrorCode::INVALID_RECORD);
    let mut batches = Batches::new(records.cloned().unwrap_or_default());
    let batch = match batches.next() {
        // Produce requests of the versions that carried the old formats are gone.
        Some(Ok(batch)) if batch.header().magic != MAGIC => return Err(INVALID),
        Some(Ok(batch)) => batch,
        Some(Err(RecordsError::UnsupportedMagic { .. })) | None => return Err(INVALID),
        Some(Err(_)) => return Err(BatchError::Batch(ErrorCode::CORRUPT_MESSAGE)),
    };
    if batches.trailing_len() > 0 {
        return Err(INVALID);
    }
    match batch.header().attributes.compression() {
        Ok(Compression::Zstd) if version < FIRST_ZSTD_VERSION => {
            Err(BatchError::Batch(ErrorCode::UNSUPPORTED_COMPRESSION_TYPE))
        }
        Ok(_) => Ok(batch),
        Err(_) => Err(BatchError::Batch(ErrorCode::CORRUPT_MESSAGE)),
    }
}

/// Checks a batch as the log does: its size and checksum, what it says about itself, and each of its records.
pub(crate) fn check(settings: &TopicSettings, batch: &Batch, wall_ms: i64) -> Result<(), BatchError> {
    const INVALID: BatchError = BatchError::Invalid(ErrorCode::INVALID_RECORD);
    let header = batch.header();
    if header.base_offset != 0 {
        return Err(INVALID);
    }
    if batch.bytes().len() > usize::try_from(settings.max_message_bytes).unwrap_or(0) {
        return Err(BatchError::Batch(ErrorCode::MESSAGE_TOO_LARGE));
    }
    if batch.verify_crc().is_err() {
        return Err(BatchError::Batch(ErrorCode::CORRUPT_MESSAGE));
    }
    if header.count <= 0 || header.last_offset_delta != header.count - 1 || header.attributes.is_control() {
        return Err(INVALID);
    }
    if header.has_producer_id() && header.base_sequence < 0 {
        return Err(INVALID);
    }
    check_records(settings, batch, wall_ms)
}

/// Whether a time is too far ahead. There is no bound to the past but the one that Kafka's own arithmetic has: so far
/// back that the distance does not fit an i64, it comes out as the future.
fn is_untimely(timestamp: i64, wall_ms: i64) -> bool {
    timestamp.wrapping_sub(wall_ms) > MAX_FUTURE_MS
}

/// Checks the records: readable, numbered from 0, on a compacted topic with keys, and none from the far future.
fn check_records(settings: &TopicSettings, batch: &Batch, wall_ms: i64) -> Result<(), BatchError> {
    let mut decompressor = Decompressor::default();
    let unreadable = |_| BatchError::Batch(ErrorCode::CORRUPT_MESSAGE);
    let records = batch.records(&mut decompressor).map_err(unreadable)?;
    let (mut keyless, mut untimely) = (Vec::new(), Vec::new());
    for (index, record) in (0..).zip(records.iter()) {
        let record = record.map_err(unreadable)?;
        if record.offset != i64::from(index) {
            return Err(BatchError::Invalid(ErrorCode::INVALID_RECORD));
        }
        if settings.compacted && record.key.is_none() {
            keyless.push((index, "Compacted topic cannot accept message without key.".to_owned()));
        }
        let timestamp = record.timestamp;
        if !settings.log_append_time && timestamp != NO_TIMESTAMP && is_untimely(timestamp, wall_ms) {
            let (earliest, latest) = (wall_ms - i64::MAX, wall_ms + MAX_FUTURE_MS);
            untimely.push((
                index,
                format!(
                    "Timestamp {timestamp} of message with offset {index} is out of range. The timestamp should be \
                     within [{earliest}, {latest}]"
                ),
            ));
        }
    }
    // Kafka answers one kind of fault; records without keys are the first that it looks for.
    if !keyless.is_empty() {
        let message = "One or more records have been rejected".to_owned();
        return Err(BatchError::Records { code: ErrorCode::INVALID_RECORD, records: keyless, message });
    }
    if !untimely.is_empty() {
        let message = "One or more records have been rejected due to invalid timestamp".to_owned();
        return Err(BatchError::Records { code: ErrorCode::INVALID_TIMESTAMP, records: untimely, message });
    }
    Ok(())
}
