//! [`KrafkaError`]: everything that can go wrong, said so that the reader knows what to do.

use std::error::Error;
use std::ops::Deref;
use std::sync::Arc;
use std::{fmt, io};

pub use krafka_protocol::{ErrorCode, Recovery};

/// The result of a krafka call.
pub type Result<T, E = KrafkaError> = std::result::Result<T, E>;

/// What kind of protocol error it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProtocolErrorKind {
    /// The broker sent bytes that do not decode.
    Malformed,
    /// The broker does not serve an API, or none of the versions that this client speaks.
    UnsupportedVersion,
    /// A response came that no request waits for.
    UnexpectedResponse,
    /// The peer is no Kafka broker (for example an HTTP server, or a TLS port spoken to in plain text).
    NotKafka,
    /// A request could not be encoded for the version in use.
    Unencodable,
}

/// A text of an error, and the error that it comes from, if there is one: what
/// [`source`](std::error::Error::source) returns.
///
/// It is a string wherever one is wanted: `message.contains("refused")`.
#[derive(Clone, Debug)]
pub struct Explanation {
    text: Arc<str>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

/// Everything that a call can fail with.
///
/// Cheap to clone: one failed batch gives the same error to each of its records.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[repr(u64)]
pub enum KrafkaError {
    /// Connecting or speaking to a broker failed.
    ///
    /// The text says what was being done, to which broker; the kind is the operating system's or the connector's, and
    /// what that said is the [source](std::error::Error::source).
    Network(Arc<io::Error>),
    /// The broker and this client do not understand each other.
    Protocol {
        /// Which misunderstanding.
        kind: ProtocolErrorKind,
        /// What was being done, and what came instead.
        message: Explanation,
    },
    /// A broker answered with an error code.
    Broker {
        /// The code. [`ErrorCode::message`] says in a few words what it means.
        code: ErrorCode,
        /// What was being done, to what, and what the broker said beyond the code.
        message: Explanation,
    },
    /// Authentication failed. Retrying with the same credentials does not help.
    Auth {
        /// Which mechanism or certificate, at which broker or token endpoint, and what was said.
        message: Arc<str>,
        /// What it failed with, where that is an error of its own: the broker's code as
        /// [`KrafkaError::Broker`], what TLS found, or what the token endpoint answered.
        source: Option<Arc<dyn Error + Send + Sync>>,
    },
    /// A deadline passed.
    Timeout {
        /// What was waited for, and how long.
        operation: Explanation,
    },
    /// A record was not acknowledged within the delivery timeout.
    DeliveryTimeout {
        /// Whether some attempt may have reached the log.
        possibly_written: bool,
        /// Which partition, and the last reason.
        message: Arc<str>,
    },
    /// A setting or an argument is not valid.
    Config {
        /// Which one, and what would be valid.
        message: Explanation,
    },
    /// The client was closed.
    Closed {
        /// What was closed.
        message: Arc<str>,
    },
    /// Another producer or member with the same identity took over.
    Fenced {
        /// Who was fenced.
        message: Arc<str>,
    },
    /// The open transaction must be aborted; then go on.
    TransactionAbortable {
        /// Why.
        message: Arc<str>,
    },
    /// Partitions have no committed offset, and the reset policy is "none".
    NoOffset {
        /// Which partitions.
        partitions: Arc<[crate::TopicPartition]>,
    },
    /// The topic does not exist (and did not appear in time).
    UnknownTopic {
        /// Its name.
        topic: Arc<str>,
    },
    /// An idempotent producer's sequence has a gap that it cannot repair.
    OutOfOrderSequence {
        /// The topic.
        topic: Arc<str>,
        /// The partition.
        partition: i32,
        /// What was lost.
        message: Arc<str>,
    },
    /// The call is not valid in the state that the client is in.
    IllegalState {
        /// Which call, and which state.
        message: Arc<str>,
    },
    /// Records could not be compressed or decompressed.
    Compression {
        /// Which topic, partition and codec.
        message: Arc<str>,
    },
    /// A user's serializer failed.
    Serialization {
        /// What it said.
        message: Arc<str>,
    },
    /// A fetched record or batch could not be read; seek past it to go on.
    RecordDeserialization {
        /// The topic.
        topic: Arc<str>,
        /// The partition.
        partition: i32,
        /// The offset of the record or batch.
        offset: i64,
        /// What is wrong with it.
        message: Arc<str>,
    },
    /// [`Consumer::wakeup`](crate::Consumer::wakeup) was called.
    Wakeup,
}

impl fmt::Display for KrafkaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(error) => error.fmt(f),
            Self::Protocol { message, .. } | Self::Config { message } => message.fmt(f),
            Self::Broker { code, message } => write!(f, "{message}: {code}"),
            Self::Timeout { operation } => operation.fmt(f),
            Self::DeliveryTimeout { possibly_written: true, message } => {
                write!(f, "{message}; the record may have been written")
            }
            Self::DeliveryTimeout { possibly_written: false, message } => {
                write!(f, "{message}; the record was not written")
            }
            Self::Auth { message, .. }
            | Self::Closed { message }
            | Self::Fenced { message }
            | Self::TransactionAbortable { message }
            | Self::IllegalState { message }
            | Self::Compression { message }
            | Self::Serialization { message } => f.write_str(message),
            Self::NoOffset { partitions } => {
                let partitions = list(partitions);
                write!(f, "no offset to start from, and auto_offset_reset is None, for {partitions}")
            }
            Self::UnknownTopic { topic } => write!(
                f,
                "topic '{topic}' does not exist: create it, or check its name and the client's permission to describe \
                 it"
            ),
            Self::OutOfOrderSequence { topic, partition, message } => write!(f, "{topic}-{partition}: {message}"),
            Self::RecordDeserialization { topic, partition, offset, message } => {
                write!(f, "{topic}-{partition} at offset {offset}: {message}")
            }
            Self::Wakeup => f.write_str("woken up"),
        }
    }
}

impl Error for KrafkaError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            // Its text is this error's own.
            Self::Network(error) => error.source(),
            Self::Auth { source, .. } => source.as_deref().map(|source| source as &(dyn Error + 'static)),
            Self::Protocol { message: explanation, .. }
            | Self::Broker { message: explanation, .. }
            | Self::Timeout { operation: explanation }
            | Self::Config { message: explanation } => {
                explanation.source.as_deref().map(|source| source as &(dyn Error + 'static))
            }
            _ => None,
        }
    }
}

impl Deref for Explanation {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<T: Into<Arc<str>>> From<T> for Explanation {
    fn from(text: T) -> Self {
        Self { text: text.into(), source: None }
    }
}

fn list(partitions: &[crate::TopicPartition]) -> String {
    partitions.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl KrafkaError {
    /// Whether the same call may succeed if it is made again.
    ///
    /// That is so for lost connections, deadlines, and the codes that Kafka calls retriable. The clients have retried
    /// by themselves until their own deadline when they return such an error.
    #[must_use]
    pub fn is_retriable(&self) -> bool {
        match self {
            Self::Network(_) | Self::Timeout { .. } | Self::DeliveryTimeout { .. } | Self::Wakeup => true,
            Self::UnknownTopic { .. } => true,
            Self::Broker { code, .. } => code.is_retriable(),
            _ => false,
        }
    }

    /// Whether the open transaction must be aborted before anything else.
    #[must_use]
    pub fn requires_abort(&self) -> bool {
        matches!(self, Self::TransactionAbortable { .. } | Self::Broker { code: ErrorCode::TRANSACTION_ABORTABLE, .. })
    }

    /// Whether the client that returned it is of no more use: close it and build another.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        match self {
            Self::Closed { .. } | Self::Fenced { .. } | Self::Auth { .. } => true,
            Self::Broker { code, .. } => matches!(
                *code,
                ErrorCode::PRODUCER_FENCED
                    | ErrorCode::FENCED_INSTANCE_ID
                    | ErrorCode::SASL_AUTHENTICATION_FAILED
                    | ErrorCode::UNSUPPORTED_SASL_MECHANISM
                    | ErrorCode::ILLEGAL_SASL_STATE
            ),
            _ => false,
        }
    }

    #[cold]
    pub(crate) fn network(context: impl fmt::Display, source: io::Error) -> Self {
        Self::network_saying(format!("{context}: {source}"), Arc::new(source))
    }

    /// A network error with a text of its own, which says what its source says.
    #[cold]
    pub(crate) fn network_saying(message: String, source: Arc<io::Error>) -> Self {
        Self::network_of(source.kind(), message, source)
    }

    /// A network error of a kind, with a text and a source of its own.
    #[cold]
    pub(crate) fn network_of(kind: io::ErrorKind, message: String, source: Arc<dyn Error + Send + Sync>) -> Self {
        Self::Network(Arc::new(io::Error::new(kind, Failed { message, source })))
    }

    /// The same error with another text, where it has one: to say more of how it came to be. Its source stays, however
    /// often the story is told anew; where it has none, it is the source itself.
    #[cold]
    pub(crate) fn saying(&self, message: String) -> Self {
        let retold = |of: &Explanation| {
            let source = of.source.clone().unwrap_or_else(|| Arc::new(self.clone()));
            Explanation { text: message.as_str().into(), source: Some(source) }
        };
        match self {
            Self::Network(error) => {
                // What the system said stays the source, however often the story is told anew.
                let failed = error.get_ref().and_then(|inner| inner.downcast_ref::<Failed>());
                let source = failed.map_or_else(|| error.clone() as _, |failed| failed.source.clone());
                Self::network_of(error.kind(), message, source)
            }
            Self::Protocol { kind, message } => Self::Protocol { kind: *kind, message: retold(message) },
            Self::Broker { code, message } => Self::Broker { code: *code, message: retold(message) },
            Self::Auth { source, .. } => Self::Auth { message: message.into(), source: source.clone() },
            Self::Timeout { operation } => Self::Timeout { operation: retold(operation) },
            Self::Config { message } => Self::Config { message: retold(message) },
            Self::Closed { .. } => Self::closed(message),
            other => other.clone(),
        }
    }

    /// What this error comes from: its source, or itself where it has none.
    #[cold]
    pub(crate) fn cause(&self) -> Arc<dyn Error + Send + Sync> {
        match self {
            Self::Protocol { message: explanation, .. }
            | Self::Broker { message: explanation, .. }
            | Self::Timeout { operation: explanation }
            | Self::Config { message: explanation } => explanation.source.clone(),
            _ => None,
        }
        .unwrap_or_else(|| Arc::new(self.clone()))
    }

    #[cold]
    pub(crate) fn protocol(kind: ProtocolErrorKind, message: impl Into<Explanation>) -> Self {
        Self::Protocol { kind, message: message.into() }
    }

    /// The broker and this client do not understand each other, and this is why.
    #[cold]
    pub(crate) fn protocol_because(
        kind: ProtocolErrorKind,
        message: impl Into<Arc<str>>,
        source: impl Into<Arc<dyn Error + Send + Sync>>,
    ) -> Self {
        Self::Protocol { kind, message: Explanation { text: message.into(), source: Some(source.into()) } }
    }

    #[cold]
    pub(crate) fn broker(code: ErrorCode, message: impl Into<Explanation>) -> Self {
        Self::Broker { code, message: message.into() }
    }

    #[cold]
    pub(crate) fn auth(message: impl Into<Arc<str>>) -> Self {
        Self::Auth { message: message.into(), source: None }
    }

    /// Authentication failed, and this is why.
    #[cold]
    pub(crate) fn auth_because(message: impl Into<Arc<str>>, source: impl Error + Send + Sync + 'static) -> Self {
        Self::Auth { message: message.into(), source: Some(Arc::new(source)) }
    }

    #[cold]
    pub(crate) fn timeout(operation: impl Into<Explanation>) -> Self {
        Self::Timeout { operation: operation.into() }
    }

    #[cold]
    pub(crate) fn config(message: impl Into<Explanation>) -> Self {
        Self::Config { message: message.into() }
    }

    #[cold]
    pub(crate) fn closed(message: impl Into<Arc<str>>) -> Self {
        Self::Closed { message: message.into() }
    }

    #[cold]
    pub(crate) fn illegal_state(message: impl Into<Arc<str>>) -> Self {
        Self::IllegalState { message: message.into() }
    }
}

/// What an [`io::Error`] of ours holds: the whole story, and what the network said.
#[derive(Debug)]
struct Failed {
    message: String,
    source: Arc<dyn Error + Send + Sync>,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Failed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}

#[cfg(test)]
mod tests;
