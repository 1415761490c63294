//! [`Tls`]: whom the client trusts, which certificate it shows, and how both are kept fresh.

mod allowed;
mod explain;
mod faults;
mod fresh;
mod identity;
mod key;
#[cfg(feature = "keystores")]
mod keystore;
mod material;
mod pem;
mod provider;
mod roots;
#[cfg(feature = "keystores")]
mod store;
mod verifier;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ClientConfig;

use self::allowed::Allowed;
pub use self::allowed::TlsVersion;
#[cfg(feature = "oidc")]
pub(crate) use self::explain::cause;
pub(crate) use self::explain::{Peer, explain, explain_late};
pub(crate) use self::fresh::FreshTls;
use self::identity::Identity;
#[cfg(feature = "oidc")]
pub(crate) use self::key::PrivateKey;
#[cfg(feature = "keystores")]
use self::keystore::Keystore;
use self::material::Material;
pub(crate) use self::provider::provider;
use self::roots::Roots;
use self::verifier::Verifier;
use crate::auth::Secret;
use crate::files::Files;

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
/// A file is read on a thread of its own, up to 16 MiB of it. One on a volume that hangs costs the process this one
/// thread, and holds up neither a runtime nor its end; what waits for it does so no longer than
/// [`connect_timeout`](crate::KafkaBuilder::connect_timeout).
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
    allowed: Allowed,
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
    /// For clusters with an issuer of their own. May be called more than once. For Java's key stores there is
    /// `roots_keystore` (feature `keystores`). Java: `ssl.truststore.location` with `ssl.truststore.type=PEM`.
    #[must_use]
    pub fn roots_file(self, path: impl Into<PathBuf>) -> Self {
        self.with("roots_file", |settings| settings.roots.materials.push(Material::File(path.into())))
    }

    /// Trusts the issuers in a PEM text. May be called more than once. Java: `ssl.truststore.certificates`.
    #[must_use]
    pub fn roots_pem(self, pem: impl AsRef<[u8]>) -> Self {
        self.with("roots_pem", |settings| settings.roots.materials.push(Material::text(pem)))
    }

    /// Trusts the issuers in a key store of Java's, JKS or PKCS #12. May be called more than once. Needs the feature
    /// `keystores`, which is there by default.
    ///
    /// They are those that the store marks as trusted, and the own certificates of keys in it; in a store that has
    /// neither, as openssl makes them, all. Without a password (an empty one) nothing tells whether the store was
    /// changed, as in Java, and nothing in it may be encrypted; nor does anything in a PKCS #12 store that was written
    /// without a MAC. Java: `ssl.truststore.location` with `ssl.truststore.password`.
    #[cfg(feature = "keystores")]
    #[must_use]
    pub fn roots_keystore(self, path: impl Into<PathBuf>, password: impl Into<String>) -> Self {
        let keystore = Keystore::new(path, password);
        self.with("roots_keystore", |settings| settings.roots.keystores.push(keystore))
    }

    /// [`roots_keystore`](Self::roots_keystore), where the feature is not known to be there.
    #[cfg_attr(not(feature = "keystores"), expect(unused_variables, reason = "there is nothing to open it with"))]
    pub(crate) fn with_roots_keystore(self, path: &str, password: &str) -> Result<Self, String> {
        #[cfg(feature = "keystores")]
        return Ok(self.roots_keystore(path, password));
        #[cfg(not(feature = "keystores"))]
        Err("ssl.truststore.location is a key store: build krafka with the feature keystores, which is there by \
             default, or convert it (keytool -list -rfc -keystore STORE > ca.pem), name that instead, and set \
             ssl.truststore.type=PEM"
            .to_owned())
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
        self.with("identity_files", |settings| settings.identity = Some(Identity::Pem { chain, key }))
    }

    /// Shows the broker a certificate, given as PEM texts. Java: `ssl.keystore.certificate.chain` and
    /// `ssl.keystore.key`.
    #[must_use]
    pub fn identity_pem(self, chain: impl AsRef<[u8]>, key: impl AsRef<[u8]>) -> Self {
        let (chain, key) = (Material::text(chain), Material::text(key));
        self.with("identity_pem", |settings| settings.identity = Some(Identity::Pem { chain, key }))
    }

    /// Shows the broker a certificate: the one in a key store of Java's, JKS or PKCS #12, which has a single key in it.
    /// Needs the feature `keystores`, which is there by default.
    ///
    /// A key that has a password of its own needs [`key_password`](Self::key_password), too. Java:
    /// `ssl.keystore.location` with `ssl.keystore.password`.
    #[cfg(feature = "keystores")]
    #[must_use]
    pub fn identity_keystore(self, path: impl Into<PathBuf>, password: impl Into<String>) -> Self {
        let keystore = Keystore::new(path, password);
        self.with("identity_keystore", |settings| settings.identity = Some(Identity::Keystore(keystore)))
    }

    /// [`identity_keystore`](Self::identity_keystore), where the feature is not known to be there.
    #[cfg_attr(not(feature = "keystores"), expect(unused_variables, reason = "there is nothing to open it with"))]
    pub(crate) fn with_identity_keystore(self, path: &str, password: &str) -> Result<Self, String> {
        #[cfg(feature = "keystores")]
        return Ok(self.identity_keystore(path, password));
        #[cfg(not(feature = "keystores"))]
        Err("ssl.keystore.location is a key store: build krafka with the feature keystores, which is there by default, \
             or convert it (JKS first: keytool -importkeystore -srckeystore STORE -destkeystore me.p12 -deststoretype \
             PKCS12; then: openssl pkcs12 -in me.p12 -out me.pem), name that instead, and set ssl.keystore.type=PEM"
            .to_owned())
    }

    /// Decrypts the key of the certificate that is shown with this password: one that begins with `BEGIN ENCRYPTED
    /// PRIVATE KEY` (PKCS #8), for which the feature `encrypted-keys` is needed, or one in a key store whose own
    /// password is another. Java: `ssl.key.password`.
    #[cfg(any(feature = "encrypted-keys", feature = "keystores"))]
    #[must_use]
    pub fn key_password(self, password: impl Into<String>) -> Self {
        self.with("key_password", |settings| settings.key_password = Some(Secret::new(password)))
    }

    /// [`key_password`](Self::key_password), where the feature is not known to be there.
    #[cfg_attr(
        not(any(feature = "encrypted-keys", feature = "keystores")),
        expect(unused_variables, reason = "there is nothing to decrypt with")
    )]
    pub(crate) fn with_key_password(self, password: &str) -> Result<Self, String> {
        #[cfg(any(feature = "encrypted-keys", feature = "keystores"))]
        return Ok(self.key_password(password));
        #[cfg(not(any(feature = "encrypted-keys", feature = "keystores")))]
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

    /// Speaks these versions of TLS only.
    ///
    /// For rules that ask for TLS 1.3, or for a broker whose TLS 1.3 is not well. Default: both. Java:
    /// `ssl.enabled.protocols`.
    #[must_use]
    pub fn versions(self, versions: impl IntoIterator<Item = TlsVersion>) -> Self {
        let versions = versions.into_iter().collect();
        self.with("versions", |settings| settings.allowed.versions = Some(versions))
    }

    /// Offers these cipher suites only, by the names that IANA and Java have for them, such as
    /// `TLS_AES_256_GCM_SHA384`. Names that are not there are passed over with a warning.
    ///
    /// For rules that ask for it: those that are there are all good. Default: all of the cryptography that krafka is
    /// built with. Java: `ssl.cipher.suites`.
    #[must_use]
    pub fn cipher_suites(self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let names = names.into_iter().map(Into::into).collect();
        self.with("cipher_suites", |settings| settings.allowed.suites = Some(names))
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
            shown.field("accepts_any_name", &settings.accepts_any_name).field("allowed", &settings.allowed);
        }
        shown.finish_non_exhaustive()
    }
}

impl Settings {
    /// The files that they are in.
    fn paths(&self) -> impl Iterator<Item = &Path> {
        self.roots.paths().chain(self.identity.iter().flat_map(Identity::paths))
    }

    /// Whether to make a configuration takes long: of files, and of encrypted keys.
    fn takes_long(&self) -> bool {
        self.key_password.is_some() || self.roots.are_native() || self.paths().next().is_some()
    }

    fn config(&self, files: &Files) -> Result<ClientConfig, String> {
        let (provider, versions) = self.allowed.of(provider()?)?;
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&versions)
            .map_err(|why| format!("the cryptography provider has no version of TLS ({why})"))?;
        let verifier = Verifier::new(self.roots.load(files)?, provider, self.accepts_any_name)?;
        // "Dangerous" is what rustls calls a verifier that it has not made itself.
        let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
        match &self.identity {
            None => Ok(builder.with_no_client_auth()),
            Some(identity) => {
                let (chain, key) = identity.load(files, self.key_password.as_ref())?;
                let wrong = |why| format!("the client's certificate and key cannot be used ({why})");
                builder.with_client_auth_cert(chain, key).map_err(wrong)
            }
        }
    }
}
