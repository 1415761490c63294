//! What a test does to transactions of the fake: it holds them, moves and kills their coordinators, and lets time pass.

use std::time::Duration;

use krafka_fake_broker::{FakeCluster, KafkaVersion, TransactionState};
use krafka_protocol::api::init_producer_id::InitProducerIdRequest;
use krafka_protocol::{ErrorCode, Str};

use crate::target::{Target, on_fake, patient};
use crate::transactional::{END, PLAIN_END, PLAIN_PRODUCE, PRODUCE, Producer, committed_values, read};

fn state(fake: &FakeCluster, producer: &Producer) -> TransactionState {
    fake.transaction(&producer.name).expect("it was used").state
}

/// A connection to whoever coordinates the id now.
async fn find_again(target: &Target, producer: &mut Producer) {
    producer.coordinator = target.transaction_coordinator(&producer.name).await;
}

/// TX-28.
///
/// Fake only: markers are held by hand; `failovers` does it by stopping a leader.
#[test]
fn held_markers_keep_the_transaction_near_its_end() {
    on_fake(patient(FakeCluster::builder()), async |target, fake| {
        let topic = target.topic(1).await;
        let mut producer = Producer::new(&target).await;
        fake.hold_markers(&producer.name);
        producer.add(&topic.name, &[0]).await;
        producer.send(PLAIN_PRODUCE, &topic, 0, &["v"]).await.expect("appended");

        assert_eq!(producer.ends(PLAIN_END, true).await, "NONE");
        assert_eq!(state(&fake, &producer), TransactionState::PrepareCommit);
        for _ in 0..2 {
            assert_eq!(producer.add(&topic.name, &[0]).await, "CONCURRENT_TRANSACTIONS");
            assert_eq!(producer.ends(PLAIN_END, true).await, "CONCURRENT_TRANSACTIONS");
            assert_eq!(producer.ends(PLAIN_END, false).await, "CONCURRENT_TRANSACTIONS");
            let refused = producer.init(None).await;
            assert_eq!(ErrorCode(refused.error_code), ErrorCode::CONCURRENT_TRANSACTIONS);
            assert_eq!(committed_values(&mut producer.broker, &topic).await, [""; 0]);
            assert_eq!(fake.last_stable_offset(&topic.name, 0), Some(0));
            tokio::time::sleep(Duration::from_secs(3_600)).await;
        }

        fake.release_markers(&producer.name);
        assert_eq!(state(&fake, &producer), TransactionState::CompleteCommit);
        assert_eq!(committed_values(&mut producer.broker, &topic).await, ["v"]);
        assert_eq!(fake.committed_records(&topic.name, 0).len(), 1);
        assert_eq!(producer.add(&topic.name, &[0]).await, "NONE");
    });
}

/// Markers that are late are the same to the producer, and need nobody to let them go.
///
/// Fake only: markers are late by hand.
#[test]
fn late_markers_end_the_transaction_by_themselves() {
    let builder = FakeCluster::builder().marker_delay(Duration::from_millis(50));
    on_fake(builder, async |target, fake| {
        let topic = target.topic(1).await;
        let mut producer = Producer::new(&target).await;
        producer.add(&topic.name, &[0]).await;
        producer.send(PLAIN_PRODUCE, &topic, 0, &["v"]).await.expect("appended");
        assert_eq!(producer.ends(PLAIN_END, true).await, "NONE");

        tokio::time::sleep(Duration::from_millis(49)).await;
        assert_eq!(producer.add(&topic.name, &[0]).await, "CONCURRENT_TRANSACTIONS");
        assert_eq!(state(&fake, &producer), TransactionState::PrepareCommit);
        fake.move_transaction_coordinator(&producer.name, 1);
        assert_eq!(state(&fake, &producer), TransactionState::PrepareCommit, "a move makes it no faster");
        tokio::time::sleep(Duration::from_millis(2)).await;
        assert_eq!(state(&fake, &producer), TransactionState::CompleteCommit);
        assert_eq!(committed_values(&mut producer.broker, &topic).await, ["v"]);

        fake.delay_markers(Duration::ZERO);
        assert_eq!(producer.add(&topic.name, &[0]).await, "NONE");
        assert_eq!(producer.ends(PLAIN_END, false).await, "NONE");
        assert_eq!(state(&fake, &producer), TransactionState::CompleteAbort);
    });
}

/// TX-06: the next transaction's first batch is told to come again, in the code that its client understands.
///
/// Fake only: markers are held by hand.
#[test]
fn held_markers_hold_the_next_batch_back() {
    on_fake(FakeCluster::builder(), async |target, fake| {
        let (topic, other) = (target.topic(1).await, target.topic(1).await);
        let mut producer = Producer::new(&target).await;
        fake.hold_markers(&producer.name);
        producer.send(PRODUCE, &topic, 0, &["v"]).await.expect("appended");
        let ended = producer.end(END, true).await;
        producer.epoch = ended.producer_epoch;

        assert_eq!(producer.send(PRODUCE, &other, 0, &["v"]).await, Err("CONCURRENT_TRANSACTIONS"));
        let old = producer.produce(PLAIN_PRODUCE, &other, 0, &["v"]).await;
        assert_eq!(ErrorCode(old.error_code), ErrorCode::NOT_ENOUGH_REPLICAS);
        let message = old.error_message.expect("what is behind it");
        assert!(message.ends_with("CONCURRENT_TRANSACTIONS"), "{message}");

        fake.release_markers(&producer.name);
        assert_eq!(producer.send(PRODUCE, &other, 0, &["v"]).await, Ok(0));
    });
}

/// A transaction is in the log of its coordinators: the next one finds it as it was, in each state, and tells the
/// partitions what the last one did not.
///
/// Fake only: a coordinator is moved by hand, and markers held; `failovers` kills it.
#[test]
fn transaction_outlives_its_coordinators() {
    on_fake(FakeCluster::builder().nodes(3), async |target, fake| {
        let topic = target.topic(1).await;
        fake.move_leader(&topic.name, 0, 1);
        let mut producer = Producer::new(&target).await;
        let next = |fake: &FakeCluster, producer: &Producer| fake.transaction_coordinator(&producer.name) % 3 + 1;

        fake.move_transaction_coordinator(&producer.name, next(&fake, &producer));
        assert_eq!(producer.add(&topic.name, &[0]).await, "NOT_COORDINATOR");
        find_again(&target, &mut producer).await;
        assert_eq!(producer.add(&topic.name, &[0]).await, "NONE", "Empty");
        producer.send(PLAIN_PRODUCE, &topic, 0, &["v"]).await.expect("appended");

        fake.move_transaction_coordinator(&producer.name, next(&fake, &producer));
        assert_eq!(producer.ends(PLAIN_END, true).await, "NOT_COORDINATOR");
        find_again(&target, &mut producer).await;
        fake.hold_markers(&producer.name);
        assert_eq!(producer.ends(PLAIN_END, true).await, "NONE", "Ongoing");

        fake.move_transaction_coordinator(&producer.name, next(&fake, &producer));
        find_again(&target, &mut producer).await;
        assert_eq!(state(&fake, &producer), TransactionState::PrepareCommit);
        assert_eq!(producer.ends(PLAIN_END, true).await, "CONCURRENT_TRANSACTIONS");
        fake.release_markers(&producer.name);

        fake.move_transaction_coordinator(&producer.name, next(&fake, &producer));
        find_again(&target, &mut producer).await;
        assert_eq!(producer.ends(PLAIN_END, true).await, "NONE", "CompleteCommit: it has not seen the answer");
        assert_eq!(committed_values(&mut target.node(1).await, &topic).await, ["v"]);
    });
}

/// TX-03.
///
/// Fake only: Kafka loads a short log in milliseconds.
#[test]
fn coordinator_that_is_loading_says_so() {
    let load = Duration::from_secs(5);
    on_fake(FakeCluster::builder().nodes(3).coordinator_load_time(load), async |target, fake| {
        let topic = target.topic(1).await;
        let mut producer = Producer::new(&target).await;
        producer.add(&topic.name, &[0]).await;
        let next = fake.transaction_coordinator(&producer.name) % 3 + 1;
        fake.move_transaction_coordinator(&producer.name, next);
        find_again(&target, &mut producer).await;

        assert_eq!(producer.add(&topic.name, &[0]).await, "COORDINATOR_LOAD_IN_PROGRESS");
        assert_eq!(producer.ends(PLAIN_END, true).await, "COORDINATOR_LOAD_IN_PROGRESS");
        assert_eq!(producer.add_offsets(3, &Str::from("group")).await, "COORDINATOR_LOAD_IN_PROGRESS");
        let refused = producer.init(None).await;
        assert_eq!(ErrorCode(refused.error_code), ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);

        tokio::time::sleep(load).await;
        assert_eq!(producer.ends(PLAIN_END, true).await, "NONE");
    });
}

/// A coordinator that has read its partition tells the partitions of what was decided before.
///
/// Fake only: Kafka loads a short log in milliseconds.
#[test]
fn loaded_coordinator_ends_what_was_decided() {
    let load = Duration::from_secs(5);
    on_fake(FakeCluster::builder().nodes(3).coordinator_load_time(load), async |target, fake| {
        let topic = target.topic(1).await;
        let mut producer = Producer::new(&target).await;
        fake.hold_markers(&producer.name);
        producer.add(&topic.name, &[0]).await;
        assert_eq!(producer.ends(PLAIN_END, false).await, "NONE");
        let next = fake.transaction_coordinator(&producer.name) % 3 + 1;
        fake.move_transaction_coordinator(&producer.name, next);

        fake.release_markers(&producer.name);
        assert_eq!(state(&fake, &producer), TransactionState::PrepareAbort, "it does not know yet");
        tokio::time::sleep(load + Duration::from_millis(1)).await;
        assert_eq!(state(&fake, &producer), TransactionState::CompleteAbort);
    });
}

/// Marker and epoch of a coordinator that was replaced: the newer coordinator's epoch is higher.
///
/// Fake only: a coordinator is moved by hand.
#[test]
fn markers_carry_the_epoch_of_their_coordinator() {
    on_fake(FakeCluster::builder().nodes(2), async |target, fake| {
        let topic = target.topic_on(&[1]).await;
        let mut producer = Producer::new(&target).await;
        for node in [1, 2, 1] {
            fake.move_transaction_coordinator(&producer.name, node);
            find_again(&target, &mut producer).await;
            producer.add(&topic.name, &[0]).await;
            producer.ends(PLAIN_END, true).await;
        }

        let data = read(&mut producer.broker, &topic, 0, false).await;
        let epochs: Vec<_> = crate::transactional::batches(&data)
            .iter()
            .map(|batch| {
                let records = batch.records(&mut Default::default()).expect("a marker").to_vec().expect("a marker");
                i32::from_be_bytes(records[0].value.clone().expect("an epoch")[2..6].try_into().expect("an i32"))
            })
            .collect();
        assert!(epochs.is_sorted() && epochs[0] < epochs[2], "{epochs:?}");
    });
}

/// TX-26.
///
/// Fake only: Kafka looks for ids that expired every hour.
#[test]
fn forgotten_id_is_known_to_nobody() {
    let expiration = Duration::from_secs(24 * 3_600);
    on_fake(patient(FakeCluster::builder().transactional_id_expiration(expiration)), async |target, fake| {
        let topic = target.topic(1).await;
        let mut idle = Producer::new(&target).await;
        tokio::time::sleep(expiration / 2).await;
        let mut busy = Producer::with_timeout(&target, 900_000).await;
        tokio::time::sleep(expiration / 2 + Duration::from_secs(3_600)).await;

        assert_eq!(idle.add(&topic.name, &[0]).await, "INVALID_PRODUCER_ID_MAPPING");
        assert_eq!(idle.ends(PLAIN_END, true).await, "INVALID_PRODUCER_ID_MAPPING");
        let described = idle.describe().await;
        assert_eq!(ErrorCode(described.error_code), ErrorCode::TRANSACTIONAL_ID_NOT_FOUND);
        let anew = idle.init(Some((idle.id, idle.epoch))).await;
        assert_eq!((anew.error_code, anew.producer_epoch), (0, 0));
        assert_ne!(anew.producer_id, idle.id);
        assert_eq!(busy.add(&topic.name, &[0]).await, "NONE");

        assert!(!fake.forget_transactional_id(&busy.name), "a transaction is open");
        assert!(fake.forget_transactional_id(&idle.name));
        assert_eq!(fake.transactional_ids(), [busy.name.clone()]);
    });
}

/// KIP-360: a partition forgets producers that are silent, and takes any sequence from them then.
///
/// Fake only: Kafka looks for producers that expired every ten minutes.
#[test]
fn silent_producer_is_forgotten() {
    let expiration = Duration::from_secs(3_600);
    on_fake(patient(FakeCluster::builder().producer_id_expiration(expiration)), async |target, _| {
        let topic = target.topic(1).await;
        let mut wire = target.connect().await;
        let request = InitProducerIdRequest { transactional_id: None, ..InitProducerIdRequest::default() };
        let id = wire.call(request, 5).await.producer_id;
        let mut send = async |sequence| {
            let records = crate::transactional::stamped(id, 0, sequence, false, &["v"]);
            let request = crate::transactional::produce_request(&topic, None, records);
            let answer = wire.call(request, 9).await;
            ErrorCode(answer.responses[0].partition_responses[0].error_code).name()
        };

        assert_eq!(send(0).await, "NONE");
        assert_eq!(send(5).await, "OUT_OF_ORDER_SEQUENCE_NUMBER");
        tokio::time::sleep(expiration + Duration::from_secs(10 * 60)).await;
        assert_eq!(send(5).await, "NONE");
    });
}

/// A cluster without `transaction.version` aborts as it always did: its producer is fenced for good.
///
/// Fake only: it is about 3.9, and waits for the look every ten seconds.
#[test]
fn older_coordinators_keep_the_epoch() {
    on_fake(FakeCluster::builder().as_version(KafkaVersion::V3_9), async |target, _| {
        let topic = target.topic(1).await;
        let mut producer = Producer::with_timeout(&target, 1_000).await;
        producer.add(&topic.name, &[0]).await;
        tokio::time::sleep(Duration::from_secs(12)).await;

        assert_eq!(producer.describe().await.producer_epoch, producer.epoch + 1);
        let fenced = producer.init(Some((producer.id, producer.epoch))).await;
        assert_eq!(ErrorCode(fenced.error_code), ErrorCode::PRODUCER_FENCED);
    });
}

/// The timers end when no transaction is open: an idle cluster does nothing.
///
/// Fake only: it knows to the second when Kafka looks.
#[test]
fn transaction_is_aborted_at_the_next_look() {
    on_fake(FakeCluster::builder(), async |target, fake| {
        let topic = target.topic(1).await;
        let mut producer = Producer::with_timeout(&target, 1_000).await;
        producer.add(&topic.name, &[0]).await;

        tokio::time::sleep(Duration::from_secs(9)).await;
        assert_eq!(state(&fake, &producer), TransactionState::Ongoing);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(state(&fake, &producer), TransactionState::CompleteAbort);
    });
}
