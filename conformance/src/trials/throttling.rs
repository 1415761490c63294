//! Clients that ask for more than their quota, and are told to be silent for a while (KIP-219).

use std::time::Duration;

use krafka::protocol::api::alter_client_quotas::{EntityData, EntryData, OpData};
use krafka::protocol::api::produce::{PartitionProduceData, TopicProduceData};
use krafka::protocol::{AlterClientQuotasRequest, ApiKey, DescribeClusterRequest, ProduceRequest, RecordBatchBuilder};

use super::road::Road;
use super::{Failure, NODES, NewTopic, Record, Result, Stage, client, ensure, now, topic, until, within};
use crate::provider::stage::IDLE;

const SECOND: Duration = Duration::from_secs(1);

/// The bytes that a client may write in each second. Kafka measures over eleven windows of a second at most.
const RATE: u32 = 10_000;

/// Sets a quota for what a client writes.
async fn limit(stage: &Stage, client_id: &str) -> Result<()> {
    let entity = vec![EntityData { entity_type: "client-id".into(), entity_name: Some(client_id.into()) }];
    let ops = vec![OpData { key: "producer_byte_rate".into(), value: f64::from(RATE), remove: false }];
    let request = AlterClientQuotasRequest { entries: vec![EntryData { entity, ops }], validate_only: false };
    let kafka = client(stage)?.connect().await?;
    let answer = kafka.broker_connection(1).await?.call(request).await?;
    ensure!(answer.entries.iter().all(|entry| entry.error_code == 0), "{:?}", answer.entries);
    // The brokers hear of it a moment later.
    tokio::time::sleep(SECOND).await;
    Ok(())
}

/// So many bytes for the first partition of a topic.
fn records(topic: &str, bytes: usize) -> Result<ProduceRequest> {
    let batch = RecordBatchBuilder::new().add_record(None, Some(&vec![7; bytes]), vec![]).build()?;
    let partition = PartitionProduceData { index: 0, records: Some(batch) };
    let topic = TopicProduceData { name: topic.into(), partition_data: vec![partition], ..TopicProduceData::default() };
    Ok(ProduceRequest { acks: -1, timeout_ms: 10_000, topic_data: vec![topic], ..ProduceRequest::default() })
}

/// TH-01, TH-04, TH-09: a connection is silent for as long as it was told from the answer on, also when that is longer
/// than the request timeout, and is the same one afterwards; other connections go on; and the broker's figure says for
/// how long.
pub(super) async fn a_throttled_connection_is_silent_alone(stage: &Stage) -> Result<()> {
    let (road, name) = (Road::default(), stage.name("client"));
    limit(stage, &name).await?;
    let builder = client(stage)?.client_id(&name).request_timeout(3 * SECOND / 2);
    let kafka = builder.environment(road.environment()).connect().await?;
    let orders = topic(stage, |name| NewTopic::new(name, 1)).await?;
    let described = kafka.admin().describe_topics([&*orders]).await?.into_values().next();
    let leader = described.and_then(|topic| topic.ok()?.partitions[0].leader).unwrap_or_default();
    let (muted, other) = (kafka.broker_connection(leader).await?, kafka.broker_connection(leader).await?);

    // The first record of a topic takes a broker the longest.
    until("a first record", async || muted.call_at(records(&orders, 10).ok()?, 9).await.ok()).await?;
    let answer = muted.call_at(records(&orders, 140_000)?, 9).await?;
    let (told, answered) = (Duration::from_millis(answer.throttle_time_ms.try_into()?), now());
    ensure!(answer.responses[0].partition_responses[0].error_code == 0, "{:?}", answer.responses);
    // A connection that is silent for longer than the broker's idle limit is closed by it, throttled or not.
    ensure!(told > 3 * SECOND / 2 && told < IDLE, "the broker asked for a silence of {told:?}");
    let dials = road.dials().len();
    other.call(DescribeClusterRequest::default()).await?;
    let by_others = answered.elapsed();
    within(told + 5 * SECOND, "the call", muted.call(DescribeClusterRequest::default())).await??;

    ensure!(by_others < SECOND, "another connection waited for {by_others:?}");
    let connection = road.heard_of(ApiKey::Produce).last().map(|heard| heard.connection);
    let next = road.heard_of(ApiKey::DescribeCluster).into_iter().rfind(|heard| Some(heard.connection) == connection);
    let next = next.ok_or_else(|| Failure::new("the call went over another connection"))?;
    let silence = next.at - answered;
    ensure!(silence + SECOND / 20 > told, "silent for {silence:?} instead of {told:?}");
    ensure!(road.dials().len() == dials, "a connection was made anew");
    let metrics = kafka.metrics();
    for node in 1..=NODES {
        let figure = metrics.brokers.get(&node).map(|broker| broker.throttled).unwrap_or_default();
        let expected = if node == leader { told } else { Duration::ZERO };
        ensure!(figure == expected, "node {node}: {figure:?} instead of {expected:?}");
    }
    Ok(())
}

/// TH-03: who has no time for the silence is told so at his deadline, and what he asked is never sent.
pub(super) async fn who_cannot_wait_out_a_silence_is_told_in_time(stage: &Stage) -> Result<()> {
    let (road, name) = (Road::default(), stage.name("client"));
    limit(stage, &name).await?;
    let kafka = client(stage)?.client_id(&name).environment(road.environment()).connect().await?;
    let orders = topic(stage, |name| NewTopic::new(name, 1)).await?;
    let producer = kafka.producer().linger(Duration::ZERO).delivery_timeout(2 * SECOND).request_timeout(SECOND);
    let producer = producer.build().await?;
    producer.send(Record::new(&*orders, vec![7; 200_000])).await?;
    let throttled = async || kafka.metrics().brokers.values().any(|broker| broker.throttled > 3 * SECOND).then_some(());
    until("the broker asks for silence", throttled).await?;
    let asked = road.heard_of(ApiKey::Produce).len();

    let began = now();
    let sent = within(10 * SECOND, "the record", producer.send(Record::new(&*orders, "tea"))).await?;
    let took = began.elapsed();

    let error = super::refused(sent, "a record in a silence")?;
    ensure!((SECOND..4 * SECOND).contains(&took), "it was told after {took:?}: {error:?}");
    let is_definite = matches!(error, krafka::KrafkaError::DeliveryTimeout { possibly_written: false, .. });
    ensure!(is_definite, "{error:?}");
    let asked = road.heard_of(ApiKey::Produce).len() - asked;
    ensure!(asked == 0, "{asked} Produce requests went out in the silence");
    Ok(())
}
