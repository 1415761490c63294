//! Who the client is: SASL mechanisms and the secrets that they use.
//!
//! [`Login`] is what the user chose, [`Credentials`] what a connected handle keeps of it, and an [`Exchange`] one
//! authentication on one connection.

mod aws;
mod driver;
mod exchange;
mod nonces;
mod oauth;
#[cfg(feature = "oidc")]
mod oidc;
mod plain;
mod saslprep;
mod scram;
mod secret;
mod tokens;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use krafka_protocol::Str;

#[cfg(feature = "aws-config")]
pub use self::aws::AwsSdk;
pub use self::aws::{AwsCredentials, AwsCredentialsProvider, AwsEnvironment, MskIam, ProvidingCredentials};
use self::driver::Shared;
pub(crate) use self::exchange::{Exchange, Next};
pub(crate) use self::nonces::Nonces;
pub use self::oauth::{BearerToken, ProvidingToken, TokenError, TokenProvider};
#[cfg(feature = "oidc")]
pub use self::oidc::{Assertion, AssertionAlgorithm, Oidc};
pub(crate) use self::plain::Plain;
pub(crate) use self::scram::{Scram, ScramHash};
pub(crate) use self::secret::{Secret, SecretText};
use self::tokens::Given;
use crate::environment::{Environment, WallClock};
use crate::error::KrafkaError;

/// How the client is to authenticate, as the user said. One variant per kind of SASL mechanism.
#[derive(Clone)]
pub(crate) enum Login {
    /// A user name and a password, sent as they are (RFC 4616): use TLS with it.
    Plain(Plain),
    /// A user name and a password, or a delegation token, of which only proofs are sent.
    Scram(Scram),
    /// A token that somebody else issued.
    Bearer(Arc<dyn TokenProvider>),
    /// A request signed with the keys of AWS.
    MskIam(MskIam),
}

impl Login {
    /// Why the mechanism cannot carry what it was given, if it cannot.
    pub(crate) fn fault(&self) -> Option<String> {
        match self {
            Self::Plain(plain) => plain.fault().map(|fault| format!("sasl_plain: {fault}")),
            Self::Scram(scram) => scram.fault().map(|fault| format!("{}: {fault}", scram.mechanism())),
            Self::Bearer(_) => None,
            Self::MskIam(iam) => iam.fault().map(|fault| format!("sasl_aws_msk_iam: {fault}")),
        }
    }
}

impl Login {
    /// What everybody on the way can read, and use, where there is no TLS.
    pub(crate) fn bare_secret(&self) -> Option<&'static str> {
        match self {
            Self::Plain(_) => Some("the password"),
            Self::Bearer(_) => Some("the token"),
            // Only proofs are sent.
            Self::Scram(_) | Self::MskIam(_) => None,
        }
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(plain) => plain.fmt(f),
            Self::Scram(scram) => scram.fmt(f),
            Self::Bearer(_) => f.write_str("Bearer"),
            Self::MskIam(iam) => iam.fmt(f),
        }
    }
}

/// The credentials of a connected handle. All its connections share them.
pub(crate) struct Credentials {
    kind: Kind,
    nonces: Nonces,
    wall_clock: Arc<dyn WallClock>,
    /// Whether a broker took the prepared spelling of a name or password after it refused the given one.
    prefers_prepared: AtomicBool,
}

enum Kind {
    Plain(Plain),
    Scram { given: Scram, prepared: Option<Scram> },
    Bearer { tokens: Shared<BearerToken>, name: String },
    MskIam { iam: MskIam, keys: Shared<AwsCredentials> },
}

/// An authentication that begins.
pub(crate) struct Begun {
    pub(crate) exchange: Exchange,
    /// What a provider lent for it, if one did.
    pub(crate) lent: Option<Lent>,
}

/// Which of a provider's tokens or keys it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lent {
    number: u64,
    is_new: bool,
}

/// What [`Credentials::beginning`] returns: an exchange, at some time.
pub(crate) type Beginning = Pin<Box<dyn Future<Output = Result<Exchange, KrafkaError>> + Send>>;

/// How a name and a password are spelt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// As the user gave them, which is what Kafka's own tools keep.
    Given,
    /// As RFC 4013 (SASLprep) writes them, which is what RFC 5802 wants brokers to keep.
    Prepared,
}

impl Credentials {
    /// `patience` is how long a provider may take.
    pub(crate) fn new(login: Login, patience: Duration, environment: &Environment) -> Self {
        let kind = match login {
            Login::Plain(plain) => Kind::Plain(plain),
            Login::Scram(given) => Kind::Scram { prepared: given.as_prepared(), given },
            Login::Bearer(provider) => {
                let name = provider.name();
                Kind::Bearer { tokens: Shared::tokens(provider, patience, environment), name }
            }
            Login::MskIam(iam) => {
                Kind::MskIam { keys: Shared::keys(iam.provider().clone(), patience, environment), iam }
            }
        };
        let (nonces, wall_clock) = (environment.nonces(), environment.clock());
        Self { kind, nonces, wall_clock, prefers_prepared: AtomicBool::new(false) }
    }

    /// Who gives the credentials, in words.
    pub(crate) fn provider(&self) -> &str {
        match &self.kind {
            Kind::Plain(_) | Kind::Scram { .. } => "the user",
            Kind::Bearer { name, .. } => name,
            Kind::MskIam { .. } => driver::AWS,
        }
    }

    /// The spellings to try in turn: one for nearly all.
    pub(crate) fn spellings(&self) -> &'static [Spelling] {
        match &self.kind {
            Kind::Scram { prepared: Some(_), .. } if self.prefers_prepared.load(Ordering::Relaxed) => {
                &[Spelling::Prepared, Spelling::Given]
            }
            Kind::Scram { prepared: Some(_), .. } => &[Spelling::Given, Spelling::Prepared],
            Kind::Plain(_) | Kind::Scram { .. } | Kind::Bearer { .. } | Kind::MskIam { .. } => &[Spelling::Given],
        }
    }

    /// A broker refused what was lent by a provider: whether there is another to be tried.
    pub(crate) fn refused(&self, lent: Lent) -> bool {
        match &self.kind {
            Kind::Plain(_) | Kind::Scram { .. } => return false,
            Kind::Bearer { tokens, .. } => tokens.refused(lent.number),
            Kind::MskIam { keys, .. } => keys.refused(lent.number),
        }
        !lent.is_new
    }

    /// Begins an authentication with the broker of this name. Bound it by a deadline: it may ask a provider.
    ///
    /// # Errors
    /// There is no token, or none that the mechanism can carry.
    ///
    /// # Cancel safety
    /// Dropping the future only stops the waiting.
    pub(crate) async fn begin(&self, spelling: Spelling, host: &str) -> Result<Begun, KrafkaError> {
        let own = |exchange| Ok(Begun { exchange, lent: None });
        match (&self.kind, spelling) {
            (Kind::Plain(plain), _) => own(Exchange::Plain(plain.clone())),
            (Kind::Scram { prepared: Some(prepared), .. }, Spelling::Prepared) => {
                own(Exchange::Scram(prepared.begin(self.nonces.draw())))
            }
            (Kind::Scram { given, .. }, _) => own(Exchange::Scram(given.begin(self.nonces.draw()))),
            (Kind::Bearer { tokens, .. }, _) => {
                let Given { token, number, is_new } = tokens.get().await?;
                let exchange = Exchange::Bearer(oauth::Exchange::new(token));
                Ok(Begun { exchange, lent: Some(Lent { number, is_new }) })
            }
            (Kind::MskIam { iam, keys }, _) => {
                let Given { token: keys, number, is_new } = keys.get().await?;
                let refused = |fault| KrafkaError::auth(format!("authenticating with AWS_MSK_IAM: {fault}"));
                let exchange = iam.begin(&keys, host, self.wall_clock.now());
                let exchange = exchange.map(Exchange::MskIam).map_err(refused)?;
                Ok(Begun { exchange, lent: Some(Lent { number, is_new }) })
            }
        }
    }

    /// [`begin`](Self::begin) as a future that lives by itself.
    pub(crate) fn beginning(self: &Arc<Self>, spelling: Spelling, host: Str) -> Beginning {
        let credentials = self.clone();
        Box::pin(async move { Ok(credentials.begin(spelling, &host).await?.exchange) })
    }

    /// Asks no provider any more: the client is closed.
    pub(crate) fn close(&self) {
        match &self.kind {
            Kind::Plain(_) | Kind::Scram { .. } => {}
            Kind::Bearer { tokens, .. } => tokens.close(),
            Kind::MskIam { keys, .. } => keys.close(),
        }
    }

    /// Says that a broker took this spelling.
    pub(crate) fn accepted(&self, spelling: Spelling) {
        self.prefers_prepared.store(spelling == Spelling::Prepared, Ordering::Relaxed);
    }
}
