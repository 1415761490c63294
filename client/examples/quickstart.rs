//! The main job in one file: produce, lose a node on the way, consume in a group, and count.
//!
//!     cargo run --example quickstart                               on an embedded three-node fake, with faults
//!     cargo run --example quickstart -- --bootstrap HOST:PORT      on your cluster, without the faults
//!
//! Four tasks produce 100,000 records while (on the fake) a leader moves and a node crashes. Two members of a group
//! consume them. The last line says what was acknowledged, what was consumed, and the difference.

#![expect(clippy::disallowed_methods, reason = "an example runs at a real time")]

use std::collections::BTreeSet;
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use krafka::consumer::AutoOffsetReset;
use krafka::testing::FakeCluster;
use krafka::{Consumer, Kafka, NewTopic, Producer, Record};

const RECORDS: u64 = 100_000;
const TASKS: u64 = 4;
const PARTITIONS: i32 = 6;
/// How long the example waits for the group: several times as long as a rebalance takes.
const PATIENCE: Duration = Duration::from_secs(60);

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("quickstart: {failure}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Failure> {
    let timeline = Timeline::start();
    let fake = match bootstrap_argument()? {
        None => Some(FakeCluster::builder().nodes(3).start().await?),
        Some(_) => None,
    };
    let bootstrap = match (&fake, bootstrap_argument()?) {
        (Some(fake), _) => fake.bootstrap(),
        (None, given) => given.unwrap_or_default(),
    };

    let kafka = Kafka::builder(&bootstrap).client_id("quickstart").connect().await?;
    let cluster = kafka.admin().describe_cluster().await?;
    timeline.say(format!("connected to {} ({} nodes)", bootstrap, cluster.brokers.len()));

    // A name of its own for each run, so that a second run on the same cluster starts from nothing.
    let stamp = unix_millis();
    let topic = format!("quickstart-{stamp}");
    let group = format!("quickstart-group-{stamp}");
    let replicas = cluster.brokers.len().min(3) as i16;
    let new_topic = NewTopic::new(&topic, PARTITIONS).replication_factor(replicas);
    for (_, created) in kafka.admin().create_topics([new_topic]).await? {
        created?;
    }
    timeline.say(format!("created topic {topic}: {PARTITIONS} partitions, {replicas} replicas each"));

    let seen = Arc::new(Seen::new());
    let mut members = Vec::new();
    for name in ["first", "second"] {
        let kafka = Kafka::builder(&bootstrap).client_id(format!("quickstart-{name}")).connect().await?;
        let consumer = kafka
            .consumer(&group)
            .auto_offset_reset(AutoOffsetReset::Earliest)
            // Often, so that the first member learns soon that the second has come.
            .heartbeat_interval(Duration::from_millis(200))
            .build()
            .await?;
        consumer.subscribe(&[&topic]).await?;
        members.push((name, tokio::spawn(consume(consumer, seen.clone()))));
    }
    patiently("both members have partitions", || seen.members_with_partitions.load(Relaxed) == 2).await?;
    timeline.say(format!("two members of {group} share the partitions"));

    let producer = kafka.producer().build().await?;
    let acknowledged = Arc::new(AtomicU64::new(0));
    let began = Instant::now();
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| tokio::spawn(produce(producer.clone(), topic.clone(), task, acknowledged.clone())))
        .collect();
    if let Some(fake) = &fake {
        disturb(fake, &topic, &acknowledged, &timeline).await;
    }
    for task in tasks {
        task.await??;
    }
    producer.flush().await?;
    let acked = acknowledged.load(Relaxed);
    timeline.say(format!("{TASKS} tasks produced {acked} records in {:.2} s", began.elapsed().as_secs_f64()));

    // If they are not all consumed by then, the last line says how many are missing.
    let _ = patiently("every record is consumed", || seen.distinct.load(Relaxed) == acked).await;
    seen.finished.store(true, Relaxed);
    for (name, member) in members {
        let (records, partitions) = member.await??;
        timeline.say(format!("the {name} member consumed {records} records from {partitions} partitions"));
    }
    producer.close().await?;
    for (_, deleted) in kafka.admin().delete_topics([&topic]).await? {
        deleted?;
    }
    timeline.say(format!("deleted topic {topic}"));

    let consumed = seen.distinct.load(Relaxed);
    let (lost, duplicated) = (acked - consumed.min(acked), seen.total.load(Relaxed) - consumed);
    println!("acknowledged {acked}, consumed {consumed}, lost {lost}, duplicated {duplicated}");
    if lost == 0 && duplicated == 0 { Ok(()) } else { Err("records were lost or duplicated".into()) }
}

/// Produces this task's share, each record with its number as the value, and counts the acknowledgements.
async fn produce(producer: Producer, topic: String, task: u64, acknowledged: Arc<AtomicU64>) -> Result<(), Failure> {
    let mut handles = Vec::new();
    for number in (task..RECORDS).step_by(TASKS as usize) {
        let record = Record::new(&*topic, number.to_string()).key(format!("key-{}", number % 1_000));
        handles.push(producer.enqueue(record).await?);
        // Wait for the oldest now and then, so that the progress can be seen and memory stays small.
        if handles.len() == 1_000 {
            for handle in handles.drain(..) {
                handle.await?;
                acknowledged.fetch_add(1, Relaxed);
            }
        }
    }
    for handle in handles {
        handle.await?;
        acknowledged.fetch_add(1, Relaxed);
    }
    Ok(())
}

/// Moves a leader after a quarter of the records, and crashes a node after half of them.
async fn disturb(fake: &FakeCluster, topic: &str, acknowledged: &AtomicU64, timeline: &Timeline) {
    let reached = async |share: u64| {
        while acknowledged.load(Relaxed) < share {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    reached(RECORDS / 4).await;
    let from = fake.leader(topic, 0).unwrap_or_default();
    let to = fake.nodes().into_iter().find(|node| *node != from).unwrap_or(from);
    fake.move_leader(topic, 0, to);
    timeline.say(format!("moved the leader of partition 0 from node {from} to node {to}"));

    reached(RECORDS / 2).await;
    let victim = fake.leader(topic, 1).unwrap_or_default();
    fake.crash(victim);
    timeline.say(format!("crashed node {victim}: its connections are cut, its partitions move"));

    reached(RECORDS * 3 / 4).await;
    fake.restart(victim);
    timeline.say(format!("restarted node {victim}"));
}

/// Polls until every record was seen by some member; returns how many this one saw, and from how many partitions.
async fn consume(consumer: Consumer, seen: Arc<Seen>) -> Result<(u64, usize), Failure> {
    let mut records = 0;
    let mut partitions = BTreeSet::new();
    let mut is_counted = false;
    while !seen.finished.load(Relaxed) {
        let has_its_share = consumer.assignment().len() == PARTITIONS as usize / 2;
        if has_its_share && !is_counted {
            seen.members_with_partitions.fetch_add(1, Relaxed);
            is_counted = true;
        }
        for record in consumer.poll(Duration::from_millis(100)).await? {
            let value = record.value.as_deref().unwrap_or_default();
            seen.mark(std::str::from_utf8(value)?.parse()?);
            partitions.insert(record.partition);
            records += 1;
        }
    }
    consumer.close().await?;
    Ok((records, partitions.len()))
}

/// Waits until the condition holds.
async fn patiently(what: &str, mut holds: impl FnMut() -> bool) -> Result<(), Failure> {
    let began = Instant::now();
    while !holds() {
        if began.elapsed() > PATIENCE {
            return Err(format!("after {PATIENCE:?} it is still not so that {what}").into());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

/// Which numbers came, and how many records in all.
struct Seen {
    numbers: Vec<AtomicU64>,
    distinct: AtomicU64,
    total: AtomicU64,
    members_with_partitions: AtomicU64,
    finished: AtomicBool,
}

impl Seen {
    fn new() -> Self {
        Self {
            numbers: (0..RECORDS).map(|_| AtomicU64::new(0)).collect(),
            distinct: AtomicU64::new(0),
            total: AtomicU64::new(0),
            members_with_partitions: AtomicU64::new(0),
            finished: AtomicBool::new(false),
        }
    }

    fn mark(&self, number: usize) {
        self.total.fetch_add(1, Relaxed);
        if self.numbers.get(number).is_some_and(|times| times.fetch_add(1, Relaxed) == 0) {
            self.distinct.fetch_add(1, Relaxed);
        }
    }
}

/// Prints what happens, with the time since the start.
struct Timeline(Instant);

impl Timeline {
    fn start() -> Self {
        Self(Instant::now())
    }

    fn say(&self, what: String) {
        println!("[{:7.3} s] {what}", self.0.elapsed().as_secs_f64());
    }
}

/// The value of `--bootstrap`, or nothing; anything else on the command line is refused by name.
fn bootstrap_argument() -> Result<Option<String>, Failure> {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next(), arguments.next(), arguments.next()) {
        (None, ..) => Ok(None),
        (Some(flag), Some(value), None) if flag == "--bootstrap" => Ok(Some(value)),
        (Some(flag), None, _) if flag == "--bootstrap" => Err("--bootstrap needs a value: HOST:PORT".into()),
        (Some(other), ..) => {
            Err(format!("unknown argument '{other}': usage: quickstart [--bootstrap HOST:PORT]").into())
        }
    }
}

fn unix_millis() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()
}
