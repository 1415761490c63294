//! What closing a consumer waits for, and what it leaves behind.

use std::time::Duration;

use krafka::consumer::AutoOffsetReset;
use krafka_protocol::{ApiKey, FetchRequest};

use super::{SOON, World, take};

/// How long a message is on its way, there or back, in the tests below.
const WAY: Duration = Duration::from_millis(20);

async fn connections(world: &World) -> Vec<usize> {
    // What was closed at one end is noticed at the other a moment later.
    tokio::time::sleep(Duration::from_millis(10)).await;
    (1..=3).map(|node| world.fake.connections(node)).collect()
}

#[tokio::test(start_paused = true)]
async fn closing_does_not_wait_for_a_parked_fetch() {
    let world = World::new(&[("t", 3)]).await;
    let builder = world.kafka.consumer("g").auto_offset_reset(AutoOffsetReset::Earliest);
    let consumer = builder.fetch_max_wait(Duration::from_secs(20)).build().await.expect("the settings are valid");
    consumer.subscribe(&["t"]).await.expect("subscribed");
    world.produce("t", 0, &["a"]).await;
    take(&consumer, 1).await;
    let _slow = [ApiKey::OffsetCommit, ApiKey::LeaveGroup].map(|api| world.fake.when(api).forever().delay(WAY));
    let begin = tokio::time::Instant::now();

    consumer.close().await.expect("closed");

    let took = begin.elapsed();
    assert!(took <= 3 * WAY, "closing took {took:?}, a commit and a farewell take {:?}", 2 * WAY);
    let history = world.fake.history();
    let epochs: Vec<_> = history.requests::<FetchRequest>().map(|fetch| fetch.session_epoch).collect();
    assert_eq!(epochs.last(), Some(&-1), "the broker that was heard of is told: {epochs:?}");
}

#[tokio::test(start_paused = true)]
async fn closing_does_not_wait_for_a_broker_that_is_silent() {
    let world = World::new(&[("t", 1)]).await;
    let consumer = world.reader("t", &[0]).await;
    consumer.poll(SOON).await.expect("no error");
    let _silent = world.fake.when(ApiKey::Fetch).forever().silence();
    let begin = tokio::time::Instant::now();

    consumer.close().await.expect("closed");

    assert!(begin.elapsed() <= Duration::from_secs(1), "{:?}", begin.elapsed());
}

#[tokio::test(start_paused = true)]
async fn closing_and_dropping_release_the_connections() {
    for is_closed in [true, false] {
        let world = World::new(&[("t", 3)]).await;
        // Those that the handle shares: opened by a consumer that is no more.
        let first = world.reader("t", &[0, 1, 2]).await;
        first.poll(SOON).await.expect("no error");
        first.close().await.expect("closed");
        let before = connections(&world).await;

        let builder = world.kafka.consumer("g").auto_offset_reset(AutoOffsetReset::Earliest);
        let consumer = builder.build().await.expect("the settings are valid");
        consumer.subscribe(&["t"]).await.expect("subscribed");
        world.produce("t", 0, &["a"]).await;
        take(&consumer, 1).await;
        let during = connections(&world).await;
        if is_closed {
            consumer.close().await.expect("closed");
        }
        drop(consumer);
        let after = connections(&world).await;

        assert_eq!(after, before, "is_closed: {is_closed}");
        assert!(before.iter().zip(&during).all(|(before, during)| before < during), "{before:?} {during:?}");
    }
}
