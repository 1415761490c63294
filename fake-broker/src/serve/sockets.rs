//! The sockets that the nodes listen on. They open and close in the step in which the cluster says so: whoever has
//! started a node again finds it when the call returns, and nobody finds one that is down.

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use socket2::{Domain, SockRef, Socket, Type};
use tokio::net::{TcpListener, TcpStream};

use super::Port;
use super::tcp::Listener;

/// How many connections the system keeps for a node that has not accepted them yet.
const BACKLOG: i32 = 1_024;

/// A socket for each port of each node, as long as it is to listen.
#[derive(Debug, Default)]
pub(crate) struct Sockets(Mutex<Vec<Slot>>);

#[derive(Debug)]
struct Slot {
    port: Port,
    address: SocketAddr,
    socket: Listening,
}

#[derive(Debug)]
enum Listening {
    No,
    /// It is to listen and could not: the port is somebody else's.
    Refused,
    /// What was bound in a step is made known to the runtime by the task that accepts on it.
    Bound(std::net::TcpListener),
    Yes(TcpListener),
}

impl Sockets {
    pub(super) fn add(&self, listener: Listener) {
        let Listener { port, socket, address } = listener;
        self.lock().push(Slot { port, address, socket: Listening::Yes(socket) });
    }

    /// Closes all of them for good.
    pub(super) fn end(&self) {
        self.lock().drain(..).for_each(|mut slot| slot.close());
    }

    /// Listens where each port is wanted to, and nowhere else.
    pub(super) fn settle(&self, wanted: impl Fn(Port) -> Option<SocketAddr>) {
        for slot in self.lock().iter_mut() {
            slot.settle(wanted(slot.port));
        }
    }

    /// Whether a port is to listen and could not.
    pub(super) fn lacks(&self, port: Port) -> bool {
        self.lock().iter().any(|slot| slot.port == port && matches!(slot.socket, Listening::Refused))
    }

    /// The next connection to a port. While it does not listen there is none, and nobody is woken when it does.
    pub(super) fn poll_accept(&self, port: Port, context: &mut Context<'_>) -> Poll<io::Result<TcpStream>> {
        let mut slots = self.lock();
        let Some(slot) = slots.iter_mut().find(|slot| slot.port == port) else { return Poll::Pending };
        if let Listening::Bound(_) = slot.socket
            && let Listening::Bound(bound) = std::mem::replace(&mut slot.socket, Listening::No)
        {
            slot.socket = Listening::Yes(TcpListener::from_std(bound)?);
        }
        let Listening::Yes(socket) = &slot.socket else { return Poll::Pending };
        socket.poll_accept(context).map_ok(|(stream, _)| stream)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// Listens no more. To drop the socket is not enough: a process that is just being started has it, too, for a
    /// moment.
    fn close(&mut self) {
        // Where a socket that listens cannot be shut down, it is dropped.
        let _ = match &self.socket {
            Listening::Bound(socket) => SockRef::from(socket).shutdown(Shutdown::Both),
            Listening::Yes(socket) => SockRef::from(socket).shutdown(Shutdown::Both),
            Listening::No | Listening::Refused => Ok(()),
        };
        self.socket = Listening::No;
    }

    fn settle(&mut self, wanted: Option<SocketAddr>) {
        let listens = matches!(self.socket, Listening::Bound(_) | Listening::Yes(_));
        if listens && wanted == Some(self.address) {
            return;
        }
        let was_refused = matches!(self.socket, Listening::Refused);
        self.close();
        let Some(address) = wanted else { return };
        self.address = address;
        self.socket = match bind(address) {
            Ok(bound) => Listening::Bound(bound),
            Err(error) => {
                if !was_refused {
                    tracing::warn!(%error, %address, node = self.port.node, "a node cannot listen on its port");
                }
                Listening::Refused
            }
        };
    }
}

fn bind(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    // As the runtime does it: connections of the time before may still be closing.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}
