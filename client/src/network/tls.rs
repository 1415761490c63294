//! TLS over whatever stream a connector returned, by rustls.

use std::io;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use crate::cluster::Node;
use crate::environment::Stream;
use crate::error::KrafkaError;

/// How to speak TLS.
#[derive(Clone)]
pub(crate) struct Tls {
    connector: TlsConnector,
}

impl Tls {
    pub(crate) fn new(config: Arc<ClientConfig>) -> Self {
        Self { connector: TlsConnector::from(config) }
    }

    /// Trusts the issuers in a PEM text; an error in words when there is none.
    pub(crate) fn trusting(pem: &[u8]) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|why| format!("the text is no PEM ({why})"))?;
            roots.add(certificate).map_err(|why| format!("a certificate in it cannot be read ({why})"))?;
        }
        if roots.is_empty() {
            return Err("there is no CERTIFICATE section in it: give the issuer's certificate in PEM form".to_owned());
        }
        // The process may have another default provider, or none: this one is what the feature stands for.
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|why| why.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self::new(Arc::new(config)))
    }

    /// Shakes hands, and checks that the peer's certificate is for `host`.
    pub(super) async fn wrap(&self, stream: Box<dyn Stream>, host: &str) -> io::Result<Box<dyn Stream>> {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("'{host}' is no name for a certificate"))
        })?;
        Ok(Box::new(self.connector.connect(name, stream).await?))
    }
}

/// Why the handshake failed, with what to do about it. A certificate that is not trusted will not be trusted later.
#[cold]
pub(super) fn explain(node: &Node, why: &io::Error) -> KrafkaError {
    let cause = why.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let context = format!("TLS handshake with {node}");
    match cause {
        Some(rustls::Error::InvalidCertificate(fault)) => KrafkaError::auth(format!(
            "{context}: the broker's certificate is not accepted ({fault:?}): check that the certificate's issuer is \
             among the roots given to KafkaBuilder::tls, and that its name is the one that the broker advertises"
        )),
        Some(rustls::Error::AlertReceived(alert)) => KrafkaError::auth(format!(
            "{context}: the broker refused with {alert:?}: does it ask for a client certificate?"
        )),
        Some(rustls::Error::InvalidMessage(_)) => KrafkaError::protocol(
            crate::error::ProtocolErrorKind::NotKafka,
            format!("{context}: the peer does not speak TLS: give the port of an SSL listener, or leave TLS out"),
        ),
        None if why.kind() == io::ErrorKind::UnexpectedEof => {
            let said = "the peer closed the connection; is it a plaintext listener, or no Kafka broker?";
            KrafkaError::network(context, io::Error::new(why.kind(), said))
        }
        _ => KrafkaError::network(context, io::Error::new(why.kind(), why.to_string())),
    }
}
