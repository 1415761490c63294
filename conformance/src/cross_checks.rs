//! What this client writes, Java's console consumer reads; what Java's console producer writes, this client reads.

use std::path::Path;
use std::time::Duration;

use krafka::consumer::AutoOffsetReset;
use krafka::{Compression, Kafka, NewTopic, Record};
use scenarios::{Failure, Result, ensure};

use crate::java::{Jars, run};

/// How many records go each way for each codec.
const RECORDS: usize = 1_000;

/// How long this client may take for its side.
const BOUND: Duration = Duration::from_secs(60);

/// The codecs that this build can write.
#[must_use]
pub fn written() -> Vec<Compression> {
    let mut codecs = vec![Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4];
    if cfg!(any(feature = "zstd", feature = "zstd-rust")) {
        codecs.push(Compression::Zstd);
    }
    codecs
}

/// All codecs: every build reads every one.
pub const READ: [Compression; 5] =
    [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];

/// This client produces, the console consumer prints.
///
/// # Errors
/// If a record is missing or otherwise.
pub fn java_reads_ours(jars: &Jars, home: &Path, bootstrap: &str, codec: Compression, run_id: u64) -> Result<()> {
    let topic = format!("ours-{codec}-{run_id:x}");
    let values = values(codec);
    block_on(async {
        let kafka = topic_on(bootstrap, &topic).await?;
        let producer = kafka.producer().compression(codec).build().await?;
        let mut handles = Vec::new();
        for value in &values {
            handles.push(producer.enqueue(Record::new(&*topic, value.clone()).key("k")).await?);
        }
        for handle in handles {
            handle.await?;
        }
        Ok(producer.close().await?)
    })?;

    let mut consumer = jars.class("org.apache.kafka.tools.consumer.ConsoleConsumer", home, "WARN")?;
    consumer.args(["--bootstrap-server", bootstrap, "--topic", &topic, "--from-beginning"]);
    consumer.args(["--max-messages", &RECORDS.to_string(), "--timeout-ms", "60000"]);
    let output = run(consumer, b"")?;

    same(&values, String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
}

/// The console producer writes, this client reads.
///
/// # Errors
/// If a record is missing or otherwise.
pub fn we_read_javas(jars: &Jars, home: &Path, bootstrap: &str, codec: Compression, run_id: u64) -> Result<()> {
    let topic = format!("javas-{codec}-{run_id:x}");
    let values = values(codec);
    let kafka = block_on(topic_on(bootstrap, &topic))?;
    drop(kafka);
    let class = if jars.is_3() { "kafka.tools.ConsoleProducer" } else { "org.apache.kafka.tools.ConsoleProducer" };
    let mut producer = jars.class(class, home, "WARN")?;
    producer.args(["--bootstrap-server", bootstrap, "--topic", &topic, &format!("--compression-codec={codec}")]);
    run(producer, values.join("\n").as_bytes())?;

    let read = block_on(async {
        let kafka = Kafka::builder(bootstrap).client_id("cross-check").connect().await?;
        let consumer = kafka.consumer_without_group().auto_offset_reset(AutoOffsetReset::Earliest).build().await?;
        consumer.assign(&topic, vec![0]).await?;
        let mut read = Vec::new();
        while read.len() < RECORDS {
            let record = consumer.recv().await?;
            read.push(String::from_utf8_lossy(record.value.as_deref().unwrap_or_default()).into_owned());
        }
        consumer.close().await?;
        Ok(read)
    })?;

    same(&values, read)
}

async fn topic_on(bootstrap: &str, topic: &str) -> Result<Kafka> {
    let kafka = Kafka::builder(bootstrap).client_id("cross-check").connect().await?;
    let new_topic = NewTopic::new(topic, 1).replication_factor(1);
    let created = kafka.admin().create_topics([new_topic]).await?;
    created.into_values().collect::<krafka::Result<()>>()?;
    Ok(kafka)
}

/// Values of many lengths, which compress.
fn values(codec: Compression) -> Vec<String> {
    (0..RECORDS)
        .map(|number| format!("{codec} record {number} {}", "krafka ".repeat(number % 40)))
        .map(|s| s.trim_end().to_owned())
        .collect()
}

fn same(expected: &[String], read: Vec<String>) -> Result<()> {
    ensure!(read.len() == expected.len(), "{} records were written, {} read", expected.len(), read.len());
    match expected.iter().zip(&read).find(|(expected, read)| expected != read) {
        None => Ok(()),
        Some((expected, read)) => Err(Failure::new(format!("'{expected}' was written, and read as '{read}'"))),
    }
}

fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match runtime.block_on(async { tokio::time::timeout(BOUND, future).await }) {
        Ok(done) => done,
        Err(_) => Err(Failure::new(format!("no end within {BOUND:?}"))),
    }
}
