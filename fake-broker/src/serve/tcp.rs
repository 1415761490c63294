//! The shell on TCP: sockets on 127.0.0.1, one for each listener of each node.
//!
//! A node that is down does not listen, so that clients are refused as by a machine whose process is gone. When it
//! comes back it listens on the same port.

use std::future::poll_fn;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

use super::driver::{self, End};
use super::{Port, Shared};
use crate::listeners::{Listeners, SecurityProtocol};

/// How long a node waits before it tries again, when its port or a connection could not be had.
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// A node's socket.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) port: Port,
    pub(super) socket: TcpListener,
    pub(super) address: SocketAddr,
}

impl Listener {
    /// Which of the node's listeners it is, and its number.
    pub(crate) fn named(&self) -> (SecurityProtocol, u16) {
        (self.port.listener, self.address.port())
    }

    async fn bind(port: Port, address: SocketAddr) -> io::Result<Self> {
        let socket = TcpListener::bind(address).await?;
        let address = socket.local_addr()?;
        Ok(Self { port, socket, address })
    }
}

/// Listens for so many nodes: on ports from `base` on, or on any. The first listener of all nodes comes before the
/// second one of all nodes.
pub(crate) async fn bind(protocols: &Listeners, nodes: i32, base: Option<u16>) -> io::Result<Vec<Listener>> {
    let mut listeners = Vec::new();
    let ports = protocols.iter().flat_map(|listener| (1..=nodes).map(move |node| Port { node, listener }));
    for (index, named_port) in (0..).zip(ports) {
        let port = match base {
            None => 0,
            Some(base) => u16::try_from(i64::from(base) + index)
                .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "the ports go beyond 65535"))?,
        };
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let named = |error: io::Error| io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"));
        listeners.push(Listener::bind(named_port, address).await.map_err(named)?);
    }
    Ok(listeners)
}

/// Listens for one more node, on any ports.
pub(crate) async fn bind_node(protocols: &Listeners, node: i32) -> io::Result<Vec<Listener>> {
    let mut listeners = Vec::new();
    for listener in protocols.iter() {
        listeners.push(Listener::bind(Port { node, listener }, SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?);
    }
    Ok(listeners)
}

/// Accepts the connections of a port whenever it listens, for as long as it is awaited.
pub(crate) async fn accept(shared: Arc<Shared>, port: Port) {
    let mut changes = shared.nodes_changed.subscribe();
    loop {
        tokio::select! {
            // A node that went down stops to accept first.
            biased;
            changed = changes.changed() => if changed.is_err() { return },
            accepted = poll_fn(|context| shared.sockets.poll_accept(port, context)) => match accepted {
                Ok(stream) => {
                    // Answers are small and awaited; Kafka sets the same.
                    let _ = stream.set_nodelay(true);
                    tokio::spawn(serve(shared.clone(), port, stream));
                }
                // Most likely there are no more file handles: the next one comes when a connection ends.
                Err(_) => tokio::time::sleep(RETRY_DELAY).await,
            },
            () = tokio::time::sleep(RETRY_DELAY), if shared.sockets.lacks(port) => shared.settle_sockets(),
        }
    }
}

/// Serves a connection, and resets it in the end if the node wants that.
async fn serve(shared: Arc<Shared>, port: Port, mut stream: TcpStream) {
    if driver::serve(shared, port, &mut stream).await == End::Reset {
        // What is closed without lingering sends a reset. If the system refuses, the client sees an end.
        let _ = stream.set_zero_linger();
    }
}
