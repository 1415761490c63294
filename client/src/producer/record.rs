//! [`Record`]: what the user sends, and [`RecordMetadata`]: where it went.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use krafka_protocol::Str;

/// One record to send.
///
/// Topic, key, value and header names are reference-counted or borrowed for ever: a `&'static [u8]`, a `Vec<u8>`, a
/// `String` or a [`Bytes`] moves in without being copied, and a clone shares it. The bytes are copied once, into the
/// batch.
///
/// ```
/// use krafka::Record;
///
/// let record = Record::new("orders", "42 apples")
///     .key("customer-1")
///     .header("trace", "4711")
///     .timestamp_ms(1_700_000_000_000);
/// assert_eq!(record.topic(), "orders");
///
/// // A record without a value deletes its key from a compacted topic.
/// let tombstone = Record::tombstone("orders", "customer-1");
/// assert!(tombstone.value_bytes().is_none());
/// ```
#[derive(Clone, PartialEq, Eq)]
#[must_use = "a record does nothing until it is sent"]
pub struct Record {
    pub(super) topic: Str,
    pub(super) key: Option<Bytes>,
    pub(super) value: Option<Bytes>,
    pub(super) headers: Vec<(Str, Option<Bytes>)>,
    pub(super) partition: Option<i32>,
    pub(super) timestamp_ms: Option<i64>,
}

impl Record {
    /// Returns a record for `topic` with `value`, and no key.
    ///
    /// Where many records go to one topic, make a [`Str`] of its name once and give a clone of it: that saves copying
    /// the name for each record.
    #[inline]
    pub fn new(topic: impl Into<Str>, value: impl Into<Bytes>) -> Self {
        Self {
            topic: topic.into(),
            key: None,
            value: Some(value.into()),
            headers: Vec::new(),
            partition: None,
            timestamp_ms: None,
        }
    }

    /// Returns a record for `topic` with `key` and a null value: on a compacted topic it deletes the key.
    #[inline]
    pub fn tombstone(topic: impl Into<Str>, key: impl Into<Bytes>) -> Self {
        Self {
            topic: topic.into(),
            key: Some(key.into()),
            value: None,
            headers: Vec::new(),
            partition: None,
            timestamp_ms: None,
        }
    }

    /// Sets the key. Records with the same key go to the same partition, as with the Java client.
    ///
    /// An empty key is a key; a record without one goes wherever batches fill best.
    #[inline]
    pub fn key(mut self, key: impl Into<Bytes>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Sets the partition, instead of having it chosen by key or by the partitioner.
    #[inline]
    pub fn partition(mut self, partition: i32) -> Self {
        self.partition = Some(partition);
        self
    }

    /// Adds a header. Names may repeat; their order is kept.
    pub fn header(mut self, name: impl Into<Str>, value: impl Into<Bytes>) -> Self {
        self.headers.push((name.into(), Some(value.into())));
        self
    }

    /// Adds a header without a value, which is not the same as an empty one.
    pub fn null_header(mut self, name: impl Into<Str>) -> Self {
        self.headers.push((name.into(), None));
        self
    }

    /// Sets the time of the event that the record tells of, in milliseconds since 1970.
    ///
    /// Without it, it is the time at which the record is sent. A topic with `message.timestamp.type=LogAppendTime`
    /// replaces either. A negative time is refused when the record is sent, as in the Java client: Kafka takes -1 for
    /// "no timestamp".
    #[inline]
    pub fn timestamp_ms(mut self, timestamp_ms: i64) -> Self {
        self.timestamp_ms = Some(timestamp_ms);
        self
    }

    /// Returns the topic's name.
    #[must_use]
    pub fn topic(&self) -> &str {
        &self.topic
    }

    /// Returns the key, if there is one.
    #[must_use]
    pub fn key_bytes(&self) -> Option<&[u8]> {
        self.key.as_deref()
    }

    /// Returns the value, or `None` for a tombstone.
    #[must_use]
    pub fn value_bytes(&self) -> Option<&[u8]> {
        self.value.as_deref()
    }

    /// Returns the headers in order.
    pub fn headers(&self) -> impl ExactSizeIterator<Item = (&str, Option<&[u8]>)> {
        self.headers.iter().map(|(name, value)| (&**name, value.as_deref()))
    }
}

/// Shows sizes, not contents: records are often secret, and long.
impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record")
            .field("topic", &self.topic)
            .field("partition", &self.partition)
            .field("key_len", &self.key.as_ref().map(Bytes::len))
            .field("value_len", &self.value.as_ref().map(Bytes::len))
            .field("headers", &self.headers.len())
            .field("timestamp_ms", &self.timestamp_ms)
            .finish()
    }
}

/// Where a record was written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordMetadata {
    /// The topic.
    pub topic: Arc<str>,
    /// The partition.
    pub partition: i32,
    /// The record's offset, or -1 if it is not known: with [`Acks::None`](crate::producer::Acks::None), or when the
    /// broker had the record from an earlier attempt and no longer knows where.
    pub offset: i64,
    /// The record's timestamp: its own, or the broker's where the topic says `LogAppendTime`.
    pub timestamp_ms: i64,
}
