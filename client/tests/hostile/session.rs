//! What a client does in a session: it uses every kind of connection once.

use std::collections::BTreeSet;
use std::time::Duration;

use krafka::consumer::AutoOffsetReset;
use krafka::testing::FakeCluster;
use krafka::{Environment, Kafka, NewTopic, Record, Result};
use tokio::time::{Instant, sleep, timeout};

use crate::meddler::{Meddler, Plan};

/// The largest response that the client reads.
pub(crate) const MAX_RESPONSE_SIZE: usize = 64 * 1024;

/// How long each step is waited for. What takes longer is given up, as an application would.
const PATIENCE: Duration = Duration::from_secs(150);

/// Which session.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// Administration, a producer, a member of a group.
    Whole,
    /// Authentication by SCRAM, and a word afterwards.
    Login,
}

/// What became of a session.
#[derive(Debug)]
pub(crate) struct Ending {
    /// The lengths of all answers.
    pub(crate) answers: Vec<usize>,
    pub(crate) was_made: bool,
    /// The values that the consumer read.
    pub(crate) read: BTreeSet<Vec<u8>>,
    /// Whether the handle did what it should after it all.
    pub(crate) is_well: bool,
    pub(crate) took: Duration,
}

/// Runs a session, in virtual time.
pub(crate) fn run(kind: Kind, plan: Plan) -> Ending {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let start = Instant::now();
        let fake = FakeCluster::builder().nodes(1).topic("orders", 2);
        let fake = if let Kind::Login = kind { fake.user("alice", "hunter2") } else { fake };
        let fake = fake.group_initial_rebalance_delay(Duration::ZERO).start_on_pipes();
        let meddler = Meddler::new(fake.pipes(), plan);
        let mut read = BTreeSet::new();
        let is_well = hold(kind, &fake, &meddler, &mut read).await;
        let (answers, was_made) = meddler.seen(|seen| (std::mem::take(&mut seen.answers), seen.was_made));
        Ending { answers, was_made, read, is_well, took: start.elapsed() }
    })
}

/// Whether the handle works in the end.
///
/// What a broker says that it serves is believed as long as the connection lives (AV-08): if the mistake may be in
/// that, the connections end before the handle is given up.
async fn hold(kind: Kind, fake: &FakeCluster, meddler: &Meddler, read: &mut BTreeSet<Vec<u8>>) -> bool {
    let connect = || {
        let builder = Kafka::builder(fake.bootstrap())
            .environment(Environment::new(meddler.clone(), 1))
            .max_response_size(MAX_RESPONSE_SIZE);
        match kind {
            Kind::Whole => builder.connect(),
            Kind::Login => builder.sasl_scram_sha256("alice", "hunter2").connect(),
        }
    };
    let kafka = match connect().await {
        Ok(kafka) => kafka,
        // What the mistake made of the first connection cannot be helped by waiting, such as a port that speaks HTTP.
        Err(_) => match connect().await {
            Ok(kafka) => kafka,
            Err(_) => return false,
        },
    };
    if let Kind::Login = kind {
        let admin = kafka.admin();
        if admin.describe_cluster().await.is_ok() {
            return true;
        }
        // The mistake met this one, whose connection was new as well; its address is left alone for a moment.
        sleep(Duration::from_secs(2)).await;
        if admin.describe_cluster().await.is_ok() {
            return true;
        }
        if meddler.is_about_versions() {
            fake.disconnect(1);
            sleep(Duration::from_secs(2)).await;
        }
        return admin.describe_cluster().await.is_ok();
    }
    // Each of these may fail: an answer may say anything. None may hang.
    let _ = timeout(PATIENCE, administer(&kafka)).await;
    let _ = timeout(PATIENCE, produce(&kafka, "orders")).await;
    let _ = timeout(PATIENCE, consume(&kafka, read)).await;
    // A producer and a consumer may have been told that they are fenced: others of the same handle are not.
    for attempt in 0..10 {
        if works(&kafka).await.is_ok() {
            return true;
        }
        if attempt > 5 && meddler.is_about_versions() {
            fake.disconnect(1);
        }
        // A broker that asks for silence may have it for five minutes.
        sleep(Duration::from_secs(30)).await;
    }
    false
}

async fn administer(kafka: &Kafka) -> Result<()> {
    let admin = kafka.admin();
    admin.describe_cluster().await?;
    admin.create_topics([NewTopic::new("new", 1)]).await?;
    admin.describe_topics(["new"]).await?;
    Ok(())
}

async fn produce(kafka: &Kafka, topic: &str) -> Result<()> {
    let producer = kafka.producer().build().await?;
    for number in 0..6 {
        producer.send(Record::new(topic, format!("{number}")).partition(number % 2)).await?;
    }
    producer.close().await
}

async fn consume(kafka: &Kafka, read: &mut BTreeSet<Vec<u8>>) -> Result<()> {
    let consumer = kafka.consumer("g").auto_offset_reset(AutoOffsetReset::Earliest).build().await?;
    consumer.subscribe(&["orders"]).await?;
    while read.len() < 6 {
        for record in consumer.poll(Duration::from_secs(30)).await? {
            read.insert(record.value.as_deref().unwrap_or_default().to_vec());
        }
    }
    consumer.commit().await?;
    consumer.close().await
}

/// Fails unless the handle reaches its cluster, and can write and read.
async fn works(kafka: &Kafka) -> Result<()> {
    let check = async {
        kafka.admin().describe_cluster().await?;
        produce(kafka, "orders").await?;
        let consumer = kafka.consumer_without_group().auto_offset_reset(AutoOffsetReset::Earliest).build().await?;
        consumer.assign("orders", vec![0, 1]).await?;
        let mut read = 0;
        while read < 6 {
            read += consumer.poll(Duration::from_secs(30)).await?.len();
        }
        Ok(())
    };
    timeout(Duration::from_secs(60), check).await.unwrap_or(Err(krafka::KrafkaError::Wakeup))
}
