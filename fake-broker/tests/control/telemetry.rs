//! What clients push about themselves is decoded for tests in any language (KIP-714).

use krafka_fake_broker::FakeCluster;
use krafka_protocol::compression::{Compression, Compressor};
use krafka_protocol::frame::encode_request;
use krafka_protocol::{
    ApiKey, Bytes, GetTelemetrySubscriptionsRequest, GetTelemetrySubscriptionsResponse, Message, PushTelemetryRequest,
    Reader, Uuid, decode_response_header,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::ask;

/// A field that holds bytes, as protocol buffers write it.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, u8::try_from(content.len()).expect("short")], content].concat()
}

/// A sum that begins anew with each push: 42 of `sends`, with a label.
fn sends() -> Vec<u8> {
    let label = [field(1, b"topic"), field(2, &field(1, b"orders"))].concat();
    let point = [&field(7, &label)[..], &[0x31], &42_i64.to_le_bytes(), &[0x19], &7_u64.to_le_bytes()].concat();
    let sum = [&field(1, &point)[..], &[0x10, 1]].concat();
    let metric = [field(1, b"sends"), field(7, &sum)].concat();
    field(1, &field(2, &field(2, &metric)))
}

/// What [`sends`] says.
fn shown() -> Value {
    let point = json!({"value": 42.0, "labels": {"topic": "orders"}, "time_unix_nanos": 7});
    json!([{"name": "sends", "kind": "delta_sum", "points": [point]}])
}

/// A client that pushes, over TCP.
struct Client {
    stream: TcpStream,
    name: &'static str,
    instance: Uuid,
    subscription: i32,
}

impl Client {
    async fn new(fake: &FakeCluster, name: &'static str, instance: u8) -> Self {
        let stream = TcpStream::connect(fake.bootstrap()).await.expect("it listens");
        let mut client = Self { stream, name, instance: Uuid([instance; 16]), subscription: 0 };
        let request = GetTelemetrySubscriptionsRequest { client_instance_id: client.instance };
        let frame = encode_request(&request, 0, 1, Some(name)).expect("a legal request");
        client.stream.write_all(&frame.to_bytes()).await.expect("it reads");
        let mut reader = client.answer(ApiKey::GetTelemetrySubscriptions).await;
        let answer = GetTelemetrySubscriptionsResponse::decode(&mut reader, 0).expect("a legal answer");
        client.subscription = answer.subscription_id;
        client
    }

    async fn push(&mut self, terminating: bool, codec: Compression, metrics: Vec<u8>) {
        let request = PushTelemetryRequest {
            client_instance_id: self.instance,
            subscription_id: self.subscription,
            terminating,
            compression_type: codec as i8,
            metrics: metrics.into(),
        };
        let frame = encode_request(&request, 0, 2, Some(self.name)).expect("a legal request");
        self.stream.write_all(&frame.to_bytes()).await.expect("it reads");
        self.answer(ApiKey::PushTelemetry).await;
    }

    async fn answer(&mut self, key: ApiKey) -> Reader {
        let length = self.stream.read_i32().await.expect("an answer");
        let mut body = vec![0; usize::try_from(length).expect("a length")];
        self.stream.read_exact(&mut body).await.expect("a whole one");
        let mut reader = Reader::new(Bytes::from(body));
        decode_response_header(key, 0, &mut reader).expect("a header");
        reader
    }
}

/// TE-01: the port shows what was pushed, decompressed and decoded; what is no metrics is there in its bytes.
#[tokio::test]
async fn pushes_are_decoded() {
    let fake = FakeCluster::builder().client_telemetry(true).start().await.expect("ports");
    let address = fake.serve_control("127.0.0.1:0".parse().expect("an address")).await.expect("a port").to_string();
    let (status, none) = ask(&address, "GET", "/telemetry", "").await;
    assert_eq!((status, none), (200, json!({"dropped": 0, "pushes": []})));
    let mut till = Client::new(&fake, "till", 1).await;
    let mut stove = Client::new(&fake, "stove", 2).await;

    till.push(false, Compression::Gzip, gzip(&sends())).await;
    stove.push(false, Compression::None, vec![0xff]).await;
    till.push(true, Compression::None, sends()).await;

    let (_, all) = ask(&address, "GET", "/telemetry", "").await;
    let pushes = all["pushes"].as_array().expect("a list");
    assert_eq!(pushes.len(), 3, "{all}");
    let mut first = pushes[0].clone();
    assert!(first["payload"]["base64"].as_str().is_some_and(|bytes| !bytes.is_empty()), "{first}");
    first["payload"] = Value::Null;
    assert_eq!(
        first,
        json!({
            "id": 0,
            "node": 1,
            "client_instance_id": Uuid([1; 16]).to_string(),
            "client_id": "till",
            "terminating": false,
            "metrics": shown(),
            "payload": null,
        })
    );
    assert_eq!((&pushes[1]["metrics"], &pushes[1]["payload"]), (&Value::Null, &json!({"base64": "/w=="})));
    assert_eq!((&pushes[2]["terminating"], &pushes[2]["id"]), (&json!(true), &json!(2)));
    let ids = [
        ("client_id=till".to_owned(), vec![0, 2]),
        (format!("client_instance_id={}", Uuid([2; 16])), vec![1]),
        ("node=1&since=1".to_owned(), vec![1, 2]),
        ("node=9".to_owned(), vec![]),
        ("limit=1".to_owned(), vec![0]),
    ];
    for (query, ids) in ids {
        let (_, found) = ask(&address, "GET", &format!("/telemetry?{query}"), "").await;
        let found = found["pushes"].as_array().expect("a list");
        assert_eq!(found.iter().map(|push| push["id"].as_u64().expect("one")).collect::<Vec<_>>(), ids, "{query}");
    }
    for query in ["client_id=x&topik=y", "node=x", "client_instance_id=7"] {
        assert_eq!(ask(&address, "GET", &format!("/telemetry?{query}"), "").await.0, 400, "{query}");
    }
}

/// The history shows in a push what it says, and not how many bytes that takes; what cannot be read, in its bytes.
#[tokio::test]
async fn history_shows_what_a_push_says() {
    let fake = FakeCluster::builder().start().await.expect("ports");
    let address = fake.serve_control("127.0.0.1:0".parse().expect("an address")).await.expect("a port").to_string();
    let mut till = Client::new(&fake, "till", 1).await;

    till.push(false, Compression::Gzip, gzip(&sends())).await;
    till.push(false, Compression::Gzip, vec![0xff]).await;

    let (_, history) = ask(&address, "GET", "/history?api=PushTelemetry", "").await;
    let shown_there = [0, 1].map(|index| history["events"][index]["request"]["metrics"].clone());
    assert_eq!(shown_there, [shown(), json!({"base64": "/w=="})], "{history}");
}

/// Any client can be played by requests: bytes of a request are text, or base64.
#[tokio::test]
async fn request_carries_bytes() {
    let fake = FakeCluster::builder().start().await.expect("ports");
    let address = fake.serve_control("127.0.0.1:0".parse().expect("an address")).await.expect("a port").to_string();
    let instance = Uuid([1; 16]).to_string();
    let asked = json!({"api": "GetTelemetrySubscriptions", "fields": {"client_instance_id": instance}});
    let (_, told) = ask(&address, "POST", "/requests", &asked.to_string()).await;
    let push = |metrics: Value| {
        let subscription = &told["subscription_id"];
        let fields = json!({"client_instance_id": instance, "subscription_id": subscription, "metrics": metrics});
        json!({"api": "PushTelemetry", "fields": fields}).to_string()
    };

    let (status, answer) = ask(&address, "POST", "/requests", &push(json!({"base64": "/w=="}))).await;

    assert_eq!((status, &answer["error_code"]), (200, &json!(0)), "{answer}");
    assert_eq!(fake.telemetry()[0].payload[..], [0xff]);
    for wrong in [json!({"base64": "?"}), json!({"base64": "", "x": 1}), json!({"bytes": ""}), json!({"base64": 7})] {
        let (status, answer) = ask(&address, "POST", "/requests", &push(wrong)).await;
        let error = answer["error"].as_str().unwrap_or_default();
        assert!(status == 400 && error.starts_with("`PushTelemetry.metrics` cannot be {"), "{answer}");
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = Compressor::new(Compression::Gzip, None).expect("it is built in");
    gzip.compress(bytes).expect("it can be").to_vec()
}
