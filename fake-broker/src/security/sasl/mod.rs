//! SASL, as far as one connection has come with it.
//!
//! ```text
//!   Greeting ──ApiVersions──▶ Introduced ──SaslHandshake──▶ Authenticating ──tokens──▶ Done
//!      └────────────────SaslHandshake────────────────────────▲ │ wrong ──▶ answered, closed │
//!                                                            └──────SaslHandshake again────┘
//! ```
//!
//! The rules are those of Kafka's `SaslServerAuthenticator`, checked on 4.4.0. Before the handshake anything but the
//! two requests closes the connection without an answer; after it, anything but a token is answered
//! ILLEGAL_SASL_STATE and then closed. Afterwards, and on a listener without SASL, both SASL requests are answered
//! so and nothing is closed.
//!
//! Where sessions have an end, a handshake begins anew (KIP-368), but not twice in a second; who uses a connection
//! after the end is cut off. The one who logs in again must be the same, by the same mechanism; who asks for one that
//! is not enabled is cut off without an answer then.

pub(crate) mod aws_msk_iam;
mod mechanism;
pub(crate) mod oauthbearer;
mod plain;
pub(crate) mod scram;

use std::time::{Duration, Instant};

use krafka_protocol::{ApiKey, Bytes, ErrorCode};

use super::logins::Logins;
use super::principal::Principal;
pub use mechanism::SaslMechanism;

/// How soon after one login again another may begin.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Who a client has shown to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Login {
    pub(crate) principal: Principal,
    pub(crate) mechanism: SaslMechanism,
    /// Whether it showed a delegation token.
    pub(crate) by_token: bool,
    /// When what it showed ends by itself, in milliseconds since 1970.
    pub(crate) ends_ms: Option<i64>,
}

impl Login {
    /// A login that has no end of its own.
    pub(crate) fn new(principal: Principal, mechanism: SaslMechanism) -> Self {
        Self { principal, mechanism, by_token: false, ends_ms: None }
    }
}

/// A login that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) login: Login,
    /// When it must be renewed.
    expires: Option<Instant>,
    /// When it was begun to be renewed the last time.
    begun_again: Option<Instant>,
}

/// An exchange of some mechanism.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Exchange {
    Plain,
    Scram(Box<scram::Exchange>),
    OAuthBearer(oauthbearer::Exchange),
    AwsMskIam,
    /// The client has changed its mechanism, for which it is cut off with its next request, whatever that is.
    Changed,
}

/// One connection's authentication.
#[derive(Clone, Debug, Default, PartialEq)]
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
        mechanism: SaslMechanism,
        exchange: Exchange,
        /// Whether tokens come without a request around them, as after version 0 of the handshake.
        is_raw: bool,
        /// The login that is to be renewed.
        before: Option<Held>,
    },
    /// The client is somebody.
    Done(Held),
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

/// Why a token is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// For a reason that the client is told.
    Said(String),
    /// The client is only told that it failed.
    InvalidCredentials,
    /// The client is told nothing: the connection is closed.
    Unanswered,
}

/// The answer to a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) reply: Bytes,
    /// For how many milliseconds the login holds; 0 before it is complete, and where it has no end.
    pub(crate) lifetime_ms: i64,
}

impl Session {
    /// Whether the connection has come far enough for a request of that API.
    pub(crate) fn entry(&self, key: ApiKey, now: Instant) -> Entry {
        match (self, key) {
            (Self::Done(held), key) if held.has_expired(now) => {
                if key == ApiKey::SaslHandshake && held.may_begin_again(now) { Entry::Granted } else { Entry::Closed }
            }
            (Self::Open | Self::Done(_), _)
            | (Self::Greeting, ApiKey::ApiVersions | ApiKey::SaslHandshake)
            | (Self::Introduced, ApiKey::SaslHandshake)
            | (Self::Authenticating { .. }, ApiKey::SaslAuthenticate) => Entry::Granted,
            (Self::Greeting | Self::Introduced, _) | (Self::Authenticating { exchange: Exchange::Changed, .. }, _) => {
                Entry::Closed
            }
            (Self::Authenticating { .. }, _) => Entry::Refused,
        }
    }

    /// Whether the next frame is a bare token.
    pub(crate) fn expects_raw_token(&self) -> bool {
        matches!(self, Self::Authenticating { is_raw: true, .. })
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
    /// `ILLEGAL_SASL_STATE` where there is nothing to agree on, `UNSUPPORTED_SASL_MECHANISM` for one that is not
    /// enabled.
    pub(crate) fn handshake(
        &mut self,
        mechanism: &str,
        version: i16,
        enabled: &[SaslMechanism],
        now: Instant,
    ) -> Result<(), ErrorCode> {
        let before = match self {
            Self::Greeting | Self::Introduced => None,
            Self::Done(held) if held.may_begin_again(now) => Some(Held { begun_again: Some(now), ..held.clone() }),
            _ => return Err(ErrorCode::ILLEGAL_SASL_STATE),
        };
        let found = enabled.iter().copied().find(|enabled| enabled.name() == mechanism);
        let mechanism = found.ok_or(ErrorCode::UNSUPPORTED_SASL_MECHANISM)?;
        let exchange = match mechanism {
            _ if before.as_ref().is_some_and(|held| held.login.mechanism != mechanism) => Exchange::Changed,
            SaslMechanism::Plain => Exchange::Plain,
            SaslMechanism::ScramSha256 => {
                Exchange::Scram(Box::new(scram::Exchange::new(scram::ScramMechanism::Sha256)))
            }
            SaslMechanism::ScramSha512 => {
                Exchange::Scram(Box::new(scram::Exchange::new(scram::ScramMechanism::Sha512)))
            }
            SaslMechanism::OAuthBearer => Exchange::OAuthBearer(oauthbearer::Exchange::default()),
            SaslMechanism::AwsMskIam => Exchange::AwsMskIam,
        };
        *self = Self::Authenticating { mechanism, exchange, is_raw: version == 0, before };
        Ok(())
    }

    /// Takes the client's next token. The error says, in Kafka's words, what is wrong with it; it is empty where Kafka
    /// gives no answer.
    pub(crate) fn authenticate(
        &mut self,
        token: &[u8],
        logins: &mut Logins,
        now: Instant,
        wall_ms: i64,
    ) -> Result<Step, String> {
        let Self::Authenticating { mechanism, exchange, before, .. } = self else { return Err(String::new()) };
        let stepped = match exchange {
            Exchange::Plain => plain::check(token, &logins.plain)
                .map(|user| (Bytes::new(), Some(Login::new(Principal::user(user), SaslMechanism::Plain)))),
            Exchange::Scram(exchange) => {
                let Logins { scram, tokens, chance, .. } = logins;
                exchange.step(token, |kind, claim| scram.find(tokens, kind, claim), || chance.uuid().to_string())
            }
            Exchange::OAuthBearer(exchange) => exchange.step(token, &logins.oauth, wall_ms),
            Exchange::AwsMskIam => logins
                .aws
                .check(token, wall_ms)
                .map(|(reply, user)| (reply, Some(Login::new(Principal::user(user), SaslMechanism::AwsMskIam)))),
            Exchange::Changed => return Err(String::new()),
        };
        let (reply, login) = stepped.map_err(|failure| match failure {
            Failure::Said(text) => text,
            Failure::Unanswered => String::new(),
            Failure::InvalidCredentials => format!(
                "Authentication failed during {} due to invalid credentials with SASL mechanism {}",
                if before.is_some() { "re-authentication" } else { "authentication" },
                mechanism.name(),
            ),
        })?;
        let Some(login) = login else { return Ok(Step { reply, lifetime_ms: 0 }) };
        if let Some(held) = before
            && held.login.principal != login.principal
        {
            let (old, new) = (&held.login.principal, &login.principal);
            return Err(format!(
                "Cannot change principals during re-authentication from {}.{}: {}.{}",
                old.kind, old.name, new.kind, new.name
            ));
        }
        let lifetime = lifetime(&login, logins.max_reauth, wall_ms);
        let begun_again = before.as_ref().and_then(|held| held.begun_again);
        let expires = lifetime.map(|lifetime| now + lifetime);
        let lifetime_ms = lifetime.map_or(0, |lifetime| i64::try_from(lifetime.as_millis()).unwrap_or(i64::MAX));
        *self = Self::Done(Held { login, expires, begun_again });
        Ok(Step { reply, lifetime_ms })
    }
}

impl Held {
    fn has_expired(&self, now: Instant) -> bool {
        self.expires.is_some_and(|expires| now > expires)
    }

    /// Only a login that has an end is renewed.
    fn may_begin_again(&self, now: Instant) -> bool {
        self.expires.is_some() && self.begun_again.is_none_or(|begun| now >= begun + AGAIN_AFTER)
    }
}

/// What a client is told that asks for something else while it logs in, where the answer has room for words.
pub(crate) fn unexpected(key: ApiKey) -> String {
    let mut name = String::new();
    for letter in key.name().chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    format!("Unexpected Kafka request of type {name} during SASL authentication.")
}

/// For how long a login holds: as long as what was shown, and as the broker allows.
fn lifetime(login: &Login, max_reauth: Option<Duration>, wall_ms: i64) -> Option<Duration> {
    let of_proof = login.ends_ms.map(|ends_ms| {
        let left_ms = ends_ms.saturating_sub(wall_ms).max(0);
        // An end beyond a hundred years would be beyond what the clock can count.
        Duration::from_millis(left_ms.unsigned_abs()).min(Duration::from_secs(100 * 365 * 86_400))
    });
    match (of_proof, max_reauth) {
        (Some(of_proof), Some(max)) => Some(of_proof.min(max)),
        (of_proof, max) => of_proof.or(max),
    }
}

/// Whether this can be a name in a message of SCRAM or OAUTHBEARER: ASCII, with commas and equals signs written by
/// their numbers.
fn is_sasl_name(name: &str) -> bool {
    let is_plain = |part: &str| part.bytes().all(|byte| (0x01..=0x7f).contains(&byte) && byte != b',');
    let mut parts = name.split('=');
    let is_escaped = |part: &str| part.starts_with("2C") || part.starts_with("3D");
    !name.is_empty() && parts.next().is_some_and(is_plain) && parts.all(|part| is_escaped(part) && is_plain(part))
}

#[cfg(test)]
mod tests;
