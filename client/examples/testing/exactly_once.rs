//! A transfer that dies half-way is finished by the next process, and no amount is moved twice.
//!
//! The application keeps with each deposit which withdrawal it came from, and begins where the last deposit says:
//! source and result cannot disagree, because they are one record. This holds for one process at a time, and for one
//! partition of deposits: what fences two processes, and makes writes to several partitions one, is a transaction. The
//! fake has those, with their markers, timeouts and fencing; krafka's producer has not yet.

use krafka::protocol::ApiKey;
use krafka::testing::{Clients, FakeCluster};
use krafka::{Kafka, Record};

use crate::{Result, on};

/// The application: deposits what was withdrawn, until `last`.
async fn transfer(kafka: &Kafka, last: i64) -> Result<()> {
    let begin = first_open(kafka).await?;
    let withdrawals = kafka.consumer_without_group().build().await?;
    withdrawals.assign("withdrawals", vec![0]).await?;
    withdrawals.seek("withdrawals", 0, begin).await?;
    let producer = kafka.producer().build().await?;
    for _ in begin..=last {
        let withdrawal = withdrawals.recv().await?;
        let amount = withdrawal.value.unwrap_or_default();
        let deposit = Record::new("deposits", amount).partition(0).header(SOURCE, withdrawal.offset.to_string());
        producer.send(deposit).await?;
    }
    producer.close().await?;
    Ok(withdrawals.close().await?)
}

/// The header that says which withdrawal a deposit is of.
const SOURCE: &str = "withdrawal";

/// The first withdrawal that was not deposited.
async fn first_open(kafka: &Kafka) -> Result<i64> {
    let deposits = kafka.consumer_without_group().build().await?;
    deposits.assign("deposits", vec![0]).await?;
    deposits.seek_to_end("deposits", 0).await?;
    let end = deposits.position("deposits", 0).await?;
    if end == 0 {
        return Ok(0);
    }
    deposits.seek("deposits", 0, end - 1).await?;
    let last = deposits.recv().await?;
    deposits.close().await?;
    let source = last.headers.last(SOURCE).and_then(|header| header.value).ok_or("a deposit without its source")?;
    Ok(std::str::from_utf8(source)?.parse::<i64>()? + 1)
}

#[cfg_attr(test, test)]
pub(crate) fn test() {
    on(FakeCluster::builder().nodes(3).topic("withdrawals", 1).topic("deposits", 1), async |fake| {
        for amount in ["10", "20", "30", "40"] {
            fake.append("withdrawals", 0, None, Some(amount.as_bytes()));
        }

        // The third deposit is written, its answer never comes, and the process dies.
        let unanswered = fake.when(ApiKey::Produce).nth(3).after_handling().silence();
        let kafka = fake.client().connect().await?;
        tokio::select! {
            done = transfer(&kafka, 3) => panic!("it should have died before: {done:?}"),
            () = unanswered.wait(1) => drop(kafka),
        }
        assert_eq!(fake.records("deposits").len(), 3);

        transfer(&fake.client().connect().await?, 3).await?;

        let deposits = fake.records("deposits");
        let amounts: Vec<_> = deposits.iter().map(|deposit| deposit.value.as_deref().unwrap_or_default()).collect();
        assert_eq!(amounts, [b"10", b"20", b"30", b"40"]);
        Ok(())
    });
}
