//! What each property sets. What nobody here knows is passed over: Java's files hold settings of producers and
//! consumers, too.

use std::time::Duration;

use super::Properties;
use crate::cluster::MetadataRecoveryStrategy;
use crate::kafka_builder::KafkaBuilder;

/// What is said when nobody says where the cluster is.
pub(super) const NO_SERVERS: &str = "bootstrap.servers is missing";

/// # Errors
/// What is wrong, in words that begin with the property's name.
pub(super) fn builder(properties: &Properties) -> Result<KafkaBuilder, String> {
    if properties.get("config.providers").is_some_and(|names| !names.is_empty()) {
        return Err(
            "config.providers is set, which only Java has: write the values themselves instead of ${…}".to_owned()
        );
    }
    let servers = properties.get("bootstrap.servers").ok_or(NO_SERVERS)?;
    let mut builder = KafkaBuilder::of_servers(without_listeners(servers, properties)?);
    if let Some(client_id) = properties.get("client.id") {
        builder = builder.client_id(client_id);
    }
    if let Some(rack) = properties.get("client.rack") {
        builder = builder.client_rack(rack);
    }
    if let Some(timeout) = properties.millis("request.timeout.ms")? {
        builder = builder.request_timeout(timeout);
    }
    if let Some(timeout) = properties.millis("socket.connection.setup.timeout.ms")? {
        builder = builder.connect_timeout(timeout);
    }
    if let Some(age) = properties.millis("metadata.max.age.ms")? {
        builder = builder.metadata_max_age(age);
    }
    if let Some(trigger) = properties.millis("metadata.recovery.rebootstrap.trigger.ms")? {
        builder = builder.metadata_recovery_rebootstrap_trigger(trigger);
    }
    match properties.get("connections.max.idle.ms") {
        Some("-1") => builder = builder.connections_max_idle(Duration::MAX),
        _ => {
            if let Some(idle) = properties.millis("connections.max.idle.ms")? {
                builder = builder.connections_max_idle(idle);
            }
        }
    }
    if let Some(strategy) = properties.get("metadata.recovery.strategy") {
        builder = builder.metadata_recovery_strategy(match strategy.to_ascii_lowercase().as_str() {
            "none" => MetadataRecoveryStrategy::None,
            "rebootstrap" => MetadataRecoveryStrategy::Rebootstrap,
            _ => return Err(unknown("metadata.recovery.strategy", strategy, "none or rebootstrap")),
        });
    }
    if let Some(allow) = properties.get("allow.auto.create.topics") {
        builder = builder.allow_auto_create_topics(match allow.to_ascii_lowercase().as_str() {
            "true" => true,
            "false" => false,
            _ => return Err(unknown("allow.auto.create.topics", allow, "true or false")),
        });
    }
    secure(builder, properties)
}

/// The servers without the names of listeners in front of them (`SASL_SSL://host:9092`), which Java passes over, and
/// pages of providers show.
fn without_listeners(servers: &str, properties: &Properties) -> Result<String, String> {
    let protocol = Protocol::of(properties)?.unwrap_or(Protocol::PLAINTEXT);
    let mut bare = Vec::new();
    for server in servers.split(',').map(str::trim) {
        let named = server.split_once("://").and_then(|(name, rest)| Some((Protocol::named(name)?, rest)));
        if let Some((listener, _)) = named.filter(|(listener, _)| listener.is_tls && !protocol.is_tls) {
            // Java goes on in plain text, with passwords, too.
            return Err(format!(
                "bootstrap.servers says {}, and security.protocol {}, which is not encrypted: set security.protocol",
                listener.name(),
                protocol.name()
            ));
        }
        bare.push(named.map_or(server, |(_, rest)| rest));
    }
    Ok(bare.join(","))
}

/// `security.protocol`.
#[derive(Clone, Copy)]
pub(super) struct Protocol {
    pub(super) is_sasl: bool,
    pub(super) is_tls: bool,
}

impl Protocol {
    /// What holds where nothing else is said.
    const PLAINTEXT: Self = Self { is_sasl: false, is_tls: false };

    /// The one that is set, if one is.
    pub(super) fn of(properties: &Properties) -> Result<Option<Self>, String> {
        let Some(name) = properties.get("security.protocol") else { return Ok(None) };
        let wanted = "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL";
        Self::named(name).map(Some).ok_or_else(|| unknown("security.protocol", name, wanted))
    }

    fn named(name: &str) -> Option<Self> {
        let all = [(false, false), (false, true), (true, false), (true, true)];
        let mut all = all.into_iter().map(|(is_sasl, is_tls)| Self { is_sasl, is_tls });
        all.find(|protocol| protocol.name().eq_ignore_ascii_case(name))
    }

    pub(super) fn name(self) -> &'static str {
        match (self.is_sasl, self.is_tls) {
            (false, false) => "PLAINTEXT",
            (false, true) => "SSL",
            (true, false) => "SASL_PLAINTEXT",
            (true, true) => "SASL_SSL",
        }
    }
}

fn secure(builder: KafkaBuilder, properties: &Properties) -> Result<KafkaBuilder, String> {
    let protocol = Protocol::of(properties)?.unwrap_or(Protocol::PLAINTEXT);
    // As Java has it, without a word there.
    let idle = |prefix: &str| properties.names().any(|name| name.starts_with(prefix));
    if !protocol.is_sasl && idle("sasl.") {
        tracing::warn!(security.protocol = protocol.name(), "the properties sasl.* have no effect with this protocol");
    }
    if !protocol.is_tls && idle("ssl.") {
        tracing::warn!(security.protocol = protocol.name(), "the properties ssl.* have no effect with this protocol");
    }
    let builder = if protocol.is_sasl { super::login::log_in(builder, properties)? } else { builder };
    if protocol.is_tls { encrypt(builder, properties) } else { Ok(builder) }
}

#[cfg(not(feature = "tls"))]
fn encrypt(_builder: KafkaBuilder, _properties: &Properties) -> Result<KafkaBuilder, String> {
    Err("security.protocol wants TLS, without which krafka was built: take the feature tls-ring".to_owned())
}

#[cfg(feature = "tls")]
fn encrypt(builder: KafkaBuilder, properties: &Properties) -> Result<KafkaBuilder, String> {
    let mut tls = crate::tls::Tls::new();
    if let Some(list) = properties.list("ssl.enabled.protocols") {
        tls = tls.versions(versions(&list)?);
    }
    if let Some(list) = properties.list("ssl.cipher.suites") {
        tls = tls.cipher_suites(list);
    }
    if let Some(path) = properties.get("ssl.truststore.location") {
        tls = match kind_of("truststore", properties)? {
            StoreKind::Pem => tls.roots_file(path),
            // Java opens it without one, too.
            StoreKind::Keystore => {
                tls.with_roots_keystore(path, properties.get("ssl.truststore.password").unwrap_or_default())?
            }
        };
    }
    if let Some(pem) = properties.get("ssl.truststore.certificates") {
        wants_pem("truststore", "ssl.truststore.certificates", properties)?;
        tls = tls.roots_pem(pem);
    }
    if let Some(path) = properties.get("ssl.keystore.location") {
        tls = match kind_of("keystore", properties)? {
            StoreKind::Pem => tls.identity_files(path, path),
            StoreKind::Keystore => {
                let password = properties.get("ssl.keystore.password");
                let missing = "ssl.keystore.password is missing, which opens the key store (or, if it is PEM, set \
                               ssl.keystore.type=PEM)";
                tls.with_identity_keystore(path, password.ok_or(missing)?)?
            }
        };
    }
    match (properties.get("ssl.keystore.certificate.chain"), properties.get("ssl.keystore.key")) {
        (None, None) => {}
        (Some(chain), Some(key)) => {
            wants_pem("keystore", "ssl.keystore.key", properties)?;
            tls = tls.identity_pem(chain, key);
        }
        (Some(_), None) => return Err("ssl.keystore.key is missing".to_owned()),
        (None, Some(_)) => return Err("ssl.keystore.certificate.chain is missing".to_owned()),
    }
    if let Some(password) = properties.get("ssl.key.password") {
        tls = tls.with_key_password(password)?;
    }
    match properties.get("ssl.endpoint.identification.algorithm") {
        None => {}
        Some("") => tls = tls.accept_any_name(),
        Some(https) if https.eq_ignore_ascii_case("https") => {}
        Some(other) => return Err(unknown("ssl.endpoint.identification.algorithm", other, "https, or nothing")),
    }
    Ok(builder.tls(tls))
}

/// `ssl.enabled.protocols`. Old ones beside new ones are for peers that speak nothing else, and are not missed.
#[cfg(feature = "tls")]
fn versions(names: &[&str]) -> Result<Vec<crate::tls::TlsVersion>, String> {
    use crate::tls::TlsVersion::{Tls12, Tls13};

    let mut versions = Vec::new();
    for name in names {
        match name.to_ascii_uppercase().as_str() {
            "TLSV1.3" => versions.push(Tls13),
            "TLSV1.2" => versions.push(Tls12),
            "TLSV1.1" | "TLSV1" | "SSLV3" | "SSLV2HELLO" => {}
            _ => return Err(unknown("ssl.enabled.protocols", name, "TLSv1.3 or TLSv1.2, or both")),
        }
    }
    match versions.is_empty() {
        false => Ok(versions),
        true => Err(format!(
            "ssl.enabled.protocols is '{}', which is older than what is spoken here: give TLSv1.3 or TLSv1.2, or both",
            names.join(",")
        )),
    }
}

/// What the file of a store is.
#[cfg(feature = "tls")]
enum StoreKind {
    Pem,
    /// JKS or PKCS #12: which of the two its first bytes tell, as in Java.
    Keystore,
}

/// `ssl.truststore.type` or `ssl.keystore.type`.
#[cfg(feature = "tls")]
fn kind_of(what: &str, properties: &Properties) -> Result<StoreKind, String> {
    let name = format!("ssl.{what}.type");
    match properties.get(&name).map(str::to_ascii_uppercase).as_deref() {
        None | Some("JKS" | "PKCS12") => Ok(StoreKind::Keystore),
        Some("PEM") if properties.get(&format!("ssl.{what}.password")).is_some() => Err(format!(
            "ssl.{what}.password is set, and PEM has none: leave it out; the password of a key is ssl.key.password"
        )),
        Some("PEM") => Ok(StoreKind::Pem),
        Some(_) => Err(unknown(&name, properties.get(&name).unwrap_or_default(), "JKS, PKCS12 or PEM")),
    }
}

/// # Errors
/// A text that is in the properties themselves is not said to be PEM.
#[cfg(feature = "tls")]
fn wants_pem(what: &str, name: &str, properties: &Properties) -> Result<(), String> {
    match kind_of(what, properties)? {
        StoreKind::Pem => Ok(()),
        StoreKind::Keystore => Err(format!("{name} is set, which is PEM: set ssl.{what}.type=PEM, too")),
    }
}

impl Properties {
    /// A list, if there is anything in it.
    #[cfg(feature = "tls")]
    fn list(&self, name: &str) -> Option<Vec<&str>> {
        let list = self.get(name)?.split(',').map(str::trim).filter(|part| !part.is_empty());
        Some(list.collect::<Vec<_>>()).filter(|list| !list.is_empty())
    }

    pub(super) fn millis(&self, name: &str) -> Result<Option<Duration>, String> {
        let number =
            |value: &str| value.parse().map(Duration::from_millis).map_err(|_| unknown(name, value, "milliseconds"));
        self.get(name).map(number).transpose()
    }
}

pub(super) fn unknown(name: &str, value: &str, wanted: &str) -> String {
    format!("{name} is '{value}': give {wanted}")
}
