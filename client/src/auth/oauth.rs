//! SASL OAUTHBEARER (RFC 7628, KIP-255): a token that somebody else issued says who the client is.

use std::collections::BTreeMap;
use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::time::SystemTime;

use bytes::Bytes;

use super::exchange::{Next, wiped};
use super::{Secret, SecretText};

/// The longest explanation of a broker that is repeated in an error.
const MAX_EXPLANATION: usize = 500;

/// Why a [`TokenProvider`] has no token.
pub type TokenError = Box<dyn Error + Send + Sync>;

/// What [`TokenProvider::token`] returns: a token, at some time.
pub type ProvidingToken<'a> = Pin<Box<dyn Future<Output = Result<BearerToken, TokenError>> + Send + 'a>>;

/// Brings bearer tokens, for SASL OAUTHBEARER.
///
/// The client asks for the first token when it makes its first connection, and for the next one when four fifths of a
/// token's life are over, so that no connection has to wait for it. All connections of a handle share one token and
/// one request for it. When a request fails, the old token is used as long as it holds, and the provider is left alone
/// for a second, then for two, four and so on up to 30 (±20 %): who needs a token meanwhile and has none hears the
/// failure.
///
/// ```
/// use std::time::{Duration, SystemTime};
///
/// use krafka::{BearerToken, Kafka, ProvidingToken, TokenProvider};
///
/// struct FromFile(std::path::PathBuf);
///
/// impl TokenProvider for FromFile {
///     fn token(&self) -> ProvidingToken<'_> {
///         Box::pin(async {
///             let text = std::fs::read_to_string(&self.0)?;
///             Ok(BearerToken::new(text.trim()).expires_at(SystemTime::now() + Duration::from_secs(300)))
///         })
///     }
/// }
///
/// let builder = Kafka::builder("kafka:9093").sasl_oauthbearer(FromFile("/var/run/token".into()));
/// ```
pub trait TokenProvider: Send + Sync + 'static {
    /// Asks for a token. The client bounds the call by [`connect_timeout`](crate::KafkaBuilder::connect_timeout), by
    /// dropping the future; what cannot be used (empty, or with a blank in it) is taken for a failure.
    fn token(&self) -> ProvidingToken<'_>;

    /// What to call the provider in errors, such as "the token service at …". Nothing secret.
    fn name(&self) -> String {
        "the token provider".to_owned()
    }
}

/// A token that is always the same, for tests and for what lives shorter than it.
impl TokenProvider for BearerToken {
    fn token(&self) -> ProvidingToken<'_> {
        Box::pin(std::future::ready(Ok(self.clone())))
    }
}

/// A bearer token: a JWT as a rule, in its compact form.
///
/// `Debug` hides it, and its memory is wiped when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct BearerToken {
    value: Secret,
    expires_at: Option<SystemTime>,
    extensions: BTreeMap<String, String>,
}

impl BearerToken {
    /// A token that is not known to end. Say when it does, if it does, with [`expires_at`](Self::expires_at).
    pub fn new(token: impl Into<String>) -> Self {
        Self { value: Secret::new(token), expires_at: None, extensions: BTreeMap::new() }
    }

    /// Sets when the token ends. Four fifths of the time until then it is used; then another one is asked for.
    #[must_use]
    pub fn expires_at(mut self, time: SystemTime) -> Self {
        self.expires_at = Some(time);
        self
    }

    /// Adds a SASL extension (KIP-342): a name of letters, such as `logicalCluster`, and a value, which the broker
    /// gets beside the token.
    #[must_use]
    pub fn extension(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.extensions.insert(name.into(), value.into());
        self
    }

    /// When the token ends, if that is known.
    pub(crate) fn end(&self) -> Option<SystemTime> {
        self.expires_at
    }

    /// Why the mechanism cannot carry it, if it cannot.
    pub(crate) fn fault(&self) -> Option<String> {
        let token = self.value.expose();
        if token.is_empty() {
            return Some("the token is empty".to_owned());
        }
        // RFC 6750: letters, digits and a few signs; nothing that could end the field that it stands in.
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Some(
                "the token has a character that no bearer token has, such as a blank or a line's end".to_owned(),
            );
        }
        self.extensions.iter().find_map(|(name, value)| {
            if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphabetic()) {
                Some(format!("the extension's name {name:?} must be of letters"))
            } else if name == "auth" {
                Some("an extension must not be called 'auth'".to_owned())
            } else if value.is_empty() || !value.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t' | b'\r' | b'\n'))
            {
                Some(format!("the value of the extension '{name}' must be of printable ASCII characters"))
            } else {
                None
            }
        })
    }
}

/// One exchange, as far as it has come.
#[derive(Debug)]
pub(crate) struct Exchange {
    token: BearerToken,
    complaint: Option<String>,
}

impl Exchange {
    /// The token must be [without fault](BearerToken::fault).
    pub(crate) fn new(token: BearerToken) -> Self {
        Self { token, complaint: None }
    }

    /// `n,,^Aauth=Bearer TOKEN^A[NAME=VALUE^A…]^A`, in which `^A` is the byte 1.
    pub(crate) fn initial_response(&self) -> Bytes {
        let mut message = SecretText::of(format_args!("n,,\x01auth=Bearer {}\x01", self.token.value.expose()));
        for (name, value) in &self.token.extensions {
            message.push_str(name);
            message.push('=');
            message.push_str(value);
            message.push('\x01');
        }
        message.push('\x01');
        wiped(message)
    }

    /// A broker that accepts says nothing; one that does not explains itself in JSON, and wants to hear a byte 1
    /// before it refuses.
    pub(crate) fn answer(&mut self, challenge: &[u8]) -> Result<Next, String> {
        if challenge.is_empty() {
            return Ok(Next::Done);
        }
        if self.complaint.is_some() {
            return Err("the broker goes on explaining instead of refusing".to_owned());
        }
        let explanation = String::from_utf8_lossy(challenge);
        self.complaint = Some(explanation.chars().filter(|c| !c.is_control()).take(MAX_EXPLANATION).collect());
        Ok(Next::Say(Bytes::from_static(b"\x01")))
    }

    /// Why the broker is about to refuse, in its own words.
    pub(crate) fn complaint(&self) -> Option<&str> {
        self.complaint.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(token: BearerToken) -> String {
        String::from_utf8(Exchange::new(token).initial_response().to_vec()).expect("text")
    }

    #[test]
    fn the_message_is_that_of_the_rfc() {
        assert_eq!(said(BearerToken::new("a.b.c")), "n,,\x01auth=Bearer a.b.c\x01\x01");
        assert_eq!(
            said(BearerToken::new("t").extension("traceId", "7").extension("logicalCluster", "lkc 1")),
            "n,,\x01auth=Bearer t\x01logicalCluster=lkc 1\x01traceId=7\x01\x01"
        );
    }

    /// A token is somebody else's: what it holds must not end the field that it stands in.
    #[test]
    fn what_could_break_the_message_is_refused() {
        let fault = |token: BearerToken| token.fault().expect("a fault");

        assert!(fault(BearerToken::new("")).contains("empty"));
        assert!(fault(BearerToken::new("a\x01user=root")).contains("character"));
        assert!(fault(BearerToken::new("a.b.c\n")).contains("line's end"));
        assert!(fault(BearerToken::new("t").extension("auth", "x")).contains("'auth'"));
        assert!(fault(BearerToken::new("t").extension("a b", "x")).contains("letters"));
        assert!(fault(BearerToken::new("t").extension("ab", "x\x01")).contains("'ab'"));
    }

    #[test]
    fn a_refusal_is_heard_out() {
        let mut exchange = Exchange::new(BearerToken::new("t"));

        let next = exchange.answer(br#"{"status":"invalid_token"}"#);

        assert!(matches!(next, Ok(Next::Say(byte)) if byte == "\x01"));
        assert_eq!(exchange.complaint(), Some(r#"{"status":"invalid_token"}"#));
        assert!(exchange.answer(b"{}").is_err(), "a broker that goes on would keep the client for ever");
        assert!(matches!(exchange.answer(b""), Ok(Next::Done)));
    }

    #[test]
    fn debug_hides_the_token() {
        let token = BearerToken::new("hunter2");

        assert!(!format!("{token:?}").contains("hunter2"));
    }
}
