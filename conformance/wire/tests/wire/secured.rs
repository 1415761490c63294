//! A cluster with a listener of each kind, an authorizer, and three users.
//!
//! The fake is made so. A real one is named by its plain listener, and has the others two, three and four ports above
//! it, as `real-kafka` lays them out; its certificates are in a directory:
//!
//! ```text
//! real-kafka start 4.4.0 --sasl --tls --dir DIR --prop allow.everyone.if.no.acl.found=false
//!     --prop unstable.api.versions.enable=true --prop transaction.two.phase.commit.enable=true
//! KRAFKA_SECURED=127.0.0.1:PORT KRAFKA_SECURED_TLS=DIR/tls cargo test -p conformance-wire
//! ```
//!
//! `admin` may do everything, and so may whoever comes through a listener that asks for nothing. `alice` and `bob` may
//! do nothing, until they are given something.

use std::net::SocketAddr;
use std::sync::Arc;

use krafka_fake_broker::{ClientAuth, FakeCluster, FakeClusterBuilder, SecurityProtocol, ServerTls};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpSocket;
use tokio_rustls::TlsConnector;

use crate::logins;
use crate::target::{Stream, Target, Wire, on_fake, run_on};

/// The environment variable that names the plain listener of a real cluster.
const BOOTSTRAP: &str = "KRAFKA_SECURED";
/// The environment variable that names the directory of its certificates.
const CERTIFICATES: &str = "KRAFKA_SECURED_TLS";

/// A cluster to ask, as whom one likes.
pub(crate) struct Secured {
    /// The cluster through its plain listener.
    pub(crate) target: Target,
    fake: Option<FakeCluster>,
    host: String,
    port: u16,
    pub(crate) certificates: Certificates,
}

/// What clients need to speak TLS: in PEM.
pub(crate) struct Certificates {
    pub(crate) authority: String,
    pub(crate) client: String,
    pub(crate) client_key: String,
}

/// Runs a test on the fake in virtual time, or on a real cluster in real time.
pub(crate) fn run(test: impl AsyncFnOnce(Secured)) {
    run_with(|builder| builder, test);
}

/// Runs a test on a fake that has further settings, or on a real cluster that has them as well.
pub(crate) fn run_with(
    settings: impl FnOnce(FakeClusterBuilder) -> FakeClusterBuilder,
    test: impl AsyncFnOnce(Secured),
) {
    match std::env::var(BOOTSTRAP) {
        Ok(bootstrap) => {
            let (host, port) = bootstrap.rsplit_once(':').expect("host:port");
            let (host, port) = (host.to_owned(), port.parse().expect("a port"));
            let target = Target::named_by(BOOTSTRAP).expect("it is set");
            let certificates = Certificates::of_real_cluster();
            run_on(target, async |target| test(Secured { target, fake: None, host, port, certificates }).await);
        }
        Err(_) => {
            let (certificates, tls) = Certificates::made_up();
            on_fake(settings(builder(tls)), async |target, fake| {
                let (host, port) = fake.address(1).expect("a node");
                test(Secured { target, fake: Some(fake), host: host.to_string(), port, certificates }).await;
            });
        }
    }
}

/// The fake as a real cluster is started.
fn builder(tls: ServerTls) -> FakeClusterBuilder {
    use SecurityProtocol::{Plaintext, SaslPlaintext, SaslSsl, Ssl};
    let listeners = [Plaintext, SaslPlaintext, Ssl, SaslSsl];
    let builder = listeners.into_iter().fold(FakeCluster::builder(), FakeClusterBuilder::listener);
    let users = [("admin", "admin-secret"), ("alice", "alice-secret"), ("bob", "bob-secret")];
    let builder = users.into_iter().fold(builder, |builder, (user, password)| builder.user(user, password));
    let builder = builder.oauthbearer_unsecured().delegation_token_secret_key("secret");
    builder.tls(tls).authorizer().super_user("User:ANONYMOUS").super_user("User:admin")
}

impl Secured {
    /// Opens a stream to a listener.
    pub(crate) async fn dial(&self, listener: SecurityProtocol) -> Box<dyn Stream> {
        let (host, port) = self.address(listener);
        self.target.dial(&host, port).await
    }

    /// Opens streams to the plain listener from an address that no other test comes from, if that can be: all clients
    /// of a fake come from one, and each test has a fake of its own. Returns the address as well.
    pub(crate) async fn dial_from_elsewhere(&self) -> (&'static str, Box<dyn Stream>) {
        let (host, port) = self.address(SecurityProtocol::Plaintext);
        if self.fake.is_some() {
            return ("127.0.0.1", self.target.dial(&host, port).await);
        }
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind(SocketAddr::from(([127, 0, 0, 2], 0))).expect("an address of this machine's own");
        let server = format!("{host}:{port}").parse().expect("an address");
        ("127.0.0.2", Box::new(socket.connect(server).await.expect("the broker is up")))
    }

    /// Where a listener is.
    pub(crate) fn address(&self, listener: SecurityProtocol) -> (String, u16) {
        if let Some(fake) = &self.fake {
            let (host, port) = fake.address_of(1, listener).expect("a node with all listeners");
            return (host.to_string(), port);
        }
        let above = match listener {
            SecurityProtocol::Plaintext => 0,
            SecurityProtocol::SaslPlaintext => 2,
            SecurityProtocol::Ssl => 3,
            SecurityProtocol::SaslSsl => 4,
        };
        (self.host.clone(), self.port + above)
    }

    /// Connects to a listener without TLS.
    pub(crate) async fn connect(&self, listener: SecurityProtocol) -> Wire {
        Wire::over(self.dial(listener).await)
    }

    /// Connects to a TLS listener, with or without a certificate.
    pub(crate) async fn connect_tls(&self, listener: SecurityProtocol, shows_certificate: bool) -> Wire {
        let config = self.certificates.config(shows_certificate);
        let stream = TlsConnector::from(Arc::new(config)).connect(localhost(), self.dial(listener).await).await;
        Wire::over(Box::new(stream.expect("both sides speak TLS")))
    }

    /// Connects as one of the users, who have their names for passwords but for `-secret`.
    pub(crate) async fn login(&self, user: &str) -> Wire {
        let mut wire = self.connect(SecurityProtocol::SaslPlaintext).await;
        let answer = logins::plain(&mut wire, user, &format!("{user}-secret")).await;
        assert_eq!((answer.error_code, answer.error_message.as_deref()), (0, Some("")));
        wire
    }
}

/// The name that all certificates are good for.
pub(crate) fn localhost() -> ServerName<'static> {
    ServerName::try_from("localhost").expect("a name")
}

impl Certificates {
    fn of_real_cluster() -> Self {
        let directory = std::env::var(CERTIFICATES).expect("KRAFKA_SECURED_TLS names the certificates of the cluster");
        let read = |name: &str| std::fs::read_to_string(format!("{directory}/{name}")).expect("a file of the cluster");
        Self { authority: read("ca.pem"), client: read("client.pem"), client_key: read("client.key") }
    }

    /// Certificates for the fake: the clients' ones, and the nodes' own.
    pub(crate) fn made_up() -> (Self, ServerTls) {
        let authority = Authority::new("made-up authority");
        let (node, node_key) = authority.sign("localhost");
        let (client, client_key) = authority.sign("client");
        let tls = ServerTls::from_pem(node.as_bytes(), node_key.as_bytes()).expect("a certificate and its key");
        let tls = tls.client_auth(authority.pem.as_bytes(), ClientAuth::Requested).expect("an authority");
        (Self { authority: authority.pem, client, client_key }, tls)
    }

    /// What a client begins TLS with.
    pub(crate) fn config(&self, shows_certificate: bool) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.authority.as_bytes()).expect("PEM")).expect("a certificate");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.expect("versions").with_root_certificates(roots);
        if !shows_certificate {
            return builder.with_no_client_auth();
        }
        let chain = vec![CertificateDer::from_pem_slice(self.client.as_bytes()).expect("PEM")];
        let key = PrivateKeyDer::from_pem_slice(self.client_key.as_bytes()).expect("PEM");
        builder.with_client_auth_cert(chain, key).expect("a certificate and its key")
    }
}

/// Who signs certificates for a test. The keys are Ed25519, whose signatures have one length.
pub(crate) struct Authority {
    pub(crate) pem: String,
    issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut parameters = parameters(name, &[]);
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("a key");
        let pem = parameters.self_signed(&key).expect("a certificate").pem();
        Self { pem, issuer: rcgen::Issuer::new(parameters, key) }
    }

    /// A certificate for that name, which is good for `localhost` too, and its key.
    pub(crate) fn sign(&self, name: &str) -> (String, String) {
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("a key");
        let certificate = parameters(name, &["localhost"]).signed_by(&key, &self.issuer).expect("a certificate");
        (certificate.pem(), key.serialize_pem())
    }
}

fn parameters(name: &str, hosts: &[&str]) -> rcgen::CertificateParams {
    let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let mut parameters = rcgen::CertificateParams::new(hosts).expect("host names");
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    parameters.distinguished_name.push(rcgen::DnType::CommonName, name);
    parameters
}
