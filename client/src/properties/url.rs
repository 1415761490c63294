//! Bootstrap servers as a URL: `kafka://user:password@host:port,host:port/?name=value&name=value`.

use zeroize::Zeroizing;

use super::Properties;
use super::names::{self, Verdict};
use crate::bootstrap;

/// A URL in its parts.
pub(super) struct Url {
    is_tls: bool,
    user: Option<User>,
    settings: Properties,
}

struct User {
    name: String,
    password: Zeroizing<String>,
}

/// Reads a URL; nothing if the text is none of ours. Nothing of a user or a password is in what is said of a fault.
pub(super) fn read(text: &str) -> Option<Result<Url, String>> {
    let (scheme, rest) = text.trim().split_once("://")?;
    let is_tls = match scheme.to_ascii_lowercase().as_str() {
        "kafka" => false,
        "kafka+tls" | "kafka+ssl" | "kafkas" => true,
        _ => return None,
    };
    Some(Url::read(is_tls, rest))
}

impl Url {
    fn read(is_tls: bool, rest: &str) -> Result<Self, String> {
        let (authority, query) = rest.split_once('?').unwrap_or((rest, ""));
        let authority = authority.strip_suffix('/').unwrap_or(authority);
        let (user, servers) = match authority.rsplit_once('@') {
            Some((user, servers)) => (Some(user), servers),
            None if query.contains('@') && bootstrap::parse(authority).is_err() => {
                return Err("has an '@' behind a '?': write %3F for a '?' in a password, and %40 for an '@'".to_owned());
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
            match names::judge(&name) {
                Verdict::Read => settings.set(&name, decoded(value)?),
                // What is in a URL is meant for this client: nobody else reads it.
                Verdict::Slip(meant) => return Err(format!("has the setting '{name}': is '{meant}' meant?")),
                Verdict::Other | Verdict::InVain => return Err(format!("has the setting '{name}', which is unknown")),
            }
        }
        let user = user.map(User::read).transpose()?;
        Ok(Self { is_tls, user, settings })
    }

    /// All settings: those of the URL, the others, and what follows from both.
    pub(super) fn with(self, others: &Properties) -> Result<Properties, String> {
        let Self { is_tls, user, settings: mut all } = self;
        for name in others.names().filter(|name| *name != "url") {
            let value = others.get(name).unwrap_or_default();
            match all.get(name) {
                None => all.set(name, value),
                Some(own) if own == value => {}
                Some(_) => return Err(format!("and the setting {name} beside it differ: give only one of them")),
            }
        }
        let is_sasl = user.is_some() || all.get("sasl.mechanism").is_some();
        match all.get("security.protocol").map(str::to_ascii_uppercase).as_deref() {
            None => {
                let protocol = match (is_sasl, is_tls) {
                    (false, false) => "PLAINTEXT",
                    (false, true) => "SSL",
                    (true, false) => "SASL_PLAINTEXT",
                    (true, true) => "SASL_SSL",
                };
                all.set("security.protocol", protocol);
            }
            Some(plain @ ("PLAINTEXT" | "SASL_PLAINTEXT")) if is_tls => {
                return Err(format!("asks for TLS, and security.protocol is {plain}, which has none: leave one out"));
            }
            Some(open @ ("PLAINTEXT" | "SSL")) if user.is_some() => {
                return Err(format!("has a user, and security.protocol is {open}, by which nobody logs in"));
            }
            Some(_) => {}
        }
        if let Some(user) = user {
            user.log_in(&mut all)?;
        }
        Ok(all)
    }
}

impl User {
    fn read(text: &str) -> Result<Self, String> {
        let (name, password) = text.split_once(':').ok_or("has a user without a password: write user:password@")?;
        Ok(Self { name: decoded(name)?, password: Zeroizing::new(decoded(password)?) })
    }

    /// Says so in the words of Java.
    fn log_in(&self, settings: &mut Properties) -> Result<(), String> {
        if settings.get("sasl.jaas.config").is_some() {
            return Err("has a user, and sasl.jaas.config names another: leave one of them out".to_owned());
        }
        let module = match settings.get("sasl.mechanism") {
            None | Some("PLAIN") => "PlainLoginModule",
            Some("SCRAM-SHA-256" | "SCRAM-SHA-512") => "ScramLoginModule",
            Some(other) => return Err(format!("has a user and a password, which {other} does not take")),
        };
        if settings.get("sasl.mechanism").is_none() {
            settings.set("sasl.mechanism", "PLAIN");
        }
        let quoted = |text: &str| Zeroizing::new(text.replace('\\', "\\\\").replace('"', "\\\""));
        let (name, password) = (quoted(&self.name), quoted(&self.password));
        let jaas = format!("{module} required username=\"{}\" password=\"{}\";", *name, *password);
        settings.set("sasl.jaas.config", jaas);
        Ok(())
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
