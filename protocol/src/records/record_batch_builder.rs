//! One batch in one expression, for tools and tests.

use bytes::Bytes;

use crate::compression::{Compression, Compressor};

use super::builder::BatchBuilder;
use super::error::RecordsError;

/// Collects a few records and makes a batch of them.
///
/// A producer uses [`BatchBuilder`] instead, which reuses its buffer and its codec.
///
/// ```
/// use krafka_protocol::{Compression, RecordBatchBuilder};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let batch = RecordBatchBuilder::new()
///     .compression(Compression::Snappy)
///     .add_record(Some(b"key"), Some(b"value"), vec![])
///     .add_record(None, Some(b"value-only"), vec![("source", Some(b"docs"))])
///     .build()?;
/// # assert_eq!(batch[16], 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct RecordBatchBuilder {
    records: BatchBuilder,
    compression: Compression,
    timestamp: Option<i64>,
    failed: Option<RecordsError>,
}

impl RecordBatchBuilder {
    /// Returns a builder without records, without compression.
    pub fn new() -> Self {
        Self::default()
    }

    /// Chooses the codec, at its default level.
    #[must_use]
    pub const fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Sets the timestamp of the records that are added from now on, in milliseconds. Without it they have none (-1).
    #[must_use]
    pub const fn timestamp(mut self, timestamp_ms: i64) -> Self {
        self.timestamp = Some(timestamp_ms);
        self
    }

    /// Adds a record.
    #[must_use]
    pub fn add_record(mut self, key: Option<&[u8]>, value: Option<&[u8]>, headers: Vec<(&str, Option<&[u8]>)>) -> Self {
        let timestamp = self.timestamp.unwrap_or(-1);
        if let Err(error) = self.records.try_append(timestamp, key, value, &headers) {
            self.failed.get_or_insert(error);
        }
        self
    }

    /// Returns the batch as bytes, ready for the `records` field of a produce request.
    ///
    /// # Errors
    ///
    /// If there are no records, they exceed 2 GiB, or the codec cannot encode in this build.
    pub fn build(self) -> Result<Bytes, RecordsError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        Ok(self.records.seal(&mut Compressor::new(self.compression, None)?)?.bytes())
    }
}
