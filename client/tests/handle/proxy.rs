//! A cluster behind a SOCKS5 proxy, which alone knows the names of its brokers.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use krafka::testing::{FakeCluster, Pipes};
use krafka::{Connect, Connecting, Environment, Kafka, KafkaBuilder, KrafkaError, Record, Socks5, Stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, copy_bidirectional};

use super::assert_says;

const PROXY: (&str, u16) = ("proxy.example", 1080);

/// The network of the client, on which there is the proxy and nothing else.
struct Outside {
    pipes: Pipes,
    /// The hosts that the proxy was asked to connect to.
    asked: Arc<Mutex<Vec<String>>>,
}

impl Connect for Outside {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a> {
        assert_eq!((host, port), PROXY, "the client knows no other name");
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        tokio::spawn(serve(theirs, self.pipes.clone(), self.asked.clone()));
        Box::pin(async {
            let stream: Box<dyn Stream> = Box::new(ours);
            Ok(stream)
        })
    }
}

/// One client of the proxy: method 0, one CONNECT by name, then both ends are joined.
async fn serve(mut client: DuplexStream, pipes: Pipes, asked: Arc<Mutex<Vec<String>>>) -> io::Result<()> {
    let mut greeting = [0; 3];
    client.read_exact(&mut greeting).await?;
    assert_eq!(greeting, [5, 1, 0]);
    client.write_all(&[5, 0]).await?;
    let mut head = [0; 5];
    client.read_exact(&mut head).await?;
    assert_eq!(head[..4], [5, 1, 0, 3], "names are left to the proxy");
    let mut name = vec![0; usize::from(head[4])];
    client.read_exact(&mut name).await?;
    let (name, port) = (String::from_utf8(name).expect("a name is text"), client.read_u16().await?);
    asked.lock().expect("nobody panicked").push(name.clone());
    match pipes.connect(&name, port).await {
        Ok(mut broker) => {
            client.write_all(&[5, 0, 0, 1, 10, 0, 0, 1, 0, 80]).await?;
            copy_bidirectional(&mut client, &mut broker).await?;
        }
        Err(_) => client.write_all(&[5, 5, 0, 1, 0, 0, 0, 0, 0, 0]).await?,
    }
    Ok(())
}

/// A client of the cluster behind the proxy, and what the proxy is asked.
fn behind(fake: &FakeCluster) -> (KafkaBuilder, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let outside = Outside { pipes: fake.pipes(), asked: asked.clone() };
    let proxy = Socks5::new(PROXY.0, PROXY.1).reached_by(outside);
    (Kafka::builder(fake.bootstrap()).environment(Environment::new(proxy, 1)), asked)
}

#[tokio::test(start_paused = true)]
async fn a_cluster_behind_a_proxy_is_used_like_any_other() {
    let fake = FakeCluster::builder().nodes(3).topic("orders", 3).start_on_pipes();
    let (builder, asked) = behind(&fake);

    let kafka = builder.connect().await.expect("the proxy lets it through");
    let producer = kafka.producer().build().await.expect("valid");
    for partition in 0..3 {
        producer.send(Record::new("orders", "tea").partition(partition)).await.expect("its leader is reached");
    }

    let mut hosts = asked.lock().expect("nobody panicked").clone();
    hosts.sort();
    hosts.dedup();
    let nodes: Vec<_> = fake.nodes().into_iter().filter_map(|id| fake.address(id)).map(|(host, _)| host).collect();
    assert!(nodes.iter().all(|node| hosts.iter().any(|host| **host == **node)), "{hosts:?}, not all of {nodes:?}");
}

#[tokio::test(start_paused = true)]
async fn what_the_proxy_says_is_told() {
    let fake = FakeCluster::builder().nodes(1).start_on_pipes();
    fake.crash(1);
    let (builder, _) = behind(&fake);

    let error = builder.bootstrap_timeout(Duration::from_millis(300)).connect().await.expect_err("node 1 is down");

    assert_says(&error, &[&fake.bootstrap(), "the SOCKS5 proxy proxy.example:1080: nothing listens there"]);
    let KrafkaError::Network(source) = &error else { panic!("{error:?}") };
    assert_eq!(source.kind(), io::ErrorKind::ConnectionRefused);
}

/// A network on which there is no proxy.
struct Nobody;

impl Connect for Nobody {
    fn connect<'a>(&'a self, _host: &'a str, _port: u16) -> Connecting<'a> {
        Box::pin(std::future::ready(Err(io::ErrorKind::ConnectionRefused.into())))
    }
}

/// It is the proxy that is down, and not the broker.
#[tokio::test(start_paused = true)]
async fn a_proxy_that_is_down_is_named() {
    let proxy = Socks5::new(PROXY.0, PROXY.1).reached_by(Nobody);
    let builder = Kafka::builder("kafka:9092").environment(Environment::new(proxy, 1));

    let error = builder.connect().await.expect_err("there is no proxy");

    assert!(error.is_retriable(), "{error:?}");
    assert_says(&error, &["kafka:9092", "the SOCKS5 proxy proxy.example:1080: it cannot be reached", "is it running"]);
    assert!(!error.to_string().contains("is the broker running"), "{error}");
}

/// A proxy that says this as soon as it is spoken to.
struct Saying(&'static [u8]);

impl Connect for Saying {
    fn connect<'a>(&'a self, _host: &'a str, _port: u16) -> Connecting<'a> {
        let (ours, mut theirs) = tokio::io::duplex(1024);
        let said = self.0;
        tokio::spawn(async move {
            let mut heard = [0; 3];
            let _ = theirs.read_exact(&mut heard).await;
            let _ = theirs.write_all(said).await;
            let _ = theirs.read_to_end(&mut Vec::new()).await;
        });
        Box::pin(async {
            let stream: Box<dyn Stream> = Box::new(ours);
            Ok(stream)
        })
    }
}

/// What no waiting helps with is told at once.
#[tokio::test(start_paused = true)]
async fn a_proxy_that_will_not_change_its_mind_is_left_at_once() {
    let connect = async |said: &'static [u8], credentials: bool| {
        let proxy = Socks5::new(PROXY.0, PROXY.1).reached_by(Saying(said));
        let proxy = if credentials { proxy.credentials("alice", "hunter2") } else { proxy };
        let start = tokio::time::Instant::now();
        let error = Kafka::builder("kafka:9092").environment(Environment::new(proxy, 1)).connect().await;
        let error = error.expect_err("it does not connect");
        assert!(start.elapsed() < Duration::from_secs(1) && !error.is_retriable(), "{error:?} {:?}", start.elapsed());
        assert_says(&error, &["the SOCKS5 proxy proxy.example:1080"]);
        error
    };

    let http = connect(b"HTTP/1.1 400 Bad Request\r\n", false).await;
    assert!(matches!(http, KrafkaError::Protocol { .. }), "{http:?}");
    assert_says(&http, &["does not speak SOCKS5"]);
    let wants = connect(&[5, 2], false).await;
    assert!(matches!(wants, KrafkaError::Auth { .. }), "{wants:?}");
    assert_says(&wants, &["Socks5::credentials"]);
    assert_says(&connect(&[5, 2, 1, 1], true).await, &["does not accept the user name"]);
}

/// A proxy that takes connections and says nothing.
struct Mute;

impl Connect for Mute {
    fn connect<'a>(&'a self, _host: &'a str, _port: u16) -> Connecting<'a> {
        let (ours, theirs) = tokio::io::duplex(1024);
        tokio::spawn(async move {
            let _open = theirs;
            std::future::pending::<()>().await;
        });
        Box::pin(async {
            let stream: Box<dyn Stream> = Box::new(ours);
            Ok(stream)
        })
    }
}

/// CB-07: the proxy's silence counts as the broker's.
#[tokio::test(start_paused = true)]
async fn a_proxy_that_says_nothing_is_bounded_by_the_connect_timeout() {
    let proxy = Socks5::new(PROXY.0, PROXY.1).reached_by(Mute);
    let builder = Kafka::builder("kafka:9092").environment(Environment::new(proxy, 1));
    let start = tokio::time::Instant::now();

    let error = builder.connect().await.expect_err("nobody answers");

    assert!(start.elapsed() <= Duration::from_secs(15), "it took {:?}", start.elapsed());
    let words =
        ["kafka:9092", "no connection through the SOCKS5 proxy proxy.example:1080 within 10s", "connect_timeout"];
    assert_says(&error, &words);
}
