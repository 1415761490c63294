//! TLS in trouble: handshakes that end early or never, certificates that change, versions that do not meet, ends
//! without a good-bye.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use krafka::protocol::ApiKey;
use krafka::testing::FakeCluster;
use krafka::{Connect, Connecting, Environment, Kafka, KafkaBuilder, KrafkaError, Stream, Tls, TlsVersion};
use rustls::{HandshakeKind, ServerConfig, SupportedProtocolVersion};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, DuplexStream, ReadBuf};
use tokio_rustls::TlsAcceptor;
use tracing::Level;

use super::assert_says;
use super::observed::Observed;
use super::tls::{Authority, Folder, host};

const SECOND: Duration = Duration::from_secs(1);

/// The server's end of a pipe, which ends after so many bytes to the client, and gives out few at a time.
struct Brittle {
    stream: DuplexStream,
    left: usize,
    /// Whether it goes silent instead of ending.
    is_silent: bool,
    piece: usize,
}

impl AsyncRead for Brittle {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Brittle {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<std::io::Result<usize>> {
        let len = buf.len().min(self.left).min(self.piece);
        if len == 0 {
            return if self.is_silent {
                Poll::Pending
            } else {
                Poll::Ready(Err(std::io::ErrorKind::BrokenPipe.into()))
            };
        }
        let written = std::task::ready!(Pin::new(&mut self.stream).poll_write(cx, &buf[..len]))?;
        self.left -= written;
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Node 1 of a fake behind TLS that can be changed and broken.
#[derive(Clone)]
struct Behind {
    fake: FakeCluster,
    server: Arc<Mutex<Arc<ServerConfig>>>,
    left: usize,
    is_silent: bool,
    piece: usize,
    dials: Arc<AtomicUsize>,
    kinds: Arc<Mutex<Vec<HandshakeKind>>>,
}

impl Behind {
    fn new(server: Arc<ServerConfig>) -> Self {
        Self {
            fake: FakeCluster::builder().nodes(1).topic("orders", 300).start_on_pipes(),
            server: Arc::new(Mutex::new(server)),
            left: usize::MAX,
            is_silent: false,
            piece: usize::MAX,
            dials: Arc::default(),
            kinds: Arc::default(),
        }
    }

    fn client(&self, trusted: &Authority) -> KafkaBuilder {
        let builder = Kafka::builder(self.fake.bootstrap()).environment(Environment::new(self.clone(), 1));
        builder.tls(Tls::new().roots_pem(&trusted.pem)).bootstrap_timeout(3 * SECOND)
    }
}

impl Connect for Behind {
    fn connect<'a>(&'a self, _host: &'a str, _port: u16) -> Connecting<'a> {
        self.dials.fetch_add(1, Ordering::Relaxed);
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let behind = self.clone();
        tokio::spawn(async move {
            let Self { left, is_silent, piece, .. } = behind;
            let stream = Brittle { stream: theirs, left, is_silent, piece };
            let server = behind.server.lock().expect("nobody panicked").clone();
            // A client that goes away, or is sent away, is gone.
            if let Ok(stream) = TlsAcceptor::from(server).accept(stream).await {
                let kind = stream.get_ref().1.handshake_kind();
                behind.kinds.lock().expect("nobody panicked").extend(kind);
                behind.fake.serve(1, stream).await;
            }
        });
        Box::pin(async {
            let stream: Box<dyn Stream> = Box::new(ours);
            Ok(stream)
        })
    }
}

/// TL-04: wherever the server's part of the handshake ends, the reason is told within the time, and may be retried.
#[tokio::test(start_paused = true)]
async fn a_handshake_that_breaks_off_is_a_lost_connection() {
    let authority = Authority::new();
    for left in [0, 1, 5, 50, 127, 200, 400] {
        let behind = Behind { left, ..Behind::new(authority.issue(&host()).server(None)) };
        let error = behind.client(&authority).connect().await.expect_err("it breaks off");
        assert!(error.is_retriable(), "after {left} bytes: {error:?}");
        assert!(behind.dials.load(Ordering::Relaxed) > 1, "after {left} bytes");
    }
}

/// TL-04.
#[tokio::test(start_paused = true)]
async fn a_handshake_that_never_ends_is_bounded() {
    let authority = Authority::new();
    for left in [0, 100] {
        let behind = Behind { left, is_silent: true, ..Behind::new(authority.issue(&host()).server(None)) };
        let began = tokio::time::Instant::now();
        let builder = behind.client(&authority).connect_timeout(SECOND);

        let error = builder.connect().await.expect_err("it never ends");

        assert!(error.is_retriable() && began.elapsed() <= 4 * SECOND, "{error:?} after {:?}", began.elapsed());
        assert_says(&error, &["TLS handshake", "connect_timeout"]);
    }
}

/// TL-06: records in pieces of a few bytes, and many answers that come in one go.
#[tokio::test(start_paused = true)]
async fn the_shape_of_records_does_not_matter() {
    let authority = Authority::new();
    for piece in [3, 1_000, usize::MAX] {
        let behind = Behind { piece, ..Behind::new(authority.issue(&host()).server(None)) };
        let kafka = behind.client(&authority).connect().await.expect("it is up");
        let rule = behind.fake.when(ApiKey::Metadata).times(1).delay(SECOND);

        let listed: Vec<_> = (0..3)
            .map(|_| {
                let admin = kafka.admin();
                tokio::spawn(async move { admin.list_topics().await })
            })
            .collect();
        for listed in listed {
            let topics = listed.await.expect("no panic").expect("it is answered");
            assert_eq!(topics[0].partitions.len(), 300);
        }
        assert_eq!(rule.hits(), 1);
    }
}

/// TL-07: a connection lives on with the certificate that it began with; the next one judges the new one.
#[tokio::test(start_paused = true)]
async fn a_servers_new_certificate_is_for_new_connections() {
    let (old, new) = (Authority::new(), Authority::new());
    let behind = Behind::new(old.issue(&host()).server(None));
    let kafka = behind.client(&old).connect().await.expect("the old one is trusted");
    kafka.admin().describe_cluster().await.expect("it is up");
    let dials = behind.dials.load(Ordering::Relaxed);

    *behind.server.lock().expect("nobody panicked") = new.issue(&host()).server(None);
    kafka.admin().describe_cluster().await.expect("the connection lives on");
    assert_eq!(behind.dials.load(Ordering::Relaxed), dials);

    behind.fake.disconnect(1);
    tokio::time::sleep(5 * SECOND).await;
    let error = kafka.admin().describe_cluster().await.expect_err("nobody trusts the new one");
    assert_says(&error, &["not accepted"]);
}

/// TL-07, the client's side: what was renewed on disk is shown from the next connection on, whether only its time tells
/// it apart, or only its length.
#[tokio::test(start_paused = true)]
async fn a_client_certificate_that_was_renewed_is_shown() {
    let (authority, folder) = (Authority::new(), Folder::new("identity"));
    let renew = |seconds: u64, len: usize| {
        let clients = Authority::new();
        let client = clients.issue("client");
        let write = |name: &str, pem: &str| {
            let path = folder.write(name, &format!("{pem:\n<len$}"));
            let file = std::fs::File::options().write(true).open(&path).expect("it was written");
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).expect("it is ours");
            path
        };
        let paths = [write("me.pem", &client.chain), write("me.key", &client.key.serialize_pem())];
        (paths, authority.issue(&host()).server(Some(&clients)))
    };
    let ([chain, key], server) = renew(1_000_000, 5_000);
    let behind = Behind::new(server);
    let tls = Tls::new().roots_pem(&authority.pem).identity_files(chain, key);
    let kafka = behind.client(&authority).tls(tls).connect().await.expect("the first one is trusted");

    for (seconds, len) in [(1_000_000, 5_001), (2_000_000, 5_001), (2_000_000, 5_000)] {
        let (_, server) = renew(seconds, len);
        *behind.server.lock().expect("nobody panicked") = server;
        behind.fake.disconnect(1);
        tokio::time::sleep(5 * SECOND).await;
        kafka.admin().describe_cluster().await.expect("the renewed one is shown");
    }
}

/// With a key of a curve: graviola signs by Ed25519 in TLS 1.3 only.
fn speaking(authority: &Authority, versions: &[&'static SupportedProtocolVersion]) -> Arc<ServerConfig> {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).expect("a key");
    authority.issue_with(&host(), key, |_| {}).server_with(None, versions)
}

/// Whoever allows one version only speaks no other, on either side, whichever the cryptography.
#[tokio::test(start_paused = true)]
async fn a_version_that_is_not_allowed_is_not_spoken() {
    let authority = Authority::new();
    let all = [(TlsVersion::Tls12, &rustls::version::TLS12), (TlsVersion::Tls13, &rustls::version::TLS13)];
    for (ours, _) in all {
        for (theirs, version) in all {
            let behind = Behind::new(speaking(&authority, &[version]));
            let tls = Tls::new().roots_pem(&authority.pem).versions([ours]);
            let connected = behind.client(&authority).tls(tls).connect().await.map(drop);
            match ours == theirs {
                true => connected.expect("it is the same version"),
                false => assert_says(&connected.expect_err("it is another version"), &["version"]),
            }
        }
    }
}

/// The server speaks all of them; what is agreed on is what the client names.
#[tokio::test(start_paused = true)]
async fn cipher_suites_are_those_that_are_named() {
    let authority = Authority::new();
    let suites = ["TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"];
    for name in suites {
        let (log, _guard) = Observed::start();
        let behind = Behind::new(speaking(&authority, rustls::ALL_VERSIONS));
        let tls = Tls::new().roots_pem(&authority.pem).cipher_suites([name, "TLS_RSA_WITH_RC4_128_MD5"]);
        behind.client(&authority).tls(tls).connect().await.expect("the server has it");

        let told = log.lines(Level::DEBUG).join("\n").replace("TLS13_", "TLS_");
        assert!(told.contains(&format!("suite={name}")), "{told} lacks {name}");
        assert!(told.contains("is passed over") && told.contains("TLS_RSA_WITH_RC4_128_MD5"), "{told}");
    }
}

/// TL-08.
#[tokio::test(start_paused = true)]
async fn either_version_will_do_but_one_is_needed() {
    let authority = Authority::new();
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let behind = Behind::new(speaking(&authority, &[version]));
        behind.client(&authority).connect().await.expect("we speak both");
    }

    let behind = Behind::new(speaking(&authority, &[&rustls::version::TLS12]));
    let only_13 = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("the provider has it")
        .with_root_certificates(authority.roots.clone())
        .with_no_client_auth();
    let error = behind.client(&authority).tls(only_13).connect().await.expect_err("there is none in common");
    assert!(matches!(error, KrafkaError::Auth { .. }), "{error:?}");
    assert_says(&error, &["version"]);
}

/// TL-08: the second connection to a broker need not shake hands in full.
#[tokio::test(start_paused = true)]
async fn sessions_are_resumed() {
    let authority = Authority::new();
    let behind = Behind::new(authority.issue(&host()).server(None));
    let kafka = behind.client(&authority).connect().await.expect("it is up");

    for _ in 0..2 {
        kafka.admin().describe_cluster().await.expect("it is up");
        behind.fake.disconnect(1);
        tokio::time::sleep(5 * SECOND).await;
    }
    kafka.admin().describe_cluster().await.expect("it is up");

    let kinds = behind.kinds.lock().expect("nobody panicked").clone();
    assert_eq!(kinds[0], HandshakeKind::Full);
    assert!(kinds.contains(&HandshakeKind::Resumed), "{kinds:?}");
}

/// TL-09: a server that goes without a good-bye has said what it has said; half an answer is none.
#[tokio::test(start_paused = true)]
async fn half_an_answer_is_none() {
    let authority = Authority::new();
    // Enough for the handshake and the first answers, and not for all of the long one.
    let mut was_cut = 0;
    for left in (2_000..9_000).step_by(500) {
        let behind = Behind { left, ..Behind::new(authority.issue(&host()).server(None)) };
        let Ok(kafka) = behind.client(&authority).connect().await else { continue };
        match tokio::time::timeout(70 * SECOND, kafka.admin().list_topics()).await.expect("it is bounded") {
            Ok(topics) => assert_eq!(topics[0].partitions.len(), 300),
            Err(error) => {
                assert!(error.is_retriable(), "after {left} bytes: {error:?}");
                was_cut += 1;
            }
        }
    }
    assert!(was_cut > 0, "no answer was cut");
}

/// A server that reads what the client says first, and is gone without TLS's good-bye, as most that close are; behind
/// version 0 of ApiVersions there is a broker.
struct Impolite {
    fake: FakeCluster,
    acceptor: TlsAcceptor,
    asked: Arc<Mutex<Vec<u8>>>,
}

impl Connect for Impolite {
    fn connect<'a>(&'a self, _host: &'a str, _port: u16) -> Connecting<'a> {
        Box::pin(async {
            let (ours, theirs) = tokio::io::duplex(64 * 1024);
            let (fake, acceptor, asked) = (self.fake.clone(), self.acceptor.clone(), self.asked.clone());
            tokio::spawn(async move {
                let mut stream = acceptor.accept(theirs).await.expect("the client trusts it");
                let mut head = [0; 8];
                stream.read_exact(&mut head).await.expect("the client speaks first");
                asked.lock().expect("nobody panicked").push(head[7]);
                if head[7] == 0 {
                    let (read, write) = tokio::io::split(stream);
                    fake.serve(1, tokio::io::join(std::io::Cursor::new(head).chain(read), write)).await;
                }
            });
            let stream: Box<dyn Stream> = Box::new(ours);
            Ok(stream)
        })
    }
}

/// TL-09: the end of a stream is its end, also where TLS misses a good-bye: the ladder of versions goes on from it, and
/// errors say what it means.
#[tokio::test(start_paused = true)]
async fn an_end_without_a_good_bye_is_an_end() {
    let authority = Authority::new();
    let acceptor = TlsAcceptor::from(authority.issue(&host()).server(None));
    let fake = FakeCluster::builder().nodes(1).start_on_pipes();
    let asked = Arc::<Mutex<Vec<u8>>>::default();
    let impolite = Impolite { fake: fake.clone(), acceptor: acceptor.clone(), asked: asked.clone() };
    let builder = Kafka::builder(fake.bootstrap()).environment(Environment::new(impolite, 1));

    let kafka = builder.tls_roots_pem(&authority.pem).connect().await;

    // Version 0 offers ours, at which the server is gone once more: the third step is version 0 alone.
    drop(kafka.expect("it speaks version 0"));
    assert_eq!(asked.lock().expect("nobody panicked")[..2], [5, 0]);

    struct Gone(TlsAcceptor);
    impl Connect for Gone {
        fn connect<'a>(&'a self, _host: &'a str, _port: u16) -> Connecting<'a> {
            Box::pin(async {
                let (ours, theirs) = tokio::io::duplex(64 * 1024);
                let acceptor = self.0.clone();
                tokio::spawn(async move {
                    let mut stream = acceptor.accept(theirs).await.expect("the client trusts it");
                    stream.read_u8().await.expect("the client speaks first");
                });
                let stream: Box<dyn Stream> = Box::new(ours);
                Ok(stream)
            })
        }
    }
    let builder = Kafka::builder(fake.bootstrap()).environment(Environment::new(Gone(acceptor), 1));
    let error = builder.tls_roots_pem(&authority.pem).connect().await.expect_err("nobody answers");
    assert_says(&error, &["closed the connection during the handshake", "TLS or SASL"]);
    assert!(!error.to_string().contains("close_notify"), "{error}");
}
