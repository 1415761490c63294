//! A broker that is connected and does not answer: whatever any broker can answer must not wait for it.

use std::time::Duration;

use krafka::Record;
use krafka::consumer::AutoOffsetReset;
use krafka::testing::FakeCluster;
use krafka_protocol::ApiKey;
use tokio::time::Instant;

use super::client;

/// Long enough to ask two brokers, and well below the request timeout of 30 seconds.
const SOON: Duration = Duration::from_secs(8);

#[tokio::test(start_paused = true)]
async fn metadata_is_asked_of_another_broker() {
    let fake = FakeCluster::builder().nodes(3).topic("orders", 1).start_on_pipes();
    let kafka = client(&fake).connect().await.expect("the fake is up");
    let producer = kafka.producer().build().await.expect("valid");
    let silent = fake.when(ApiKey::Metadata).times(1).silence();
    let start = Instant::now();

    producer.send(Record::new("orders", "a")).await.expect("written");

    assert_eq!(silent.hits(), 1);
    assert!(start.elapsed() < SOON, "it took {:?}", start.elapsed());
}

/// All brokers are slow, none hangs: whoever is asked last is given the time that it needs.
#[tokio::test(start_paused = true)]
async fn metadata_that_is_slow_everywhere_comes_in_the_end() {
    let fake = FakeCluster::builder().nodes(3).topic("orders", 1).start_on_pipes();
    let kafka = client(&fake).connect().await.expect("the fake is up");
    let producer = kafka.producer().build().await.expect("valid");
    fake.when(ApiKey::Metadata).forever().delay(Duration::from_secs(20));

    producer.send(Record::new("orders", "a")).await.expect("written");
}

#[tokio::test(start_paused = true)]
async fn a_coordinator_is_asked_for_at_another_broker() {
    for delay in [None, Some(Duration::from_secs(20))] {
        let fake = FakeCluster::builder().nodes(3).topic("orders", 1).start_on_pipes();
        // The broker that hangs is asked because the client knows it from its start; it neither leads nor coordinates.
        fake.move_leader("orders", 0, 3);
        fake.move_coordinator("g", 3);
        let kafka = client(&fake).connect().await.expect("the fake is up");
        kafka.producer().build().await.expect("valid").send(Record::new("orders", "a")).await.expect("written");
        let rule = match delay {
            None => fake.when(ApiKey::FindCoordinator).times(1).silence(),
            // Slow everywhere: it is given more time with each failure.
            Some(delay) => fake.when(ApiKey::FindCoordinator).forever().delay(delay),
        };
        let consumer = kafka.consumer("g").auto_offset_reset(AutoOffsetReset::Earliest).build().await.expect("valid");
        consumer.subscribe(&["orders"]).await.expect("subscribed");
        let start = Instant::now();

        let records = consumer.poll(Duration::from_secs(120)).await.expect("no error");

        assert_eq!(records.len(), 1, "after {:?}", start.elapsed());
        assert!(delay.is_some() || start.elapsed() < SOON, "it took {:?}", start.elapsed());
        assert!(rule.hits() >= 1);
        let asked = fake.history().of(ApiKey::FindCoordinator).next().map(|event| event.node);
        assert_ne!(asked, Some(3));
    }
}
