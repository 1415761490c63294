//! The records that brokers write for each other and for readers: ends of transactions, and marks of the Raft log.
//!
//! The key tells what it is: version and type, each an i16. A reader skips whatever it does not know.

use bytes::{Buf, Bytes, BytesMut};

use crate::compression::Compressor;

use super::builder::{BatchBuilder, NO_HEADERS};
use super::error::RecordsError;
use super::header::Attributes;
use super::patch::refresh_crc;

/// A record of a control batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlRecord {
    /// The transaction of the batch's producer is undone: its records are not to be delivered.
    Abort {
        /// The epoch of the transaction coordinator that decided so.
        coordinator_epoch: i32,
    },
    /// The transaction of the batch's producer is done.
    Commit {
        /// The epoch of the transaction coordinator that decided so.
        coordinator_epoch: i32,
    },
    /// Another mark, which has no meaning for a client.
    Other {
        /// Its type: [`ControlRecord::LEADER_CHANGE`] and the like.
        kind: i16,
        /// Its content.
        value: Bytes,
    },
}

impl ControlRecord {
    /// The type of [`ControlRecord::Abort`].
    pub const ABORT: i16 = 0;
    /// The type of [`ControlRecord::Commit`].
    pub const COMMIT: i16 = 1;
    /// A new leader of a Raft log.
    pub const LEADER_CHANGE: i16 = 2;
    /// The start of a snapshot.
    pub const SNAPSHOT_HEADER: i16 = 3;
    /// The end of a snapshot.
    pub const SNAPSHOT_FOOTER: i16 = 4;
    /// A change of the version of the Raft protocol.
    pub const KRAFT_VERSION: i16 = 5;
    /// A change of the voters of the Raft log.
    pub const KRAFT_VOTERS: i16 = 6;

    const NAMES: [&'static str; 7] =
        ["ABORT", "COMMIT", "LEADER_CHANGE", "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER", "KRAFT_VERSION", "KRAFT_VOTERS"];

    /// Reads the key and the value of a record of a control batch.
    ///
    /// # Errors
    ///
    /// If the key is too short for a type, or the value of an end marker for its content.
    pub fn parse(key: Option<&[u8]>, value: Option<&[u8]>) -> Result<Self, RecordsError> {
        let mut key = key.unwrap_or_default();
        // Versions only ever add fields, so those of the first version are where they were.
        let (Ok(version), Ok(kind)) = (key.try_get_i16(), key.try_get_i16()) else {
            return Err(RecordsError::Control { reason: "its key is shorter than a version and a type" });
        };
        if version < 0 {
            return Err(RecordsError::Control { reason: "the version of its key is negative" });
        }
        let mut value = value.unwrap_or_default();
        if kind != Self::ABORT && kind != Self::COMMIT {
            return Ok(Self::Other { kind, value: Bytes::copy_from_slice(value) });
        }
        let (Ok(version), Ok(coordinator_epoch)) = (value.try_get_i16(), value.try_get_i32()) else {
            return Err(RecordsError::Control { reason: "its value is shorter than an end marker" });
        };
        if version < 0 {
            return Err(RecordsError::Control { reason: "the version of its value is negative" });
        }
        Ok(if kind == Self::ABORT { Self::Abort { coordinator_epoch } } else { Self::Commit { coordinator_epoch } })
    }

    /// Its type, as in the key.
    pub const fn kind(&self) -> i16 {
        match self {
            Self::Abort { .. } => Self::ABORT,
            Self::Commit { .. } => Self::COMMIT,
            Self::Other { kind, .. } => *kind,
        }
    }

    /// Kafka's name of its type.
    pub fn name(&self) -> &'static str {
        usize::try_from(self.kind()).ok().and_then(|kind| Self::NAMES.get(kind)).copied().unwrap_or("UNKNOWN")
    }

    /// Returns a control batch with this one record at offset 0, as a broker writes it before appending it.
    ///
    /// End markers carry the producer whose transaction they end; other marks go with -1 and -1.
    ///
    /// # Errors
    ///
    /// [`RecordsError::TooLarge`] if the content exceeds the format's 2 GiB.
    pub fn to_batch(&self, producer_id: i64, producer_epoch: i16, timestamp: i64) -> Result<BytesMut, RecordsError> {
        let mut key = [0; 4];
        key[2..].copy_from_slice(&self.kind().to_be_bytes());
        let mut marker = [0; 6];
        let (value, is_marker): (&[u8], _) = match self {
            Self::Abort { coordinator_epoch } | Self::Commit { coordinator_epoch } => {
                marker[2..].copy_from_slice(&coordinator_epoch.to_be_bytes());
                (&marker, true)
            }
            Self::Other { value, .. } => (value, false),
        };

        let mut builder = BatchBuilder::new();
        builder.try_append(timestamp, Some(&key), Some(value), NO_HEADERS)?;
        let sealed = builder.seal(&mut Compressor::none())?;
        let mut header = *sealed.header();
        header.attributes = Attributes::default().with_control().with_transactional(is_marker);
        header.producer_id = producer_id;
        header.producer_epoch = producer_epoch;
        let mut batch = sealed.into_buffer().expect("nobody else has seen its bytes");
        header.write(batch.first_chunk_mut().expect("a sealed batch begins with its header"));
        refresh_crc(&mut batch);
        Ok(batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_read() {
        let abort = ControlRecord::parse(Some(&[0, 0, 0, 0]), Some(&[0, 0, 0, 0, 0, 9]));
        // A later version adds fields behind those of the first.
        let commit = ControlRecord::parse(Some(&[0, 1, 0, 1, 5]), Some(&[0, 1, 0, 0, 0, 9, 7]));

        assert_eq!(abort, Ok(ControlRecord::Abort { coordinator_epoch: 9 }));
        assert_eq!(commit, Ok(ControlRecord::Commit { coordinator_epoch: 9 }));
    }

    #[test]
    fn unknown_marks_are_kept_and_malformed_ones_refused() {
        let unknown = ControlRecord::parse(Some(&[0, 0, 0, 99]), None).expect("any type");

        assert_eq!((unknown.kind(), unknown.name()), (99, "UNKNOWN"));
        for (key, value) in [
            (None, None),
            (Some(&[0, 0, 0][..]), None),
            (Some(&[0xff, 0xff, 0, 0]), Some(&[0; 6][..])),
            (Some(&[0, 0, 0, 0]), None),
            (Some(&[0, 0, 0, 1]), Some(&[0; 5])),
            (Some(&[0, 0, 0, 1]), Some(&[0x80, 0, 0, 0, 0, 0])),
        ] {
            let error = ControlRecord::parse(key, value);
            assert!(matches!(error, Err(RecordsError::Control { .. })), "{key:?} {value:?}: {error:?}");
        }
    }
}
