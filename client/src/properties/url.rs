//! Bootstrap servers as a URL: `kafka://user:password@host:port,host:port/?name=value&name=value`.
//!
//! A URL says some things by its form: its scheme whether there is TLS, a user that there is SASL. What it leaves open
//! is decided only when the settings beside it are known, and what contradicts itself is an error: the one that is
//! passed over would be the one that was to protect.

use zeroize::Zeroizing;

use super::apply::Protocol;
use super::{Properties, names};
use crate::bootstrap;

/// A URL, taken apart.
pub(super) struct Url {
    is_tls: bool,
    user: Option<(String, Zeroizing<String>)>,
    settings: Properties,
}

impl Url {
    /// Whether this is a URL of ours, though perhaps a wrong one.
    pub(super) fn is_one(text: &str) -> bool {
        let scheme = text.trim().split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        scheme.is_some_and(|scheme| scheme == "kafkas" || scheme == "kafka" || scheme.starts_with("kafka+"))
    }

    /// # Errors
    /// What is wrong with it, in words that go on from "the URL". Nothing that may be secret is in them.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let (scheme, rest) = text.trim().split_once("://").ok_or("has no scheme: write kafka:// or kafka+tls://")?;
        // RFC 3986: the case of a scheme does not matter.
        let is_tls = match scheme.to_ascii_lowercase().as_str() {
            "kafka" => false,
            "kafka+tls" | "kafka+ssl" | "kafkas" => true,
            _ => return Err("begins with neither kafka:// nor kafka+tls://".to_owned()),
        };
        let (authority, query) = rest.split_once('?').unwrap_or((rest, ""));
        let authority = authority.strip_suffix('/').unwrap_or(authority);
        let (user, servers) = match authority.rsplit_once('@') {
            Some((user, servers)) => (Some(user), servers),
            None if query.contains('@') && bootstrap::parse(authority).is_err() => {
                return Err("has a '?' before its '@': in a user name or a password write it as %3F".to_owned());
            }
            None => (None, authority),
        };
        if servers.contains('/') {
            return Err("has a path: settings stand behind a '?'".to_owned());
        }
        let mut settings = Properties::default();
        settings.set("bootstrap.servers", servers);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or("has a setting without a '='")?;
            let name = decoded(name)?;
            names::judge_strictly(&name)?;
            if settings.get(&name).is_some() {
                return Err(format!("has {name} twice"));
            }
            settings.set(&name, decoded(value)?);
        }
        let user = match user {
            None => None,
            Some(user) => {
                let password = user.split_once(':').ok_or("has a user without a password: write user:password@")?;
                Some((decoded(password.0)?, Zeroizing::new(decoded(password.1)?)))
            }
        };
        Ok(Self { is_tls, user, settings })
    }

    /// What the URL says together with the settings beside it.
    ///
    /// # Errors
    /// What contradicts itself, in words that go on from "the URL".
    pub(super) fn with(self, beside: &Properties) -> Result<Properties, String> {
        let Self { is_tls, user, settings } = self;
        let of_query = |name: &str| settings.get(name).is_some();
        let asks_for_sasl = user.is_some() || of_query("sasl.mechanism") || of_query("sasl.jaas.config");
        let mut all = settings.with(beside)?;
        match Protocol::of(&all).map_err(|why| format!("cannot be read: {why}"))? {
            None => {
                let is_sasl =
                    asks_for_sasl || all.get("sasl.mechanism").is_some() || all.get("sasl.jaas.config").is_some();
                all.set("security.protocol", Protocol { is_sasl, is_tls }.name());
            }
            Some(protocol) if is_tls && !protocol.is_tls => {
                return Err(format!("asks for TLS, and security.protocol={} is without", protocol.name()));
            }
            Some(protocol) if asks_for_sasl && !protocol.is_sasl => {
                return Err(format!(
                    "says who the client is, and security.protocol={} is without SASL: give SASL_SSL, or \
                     SASL_PLAINTEXT",
                    protocol.name()
                ));
            }
            Some(_) => {}
        }
        if let Some((name, password)) = user {
            if all.get("sasl.jaas.config").is_some() {
                return Err("has a user, and sasl.jaas.config names one, too: leave one of them out".to_owned());
            }
            let module = match all.get("sasl.mechanism") {
                None | Some("PLAIN") => "PlainLoginModule",
                Some("SCRAM-SHA-256" | "SCRAM-SHA-512") => "ScramLoginModule",
                Some(other) => return Err(format!("has a user and a password, which {other} does not take")),
            };
            if all.get("sasl.mechanism").is_none() {
                all.set("sasl.mechanism", "PLAIN");
            }
            // With room for all, each letter with a backslash: a text that grows leaves a copy of itself behind.
            let mut jaas = String::with_capacity(100 + 2 * (name.len() + password.len()));
            jaas.push_str(module);
            for (option, value) in [(" required username=\"", &*name), ("\" password=\"", &*password)] {
                jaas.push_str(option);
                for letter in value.chars() {
                    if matches!(letter, '\\' | '"') {
                        jaas.push('\\');
                    }
                    jaas.push(letter);
                }
            }
            jaas.push_str("\";");
            all.set("sasl.jaas.config", jaas);
        }
        Ok(all)
    }
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
