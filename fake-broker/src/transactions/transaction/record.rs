//! A transactional id as its coordinator writes it into `__transaction_state`.

use krafka_protocol::coordinator::transaction::{PartitionsSchema, TransactionLogValue};

use super::{Transaction, TransactionState};

impl Transaction {
    /// What there is to write since this was last asked: nothing, unless the state has changed. Before
    /// `transaction.version` 1, a record has no room for what came with that.
    pub(in crate::transactions) fn take_record(&mut self, is_flexible: bool) -> Option<TransactionLogValue> {
        if !std::mem::take(&mut self.is_unwritten) {
            return None;
        }
        let mut value = TransactionLogValue {
            producer_id: self.producer.producer_id,
            producer_epoch: self.producer.producer_epoch,
            transaction_timeout_ms: self.timeout_ms,
            transaction_status: self.state.number(),
            transaction_partitions: (self.state != TransactionState::Empty).then(|| self.partitions_by_topic()),
            transaction_last_update_timestamp_ms: self.update_ms,
            transaction_start_timestamp_ms: if self.state == TransactionState::Empty { -1 } else { self.start_ms },
            ..TransactionLogValue::default()
        };
        if is_flexible {
            value.previous_producer_id = self.previous_id;
            value.next_producer_id = self.next_id;
            value.client_transaction_version = self.protocol.level();
        }
        Some(value)
    }

    fn partitions_by_topic(&self) -> Vec<PartitionsSchema> {
        let mut topics: Vec<PartitionsSchema> = Vec::new();
        for (topic, partition) in &self.partitions {
            match topics.last_mut().filter(|last| last.topic == *topic) {
                Some(last) => last.partition_ids.push(*partition),
                None => topics.push(PartitionsSchema { topic: topic.clone(), partition_ids: vec![*partition] }),
            }
        }
        topics
    }
}

impl TransactionState {
    /// Kafka's number of the state.
    fn number(self) -> i8 {
        match self {
            Self::Empty => 0,
            Self::Ongoing => 1,
            Self::PrepareCommit => 2,
            Self::PrepareAbort => 3,
            Self::CompleteCommit => 4,
            Self::CompleteAbort => 5,
        }
    }
}
