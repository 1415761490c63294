//! How transactions end, state by state: FI-09 for both protocols, timeouts, and the end of a producer's epochs.

use std::time::Duration;

use krafka_fake_broker::{FakeCluster, KafkaVersion};
use krafka_protocol::ErrorCode;

use crate::target::{Target, Topic, run, run_with};
use crate::transactional::{END, PLAIN_END, PLAIN_PRODUCE, PRODUCE, Producer, committed_values, read};

/// Producers have an epoch for each transaction since then.
const BUMPS: KafkaVersion = KafkaVersion::V4_0;
const LAST_EPOCH: i16 = i16::MAX - 1;

/// FI-09a, FI-09c: one epoch for all transactions.
#[test]
fn plain_end_of_each_state() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut producer = Producer::new(&target).await;
        let epoch = producer.epoch;

        assert_eq!(producer.ends(PLAIN_END, true).await, "INVALID_TXN_STATE", "Empty");
        assert_eq!(producer.ends(PLAIN_END, false).await, "INVALID_TXN_STATE", "Empty");

        for commit in [true, false] {
            producer.add_when_ready(&topic.name, 0).await;
            for other in [epoch - 1, epoch + 1] {
                producer.epoch = other;
                assert_eq!(producer.ends(PLAIN_END, commit).await, "PRODUCER_FENCED", "Ongoing");
            }
            producer.epoch = epoch;
            producer.finish(PLAIN_END, commit).await;
            assert_eq!(producer.ends(PLAIN_END, commit).await, "NONE", "repeated");
            assert_eq!(producer.ends(PLAIN_END, !commit).await, "INVALID_TXN_STATE");
        }
        assert_eq!(producer.describe().await.producer_epoch, epoch);
    });
}

/// FI-09b, FI-09c, KIP-890: an epoch for each transaction.
#[test]
fn newer_end_of_each_state() {
    run(async |target| {
        target.since(BUMPS, "epochs for each transaction").await;
        let topic = target.topic(1).await;
        let mut producer = Producer::new(&target).await;
        let id = producer.id;

        assert_eq!(producer.ends(END, true).await, "INVALID_TXN_STATE", "Empty");
        producer.epoch = 1;
        assert_eq!(producer.ends(END, false).await, "PRODUCER_FENCED", "Empty, another epoch");
        producer.epoch = 0;
        // Whether anything of a transaction came through or not, an abort gives the next epoch.
        let aborted = producer.end(END, false).await;
        assert_eq!((aborted.error_code, aborted.producer_id, aborted.producer_epoch), (0, id, 1));
        producer.settled().await;

        let mut epoch = 1;
        for commit in [true, false] {
            producer.epoch = epoch;
            producer.send_when_ready(&topic, 0, &["v"]).await;
            producer.epoch = epoch - 1;
            assert_eq!(producer.ends(END, commit).await, "PRODUCER_FENCED", "Ongoing, the epoch before");
            producer.epoch = epoch;
            let ended = producer.end(END, commit).await;
            assert_eq!((ended.error_code, ended.producer_id, ended.producer_epoch), (0, id, epoch + 1));
            producer.settled().await;

            let again = producer.end(END, commit).await;
            assert_eq!((again.error_code, again.producer_id, again.producer_epoch), (0, id, epoch + 1), "repeated");
            assert_eq!(producer.ends(END, !commit).await, "INVALID_TXN_STATE", "the other way");
            producer.epoch = epoch + 1;
            assert_eq!(producer.ends(END, true).await, "INVALID_TXN_STATE", "nothing to commit");
            producer.epoch = epoch + 2;
            assert_eq!(producer.ends(END, false).await, "PRODUCER_FENCED", "an epoch of the future");
            producer.epoch = epoch + 1;
            let aborted = producer.end(END, false).await;
            assert_eq!((aborted.error_code, aborted.producer_epoch), (0, epoch + 2), "nothing to abort");
            producer.settled().await;
            epoch += 2;
        }
    });
}

/// TX-38: what comes late of a transaction never joins the next one.
#[test]
fn late_batch_of_a_transaction_is_refused() {
    run(async |target| {
        target.since(BUMPS, "epochs for each transaction").await;
        let topic = target.topic(1).await;
        let mut producer = Producer::new(&target).await;
        let epoch = producer.epoch;
        producer.send_when_ready(&topic, 0, &["first"]).await;
        producer.finish(END, false).await;
        producer.send_when_ready(&topic, 0, &["second"]).await;

        let next = std::mem::replace(&mut producer.epoch, epoch);
        assert_eq!(producer.send(PRODUCE, &topic, 1, &["late"]).await, Err("INVALID_PRODUCER_EPOCH"));
        producer.epoch = next;
        producer.finish(END, true).await;

        assert_eq!(committed_values(&mut producer.broker, &topic).await, ["second"]);
    });
}

/// A producer that goes on after a failure brings what it has: its epoch is raised, and a repetition is known.
#[test]
fn producer_raises_its_own_epoch() {
    run(async |target| {
        let mut producer = Producer::new(&target).await;
        let (id, epoch) = (producer.id, producer.epoch);

        for _ in 0..2 {
            let raised = producer.init(Some((id, epoch))).await;
            assert_eq!((raised.error_code, raised.producer_id, raised.producer_epoch), (0, id, epoch + 1));
        }
        producer.begin().await;
        assert_eq!(producer.epoch, epoch + 2);
        let fenced = producer.init(Some((id, epoch + 1))).await;
        assert_eq!(ErrorCode(fenced.error_code), ErrorCode::PRODUCER_FENCED);
    });
}

/// FI-09d, TX-08. The coordinators look every ten seconds.
#[test]
fn transaction_that_takes_too_long_is_aborted() {
    run(async |target| {
        let topic = target.topic(1).await;
        let mut producer = Producer::with_timeout(&target, 100).await;
        producer.add_when_ready(&topic.name, 0).await;
        producer.send(PLAIN_PRODUCE, &topic, 0, &["slow"]).await.expect("appended");

        aborted_by_coordinator(&mut producer).await;

        assert_eq!(producer.describe().await.producer_epoch, producer.epoch + 1);
        let data = read(&mut producer.broker, &topic, 0, true).await;
        assert_eq!((data.last_stable_offset, data.high_watermark), (2, 2));
        assert_eq!(committed_values(&mut producer.broker, &topic).await, [""; 0]);
        assert_eq!(producer.send(PLAIN_PRODUCE, &topic, 1, &["late"]).await, Err("INVALID_PRODUCER_EPOCH"));
        assert_eq!(producer.ends(PLAIN_END, true).await, "PRODUCER_FENCED");
        assert_eq!(producer.add(&topic.name, &[0]).await, "PRODUCER_FENCED");
    });
}

async fn aborted_by_coordinator(producer: &mut Producer) {
    loop {
        match &*producer.describe().await.transaction_state {
            "CompleteAbort" => return,
            "Ongoing" | "PrepareAbort" => tokio::time::sleep(Duration::from_millis(100)).await,
            state => panic!("{state}"),
        }
    }
}

/// TX-08, KIP-890: a newer producer that was too slow may ask for the next epoch, and learns that its transaction is
/// aborted when it ends it.
#[test]
fn newer_producer_recovers_from_a_timeout() {
    run(async |target| {
        target.since(BUMPS, "epochs for each transaction").await;
        let topic = target.topic(1).await;
        let mut producer = Producer::with_timeout(&target, 100).await;
        let (id, epoch) = (producer.id, producer.epoch);
        producer.send_when_ready(&topic, 0, &["slow"]).await;
        aborted_by_coordinator(&mut producer).await;

        assert_eq!(producer.send(PRODUCE, &topic, 1, &["late"]).await, Err("INVALID_PRODUCER_EPOCH"));
        assert_eq!(producer.ends(END, true).await, "INVALID_TXN_STATE");
        let aborted = producer.end(END, false).await;
        assert_eq!((aborted.error_code, aborted.producer_id, aborted.producer_epoch), (0, id, epoch + 1));
        let raised = producer.init(Some((id, epoch))).await;
        assert_eq!((raised.error_code, raised.producer_epoch), (0, epoch + 1));
    });
}

/// A producer whose epochs are used up, but for the last.
async fn worn(target: &Target) -> (Producer, Topic) {
    let topic = target.topic(1).await;
    let mut producer = Producer::new(target).await;
    while producer.epoch < LAST_EPOCH {
        producer.begin().await;
    }
    (producer, topic)
}

/// FI-09e, TX-35. It takes 32,767 requests to use up the epochs of a producer id.
#[test]
fn used_up_epochs_rotate_the_producer_id() {
    run(async |target| {
        let (mut producer, topic) = worn(&target).await;
        let id = producer.id;
        producer.add_when_ready(&topic.name, 0).await;
        producer.send(PLAIN_PRODUCE, &topic, 0, &["lost"]).await.expect("appended");

        // Whoever comes next aborts it with the one epoch that is left.
        producer.begin().await;

        assert_ne!(producer.id, id);
        assert_eq!(committed_values(&mut producer.broker, &topic).await, [""; 0]);
        assert!(producer.epoch <= 1, "{}", producer.epoch);
        producer.add_when_ready(&topic.name, 0).await;
        assert_eq!(producer.send(PLAIN_PRODUCE, &topic, 0, &["kept"]).await, Ok(2));
        producer.finish(PLAIN_END, true).await;
        assert_eq!(committed_values(&mut producer.broker, &topic).await, ["kept"]);
    });
}

/// FI-09e, KIP-890: the end of the last epoch's transaction answers with the next id.
#[test]
fn last_epoch_ends_with_the_next_producer_id() {
    run(async |target| {
        target.since(BUMPS, "epochs for each transaction").await;
        let (mut producer, topic) = worn(&target).await;
        let id = producer.id;
        producer.send_when_ready(&topic, 0, &["kept"]).await;

        let ended = producer.end(END, true).await;
        assert_eq!((ended.error_code, ended.producer_epoch), (0, 0));
        assert_ne!(ended.producer_id, id);
        producer.settled().await;
        let again = producer.end(END, true).await;
        assert_eq!((again.error_code, again.producer_id, again.producer_epoch), (0, ended.producer_id, 0), "repeated");

        (producer.id, producer.epoch) = (ended.producer_id, ended.producer_epoch);
        producer.send_when_ready(&topic, 0, &["too"]).await;
        producer.finish(END, true).await;
        assert_eq!(committed_values(&mut producer.broker, &topic).await, ["kept", "too"]);
    });
}

/// TX-05, TX-06, TX-09: an end is answered when it is decided, and the partitions are told behind it. Whatever the
/// producer asks meanwhile is answered CONCURRENT_TRANSACTIONS, and done when it asks again.
#[test]
fn who_goes_on_right_behind_an_end_has_to_come_again() {
    run_with(FakeCluster::builder().marker_delay(Duration::from_millis(5)), async |target| {
        let topic = target.topic(1).await;
        let mut producer = Producer::new(&target).await;
        let mut told_to_come_again = [0; 3];
        for turn in 0..60 {
            producer.add_when_ready(&topic.name, 0).await;
            producer.send_end(PLAIN_END, turn % 2 == 0).await;
            // The next request is there before the end is answered.
            let next = turn % 3;
            match next {
                0 => producer.send_add(&topic.name).await,
                1 => producer.send_end(PLAIN_END, turn % 2 == 0).await,
                _ => producer.send_init().await,
            }

            assert_eq!(producer.receive_end(PLAIN_END).await, "NONE");
            let answer = match next {
                0 => producer.receive_add().await,
                1 => producer.receive_end(PLAIN_END).await,
                _ => producer.receive_init().await,
            };

            match answer {
                "NONE" => {}
                "CONCURRENT_TRANSACTIONS" => told_to_come_again[next] += 1,
                other => panic!("{other}"),
            }
            producer.settled().await;
            producer.begin().await;
        }
        assert!(told_to_come_again.iter().all(|&times| times > 0), "{told_to_come_again:?}");
    });
}
