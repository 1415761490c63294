//! The shell in memory: connections are pipes, and a paused clock makes waiting free.

use std::io;
use std::sync::Arc;

use tokio::io::DuplexStream;

use super::{Port, Shared, driver};

/// How much a pipe holds before its writer waits, as a socket's buffer does.
const PIPE_BYTES: usize = 64 * 1024;

/// Connects to the nodes of a cluster in memory.
#[derive(Clone, Debug)]
pub struct Pipes {
    shared: Arc<Shared>,
}

impl Pipes {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Connects to the node that has this host and port. At a TLS listener's port, the client has the handshake still
    /// before it.
    ///
    /// # Errors
    ///
    /// `NotFound` if no node has that host, `ConnectionRefused` if its node is down or the port is another.
    ///
    /// # Cancel safety
    ///
    /// Never waits.
    pub async fn connect(&self, host: &str, port: u16) -> io::Result<DuplexStream> {
        let found = self.shared.look(|cluster| {
            let nodes = &cluster.state().nodes;
            // Nodes on ports of one machine have one name.
            let mut named = nodes.iter().filter(|(_, node)| node.host == *host).peekable();
            named.peek()?;
            Some(named.find_map(|(id, node)| {
                let (&listener, _) = node.ports.iter().find(|(_, number)| **number == port)?;
                node.up.then_some(Port { node: id, listener })
            }))
        });
        match found {
            None => Err(io::Error::new(io::ErrorKind::NotFound, format!("no node is called {host}"))),
            Some(None) => {
                Err(io::Error::new(io::ErrorKind::ConnectionRefused, format!("{host}:{port} refused the connection")))
            }
            Some(Some(port)) => {
                let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
                tokio::spawn(driver::serve(self.shared.clone(), port, theirs));
                Ok(ours)
            }
        }
    }
}
