//! TLS over pipes: the connector returns any stream, and TLS wraps it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use krafka::testing::FakeCluster;
use krafka::{Connect, Connecting, Environment, Kafka, KafkaBuilder, KrafkaError, Stream, Tls};
use krafka_protocol::ApiKey;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;
use tracing::Level;

use super::assert_says;
use super::observed::Observed;

/// Somebody who issues certificates.
pub(super) struct Authority {
    pub(super) pem: String,
    pub(super) roots: Arc<RootCertStore>,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate, and its key.
pub(super) struct Certified {
    pub(super) chain: String,
    pub(super) key: KeyPair,
    pub(super) der: rustls::pki_types::CertificateDer<'static>,
}

/// Ed25519, because its signatures have one length: runs with the same seed stay alike.
pub(super) fn key() -> KeyPair {
    KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("a key")
}

impl Authority {
    pub(super) fn new() -> Self {
        // Each has a name of its own, as in life.
        let key = key();
        let name = format!("{:?}", key.public_key_raw());
        Self::named(&name, key)
    }

    pub(super) fn named(name: &str, key: KeyPair) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("a certificate");
        let mut roots = RootCertStore::empty();
        roots.add(certificate.der().clone()).expect("a root");
        Self { pem: certificate.pem(), roots: Arc::new(roots), issuer: Issuer::new(params, key) }
    }

    /// A certificate for a host, changed a little.
    pub(super) fn issue_with(
        &self,
        host: &str,
        key: KeyPair,
        change: impl FnOnce(&mut CertificateParams),
    ) -> Certified {
        let mut params = CertificateParams::new(vec![host.to_owned()]).expect("a host name");
        change(&mut params);
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        Certified { chain: certificate.pem(), key, der: certificate.der().clone() }
    }

    pub(super) fn issue(&self, host: &str) -> Certified {
        self.issue_with(host, key(), |_| {})
    }
}

impl Certified {
    /// A server that shows this certificate, and asks for one of `clients` if there is such an authority.
    pub(super) fn server(&self, clients: Option<&Authority>) -> Arc<ServerConfig> {
        self.server_with(clients, rustls::ALL_VERSIONS)
    }

    /// The same, in these versions of TLS.
    pub(super) fn server_with(
        &self,
        clients: Option<&Authority>,
        versions: &[&'static rustls::SupportedProtocolVersion],
    ) -> Arc<ServerConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone()).with_protocol_versions(versions);
        let builder = builder.expect("the provider has versions");
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(clients) => {
                let verifier = WebPkiClientVerifier::builder_with_provider(clients.roots.clone(), provider).build();
                builder.with_client_cert_verifier(verifier.expect("an authority"))
            }
        };
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.serialize_der()));
        Arc::new(builder.with_single_cert(vec![self.der.clone()], key).expect("the key fits"))
    }
}

/// Serves node 1 of a fake behind TLS.
struct TlsPipes {
    fake: FakeCluster,
    acceptor: TlsAcceptor,
    dials: Arc<AtomicUsize>,
}

impl Connect for TlsPipes {
    fn connect<'a>(&'a self, _host: &'a str, _port: u16) -> Connecting<'a> {
        self.dials.fetch_add(1, Ordering::Relaxed);
        Box::pin(async {
            let (ours, theirs) = tokio::io::duplex(64 * 1024);
            let (fake, acceptor) = (self.fake.clone(), self.acceptor.clone());
            tokio::spawn(async move {
                // A client that does not trust the certificate goes away.
                if let Ok(stream) = acceptor.accept(theirs).await {
                    fake.serve(1, stream).await;
                }
            });
            let stream: Box<dyn Stream> = Box::new(ours);
            Ok(stream)
        })
    }
}

/// A fake behind TLS with a certificate for `host`, and a builder for clients that connect to it.
pub(super) fn behind_tls(server: Arc<ServerConfig>) -> (FakeCluster, KafkaBuilder) {
    let (fake, environment) = world_behind_tls(server);
    let builder = Kafka::builder(fake.bootstrap()).environment(environment);
    (fake, builder)
}

/// A fake behind TLS, and the world in which it is.
pub(super) fn world_behind_tls(server: Arc<ServerConfig>) -> (FakeCluster, Environment) {
    let fake = FakeCluster::builder().nodes(1).topic("orders", 500).start_on_pipes();
    let pipes = TlsPipes { fake: fake.clone(), acceptor: TlsAcceptor::from(server), dials: Arc::default() };
    (fake, Environment::new(pipes, 1))
}

/// The host that node 1 of every fake advertises.
pub(super) fn host() -> String {
    let fake = FakeCluster::builder().nodes(1).start_on_pipes();
    fake.address(1).expect("node 1 is there").0.to_string()
}

/// Trusts an authority.
pub(super) fn trusting(authority: &Authority) -> Tls {
    Tls::new().roots_pem(&authority.pem)
}

/// What a client that trusts `authority` says of a broker with this certificate.
pub(super) async fn refused(tls: Tls, server: Arc<ServerConfig>) -> KrafkaError {
    let (fake, builder) = behind_tls(server);
    let error = builder.tls(tls).connect().await.expect_err("there is a reason to refuse");
    assert!(matches!(error, KrafkaError::Auth { .. }) && !error.is_retriable(), "{error:?}");
    assert_says(&error, &["TLS handshake with", &fake.bootstrap()]);
    error
}

pub(super) async fn accepted(tls: Tls, server: Arc<ServerConfig>) {
    let (_fake, builder) = behind_tls(server);
    let kafka = builder.tls(tls).connect().await.expect("the certificate is trusted");
    let topics = kafka.admin().list_topics().await.expect("it is served");
    assert_eq!(topics[0].partitions.len(), 500);
}

/// TL-01: requests and long answers pass through.
#[tokio::test(start_paused = true)]
async fn tls_wraps_any_stream() {
    let authority = Authority::new();
    let server = authority.issue(&host()).server(None);

    accepted(trusting(&authority), server.clone()).await;

    let config = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has versions")
        .with_root_certificates(authority.roots.clone())
        .with_no_client_auth();
    accepted(config.into(), server.clone()).await;
    let (_fake, builder) = behind_tls(server);
    builder.tls_roots_pem(&authority.pem).connect().await.expect("the certificate is trusted");
}

/// TL-01: how it is spoken is told where somebody looks for it.
#[tokio::test(start_paused = true)]
async fn what_tls_agreed_on_is_a_line_for_debugging() {
    let (log, _guard) = Observed::start();
    let authority = Authority::new();

    accepted(trusting(&authority), authority.issue(&host()).server(None)).await;

    let lines = log.lines(Level::DEBUG);
    let told = lines.iter().find(|line| line.contains("TLS is up")).expect("one line");
    assert!(told.contains("version=TLSv1_3") && told.contains("suite=TLS13_"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_named() {
    let check = async |tls: Tls, words: &[&str]| {
        let error = Kafka::builder("kafka:9092").tls(tls).connect().await.expect_err("something is wrong");
        assert!(matches!(error, KrafkaError::Config { .. }), "{error:?}");
        assert_says(&error, &["tls: "]);
        assert_says(&error, words);
    };
    let authority = Authority::new();
    let identity = authority.issue("client");
    let (chain, key) = (&identity.chain, identity.key.serialize_pem());
    let other = self::key().serialize_pem();

    check(Tls::new().roots_pem(""), &["CERTIFICATE section", "the PEM text"]).await;
    check(Tls::new().roots_pem("-----BEGIN CERTIFICATE-----"), &["CERTIFICATE section has no end"]).await;
    check(Tls::new().roots_file("/nowhere/ca.pem"), &["'/nowhere/ca.pem' cannot be read", "No such file"]).await;
    check(trusting(&authority).identity_pem("", &key), &["CERTIFICATE section", "client's own"]).await;
    check(trusting(&authority).identity_pem(chain, ""), &["no key"]).await;
    check(trusting(&authority).identity_pem(chain, other), &["cannot be used"]).await;
    check(trusting(&authority).server_name("no name"), &["'no name' is no name for a certificate"]).await;
}

/// TL-02.
#[tokio::test(start_paused = true)]
async fn an_unknown_issuer_is_refused_with_a_remedy() {
    let error = refused(trusting(&Authority::new()), Authority::new().issue(&host()).server(None)).await;

    assert_says(&error, &["certificate is not accepted", "issuer is not trusted", "roots given to KafkaBuilder::tls"]);
    let [trusted, other] = [(); 2].map(|()| Authority::named("Our issuer", key()));
    let error = refused(trusting(&trusted), other.issue(&host()).server(None)).await;
    assert_says(&error, &["not signed by the trusted issuer of that name", "roots given to KafkaBuilder::tls"]);
}

/// A certificate that is not accepted is not a password that is refused: no other spelling of it is tried.
#[tokio::test(start_paused = true)]
async fn a_failure_of_tls_is_not_answered_with_another_spelling() {
    let (fake, _) = behind_tls(Authority::new().issue(&host()).server(None));
    let dials = Arc::new(AtomicUsize::new(0));
    let server = Authority::new().issue(&host()).server(None);
    let pipes = TlsPipes { fake: fake.clone(), acceptor: TlsAcceptor::from(server), dials: dials.clone() };

    let builder = Kafka::builder(fake.bootstrap()).environment(Environment::new(pipes, 1));
    let builder = builder.tls(trusting(&Authority::new())).sasl_scram_sha256("alice", "I\u{ad}X");
    let error = builder.connect().await.expect_err("the certificate is not trusted");

    assert_says(&error, &["certificate is not accepted"]);
    assert_eq!(dials.load(Ordering::Relaxed), 1);
}

/// What TLS found can be looked at, too.
#[tokio::test(start_paused = true)]
async fn the_source_of_an_error_is_that_of_rustls() {
    let error = refused(trusting(&Authority::new()), Authority::new().issue(&host()).server(None)).await;

    let KrafkaError::Auth { source: Some(source), .. } = &error else { panic!("{error:?}") };
    let source = source.downcast_ref::<rustls::Error>().expect("an error of rustls");
    assert!(matches!(source, rustls::Error::InvalidCertificate(_)), "{source:?}");
}

/// TL-02.
#[tokio::test(start_paused = true)]
async fn the_day_on_which_a_certificate_expired_is_told() {
    let authority = Authority::new();
    let expired = authority.issue_with(&host(), key(), |params| params.not_after = rcgen::date_time_ymd(2024, 2, 29));
    let early = authority.issue_with(&host(), key(), |params| params.not_before = rcgen::date_time_ymd(2999, 12, 31));

    let error = refused(trusting(&authority), expired.server(None)).await;
    assert_says(&error, &["it expired on 2024-02-29 00:00:00 UTC", "renew it"]);
    let error = refused(trusting(&authority), early.server(None)).await;
    assert_says(&error, &["not valid before 2999-12-31 00:00:00 UTC", "clock"]);
}

/// TL-01.
#[tokio::test(start_paused = true)]
async fn a_certificate_for_another_host_is_refused_unless_told_otherwise() {
    let authority = Authority::new();
    let server = authority.issue("elsewhere.example").server(None);

    let error = refused(trusting(&authority), server.clone()).await;
    assert_says(&error, &["it is for", "elsewhere.example", &host(), "advertised.listeners"]);

    accepted(trusting(&authority).accept_any_name(), server.clone()).await;
    accepted(trusting(&authority).server_name("elsewhere.example"), server.clone()).await;
    // BR-149: DNS knows the name with a dot at its end, certificates do not.
    accepted(trusting(&authority).server_name("elsewhere.example."), server.clone()).await;
    let other = refused(trusting(&Authority::new()).accept_any_name(), server).await;
    assert_says(&other, &["issuer is not trusted"]);
}

/// TL-01.
#[tokio::test(start_paused = true)]
async fn a_certificate_may_be_for_an_address() {
    let authority = Authority::new();
    for address in ["10.0.0.1", "fd00::1"] {
        accepted(trusting(&authority).server_name(address), authority.issue(address).server(None)).await;
    }
}

/// TL-03.
#[tokio::test(start_paused = true)]
async fn a_broker_that_asks_for_a_certificate_gets_it() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let server = authority.issue(&host()).server(Some(&clients));
    let right = clients.issue("client");
    let wrong = Authority::new().issue("client");

    accepted(trusting(&authority).identity_pem(&right.chain, right.key.serialize_pem()), server.clone()).await;
    // As KIP-651 has it in a file of properties, and as a variable may have it: on one line.
    let on_a_line = |pem: &str| pem.replace(['\r', '\n'], " ");
    let (chain, key) = (on_a_line(&right.chain), on_a_line(&right.key.serialize_pem()));
    accepted(trusting(&authority).identity_pem(chain, key), server.clone()).await;

    let error = refused(trusting(&authority), server.clone()).await;
    assert_says(&error, &["CertificateRequired", "Tls::identity_files"]);
    let error = refused(trusting(&authority).identity_pem(&wrong.chain, wrong.key.serialize_pem()), server).await;
    assert_says(&error, &["trust the issuer of the client's certificate"]);
}

/// A key that openssl has encrypted with the password "swordfish", and the same as it is.
const ENCRYPTED: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----\n\
MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAgelDo559e/7AICCAAw\n\
DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEOnI3EfNPhxIoby+8kx6qAQEQCRu\n\
xdCLrI7VJDpU5kpwPynhqsHpwwfg/xPP6MaZ1KDtZ5tt89LeoPlT1eojN8rj+KXz\n\
xW5/UTWQZTSwZkj40ik=\n\
-----END ENCRYPTED PRIVATE KEY-----";
const PLAIN: &str = "-----BEGIN PRIVATE KEY-----\n\
MC4CAQAwBQYDK2VwBCIEINCc3HNSbqM0atNJMVkcrEtoULi3UhiPf98c8kDK2ybi\n\
-----END PRIVATE KEY-----";

#[tokio::test(start_paused = true)]
async fn an_encrypted_key_is_decrypted() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let server = authority.issue(&host()).server(Some(&clients));
    let right = clients.issue_with("client", KeyPair::from_pem(PLAIN).expect("a key"), |_| {});
    let with = |tls: Tls| Kafka::builder("kafka:9092").tls(tls).connect();

    let tls = trusting(&authority).identity_pem(&right.chain, ENCRYPTED);
    accepted(tls.clone().key_password("swordfish"), server.clone()).await;
    accepted(trusting(&authority).key_password("swordfish").identity_pem(&right.chain, ENCRYPTED), server).await;

    let error = with(tls.clone()).await.expect_err("there is no password");
    assert_says(&error, &["encrypted", "key_password"]);
    let error = with(tls.clone().key_password("hunter2")).await.expect_err("it is another password");
    assert_says(&error, &["cannot be decrypted", "check the password"]);
    assert!(!format!("{error:?}{:?}", tls.key_password("hunter2")).contains("hunter2"));
}

/// A folder that goes away with the test.
pub(super) struct Folder(std::path::PathBuf);

impl Folder {
    pub(super) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("krafka-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    pub(super) fn write(&self, name: &str, text: &str) -> std::path::PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("it is written");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left behind is in the folder for what may be left behind.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Certificates are renewed under a running client: the next connection uses the new ones, and a file that is broken
/// for a moment does no harm.
#[tokio::test(start_paused = true)]
async fn files_that_change_are_read_again() {
    let folder = Folder::new("reload");
    let (old, new) = (Authority::new(), Authority::new());
    let roots = folder.write("ca.pem", &old.pem);
    let (fake, builder) = behind_tls(old.issue(&host()).server(None));
    let kafka = builder.tls(Tls::new().roots_file(&roots)).connect().await.expect("the old one is trusted");
    let reconnect = async || {
        fake.disconnect(1);
        tokio::time::sleep(std::time::Duration::from_secs(5)).await;
        kafka.broker_connection(1).await?.api_versions(ApiKey::Fetch).await
    };

    let (log, _guard) = Observed::start();
    folder.write("ca.pem", "not a certificate");
    reconnect().await.expect("the old one is still there");
    folder.write("ca.pem", "nor is this one");
    reconnect().await.expect("the old one is still there");
    let told = log.lines(Level::WARN);
    let told = told.iter().filter(|line| line.contains("kept the old certificates")).count();
    assert_eq!(told, 1, "and that is one line, however many connections are made meanwhile");

    // Of another length, for file systems whose clock is coarse.
    folder.write("ca.pem", &format!("# renewed\n{}", new.pem));
    let error = reconnect().await.expect_err("the server has the old one's certificate");
    assert_says(&error, &["issuer is not trusted"]);

    folder.write("ca.pem", &format!("{}{}", old.pem, new.pem));
    reconnect().await.expect("both are trusted");
}

/// TL-05: a client that speaks TLS to a plaintext listener.
#[tokio::test(start_paused = true)]
async fn a_plaintext_listener_is_told_so() {
    let fake = FakeCluster::builder().nodes(1).start_on_pipes();
    let builder = Kafka::builder(fake.bootstrap()).environment(Environment::new(fake.pipes(), 1));

    let error = builder.tls(trusting(&Authority::new())).connect().await.expect_err("it speaks no TLS");

    assert_says(&error, &[&fake.bootstrap(), "TLS handshake"]);
}

/// TL-10: what is said inside of TLS depends on the seed alone, though its keys are new each time.
#[tokio::test(start_paused = true)]
async fn the_same_seed_says_the_same_inside_of_tls() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let authority = Authority::new();
        let (fake, builder) = behind_tls(authority.issue(&host()).server(None));
        let start = tokio::time::Instant::now();
        let kafka = builder.tls(trusting(&authority)).connect().await.expect("the certificate is trusted");
        let producer = kafka.producer().build().await.expect("valid");
        fake.when(ApiKey::Produce).times(2).drop_connection();
        for number in 0..3 {
            producer.send(krafka::Record::new("orders", format!("{number}"))).await.expect("written");
        }
        kafka.admin().describe_cluster().await.expect("it is served");
        let history = fake.history();
        let said: Vec<String> = history
            .iter()
            .map(|event| {
                // Records have the time of the wall in them.
                let request = (event.key != ApiKey::Produce).then_some(&event.request);
                let at = event.at - start.into_std();
                format!("{at:?} {} {} {} {request:?}", event.key, event.version, event.correlation_id)
            })
            .collect();
        runs.push(said);
    }

    assert!(runs[0].len() > 8, "{:?}", runs[0]);
    assert_eq!(runs[0], runs[1]);
}
