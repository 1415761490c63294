//! Leaders move, answers are lost, brokers refuse: each record arrives once and in order, or its handle says why not.

use std::time::Duration;

use krafka::testing::Damage;
use krafka::{ErrorCode, KrafkaError, Record};
use krafka_protocol::records::BatchHeader;
use krafka_protocol::{AnyRequest, ApiKey, ProduceRequest};

use super::{Stage, enqueue, ms, now, numbers, offsets, record};

const SECOND: Duration = Duration::from_secs(1);

fn in_order(count: usize) -> Vec<i64> {
    (0..count as i64).collect()
}

/// LE-01, seen from both ends.
#[tokio::test(start_paused = true)]
async fn a_leader_that_moves_in_mid_flight_loses_and_repeats_nothing() {
    let stage = Stage::new(1).await;
    let producer = stage.producer().batch_size(200).build().await.expect("valid");
    let mut handles = Vec::new();

    for n in 0..1_000 {
        handles.push(producer.enqueue(record(n)).await.expect("there is room"));
        if n % 200 == 100 {
            tokio::time::sleep(ms(1)).await;
            let next = stage.fake.leader("orders", 0).expect("it has one") % 3 + 1;
            stage.fake.move_leader("orders", 0, next);
        }
    }

    assert_eq!(offsets(handles).await, in_order(1_000));
    assert_eq!(stage.values(0), numbers(1_000));
}

#[tokio::test(start_paused = true)]
async fn a_hint_saves_the_metadata_request_and_the_wait() {
    let stage = Stage::new(1).await;
    let producer = stage.build().await;
    producer.send(record(0)).await.expect("written");
    let next = stage.fake.leader("orders", 0).expect("it has one") % 3 + 1;
    stage.fake.move_leader("orders", 0, next);
    let (asked, start) = (stage.fake.history().count(ApiKey::Metadata), now());

    producer.send(record(1)).await.expect("written");

    assert_eq!(stage.fake.history().count(ApiKey::Metadata), asked);
    assert!(start.elapsed() < ms(50), "{:?}", start.elapsed());
}

/// LE-03: a broker that insists on the wrong leader is not asked at the speed of the network.
#[tokio::test(start_paused = true)]
async fn a_broker_that_is_no_leader_for_a_while_is_not_hammered() {
    let stage = Stage::new(1).await;
    let producer = stage.build().await;
    let rule = stage.fake.when(ApiKey::Produce).forever().reply_error(ErrorCode::NOT_LEADER_OR_FOLLOWER);
    let handle = producer.enqueue(record(0)).await.expect("there is room");
    tokio::time::sleep(5 * SECOND).await;

    let tries = rule.hits();
    rule.remove();

    assert!((6..=14).contains(&tries), "{tries} tries in 5 s");
    assert_eq!(handle.await.expect("written").offset, 0);
}

/// PR-06: the answer is lost, not the record; it is acknowledged at its first offset.
#[tokio::test(start_paused = true)]
async fn a_lost_answer_does_not_write_twice() {
    let stage = Stage::new(1).await;
    let producer = stage.producer().batch_size(100).build().await.expect("valid");
    let lost = stage.fake.when(ApiKey::Produce).nth(3).times(2).after_handling().drop_connection();

    let handles = enqueue(&producer, 200).await;

    assert_eq!(offsets(handles).await, in_order(200));
    assert_eq!(stage.values(0), numbers(200));
    assert_eq!(lost.hits(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_lost_request_is_sent_again() {
    let stage = Stage::new(1).await;
    let producer = stage.producer().batch_size(100).build().await.expect("valid");
    stage.fake.when(ApiKey::Produce).nth(2).times(3).drop_connection();

    let handles = enqueue(&producer, 200).await;

    assert_eq!(offsets(handles).await, in_order(200));
    assert_eq!(stage.values(0), numbers(200));
}

/// PR-07: appended, and then the followers did not come.
#[tokio::test(start_paused = true)]
async fn a_timeout_after_the_append_does_not_write_twice() {
    for code in [ErrorCode::REQUEST_TIMED_OUT, ErrorCode::NOT_ENOUGH_REPLICAS_AFTER_APPEND] {
        let stage = Stage::new(1).await;
        let producer = stage.producer().batch_size(100).build().await.expect("valid");
        stage.fake.when(ApiKey::Produce).times(3).after_handling().reply_error(code);

        let handles = enqueue(&producer, 100).await;

        assert_eq!(offsets(handles).await, in_order(100), "{code}");
        assert_eq!(stage.values(0), numbers(100), "{code}");
    }
}

/// PR-05 and PR-09, with a broker that checks sequences.
#[tokio::test(start_paused = true)]
async fn a_first_batch_that_fails_keeps_its_place() {
    let codes = [
        ErrorCode::NOT_ENOUGH_REPLICAS,
        ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode::UNKNOWN_PRODUCER_ID,
        ErrorCode::INVALID_PRODUCER_EPOCH,
        ErrorCode::KAFKA_STORAGE_ERROR,
        ErrorCode::CORRUPT_MESSAGE,
    ];
    for code in codes {
        let stage = Stage::new(1).await;
        let producer = stage.producer().batch_size(100).build().await.expect("valid");
        let rule = stage.fake.when(ApiKey::Produce).nth(2).reply_error(code);

        let handles = enqueue(&producer, 200).await;

        assert_eq!(offsets(handles).await, in_order(200), "{code}");
        assert_eq!(stage.values(0), numbers(200), "{code}");
        assert_eq!(rule.hits(), 1, "{code}");
    }
}

/// A partition takes any sequence from a producer that it does not know (KIP-360): were more than one batch on its
/// way, the second would be taken in the first one's place.
#[tokio::test(start_paused = true)]
async fn the_very_first_batch_that_fails_keeps_its_place() {
    for code in [ErrorCode::NOT_LEADER_OR_FOLLOWER, ErrorCode::NOT_ENOUGH_REPLICAS] {
        let stage = Stage::new(1).await;
        let producer = stage.producer().batch_size(100).build().await.expect("valid");
        let rule = stage.fake.when(ApiKey::Produce).nth(1).reply_error(code);

        let handles = enqueue(&producer, 200).await;

        assert_eq!(offsets(handles).await, in_order(200), "{code}");
        assert_eq!(stage.values(0), numbers(200), "{code}");
        assert_eq!(rule.hits(), 1, "{code}");
    }
}

/// Trap 28: what follows a refused batch is written, and only then acknowledged.
#[tokio::test(start_paused = true)]
async fn a_refused_batch_fails_alone() {
    let stage = Stage::new(1).await;
    let producer = stage.build_single().await;
    stage.fake.when(ApiKey::Produce).nth(2).reply_error(ErrorCode::INVALID_RECORD);

    let mut failed = Vec::new();
    for (n, handle) in enqueue(&producer, 20).await.into_iter().enumerate() {
        if let Err(error) = handle.await {
            assert!(matches!(error, KrafkaError::Broker { code: ErrorCode::INVALID_RECORD, .. }), "{error}");
            failed.push(n.to_string());
        }
    }

    assert_eq!(failed.len(), 1);
    let expected: Vec<_> = numbers(20).into_iter().filter(|value| *value != failed[0]).collect();
    assert_eq!(stage.values(0), expected);
    assert_eq!(producer.metrics().epoch_bumps, 1);
}

/// One of the four faults that this project is named for.
#[tokio::test(start_paused = true)]
async fn a_fenced_epoch_is_survived_again_and_again() {
    let stage = Stage::new(3).await;
    let producer = stage.build().await;

    for n in 0..5 {
        stage.fake.when(ApiKey::Produce).fence_epoch();
        let handles = enqueue(&producer, 10).await;
        assert_eq!(offsets(handles).await, (n * 10..n * 10 + 10).collect::<Vec<_>>());
    }
}

/// PR-15: whatever the broker's limit is, what fits by itself arrives, and in order.
#[tokio::test(start_paused = true)]
async fn batches_are_split_until_they_fit() {
    let stage = Stage::new(1).await;
    let producer = stage.producer().batch_size(100_000).build().await.expect("valid");
    let is_large = |request: &AnyRequest| {
        let AnyRequest::Produce(request) = request else { return false };
        let records = request.topic_data.iter().flat_map(|topic| &topic.partition_data);
        records.flat_map(|data| &data.records).any(|records| records.len() > 1_500)
    };
    stage.fake.when(ApiKey::Produce).matching(is_large).forever().reply_error(ErrorCode::MESSAGE_TOO_LARGE);
    let mut handles = Vec::new();
    for n in 0..64 {
        let size = if n == 40 { 2_000 } else { 1_000 };
        let value = format!("{n:0size$}");
        handles.push(producer.enqueue(Record::new("orders", value)).await.expect("there is room"));
    }

    let mut failed = Vec::new();
    for (n, handle) in handles.into_iter().enumerate() {
        if let Err(error) = handle.await {
            failed.push((n, error.to_string()));
        }
    }

    let arrived: Vec<_> = stage.values(0).iter().map(|value| value.trim_start_matches('0').to_owned()).collect();
    let expected: Vec<_> =
        (0..64).filter(|n| *n != 40).map(|n| n.to_string().trim_start_matches('0').to_owned()).collect();
    assert_eq!(arrived, expected);
    assert_eq!(failed.len(), 1);
    assert!(failed[0].0 == 40 && failed[0].1.contains("max.message.bytes"), "{failed:?}");
}

/// BR-041: the bytes of a compressed batch that is sent again are the same ones.
#[tokio::test(start_paused = true)]
async fn a_batch_that_is_sent_again_is_the_same_to_the_byte() {
    let stage = Stage::new(1).await;
    let producer = stage.producer().compression(krafka::Compression::Gzip).build().await.expect("valid");
    stage.fake.when(ApiKey::Produce).times(3).reply_error(ErrorCode::NOT_ENOUGH_REPLICAS);

    let handles = enqueue(&producer, 500).await;
    offsets(handles).await;

    let history = stage.fake.history();
    let sent: Vec<_> = history
        .requests::<ProduceRequest>()
        .map(|request| request.topic_data[0].partition_data[0].records.clone())
        .collect();
    assert_eq!(sent.len(), 4);
    assert!(sent.windows(2).all(|pair| pair[0] == pair[1]));
}

/// LE-19.
#[tokio::test(start_paused = true)]
async fn an_election_is_waited_out() {
    let stage = Stage::new(1).await;
    let producer = stage.build().await;
    let leader = stage.fake.leader("orders", 0).expect("it has one");
    let unavailable = stage.fake.when(ApiKey::Produce).forever().reply_error(ErrorCode::LEADER_NOT_AVAILABLE);
    let handle = producer.enqueue(record(0)).await.expect("there is room");
    tokio::time::sleep(3 * SECOND).await;

    unavailable.remove();
    stage.fake.move_leader("orders", 0, leader % 3 + 1);

    assert_eq!(handle.await.expect("written").offset, 0);
}

#[tokio::test(start_paused = true)]
async fn a_crashed_leader_is_left_and_met_again() {
    let stage = Stage::new(3).await;
    let producer = stage.producer().batch_size(300).build().await.expect("valid");
    let mut handles = Vec::new();
    for n in 0..600 {
        handles.push(producer.enqueue(Record::new("orders", format!("{n}")).key(format!("{n}"))).await.expect("room"));
        match n {
            150 => stage.fake.crash(2),
            300 => stage.fake.restart(2),
            450 => stage.fake.crash(3),
            _ => {}
        }
        if n % 50 == 0 {
            tokio::time::sleep(ms(40)).await;
        }
    }

    for handle in handles {
        handle.await.expect("acknowledged");
    }

    let mut all: Vec<usize> =
        (0..3).flat_map(|partition| stage.values(partition)).map(|value| value.parse().expect("a number")).collect();
    all.sort_unstable();
    assert_eq!(all, (0..600).collect::<Vec<_>>());
}

/// PR-12, PR-14: nobody was ever reached.
#[tokio::test(start_paused = true)]
async fn a_record_that_never_left_says_so() {
    let stage = Stage::new(1).await;
    let builder = stage.producer().delivery_timeout(40 * SECOND);
    let producer = builder.build().await.expect("valid");
    producer.send(record(0)).await.expect("written");
    (1..=3).for_each(|node| stage.fake.crash(node));
    tokio::time::sleep(ms(10)).await;
    let start = now();

    let error = producer.send(record(1)).await.expect_err("nobody is there");

    assert!(matches!(error, KrafkaError::DeliveryTimeout { possibly_written: false, .. }), "{error}");
    assert!(error.to_string().contains("delivery_timeout"), "{error}");
    assert!((40 * SECOND..41 * SECOND).contains(&start.elapsed()), "{:?}", start.elapsed());
}

/// PR-11.
#[tokio::test(start_paused = true)]
async fn a_record_without_an_answer_says_that_it_may_have_been_written() {
    let stage = Stage::new(1).await;
    let producer = stage.producer().delivery_timeout(40 * SECOND).build().await.expect("valid");
    let silence = stage.fake.when(ApiKey::Produce).forever().after_handling().silence();
    let start = now();

    let error = producer.send(record(0)).await.expect_err("nobody answers");

    assert!(matches!(error, KrafkaError::DeliveryTimeout { possibly_written: true, .. }), "{error}");
    assert!((40 * SECOND..41 * SECOND).contains(&start.elapsed()), "{:?}", start.elapsed());
    silence.remove();
    producer.send(record(1)).await.expect("the producer goes on");
    assert_eq!(stage.values(0).iter().filter(|value| *value == "1").count(), 1);
}

/// The doubt of an earlier attempt stays with a batch that expires while it waits to be sent again.
#[tokio::test(start_paused = true)]
async fn a_record_whose_answer_was_lost_says_so_though_it_expires_unsent() {
    let stage = Stage::new(1).await;
    let producer = stage.producer().delivery_timeout(40 * SECOND).build().await.expect("valid");
    let lost = stage.fake.when(ApiKey::Produce).nth(1).after_handling().drop_connection();

    let sending = producer.enqueue(record(0)).await.expect("there is room");
    lost.wait(1).await;
    stage.fake.nodes().into_iter().for_each(|node| stage.fake.crash(node));
    let error = sending.await.expect_err("nobody answers any more");

    assert_eq!(stage.values(0), ["0"], "it was written");
    assert!(matches!(error, KrafkaError::DeliveryTimeout { possibly_written: true, .. }), "{error}");
}

/// PR-19, BR-056.
#[tokio::test(start_paused = true)]
async fn an_id_is_asked_for_until_it_comes() {
    let stage = Stage::new(1).await;
    stage.fake.when(ApiKey::InitProducerId).times(2).reply_error(ErrorCode::COORDINATOR_LOAD_IN_PROGRESS);
    stage.fake.when(ApiKey::InitProducerId).nth(3).drop_connection();
    let producer = stage.build().await;

    assert_eq!(producer.send(record(0)).await.expect("written").offset, 0);
    assert_eq!(stage.fake.history().count(ApiKey::InitProducerId), 4);
}

#[tokio::test(start_paused = true)]
async fn without_permission_for_an_id_the_error_names_the_way_out() {
    let stage = Stage::new(1).await;
    stage.fake.when(ApiKey::InitProducerId).forever().reply_error(ErrorCode::CLUSTER_AUTHORIZATION_FAILED);
    let producer = stage.build().await;
    let start = now();

    let error = producer.send(record(0)).await.expect_err("not allowed");

    assert!(error.to_string().contains("idempotent(false)"), "{error}");
    assert!(start.elapsed() < SECOND);
    let plain = stage.producer().idempotent(false).build().await.expect("valid");
    assert_eq!(plain.send(record(0)).await.expect("written").offset, 0);
}

/// PR-31.
#[tokio::test(start_paused = true)]
async fn a_forbidden_topic_fails_its_own_records_only() {
    let stage = Stage::new(1).await;
    stage.fake.create_topic("secrets", 1);
    stage.fake.when(ApiKey::Produce).topic("secrets").forever().reply_error(ErrorCode::TOPIC_AUTHORIZATION_FAILED);
    let producer = stage.build().await;

    let secret = producer.send(Record::new("secrets", "x")).await.expect_err("forbidden");
    let order = producer.send(record(0)).await;

    assert!(matches!(secret, KrafkaError::Broker { code: ErrorCode::TOPIC_AUTHORIZATION_FAILED, .. }), "{secret}");
    assert_eq!(order.expect("written").offset, 0);
}

/// PR-22.
#[tokio::test(start_paused = true)]
async fn a_topic_that_is_created_again_is_written_to_from_the_start() {
    let stage = Stage::new(1).await;
    let producer = stage.build().await;
    offsets(enqueue(&producer, 30).await).await;

    stage.fake.delete_topic("orders");
    stage.fake.create_topic("orders", 1);
    let handles = enqueue(&producer, 20).await;

    assert_eq!(offsets(handles).await, in_order(20));
    assert_eq!(stage.values(0), numbers(20));
}

/// TH: silence is kept on the connection, and nobody is told a timeout for it.
#[tokio::test(start_paused = true)]
async fn a_throttle_slows_down_and_loses_nothing() {
    let stage = Stage::new(1).await;
    let producer = stage.producer().batch_size(100).build().await.expect("valid");
    stage.fake.when(ApiKey::Produce).times(3).throttle(2 * SECOND);
    let start = now();

    let handles = enqueue(&producer, 200).await;

    assert_eq!(offsets(handles).await, in_order(200));
    assert!(start.elapsed() >= 2 * SECOND, "{:?}", start.elapsed());
    assert_eq!(producer.metrics().retries, 0);
}

/// TH-03: what a throttle lets expire says so.
#[tokio::test(start_paused = true)]
async fn a_record_that_expires_in_a_throttle_says_whose_it_is() {
    let stage = Stage::new(1).await;
    let producer = stage.producer().delivery_timeout(40 * SECOND).build().await.expect("valid");
    stage.fake.when(ApiKey::Produce).times(1).throttle(200 * SECOND);
    producer.send(record(0)).await.expect("it is written before the silence");

    let error = producer.send(record(1)).await.expect_err("nothing is sent for 200 s");

    let leader = stage.fake.leader("orders", 0).expect("it has one");
    let text = error.to_string();
    for words in ["it was never sent", &format!("broker {leader} at"), "throttles this client", "160s more"] {
        assert!(text.contains(words), "{text} lacks {words}");
    }
    assert!(matches!(error, KrafkaError::DeliveryTimeout { possibly_written: false, .. }), "{error:?}");
}

/// PR-16, BR-046.
#[tokio::test(start_paused = true)]
async fn the_record_that_is_refused_is_told_apart_from_its_batch() {
    use krafka_protocol::AnyResponse;
    use krafka_protocol::api::produce::BatchIndexAndErrorMessage;
    let stage = Stage::new(1).await;
    let producer = stage.build().await;
    stage.fake.when(ApiKey::Produce).edit(|response| {
        let AnyResponse::Produce(response) = response else { return };
        let answer = &mut response.responses[0].partition_responses[0];
        answer.error_code = ErrorCode::INVALID_RECORD.0;
        answer.record_errors =
            vec![BatchIndexAndErrorMessage { batch_index: 1, batch_index_error_message: Some("bad".into()) }];
    });

    let mut errors = Vec::new();
    for handle in enqueue(&producer, 3).await {
        errors.push(handle.await.expect_err("refused").to_string());
    }

    assert!(errors[1].contains("bad") && !errors[0].contains("refuses the record: bad"), "{errors:?}");
    assert!(errors[0].contains("can be sent again") && errors[0] == errors[2], "{errors:?}");
}

/// BY-10: the records are in the log, and only the answer was damaged: whoever sends them again is to know.
#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_decode_leaves_a_record_in_doubt() {
    let stage = Stage::new(1).await;
    let producer = stage.build().await;
    producer.send(Record::new("orders", "first")).await.expect("written");
    // The length of the list of topics, behind the frame's length and the header.
    let damage = Damage::Flip { at: Some(9), mask: 0x7c };
    stage.fake.when(ApiKey::Produce).times(1).after_handling().damage(damage);

    let error = producer.send(Record::new("orders", "second")).await.expect_err("nobody can read the answer");

    let text = error.to_string();
    assert!(matches!(error, KrafkaError::Protocol { .. }), "{error:?}");
    assert!(text.contains("does not decode") && text.contains("the record may have been written"), "{text}");
    assert_eq!(stage.values(0).len(), 2, "it was");
}

/// PR-03.
#[tokio::test(start_paused = true)]
async fn a_flush_of_twenty_partitions_is_one_request_for_each_broker() {
    let stage = Stage::new(20).await;
    let producer = stage.producer().linger(10 * SECOND).build().await.expect("valid");
    for partition in 0..20 {
        producer.send(Record::new("orders", "warm").partition(partition)).await.expect("written");
    }
    let before = producer.metrics().requests;
    for partition in 0..20 {
        drop(producer.enqueue(Record::new("orders", "x").partition(partition)).await.expect("there is room"));
    }

    producer.flush().await.expect("flushed");

    assert_eq!(producer.metrics().requests - before, 3);
}

/// PR-21, BR-014: brokers see one gap-free sequence under each epoch.
#[tokio::test(start_paused = true)]
async fn sequences_count_records_without_a_gap() {
    let stage = Stage::new(1).await;
    let producer = stage.producer().batch_size(300).build().await.expect("valid");
    offsets(enqueue(&producer, 300).await).await;

    let history = stage.fake.history();
    let mut next = 0;
    for request in history.requests::<ProduceRequest>() {
        let records = request.topic_data[0].partition_data[0].records.clone().expect("one batch");
        let header = BatchHeader::peek(&records).expect("a whole batch");
        assert_eq!(header.base_sequence, next);
        next += header.count;
    }
    assert_eq!(next, 300);
}
