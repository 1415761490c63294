//! What stands in front of the records of a batch: 61 bytes in format 2, a message's own fields in the formats before.

use crate::compression::{Compression, CompressionError};

use super::error::RecordsError;
use super::message;

/// The format that is written. Formats 0 and 1 are read besides.
pub const MAGIC: i8 = 2;

/// The length of a batch of format 2 without records.
pub const HEADER_LEN: usize = 61;

/// Base offset and length: what the length field does not count.
pub(super) const LOG_OVERHEAD: usize = 12;

pub(super) const BASE_OFFSET: usize = 0;
pub(super) const BATCH_LENGTH: usize = 8;
pub(super) const LEADER_EPOCH: usize = 12;
/// The same place in all formats.
pub(super) const MAGIC_AT: usize = 16;
pub(super) const CRC: usize = 17;
pub(super) const ATTRIBUTES: usize = 21;
pub(super) const LAST_OFFSET_DELTA: usize = 23;
pub(super) const BASE_TIMESTAMP: usize = 27;
pub(super) const MAX_TIMESTAMP: usize = 35;
pub(super) const PRODUCER_ID: usize = 43;
pub(super) const PRODUCER_EPOCH: usize = 51;
pub(super) const BASE_SEQUENCE: usize = 53;
pub(super) const COUNT: usize = 57;

/// Whose clock the timestamps of a batch are from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimestampType {
    /// The producer's, one for each record.
    CreateTime,
    /// The broker's, the same for all records of the batch.
    LogAppendTime,
}

/// The attribute bits of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Attributes(pub i16);

impl Attributes {
    const CODEC: i16 = 0b111;
    const LOG_APPEND_TIME: i16 = 1 << 3;
    const TRANSACTIONAL: i16 = 1 << 4;
    const CONTROL: i16 = 1 << 5;
    const DELETE_HORIZON: i16 = 1 << 6;

    /// The codec of the records.
    ///
    /// # Errors
    ///
    /// If Kafka defines no codec of that number.
    pub fn compression(self) -> Result<Compression, CompressionError> {
        Compression::try_from((self.0 & Self::CODEC) as u8)
    }

    /// Whose clock the timestamps are from.
    pub const fn timestamp_type(self) -> TimestampType {
        if self.0 & Self::LOG_APPEND_TIME == 0 { TimestampType::CreateTime } else { TimestampType::LogAppendTime }
    }

    /// Whether the batch belongs to a transaction.
    pub const fn is_transactional(self) -> bool {
        self.0 & Self::TRANSACTIONAL != 0
    }

    /// Whether the records are a broker's marks instead of data.
    pub const fn is_control(self) -> bool {
        self.0 & Self::CONTROL != 0
    }

    /// Whether the base timestamp is the time after which compaction may drop the batch's tombstones (KIP-534).
    pub const fn has_delete_horizon(self) -> bool {
        self.0 & Self::DELETE_HORIZON != 0
    }

    /// Returns the same attributes with another codec.
    #[must_use]
    pub const fn with_compression(self, codec: Compression) -> Self {
        Self(self.0 & !Self::CODEC | codec.code() as i16)
    }

    /// Returns the same attributes with another type of timestamps.
    #[must_use]
    pub const fn with_timestamp_type(self, timestamp_type: TimestampType) -> Self {
        match timestamp_type {
            TimestampType::CreateTime => Self(self.0 & !Self::LOG_APPEND_TIME),
            TimestampType::LogAppendTime => Self(self.0 | Self::LOG_APPEND_TIME),
        }
    }

    /// Returns the same attributes, of a transaction or not.
    #[must_use]
    pub const fn with_transactional(self, transactional: bool) -> Self {
        if transactional { Self(self.0 | Self::TRANSACTIONAL) } else { Self(self.0 & !Self::TRANSACTIONAL) }
    }

    /// Returns the same attributes, of a control batch.
    #[must_use]
    pub const fn with_control(self) -> Self {
        Self(self.0 | Self::CONTROL)
    }
}

/// What a batch says about itself.
///
/// A message of format 0 or 1 is a batch of its own, and has what its format lacks at the value that means none. A
/// compressed message holds others, and tells the offset of its last one only: until it is decompressed
/// ([`Records::header`](super::Records::header)), that one is its base offset too, and the count is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    /// The format: 2, or 0 or 1 for a message as they were before Kafka 0.11.
    pub magic: i8,
    /// The offset of the first record; 0 from a producer.
    pub base_offset: i64,
    /// The length of what follows this field: the whole batch but for its first 12 bytes.
    pub batch_length: i32,
    /// The epoch of the leader that appended the batch; -1 from a producer, and in formats 0 and 1.
    pub partition_leader_epoch: i32,
    /// The checksum of everything behind it: CRC-32C, in formats 0 and 1 CRC-32.
    pub crc: u32,
    /// The attribute bits, as far as the format defines them: the codec in all, the type of timestamps since format 1.
    pub attributes: Attributes,
    /// The offset of the last record minus the base offset. Stays when compaction removes that record.
    pub last_offset_delta: i32,
    /// What the timestamps of the records are relative to. In format 1 the message's own timestamp; -1 in format 0.
    pub base_timestamp: i64,
    /// The greatest timestamp of the records; for LogAppendTime, the timestamp of each of them. -1 in format 0.
    pub max_timestamp: i64,
    /// The id of an idempotent producer, or -1.
    pub producer_id: i64,
    /// The epoch of that producer, or -1.
    pub producer_epoch: i16,
    /// The sequence number of the first record, or -1.
    pub base_sequence: i32,
    /// How many records there are.
    pub count: i32,
}

impl BatchHeader {
    /// Reads the header at the start of `bytes`, and nothing behind it: the batch itself may be cut short.
    ///
    /// # Errors
    ///
    /// If there are fewer bytes than a header has (61 in format 2, 18 in format 0, 26 in format 1), the format is
    /// unknown, or the length or the count cannot be.
    pub fn peek(bytes: &[u8]) -> Result<Self, RecordsError> {
        let base_offset = bytes.first_chunk().map_or(-1, |bytes| i64::from_be_bytes(*bytes));
        // Before the length: messages of the old formats are shorter than a header of this one.
        match bytes.get(MAGIC_AT).map(|magic| *magic as i8) {
            None | Some(MAGIC) => {}
            Some(0 | 1) => return message::peek(bytes),
            Some(magic) => return Err(RecordsError::UnsupportedMagic { base_offset, magic }),
        }
        let Some(head) = bytes.first_chunk::<HEADER_LEN>() else {
            let length = bytes.len() as i32 - LOG_OVERHEAD as i32;
            return Err(RecordsError::BatchLength { position: 0, base_offset, length });
        };
        let batch_length = i32::from_be_bytes(field(head, BATCH_LENGTH));
        if batch_length < (HEADER_LEN - LOG_OVERHEAD) as i32 {
            return Err(RecordsError::BatchLength { position: 0, base_offset, length: batch_length });
        }
        let count = i32::from_be_bytes(field(head, COUNT));
        if count < 0 {
            return Err(RecordsError::Count { base_offset, count, reason: "a count is never negative" });
        }
        Ok(Self {
            magic: MAGIC,
            base_offset,
            batch_length,
            partition_leader_epoch: i32::from_be_bytes(field(head, LEADER_EPOCH)),
            crc: u32::from_be_bytes(field(head, CRC)),
            attributes: Attributes(i16::from_be_bytes(field(head, ATTRIBUTES))),
            last_offset_delta: i32::from_be_bytes(field(head, LAST_OFFSET_DELTA)),
            base_timestamp: i64::from_be_bytes(field(head, BASE_TIMESTAMP)),
            max_timestamp: i64::from_be_bytes(field(head, MAX_TIMESTAMP)),
            producer_id: i64::from_be_bytes(field(head, PRODUCER_ID)),
            producer_epoch: i16::from_be_bytes(field(head, PRODUCER_EPOCH)),
            base_sequence: i32::from_be_bytes(field(head, BASE_SEQUENCE)),
            count,
        })
    }

    /// As [`peek`](Self::peek), where only the present format will do.
    pub(super) fn peek_current(bytes: &[u8]) -> Result<Self, RecordsError> {
        let header = Self::peek(bytes)?;
        header.require_current()?;
        Ok(header)
    }

    /// Refuses the old formats.
    pub(super) const fn require_current(&self) -> Result<(), RecordsError> {
        match self.magic {
            MAGIC => Ok(()),
            magic => Err(RecordsError::UnsupportedMagic { base_offset: self.base_offset, magic }),
        }
    }

    /// Writes the header in format 2, with its checksum as it stands.
    pub fn write(&self, head: &mut [u8; HEADER_LEN]) {
        put(head, BASE_OFFSET, self.base_offset.to_be_bytes());
        put(head, BATCH_LENGTH, self.batch_length.to_be_bytes());
        put(head, LEADER_EPOCH, self.partition_leader_epoch.to_be_bytes());
        put(head, MAGIC_AT, MAGIC.to_be_bytes());
        put(head, CRC, self.crc.to_be_bytes());
        put(head, ATTRIBUTES, self.attributes.0.to_be_bytes());
        put(head, LAST_OFFSET_DELTA, self.last_offset_delta.to_be_bytes());
        put(head, BASE_TIMESTAMP, self.base_timestamp.to_be_bytes());
        put(head, MAX_TIMESTAMP, self.max_timestamp.to_be_bytes());
        put(head, PRODUCER_ID, self.producer_id.to_be_bytes());
        put(head, PRODUCER_EPOCH, self.producer_epoch.to_be_bytes());
        put(head, BASE_SEQUENCE, self.base_sequence.to_be_bytes());
        put(head, COUNT, self.count.to_be_bytes());
    }

    /// The length of the whole batch.
    pub const fn total_len(&self) -> usize {
        LOG_OVERHEAD + self.batch_length as usize
    }

    /// The offset of the last record, whether compaction left it there or not.
    pub const fn last_offset(&self) -> i64 {
        self.base_offset.wrapping_add(self.last_offset_delta as i64)
    }

    /// The offset to fetch next when the batch is used up.
    pub const fn next_offset(&self) -> i64 {
        self.last_offset().wrapping_add(1)
    }

    /// Whose clock the timestamps are from; `None` in format 0, which has no timestamps.
    pub const fn timestamp_type(&self) -> Option<TimestampType> {
        if self.magic == 0 { None } else { Some(self.attributes.timestamp_type()) }
    }

    /// Whether an idempotent producer wrote the batch.
    pub const fn has_producer_id(&self) -> bool {
        self.producer_id > -1
    }

    /// The sequence number of the record `delta` behind the first, or -1 without a base sequence. Wraps to 0.
    pub const fn sequence_at(&self, delta: i32) -> i32 {
        if self.base_sequence < 0 { -1 } else { self.base_sequence.wrapping_add(delta) & i32::MAX }
    }

    /// The sequence number of the last record, or -1 without a base sequence.
    pub const fn last_sequence(&self) -> i32 {
        self.sequence_at(self.last_offset_delta)
    }

    /// The time after which compaction may drop the tombstones of the batch, if it has been set.
    pub const fn delete_horizon_ms(&self) -> Option<i64> {
        if self.attributes.has_delete_horizon() { Some(self.base_timestamp) } else { None }
    }
}

/// Copies a field out of the header; `at` is one of the constants above, so that the bounds are known to the compiler.
#[inline(always)]
fn field<const N: usize>(head: &[u8; HEADER_LEN], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&head[at..at + N]);
    bytes
}

#[inline(always)]
fn put<const N: usize>(head: &mut [u8; HEADER_LEN], at: usize, bytes: [u8; N]) {
    head[at..at + N].copy_from_slice(&bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> BatchHeader {
        BatchHeader {
            magic: MAGIC,
            base_offset: 40,
            batch_length: 49,
            partition_leader_epoch: 3,
            crc: 0xfeed_beef,
            attributes: Attributes(0),
            last_offset_delta: 4,
            base_timestamp: 1_000,
            max_timestamp: 2_000,
            producer_id: 7,
            producer_epoch: 1,
            base_sequence: i32::MAX - 2,
            count: 5,
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let mut bytes = [0; HEADER_LEN];

        header().write(&mut bytes);

        assert_eq!(BatchHeader::peek(&bytes), Ok(header()));
    }

    /// After 2147483647 comes 0, inside a batch too.
    #[test]
    fn sequences_wrap() {
        let header = header();

        assert_eq!([0, 2, 3, 4].map(|delta| header.sequence_at(delta)), [i32::MAX - 2, i32::MAX, 0, 1]);
        assert_eq!(header.last_sequence(), 1);
        assert_eq!(BatchHeader { base_sequence: -1, ..header }.last_sequence(), -1);
    }

    #[test]
    fn the_next_offset_lies_behind_what_compaction_removed() {
        let header = BatchHeader { count: 0, ..header() };

        assert_eq!((header.last_offset(), header.next_offset()), (44, 45));
    }

    #[test]
    fn attributes_change_one_bit_each() {
        let attributes = Attributes(0b0101_0000)
            .with_compression(Compression::Zstd)
            .with_timestamp_type(TimestampType::LogAppendTime)
            .with_transactional(false)
            .with_control();

        assert_eq!(attributes, Attributes(0b0110_1100));
        assert!(attributes.has_delete_horizon() && attributes.is_control() && !attributes.is_transactional());
        assert_eq!(attributes.with_compression(Compression::None).compression(), Ok(Compression::None));
        assert_eq!(attributes.timestamp_type(), TimestampType::LogAppendTime);
        assert!(Attributes(7).compression().is_err());
    }

    #[test]
    fn the_delete_horizon_takes_the_place_of_the_base_timestamp() {
        assert_eq!(header().delete_horizon_ms(), None);
        assert_eq!(BatchHeader { attributes: Attributes(1 << 6), ..header() }.delete_horizon_ms(), Some(1_000));
    }

    #[test]
    fn setting_what_is_set_changes_nothing() {
        let all = Attributes(0b0111_1111);

        assert_eq!(all.with_compression(Compression::Gzip), Attributes(0b0111_1001));
        assert_eq!(all.with_timestamp_type(TimestampType::LogAppendTime), all);
        assert_eq!(all.with_timestamp_type(TimestampType::CreateTime), Attributes(0b0111_0111));
        assert_eq!(all.with_transactional(true), all);
        assert_eq!(all.with_transactional(false), Attributes(0b0110_1111));
        assert_eq!(all.with_control(), all);
        assert_eq!(Attributes(0).with_timestamp_type(TimestampType::CreateTime), Attributes(0));
    }

    #[test]
    fn a_length_that_cannot_be_is_named() {
        let too_short = |base_offset, length| RecordsError::BatchLength { position: 0, base_offset, length };
        let mut bytes = [0; HEADER_LEN];
        header().write(&mut bytes);

        assert_eq!(BatchHeader::peek(&bytes[..5]), Err(too_short(-1, -7)));
        assert_eq!(BatchHeader::peek(&bytes[..60]), Err(too_short(40, 48)));
        BatchHeader { batch_length: 48, ..header() }.write(&mut bytes);
        assert_eq!(BatchHeader::peek(&bytes), Err(too_short(40, 48)));
        // A message of format 1 has at least 22 bytes behind its length, and this is cut before.
        bytes[MAGIC_AT] = 1;
        assert_eq!(BatchHeader::peek(&bytes[..20]), Err(too_short(40, 8)));
    }

    #[test]
    fn a_message_of_an_old_format_has_no_leader_and_no_producer() {
        let mut bytes = [0; HEADER_LEN];
        header().write(&mut bytes);
        bytes[MAGIC_AT] = 1;

        let header = BatchHeader::peek(&bytes).expect("a message");

        assert_eq!((header.partition_leader_epoch, header.producer_id), (-1, -1));
        assert_eq!((header.producer_epoch, header.base_sequence), (-1, -1));
        assert_eq!((header.count, header.last_offset_delta), (1, 0));
    }

    #[test]
    fn producers_are_numbered_from_0() {
        let has_producer_id = |producer_id| BatchHeader { producer_id, ..header() }.has_producer_id();

        assert_eq!([-1, 0, 1, 2].map(has_producer_id), [false, true, true, true]);
    }
}
