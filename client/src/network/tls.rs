//! TLS over whatever stream a connector returned, by rustls.

use std::io;
use std::sync::Arc;

use rustls::ClientConfig;
use tokio_rustls::TlsConnector;

use crate::cluster::Node;
use crate::environment::Stream;
use crate::tls::FreshTls;

/// Shakes hands, and checks that the peer's certificate is for the node's host.
pub(super) async fn wrap(tls: &FreshTls, stream: Box<dyn Stream>, node: &Node) -> io::Result<Box<dyn Stream>> {
    let name = tls.name_of(&node.host).map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;
    let stream = TlsConnector::from(fresh_config(tls).await?).connect(name, stream).await?;
    let (_, session) = stream.get_ref();
    let (version, suite) = (session.protocol_version(), session.negotiated_cipher_suite());
    // Nothing is agreed on without both of them.
    if let Some((version, suite)) = version.zip(suite) {
        tracing::debug!(%node, ?version, suite = ?suite.suite(), "TLS is up");
    }
    Ok(Box::new(stream))
}

/// What to speak with now, from files that may have changed.
///
/// # Errors
/// The runtime is shutting down.
///
/// # Cancel safety
/// Dropping the future leaves the looking at the files to itself.
pub(crate) async fn fresh_config(tls: &FreshTls) -> io::Result<Arc<ClientConfig>> {
    if !tls.is_on_disk() {
        return Ok(tls.config());
    }
    // Certificates lie on volumes of the network as often as not, and those hang: on a thread that may.
    let tls = tls.clone();
    // What is logged there goes where the caller's lines go.
    let log = tracing::dispatcher::get_default(Clone::clone);
    let look = move || tracing::dispatcher::with_default(&log, || tls.config());
    tokio::task::spawn_blocking(look).await.map_err(io::Error::other)
}
