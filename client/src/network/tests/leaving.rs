//! Callers that leave, and streams that do not let go.

use super::*;

/// What the peer reads after it has read so much of the first request and its caller has left.
async fn came_after_leaving(writes: Writes, read_before: usize) -> Vec<ApiKey> {
    let (_network, connection, mut peer) = connected_with(256, writes).await;
    let call = connection.submit(large(), TIMEOUT);
    let mut begun = vec![0; read_before];
    peer.stream.read_exact(&mut begun).await.expect("the client is there");

    drop(call);
    let beating = heartbeat(&connection);
    let mut keys = Vec::new();
    let mut bytes = begun.as_slice().chain(&mut peer.stream);
    let came = loop {
        let came = next_of(&mut bytes).await;
        keys.push(came.key);
        if came.key == ApiKey::Heartbeat {
            break came;
        }
        let answer = answer_to(&came, &CreateTopicsResponse::default());
        bytes.get_mut().1.write_all(&answer).await.expect("the client is there");
    };
    peer.answer(&came, &beat(7)).await;

    assert_eq!(beating.await.expect("the connection answers right").error_code, 7);
    keys
}

/// LC-01: a request is whole on the wire or not there at all, wherever the write was when its caller left.
#[tokio::test(start_paused = true)]
async fn a_request_is_written_whole_or_not_at_all() {
    for writes in [Writes::Vectored, Writes::Plain] {
        assert_eq!(came_after_leaving(writes, 0).await, [ApiKey::Heartbeat], "it was not begun");
        for read_before in [1, 3, 4, 5, 255, 256, 257, 20_000, 500_000, 1_000_000] {
            let came = came_after_leaving(writes, read_before).await;

            assert_eq!(came, [ApiKey::CreateTopics, ApiKey::Heartbeat], "left after {read_before} bytes");
        }
    }
}

/// The answer to a call that was dropped belongs to nobody; the next ones are those of their calls.
#[tokio::test(start_paused = true)]
async fn a_dropped_call_s_answer_is_nobody_s() {
    for cut in 0..20 {
        let (_network, connection, mut peer) = connected().await;
        let call = heartbeat(&connection);
        let came = peer.next().await;
        let answer = answer_to(&came, &beat(1));

        peer.stream.write_all(&answer[..cut.min(answer.len())]).await.expect("the client is there");
        sleep(Duration::from_millis(1)).await;
        drop(call);
        let next = heartbeat(&connection);
        peer.stream.write_all(&answer[cut.min(answer.len())..]).await.expect("the client is there");
        let came = peer.next().await;
        peer.answer(&came, &beat(2)).await;

        assert_eq!(next.await.expect("it was answered").error_code, 2, "left after {cut} bytes of the answer");
    }
}

/// A connection was handed over, and given up for another before it was used: the request that comes too late is
/// nobody's work. Were it pending, the connection would count for `max_connections` for ever.
#[tokio::test(start_paused = true)]
async fn a_request_that_comes_after_the_end_is_not_pending() {
    let (_network, connection, _peer) = connected().await;
    connection.retire();
    sleep(SECOND).await;

    let error = heartbeat(&connection).await.expect_err("its task has ended");

    assert!(matches!(error.error(), KrafkaError::Network(_)), "{error:?}");
    assert_eq!(connection.pending(), 0);
}

/// CB-20: a coordinator may hold a JoinGroup for minutes. Where others need the only connection, who waits for the
/// answer hears of it, and the connection closes.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_held_gives_its_connection_to_others() {
    let (network, mut peers) = limited(64 * 1024, Writes::Vectored, 2, 1);
    let (mut other, mut peer) = (peers.remove(1), peers.remove(0));
    let (coordinator, elsewhere) = (node(), Node { id: 9, port: 9009, ..node() });
    let (joining, ()) = tokio::join!(network.connection(&coordinator, Lane::Join(1)), peer.shake_hands());
    let joining = joining.expect("the peer shook hands");
    let begun = Instant::now();
    let held = joining.call_while_spared(HeartbeatRequest::default(), TIMEOUT);
    let wanted = async {
        sleep(SECOND).await;
        let (wanted, ()) = tokio::join!(network.connection(&elsewhere, Lane::Control), other.shake_hands());
        wanted
    };

    let (held, wanted) = tokio::join!(held, wanted);

    assert!(held.is_none(), "it was answered");
    wanted.expect("there is room");
    assert_eq!(peer.next().await.key, ApiKey::Heartbeat, "the broker has it all the same");
    assert_eq!(peer.stream.read(&mut [0]).await.expect("it is closed"), 0);
    assert!(begun.elapsed() < 2 * SECOND, "{:?}", begun.elapsed());
    assert!(joining.call_while_spared(HeartbeatRequest::default(), TIMEOUT).await.is_none(), "it stays given up");
}

/// The same where who waits hears of it later than the connection does, as on another thread.
#[tokio::test(start_paused = true)]
async fn a_call_that_hears_of_it_late_still_gives_its_connection_to_others() {
    let (_network, connection, mut peer) = connected_with(64 * 1024, Writes::Vectored).await;
    let mut held = std::pin::pin!(connection.call_while_spared(HeartbeatRequest::default(), TIMEOUT));
    let is_answered = std::future::poll_fn(|cx| Poll::Ready(held.as_mut().poll(cx).is_ready())).await;
    assert!(!is_answered);
    assert_eq!(peer.next().await.key, ApiKey::Heartbeat);

    connection.retire();
    sleep(SECOND).await;
    assert!(!connection.has_ended(), "somebody waits for an answer");
    assert!(held.await.is_none());

    sleep(SECOND).await;
    assert!(connection.has_ended());
}

/// LC-02, CB-31: nobody wants a connection any more whose handle is closed, or gone: no password goes out then, and no
/// socket stays open for as long as the attempt may take.
#[tokio::test(start_paused = true)]
async fn an_attempt_ends_with_its_handle() {
    for is_closed in [true, false] {
        let (network, mut peers) = network_with(64 * 1024, Writes::Vectored, 1);
        let mut silent = peers.remove(0);
        let dialled = tokio::time::timeout(SECOND, network.connection(&node(), Lane::Control)).await;
        assert!(dialled.is_err(), "it is silent");
        let begun = Instant::now();

        if is_closed {
            network.close();
        } else {
            drop(network);
        }

        assert_eq!(silent.next().await.key, ApiKey::ApiVersions);
        assert_eq!(silent.stream.read(&mut [0]).await.expect("it is closed"), 0);
        assert!(begun.elapsed() < SECOND, "closed: {is_closed}; the socket was open for {:?}", begun.elapsed());
    }
}

/// A stream that never says good-bye, as TLS does when the socket takes nothing more.
struct Clinging(DuplexStream);

impl AsyncRead for Clinging {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Clinging {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

/// Whoever waits is told first; then the stream has a second, and is dropped.
#[tokio::test(start_paused = true)]
async fn closing_tells_who_waits_and_does_not_wait_for_the_stream() {
    let (near, far) = tokio::io::duplex(256);
    let stream: Box<dyn Stream> = Box::new(Clinging(near));
    let network = network_of(VecDeque::from([stream]), usize::MAX);
    let mut peer = Peer { stream: far, writes: Arc::default() };
    let node = node();
    let (connection, ()) = tokio::join!(network.connection(&node, Lane::Control), peer.shake_hands());
    let connection = connection.expect("the peer shook hands");
    let start = Instant::now();

    let (late, behind) = tokio::join!(connection.submit(large(), TIMEOUT), heartbeat(&connection));

    assert!(matches!(late.expect_err("late").error(), KrafkaError::Timeout { .. }));
    assert!(behind.expect_err("behind").is_retriable());
    assert_eq!(start.elapsed(), TIMEOUT, "nobody waited for the stream");
    peer.stream.read_to_end(&mut Vec::new()).await.expect("it ends");
    assert_eq!(start.elapsed(), TIMEOUT + SECOND);
}

/// A peer that reads nothing, from the first byte on: bounded by the connect timeout.
#[tokio::test(start_paused = true)]
async fn a_peer_that_never_reads_is_given_up_in_time() {
    let (network, _peers) = limited(8, Writes::Vectored, 1, usize::MAX);
    let start = Instant::now();

    let error = network.connection(&node(), Lane::Control).await.err().expect("nobody reads");

    assert_eq!(start.elapsed(), 10 * SECOND);
    assert!(error.error().to_string().contains("no answer to ApiVersions within 10s"), "{error:?}");
}

/// CB-07: a peer that answers byte by byte, at a speed at which it would take an hour.
#[tokio::test(start_paused = true)]
async fn a_peer_that_drips_is_given_up_in_time() {
    let (network, mut peers) = limited(1024, Writes::Vectored, 1, usize::MAX);
    let (node, mut peer) = (node(), peers.remove(0));
    let start = Instant::now();
    let dripping = async {
        let came = peer.next().await;
        for byte in answer_to(&came, &ApiVersionsResponse::default()) {
            sleep(SECOND).await;
            if peer.stream.write_all(&[byte]).await.is_err() {
                break;
            }
        }
        start.elapsed()
    };

    let (connection, gone) = tokio::join!(network.connection(&node, Lane::Control), dripping);

    connection.err().expect("it takes too long");
    assert!(gone <= 11 * SECOND, "the peer saw the end after {gone:?}");
}

/// Nor does dripping keep a request alive: its time is that of the whole answer.
#[tokio::test(start_paused = true)]
async fn an_answer_that_drips_is_late() {
    let (_network, connection, mut peer) = connected().await;
    let start = Instant::now();
    let call = heartbeat(&connection);
    let dripping = tokio::spawn(async move {
        let came = peer.next().await;
        for byte in answer_to(&came, &beat(0)) {
            sleep(10 * SECOND).await;
            if peer.stream.write_all(&[byte]).await.is_err() {
                break;
            }
        }
    });

    let error = call.await.expect_err("it is late");

    assert_eq!(start.elapsed(), TIMEOUT);
    assert!(matches!(error.error(), KrafkaError::Timeout { .. }), "{error:?}");
    dripping.await.expect("it noticed");
}
