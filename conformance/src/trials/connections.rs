//! Connections that are made, shared, idle, and closed by either side.

use std::collections::BTreeMap;
use std::time::Duration;

use krafka::producer::Acks;
use krafka::protocol::ApiKey;
use krafka::protocol::api::fetch::{FetchPartition, FetchRequest, FetchTopic};

use super::road::Road;
use super::{
    AutoOffsetReset, Kafka, KrafkaError, NODES, NewTopic, Record, Result, Stage, client, ensure, now, refused, says,
    topic, until, within,
};
use crate::provider::stage::IDLE;

const SECOND: Duration = Duration::from_secs(1);

/// CB-01, CB-04: of the bootstrap servers one is enough, where another refuses and a third one's name means nothing.
pub(super) async fn one_server_that_answers_is_enough(stage: &Stage) -> Result<()> {
    let servers = format!("127.0.0.1:1,nowhere.invalid:9092,{}", stage.address(2)?);

    let kafka = within(10 * SECOND, "connect", Kafka::builder(servers).connect()).await??;

    let brokers = kafka.admin().describe_cluster().await?.brokers.len();
    ensure!(brokers == NODES as usize, "{brokers} brokers");
    Ok(())
}

/// CB-03, CB-04: where no server answers, the error names each of them, and keeps the cause.
pub(super) async fn where_nobody_answers_each_address_is_named(_: &Stage) -> Result<()> {
    let builder = Kafka::builder("127.0.0.1:1,nowhere.invalid:9092").bootstrap_timeout(2 * SECOND);

    let error = refused(within(10 * SECOND, "connect", builder.connect()).await?, "connect")?;

    says(&error, &["127.0.0.1:1", "nowhere.invalid:9092"])?;
    ensure!(std::error::Error::source(&error).is_some(), "{error:?} has no source");
    Ok(())
}

/// CB-06, CB-32: what is known of the bootstrap server is its address alone: it is asked who is there, and records go
/// to the advertised addresses.
pub(super) async fn traffic_goes_to_the_advertised_addresses(stage: &Stage) -> Result<()> {
    let road = Road::default();
    road.lead("seed:9092", stage.address(1)?);
    let kafka = Kafka::builder("seed:9092").environment(road.environment()).connect().await?;
    let name = topic(stage, |name| NewTopic::new(name, NODES)).await?;
    let producer = kafka.producer().build().await?;

    for number in 0..30 {
        producer.send(Record::new(&*name, "tea").key(format!("{number}"))).await?;
    }

    for heard in road.heard().iter().filter(|heard| heard.to == "seed:9092") {
        let is_to_learn = heard.is(ApiKey::ApiVersions) || heard.is(ApiKey::Metadata);
        ensure!(is_to_learn, "API {} was asked at the bootstrap server", heard.key);
    }
    let written = road.heard_of(ApiKey::Produce).len();
    ensure!(written >= 3, "{written} Produce requests were heard");
    Ok(())
}

/// CB-10: whoever needs the same connection waits for the same dial.
pub(super) async fn concurrent_callers_share_a_dial(stage: &Stage) -> Result<()> {
    let road = Road::default();
    let kafka = client(stage)?.environment(road.environment()).connect().await?;
    let admin = kafka.admin();
    let before = road.dials().len();

    let calls: Vec<_> =
        (0..10).map(|_| admin.clone()).map(|admin| async move { admin.describe_cluster().await }).collect();
    let calls: Vec<_> = calls.into_iter().map(tokio::spawn).collect();
    for call in calls {
        call.await??;
    }

    let mut dialled = BTreeMap::new();
    for address in road.dials().split_off(before) {
        *dialled.entry(address).or_insert(0) += 1;
    }
    ensure!(dialled.values().all(|dials| *dials == 1), "ten callers dialled {dialled:?}");
    Ok(())
}

/// CB-12: a broker closes what is idle; whoever calls next notices nothing.
pub(super) async fn what_the_broker_closed_is_made_anew(stage: &Stage) -> Result<()> {
    let kafka = client(stage)?.connect().await?;
    let name = topic(stage, |name| NewTopic::new(name, 1)).await?;
    let producer = kafka.producer().build().await?;
    producer.send(Record::new(&*name, "first")).await?;

    match stage.fake() {
        Some(fake) => (1..=NODES).for_each(|node| fake.disconnect(node)),
        None => tokio::time::sleep(IDLE).await,
    }
    until("all connections are closed", async || (kafka.metrics().connections.open == 0).then_some(())).await?;

    let second = within(5 * SECOND, "send", producer.send(Record::new(&*name, "second"))).await??;
    ensure!(second.offset == 1, "offset {} instead of 1", second.offset);
    within(5 * SECOND, "describe", kafka.admin().describe_cluster()).await??;
    Ok(())
}

/// CB-13: so does the client, by its own limit, and counts nothing as lost.
pub(super) async fn what_is_idle_is_closed_and_made_anew(stage: &Stage) -> Result<()> {
    let kafka = client(stage)?.connections_max_idle(SECOND).connect().await?;
    let name = topic(stage, |name| NewTopic::new(name, 1)).await?;
    let producer = kafka.producer().build().await?;
    producer.send(Record::new(&*name, "first")).await?;
    let opened = kafka.metrics().connections.opened;

    until("all connections are closed", async || (kafka.metrics().connections.open == 0).then_some(())).await?;
    let second = within(5 * SECOND, "send", producer.send(Record::new(&*name, "second"))).await??;

    ensure!(second.offset == 1, "offset {} instead of 1", second.offset);
    let connections = kafka.metrics().connections;
    ensure!(connections.opened > opened, "no connection was made anew");
    ensure!(connections.lost == 0, "{} connections count as lost", connections.lost);
    Ok(())
}

/// CB-19: what waits at a broker for records to come has a connection of its own.
pub(super) async fn a_long_poll_holds_up_nobody(stage: &Stage) -> Result<()> {
    let kafka = client(stage)?.connect().await?;
    let (quiet, busy) = (
        topic(stage, |name| NewTopic::new(name, NODES)).await?,
        topic(stage, |name| NewTopic::new(name, NODES)).await?,
    );
    let consumer = kafka.consumer_without_group().fetch_max_wait(20 * SECOND);
    let consumer = consumer.auto_offset_reset(AutoOffsetReset::Earliest).build().await?;
    consumer.assign(&quiet, (0..NODES).collect()).await?;
    let producer = kafka.producer().linger(Duration::ZERO).build().await?;
    let none = consumer.poll(SECOND).await?;
    ensure!(none.is_empty(), "{} records in an empty topic", none.len());

    let began = now();
    for number in 0..10 {
        producer.send(Record::new(&*busy, "tea").key(format!("{number}"))).await?;
        kafka.admin().describe_cluster().await?;
    }

    let took = began.elapsed();
    ensure!(took < 10 * SECOND, "ten records and descriptions took {took:?}");
    Ok(())
}

/// CB-24: an answer beyond the limit is refused by its length, before it is read.
pub(super) async fn too_large_an_answer_is_refused_with_both_sizes(stage: &Stage) -> Result<()> {
    const LIMIT: usize = 100_000;
    let kafka = client(stage)?.max_response_size(LIMIT).connect().await?;
    let name = topic(stage, |name| NewTopic::new(name, 1)).await?;
    let producer = kafka.producer().build().await?;
    producer.send(Record::new(&*name, vec![7; 300_000])).await?;
    let described = kafka.admin().describe_topics([&*name]).await?.into_values().next();
    let leader = described.and_then(|topic| topic.ok()?.partitions[0].leader).unwrap_or_default();

    let connection = kafka.broker_connection(leader).await?;
    let partition = FetchPartition { partition: 0, partition_max_bytes: 1 << 20, ..FetchPartition::default() };
    let fetched = FetchTopic { topic: name.into(), partitions: vec![partition], ..FetchTopic::default() };
    let request = FetchRequest { max_bytes: 1 << 20, min_bytes: 1, topics: vec![fetched], ..FetchRequest::default() };
    let error = refused(connection.call_at(request, 11).await, "the fetch")?;

    says(&error, &["100000"])?;
    let text = error.to_string();
    ensure!(text.contains("300") && !matches!(error, KrafkaError::Timeout { .. }), "'{text}' does not say how large");
    within(5 * SECOND, "describe", kafka.admin().describe_cluster()).await??;
    Ok(())
}

/// CB-26: nobody answers what is sent with acks=0: the broker closes the connection instead. The next record makes
/// another.
pub(super) async fn unanswered_records_go_on_after_a_bad_one(stage: &Stage) -> Result<()> {
    let kafka = client(stage)?.connect().await?;
    let small = |name: &str| NewTopic::new(name, 1).config("max.message.bytes", "1000");
    let name = topic(stage, small).await?;
    let producer = kafka.producer().acks(Acks::None).idempotent(false).linger(Duration::ZERO).build().await?;
    let consumer = kafka.consumer_without_group().auto_offset_reset(AutoOffsetReset::Earliest).build().await?;
    consumer.assign(&name, vec![0]).await?;
    let lost = kafka.metrics().connections.lost;

    within(5 * SECOND, "send", producer.send(Record::new(&*name, vec![7; 5_000]))).await??;
    until("the broker closes", async || (kafka.metrics().connections.lost > lost).then_some(())).await?;
    within(5 * SECOND, "send", producer.send(Record::new(&*name, "small"))).await??;

    let record = within(10 * SECOND, "recv", consumer.recv()).await??;
    ensure!(record.value.as_deref() == Some(b"small"), "{:?} was read", record.value);
    Ok(())
}
