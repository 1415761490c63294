//! Providers of tokens and keys that are down, or bring nothing of use: they are left alone, ever longer.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use krafka::testing::{FakeCluster, SecurityProtocol};
use krafka::{BearerToken, Kafka, ProvidingToken, Record, TokenProvider};
use tokio::time::sleep;
use tracing::Level;

use super::client;
use super::observed::Observed;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
/// A time that no test reaches.
const LATE_MS: i64 = 4_000_000_000_000;

/// Brings tokens of a minute, but not while it is down.
#[derive(Clone, Default)]
struct Vault {
    asked: Arc<AtomicU32>,
    is_down: Arc<std::sync::atomic::AtomicBool>,
}

impl Vault {
    fn asked(&self) -> u32 {
        self.asked.load(Ordering::Relaxed)
    }
}

impl TokenProvider for Vault {
    fn token(&self) -> ProvidingToken<'_> {
        Box::pin(async {
            self.asked.fetch_add(1, Ordering::Relaxed);
            match self.is_down.load(Ordering::Relaxed) {
                true => Err("the vault is sealed".into()),
                false => Ok(BearerToken::new("t0ken").expires_at(SystemTime::now() + MINUTE)),
            }
        })
    }
}

/// A cluster whose sessions take a minute, and a client with tokens of the vault.
async fn opened(vault: &Vault) -> (FakeCluster, Kafka) {
    let fake = FakeCluster::builder()
        .nodes(3)
        .topic("orders", 3)
        .listener(SecurityProtocol::SaslPlaintext)
        .oauthbearer_token("t0ken", "alice", LATE_MS)
        .connections_max_reauth(MINUTE)
        .start_on_pipes();
    let kafka = client(&fake).sasl_oauthbearer(vault.clone()).connect().await.expect("it is up");
    (fake, kafka)
}

/// AU-10: with a producer and a consumer that never rest, an outage of ten minutes is some requests and one line.
#[tokio::test(start_paused = true)]
async fn a_provider_that_is_down_is_not_flooded() {
    let (log, _guard) = Observed::start();
    let vault = Vault::default();
    let (fake, kafka) = opened(&vault).await;
    let producer = kafka.producer().delivery_timeout(60 * MINUTE).build().await.expect("valid");
    producer.send(Record::new("orders", "tea")).await.expect("written");
    let consumer = kafka.consumer("readers").build().await.expect("valid");
    consumer.subscribe(&["orders"]).await.expect("valid");
    consumer.poll(5 * SECOND).await.expect("it joins");

    vault.is_down.store(true, Ordering::Relaxed);
    sleep(2 * MINUTE).await;
    (1..=3).for_each(|node| fake.disconnect(node));
    let mut waiting = Vec::new();
    for partition in 0..3 {
        waiting.push(producer.enqueue(Record::new("orders", "tea").partition(partition)).await.expect("room"));
    }
    log.lines(Level::TRACE);
    let before = vault.asked();
    sleep(10 * MINUTE).await;
    let asked = vault.asked() - before;
    let lines = log.lines(Level::INFO);
    vault.is_down.store(false, Ordering::Relaxed);
    for handle in waiting {
        handle.await.expect("it is written when the vault is open again");
    }
    let after = log.lines(Level::INFO);

    assert!((15..=40).contains(&asked), "asked {asked} times in ten minutes");
    let told = lines.iter().filter(|line| line.contains("sealed")).count();
    assert!(told <= 4, "one line of the provider, and one of each node that cannot be reached: {lines:#?}");
    assert_eq!(after.iter().filter(|line| line.contains("got a bearer token again")).count(), 1, "{after:#?}");
}

/// LC-02: a handle that is closed and not dropped asks nobody.
#[tokio::test(start_paused = true)]
async fn who_is_closed_asks_for_no_tokens() {
    let vault = Vault::default();
    let (_fake, kafka) = opened(&vault).await;
    sleep(10 * MINUTE).await;
    let asked = vault.asked();
    assert!(asked >= 10, "{asked}");

    kafka.close();
    sleep(60 * MINUTE).await;

    assert_eq!(vault.asked(), asked);
    kafka.admin().list_topics().await.expect_err("it is closed");
    assert_eq!(vault.asked(), asked);
}
