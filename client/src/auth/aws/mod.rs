//! AWS: the keys that requests are signed with, who brings them, and the mechanism AWS_MSK_IAM that uses them.

mod msk_iam;
#[cfg(feature = "aws-config")]
mod sdk;
mod sigv4;

use std::future::Future;
use std::pin::Pin;
use std::time::SystemTime;

pub(crate) use self::msk_iam::Exchange;
pub use self::msk_iam::MskIam;
#[cfg(feature = "aws-config")]
pub use self::sdk::AwsSdk;
use super::{Secret, TokenError};
use crate::error::KrafkaError;

/// What [`AwsCredentialsProvider::credentials`] returns: keys, at some time.
pub type ProvidingCredentials<'a> = Pin<Box<dyn Future<Output = Result<AwsCredentials, TokenError>> + Send + 'a>>;

/// Brings the keys of an AWS identity, for [`sasl_aws_msk_iam`](crate::KafkaBuilder::sasl_aws_msk_iam).
///
/// [`AwsCredentials`] are a provider themselves, for keys that never change, and [`AwsEnvironment`] reads the process's
/// environment. For everything else that AWS has (profiles, roles, instance metadata, SSO) the feature `aws-config`
/// brings `AwsSdk`, which lets the AWS SDK for Rust do it. A provider of one's own takes ten lines:
///
/// ```
/// use krafka::{AwsCredentials, AwsCredentialsProvider, ProvidingCredentials};
/// # async fn ask_the_vault() -> std::io::Result<(String, String)> { Ok(Default::default()) }
///
/// struct Vault;
///
/// impl AwsCredentialsProvider for Vault {
///     fn credentials(&self) -> ProvidingCredentials<'_> {
///         Box::pin(async {
///             let (id, secret) = ask_the_vault().await?;
///             Ok(AwsCredentials::new(id, secret))
///         })
///     }
/// }
/// ```
///
/// All connections of a handle share one set of keys and one request for it. Keys that end are asked for anew when four
/// fifths of their life are over; while that fails, the old ones are used as long as they hold. A provider that fails
/// is left alone for a second, then for two, four and so on up to 30 (±20 %): who needs keys meanwhile and has none
/// hears the failure.
pub trait AwsCredentialsProvider: Send + Sync + 'static {
    /// Asks for keys. The client bounds the call by [`connect_timeout`](crate::KafkaBuilder::connect_timeout), by
    /// dropping the future; what cannot be used (empty, or with a blank in it) is taken for a failure.
    fn credentials(&self) -> ProvidingCredentials<'_>;
}

/// The keys of an AWS identity: an access key and its secret, and the session token of those that are temporary.
///
/// `Debug` hides the secrets, and their memory is wiped when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct AwsCredentials {
    access_key_id: String,
    secret_access_key: Secret,
    session_token: Option<Secret>,
    expires_at: Option<SystemTime>,
}

impl AwsCredentials {
    /// Keys that are not known to end. Say when they do, if they do, with [`expires_at`](Self::expires_at).
    pub fn new(access_key_id: impl Into<String>, secret_access_key: impl Into<String>) -> Self {
        Self {
            access_key_id: access_key_id.into(),
            secret_access_key: Secret::new(secret_access_key),
            session_token: None,
            expires_at: None,
        }
    }

    /// Adds the session token that temporary keys have.
    #[must_use]
    pub fn session_token(mut self, token: impl Into<String>) -> Self {
        self.session_token = Some(Secret::new(token));
        self
    }

    /// Sets when the keys end. Four fifths of the time until then they are used; then others are asked for.
    #[must_use]
    pub fn expires_at(mut self, time: SystemTime) -> Self {
        self.expires_at = Some(time);
        self
    }

    /// When the keys end, if that is known.
    pub(super) fn end(&self) -> Option<SystemTime> {
        self.expires_at
    }

    /// Why they cannot be those of AWS, if they cannot.
    pub(super) fn fault(&self) -> Option<&'static str> {
        let is_plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_plain(&self.access_key_id) {
            Some("the access key id is empty, or has a character that none has, such as a blank")
        } else if !is_plain(self.secret_access_key.expose()) {
            Some("the secret access key is empty, or has a character that none has, such as a line's end")
        } else if self.session_token.as_ref().is_some_and(|token| !is_plain(token.expose())) {
            Some("the session token is empty, or has a character that none has, such as a line's end")
        } else {
            None
        }
    }
}

/// Keys that are always the same.
impl AwsCredentialsProvider for AwsCredentials {
    fn credentials(&self) -> ProvidingCredentials<'_> {
        Box::pin(std::future::ready(Ok(self.clone())))
    }
}

/// Reads keys from the process's environment: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`, the
/// names that all of AWS's tools know.
#[derive(Clone, Copy, Debug, Default)]
pub struct AwsEnvironment;

impl AwsCredentialsProvider for AwsEnvironment {
    fn credentials(&self) -> ProvidingCredentials<'_> {
        Box::pin(std::future::ready(from_variables(|name| std::env::var(name).ok()).map_err(TokenError::from)))
    }
}

fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<AwsCredentials, KrafkaError> {
    let set = |name| variable(name).filter(|value| !value.is_empty());
    let required = |name| {
        let missing = || KrafkaError::auth(format!("the environment variable {name} is not set: AWS_MSK_IAM needs it"));
        set(name).ok_or_else(missing)
    };
    let credentials = AwsCredentials::new(required("AWS_ACCESS_KEY_ID")?, required("AWS_SECRET_ACCESS_KEY")?);
    Ok(match set("AWS_SESSION_TOKEN") {
        Some(token) => credentials.session_token(token),
        None => credentials,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_from_the_environment() {
        let all = |name: &str| Some(format!("of-{name}"));
        let keys = from_variables(all).expect("all are set");
        assert_eq!(keys.access_key_id, "of-AWS_ACCESS_KEY_ID");
        assert_eq!(keys.secret_access_key.expose(), "of-AWS_SECRET_ACCESS_KEY");
        assert_eq!(keys.session_token.expect("one is set").expose(), "of-AWS_SESSION_TOKEN");

        let lasting = from_variables(|name| (name != "AWS_SESSION_TOKEN").then(|| "x".to_owned()));
        assert!(lasting.expect("a token is not needed").session_token.is_none());
        for missing in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"] {
            let error = from_variables(|name| Some(if name == missing { String::new() } else { "x".to_owned() }));
            let error = error.expect_err("one is empty");
            assert!(error.to_string().contains(missing) && !error.is_retriable(), "{error}");
        }
    }

    #[test]
    fn debug_hides_the_secrets() {
        let keys = AwsCredentials::new("AKID", "hunter2").session_token("swordfish");

        let text = format!("{keys:?}");

        assert!(text.contains("AKID") && !text.contains("hunter2") && !text.contains("swordfish"), "{text}");
    }
}
