//! What each property sets. What nobody here knows is passed over: Java's files hold settings of producers and
//! consumers, too.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::Properties;
use super::jaas::LoginModule;
use super::names::{self, Verdict};
use crate::auth::{AwsEnvironment, BearerToken, ProvidingToken, TokenProvider};
use crate::cluster::MetadataRecoveryStrategy;
use crate::environment::{SystemClock, WallClock};
use crate::kafka_builder::KafkaBuilder;
use crate::limits::finite;

/// What `sasl.mechanism` may be.
const MECHANISMS: &str = "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or AWS_MSK_IAM";

pub(super) fn build(properties: &Properties) -> Result<KafkaBuilder, String> {
    if let Some(url) = properties.get("url") {
        let all = properties.beside(url).ok_or("the URL begins with neither kafka:// nor kafka+tls://")?;
        return build(&all?);
    }
    check_names(properties)?;
    let servers = properties.get("bootstrap.servers").ok_or("bootstrap.servers is missing")?;
    let mut builder = KafkaBuilder::of_servers(servers.to_owned());
    if let Some(client_id) = properties.get("client.id") {
        builder = builder.client_id(client_id);
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

/// What is not read is Java's, and passed over. A slip of the pen is not, where security is at stake.
fn check_names(properties: &Properties) -> Result<(), String> {
    let mut others = Vec::new();
    for name in properties.names() {
        match names::judge(name) {
            Verdict::Read => {}
            Verdict::Slip(meant) if names::is_of_security(name) => {
                return Err(format!("there is no property '{name}': is '{meant}' meant?"));
            }
            Verdict::Slip(meant) => tracing::warn!(name, meant, "passed over a property: is another meant?"),
            Verdict::InVain => tracing::warn!(name, "passed over a property that has no meaning here"),
            Verdict::Other => others.push(name),
        }
    }
    if !others.is_empty() {
        tracing::debug!(?others, "passed over properties that are not the client's");
    }
    Ok(())
}

fn secure(builder: KafkaBuilder, properties: &Properties) -> Result<KafkaBuilder, String> {
    let protocol = properties.get("security.protocol").unwrap_or("PLAINTEXT");
    let (is_sasl, is_tls) = match protocol.to_ascii_uppercase().as_str() {
        "PLAINTEXT" => (false, false),
        "SSL" => (false, true),
        "SASL_PLAINTEXT" => (true, false),
        "SASL_SSL" => (true, true),
        _ => return Err(unknown("security.protocol", protocol, "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL")),
    };
    if !is_sasl && ["sasl.mechanism", "sasl.jaas.config"].iter().any(|name| properties.get(name).is_some()) {
        tracing::warn!(protocol, "sasl.* is set, and nobody logs in: security.protocol is to be SASL_SSL for that");
    }
    let builder = if is_sasl { log_in(builder, properties)? } else { builder };
    if is_tls { encrypt(builder, properties) } else { Ok(builder) }
}

fn log_in(builder: KafkaBuilder, properties: &Properties) -> Result<KafkaBuilder, String> {
    let mechanism = properties.get("sasl.mechanism").unwrap_or("GSSAPI");
    match mechanism {
        "GSSAPI" => {
            let what = "sasl.mechanism is missing, or GSSAPI (Kerberos), which is not served";
            return Err(format!("{what}: name {MECHANISMS}"));
        }
        known if MECHANISMS.split([',', ' ']).any(|name| name == known && name != "or") => {}
        other => return Err(unknown("sasl.mechanism", other, MECHANISMS)),
    }
    check_handler(properties)?;
    let jaas = properties.get("sasl.jaas.config").ok_or("sasl.jaas.config is missing: it says who the client is")?;
    let wrong = |why| format!("sasl.jaas.config {why}");
    let module = LoginModule::read(jaas).map_err(wrong)?;
    match (mechanism, module.class.as_str()) {
        ("PLAIN", "PlainLoginModule") => {
            let (user, password) = (module.required("username"), module.required("password"));
            Ok(builder.sasl_plain(user.map_err(wrong)?, password.map_err(wrong)?))
        }
        ("SCRAM-SHA-256" | "SCRAM-SHA-512", "ScramLoginModule") => {
            let user = module.required("username").map_err(wrong)?;
            let password = module.required("password").map_err(wrong)?;
            let is_token = module.option("tokenauth").is_some_and(|value| value.eq_ignore_ascii_case("true"));
            Ok(match (mechanism, is_token) {
                ("SCRAM-SHA-256", false) => builder.sasl_scram_sha256(user, password),
                ("SCRAM-SHA-256", true) => builder.sasl_delegation_token_sha256(user, password),
                (_, false) => builder.sasl_scram_sha512(user, password),
                (_, true) => builder.sasl_delegation_token(user, password),
            })
        }
        ("OAUTHBEARER", "OAuthBearerLoginModule") => match properties.get("sasl.oauthbearer.token.endpoint.url") {
            Some(url) => by_endpoint(builder, properties, &module, url),
            None => Ok(builder.sasl_oauthbearer(Unsecured::new(&module).map_err(wrong)?)),
        },
        ("AWS_MSK_IAM", "IAMLoginModule") => match module.options_after("aws").next() {
            None => Ok(builder.sasl_aws_msk_iam(AwsEnvironment)),
            Some((name, _)) => Err(wrong(format!(
                "has the option 'aws{name}', for which the AWS SDK is needed: leave it out to take the keys from the \
                 environment, or give a provider to sasl_aws_msk_iam"
            ))),
        },
        (mechanism, class) if class.ends_with("LoginModule") => {
            Err(format!("sasl.jaas.config names {class}, which is not the login module of {mechanism}"))
        }
        (mechanism, _) => Err(format!("sasl.jaas.config does not begin with the login module of {mechanism}")),
    }
}

/// Classes of Java run in Java only. Kafka's own for tokens of an endpoint says what the other properties say.
fn check_handler(properties: &Properties) -> Result<(), String> {
    const NAME: &str = "sasl.login.callback.handler.class";
    let Some(class) = properties.get(NAME) else { return Ok(()) };
    if !class.ends_with(".OAuthBearerLoginCallbackHandler") {
        return Err(format!(
            "{NAME} is {class}, which only Java can run: set sasl.oauthbearer.token.endpoint.url instead, or give a \
             provider to sasl_oauthbearer"
        ));
    }
    match properties.get("sasl.oauthbearer.token.endpoint.url") {
        Some(_) => Ok(()),
        None => Err(format!("sasl.oauthbearer.token.endpoint.url is missing, which the {NAME} needs")),
    }
}

#[cfg(feature = "oidc")]
fn by_endpoint(
    builder: KafkaBuilder,
    properties: &Properties,
    module: &LoginModule,
    url: &str,
) -> Result<KafkaBuilder, String> {
    Ok(builder.sasl_oauthbearer(super::oidc::provider(properties, module, url)?))
}

#[cfg(not(feature = "oidc"))]
fn by_endpoint(_: KafkaBuilder, _: &Properties, _: &LoginModule, _: &str) -> Result<KafkaBuilder, String> {
    Err("sasl.oauthbearer.token.endpoint.url is set: build krafka with the feature oidc".to_owned())
}

/// Writes tokens that nobody has signed, as Java's client does when it is told no issuer. For development: a broker
/// that takes them believes everybody.
struct Unsecured {
    subject: String,
    life: Duration,
    extensions: Vec<(String, String)>,
    wall_clock: Arc<dyn WallClock>,
}

impl Unsecured {
    fn new(module: &LoginModule) -> Result<Self, String> {
        let subject = module.required("unsecuredLoginStringClaim_sub").map_err(|why| {
            format!(
                "{why}; for tokens of an issuer set sasl.oauthbearer.token.endpoint.url, or give a provider to \
                 sasl_oauthbearer"
            )
        })?;
        if subject.contains(|c: char| c.is_control() || matches!(c, '"' | '\\')) {
            return Err("has a subject with a quote, a backslash or a control character in it".to_owned());
        }
        let seconds = module.option("unsecuredLoginLifetimeSeconds").unwrap_or("3600");
        let seconds: u64 =
            seconds.parse().map_err(|_| "has unsecuredLoginLifetimeSeconds that are no number".to_owned())?;
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        Ok(Self {
            subject: subject.to_owned(),
            life: finite(Duration::from_secs(seconds)),
            extensions: module.options_after("unsecuredLoginExtension_").map(owned).collect(),
            wall_clock: Arc::new(SystemClock),
        })
    }

    fn write(&self) -> BearerToken {
        let now = self.wall_clock.now();
        let end = now + self.life;
        let seconds = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let claims = format!(r#"{{"sub":"{}","iat":{},"exp":{}}}"#, self.subject, seconds(now), seconds(end));
        let section = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let token = BearerToken::new(format!("{}.{}.", section(r#"{"alg":"none"}"#), section(&claims))).expires_at(end);
        self.extensions.iter().fold(token, |token, (name, value)| token.extension(name, value))
    }
}

impl TokenProvider for Unsecured {
    fn token(&self) -> ProvidingToken<'_> {
        Box::pin(std::future::ready(Ok(self.write())))
    }
}

#[cfg(not(feature = "tls"))]
fn encrypt(_builder: KafkaBuilder, _properties: &Properties) -> Result<KafkaBuilder, String> {
    Err("security.protocol wants TLS, without which krafka was built: take the feature tls-ring".to_owned())
}

#[cfg(feature = "tls")]
fn encrypt(builder: KafkaBuilder, properties: &Properties) -> Result<KafkaBuilder, String> {
    let is_pem = |what: &str| match properties.get(&format!("ssl.{what}.type")) {
        Some(kind) if kind.eq_ignore_ascii_case("PEM") => Ok(()),
        kind => Err(format!(
            "ssl.{what}.type is {}, which only Java reads: convert the store to PEM (keytool -exportcert -rfc, or \
             openssl pkcs12), and set ssl.{what}.type=PEM",
            kind.unwrap_or("JKS by default")
        )),
    };
    let mut tls = crate::tls::Tls::new();
    if let Some(path) = properties.get("ssl.truststore.location") {
        is_pem("truststore")?;
        tls = tls.roots_file(path);
    }
    if let Some(pem) = properties.get("ssl.truststore.certificates") {
        is_pem("truststore")?;
        tls = tls.roots_pem(pem);
    }
    if let Some(path) = properties.get("ssl.keystore.location") {
        is_pem("keystore")?;
        tls = tls.identity_files(path, path);
    }
    if let Some(chain) = properties.get("ssl.keystore.certificate.chain") {
        is_pem("keystore")?;
        let key = properties.get("ssl.keystore.key").ok_or("ssl.keystore.key is missing")?;
        tls = tls.identity_pem(chain, key);
    }
    if let Some(password) = properties.get("ssl.key.password") {
        tls = tls.with_key_password(password)?;
    }
    if properties.get("ssl.endpoint.identification.algorithm") == Some("") {
        tls = tls.accept_any_name();
    }
    Ok(builder.tls(tls))
}

impl Properties {
    pub(super) fn millis(&self, name: &str) -> Result<Option<Duration>, String> {
        let number =
            |value: &str| value.parse().map(Duration::from_millis).map_err(|_| unknown(name, value, "milliseconds"));
        self.get(name).map(number).transpose()
    }
}

fn unknown(name: &str, value: &str, wanted: &str) -> String {
    format!("{name} is '{value}': give {wanted}")
}
