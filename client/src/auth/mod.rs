//! Who the client is: SASL mechanisms and the secrets that they use.

mod plain;
mod secret;

use bytes::Bytes;

pub(crate) use self::plain::Plain;
pub(crate) use self::secret::Secret;

/// How the client authenticates. One variant per SASL mechanism.
#[derive(Clone, Debug)]
pub(crate) enum Credentials {
    /// A user name and a password, sent as they are (RFC 4616): use TLS with it.
    Plain(Plain),
}

impl Credentials {
    /// The mechanism's registered name.
    pub(crate) fn mechanism(&self) -> &'static str {
        match self {
            Self::Plain(_) => "PLAIN",
        }
    }

    /// What the client says first.
    pub(crate) fn initial_response(&self) -> Bytes {
        match self {
            Self::Plain(plain) => plain.initial_response(),
        }
    }
}
