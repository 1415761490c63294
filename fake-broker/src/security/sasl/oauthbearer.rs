//! SASL OAUTHBEARER (RFC 7628), the server's side: a token that somebody else has issued.
//!
//! Two kinds of tokens are understood: those that the builder was given, and, where it allows them, unsecured JSON web
//! tokens, which anybody can write, as Kafka's default handler takes them. A token that is not good is answered with a
//! status in JSON; the client acknowledges it, and only then is refused. Kafka is not prepared for a token without an
//! algorithm, for another scheme, and for an end that its clock cannot count to: it closes the connection.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use krafka_protocol::{Bytes, Str};
use serde_json::{Deserializer, Map, Value};

use super::{Failure, Login, SaslMechanism, is_sasl_name};
use crate::security::principal::Principal;

/// What separates the parts of the client's message, and is all that it says to a refusal.
const SEPARATOR: char = '\u{1}';
/// How a token that is not good is answered.
const INVALID: &str = r#"{"status":"invalid_token"}"#;

/// Which tokens are good.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verifier {
    /// Whether unsecured JSON web tokens are.
    pub(crate) takes_unsecured: bool,
    /// Tokens that were made known: whose each is, and when it ends, in milliseconds since 1970.
    pub(crate) known: BTreeMap<Str, (Str, i64)>,
}

impl Verifier {
    /// Whether any token is good.
    pub(crate) fn takes_any(&self) -> bool {
        self.takes_unsecured || !self.known.is_empty()
    }

    /// Whose a token is, and when it ends.
    fn verify(&self, token: &str, wall_ms: i64) -> Result<(String, i64), Flaw> {
        let found = self.known.iter().find(|(known, _)| ***known == *token);
        let (name, ends_ms) = match found {
            Some((_, (name, ends_ms))) => (name.to_string(), *ends_ms),
            None if self.takes_unsecured => read_unsecured(token, wall_ms)?,
            None => return Err(Flaw::Invalid),
        };
        if ends_ms > wall_ms { Ok((name, ends_ms)) } else { Err(Flaw::Invalid) }
    }
}

/// What is wrong with a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    /// The client is told so.
    Invalid,
    /// Kafka trips over it.
    Headless,
}

/// One exchange, as far as it has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Exchange {
    is_refused: bool,
}

impl Exchange {
    /// Takes the client's next message, and answers it; at the end with who it is.
    pub(super) fn step(
        &mut self,
        message: &[u8],
        verifier: &Verifier,
        wall_ms: i64,
    ) -> Result<(Bytes, Option<Login>), Failure> {
        let text = std::str::from_utf8(message).map_err(|_| Failure::InvalidCredentials)?;
        if self.is_refused {
            let is_acknowledged = text.chars().eq([SEPARATOR]);
            return Err(if is_acknowledged { Failure::Said(INVALID.to_owned()) } else { Failure::InvalidCredentials });
        }
        let (authorization, token) = parse(text)?;
        let (name, ends_ms) = match verifier.verify(token, wall_ms) {
            Ok(found) => found,
            Err(Flaw::Invalid) => {
                self.is_refused = true;
                return Ok((Bytes::from_static(INVALID.as_bytes()), None));
            }
            Err(Flaw::Headless) => return Err(Failure::Unanswered),
        };
        if !authorization.is_empty() && authorization != name {
            return Err(Failure::Said(format!(
                "Authentication failed: Client requested an authorization id ({authorization}) that is different \
                 from the token's principal name ({name})"
            )));
        }
        let login = Login::new(Principal::user(name), SaslMechanism::OAuthBearer);
        Ok((Bytes::new(), Some(Login { ends_ms: Some(ends_ms), ..login })))
    }
}

/// Reads `n,[a=name],^A(key=value^A)*^A`: the authorization id and the token, which is the last `auth=Bearer token`.
fn parse(text: &str) -> Result<(&str, &str), Failure> {
    let (authorization, auth) = split(text).ok_or(Failure::InvalidCredentials)?;
    let (scheme, token) = auth.split_once(' ').ok_or(Failure::InvalidCredentials)?;
    let token = token.trim_start_matches(' ');
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_whole = |text: &str, is_meant: fn(u8) -> bool| !text.is_empty() && text.bytes().all(is_meant);
    if !is_whole(scheme, is_scheme) || !is_whole(token, is_token) {
        return Err(Failure::InvalidCredentials);
    }
    if scheme.eq_ignore_ascii_case("bearer") { Ok((authorization, token)) } else { Err(Failure::Unanswered) }
}

/// The authorization id, which may be empty, and what `auth` is.
fn split(text: &str) -> Option<(&str, &str)> {
    let (header, rest) = text.split_once(SEPARATOR)?;
    let authorization = header.strip_prefix("n,")?.strip_suffix(',')?;
    let authorization = match authorization {
        "" => "",
        named => named.strip_prefix("a=").filter(|name| is_sasl_name(name))?,
    };
    let is_value = |byte: u8| (0x21..=0x7e).contains(&byte) || b" \t\r\n".contains(&byte);
    let mut auth = None;
    for pair in rest.strip_suffix([SEPARATOR])?.strip_suffix([SEPARATOR])?.split(SEPARATOR) {
        let (key, value) = pair.split_once('=')?;
        let is_key = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphabetic());
        if !is_key || value.is_empty() || !value.bytes().all(is_value) {
            return None;
        }
        if key == "auth" {
            auth = Some(value);
        }
    }
    Some((authorization, auth?))
}

/// Reads an unsecured JSON web token: whose it is, and when it ends.
fn read_unsecured(token: &str, wall_ms: i64) -> Result<(String, i64), Flaw> {
    let parts: Vec<&str> = token.split('.').collect();
    let [header, claims, ""] = parts[..] else { return Err(Flaw::Invalid) };
    let header = section(header).ok_or(Flaw::Invalid)?;
    let claims = section(claims).ok_or(Flaw::Invalid)?;
    if text(header.get("alg").ok_or(Flaw::Headless)?).as_deref() != Some("none") {
        return Err(Flaw::Invalid);
    }
    let (subject, ends_ms) = read_claims(&claims, wall_ms).ok_or(Flaw::Invalid)?;
    // Kafka counts the nanoseconds until the end, in 64 bits.
    let is_countable = ends_ms.saturating_sub(wall_ms).checked_mul(1_000_000).is_some();
    if is_countable { Ok((subject, ends_ms)) } else { Err(Flaw::Headless) }
}

/// A part of a token. What is JSON and no object has no members, and what stands behind the JSON is passed over.
fn section(part: &str) -> Option<Map<String, Value>> {
    let json = URL_SAFE_NO_PAD.decode(part.trim_end_matches('=')).ok()?;
    if json.is_empty() {
        return Some(Map::new());
    }
    match Deserializer::from_slice(&json).into_iter().next()?.ok()? {
        Value::Object(members) => Some(members),
        _ => Some(Map::new()),
    }
}

fn read_claims(claims: &Map<String, Value>, wall_ms: i64) -> Option<(String, i64)> {
    let millis = |seconds: &Value| seconds.as_f64().map(|seconds| (seconds * 1000.0) as i64);
    let ends_ms = millis(claims.get("exp")?)?;
    if let Some(issued) = claims.get("iat")
        && millis(issued).is_none_or(|issued_ms| issued_ms > wall_ms || issued_ms > ends_ms)
    {
        return None;
    }
    if claims.get("scope").is_some_and(Value::is_number) {
        return None;
    }
    let subject = text(claims.get("sub")?).filter(|subject| !subject.trim().is_empty())?;
    Some((subject, ends_ms))
}

/// A value as text, as Java's reader has it: of all but numbers and arrays.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Null => Some(value.to_string()),
        Value::Object(_) => Some(String::new()),
        Value::Number(_) | Value::Array(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unsecured(header: &str, claims: &str) -> String {
        format!("{}.{}.", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims))
    }

    #[test]
    fn unsecured_tokens_name_a_subject_and_an_end() {
        let none = r#"{"alg":"none"}"#;
        let good = unsecured(none, r#"{"sub":"alice","exp":2,"iat":1}"#);
        assert_eq!(read_unsecured(&good, 1500), Ok(("alice".to_owned(), 2000)));

        for (header, claims) in [
            (r#"{"alg":"HS256"}"#, r#"{"sub":"alice","exp":2}"#),
            (none, r#"{"sub":"alice"}"#),
            (none, r#"{"sub":"","exp":2}"#),
            (none, r#"{"exp":2}"#),
            (none, r#"{"sub":"alice","exp":"2"}"#),
            (none, r#"{"sub":"alice","exp":2,"iat":3}"#),
            (none, r#"{"sub":"alice","exp":2,"scope":5}"#),
            (none, "alice"),
            (none, "[]"),
            ("{}", "alice"),
        ] {
            assert_eq!(read_unsecured(&unsecured(header, claims), 1500), Err(Flaw::Invalid), "{claims}");
        }
        assert_eq!(read_unsecured(&(good + "signature"), 1500), Err(Flaw::Invalid));
        assert_eq!(read_unsecured("a.b", 1500), Err(Flaw::Invalid));
    }

    #[test]
    fn kafka_trips_over_some_tokens() {
        for (header, claims) in [
            ("{}", r#"{"sub":"alice","exp":2}"#),
            ("[]", r#"{"sub":"alice","exp":2}"#),
            ("", r#"{"sub":"alice","exp":2}"#),
            (r#"{"alg":"none"}"#, r#"{"sub":"alice","exp":1e11}"#),
        ] {
            assert_eq!(read_unsecured(&unsecured(header, claims), 1500), Err(Flaw::Headless), "{header} {claims}");
        }
    }

    #[test]
    fn what_javas_reader_makes_of_json_is_taken() {
        for (claims, name) in
            [(r#"{"sub":null,"exp":2}"#, "null"), (r#"{"sub":true,"exp":2}"#, "true"), (r#"{"sub":"a","exp":2}}"#, "a")]
        {
            let token = unsecured(r#"{"alg":"none"}"#, claims);
            assert_eq!(read_unsecured(&token, 1500), Ok((name.to_owned(), 2000)), "{claims}");
        }
    }

    #[test]
    fn tokens_end_and_refusals_are_acknowledged() {
        let verifier =
            Verifier { takes_unsecured: false, known: BTreeMap::from([("t".into(), ("alice".into(), 2000))]) };
        let message = b"n,,\x01auth=Bearer t\x01scope=x\x01\x01";

        let (answer, who) = Exchange::default().step(message, &verifier, 1999).expect("a good token");
        assert_eq!((answer.len(), who.map(|login| login.ends_ms)), (0, Some(Some(2000))));

        let mut exchange = Exchange::default();
        let (answer, who) = exchange.step(message, &verifier, 2000).expect("an answer");
        assert_eq!((&answer[..], who), (INVALID.as_bytes(), None));
        assert_eq!(exchange.step(b"\x01", &verifier, 2000), Err(Failure::Said(INVALID.to_owned())));
    }

    #[test]
    fn messages_are_read_to_the_letter() {
        assert_eq!(parse("n,a=al,\u{1}auth=bearer  t\u{1}\u{1}"), Ok(("al", "t")));
        assert_eq!(parse("n,,\u{1}a=b\u{1}auth=x\u{1}auth=Bearer t\u{1}\u{1}"), Ok(("", "t")), "the last one counts");
        for text in [
            "",
            "n,,",
            "n,a=,\u{1}auth=Bearer t\u{1}\u{1}",
            "n,,\u{1}auth=Bearer t\u{1}",
            "n,,\u{1}auth=Bearer \u{1}\u{1}",
            "n,,\u{1}auth=Bearer t\u{1}auth=x\u{1}\u{1}",
            "n,,\u{1}auth=Bearer t\u{1}a=\u{1}\u{1}",
            "n,,\u{1}auth=Bearer t\u{1}a=\u{e9}\u{1}\u{1}",
        ] {
            assert_eq!(parse(text), Err(Failure::InvalidCredentials), "{text:?}");
        }
        assert_eq!(parse("n,,\u{1}auth=Basic t\u{1}\u{1}"), Err(Failure::Unanswered));
    }
}
