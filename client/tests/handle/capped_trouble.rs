//! CB-20, CB-25: few connections, many who want them, and brokers that die, hang and come back: nothing that was
//! acknowledged is lost, there are never more sockets than allowed, and everything works in the end.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use krafka::consumer::AutoOffsetReset;
use krafka::testing::FakeCluster;
use krafka::{Environment, Kafka, Record};
use krafka_protocol::ApiKey;
use tokio::time::{Instant, sleep, timeout};

use super::capped::{Counting, Tally};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// Chance, from a seed (xorshift).
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn up_to(&mut self, ms: u64) -> Duration {
        MS * self.below(ms) as u32
    }
}

/// What the workload has done so far.
#[derive(Default)]
struct Done {
    acknowledged: Mutex<BTreeSet<String>>,
    read: Mutex<BTreeSet<String>>,
    is_over: AtomicBool,
}

/// Sends, and gives up on some of what it sends.
async fn write(kafka: Kafka, done: Arc<Done>, name: u64) {
    let mut dice = Dice::new(name);
    let mut number = 0;
    while !done.is_over.load(Ordering::Relaxed) {
        let producer = kafka.producer().build().await.expect("valid");
        for _ in 0..dice.below(20) {
            let value = format!("{name}-{number}");
            number += 1;
            let sent = producer.send(Record::new("orders", value.clone()).partition(number % 6));
            if let Ok(Ok(_)) = timeout(dice.up_to(3_000), sent).await {
                done.acknowledged.lock().expect("no panic").insert(value);
            }
            sleep(dice.up_to(200)).await;
        }
        // Closed, or dropped.
        if dice.below(2) == 0 {
            let _ = timeout(dice.up_to(5_000), producer.close()).await;
        }
    }
}

/// Reads as a member of a group, and now and then as another one.
async fn read(kafka: Kafka, done: Arc<Done>, name: u64) {
    let mut dice = Dice::new(name);
    while !done.is_over.load(Ordering::Relaxed) {
        let consumer = kafka.consumer("g").auto_offset_reset(AutoOffsetReset::Earliest).build().await.expect("valid");
        consumer.subscribe(&["orders"]).await.expect("a topic's name");
        for _ in 0..dice.below(60) {
            if let Ok(Ok(records)) = timeout(dice.up_to(2_000), consumer.poll(SECOND)).await {
                let values = records.iter().map(|record| String::from_utf8_lossy(record.value.as_deref().unwrap()));
                done.read.lock().expect("no panic").extend(values.map(|value| value.into_owned()));
            }
        }
        if dice.below(2) == 0 {
            let _ = timeout(dice.up_to(5_000), consumer.close()).await;
        }
    }
}

async fn administer(kafka: Kafka, done: Arc<Done>, name: u64) {
    let mut dice = Dice::new(name);
    while !done.is_over.load(Ordering::Relaxed) {
        let _ = timeout(dice.up_to(1_000), kafka.admin().describe_cluster()).await;
        let _ = timeout(dice.up_to(1_000), kafka.admin().describe_topics(["orders"])).await;
        sleep(dice.up_to(500)).await;
    }
}

async fn make_trouble(fake: &FakeCluster, dice: &mut Dice) {
    for _ in 0..25 {
        let node = 1 + dice.below(3) as i32;
        let partition = dice.below(6) as i32;
        match dice.below(8) {
            0 => {
                fake.crash(node);
                sleep(dice.up_to(6_000)).await;
                fake.restart(node);
            }
            1 => {
                fake.pause(node);
                sleep(dice.up_to(15_000)).await;
                fake.resume(node);
            }
            2 => fake.disconnect(node),
            3 => fake.move_leader("orders", partition, node),
            4 => fake.move_coordinator("g", node),
            5 => drop(fake.when([ApiKey::Fetch, ApiKey::Produce]).on(node).times(2).throttle(dice.up_to(10_000))),
            6 => drop(fake.when(ApiKey::Metadata).times(1).silence()),
            _ => drop(fake.when(ApiKey::JoinGroup).times(1).after_handling().drop_connection()),
        }
        sleep(dice.up_to(3_000)).await;
    }
}

async fn heals(seed: u64) {
    let mut dice = Dice::new(seed);
    let limit = 1 + dice.below(4) as usize;
    let fake = FakeCluster::builder().nodes(3).topic("orders", 6).seed(seed).start_on_pipes();
    let tally = Arc::new(Tally::default());
    let counting = Counting { inside: Arc::new(fake.pipes()), tally: tally.clone() };
    let builder = Kafka::builder(fake.bootstrap()).environment(Environment::new(counting, seed));
    let kafka = builder.max_connections(limit).connect().await.expect("it is up");
    let done = Arc::new(Done::default());
    let mut tasks = Vec::new();
    for name in 0..3 {
        tasks.push(tokio::spawn(write(kafka.clone(), done.clone(), seed + 1_000 + name)));
        tasks.push(tokio::spawn(read(kafka.clone(), done.clone(), seed + 2_000 + name)));
    }
    tasks.push(tokio::spawn(administer(kafka.clone(), done.clone(), seed)));

    make_trouble(&fake, &mut dice).await;
    fake.clear_faults();
    done.is_over.store(true, Ordering::Relaxed);
    for task in tasks {
        timeout(300 * SECOND, task).await.unwrap_or_else(|_| panic!("{seed}: it hangs")).expect("no panic");
    }

    let begun = Instant::now();
    let described = timeout(90 * SECOND, kafka.admin().describe_cluster()).await;
    described.unwrap_or_else(|_| panic!("{seed}: it hangs")).unwrap_or_else(|error| panic!("{seed}: {error}"));
    let producer = kafka.producer().build().await.expect("valid");
    let last = timeout(90 * SECOND, producer.send(Record::new("orders", "last"))).await;
    last.unwrap_or_else(|_| panic!("{seed}: it hangs")).unwrap_or_else(|error| panic!("{seed}: {error}"));
    println!("{seed}: limit {limit}, healed after {:?}", begun.elapsed());
    let acknowledged = done.acknowledged.lock().expect("no panic").clone();
    let stored: BTreeSet<String> = fake
        .records("orders")
        .iter()
        .map(|record| String::from_utf8_lossy(record.record.value.as_deref().unwrap_or_default()).into_owned())
        .collect();
    assert!(acknowledged.is_subset(&stored), "{seed}: {:?}", acknowledged.difference(&stored));
    let consumer = kafka.consumer("g").auto_offset_reset(AutoOffsetReset::Earliest).build().await.expect("valid");
    consumer.subscribe(&["orders"]).await.expect("a topic's name");
    let begun = Instant::now();
    let mut read = done.read.lock().expect("no panic").clone();
    while !acknowledged.is_subset(&read) {
        for record in consumer.poll(5 * SECOND).await.unwrap_or_else(|error| panic!("{seed}: {error}")) {
            read.insert(String::from_utf8_lossy(record.value.as_deref().unwrap_or_default()).into_owned());
        }
        assert!(begun.elapsed() < 180 * SECOND, "{seed}: not read: {:?}", acknowledged.difference(&read));
    }
    println!("{seed}: {} acknowledged, read after {:?}", acknowledged.len(), begun.elapsed());
    let most = tally.most.load(Ordering::Relaxed);
    assert!(most <= limit, "{seed}: {most} sockets, and {limit} are allowed");
}

#[test]
fn everything_works_in_the_end() {
    let seeds = std::env::var("KRAFKA_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(8);
    for seed in 0..seeds {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.expect("a runtime").block_on(heals(seed));
    }
}
