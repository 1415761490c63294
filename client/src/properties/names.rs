//! The names of properties: which are read here, which have no effect here, and which are likely to be misspelt.
//!
//! Java's files hold settings of producers and consumers, too, so that a name that nobody here knows is no fault by
//! itself. One about security is: what was to protect does not.

use super::Properties;

/// The properties that are read here.
const READ: &[&str] = &[
    "allow.auto.create.topics",
    "bootstrap.servers",
    "client.id",
    "client.rack",
    "connections.max.idle.ms",
    "metadata.max.age.ms",
    "metadata.recovery.rebootstrap.trigger.ms",
    "metadata.recovery.strategy",
    "request.timeout.ms",
    "sasl.jaas.config",
    "sasl.client.callback.handler.class",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.login.read.timeout.ms",
    "sasl.mechanism",
    "sasl.oauthbearer.assertion.algorithm",
    "sasl.oauthbearer.assertion.claim.aud",
    "sasl.oauthbearer.assertion.claim.exp.seconds",
    "sasl.oauthbearer.assertion.claim.iss",
    "sasl.oauthbearer.assertion.claim.jti.include",
    "sasl.oauthbearer.assertion.claim.nbf.seconds",
    "sasl.oauthbearer.assertion.claim.sub",
    "sasl.oauthbearer.assertion.file",
    "sasl.oauthbearer.assertion.private.key.file",
    "sasl.oauthbearer.assertion.private.key.passphrase",
    "sasl.oauthbearer.assertion.template.file",
    "sasl.oauthbearer.client.credentials.client.id",
    "sasl.oauthbearer.client.credentials.client.secret",
    "sasl.oauthbearer.header.urlencode",
    "sasl.oauthbearer.jwt.retriever.class",
    "sasl.oauthbearer.scope",
    "sasl.oauthbearer.token.endpoint.url",
    "security.protocol",
    "socket.connection.setup.timeout.ms",
    "ssl.cipher.suites",
    "ssl.enabled.protocols",
    "ssl.endpoint.identification.algorithm",
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.password",
    "ssl.keystore.type",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.password",
    "ssl.truststore.type",
    "url",
];

/// Java's that change nothing here and need not: how it does what is done here in another way, and what Amazon's and
/// Strimzi's files have beside what matters.
const NEEDLESS: &[&str] = &[
    "config.providers",
    "sasl.login.connect.timeout.ms",
    "sasl.login.retry.backoff.max.ms",
    "sasl.login.retry.backoff.ms",
    "security.providers",
    "ssl.keymanager.algorithm",
    "ssl.protocol",
    "ssl.provider",
    "ssl.secure.random.implementation",
    "ssl.trustmanager.algorithm",
];

/// Whole families of them.
const NEEDLESS_FAMILIES: &[&str] = &["sasl.kerberos.", "sasl.login.refresh."];

/// Java's and librdkafka's that allow less than there is without them, or have others do what is done here.
const RESTRICTING: &[&str] = &[
    "ssl.crl.location",
    "ssl.curves.list",
    "ssl.engine.factory.class",
    "ssl.engine.id",
    "ssl.engine.location",
    "ssl.sigalgs.list",
];

/// How many letters may be wrong in a name that is taken for a misspelt one.
const SLIPS: usize = 2;

/// Judges all names of a Java client's file: the log tells of those that were meant to do something and do not.
///
/// # Errors
/// One about security is misspelt, or restricts what it is not known here how to restrict: to pass it over would be to
/// connect without what it asks for.
pub(super) fn judge_file(properties: &Properties) -> Result<(), String> {
    for name in properties.names().filter(|name| is_name(name) && !is_harmless(name)) {
        match (nearest(name), is_of_security(name)) {
            _ if RESTRICTING.contains(&name) => {
                return Err(format!("{name} is set, which is not served: what it asks for would not be done"));
            }
            (Some(meant), true) => return Err(format!("{name} is not known: is {meant} meant?")),
            (Some(meant), false) => tracing::warn!(name, meant, "a property that is not known: is it misspelt?"),
            (None, true) => tracing::warn!(name, "a property of security has no effect here"),
            (None, false) => tracing::debug!(name, "passed over a property that is not the client's"),
        }
    }
    // Their text may be a torn key or password, and is not told.
    let others = properties.names().filter(|name| !is_name(name)).count();
    if others > 0 {
        tracing::debug!(lines = others, "lines that name no property: is a '\\' missing at the end of the one before?");
    }
    Ok(())
}

/// Judges a name where there is none but the client's own: in a URL.
///
/// # Errors
/// It is not known, in words that go on from "the URL".
pub(super) fn judge_strictly(name: &str) -> Result<(), String> {
    if READ.contains(&name) && name != "url" && name != "bootstrap.servers" {
        return Ok(());
    }
    Err(match (nearest(name), is_name(name)) {
        (Some(meant), _) if meant != name => format!("has the setting {name}, which is not known: is it {meant}?"),
        (_, true) => format!("has the setting {name}, which is none of a client's"),
        (_, false) => "has a setting that is none of a client's".to_owned(),
    })
}

/// Judges the names of variables, which others may have, too: an orchestrator, or the application itself.
///
/// # Errors
/// One about security is not known, or one looks misspelt.
pub(super) fn judge_variables(properties: &Properties) -> Result<(), String> {
    for name in properties.names().filter(|name| !is_harmless(name)) {
        let variable = variable(name);
        match (nearest(name), is_of_security(name)) {
            (Some(meant), _) => {
                return Err(format!("{variable} is not known: is {} meant?", self::variable(meant)));
            }
            (None, true) => return Err(format!("{variable} has no effect here: leave it out")),
            (None, false) => tracing::info!(%variable, "passed over a variable that is not the client's"),
        }
    }
    Ok(())
}

/// The variable of the environment that a property is read from.
pub(super) fn variable(name: &str) -> String {
    format!("{}{}", super::PREFIX, name.to_ascii_uppercase().replace('.', "_"))
}

/// Whether a property of this name is read here.
pub(super) fn is_read(name: &str) -> bool {
    READ.contains(&name)
}

fn is_harmless(name: &str) -> bool {
    is_read(name) || NEEDLESS.contains(&name) || NEEDLESS_FAMILIES.iter().any(|family| name.starts_with(family))
}

/// Whether this looks like the name of a property at all, and not like a line of a key that nothing joined to the one
/// before.
pub(super) fn is_name(name: &str) -> bool {
    let is_of_name = |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' | b'_');
    READ.contains(&name) || (name.len() <= 100 && name.contains('.') && name.bytes().all(is_of_name))
}

fn is_of_security(name: &str) -> bool {
    ["security.", "sasl.", "ssl."].iter().any(|prefix| name.starts_with(prefix))
}

/// The name that was meant, if it is one of ours.
fn nearest(name: &str) -> Option<&'static str> {
    let far = |known: &&str| known.len().abs_diff(name.len()) > SLIPS || known.len() <= 2 * SLIPS;
    let all = READ.iter().copied().filter(|known| !far(known));
    let slips = all.map(|known| (slips(known.as_bytes(), name.as_bytes()), known));
    slips.filter(|(slips, _)| *slips <= SLIPS).min().map(|(_, known)| known)
}

/// How many letters must be changed, put in or left out to make one of the other.
fn slips(one: &[u8], other: &[u8]) -> usize {
    let mut above: Vec<usize> = (0..=other.len()).collect();
    for (row, a) in one.iter().enumerate() {
        let mut left = row + 1;
        let mut diagonal = std::mem::replace(&mut above[0], left);
        for (column, b) in other.iter().enumerate() {
            let here = (diagonal + usize::from(a != b)).min(left + 1).min(above[column + 1] + 1);
            diagonal = std::mem::replace(&mut above[column + 1], here);
            left = here;
        }
    }
    above[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_counted() {
        for (one, other, expected) in [("", "abc", 3), ("abc", "abc", 0), ("abc", "acb", 2), ("kitten", "sitting", 3)] {
            assert_eq!(slips(one.as_bytes(), other.as_bytes()), expected, "{one} {other}");
        }
    }

    #[test]
    fn what_was_meant_is_found() {
        assert_eq!(nearest("security.protocl"), Some("security.protocol"));
        assert_eq!(nearest("reqest.timeout.ms"), Some("request.timeout.ms"));
        assert_eq!(nearest("sasl.mechanisms"), Some("sasl.mechanism"));
        assert_eq!(nearest("ssl.truststore.locaton"), Some("ssl.truststore.location"));
        for other in ["acks", "group.id", "linger.ms", "retries", "topic", "uri", "ssl.curves.list"] {
            assert_eq!(nearest(other), None, "{other}");
        }
    }

    #[test]
    fn lines_of_a_key_are_no_names() {
        assert!(is_name("security.protocl") && is_name("ssl.x_y-1"));
        for line in ["MIIEvQIBADANBgkqhkiG9w0BAQEF", "hunter2", "-----BEGIN", "a.B", ""] {
            assert!(!is_name(line), "{line}");
        }
    }
}
