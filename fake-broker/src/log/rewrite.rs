//! Batches written anew: in another codec, where a topic has a `compression.type`; with fewer records, after
//! compaction.
//!
//! Other than in Kafka, zstd only packs: a frame of blocks that are not compressed, which every reader takes. An
//! encoder would cost each build of the fake more than its tests gain.

use bytes::{BufMut, BytesMut};
use krafka_protocol::compression::{Compression, Compressor};
use krafka_protocol::records::{self, Attributes, Batch, BatchHeader, HEADER_LEN, RecordRef};

/// What the length in a batch's header does not count.
const LOG_OVERHEAD: usize = 12;
/// The first bytes of a frame of zstd.
const ZSTD_MAGIC: u32 = 0xfd2f_b528;
/// The most that a block of zstd may hold.
const ZSTD_BLOCK: usize = 128 * 1024;

/// Writes records into a batch with the header of another, numbered from 0, in a codec of its own. None if the batch
/// would be too large for the format.
pub(crate) fn recompressed(
    header: &BatchHeader,
    records: &[RecordRef<'_>],
    codec: Compression,
    max_timestamp: i64,
) -> Option<Batch> {
    let base_timestamp = records.first().map_or(-1, |record| record.timestamp);
    // Of the attributes only what the builder of a batch is told stays.
    let attributes = Attributes::default().with_transactional(header.attributes.is_transactional());
    let header = BatchHeader { attributes, base_timestamp, max_timestamp, ..*header };
    let numbered = (0..).zip(records).map(|(offset, record)| RecordRef { offset, ..*record });
    Batch::new(rewritten(&header, numbered, codec)?.freeze()).ok()
}

/// Writes records into a batch with a header, at the offsets that they have, in a codec. None if the batch would be too
/// large for the format.
pub(super) fn rewritten<'a>(
    header: &BatchHeader,
    records: impl IntoIterator<Item = RecordRef<'a>>,
    codec: Compression,
) -> Option<BytesMut> {
    if codec != Compression::Zstd {
        return records::rewrite_batch(header, records, &mut Compressor::new(codec, None).ok()?).ok();
    }
    let plain = records::rewrite_batch(header, records, &mut Compressor::none()).ok()?;
    let written = BatchHeader::peek(&plain).ok().filter(|written| written.count > 0);
    let Some(written) = written else { return Some(plain) };
    let mut bytes = BytesMut::from(&plain[..HEADER_LEN]);
    pack_zstd(&plain[HEADER_LEN..], &mut bytes);
    let batch_length = i32::try_from(bytes.len() - LOG_OVERHEAD).ok()?;
    let attributes = written.attributes.with_compression(Compression::Zstd);
    BatchHeader { batch_length, attributes, ..written }.write(bytes.first_chunk_mut()?);
    records::refresh_checksum(&mut bytes).ok()?;
    Some(bytes)
}

/// Appends a frame of zstd whose blocks are raw.
fn pack_zstd(content: &[u8], out: &mut BytesMut) {
    /// In the frame's descriptor: the size of the content has eight bytes, and the frame is one segment.
    const SIZED_SINGLE_SEGMENT: u8 = 0b1110_0000;
    out.put_u32_le(ZSTD_MAGIC);
    out.put_u8(SIZED_SINGLE_SEGMENT);
    out.put_u64_le(content.len() as u64);
    let blocks = content.len().div_ceil(ZSTD_BLOCK).max(1);
    for (index, block) in content.chunks(ZSTD_BLOCK).enumerate() {
        let is_last = u32::from(index + 1 == blocks);
        // A block's header: whether it is the last, its type (0: raw), its size.
        out.put_uint_le(u64::from(is_last | (block.len() as u32) << 3), 3);
        out.extend_from_slice(block);
    }
}

#[cfg(test)]
mod tests {
    use krafka_protocol::compression::Decompressor;
    use krafka_protocol::records::{BatchBuilder, NO_HEADERS};

    use super::*;

    #[test]
    fn packed_zstd_is_read_as_any() {
        let value = vec![7; 3 * ZSTD_BLOCK + 5];
        let mut builder = BatchBuilder::new();
        builder.try_append(5, Some("k".as_bytes()), Some(&value[..]), NO_HEADERS).expect("there is room");
        let sent = Batch::new(builder.seal(&mut Compressor::none()).expect("a batch").bytes()).expect("a batch");
        let records = sent.records(&mut Decompressor::default()).expect("records");
        let records: Vec<_> = records.iter().map(|record| record.expect("a record")).collect();

        let packed = recompressed(sent.header(), &records, Compression::Zstd, 5).expect("a batch");

        packed.verify_crc().expect("a checksum");
        let read = packed.records(&mut Decompressor::default()).expect("zstd").to_vec().expect("whole records");
        assert_eq!((read.len(), read[0].value.as_deref()), (1, Some(&value[..])));
    }
}
