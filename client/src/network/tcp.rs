//! [`TcpConnect`]: connects by TCP, resolving names at each call.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpStream, lookup_host};

use super::race::{failed_at, race};
use crate::environment::{Connect, Connecting, Stream};

/// Idle time after which the kernel asks a silent peer whether it is still there. It also keeps an idle connection in
/// the tables of the load balancers and address translators in between: those of the large clouds forget after four
/// minutes and more.
const KEEPALIVE: Duration = Duration::from_secs(60);

/// Time after which it asks again.
#[cfg(any(target_os = "android", target_os = "linux", target_os = "macos", target_os = "windows"))]
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// Time after which the kernel gives up a peer that acknowledges nothing, neither data nor questions; Linux would take
/// a quarter of an hour. It also counts while a peer reads nothing, which is what a broker does to a client that it
/// throttles: hence a little more than the longest throttle that is honoured.
#[cfg(any(target_os = "android", target_os = "linux"))]
const USER_TIMEOUT: Duration = crate::limits::MAX_THROTTLE.saturating_add(Duration::from_secs(30));

/// Connects by TCP, trying the addresses of a name a little after one another (RFC 8305). An address that takes the
/// connection and leads to no broker is the last to be tried the next time.
///
/// The sockets go without Nagle's algorithm. A peer that has vanished is noticed by keep-alive (asked after a minute of
/// silence, then every 15 s), and on Linux is given up after 5.5 minutes in which it acknowledged nothing
/// (`TCP_USER_TIMEOUT`); the request timeout notices sooner where an answer is waited for.
///
/// It is what the default [`Environment`](crate::Environment) connects through; a [`Connect`] of your own may wrap it.
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpConnect;

impl Connect for TcpConnect {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a> {
        self.connect_past(host, port, 0)
    }

    fn connect_past<'a>(&'a self, host: &'a str, port: u16, dead: usize) -> Connecting<'a> {
        Box::pin(async move {
            let stream: Box<dyn Stream> = Box::new(open(host, port, dead).await?);
            Ok(stream)
        })
    }
}

/// A socket as the client wants it.
async fn open(host: &str, port: u16, dead: usize) -> io::Result<TcpStream> {
    let addresses: Vec<_> = lookup_host((host, port)).await.map_err(|why| unresolved(&why))?.collect();
    // Where a name led is what its reader needs; who gave an address knows it.
    let only = addresses.first().copied().filter(|_| addresses.len() == 1 && host.parse::<IpAddr>().is_err());
    let raced = race(addresses, dead, TcpStream::connect::<SocketAddr>).await;
    let stream = raced.map_err(|why| match only {
        Some(address) => failed_at(address, why),
        None => why,
    })?;
    prepare(&stream)?;
    Ok(stream)
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    // Frames are written whole: waiting for more to send would only delay them.
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE);
    #[cfg(any(target_os = "android", target_os = "linux", target_os = "macos", target_os = "windows"))]
    let keepalive = keepalive.with_interval(KEEPALIVE_INTERVAL);
    socket.set_tcp_keepalive(&keepalive)?;
    #[cfg(any(target_os = "android", target_os = "linux"))]
    socket.set_tcp_user_timeout(Some(USER_TIMEOUT))?;
    Ok(())
}

#[cold]
fn unresolved(why: &io::Error) -> io::Error {
    let message = format!("the host name does not resolve ({why}): check its spelling, and this machine's DNS");
    io::Error::new(io::ErrorKind::NotFound, message)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_failure_tells_where_the_name_led() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        drop(listener);

        let of_name = open("localhost", port, 0).await.expect_err("nothing listens").to_string();
        let of_address = open("127.0.0.1", port, 0).await.expect_err("nothing listens").to_string();

        assert!(of_name.contains(&format!("127.0.0.1:{port}: ")), "{of_name}");
        assert!(!of_address.contains("127.0.0.1"), "{of_address}");
    }

    /// NET-09: the kernel notices, too, and not after the eleven minutes and the quarter of an hour that are its own.
    #[tokio::test]
    async fn a_peer_that_vanished_is_noticed_by_the_kernel() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();

        let stream = open("127.0.0.1", port, 0).await.expect("it listens, and Linux has these options");

        let socket = SockRef::from(&stream);
        assert!(socket.tcp_nodelay().expect("it can be read") && socket.keepalive().expect("it can be read"));
        assert_eq!(socket.tcp_keepalive_time().expect("it can be read"), KEEPALIVE);
        assert_eq!(socket.tcp_keepalive_interval().expect("it can be read"), KEEPALIVE_INTERVAL);
        assert_eq!(socket.tcp_user_timeout().expect("it can be read"), Some(Duration::from_secs(330)));
    }
}
