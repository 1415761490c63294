//! What brokers keep in their own topics: the records of the group, transaction and share coordinators.
//!
//! A coordinator's memory is a compacted topic that it reads from the start when it takes a partition over. Clients
//! never need these records; tools do that look into a cluster's state, or carry it elsewhere.
//!
//! | topic                 | records               | what                                                           |
//! |-----------------------|-----------------------|----------------------------------------------------------------|
//! | `__consumer_offsets`  | [`GroupRecord`]       | committed offsets, and groups of every kind with their members |
//! | `__transaction_state` | [`TransactionRecord`] | a transactional id with its producer and its transaction       |
//! | `__share_group_state` | [`ShareRecord`]       | how far a share group has come in a partition                  |
//!
//! ```text
//!     key:    type i16 │ the type's key
//!     value:  version i16 │ the type's value in that version        or null: the key is forgotten, a tombstone
//! ```
//!
//! A new kind of record takes the next type number, so that a reader knows from the key alone whether it can read the
//! rest. Before Kafka 4.1 the number was called the version of the key; the bytes are the same.
//!
//! ```
//! use krafka_protocol::coordinator::group::{GroupRecord, OffsetCommitKey, OffsetCommitValue};
//! use krafka_protocol::coordinator::{Entry, Versioned};
//!
//! let key = OffsetCommitKey { group: "billing".into(), topic: "orders".into(), partition: 3 };
//! let value = OffsetCommitValue { offset: 42, ..OffsetCommitValue::default() };
//! let record = GroupRecord::OffsetCommit(Entry { key, value: Some(Versioned { version: 3, message: value }) });
//!
//! let (key, value) = record.encode()?;
//! match GroupRecord::decode(key, value)? {
//!     GroupRecord::OffsetCommit(Entry { key, value: Some(value) }) => {
//!         println!("{} has read {}-{} up to {}", key.group, key.topic, key.partition, value.message.offset);
//!     }
//!     GroupRecord::OffsetCommit(Entry { key, value: None }) => println!("{} has forgotten it", key.group),
//!     other => println!("{other:?}"),
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[macro_use]
mod log;
pub mod group;
pub mod share;
pub mod transaction;

pub use group::GroupRecord;
pub use log::{Entry, RecordType, Versioned};
pub use share::ShareRecord;
pub use transaction::TransactionRecord;
