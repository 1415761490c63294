//! A producer and a consumer at work, while something happens to their cluster; and what must come of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use krafka::{Consumer, Producer, RecordMetadata};
use tokio::task::JoinHandle;

use super::{AutoOffsetReset, Failure, Kafka, PATIENCE, Record, Result, ensure, until};

/// Records with numbers are sent and read, until it is told to finish.
pub(crate) struct Work {
    producer: Arc<Producer>,
    consumer: Arc<Consumer>,
    is_over: Arc<AtomicBool>,
    sending: JoinHandle<Result<Vec<RecordMetadata>>>,
    read: Vec<(i32, i64, String)>,
}

impl Work {
    /// Sends records to all partitions of a topic in turn, every few milliseconds; a group of one reads them.
    pub(crate) async fn begin(kafka: &Kafka, topic: &str, partitions: i32, group: String) -> Result<Self> {
        let producer =
            Arc::new(kafka.producer().linger(Duration::ZERO).request_timeout(Duration::from_secs(2)).build().await?);
        let consumer = kafka.consumer(group).auto_offset_reset(AutoOffsetReset::Earliest).build().await?;
        consumer.subscribe(&[topic]).await?;
        let is_over = Arc::new(AtomicBool::new(false));
        let sending = tokio::spawn({
            let (producer, is_over, topic) = (producer.clone(), is_over.clone(), topic.to_owned());
            async move {
                let mut handles = Vec::new();
                for number in 0.. {
                    if is_over.load(Relaxed) {
                        break;
                    }
                    let record = Record::new(&*topic, format!("{number}")).partition(number % partitions);
                    handles.push(producer.enqueue(record).await?);
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                let mut written = Vec::new();
                for handle in handles {
                    written.push(handle.await?);
                }
                Ok(written)
            }
        });
        let mut work = Self { producer, consumer: Arc::new(consumer), is_over, sending, read: Vec::new() };
        work.read_until(|read| read.len() > 100).await?;
        Ok(work)
    }

    /// Reads for so long, whatever comes.
    pub(crate) async fn go_on(&mut self, time: Duration) -> Result<()> {
        let end = tokio::time::sleep(time);
        tokio::pin!(end);
        loop {
            tokio::select! {
                () = &mut end => return Ok(()),
                records = self.consumer.poll(time) => self.take(records?),
            }
        }
    }

    /// Reads while something else is done.
    pub(crate) async fn beside<T>(&mut self, other: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::pin!(other);
        loop {
            tokio::select! {
                done = &mut other => return done,
                records = self.consumer.poll(Duration::from_secs(1)) => self.take(records?),
            }
        }
    }

    /// Reads until some more have come, which shows that reader and writer both go on.
    pub(crate) async fn until_more(&mut self) -> Result<()> {
        let before = self.read.len();
        self.read_until(|read| read.len() > before + 100).await
    }

    /// Sends no more, reads the rest, and looks at all of it: every record was acknowledged, was read once, with the
    /// number that was sent to that place; and those of a partition in the order in which they were sent.
    pub(crate) async fn finish(mut self) -> Result<()> {
        self.is_over.store(true, Relaxed);
        let written = self.sending.await??;
        let total = written.len();
        let consumer = self.consumer.clone();
        let mut read = std::mem::take(&mut self.read);
        let all = async || {
            read.extend(consumer.poll(Duration::from_secs(1)).await.ok()?.into_iter().map(told));
            (read.len() >= total).then_some(())
        };
        until("all records are read", all).await?;
        // What would come twice would come now.
        let late = self.consumer.poll(Duration::from_secs(1)).await?;
        ensure!(late.is_empty(), "{} records were read behind the last", late.len());
        self.producer.close().await?;
        self.consumer.close().await?;

        ensure!(read.len() == total, "{total} records were written, {} read", read.len());
        let places: BTreeMap<_, _> =
            read.iter().map(|(partition, offset, value)| ((*partition, *offset), value)).collect();
        ensure!(places.len() == total, "{} of {total} records were read twice", total - places.len());
        for (number, place) in written.iter().enumerate() {
            let found = places.get(&(place.partition, place.offset));
            let is_it = found.is_some_and(|value| **value == number.to_string());
            ensure!(is_it, "record {number} was written to {place:?}, where {found:?} was read");
        }
        let mut last = BTreeMap::new();
        for (partition, offset, value) in &read {
            let number: u64 = value.parse()?;
            let before = last.insert(partition, (offset, number));
            let is_in_order = before.is_none_or(|(before, least)| before < offset && least < number);
            ensure!(is_in_order, "partition {partition}: {number} at {offset} came behind {before:?}");
        }
        Ok(())
    }

    async fn read_until(&mut self, enough: impl Fn(&[(i32, i64, String)]) -> bool) -> Result<()> {
        let reading = async {
            while !enough(&self.read) {
                let records = self.consumer.poll(Duration::from_secs(1)).await?;
                self.take(records);
            }
            Ok(())
        };
        let late = |_| Err(Failure::new(format!("nothing more was read within {PATIENCE:?}")));
        tokio::time::timeout(PATIENCE, reading).await.unwrap_or_else(late)
    }

    fn take(&mut self, records: Vec<krafka::ConsumerRecord>) {
        self.read.extend(records.into_iter().map(told));
    }
}

/// What is to be known of a record: where it is, and what it says.
fn told(record: krafka::ConsumerRecord) -> (i32, i64, String) {
    let value = record.value.as_deref().map(|value| String::from_utf8_lossy(value).into_owned());
    (record.partition, record.offset, value.unwrap_or_default())
}
