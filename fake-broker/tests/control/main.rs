//! The control port: the examples of its page, run as they stand there.

mod rules;
mod security;
mod telemetry;
mod waits;

use krafka_fake_broker::{FakeCluster, KafkaVersion};
#[cfg(feature = "tls")]
use krafka_fake_broker::{FakeClusterBuilder, SecurityProtocol, ServerTls};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const PAGE: &str = include_str!("../../CONTROL.md");

/// Asks the port in one go: the status, and the body.
async fn ask(address: &str, method: &str, path: &str, body: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("it answers");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).expect("a status").parse().expect("a number");
    (status, serde_json::from_str(body).expect("JSON"))
}

/// The commands of the page, each with the answer that it shows.
fn examples() -> Vec<(&'static str, &'static str)> {
    let mut examples = Vec::new();
    for block in PAGE.split("```sh\n").skip(1) {
        let block = block.split("```").next().expect("a block has an end");
        let mut lines = block.lines();
        while let Some(command) = lines.next() {
            examples.push((command, lines.next().expect("an answer follows each command")));
        }
    }
    examples
}

/// Reads `curl -s [-X METHOD] $CONTROL/path [-d 'body']`.
fn parse(command: &str) -> (&str, &str, &str) {
    let rest = command.strip_prefix("curl -s ").expect(command);
    let (method, rest) = match rest.strip_prefix("-X ") {
        Some(rest) => rest.split_once(' ').map(|(method, rest)| (Some(method), rest)).expect(command),
        None => (None, rest),
    };
    let (target, body) = rest.split_once(" -d ").unwrap_or((rest, ""));
    let path = target.trim_matches('"').strip_prefix("$CONTROL").expect(command);
    let method = method.unwrap_or(if body.is_empty() { "GET" } else { "POST" });
    (method, path, body.trim_matches('\''))
}

/// Reads an answer of the page, where `…` stands for anything.
fn shown(text: &str) -> Value {
    let quoted = text.replace(": …", ": \"…\"").replace("[…]", "\"…\"").replace("{…}", "\"…\"");
    serde_json::from_str(&quoted).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Whether an answer is what the page shows.
fn fits(shown: &Value, actual: &Value) -> bool {
    match (shown, actual) {
        (Value::String(text), actual) if text == "…" => !actual.is_null(),
        (Value::String(text), Value::String(actual)) => match text.strip_suffix('…') {
            Some(beginning) => actual.starts_with(beginning),
            None => text == actual,
        },
        (Value::Array(shown), Value::Array(actual)) => {
            shown.len() == actual.len() && shown.iter().zip(actual).all(|(shown, actual)| fits(shown, actual))
        }
        (Value::Object(shown), Value::Object(actual)) => {
            let fit = |(name, shown)| actual.get(name).is_some_and(|actual| fits(shown, actual));
            shown.len() == actual.len() && shown.iter().all(fit)
        }
        (shown, actual) => shown == actual,
    }
}

#[tokio::test]
async fn examples_of_the_page_do_what_it_says() {
    let builder = FakeCluster::builder().nodes(3).topic("orders", 2);
    #[cfg(feature = "tls")]
    let builder = with_tls(builder);
    let fake = builder.start().await.expect("ports");
    let address = fake.serve_control("127.0.0.1:0".parse().expect("an address")).await.expect("a port").to_string();

    let examples = examples();
    assert!(examples.len() > 20, "{}", examples.len());
    for (command, answer) in examples {
        #[cfg(not(feature = "tls"))]
        if command.contains("swap_certificate") {
            continue;
        }
        #[cfg(feature = "tls")]
        let command = &with_certificate(command);
        let (method, path, body) = parse(command);
        let (_, actual) = ask(&address, method, path, body).await;
        assert!(fits(&shown(answer), &actual), "{command}\nshown:  {answer}\nactual: {actual}");
    }
}

/// A certificate for `localhost`, which signed itself, and its key.
#[cfg(feature = "tls")]
fn certificate() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    (made.cert.pem(), made.signing_key.serialize_pem())
}

/// As `--tls DIR` does it.
#[cfg(feature = "tls")]
fn with_tls(builder: FakeClusterBuilder) -> FakeClusterBuilder {
    let (certificate, key) = certificate();
    let tls = ServerTls::from_pem(certificate.as_bytes(), key.as_bytes()).expect("a certificate and its key");
    builder.listener(SecurityProtocol::Plaintext).listener(SecurityProtocol::Ssl).tls(tls)
}

/// Puts whole PEM where the page has the beginning of it.
#[cfg(feature = "tls")]
fn with_certificate(command: &str) -> String {
    let (certificate, key) = certificate();
    let command = command.replace("\"-----BEGIN CERTIFICATE-----\\n…\"", &json!(certificate).to_string());
    command.replace("\"-----BEGIN PRIVATE KEY-----\\n…\"", &json!(key).to_string())
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let fake = FakeCluster::builder().topic("orders", 1).start().await.expect("ports");
    let address = fake.serve_control("127.0.0.1:0".parse().expect("an address")).await.expect("a port").to_string();

    let cases = [
        ("GET", "/nope", "", 404),
        ("GET", "/rules/7", "", 404),
        ("DELETE", "/rules/7", "", 404),
        ("POST", "/rules/7/wait", "", 404),
        ("GET", "/topics/nope", "", 404),
        ("GET", "/topics/orders/9/records", "", 404),
        ("GET", "/topics/orders/x/records", "", 400),
        ("GET", "/history?apy=Fetch", "", 400),
        ("GET", "/history?node=x", "", 400),
        ("POST", "/cluster", "{\"crash\": {\"nod\": 1}}", 400),
        ("POST", "/cluster", "{\"crash\": {\"node\": 8}}", 409),
        ("POST", "/cluster", "{\"explode\": {}}", 400),
        ("POST", "/topics/orders/0/records", "{\"value\": {\"base64\": \"?\"}}", 400),
        ("GET", "/", "", 200),
        ("GET", "/nodes", "", 200),
        ("GET", "/groups", "", 200),
        ("GET", "/groups/nobody", "", 404),
        ("GET", "/transactions", "", 200),
        ("GET", "/transactions/nobody", "", 404),
        ("POST", "/transactions/nobody/end", "{\"commit\": true}", 404),
        ("POST", "/transactions/nobody/end", "", 400),
        ("POST", "/transactions/nobody/nope", "", 404),
        ("DELETE", "/transactions/nobody", "", 404),
        ("POST", "/transactions/nobody/records", "{\"topic\": \"orders\", \"partition\": 0}", 404),
        ("POST", "/transactions/nobody/hold", "", 200),
        ("GET", "/transactions/nobody", "", 404),
        ("DELETE", "/rules/", "", 400),
        ("GET", "/groups/%ff", "", 400),
        ("GET", "/snapshots", "", 200),
        ("POST", "/snapshots/7/restore", "", 404),
        ("DELETE", "/snapshots/x", "", 400),
        ("GET", "/history?api=Fetsch", "", 400),
        ("POST", "/groups/audit/offsets", "{\"topic\": \"orders\", \"partition\": 9, \"offset\": 1}", 409),
    ];
    for (method, path, body, status) in cases {
        assert_eq!(ask(&address, method, path, body).await.0, status, "{method} {path} {body}");
    }
}

/// What a request asks for cannot always be done; why not is said in words.
#[tokio::test]
async fn request_that_cannot_be_says_why() {
    let fake = FakeCluster::builder().topic("orders", 1).start().await.expect("ports");
    let address = fake.serve_control("127.0.0.1:0".parse().expect("an address")).await.expect("a port").to_string();
    let cases = [
        (r#"{"api": "DeleteTopics", "fields": {"topics": [{"name": "nope"}]}}"#, "UNKNOWN_TOPIC_OR_PARTITION"),
        (r#"{"api": "Nope"}"#, "there is no API called `Nope`"),
        (r#"{"api": "JoinGroup"}"#, "JoinGroup needs a connection"),
        (r#"{"api": "Metadata", "version": 99}"#, "speaks Metadata in versions"),
        (r#"{"api": "Metadata", "fields": {"topiks": []}}"#, "unknown field `Metadata.topiks`"),
        (r#"{"api": "Metadata", "node": 9}"#, "there is no node 9"),
    ];
    for (request, reason) in cases {
        let (status, answer) = ask(&address, "POST", "/cluster", &format!("{{\"request\": {request}}}")).await;
        let error = answer["error"].as_str().expect("an error");
        assert!(status == 409 && error.contains(reason), "{request}: {answer}");
    }
}

/// What is wrong is told in the caller's words, not in ours.
#[tokio::test]
async fn what_is_refused_is_named() {
    let fake = FakeCluster::builder().topic("orders", 1).start().await.expect("ports");
    let address = fake.serve_control("127.0.0.1:0".parse().expect("an address")).await.expect("a port").to_string();
    let cases = [
        ("POST", "/snapshots/7/restore", "", "there is no snapshot 7"),
        ("DELETE", "/snapshots/7", "", "there is no snapshot 7"),
        ("GET", "/history?api=Fetsch", "", "there is no API called `Fetsch`"),
        ("POST", "/topics/orders/0/records", "{\"value\": 1}", "bytes are a text, or {\"base64\": \"…\"}"),
        (
            "POST",
            "/topics/orders/0/records",
            "{\"headers\": [\"a\"]}",
            "expected an array of 2 elements, found the text",
        ),
        ("POST", "/topics/orders/0/records", "[]", "expected an object, found "),
        ("POST", "/cluster", "{\"create_topic\": {\"topic\": \"a.b\"}}", ""),
        (
            "POST",
            "/cluster",
            "{\"create_topic\": {\"topic\": \"a_b\"}}",
            "Topic 'a_b' collides with existing topic: a.b",
        ),
        ("POST", "/cluster", "{\"create_topic\": \"orders\"}", "expected an object, found the text \"orders\""),
        ("POST", "/cluster", "{}", "expected a name, or an object of one name and its fields"),
        ("POST", "/cluster", "{\"crash\": {\"node\": 1}, \"x\": {}}", "expected a name, or an object of one name"),
        ("POST", "/cluster", "{\"crash\"", "this is no JSON: it ends in the middle"),
        ("POST", "/cluster", "crash", "this is no JSON: expected value"),
        ("POST", "/rules", "{\"when\": {\"versions\": [1, 2, 3]}}", "expected an array of fewer elements"),
        ("POST", "/cluster", "{\"explode\": {}}", "unknown name `explode`, expected one of `create_topic`"),
        ("POST", "/nodes", "{\"versoin\": \"3.9\"}", "unknown field `versoin`, expected `version`"),
        ("POST", "/nodes", "{\"version\": \"2.8\"}", "Kafka \"2.8\" is not a version that the fake broker knows"),
        ("POST", "/nodes", "{\"version\": \"3.9\"}", "a node of Kafka 3.9 cannot join: the cluster is at "),
        ("POST", "/snapshots", "{\"x\": 1}", "unknown field `x`"),
        ("POST", "/snapshots/1/restore", "{\"topics\": [\"a\"]}", "unknown field `topics`"),
        ("POST", "/transactions/t/hold", "{\"x\": 1}", "unknown field `x`"),
        ("POST", "/transactions/t/release", "{\"x\": 1}", "unknown field `x`"),
        ("DELETE", "/rules", "{\"x\": 1}", "unknown field `x`"),
        ("GET", "/topics", "{\"x\": 1}", "unknown field `x`"),
        ("GET", "/topics", "{}", ""),
    ];
    for (method, path, body, reason) in cases {
        let (_, answer) = ask(&address, method, path, body).await;
        let error = answer["error"].as_str().unwrap_or_default();
        assert!(error.starts_with(reason) && error.is_empty() == reason.is_empty(), "{method} {path}: {answer}");
    }
    for (total, reason) in [(-1, "orders has 1 partitions already"), (i32::MAX, "a topic has at most 100000")] {
        let body = json!({"add_partitions": {"topic": "orders", "total": total}}).to_string();
        let (status, answer) = ask(&address, "POST", "/cluster", &body).await;
        assert!(status == 409 && answer["error"].as_str().is_some_and(|error| error.contains(reason)), "{answer}");
    }
    for length in [4097, 100_000] {
        let offset = json!({"topic": "orders", "partition": 0, "offset": 1, "metadata": "m".repeat(length)});
        let (status, answer) = ask(&address, "POST", "/groups/audit/offsets", &offset.to_string()).await;
        let error = answer["error"].as_str().unwrap_or_default();
        assert!(status == 409 && error.starts_with("OFFSET_METADATA_TOO_LARGE"), "{answer}");
    }
}

/// Fields have names: a list of their values is refused, however deep it is.
#[tokio::test]
async fn list_is_no_object() {
    let fake = FakeCluster::builder().nodes(2).topic("orders", 1).start().await.expect("ports");
    let address = fake.serve_control("127.0.0.1:0".parse().expect("an address")).await.expect("a port").to_string();
    let cases = [
        ("/cluster", r#"{"crash": [1]}"#, "`crash` is an object with names, not an array"),
        ("/cluster", r#"{"move_leader": ["orders", 0, 2]}"#, "`move_leader` is an object with names, not an array"),
        ("/cluster", r#"{"apply_retention": []}"#, "`apply_retention` is an object with names, not an array"),
        ("/rules", r#"{"when": [], "do": "observe"}"#, "`when` is an object with names, not an array"),
        (
            "/rules",
            r#"{"when": {"apis": ["Produce"]}, "do": {"hint": {"leader": [2, 5, true]}}}"#,
            "`do.hint.leader` is an object with names, not an array",
        ),
        (
            "/rules",
            r#"{"do": {"damage": {"chunk": [1, 1]}}}"#,
            "`do.damage.chunk` is an object with names, not an array",
        ),
        (
            "/rules",
            r#"{"do": {"change_cluster": {"crash": [1]}}}"#,
            "`do.change_cluster.crash` is an object with names, not an array",
        ),
        ("/topics/orders/0/records", r#"{"value": ["eA=="]}"#, "bytes are a text, or {\"base64\": \"…\"}"),
    ];
    for (path, body, reason) in cases {
        let (status, answer) = ask(&address, "POST", path, body).await;
        let error = answer["error"].as_str().unwrap_or_default();
        assert!(status == 400 && error.starts_with(reason), "{body}: {answer}");
    }
    assert_eq!(fake.live_nodes(), [1, 2]);
    let rule = r#"{"when": [], "do": "observe"}"#;
    assert_eq!(fake.install_json(rule).expect_err(rule), "`when` is an object with names, not an array");
}

/// A cluster has an id, and a time of day that can be told.
#[tokio::test]
async fn cluster_keeps_an_id_and_its_clock_a_century() {
    let fake = FakeCluster::builder().start().await.expect("ports");
    let address = fake.serve_control("127.0.0.1:0".parse().expect("an address")).await.expect("a port").to_string();

    for (change, reason) in [
        (r#"{"swap_cluster_id": {"cluster_id": ""}}"#, "`cluster_id` is empty"),
        (r#"{"jump_clock": {"by_ms": 9223372036854775807}}"#, "`by_ms` is a hundred years at most"),
        (r#"{"jump_clock": {"by_ms": -1000000000000000}}"#, "`by_ms` is a hundred years at most"),
    ] {
        let (status, answer) = ask(&address, "POST", "/cluster", change).await;
        let error = answer["error"].as_str().unwrap_or_default();
        assert!(status == 409 && error.starts_with(reason), "{change}: {status} {answer}");
    }
}

/// What Kafka would refuse changes nothing: offsets that a partition does not have, and nodes that do not answer.
#[tokio::test]
async fn what_cannot_be_changes_nothing() {
    let fake = FakeCluster::builder().nodes(2).topic("orders", 1).start().await.expect("ports");
    let address = fake.serve_control("127.0.0.1:0".parse().expect("an address")).await.expect("a port").to_string();
    for _ in 0..5 {
        fake.append("orders", 0, None, Some(b"tea"));
    }
    fake.delete_records("orders", 0, 1);
    for (change, field, offset, reason) in [
        ("truncate", "offset", -5, "orders-0 has offsets from 1 to its end 5, not -5"),
        ("truncate", "offset", 0, "orders-0 has offsets from 1 to its end 5, not 0"),
        ("truncate", "offset", 77, "orders-0 has offsets from 1 to its end 5, not 77"),
        ("delete_records", "before", 99, "OFFSET_OUT_OF_RANGE: the high watermark of orders-0 is 5"),
        ("delete_records", "before", -7, "OFFSET_OUT_OF_RANGE: the high watermark of orders-0 is 5"),
    ] {
        let body = json!({change: {"topic": "orders", "partition": 0, field: offset}}).to_string();
        let (status, answer) = ask(&address, "POST", "/cluster", &body).await;
        let error = answer["error"].as_str().unwrap_or_default();
        assert!(status == 409 && error.starts_with(reason), "{body}: {answer}");
        assert_eq!((fake.log_start_offset("orders", 0), fake.high_watermark("orders", 0)), (Some(1), Some(5)));
    }
    for (before, start) in [(0, 1), (2, 2), (-1, 5)] {
        fake.delete_records("orders", 0, before);
        assert_eq!(fake.log_start_offset("orders", 0), Some(start), "{before}");
    }
    fake.crash(1);
    fake.pause(2);
    for (node, expected, reason) in [
        (json!(1), 409, "node 1 is not up"),
        (json!(2), 409, "node 2 is paused"),
        (json!(7), 404, "there is no node 7"),
    ] {
        let body = json!({"api": "Metadata", "node": node}).to_string();
        let (status, answer) = ask(&address, "POST", "/requests", &body).await;
        assert_eq!((status, &answer["error"]), (expected, &json!(reason)));
    }
    fake.crash(2);
    for (body, expected, reason) in [
        (json!({"api": "Metadata"}), 409, "no node is up"),
        (json!({"api": "Nope"}), 400, "there is no API called `Nope`"),
    ] {
        let (status, answer) = ask(&address, "POST", "/requests", &body.to_string()).await;
        assert_eq!((status, &answer["error"]), (expected, &json!(reason)));
    }
}

/// A record that no leader takes would be acknowledged and lost: it is refused, and so is what a group commits.
#[tokio::test]
async fn nothing_is_written_without_a_leader() {
    let fake = FakeCluster::builder().nodes(2).topic("orders", 1).start().await.expect("ports");
    let address = fake.serve_control("127.0.0.1:0".parse().expect("an address")).await.expect("a port").to_string();
    fake.crash(1);
    fake.crash(2);

    let offset = json!({"topic": "orders", "partition": 0, "offset": 1}).to_string();
    for (path, body, reason) in [
        ("/topics/orders/0/records", "{\"value\": \"x\"}", "the partition orders-0 has no leader"),
        ("/groups/audit/offsets", &offset, "nobody coordinates the group audit: its partition has no leader"),
    ] {
        let (status, answer) = ask(&address, "POST", path, body).await;
        assert_eq!((status, &answer["error"]), (409, &json!(reason)));
    }
    assert_eq!((fake.high_watermark("orders", 0), fake.committed("audit").len()), (Some(0), 0));
}

/// A rolling upgrade: nodes of another version join where they have the features of the cluster.
#[tokio::test]
async fn node_joins_in_a_version_of_its_own() {
    let fake = FakeCluster::builder().as_version(KafkaVersion::V3_9).start().await.expect("ports");
    let address = fake.serve_control("127.0.0.1:0".parse().expect("an address")).await.expect("a port").to_string();

    for (version, node) in [("4.4", 2), ("3.9", 3)] {
        let (status, answer) = ask(&address, "POST", "/nodes", &json!({"version": version}).to_string()).await;
        assert_eq!((status, &answer["node"]), (201, &json!(node)));
        let (_, nodes) = ask(&address, "GET", "/nodes", "").await;
        assert_eq!(nodes[node - 1]["kafka"], version, "{nodes}");
    }
}

/// A record is written as it is shown: with headers, without a key, with a time of its own.
#[tokio::test]
async fn record_is_written_as_it_is_shown() {
    let fake = FakeCluster::builder().topic("orders", 1).start().await.expect("ports");
    let address = fake.serve_control("127.0.0.1:0".parse().expect("an address")).await.expect("a port").to_string();
    let written = json!({
        "key": null,
        "value": {"base64": "/w=="},
        "headers": [["trace", "7f3a"], ["trace", {"base64": "/w=="}], ["none", null]],
        "timestamp": 1_700_000_000_000_i64,
    });

    let (status, answer) = ask(&address, "POST", "/topics/orders/0/records", &written.to_string()).await;
    assert_eq!((status, answer), (201, json!({"offset": 0})));

    let (_, shown) = ask(&address, "GET", "/topics/orders/0/records", "").await;
    let mut expected = written;
    expected["offset"] = json!(0);
    assert_eq!(shown, json!([expected]));
}

/// Offsets that a test commits make the group, as the first commit of a consumer that has no members beside it does.
#[tokio::test]
async fn commit_makes_the_group() {
    let fake = FakeCluster::builder().topic("orders", 1).start().await.expect("ports");
    let address = fake.serve_control("127.0.0.1:0".parse().expect("an address")).await.expect("a port").to_string();

    let offset = "{\"topic\": \"orders\", \"partition\": 0, \"offset\": 1}";
    assert_eq!(ask(&address, "POST", "/groups/audit/offsets", offset).await.0, 200);

    let (_, groups) = ask(&address, "GET", "/groups", "").await;
    let listed = json!({"group_id": "audit", "protocol_type": "", "group_state": "Empty", "group_type": "classic"});
    assert_eq!(groups, json!([listed]));
    let (_, group) = ask(&address, "GET", "/groups/audit", "").await;
    assert_eq!(group["described"]["group_state"], "Empty");
    assert_eq!(group["committed"]["orders"]["0"]["offset"], 1);
}

/// A body that is too long is not read through, and its writer sees the answer all the same.
#[tokio::test]
async fn who_writes_too_much_is_told_so() {
    let fake = FakeCluster::builder().topic("orders", 1).start().await.expect("ports");
    let address = fake.serve_control("127.0.0.1:0".parse().expect("an address")).await.expect("a port").to_string();
    let value = format!("{{\"value\": \"{}\"}}", "x".repeat(8 << 20));

    let (status, answer) = ask(&address, "POST", "/topics/orders/0/records", &value).await;

    assert_eq!((status, answer["error"].as_str()), (413, Some("a body has at most 1048576 bytes")));
}

/// Who comes when the port has all that it serves is told so, and not left waiting.
#[tokio::test]
async fn connection_too_many_is_told_so() {
    let fake = FakeCluster::builder().start().await.expect("ports");
    let address = fake.serve_control("127.0.0.1:0".parse().expect("an address")).await.expect("a port").to_string();
    let mut open = Vec::new();
    for _ in 0..256 {
        open.push(TcpStream::connect(&address).await.expect("it listens"));
    }

    let (status, answer) = ask(&address, "GET", "/nodes", "").await;

    assert_eq!(status, 503);
    assert_eq!(answer, json!({"error": "the control port serves 256 connections already: close some"}));
    drop(open);
    while ask(&address, "GET", "/nodes", "").await.0 != 200 {
        tokio::task::yield_now().await;
    }
}

/// Where no node is left, nothing can be kept; the next one is the controller, and looks like those that were.
#[tokio::test]
async fn node_that_comes_to_none_is_the_controller() {
    let fake = FakeCluster::builder().nodes(2).as_version(KafkaVersion::V3_9).start().await.expect("ports");
    let address = fake.serve_control("127.0.0.1:0".parse().expect("an address")).await.expect("a port").to_string();
    fake.remove_node(1);
    fake.remove_node(2);

    for change in [json!({"create_topic": {"topic": "orders"}}), json!({"request": {"api": "Metadata"}})] {
        let (status, answer) = ask(&address, "POST", "/cluster", &change.to_string()).await;
        let error = answer["error"].as_str().expect("an error");
        assert!(status == 409 && (error.contains("there is no node") || error.contains("no node is up")), "{error}");
    }
    assert_eq!((fake.controller(), fake.coordinator("g")), (-1, -1));

    let node = fake.add_node().await.expect("a port");

    assert_eq!((node, fake.controller()), (3, 3));
    fake.create_topic("orders", 1);
    assert_eq!((fake.leader("orders", 0), fake.coordinator("g")), (Some(3), 3));
    let newer = json!({"api": "ConsumerGroupDescribe", "version": 1}).to_string();
    let (_, answer) = ask(&address, "POST", "/requests", &newer).await;
    assert_eq!(answer["error"], "node 3 speaks ConsumerGroupDescribe in versions 0", "as Kafka 3.9 does");
}

/// A wait does not keep the cluster alive, and a cluster that is gone listens no more.
#[tokio::test]
async fn port_ends_with_its_cluster() {
    let fake = FakeCluster::builder().start().await.expect("ports");
    let address = fake.serve_control("127.0.0.1:0".parse().expect("an address")).await.expect("a port").to_string();
    let (status, _) = ask(&address, "GET", "/rules", "").await;
    assert_eq!(status, 200);

    drop(fake);

    while TcpStream::connect(&address).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

/// With eligible leader replicas (KIP-966), what the controller's file says of `min.insync.replicas` is what a cluster
/// begins with for all brokers: topics have it, and who falls out of sync below it is eligible.
#[tokio::test]
async fn least_in_sync_of_the_file_holds_with_eligible_leaders() {
    let builder = FakeCluster::builder().nodes(3).property("min.insync.replicas", "2").expect("a config of brokers");
    let fake = builder.topic("orders", 1).start().await.expect("ports");
    let address = fake.serve_control("127.0.0.1:0".parse().expect("an address")).await.expect("a port").to_string();

    let asked = json!({"resource_type": 2, "resource_name": "orders", "configuration_keys": ["min.insync.replicas"]});
    let asked = json!({"api": "DescribeConfigs", "fields": {"resources": [asked]}});
    let (_, told) = ask(&address, "POST", "/requests", &asked.to_string()).await;
    let config = &told["results"][0]["configs"][0];
    // 3: a default of all brokers, set at run time.
    assert_eq!((&config["value"], &config["config_source"]), (&json!("2"), &json!(3)));

    fake.crash(1);
    fake.crash(2);
    let (_, topic) = ask(&address, "GET", "/topics/orders", "").await;
    let partition = &topic["partitions"][0];
    assert_eq!((&partition["isr"], &partition["eligible_leader_replicas"]), (&json!([3]), &json!([2])));
}

/// A cluster whose `delete.topic.enable` is off deletes nothing, and says so from the version on that knows the error.
#[tokio::test]
async fn topics_stay_where_their_deletion_is_disabled() {
    let builder = FakeCluster::builder().property("delete.topic.enable", "false").expect("a config of brokers");
    let fake = builder.topic("orders", 1).start().await.expect("ports");
    let address = fake.serve_control("127.0.0.1:0".parse().expect("an address")).await.expect("a port").to_string();

    let by_name = json!({"topic_names": ["orders", "nope"]});
    let by_state = json!({"topics": [{"name": "orders"}, {"name": "nope"}]});
    for (version, fields, code) in [(1, &by_name, 42), (3, &by_name, 73), (6, &by_state, 73)] {
        let asked = json!({"api": "DeleteTopics", "version": version, "fields": fields}).to_string();
        let (_, told) = ask(&address, "POST", "/requests", &asked).await;
        let codes = [&told["responses"][0]["error_code"], &told["responses"][1]["error_code"]];
        assert_eq!(codes, [&json!(code), &json!(code)], "{version}: {told}");
    }
    assert_eq!(fake.topics(), ["orders"]);
}
