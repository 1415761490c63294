//! Batches as a log keeps them: what is left of one after compaction, under the header that it had.

use bytes::BytesMut;

use crate::compression::{Compression, Compressor};

use super::error::RecordsError;
use super::header::{BatchHeader, HEADER_LEN, LOG_OVERHEAD, MAGIC};
use super::patch::refresh_crc;
use super::record::RecordRef;
use super::varint::{len_i32, len_i64, push_i32, push_i64};

/// Writes a batch with the header of another and those of its records that are to stay, at the offsets that they have.
///
/// This is how compaction leaves a batch: offsets have gaps, the last offset and the sequence numbers are what they
/// were, and a batch may be there for those alone, with no record left. Nor need the base timestamp be that of the
/// first record: with [`Attributes::has_delete_horizon`](super::Attributes::has_delete_horizon) it is the time after
/// which tombstones go. Count, length, codec and checksum are written anew.
///
/// # Errors
///
/// [`RecordsError::UnsupportedMagic`] for a header of format 0 or 1; [`RecordsError::Record`] for a record whose
/// offset lies outside the batch; [`RecordsError::Compression`] if the codec fails, and [`RecordsError::TooLarge`]
/// beyond 2 GiB.
pub fn rewrite_batch<'a>(
    header: &BatchHeader,
    records: impl IntoIterator<Item = RecordRef<'a>>,
    compressor: &mut Compressor,
) -> Result<BytesMut, RecordsError> {
    header.require_current()?;
    let mut buffer = vec![0; HEADER_LEN];
    let mut count = 0;
    for record in records {
        push_record(&mut buffer, header, count, &record)?;
        count += 1;
    }
    // A batch without records has nothing behind its header, and so no codec.
    let codec = if count == 0 { Compression::None } else { compressor.codec() };
    if codec != Compression::None {
        let compressed = compressor.compress(&buffer[HEADER_LEN..])?;
        buffer.truncate(HEADER_LEN);
        buffer.extend_from_slice(compressed);
    }
    let header = BatchHeader {
        magic: MAGIC,
        batch_length: i32::try_from(buffer.len() - LOG_OVERHEAD)
            .map_err(|_| RecordsError::TooLarge { size: buffer.len() })?,
        attributes: header.attributes.with_compression(codec),
        count: count as i32,
        ..*header
    };
    header.write(buffer.first_chunk_mut().expect("it begins with room for a header"));
    let mut batch = BytesMut::from(bytes::Bytes::from(buffer));
    refresh_crc(&mut batch);
    Ok(batch)
}

fn push_record(
    buffer: &mut Vec<u8>,
    header: &BatchHeader,
    index: u32,
    record: &RecordRef<'_>,
) -> Result<(), RecordsError> {
    let outside = |reason| RecordsError::Record {
        base_offset: header.base_offset,
        index,
        position: buffer.len() - HEADER_LEN,
        reason,
    };
    let offset_delta = i32::try_from(record.offset.wrapping_sub(header.base_offset)).ok();
    let offset_delta = offset_delta
        .filter(|delta| (0..=header.last_offset_delta).contains(delta))
        .ok_or_else(|| outside("its offset lies outside the batch"))?;
    let timestamp_delta = record.timestamp.wrapping_sub(header.base_timestamp);
    let headers = record.headers;
    let body = 1
        + len_i64(timestamp_delta)
        + len_i32(offset_delta)
        + bytes_len(record.key)
        + bytes_len(record.value)
        + len_i64(headers.len() as i64)
        + headers.raw().len();
    let size = buffer.len() + body;
    // The lengths below are parts of this one.
    let body = i32::try_from(body).ok().filter(|_| i32::try_from(size).is_ok());
    let body = body.ok_or(RecordsError::TooLarge { size })?;
    push_i32(buffer, body);
    buffer.push(0); // Attributes, of which none is defined.
    push_i64(buffer, timestamp_delta);
    push_i32(buffer, offset_delta);
    push_bytes(buffer, record.key);
    push_bytes(buffer, record.value);
    push_i32(buffer, headers.len() as i32);
    buffer.extend_from_slice(headers.raw());
    Ok(())
}

fn bytes_len(bytes: Option<&[u8]>) -> usize {
    bytes.map_or(1, |bytes| len_i64(bytes.len() as i64) + bytes.len())
}

/// Writes nullable bytes with their length before them, which is -1 for null.
fn push_bytes(buffer: &mut Vec<u8>, bytes: Option<&[u8]>) {
    push_i32(buffer, bytes.map_or(-1, |bytes| bytes.len() as i32));
    buffer.extend_from_slice(bytes.unwrap_or_default());
}
