//! The control port: what tests in other languages do to a running cluster, over HTTP with JSON.
//!
//! Each test framework has an HTTP client in its standard library, so that nothing need be installed. `CONTROL.md`
//! is its page, and a test runs the examples there.

mod http;
mod record;
mod routes;
mod telemetry;
mod transactions;
mod views;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::handle::{FakeCluster, WeakCluster};
use http::Reply;

/// How many connections are served at once.
const MAX_CONNECTIONS: usize = 256;

/// How many of those that come then are told so at once; the others are closed.
const MAX_REFUSALS: usize = 64;

/// How long it takes until connections are accepted again after one could not be.
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// How long a connection may say nothing, or take for a request.
const IDLE: Duration = Duration::from_secs(120);

/// How long a client that was refused may go on to write.
const LINGER: Duration = Duration::from_secs(2);

/// Listens on an address, and returns what serves there until the cluster is gone, and where that is.
pub(crate) async fn bind(
    fake: WeakCluster,
    address: SocketAddr,
) -> io::Result<(impl Future<Output = ()> + Send + 'static, SocketAddr)> {
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("cannot serve the control port on {address}: {error}"));
    let listener = TcpListener::bind(address).await.map_err(named)?;
    let address = listener.local_addr()?;
    Ok((accept(fake, listener), address))
}

async fn accept(fake: WeakCluster, listener: TcpListener) {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let refusals = Arc::new(Semaphore::new(MAX_REFUSALS));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(RETRY_DELAY).await;
            continue;
        };
        // A client that goes away in the middle of something is no matter.
        if let Ok(permit) = room.clone().try_acquire_owned() {
            let fake = fake.clone();
            tokio::spawn(async move {
                let _ = serve(fake, stream).await;
                drop(permit);
            });
        } else if let Ok(permit) = refusals.clone().try_acquire_owned() {
            tokio::spawn(async move {
                let _ = refuse(stream).await;
                drop(permit);
            });
        }
    }
}

/// Tells a client that there are too many.
async fn refuse(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
    let reason = format!("the control port serves {MAX_CONNECTIONS} connections already: close some");
    end(&mut stream, &Reply::error(503, reason), false).await
}

/// Answers for the last time. A client that is still writing would be reset, and never see why it was refused.
async fn end(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), reply: &Reply, is_head: bool) -> io::Result<()> {
    write(stream, reply, false, is_head).await?;
    stream.shutdown().await?;
    let _ = tokio::time::timeout(LINGER, tokio::io::copy(stream, &mut tokio::io::sink())).await;
    Ok(())
}

async fn write(stream: &mut (impl AsyncWrite + Unpin), reply: &Reply, is_kept: bool, is_head: bool) -> io::Result<()> {
    if is_head { http::write_head(stream, reply, is_kept).await } else { http::write(stream, reply, is_kept).await }
}

async fn serve(fake: WeakCluster, mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
    let mut buffer = BytesMut::new();
    // Whoever forgets to close a connection does not keep others out for ever. Clients connect again.
    while let Ok(read) = tokio::time::timeout(IDLE, http::read(&mut stream, &mut buffer)).await {
        let Some(request) = read? else { return Ok(()) };
        let (reply, is_kept, is_head) = match request {
            Ok(request) => match fake.upgrade() {
                Some(fake) => (answer(fake, &request).await, request.is_kept, request.is_head),
                None => return Ok(()),
            },
            Err(reply) => (reply, false, false),
        };
        if !is_kept {
            return end(&mut stream, &reply, is_head).await;
        }
        write(&mut stream, &reply, is_kept, is_head).await?;
    }
    Ok(())
}

/// Answers a request. Whoever waits for something does not keep the cluster alive meanwhile.
async fn answer(fake: FakeCluster, request: &http::Request) -> Reply {
    match routes::route(fake, request) {
        Ok(routes::Answer::Now(reply)) | Err(reply) => reply,
        Ok(routes::Answer::Node(fake, version)) => routes::add_node(&fake, version).await,
        Ok(routes::Answer::Wait(wait)) => wait.reply().await,
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    /// A body that HEAD must not have would be read as the beginning of the next answer.
    #[tokio::test]
    async fn head_is_answered_without_a_body() {
        let fake = FakeCluster::builder().start_on_pipes();
        let (ours, mut theirs) = tokio::io::duplex(1 << 16);
        let served = tokio::spawn(serve(fake.downgrade(), ours));
        let requests = ["HEAD /rules", "HEAD /nope", "GET /rules", "HEAD /rules"];
        let requests = requests.map(|asked| format!("{asked} HTTP/1.1\r\n\r\n"));
        theirs.write_all(requests.concat().as_bytes()).await.expect("it is open");
        theirs.shutdown().await.expect("it is open");

        let mut answers = String::new();
        theirs.read_to_string(&mut answers).await.expect("it is closed in the end");

        let heads: Vec<_> = answers.split("HTTP/1.1 ").skip(1).collect();
        let told: Vec<_> = heads.iter().map(|answer| answer.split_once("\r\n\r\n").expect("a head")).collect();
        let statuses: Vec<_> = told.iter().map(|(head, _)| &head[..3]).collect();
        assert_eq!(statuses, ["200", "404", "200", "200"]);
        let bodies: Vec<_> = told.iter().map(|(_, body)| *body).collect();
        assert_eq!(bodies, ["", "", "[]\n", ""]);
        assert!(told[0].0.contains("Content-Length: 3\r\n"), "{}", told[0].0);
        served.await.expect("it does not panic").expect("nothing is broken");
    }

    /// A connection that is kept open for a next request that never comes is closed, and so is one that begins a
    /// request and does not go on.
    #[tokio::test(start_paused = true)]
    #[expect(clippy::disallowed_methods, reason = "a test counts the time that passes")]
    async fn who_says_nothing_for_long_is_left() {
        let fake = FakeCluster::builder().start_on_pipes();
        for request in ["GET /nodes HTTP/1.1\r\n\r\n", "GET /nod"] {
            let (ours, mut theirs) = tokio::io::duplex(1 << 16);
            let served = tokio::spawn(serve(fake.downgrade(), ours));
            let began = tokio::time::Instant::now();
            theirs.write_all(request.as_bytes()).await.expect("it is open");

            let mut answer = String::new();
            theirs.read_to_string(&mut answer).await.expect("it is closed in the end");

            assert_eq!(answer.starts_with("HTTP/1.1 200 OK"), request.ends_with("\r\n\r\n"), "{answer}");
            assert_eq!(began.elapsed().as_secs(), IDLE.as_secs());
            served.await.expect("it does not panic").expect("nothing is broken");
        }
    }
}
