//! The names of settings: which are read, which are Java's and do nothing here, and which are slips of the pen.
//!
//! A slip where security is at stake must not be passed over: `security.protocl=SASL_SSL` would connect without either.

/// The properties that are read.
const READ: &[&str] = &[
    "allow.auto.create.topics",
    "bootstrap.servers",
    "client.id",
    "connections.max.idle.ms",
    "metadata.max.age.ms",
    "metadata.recovery.rebootstrap.trigger.ms",
    "metadata.recovery.strategy",
    "request.timeout.ms",
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.read.timeout.ms",
    "sasl.mechanism",
    "security.protocol",
    "socket.connection.setup.timeout.ms",
    "ssl.endpoint.identification.algorithm",
    "ssl.key.password",
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.keystore.location",
    "ssl.keystore.type",
    "ssl.truststore.certificates",
    "ssl.truststore.location",
    "ssl.truststore.type",
];

/// Java's that would change what is spoken, or who is believed. They do nothing here, and that is said aloud.
const IN_VAIN: &[&str] = &[
    "sasl.client.callback.handler.class",
    "sasl.login.class",
    "ssl.cipher.suites",
    "ssl.enabled.protocols",
    "ssl.engine.factory.class",
    "ssl.protocol",
];

/// Java's that make no difference here.
const IDLE: &[&str] = &[
    "sasl.login.connect.timeout.ms",
    "sasl.login.retry.backoff.max.ms",
    "sasl.login.retry.backoff.ms",
    "security.providers",
    "ssl.keymanager.algorithm",
    "ssl.keystore.password",
    "ssl.provider",
    "ssl.secure.random.implementation",
    "ssl.trustmanager.algorithm",
    "ssl.truststore.password",
];

/// How many letters a slip may be away from what was meant.
const SLIPS: usize = 2;

/// What a name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// One that is read.
    Read,
    /// One of Java's, or somebody else's.
    Other,
    /// One that looks as if it mattered, and does nothing.
    InVain,
    /// Nearly one that is read.
    Slip(&'static str),
}

/// Judges a name.
pub(super) fn judge(name: &str) -> Verdict {
    let is_listed = |names: &[&str]| names.contains(&name);
    if is_listed(READ) || name.starts_with("sasl.oauthbearer.") {
        return Verdict::Read;
    }
    let of_java = ["sasl.kerberos.", "sasl.login.refresh.", "ssl.allow."];
    if is_listed(IDLE) || of_java.iter().any(|family| name.starts_with(family)) {
        return Verdict::Other;
    }
    if is_listed(IN_VAIN) {
        return Verdict::InVain;
    }
    match READ.iter().find(|known| is_near(name, known)) {
        Some(known) => Verdict::Slip(known),
        None if is_of_security(name) => Verdict::InVain,
        None => Verdict::Other,
    }
}

/// Whether a name is about whom the client trusts, and who it is.
pub(super) fn is_of_security(name: &str) -> bool {
    ["security.", "sasl.", "ssl."].iter().any(|family| name.starts_with(family))
}

/// Whether a few letters are wrong, missing or too many.
fn is_near(name: &str, known: &str) -> bool {
    if name.len().abs_diff(known.len()) > SLIPS {
        return false;
    }
    // A row of the table of distances: between what was read of `name` and each beginning of `known`.
    let mut row: Vec<usize> = (0..=known.len()).collect();
    for (read, letter) in name.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = read + 1;
        for (index, other) in known.bytes().enumerate() {
            let changed = diagonal + usize::from(letter != other);
            diagonal = row[index + 1];
            row[index + 1] = changed.min(diagonal + 1).min(row[index] + 1);
        }
    }
    row[known.len()] <= SLIPS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_told_from_names_of_java() {
        for (name, meant) in [
            ("security.protocl", "security.protocol"),
            ("sasl.mechanisms", "sasl.mechanism"),
            ("sasl.jaas.conifg", "sasl.jaas.config"),
            ("reqest.timeout.ms", "request.timeout.ms"),
            ("ssl.truststore.certificate", "ssl.truststore.certificates"),
        ] {
            assert_eq!(judge(name), Verdict::Slip(meant), "{name}");
        }
        for name in ["client.id", "sasl.oauthbearer.scope"] {
            assert_eq!(judge(name), Verdict::Read, "{name}");
        }
        for name in ["ssl.protocol", "sasl.username", "ssl.ca.location"] {
            assert_eq!(judge(name), Verdict::InVain, "{name}");
        }
        for name in ["acks", "linger.ms", "client.rack", "metadata.max.idle.ms", "ssl.provider", "sasl.kerberos.x", ""]
        {
            assert_eq!(judge(name), Verdict::Other, "{name}");
        }
    }
}
