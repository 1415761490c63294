//! `sasl.oauthbearer.*`: tokens of an endpoint, by Java's names.

use std::time::Duration;

use super::Properties;
use super::jaas::LoginModule;
use crate::auth::{Assertion, AssertionAlgorithm, Oidc};
use crate::tls::Tls;

/// The endpoint and what it is shown.
pub(super) fn provider(properties: &Properties, module: &LoginModule, url: &str) -> Result<Oidc, String> {
    if url.starts_with("file:") {
        return Err("sasl.oauthbearer.token.endpoint.url names a file: give a provider to sasl_oauthbearer".to_owned());
    }
    let own = |name: &str, old: &str| properties.get(name).or_else(|| module.option(old));
    let retriever = properties.get("sasl.oauthbearer.jwt.retriever.class").unwrap_or("DefaultJwtRetriever");
    let client_id = own("sasl.oauthbearer.client.credentials.client.id", "clientId");
    let oidc = match retriever.rsplit('.').next().unwrap_or_default() {
        "DefaultJwtRetriever" | "ClientCredentialsJwtRetriever" => {
            let missing = |name: &str| format!("{name} is missing, which the token endpoint needs");
            let client_id = client_id.ok_or_else(|| missing("sasl.oauthbearer.client.credentials.client.id"))?;
            match own("sasl.oauthbearer.client.credentials.client.secret", "clientSecret") {
                Some(secret) => {
                    Oidc::client_credentials(url, client_id, secret).encode_credentials(encodes(properties)?)
                }
                None if has_assertion(properties) => Oidc::client_assertion(url, client_id, assertion(properties)?),
                None => return Err(missing("sasl.oauthbearer.client.credentials.client.secret")),
            }
        }
        "JwtBearerJwtRetriever" => Oidc::jwt_bearer(url, assertion(properties)?),
        other => return Err(format!("sasl.oauthbearer.jwt.retriever.class is {other}, which only Java has")),
    };
    let oidc = match own("sasl.oauthbearer.scope", "scope") {
        Some(scope) => oidc.scope(scope),
        None => oidc,
    };
    let oidc = match properties.millis("sasl.login.read.timeout.ms")? {
        Some(timeout) => oidc.timeout(timeout),
        None => oidc,
    };
    let oidc = match (module.option("ssl.truststore.location"), module.option("ssl.truststore.type")) {
        (None, _) => oidc,
        (Some(path), Some(kind)) if kind.eq_ignore_ascii_case("PEM") => oidc.tls(Tls::new().roots_file(path)),
        (Some(path), kind) => match kind.map(str::to_ascii_uppercase).as_deref() {
            None | Some("JKS" | "PKCS12") => {
                let password = module.option("ssl.truststore.password").unwrap_or_default();
                let tls = Tls::new().with_roots_keystore(path, password);
                oidc.tls(tls.map_err(|why| format!("sasl.jaas.config: {why}"))?)
            }
            Some(_) => {
                return Err("sasl.jaas.config has an ssl.truststore.type that is not JKS, PKCS12 or PEM".to_owned());
            }
        },
    };
    let extensions: Vec<_> = module.options_after("extension_").collect();
    Ok(extensions.into_iter().fold(oidc, |oidc, (name, value)| oidc.extension(name, value)))
}

/// Whether the id and the secret are encoded: not by default, other than by RFC 6749.
fn encodes(properties: &Properties) -> Result<bool, String> {
    match properties.get("sasl.oauthbearer.header.urlencode").unwrap_or("false").to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        other => Err(format!("sasl.oauthbearer.header.urlencode is '{other}': give true or false")),
    }
}

fn has_assertion(properties: &Properties) -> bool {
    properties.names().any(|name| name.starts_with("sasl.oauthbearer.assertion."))
}

fn assertion(properties: &Properties) -> Result<Assertion, String> {
    let get = |name: &str| properties.get(&format!("sasl.oauthbearer.assertion.{name}"));
    if get("template.file").is_some() {
        return Err("sasl.oauthbearer.assertion.template.file is not read: set the claims with Assertion::claim, and \
                    give it to Oidc"
            .to_owned());
    }
    if let Some(path) = get("file") {
        return Ok(Assertion::from_file(path));
    }
    let key = get("private.key.file").ok_or("sasl.oauthbearer.assertion.private.key.file is missing, and .file is")?;
    let mut assertion = Assertion::signed_by_file(key).algorithm(match get("algorithm").unwrap_or("RS256") {
        "RS256" => AssertionAlgorithm::Rs256,
        "ES256" => AssertionAlgorithm::Es256,
        other => return Err(format!("sasl.oauthbearer.assertion.algorithm is '{other}': give RS256 or ES256")),
    });
    if let Some(password) = get("private.key.passphrase") {
        assertion = decrypted(assertion, password)?;
    }
    for claim in ["aud", "iss", "sub"] {
        if let Some(value) = get(&format!("claim.{claim}")) {
            assertion = assertion.claim(claim, value);
        }
    }
    let seconds = |name: &str| -> Result<Option<Duration>, String> {
        let wrong = |value| format!("sasl.oauthbearer.assertion.claim.{name} is '{value}': give seconds");
        let read = |value: &str| value.parse().map(Duration::from_secs).map_err(|_| wrong(value.to_owned()));
        get(&format!("claim.{name}")).map(read).transpose()
    };
    if let Some(life) = seconds("exp.seconds")? {
        assertion = assertion.life(life);
    }
    if let Some(earlier) = seconds("nbf.seconds")? {
        assertion = assertion.begins_before(earlier);
    }
    Ok(assertion.with_id(get("claim.jti.include").is_some_and(|include| include.eq_ignore_ascii_case("true"))))
}

#[cfg(feature = "encrypted-keys")]
#[expect(clippy::unnecessary_wraps, reason = "without the feature it is an error")]
fn decrypted(assertion: Assertion, password: &str) -> Result<Assertion, String> {
    Ok(assertion.key_password(password))
}

#[cfg(not(feature = "encrypted-keys"))]
fn decrypted(_assertion: Assertion, _password: &str) -> Result<Assertion, String> {
    Err("sasl.oauthbearer.assertion.private.key.passphrase is set: build krafka with the feature encrypted-keys"
        .to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, options: &str) -> Result<String, String> {
        let properties = Properties::from_text(text).expect("a good text");
        let module = LoginModule::read(&format!("x.OAuthBearerLoginModule required {options};")).expect("a module");
        provider(&properties, &module, "https://login.example/token").map(|oidc| format!("{oidc:?}"))
    }

    #[track_caller]
    fn assert_shows(text: &str, options: &str, words: &[&str]) {
        let shown = read(text, options).expect("good properties");
        for word in words {
            assert!(shown.contains(word), "{shown} lacks {word}");
        }
        assert!(!shown.contains("hunter2"), "{shown}");
    }

    #[test]
    fn a_secret_is_read_by_both_names() {
        let words = ["https://login.example/token", "client_id: \"billing\"", "scope: Some(\"kafka\")"];

        assert_shows("", "clientId=billing clientSecret=hunter2 scope=kafka", &words);
        let new = "sasl.oauthbearer.client.credentials.client.id=billing\n\
                   sasl.oauthbearer.client.credentials.client.secret=hunter2\nsasl.oauthbearer.scope=kafka";
        assert_shows(new, "", &words);
        // KIP-1025: as Java sends them.
        assert_shows(new, "", &["encodes_credentials: false"]);
        let encoded = format!("{new}\nsasl.oauthbearer.header.urlencode=true");
        assert_shows(&encoded, "", &["encodes_credentials: true"]);
    }

    #[test]
    fn assertions_are_read() {
        let bearer = "sasl.oauthbearer.jwt.retriever.class=o.a.k.JwtBearerJwtRetriever\n";
        let key = "sasl.oauthbearer.assertion.private.key.file=/k.pem\nsasl.oauthbearer.assertion.claim.iss=me\n";

        assert_shows(&format!("{bearer}sasl.oauthbearer.assertion.file=/token"), "", &["File('/token')"]);
        assert_shows(&format!("{bearer}{key}"), "", &["/k.pem", "\"iss\": String(\"me\")"]);
        assert_shows(key, "clientId=billing", &["billing", "/k.pem"]);
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        let bearer = "sasl.oauthbearer.jwt.retriever.class=JwtBearerJwtRetriever\n";
        let key = format!("{bearer}sasl.oauthbearer.assertion.private.key.file=/k.pem\nsasl.oauthbearer.assertion.");
        for (text, options, word) in [
            (String::new(), "", "client.id is missing"),
            (String::new(), "clientId=a", "client.secret is missing"),
            (bearer.to_owned(), "", "private.key.file is missing"),
            (format!("{key}algorithm=HS256"), "", "RS256 or ES256"),
            (format!("{key}claim.exp.seconds=soon"), "", "exp.seconds is 'soon'"),
            (format!("{key}template.file=/t"), "", "template.file"),
            ("sasl.oauthbearer.jwt.retriever.class=my.Own".to_owned(), "", "Own"),
            ("sasl.oauthbearer.header.urlencode=1".to_owned(), "clientId=a clientSecret=b", "true or false"),
            (String::new(), "clientId=a clientSecret=b ssl.truststore.location=x ssl.truststore.type=BCFKS", "PEM"),
        ] {
            let fault = read(&text, options).expect_err("bad properties");
            assert!(fault.contains(word), "'{fault}' lacks '{word}'");
        }
    }
}
