//! Nodes that fall silent or die while they are asked something.

use std::time::Duration;

use krafka::protocol::api::fetch::{FetchPartition, FetchTopic};
use krafka::protocol::api::metadata::MetadataRequestTopic;
use krafka::protocol::{ApiKey, FetchRequest, MetadataRequest};
use krafka::{Kafka, KrafkaError};

use super::road::Road;
use super::{NODES, NewTopic, Result, Stage, client, ensure, now, refused, says, topic, until, within};

const SECOND: Duration = Duration::from_secs(1);

/// A question whose answer names what was asked about.
fn about(topic: &str) -> MetadataRequest {
    let topic = MetadataRequestTopic { name: Some(topic.into()), ..MetadataRequestTopic::default() };
    MetadataRequest { topics: Some(vec![topic]), ..MetadataRequest::default() }
}

/// CB-07: a bootstrap server that takes the connection and never answers is given up on after the connect
/// timeout, and the next one asked; alone, it is named.
pub(super) async fn a_silent_bootstrap_server_is_passed_over(stage: &Stage) -> Result<()> {
    let (silent, other) = (stage.address(1)?, stage.address(2)?);
    let builder = |servers: &str| Kafka::builder(servers).connect_timeout(SECOND / 2).bootstrap_timeout(SECOND);
    stage.pause(1).await?;

    let connected = within(5 * SECOND, "connect", builder(&format!("{silent},{other}")).connect()).await?;
    let alone = within(5 * SECOND, "connect", builder(silent).connect()).await?;

    stage.resume(1).await?;
    connected?.close();
    let error = refused(alone, "connecting to a silent server")?;
    ensure!(error.is_retriable(), "{error:?} is not retriable");
    says(&error, &[silent])
}

/// CB-14, CB-15: the first answer that is late ends its connection, with all that waits behind it, each once and
/// retriably; and no answer ever reaches who did not ask for it.
pub(super) async fn a_late_answer_ends_its_connection(stage: &Stage) -> Result<()> {
    const CALLS: usize = 5;
    let road = Road::default();
    let kafka = client(stage)?.request_timeout(SECOND).environment(road.environment()).connect().await?;
    let mut topics = Vec::new();
    for _ in 0..CALLS {
        topics.push(topic(stage, |name| NewTopic::new(name, 1)).await?);
    }
    let connection = std::sync::Arc::new(kafka.broker_connection(2).await?);
    connection.call(about(&topics[0])).await?;
    let (dials, lost) = (road.dials().len(), kafka.metrics().connections.lost);
    stage.pause(2).await?;

    let began = now();
    let calls: Vec<_> = topics.iter().map(|name| (connection.clone(), about(name))).collect();
    let calls: Vec<_> = calls
        .into_iter()
        .map(|(connection, request)| tokio::spawn(async move { connection.call(request).await }))
        .collect();
    let mut errors = Vec::new();
    for call in calls {
        errors.push(refused(within(5 * SECOND, "the call", call).await??, "a call to a silent broker")?);
    }
    let took = began.elapsed();
    stage.resume(2).await?;

    ensure!((SECOND / 2..3 * SECOND).contains(&took), "the calls failed after {took:?}");
    for error in &errors {
        let is_right = matches!(error, KrafkaError::Timeout { .. } | KrafkaError::Network(_)) && error.is_retriable();
        ensure!(is_right, "{error:?}");
    }
    let lost = kafka.metrics().connections.lost - lost;
    ensure!(lost >= 1, "no connection was given up on");
    for name in &topics {
        let answer = connection.call(about(name)).await?;
        let named = answer.topics.first().and_then(|topic| topic.name.as_deref());
        ensure!(named == Some(&**name), "asked about {name}, told of {named:?}");
    }
    ensure!(road.dials().len() > dials, "the late connection was used again");
    Ok(())
}

/// CB-23: what any broker can answer is answered though one of them is silent; none waits longer than for its
/// request timeout.
pub(super) async fn a_silent_broker_is_not_waited_for_where_others_know(stage: &Stage) -> Result<()> {
    let kafka = client(stage)?.request_timeout(SECOND).connect_timeout(SECOND).connect().await?;
    let name = topic(stage, |name| NewTopic::new(name, NODES)).await?;
    for node in 1..=NODES {
        kafka.broker_connection(node).await?;
    }
    stage.pause(3).await?;

    for number in 0..10 {
        let began = now();
        let described = within(5 * SECOND, "describe", kafka.admin().describe_topics([&*name])).await?;
        let took = began.elapsed();
        ensure!(described.is_ok() && took < 4 * SECOND, "description {number} after {took:?}: {described:?}");
    }
    Ok(())
}

/// CB-28: whoever waits for a broker that is killed hears of it at once, retriably; when it is back, so is the
/// connection.
pub(super) async fn a_killed_broker_fails_its_calls_at_once(stage: &Stage) -> Result<()> {
    let kafka = client(stage)?.connect().await?;
    let on_three = |name: &str| NewTopic::new(name, 6).replication_factor(1);
    let name = topic(stage, on_three).await?;
    let described = kafka.admin().describe_topics([&*name]).await?.into_values().next();
    let partitions = described.and_then(Result::ok).map(|topic| topic.partitions).unwrap_or_default();
    let led = partitions.iter().find(|partition| partition.leader == Some(3)).map(|led| led.partition);
    let Some(partition) = led else { return Err(scenarios::Failure::new("node 3 leads none of six partitions")) };
    let connection = kafka.broker_connection(3).await?;
    let partition = FetchPartition { partition, partition_max_bytes: 1 << 20, ..FetchPartition::default() };
    let fetched = FetchTopic { topic: name.into(), partitions: vec![partition], ..FetchTopic::default() };
    let fetch = FetchRequest { min_bytes: 1, topics: vec![fetched], ..FetchRequest::default() };
    let serves = async || {
        let answer = connection.call_at(fetch.clone(), 11).await.ok()?;
        (answer.responses.first()?.partitions.first()?.error_code == 0).then_some(())
    };
    until("node 3 serves its partition", serves).await?;
    let request = FetchRequest { max_wait_ms: 20_000, ..fetch };
    let waiting = tokio::spawn(async move { (connection.call_at(request, 11).await, connection) });
    tokio::time::sleep(SECOND / 2).await;

    let began = now();
    stage.crash(3).await?;
    let (answer, connection) = within(10 * SECOND, "the fetch", waiting).await??;

    let (error, took) = (refused(answer, "a fetch at a killed broker")?, began.elapsed());
    ensure!(took < 5 * SECOND, "the fetch failed after {took:?}");
    ensure!(matches!(error, KrafkaError::Network(_)) && error.is_retriable(), "{error:?}");
    stage.restart(3).await?;
    connection.call(MetadataRequest::default()).await?;
    Ok(())
}

/// CB-09: an address that refuses is dialled no more often than the backoff allows, and each call hears of it by its
/// own deadline.
pub(super) async fn an_address_that_refuses_is_dialled_as_often_as_the_backoff_allows(stage: &Stage) -> Result<()> {
    let road = Road::default();
    let kafka = client(stage)?.environment(road.environment()).connect().await?;
    kafka.broker_connection(2).await?.call(about("none")).await?;
    let address = stage.address(2)?;
    road.lead(address, "127.0.0.1:1");
    let dials = || road.dials().iter().filter(|dialled| *dialled == address).count();
    let before = dials();

    // From 50 ms on the delay doubles up to a second, give or take a fifth: five dials in the first 1.5 seconds.
    let began = now();
    let mut failures = 0;
    while began.elapsed() < 3 * SECOND {
        match within(5 * SECOND, "connect", kafka.broker_connection(2)).await? {
            Ok(_) => return Err(scenarios::Failure::new("a port where nobody listens was connected to")),
            Err(error) => ensure!(error.is_retriable(), "{error:?}"),
        }
        failures += 1;
        tokio::time::sleep(SECOND / 100).await;
    }

    let dialled = dials() - before;
    ensure!((2..=9).contains(&dialled), "{dialled} dials in three seconds, for {failures} calls");
    let asked = road.heard_of(ApiKey::Metadata).len();
    ensure!(asked < 20, "{asked} Metadata requests");
    Ok(())
}
