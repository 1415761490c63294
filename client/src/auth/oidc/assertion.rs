//! [`Assertion`]: a signed token (JWT) that says who the client is, made here or by somebody else.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustls::pki_types::PrivateKeyDer;
use rustls::{SignatureAlgorithm, SignatureScheme};
use serde_json::{Map, Value, json};

use super::der;
use crate::auth::Secret;
use crate::environment::Environment;
use crate::files::{Files, shown};
use crate::tls::PrivateKey;

/// How long an assertion is good for. Java: `sasl.oauthbearer.assertion.claim.exp.seconds`.
const LIFE: Duration = Duration::from_secs(300);

/// How long before now it begins to be, because clocks differ. Java:
/// `sasl.oauthbearer.assertion.claim.nbf.seconds`.
const EARLIER: Duration = Duration::from_secs(60);

/// With which algorithm an assertion is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AssertionAlgorithm {
    /// RSA with SHA-256.
    Rs256,
    /// ECDSA with the curve P-256 and SHA-256.
    Es256,
    /// Ed25519.
    EdDsa,
}

impl AssertionAlgorithm {
    const fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
            Self::EdDsa => "EdDSA",
        }
    }

    const fn scheme(self) -> SignatureScheme {
        match self {
            Self::Rs256 => SignatureScheme::RSA_PKCS1_SHA256,
            Self::Es256 => SignatureScheme::ECDSA_NISTP256_SHA256,
            Self::EdDsa => SignatureScheme::ED25519,
        }
    }

    /// What a key of this kind signs with.
    const fn of(kind: SignatureAlgorithm) -> Option<Self> {
        match kind {
            SignatureAlgorithm::RSA => Some(Self::Rs256),
            SignatureAlgorithm::ECDSA => Some(Self::Es256),
            SignatureAlgorithm::ED25519 => Some(Self::EdDsa),
            _ => None,
        }
    }
}

/// A token that the client shows a token endpoint instead of a secret, for [`Oidc`](super::Oidc).
///
/// Either somebody else writes it into a file, as platforms do for their workloads, or it is made here for each
/// request, signed with a key that never leaves this machine.
///
/// ```no_run
/// use krafka::{Assertion, Oidc};
///
/// let assertion = Assertion::signed_by_file("/etc/kafka/client.key")
///     .issuer("billing")
///     .subject("billing")
///     .audience("https://login.example/oauth2/token");
/// let tokens = Oidc::client_assertion("https://login.example/oauth2/token", "billing", assertion);
///
/// let of_platform = Assertion::from_file("/var/run/secrets/tokens/kafka");
/// let tokens = Oidc::jwt_bearer("https://login.example/oauth2/token", of_platform);
/// ```
#[derive(Clone)]
pub struct Assertion {
    source: Source,
}

#[derive(Clone)]
enum Source {
    File(PathBuf),
    Text(Secret),
    Signed(Box<Signed>),
}

#[derive(Clone)]
struct Signed {
    key: PrivateKey,
    algorithm: Option<AssertionAlgorithm>,
    key_id: Option<String>,
    claims: Map<String, Value>,
    life: Duration,
    earlier: Duration,
    has_id: bool,
}

impl Assertion {
    /// Takes a token that somebody else has signed and written into this file, which is read again for each request.
    ///
    /// Java: `sasl.oauthbearer.assertion.file`.
    pub fn from_file(path: impl Into<PathBuf>) -> Self {
        Self { source: Source::File(path.into()) }
    }

    /// Takes a token that somebody else has signed.
    pub fn from_text(token: impl Into<String>) -> Self {
        Self { source: Source::Text(Secret::new(token)) }
    }

    /// Signs with the private key in this PEM file, which is read again for each request. Say who it is about with
    /// [`issuer`](Self::issuer), [`subject`](Self::subject) and [`audience`](Self::audience).
    ///
    /// Java: `sasl.oauthbearer.assertion.private.key.file`.
    pub fn signed_by_file(path: impl Into<PathBuf>) -> Self {
        Self::signed(PrivateKey::file(path))
    }

    /// Signs with the private key in this PEM text.
    pub fn signed_by_pem(pem: impl AsRef<[u8]>) -> Self {
        Self::signed(PrivateKey::pem(pem))
    }

    fn signed(key: PrivateKey) -> Self {
        let (claims, life, earlier) = (Map::new(), LIFE, EARLIER);
        let signed = Signed { key, algorithm: None, key_id: None, claims, life, earlier, has_id: true };
        Self { source: Source::Signed(Box::new(signed)) }
    }

    /// Decrypts the key with this password (PKCS #8). Needs the feature `encrypted-keys`. Java:
    /// `sasl.oauthbearer.assertion.private.key.passphrase`.
    #[cfg(feature = "encrypted-keys")]
    #[must_use]
    pub fn key_password(self, password: impl Into<String>) -> Self {
        self.with(|signed| signed.key.decrypt_with(Secret::new(password)))
    }

    /// Sets the algorithm. Default: RS256, ES256 or EdDSA, as the key wants. Java:
    /// `sasl.oauthbearer.assertion.algorithm`.
    #[must_use]
    pub fn algorithm(self, algorithm: AssertionAlgorithm) -> Self {
        self.with(|signed| signed.algorithm = Some(algorithm))
    }

    /// Names the key, by the header `kid`, for endpoints that know several. Default: it has no name.
    #[must_use]
    pub fn key_id(self, id: impl Into<String>) -> Self {
        self.with(|signed| signed.key_id = Some(id.into()))
    }

    /// Sets who has made it: the claim `iss`. Java: `sasl.oauthbearer.assertion.claim.iss`.
    #[must_use]
    pub fn issuer(self, issuer: impl Into<String>) -> Self {
        self.claim("iss", issuer)
    }

    /// Sets whom it is about: the claim `sub`. Java: `sasl.oauthbearer.assertion.claim.sub`.
    #[must_use]
    pub fn subject(self, subject: impl Into<String>) -> Self {
        self.claim("sub", subject)
    }

    /// Sets whom it is for, the token endpoint as a rule: the claim `aud`. Java:
    /// `sasl.oauthbearer.assertion.claim.aud`.
    #[must_use]
    pub fn audience(self, audience: impl Into<String>) -> Self {
        self.claim("aud", audience)
    }

    /// Sets any other claim.
    #[must_use]
    pub fn claim(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.with(|signed| drop(signed.claims.insert(name.into(), Value::String(value.into()))))
    }

    /// Sets how long it is good for: the claim `exp`. Default: 5 min. Java:
    /// `sasl.oauthbearer.assertion.claim.exp.seconds`.
    #[must_use]
    pub fn life(self, life: Duration) -> Self {
        self.with(|signed| signed.life = crate::limits::finite(life))
    }

    /// Sets how long before now it begins to be good, because clocks differ: the claim `nbf`. Default: 1 min. Java:
    /// `sasl.oauthbearer.assertion.claim.nbf.seconds`.
    #[must_use]
    pub fn begins_before(self, earlier: Duration) -> Self {
        self.with(|signed| signed.earlier = earlier)
    }

    /// Sets whether each has an id that no other has, by which the endpoint knows one that comes twice: the claim
    /// `jti`. Default: yes. Java: `sasl.oauthbearer.assertion.claim.jti.include`, which is off by default.
    #[must_use]
    pub fn with_id(self, has_id: bool) -> Self {
        self.with(|signed| signed.has_id = has_id)
    }

    /// Changes what is signed here; a token of somebody else is what it is.
    fn with(mut self, change: impl FnOnce(&mut Signed)) -> Self {
        if let Source::Signed(signed) = &mut self.source {
            change(signed);
        }
        self
    }

    /// The file that it is in, or its key, if one is.
    pub(super) fn path(&self) -> Option<&Path> {
        match &self.source {
            Source::Text(_) => None,
            Source::File(path) => Some(path),
            Source::Signed(signed) => signed.key.path(),
        }
    }

    /// The token, of what was read.
    pub(super) fn write(&self, files: &Files, environment: &Environment) -> Result<Secret, String> {
        match &self.source {
            Source::Text(token) => Ok(token.clone()),
            Source::File(path) => {
                let text = std::str::from_utf8(files.get(path)?);
                match text.map(str::trim) {
                    Err(_) => Err(format!("{} is no text", shown(path))),
                    Ok("") => Err(format!("{} is empty", shown(path))),
                    Ok(token) => Ok(Secret::new(token)),
                }
            }
            Source::Signed(signed) => {
                signed.write(files, environment.clock().now(), || environment.nonces().draw()).map(Secret::new)
            }
        }
    }
}

impl Signed {
    fn write(&self, files: &Files, now: SystemTime, id: impl FnOnce() -> String) -> Result<String, String> {
        let key = self.key.load(files)?;
        let key: PrivateKeyDer<'static> = key;
        let provider = crate::tls::provider()?;
        let key = provider.key_provider.load_private_key(key);
        let key = key.map_err(|why| format!("the key in {} cannot be used ({why})", self.key.name()))?;
        let algorithm = self.algorithm.or_else(|| AssertionAlgorithm::of(key.algorithm()));
        let algorithm = algorithm.ok_or("the key is of a kind that cannot sign")?;
        let unfit = || format!("the key in {} cannot sign by {}", self.key.name(), algorithm.name());
        let signer = key.choose_scheme(&[algorithm.scheme()]).ok_or_else(unfit)?;

        let section = |json: &Map<String, Value>| URL_SAFE_NO_PAD.encode(Value::Object(json.clone()).to_string());
        let message = format!("{}.{}", section(&self.header(algorithm)), section(&self.claims(now, id)));
        let signature = signer.sign(message.as_bytes()).map_err(|why| format!("it cannot be signed ({why})"))?;
        let signature = match algorithm {
            AssertionAlgorithm::Es256 => der::fixed(&signature).map(Vec::from).ok_or_else(unfit)?,
            AssertionAlgorithm::Rs256 | AssertionAlgorithm::EdDsa => signature,
        };
        Ok(format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    fn header(&self, algorithm: AssertionAlgorithm) -> Map<String, Value> {
        let mut header = Map::new();
        header.insert("alg".to_owned(), json!(algorithm.name()));
        header.insert("typ".to_owned(), json!("JWT"));
        if let Some(id) = &self.key_id {
            header.insert("kid".to_owned(), json!(id));
        }
        header
    }

    fn claims(&self, now: SystemTime, id: impl FnOnce() -> String) -> Map<String, Value> {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut claims = self.claims.clone();
        claims.insert("iat".to_owned(), json!(now.as_secs()));
        claims.insert("nbf".to_owned(), json!(now.saturating_sub(self.earlier).as_secs()));
        claims.insert("exp".to_owned(), json!((now + self.life).as_secs()));
        if self.has_id {
            claims.insert("jti".to_owned(), json!(id()));
        }
        claims
    }
}

/// Secrets are not shown.
impl fmt::Debug for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Source::File(path) => f.debug_tuple("File").field(&format_args!("{}", shown(path))).finish(),
            Source::Text(text) => f.debug_tuple("Text").field(text).finish(),
            Source::Signed(signed) => {
                let mut shown = f.debug_struct("Signed");
                shown.field("key", &signed.key.name()).field("claims", &signed.claims).finish_non_exhaustive()
            }
        }
    }
}
