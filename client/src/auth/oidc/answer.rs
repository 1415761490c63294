//! What a token endpoint answers: a token, or why not (RFC 6749, section 5).

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use super::endpoint::Endpoint;
use super::spoken::Spoken;
use crate::error::KrafkaError;

/// The longest explanation of an endpoint that is repeated in an error.
const MAX_EXPLANATION: usize = 300;

/// The longest life that is believed: a hundred years, which a clock can be moved on by.
const MAX_LIFE_SECS: f64 = 100.0 * 365.0 * 86_400.0;

/// A token, and how long it holds, as far as that is said.
#[derive(Debug)]
pub(super) struct Granted {
    pub(super) token: String,
    /// By the endpoint's `expires_in`.
    pub(super) life: Option<Duration>,
    /// By the token's own `exp`, if it is a JWT, where the endpoint says nothing.
    pub(super) ends: Option<SystemTime>,
}

/// Reads an answer.
///
/// # Errors
/// [`KrafkaError::Auth`] when the endpoint refuses; a network error, which can be retried, when it is in trouble.
pub(super) fn read(endpoint: &Endpoint, status: u16, body: &[u8], spoken: &Spoken) -> Result<Granted, KrafkaError> {
    let json: Option<Value> = serde_json::from_slice(body).ok();
    match status {
        200 => granted(endpoint, json.as_ref(), spoken),
        // 408 and 429 ask for patience.
        400..=499 if status != 408 && status != 429 => {
            let said = explained(json.as_ref(), body, spoken);
            let message = format!(
                "the token endpoint {endpoint} refuses with status {status}{said}: check the client's id, its secret \
                 or assertion, and the scope"
            );
            Err(KrafkaError::auth(message))
        }
        300..=399 => Err(KrafkaError::auth(format!(
            "the token endpoint {endpoint} sends elsewhere (status {status}): give the URL of the endpoint itself"
        ))),
        _ => {
            let said = explained(json.as_ref(), body, spoken);
            let why = io::Error::other(format!("the endpoint is in trouble: status {status}{said}"));
            Err(KrafkaError::network(format!("asking {endpoint} for a token"), why))
        }
    }
}

fn granted(endpoint: &Endpoint, json: Option<&Value>, spoken: &Spoken) -> Result<Granted, KrafkaError> {
    let wrong = |why: &str| KrafkaError::auth(format!("the token endpoint {endpoint} answers {why}"));
    let Some(Value::Object(fields)) = json else {
        return Err(wrong("no JSON object: is it a token endpoint?"));
    };
    let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
    let Some(token) = text("access_token") else {
        return Err(wrong("without an access_token: does the client get one with this grant?"));
    };
    if let Some(other) = text("token_type").filter(|kind| !kind.eq_ignore_ascii_case("bearer")) {
        let other: String = spoken.strike(other).chars().take(40).collect();
        return Err(wrong(&format!("with a token of the type {other:?}, and only bearer tokens can be used")));
    }
    // A number by RFC 6749; some write it as a string.
    let seconds =
        fields.get("expires_in").and_then(|life| life.as_f64().or_else(|| life.as_str()?.trim().parse().ok()));
    let life = seconds.filter(|life| life.is_finite()).map(|life| life.clamp(0.0, MAX_LIFE_SECS));
    let life = life.map(Duration::from_secs_f64);
    let ends = if life.is_some() { None } else { end_of(token) };
    Ok(Granted { token: token.to_owned(), life, ends })
}

/// When a JWT says that it ends. Whether that is true is the broker's to check.
fn end_of(token: &str) -> Option<SystemTime> {
    let claims = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    let ends = claims.get("exp")?.as_f64().filter(|ends| (0.0..=MAX_LIFE_SECS).contains(ends))?;
    Some(UNIX_EPOCH + Duration::from_secs_f64(ends))
}

/// What the endpoint says about its refusal, in the fields that RFC 6749 has for it. A body that has none may be
/// anything: a gateway's page, which repeats the request.
fn explained(json: Option<&Value>, body: &[u8], spoken: &Spoken) -> String {
    let field = |name: &str| json.and_then(|json| json.get(name)).and_then(Value::as_str).unwrap_or_default();
    let said = match (field("error"), field("error_description")) {
        ("", "") if body.is_empty() => return String::new(),
        ("", "") => return format!(" (and {} bytes that are no OAuth error)", body.len()),
        (error, "") => error.to_owned(),
        (error, description) => format!("{error}: {description}"),
    };
    let said: String = said.chars().filter(|c| !c.is_control()).collect();
    let said: String = spoken.strike(&said).chars().take(MAX_EXPLANATION).collect();
    if said.trim().is_empty() { String::new() } else { format!(" ({})", said.trim()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Secret;

    fn answered(status: u16, body: &str) -> Result<Granted, KrafkaError> {
        let mut spoken = Spoken::default();
        spoken.note(&Secret::new("hunter 2"));
        read(&Endpoint::parse("https://login.example/token").expect("a good URL"), status, body.as_bytes(), &spoken)
    }

    #[test]
    fn a_token_is_read_with_its_life() {
        let granted = answered(200, r#"{"access_token":"t0ken","token_type":"Bearer","expires_in":300}"#);
        let granted = granted.expect("a token");
        assert_eq!((&*granted.token, granted.life), ("t0ken", Some(Duration::from_secs(300))));

        for (life, expected) in [("\"60\"", Some(60)), ("-5", Some(0)), ("1e300", Some(3_153_600_000)), ("[]", None)] {
            let granted = answered(200, &format!(r#"{{"access_token":"t","expires_in":{life}}}"#)).expect("a token");
            assert_eq!(granted.life, expected.map(Duration::from_secs), "{life}");
        }
    }

    #[test]
    fn a_jwt_tells_its_own_end_where_the_endpoint_does_not() {
        let jwt = format!("e30.{}.x", URL_SAFE_NO_PAD.encode(r#"{"exp":1772323199}"#));

        let said = answered(200, &format!(r#"{{"access_token":"{jwt}"}}"#)).expect("a token");
        assert_eq!(said.ends, Some(UNIX_EPOCH + Duration::from_secs(1_772_323_199)));
        let better = answered(200, &format!(r#"{{"access_token":"{jwt}","expires_in":9}}"#)).expect("a token");
        assert_eq!((better.life, better.ends), (Some(Duration::from_secs(9)), None));
        assert_eq!(answered(200, r#"{"access_token":"opaque"}"#).expect("a token").ends, None);
    }

    #[test]
    fn a_refusal_is_told_in_the_endpoints_words() {
        let body = r#"{"error":"invalid_client","error_description":"no such\u0000 client"}"#;
        for (status, body, words) in [
            (401, body, "status 401 (invalid_client: no such client)"),
            (400, r#"{"error":"invalid_scope"}"#, "(invalid_scope)"),
            (404, "<html>hunter 2</html>", "(and 21 bytes that are no OAuth error)"),
            (401, r#"{"error":"no client hun\u0000ter+2"}"#, "(no client [hidden])"),
            (403, "", "refuses with status 403: check"),
            (302, "", "sends elsewhere"),
            (200, "<html>", "no JSON object"),
            (200, r#"{"id_token":"x"}"#, "without an access_token"),
            (200, r#"{"access_token":"x","token_type":"mac"}"#, "\"mac\""),
        ] {
            let error = answered(status, body).expect_err("no token");
            assert!(error.to_string().contains(words), "'{error}' lacks '{words}'");
            assert!(matches!(error, KrafkaError::Auth { .. }), "{error:?}");
        }
    }

    #[test]
    fn an_endpoint_in_trouble_may_be_asked_again() {
        for status in [408, 429, 500, 503, 100] {
            let error = answered(status, "{}").expect_err("no token");
            assert!(error.is_retriable() && error.to_string().contains(&status.to_string()), "{error:?}");
        }
    }

    #[test]
    fn a_long_explanation_is_cut() {
        let error = answered(400, &format!(r#"{{"error":"{}"}}"#, "x".repeat(100_000))).expect_err("no token");

        assert!(error.to_string().len() < 600);
    }
}
