//! [`TcpConnect`]: connects by TCP, resolving names at each call.

use std::io;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use crate::environment::{Connect, Connecting, Stream};

/// How long one of several addresses of a name may take before the next is tried.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(3);

/// Idle time after which the kernel asks a silent peer whether it is still there.
const KEEPALIVE: Duration = Duration::from_secs(60);

/// Connects by TCP, without Nagle's algorithm, with keep-alive, trying each address of a name in turn.
///
/// It is what the default [`Environment`](crate::Environment) connects through; a [`Connect`] of your own may wrap it.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpConnect;

impl Connect for TcpConnect {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a> {
        Box::pin(async move {
            let mut addresses = lookup_host((host, port)).await.map_err(unresolved)?.peekable();
            let mut failure = unresolved(io::Error::other("it has no address"));
            while let Some(address) = addresses.next() {
                let connecting = TcpStream::connect(address);
                // The last address has all the time that the caller gives.
                let connected = match addresses.peek() {
                    Some(_) => timeout(ADDRESS_TIMEOUT, connecting)
                        .await
                        .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())),
                    None => connecting.await,
                };
                match connected.and_then(prepare) {
                    Ok(stream) => return Ok(stream),
                    Err(why) => failure = why,
                }
            }
            Err(failure)
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
fn unresolved(why: io::Error) -> io::Error {
    let message = format!("the host name does not resolve ({why}): check its spelling, and this machine's DNS");
    io::Error::new(io::ErrorKind::NotFound, message)
}
