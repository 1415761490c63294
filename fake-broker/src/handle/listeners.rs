//! Controls of listeners: where clients of each find the cluster, and the certificate that they see.

use krafka_protocol::Str;
#[cfg(feature = "tls")]
use tokio::io;
use tokio::io::{AsyncRead, AsyncWrite};

use super::FakeCluster;
use crate::listeners::SecurityProtocol;
#[cfg(feature = "tls")]
use crate::serve::tls::{ServerTls, Serving};
use crate::serve::{Port, driver};

impl FakeCluster {
    /// Returns the addresses of all nodes, dead or alive, as a client takes them: `host:port,host:port`. Where there is
    /// more than one listener, it is the first.
    pub fn bootstrap(&self) -> String {
        let first = self.look(|state| state.config.listeners.first());
        self.bootstrap_of(first)
    }

    /// Returns the addresses of all nodes for clients of one listener. It is empty if there is no such listener.
    ///
    /// **Unstable:** may change in any release.
    pub fn bootstrap_of(&self, listener: SecurityProtocol) -> String {
        self.look(|state| {
            let with_it = state.nodes.iter().filter(|(_, node)| node.ports.contains_key(&listener));
            let addresses = with_it.map(|(_, node)| format!("{}:{}", node.host, node.port(listener)));
            addresses.collect::<Vec<_>>().join(",")
        })
    }

    /// Returns where a node listens: host and port. Where there is more than one listener, it is the first.
    pub fn address(&self, node: i32) -> Option<(Str, u16)> {
        self.address_of(node, self.look(|state| state.config.listeners.first()))
    }

    /// Returns where a node listens for clients of one listener: host and port.
    ///
    /// **Unstable:** may change in any release.
    pub fn address_of(&self, node: i32, listener: SecurityProtocol) -> Option<(Str, u16)> {
        self.look(|state| {
            let node = state.nodes.find(node)?;
            Some((node.host.clone(), *node.ports.get(&listener)?))
        })
    }

    /// Serves one connection of one of a node's listeners until either side closes it. A stream that came to a TLS
    /// listener has the handshake still before it.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection.
    pub async fn serve_on(&self, node: i32, listener: SecurityProtocol, stream: impl AsyncRead + AsyncWrite + Unpin) {
        driver::serve(self.running.shared.clone(), Port { node, listener }, stream).await;
    }

    /// Gives all nodes another certificate, as an operator does before the old one expires, and asks of clients what
    /// these settings say. New connections see it; those that are open stay. For a certificate alone, in the moment
    /// that a request comes, there is [`Operation::SwapCertificate`](crate::Operation::SwapCertificate).
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Errors
    ///
    /// If certificate and key do not fit, or TLS cannot use them.
    #[cfg(feature = "tls")]
    pub fn set_tls(&self, tls: &ServerTls) -> io::Result<()> {
        self.serve_tls(Some(Serving::new(tls.clone())?));
        Ok(())
    }

    /// Sets what new connections of TLS listeners begin with.
    #[cfg(feature = "tls")]
    pub(crate) fn serve_tls(&self, serving: Option<Serving>) {
        self.control(|state, _| state.tls = serving);
    }
}
