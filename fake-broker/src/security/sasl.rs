//! SASL PLAIN, as far as one connection has come with it.
//!
//! ```text
//!   Greeting ──ApiVersions──▶ Introduced ──SaslHandshake──▶ Authenticating ──token──▶ Done
//!      └────────────────SaslHandshake────────────────────────────▲ │ wrong ──▶ answered and closed
//! ```
//!
//! The rules are those of Kafka's `SaslServerAuthenticator`, checked on 4.4.0. Before the handshake anything but the
//! two requests closes the connection without an answer; after it, anything but a token is answered
//! ILLEGAL_SASL_STATE and then closed. Afterwards, and on a listener without SASL, both SASL requests are answered
//! so and nothing is closed.

use std::collections::BTreeMap;

use krafka_protocol::{ApiKey, ErrorCode, Str};

/// The one mechanism that is enabled.
pub(crate) const PLAIN: &str = "PLAIN";

/// One connection's authentication.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Session {
    /// The listener asks for nothing.
    #[default]
    Open,
    /// Nothing was said yet.
    Greeting,
    /// The client has asked what we speak, which it may do once.
    Introduced,
    /// The mechanism is agreed on, and the client's token is next.
    Authenticating {
        /// Whether the token comes without a request around it, as after version 0 of the handshake.
        is_raw: bool,
    },
    /// The client is the user of that name.
    Done(Str),
}

/// Whether a request is let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// It may be handled.
    Granted,
    /// It is answered ILLEGAL_SASL_STATE, and the connection is closed.
    Refused,
    /// The connection is closed.
    Closed,
}

impl Session {
    /// Whether the connection has come far enough for a request of that API.
    pub(crate) fn entry(&self, key: ApiKey) -> Entry {
        match (self, key) {
            (Self::Open | Self::Done(_), _)
            | (Self::Greeting, ApiKey::ApiVersions | ApiKey::SaslHandshake)
            | (Self::Introduced, ApiKey::SaslHandshake)
            | (Self::Authenticating { .. }, ApiKey::SaslAuthenticate) => Entry::Granted,
            (Self::Greeting | Self::Introduced, _) => Entry::Closed,
            (Self::Authenticating { .. }, _) => Entry::Refused,
        }
    }

    /// Whether the next frame is a bare token.
    pub(crate) fn expects_raw_token(&self) -> bool {
        matches!(self, Self::Authenticating { is_raw: true })
    }

    /// Takes note of an ApiVersions request that was answered.
    pub(crate) fn introduced(&mut self) {
        if *self == Self::Greeting {
            *self = Self::Introduced;
        }
    }

    /// Agrees on a mechanism.
    ///
    /// # Errors
    ///
    /// `ILLEGAL_SASL_STATE` where there is nothing to agree on, `UNSUPPORTED_SASL_MECHANISM` for any other than PLAIN.
    pub(crate) fn handshake(&mut self, mechanism: &str, version: i16) -> Result<(), ErrorCode> {
        match self {
            Self::Greeting | Self::Introduced if mechanism == PLAIN => {
                *self = Self::Authenticating { is_raw: version == 0 };
                Ok(())
            }
            Self::Greeting | Self::Introduced => Err(ErrorCode::UNSUPPORTED_SASL_MECHANISM),
            _ => Err(ErrorCode::ILLEGAL_SASL_STATE),
        }
    }

    /// Checks the client's token. The error says, in Kafka's words, what is wrong with it.
    pub(crate) fn authenticate(&mut self, token: &[u8], users: &BTreeMap<Str, Str>) -> Result<(), String> {
        let user = check_plain(token, users)?;
        *self = Self::Done(user);
        Ok(())
    }
}

/// Reads `[authorization id] NUL user NUL password`.
fn check_plain(token: &[u8], users: &BTreeMap<Str, Str>) -> Result<Str, String> {
    let parts: Vec<&[u8]> = token.split(|byte| *byte == 0).collect();
    let [authorization, user, password] = parts[..] else {
        return Err(format!("Invalid SASL/PLAIN response: expected 3 tokens, got {}", parts.len()));
    };
    let fail = |why: &str| Err(format!("Authentication failed: {why}"));
    if user.is_empty() {
        return fail("username not specified");
    }
    if password.is_empty() {
        return fail("password not specified");
    }
    let known = users.iter().find(|(name, secret)| name.as_bytes() == user && secret.as_bytes() == password);
    let Some((name, _)) = known else {
        return fail("Invalid username or password");
    };
    if !authorization.is_empty() && authorization != user {
        return fail("Client requested an authorization id that is different from username");
    }
    Ok(name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users() -> BTreeMap<Str, Str> {
        BTreeMap::from([(Str::from("alice"), Str::from("secret"))])
    }

    fn after_handshake() -> Session {
        let mut session = Session::Greeting;
        session.handshake(PLAIN, 1).expect("PLAIN is enabled");
        session
    }

    #[test]
    fn every_state_lets_in_what_kafka_lets_in() {
        use Entry::{Closed, Granted, Refused};
        let keys = [ApiKey::ApiVersions, ApiKey::SaslHandshake, ApiKey::SaslAuthenticate, ApiKey::Metadata];
        let table = [
            (Session::Open, [Granted, Granted, Granted, Granted]),
            (Session::Greeting, [Granted, Granted, Closed, Closed]),
            (Session::Introduced, [Closed, Granted, Closed, Closed]),
            (Session::Authenticating { is_raw: false }, [Refused, Refused, Granted, Refused]),
            (Session::Done(Str::from("alice")), [Granted, Granted, Granted, Granted]),
        ];

        for (session, entries) in table {
            assert_eq!(keys.map(|key| session.entry(key)), entries, "{session:?}");
        }
    }

    #[test]
    fn handshake_knows_plain_only_and_happens_once() {
        let mut session = Session::Greeting;
        session.introduced();

        assert_eq!(session.handshake("SCRAM-SHA-256", 1), Err(ErrorCode::UNSUPPORTED_SASL_MECHANISM));
        assert_eq!(session.handshake(PLAIN, 1), Ok(()));
        assert_eq!(session.handshake(PLAIN, 1), Err(ErrorCode::ILLEGAL_SASL_STATE));
        assert_eq!(Session::Open.handshake(PLAIN, 1), Err(ErrorCode::ILLEGAL_SASL_STATE));
    }

    #[test]
    fn right_password_lets_in() {
        for token in [&b"\0alice\0secret"[..], b"alice\0alice\0secret"] {
            let mut session = after_handshake();

            assert_eq!(session.authenticate(token, &users()), Ok(()));
            assert_eq!(session, Session::Done(Str::from("alice")));
        }
    }

    #[test]
    fn wrong_tokens_are_refused_in_kafkas_words() {
        let table = [
            (&b"\0alice\0wrong"[..], "Authentication failed: Invalid username or password"),
            (b"\0nobody\0secret", "Authentication failed: Invalid username or password"),
            (b"\0\0secret", "Authentication failed: username not specified"),
            (b"\0alice\0", "Authentication failed: password not specified"),
            (b"alice\0secret", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
            (
                b"bob\0alice\0secret",
                "Authentication failed: Client requested an authorization id that is different from username",
            ),
        ];

        for (token, words) in table {
            let mut session = after_handshake();
            assert_eq!(session.authenticate(token, &users()), Err(words.to_owned()));
            assert_eq!(session, after_handshake(), "nobody is let in");
        }
    }
}
