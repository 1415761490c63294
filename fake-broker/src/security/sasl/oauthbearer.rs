//! SASL OAUTHBEARER (RFC 7628), the server's side: a token that somebody else has issued.
//!
//! Two kinds of tokens are understood: those that the builder was given, and, where it allows them, unsecured JSON web
//! tokens, which anybody can write, as Kafka's default handler takes them. A token that is not good is answered with a
//! status in JSON; the client acknowledges it, and only then is refused.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use krafka_protocol::{Bytes, Str};
use serde_json::{Map, Value};

use super::{Failure, Login, SaslMechanism};
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
    fn verify(&self, token: &str, wall_ms: i64) -> Option<(String, i64)> {
        let found = self.known.iter().find(|(known, _)| ***known == *token);
        let (name, ends_ms) = match found {
            Some((_, (name, ends_ms))) => (name.to_string(), *ends_ms),
            None if self.takes_unsecured => read_unsecured(token, wall_ms)?,
            None => return None,
        };
        (ends_ms > wall_ms).then_some((name, ends_ms))
    }
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
        let (authorization, token) = parse(text).ok_or(Failure::InvalidCredentials)?;
        let Some((name, ends_ms)) = verifier.verify(token, wall_ms) else {
            self.is_refused = true;
            return Ok((Bytes::from_static(INVALID.as_bytes()), None));
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

/// Reads `n,[a=name],^Aauth=Bearer token^A[key=value^A…]^A`: the authorization id and the token.
fn parse(text: &str) -> Option<(&str, &str)> {
    let (header, rest) = text.split_once(SEPARATOR)?;
    let authorization = header.strip_prefix("n,")?.strip_suffix(',')?;
    let authorization = if authorization.is_empty() { "" } else { authorization.strip_prefix("a=")? };
    let mut pairs = rest.strip_suffix([SEPARATOR])?.strip_suffix([SEPARATOR])?.split(SEPARATOR);
    let (scheme, token) = pairs.next()?.strip_prefix("auth=")?.split_once(' ')?;
    let token = token.trim_start_matches(' ');
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_extension = |pair: &str| {
        pair.split_once('=')
            .is_some_and(|(key, _)| !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphabetic()))
    };
    let is_whole = scheme.eq_ignore_ascii_case("bearer")
        && !token.is_empty()
        && token.bytes().all(is_token)
        && pairs.all(is_extension);
    is_whole.then_some((authorization, token))
}

/// Reads an unsecured JSON web token: whose it is, and when it ends.
fn read_unsecured(token: &str, wall_ms: i64) -> Option<(String, i64)> {
    let parts: Vec<&str> = token.split('.').collect();
    let [header, claims, ""] = parts[..] else { return None };
    let section = |part: &str| -> Option<Map<String, Value>> {
        let json = URL_SAFE_NO_PAD.decode(part.trim_end_matches('=')).ok()?;
        serde_json::from_slice(&json).ok()
    };
    if section(header)?.get("alg")?.as_str()? != "none" {
        return None;
    }
    let claims = section(claims)?;
    let millis = |seconds: &Value| seconds.as_f64().map(|seconds| (seconds * 1000.0) as i64);
    let ends_ms = millis(claims.get("exp")?)?;
    if let Some(issued) = claims.get("iat")
        && millis(issued).is_none_or(|issued_ms| issued_ms > wall_ms || issued_ms > ends_ms)
    {
        return None;
    }
    let subject = claims.get("sub")?.as_str().filter(|subject| !subject.trim().is_empty())?;
    Some((subject.to_owned(), ends_ms))
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
        assert_eq!(read_unsecured(&good, 1500), Some(("alice".to_owned(), 2000)));

        for (header, claims) in [
            (r#"{"alg":"HS256"}"#, r#"{"sub":"alice","exp":2}"#),
            (none, r#"{"sub":"alice"}"#),
            (none, r#"{"sub":"","exp":2}"#),
            (none, r#"{"exp":2}"#),
            (none, r#"{"sub":"alice","exp":"2"}"#),
            (none, r#"{"sub":"alice","exp":2,"iat":3}"#),
            (none, "alice"),
        ] {
            assert_eq!(read_unsecured(&unsecured(header, claims), 1500), None, "{claims}");
        }
        assert_eq!(read_unsecured(&(good + "signature"), 1500), None);
        assert_eq!(read_unsecured("a.b", 1500), None);
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
        assert_eq!(parse("n,a=al,\u{1}auth=bearer  t\u{1}\u{1}"), Some(("al", "t")));
        for text in [
            "",
            "n,,",
            "n,,\u{1}auth=Basic t\u{1}\u{1}",
            "n,,\u{1}auth=Bearer t\u{1}",
            "n,,\u{1}auth=Bearer \u{1}\u{1}",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
