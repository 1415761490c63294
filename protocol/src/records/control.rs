//! The records that brokers write for each other and for readers: ends of transactions, and marks of the Raft log.
//!
//! The key tells what it is: version and type, each an i16. A reader skips whatever it does not know.

use bytes::{Buf, Bytes, BytesMut};

use crate::compression::Compressor;

use super::builder::{BatchBuilder, NO_HEADERS};
use super::error::RecordsError;
use super::header::Attributes;
use super::patch::refresh_crc;
use super::{
    ControlRecordTypeSchema, EndTxnMarker, KRaftVersionRecord, LeaderChangeMessage, SnapshotFooterRecord,
    SnapshotHeaderRecord, VotersRecord,
};
use crate::{Message, Reader, Writer};

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
    /// A new leader of a Raft log.
    LeaderChange(LeaderChangeMessage),
    /// The start of a snapshot of a Raft log.
    SnapshotHeader(SnapshotHeaderRecord),
    /// The end of a snapshot of a Raft log.
    SnapshotFooter(SnapshotFooterRecord),
    /// The version of the Raft protocol that holds from here on.
    KRaftVersion(KRaftVersionRecord),
    /// The voters of a Raft log from here on.
    KRaftVoters(VotersRecord),
    /// A mark of a type that we do not know.
    Other {
        /// Its type.
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
    /// If the key is too short for a type, or the value for what a mark of that type says.
    pub fn parse(key: Option<&[u8]>, value: Option<&[u8]>) -> Result<Self, RecordsError> {
        let mut key = key.unwrap_or_default();
        // Versions only ever add fields, so those of the first version are where they were.
        let (Ok(version), Ok(kind)) = (key.try_get_i16(), key.try_get_i16()) else {
            return Err(RecordsError::Control { reason: "its key is shorter than a version and a type" });
        };
        if version < 0 {
            return Err(RecordsError::Control { reason: "the version of its key is negative" });
        }
        let value = value.unwrap_or_default();
        Ok(match kind {
            Self::ABORT => Self::Abort { coordinator_epoch: coordinator_epoch(value)? },
            Self::COMMIT => Self::Commit { coordinator_epoch: coordinator_epoch(value)? },
            Self::LEADER_CHANGE => Self::LeaderChange(content(value)?),
            Self::SNAPSHOT_HEADER => Self::SnapshotHeader(content(value)?),
            Self::SNAPSHOT_FOOTER => Self::SnapshotFooter(content(value)?),
            Self::KRAFT_VERSION => Self::KRaftVersion(content(value)?),
            Self::KRAFT_VOTERS => Self::KRaftVoters(content(value)?),
            kind => Self::Other { kind, value: Bytes::copy_from_slice(value) },
        })
    }

    /// Its type, as in the key.
    pub const fn kind(&self) -> i16 {
        match self {
            Self::Abort { .. } => Self::ABORT,
            Self::Commit { .. } => Self::COMMIT,
            Self::LeaderChange(_) => Self::LEADER_CHANGE,
            Self::SnapshotHeader(_) => Self::SNAPSHOT_HEADER,
            Self::SnapshotFooter(_) => Self::SNAPSHOT_FOOTER,
            Self::KRaftVersion(_) => Self::KRAFT_VERSION,
            Self::KRaftVoters(_) => Self::KRAFT_VOTERS,
            Self::Other { kind, .. } => *kind,
        }
    }

    /// Kafka's name of its type.
    pub fn name(&self) -> &'static str {
        usize::try_from(self.kind()).ok().and_then(|kind| Self::NAMES.get(kind)).copied().unwrap_or("UNKNOWN")
    }

    /// The key and the value of the record.
    ///
    /// # Errors
    ///
    /// If the version that the content names for itself is none that we write, or does not have all of the content.
    pub fn to_key_and_value(&self) -> Result<(Bytes, Bytes), RecordsError> {
        let key = behind_version(&ControlRecordTypeSchema { r#type: self.kind() })?;
        let value = match self {
            Self::Abort { coordinator_epoch } | Self::Commit { coordinator_epoch } => {
                behind_version(&EndTxnMarker { coordinator_epoch: *coordinator_epoch })?
            }
            Self::LeaderChange(message) => in_version(message, message.version)?,
            Self::SnapshotHeader(message) => in_version(message, message.version)?,
            Self::SnapshotFooter(message) => in_version(message, message.version)?,
            Self::KRaftVersion(message) => in_version(message, message.version)?,
            Self::KRaftVoters(message) => in_version(message, message.version)?,
            Self::Other { value, .. } => value.clone(),
        };
        Ok((key, value))
    }

    /// Returns a control batch with this one record at offset 0, as a broker writes it before appending it.
    ///
    /// End markers carry the producer whose transaction they end; other marks go with -1 and -1.
    ///
    /// # Errors
    ///
    /// Those of [`to_key_and_value`](Self::to_key_and_value), and [`RecordsError::TooLarge`] if the content exceeds the
    /// format's 2 GiB.
    pub fn to_batch(&self, producer_id: i64, producer_epoch: i16, timestamp: i64) -> Result<BytesMut, RecordsError> {
        let (key, value) = self.to_key_and_value()?;
        let is_marker = matches!(self, Self::Abort { .. } | Self::Commit { .. });

        let mut builder = BatchBuilder::new();
        builder.try_append(timestamp, Some(&key), Some(&value), NO_HEADERS)?;
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

/// The content of an end marker, which stands behind its version.
fn coordinator_epoch(mut value: &[u8]) -> Result<i32, RecordsError> {
    let (Ok(version), Ok(coordinator_epoch)) = (value.try_get_i16(), value.try_get_i32()) else {
        return Err(RecordsError::Control { reason: "its value is shorter than an end marker" });
    };
    if version < 0 {
        return Err(RecordsError::Control { reason: "the version of its value is negative" });
    }
    Ok(coordinator_epoch)
}

/// The content of a mark of the Raft log, whose first field is its version.
fn content<M: Message>(value: &[u8]) -> Result<M, RecordsError> {
    let Ok(version) = { value }.try_get_i16() else {
        return Err(RecordsError::Control { reason: "its value is shorter than a version" });
    };
    let mut input = Reader::new(Bytes::copy_from_slice(value));
    M::decode(&mut input, version.min(M::SCHEMA.versions.max))
        .map_err(|_| RecordsError::Control { reason: "its value is not what its type and version say" })
}

fn behind_version<M: Message>(message: &M) -> Result<Bytes, RecordsError> {
    let mut out = Writer::new();
    out.put_slice(&0_i16.to_be_bytes());
    encode(message, 0, out)
}

fn in_version<M: Message>(message: &M, version: i16) -> Result<Bytes, RecordsError> {
    encode(message, version, Writer::new())
}

fn encode<M: Message>(message: &M, version: i16, mut out: Writer) -> Result<Bytes, RecordsError> {
    let encoded = message.encode(&mut out, version);
    encoded.map_err(|_| RecordsError::Control { reason: "its version does not have what it says" })?;
    Ok(out.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Uuid;
    use crate::records::Voter;

    #[test]
    fn markers_are_read() {
        let abort = ControlRecord::parse(Some(&[0, 0, 0, 0]), Some(&[0, 0, 0, 0, 0, 9]));
        // A later version adds fields behind those of the first.
        let commit = ControlRecord::parse(Some(&[0, 1, 0, 1, 5]), Some(&[0, 1, 0, 0, 0, 9, 7]));

        assert_eq!(abort, Ok(ControlRecord::Abort { coordinator_epoch: 9 }));
        assert_eq!(commit, Ok(ControlRecord::Commit { coordinator_epoch: 9 }));
    }

    /// Version 1 is the first that has a directory for each voter; a later one may have more behind it.
    #[test]
    fn marks_of_the_raft_log_say_their_version_themselves() {
        let voter = Voter { voter_id: 3, voter_directory_id: Uuid([7; 16]) };
        let voters = vec![voter];
        let mark = LeaderChangeMessage { version: 1, leader_id: 3, voters, granting_voters: Vec::new() };
        let mark = ControlRecord::LeaderChange(mark);
        let (key, value) = mark.to_key_and_value().expect("version 1 has directories");
        let later = [&[0, 2], &value[2..], b"more"].concat();

        assert_eq!(key[..], [0, 0, 0, 2]);
        assert_eq!(ControlRecord::parse(Some(&key), Some(&value)), Ok(mark));
        let later = ControlRecord::parse(Some(&key), Some(&later)).expect("it begins like version 1");
        let ControlRecord::LeaderChange(later) = later else { panic!("{later:?}") };
        assert_eq!((later.version, &later.voters[..]), (2, &[voter][..]));

        let earlier = LeaderChangeMessage { version: 0, ..later };
        let refused = ControlRecord::LeaderChange(earlier).to_key_and_value();
        assert!(matches!(refused, Err(RecordsError::Control { .. })), "{refused:?}");
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
            (Some(&[0, 0, 0, 2]), None),
            (Some(&[0, 0, 0, 3]), Some(&[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])),
            (Some(&[0, 0, 0, 4]), Some(&[0, 0])),
        ] {
            let error = ControlRecord::parse(key, value);
            assert!(matches!(error, Err(RecordsError::Control { .. })), "{key:?} {value:?}: {error:?}");
        }
    }
}
