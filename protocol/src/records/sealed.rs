//! A finished batch on its way to the broker: stamped by the sender, sent as often as needed, split when too large.

use bytes::{Bytes, BytesMut};

use crate::compression::{Compressor, Decompressor};

use super::builder::BatchBuilder;
use super::error::RecordsError;
use super::header::BatchHeader;
use super::patch::refresh_crc;
use super::reader::Batch;

/// What an idempotent or transactional producer writes into a batch before sending it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The producer's id.
    pub producer_id: i64,
    /// The epoch of that id.
    pub producer_epoch: i16,
    /// The sequence number of the first record.
    pub base_sequence: i32,
    /// Whether the batch belongs to a transaction.
    pub transactional: bool,
}

/// A complete batch, as bytes to send.
///
/// Stamping touches the header only: the records are compressed once, and the bytes of a batch that is sent again are
/// the same ones.
#[derive(Debug)]
pub struct SealedBatch {
    header: BatchHeader,
    bytes: Bytes,
    /// Whether header and checksum are yet to be written into `bytes`.
    stale: bool,
    encoded_len: usize,
}

impl SealedBatch {
    pub(super) fn new(header: BatchHeader, buffer: Vec<u8>, encoded_len: usize) -> Self {
        Self { header, bytes: buffer.into(), stale: true, encoded_len }
    }

    /// The number of records.
    pub const fn count(&self) -> i32 {
        self.header.count
    }

    /// The header; its checksum is right once [`SealedBatch::bytes`] was called.
    pub const fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The length of the batch as it is sent.
    #[expect(clippy::len_without_is_empty, reason = "a sealed batch is never empty")]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The length that the batch has without compression.
    pub const fn encoded_len(&self) -> usize {
        self.encoded_len
    }

    /// Writes who sends the batch. May be done again, as after a bump of the epoch.
    pub const fn stamp(&mut self, stamp: Stamp) {
        self.header.producer_id = stamp.producer_id;
        self.header.producer_epoch = stamp.producer_epoch;
        self.header.base_sequence = stamp.base_sequence;
        self.header.attributes = self.header.attributes.with_transactional(stamp.transactional);
        self.stale = true;
    }

    /// The bytes to send, with the last stamp and a checksum that fits.
    ///
    /// The first call after a stamp writes both in place. Only if bytes from before that stamp are still held
    /// elsewhere, as by a request that may yet be written, are they left as they are and copied.
    pub fn bytes(&mut self) -> Bytes {
        if self.stale {
            let bytes = std::mem::take(&mut self.bytes);
            let mut buffer = bytes.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]));
            self.header.write(buffer.first_chunk_mut().expect("a sealed batch begins with its header"));
            self.header.crc = refresh_crc(&mut buffer);
            self.bytes = buffer.freeze();
            self.stale = false;
        }
        self.bytes.clone()
    }

    /// Makes smaller batches of this one's records, each of about `target` bytes before compression, and of one record
    /// at least. They keep the order, and carry no stamp.
    ///
    /// # Errors
    ///
    /// If the records cannot be read again within the decompressor's limit, or compressing them fails.
    pub fn split(
        &mut self,
        target: usize,
        compressor: &mut Compressor,
        decompressor: &mut Decompressor,
    ) -> Result<Vec<Self>, RecordsError> {
        let records = Batch::new(self.bytes())?.records(decompressor)?;
        let mut batches = Vec::new();
        let mut builder = BatchBuilder::new();
        for record in records.iter() {
            let record = record?;
            if !builder.is_empty() && builder.encoded_len() + builder.record_len_of(&record) > target {
                batches.push(std::mem::take(&mut builder).seal(compressor)?);
            }
            builder.try_append_record(&record)?;
        }
        batches.push(builder.seal(compressor)?);
        Ok(batches)
    }

    /// Gives the buffer back for another batch, unless its bytes are still held elsewhere.
    pub fn into_buffer(self) -> Option<BytesMut> {
        self.bytes.try_into_mut().ok()
    }
}
