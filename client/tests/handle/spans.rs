//! Spans by OpenTelemetry's conventions for messaging.

use std::time::Duration;

use krafka::consumer::AutoOffsetReset;
use krafka::testing::FakeCluster;
use krafka::{ErrorCode, Record};
use krafka_protocol::ApiKey;

use super::client;
use super::observed::{Fields, Observed};

const SECOND: Duration = Duration::from_secs(1);

fn one_node() -> FakeCluster {
    FakeCluster::builder().nodes(1).topic("orders", 1).group_initial_rebalance_delay(Duration::ZERO).start_on_pipes()
}

/// Fails unless a span has these fields and no others, besides its name, and what all have.
#[track_caller]
fn assert_has(span: &Fields, operation: [&str; 3], fields: &[(&'static str, &str)]) {
    let [name, operation, kind] = operation;
    let mut expected = Fields::from([
        ("name", operation.to_owned()),
        ("otel.name", name.to_owned()),
        ("otel.kind", kind.to_owned()),
        ("messaging.system", "kafka".to_owned()),
        ("messaging.operation.name", operation.to_owned()),
        ("messaging.client.id", "shop".to_owned()),
    ]);
    expected.extend(fields.iter().map(|(name, value)| (*name, (*value).to_owned())));
    assert_eq!(*span, expected);
}

/// One for the batch, and one for each call that polls.
#[tokio::test(start_paused = true)]
async fn what_goes_and_comes_has_its_span() {
    let (observed, _guard) = Observed::start();
    let fake = one_node();
    let kafka = client(&fake).client_id("shop").connect().await.expect("it is up");
    let producer = kafka.producer().build().await.expect("valid");
    fake.append("orders", 0, None, Some(b"first"));

    let mut handles = Vec::new();
    for _ in 0..3 {
        handles.push(producer.enqueue(Record::new("orders", "tea").key("secret")).await.expect("there is room"));
    }
    for handle in handles {
        handle.await.expect("written");
    }
    let consumer = kafka.consumer("readers").auto_offset_reset(AutoOffsetReset::Earliest).build().await.expect("valid");
    consumer.subscribe(&["orders"]).await.expect("a topic's name");
    let records = consumer.poll(10 * SECOND).await.expect("they are there");
    consumer.close().await.expect("it commits");

    let sent = observed.spans("send");
    assert_eq!(sent.len(), 1, "{sent:?}");
    let leader = fake.bootstrap();
    let (host, port) = leader.rsplit_once(':').expect("a host and a port");
    let batch = [
        ("messaging.operation.type", "send"),
        ("messaging.destination.name", "orders"),
        ("messaging.destination.partition.id", "0"),
        ("messaging.batch.message_count", "3"),
        ("messaging.kafka.offset", "1"),
        ("server.address", host),
        ("server.port", port),
    ];
    assert_has(&sent[0], ["send orders", "send", "producer"], &batch);
    let group = ("messaging.consumer.group.name", "readers");
    let (polled, count) = (observed.spans("poll"), records.len().to_string());
    assert_eq!(polled.len(), 1, "{polled:?}");
    let came = [group, ("messaging.operation.type", "receive"), ("messaging.batch.message_count", &count)];
    assert_has(&polled[0], ["poll", "poll", "client"], &came);
    let committed = observed.spans("commit");
    assert_has(&committed[0], ["commit", "commit", "client"], &[group, ("messaging.operation.type", "settle")]);
}

/// Retries are inside of the one span; what fails says so.
#[tokio::test(start_paused = true)]
async fn a_failure_is_told_by_its_span() {
    let (observed, _guard) = Observed::start();
    let fake = one_node();
    let kafka = client(&fake).client_id("shop").connect().await.expect("it is up");
    let producer = kafka.producer().build().await.expect("valid");
    fake.when(ApiKey::Produce).times(2).reply_error(ErrorCode::NOT_ENOUGH_REPLICAS);

    producer.send(Record::new("orders", "tea")).await.expect("the third attempt succeeds");
    fake.when(ApiKey::Produce).times(1).reply_error(ErrorCode::TOPIC_AUTHORIZATION_FAILED);
    producer.send(Record::new("orders", "tea")).await.expect_err("refused");
    kafka.consumer("readers").build().await.expect("valid").poll(SECOND).await.expect_err("nothing is subscribed to");

    let outcomes = |name: &str, field: &str| -> Vec<_> {
        observed.spans(name).iter().map(|span| span.get(field).cloned().unwrap_or_default()).collect()
    };
    assert_eq!(outcomes("send", "error.type"), ["", "TOPIC_AUTHORIZATION_FAILED"]);
    assert_eq!(outcomes("send", "otel.status_code"), ["", "ERROR"]);
    assert_eq!(outcomes("send", "messaging.kafka.offset"), ["0", ""]);
    assert_eq!(outcomes("poll", "error.type"), ["IllegalState"]);
}
