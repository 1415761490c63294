//! TLS over whatever stream a connector returned, by rustls.

use std::io;

use tokio_rustls::TlsConnector;

use crate::cluster::Node;
use crate::environment::Stream;
use crate::tls::FreshTls;

/// Shakes hands, and checks that the peer's certificate is for the node's host.
pub(super) async fn wrap(tls: &FreshTls, stream: Box<dyn Stream>, node: &Node) -> io::Result<Box<dyn Stream>> {
    let name = tls.name_of(&node.host).map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;
    let stream = TlsConnector::from(tls.config().await).connect(name, stream).await?;
    let (_, session) = stream.get_ref();
    let (version, suite) = (session.protocol_version(), session.negotiated_cipher_suite());
    // Nothing is agreed on without both of them.
    if let Some((version, suite)) = version.zip(suite) {
        tracing::debug!(%node, ?version, suite = ?suite.suite(), "TLS is up");
    }
    Ok(Box::new(stream))
}
