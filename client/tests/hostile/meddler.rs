//! [`Meddler`]: stands between a client and the nodes of a fake, and makes one mistake.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use krafka::testing::Pipes;
use krafka::{Connect, Connecting, Stream};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};

/// What is wrong with an answer. Answers are counted as they come, whatever their connection; bytes from the first of
/// the length on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mistake {
    /// Some bits of a byte are other ones.
    Changed { answer: usize, byte: usize, change: u8 },
    /// The connection ends before this byte.
    Cut { answer: usize, byte: usize },
    /// Nothing more comes from this byte on.
    Stopped { answer: usize, byte: usize },
    /// A byte comes twice.
    RepeatedByte { answer: usize, byte: usize },
    /// The answer comes twice.
    Repeated { answer: usize },
    /// The next answer of this connection has the body of this one.
    Replaced { answer: usize },
    /// Another length is announced.
    Length { answer: usize, length: i32 },
    /// Something else comes before it.
    Banner { answer: usize, banner: &'static str },
}

impl Mistake {
    /// Which answer it is made in.
    pub(crate) fn answer(self) -> usize {
        match self {
            Self::Changed { answer, .. }
            | Self::Cut { answer, .. }
            | Self::Stopped { answer, .. }
            | Self::RepeatedByte { answer, .. }
            | Self::Repeated { answer }
            | Self::Replaced { answer }
            | Self::Length { answer, .. }
            | Self::Banner { answer, .. } => answer,
        }
    }
}

/// At most one mistake.
#[derive(Debug)]
pub(crate) struct Plan {
    mistake: Option<Mistake>,
}

impl Plan {
    pub(crate) fn none() -> Self {
        Self { mistake: None }
    }

    pub(crate) fn one(mistake: Mistake) -> Self {
        Self { mistake: Some(mistake) }
    }
}

/// What the meddler saw.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The lengths of the answers, each with its four bytes.
    pub(crate) answers: Vec<usize>,
    pub(crate) was_made: bool,
}

/// Connects to a fake, and passes everything on but for the mistake.
#[derive(Clone)]
pub(crate) struct Meddler {
    pipes: Pipes,
    plan: Arc<Plan>,
    seen: Arc<Mutex<Seen>>,
}

/// What is done with an answer.
struct Verdict {
    bytes: Vec<u8>,
    then: Then,
}

enum Then {
    GoOn,
    /// This body comes in place of that of the next answer.
    Replace(Vec<u8>),
    Close,
    Stop,
}

impl Meddler {
    pub(crate) fn new(pipes: Pipes, plan: Plan) -> Self {
        Self { pipes, plan: Arc::new(plan), seen: Arc::default() }
    }

    pub(crate) fn seen<T>(&self, look: impl FnOnce(&mut Seen) -> T) -> T {
        look(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the mistake is in what a broker says that it serves: all those answers are as long as the first of all.
    pub(crate) fn is_about_versions(&self) -> bool {
        let Some(mistake) = self.plan.mistake else { return false };
        self.seen(|seen| seen.answers.get(mistake.answer()) == seen.answers.first())
    }

    fn judge(&self, answer: Vec<u8>) -> Verdict {
        let number = self.seen(|seen| {
            seen.answers.push(answer.len());
            seen.answers.len() - 1
        });
        let Some(mistake) = self.plan.mistake else { return Verdict { bytes: answer, then: Then::GoOn } };
        let verdict = mistaken(mistake, number, &answer);
        self.seen(|seen| seen.was_made |= verdict.is_some());
        verdict.unwrap_or(Verdict { bytes: answer, then: Then::GoOn })
    }
}

/// The answer with the mistake, if it is meant.
fn mistaken(mistake: Mistake, number: usize, right: &[u8]) -> Option<Verdict> {
    let mut bytes = right.to_vec();
    let mut then = Then::GoOn;
    match mistake {
        Mistake::Changed { answer, byte, change } if answer == number => *bytes.get_mut(byte)? ^= change,
        Mistake::Cut { answer, byte } if answer == number => {
            bytes.truncate(byte);
            then = Then::Close;
        }
        Mistake::Stopped { answer, byte } if answer == number => {
            bytes.truncate(byte);
            then = Then::Stop;
        }
        Mistake::RepeatedByte { answer, byte } if answer == number => bytes.insert(byte, *right.get(byte)?),
        Mistake::Repeated { answer } if answer == number => bytes.extend_from_slice(right),
        Mistake::Replaced { answer } if answer == number => then = Then::Replace(right[8..].to_vec()),
        Mistake::Length { answer, length } if answer == number => bytes[..4].copy_from_slice(&length.to_be_bytes()),
        Mistake::Banner { answer, banner } if answer == number => {
            bytes.splice(0..0, banner.bytes());
        }
        _ => return None,
    }
    Some(Verdict { bytes, then })
}

/// The next frame with its length; nothing when the node closes.
async fn frame(node: &mut (impl AsyncRead + Unpin)) -> Option<Vec<u8>> {
    let length = node.read_u32().await.ok()?;
    let mut bytes = length.to_be_bytes().to_vec();
    bytes.resize(4 + length as usize, 0);
    node.read_exact(&mut bytes[4..]).await.ok()?;
    Some(bytes)
}

async fn answer(meddler: Meddler, mut node: impl AsyncRead + Unpin, mut client: impl AsyncWrite + Unpin) {
    let mut replacement: Option<Vec<u8>> = None;
    while let Some(mut bytes) = frame(&mut node).await {
        if let Some(body) = replacement.take() {
            let length = body.len() as u32 + 4;
            bytes = [&length.to_be_bytes(), &bytes[4..8], &body[..]].concat();
        }
        let Verdict { bytes, then } = meddler.judge(bytes);
        // The client may have gone.
        let _ = client.write_all(&bytes).await;
        match then {
            Then::GoOn => {}
            Then::Replace(body) => replacement = Some(body),
            Then::Close => break,
            // Both ends stay, until the runtime ends.
            Then::Stop => std::future::pending().await,
        }
    }
    let _ = client.shutdown().await;
}

impl Connect for Meddler {
    fn connect<'a>(&'a self, host: &'a str, port: u16) -> Connecting<'a> {
        Box::pin(async move {
            let node = self.pipes.connect(host, port).await?;
            let (near, far): (DuplexStream, DuplexStream) = tokio::io::duplex(64 * 1024);
            let (from_node, mut to_node) = tokio::io::split(node);
            let (mut from_client, to_client) = tokio::io::split(far);
            tokio::spawn(answer(self.clone(), from_node, to_client));
            tokio::spawn(async move {
                let _ = tokio::io::copy(&mut from_client, &mut to_node).await;
                let _ = to_node.shutdown().await;
            });
            let stream: Box<dyn Stream> = Box::new(near);
            io::Result::Ok(stream)
        })
    }
}
