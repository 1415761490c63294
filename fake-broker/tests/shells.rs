//! The shells around the cluster: TCP, and the program.

use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use krafka_fake_broker::FakeCluster;
use krafka_protocol::api::metadata::{MetadataRequest, MetadataResponse};
use krafka_protocol::frame::encode_request;
use krafka_protocol::{ApiKey, Bytes, Message, Reader, decode_response_header};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Asks a broker for its metadata.
async fn metadata(stream: &mut TcpStream) -> std::io::Result<MetadataResponse> {
    let request = encode_request(&MetadataRequest { topics: None, ..MetadataRequest::default() }, 12, 1, None);
    stream.write_all(&request.expect("a legal request").to_bytes()).await?;
    let length = stream.read_i32().await?;
    let mut body = vec![0; usize::try_from(length).expect("a length")];
    stream.read_exact(&mut body).await?;
    let mut reader = Reader::new(Bytes::from(body));
    decode_response_header(ApiKey::Metadata, 12, &mut reader).expect("a header");
    Ok(MetadataResponse::decode(&mut reader, 12).expect("a legal answer"))
}

#[tokio::test(start_paused = true)]
async fn waiting_sees_what_each_step_brings() {
    let fake = FakeCluster::builder().topic("orders", 1).start_on_pipes();
    let waiting = tokio::spawn({
        let fake = fake.clone();
        async move {
            let three = |fake: &FakeCluster| Some(fake.records("orders")).filter(|records| records.len() == 3);
            fake.wait_for("third record", three).await
        }
    });

    for value in [&b"a"[..], b"b", b"c"] {
        assert!(!waiting.is_finished());
        fake.append("orders", 0, None, Some(value));
        tokio::task::yield_now().await;
    }

    let records = waiting.await.expect("it was found");
    assert_eq!(records[2].value.as_deref(), Some(&b"c"[..]));
    assert_eq!((records[2].partition, records[2].offset), (0, 2));
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "nobody joined the group kitchen within 60s, and 2 members should have")]
async fn waiting_in_vain_says_for_what() {
    FakeCluster::builder().start_on_pipes().wait_group_stable("kitchen", 2).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "there was no tea within 60s")]
async fn waiting_for_anything_ends() {
    FakeCluster::builder().start_on_pipes().wait_for("tea", |_| None::<()>).await;
}

/// What is appended as a batch is one: nothing else is ever in a log.
#[tokio::test]
async fn bytes_that_are_no_batch_are_refused_in_words() {
    let fake = FakeCluster::builder().topic("orders", 1).start_on_pipes();
    let batch = |records: u8| {
        let mut bytes = vec![0; 61];
        (bytes[11], bytes[16], bytes[60]) = (49, 2, records);
        Bytes::from(bytes)
    };
    let cases = [
        (Bytes::new(), "these 0 bytes are not a record batch: they end before it does"),
        (Bytes::from_static(b"poison"), "these 6 bytes are not a record batch: they end before it does"),
        (batch(0).slice(..60), "these 60 bytes are not a record batch: they end before it does"),
        (Bytes::from(vec![0; 61]), "these 61 bytes are not a record batch: "),
        ([batch(0), batch(0)].concat().into(), "these 122 bytes are not a record batch: more bytes follow it"),
    ];
    for (bytes, reason) in cases {
        let appending = AssertUnwindSafe(|| fake.append_batch("orders", 0, bytes));
        let panic = catch_unwind(appending).expect_err(reason);
        let words = panic.downcast_ref::<String>().expect("a text");
        assert!(words.starts_with(reason), "{words}");
    }
    assert_eq!(fake.high_watermark("orders", 0), Some(0));

    // A checksum that is wrong is poison that a log can have.
    assert_eq!(fake.append_batch("orders", 0, batch(1)), 0);
}

/// All nodes of a cluster on ports are called 127.0.0.1.
#[tokio::test]
async fn pipes_reach_each_node_of_a_cluster_on_ports() {
    let fake = FakeCluster::builder().nodes(3).start().await.expect("ports");
    for node in fake.nodes() {
        let (host, port) = fake.address(node).expect("a node");
        let _pipe = fake.pipes().connect(&host, port).await.expect("the node is up");
        fake.wait_for("connection", |fake| (fake.connections(node) == 1).then_some(())).await;
    }
    let refused = fake.pipes().connect("127.0.0.1", 1).await.expect_err("nobody is there");
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn a_blocking_test_needs_no_runtime() {
    let fake = FakeCluster::builder().nodes(2).topic("orders", 1).start_blocking().expect("ports");
    let first = fake.bootstrap().split(',').next().expect("a node").to_owned();
    let observed = fake.when(ApiKey::Metadata).observe();
    let asked = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async { metadata(&mut TcpStream::connect(first).await?).await })
    });

    fake.wait_hits(&observed, 1);
    assert_eq!(asked.join().expect("no panic").expect("an answer").brokers.len(), 2);

    fake.append("orders", 0, None, Some(b"tea"));
    let end = fake.wait_for("record", |fake| fake.high_watermark("orders", 0).filter(|&end| end == 1));
    assert_eq!(end, 1);
}

/// Its runtime may be dropped where another one runs.
#[tokio::test]
async fn a_blocking_cluster_may_be_dropped_anywhere() {
    let started = std::thread::spawn(|| FakeCluster::builder().start_blocking().expect("ports"));
    drop(started.join().expect("no panic"));
}

/// Why nobody can be reached at an address now: no task runs meanwhile, which could change that.
fn refused(address: &str) -> Option<ErrorKind> {
    std::net::TcpStream::connect(address).map_err(|error| error.kind()).err()
}

/// A process that is just being started has all sockets of this one for a moment.
#[tokio::test]
async fn a_node_that_is_down_does_not_listen_for_processes_that_start() {
    let fake = FakeCluster::builder().nodes(1).start().await.expect("a port");
    let address = fake.bootstrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let starting = std::thread::spawn({
        let is_over = is_over.clone();
        move || {
            while !is_over.load(Ordering::Relaxed) {
                let mut program = Command::new(env!("CARGO_BIN_EXE_krafka-fake-broker"));
                let ended = program.arg("--help").stdout(Stdio::null()).status();
                assert!(ended.expect("the program").success());
            }
        }
    });

    let mut found = 0;
    for _ in 0..300 {
        fake.crash(1);
        found += usize::from(refused(&address).is_none());
        fake.restart(1);
        assert_eq!(refused(&address), None);
    }
    is_over.store(true, Ordering::Relaxed);
    starting.join().expect("no panic");

    assert_eq!(found, 0, "so often a node was reached that is down");
}

#[tokio::test]
async fn tcp_listeners_come_and_go_with_their_nodes() {
    let fake = FakeCluster::builder().nodes(2).topic("orders", 1).start().await.expect("ports");
    let addresses: Vec<_> = fake.bootstrap().split(',').map(str::to_owned).collect();
    let mut first = TcpStream::connect(&addresses[0]).await.expect("node 1 is up");
    assert_eq!(metadata(&mut first).await.expect("an answer").brokers.len(), 2);

    fake.crash(1);

    assert_eq!(refused(&addresses[0]), Some(ErrorKind::ConnectionRefused));
    assert_eq!(first.read(&mut [0]).await.unwrap_or(0), 0, "the connection is cut");
    let mut second = TcpStream::connect(&addresses[1]).await.expect("node 2 is up");
    assert_eq!(metadata(&mut second).await.expect("an answer").brokers.len(), 1);

    fake.restart(1);
    assert_eq!(refused(&addresses[0]), None);
    fake.refuse_connections(1, true);
    assert_eq!(refused(&addresses[0]), Some(ErrorKind::ConnectionRefused));
    fake.refuse_connections(1, false);
    assert_eq!(refused(&addresses[0]), None);

    let mut again = TcpStream::connect(&addresses[0]).await.expect("node 1 is back");
    assert_eq!(metadata(&mut again).await.expect("an answer").brokers.len(), 2);
}

#[tokio::test]
async fn dropped_cluster_is_gone() {
    let fake = FakeCluster::builder().start().await.expect("a port");
    let address = fake.bootstrap();
    let mut open = TcpStream::connect(&address).await.expect("it is up");
    metadata(&mut open).await.expect("an answer");

    drop(fake);

    assert_eq!(refused(&address), Some(ErrorKind::ConnectionRefused));
    assert_eq!(open.read(&mut [0]).await.unwrap_or(0), 0);
}

#[tokio::test]
async fn taken_port_is_named() {
    let fake = FakeCluster::builder().start().await.expect("a port");
    let (_, port) = fake.address(1).expect("a node");
    let error = FakeCluster::builder().port_base(port).start().await.expect_err("the port is taken");

    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    assert!(error.to_string().contains(&port.to_string()), "{error}");
}

fn program(arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_krafka-fake-broker"));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the program")
}

#[tokio::test]
async fn program_says_when_it_is_ready_and_ends_with_its_input() {
    let mut program = program(&["--nodes", "3", "--topic", "orders:2", "--topic", "other", "--as-version", "4.0"]);
    let mut line = String::new();
    BufReader::new(program.stdout.take().expect("an output")).read_line(&mut line).expect("a line");
    let addresses = line.trim_end().strip_prefix("BOOTSTRAP=").expect("the servers").split(',');
    let addresses: Vec<_> = addresses.collect();
    assert_eq!(addresses.len(), 3);
    let mut stream = TcpStream::connect(addresses[2]).await.expect("it is up");
    let answer = metadata(&mut stream).await.expect("an answer");
    let topics: Vec<_> = answer.topics.iter().map(|t| (t.name.as_deref().unwrap_or(""), t.partitions.len())).collect();
    assert_eq!(topics, [("orders", 2), ("other", 1)]);

    drop(program.stdin.take());

    assert_eq!(program.wait().expect("it ends").code(), Some(0));
}

/// A node of its own version, as in a rolling upgrade, whose other settings are no contradiction.
#[tokio::test]
async fn program_mixes_versions_of_kafka() {
    let config = ["--auto-create", "--config", "auto.create.topics.enable=TRUE"];
    let mixed = ["--node-version", "2=3.9.2", "--nodes", "2", "--control", "127.0.0.1:0"];
    let mut program = program(&[&mixed[..], &config[..]].concat());
    let mut lines = BufReader::new(program.stdout.take().expect("an output")).lines().map_while(Result::ok);
    let line = lines.next().expect("a line");
    let address = line.strip_prefix("CONTROL=").expect("the control port");
    let mut stream = TcpStream::connect(address).await.expect("it is up");
    stream.write_all(b"GET /nodes HTTP/1.1\r\nConnection: close\r\n\r\n").await.expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("it answers");

    let kafkas: Vec<&str> = answer.lines().filter_map(|line| line.trim().strip_prefix("\"kafka\": ")).collect();
    assert_eq!(kafkas.iter().map(|kafka| &kafka[..5]).collect::<Vec<_>>(), ["\"4.4\"", "\"3.9\""], "{answer}");
    drop(program.stdin.take());
    assert_eq!(program.wait().expect("it ends").code(), Some(0));
}

#[test]
fn program_names_further_listeners_first() {
    let mut program = program(&["--nodes", "2", "--sasl", "alice:secret"]);
    let mut lines = BufReader::new(program.stdout.take().expect("an output")).lines().map_while(Result::ok);

    let sasl = lines.next().expect("a line");
    let plain = lines.next().expect("another line");

    let sasl: Vec<_> = sasl.strip_prefix("SASL_BOOTSTRAP=").expect("the SASL listeners").split(',').collect();
    let plain: Vec<_> = plain.strip_prefix("BOOTSTRAP=").expect("the plain listeners").split(',').collect();
    assert_eq!((sasl.len(), plain.len()), (2, 2));
    assert!(sasl.iter().all(|address| !plain.contains(address)));
    drop(program.stdin.take());
    assert_eq!(program.wait().expect("it ends").code(), Some(0));
}

#[test]
fn program_explains_what_it_does_not_understand() {
    for (arguments, expected) in [
        (&["--nodes", "0"][..], "--nodes: a cluster has from 1 to 1000 nodes, not 0"),
        (&["--as-version", "2.8"], "3.9"),
        (&["--as-version", "kafka"], "4.4, msk-serverless or event-hubs, not 'kafka'"),
        (&["--control", "9092"], "--control takes an address with a port, such as 127.0.0.1:0, not '9092'"),
        (&["--control", "127.0.0.1:0", "--control", "127.0.0.1:0"], "--control was given before"),
        (&["--feature", "metadata.version=22", "--feature", "eligible.leader.replicas.version=1"], "it depends on"),
        (&["--seed", "-1"], "--seed takes a number from 0 on, not '-1'"),
        (&["--config", "num.partitions=0"], "Invalid value 0 for configuration num.partitions"),
        (&["--config", "node.id=7"], "node.id acts on nothing here: nodes are numbered from 1 on"),
        (&["--config", "listeners=PLAINTEXT://:9092"], "listeners acts on nothing here"),
        (&["--feature", "group.version"], "--feature takes NAME=LEVEL, not 'group.version'"),
        (&["--feature", "group.version=7"], "--feature group.version=7: Kafka 4.4 has levels from 0 to 1 of it"),
        (&["--feature", "share.version=1", "--as-version", "3.9"], "share.version=1: Kafka 3.9 has no such feature"),
        (&["--marker-delay", "soon"], "--marker-delay takes a number of milliseconds, not 'soon'"),
        (&["--topic", "a.b", "--topic", "a_b"], "Topic 'a_b' collides with existing topic: a.b"),
        (&["--topic", "a b"], "a b"),
        (&["--topic", "orders:many"], "many"),
        (&["--topic", "orders:1", "--topic", "orders:2"], "'orders' was given before"),
        (&["--nodes", "three"], "--nodes takes a number, not 'three'"),
        (&["--frobnicate"], "frobnicate"),
        (&["--port-base"], "port-base"),
        (&["--sasl", "alice"], "USER:PASSWORD"),
        (&["--sasl", "alice:"], "--sasl alice: the password is empty, and no client logs in with such a one"),
        (&["--sasl", "alice:1", "--sasl", "alice:2"], "--sasl: the user 'alice' was given before"),
        (&["--config", "num.partitions=1", "--config", "num.partitions=2"], "'num.partitions' was given before"),
        (&["--feature", "group.version=1", "--feature", "group.version=0"], "'group.version' was given before"),
        (&["--as-version", "4.4.9"], "--as-version takes 3.9, 4.0, 4.1, 4.2, 4.3 or 4.4, msk-"),
        (&["--as-version", "4.4."], "not '4.4.'"),
        (&["--racks", ""], "--racks takes RACK,…, each with a name, not ''"),
        (&["--racks", "a,,b"], "each with a name, not 'a,,b'"),
        (
            &["--auto-create", "--config", "auto.create.topics.enable=false"],
            "--auto-create and --config auto.create.topics.enable=false contradict each other",
        ),
        (&["--node-version", "3.9"], "--node-version takes NODE=VERSION, not '3.9'"),
        (&["--node-version", "1=2.8"], "--node-version takes 3.9, 4.0, 4.1, 4.2, 4.3 or 4.4, not '2.8'"),
        (&["--node-version", "2=3.9"], "--node-version: there is no node 2: they are numbered from 1 to 1"),
        (&["--node-version", "1=3.9", "--node-version", "1=4.0"], "--node-version: node '1' was given before"),
        (&["--node-version", "1=3.9", "--as-version", "event-hubs"], "node 1 cannot be a Kafka"),
        (&["--tls", "/nowhere"], "/nowhere/server.pem"),
    ] {
        let mut refused = program(arguments);
        let mut message = String::new();
        refused.stderr.take().expect("an output").read_to_string(&mut message).expect("text");

        assert_eq!(refused.wait().expect("it ends").code(), Some(2), "{arguments:?}");
        assert!(message.contains(expected), "{arguments:?}: {message}");
    }
}

/// Whoever reads the help may have seen enough, or have no room for it: that is an error, and no panic.
#[cfg(target_os = "linux")]
#[test]
fn program_that_cannot_print_says_so() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a device that is always full");
    let mut command = Command::new(env!("CARGO_BIN_EXE_krafka-fake-broker"));
    let output = command.arg("--help").stdin(Stdio::null()).stdout(full).stderr(Stdio::piped()).output();

    let output = output.expect("the program");
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.starts_with("krafka-fake-broker: No space left"), "{message}");
}
