//! What a cluster knows of those who log in: passwords, credentials, tokens, and for how long a login holds.

use std::collections::BTreeMap;
use std::time::Duration;

use krafka_protocol::{Bytes, Str};

use super::sasl::oauthbearer::Verifier;
use super::sasl::scram::{Claim, ScramCredential, ScramMechanism};
use super::sasl::{Login, SaslMechanism, aws_msk_iam};
use super::tokens::Tokens;
use crate::rng::Rng;
use crate::security::principal::Principal;

/// Kafka's default of `connection.failed.authentication.delay.ms`.
const FAILURE_DELAY: Duration = Duration::from_millis(100);

/// All that is known.
#[derive(Clone, Debug)]
pub(crate) struct Logins {
    /// The mechanisms that are offered: Kafka's `sasl.enabled.mechanisms`.
    pub(crate) mechanisms: Vec<SaslMechanism>,
    /// The passwords of PLAIN, by user.
    pub(crate) plain: BTreeMap<Str, Str>,
    pub(crate) scram: ScramCredentials,
    pub(crate) oauth: Verifier,
    pub(crate) aws: aws_msk_iam::Verifier,
    pub(crate) tokens: Tokens,
    /// For how long a login holds at most: Kafka's `connections.max.reauth.ms`.
    pub(crate) max_reauth: Option<Duration>,
    /// For how long the answer to a failed login is held back.
    pub(crate) failure_delay: Duration,
    /// Chance for salts and nonces.
    pub(crate) chance: Rng,
}

impl Default for Logins {
    fn default() -> Self {
        Self {
            mechanisms: Vec::new(),
            plain: BTreeMap::new(),
            scram: ScramCredentials::default(),
            oauth: Verifier::default(),
            aws: aws_msk_iam::Verifier::default(),
            tokens: Tokens::default(),
            max_reauth: None,
            failure_delay: FAILURE_DELAY,
            chance: Rng::stream(0, "sasl"),
        }
    }
}

impl Logins {
    /// Lets somebody log in by every mechanism that takes a password; one they had before is good no more.
    pub(crate) fn set_password(&mut self, user: &Str, password: &Str) {
        self.plain.insert(user.clone(), password.clone());
        for mechanism in [ScramMechanism::Sha256, ScramMechanism::Sha512] {
            let salt = Bytes::copy_from_slice(&self.chance.uuid().0);
            let credential = ScramCredential::of_password(mechanism, password, salt);
            self.scram.set(user.clone(), mechanism, credential);
        }
    }

    /// Where no mechanisms were named, offers those by which somebody could log in.
    pub(crate) fn complete_mechanisms(&mut self) {
        if !self.mechanisms.is_empty() {
            return;
        }
        let is_possible = |mechanism: &SaslMechanism| match mechanism {
            SaslMechanism::Plain => !self.plain.is_empty(),
            SaslMechanism::ScramSha256 | SaslMechanism::ScramSha512 => !self.scram.by_user.is_empty(),
            SaslMechanism::OAuthBearer => self.oauth.takes_any(),
            SaslMechanism::AwsMskIam => !self.aws.keys.is_empty(),
        };
        self.mechanisms = SaslMechanism::ALL.into_iter().filter(is_possible).collect();
    }
}

/// The SCRAM credentials of all users.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScramCredentials {
    by_user: BTreeMap<Str, BTreeMap<ScramMechanism, ScramCredential>>,
}

impl ScramCredentials {
    /// The credential that a claim must prove, and who has proven it then.
    pub(crate) fn find(
        &self,
        tokens: &Tokens,
        mechanism: ScramMechanism,
        claim: &Claim,
    ) -> Option<(ScramCredential, Login)> {
        let named = match mechanism {
            ScramMechanism::Sha256 => SaslMechanism::ScramSha256,
            ScramMechanism::Sha512 => SaslMechanism::ScramSha512,
        };
        if claim.is_token {
            let token = tokens.by_id(&claim.name)?;
            let login = Login::new(token.owner.clone(), named);
            let login = Login { by_token: true, ends_ms: Some(token.expires_ms), ..login };
            return Some((token.credential(mechanism), login));
        }
        let (name, credentials) = self.by_user.get_key_value(&*claim.name)?;
        Some((credentials.get(&mechanism)?.clone(), Login::new(Principal::user(name.clone()), named)))
    }

    /// All users that have a credential, with their credentials.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Str, &BTreeMap<ScramMechanism, ScramCredential>)> {
        self.by_user.iter()
    }

    /// A user's credentials.
    pub(crate) fn of_user(&self, user: &str) -> Option<&BTreeMap<ScramMechanism, ScramCredential>> {
        self.by_user.get(user)
    }

    /// Gives a user a credential.
    pub(crate) fn set(&mut self, user: Str, mechanism: ScramMechanism, credential: ScramCredential) {
        self.by_user.entry(user).or_default().insert(mechanism, credential);
    }

    /// Takes a credential away.
    pub(crate) fn remove(&mut self, user: &Str, mechanism: ScramMechanism) {
        if let Some(credentials) = self.by_user.get_mut(user) {
            credentials.remove(&mechanism);
            if credentials.is_empty() {
                self.by_user.remove(user);
            }
        }
    }
}
