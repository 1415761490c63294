//! The batches of a record set, as a fetch returns it: whole ones, and perhaps a cut one at the end.

use bytes::Bytes;

use crate::compression::{Compression, Decompressor};

use super::error::RecordsError;
use super::header::{BATCH_LENGTH, BatchHeader, HEADER_LEN, LOG_OVERHEAD, MAGIC, MAGIC_AT};
use super::message::{self, Message, MessageSet};
use super::patch::crc_of;
use super::record::Records;

/// Iterates over the batches of a record set without copying.
///
/// A broker cuts what it sends at the fetch limit, so a last batch that is not whole ends the iteration quietly;
/// [`Batches::trailing_len`] tells how much of it was there. A batch of an unsupported format is an error of its own,
/// and those behind it are still found; after a length that cannot be, nothing is. Messages of formats 0 and 1 are
/// batches too, each for itself, and may stand before batches of format 2.
#[derive(Clone, Debug)]
pub struct Batches {
    bytes: Bytes,
    position: usize,
    lost: bool,
}

impl Batches {
    /// Returns an iterator over the batches of `bytes`.
    pub const fn new(bytes: Bytes) -> Self {
        Self { bytes, position: 0, lost: false }
    }

    /// Where the next batch begins.
    pub const fn position(&self) -> usize {
        self.position
    }

    /// How many bytes have not been iterated over. At the end: how much there is of a cut batch.
    pub fn trailing_len(&self) -> usize {
        self.bytes.len() - self.position
    }
}

impl Iterator for Batches {
    type Item = Result<Batch, RecordsError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = &self.bytes[self.position..];
        let head = rest.first_chunk::<LOG_OVERHEAD>().filter(|_| !self.lost)?;
        let base_offset = i64::from_be_bytes(*head.first_chunk()?);
        let length = i32::from_be_bytes(*head[BATCH_LENGTH..].first_chunk()?);
        let least = match rest.get(MAGIC_AT).map(|magic| *magic as i8) {
            Some(MAGIC) => (HEADER_LEN - LOG_OVERHEAD) as i32,
            Some(magic) => message::least_length(magic),
            // Cut in front of the magic, it may be of any format.
            None => message::least_length(0),
        };
        if length < least {
            self.lost = true;
            return Some(Err(RecordsError::BatchLength { position: self.position, base_offset, length }));
        }
        let end = self.position + LOG_OVERHEAD + length as usize;
        if end > self.bytes.len() {
            return None;
        }
        let batch = self.bytes.slice(self.position..end);
        self.position = end;
        Some(Batch::new(batch))
    }
}

impl std::iter::FusedIterator for Batches {}

/// One whole batch: its header, and its bytes as they came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    header: BatchHeader,
    bytes: Bytes,
}

impl Batch {
    /// Reads the header of the one batch that `bytes` is.
    ///
    /// # Errors
    ///
    /// If it is of an unknown format, or not of the length that it says.
    pub fn new(bytes: Bytes) -> Result<Self, RecordsError> {
        let header = BatchHeader::peek(&bytes)?;
        if header.total_len() != bytes.len() {
            let (base_offset, length) = (header.base_offset, header.batch_length);
            return Err(RecordsError::BatchLength { position: 0, base_offset, length });
        }
        Ok(Self { header, bytes })
    }

    /// What the batch says about itself.
    pub const fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The whole batch.
    pub const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The records as they are stored: compressed, if the batch is. In formats 0 and 1, the whole message.
    pub fn payload(&self) -> &[u8] {
        if self.header.magic == MAGIC { &self.bytes[HEADER_LEN..] } else { &self.bytes }
    }

    /// Compares the checksum with the bytes.
    ///
    /// # Errors
    ///
    /// [`RecordsError::Crc`] if they differ.
    pub fn verify_crc(&self) -> Result<(), RecordsError> {
        let computed = if self.header.magic == MAGIC { crc_of(&self.bytes) } else { message::crc_of(&self.bytes) };
        if computed == self.header.crc {
            return Ok(());
        }
        Err(RecordsError::Crc { base_offset: self.header.base_offset, stored: self.header.crc, computed })
    }

    /// Decompresses the records and returns them, yet to be decoded one by one. Does not check the CRC; those of the
    /// messages inside a compressed one of format 0 or 1 are left to [`Records::verify_crcs`].
    ///
    /// Uncompressed records stay where they are; others live in the decompressor's buffer.
    ///
    /// # Errors
    ///
    /// If the records cannot be decompressed within the limit, or are too few bytes for their number.
    pub fn records(&self, decompressor: &mut Decompressor) -> Result<Records, RecordsError> {
        let header = self.header;
        let failed = |source| RecordsError::Decompression { base_offset: header.base_offset, source };
        let codec = header.attributes.compression().map_err(failed)?;
        if header.magic != MAGIC {
            return self.messages(codec, decompressor);
        }
        // Compaction keeps the header of a batch that lost all its records, with nothing behind it.
        let payload = if codec == Compression::None || self.bytes.len() == HEADER_LEN {
            self.bytes.slice(HEADER_LEN..)
        } else {
            decompressor.decompress(codec, self.payload()).map_err(failed)?
        };
        Records::new(header, payload)
    }

    /// As [`records`](Self::records), in the formats that have messages instead.
    fn messages(&self, codec: Compression, decompressor: &mut Decompressor) -> Result<Records, RecordsError> {
        let mut header = self.header;
        let base_offset = header.base_offset;
        if codec == Compression::None {
            return Ok(Records::of_messages(header, self.bytes.clone(), MessageSet::SINGLE));
        }
        let malformed = |position, reason| RecordsError::Record { base_offset, index: 0, position, reason };
        if codec == Compression::Zstd {
            return Err(malformed(0, "its format was never compressed with zstd"));
        }
        let wrapper = Message::read(&mut &self.bytes[..])
            .map_err(|fault| malformed(self.bytes.len() - fault.left, fault.reason))?;
        let Some(compressed) = wrapper.value else {
            return Err(malformed(0, "it is compressed, and has no value"));
        };
        let messages = decompressor
            .decompress_messages(codec, header.magic, compressed)
            .map_err(|source| RecordsError::Decompression { base_offset, source })?;
        let set = MessageSet::wrapped(&mut header, &messages)?;
        Ok(Records::of_messages(header, messages, set))
    }
}
