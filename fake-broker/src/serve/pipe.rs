//! The shell in memory: connections are pipes, and a paused clock makes waiting free.

use std::io;
use std::sync::Arc;

use tokio::io::DuplexStream;

use super::{Shared, driver};

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

    /// Connects to the node that has this host and port.
    ///
    /// # Errors
    ///
    /// `NotFound` if no node has that host, `ConnectionRefused` if its node is down or the port is another.
    ///
    /// # Cancel safety
    ///
    /// Never waits.
    pub async fn connect(&self, host: &str, port: u16) -> io::Result<DuplexStream> {
        let node = self.shared.look(|cluster| {
            let nodes = &cluster.state().nodes;
            let (id, node) = nodes.iter().find(|(_, node)| node.host == *host)?;
            Some((id, node.up && node.port == i32::from(port)))
        });
        match node {
            None => Err(io::Error::new(io::ErrorKind::NotFound, format!("no node is called {host}"))),
            Some((_, false)) => {
                Err(io::Error::new(io::ErrorKind::ConnectionRefused, format!("{host}:{port} refused the connection")))
            }
            Some((node, true)) => {
                let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
                tokio::spawn(driver::serve(self.shared.clone(), node, theirs));
                Ok(ours)
            }
        }
    }
}
