//! A member that works too long on one record loses its partitions to the others.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use krafka::consumer::AutoOffsetReset;
use krafka::testing::{Clients, FakeCluster};
use krafka::{ConsumerRecord, Kafka};

use crate::{Result, on};

/// The jobs that were done, by partition and offset.
type Done = Arc<Mutex<BTreeSet<(i32, i64)>>>;

/// The application: does jobs, each of which takes its time.
async fn work(kafka: Kafka, pace: fn(&ConsumerRecord) -> Duration, done: Done) -> Result<()> {
    let jobs = kafka
        .consumer("workers")
        .auto_offset_reset(AutoOffsetReset::Earliest)
        .auto_commit(false)
        // Who does not ask for more within this time is taken for dead.
        .max_poll_interval(Duration::from_secs(30))
        .build()
        .await?;
    jobs.subscribe(&["jobs"]).await?;
    loop {
        for job in jobs.poll(Duration::from_secs(1)).await? {
            tokio::time::sleep(pace(&job)).await;
            done.lock().expect("nobody panicked").insert((job.partition, job.offset));
        }
        if let Err(error) = jobs.commit().await {
            // The partitions are somebody else's by now, who does these jobs again: nothing is lost.
            println!("    a member was too slow: {error}");
        }
    }
}

#[cfg_attr(test, test)]
pub(crate) fn test() {
    on(FakeCluster::builder().topic("jobs", 2), async |fake| {
        let done = Done::default();
        let quick = work(fake.client().connect().await?, |_| Duration::from_secs(1), done.clone());
        let slow = work(fake.client().connect().await?, |_| Duration::from_secs(600), done.clone());
        let (quick, slow) = (tokio::spawn(quick), tokio::spawn(slow));
        fake.wait_group_stable("workers", 2).await;

        for partition in [0, 1] {
            for _ in 0..3 {
                fake.append("jobs", partition, None, Some(b"a job"));
            }
        }

        fake.wait_group_stable("workers", 1).await;
        let all = |fake: &FakeCluster| (fake.committed("workers").values().sum::<i64>() == 6).then_some(());
        fake.wait_for("commit of all jobs", all).await;

        assert_eq!(done.lock().expect("nobody panicked").len(), 6);
        quick.abort();
        slow.abort();
        Ok(())
    });
}
