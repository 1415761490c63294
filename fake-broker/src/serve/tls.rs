//! TLS around the connections of a listener: the node's certificate, and what clients must show.
//!
//! The machine knows nothing of it but the subject of the client's certificate. The bytes on such a connection differ
//! from run to run, as TLS draws its own chance; what is inside of it does not.

use std::io;
use std::sync::Arc;

use krafka_protocol::Str;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion, version};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;

use super::driver::{self, End};
use super::{Port, Shared};
use crate::security::subject;

/// Whether a client must show a certificate: Kafka's `ssl.client.auth`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuth {
    /// It need not; one that is shown must be good, and says who the client is.
    Requested,
    /// It must.
    Required,
}

/// The certificate of all nodes, and what their TLS listeners want from clients.
#[derive(Clone)]
#[must_use = "settings do nothing until a builder or a cluster gets them"]
pub struct ServerTls {
    chain: Vec<CertificateDer<'static>>,
    key: Arc<PrivateKeyDer<'static>>,
    clients: Option<(Arc<RootCertStore>, ClientAuth)>,
    versions: Vec<&'static SupportedProtocolVersion>,
}

impl ServerTls {
    /// Reads the chain of certificates, the node's own first, and its key, from PEM. TLS 1.2 and 1.3 are spoken, and
    /// clients are not asked for certificates.
    ///
    /// # Errors
    ///
    /// If either cannot be read.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> io::Result<Self> {
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| invalid("the key", error))?;
        let chain = certificates("the certificate", chain)?;
        Ok(Self { chain, key: Arc::new(key), clients: None, versions: rustls::DEFAULT_VERSIONS.to_vec() })
    }

    /// Asks clients for certificates that were signed by one of these authorities, in PEM.
    ///
    /// # Errors
    ///
    /// If they cannot be read.
    pub fn client_auth(mut self, authorities: &[u8], auth: ClientAuth) -> io::Result<Self> {
        let mut roots = RootCertStore::empty();
        for authority in certificates("the certificate of the authority", authorities)? {
            roots.add(authority).map_err(|error| invalid("the certificate of the authority", error))?;
        }
        self.clients = Some((Arc::new(roots), auth));
        Ok(self)
    }

    /// Speaks TLS 1.2 only.
    pub fn tls_1_2_only(mut self) -> Self {
        self.versions = vec![&version::TLS12];
        self
    }

    /// Speaks TLS 1.3 only.
    pub fn tls_1_3_only(mut self) -> Self {
        self.versions = vec![&version::TLS13];
        self
    }

    /// The same with another certificate and its key.
    fn with_certificate(&self, chain: &[u8], key: &[u8]) -> io::Result<Self> {
        let Self { chain, key, .. } = Self::from_pem(chain, key)?;
        Ok(Self { chain, key, ..self.clone() })
    }

    /// Makes what connections begin with.
    pub(crate) fn acceptor(&self) -> io::Result<Arc<ServerConfig>> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let of_server = |error: rustls::Error| invalid("the certificate and its key", error);
        let builder = ServerConfig::builder_with_provider(provider.clone());
        let builder = builder.with_protocol_versions(&self.versions).map_err(of_server)?;
        let builder = match &self.clients {
            None => builder.with_no_client_auth(),
            Some((roots, auth)) => {
                let verifier = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider);
                let verifier = if *auth == ClientAuth::Requested { verifier.allow_unauthenticated() } else { verifier };
                let built = verifier.build().map_err(|error| invalid("the certificate of the authority", error))?;
                builder.with_client_cert_verifier(built)
            }
        };
        let config = builder.with_single_cert(self.chain.clone(), self.key.clone_key()).map_err(of_server)?;
        Ok(Arc::new(config))
    }
}

impl std::fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerTls").field("certificates", &self.chain.len()).finish_non_exhaustive()
    }
}

/// The certificate that the nodes have now.
#[derive(Clone, Debug)]
pub(crate) struct Serving {
    tls: ServerTls,
    /// What new connections of TLS listeners begin with.
    acceptor: Arc<ServerConfig>,
}

impl Serving {
    /// Sees that certificate and key can be used.
    pub(crate) fn new(tls: ServerTls) -> io::Result<Self> {
        Ok(Self { acceptor: tls.acceptor()?, tls })
    }

    /// The same with another certificate and its key, in PEM; what clients must show stays.
    pub(crate) fn with_certificate(&self, chain: &[u8], key: &[u8]) -> io::Result<Self> {
        Self::new(self.tls.with_certificate(chain, key)?)
    }
}

/// Serves one connection inside of TLS. Who cannot agree with us on TLS is not heard.
pub(super) async fn serve(shared: Arc<Shared>, port: Port, stream: impl AsyncRead + AsyncWrite + Unpin) -> End {
    let config = shared.look(|cluster| cluster.state().tls.as_ref().map(|serving| serving.acceptor.clone()));
    let Some(config) = config else { return End::Closed };
    let mut changes = shared.nodes_changed.subscribe();
    let handshake = TlsAcceptor::from(config).accept(stream);
    tokio::pin!(handshake);
    let stream = loop {
        tokio::select! {
            // A client that is silent in the middle of a handshake must not outlive the node.
            biased;
            changed = changes.changed() => if changed.is_err() || !shared.is_up(port.node) { return End::Closed },
            done = &mut handshake => match done {
                Ok(stream) => break stream,
                Err(error) => {
                    tracing::debug!(%error, node = port.node, "a TLS handshake failed");
                    return End::Closed;
                }
            },
        }
    };
    let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
    let subject = match certificate.map(|certificate| subject::of_certificate(certificate)) {
        None => None,
        Some(Some(subject)) => Some(Str::from(subject)),
        Some(None) => return End::Closed,
    };
    driver::converse(shared, port, subject, stream).await
}

fn certificates(what: &str, pem: &[u8]) -> io::Result<Vec<CertificateDer<'static>>> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|error| invalid(what, error))?;
    if found.is_empty() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("{what}: there is none in the PEM")));
    }
    Ok(found)
}

fn invalid(what: &str, error: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{what} cannot be used: {error}"))
}
