//! [`AwsSdk`]: keys from wherever the AWS SDK finds them.

use std::sync::Arc;

use aws_config::default_provider::credentials::DefaultCredentialsChain;
use aws_config::profile::ProfileFileCredentialsProvider;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use tokio::sync::OnceCell;

use super::{AwsCredentials, AwsCredentialsProvider, ProvidingCredentials};

/// Has the AWS SDK for Rust find the keys. Needs the feature `aws-config`, which brings some two hundred crates.
///
/// ```no_run
/// # async fn example() -> krafka::Result<()> {
/// use krafka::{AwsSdk, Kafka};
///
/// let builder = Kafka::builder("b-1.shop.abc123.c2.kafka.us-east-1.amazonaws.com:9098");
/// # #[cfg(feature = "tls")]
/// let builder = builder.tls(krafka::Tls::new());
/// let kafka = builder.sasl_aws_msk_iam(AwsSdk::chain()).connect().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct AwsSdk(Source);

#[derive(Clone, Debug)]
enum Source {
    Provider(SharedCredentialsProvider),
    /// The SDK's own chain, once keys were asked for: to make it takes reading files.
    Chain(Arc<OnceCell<SharedCredentialsProvider>>),
}

impl AwsSdk {
    /// Looks where all of AWS's tools look if nothing is said, in this order: the environment, the profile that
    /// `AWS_PROFILE` names (with its role, or SSO), a web identity, the container's role, the instance's role.
    pub fn chain() -> Self {
        Self(Source::Chain(Arc::default()))
    }

    /// Looks in a profile of `~/.aws/config` and `~/.aws/credentials`, which may name a role, or SSO.
    pub fn profile(name: impl Into<String>) -> Self {
        Self::new(ProfileFileCredentialsProvider::builder().profile_name(name).build())
    }

    /// Takes the keys of this provider: another one of the SDK's, or your own.
    pub fn new(provider: impl ProvideCredentials + 'static) -> Self {
        Self(Source::Provider(SharedCredentialsProvider::new(provider)))
    }

    async fn provider(&self) -> &SharedCredentialsProvider {
        let chain = async || SharedCredentialsProvider::new(DefaultCredentialsChain::builder().build().await);
        match &self.0 {
            Source::Provider(provider) => provider,
            Source::Chain(made) => made.get_or_init(chain).await,
        }
    }
}

impl AwsCredentialsProvider for AwsSdk {
    fn credentials(&self) -> ProvidingCredentials<'_> {
        Box::pin(async {
            let keys = self.provider().await.provide_credentials().await?;
            let mut credentials = AwsCredentials::new(keys.access_key_id(), keys.secret_access_key());
            if let Some(token) = keys.session_token() {
                credentials = credentials.session_token(token);
            }
            Ok(match keys.expiry() {
                Some(end) => credentials.expires_at(end),
                None => credentials,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use aws_credential_types::Credentials;
    use aws_credential_types::provider::error::CredentialsError;
    use aws_credential_types::provider::future::ProvideCredentials as Providing;

    use super::*;

    #[tokio::test]
    async fn keys_of_the_sdk_come_with_their_token_and_their_end() {
        let end = SystemTime::UNIX_EPOCH + Duration::from_secs(3_000_000_000);
        let sdk = AwsSdk::new(Credentials::new("AKID", "secret", Some("token".into()), Some(end), "test"));

        let keys = sdk.credentials().await.expect("it has keys");

        assert_eq!(keys.access_key_id, "AKID");
        assert_eq!(keys.secret_access_key.expose(), "secret");
        assert_eq!(keys.session_token.as_ref().map(|token| token.expose()), Some("token"));
        assert_eq!(keys.end(), Some(end));
        assert!(!format!("{sdk:?} {keys:?}").contains("secret\""), "{sdk:?} {keys:?}");
    }

    #[tokio::test]
    async fn keys_that_last_have_no_end() {
        let sdk = AwsSdk::new(Credentials::new("AKID", "secret", None, None, "test"));

        let keys = sdk.credentials().await.expect("it has keys");

        assert!(keys.session_token.is_none() && keys.end().is_none());
    }

    /// Without keys, and without a network.
    #[derive(Debug)]
    struct Nowhere;

    impl ProvideCredentials for Nowhere {
        fn provide_credentials<'a>(&'a self) -> Providing<'a>
        where
            Self: 'a,
        {
            Providing::ready(Err(CredentialsError::not_loaded("there is no profile 'prod'")))
        }
    }

    #[tokio::test]
    async fn what_the_sdk_did_not_find_is_its_own_to_say() {
        let error = AwsSdk::new(Nowhere).credentials().await.expect_err("it has none");

        let chain = std::iter::successors(Some(&*error as &dyn std::error::Error), |error| error.source());
        let text = chain.map(ToString::to_string).collect::<Vec<_>>().join(": ");
        assert!(text.contains("there is no profile 'prod'"), "{text}");
    }
}
