//! Flushing, closing, dropping.

use std::time::Duration;

use krafka::{KrafkaError, Record};
use krafka_protocol::ApiKey;

use super::{Stage, cut, enqueue, ms, now, numbers, offsets, record};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn a_flush_does_not_linger() {
    let stage = Stage::new(3).await;
    let producer = stage.producer().linger(30 * SECOND).build().await.expect("valid");
    let handles = enqueue(&producer, 10).await;
    let start = now();

    producer.flush().await.expect("flushed");

    assert!(start.elapsed() < ms(10), "{:?}", start.elapsed());
    assert!(handles.iter().all(krafka::DeliveryHandle::is_done));
}

/// PR-34, trap 37.
#[tokio::test(start_paused = true)]
async fn a_flush_waits_for_earlier_records_only() {
    let stage = Stage::new(1).await;
    let producer = stage.producer().linger(Duration::ZERO).build().await.expect("valid");
    producer.send(record(0)).await.expect("written");
    stage.fake.when(ApiKey::Produce).forever().delay(SECOND);
    let earlier = producer.enqueue(record(1)).await.expect("there is room");
    let start = now();
    let flushing = tokio::spawn({
        let producer = producer.clone();
        async move { producer.flush().await }
    });
    tokio::time::sleep(ms(500)).await;
    let later = producer.enqueue(record(2)).await.expect("there is room");

    flushing.await.expect("no panic").expect("flushed");

    assert!((ms(1_000)..ms(1_100)).contains(&start.elapsed()), "{:?}", start.elapsed());
    assert!(earlier.is_done() && !later.is_done());
    assert_eq!(later.await.expect("written").offset, 2);
}

#[tokio::test(start_paused = true)]
async fn a_flush_among_endless_sends_returns() {
    let stage = Stage::new(3).await;
    let producer = stage.build().await;
    let endless = tokio::spawn({
        let producer = producer.clone();
        async move {
            loop {
                drop(producer.enqueue(Record::new("orders", "x")).await);
                tokio::time::sleep(ms(1)).await;
            }
        }
    });
    tokio::time::sleep(ms(20)).await;

    for _ in 0..10 {
        let start = now();
        producer.flush().await.expect("flushed");
        assert!(start.elapsed() < ms(50), "{:?}", start.elapsed());
    }
    endless.abort();
}

#[tokio::test(start_paused = true)]
async fn flushing_nothing_returns_at_once() {
    let stage = Stage::new(1).await;

    assert!(cut(stage.build().await.flush(), 1).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn closing_delivers_what_was_sent_and_refuses_the_rest() {
    let stage = Stage::new(1).await;
    let producer = stage.producer().linger(30 * SECOND).build().await.expect("valid");
    let clone = producer.clone();
    let handles = enqueue(&producer, 50).await;

    producer.close().await.expect("closed");

    assert_eq!(offsets(handles).await, (0..50).collect::<Vec<_>>());
    // PR-24: to topics that are loaded, and to others.
    for topic in ["orders", "unheard-of"] {
        let error = clone.send(Record::new(topic, "x")).await.expect_err("closed");
        assert!(matches!(error, KrafkaError::Closed { .. }), "{topic}: {error}");
    }
    clone.close().await.expect("closing twice is fine");
    clone.flush().await.expect("and there is nothing to flush");
}

/// BR-052.
#[tokio::test(start_paused = true)]
async fn closing_within_a_time_fails_what_is_left() {
    let stage = Stage::new(1).await;
    let producer = stage.build_single().await;
    producer.send(record(0)).await.expect("written");
    stage.fake.when(ApiKey::Produce).forever().silence();
    let handles = enqueue(&producer, 1_000).await;
    tokio::time::sleep(ms(1)).await;
    let start = now();

    producer.close_within(2 * SECOND).await.expect("closed");

    assert!((2 * SECOND..ms(2_050)).contains(&start.elapsed()), "{:?}", start.elapsed());
    let mut said = Vec::new();
    for handle in handles {
        let error = handle.await.expect_err("never acknowledged");
        assert!(matches!(error, KrafkaError::Closed { .. }), "{error}");
        said.push(error.to_string().contains("may have been written"));
    }
    assert_eq!(said.iter().filter(|perhaps| **perhaps).count(), 5, "five were in flight");
}

#[tokio::test(start_paused = true)]
async fn closing_without_any_broker_ends_by_the_delivery_timeout() {
    let stage = Stage::new(1).await;
    let producer = stage.producer().delivery_timeout(40 * SECOND).build().await.expect("valid");
    producer.send(record(0)).await.expect("written");
    (1..=3).for_each(|node| stage.fake.crash(node));
    let handles = enqueue(&producer, 10).await;
    let start = now();

    producer.close().await.expect("closed");

    assert!(start.elapsed() <= 41 * SECOND, "{:?}", start.elapsed());
    for handle in handles {
        assert!(handle.await.is_err());
    }
}

/// Trap 38: what enqueue accepted is delivered, however it races with close.
#[tokio::test(start_paused = true)]
async fn records_that_race_with_close_are_delivered_or_refused() {
    let stage = Stage::new(3).await;
    let producer = stage.producer().batch_size(300).build().await.expect("valid");
    producer.send(Record::new("orders", "warm")).await.expect("written");
    let tasks: Vec<_> = (0..10)
        .map(|_| {
            let producer = producer.clone();
            tokio::spawn(async move {
                let mut accepted = 0;
                while let Ok(handle) = producer.enqueue(Record::new("orders", "x")).await {
                    drop(handle);
                    accepted += 1;
                    tokio::task::yield_now().await;
                }
                accepted
            })
        })
        .collect();
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }

    producer.close().await.expect("closed");

    let mut accepted = 1;
    for task in tasks {
        accepted += task.await.expect("no panic");
    }
    let written: usize = (0..3).map(|partition| stage.fake.partition_records("orders", partition).len()).sum();
    assert_eq!(written, accepted);
}

/// LC-02: without a close, what was sent is delivered in the background.
#[tokio::test(start_paused = true)]
async fn dropping_the_producer_still_delivers() {
    let stage = Stage::new(1).await;
    let producer = stage.producer().linger(SECOND).build().await.expect("valid");
    let handles = enqueue(&producer, 100).await;

    drop(producer);

    assert_eq!(offsets(handles).await, (0..100).collect::<Vec<_>>());
    assert_eq!(stage.values(0), numbers(100));
}

#[tokio::test(start_paused = true)]
async fn handles_that_nobody_awaits_are_no_matter() {
    let stage = Stage::new(1).await;
    let producer = stage.build().await;

    drop(enqueue(&producer, 100).await);
    producer.close().await.expect("closed");

    assert_eq!(stage.values(0), numbers(100));
}

/// LC-05: nobody waits for a runtime that is gone.
#[test]
fn a_runtime_that_ends_fails_what_is_left() {
    let runtime =
        || tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().expect("one");
    let first = runtime();
    let (producer, handles, _stage) = first.block_on(async {
        let stage = Stage::new(1).await;
        let producer = stage.producer().batch_size(100).build().await.expect("valid");
        producer.send(record(0)).await.expect("written");
        stage.fake.when(ApiKey::Produce).forever().silence();
        let handles = enqueue(&producer, 101).await;
        tokio::time::sleep(ms(1)).await;
        (producer, handles, stage)
    });

    drop(first);

    runtime().block_on(async {
        for handle in handles {
            assert!(matches!(handle.await, Err(KrafkaError::Closed { .. })));
        }
        assert!(matches!(producer.send(record(0)).await, Err(KrafkaError::Closed { .. })));
        producer.flush().await.expect("there is nothing left");
    });
}

/// LC-01.
#[tokio::test(start_paused = true)]
async fn send_flush_and_close_may_be_dropped_at_any_point() {
    for polls in 1..8 {
        let stage = Stage::new(1).await;
        let producer = stage.build().await;
        let total = producer.buffer_available();

        let sent = cut(producer.send(record(0)), polls).await.is_some();
        let handle = producer.enqueue(record(1)).await.expect("there is room");
        let flushed = cut(producer.flush(), polls).await.is_some();
        let mut waiting = handle;
        let _ = cut(&mut waiting, polls).await;
        let closed = cut(producer.close(), polls).await.is_some();
        producer.close().await.expect("closed");

        assert!(waiting.await.is_ok(), "sent {sent}, flushed {flushed}, closed {closed}");
        assert_eq!(stage.values(0).last().map(String::as_str), Some("1"));
        assert_eq!(producer.buffer_available(), total);
    }
}

/// LC-07.
#[tokio::test(start_paused = true)]
async fn one_producer_of_a_handle_may_be_closed() {
    let stage = Stage::new(1).await;
    let (one, two) = (stage.build().await, stage.build().await);
    one.send(record(0)).await.expect("written");

    one.close().await.expect("closed");

    assert_eq!(two.send(record(1)).await.expect("written").offset, 1);
}

/// [`Duration::MAX`] is how Rust says "for ever".
#[tokio::test(start_paused = true)]
async fn for_ever_is_a_time_like_any_other() {
    let stage = Stage::new(1).await;
    let producer = stage.producer().max_block(Duration::MAX).retry_backoff(SECOND, Duration::MAX);
    let producer = producer.build().await.expect("valid");

    producer.send(record(0)).await.expect("written");

    producer.close_within(Duration::MAX).await.expect("closed");
}

#[tokio::test(start_paused = true)]
async fn the_last_producer_of_a_handle_takes_its_connections_with_it() {
    let stage = Stage::new(1).await;
    let leader = stage.fake.leader("orders", 0).expect("a leader");
    let (one, two) = (stage.build().await, stage.build().await);
    one.send(record(0)).await.expect("written");
    two.send(record(1)).await.expect("written");
    let both = stage.fake.connections(leader);

    one.close().await.expect("closed");
    tokio::time::sleep(ms(10)).await;
    let second = stage.fake.connections(leader);
    two.close().await.expect("closed");
    tokio::time::sleep(ms(10)).await;

    assert_eq!(second, both, "the other producer writes on");
    assert_eq!(stage.fake.connections(leader), both - 1);
}
