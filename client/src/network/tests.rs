//! Connections against a peer that the test plays itself, byte by byte, over pipes with a paused clock.

#![expect(clippy::disallowed_methods, reason = "tests ask for the virtual time to see how long something took")]

use std::collections::VecDeque;
use std::sync::Mutex;
use std::task::ready;

use bytes::Bytes;
use krafka_protocol::api::api_versions::ApiVersion;
use krafka_protocol::api::create_topics::CreatableTopic;
use krafka_protocol::frame::encode_response;
use krafka_protocol::{
    ApiKey, ApiVersionsResponse, CreateTopicsRequest, CreateTopicsResponse, HeartbeatRequest, HeartbeatResponse,
    MetadataRequest, MetadataResponse, Reader, Str, decode_request_header,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf};
use tokio::time::{Instant, sleep};

use super::*;
use crate::environment::{Connect, Connecting, Stream};

mod flushing;
mod lanes;
mod leaving;

const SECOND: Duration = Duration::from_secs(1);
const TIMEOUT: Duration = Duration::from_secs(30);

/// What a stream under test does with writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Writes {
    Vectored,
    /// One piece at a time, as a stream of the user's may.
    Plain,
}

/// A stream that counts the writes that pass through it.
struct Counted {
    stream: DuplexStream,
    writes: Writes,
    count: Arc<AtomicUsize>,
}

impl AsyncRead for Counted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, buf))?;
        self.count.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        assert!(self.writes == Writes::Vectored, "a stream without vectored writes got one");
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, bufs))?;
        self.count.fetch_add(1, Ordering::Relaxed);
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.writes == Writes::Vectored
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Hands out the client's ends of pipes whose other ends the test holds.
struct Handed(Mutex<VecDeque<Box<dyn Stream>>>);

impl Connect for Handed {
    fn connect<'a>(&'a self, _host: &'a str, _port: u16) -> Connecting<'a> {
        let stream = self.0.lock().expect("nobody panicked").pop_front();
        Box::pin(async { stream.ok_or_else(|| io::ErrorKind::ConnectionRefused.into()) })
    }
}

/// The other end of a connection.
struct Peer {
    stream: DuplexStream,
    writes: Arc<AtomicUsize>,
}

/// A request that came: its key, version, correlation id, and the length of its frame.
#[derive(Debug, PartialEq, Eq)]
struct Came {
    key: ApiKey,
    version: i16,
    correlation_id: i32,
    length: usize,
}

impl Peer {
    async fn next(&mut self) -> Came {
        next_of(&mut self.stream).await
    }

    async fn answer<M: Message>(&mut self, came: &Came, response: &M) {
        let bytes = answer_to(came, response);
        self.stream.write_all(&bytes).await.expect("the client is there");
    }

    async fn shake_hands(&mut self) {
        let came = self.next().await;
        let api = |key: ApiKey, max_version| ApiVersion { api_key: key as i16, min_version: 0, max_version };
        let apis = vec![
            api(ApiKey::Metadata, 12),
            api(ApiKey::Heartbeat, 4),
            api(ApiKey::CreateTopics, 7),
            api(ApiKey::Fetch, 3),
        ];
        let response = ApiVersionsResponse { api_keys: apis, ..ApiVersionsResponse::default() };
        self.answer(&came, &response).await;
    }
}

async fn next_of(stream: &mut (impl AsyncRead + Unpin)) -> Came {
    let length = stream.read_i32().await.expect("the client is there") as usize;
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.expect("the client is there");
    let header = decode_request_header(&mut Reader::new(Bytes::from(body))).expect("a header");
    let key = ApiKey::try_from(header.key).expect("a key of Kafka's");
    Came { key, version: header.version, correlation_id: header.correlation_id, length }
}

fn answer_to<M: Message>(came: &Came, response: &M) -> Bytes {
    encode_response(came.key, response, came.version, came.correlation_id).expect("it can be encoded").to_bytes()
}

fn node() -> Node {
    Node { id: 1, host: Str::from("kafka"), port: 9092, rack: None }
}

/// A network whose connections end at the peers, in order.
fn network_with(capacity: usize, writes: Writes, peers: usize) -> (Network, Vec<Peer>) {
    limited(capacity, writes, peers, usize::MAX)
}

/// The same, that may have so many connections.
fn limited(capacity: usize, writes: Writes, peers: usize, max_connections: usize) -> (Network, Vec<Peer>) {
    let mut ours: VecDeque<Box<dyn Stream>> = VecDeque::new();
    let mut theirs = Vec::new();
    for _ in 0..peers {
        let (near, far) = tokio::io::duplex(capacity);
        let count = Arc::new(AtomicUsize::new(0));
        ours.push_back(Box::new(Counted { stream: near, writes, count: count.clone() }));
        theirs.push(Peer { stream: far, writes: count });
    }
    (network_of(ours, max_connections), theirs)
}

/// A network of these streams, in order.
fn network_of(streams: VecDeque<Box<dyn Stream>>, max_connections: usize) -> Network {
    Network::new(NetworkConfig {
        connect: Arc::new(Handed(Mutex::new(streams))),
        #[cfg(feature = "tls")]
        tls: None,
        credentials: None,
        client_id: "me".into(),
        destination: Destination::default(),
        registry: Arc::new(Registry::new("me".into())),
        connect_timeout: 10 * SECOND,
        max_response_size: 1 << 20,
        max_idle: 540 * SECOND,
        max_connections,
        seed: 1,
    })
}

/// A connection, and the peer at its other end.
async fn connected_with(capacity: usize, writes: Writes) -> (Network, Connection, Peer) {
    let (network, mut peers) = network_with(capacity, writes, 1);
    let mut peer = peers.remove(0);
    let node = node();
    let (connection, ()) = tokio::join!(network.connection(&node, Lane::Control), peer.shake_hands());
    (network, connection.expect("the peer shook hands"), peer)
}

async fn connected() -> (Network, Connection, Peer) {
    connected_with(64 * 1024, Writes::Vectored).await
}

fn heartbeat(connection: &Connection) -> Pending<HeartbeatResponse> {
    connection.submit(HeartbeatRequest::default(), TIMEOUT)
}

fn beat(error_code: i16) -> HeartbeatResponse {
    HeartbeatResponse { error_code, ..HeartbeatResponse::default() }
}

fn kind(error: &CallError) -> io::ErrorKind {
    match error.error() {
        KrafkaError::Network(source) => source.kind(),
        other => panic!("not a network error: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn answers_reach_their_requests() {
    let (_network, connection, mut peer) = connected().await;
    let (first, second) = (heartbeat(&connection), heartbeat(&connection));

    let (one, two) = (peer.next().await, peer.next().await);
    peer.answer(&one, &beat(1)).await;
    peer.answer(&two, &beat(2)).await;

    assert_eq!((one.key, one.version), (ApiKey::Heartbeat, 4), "the highest version of both sides");
    assert_eq!(first.await.expect("it was answered").error_code, 1);
    assert_eq!(second.await.expect("it was answered").error_code, 2);
}

/// Fault 25 of the peer: what is queued together goes out together.
#[tokio::test(start_paused = true)]
async fn queued_requests_are_one_write() {
    for writes in [Writes::Vectored, Writes::Plain] {
        let (_network, connection, mut peer) = connected_with(64 * 1024, writes).await;
        let before = peer.writes.load(Ordering::Relaxed);

        let calls = [heartbeat(&connection), heartbeat(&connection), heartbeat(&connection)];
        for _ in 0..3 {
            let came = peer.next().await;
            peer.answer(&came, &beat(0)).await;
        }
        for call in calls {
            call.await.expect("it was answered");
        }

        assert_eq!(peer.writes.load(Ordering::Relaxed) - before, 1);
    }
}

/// From the moment when it is submitted: nobody may take the connection for idle.
#[tokio::test(start_paused = true)]
async fn a_request_is_pending_until_it_is_done() {
    let (_network, connection, mut peer) = connected().await;

    let (first, second) = (heartbeat(&connection), heartbeat(&connection));
    assert_eq!(connection.pending(), 2);

    let came = peer.next().await;
    peer.answer(&came, &beat(0)).await;
    first.await.expect("it was answered");
    sleep(Duration::from_millis(1)).await;
    assert_eq!(connection.pending(), 1);

    drop(peer);
    second.await.expect_err("the peer is gone");
    sleep(Duration::from_millis(1)).await;
    assert_eq!(connection.pending(), 0);
}

/// CB-18: an answer that comes byte by byte, and two in one write.
#[tokio::test(start_paused = true)]
async fn how_answers_are_cut_does_not_matter() {
    let (_network, connection, mut peer) = connected().await;
    let calls = [heartbeat(&connection), heartbeat(&connection), heartbeat(&connection)];
    let came = [peer.next().await, peer.next().await, peer.next().await];

    for byte in answer_to(&came[0], &beat(1)) {
        peer.stream.write_all(&[byte]).await.expect("the client is there");
        sleep(Duration::from_millis(1)).await;
    }
    let both = [answer_to(&came[1], &beat(2)), answer_to(&came[2], &beat(3))].concat();
    peer.stream.write_all(&both).await.expect("the client is there");

    for (call, code) in calls.into_iter().zip(1..) {
        assert_eq!(call.await.expect("it was answered").error_code, code);
    }
}

/// A request of about a megabyte.
fn large() -> CreateTopicsRequest {
    let topic = |n: i32| CreatableTopic { name: Str::from(format!("{n:01000}")), ..CreatableTopic::default() };
    CreateTopicsRequest { topics: (0..1_000).map(topic).collect(), ..CreateTopicsRequest::default() }
}

/// The peer reads nothing of a large request, and yet its earlier answer arrives.
#[tokio::test(start_paused = true)]
async fn a_blocked_write_does_not_stop_reading() {
    let (_network, connection, mut peer) = connected_with(256, Writes::Vectored).await;
    let small = heartbeat(&connection);
    let came = peer.next().await;
    let _blocked = connection.submit(large(), TIMEOUT);
    sleep(SECOND).await;

    peer.answer(&came, &beat(7)).await;

    let start = Instant::now();
    assert_eq!(small.await.expect("it was answered").error_code, 7);
    assert_eq!(start.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_large_request_arrives_whole() {
    for writes in [Writes::Vectored, Writes::Plain] {
        let (_network, connection, mut peer) = connected_with(1_000, writes).await;
        let _call = connection.submit(large(), TIMEOUT);

        let came = peer.next().await;

        assert_eq!(came.key, ApiKey::CreateTopics);
        assert!(came.length > 1_000_000, "{came:?}");
    }
}

/// CB-17: nothing is ever written behind the half of a request.
#[tokio::test(start_paused = true)]
async fn a_request_that_is_late_half_written_ends_the_connection() {
    let (_network, connection, mut peer) = connected_with(256, Writes::Vectored).await;
    let start = Instant::now();
    let late = connection.submit(large(), TIMEOUT);
    let behind = heartbeat(&connection);

    let (late, behind) = (late.await.expect_err("late"), behind.await.expect_err("behind"));

    assert_eq!(start.elapsed(), TIMEOUT);
    assert!(matches!(late.error(), KrafkaError::Timeout { .. }) && late.possibly_written(), "{late:?}");
    assert!(behind.is_retriable(), "{behind:?}");
    let mut rest = Vec::new();
    peer.stream.read_to_end(&mut rest).await.expect("it ends");
    assert!(rest.len() <= 256, "{} bytes were still written", rest.len());
}

/// CB-16.
#[tokio::test(start_paused = true)]
async fn an_answer_to_nobody_is_a_protocol_error() {
    let (_network, connection, mut peer) = connected().await;
    let (first, second) = (heartbeat(&connection), heartbeat(&connection));
    let (_, two) = (peer.next().await, peer.next().await);

    peer.answer(&two, &beat(2)).await;

    let (first, second) = (first.await.expect_err("not its answer"), second.await.expect_err("behind"));
    let KrafkaError::Protocol { kind: ProtocolErrorKind::UnexpectedResponse, .. } = first.error() else {
        panic!("{first:?}")
    };
    assert!(second.is_retriable(), "{second:?}");
    assert!(connection.is_closed());
}

/// CB-27: what arrived before the end is delivered.
#[tokio::test(start_paused = true)]
async fn an_answer_before_the_end_counts() {
    let (_network, connection, mut peer) = connected().await;
    let (first, second) = (heartbeat(&connection), heartbeat(&connection));
    let (one, _) = (peer.next().await, peer.next().await);

    peer.answer(&one, &beat(1)).await;
    drop(peer);

    assert_eq!(first.await.expect("it was answered").error_code, 1);
    let second = second.await.expect_err("the peer is gone");
    assert_eq!(kind(&second), io::ErrorKind::ConnectionReset);
    assert!(second.possibly_written() && second.is_retriable());
}

#[tokio::test(start_paused = true)]
async fn a_request_after_the_end_was_not_written() {
    let (_network, connection, peer) = connected().await;
    drop(peer);
    sleep(SECOND).await;

    let error = heartbeat(&connection).await.expect_err("the connection is gone");

    assert!(connection.is_closed());
    assert!(!error.possibly_written() && error.is_retriable(), "{error:?}");
}

/// BY: an answer that makes no sense fails its request, by name, and nothing else.
#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_decode_fails_its_request_only() {
    let (_network, connection, mut peer) = connected().await;
    let garbled = connection.submit(MetadataRequest::default(), TIMEOUT);
    let good = heartbeat(&connection);
    let (one, two) = (peer.next().await, peer.next().await);

    let mut bytes = answer_to(&one, &MetadataResponse::default()).to_vec();
    bytes.truncate(bytes.len() - 3);
    let length = (bytes.len() - 4) as i32;
    bytes[..4].copy_from_slice(&length.to_be_bytes());
    peer.stream.write_all(&bytes).await.expect("the client is there");
    peer.answer(&two, &beat(2)).await;

    let garbled = garbled.await.expect_err("it does not decode");
    assert!(matches!(garbled.error(), KrafkaError::Protocol { kind: ProtocolErrorKind::Malformed, .. }), "{garbled:?}");
    assert!(garbled.error().to_string().contains("Metadata version 12 at broker 1 at kafka:9092"), "{garbled:?}");
    assert_eq!(good.await.expect("it was answered").error_code, 2);
}

/// A dropped request that waited behind a throttle is never written.
#[tokio::test(start_paused = true)]
async fn an_abandoned_request_is_never_written() {
    let (_network, connection, mut peer) = connected().await;
    let first = heartbeat(&connection);
    let one = peer.next().await;
    let throttled = HeartbeatResponse { throttle_time_ms: 5_000, ..beat(0) };
    peer.answer(&one, &throttled).await;
    first.await.expect("it was answered");
    let start = Instant::now();

    let abandoned = connection.submit(MetadataRequest::default(), TIMEOUT);
    let wanted = heartbeat(&connection);
    sleep(SECOND).await;
    drop(abandoned);

    let came = peer.next().await;
    assert_eq!(came.key, ApiKey::Heartbeat, "not the Metadata request before it");
    assert_eq!(start.elapsed(), 5 * SECOND);
    peer.answer(&came, &beat(3)).await;
    assert_eq!(wanted.await.expect("it was answered").error_code, 3);
}

/// TH-02: before KIP-219's version the broker has waited already.
#[tokio::test(start_paused = true)]
async fn an_old_version_s_throttle_is_not_waited_for_again() {
    let (_network, connection, mut peer) = connected().await;
    let first = connection.submit_at(HeartbeatRequest::default(), 1, TIMEOUT);
    let one = peer.next().await;
    peer.answer(&one, &HeartbeatResponse { throttle_time_ms: 5_000, ..beat(0) }).await;
    first.await.expect("it was answered");
    let start = Instant::now();

    let _second = heartbeat(&connection);
    peer.next().await;

    assert_eq!(start.elapsed(), Duration::ZERO);
}

/// acks=0: no answer is waited for, and the answer of the next request is its own.
#[tokio::test(start_paused = true)]
async fn a_request_without_an_answer_is_done_when_written() {
    let (_network, connection, mut peer) = connected().await;
    let unanswered = connection.submit_unanswered(HeartbeatRequest::default(), 4, TIMEOUT);
    let answered = heartbeat(&connection);

    unanswered.await.expect("it was written");
    let (_, two) = (peer.next().await, peer.next().await);
    peer.answer(&two, &beat(2)).await;

    assert_eq!(answered.await.expect("it was answered").error_code, 2);
}

/// AV-05, AV-06.
#[tokio::test(start_paused = true)]
async fn what_the_broker_does_not_serve_fails_before_it_is_sent() {
    let (_network, connection, _peer) = connected().await;

    let missing = connection.submit(krafka_protocol::FindCoordinatorRequest::default(), TIMEOUT).await;
    let too_old = connection.submit(krafka_protocol::FetchRequest::default(), TIMEOUT).await;

    let (missing, too_old) = (missing.expect_err("not served"), too_old.expect_err("too old"));
    assert!(missing.error().to_string().contains("does not serve FindCoordinator"), "{missing:?}");
    assert!(too_old.error().to_string().contains("serves Fetch in versions 0 to 3"), "{too_old:?}");
    assert!(!missing.possibly_written() && !too_old.is_retriable());
}

/// The pool lets go, the users let go: the peer sees the end.
#[tokio::test(start_paused = true)]
async fn the_last_holder_closes_the_connection() {
    let (network, connection, mut peer) = connected().await;
    let call = heartbeat(&connection);
    let came = peer.next().await;

    drop((network, connection));
    peer.answer(&came, &beat(1)).await;

    assert_eq!(call.await.expect("what was sent is answered").error_code, 1);
    assert_eq!(peer.stream.read(&mut [0; 8]).await.expect("it ends"), 0);
}

/// CB-20, and it is counted.
#[tokio::test(start_paused = true)]
async fn without_room_a_lane_goes_over_another_s_connection() {
    let (network, mut peers) = limited(1024, Writes::Vectored, 1, 1);
    let (node, mut peer) = (node(), peers.remove(0));
    let (control, ()) = tokio::join!(network.connection(&node, Lane::Control), peer.shake_hands());
    let first = heartbeat(&control.expect("the peer shook hands"));
    assert_eq!(network.fallbacks(), 0);

    let second =
        heartbeat(&network.connection(&node, Lane::Coordination(1)).await.expect("there is one to the broker"));
    for code in 1..=2 {
        let came = peer.next().await;
        peer.answer(&came, &beat(code)).await;
    }

    assert_eq!(first.await.expect("it was answered").error_code, 1);
    assert_eq!(second.await.expect("it was answered").error_code, 2);
    assert_eq!(network.fallbacks(), 1);
}

/// CB-11: the attempt belongs to all who wait for it.
#[tokio::test(start_paused = true)]
async fn a_caller_that_gives_up_does_not_stop_the_attempt() {
    let (network, mut peers) = network_with(1024, Writes::Vectored, 1);
    let (node, mut peer) = (node(), peers.remove(0));
    let first = tokio::spawn({
        let (network, node) = (network.clone(), node.clone());
        async move { network.connection(&node, Lane::Control).await.map(|_| ()) }
    });
    let came = peer.next().await;
    let second = network.connection(&node, Lane::Control);

    first.abort();
    let ((), second) = tokio::join!(
        async {
            sleep(SECOND).await;
            let api = ApiVersion { api_key: 3, min_version: 0, max_version: 12 };
            let response = ApiVersionsResponse { api_keys: vec![api], ..ApiVersionsResponse::default() };
            peer.answer(&came, &response).await;
        },
        second
    );

    second.expect("the attempt went on");
}

/// A frame that was read together with the end of the handshake is not lost.
#[tokio::test(start_paused = true)]
async fn garbage_behind_the_handshake_is_noticed() {
    let (network, mut peers) = network_with(1024, Writes::Vectored, 1);
    let (node, mut peer) = (node(), peers.remove(0));
    let answering = async {
        let came = peer.next().await;
        let api = ApiVersion { api_key: 3, min_version: 0, max_version: 12 };
        let response = ApiVersionsResponse { api_keys: vec![api], ..ApiVersionsResponse::default() };
        let mut bytes = answer_to(&came, &response).to_vec();
        bytes.extend_from_slice(&[0, 0, 0, 4, 0, 0, 0, 99]);
        peer.stream.write_all(&bytes).await.expect("the client is there");
    };

    let (connection, ()) = tokio::join!(network.connection(&node, Lane::Control), answering);
    sleep(SECOND).await;

    assert!(connection.expect("the handshake was good").is_closed(), "response 99 was asked for by nobody");
}
