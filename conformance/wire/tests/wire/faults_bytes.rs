//! Faults of bytes and connections: what is written, in which pieces, and how a connection begins and ends.

use std::io::ErrorKind;
use std::time::Duration;

use krafka_fake_broker::{Damage, FakeCluster, PipeStream};
use krafka_protocol::frame::encode_request;
use krafka_protocol::{ApiKey, MetadataRequest};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout};

use crate::target::on_fake;

const SECOND: Duration = Duration::from_secs(1);

/// Runs a test on one node, with a stream to it.
fn run(test: impl AsyncFnOnce(FakeCluster, PipeStream)) {
    on_fake(FakeCluster::builder(), async |_, fake| {
        let stream = connect(&fake, 1).await;
        test(fake, stream).await;
    });
}

async fn connect(fake: &FakeCluster, node: i32) -> PipeStream {
    let (host, port) = fake.address(node).expect("a node of that id");
    fake.pipes().connect(&host, port).await.expect("it listens")
}

/// Asks for metadata.
async fn ask(stream: &mut PipeStream) {
    let request = MetadataRequest { topics: Some(Vec::new()), ..MetadataRequest::default() };
    let frame = encode_request(&request, 12, 7, Some("bytes")).expect("a legal request");
    stream.write_all(&frame.to_bytes()).await.expect("the connection is open");
}

/// Reads until nothing comes for a while, or the end: the bytes, and how it ended.
async fn read(stream: &mut PipeStream) -> (Vec<u8>, Option<ErrorKind>) {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        match timeout(SECOND, stream.read(&mut piece)).await {
            Err(_) => return (bytes, None),
            Ok(Ok(0)) => return (bytes, Some(ErrorKind::UnexpectedEof)),
            Ok(Ok(length)) => bytes.extend_from_slice(&piece[..length]),
            Ok(Err(error)) => return (bytes, Some(error.kind())),
        }
    }
}

/// What is written without faults.
async fn whole(stream: &mut PipeStream) -> Vec<u8> {
    ask(stream).await;
    read(stream).await.0
}

#[expect(clippy::disallowed_methods, reason = "the time that passes is what the tests are about")]
fn now() -> Instant {
    Instant::now()
}

/// CB-18.
#[test]
fn answer_that_dribbles_is_the_same_answer() {
    run(async |fake, mut stream| {
        let expected = whole(&mut stream).await;
        fake.when(ApiKey::Metadata).chunk(1, Duration::from_millis(2));

        ask(&mut stream).await;
        let mut first = [0; 64];
        let length = stream.read(&mut first).await.expect("a byte");
        assert_eq!((length, first[0]), (1, expected[0]));
        let (rest, end) = read(&mut stream).await;

        assert_eq!((&rest[..], end), (&expected[1..], None));
        assert_eq!(whole(&mut stream).await, expected, "the next answer comes in one piece");
    });
}

/// BY-02, CB-27, CB-28: the client can tell an end in order from a reset.
#[test]
fn answer_that_is_cut_short_ends_as_told() {
    for (reset, end) in [(false, ErrorKind::UnexpectedEof), (true, ErrorKind::ConnectionReset)] {
        run(async |fake, mut stream| {
            let expected = whole(&mut stream).await;
            fake.when(ApiKey::Metadata).damage(Damage::Truncate { bytes: 9, reset });

            ask(&mut stream).await;

            assert_eq!(read(&mut stream).await, (expected[..9].to_vec(), Some(end)));
        });
    }
}

#[test]
fn connection_is_reset_before_or_after_handling() {
    run(async |fake, mut stream| {
        fake.when(ApiKey::Metadata).reset_connection();
        ask(&mut stream).await;
        assert_eq!(read(&mut stream).await, (Vec::new(), Some(ErrorKind::ConnectionReset)));

        let mut stream = connect(&fake, 1).await;
        fake.when(ApiKey::Metadata).after_handling().reset_connection();
        ask(&mut stream).await;
        assert_eq!(read(&mut stream).await, (Vec::new(), Some(ErrorKind::ConnectionReset)));
    });
}

/// BY-01, BY-10, BY-17: a flipped byte, garbage in front, and a length that is a lie.
#[test]
fn bytes_are_harmed_where_told() {
    run(async |fake, mut stream| {
        let expected = whole(&mut stream).await;

        fake.when(ApiKey::Metadata).damage(Damage::Flip { at: Some(6), mask: 0x10 });
        let flipped = whole(&mut stream).await;
        let differing = flipped.iter().zip(&expected).filter(|(a, b)| a != b).count();
        assert_eq!((differing, flipped[6]), (1, expected[6] ^ 0x10));

        fake.when(ApiKey::Metadata).damage(Damage::Garbage { bytes: 11 });
        assert_eq!(whole(&mut stream).await[11..], expected);

        fake.when(ApiKey::Metadata).damage(Damage::Length { length: i32::MAX });
        let oversized = whole(&mut stream).await;
        assert_eq!((&oversized[..4], &oversized[4..]), (&[0x7f, 0xff, 0xff, 0xff][..], &expected[4..]));
    });
}

#[test]
fn answers_are_coalesced_or_come_late() {
    run(async |fake, mut stream| {
        let expected = whole(&mut stream).await;
        let coalesce = Damage::Coalesce { within: Duration::from_millis(200) };
        fake.when(ApiKey::Metadata).damage(coalesce.clone());

        ask(&mut stream).await;
        assert!(timeout(SECOND / 10, stream.read_u8()).await.is_err(), "it waits for the next one");
        ask(&mut stream).await;
        let mut both = vec![0; 2 * expected.len()];
        assert_eq!(stream.read(&mut both).await.expect("two answers"), both.len());
        assert_eq!(both, [expected.clone(), expected.clone()].concat());

        fake.when(ApiKey::Metadata).damage(coalesce);
        ask(&mut stream).await;
        let start = now();
        stream.read_exact(&mut both[..expected.len()]).await.expect("it comes at last");
        assert!((Duration::from_millis(150)..SECOND).contains(&start.elapsed()));
    });
}

/// CB-01, CB-08.
#[test]
fn new_connections_are_refused_as_often_as_told() {
    on_fake(FakeCluster::builder().nodes(2), async |_, fake| {
        let refused = fake.when_connecting().on(1).times(2).refuse();

        for _ in 0..2 {
            let (host, port) = fake.address(1).expect("a node");
            let error = fake.pipes().connect(&host, port).await.expect_err("it refuses");
            assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        }
        whole(&mut connect(&fake, 2).await).await;
        assert!(!whole(&mut connect(&fake, 1).await).await.is_empty());
        assert_eq!(refused.hits(), 2);
    });
}

/// CB-02, CB-07.
#[test]
fn new_connection_is_served_late_or_never() {
    run(async |fake, _| {
        fake.when_connecting().slow_accept(3 * SECOND);
        let mut slow = connect(&fake, 1).await;
        ask(&mut slow).await;
        let start = now();
        slow.read_u8().await.expect("an answer");
        assert!(start.elapsed() >= 2 * SECOND);

        let lost = fake.when_connecting().black_hole();
        let mut hole = connect(&fake, 1).await;
        ask(&mut hole).await;
        assert!(timeout(600 * SECOND, hole.read_u8()).await.is_err());
        assert_eq!(lost.hits(), 1);
    });
}

#[test]
fn node_that_refuses_keeps_the_connections_that_it_has() {
    run(async |fake, mut stream| {
        fake.refuse_connections(1, true);

        let (host, port) = fake.address(1).expect("a node");
        let refused = fake.pipes().connect(&host, port).await.expect_err("it refuses");
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        assert!(!whole(&mut stream).await.is_empty());

        fake.refuse_connections(1, false);
        connect(&fake, 1).await;
    });
}

/// A stopped process: the system still accepts for it, and nothing else happens.
#[test]
fn paused_node_answers_when_it_is_resumed() {
    run(async |fake, mut before| {
        let expected = whole(&mut before).await;
        fake.when(ApiKey::Metadata).delay(SECOND / 2);
        ask(&mut before).await;
        fake.pause(1);
        let mut during = connect(&fake, 1).await;
        ask(&mut during).await;

        assert_eq!(read(&mut before).await, (Vec::new(), None));
        assert_eq!(read(&mut during).await, (Vec::new(), None));
        fake.resume(1);

        assert_eq!(read(&mut before).await.0, expected);
        assert_eq!(read(&mut during).await.0, expected);
    });
}

/// BY-15, BY-16: somebody who is no broker speaks before it is asked.
#[test]
fn connection_begins_with_what_nobody_asked_for() {
    run(async |fake, mut first| {
        fake.when_connecting().speak_first("220 mail.example\r\n");
        let mut stream = connect(&fake, 1).await;

        let (banner, end) = read(&mut stream).await;

        assert_eq!((&banner[..], end), (&b"220 mail.example\r\n"[..], None));
        assert_eq!(whole(&mut stream).await, whole(&mut first).await, "it is a broker all the same");
    });
}
