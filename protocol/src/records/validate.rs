//! What a broker checks before it appends a producer's batch.

use bytes::Bytes;

use crate::compression::Decompressor;

use super::error::RecordsError;
use super::reader::{Batch, Batches};

/// Why a broker refuses a producer's records.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidBatch {
    /// Since format 2, a partition's records in a produce request are exactly one batch.
    #[error("the records are not exactly one batch")]
    NotOneBatch,
    /// The batch, or a record in it, cannot be read.
    #[error(transparent)]
    Unreadable(#[from] RecordsError),
    /// Offsets are the broker's to assign.
    #[error("the base offset is {base_offset} instead of 0")]
    BaseOffset {
        /// The offset found.
        base_offset: i64,
    },
    /// The number of records is zero, or contradicts the last offset.
    #[error("the batch counts {count} records, and its last offset is {last_offset_delta}")]
    Count {
        /// The count in the header.
        count: i32,
        /// The last offset delta in the header.
        last_offset_delta: i32,
    },
    /// Only brokers write control batches.
    #[error("a client may not write a control batch")]
    Control,
    /// An idempotent producer numbers its records.
    #[error("producer {producer_id} wrote the base sequence {base_sequence}")]
    Sequence {
        /// The producer.
        producer_id: i64,
        /// Its sequence.
        base_sequence: i32,
    },
    /// The offsets of the records do not count from 0.
    #[error("record {index} has the offset delta {offset_delta}")]
    OffsetDelta {
        /// Which record, from 0.
        index: i64,
        /// The delta found.
        offset_delta: i64,
    },
}

impl InvalidBatch {
    /// The error code that Kafka answers with.
    pub const fn error_code(&self) -> i16 {
        const CORRUPT_MESSAGE: i16 = 2;
        const INVALID_RECORD: i16 = 87;
        match self {
            // Since version 3 of the request, an old format is an invalid record, not a corrupt one.
            Self::Unreadable(RecordsError::UnsupportedMagic { .. }) => INVALID_RECORD,
            Self::Unreadable(_) => CORRUPT_MESSAGE,
            _ => INVALID_RECORD,
        }
    }
}

/// Checks what a produce request holds for one partition as Kafka's log does, down to the records, and returns the one
/// batch that it is.
///
/// # Errors
///
/// The first reason to refuse it.
pub fn check_produced(bytes: &Bytes, decompressor: &mut Decompressor) -> Result<Batch, InvalidBatch> {
    let mut batches = Batches::new(bytes.clone());
    let batch = batches.next().ok_or(InvalidBatch::NotOneBatch)??;
    batch.header().require_current()?;
    if batches.trailing_len() != 0 {
        return Err(InvalidBatch::NotOneBatch);
    }
    let header = batch.header();
    batch.verify_crc()?;
    if header.base_offset != 0 {
        return Err(InvalidBatch::BaseOffset { base_offset: header.base_offset });
    }
    if header.count == 0 || header.last_offset_delta != header.count - 1 {
        let (count, last_offset_delta) = (header.count, header.last_offset_delta);
        return Err(InvalidBatch::Count { count, last_offset_delta });
    }
    if header.attributes.is_control() {
        return Err(InvalidBatch::Control);
    }
    if header.has_producer_id() && header.base_sequence < 0 {
        let (producer_id, base_sequence) = (header.producer_id, header.base_sequence);
        return Err(InvalidBatch::Sequence { producer_id, base_sequence });
    }
    for (index, record) in (0..).zip(batch.records(decompressor)?.iter()) {
        let offset_delta = record?.offset;
        if offset_delta != index {
            return Err(InvalidBatch::OffsetDelta { index, offset_delta });
        }
    }
    Ok(batch)
}
