//! Streams that keep what is written until they are flushed.

use super::*;

/// Passes nothing on before it is flushed, as a buffered writer, or TLS whose socket is full.
struct Holding {
    stream: DuplexStream,
    held: VecDeque<u8>,
}

impl AsyncRead for Holding {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Holding {
    fn poll_write(mut self: Pin<&mut Self>, _cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.held.extend(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, held } = &mut *self;
        while !held.is_empty() {
            let written = ready!(Pin::new(&mut *stream).poll_write(cx, held.make_contiguous()))?;
            held.drain(..written);
        }
        Pin::new(stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// The last request of a burst is whole at the peer, too, in however many steps the socket takes it.
#[tokio::test(start_paused = true)]
async fn what_was_written_is_flushed() {
    for capacity in [7, 64 * 1024] {
        let (near, far) = tokio::io::duplex(capacity);
        let stream: Box<dyn Stream> = Box::new(Holding { stream: near, held: VecDeque::new() });
        let network = network_of(VecDeque::from([stream]), usize::MAX);
        let mut peer = Peer { stream: far, writes: Arc::default() };
        let node = node();
        let (connection, ()) = tokio::join!(network.connection(&node, Lane::Control), peer.shake_hands());
        let connection = connection.expect("the peer shook hands");

        let calls = [heartbeat(&connection), heartbeat(&connection)];
        for call in calls {
            let came = peer.next().await;
            peer.answer(&came, &beat(3)).await;
            assert_eq!(call.await.expect("it was answered").error_code, 3);
        }

        // Alone, too.
        let (call, ()) = tokio::join!(heartbeat(&connection), async {
            let came = peer.next().await;
            peer.answer(&came, &beat(4)).await;
        });
        assert_eq!(call.expect("it was answered").error_code, 4);
    }
}
