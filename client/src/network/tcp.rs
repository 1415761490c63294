//! [`TcpConnect`]: connects by TCP, resolving names at each call.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpStream, lookup_host};

use super::race::race;
use crate::environment::{Connect, Connecting, Stream};

/// Idle time after which the kernel asks a silent peer whether it is still there.
const KEEPALIVE: Duration = Duration::from_secs(60);

/// Connects by TCP, without Nagle's algorithm, with keep-alive, trying the addresses of a name a little after one
/// another.
///
/// It is what the default [`Environment`](crate::Environment) connects through; a [`Connect`] of your own may wrap it.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpConnect;

impl Connect for TcpConnect {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a> {
        Box::pin(async move {
            let addresses: Vec<_> = lookup_host((host, port)).await.map_err(|why| unresolved(&why))?.collect();
            let stream = race(addresses, TcpStream::connect::<SocketAddr>).await?;
            prepare(stream)
        })
    }
}

fn prepare(stream: TcpStream) -> io::Result<Box<dyn Stream>> {
    // Frames are written whole: waiting for more to send would only delay them.
    stream.set_nodelay(true)?;
    SockRef::from(&stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE))?;
    Ok(Box::new(stream))
}

#[cold]
fn unresolved(why: &io::Error) -> io::Error {
    let message = format!("the host name does not resolve ({why}): check its spelling, and this machine's DNS");
    io::Error::new(io::ErrorKind::NotFound, message)
}
