//! Idempotent producers on the wire: ids, epochs and sequences.

use std::time::Duration;

use krafka_protocol::api::init_producer_id::{InitProducerIdRequest, InitProducerIdResponse};
use krafka_protocol::api::produce::{PartitionProduceData, PartitionProduceResponse, ProduceRequest, TopicProduceData};
use krafka_protocol::compression::{Compression, Compressor};
use krafka_protocol::records::{BatchBuilder, Stamp};
use krafka_protocol::{Bytes, ErrorCode, Str};

use crate::target::{Target, Topic, Wire, run};

const PRODUCE: i16 = 9;
const INIT: i16 = 5;
const TIME: i64 = 1_700_000_000_000;
const LAST: i32 = i32::MAX;

/// A producer with one partition.
struct Producer {
    wire: Wire,
    topic: Topic,
    id: i64,
    epoch: i16,
}

impl Producer {
    async fn new(target: &Target) -> Self {
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        let identity = initialised(&mut wire, ask()).await;
        Self { wire, topic, id: identity.producer_id, epoch: identity.producer_epoch }
    }

    async fn produce(&mut self, base_sequence: i32, count: usize) -> PartitionProduceResponse {
        let records = batch(self.id, self.epoch, base_sequence, count);
        let partition_data = vec![PartitionProduceData { index: 0, records: Some(records) }];
        let topic = TopicProduceData { name: self.topic.name.clone(), partition_data, ..TopicProduceData::default() };
        let request =
            ProduceRequest { acks: -1, timeout_ms: 5_000, topic_data: vec![topic], ..ProduceRequest::default() };
        self.wire.call(request, PRODUCE).await.responses.remove(0).partition_responses.remove(0)
    }

    /// The offset that a batch got, or the error.
    async fn send(&mut self, base_sequence: i32, count: usize) -> Result<i64, &'static str> {
        let response = self.produce(base_sequence, count).await;
        if response.error_code == 0 { Ok(response.base_offset) } else { Err(ErrorCode(response.error_code).name()) }
    }
}

pub(crate) fn batch(producer_id: i64, producer_epoch: i16, base_sequence: i32, count: usize) -> Bytes {
    let mut builder = BatchBuilder::new();
    for _ in 0..count {
        builder.try_append::<&str, &str>(TIME, None, Some(b"v"), &[]).expect("there is room");
    }
    let mut compressor = Compressor::new(Compression::None, None).expect("no compression");
    let mut sealed = builder.seal(&mut compressor).expect("a batch");
    sealed.stamp(Stamp { producer_id, producer_epoch, base_sequence, transactional: false });
    sealed.bytes()
}

fn ask() -> InitProducerIdRequest {
    InitProducerIdRequest { transactional_id: None, transaction_timeout_ms: 60_000, ..Default::default() }
}

/// A new broker is not ready to give ids at once, and says so.
async fn initialised(wire: &mut Wire, request: InitProducerIdRequest) -> InitProducerIdResponse {
    loop {
        let response = wire.call(request.clone(), INIT).await;
        let busy = [
            ErrorCode::COORDINATOR_LOAD_IN_PROGRESS,
            ErrorCode::CONCURRENT_TRANSACTIONS,
            ErrorCode::COORDINATOR_NOT_AVAILABLE,
            ErrorCode::NOT_COORDINATOR,
        ];
        if !busy.contains(&ErrorCode(response.error_code)) {
            return response;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// FI-01b.
#[test]
fn repeated_batch_gets_its_first_answer() {
    run(async |target| {
        let mut producer = Producer::new(&target).await;

        assert_eq!(producer.send(0, 3).await, Ok(0));
        assert_eq!(producer.send(3, 2).await, Ok(3));
        let again = producer.produce(0, 3).await;

        assert_eq!((again.error_code, again.base_offset), (0, 0));
        assert_eq!(again.log_append_time_ms, TIME, "of a duplicate Kafka tells the time, though it did not set it");
        assert_eq!(producer.send(5, 1).await, Ok(5));
    });
}

/// FI-01a.
#[test]
fn repetition_is_recognised_for_five_batches() {
    run(async |target| {
        let mut producer = Producer::new(&target).await;
        for sequence in 0..6 {
            producer.send(sequence, 1).await.expect("in order");
        }

        for sequence in 1..6 {
            assert_eq!(producer.send(sequence, 1).await, Ok(i64::from(sequence)));
        }
        assert_eq!(producer.send(0, 1).await, Err("OUT_OF_ORDER_SEQUENCE_NUMBER"));
        assert_eq!(producer.send(5, 2).await, Err("OUT_OF_ORDER_SEQUENCE_NUMBER"), "only in part the same");
    });
}

/// FI-01c.
#[test]
fn gap_is_refused_and_leaves_no_trace() {
    run(async |target| {
        let mut producer = Producer::new(&target).await;
        producer.send(0, 1).await.expect("the first");

        assert_eq!(producer.send(2, 1).await, Err("OUT_OF_ORDER_SEQUENCE_NUMBER"));
        assert_eq!(producer.send(1, 1).await, Ok(1));
    });
}

/// FI-01e, KIP-360.
#[test]
fn unknown_producer_may_begin_anywhere() {
    run(async |target| {
        let mut producer = Producer::new(&target).await;

        assert_eq!(producer.send(17, 1).await, Ok(0));
        assert_eq!(producer.send(18, 1).await, Ok(1));
    });
}

/// FI-01d.
#[test]
fn new_epoch_begins_at_zero_and_fences_the_old_one() {
    run(async |target| {
        let mut producer = Producer::new(&target).await;
        producer.send(0, 2).await.expect("the first");

        producer.epoch = 1;
        assert_eq!(producer.send(2, 1).await, Err("OUT_OF_ORDER_SEQUENCE_NUMBER"));
        assert_eq!(producer.send(0, 1).await, Ok(2));
        producer.epoch = 0;
        assert_eq!(producer.send(2, 1).await, Err("INVALID_PRODUCER_EPOCH"));
        assert_eq!(producer.send(0, 2).await, Err("INVALID_PRODUCER_EPOCH"), "even what was written once");
    });
}

#[test]
fn sequence_after_the_last_is_zero() {
    run(async |target| {
        let mut producer = Producer::new(&target).await;
        producer.send(LAST - 1, 2).await.expect("an unknown producer");

        assert_eq!(producer.send(0, 2).await, Ok(2));
        assert_eq!(producer.send(LAST - 1, 2).await, Ok(0), "a repetition");
    });
}

#[test]
fn batch_may_wrap_within() {
    run(async |target| {
        let mut producer = Producer::new(&target).await;
        producer.send(LAST - 1, 4).await.expect("an unknown producer");

        assert_eq!(producer.send(2, 1).await, Ok(4));
        assert_eq!(producer.send(LAST - 1, 4).await, Ok(0), "a repetition");
    });
}

#[test]
fn ids_without_a_transactional_id_are_always_new() {
    run(async |target| {
        let mut wire = target.connect().await;
        let first = initialised(&mut wire, ask()).await;
        let held = InitProducerIdRequest { producer_id: first.producer_id, producer_epoch: 0, ..ask() };
        let second = initialised(&mut wire, held).await;

        assert_eq!((first.error_code, first.producer_epoch), (0, 0));
        assert_eq!((second.error_code, second.producer_epoch), (0, 0));
        assert_ne!(first.producer_id, second.producer_id);

        for (producer_id, producer_epoch) in [(-1, 0), (5, -1)] {
            let half = InitProducerIdRequest { producer_id, producer_epoch, ..ask() };
            let refused = wire.call(half, INIT).await;
            assert_eq!(ErrorCode(refused.error_code), ErrorCode::INVALID_REQUEST);
        }
    });
}

/// FI-09c: a repetition gets the same answer.
#[test]
fn transactional_id_keeps_its_producer_id_and_raises_the_epoch() {
    run(async |target| {
        let name = target.fresh("transactional");
        let mut wire = target.transaction_coordinator(&name).await;
        let ask = InitProducerIdRequest { transactional_id: Some(name.clone()), ..ask() };
        let holding =
            |producer_id, producer_epoch| InitProducerIdRequest { producer_id, producer_epoch, ..ask.clone() };

        let first = initialised(&mut wire, ask.clone()).await;
        let id = first.producer_id;
        assert_eq!((first.error_code, first.producer_epoch), (0, 0));
        assert_eq!(initialised(&mut wire, ask.clone()).await.producer_epoch, 1);
        let raised = initialised(&mut wire, holding(id, 1)).await;
        assert_eq!((raised.producer_id, raised.producer_epoch), (id, 2));
        let repeated = initialised(&mut wire, holding(id, 1)).await;
        assert_eq!((repeated.error_code, repeated.producer_epoch), (0, 2));

        let fenced = initialised(&mut wire, holding(id, 0)).await;
        assert_eq!(ErrorCode(fenced.error_code), ErrorCode::PRODUCER_FENCED);
        assert_eq!((fenced.producer_id, fenced.producer_epoch), (-1, -1));
        let foreign = initialised(&mut wire, holding(id + 1, 2)).await;
        assert_eq!(ErrorCode(foreign.error_code), ErrorCode::PRODUCER_FENCED);
        let old_client = wire.call(holding(id, 0), 3).await;
        assert_eq!(ErrorCode(old_client.error_code), ErrorCode::INVALID_PRODUCER_EPOCH);
    });
}

/// FI-11a.
#[test]
fn bad_transactional_ids_and_timeouts_are_refused() {
    run(async |target| {
        let name = target.fresh("transactional");
        let mut wire = target.transaction_coordinator(&name).await;
        let with_timeout = |transaction_timeout_ms| InitProducerIdRequest {
            transactional_id: Some(name.clone()),
            transaction_timeout_ms,
            ..InitProducerIdRequest::default()
        };

        let nameless = InitProducerIdRequest { transactional_id: Some(Str::default()), ..ask() };
        assert_eq!(ErrorCode(wire.call(nameless, INIT).await.error_code), ErrorCode::INVALID_REQUEST);
        for timeout in [0, -1, 900_001] {
            let refused = initialised(&mut wire, with_timeout(timeout)).await;
            assert_eq!(ErrorCode(refused.error_code), ErrorCode::INVALID_TRANSACTION_TIMEOUT, "{timeout}");
        }
        assert_eq!(initialised(&mut wire, with_timeout(900_000)).await.error_code, 0);
    });
}
