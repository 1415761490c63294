//! The kinds of ports that a node has, and where each of them is.
//!
//! All nodes have the same listeners. Each has addresses of its own, and what is told on a connection of one listener
//! (Metadata, coordinators, hints) names the addresses of that listener, as Kafka's `advertised.listeners` do.

use std::collections::BTreeMap;
use std::fmt;

/// What a listener speaks below the Kafka protocol, and whether clients must say who they are: Kafka's
/// `listener.security.protocol.map`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SecurityProtocol {
    /// Neither TLS nor SASL.
    Plaintext,
    /// SASL without TLS.
    SaslPlaintext,
    /// TLS without SASL; who the client is, its certificate says, if it has one.
    Ssl,
    /// SASL inside of TLS.
    SaslSsl,
}

impl SecurityProtocol {
    /// Whether clients authenticate by SASL.
    pub fn is_sasl(self) -> bool {
        matches!(self, Self::SaslPlaintext | Self::SaslSsl)
    }

    /// Whether connections are encrypted.
    pub fn is_tls(self) -> bool {
        matches!(self, Self::Ssl | Self::SaslSsl)
    }
}

impl fmt::Display for SecurityProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plaintext => "PLAINTEXT",
            Self::SaslPlaintext => "SASL_PLAINTEXT",
            Self::Ssl => "SSL",
            Self::SaslSsl => "SASL_SSL",
        })
    }
}

/// The listeners of all nodes, the first of which is the one that a client finds who is not told another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listeners(Vec<SecurityProtocol>);

impl Listeners {
    /// These listeners, each once; a plain one if none is named.
    pub(crate) fn new(named: &[SecurityProtocol]) -> Self {
        let mut protocols = Vec::new();
        for protocol in named {
            if !protocols.contains(protocol) {
                protocols.push(*protocol);
            }
        }
        if protocols.is_empty() {
            protocols.push(SecurityProtocol::Plaintext);
        }
        Self(protocols)
    }

    /// The listener that is meant where none is named.
    pub(crate) fn first(&self) -> SecurityProtocol {
        self.0[0]
    }

    /// All of them, in the order in which they were named.
    pub(crate) fn iter(&self) -> impl Iterator<Item = SecurityProtocol> {
        self.0.iter().copied()
    }

    /// The ports of a node in memory: 9092 for the first listener, and so on.
    pub(crate) fn in_memory(&self) -> BTreeMap<SecurityProtocol, u16> {
        self.iter().zip(9092..).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_listener_is_the_one_that_was_named_first() {
        use SecurityProtocol::{Plaintext, SaslPlaintext, Ssl};

        assert_eq!(Listeners::new(&[]).first(), Plaintext);
        let listeners = Listeners::new(&[SaslPlaintext, Ssl, SaslPlaintext]);
        assert_eq!(listeners.first(), SaslPlaintext);
        assert_eq!(listeners.in_memory(), BTreeMap::from([(SaslPlaintext, 9092), (Ssl, 9093)]));
    }
}
