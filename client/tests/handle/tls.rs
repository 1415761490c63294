//! TLS over pipes: the connector returns any stream, and TLS wraps it.

use std::sync::Arc;

use krafka::testing::FakeCluster;
use krafka::{Connect, Connecting, Environment, Kafka, KrafkaError, Stream};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

use super::assert_says;

/// An issuer, and a certificate that it gave to a host.
struct Certified {
    pem: String,
    server: Arc<ServerConfig>,
    roots: Arc<RootCertStore>,
}

fn certified(host: &str) -> Certified {
    // Ed25519, because its signatures have one length: runs with the same seed stay alike.
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("a key");
    let params = rcgen::CertificateParams::new(vec![host.to_owned()]).expect("a host name");
    let certificate = params.self_signed(&key).expect("a certificate");
    let (pem, certificate) = (certificate.pem(), certificate.der().clone());
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).expect("a root");
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let server = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("the key fits");
    Certified { pem, server: Arc::new(server), roots: Arc::new(roots) }
}

fn trusting(roots: Arc<RootCertStore>) -> Arc<ClientConfig> {
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider has versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}

/// Serves node 1 of a fake behind TLS.
struct TlsPipes {
    fake: FakeCluster,
    acceptor: TlsAcceptor,
}

impl Connect for TlsPipes {
    fn connect<'a>(&'a self, _host: &'a str, _port: u16) -> Connecting<'a> {
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
fn behind_tls(server: Arc<ServerConfig>) -> (FakeCluster, krafka::KafkaBuilder) {
    let fake = FakeCluster::builder().nodes(1).topic("orders", 500).start_on_pipes();
    let pipes = TlsPipes { fake: fake.clone(), acceptor: TlsAcceptor::from(server) };
    let builder = Kafka::builder(fake.bootstrap()).environment(Environment::new(pipes, 1));
    (fake, builder)
}

fn host_of(fake: &FakeCluster) -> String {
    fake.address(1).expect("node 1 is there").0.to_string()
}

/// TL-01: requests and long answers pass through.
#[tokio::test(start_paused = true)]
async fn tls_wraps_any_stream() {
    let host = host_of(&FakeCluster::builder().nodes(1).start_on_pipes());
    let certified = certified(&host);
    let (_fake, builder) = behind_tls(certified.server);

    let kafka = builder.tls(trusting(certified.roots)).connect().await.expect("the certificate is trusted");

    let topics = kafka.admin().list_topics().await.expect("it is served");
    assert_eq!(topics[0].partitions.len(), 500);
}

#[tokio::test(start_paused = true)]
async fn an_issuer_in_pem_is_trusted() {
    let host = host_of(&FakeCluster::builder().nodes(1).start_on_pipes());
    let certified = certified(&host);
    let (_fake, builder) = behind_tls(certified.server);

    builder.tls_roots_pem(&certified.pem).connect().await.expect("the certificate is trusted");
}

#[tokio::test(start_paused = true)]
async fn a_pem_without_a_certificate_is_named() {
    for text in ["", "-----BEGIN RSA PRIVATE KEY-----\n-----END RSA PRIVATE KEY-----\n", "-----BEGIN CERTIFICATE-----"]
    {
        let error = Kafka::builder("kafka:9092").tls_roots_pem(text).connect().await.expect_err("no certificate");

        assert!(matches!(error, KrafkaError::Config { .. }), "{error:?}");
        assert_says(&error, &["tls_roots_pem"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_issuer_is_refused_with_a_remedy() {
    let host = host_of(&FakeCluster::builder().nodes(1).start_on_pipes());
    let (fake, builder) = behind_tls(certified(&host).server);

    let error = builder.tls(trusting(certified(&host).roots)).connect().await.expect_err("another issuer");

    assert!(matches!(error, KrafkaError::Auth { .. }), "{error:?}");
    assert_says(&error, &[&fake.bootstrap(), "certificate is not accepted", "roots given to KafkaBuilder::tls"]);
}

#[tokio::test(start_paused = true)]
async fn a_certificate_for_another_host_is_refused() {
    let certified = certified("elsewhere.example");
    let (_fake, builder) = behind_tls(certified.server);

    let error = builder.tls(trusting(certified.roots)).connect().await.expect_err("another name");

    assert!(matches!(error, KrafkaError::Auth { .. }), "{error:?}");
    assert_says(&error, &["certificate is not accepted", "its name is the one that the broker advertises"]);
}

/// A client that speaks TLS to a plaintext listener.
#[tokio::test(start_paused = true)]
async fn a_plaintext_listener_is_told_so() {
    let fake = FakeCluster::builder().nodes(1).start_on_pipes();
    let builder = Kafka::builder(fake.bootstrap()).environment(Environment::new(fake.pipes(), 1));

    let error = builder.tls(trusting(certified("x").roots)).connect().await.expect_err("it speaks no TLS");

    assert_says(&error, &[&fake.bootstrap(), "TLS handshake"]);
}
