//! Logs that lose their end, and readers who had read it.

use std::time::Duration;

use krafka::{Consumer, Kafka};

use super::leaders::leader;
use super::{
    AutoOffsetReset, Failure, NewTopic, PATIENCE, Record, Result, Stage, client, ensure, refused, says, topic, until,
    within,
};

const SECOND: Duration = Duration::from_secs(1);

/// LE-09: a leader dies alone, and a replica that lacks its last records is elected. Who has read them goes on where
/// the logs part, as its policy says; without a policy it is told where that is, and has not gone on.
pub(super) async fn a_truncated_log_is_read_on_from_where_it_parts(stage: &Stage) -> Result<()> {
    let lossy =
        |name: &str| NewTopic::new(name, 1).replication_factor(2).config("unclean.leader.election.enable", "true");
    let name = topic(stage, lossy).await?;
    let kafka = client(stage)?.metadata_max_age(SECOND).connect().await?;
    let described = kafka.admin().describe_topics([&*name]).await?.into_values().next().transpose()?;
    let partition = described.and_then(|topic| topic.partitions.into_iter().next());
    let nodes = partition.map(|partition| (partition.leader, partition.replicas));
    let Some((Some(first), replicas)) = nodes else { return Err(Failure::new("nobody leads".to_owned())) };
    let second = replicas.into_iter().find(|node| *node != first).unwrap_or(first);
    let producer = kafka.producer().linger(Duration::ZERO).build().await?;
    let (lenient, strict) =
        (reader(&kafka, &name, AutoOffsetReset::Earliest).await?, reader(&kafka, &name, AutoOffsetReset::None).await?);
    producer.send(Record::new(&*name, "0")).await?;

    stage.crash(second).await?;
    let is_alone = async || {
        let topic = kafka.admin().describe_topics([&*name]).await.ok()?.into_values().next()?.ok()?;
        (topic.partitions.first()?.isr == [first]).then_some(())
    };
    until("the leader is alone", is_alone).await?;
    for value in ["1", "2", "3"] {
        producer.send(Record::new(&*name, value)).await?;
    }
    for reader in [&lenient, &strict] {
        let read = values(reader, 4).await?;
        ensure!(read == ["0", "1", "2", "3"], "{read:?} was read before");
    }
    stage.crash(first).await?;
    stage.restart(second).await?;
    until("the other leads", async || leader(&kafka, &name, 0).await.filter(|leads| *leads == second)).await?;
    let sent = within(PATIENCE, "send", producer.send(Record::new(&*name, "new"))).await??;
    let read = values(&lenient, 1).await?;
    let told = within(PATIENCE, "an error", async {
        loop {
            match strict.poll(SECOND).await {
                Ok(read) if read.is_empty() => {}
                other => return other,
            }
        }
    });
    let told = refused(told.await?.map(|read| read.len()), "to read on without a policy")?;

    stage.restart(first).await?;
    ensure!(sent.offset == 1 && read == ["new"], "at {} was written, and {read:?} read", sent.offset);
    says(&told, &[&format!("{name}-0"), "offset 1", "position was 4"])
}

/// Reads the first partition from its beginning.
async fn reader(kafka: &Kafka, topic: &str, policy: AutoOffsetReset) -> Result<Consumer> {
    let consumer = kafka.consumer_without_group().auto_offset_reset(policy).build().await?;
    consumer.assign(topic, vec![0]).await?;
    consumer.seek(topic, 0, 0).await?;
    Ok(consumer)
}

/// The next values, at least so many.
async fn values(consumer: &Consumer, count: usize) -> Result<Vec<String>> {
    let mut values = Vec::new();
    let reading = async {
        while values.len() < count {
            let read = consumer.poll(SECOND).await?;
            values.extend(
                read.iter().map(|read| String::from_utf8_lossy(read.value.as_deref().unwrap_or_default()).into_owned()),
            );
        }
        Ok::<_, krafka::KrafkaError>(())
    };
    within(PATIENCE, "records", reading).await??;
    Ok(values)
}
