//! Where connections lead, how many there are, and what each begins with.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use krafka::consumer::AutoOffsetReset;
use krafka::producer::Acks;
use krafka::testing::{FakeCluster, Pipes};
use krafka::{Connect, Connecting, Environment, Kafka, Record, Stream};
use krafka_protocol::{AnyResponse, ApiKey, ApiVersionsRequest};
use tokio::time::{Instant, sleep, timeout};

#[cfg(feature = "tls")]
use super::connect::Mute;
use super::{assert_says, client};

const SECOND: Duration = Duration::from_secs(1);

/// Hosts and ports, in the order in which they were connected to.
type Dialled = Arc<Mutex<Vec<(String, u16)>>>;

/// Notes where it is asked to connect, takes its time, and knows one more name for node 1.
struct Noted {
    pipes: Pipes,
    node_1: (String, u16),
    delay: Duration,
    dialled: Dialled,
}

impl Noted {
    fn new(fake: &FakeCluster, delay: Duration) -> (Self, Dialled) {
        let dialled = Arc::new(Mutex::new(Vec::new()));
        let (host, port) = fake.address(1).expect("node 1 is there");
        (Self { pipes: fake.pipes(), node_1: (host.to_string(), port), delay, dialled: dialled.clone() }, dialled)
    }
}

impl Connect for Noted {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a> {
        self.dialled.lock().expect("nobody panicked").push((host.to_owned(), port));
        Box::pin(async move {
            sleep(self.delay).await;
            let front = matches!(host, "front" | "::1");
            let (host, port) = if front { (self.node_1.0.as_str(), self.node_1.1) } else { (host, port) };
            let stream: Box<dyn Stream> = Box::new(self.pipes.connect(host, port).await?);
            io::Result::Ok(stream)
        })
    }
}

/// CB-06, CB-32: the bootstrap server is asked once; what follows goes to where the brokers say that they are.
#[tokio::test(start_paused = true)]
async fn requests_go_to_the_addresses_that_brokers_advertise() {
    let fake = FakeCluster::builder().nodes(1).topic("orders", 1).start_on_pipes();
    let (connect, dialled) = Noted::new(&fake, Duration::ZERO);
    let advertised = connect.node_1.clone();

    let kafka =
        Kafka::builder("front:443").environment(Environment::new(connect, 1)).connect().await.expect("it is up");
    kafka.admin().describe_cluster().await.expect("it is served");
    kafka.producer().build().await.expect("valid").send(Record::new("orders", "tea")).await.expect("it is written");

    let dialled = dialled.lock().expect("nobody panicked").clone();
    assert_eq!(dialled, [("front".to_owned(), 443), advertised.clone(), advertised], "admin and producer");
}

#[tokio::test(start_paused = true)]
async fn an_ipv6_address_is_dialled_as_such() {
    let fake = FakeCluster::builder().nodes(1).start_on_pipes();
    let (connect, dialled) = Noted::new(&fake, Duration::ZERO);

    Kafka::builder("[::1]:9092").environment(Environment::new(connect, 1)).connect().await.expect("it is up");

    assert_eq!(dialled.lock().expect("nobody panicked")[0], ("::1".to_owned(), 9092));
}

/// CB-02: of two addresses of a name the first takes connections, and there is no broker behind it. The next attempt
/// begins with the other, and so do those for other lanes.
#[tokio::test(start_paused = true)]
async fn an_address_with_no_broker_behind_it_is_got_past() {
    /// Leads to a load balancer that closes at once, or is silent; after that, to the broker.
    struct Balanced {
        pipes: Pipes,
        node: (String, u16),
        is_silent: bool,
        dead: Arc<Mutex<usize>>,
    }
    impl Connect for Balanced {
        fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a> {
            self.connect_past(host, port, 0)
        }

        fn connect_past<'a>(&'a self, _host: &'a str, _port: u16, dead: usize) -> Connecting<'a> {
            Box::pin(async move {
                if dead % 2 == 1 {
                    let stream: Box<dyn Stream> = Box::new(self.pipes.connect(&self.node.0, self.node.1).await?);
                    return Ok(stream);
                }
                *self.dead.lock().expect("nobody panicked") += 1;
                let (near, far) = tokio::io::duplex(1_000);
                if self.is_silent {
                    tokio::spawn(async move {
                        sleep(60 * SECOND).await;
                        drop(far);
                    });
                }
                let stream: Box<dyn Stream> = Box::new(near);
                Ok(stream)
            })
        }
    }

    for is_silent in [false, true] {
        let fake = FakeCluster::builder().nodes(1).topic("orders", 1).start_on_pipes();
        let (host, port) = fake.address(1).expect("it is there");
        fake.advertise(1, Some("front"), Some(443));
        let dead = Arc::default();
        let node = (host.to_string(), port);
        let connect = Balanced { pipes: fake.pipes(), node, is_silent, dead: Arc::clone(&dead) };

        let builder = Kafka::builder("front:443").environment(Environment::new(connect, 1));
        let kafka = builder.connect().await.expect("there is a broker behind the second");
        kafka.producer().build().await.expect("valid").send(Record::new("orders", "tea")).await.expect("it is written");

        assert_eq!(*dead.lock().expect("nobody panicked"), 1, "silent: {is_silent}");
    }
}

/// CB-07: each step would have been in time.
#[tokio::test(start_paused = true)]
async fn the_connect_timeout_is_of_all_steps_together() {
    let fake = FakeCluster::builder().nodes(1).sasl_plain("alice", "hunter2").start_on_pipes();
    fake.when([ApiKey::ApiVersions, ApiKey::SaslHandshake, ApiKey::SaslAuthenticate]).forever().delay(3 * SECOND);
    let connect = |connect_timeout| {
        let environment = Environment::new(Noted::new(&fake, 3 * SECOND).0, 1);
        let builder = client(&fake).sasl_plain("alice", "hunter2").environment(environment);
        builder.connect_timeout(connect_timeout).bootstrap_timeout(20 * SECOND).connect()
    };
    let start = Instant::now();

    connect(13 * SECOND).await.expect("four steps of three seconds");
    assert_eq!(start.elapsed(), 12 * SECOND);

    for (time, said) in [
        (2, "no connection within 2s"),
        (5, "no answer to ApiVersions within 5s"),
        (8, "no answer to SaslHandshake within 8s"),
        (11, "no answer to SaslAuthenticate within 11s"),
    ] {
        let error = connect(time * SECOND).await.expect_err("it takes twelve seconds");
        assert_says(&error, &[&fake.bootstrap(), said]);
    }
}

/// And the TLS handshake is one of them.
#[cfg(feature = "tls")]
#[tokio::test(start_paused = true)]
async fn a_peer_that_does_not_answer_a_tls_greeting_is_named_in_time() {
    let certified = rcgen::generate_simple_self_signed(["kafka".to_owned()]).expect("a certificate");
    let builder = Kafka::builder("kafka:9092").environment(Environment::new(Mute, 1));
    let start = Instant::now();

    let error = builder.tls_roots_pem(certified.cert.pem()).connect().await.expect_err("nobody answers");

    assert!(start.elapsed() <= 15 * SECOND, "it took {:?}", start.elapsed());
    assert_says(&error, &["kafka:9092", "no end of the TLS handshake within 10s", "connect_timeout"]);
}

/// CB-08: for a minute, and not more often than once a second in the end.
#[tokio::test(start_paused = true)]
async fn a_broker_that_closes_at_once_is_not_dialled_in_a_loop() {
    struct Closing(Arc<Mutex<usize>>);
    impl Connect for Closing {
        fn connect<'a>(&'a self, _host: &'a str, _port: u16) -> Connecting<'a> {
            *self.0.lock().expect("nobody panicked") += 1;
            Box::pin(async {
                let stream: Box<dyn Stream> = Box::new(tokio::io::duplex(64).0);
                Ok(stream)
            })
        }
    }
    let dials = Arc::new(Mutex::new(0));
    let builder = Kafka::builder("kafka:9092").environment(Environment::new(Closing(dials.clone()), 1));

    builder.bootstrap_timeout(60 * SECOND).connect().await.expect_err("nobody is there");

    let dials = *dials.lock().expect("nobody panicked");
    assert!((40..=85).contains(&dials), "{dials} dials in a minute");
}

/// CB-29, BR-008: brokers tie a client's name, version and metrics to the connection.
#[tokio::test(start_paused = true)]
async fn every_connection_begins_with_who_the_client_is() {
    // A member's id is made of it, and 37 characters more.
    for client_id in [String::new(), "x".repeat(i16::MAX as usize - 37)] {
        let fake = FakeCluster::builder().nodes(2).topic("orders", 2).start_on_pipes();
        let kafka = client(&fake).client_id(client_id.clone()).connect().await.expect("it is up");
        let producer = kafka.producer().build().await.expect("valid");
        let consumer = kafka.consumer("g").auto_offset_reset(AutoOffsetReset::Earliest).build().await.expect("valid");
        consumer.subscribe(&["orders"]).await.expect("valid");
        for partition in 0..2 {
            producer.send(Record::new("orders", "tea").partition(partition)).await.expect("it is written");
            timeout(60 * SECOND, consumer.recv()).await.expect("in time").expect("it is read");
        }

        let history = fake.history();
        let mut seen = std::collections::BTreeSet::new();
        for event in history.iter() {
            assert_eq!(event.client_id.as_deref(), Some(client_id.as_str()));
            if seen.insert((event.node, event.connection)) {
                let hello = event.request::<ApiVersionsRequest>().expect("it is what a connection begins with");
                let (name, version) = (&*hello.client_software_name, &*hello.client_software_version);
                assert_eq!((name, version), ("krafka", env!("CARGO_PKG_VERSION")));
            }
        }
        assert!(seen.len() > 6, "{} connections", seen.len());
    }
}

/// CB-19, TH-01: a broker parks what it likes, and throttles a connection: the other lanes do not wait for that.
#[tokio::test(start_paused = true)]
async fn a_lane_that_waits_holds_back_no_other() {
    for is_throttled in [false, true] {
        let fake = FakeCluster::builder().nodes(1).topic("orders", 1).start_on_pipes();
        let kafka = client(&fake).connect().await.expect("it is up");
        let (fetches, joins) = (fake.when(ApiKey::Fetch).forever(), fake.when(ApiKey::JoinGroup).forever());
        let (fetches, joins) = match is_throttled {
            false => (fetches.silence(), joins.silence()),
            true => (fetches.throttle(200 * SECOND), joins.throttle(200 * SECOND)),
        };
        let reader = kafka.consumer_without_group().build().await.expect("valid");
        reader.assign("orders", vec![0]).await.expect("it exists");
        let member = kafka.consumer("g").build().await.expect("valid");
        member.subscribe(&["orders"]).await.expect("valid");
        fetches.wait(1).await;
        joins.wait(1).await;
        let producer = kafka.producer().build().await.expect("valid");
        let start = Instant::now();

        producer.send(Record::new("orders", "tea")).await.expect("it is written");
        kafka.admin().describe_cluster().await.expect("it is served");
        reader.position("orders", 0).await.expect("it is known");

        assert!(start.elapsed() < SECOND, "it took {:?}", start.elapsed());
    }
}

/// CB-26: the broker says nothing, but hangs up; nothing waits for an answer that does not come.
#[tokio::test(start_paused = true)]
async fn without_acknowledgements_a_closed_connection_is_replaced() {
    let fake = FakeCluster::builder().nodes(1).topic("orders", 1).start_on_pipes();
    let kafka = client(&fake).connect().await.expect("it is up");
    let producer = kafka.producer().acks(Acks::None).build().await.expect("valid");
    let rule = fake.when(ApiKey::Produce).times(1).drop_connection();

    timeout(SECOND, producer.send(Record::new("orders", "lost"))).await.expect("in time").expect("it was sent");
    rule.wait(1).await;
    sleep(SECOND).await;
    timeout(SECOND, producer.send(Record::new("orders", "tea"))).await.expect("in time").expect("it was sent");
    sleep(SECOND).await;

    assert_eq!(fake.partition_records("orders", 0).len(), 1);
}

/// CB-30: slow, not dead.
#[tokio::test(start_paused = true)]
async fn answers_that_come_just_in_time_are_answers() {
    let fake = FakeCluster::builder().nodes(1).start_on_pipes();
    let kafka = client(&fake).request_timeout(10 * SECOND).connect().await.expect("it is up");
    kafka.admin().describe_cluster().await.expect("it is served");
    let connections = fake.history().count(ApiKey::ApiVersions);
    fake.when(ApiKey::DescribeCluster).forever().delay(9 * SECOND);

    for _ in 0..20 {
        kafka.admin().describe_cluster().await.expect("it is in time");
    }

    assert_eq!(fake.history().count(ApiKey::ApiVersions), connections, "none was given up");
}

/// The commonest mistake of all: the bootstrap server answers, and advertises what nobody can reach from here.
#[tokio::test(start_paused = true)]
async fn an_address_that_the_broker_advertises_is_told_to_be_its_own() {
    let fake = FakeCluster::builder().nodes(1).start_on_pipes();
    fake.when(ApiKey::Metadata).forever().edit(|response| {
        if let AnyResponse::Metadata(answer) = response {
            for broker in &mut answer.brokers {
                broker.host = "kafka-internal.invalid".into();
            }
        }
    });
    let kafka = client(&fake).connect().await.expect("the bootstrap server answers");

    let error = kafka.broker_connection(1).await.map(drop).expect_err("nobody is there");

    assert_says(&error, &["broker 1 at kafka-internal.invalid", "advertised.listeners"]);
    assert!(!error.to_string().contains("is the broker running"), "{error}");
}
