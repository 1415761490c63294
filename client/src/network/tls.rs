//! TLS over whatever stream a connector returned, by rustls.

use std::io;

use tokio_rustls::TlsConnector;

use crate::environment::Stream;
use crate::tls::FreshTls;

/// Shakes hands, and checks that the peer's certificate is for `host`.
pub(super) async fn wrap(tls: &FreshTls, stream: Box<dyn Stream>, host: &str) -> io::Result<Box<dyn Stream>> {
    let name = tls.name_of(host).map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;
    Ok(Box::new(TlsConnector::from(tls.config()).connect(name, stream).await?))
}
