//! The proxy by script: what it reads, and what it says.

use tokio::io::{DuplexStream, duplex};
use tokio::sync::Mutex;

use super::*;

/// Gives out one end of a pipe.
struct Pipe(Mutex<Option<DuplexStream>>);

impl Connect for Pipe {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a> {
        assert_eq!((host, port), ("proxy", 1080));
        Box::pin(async {
            let stream: Box<dyn Stream> = Box::new(self.0.lock().await.take().expect("one connection"));
            Ok(stream)
        })
    }
}

/// What comes of connecting to a host when the proxy expects and says this, in turns.
async fn through(proxy: Socks5, host: &str, turns: &[(&[u8], &[u8])]) -> io::Result<Box<dyn Stream>> {
    let (ours, mut theirs) = duplex(1024);
    let proxy = proxy.reached_by(Pipe(Mutex::new(Some(ours))));
    let script = async {
        for (expected, says) in turns {
            let mut heard = vec![0; expected.len()];
            theirs.read_exact(&mut heard).await.expect("it is written");
            assert_eq!(heard, *expected);
            theirs.write_all(says).await.expect("it is read");
        }
        theirs
    };
    let (connected, _theirs) = tokio::join!(proxy.connect(host, 9092), script);
    connected
}

fn proxy() -> Socks5 {
    Socks5::new("proxy", 1080)
}

const GREETING: (&[u8], &[u8]) = (&[5, 1, 0], &[5, 0]);

#[track_caller]
fn assert_fails(connected: io::Result<Box<dyn Stream>>, kind: io::ErrorKind, words: &str) {
    let why = connected.err().expect("a reason to fail");
    assert!(why.kind() == kind && why.to_string().contains(words), "{why:?}");
    assert!(why.to_string().contains("the SOCKS5 proxy proxy:1080"), "{why}");
}

/// The proxy resolves names: it may know a network that this machine does not.
#[tokio::test]
async fn names_are_left_to_the_proxy() {
    let request = [&[5, 1, 0, 3, 5][..], b"kafka", &[0x23, 0x84]].concat();
    let answer = [&[5, 0, 0, 1, 10, 0, 0, 1, 0, 80][..], b"first"].concat();

    let mut stream = through(proxy(), "kafka", &[GREETING, (&request, &answer)]).await.expect("it is connected");

    let mut first = [0; 5];
    stream.read_exact(&mut first).await.expect("the broker's bytes are not eaten");
    assert_eq!(&first, b"first");
}

#[tokio::test]
async fn addresses_are_sent_as_such() {
    let v4 = [5, 1, 0, 1, 10, 0, 0, 1, 0x23, 0x84];
    let named = [&[5, 0, 0, 3, 3][..], b"far", &[0, 80]].concat();
    through(proxy(), "10.0.0.1", &[GREETING, (&v4, &named)]).await.expect("it is connected");

    let v6 = [&[5, 1, 0, 4][..], &[0; 15], &[1, 0x23, 0x84]].concat();
    let answer = [&[5, 0, 0, 4][..], &[0; 18]].concat();
    through(proxy(), "::1", &[GREETING, (&v6, &answer)]).await.expect("it is connected");
}

#[tokio::test]
async fn the_proxy_may_ask_for_a_password() {
    let with = || proxy().credentials("al", "pw");
    let greeting: (&[u8], &[u8]) = (&[5, 2, 0, 2], &[5, 2]);
    let request = [5, 1, 0, 1, 10, 0, 0, 1, 0x23, 0x84];
    let answer = [5, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    let accepted: (&[u8], &[u8]) = (b"\x01\x02al\x02pw", &[1, 0]);
    let turns: [(&[u8], &[u8]); 3] = [greeting, accepted, (&request, &answer)];
    through(with(), "10.0.0.1", &turns).await.expect("it is connected");

    let refused = through(with(), "kafka", &[greeting, (b"\x01\x02al\x02pw", &[1, 1])]).await;
    assert_fails(refused, io::ErrorKind::PermissionDenied, "does not accept the user name");
    let none = through(proxy(), "kafka", &[(&[5, 1, 0], &[5, 0xff])]).await;
    assert_fails(none, io::ErrorKind::PermissionDenied, "Socks5::credentials");
    let neither = through(with(), "kafka", &[(&[5, 2, 0, 2], &[5, 0xff])]).await;
    assert_fails(neither, io::ErrorKind::PermissionDenied, "neither");
    let long = through(proxy().credentials("x".repeat(256), "y"), "kafka", &[greeting]).await;
    assert_fails(long, io::ErrorKind::InvalidData, "from 1 to 255 bytes");
}

#[tokio::test]
async fn what_the_proxy_cannot_do_is_told() {
    let request = [&[5, 1, 0, 3, 5][..], b"kafka", &[0x23, 0x84]].concat();
    for (reply, kind, words) in [
        (1, io::ErrorKind::Other, "without saying why"),
        (2, io::ErrorKind::PermissionDenied, "rules"),
        (3, io::ErrorKind::NetworkUnreachable, "network"),
        (4, io::ErrorKind::HostUnreachable, "does not know its name"),
        (5, io::ErrorKind::ConnectionRefused, "nothing listens there"),
        (6, io::ErrorKind::TimedOut, "in time"),
        (7, io::ErrorKind::Unsupported, "does not make connections"),
        (8, io::ErrorKind::Unsupported, "kind of address"),
    ] {
        let answer = [5, reply, 0, 1, 0, 0, 0, 0, 0, 0];
        assert_fails(through(proxy(), "kafka", &[GREETING, (&request, &answer)]).await, kind, words);
    }
}

#[tokio::test]
async fn what_is_no_proxy_is_told() {
    let http = through(proxy(), "kafka", &[(&[5, 1, 0], b"HT")]).await;
    assert_fails(http, io::ErrorKind::InvalidData, "does not speak SOCKS5");
    let request = [&[5, 1, 0, 3, 5][..], b"kafka", &[0x23, 0x84]].concat();
    let odd = through(proxy(), "kafka", &[GREETING, (&request, &[5, 0, 0, 9])]).await;
    assert_fails(odd, io::ErrorKind::InvalidData, "unknown kind");
    let name = "x".repeat(256);
    assert_fails(through(proxy(), &name, &[GREETING]).await, io::ErrorKind::InvalidData, "from 1 to 255 bytes");

    let (ours, theirs) = duplex(64);
    drop(theirs);
    let gone = proxy().reached_by(Pipe(Mutex::new(Some(ours)))).connect("kafka", 9092).await;
    assert_fails(gone, io::ErrorKind::ConnectionReset, "closed the connection");
    let (ours, mut theirs) = duplex(64);
    let closing = proxy().reached_by(Pipe(Mutex::new(Some(ours))));
    let (closed, ()) = tokio::join!(closing.connect("kafka", 9092), async move {
        theirs.write_all(&[5]).await.expect("it is read");
    });
    assert_fails(closed, io::ErrorKind::ConnectionReset, "closed the connection");
}

#[test]
fn debug_hides_the_password() {
    let text = format!("{:?}", proxy().credentials("alice", "hunter2"));

    assert!(text.contains("alice") && !text.contains("hunter2"), "{text}");
}
