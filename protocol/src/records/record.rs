//! The records inside a batch: borrowed ([`RecordRef`], no allocation) or owned ([`Record`], slices of one buffer).
//!
//! ```text
//!     length varint │ attributes i8 │ timestamp delta varlong │ offset delta varint │
//!     key length varint, key │ value length varint, value │ header count varint, headers…
//!     header: key length varint, key │ value length varint, value
//! ```

use std::borrow::Cow;
use std::fmt;

use bytes::{Buf, Bytes};

use super::error::RecordsError;
use super::header::{BatchHeader, TimestampType};
use super::message::{Message, MessageSet};
use super::varint::{read_i32, read_i64};

/// The decompressed records of one batch, decoded as one asks for them.
#[derive(Clone, Debug)]
pub struct Records {
    header: BatchHeader,
    payload: Bytes,
    /// How to read a payload of formats 0 and 1.
    messages: Option<MessageSet>,
}

/// No record is shorter: its length, attributes, two deltas, two lengths and a count, of a byte each.
const LEAST_RECORD_LEN: usize = 7;

/// The most records for which room is made before the first of them has been seen.
const MOST_FORESEEN: usize = 1 << 14;

impl Records {
    pub(super) fn new(header: BatchHeader, payload: Bytes) -> Result<Self, RecordsError> {
        let (base_offset, count) = (header.base_offset, header.count);
        // The count sizes vectors, so it must not exceed what the bytes can hold.
        if count as usize > payload.len() / LEAST_RECORD_LEN {
            return Err(RecordsError::Count { base_offset, count, reason: "there are too few bytes for so many" });
        }
        Ok(Self { header, payload, messages: None })
    }

    /// The records of a batch of format 0 or 1: whole messages.
    pub(super) const fn of_messages(header: BatchHeader, payload: Bytes, messages: MessageSet) -> Self {
        Self { header, payload, messages: Some(messages) }
    }

    /// The header of the batch. That of a compressed message of format 0 or 1 is completed by what the messages inside
    /// tell: the first offset, and how many there are.
    pub const fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The encoded records.
    pub const fn payload(&self) -> &Bytes {
        &self.payload
    }

    /// Compares the checksums of the messages inside a compressed message of format 0 or 1 with their bytes. There are
    /// none in format 2, where that of the batch covers all.
    ///
    /// # Errors
    ///
    /// [`RecordsError::Crc`] for the first that differs.
    pub fn verify_crcs(&self) -> Result<(), RecordsError> {
        self.messages.map_or(Ok(()), |messages| messages.verify_crcs(&self.payload))
    }

    /// Iterates over the records without allocating. After an error, and at the end, it stays at the end.
    pub fn iter(&self) -> RecordRefs<'_> {
        RecordRefs {
            cursor: Cursor::new(&self.header, self.messages),
            rest: &self.payload,
            payload_len: self.payload.len(),
        }
    }

    /// Returns a part of a [`RecordRef`] of this batch as a handle of its own, without copying.
    ///
    /// # Panics
    ///
    /// If `part` does not lie in these records.
    #[inline]
    pub fn share(&self, part: &[u8]) -> Bytes {
        share(&self.payload, part)
    }

    /// Decodes all records. Allocates the vector, and nothing else.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong with any of them: all, or none.
    pub fn to_vec(&self) -> Result<Vec<Record>, RecordsError> {
        // What the bytes can hold was compared with the count, but may be far from what they do hold.
        let mut records = Vec::with_capacity((self.header.count as usize).min(MOST_FORESEEN));
        let mut cursor = Cursor::new(&self.header, self.messages);
        let mut rest = &self.payload[..];
        // The steps of the iterator, without its checks between records.
        while cursor.index < cursor.count {
            let whole = self.payload.clone();
            match cursor.decode(&mut rest) {
                Ok(record) => {
                    records.push(Record::EMPTY);
                    if let Some(place) = records.last_mut() {
                        place.fill(&record, whole, &self.payload);
                    }
                }
                Err(fault) => return Err(cursor.malformed(fault, self.payload.len())),
            }
            cursor.index += 1;
        }
        while let Some(record) = cursor.end(&mut rest, self.payload.len()) {
            records.push(record?.to_record(&self.payload));
        }
        Ok(records)
    }
}

impl<'a> IntoIterator for &'a Records {
    type Item = Result<RecordRef<'a>, RecordsError>;
    type IntoIter = RecordRefs<'a>;

    fn into_iter(self) -> RecordRefs<'a> {
        self.iter()
    }
}

impl IntoIterator for Records {
    type Item = Result<Record, RecordsError>;
    type IntoIter = IntoRecords;

    fn into_iter(self) -> IntoRecords {
        IntoRecords { cursor: Cursor::new(&self.header, self.messages), payload: self.payload, position: 0 }
    }
}

/// Iterates over borrowed records.
#[derive(Clone, Debug)]
pub struct RecordRefs<'a> {
    cursor: Cursor,
    rest: &'a [u8],
    payload_len: usize,
}

impl<'a> Iterator for RecordRefs<'a> {
    type Item = Result<RecordRef<'a>, RecordsError>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        self.cursor.next(&mut self.rest, self.payload_len)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.rest.len() / LEAST_RECORD_LEN + 1))
    }
}

impl std::iter::FusedIterator for RecordRefs<'_> {}

/// Iterates over owned records, decoding one at a time.
#[derive(Clone, Debug)]
pub struct IntoRecords {
    cursor: Cursor,
    payload: Bytes,
    position: usize,
}

impl IntoRecords {
    /// The encoded records, which [`next_ref`](Self::next_ref) borrows from.
    pub const fn payload(&self) -> &Bytes {
        &self.payload
    }

    /// The next record, borrowed: for those who make something else of it than a [`Record`].
    #[inline]
    pub fn next_ref(&mut self) -> Option<Result<RecordRef<'_>, RecordsError>> {
        let mut rest = &self.payload[self.position..];
        let record = self.cursor.next(&mut rest, self.payload.len())?;
        self.position = self.payload.len() - rest.len();
        Some(record)
    }
}

impl Iterator for IntoRecords {
    type Item = Result<Record, RecordsError>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        let mut rest = &self.payload[self.position..];
        let record = self.cursor.next(&mut rest, self.payload.len())?;
        self.position = self.payload.len() - rest.len();
        Some(record.map(|record| record.to_record(&self.payload)))
    }
}

impl std::iter::FusedIterator for IntoRecords {}

/// Where an iterator is in its batch, and what it needs of the header.
#[derive(Clone, Debug)]
struct Cursor {
    base_offset: i64,
    base_timestamp: i64,
    /// The timestamp of all records, if the broker set it.
    append_time: Option<i64>,
    last_offset_delta: i32,
    count: u32,
    index: u32,
    ended: bool,
    messages: Option<MessageSet>,
}

impl Cursor {
    fn new(header: &BatchHeader, messages: Option<MessageSet>) -> Self {
        Self {
            base_offset: header.base_offset,
            base_timestamp: header.base_timestamp,
            append_time: (header.attributes.timestamp_type() == TimestampType::LogAppendTime)
                .then_some(header.max_timestamp),
            last_offset_delta: header.last_offset_delta,
            // Messages of the old formats are read where a batch would end, out of the way of the others.
            count: if messages.is_some() { 0 } else { header.count as u32 },
            index: 0,
            ended: false,
            messages,
        }
    }

    #[inline(always)]
    fn next<'a>(&mut self, rest: &mut &'a [u8], payload_len: usize) -> Option<Result<RecordRef<'a>, RecordsError>> {
        if self.index == self.count || self.ended {
            return self.end(rest, payload_len);
        }
        match self.decode(rest) {
            Ok(record) => {
                self.index += 1;
                Some(Ok(record))
            }
            Err(fault) => Some(Err(self.malformed(fault, payload_len))),
        }
    }

    #[inline(always)]
    fn decode<'a>(&self, rest: &mut &'a [u8]) -> Result<RecordRef<'a>, Fault> {
        let left = rest.len();
        let Some(length) = read_i32(rest) else {
            return Err(Fault { left, reason: "its length is no varint of 32 bits" });
        };
        let Some((mut body, behind)) = usize::try_from(length).ok().and_then(|length| rest.split_at_checked(length))
        else {
            return Err(Fault { left, reason: "its length reaches beyond the batch" });
        };
        // What is left behind the record, so that a fault can tell where it was found.
        let fault = |body: &[u8], reason| Fault { left: behind.len() + body.len(), reason };

        // The attributes of a record have no meaning yet; whatever they say is skipped, as Java does.
        let Some((_attributes, after)) = body.split_first() else {
            return Err(fault(body, "it is empty"));
        };
        body = after;
        let Some(timestamp_delta) = read_i64(&mut body) else {
            return Err(fault(body, "its timestamp is no varint of 64 bits"));
        };
        let Some(offset_delta) = read_i32(&mut body) else {
            return Err(fault(body, "its offset is no varint of 32 bits"));
        };
        if offset_delta < 0 || offset_delta > self.last_offset_delta {
            return Err(fault(body, "its offset lies outside the batch"));
        }
        let Some(key) = read_bytes(&mut body) else {
            return Err(fault(body, "its key reaches beyond it"));
        };
        let Some(value) = read_bytes(&mut body) else {
            return Err(fault(body, "its value reaches beyond it"));
        };
        let headers = match body {
            [0] => HeadersRef::default(),
            _ => HeadersRef::decode(body).map_err(|left| fault(left, "its headers are malformed"))?,
        };
        *rest = behind;
        Ok(RecordRef {
            offset: self.base_offset.wrapping_add(i64::from(offset_delta)),
            timestamp: self.append_time.unwrap_or_else(|| self.base_timestamp.wrapping_add(timestamp_delta)),
            key,
            value,
            headers,
        })
    }

    #[cold]
    fn malformed(&mut self, fault: Fault, payload_len: usize) -> RecordsError {
        self.ended = true;
        RecordsError::Record {
            base_offset: self.base_offset,
            index: self.index,
            position: payload_len - fault.left,
            reason: fault.reason,
        }
    }

    #[cold]
    fn end<'a>(&mut self, rest: &mut &'a [u8], payload_len: usize) -> Option<Result<RecordRef<'a>, RecordsError>> {
        if let Some(messages) = self.messages.filter(|_| !self.ended && !rest.is_empty()) {
            return Some(match Message::read(rest) {
                Ok(message) => {
                    self.index += 1;
                    self.count += 1;
                    Ok(messages.record(&message, self.append_time))
                }
                Err(fault) => Err(self.malformed(fault, payload_len)),
            });
        }
        if std::mem::replace(&mut self.ended, true) || rest.is_empty() {
            return None;
        }
        Some(Err(RecordsError::Count {
            base_offset: self.base_offset,
            count: self.count as i32,
            reason: "there are bytes behind the last of them",
        }))
    }
}

/// What is wrong, and how many bytes were left where it was found.
pub(super) struct Fault {
    pub(super) left: usize,
    pub(super) reason: &'static str,
}

/// The length of nothing.
const NULL: i32 = -1;

/// Reads nullable bytes; the outer `None` if they do not fit.
#[inline(always)]
fn read_bytes<'a>(input: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    let mut rest = *input;
    let length = read_i32(&mut rest)?;
    if length == NULL {
        *input = rest;
        return Some(None);
    }
    let (bytes, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    *input = rest;
    Some(Some(bytes))
}

/// A record that borrows from its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRef<'a> {
    /// Its offset in the partition.
    pub offset: i64,
    /// Its timestamp in milliseconds, or -1 for none.
    pub timestamp: i64,
    /// Its key.
    pub key: Option<&'a [u8]>,
    /// Its value; `None` is a tombstone in a compacted topic.
    pub value: Option<&'a [u8]>,
    /// Its headers.
    pub headers: HeadersRef<'a>,
}

impl RecordRef<'_> {
    /// Returns the record as slices of `payload`, which it was decoded from.
    #[inline(always)]
    fn to_record(self, payload: &Bytes) -> Record {
        let headers = match self.headers.count {
            0 => Headers::default(),
            count => Headers { raw: Some(share(payload, self.headers.raw)), count },
        };
        Record {
            offset: self.offset,
            timestamp: self.timestamp,
            key: self.key.map(|key| share(payload, key)),
            value: self.value.map(|value| share(payload, value)),
            headers,
        }
    }
}

/// Returns `part`, which lies in `whole`, as a handle of its own.
///
/// `Bytes::slice_ref` does the same through a temporary that is copied while its parts are still on their way to the
/// cache; this takes a third less time for a record.
#[inline(always)]
fn share(whole: &Bytes, part: &[u8]) -> Bytes {
    if part.is_empty() {
        return Bytes::new();
    }
    let mut shared = whole.clone();
    narrow(&mut shared, part);
    shared
}

/// Makes a handle on the whole one on `part`, which lies in it.
#[inline(always)]
fn narrow(whole: &mut Bytes, part: &[u8]) {
    let start = part.as_ptr().addr() - whole.as_ptr().addr();
    whole.advance(start);
    whole.truncate(part.len());
}

/// A record whose parts are slices of the buffer that it was read from, and keep that buffer alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its offset in the partition.
    pub offset: i64,
    /// Its timestamp in milliseconds, or -1 for none.
    pub timestamp: i64,
    /// Its key.
    pub key: Option<Bytes>,
    /// Its value; `None` is a tombstone in a compacted topic.
    pub value: Option<Bytes>,
    /// Its headers.
    pub headers: Headers,
}

impl Record {
    /// Nothing at all, to be filled in its place.
    const EMPTY: Self =
        Self { offset: 0, timestamp: 0, key: None, value: None, headers: Headers { raw: None, count: 0 } };

    /// Becomes `record` as slices of `payload`, of which `whole` is a handle.
    #[inline(always)]
    fn fill(&mut self, record: &RecordRef<'_>, whole: Bytes, payload: &Bytes) {
        self.offset = record.offset;
        self.timestamp = record.timestamp;
        if let Some(value) = record.value {
            narrow(self.value.insert(whole), value);
        }
        if let Some(key) = record.key {
            narrow(self.key.insert(payload.clone()), key);
        }
        if !record.headers.is_empty() {
            self.headers = record.headers.to_headers(payload);
        }
    }

    /// Copies the record out of the buffer that it shares, so that keeping it does not keep megabytes alive.
    #[must_use]
    pub fn detach(&self) -> Self {
        let copy = |bytes: &Bytes| Bytes::copy_from_slice(bytes);
        Self {
            key: self.key.as_ref().map(copy),
            value: self.value.as_ref().map(copy),
            headers: Headers { raw: self.headers.raw.as_ref().map(copy), count: self.headers.count },
            ..*self
        }
    }
}

/// One header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// Its name as it was sent. Kafka means UTF-8 and checks nothing.
    pub key: &'a [u8],
    /// Its value.
    pub value: Option<&'a [u8]>,
}

impl<'a> Header<'a> {
    /// Its name as text, with replacement characters where it is no UTF-8.
    pub fn name(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.key)
    }
}

/// The headers of a [`RecordRef`]: in order, names may repeat.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct HeadersRef<'a> {
    /// The headers as they are encoded, behind their count. Checked when they were decoded.
    raw: &'a [u8],
    count: u32,
}

impl<'a> HeadersRef<'a> {
    /// Checks the headers that `body` consists of; else returns what is left at the fault.
    fn decode(body: &'a [u8]) -> Result<Self, &'a [u8]> {
        let mut rest = body;
        let Some(count) = read_i32(&mut rest).and_then(|count| u32::try_from(count).ok()) else {
            return Err(body);
        };
        let raw = rest;
        for _ in 0..count {
            let header = rest;
            let name = read_bytes(&mut rest).flatten();
            if name.is_none() || read_bytes(&mut rest).is_none() {
                return Err(header);
            }
        }
        if rest.is_empty() { Ok(Self { raw, count }) } else { Err(rest) }
    }

    /// How many there are.
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Iterates over the headers in order.
    pub fn iter(&self) -> impl Iterator<Item = Header<'a>> + use<'a> {
        let mut rest = self.raw;
        (0..self.count).map_while(move |_| {
            let key = read_bytes(&mut rest)??;
            Some(Header { key, value: read_bytes(&mut rest)? })
        })
    }

    /// The same headers as a slice of `payload`, which they were decoded from.
    #[inline]
    pub fn to_headers(&self, payload: &Bytes) -> Headers {
        if self.raw.is_empty() {
            return Headers::default();
        }
        Headers { raw: Some(payload.slice_ref(self.raw)), count: self.count }
    }

    /// The last header of this name, as Java's `lastHeader` finds it.
    pub fn last(&self, name: &str) -> Option<Header<'a>> {
        self.iter().filter(|header| header.key == name.as_bytes()).last()
    }

    pub(super) const fn raw(&self) -> &'a [u8] {
        self.raw
    }
}

impl fmt::Debug for HeadersRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|header| (header.name(), header.value))).finish()
    }
}

/// The headers of a [`Record`]: in order, names may repeat. Cloning copies nothing.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers {
    /// Nothing without headers: that is made and dropped in fewer steps than an empty slice.
    raw: Option<Bytes>,
    count: u32,
}

impl Headers {
    /// How many there are.
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Iterates over the headers in order.
    pub fn iter(&self) -> impl Iterator<Item = Header<'_>> {
        self.borrowed().iter()
    }

    /// Iterates over names and values as slices that share the record's buffer.
    pub fn iter_shared(&self) -> impl Iterator<Item = (Bytes, Option<Bytes>)> + '_ {
        let share = |part| self.raw.as_ref().map_or_else(Bytes::new, |raw| share(raw, part));
        self.iter().map(move |header| (share(header.key), header.value.map(share)))
    }

    /// The last header of this name, as Java's `lastHeader` finds it.
    pub fn last(&self, name: &str) -> Option<Header<'_>> {
        self.borrowed().last(name)
    }

    /// The same headers, borrowed.
    pub fn borrowed(&self) -> HeadersRef<'_> {
        HeadersRef { raw: self.raw.as_deref().unwrap_or_default(), count: self.count }
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.borrowed().fmt(f)
    }
}
