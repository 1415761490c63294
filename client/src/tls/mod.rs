//! [`Tls`]: whom the client trusts, which certificate it shows, and how both are kept fresh.

mod explain;
mod identity;
mod key;
mod material;
mod pem;
mod provider;
mod roots;
mod verifier;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::ClientConfig;
use rustls::pki_types::ServerName;

pub(crate) use self::explain::{explain, explain_late};
use self::identity::Identity;
#[cfg(feature = "oidc")]
pub(crate) use self::key::PrivateKey;
use self::material::{Material, Stamps};
pub(crate) use self::provider::provider;
use self::roots::Roots;
use self::verifier::Verifier;
use crate::auth::Secret;

/// How to speak TLS: which issuers are trusted, and which certificate the client shows.
///
/// ```no_run
/// use krafka::{Kafka, Tls};
///
/// # async fn example() -> krafka::Result<()> {
/// let tls = Tls::new()
///     .roots_file("/etc/kafka/ca.pem")
///     .identity_files("/etc/kafka/client.pem", "/etc/kafka/client.key");
/// let kafka = Kafka::builder("kafka:9093").tls(tls).connect().await?;
/// # Ok(())
/// # }
/// ```
///
/// Issuers and certificates are read by [`connect`](crate::KafkaBuilder::connect), which fails if they are wrong. Files
/// that change are read again before the next connection is made, so that certificates can be renewed under a running
/// client; while the new ones cannot be read, the old ones are used and a warning is logged.
///
/// For what there is no setting for, give [`KafkaBuilder::tls`](crate::KafkaBuilder::tls) a
/// [`rustls::ClientConfig`]. It has its own issuers and certificates: of the setters here only
/// [`server_name`](Self::server_name) goes with it, and after any other
/// [`connect`](crate::KafkaBuilder::connect) fails.
#[derive(Clone)]
pub struct Tls {
    source: Source,
    server_name: Option<String>,
}

#[derive(Clone)]
enum Source {
    /// A configuration that was brought along, and the setter that was called on it all the same.
    Config(Arc<ClientConfig>, Option<&'static str>),
    Settings(Settings),
}

#[derive(Clone, Default)]
struct Settings {
    roots: Roots,
    identity: Option<Identity>,
    key_password: Option<Secret>,
    accepts_any_name: bool,
}

impl Default for Tls {
    fn default() -> Self {
        Self::new()
    }
}

impl From<Arc<ClientConfig>> for Tls {
    fn from(config: Arc<ClientConfig>) -> Self {
        Self { source: Source::Config(config, None), server_name: None }
    }
}

impl From<ClientConfig> for Tls {
    fn from(config: ClientConfig) -> Self {
        Arc::new(config).into()
    }
}

impl Tls {
    /// Trusts the issuers that the setters add. With none of them, those of the operating system, if krafka is built
    /// with the feature `native-roots` and there are any, or else those that Mozilla trusts (feature `webpki-roots`,
    /// which is there by default).
    pub fn new() -> Self {
        Self { source: Source::Settings(Settings::default()), server_name: None }
    }

    /// Trusts the issuers in a PEM file, which holds one or more `CERTIFICATE` sections. A broker's own certificate
    /// will do as well, such as one that it has signed itself.
    ///
    /// For clusters with an issuer of their own. May be called more than once. Java: `ssl.truststore.location` with
    /// `ssl.truststore.type=PEM`.
    #[must_use]
    pub fn roots_file(self, path: impl Into<PathBuf>) -> Self {
        self.with("roots_file", |settings| settings.roots.materials.push(Material::File(path.into())))
    }

    /// Trusts the issuers in a PEM text. May be called more than once. Java: `ssl.truststore.certificates`.
    #[must_use]
    pub fn roots_pem(self, pem: impl AsRef<[u8]>) -> Self {
        self.with("roots_pem", |settings| settings.roots.materials.push(Material::text(pem)))
    }

    /// Trusts the issuers that the operating system trusts, beside those of the other setters. Needs the feature
    /// `native-roots`.
    #[cfg(feature = "native-roots")]
    #[must_use]
    pub fn native_roots(self) -> Self {
        self.with("native_roots", |settings| settings.roots.with_native = true)
    }

    /// Trusts the issuers that Mozilla trusts, beside those of the other setters. Needs the feature `webpki-roots`.
    #[cfg(feature = "webpki-roots")]
    #[must_use]
    pub fn webpki_roots(self) -> Self {
        self.with("webpki_roots", |settings| settings.roots.with_webpki = true)
    }

    /// Shows the broker a certificate (mutual TLS): a PEM file with the certificate and those between it and its
    /// issuer, and one with its key. Both may be the same file.
    ///
    /// Java: `ssl.keystore.location` with `ssl.keystore.type=PEM`.
    #[must_use]
    pub fn identity_files(self, chain: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        let (chain, key) = (Material::File(chain.into()), Material::File(key.into()));
        self.with("identity_files", |settings| settings.identity = Some(Identity { chain, key }))
    }

    /// Shows the broker a certificate, given as PEM texts. Java: `ssl.keystore.certificate.chain` and
    /// `ssl.keystore.key`.
    #[must_use]
    pub fn identity_pem(self, chain: impl AsRef<[u8]>, key: impl AsRef<[u8]>) -> Self {
        let (chain, key) = (Material::text(chain), Material::text(key));
        self.with("identity_pem", |settings| settings.identity = Some(Identity { chain, key }))
    }

    /// Decrypts the key of the certificate that is shown with this password: one that begins with `BEGIN ENCRYPTED
    /// PRIVATE KEY` (PKCS #8). Needs the feature `encrypted-keys`. Java: `ssl.key.password`.
    #[cfg(feature = "encrypted-keys")]
    #[must_use]
    pub fn key_password(self, password: impl Into<String>) -> Self {
        self.with("key_password", |settings| settings.key_password = Some(Secret::new(password)))
    }

    /// [`key_password`](Self::key_password), where the feature is not known to be there.
    #[cfg_attr(not(feature = "encrypted-keys"), expect(unused_variables, reason = "there is nothing to decrypt with"))]
    pub(crate) fn with_key_password(self, password: &str) -> Result<Self, String> {
        #[cfg(feature = "encrypted-keys")]
        return Ok(self.key_password(password));
        #[cfg(not(feature = "encrypted-keys"))]
        Err("ssl.key.password is set: build krafka with the feature encrypted-keys".to_owned())
    }

    /// Sets the name that every broker's certificate must be for, and that the broker is told (SNI), instead of the
    /// name that it is reached by.
    ///
    /// For tunnels and port forwarding. Java has no such setting.
    #[must_use]
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.server_name = Some(name.into());
        self
    }

    /// Accepts a certificate of a trusted issuer whatever name it is for.
    ///
    /// Whoever has any certificate of a trusted issuer can then pass for a broker: only for issuers that issue for
    /// nothing but the cluster. Java: an empty `ssl.endpoint.identification.algorithm`.
    #[must_use]
    pub fn accept_any_name(self) -> Self {
        self.with("accept_any_name", |settings| settings.accepts_any_name = true)
    }

    /// Changes the settings; those of a configuration that was brought along are its own.
    fn with(mut self, setter: &'static str, change: impl FnOnce(&mut Settings)) -> Self {
        match &mut self.source {
            Source::Settings(settings) => change(settings),
            Source::Config(_, misused) => *misused = misused.or(Some(setter)),
        }
        self
    }
}

/// Secrets are not shown.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Tls");
        shown.field("server_name", &self.server_name);
        if let Source::Settings(settings) = &self.source {
            shown.field("roots", &settings.roots).field("identity", &settings.identity);
            shown.field("accepts_any_name", &settings.accepts_any_name);
        }
        shown.finish_non_exhaustive()
    }
}

impl Settings {
    fn materials(&self) -> impl Iterator<Item = &Material> {
        self.roots.materials.iter().chain(self.identity.iter().flat_map(Identity::materials))
    }

    fn stamps(&self) -> Stamps {
        Stamps::of(self.materials())
    }

    fn config(&self) -> Result<ClientConfig, String> {
        let provider = provider()?;
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|why| format!("the cryptography provider has no version of TLS ({why})"))?;
        let verifier = Verifier::new(self.roots.load()?, provider, self.accepts_any_name)?;
        // "Dangerous" is what rustls calls a verifier that it has not made itself.
        let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
        match &self.identity {
            None => Ok(builder.with_no_client_auth()),
            Some(identity) => {
                let (chain, key) = identity.load(self.key_password.as_ref())?;
                let wrong = |why| format!("the client's certificate and key cannot be used ({why})");
                builder.with_client_auth_cert(chain, key).map_err(wrong)
            }
        }
    }
}

/// The TLS of a connected handle, which reads changed files again.
#[derive(Clone)]
pub(crate) struct FreshTls {
    tls: Tls,
    current: Arc<Mutex<Current>>,
}

/// What is spoken with.
struct Current {
    config: Arc<ClientConfig>,
    /// Those of the files that it was read from.
    stamps: Stamps,
    /// Whether what is in the files now cannot be used.
    is_failing: bool,
}

impl FreshTls {
    /// # Errors
    /// Which issuer, certificate, key or name is wrong, in words.
    pub(crate) fn new(tls: Tls) -> Result<Self, String> {
        if let Some(name) = &tls.server_name {
            server_name(name)?;
        }
        // The stamps first: what changes while it is read is then read once more.
        let (config, stamps) = match &tls.source {
            Source::Config(_, Some(setter)) => {
                return Err(format!(
                    "{setter} was called on a Tls that is made from a rustls::ClientConfig, which has settings of its \
                     own: set it there, or begin with Tls::new"
                ));
            }
            Source::Config(config, None) => (config.clone(), Stamps::default()),
            Source::Settings(settings) => {
                let stamps = settings.stamps();
                (Arc::new(settings.config()?), stamps)
            }
        };
        Ok(Self { tls, current: Arc::new(Mutex::new(Current { config, stamps, is_failing: false })) })
    }

    /// Whether there are files to be looked at, which may lie on a disk that takes its time.
    pub(crate) fn is_on_disk(&self) -> bool {
        match &self.tls.source {
            Source::Config(..) => false,
            Source::Settings(settings) => settings.materials().any(Material::is_file),
        }
    }

    /// What to speak with now. Not to be called where others wait, if it [is on disk](Self::is_on_disk).
    pub(crate) fn config(&self) -> Arc<ClientConfig> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Source::Settings(settings) = &self.tls.source {
            let stamps = settings.stamps();
            if stamps != current.stamps {
                match settings.config() {
                    Ok(config) => {
                        tracing::info!("read the certificates of TLS again");
                        *current = Current { config: Arc::new(config), stamps, is_failing: false };
                    }
                    // One line until it succeeds, and not one for each new connection.
                    Err(why) if current.is_failing => tracing::debug!(%why, "kept the old certificates of TLS"),
                    Err(why) => {
                        tracing::warn!(%why, "kept the old certificates of TLS; they are looked at again and again");
                        current.is_failing = true;
                    }
                }
            }
        }
        current.config.clone()
    }

    /// The name that the certificate of the broker at `host` must be for.
    ///
    /// # Errors
    /// It is no name for a certificate.
    pub(crate) fn name_of(&self, host: &str) -> Result<ServerName<'static>, String> {
        server_name(self.tls.server_name.as_deref().unwrap_or(host))
    }
}

/// A name as certificates have it: a name that ends in a dot is found by DNS and stands in no certificate.
fn server_name(name: &str) -> Result<ServerName<'static>, String> {
    let without_dot = name.strip_suffix('.').unwrap_or(name);
    ServerName::try_from(without_dot.to_owned()).map_err(|_| format!("'{name}' is no name for a certificate"))
}
