//! An open batch: records are appended in the encoded form, and nowhere else.
//!
//! The builder writes into one buffer that the caller brings and gets back with [`SealedBatch::into_buffer`], so a
//! producer in its stride allocates nothing: neither per record nor per batch.

use bytes::{Bytes, BytesMut};

use crate::compression::{Compression, Compressor};

use super::error::RecordsError;
use super::header::{Attributes, BatchHeader, HEADER_LEN, LOG_OVERHEAD, MAGIC};
use super::record::{HeadersRef, RecordRef};
use super::sealed::SealedBatch;
use super::varint::{self, len_i32, len_i64};

/// No headers, with types for [`BatchBuilder::try_append`] to settle on.
pub const NO_HEADERS: &[(&str, Option<&str>)] = &[];

/// Builds one record batch, record by record.
#[derive(Debug)]
pub struct BatchBuilder {
    /// The header's place, then the records so far.
    buffer: Vec<u8>,
    count: u32,
    base_timestamp: i64,
    max_timestamp: i64,
}

impl BatchBuilder {
    /// Returns an empty batch in a buffer of its own.
    pub fn new() -> Self {
        Self::with_buffer(BytesMut::new())
    }

    /// Returns an empty batch that uses `buffer`, whose contents are forgotten.
    pub fn with_buffer(mut buffer: BytesMut) -> Self {
        buffer.clear();
        let mut buffer = Vec::from(buffer);
        buffer.resize(HEADER_LEN, 0);
        Self { buffer, count: 0, base_timestamp: -1, max_timestamp: -1 }
    }

    /// Appends a record and returns its index in the batch. `timestamp` is in milliseconds; -1 means none. The first
    /// record's timestamp is the batch's base, and later ones may lie before it.
    ///
    /// # Errors
    ///
    /// [`RecordsError::TooLarge`] if the batch would exceed the 2 GiB of the format; nothing is appended then.
    #[inline]
    pub fn try_append<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(K, Option<V>)],
    ) -> Result<u32, RecordsError> {
        if headers.is_empty() {
            return self.append(timestamp, key, value, HeadersRef::default());
        }
        let headers_len = headers_len(headers);
        let index = self.begin(timestamp, key, value, headers.len(), headers_len)?;
        for (name, value) in headers {
            let (name, value) = (name.as_ref(), value.as_ref().map(AsRef::as_ref));
            push_bytes(&mut self.buffer, Some(name));
            push_bytes(&mut self.buffer, value);
        }
        Ok(index)
    }

    /// Appends what was read from another batch; offset and sequence are this batch's.
    ///
    /// # Errors
    ///
    /// As [`BatchBuilder::try_append`].
    pub fn try_append_record(&mut self, record: &RecordRef<'_>) -> Result<u32, RecordsError> {
        self.append(record.timestamp, record.key, record.value, record.headers)
    }

    #[inline]
    fn append(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: HeadersRef<'_>,
    ) -> Result<u32, RecordsError> {
        let index = self.begin(timestamp, key, value, headers.len(), headers.raw().len())?;
        self.buffer.extend_from_slice(headers.raw());
        Ok(index)
    }

    /// Writes a record up to and including the number of its headers, which the caller writes.
    #[inline(always)]
    fn begin(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        header_count: usize,
        headers_len: usize,
    ) -> Result<u32, RecordsError> {
        let base_timestamp = if self.count == 0 { timestamp } else { self.base_timestamp };
        // Java subtracts and adds with wrap-around too, so any two timestamps survive the way there and back.
        let timestamp_delta = timestamp.wrapping_sub(base_timestamp);
        let body = body_len(timestamp_delta, self.count, bytes_len(key), bytes_len(value), header_count, headers_len);
        let total = self.buffer.len() + MAX_LENGTH_LEN + body;
        if total > MAX_BATCH_LEN || self.count == i32::MAX as u32 {
            return Err(RecordsError::TooLarge { size: total });
        }

        // Lengths below fit i32, as the whole does.
        let buffer = &mut self.buffer;
        varint::push_i32(buffer, body as i32);
        buffer.push(0); // Attributes, of which none is defined.
        varint::push_i64(buffer, timestamp_delta);
        varint::push_i32(buffer, self.count as i32);
        push_bytes(buffer, key);
        push_bytes(buffer, value);
        varint::push_i32(buffer, header_count as i32);

        let index = self.count;
        self.count += 1;
        self.base_timestamp = base_timestamp;
        self.max_timestamp = if index == 0 { timestamp } else { self.max_timestamp.max(timestamp) };
        Ok(index)
    }

    /// The number of records.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Whether nothing was appended.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The length of the batch as it stands, header included, before compression.
    pub fn encoded_len(&self) -> usize {
        self.buffer.len()
    }

    /// The bytes that the batch's buffer occupies.
    pub fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// The greatest timestamp so far, or -1.
    pub const fn max_timestamp(&self) -> i64 {
        self.max_timestamp
    }

    /// The exact number of bytes that the record would add to this batch, before compression.
    pub fn record_len<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(K, Option<V>)],
    ) -> usize {
        let delta = if self.count == 0 { 0 } else { timestamp.wrapping_sub(self.base_timestamp) };
        let body = body_len(delta, self.count, bytes_len(key), bytes_len(value), headers.len(), headers_len(headers));
        body + len_usize(body)
    }

    /// The same for a record of another batch.
    pub(super) fn record_len_of(&self, record: &RecordRef<'_>) -> usize {
        let delta = if self.count == 0 { 0 } else { record.timestamp.wrapping_sub(self.base_timestamp) };
        let (key_len, value_len) = (bytes_len(record.key), bytes_len(record.value));
        let headers = record.headers;
        let body = body_len(delta, self.count, key_len, value_len, headers.len(), headers.raw().len());
        body + len_usize(body)
    }

    /// A bound on what a record adds to any batch, for those who must decide before they know which.
    pub fn max_record_len<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(K, Option<V>)],
    ) -> usize {
        const GREATEST_DELTAS: usize = varint::MAX_LEN_I64 + varint::MAX_LEN_I32;
        let body = body_len(0, 0, bytes_len(key), bytes_len(value), headers.len(), headers_len(headers));
        MAX_LENGTH_LEN + body + GREATEST_DELTAS - 2
    }

    /// Compresses the records and completes the header, but for what the sender stamps.
    ///
    /// The base offset is 0, the partition leader epoch -1, and there is no producer.
    ///
    /// # Errors
    ///
    /// [`RecordsError::Empty`] without records, [`RecordsError::Compression`] if the codec fails and
    /// [`RecordsError::TooLarge`] if it made more than 2 GiB.
    pub fn seal(self, compressor: &mut Compressor) -> Result<SealedBatch, RecordsError> {
        let Self { mut buffer, count, base_timestamp, max_timestamp } = self;
        if count == 0 {
            return Err(RecordsError::Empty);
        }
        let encoded_len = buffer.len();
        if compressor.codec() != Compression::None {
            // Back into the same buffer: one buffer goes through a batch's life, whatever the codec.
            let compressed = compressor.compress(&buffer[HEADER_LEN..])?;
            if compressed.len() > MAX_BATCH_LEN - HEADER_LEN {
                return Err(RecordsError::TooLarge { size: compressed.len() });
            }
            buffer.truncate(HEADER_LEN);
            buffer.extend_from_slice(compressed);
        }
        let header = BatchHeader {
            magic: MAGIC,
            base_offset: 0,
            batch_length: (buffer.len() - LOG_OVERHEAD) as i32,
            partition_leader_epoch: -1,
            crc: 0,
            attributes: Attributes::default().with_compression(compressor.codec()),
            last_offset_delta: count as i32 - 1,
            base_timestamp,
            max_timestamp,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            count: count as i32,
        };
        Ok(SealedBatch::new(header, buffer, encoded_len))
    }

    /// Gives the buffer back without making a batch.
    pub fn into_buffer(self) -> BytesMut {
        BytesMut::from(Bytes::from(self.buffer))
    }
}

impl Default for BatchBuilder {
    fn default() -> Self {
        Self::new()
    }
}

/// The varint of -1: the length of null.
const NULL: u8 = 1;
const MAX_LENGTH_LEN: usize = varint::MAX_LEN_I32;
/// What a batch length of 2^31 - 1 allows.
const MAX_BATCH_LEN: usize = i32::MAX as usize;

/// Writes nullable bytes with their length before them.
#[inline(always)]
fn push_bytes(buffer: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => buffer.push(NULL),
        Some(bytes) => {
            varint::push_i32(buffer, bytes.len() as i32);
            buffer.extend_from_slice(bytes);
        }
    }
}

/// The length of a record behind its own length.
#[inline(always)]
fn body_len(
    timestamp_delta: i64,
    offset_delta: u32,
    key_len: usize,
    value_len: usize,
    header_count: usize,
    headers_len: usize,
) -> usize {
    1 + len_i64(timestamp_delta)
        + len_i32(offset_delta as i32)
        + key_len
        + value_len
        + len_usize(header_count)
        + headers_len
}

/// The length of nullable bytes with the length before them.
#[inline(always)]
fn bytes_len(bytes: Option<&[u8]>) -> usize {
    bytes.map_or(1, |bytes| len_usize(bytes.len()) + bytes.len())
}

#[inline(always)]
const fn len_usize(length: usize) -> usize {
    len_i64(length as i64)
}

fn headers_len<K: AsRef<[u8]>, V: AsRef<[u8]>>(headers: &[(K, Option<V>)]) -> usize {
    headers
        .iter()
        .map(|(name, value)| bytes_len(Some(name.as_ref())) + bytes_len(value.as_ref().map(AsRef::as_ref)))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compression::Decompressor;
    use crate::records::Batch;

    #[test]
    fn a_record_is_written_as_kafka_writes_it() {
        let mut builder = BatchBuilder::new();

        builder.try_append(5_000, Some(b"k"), Some(b"value"), &[("h", Some("x")), ("n", None)]).expect("it fits");
        builder.try_append(4_900, None, Some(b""), NO_HEADERS).expect("it fits");

        let buffer = builder.into_buffer();
        let first = b"\x26\0\0\0\x02k\x0avalue\x04\x02h\x02x\x02n\x01";
        let second = b"\x0e\0\xc7\x01\x02\x01\0\0";
        assert_eq!(buffer[HEADER_LEN..], [&first[..], &second[..]].concat());
    }

    /// One allocation goes from batch to batch, whatever the codec.
    #[test]
    fn the_buffer_goes_round() {
        for codec in [Compression::None, Compression::Lz4] {
            let mut compressor = Compressor::new(codec, None).expect("built in");
            let mut buffer = BytesMut::with_capacity(10_000);
            let place = buffer.as_ptr();
            for _ in 0..3 {
                let mut builder = BatchBuilder::with_buffer(buffer);
                builder.try_append(0, None, Some(&[7; 5_000]), NO_HEADERS).expect("it fits");
                let mut sealed = builder.seal(&mut compressor).expect("a record");
                assert_eq!(sealed.bytes().as_ptr(), place);
                buffer = sealed.into_buffer().expect("nobody else holds it");
            }
            assert_eq!((buffer.as_ptr(), buffer.capacity()), (place, 10_000));
        }
    }

    #[test]
    fn a_batch_without_records_is_not_sealed() {
        let error = BatchBuilder::new().seal(&mut Compressor::none()).expect_err("no records");

        assert_eq!(error, RecordsError::Empty);
    }

    /// Zeroed memory is not there until it is touched, and what is too large is refused before it is.
    #[test]
    fn more_than_the_format_holds_is_refused() {
        let large = vec![0; MAX_BATCH_LEN];
        let mut builder = BatchBuilder::new();
        builder.try_append(0, None, Some(b"x"), NO_HEADERS).expect("it fits");
        let before = builder.encoded_len();

        let as_key = builder.try_append(0, Some(&large), None, NO_HEADERS);
        let as_value = builder.try_append(0, None, Some(&large), NO_HEADERS);
        let as_header = builder.try_append(0, None, None, &[("h", Some(&large))]);

        for refused in [as_key, as_value, as_header] {
            assert!(matches!(refused, Err(RecordsError::TooLarge { size }) if size > MAX_BATCH_LEN), "{refused:?}");
        }
        assert_eq!((builder.count(), builder.encoded_len()), (1, before));
    }

    /// A producer's batch says nothing of a leader or of an identity, until the sender stamps it.
    #[test]
    fn a_sealed_batch_has_the_header_of_nobody() {
        let mut builder = BatchBuilder::new();
        builder.try_append(5, None, Some(b"x"), NO_HEADERS).expect("it fits");
        builder.try_append(7, None, None, NO_HEADERS).expect("it fits");

        let header = *builder.seal(&mut Compressor::none()).expect("two records").header();

        assert_eq!((header.base_offset, header.partition_leader_epoch, header.attributes.0), (0, -1, 0));
        assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (-1, -1, -1));
        assert_eq!((header.base_timestamp, header.max_timestamp), (5, 7));
        assert_eq!((header.count, header.last_offset_delta), (2, 1));
    }

    #[test]
    fn the_length_of_a_record_is_foretold_exactly() {
        let headers = [("name", Some("value")), ("n", None)];
        for (before, timestamp, key) in [(0, 1 << 40, None), (1, 1_000, Some(&b"key"[..])), (200, -1 << 40, None)] {
            let mut builder = BatchBuilder::new();
            for _ in 0..before {
                builder.try_append(0, None, None, NO_HEADERS).expect("it fits");
            }
            let mut other = BatchBuilder::new();
            other.try_append(timestamp, key, Some(&[7; 100]), &headers).expect("it fits");
            let mut sealed = other.seal(&mut Compressor::none()).expect("a record");
            let batch = Batch::new(sealed.bytes()).expect("our own batch");
            let records = batch.records(&mut Decompressor::default()).expect("our own records");
            let record = records.iter().next().expect("a record").expect("our own record");

            let foretold = builder.record_len_of(&record);
            let at = builder.encoded_len();
            builder.try_append_record(&record).expect("it fits");

            assert_eq!(foretold, builder.encoded_len() - at, "behind {before} records");
        }
        // Five bytes of length, ten and five of deltas, one each of attributes and of three counts and lengths.
        assert_eq!(BatchBuilder::max_record_len(None, None, NO_HEADERS), 5 + 10 + 5 + 1 + 3);
    }

    #[test]
    fn the_greatest_timestamp_is_kept() {
        let mut builder = BatchBuilder::new();
        assert_eq!(builder.max_timestamp(), -1);
        for timestamp in [-5, 7, 3] {
            builder.try_append(timestamp, None, None, NO_HEADERS).expect("it fits");
        }

        assert_eq!((builder.max_timestamp(), builder.count()), (7, 3));
    }
}
