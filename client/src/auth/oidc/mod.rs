//! [`Oidc`]: a provider of bearer tokens that asks an OAuth 2.0 token endpoint (KIP-768, KIP-1139).
//!
//! ```text
//!   POST token endpoint: grant_type, scope, …    who the client is: a secret, or a signed assertion
//!   200 {"access_token":…,"expires_in":…}        anything else: why not
//! ```
//!
//! When the next token is asked for is not decided here: that is the same for all providers (`auth/tokens.rs`).

mod answer;
mod assertion;
mod der;
mod driver;
mod endpoint;
mod form;
mod spoken;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OnceCell;

pub use self::assertion::{Assertion, AssertionAlgorithm};
use self::endpoint::Endpoint;
use self::form::Form;
use self::spoken::Spoken;
use super::{BearerToken, ProvidingToken, Secret, SecretText, TokenError, TokenProvider};
use crate::environment::Environment;
use crate::error::KrafkaError;
use crate::files::Files;
use crate::tls::{FreshTls, Tls};

/// Gets bearer tokens from an OAuth 2.0 or OpenID Connect token endpoint, for
/// [`sasl_oauthbearer`](crate::KafkaBuilder::sasl_oauthbearer).
///
/// ```no_run
/// use krafka::{Kafka, Oidc};
///
/// # async fn example() -> krafka::Result<()> {
/// let tokens = Oidc::client_credentials("https://login.example/oauth2/token", "billing", "secret").scope("kafka");
/// let kafka = Kafka::builder("kafka:9093").sasl_oauthbearer(tokens).connect().await?;
/// # Ok(())
/// # }
/// ```
///
/// One token serves all connections of a handle. The next one is asked for when four fifths of its life are over, and
/// the old token is used as long as it holds. An endpoint that is down is left alone for a second, then for two, four
/// and so on up to 30 (±20 %); who needs a token meanwhile and has none hears what the last request met with. An
/// endpoint that refuses (a wrong secret, a scope that the client may not have) makes connecting fail with
/// [`KrafkaError::Auth`] and the endpoint's own words, as far as they are the `error` and `error_description` of an
/// OAuth answer; secrets that they repeat are struck out.
///
/// Needs the feature `oidc`. Java: `sasl.mechanism=OAUTHBEARER` with `sasl.oauthbearer.token.endpoint.url`.
#[derive(Clone)]
pub struct Oidc {
    settings: Settings,
    /// What the settings are made into when the first token is asked for.
    ready: Arc<OnceCell<Ready>>,
}

#[derive(Clone)]
struct Settings {
    token_url: String,
    grant: Grant,
    scope: Option<String>,
    encodes_credentials: bool,
    params: Vec<(String, Secret)>,
    extensions: Vec<(String, String)>,
    tls: Option<Tls>,
    timeout: Duration,
    environment: Environment,
}

/// What the endpoint is shown.
#[derive(Clone)]
enum Grant {
    /// The client's id and its secret, in a header (RFC 6749, section 4.4).
    Secret { client_id: String, secret: Secret },
    /// The client's id, and a token that it has signed, or was given (RFC 7523, section 2.2).
    ClientAssertion { client_id: String, assertion: Assertion },
    /// A token that stands for whoever it is about (RFC 7523, section 2.1).
    JwtBearer { assertion: Assertion },
}

/// How to reach the endpoint.
struct Ready {
    endpoint: Endpoint,
    tls: Option<FreshTls>,
}

impl Oidc {
    /// Shows the endpoint a client id and its secret: the grant `client_credentials` of RFC 6749, which most identity
    /// providers have for services.
    ///
    /// Java: `clientId` and `clientSecret` in `sasl.jaas.config`, or `sasl.oauthbearer.client.credentials.*`.
    pub fn client_credentials(
        token_url: impl Into<String>,
        client_id: impl Into<String>,
        client_secret: impl Into<String>,
    ) -> Self {
        Self::new(token_url.into(), Grant::Secret { client_id: client_id.into(), secret: Secret::new(client_secret) })
    }

    /// Shows the endpoint a client id and a signed token instead of a secret: `client_credentials` with
    /// `private_key_jwt` (RFC 7523), which keeps the key on this machine.
    pub fn client_assertion(token_url: impl Into<String>, client_id: impl Into<String>, assertion: Assertion) -> Self {
        Self::new(token_url.into(), Grant::ClientAssertion { client_id: client_id.into(), assertion })
    }

    /// Exchanges a signed token for an access token: the grant `jwt-bearer` of RFC 7523 (KIP-1139), with which
    /// platforms let a workload's own token stand for it.
    ///
    /// Java: `sasl.oauthbearer.jwt.retriever.class=…JwtBearerJwtRetriever` with `sasl.oauthbearer.assertion.*`.
    pub fn jwt_bearer(token_url: impl Into<String>, assertion: Assertion) -> Self {
        Self::new(token_url.into(), Grant::JwtBearer { assertion })
    }

    fn new(token_url: String, grant: Grant) -> Self {
        let settings = Settings {
            token_url,
            grant,
            scope: None,
            encodes_credentials: true,
            params: Vec::new(),
            extensions: Vec::new(),
            tls: None,
            timeout: Duration::from_secs(10),
            environment: Environment::default(),
        };
        Self { settings, ready: Arc::default() }
    }

    /// Sets what the token is to allow: names with blanks between. Default: what the endpoint gives by itself. Java:
    /// `sasl.oauthbearer.scope`.
    #[must_use]
    pub fn scope(self, scope: impl Into<String>) -> Self {
        self.with(|settings| settings.scope = Some(scope.into()))
    }

    /// Sets whether the client's id and its secret are written with percent signs, as RFC 6749 has it, before they are
    /// sent (KIP-1025).
    ///
    /// Set it to `false` for an endpoint that takes them as they are; it makes a difference for a secret with anything
    /// but letters and digits in it. Default: `true`. Java: `sasl.oauthbearer.header.urlencode`, which is `false` by
    /// default, in [`from_properties`](crate::Kafka::from_properties) too.
    #[must_use]
    pub fn encode_credentials(self, encodes: bool) -> Self {
        self.with(|settings| settings.encodes_credentials = encodes)
    }

    /// Adds a parameter to the request, such as the `audience` or `resource` that some providers want.
    #[must_use]
    pub fn param(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.with(|settings| settings.params.push((name.into(), Secret::new(value))))
    }

    /// Adds a SASL extension (KIP-342), which the broker gets beside each token. Java: `extension_…` in
    /// `sasl.jaas.config`.
    #[must_use]
    pub fn extension(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.with(|settings| settings.extensions.push((name.into(), value.into())))
    }

    /// Sets which issuers are trusted to vouch for an `https` endpoint. Default: [`Tls::new`], Mozilla's issuers or
    /// those of the operating system, by the features `webpki-roots` (on by default) and `native-roots`. Java:
    /// `sasl.oauthbearer.*` use the settings `ssl.*` of `sasl.jaas.config`.
    #[must_use]
    pub fn tls(self, tls: impl Into<Tls>) -> Self {
        self.with(|settings| settings.tls = Some(tls.into()))
    }

    /// Sets how long one request may take in all. Default: 10 s. Java: `sasl.login.connect.timeout.ms` and
    /// `sasl.login.read.timeout.ms`.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with(|settings| settings.timeout = crate::limits::finite(timeout))
    }

    /// Sets how the endpoint is reached and what time it is: for tests, and for tunnels and proxies. Default: TCP and
    /// the system's clock.
    #[must_use]
    pub fn environment(self, environment: Environment) -> Self {
        self.with(|settings| settings.environment = environment)
    }

    fn with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(&mut self.settings);
        // What was made of the settings before is another's.
        self.ready = Arc::default();
        self
    }
}

impl Settings {
    /// How long files may take: what is left of the whole time is for the request.
    fn patience(&self) -> Duration {
        self.timeout / 2
    }

    async fn ready(&self) -> Result<Ready, KrafkaError> {
        let wrong = |why: String| KrafkaError::config(format!("the token endpoint: {why}"));
        let endpoint = Endpoint::parse(&self.token_url).map_err(wrong)?;
        let tls = match &self.tls {
            _ if !endpoint.is_https() => None,
            Some(tls) => Some(tls.clone()),
            None => Some(Tls::new()),
        };
        if tls.is_none() {
            tracing::warn!(endpoint = %endpoint, "secrets and tokens go to and fro in plain text: use https");
        }
        let tls = match tls {
            None => None,
            Some(tls) => {
                let fresh = FreshTls::new(tls, self.patience()).await;
                Some(fresh.map_err(|why| wrong(format!("tls: {why}")))?)
            }
        };
        Ok(Ready { endpoint, tls })
    }

    /// The request's body, the header that says who the client is, if one does, and the secrets in them.
    async fn request(&self) -> Result<(Form, Option<Secret>, Spoken), KrafkaError> {
        let mut form = Form::new();
        let mut authorization = None;
        let mut spoken = Spoken::default();
        match &self.grant {
            Grant::Secret { client_id, secret } => {
                form.add("grant_type", "client_credentials");
                let basic = form::basic(client_id, secret, self.encodes_credentials);
                spoken.note(secret);
                spoken.note(&basic);
                authorization = Some(SecretText::of(format_args!("Basic {}", basic.expose())).into());
            }
            Grant::ClientAssertion { client_id, assertion } => {
                form.add("grant_type", "client_credentials");
                form.add("client_id", client_id);
                form.add("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
                let assertion = self.write(assertion).await?;
                form.add("client_assertion", assertion.expose());
                spoken.note(&assertion);
            }
            Grant::JwtBearer { assertion } => {
                form.add("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer");
                let assertion = self.write(assertion).await?;
                form.add("assertion", assertion.expose());
                spoken.note(&assertion);
            }
        }
        if let Some(scope) = &self.scope {
            form.add("scope", scope);
        }
        for (name, value) in &self.params {
            form.add(name, value.expose());
            spoken.note(value);
        }
        Ok((form, authorization, spoken))
    }

    async fn write(&self, assertion: &Assertion) -> Result<Secret, KrafkaError> {
        let wrong = |why| KrafkaError::config(format!("the assertion for the token endpoint: {why}"));
        let files = Files::read(assertion.path(), self.patience()).await.map_err(KrafkaError::timeout)?;
        // Files are renewed, and volumes hang: the next time may be another.
        if let Some(Err(why)) = assertion.path().map(|path| files.get(path)) {
            return Err(KrafkaError::network("the assertion for the token endpoint", std::io::Error::other(why)));
        }
        assertion.write(&files, &self.environment).map_err(wrong)
    }
}

impl TokenProvider for Oidc {
    fn token(&self) -> ProvidingToken<'_> {
        Box::pin(async {
            let Settings { environment, timeout, extensions, .. } = &self.settings;
            let ready = self.ready.get_or_try_init(|| self.settings.ready()).await?;
            let (form, authorization, mut spoken) = self.settings.request().await?;
            ready.endpoint.values().for_each(|value| spoken.note(&value));
            let request = driver::Request { endpoint: &ready.endpoint, tls: ready.tls.as_ref(), form, authorization };
            let (status, body) = driver::post(request, environment, *timeout).await?;
            let granted = answer::read(&ready.endpoint, status, &body, &spoken)?;
            let token = BearerToken::new(granted.token);
            let token = match granted.life {
                Some(life) => token.expires_at(environment.clock().now() + life),
                None => token,
            };
            let token = match granted.ends {
                Some(ends) => token.expires_at(ends),
                None => token,
            };
            Ok::<_, TokenError>(extensions.iter().fold(token, |token, (name, value)| token.extension(name, value)))
        })
    }

    fn name(&self) -> String {
        match Endpoint::parse(&self.settings.token_url) {
            Ok(endpoint) => format!("the token endpoint {endpoint}"),
            Err(_) => "the token endpoint".to_owned(),
        }
    }
}

/// Secrets are not shown.
impl fmt::Debug for Oidc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Oidc");
        // A URL may have a password in it, too.
        match Endpoint::parse(&self.settings.token_url) {
            Ok(endpoint) => shown.field("endpoint", &endpoint.to_string()),
            Err(_) => shown.field("endpoint", &"[not valid]"),
        };
        match &self.settings.grant {
            Grant::Secret { client_id, .. } => shown.field("client_id", client_id),
            Grant::ClientAssertion { client_id, assertion } => {
                shown.field("client_id", client_id).field("assertion", assertion)
            }
            Grant::JwtBearer { assertion } => shown.field("assertion", assertion),
        };
        shown.field("encodes_credentials", &self.settings.encodes_credentials);
        shown.field("scope", &self.settings.scope).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
