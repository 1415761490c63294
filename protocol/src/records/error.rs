//! What can be wrong with a batch.

use crate::compression::CompressionError;

/// A batch could not be read or built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordsError {
    /// The length of a batch cannot be right, so nothing behind it can be found.
    #[error("batch at byte {position} (base offset {base_offset}) has the impossible length {length}")]
    BatchLength {
        /// Where in the record set the batch begins.
        position: usize,
        /// The base offset that the batch claims.
        base_offset: i64,
        /// The length that it claims, without the 12 bytes of offset and length.
        length: i32,
    },
    /// The batch is of a format that is not read.
    #[error("batch at offset {base_offset} has the unsupported magic {magic}")]
    UnsupportedMagic {
        /// The base offset that the batch claims.
        base_offset: i64,
        /// The magic found.
        magic: i8,
    },
    /// The bytes are not the ones that were written.
    #[error("batch at offset {base_offset} has the checksum {computed:#010x}, and says {stored:#010x}")]
    Crc {
        /// The base offset of the batch.
        base_offset: i64,
        /// The checksum that the batch carries.
        stored: u32,
        /// The checksum that its bytes have.
        computed: u32,
    },
    /// The batch counts more records than its bytes can hold, or fewer.
    #[error("batch at offset {base_offset} counts {count} records: {reason}")]
    Count {
        /// The base offset of the batch.
        base_offset: i64,
        /// The count in the header.
        count: i32,
        /// What contradicts it.
        reason: &'static str,
    },
    /// A record is malformed.
    #[error("record {index} of the batch at offset {base_offset} is malformed at byte {position}: {reason}")]
    Record {
        /// The base offset of the batch.
        base_offset: i64,
        /// Which record of the batch, from 0.
        index: u32,
        /// Where in the decompressed records.
        position: usize,
        /// What was found there.
        reason: &'static str,
    },
    /// The records could not be decompressed.
    #[error("batch at offset {base_offset}: {source}")]
    Decompression {
        /// The base offset of the batch.
        base_offset: i64,
        /// What the codec found.
        source: CompressionError,
    },
    /// The records could not be compressed.
    #[error(transparent)]
    Compression(#[from] CompressionError),
    /// There is nothing to seal.
    #[error("a batch without records cannot be sent")]
    Empty,
    /// A batch holds at most 2 GiB, and so does a record.
    #[error("a batch of {size} bytes is beyond the format's limit of 2147483647")]
    TooLarge {
        /// The size that the batch would have.
        size: usize,
    },
    /// A record of a control batch is not a control record.
    #[error("malformed control record: {reason}")]
    Control {
        /// What was found.
        reason: &'static str,
    },
}
