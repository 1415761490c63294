//! Transactions and their coordinators, as a test sees, holds and moves them.

use std::time::Duration;

use krafka_protocol::compression::Decompressor;
use krafka_protocol::records::{Batches, Record};
use krafka_protocol::{Bytes, Str};

use super::FakeCluster;
use crate::coordinators::{self, CoordinatorKind};
use crate::operations::Operation;
use crate::transactions::{self, TransactionView};

impl FakeCluster {
    /// Returns how a transactional id stands, or `None` if nobody ever used it or it is forgotten.
    ///
    /// **Unstable:** may change in any release.
    pub fn transaction(&self, transactional_id: &str) -> Option<TransactionView> {
        self.look(|state| state.transactions.find(transactional_id).map(TransactionView::from))
    }

    /// Returns the transactional ids that are known.
    ///
    /// **Unstable:** may change in any release.
    pub fn transactional_ids(&self) -> Vec<Str> {
        self.look(|state| state.transactions.iter().map(|(id, _)| id.clone()).collect())
    }

    /// Holds back the markers of a transactional id: when its next transaction ends, the decision is made and answered,
    /// and the partitions are not told. The id stays in `PrepareCommit` or `PrepareAbort`, what comes next of its
    /// producer is answered CONCURRENT_TRANSACTIONS, and readers of committed records see nothing of the transaction
    /// or of what comes behind it, until [`release_markers`](Self::release_markers).
    ///
    /// **Unstable:** may change in any release.
    ///
    /// ```
    /// use krafka_fake_broker::FakeCluster;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let fake = FakeCluster::builder().topic("orders", 1).start_on_pipes();
    /// fake.hold_markers("transfers");
    /// // … commit, and begin the next transaction …
    /// fake.release_markers("transfers");
    /// # }
    /// ```
    pub fn hold_markers(&self, transactional_id: &str) {
        self.control(|state, _| state.transactions.hold(transactional_id));
    }

    /// Lets the markers of a transactional id go, those that were held back and those to come.
    ///
    /// **Unstable:** may change in any release.
    pub fn release_markers(&self, transactional_id: &str) {
        self.control(|state, now| transactions::release(state, transactional_id, now));
    }

    /// Sets how long it takes from now on until the partitions of a transaction are told how it ends, counted from the
    /// answer to EndTxn. Kafka takes some milliseconds, in which a producer that goes on at once is answered
    /// CONCURRENT_TRANSACTIONS and has to ask again; the default here is no time at all. What is under way already
    /// keeps its time.
    ///
    /// **Unstable:** may change in any release.
    pub fn delay_markers(&self, delay: Duration) {
        self.control(|state, _| transactions::delay_markers(state, delay));
    }

    /// Forgets a transactional id, as a coordinator does after `transactional.id.expiration.ms`: its producer is told
    /// INVALID_PRODUCER_ID_MAPPING then. Says if it was there, and no transaction was open.
    ///
    /// **Unstable:** may change in any release.
    pub fn forget_transactional_id(&self, transactional_id: &str) -> bool {
        self.control(|state, now| transactions::forget(state, transactional_id, now))
    }

    /// Returns the node that coordinates a transactional id, or -1 when nobody does: its partition of
    /// `__transaction_state` has no leader.
    ///
    /// **Unstable:** may change in any release.
    pub fn transaction_coordinator(&self, transactional_id: &str) -> i32 {
        self.control(|state, _| {
            coordinators::ensure_topic(state, CoordinatorKind::Transaction);
            coordinators::find(state, CoordinatorKind::Transaction, transactional_id).unwrap_or(-1)
        })
    }

    /// Makes a node the coordinator of a transactional id, and of all that share its partition of
    /// `__transaction_state`: that partition's leader moves. What is open stays open.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If the node is not up.
    #[track_caller]
    pub fn move_transaction_coordinator(&self, transactional_id: &str, node: i32) {
        let transactional_id = Some(transactional_id.to_owned());
        self.expect(Operation::MoveCoordinator { group: None, transactional_id, node });
    }

    /// Returns the records of a partition that a reader of committed records could read: those of aborted transactions
    /// are left out, and those from the first undecided one on.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If there is no such partition.
    pub fn committed_records(&self, topic: &str, partition: i32) -> Vec<Record> {
        let found = self.look(|state| {
            let log = &state.topics.partition(topic, partition)?.log;
            let (start, end) = (log.start_offset(), log.last_stable_offset());
            let aborted: Vec<_> = log.aborted(start, end).copied().collect();
            let batches: Vec<Bytes> = log.batches_from(start).cloned().collect();
            Some((batches, aborted, end))
        });
        let (batches, aborted, end) = found.unwrap_or_else(|| panic!("there is no partition {topic}-{partition}"));
        let mut decompressor = Decompressor::default();
        let mut records = Vec::new();
        for batch in batches.into_iter().flat_map(Batches::new).flatten() {
            let header = batch.header();
            let is_aborted = header.attributes.is_transactional()
                && aborted.iter().any(|txn| {
                    let range = txn.first_offset..txn.last_offset;
                    txn.producer_id == header.producer_id && range.contains(&header.base_offset)
                });
            if is_aborted || header.attributes.is_control() || header.base_offset >= end {
                continue;
            }
            let decoded = batch.records(&mut decompressor).expect("a batch was read through before it was appended");
            records.extend(decoded.into_iter().flatten());
        }
        records
    }

    /// Returns the first offset of a partition that a reader of committed records does not see.
    ///
    /// **Unstable:** may change in any release.
    pub fn last_stable_offset(&self, topic: &str, partition: i32) -> Option<i64> {
        self.look(|state| Some(state.topics.partition(topic, partition)?.log.last_stable_offset()))
    }
}
