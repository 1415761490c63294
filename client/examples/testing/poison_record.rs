//! A record that cannot be understood must not stop the others, nor get lost.

use std::time::Duration;

use krafka::consumer::AutoOffsetReset;
use krafka::testing::{Clients, FakeCluster};
use krafka::{Consumer, ConsumerRecord, Kafka, Producer, Record};

use crate::{Result, on};

/// The application: adds up amounts, and puts what is no amount where somebody will look at it.
struct Till {
    consumer: Consumer,
    producer: Producer,
    sum: u64,
}

impl Till {
    async fn open(kafka: &Kafka) -> Result<Self> {
        let consumer = kafka
            .consumer("till")
            .auto_offset_reset(AutoOffsetReset::Earliest)
            // Only what was dealt with counts as read.
            .auto_commit(false)
            .build()
            .await?;
        consumer.subscribe(&["amounts"]).await?;
        Ok(Self { consumer, producer: kafka.producer().build().await?, sum: 0 })
    }

    /// Deals with the records that are there.
    async fn work(&mut self) -> Result<()> {
        for record in self.consumer.poll(Duration::from_secs(1)).await? {
            match amount(&record) {
                Some(amount) => self.sum += amount,
                None => self.bury(&record).await?,
            }
        }
        self.consumer.commit().await?;
        Ok(())
    }

    /// Keeps a record with where it came from, before its offset is committed.
    async fn bury(&self, record: &ConsumerRecord) -> Result<()> {
        let origin = format!("{}-{}@{}", record.topic, record.partition, record.offset);
        let value = record.value.clone().unwrap_or_default();
        self.producer.send(Record::new("amounts.dead", value).header("origin", origin)).await?;
        Ok(())
    }
}

fn amount(record: &ConsumerRecord) -> Option<u64> {
    std::str::from_utf8(record.value.as_deref()?).ok()?.parse().ok()
}

#[cfg_attr(test, test)]
pub(crate) fn test() {
    on(FakeCluster::builder().topic("amounts", 1).topic("amounts.dead", 1), async |fake| {
        for value in [&b"10"[..], b"\xff\xfe poison", b"20"] {
            fake.append("amounts", 0, None, Some(value));
        }

        let mut till = Till::open(&fake.client().connect().await?).await?;
        while fake.committed("till").values().sum::<i64>() < 3 {
            till.work().await?;
        }

        assert_eq!(till.sum, 30, "the record behind the poison was read");
        let dead = fake.records("amounts.dead");
        assert_eq!(dead.len(), 1);
        assert_eq!(dead[0].value.as_deref(), Some(&b"\xff\xfe poison"[..]));
        let origin = dead[0].headers.last("origin").and_then(|header| header.value);
        assert_eq!(origin, Some(&b"amounts-0@1"[..]));
        Ok(())
    });
}
