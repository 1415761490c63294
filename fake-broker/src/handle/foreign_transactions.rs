//! Transactions that a test begins, fills and ends itself, without a producer: through the handlers, as one would.
//!
//! With them a reader is shown a transaction that stays open, one that is aborted, one whose producer was fenced. They
//! act in the name of whoever holds the transactional id, so that a test can also end what a client began.

use std::time::{Duration, Instant};

use krafka_protocol::api::add_partitions_to_txn::{AddPartitionsToTxnRequest, AddPartitionsToTxnTopic};
use krafka_protocol::api::end_txn::EndTxnRequest;
use krafka_protocol::api::init_producer_id::InitProducerIdRequest;
use krafka_protocol::api::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use krafka_protocol::records::Stamp;
use krafka_protocol::{AnyRequest, ErrorCode, Request};

use super::{FakeCluster, NewRecord};
use crate::coordinators::{self, CoordinatorKind};
use crate::log::producers::ActiveProducer;
use crate::producer_ids::IdAndEpoch;
use crate::state::State;

impl FakeCluster {
    /// Makes a producer of a transactional id known, as one that starts: whoever had the id before is fenced, and what
    /// that one left open is aborted. Its transaction begins with the first record. Returns the producer's id and
    /// epoch.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Errors
    ///
    /// What a producer is told.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use krafka_fake_broker::{FakeCluster, NewRecord};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let fake = FakeCluster::builder().topic("orders", 1).start_on_pipes();
    /// fake.begin_transaction("transfers", Duration::from_secs(60)).expect("an identity");
    /// fake.append_to_transaction("transfers", "orders", 0, &NewRecord::new().value("tea")).expect("an offset");
    /// assert_eq!(fake.last_stable_offset("orders", 0), Some(0));
    ///
    /// fake.end_transaction("transfers", true).expect("it is open");
    /// assert_eq!(fake.committed_records("orders", 0).len(), 1);
    /// # }
    /// ```
    pub fn begin_transaction(&self, transactional_id: &str, timeout: Duration) -> Result<(i64, i16), ErrorCode> {
        let request = InitProducerIdRequest {
            transactional_id: Some(transactional_id.into()),
            transaction_timeout_ms: i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX),
            producer_id: -1,
            producer_epoch: -1,
            ..InitProducerIdRequest::default()
        };
        self.control(|state, now| {
            let node = coordinator(state, transactional_id)?;
            let mut answer = ask(state, node, request.clone(), 4, now)?;
            if answer.error_code == ErrorCode::CONCURRENT_TRANSACTIONS.0 {
                // What was open has been aborted meanwhile; a client asks again, too.
                answer = ask(state, node, request, 4, now)?;
            }
            checked(answer.error_code)?;
            Ok((answer.producer_id, answer.producer_epoch))
        })
    }

    /// Writes a record within the transaction of an id, in the name of its producer, and returns the offset.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Errors
    ///
    /// What a producer is told.
    pub fn append_to_transaction(
        &self,
        transactional_id: &str,
        topic: &str,
        partition: i32,
        record: &NewRecord,
    ) -> Result<i64, ErrorCode> {
        self.control(|state, now| {
            let node = coordinator(state, transactional_id)?;
            let producer = producer(state, transactional_id)?;
            let named = AddPartitionsToTxnTopic { name: topic.into(), partitions: vec![partition] };
            let add = AddPartitionsToTxnRequest {
                v3_and_below_transactional_id: transactional_id.into(),
                v3_and_below_producer_id: producer.producer_id,
                v3_and_below_producer_epoch: producer.producer_epoch,
                v3_and_below_topics: vec![named],
                ..AddPartitionsToTxnRequest::default()
            };
            let added = ask(state, node, add, 3, now)?.results_by_topic_v3_and_below;
            checked(added[0].results_by_partition[0].partition_error_code)?;

            let (leader, base_sequence) = next_sequence(state, topic, partition, producer)?;
            let mut sealed = record.to_batch(state.clock.millis(now)).map_err(|_| ErrorCode::MESSAGE_TOO_LARGE)?;
            let IdAndEpoch { producer_id, producer_epoch } = producer;
            sealed.stamp(Stamp { producer_id, producer_epoch, base_sequence, transactional: true });
            let data = PartitionProduceData { index: partition, records: Some(sealed.bytes()) };
            let named =
                TopicProduceData { name: topic.into(), partition_data: vec![data], ..TopicProduceData::default() };
            // With acks=1, as nobody waits for followers here.
            let produce = ProduceRequest {
                transactional_id: Some(transactional_id.into()),
                acks: 1,
                timeout_ms: 0,
                topic_data: vec![named],
            };
            let answer = ask(state, leader, produce, 11, now)?.responses.remove(0).partition_responses.remove(0);
            checked(answer.error_code)?;
            Ok(answer.base_offset)
        })
    }

    /// Commits or aborts the transaction of an id, in the name of its producer.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Errors
    ///
    /// What a producer is told: `INVALID_TXN_STATE` if no transaction is open.
    pub fn end_transaction(&self, transactional_id: &str, commit: bool) -> Result<(), ErrorCode> {
        self.control(|state, now| {
            let node = coordinator(state, transactional_id)?;
            let IdAndEpoch { producer_id, producer_epoch } = producer(state, transactional_id)?;
            let request = EndTxnRequest {
                transactional_id: transactional_id.into(),
                producer_id,
                producer_epoch,
                committed: commit,
            };
            checked(ask(state, node, request, 4, now)?.error_code)
        })
    }
}

fn coordinator(state: &mut State, id: &str) -> Result<i32, ErrorCode> {
    coordinators::ensure_topic(state, CoordinatorKind::Transaction);
    coordinators::find(state, CoordinatorKind::Transaction, id).ok_or(ErrorCode::COORDINATOR_NOT_AVAILABLE)
}

fn producer(state: &State, id: &str) -> Result<IdAndEpoch, ErrorCode> {
    state.transactions.find(id).map(|found| found.producer()).ok_or(ErrorCode::INVALID_PRODUCER_ID_MAPPING)
}

/// The leader of a partition, and the sequence that it expects of a producer next.
fn next_sequence(state: &State, topic: &str, partition: i32, producer: IdAndEpoch) -> Result<(i32, i32), ErrorCode> {
    let found = state.topics.partition(topic, partition).ok_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)?;
    let leader = found.leader.ok_or(ErrorCode::LEADER_NOT_AVAILABLE)?;
    let is_it =
        |it: &ActiveProducer| (it.producer_id, it.producer_epoch) == (producer.producer_id, producer.producer_epoch);
    let known = found.log.producers.active().find(is_it);
    Ok((leader, known.map_or(0, |it| it.last_sequence.wrapping_add(1) & i32::MAX)))
}

fn checked(code: i16) -> Result<(), ErrorCode> {
    if code == 0 { Ok(()) } else { Err(ErrorCode(code)) }
}

/// Lets a node handle a request at once.
fn ask<R>(state: &mut State, node: i32, request: R, version: i16, now: Instant) -> Result<R::Response, ErrorCode>
where
    R: Request + Into<AnyRequest>,
    R::Response: Clone + 'static,
{
    // What waits for other requests is not asked here.
    let answer = state.ask(node, &request.into(), version, now).ok_or(ErrorCode::REQUEST_TIMED_OUT)?;
    answer.downcast_ref::<R::Response>().cloned().ok_or(ErrorCode::UNKNOWN_SERVER_ERROR)
}
