//! First contact: which servers are tried, and what is said when none is of use.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use krafka::testing::{FakeCluster, KafkaVersion};
use krafka::{Connect, Connecting, Environment, Kafka, KrafkaError, ProtocolErrorKind, Stream};
use krafka_protocol::{AnyResponse, ApiKey, ErrorCode};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep};

use super::{assert_says, client};

/// Fails to connect within the timeout, in virtual time; the error.
async fn refused(builder: krafka::KafkaBuilder, within: Duration) -> KrafkaError {
    let start = Instant::now();
    let error = builder.connect().await.expect_err("nobody to connect to");
    assert!(start.elapsed() <= within, "it took {:?}", start.elapsed());
    error
}

/// CB-01.
#[tokio::test(start_paused = true)]
async fn a_server_that_is_down_is_passed_over() {
    let fake = FakeCluster::builder().nodes(3).start_on_pipes();
    fake.crash(1);
    fake.crash(2);
    let start = Instant::now();

    client(&fake).connect().await.expect("node 3 is up");

    assert_eq!(start.elapsed(), Duration::ZERO, "nothing had to be waited for");
}

/// CB-03.
#[tokio::test(start_paused = true)]
async fn when_all_are_down_the_error_names_them_all() {
    let fake = FakeCluster::builder().nodes(2).start_on_pipes();
    fake.crash(1);
    fake.crash(2);

    let error = refused(client(&fake), Duration::from_secs(15)).await;

    for address in fake.bootstrap().split(',') {
        assert_says(&error, &[address]);
    }
    assert_says(&error, &["gave up after 15s"]);
    assert!(error.is_retriable());
}

/// CB-03: a firewall that drops, at all of them. The time ends in the middle of the first round, of which is told what
/// is known.
#[tokio::test(start_paused = true)]
async fn when_all_are_silent_the_error_says_so_of_each() {
    let fake = FakeCluster::builder().nodes(3).start_on_pipes();
    fake.when(ApiKey::ApiVersions).forever().silence();

    let error = refused(client(&fake), Duration::from_secs(15)).await;

    for address in fake.bootstrap().split(',') {
        assert_says(&error, &[address]);
    }
    assert_says(&error, &["gave up after 15s", "no answer within 3s", "has not answered yet"]);
    let source = error.source().expect("the last failure");
    assert!(source.to_string().contains("no answer within 3s"), "{source}");
    assert!(matches!(source.downcast_ref(), Some(KrafkaError::Timeout { .. })), "{source:?}");
}

/// CB-03: a port that refuses while its broker starts, and then takes connections and is silent.
#[tokio::test(start_paused = true)]
async fn what_a_later_round_waits_for_is_told_beside_the_failures_before_it() {
    let fake = FakeCluster::builder().nodes(1).start_on_pipes();
    fake.crash(1);
    fake.when(ApiKey::ApiVersions).forever().silence();

    let builder = client(&fake).bootstrap_timeout(Duration::from_secs(4));
    let starting = async {
        sleep(Duration::from_millis(500)).await;
        fake.restart(1);
    };
    let (connected, ()) = tokio::join!(builder.connect(), starting);

    let error = connected.expect_err("it is silent");
    assert_says(&error, &["gave up after 4s", "connecting to", "has not answered yet"]);
}

/// CB-03: what is known of some is told, though others are silent.
#[tokio::test(start_paused = true)]
async fn a_known_cause_is_told_beside_silent_servers() {
    let fake = FakeCluster::builder().nodes(5).start_on_pipes();
    fake.crash(5);
    fake.when(ApiKey::ApiVersions).forever().silence();

    let error = refused(client(&fake), Duration::from_secs(15)).await;

    let down = fake.bootstrap().split(',').next_back().expect("five servers").to_owned();
    assert_says(&error, &[&down, "refused"]);
    assert!(error.source().is_some());
}

/// Applications start before their clusters.
#[tokio::test(start_paused = true)]
async fn a_cluster_that_comes_up_late_is_found() {
    let fake = FakeCluster::builder().nodes(1).start_on_pipes();
    fake.crash(1);
    let connecting = tokio::spawn(client(&fake).connect());

    sleep(Duration::from_secs(9)).await;
    fake.restart(1);

    connecting.await.expect("no panic").expect("the node is up");
}

/// MD-15: a client that connects loads no topic.
#[tokio::test(start_paused = true)]
async fn connecting_asks_for_no_topics() {
    let fake = FakeCluster::builder().nodes(1).topic("orders", 3).start_on_pipes();

    let _kafka = client(&fake).connect().await.expect("it is up");

    let history = fake.history();
    let asked: Vec<_> = history.requests::<krafka_protocol::MetadataRequest>().map(|r| r.topics.clone()).collect();
    assert_eq!(asked, [Some(Vec::new())]);
    let keys: Vec<_> = history.iter().map(|event| event.key).collect();
    assert_eq!(keys, [ApiKey::ApiVersions, ApiKey::Metadata]);
}

/// AV-01: an older broker costs one more round trip, and no more.
#[tokio::test(start_paused = true)]
async fn every_kafka_version_is_spoken_with() {
    for version in KafkaVersion::ALL {
        let fake = FakeCluster::builder().nodes(1).as_version(version).start_on_pipes();

        let kafka = client(&fake).connect().await.expect("it is up");
        kafka.admin().describe_cluster().await.expect("it is served");

        let hellos = fake.history().count(ApiKey::ApiVersions);
        assert!((2..=4).contains(&hellos), "{version:?}: {hellos} ApiVersions for two connections");
    }
}

/// It took this version before, and does not now: what it takes is found out anew.
#[tokio::test(start_paused = true)]
async fn a_version_that_is_refused_after_it_was_taken_is_not_begun_with_again() {
    let fake = FakeCluster::builder().nodes(1).start_on_pipes();
    fake.when(ApiKey::ApiVersions).versions(4..=i16::MAX).forever().drop_connection();
    let attempts = Arc::new(AtomicUsize::new(0));
    fake.when(ApiKey::ApiVersions).versions(0..=3).forever().edit({
        let attempts = attempts.clone();
        move |response| {
            let AnyResponse::ApiVersions(versions) = response else { return };
            let own = versions.api_keys.iter_mut().find(|api| api.api_key == ApiKey::ApiVersions as i16);
            own.expect("it is served").max_version = 3;
            // The third answer is the second connection's first.
            if attempts.fetch_add(1, Ordering::Relaxed) == 2 {
                versions.error_code = ErrorCode::INVALID_REQUEST.0;
            }
        }
    });

    let kafka = client(&fake).connect().await.expect("it speaks version 3");
    kafka.admin().describe_cluster().await.expect("it is served");

    let asked: Vec<_> = fake.history().of(ApiKey::ApiVersions).map(|event| event.version).collect();
    assert_eq!(asked, [5, 0, 3, 3, 5, 0, 3], "connected; refused at what it took; connected as at first");
}

/// A peer may close the connection instead of refusing a version. It gets asked at others, and one that only had to
/// restart is asked at all of them again, because version 0 tells no features.
#[tokio::test(start_paused = true)]
async fn a_peer_that_closes_at_a_version_is_asked_at_another() {
    for (times, asked) in [(1, vec![5, 0, 5]), (u64::MAX, vec![5, 0, 5, 0])] {
        let fake = FakeCluster::builder().nodes(1).start_on_pipes();
        fake.when(ApiKey::ApiVersions).versions(1..=i16::MAX).times(times).drop_connection();

        let kafka = client(&fake).connect().await.expect("it speaks version 0");
        let first: Vec<_> = fake.history().of(ApiKey::ApiVersions).map(|event| event.version).collect();
        kafka.admin().describe_cluster().await.expect("it is served");

        assert_eq!(first, asked);
    }
}

/// Accepts, and never says a word.
pub(super) struct Mute;

impl Connect for Mute {
    fn connect<'a>(&'a self, _host: &'a str, _port: u16) -> Connecting<'a> {
        Box::pin(async {
            let (ours, theirs) = tokio::io::duplex(1024);
            tokio::spawn(async move {
                let _open = theirs;
                std::future::pending::<()>().await;
            });
            let stream: Box<dyn Stream> = Box::new(ours);
            Ok(stream)
        })
    }
}

/// Never accepts.
struct Hole;

impl Connect for Hole {
    fn connect<'a>(&'a self, _host: &'a str, _port: u16) -> Connecting<'a> {
        Box::pin(std::future::pending())
    }
}

/// CB-07.
#[tokio::test(start_paused = true)]
async fn a_server_that_says_nothing_is_named_in_time() {
    let builder = Kafka::builder("kafka:9092").environment(Environment::new(Mute, 1));

    let error = refused(builder, Duration::from_secs(15)).await;

    assert_says(&error, &["kafka:9092", "no answer to ApiVersions within 10s", "connect_timeout"]);
    assert!(error.source().expect("the last cause").to_string().contains("no answer to ApiVersions"), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_reached_is_named_in_time() {
    let builder = Kafka::builder("kafka:9092").environment(Environment::new(Hole, 1));

    let error = refused(builder, Duration::from_secs(15)).await;

    assert_says(&error, &["kafka:9092", "no connection within 10s", "connect_timeout"]);
}

/// AU-01.
#[tokio::test(start_paused = true)]
async fn sasl_plain_is_accepted() {
    let fake = FakeCluster::builder().nodes(2).sasl_plain("alice", "hunter2").start_on_pipes();

    let kafka = client(&fake).sasl_plain("alice", "hunter2").connect().await.expect("the password is right");

    assert_eq!(kafka.admin().describe_cluster().await.expect("it is served").brokers.len(), 2);
}

/// AU-02.
#[tokio::test(start_paused = true)]
async fn a_wrong_password_is_told_at_once_and_not_shown() {
    let fake = FakeCluster::builder().nodes(1).sasl_plain("alice", "hunter2").start_on_pipes();

    let error = refused(client(&fake).sasl_plain("alice", "swordfish"), Duration::from_secs(1)).await;

    assert!(matches!(error, KrafkaError::Auth { .. }) && !error.is_retriable(), "{error:?}");
    assert_says(&error, &["PLAIN", &fake.bootstrap()]);
    assert!(!format!("{error:?}").contains("swordfish"));
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_wants_sasl_is_hinted_at() {
    let fake = FakeCluster::builder().nodes(1).sasl_plain("alice", "hunter2").start_on_pipes();

    let error = refused(client(&fake), Duration::from_secs(15)).await;

    assert_says(&error, &["SASL"]);
}

#[tokio::test]
async fn bad_settings_are_named() {
    let check = async |builder: krafka::KafkaBuilder, words: &[&str]| {
        let error = builder.connect().await.expect_err("a setting is wrong");
        assert!(matches!(error, KrafkaError::Config { .. }), "{error:?}");
        assert_says(&error, words);
    };

    check(Kafka::builder(""), &["no bootstrap server"]).await;
    check(Kafka::builder("kafka"), &["'kafka' has no port"]).await;
    check(Kafka::builder("kafka:1").request_timeout(Duration::ZERO), &["request_timeout is zero"]).await;
    check(Kafka::builder("kafka:1").metadata_max_age(Duration::ZERO), &["metadata_max_age is zero"]).await;
    check(Kafka::builder("kafka:1").connections_max_idle(Duration::ZERO), &["connections_max_idle is zero"]).await;
    check(Kafka::builder("kafka:1").bootstrap_timeout(Duration::ZERO), &["bootstrap_timeout is zero"]).await;
    check(Kafka::builder("kafka:1").connect_timeout(Duration::ZERO), &["connect_timeout is zero"]).await;
    check(Kafka::builder("kafka:1").max_response_size(10), &["max_response_size is 10"]).await;
    check(Kafka::builder("kafka:1").max_connections(0), &["max_connections is 0"]).await;
    check(Kafka::builder("kafka:1").sasl_plain("", "x"), &["sasl_plain", "user name is empty"]).await;
    check(Kafka::builder("kafka:1").client_id("x".repeat(40_000)), &["client_id"]).await;
}

/// A TCP server that answers whatever comes with these bytes; its address.
async fn server(says: &'static [u8]) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            // The client may be gone already.
            let _ = stream.write_all(says).await;
            let _ = stream.shutdown().await;
        }
    });
    address
}

#[tokio::test]
async fn a_port_that_speaks_http_is_told_so() {
    let address = server(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").await;

    let error = Kafka::builder(&address).connect().await.expect_err("it is no broker");

    assert!(matches!(error, KrafkaError::Protocol { kind: ProtocolErrorKind::NotKafka, .. }), "{error:?}");
    assert_says(&error, &[&address, "HTTP", "Kafka listener"]);
}

#[tokio::test]
async fn a_port_that_speaks_tls_is_told_so() {
    let address = server(&[0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x32]).await;

    let error = Kafka::builder(&address).connect().await.expect_err("it is no plaintext listener");

    assert!(matches!(error, KrafkaError::Protocol { kind: ProtocolErrorKind::NotKafka, .. }), "{error:?}");
    assert_says(&error, &[&address, "TLS"]);
}

/// CB-08: it accepts and closes at once, for ever.
#[tokio::test]
async fn a_port_that_closes_at_once_is_told_so() {
    let address = server(b"").await;

    let builder = Kafka::builder(&address).bootstrap_timeout(Duration::from_millis(300));
    let error = builder.connect().await.expect_err("it is no broker");

    assert_says(&error, &[&address, "closed the connection during the handshake", "TLS or SASL"]);
}

#[tokio::test]
async fn a_refused_port_is_told_with_a_remedy() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    drop(listener);

    let builder = Kafka::builder(&address).bootstrap_timeout(Duration::from_millis(300));
    let error = builder.connect().await.expect_err("nobody listens");

    assert_says(&error, &[&address, "refused", "is the broker running"]);
    let KrafkaError::Network(source) = &error else { panic!("{error:?}") };
    assert_eq!(source.kind(), io::ErrorKind::ConnectionRefused);
    let system: &io::Error = error.source().and_then(|source| source.downcast_ref()).expect("the system's own");
    assert!(system.raw_os_error().is_some(), "{system:?}");
}

/// CB-03: one server is no broker, and the other is just starting.
#[tokio::test]
async fn a_wrong_server_among_others_is_not_the_end() {
    let wrong = server(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let starting = listener.local_addr().expect("it is bound").to_string();
    drop(listener);

    let builder = Kafka::builder(format!("{wrong},{starting}")).bootstrap_timeout(Duration::from_millis(300));
    let error = builder.connect().await.expect_err("neither is of use");

    assert!(error.is_retriable(), "{error:?}");
    assert_says(&error, &["gave up after 300ms", &wrong, "HTTP", &starting, "refused"]);
}

/// CB-04.
#[tokio::test]
async fn an_unknown_host_is_told_with_a_remedy() {
    let builder = Kafka::builder("no-such-host.invalid:9092").bootstrap_timeout(Duration::from_millis(300));

    let error = builder.connect().await.expect_err("there is no such host");

    assert_says(&error, &["no-such-host.invalid:9092"]);
}

#[tokio::test]
async fn tcp_works() {
    let fake = FakeCluster::builder().nodes(3).topic("orders", 3).start().await.expect("free ports");

    let kafka = Kafka::builder(fake.bootstrap()).connect().await.expect("it is up");

    assert_eq!(kafka.admin().describe_cluster().await.expect("it is served").brokers.len(), 3);
}

/// [`Duration::MAX`] is how Rust says "for ever".
#[tokio::test(start_paused = true)]
async fn for_ever_is_a_time_like_any_other() {
    const FOR_EVER: Duration = Duration::MAX;
    let fake = FakeCluster::builder().nodes(1).start_on_pipes();
    let builder = client(&fake).request_timeout(FOR_EVER).connect_timeout(FOR_EVER).bootstrap_timeout(FOR_EVER);
    let builder = builder.metadata_max_age(FOR_EVER).connections_max_idle(FOR_EVER);

    let kafka = builder.metadata_recovery_rebootstrap_trigger(FOR_EVER).connect().await.expect("connected");

    kafka
        .admin()
        .with_timeout(FOR_EVER)
        .create_topics([krafka::NewTopic::new("t", 1)])
        .await
        .expect("a broker answers");
}
