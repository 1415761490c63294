//! A transactional id as a test sees it.

use krafka_protocol::Str;

use super::{Transaction, TransactionState};

/// A transactional id with its producer and its transaction, as its coordinator knows them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransactionView {
    /// How it stands.
    pub state: TransactionState,
    /// The producer id that it stands for now.
    pub producer_id: i64,
    /// The producer's epoch: whoever uses an older one is fenced.
    pub producer_epoch: i16,
    /// After how many milliseconds the coordinator aborts a transaction.
    pub timeout_ms: i32,
    /// When the transaction began, in milliseconds since 1970; -1 if none has.
    pub start_ms: i64,
    /// The partitions in the transaction, by topic; while it ends, those that do not have its marker.
    pub partitions: Vec<(Str, i32)>,
}

impl From<&Transaction> for TransactionView {
    fn from(transaction: &Transaction) -> Self {
        let producer = transaction.producer();
        Self {
            state: transaction.state(),
            producer_id: producer.producer_id,
            producer_epoch: producer.producer_epoch,
            timeout_ms: transaction.timeout_ms(),
            start_ms: transaction.start_ms(),
            partitions: transaction.partitions().iter().cloned().collect(),
        }
    }
}
