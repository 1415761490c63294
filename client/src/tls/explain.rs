//! What a failed TLS handshake means, and what to do about it.

use std::io;

use rustls::Error;

use super::faults::{alerted, certificate};
use crate::cluster::Node;
use crate::error::{KrafkaError, ProtocolErrorKind};

/// Whom a handshake failed with.
pub(crate) struct Peer {
    /// What was being done, with the address.
    pub(crate) context: String,
    /// What to call it.
    pub(crate) whom: &'static str,
    /// Where the user says whom to trust.
    pub(crate) setter: &'static str,
    /// Whether the client has a certificate to show.
    pub(crate) shows_certificate: bool,
}

impl Peer {
    pub(crate) fn broker(node: &Node, shows_certificate: bool) -> Self {
        let context = format!("TLS handshake with {node}");
        Self { context, whom: "the broker", setter: "KafkaBuilder::tls", shows_certificate }
    }
}

/// The reason in words. A certificate that is not accepted will not be accepted later.
#[cold]
pub(crate) fn explain(peer: &Peer, why: &io::Error) -> KrafkaError {
    let Peer { context, whom, .. } = peer;
    let context = || context.clone();
    match cause(why) {
        Some(error @ Error::InvalidCertificate(fault)) => KrafkaError::auth_because(
            format!("{}: {whom}'s certificate is not accepted: {}", context(), certificate(fault, peer)),
            error.clone(),
        ),
        Some(error @ Error::AlertReceived(alert)) => KrafkaError::auth_because(
            format!("{}: {whom} refused with {alert:?}: {}", context(), alerted(*alert, peer)),
            error.clone(),
        ),
        Some(Error::InvalidMessage(_)) => {
            let remedy = "give the port of an SSL or SASL_SSL listener, or leave TLS out";
            let said = format!("{}: {whom} speaks plaintext, or no TLS at least: {remedy}", context());
            KrafkaError::protocol(ProtocolErrorKind::NotKafka, said)
        }
        Some(error @ Error::PeerIncompatible(fault)) => KrafkaError::auth_because(
            format!(
                "{}: there is no version or cipher of TLS that both speak ({fault:?}): {whom} needs TLS 1.2 or 1.3 \
                 (ssl.enabled.protocols)",
                context()
            ),
            error.clone(),
        ),
        Some(error @ Error::PeerMisbehaved(fault)) => {
            let said = format!(
                "{whom} does not keep to the rules of TLS ({fault:?}): is there something between that changes what \
                 is said, or a certificate that this cryptography does not know (Ed25519 in TLS 1.2)?"
            );
            KrafkaError::network_saying(
                format!("{}: {said}", context()),
                std::sync::Arc::new(io::Error::new(why.kind(), error.clone())),
            )
        }
        None if why.kind() == io::ErrorKind::UnexpectedEof => {
            let said = "the peer closed the connection; is it a plaintext listener, or no Kafka broker?";
            KrafkaError::network(context(), io::Error::new(why.kind(), said))
        }
        _ => KrafkaError::network(context(), io::Error::new(why.kind(), why.to_string())),
    }
}

/// Why a peer ended a connection on which the handshake had seemed to succeed: with TLS 1.3 it sees the client's
/// certificate only after the client has begun to speak.
#[cold]
pub(crate) fn explain_late(peer: &Peer, why: &io::Error) -> Option<KrafkaError> {
    matches!(cause(why), Some(Error::AlertReceived(_))).then(|| explain(peer, why))
}

/// What TLS itself has to say.
pub(crate) fn cause(why: &io::Error) -> Option<&Error> {
    why.get_ref().and_then(|inner| inner.downcast_ref::<Error>())
}
