//! A broker that enforces a quota tells the producer to wait; the producer waits, and sends nothing meanwhile.

use std::time::Duration;

use krafka::protocol::ApiKey;
use krafka::testing::{Clients, FakeCluster};
use krafka::{Producer, Record};
use tokio::time::Instant;

use crate::{Result, on};

/// The application: counts how long its measurements take to be written down.
async fn measure(producer: &Producer, measurements: impl IntoIterator<Item = u32>) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    for measurement in measurements {
        let began = Instant::now();
        producer.send(Record::new("measurements", measurement.to_string())).await?;
        times.push(began.elapsed());
    }
    Ok(times)
}

#[cfg_attr(test, test)]
pub(crate) fn test() {
    on(FakeCluster::builder().topic("measurements", 1), async |fake| {
        let producer = fake.client().connect().await?.producer().build().await?;

        let quota = fake.when(ApiKey::Produce).times(1).throttle(Duration::from_secs(20));
        let times = measure(&producer, 1..=3).await?;
        producer.close().await?;

        assert_eq!(quota.hits(), 1);
        assert!(times[0] < Duration::from_secs(1), "the answer that carries the throttle comes at once: {times:?}");
        assert!(times[1] >= Duration::from_secs(20), "what comes after it waits: {times:?}");
        assert!(times[2] < Duration::from_secs(1), "and then all is as before: {times:?}");
        assert_eq!(fake.records("measurements").len(), 3);
        Ok(())
    });
}
