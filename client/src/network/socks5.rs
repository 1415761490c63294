//! [`Socks5`]: connects through a SOCKS5 proxy (RFC 1928), with a user name and a password if it wants them (RFC 1929).
//!
//! ```text
//!   we:  5, methods            proxy: 5, method
//!   we:  1, user, password     proxy: 1, 0                 (only by method 2)
//!   we:  5, 1, 0, host, port   proxy: 5, 0, 0, address     then both ends are connected
//! ```

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use zeroize::Zeroizing;

use super::tcp::TcpConnect;
use crate::auth::Secret;
use crate::cluster::Node;
use crate::environment::{Connect, Connecting, Stream};
use crate::error::{KrafkaError, ProtocolErrorKind};

const VERSION: u8 = 5;
/// The version of the exchange of user name and password.
const PASSWORD_VERSION: u8 = 1;
const NO_AUTHENTICATION: u8 = 0;
const PASSWORD: u8 = 2;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

/// Connects through a SOCKS5 proxy. Names of brokers are resolved by the proxy, so that it may know a network that this
/// machine does not.
///
/// ```no_run
/// use krafka::{Environment, Kafka, Socks5};
///
/// # async fn example() -> krafka::Result<()> {
/// let proxy = Socks5::new("proxy.example", 1080).credentials("alice", "secret");
/// let kafka = Kafka::builder("kafka:9092").environment(Environment::through(proxy)).connect().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Socks5 {
    host: String,
    port: u16,
    credentials: Option<(String, Secret)>,
    inner: Arc<dyn Connect>,
}

impl Socks5 {
    /// A proxy that is reached by TCP.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self { host: host.into(), port, credentials: None, inner: Arc::new(TcpConnect) }
    }

    /// Sets the user name and the password, each of 1 to 255 bytes. They cross the network as they are. By default the
    /// proxy must do without.
    #[must_use]
    pub fn credentials(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.credentials = Some((user.into(), Secret::new(password)));
        self
    }

    /// Sets how the proxy itself is reached. By default by TCP.
    #[must_use]
    pub fn reached_by(mut self, connect: impl Connect) -> Self {
        self.inner = Arc::new(connect);
        self
    }

    async fn greet(&self, stream: &mut Box<dyn Stream>) -> io::Result<()> {
        let methods: &[u8] =
            if self.credentials.is_some() { &[NO_AUTHENTICATION, PASSWORD] } else { &[NO_AUTHENTICATION] };
        self.write(stream, &[&[VERSION, methods.len() as u8], methods].concat()).await?;
        let [version, method] = self.read(stream).await?;
        if version != VERSION {
            let said = "it does not speak SOCKS5; is it an HTTP proxy?";
            return Err(self.error(io::ErrorKind::InvalidData, Helps::AnotherProxy, said));
        }
        match (method, &self.credentials) {
            (NO_AUTHENTICATION, _) => Ok(()),
            (PASSWORD, Some((user, password))) => self.log_in(stream, user, password.expose()).await,
            (_, None) => {
                Err(self.refused("it wants a user name and a password, or something else: see Socks5::credentials"))
            }
            (_, Some(_)) => Err(self.refused("it takes neither a user name and a password, nor nothing")),
        }
    }

    async fn log_in(&self, stream: &mut Box<dyn Stream>, user: &str, password: &str) -> io::Result<()> {
        let (Some(user_len), Some(password_len)) = (short_len(user), short_len(password)) else {
            let said = "its user name and password must have from 1 to 255 bytes";
            return Err(self.error(io::ErrorKind::InvalidData, Helps::OtherCredentials, said));
        };
        let mut message = Zeroizing::new(Vec::with_capacity(user.len() + password.len() + 3));
        message.extend_from_slice(&[PASSWORD_VERSION, user_len]);
        message.extend_from_slice(user.as_bytes());
        message.push(password_len);
        message.extend_from_slice(password.as_bytes());
        self.write(stream, &message).await?;
        let [_, status] = self.read(stream).await?;
        if status == 0 { Ok(()) } else { Err(self.refused("it does not accept the user name and the password")) }
    }

    async fn ask(&self, stream: &mut Box<dyn Stream>, host: &str, port: u16) -> io::Result<()> {
        let mut request = vec![VERSION, CONNECT, 0];
        match host.parse() {
            Ok(IpAddr::V4(address)) => {
                request.push(IPV4);
                request.extend_from_slice(&address.octets());
            }
            Ok(IpAddr::V6(address)) => {
                request.push(IPV6);
                request.extend_from_slice(&address.octets());
            }
            Err(_) => {
                let len = short_len(host).ok_or_else(|| self.wrong("a host name must have from 1 to 255 bytes"))?;
                request.extend_from_slice(&[NAME, len]);
                request.extend_from_slice(host.as_bytes());
            }
        }
        request.extend_from_slice(&port.to_be_bytes());
        self.write(stream, &request).await?;
        let [version, reply, _, kind] = self.read(stream).await?;
        if version != VERSION {
            return Err(self.wrong("its answer is not of SOCKS5"));
        }
        if reply != 0 {
            return Err(self.no_way(reply));
        }
        // Where the proxy connects from; nobody here needs it, but it stands before the broker's first byte.
        let address_len = match kind {
            IPV4 => 4,
            IPV6 => 16,
            NAME => usize::from(self.read::<1>(stream).await?[0]),
            _ => return Err(self.wrong("its answer has an address of an unknown kind")),
        };
        let mut rest = [0; 255 + 2];
        self.fill(stream, &mut rest[..address_len + 2]).await
    }

    async fn read<const N: usize>(&self, stream: &mut Box<dyn Stream>) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(stream, &mut bytes).await?;
        Ok(bytes)
    }

    async fn fill(&self, stream: &mut Box<dyn Stream>, bytes: &mut [u8]) -> io::Result<()> {
        stream.read_exact(bytes).await.map_err(|why| self.lost(&why))?;
        Ok(())
    }

    async fn write(&self, stream: &mut Box<dyn Stream>, bytes: &[u8]) -> io::Result<()> {
        let written = async {
            stream.write_all(bytes).await?;
            stream.flush().await
        };
        written.await.map_err(|why| self.lost(&why))
    }

    #[cold]
    fn lost(&self, why: &io::Error) -> io::Error {
        match why.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
                let said = "it closed the connection; is it a SOCKS5 proxy?";
                self.error(io::ErrorKind::ConnectionReset, Helps::Waiting, said)
            }
            kind => self.error(kind, Helps::Waiting, &why.to_string()),
        }
    }

    #[cold]
    fn unreached(&self, why: &io::Error) -> io::Error {
        let said = format!("it cannot be reached ({why}): is it running, and are its host and port right?");
        self.error(why.kind(), Helps::Waiting, &said)
    }

    #[cold]
    fn no_way(&self, reply: u8) -> io::Error {
        let (kind, said) = match reply {
            2 => (io::ErrorKind::PermissionDenied, "its rules do not allow the connection"),
            3 => (io::ErrorKind::NetworkUnreachable, "it cannot reach the network"),
            4 => (io::ErrorKind::HostUnreachable, "it cannot reach the host, or does not know its name"),
            5 => (
                io::ErrorKind::ConnectionRefused,
                "nothing listens there, as it says; is the broker running, and is the port right?",
            ),
            6 => (io::ErrorKind::TimedOut, "the host did not answer it in time"),
            7 => (io::ErrorKind::Unsupported, "it does not make connections"),
            8 => (io::ErrorKind::Unsupported, "it does not know this kind of address"),
            _ => (io::ErrorKind::Other, "it failed without saying why"),
        };
        self.error(kind, Helps::Waiting, said)
    }

    #[cold]
    fn refused(&self, said: &str) -> io::Error {
        self.error(io::ErrorKind::PermissionDenied, Helps::OtherCredentials, said)
    }

    #[cold]
    fn wrong(&self, said: &str) -> io::Error {
        self.error(io::ErrorKind::InvalidData, Helps::Waiting, said)
    }

    fn error(&self, kind: io::ErrorKind, helps: Helps, said: &str) -> io::Error {
        io::Error::new(kind, Fault { said: format!("{}: {said}", self.name()), helps })
    }

    fn name(&self) -> String {
        format!("the SOCKS5 proxy {}:{}", self.host, self.port)
    }
}

/// What a proxy is at fault for, and not the broker behind it.
#[derive(Debug)]
pub(super) struct Fault {
    said: String,
    helps: Helps,
}

/// What helps against it.
#[derive(Clone, Copy, Debug)]
enum Helps {
    /// It may pass.
    Waiting,
    OtherCredentials,
    /// It is none.
    AnotherProxy,
}

impl Fault {
    /// The proxy's part in the failure, if it has one.
    pub(super) fn of(why: &io::Error) -> Option<&Self> {
        why.get_ref()?.downcast_ref()
    }

    /// The error, if no waiting helps.
    #[cold]
    pub(super) fn for_good(&self, node: &Node) -> Option<KrafkaError> {
        let message = format!("connecting to {node}: {self}");
        match self.helps {
            Helps::Waiting => None,
            Helps::OtherCredentials => Some(KrafkaError::auth(message)),
            Helps::AnotherProxy => Some(KrafkaError::protocol(ProtocolErrorKind::NotKafka, message)),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.said)
    }
}

impl std::error::Error for Fault {}

impl Connect for Socks5 {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a> {
        Box::pin(async move {
            let connected = self.inner.connect(&self.host, self.port).await;
            let mut stream = connected.map_err(|why| self.unreached(&why))?;
            self.greet(&mut stream).await?;
            self.ask(&mut stream, host, port).await?;
            Ok(stream)
        })
    }

    fn via(&self) -> Option<String> {
        Some(self.name())
    }
}

impl fmt::Debug for Socks5 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.credentials.as_ref().map(|(user, _)| user);
        f.debug_struct("Socks5")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("user", &user)
            .finish_non_exhaustive()
    }
}

/// The length of a text that has room in a byte, and is there.
fn short_len(text: &str) -> Option<u8> {
    u8::try_from(text.len()).ok().filter(|len| *len > 0)
}

#[cfg(test)]
mod tests;
