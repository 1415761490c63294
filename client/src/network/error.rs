//! [`CallError`]: why a request has no answer, and whether it may have taken effect all the same.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use krafka_protocol::ErrorCode;

use crate::cluster::Node;
use crate::error::{KrafkaError, ProtocolErrorKind};

/// Why a request was not answered.
///
/// Whoever retries must know two things: whether trying again can help, and whether the broker may have done what was
/// asked.
#[derive(Clone, Debug)]
pub(crate) struct CallError {
    error: KrafkaError,
    possibly_written: bool,
}

impl CallError {
    /// The request never left this process.
    #[cold]
    pub(crate) fn unsent(error: KrafkaError) -> Self {
        Self { error, possibly_written: false }
    }

    /// Some or all of the request's bytes were handed to the network: the broker may act on it.
    #[cold]
    pub(crate) fn sent(error: KrafkaError) -> Self {
        Self { error, possibly_written: true }
    }

    /// Whether the broker may have seen the request.
    pub(crate) fn possibly_written(&self) -> bool {
        self.possibly_written
    }

    /// Whether the same request may succeed on another connection, or later.
    pub(crate) fn is_retriable(&self) -> bool {
        self.error.is_retriable()
    }

    /// What to tell the user.
    pub(crate) fn error(&self) -> &KrafkaError {
        &self.error
    }
}

impl From<CallError> for KrafkaError {
    fn from(error: CallError) -> Self {
        error.error
    }
}

/// A connection is gone, or could not be used; the reason is in words.
#[cold]
pub(crate) fn lost(what: &str, node: &Node, kind: io::ErrorKind, why: impl Into<String>) -> KrafkaError {
    KrafkaError::network(format!("{what} at {node}"), io::Error::new(kind, why.into()))
}

/// Every connection that the user allows is in use, and none of them is to the broker that is meant.
#[cold]
pub(crate) fn no_room(what: &str, why: String) -> KrafkaError {
    KrafkaError::network(what, io::Error::new(io::ErrorKind::QuotaExceeded, why))
}

/// Whether a broker was not asked because there was no room for a connection: that says nothing of the broker. No
/// operating system says this of a socket.
pub(crate) fn is_no_room(error: &KrafkaError) -> bool {
    matches!(error, KrafkaError::Network(error) if error.kind() == io::ErrorKind::QuotaExceeded)
}

/// The broker answered a step of the handshake with a code that says nothing against the client, such as that it is in
/// trouble: another attempt may find it well. Java's client closes the connection, too, and connects again.
#[cold]
pub(crate) fn turned_away(what: &str, node: &Node, code: ErrorCode) -> KrafkaError {
    let said = KrafkaError::broker(code, format!("{what} at {node}"));
    KrafkaError::network_of(io::ErrorKind::ConnectionAborted, said.to_string(), Arc::new(said))
}

/// No answer came in time.
#[cold]
pub(crate) fn late(what: &str, node: &Node, after: Duration) -> KrafkaError {
    KrafkaError::timeout(format!(
        "{what} at {node}: no answer within {after:?} (request_timeout); the connection was closed"
    ))
}

/// The peer's bytes make no sense.
#[cold]
pub(crate) fn malformed(what: &str, node: &Node, why: impl Into<Box<dyn Error + Send + Sync>>) -> KrafkaError {
    let why = why.into();
    let message = format!("{what} at {node}: the answer does not decode: {why}");
    KrafkaError::protocol_because(ProtocolErrorKind::Malformed, message, why)
}
