//! TLS over whatever stream a connector returned, by rustls.

use std::io;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
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
            "{context}: the broker's certificate is not accepted ({fault:?}): check that the certificate's issuer is among \
             the roots given to KafkaBuilder::tls, and that its name is the one that the broker advertises"
        )),
        Some(rustls::Error::AlertReceived(alert)) => KrafkaError::auth(format!(
            "{context}: the broker refused with {alert:?}: does it ask for a client certificate?"
        )),
        Some(rustls::Error::InvalidMessage(_)) => KrafkaError::protocol(
            crate::error::ProtocolErrorKind::NotKafka,
            format!("{context}: the peer does not speak TLS: give the port of an SSL listener, or leave TLS out"),
        ),
        _ => KrafkaError::network(context, io::Error::new(why.kind(), why.to_string())),
    }
}
