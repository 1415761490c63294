//! Bootstrap servers as a URL: `kafka://user:password@host:port,host:port/?name=value&name=value`.

use super::Properties;

/// Reads a URL; nothing if the text is none of ours.
pub(super) fn read(text: &str) -> Option<Result<Properties, String>> {
    let (scheme, rest) = text.trim().split_once("://")?;
    let is_tls = match scheme {
        "kafka" => false,
        "kafka+tls" | "kafkas" => true,
        _ => return None,
    };
    Some(properties(is_tls, rest))
}

fn properties(is_tls: bool, rest: &str) -> Result<Properties, String> {
    let mut properties = Properties::default();
    let (authority, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = authority.strip_suffix('/').unwrap_or(authority);
    let (user, servers) = match authority.rsplit_once('@') {
        Some((user, servers)) => (Some(user), servers),
        None => (None, authority),
    };
    if servers.contains('/') {
        return Err("has a path: settings stand behind a '?'".to_owned());
    }
    properties.set("bootstrap.servers", servers);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').ok_or("has a setting without a '='")?;
        properties.set(&decoded(name)?, decoded(value)?);
    }
    let is_sasl = user.is_some() || properties.get("sasl.mechanism").is_some();
    if properties.get("security.protocol").is_none() {
        properties.set(
            "security.protocol",
            match (is_sasl, is_tls) {
                (false, false) => "PLAINTEXT",
                (false, true) => "SSL",
                (true, false) => "SASL_PLAINTEXT",
                (true, true) => "SASL_SSL",
            },
        );
    }
    if let Some(user) = user {
        let (name, password) = user.split_once(':').ok_or("has a user without a password: write user:password@")?;
        let module = match properties.get("sasl.mechanism") {
            None | Some("PLAIN") => "PlainLoginModule",
            Some("SCRAM-SHA-256" | "SCRAM-SHA-512") => "ScramLoginModule",
            Some(other) => return Err(format!("has a user and a password, which {other} does not take")),
        };
        if properties.get("sasl.mechanism").is_none() {
            properties.set("sasl.mechanism", "PLAIN");
        }
        let quoted = |text: &str| decoded(text).map(|text| text.replace('\\', "\\\\").replace('"', "\\\""));
        let (name, password) = (quoted(name)?, zeroize::Zeroizing::new(quoted(password)?));
        let jaas = format!("{module} required username=\"{name}\" password=\"{}\";", *password);
        properties.set("sasl.jaas.config", jaas);
    }
    Ok(properties)
}

/// The text without its percent signs.
fn decoded(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        let (Some(high), Some(low)) = (digit(rest.next()), digit(rest.next())) else {
            return Err("has a '%' without two hexadecimal digits behind it".to_owned());
        };
        bytes.push((16 * high + low) as u8);
    }
    String::from_utf8(bytes).map_err(|_| "has bytes behind '%' that are no UTF-8".to_owned())
}
