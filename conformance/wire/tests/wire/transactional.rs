//! A transactional producer, request by request: what the tests of transactions have in common.

use std::time::Duration;

use krafka_protocol::api::add_offsets_to_txn::AddOffsetsToTxnRequest;
use krafka_protocol::api::add_partitions_to_txn::{
    AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, AddPartitionsToTxnTopic,
};
use krafka_protocol::api::describe_transactions::{DescribeTransactionsRequest, TransactionState};
use krafka_protocol::api::end_txn::{EndTxnRequest, EndTxnResponse};
use krafka_protocol::api::fetch::{FetchPartition, FetchRequest, FetchTopic, PartitionData};
use krafka_protocol::api::init_producer_id::{InitProducerIdRequest, InitProducerIdResponse};
use krafka_protocol::api::produce::{PartitionProduceData, PartitionProduceResponse, ProduceRequest, TopicProduceData};
use krafka_protocol::compression::{Compressor, Decompressor};
use krafka_protocol::records::{Batch, BatchBuilder, Batches, Stamp};
use krafka_protocol::{Bytes, ErrorCode, Str};

use crate::records::time;
use crate::target::{Target, Topic, Wire};

/// Versions of the requests of producers that add their partitions themselves.
pub(crate) const ADD: i16 = 3;
pub(crate) const PLAIN_PRODUCE: i16 = 11;
pub(crate) const PLAIN_END: i16 = 4;
/// Versions of the requests of producers that have an epoch for each transaction (KIP-890).
pub(crate) const PRODUCE: i16 = 12;
pub(crate) const END: i16 = 5;

const INIT: i16 = 5;
const FETCH: i16 = 11;

/// A transactional id, with the node that coordinates it and the one that leads the test's topic.
pub(crate) struct Producer {
    pub(crate) name: Str,
    pub(crate) coordinator: Wire,
    pub(crate) broker: Wire,
    pub(crate) id: i64,
    pub(crate) epoch: i16,
    pub(crate) timeout_ms: i32,
}

impl Producer {
    /// A producer that is initialised.
    pub(crate) async fn new(target: &Target) -> Self {
        Self::with_timeout(target, 60_000).await
    }

    /// A producer whose transactions are aborted after `timeout_ms`.
    pub(crate) async fn with_timeout(target: &Target, timeout_ms: i32) -> Self {
        let name = target.fresh("transactional");
        let coordinator = target.transaction_coordinator(&name).await;
        let mut producer = Self { name, coordinator, broker: target.connect().await, id: -1, epoch: -1, timeout_ms };
        producer.begin().await;
        producer
    }

    /// Another producer with the same transactional id, that is not initialised.
    pub(crate) async fn twin(&self, target: &Target) -> Self {
        let (name, timeout_ms) = (self.name.clone(), self.timeout_ms);
        let coordinator = target.transaction_coordinator(&name).await;
        Self { name, coordinator, broker: target.connect().await, id: -1, epoch: -1, timeout_ms }
    }

    /// Asks for an identity until it is there, and takes it.
    pub(crate) async fn begin(&mut self) {
        loop {
            let answer = self.init(None).await;
            if answer.error_code == 0 {
                (self.id, self.epoch) = (answer.producer_id, answer.producer_epoch);
                return;
            }
            let busy = [
                ErrorCode::CONCURRENT_TRANSACTIONS,
                ErrorCode::COORDINATOR_LOAD_IN_PROGRESS,
                ErrorCode::COORDINATOR_NOT_AVAILABLE,
                ErrorCode::NOT_COORDINATOR,
            ];
            assert!(busy.contains(&ErrorCode(answer.error_code)), "{:?}", ErrorCode(answer.error_code));
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Asks for an identity once, with what it is believed to be.
    pub(crate) async fn init(&mut self, expected: Option<(i64, i16)>) -> InitProducerIdResponse {
        let request = self.init_request(expected);
        self.coordinator.call(request, INIT).await
    }

    fn init_request(&self, expected: Option<(i64, i16)>) -> InitProducerIdRequest {
        let (producer_id, producer_epoch) = expected.unwrap_or((-1, -1));
        InitProducerIdRequest {
            transactional_id: Some(self.name.clone()),
            transaction_timeout_ms: self.timeout_ms,
            producer_id,
            producer_epoch,
            ..InitProducerIdRequest::default()
        }
    }

    /// Asks for an identity, and does not wait for it.
    pub(crate) async fn send_init(&mut self) {
        let request = self.init_request(None);
        self.coordinator.send(request, INIT).await;
    }

    /// The error of the oldest request without an answer, for an identity, which is taken if there is one.
    pub(crate) async fn receive_init(&mut self) -> &'static str {
        let answer = self.coordinator.receive::<InitProducerIdRequest>(INIT).await;
        if answer.error_code == 0 {
            (self.id, self.epoch) = (answer.producer_id, answer.producer_epoch);
        }
        ErrorCode(answer.error_code).name()
    }

    /// Adds partitions of a topic to the transaction: what is answered for the one with the lowest number.
    pub(crate) async fn add(&mut self, topic: &str, partitions: &[i32]) -> &'static str {
        self.add_in(ADD, topic, partitions).await
    }

    pub(crate) async fn add_in(&mut self, version: i16, topic: &str, partitions: &[i32]) -> &'static str {
        let request = self.add_request(topic, partitions);
        let answer = self.coordinator.call(request, version).await;
        first_added(&answer)
    }

    fn add_request(&self, topic: &str, partitions: &[i32]) -> AddPartitionsToTxnRequest {
        AddPartitionsToTxnRequest {
            v3_and_below_transactional_id: self.name.clone(),
            v3_and_below_producer_id: self.id,
            v3_and_below_producer_epoch: self.epoch,
            v3_and_below_topics: vec![AddPartitionsToTxnTopic { name: topic.into(), partitions: partitions.to_vec() }],
            ..AddPartitionsToTxnRequest::default()
        }
    }

    /// Adds partition 0 of a topic to the transaction, and does not wait for the answer.
    pub(crate) async fn send_add(&mut self, topic: &str) {
        let request = self.add_request(topic, &[0]);
        self.coordinator.send(request, ADD).await;
    }

    /// The error of the oldest request without an answer, to add a partition.
    pub(crate) async fn receive_add(&mut self) -> &'static str {
        first_added(&self.coordinator.receive::<AddPartitionsToTxnRequest>(ADD).await)
    }

    /// Adds a partition, and waits while the last transaction ends.
    pub(crate) async fn add_when_ready(&mut self, topic: &str, partition: i32) {
        loop {
            match self.add(topic, &[partition]).await {
                "NONE" => return,
                "CONCURRENT_TRANSACTIONS" => tokio::time::sleep(Duration::from_millis(20)).await,
                error => panic!("{error}"),
            }
        }
    }

    /// Adds the offsets of a group to the transaction.
    pub(crate) async fn add_offsets(&mut self, version: i16, group: &Str) -> &'static str {
        let request = AddOffsetsToTxnRequest {
            transactional_id: self.name.clone(),
            producer_id: self.id,
            producer_epoch: self.epoch,
            group_id: group.clone(),
        };
        ErrorCode(self.coordinator.call(request, version).await.error_code).name()
    }

    /// Writes a batch of the transaction into partition 0 of a topic.
    pub(crate) async fn produce(
        &mut self,
        version: i16,
        topic: &Topic,
        base_sequence: i32,
        values: &[&str],
    ) -> PartitionProduceResponse {
        let records = self.batch(base_sequence, values);
        let request = produce_request(topic, Some(self.name.clone()), records);
        self.broker.call(request, version).await.responses.remove(0).partition_responses.remove(0)
    }

    /// The offset that a batch got, or the error.
    pub(crate) async fn send(
        &mut self,
        version: i16,
        topic: &Topic,
        base_sequence: i32,
        values: &[&str],
    ) -> Result<i64, &'static str> {
        let answer = self.produce(version, topic, base_sequence, values).await;
        if answer.error_code == 0 { Ok(answer.base_offset) } else { Err(ErrorCode(answer.error_code).name()) }
    }

    /// Writes a batch in the newer way, and waits while the last transaction ends.
    pub(crate) async fn send_when_ready(&mut self, topic: &Topic, base_sequence: i32, values: &[&str]) -> i64 {
        loop {
            match self.send(PRODUCE, topic, base_sequence, values).await {
                Ok(offset) => return offset,
                Err("CONCURRENT_TRANSACTIONS") => tokio::time::sleep(Duration::from_millis(20)).await,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// A batch of the transaction.
    pub(crate) fn batch(&self, base_sequence: i32, values: &[&str]) -> Bytes {
        stamped(self.id, self.epoch, base_sequence, true, values)
    }

    /// Ends the transaction: one request, one answer.
    pub(crate) async fn end(&mut self, version: i16, committed: bool) -> EndTxnResponse {
        self.send_end(version, committed).await;
        self.coordinator.receive::<EndTxnRequest>(version).await
    }

    /// Ends the transaction, and does not wait for the answer.
    pub(crate) async fn send_end(&mut self, version: i16, committed: bool) {
        let request = EndTxnRequest {
            transactional_id: self.name.clone(),
            producer_id: self.id,
            producer_epoch: self.epoch,
            committed,
        };
        self.coordinator.send(request, version).await;
    }

    /// The error of the oldest request without an answer, an end.
    pub(crate) async fn receive_end(&mut self, version: i16) -> &'static str {
        ErrorCode(self.coordinator.receive::<EndTxnRequest>(version).await.error_code).name()
    }

    /// The error of an end.
    pub(crate) async fn ends(&mut self, version: i16, committed: bool) -> &'static str {
        ErrorCode(self.end(version, committed).await.error_code).name()
    }

    /// Ends the transaction, takes the identity that a newer answer brings, and waits until all partitions are told.
    pub(crate) async fn finish(&mut self, version: i16, committed: bool) {
        let answer = self.end(version, committed).await;
        assert_eq!(ErrorCode(answer.error_code), ErrorCode::NONE);
        if version >= END {
            (self.id, self.epoch) = (answer.producer_id, answer.producer_epoch);
        }
        self.settled().await;
    }

    /// Waits until no transaction is about to end.
    pub(crate) async fn settled(&mut self) -> TransactionState {
        loop {
            let state = self.describe().await;
            if !state.transaction_state.starts_with("Prepare") {
                return state;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// How the transactional id stands.
    pub(crate) async fn describe(&mut self) -> TransactionState {
        let request = DescribeTransactionsRequest { transactional_ids: vec![self.name.clone()] };
        self.coordinator.call(request, 0).await.transaction_states.remove(0)
    }
}

/// What is answered for the partition with the lowest number: Kafka answers in an order of its own.
fn first_added(answer: &AddPartitionsToTxnResponse) -> &'static str {
    let results = &answer.results_by_topic_v3_and_below[0].results_by_partition;
    let first = results.iter().min_by_key(|result| result.partition_index).expect("a result for each");
    ErrorCode(first.partition_error_code).name()
}

/// A batch of a producer, of a transaction or not.
pub(crate) fn stamped(
    producer_id: i64,
    producer_epoch: i16,
    base_sequence: i32,
    transactional: bool,
    values: &[&str],
) -> Bytes {
    let mut builder = BatchBuilder::new();
    for value in values {
        builder.try_append::<&str, &str>(time(), None, Some(value.as_bytes()), &[]).expect("there is room");
    }
    let mut sealed = builder.seal(&mut Compressor::none()).expect("a batch");
    sealed.stamp(Stamp { producer_id, producer_epoch, base_sequence, transactional });
    sealed.bytes()
}

/// A request for partition 0 of a topic.
pub(crate) fn produce_request(topic: &Topic, transactional_id: Option<Str>, records: Bytes) -> ProduceRequest {
    let partition_data = vec![PartitionProduceData { index: 0, records: Some(records) }];
    let topic_data = vec![TopicProduceData { name: topic.name.clone(), topic_id: topic.id, partition_data }];
    ProduceRequest { transactional_id, acks: -1, timeout_ms: 5_000, topic_data }
}

/// Reads partition 0 of a topic from an offset on, only what is committed or everything.
pub(crate) async fn read(wire: &mut Wire, topic: &Topic, fetch_offset: i64, committed: bool) -> PartitionData {
    let partition = FetchPartition { fetch_offset, partition_max_bytes: 1 << 20, ..FetchPartition::default() };
    let topics = vec![FetchTopic { topic: topic.name.clone(), partitions: vec![partition], ..FetchTopic::default() }];
    let request = FetchRequest {
        max_wait_ms: 0,
        min_bytes: 1,
        session_epoch: -1,
        isolation_level: i8::from(committed),
        topics,
        ..FetchRequest::default()
    };
    let mut answer = wire.call(request, FETCH).await;
    let data = answer.responses.remove(0).partitions.remove(0);
    assert_eq!(ErrorCode(data.error_code), ErrorCode::NONE);
    data
}

/// The batches in an answer.
pub(crate) fn batches(data: &PartitionData) -> Vec<Batch> {
    Batches::new(data.records.clone().unwrap_or_default()).map(|batch| batch.expect("a whole batch")).collect()
}

/// The values that a consumer of committed records sees, as the protocol says that it finds them.
pub(crate) async fn committed_values(wire: &mut Wire, topic: &Topic) -> Vec<String> {
    let data = read(wire, topic, 0, true).await;
    let mut aborted = data.aborted_transactions.clone().expect("a list for who reads what is committed");
    aborted.sort_by_key(|txn| txn.first_offset);
    let mut values = Vec::new();
    let mut in_aborted: Vec<i64> = Vec::new();
    for batch in batches(&data) {
        let header = batch.header();
        while aborted.first().is_some_and(|txn| txn.first_offset <= header.base_offset) {
            in_aborted.push(aborted.remove(0).producer_id);
        }
        if header.attributes.is_control() {
            in_aborted.retain(|id| *id != header.producer_id);
        } else if !header.attributes.is_transactional() || !in_aborted.contains(&header.producer_id) {
            values.extend(values_of(&batch));
        }
    }
    values
}

/// The values of all records, committed or not.
pub(crate) async fn all_values(wire: &mut Wire, topic: &Topic) -> Vec<String> {
    let data = read(wire, topic, 0, false).await;
    assert_eq!(data.aborted_transactions, None, "who reads everything is told of none");
    batches(&data).iter().filter(|batch| !batch.header().attributes.is_control()).flat_map(values_of).collect()
}

fn values_of(batch: &Batch) -> Vec<String> {
    let records = batch.records(&mut Decompressor::default()).expect("records");
    let value = |record: krafka_protocol::records::Record| {
        String::from_utf8(record.value.expect("a value").to_vec()).expect("text")
    };
    records.to_vec().expect("records").into_iter().map(value).collect()
}
