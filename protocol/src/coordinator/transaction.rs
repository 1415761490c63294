//! `__transaction_state`: what the transaction coordinator remembers of each transactional id.
//!
//! The partition of a transactional id is the hash of its name; the latest record says all there is to say.

use crate::{Message, Str};

log! {
    /// A record of `__transaction_state`.
    TransactionRecord {
        /// The state of a transactional id.
        TransactionLog = 0: TransactionLogKey, TransactionLogValue;
    }
}

/// A transactional id.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0)]
pub struct TransactionLogKey {
    /// The transactional id.
    pub transactional_id: Str,
}

/// The producer and the transaction of a transactional id.
///
/// Version 1 is flexible (KIP-915); its tagged fields came with KIP-890, in Kafka 4.0 and later.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 1..)]
pub struct TransactionLogValue {
    /// The producer id in use.
    pub producer_id: i64,
    /// The producer id that the transaction before this one had, mostly the same; -1 if unknown.
    #[field(versions = 1.., tag = 0, default = -1)]
    pub previous_producer_id: i64,
    /// The producer id that the producer shall use next, -1 for the same. Another one comes when the epochs run out.
    #[field(versions = 1.., tag = 1, default = -1)]
    pub next_producer_id: i64,
    /// The epoch that goes with the producer id.
    pub producer_epoch: i16,
    /// The epoch that goes with the next producer id, -1 for none.
    #[field(versions = 1.., tag = 3, default = -1)]
    pub next_producer_epoch: i16,
    /// For how many milliseconds a transaction may be open before the coordinator aborts it.
    pub transaction_timeout_ms: i32,
    /// 0 no transaction yet, 1 ongoing, 2 about to be committed, 3 about to be aborted, 4 committed, 5 aborted, 6 the
    /// id has expired, 7 about to be taken over by a new producer.
    pub transaction_status: i8,
    /// The partitions that the transaction has written to and that await its end; `None` when there was none yet.
    pub transaction_partitions: Option<Vec<PartitionsSchema>>,
    /// When this state was reached, in milliseconds since 1970.
    pub transaction_last_update_timestamp_ms: i64,
    /// When the transaction began, in milliseconds since 1970; -1 if there was none yet.
    pub transaction_start_timestamp_ms: i64,
    /// Which protocol of transactions the producer speaks: 2 from KIP-890 on, before that 0 or 1.
    #[field(versions = 1.., tag = 2)]
    pub client_transaction_version: i16,
}

/// Partitions of one topic.
#[derive(Clone, Debug, PartialEq, Eq, Message)]
#[message(versions = 0..=1, flexible = 1..)]
pub struct PartitionsSchema {
    /// The topic's name.
    pub topic: Str,
    /// The numbers of the partitions.
    pub partition_ids: Vec<i32>,
}
