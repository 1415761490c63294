//! One request to a token endpoint: connect, TLS, HTTP/1.1, one answer.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper::rt::{Read, ReadBufCursor, Write};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::endpoint::Endpoint;
use super::form::Form;
use crate::auth::Secret;
use crate::environment::{Environment, Stream};
use crate::error::KrafkaError;
use crate::tls::{FreshTls, Peer, cause, explain, explain_late};

/// The longest answer that is read. Tokens of some thousand characters are common, and of some ten thousand known.
const MAX_ANSWER: usize = 1 << 20;

/// What is asked, where, and by whom.
pub(super) struct Request<'a> {
    pub(super) endpoint: &'a Endpoint,
    pub(super) tls: Option<&'a FreshTls>,
    pub(super) form: Form,
    pub(super) authorization: Option<Secret>,
}

/// Asks; the status, and what came with it.
///
/// # Errors
/// [`KrafkaError::Network`] and [`KrafkaError::Timeout`], which can be retried; [`KrafkaError::Auth`] if the endpoint's
/// certificate is not accepted.
///
/// # Cancel safety
/// Dropping the future closes the connection.
pub(super) async fn post(
    request: Request<'_>,
    environment: &Environment,
    within: Duration,
) -> Result<(u16, Vec<u8>), KrafkaError> {
    let endpoint = request.endpoint;
    match timeout(within, ask(request, environment)).await {
        Ok(answered) => answered,
        Err(_) => Err(KrafkaError::timeout(format!("asking {endpoint} for a token: no answer within {within:?}"))),
    }
}

async fn ask(request: Request<'_>, environment: &Environment) -> Result<(u16, Vec<u8>), KrafkaError> {
    let Request { endpoint, tls, form, authorization } = request;
    let context = || format!("asking {endpoint} for a token");
    let failed = |why: io::Error| KrafkaError::network(context(), why);
    let stream = environment.connector().connect(endpoint.host(), endpoint.port()).await.map_err(failed)?;
    let stream: Box<dyn Stream> = match tls {
        None => stream,
        Some(tls) => {
            let name = tls.name_of(endpoint.host()).map_err(KrafkaError::config)?;
            let connecting = TlsConnector::from(tls.config().await).connect(name, stream);
            Box::new(connecting.await.map_err(|why| unspoken(endpoint, tls, &why))?)
        }
    };

    let unsent = |why: hyper::http::Error| KrafkaError::config(format!("the token endpoint: {why}"));
    let mut head = hyper::Request::post(endpoint.target())
        .header("host", endpoint.authority())
        .header("content-type", "application/x-www-form-urlencoded")
        .header("accept", "application/json")
        .header("user-agent", concat!("krafka/", env!("CARGO_PKG_VERSION")))
        .header("connection", "close");
    if let Some(authorization) = authorization {
        let mut value =
            hyper::header::HeaderValue::from_str(authorization.expose()).map_err(|why| unsent(why.into()))?;
        value.set_sensitive(true);
        head = head.header("authorization", value);
    }
    let body: String = form.into_text().to_string();
    let message = head.body(body).map_err(unsent)?;

    let broken = |why: hyper::Error| broken(endpoint, tls, why);
    let (mut sender, connection) = http1::handshake(Pipe(stream)).await.map_err(broken)?;
    // The connection and the request are one future: whoever drops it drops both.
    let talking = async {
        let answer = sender.send_request(message).await.map_err(broken)?;
        let status = answer.status().as_u16();
        let body = read(answer.into_body()).await.map_err(failed)?;
        Ok((status, body))
    };
    tokio::pin!(talking, connection);
    tokio::select! {
        // The answer first: a server that closes behind it has answered all the same.
        biased;
        answered = &mut talking => answered,
        // It ends before the answer is read when the server closes early; what was read of it is still to be taken.
        _ = &mut connection => talking.await,
    }
}

fn peer(endpoint: &Endpoint, tls: &FreshTls) -> Peer {
    let context = format!("asking {endpoint} for a token");
    let shows_certificate = tls.shows_certificate();
    Peer { context, whom: "the token endpoint", setter: "Oidc::tls", shows_certificate }
}

/// TLS failed. A certificate that is not accepted will not be accepted later.
#[cold]
fn unspoken(endpoint: &Endpoint, tls: &FreshTls, why: &io::Error) -> KrafkaError {
    let context = format!("asking {endpoint} for a token");
    match cause(why) {
        Some(rustls::Error::InvalidMessage(_)) => KrafkaError::config(format!(
            "{context}: that port speaks no TLS: write http:// in the URL, or give the port that does (443 as a rule)"
        )),
        None if why.kind() == io::ErrorKind::UnexpectedEof => {
            let said = "the peer closed the connection; does the port speak TLS?";
            KrafkaError::network(context, io::Error::new(why.kind(), said))
        }
        _ => explain(&peer(endpoint, tls), why),
    }
}

/// HTTP failed: perhaps for TLS, whose alert may come only when the client has begun to speak, or as there is none.
#[cold]
fn broken(endpoint: &Endpoint, tls: Option<&FreshTls>, why: hyper::Error) -> KrafkaError {
    let beneath = why.source().and_then(|source| source.downcast_ref::<io::Error>());
    if let Some(error) = tls.zip(beneath).and_then(|(tls, beneath)| explain_late(&peer(endpoint, tls), beneath)) {
        return error;
    }
    let context = format!("asking {endpoint} for a token");
    if why.is_parse() && !endpoint.is_https() {
        let said = format!("{context}: the answer is no HTTP ({why}): does the port speak TLS (https://)?");
        return KrafkaError::network_saying(said, std::sync::Arc::new(io::Error::other(why)));
    }
    KrafkaError::network(context, io::Error::other(why))
}

async fn read(mut body: Incoming) -> io::Result<Vec<u8>> {
    let mut read = Vec::new();
    while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        if let Some(data) = frame.map_err(io::Error::other)?.data_ref() {
            if read.len() + data.len() > MAX_ANSWER {
                return Err(io::Error::other(format!("the answer is longer than {MAX_ANSWER} bytes")));
            }
            read.extend_from_slice(data);
        }
    }
    Ok(read)
}

/// A stream of ours as hyper wants it.
struct Pipe(Box<dyn Stream>);

impl Read for Pipe {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, mut buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        // Into a buffer of our own, and from there: to hand over hyper's would need unsafe code.
        let mut bytes = [0; 4096];
        let len = buf.remaining().min(bytes.len());
        let mut own = ReadBuf::new(&mut bytes[..len]);
        let read = Pin::new(&mut self.0).poll_read(cx, &mut own)?;
        buf.put_slice(own.filled());
        read.map(Ok)
    }
}

impl Write for Pipe {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
