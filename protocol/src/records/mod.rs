//! Record batches of format 2, built in place and read without copying; messages of formats 0 and 1, read.
//!
//! ```text
//!     base offset i64 │ batch length i32 │ partition leader epoch i32 │ magic i8 │ crc u32 │
//!     attributes i16 │ last offset delta i32 │ base timestamp i64 │ max timestamp i64 │
//!     producer id i64 │ producer epoch i16 │ base sequence i32 │ count i32 │ records…
//! ```
//!
//! The CRC covers everything behind it, so a broker assigns offsets and leader epochs without touching it. The codec
//! compresses the records and nothing else.
//!
//! * Producers: [`BatchBuilder`] → [`SealedBatch`] (stamped with the producer's identity, split when too large).
//! * Consumers: [`Batches`] → [`Batch`] → [`Records`] → [`RecordRef`] or [`Record`].
//! * Brokers: [`check_produced`], [`assign_offsets`], [`set_log_append_time`], [`set_create_time`],
//!   [`rewrite_batch`],
//!   [`ControlRecord::to_batch`].
//!
//! # Old formats
//!
//! Before Kafka 0.11 a log held messages, and brokers serve what is still there as it is: a set may begin with messages
//! of format 0, go on with format 1 and end in batches. They come through the same door. A message is a [`Batch`] with
//! one record, and a compressed one has those inside it; [`BatchHeader::magic`] tells the formats apart.
//!
//! |                               | format 0           | format 1              | format 2              |
//! |-------------------------------|--------------------|-----------------------|-----------------------|
//! | checksum                      | CRC-32, a message  | CRC-32, a message     | CRC-32C, a batch      |
//! | timestamps                    | none, so -1        | each its own          | each its own          |
//! | append time                   | none               | a message, or wrapper | a batch               |
//! | headers, producer, epoch      | none               | none                  | yes                   |
//! | codecs                        | gzip, snappy, lz4  | gzip, snappy, lz4     | all                   |
//! | offsets inside                | absolute           | from the first        | from the first        |
//!
//! A wrapper is a compressed message. Its header knows the offset of the last record inside, which is all that going on
//! needs. What it lacks ([`BatchHeader::base_offset`], [`BatchHeader::count`]) is in that of its [`Records`].
//!
//! # Limits
//!
//! Nothing is allocated on the word of a length or a count. What a batch decompresses to is bounded by the
//! [`Decompressor`](crate::compression::Decompressor)'s limit, and what all batches of a response become by its
//! [budget](crate::compression::Decompressor::set_budget): both fail with an error that names codec and bound before
//! that much memory is in use. Legal batches may exceed a budget together; drop what was read, set it again, and go on
//! with the batch that it failed for.
//!
//! ```
//! use krafka_protocol::compression::{Compression, Compressor, Decompressor};
//! use krafka_protocol::records::{BatchBuilder, Batches, NO_HEADERS, Stamp};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut builder = BatchBuilder::new();
//! builder.try_append(1_700_000_000_000, Some(b"key"), Some(b"value"), NO_HEADERS)?;
//! builder.try_append(1_700_000_000_001, None, None, &[("trace", Some("7f"))])?;
//! let mut batch = builder.seal(&mut Compressor::new(Compression::Lz4, None)?)?;
//! batch.stamp(Stamp { producer_id: 7, producer_epoch: 0, base_sequence: 0, transactional: false });
//!
//! let mut decompressor = Decompressor::default();
//! for batch in Batches::new(batch.bytes()) {
//!     let batch = batch?;
//!     batch.verify_crc()?;
//!     for record in batch.records(&mut decompressor)?.iter() {
//!         println!("{:?}", record?);
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod aborted_txn;
mod builder;
mod control;
mod control_values;
mod error;
mod header;
mod message;
mod patch;
mod reader;
mod record;
mod record_batch_builder;
mod rewrite;
mod sealed;
mod validate;
mod varint;

pub use aborted_txn::AbortedTxn;
pub use builder::{BatchBuilder, NO_HEADERS};
pub use control::ControlRecord;
pub use control_values::{
    ControlRecordTypeSchema, EndTxnMarker, KRaftVersionFeature, KRaftVersionRecord, LeaderChangeMessage,
    SnapshotFooterRecord, SnapshotHeaderRecord, Voter, VoterEndpoint, VotersRecord, VotersRecordVoter,
};
pub use error::RecordsError;
pub use header::{Attributes, BatchHeader, HEADER_LEN, MAGIC, TimestampType};
pub use patch::{assign_offsets, refresh_checksum, set_create_time, set_log_append_time};
pub use reader::{Batch, Batches};
pub use record::{Header, Headers, HeadersRef, IntoRecords, Record, RecordRef, RecordRefs, Records};
pub use record_batch_builder::RecordBatchBuilder;
pub use rewrite::rewrite_batch;
pub use sealed::{SealedBatch, Stamp};
pub use validate::{InvalidBatch, check_produced};
