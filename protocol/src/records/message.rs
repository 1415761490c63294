//! Messages of formats 0 and 1, as Kafka stored them before 0.11: read, never written.
//!
//! ```text
//!     offset i64 │ length i32 │ crc u32 │ magic i8 │ attributes i8 │ timestamp i64, in format 1 │
//!     key length i32, key │ value length i32, value
//! ```
//!
//! There are no batches: what stands for one is a wrapper, a message whose value is a compressed sequence of others.
//! The wrapper has the offset of the last of them. Those inside have their own offsets in format 0, so that a broker
//! had to compress again what it appended; in format 1 (KIP-31, KIP-32) they count from the first, and one
//! subtraction places them. In format 1, too, a wrapper with the append time gives its timestamp to all that it
//! holds.

use bytes::Buf;

use super::error::RecordsError;
use super::header::{Attributes, BatchHeader, LOG_OVERHEAD, MAGIC_AT};
use super::record::{Fault, HeadersRef, RecordRef};

/// The least length of a message of a format: checksum, magic, attributes, a timestamp if it has one, and the lengths
/// of key and value.
pub(super) const fn least_length(magic: i8) -> i32 {
    if magic == 1 { 22 } else { 14 }
}

/// What these attribute bits mean, the present format says; they are the only ones that the old ones have.
const CODEC: u8 = 0b111;
const TIMESTAMP_TYPE: u8 = 1 << 3;
/// The timestamp of a message without.
const NO_TIMESTAMP: i64 = -1;

/// Reads the fields in front of the key, as far as they say the same as the header of a batch.
pub(super) fn peek(bytes: &[u8]) -> Result<BatchHeader, RecordsError> {
    let mut input = bytes;
    let Some(fixed) = Fixed::read(&mut input) else {
        let base_offset = bytes.first_chunk().map_or(-1, |bytes| i64::from_be_bytes(*bytes));
        let length = bytes.len() as i32 - LOG_OVERHEAD as i32;
        return Err(RecordsError::BatchLength { position: 0, base_offset, length });
    };
    if fixed.length < least_length(fixed.magic) {
        let (base_offset, length) = (fixed.offset, fixed.length);
        return Err(RecordsError::BatchLength { position: 0, base_offset, length });
    }
    let defined = if fixed.magic == 0 { CODEC } else { CODEC | TIMESTAMP_TYPE };
    Ok(BatchHeader {
        magic: fixed.magic,
        base_offset: fixed.offset,
        batch_length: fixed.length,
        partition_leader_epoch: -1,
        crc: fixed.crc,
        attributes: Attributes(i16::from(fixed.attributes & defined)),
        last_offset_delta: 0,
        base_timestamp: fixed.timestamp,
        max_timestamp: fixed.timestamp,
        producer_id: -1,
        producer_epoch: -1,
        base_sequence: -1,
        count: 1,
    })
}

/// The CRC-32 that a whole message should carry: of everything from the magic on.
pub(super) fn crc_of(message: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(&message[MAGIC_AT..]);
    crc.sum()
}

/// What all messages of a format have in front of the key.
struct Fixed {
    offset: i64,
    length: i32,
    crc: u32,
    magic: i8,
    attributes: u8,
    timestamp: i64,
}

impl Fixed {
    /// Moves `input` behind what it reads; `None` if it is too short. The magic is 0 or 1, or the rest has no meaning.
    fn read(input: &mut &[u8]) -> Option<Self> {
        let offset = input.try_get_i64().ok()?;
        let length = input.try_get_i32().ok()?;
        let crc = input.try_get_u32().ok()?;
        let magic = input.try_get_i8().ok()?;
        let attributes = input.try_get_u8().ok()?;
        let timestamp = if magic == 0 { NO_TIMESTAMP } else { input.try_get_i64().ok()? };
        Some(Self { offset, length, crc, magic, attributes, timestamp })
    }
}

/// One whole message.
pub(super) struct Message<'a> {
    offset: i64,
    /// In milliseconds, -1 in format 0.
    timestamp: i64,
    magic: i8,
    attributes: u8,
    crc: u32,
    key: Option<&'a [u8]>,
    pub(super) value: Option<&'a [u8]>,
    /// All of it, offset and length included.
    bytes: &'a [u8],
}

impl<'a> Message<'a> {
    /// Reads the message that `input` begins with, and moves `input` behind it.
    pub(super) fn read(input: &mut &'a [u8]) -> Result<Self, Fault> {
        let whole = *input;
        let fault = |rest: &[u8], reason| Fault { left: rest.len(), reason };
        let mut rest = whole;
        let Some(fixed) = Fixed::read(&mut rest) else {
            return Err(fault(whole, "it is cut short"));
        };
        if !(0..=1).contains(&fixed.magic) {
            return Err(fault(whole, "it is of another format than its neighbours"));
        }
        if fixed.length < least_length(fixed.magic) {
            return Err(fault(whole, "its length cannot be"));
        }
        let Some((bytes, behind)) = whole.split_at_checked(LOG_OVERHEAD + fixed.length as usize) else {
            return Err(fault(whole, "its length reaches beyond the batch"));
        };
        // Its length is at least that of what was read.
        let mut body = &bytes[whole.len() - rest.len()..];
        let Some(key) = nullable(&mut body) else {
            return Err(Fault { left: behind.len() + body.len(), reason: "its key reaches beyond it" });
        };
        let Some(value) = nullable(&mut body) else {
            return Err(Fault { left: behind.len() + body.len(), reason: "its value reaches beyond it" });
        };
        if !body.is_empty() {
            return Err(Fault { left: behind.len() + body.len(), reason: "there are bytes behind its value" });
        }
        *input = behind;
        let Fixed { offset, timestamp, magic, attributes, crc, .. } = fixed;
        Ok(Self { offset, timestamp, magic, attributes, crc, key, value, bytes })
    }
}

/// Reads nullable bytes; the outer `None` if they do not fit.
fn nullable<'a>(input: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    let mut rest = *input;
    let length = rest.try_get_i32().ok()?;
    if length == -1 {
        *input = rest;
        return Some(None);
    }
    let (bytes, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    *input = rest;
    Some(Some(bytes))
}

/// What makes records of the messages that one batch of an old format consists of: one, or those inside a wrapper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MessageSet {
    /// What the offsets inside are relative to.
    base: i64,
    is_wrapped: bool,
}

impl MessageSet {
    /// One message that is not compressed.
    pub(super) const SINGLE: Self = Self { base: 0, is_wrapped: false };

    /// Reads through the messages inside a wrapper, and completes its header with what only they tell.
    pub(super) fn wrapped(wrapper: &mut BatchHeader, messages: &[u8]) -> Result<Self, RecordsError> {
        let base_offset = wrapper.base_offset;
        let mut rest = messages;
        let (mut first, mut last, mut count) = (None, 0, 0);
        while !rest.is_empty() {
            let left = rest.len();
            let message = Message::read(&mut rest).and_then(|message| match message.attributes & CODEC {
                0 => Ok(message),
                _ => Err(Fault { left, reason: "it is compressed again" }),
            });
            let message = message.map_err(|fault| RecordsError::Record {
                base_offset,
                index: count,
                position: messages.len() - fault.left,
                reason: fault.reason,
            })?;
            first.get_or_insert(message.offset);
            last = message.offset;
            count += 1;
        }
        let Some(first) = first else {
            return Err(RecordsError::Count { base_offset, count: 0, reason: "a wrapper is never empty" });
        };
        let base = match (wrapper.magic, base_offset) {
            (0, _) => 0,
            // Old producers leave it at 0 and let the broker count.
            (_, 0) => 0,
            (_, offset) if offset < last => {
                let reason = "the last of them has a greater offset than the message around them";
                return Err(RecordsError::Count { base_offset, count: count as i32, reason });
            }
            (_, offset) => offset.wrapping_sub(last),
        };
        let first = first.wrapping_add(base);
        wrapper.count = count as i32;
        // Inside a log the distance is of 32 bits, or its index could not be.
        if let Ok(delta) = i32::try_from(base_offset.wrapping_sub(first)) {
            wrapper.base_offset = first;
            wrapper.last_offset_delta = delta;
        }
        Ok(Self { base, is_wrapped: true })
    }

    /// The record that a message stands for. `append_time` is that of the wrapper.
    pub(super) fn record<'a>(&self, message: &Message<'a>, append_time: Option<i64>) -> RecordRef<'a> {
        let append_time = append_time.filter(|_| message.magic != 0);
        RecordRef {
            offset: message.offset.wrapping_add(self.base),
            timestamp: append_time.unwrap_or(message.timestamp),
            key: message.key,
            value: message.value,
            headers: HeadersRef::default(),
        }
    }

    /// Compares the checksums inside a wrapper with the bytes. Those outside are the business of the batch.
    pub(super) fn verify_crcs(&self, messages: &[u8]) -> Result<(), RecordsError> {
        let mut rest = if self.is_wrapped { messages } else { &[] };
        while let Ok(message) = Message::read(&mut rest) {
            let computed = crc_of(message.bytes);
            if computed != message.crc {
                let base_offset = message.offset.wrapping_add(self.base);
                return Err(RecordsError::Crc { base_offset, stored: message.crc, computed });
            }
        }
        Ok(())
    }
}
