//! Brokers that are not alike: of other releases, at other addresses than before, two at one.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use krafka::consumer::AutoOffsetReset;
use krafka::protocol::{ApiVersionsRequest, versions};
use krafka::testing::{FakeCluster, KafkaVersion, Pipes};
use krafka::{
    Connect, Connecting, Environment, Kafka, KrafkaError, MetadataRecoveryStrategy, ProtocolErrorKind, Record,
};
use krafka_protocol::{AnyResponse, ApiKey};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{assert_says, client};

const SECOND: Duration = Duration::from_secs(1);

/// The versions in which a node was asked.
fn spoken(fake: &FakeCluster, node: i32, key: ApiKey) -> Vec<i16> {
    let history = fake.history();
    let mut versions: Vec<_> = history.of(key).filter(|event| event.node == node).map(|event| event.version).collect();
    versions.dedup();
    versions
}

/// AV-07: each node is spoken to as it can, and what moves from one to the other is said anew: topics by their ids
/// here, by their names there.
#[tokio::test(start_paused = true)]
async fn a_cluster_in_the_middle_of_its_upgrade_is_written_to_and_read_from() {
    let builder = FakeCluster::builder().nodes(2).topic("orders", 1).node_version(2, KafkaVersion::V3_9);
    let fake = builder.start_on_pipes();
    let kafka = client(&fake).connect().await.expect("it is up");
    let producer = kafka.producer().build().await.expect("valid");
    let consumer = kafka.consumer_without_group().auto_offset_reset(AutoOffsetReset::Earliest);
    let consumer = consumer.build().await.expect("valid");
    consumer.assign("orders", vec![0]).await.expect("it is there");

    for (offset, leader) in [1, 2, 1, 2].into_iter().enumerate() {
        fake.move_leader("orders", 0, leader);
        let receipt = producer.send(Record::new("orders", "tea")).await.expect("written");
        let record = consumer.recv().await.expect("read");

        assert_eq!((receipt.offset, record.offset), (offset as i64, offset as i64), "led by {leader}");
    }

    for key in [ApiKey::Produce, ApiKey::Fetch] {
        let (new, old) = (spoken(&fake, 1, key), spoken(&fake, 2, key));
        assert!(new.len() == 1 && old.len() == 1 && new[0] > old[0], "{key}: {new:?} at node 1, {old:?} at node 2");
    }
    assert!(spoken(&fake, 2, ApiKey::Produce)[0] < 13, "the first version with topic ids is 13");
}

/// AV-14: the answer's header is that of version 0 at each of them, or no client could read it.
#[tokio::test(start_paused = true)]
async fn versions_may_be_asked_for_at_every_version() {
    let fake = FakeCluster::builder().nodes(1).start_on_pipes();
    let kafka = client(&fake).connect().await.expect("it is up");
    let connection = kafka.broker_connection(1).await.expect("it is up");

    for version in versions::API_VERSIONS_MIN..=versions::API_VERSIONS_MAX {
        let request = ApiVersionsRequest {
            client_software_name: "curious".into(),
            client_software_version: "1".into(),
            ..ApiVersionsRequest::default()
        };
        let answer = connection.call_at(request, version).await.expect("it is read");

        assert!(answer.api_keys.iter().any(|api| api.api_key == ApiKey::ApiVersions as i16), "version {version}");
    }
}

/// A fake whose brokers serve no later version of an API than this.
fn capped(key: ApiKey, most: i16) -> FakeCluster {
    let fake = FakeCluster::builder().nodes(1).topic("orders", 1).start_on_pipes();
    fake.when(ApiKey::ApiVersions).forever().edit(move |response| {
        if let AnyResponse::ApiVersions(versions) = response {
            let served = versions.api_keys.iter_mut().find(|api| api.api_key == key as i16).expect("it is served");
            (served.min_version, served.max_version) = (served.min_version.min(most), most);
        }
    });
    fake
}

/// AV-16: where the versions do not reach, nothing is done by half: the call fails with both ranges, unsent.
#[tokio::test(start_paused = true)]
async fn what_the_versions_do_not_allow_is_refused_and_not_done_by_half() {
    let fake = capped(ApiKey::Produce, 2);
    let kafka = client(&fake).connect().await.expect("it is up");
    let producer = kafka.producer().build().await.expect("valid");

    let error = producer.send(Record::new("orders", "tea")).await.expect_err("batches need version 3");

    assert!(matches!(error, KrafkaError::Protocol { kind: ProtocolErrorKind::UnsupportedVersion, .. }), "{error:?}");
    assert_says(&error, &["Produce", "versions 0 to 2"]);
    assert_eq!(fake.history().count(ApiKey::Produce), 0);

    // A static member that joined as a dynamic one would lose its partitions at each restart.
    let fake = capped(ApiKey::JoinGroup, 4);
    let kafka = client(&fake).connect().await.expect("it is up");
    let consumer = kafka.consumer("g").group_instance_id("one").build().await.expect("valid");
    consumer.subscribe(&["orders"]).await.expect("a topic's name");

    let error = consumer.poll(10 * SECOND).await.expect_err("static members need version 5");

    assert!(matches!(error, KrafkaError::Protocol { .. }) && !error.is_retriable(), "{error:?}");
    assert_says(&error, &["JoinGroup", "group_instance_id"]);
    assert_eq!(fake.history().count(ApiKey::JoinGroup), 0);
}

/// A network in which one name leads to a node that may become another one.
#[derive(Clone)]
struct Renamed {
    pipes: Pipes,
    resolved: Arc<Mutex<(String, u16)>>,
}

impl Connect for Renamed {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a> {
        Box::pin(async move {
            let (host, port) = match host {
                "kafka" => self.resolved.lock().expect("nobody panics with it").clone(),
                host => (host.to_owned(), port),
            };
            let stream: Box<dyn krafka::Stream> = Box::new(self.pipes.connect(&host, port).await?);
            Ok(stream)
        })
    }
}

/// Hears in which versions ApiVersions is asked: what a broker refuses is in no history.
struct Overheard {
    renamed: Renamed,
    asked: Arc<Mutex<Vec<i16>>>,
}

struct OverheardStream {
    stream: Box<dyn krafka::Stream>,
    asked: Arc<Mutex<Vec<i16>>>,
}

impl Connect for Overheard {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a> {
        Box::pin(async move {
            let stream = self.renamed.connect(host, port).await?;
            let stream: Box<dyn krafka::Stream> = Box::new(OverheardStream { stream, asked: self.asked.clone() });
            Ok(stream)
        })
    }
}

impl AsyncRead for OverheardStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for OverheardStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        // In the handshake each write is a whole request: its length, its key, its version.
        if let [_, _, _, _, 0, 18, high, low, ..] = *bytes {
            self.asked.lock().expect("nobody panics with it").push(i16::from_be_bytes([high, low]));
        }
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// CB-05: a name is resolved at each dial: where it leads to by then, the client follows.
#[tokio::test(start_paused = true)]
async fn a_name_that_leads_elsewhere_is_followed() {
    let fake = FakeCluster::builder().nodes(1).start_on_pipes();
    let (host, port) = fake.address(1).expect("it is there");
    let resolved = Arc::new(Mutex::new((host.to_string(), port)));
    fake.advertise(1, Some("kafka"), Some(9092));
    let environment = Environment::new(Renamed { pipes: fake.pipes(), resolved: resolved.clone() }, 1);
    let kafka = Kafka::builder("kafka:9092").environment(environment).connect().await.expect("it is up");
    kafka.admin().describe_cluster().await.expect("it is served");

    fake.move_node(1, "10.0.0.7", 7);
    fake.advertise(1, Some("kafka"), Some(9092));
    *resolved.lock().expect("nobody panics with it") = ("10.0.0.7".to_owned(), 7);
    fake.disconnect(1);

    kafka.admin().describe_cluster().await.expect("it is found at its new address");
}

/// CB-22, MD-22: once it is known that a broker has another address, what was asked at the former one is answered
/// there, and nothing stays connected to it.
#[tokio::test(start_paused = true)]
async fn nothing_stays_connected_to_a_former_address() {
    let fake = FakeCluster::builder().nodes(1).start_on_pipes();
    let (host, port) = fake.address(1).expect("it is there");
    let resolved = Arc::new(Mutex::new((host.to_string(), port)));
    let environment = Environment::new(Renamed { pipes: fake.pipes(), resolved }, 1);
    let builder = Kafka::builder(fake.bootstrap()).environment(environment).metadata_max_age(10 * SECOND);
    let kafka = builder.connect().await.expect("it is up");
    kafka.admin().describe_cluster().await.expect("it is served");
    let at_former = fake.connections(1);
    fake.when(ApiKey::DescribeCluster).times(1).delay(15 * SECOND);
    let admin = kafka.admin();
    let pending = tokio::spawn(async move { admin.describe_cluster().await });
    tokio::time::sleep(SECOND).await;

    fake.advertise(1, Some("kafka"), Some(9092));
    let brokers = pending.await.expect("no panic").expect("it is answered where it was asked").brokers;
    tokio::time::sleep(SECOND).await;

    assert_eq!((&*brokers[0].host, brokers[0].port), ("kafka", 9092));
    assert_eq!(fake.connections(1), at_former - 1, "only that to the bootstrap server is left");
    kafka.admin().describe_cluster().await.expect("it is served");
    assert_eq!(fake.connections(1), at_former, "at the new address now");
}

/// AV-02: to learn that a broker is older than the client costs one question, and not one for each connection. That it
/// is a newer one by now shows in its answer.
#[tokio::test(start_paused = true)]
async fn what_a_broker_took_last_is_asked_first() {
    let fake = FakeCluster::builder().nodes(2).node_version(1, KafkaVersion::V3_9).start_on_pipes();
    let [old, new] =
        [1, 2].map(|node| fake.address(node).expect("it is there")).map(|(host, port)| (host.to_string(), port));
    for node in [1, 2] {
        fake.advertise(node, Some("kafka"), Some(9092));
    }
    let (resolved, asked) = (Arc::new(Mutex::new(old.clone())), Arc::<Mutex<Vec<i16>>>::default());
    let renamed = Renamed { pipes: fake.pipes(), resolved: resolved.clone() };
    let environment = Environment::new(Overheard { renamed, asked: asked.clone() }, 1);
    let builder = Kafka::builder("kafka:9092").environment(environment);
    let builder = builder.metadata_recovery_strategy(MetadataRecoveryStrategy::None);
    let kafka = builder.connect().await.expect("it is up");
    let versions_asked = async || {
        kafka.broker_connection(1).await.expect("it is up");
        std::mem::take(&mut *asked.lock().expect("nobody panics with it"))
    };
    let leads_to = |node: &(String, u16)| *resolved.lock().expect("nobody panics with it") = node.clone();
    const MAX: i16 = versions::API_VERSIONS_MAX;

    assert_eq!(versions_asked().await, [MAX, 4, 4], "the bootstrap server, and the same under its id");
    assert_eq!(versions_asked().await, [4]);
    leads_to(&new);
    assert_eq!(versions_asked().await, [4, MAX], "it was upgraded");
    assert_eq!(versions_asked().await, [MAX]);
    leads_to(&old);
    assert_eq!(versions_asked().await, [MAX, 4], "and downgraded");
    assert_eq!(versions_asked().await, [4]);
}

/// CB-21: behind a gateway, say. They stay two, and each is asked on connections of its own.
#[tokio::test(start_paused = true)]
async fn two_brokers_at_one_address_are_two() {
    let fake = FakeCluster::builder().nodes(2).topic("orders", 1).start_on_pipes();
    fake.move_leader("orders", 0, 1);
    let (host, port) = fake.address(1).expect("it is there");
    let builder = client(&fake).metadata_recovery_strategy(MetadataRecoveryStrategy::None);
    fake.advertise(2, Some(&host), Some(port));
    let kafka = builder.connect().await.expect("it is up");

    let brokers = kafka.admin().describe_cluster().await.expect("it is served").brokers;
    let at: Vec<_> = brokers.iter().map(|broker| (broker.id, broker.host.to_string(), broker.port)).collect();
    assert_eq!(at, [(1, host.to_string(), port), (2, host.to_string(), port)]);
    let before = fake.connections(1);
    let (first, second) = (kafka.broker_connection(1).await, kafka.broker_connection(2).await);
    let (first, second) = (first.expect("it is up"), second.expect("it is up"));
    assert_eq!((first.broker_id(), second.broker_id()), (1, 2));
    assert_eq!(fake.connections(1), before + 2);
    let producer = kafka.producer().build().await.expect("valid");
    producer.send(Record::new("orders", "tea")).await.expect("written to its leader");
}
