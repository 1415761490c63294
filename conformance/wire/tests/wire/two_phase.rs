//! Two-phase commits (KIP-939): what of them a broker has that speaks unstable versions, and to whom it grants that.
//!
//! A real cluster must have `unstable.api.versions.enable`, and `transaction.two.phase.commit.enable` where the tests
//! run on the secured one: `just agreements` starts them so.

use std::time::Duration;

use krafka_fake_broker::{FakeClusterBuilder, KafkaVersion};
use krafka_protocol::api::init_producer_id::{InitProducerIdRequest, InitProducerIdResponse};
use krafka_protocol::{ErrorCode, Str};

use crate::acls::{TRANSACTIONAL_ID, WRITE, allow, create};
use crate::secured::{self, Secured};
use crate::target::{Target, Wire, run, run_on_unstable};
use crate::transactional::{PRODUCE, Producer};

/// The first version of InitProducerId that has two phases.
const INIT: i16 = 6;
/// The operation of access rules.
const TWO_PHASE_COMMIT: i8 = 15;

/// Runs a test where two phases are allowed.
fn run_with_two_phases(test: impl AsyncFnOnce(Secured)) {
    let settings = |builder: FakeClusterBuilder| builder.unstable_api_versions(true).two_phase_commit(true);
    secured::run_with(settings, async |secured| {
        since_two_phases(&secured.target).await;
        test(secured).await;
    });
}

async fn since_two_phases(target: &Target) {
    target.since(KafkaVersion::V4_1, "InitProducerId 6").await;
}

fn two_phases(name: &Str) -> InitProducerIdRequest {
    InitProducerIdRequest {
        transactional_id: Some(name.clone()),
        transaction_timeout_ms: 60_000,
        producer_id: -1,
        producer_epoch: -1,
        enable2_pc: true,
        keep_prepared_txn: false,
    }
}

/// Asks until a coordinator has read its log and no transaction is about to end.
async fn init(wire: &mut Wire, request: &InitProducerIdRequest) -> InitProducerIdResponse {
    let busy = [
        ErrorCode::CONCURRENT_TRANSACTIONS,
        ErrorCode::COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode::COORDINATOR_NOT_AVAILABLE,
        ErrorCode::NOT_COORDINATOR,
    ];
    loop {
        let answer = wire.call(request.clone(), INIT).await;
        if !busy.contains(&ErrorCode(answer.error_code)) {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn refusal(wire: &mut Wire, request: &InitProducerIdRequest) -> &'static str {
    let answer = init(wire, request).await;
    assert_eq!((answer.producer_id, answer.producer_epoch), (-1, -1));
    assert_eq!((answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch), (-1, -1));
    ErrorCode(answer.error_code).name()
}

/// A producer whose transactions are parts of two-phase commits.
async fn participant(target: &Target, timeout_ms: i32) -> Producer {
    let mut producer = Producer::new(target).await;
    let request = InitProducerIdRequest { transaction_timeout_ms: timeout_ms, ..two_phases(&producer.name) };
    let answer = init(&mut producer.coordinator, &request).await;
    assert_eq!(ErrorCode(answer.error_code), ErrorCode::NONE);
    assert_eq!((answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch), (-1, -1));
    (producer.id, producer.epoch) = (answer.producer_id, answer.producer_epoch);
    producer
}

/// FI-09d, TX-36. The coordinator looks every ten seconds for transactions that are too old.
#[test]
fn no_timeout_aborts_a_transaction_of_two_phases() {
    run_with_two_phases(async |secured| {
        let topic = secured.target.topic(1).await;
        let mut prepared = participant(&secured.target, 100).await;
        let mut plain = Producer::with_timeout(&secured.target, 100).await;
        prepared.send(PRODUCE, &topic, 0, &["prepared"]).await.expect("it is open");
        plain.send(PRODUCE, &topic, 0, &["late"]).await.expect("it is open");
        assert_eq!(prepared.describe().await.transaction_timeout_ms, i32::MAX);

        while &*plain.describe().await.transaction_state != "CompleteAbort" {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }

        assert_eq!(&*prepared.describe().await.transaction_state, "Ongoing");
        assert_eq!(prepared.ends(5, true).await, "NONE");
        assert_eq!(&*prepared.settled().await.transaction_state, "CompleteCommit");
    });
}

/// The time that is asked for is not looked at, as there is none.
#[test]
fn timeout_of_two_phases_may_be_anything() {
    run_with_two_phases(async |secured| {
        for timeout_ms in [0, -1, i32::MAX] {
            let mut producer = participant(&secured.target, timeout_ms).await;
            assert_eq!(producer.describe().await.transaction_timeout_ms, i32::MAX, "{timeout_ms}");
        }
    });
}

/// Kafka 4.4 has no way yet to take over what was prepared: whoever comes next aborts it.
#[test]
fn next_producer_aborts_what_was_prepared() {
    run_with_two_phases(async |secured| {
        let topic = secured.target.topic(1).await;
        let mut prepared = participant(&secured.target, 60_000).await;
        prepared.send(PRODUCE, &topic, 0, &["prepared"]).await.expect("it is open");
        let mut next = prepared.twin(&secured.target).await;

        let answer = next.coordinator.call(two_phases(&prepared.name), INIT).await;
        assert_eq!(ErrorCode(answer.error_code), ErrorCode::CONCURRENT_TRANSACTIONS);
        let answer = init(&mut next.coordinator, &two_phases(&prepared.name)).await;

        assert_eq!(answer.error_code, 0);
        assert_eq!(answer.producer_id, prepared.id);
        assert_eq!((answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch), (-1, -1));
        assert_eq!(prepared.ends(5, true).await, "PRODUCER_FENCED");
    });
}

/// Who asks without two phases has a timeout again.
#[test]
fn two_phases_are_given_up_by_the_next_claim() {
    run_with_two_phases(async |secured| {
        let mut producer = participant(&secured.target, 60_000).await;

        producer.begin().await;

        assert_eq!(producer.describe().await.transaction_timeout_ms, 60_000);
    });
}

#[test]
fn transaction_that_was_prepared_is_not_kept() {
    run_with_two_phases(async |secured| {
        let mut producer = participant(&secured.target, 60_000).await;
        let keep = InitProducerIdRequest { keep_prepared_txn: true, ..two_phases(&producer.name) };
        let late = InitProducerIdRequest { enable2_pc: false, transaction_timeout_ms: 0, ..keep.clone() };
        let empty = InitProducerIdRequest { transactional_id: Some(Str::default()), ..keep.clone() };
        let half = InitProducerIdRequest { producer_id: 1, ..keep.clone() };
        let wire = &mut producer.coordinator;

        assert_eq!(refusal(wire, &keep).await, "UNSUPPORTED_VERSION");
        assert_eq!(refusal(wire, &late).await, "UNSUPPORTED_VERSION", "before the timeout is looked at");
        assert_eq!(refusal(wire, &empty).await, "INVALID_REQUEST");
        assert_eq!(refusal(wire, &half).await, "INVALID_REQUEST");
    });
}

/// Producers without a transactional id have no transactions, in whatever phases.
#[test]
fn idempotent_producers_may_ask_for_anything() {
    run_on_unstable(async |target| {
        since_two_phases(&target).await;
        let request =
            InitProducerIdRequest { transactional_id: None, keep_prepared_txn: true, ..two_phases(&Str::default()) };

        let answer = init(&mut target.connect().await, &request).await;

        assert_eq!((answer.error_code, answer.producer_epoch), (0, 0));
        assert_eq!((answer.ongoing_txn_producer_id, answer.ongoing_txn_producer_epoch), (-1, -1));
    });
}

/// Nobody may, whatever the access rules say, unless the brokers' own configs allow it.
#[test]
fn two_phases_are_not_allowed_by_default() {
    run_on_unstable(async |target| {
        since_two_phases(&target).await;
        let name = target.fresh("transactional");
        let wire = &mut target.transaction_coordinator(&name).await;
        let asks = two_phases(&name);
        let keeps = InitProducerIdRequest { keep_prepared_txn: true, transaction_timeout_ms: 0, ..asks.clone() };
        let plain = InitProducerIdRequest { enable2_pc: false, ..asks.clone() };
        let endless = InitProducerIdRequest { transaction_timeout_ms: i32::MAX, ..plain.clone() };

        assert_eq!(refusal(wire, &asks).await, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED");
        assert_eq!(refusal(wire, &keeps).await, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED");
        assert_eq!(refusal(wire, &endless).await, "INVALID_TRANSACTION_TIMEOUT");
        assert_eq!(init(wire, &plain).await.error_code, 0);
    });
}

#[test]
fn two_phases_need_a_right_of_their_own() {
    run_with_two_phases(async |secured| {
        let (name, other) = (secured.target.fresh("transactional"), secured.target.fresh("transactional"));
        let rules = vec![
            allow(TRANSACTIONAL_ID, &name, WRITE),
            allow(TRANSACTIONAL_ID, &name, TWO_PHASE_COMMIT),
            allow(TRANSACTIONAL_ID, &other, WRITE),
        ];
        create(&mut secured.login("admin").await, rules).await;
        // Their topic must be there, which alice may not have made.
        drop((
            secured.target.transaction_coordinator(&name).await,
            secured.target.transaction_coordinator(&other).await,
        ));
        let alice = &mut secured.login("alice").await;

        assert_eq!(init(alice, &two_phases(&name)).await.error_code, 0);
        assert_eq!(refusal(alice, &two_phases(&other)).await, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED");
        let plain = InitProducerIdRequest { enable2_pc: false, ..two_phases(&other) };
        assert_eq!(init(alice, &plain).await.error_code, 0);
    });
}

#[test]
fn unstable_versions_are_not_spoken_by_default() {
    run(async |target| {
        let mut wire = target.connect().await;

        wire.send(two_phases(&target.fresh("transactional")), INIT).await;

        assert!(wire.is_closed().await);
    });
}
