//! A producer that knows what it does, so that there are transactions for the laws to hold of: it asks for its
//! identity, writes in sequence to whoever leads, and ends what it began.

use krafka_protocol::api::end_txn::EndTxnRequest;
use krafka_protocol::api::find_coordinator::FindCoordinatorRequest;
use krafka_protocol::api::init_producer_id::InitProducerIdRequest;
use krafka_protocol::api::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use krafka_protocol::compression::{Compression, Compressor};
use krafka_protocol::frame::encode_any_request;
use krafka_protocol::records::{BatchBuilder, Stamp};
use krafka_protocol::{AnyRequest, Bytes};

use super::Run;
use crate::cluster::Input;
use crate::connection::Connection;
use crate::coordinators::{self, CoordinatorKind};

/// The transactional ids that it goes by.
const NAMES: [&str; 2] = ["t", "u"];

/// What it sends next, on a connection to the right node; nothing if there is none.
pub(super) fn next_request(run: &mut Run) -> Option<Input> {
    let name = *run.pick(&NAMES);
    let producer = run.cluster.state().transactions.find(name).map(|transaction| transaction.producer());
    let Some(coordinator) = coordinators::find(run.cluster.state(), CoordinatorKind::Transaction, name) else {
        // Nobody has asked for one yet, or it is dead.
        let coordinator_keys = vec![name.into()];
        let request = FindCoordinatorRequest { key_type: 1, coordinator_keys, ..FindCoordinatorRequest::default() };
        let node = 1 + run.chance.below(3) as i32;
        return to(run, node, request.into(), 4);
    };
    let Some(producer) = producer.filter(|_| !run.one_in(12)) else {
        let request = InitProducerIdRequest {
            transactional_id: Some(name.into()),
            transaction_timeout_ms: 60_000,
            ..InitProducerIdRequest::default()
        };
        return to(run, coordinator, request.into(), 5);
    };
    if run.one_in(4) {
        let request = EndTxnRequest {
            transactional_id: name.into(),
            producer_id: producer.producer_id,
            producer_epoch: producer.producer_epoch,
            committed: run.one_in(2),
        };
        return to(run, coordinator, request.into(), 5);
    }
    let index = i32::from(run.one_in(2));
    let partition = run.cluster.state().topics.partition("orders", index)?;
    let leader = partition.leader?;
    let known = partition.log.producers.active().find(|active| active.producer_id == producer.producer_id);
    let base_sequence = known
        .filter(|known| known.producer_epoch == producer.producer_epoch)
        .map_or(0, |known| known.last_sequence.wrapping_add(1).max(0));
    let stamp = Stamp {
        producer_id: producer.producer_id,
        producer_epoch: producer.producer_epoch,
        base_sequence,
        transactional: true,
    };
    // The same keys again and again, now and then deleted: something for compaction to do.
    let (key, value) = (*run.pick(&["a", "b", "c"]), *run.pick(&[Some("v"), Some("v"), Some("w"), None]));
    let partition_data = vec![PartitionProduceData { index, records: Some(batch(key, value, stamp)) }];
    let request = ProduceRequest {
        transactional_id: Some(name.into()),
        acks: if run.one_in(4) { 1 } else { -1 },
        timeout_ms: 1_000,
        topic_data: vec![TopicProduceData { name: "orders".into(), partition_data, ..TopicProduceData::default() }],
    };
    to(run, leader, request.into(), 12)
}

/// A batch of one record.
fn batch(key: &str, value: Option<&str>, stamp: Stamp) -> Bytes {
    let mut builder = BatchBuilder::new();
    let (key, value) = (Some(key.as_bytes()), value.map(str::as_bytes));
    builder.try_append::<&str, &str>(1_700_000_000_000, key, value, &[]).expect("there is room");
    let mut sealed = builder.seal(&mut Compressor::new(Compression::None, None).expect("no codec")).expect("a batch");
    sealed.stamp(stamp);
    sealed.bytes()
}

/// A request on a connection to a node that has nothing else to do; or such a connection, if there is none.
fn to(run: &mut Run, node: i32, request: AnyRequest, version: i16) -> Option<Input> {
    let connections = &run.cluster.state().connections;
    let is_free = |open: &Connection| open.node == node && open.is_ready() && open.inbox.is_empty();
    let Some((&connection, _)) = connections.iter().rev().find(|(_, open)| is_free(open)) else {
        return Some(run.open(node));
    };
    let frame = encode_any_request(&request, version, 1, Some("producer")).expect("a legal request");
    Some(Input::Received { connection, frame: frame.to_bytes().slice(4..) })
}
