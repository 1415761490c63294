//! What a broker changes in a batch that it appends, and the checksum.
//!
//! Base offset and leader epoch lie before the checksum and outside it. Timestamps lie behind it, so a topic with
//! `message.timestamp.type=LogAppendTime` costs the broker a new one.

use super::error::RecordsError;
use super::header::{
    ATTRIBUTES, BASE_OFFSET, BatchHeader, CRC, HEADER_LEN, LEADER_EPOCH, MAX_TIMESTAMP, TimestampType,
};

/// Gives the batch its place in a log: the offset of its first record, and the epoch of the leader that appended it.
///
/// # Errors
///
/// If `batch` does not begin with the header of a batch of format 2.
pub fn assign_offsets(batch: &mut [u8], base_offset: i64, leader_epoch: i32) -> Result<(), RecordsError> {
    BatchHeader::peek_current(batch)?;
    batch[BASE_OFFSET..BASE_OFFSET + 8].copy_from_slice(&base_offset.to_be_bytes());
    batch[LEADER_EPOCH..LEADER_EPOCH + 4].copy_from_slice(&leader_epoch.to_be_bytes());
    Ok(())
}

/// Replaces the timestamps of all records by the broker's own, and renews the checksum. The records' own deltas stay
/// in the bytes, and no reader looks at them.
///
/// # Errors
///
/// If `batch` does not begin with the header of a batch of format 2.
pub fn set_log_append_time(batch: &mut [u8], timestamp: i64) -> Result<(), RecordsError> {
    let header = BatchHeader::peek_current(batch)?;
    let attributes = header.attributes.with_timestamp_type(TimestampType::LogAppendTime);
    batch[ATTRIBUTES..ATTRIBUTES + 2].copy_from_slice(&attributes.0.to_be_bytes());
    batch[MAX_TIMESTAMP..MAX_TIMESTAMP + 8].copy_from_slice(&timestamp.to_be_bytes());
    refresh_crc(batch);
    Ok(())
}

/// Says that the timestamps are the producer's and which is the greatest, and renews the checksum. A broker does so
/// where the producer said otherwise.
///
/// # Errors
///
/// If `batch` does not begin with the header of a batch of format 2.
pub fn set_create_time(batch: &mut [u8], max_timestamp: i64) -> Result<(), RecordsError> {
    let header = BatchHeader::peek_current(batch)?;
    let attributes = header.attributes.with_timestamp_type(TimestampType::CreateTime);
    batch[ATTRIBUTES..ATTRIBUTES + 2].copy_from_slice(&attributes.0.to_be_bytes());
    batch[MAX_TIMESTAMP..MAX_TIMESTAMP + 8].copy_from_slice(&max_timestamp.to_be_bytes());
    refresh_crc(batch);
    Ok(())
}

/// Writes the checksum of a batch anew, after anything else in it was changed.
///
/// # Errors
///
/// If `batch` does not begin with the header of a batch of format 2.
pub fn refresh_checksum(batch: &mut [u8]) -> Result<(), RecordsError> {
    BatchHeader::peek_current(batch)?;
    refresh_crc(batch);
    Ok(())
}

/// The CRC-32C that the batch should carry.
pub(super) fn crc_of(batch: &[u8]) -> u32 {
    debug_assert!(batch.len() >= HEADER_LEN);
    crc32c::crc32c(&batch[ATTRIBUTES..])
}

/// Writes the checksum of a whole batch into it, and returns it.
pub(super) fn refresh_crc(batch: &mut [u8]) -> u32 {
    let crc = crc_of(batch);
    batch[CRC..CRC + 4].copy_from_slice(&crc.to_be_bytes());
    crc
}
