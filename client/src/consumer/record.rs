//! What a consumer hands out: records, and offsets to commit.

use std::sync::Arc;

use bytes::Bytes;
use krafka_protocol::records::{self, Header, TimestampType};

/// A record, as it was read from a partition.
///
/// Key, value and headers are slices of the fetched (or decompressed) bytes: cloning them is a reference count, and a
/// kept record keeps those bytes alive. [`detach`](Self::detach) copies what you keep for long.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConsumerRecord {
    /// The topic. Cloning it is a reference count.
    pub topic: Arc<str>,
    /// The partition.
    pub partition: i32,
    /// The record's offset in its partition.
    pub offset: i64,
    /// The timestamp, in milliseconds since 1970; -1 if the record has none.
    pub timestamp_ms: i64,
    /// Whether the producer or the broker set the timestamp; `CreateTime` if the record has none.
    pub timestamp_type: TimestampType,
    /// The key; `None` is not the same as empty.
    pub key: Option<Bytes>,
    /// The value; `None` is a tombstone.
    pub value: Option<Bytes>,
    /// The headers, in the order in which the producer added them. A name may come more than once.
    pub headers: Headers,
    /// The epoch of the leader that appended the record, or `None` if the log does not tell.
    pub leader_epoch: Option<i32>,
}

impl ConsumerRecord {
    /// Copies key, value and headers out of the buffer that they share, so that keeping the record does not keep
    /// megabytes alive.
    #[must_use]
    pub fn detach(&self) -> Self {
        let record = records::Record {
            offset: self.offset,
            timestamp: self.timestamp_ms,
            key: self.key.clone(),
            value: self.value.clone(),
            headers: self.headers.0.as_deref().cloned().unwrap_or_default(),
        };
        let record = record.detach();
        let headers = Headers::new(record.headers);
        Self { key: record.key, value: record.value, headers, topic: self.topic.clone(), ..*self }
    }
}

/// The headers of a record: in order, and a name may come more than once.
///
/// Most records have none, so that is a null pointer: the record stays small, and moving it cheap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers(Option<Box<records::Headers>>);

impl Headers {
    pub(crate) fn new(headers: records::Headers) -> Self {
        Self((!headers.is_empty()).then(|| Box::new(headers)))
    }

    /// Returns how many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |headers| headers.len())
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Iterates over the headers in order.
    pub fn iter(&self) -> impl Iterator<Item = Header<'_>> {
        self.0.iter().flat_map(|headers| headers.iter())
    }

    /// Iterates over names and values as slices that share the record's buffer.
    pub fn iter_shared(&self) -> impl Iterator<Item = (Bytes, Option<Bytes>)> + '_ {
        self.0.iter().flat_map(|headers| headers.iter_shared())
    }

    /// Returns the last header of this name.
    #[must_use]
    pub fn last(&self, name: &str) -> Option<Header<'_>> {
        self.0.as_ref()?.last(name)
    }
}

/// An offset to commit, or one that was committed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OffsetAndMetadata {
    /// The offset of the next record to read.
    pub offset: i64,
    /// The leader epoch of the last record that was read, if known. Kafka uses it to notice a truncated log.
    pub leader_epoch: Option<i32>,
    /// Whatever the application wants to keep beside the offset.
    pub metadata: String,
}

impl OffsetAndMetadata {
    /// Returns an offset with no leader epoch and no metadata.
    #[must_use]
    pub fn new(offset: i64) -> Self {
        Self { offset, leader_epoch: None, metadata: String::new() }
    }

    /// Adds the leader epoch of the last record that was read.
    #[must_use]
    pub fn leader_epoch(mut self, epoch: i32) -> Self {
        self.leader_epoch = Some(epoch);
        self
    }

    /// Adds metadata. The broker refuses more than `offset.metadata.max.bytes` (4096 by default).
    #[must_use]
    pub fn metadata(mut self, metadata: impl Into<String>) -> Self {
        self.metadata = metadata.into();
        self
    }
}

impl From<i64> for OffsetAndMetadata {
    fn from(offset: i64) -> Self {
        Self::new(offset)
    }
}
