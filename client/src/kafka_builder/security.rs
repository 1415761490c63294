//! Who the client is and whom it trusts: the setters of SASL and TLS.

use std::sync::Arc;

use super::KafkaBuilder;
use crate::auth::{Login, MskIam, Plain, Scram, ScramHash, TokenProvider};
#[cfg(feature = "tls")]
use crate::tls::Tls;

impl KafkaBuilder {
    /// Authenticates with SASL PLAIN: a user name and a password.
    ///
    /// The password crosses the network as it is, so use it with TLS, or where the network is trusted; without TLS the
    /// log warns of it once. Default: no authentication. Java: `sasl.mechanism=PLAIN` with `sasl.jaas.config`.
    pub fn sasl_plain(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.login = Some(Login::Plain(Plain::new(user, password)));
        self
    }

    /// Authenticates with SASL SCRAM-SHA-256: a user name and a password, of which only a proof crosses the network.
    ///
    /// The broker has to prove that it knows the password, too, and is left if it cannot; still use TLS, which keeps
    /// others from reading and changing what is said afterwards. Default: no authentication. Java:
    /// `sasl.mechanism=SCRAM-SHA-256` with `sasl.jaas.config`.
    ///
    /// Kafka's own tools keep names and passwords as they are typed, and RFC 5802 wants them prepared by SASLprep. If
    /// that makes a difference (it does not for ASCII) and the one is refused, the other is tried.
    ///
    /// ```no_run
    /// # async fn example() -> krafka::Result<()> {
    /// let kafka = krafka::Kafka::builder("kafka:9093").sasl_scram_sha256("alice", "secret").connect().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn sasl_scram_sha256(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.login = Some(Login::Scram(Scram::new(ScramHash::Sha256, user, password)));
        self
    }

    /// Authenticates with SASL SCRAM-SHA-512; otherwise the same as [`sasl_scram_sha256`](Self::sasl_scram_sha256).
    ///
    /// Default: no authentication. Java: `sasl.mechanism=SCRAM-SHA-512` with `sasl.jaas.config`.
    pub fn sasl_scram_sha512(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.login = Some(Login::Scram(Scram::new(ScramHash::Sha512, user, password)));
        self
    }

    /// Authenticates with a delegation token (KIP-48), by SASL SCRAM-SHA-512: its id, and its HMAC in base64 as
    /// `kafka-delegation-tokens.sh` prints it.
    ///
    /// For workers that somebody else gave a token to, so that they need no password. Default: no authentication.
    /// Java: `tokenauth="true"` in `sasl.jaas.config`.
    pub fn sasl_delegation_token(mut self, token_id: impl Into<String>, hmac: impl Into<String>) -> Self {
        self.login = Some(Login::Scram(Scram::token(ScramHash::Sha512, token_id, hmac)));
        self
    }

    /// [`sasl_delegation_token`](Self::sasl_delegation_token) by SCRAM-SHA-256, for brokers that enable only that.
    pub fn sasl_delegation_token_sha256(mut self, token_id: impl Into<String>, hmac: impl Into<String>) -> Self {
        self.login = Some(Login::Scram(Scram::token(ScramHash::Sha256, token_id, hmac)));
        self
    }

    /// Authenticates with SASL OAUTHBEARER: with tokens that `provider` brings (KIP-255).
    ///
    /// A token crosses the network as it is, so use it with TLS. A [`BearerToken`](crate::BearerToken) is a provider
    /// itself, for a token that never changes. Default: no authentication. Java: `sasl.mechanism=OAUTHBEARER` with
    /// `sasl.login.callback.handler.class`.
    ///
    /// A provider that fails makes connection attempts fail with an error that can be retried; one that returns a
    /// [`KrafkaError`](crate::KrafkaError) decides itself whether it can.
    pub fn sasl_oauthbearer(mut self, provider: impl TokenProvider) -> Self {
        self.login = Some(Login::Bearer(Arc::new(provider)));
        self
    }

    /// Authenticates with AWS_MSK_IAM, at Amazon's managed Kafka: with the keys that an
    /// [`AwsCredentialsProvider`](crate::AwsCredentialsProvider) brings.
    ///
    /// Only a signature crosses the network; Amazon's listeners for it speak TLS all the same. The region is read from
    /// the names of the brokers; where they do not have it, give it with [`MskIam::region`]. Default: no
    /// authentication. Java: `sasl.mechanism=AWS_MSK_IAM` with `IAMLoginModule` of Amazon's `aws-msk-iam-auth`.
    ///
    /// ```no_run
    /// # async fn example() -> krafka::Result<()> {
    /// use krafka::{AwsEnvironment, Kafka, Tls};
    ///
    /// let builder = Kafka::builder("b-1.shop.abc123.c2.kafka.us-east-1.amazonaws.com:9098");
    /// # #[cfg(feature = "tls")]
    /// let builder = builder.tls(Tls::new());
    /// let kafka = builder.sasl_aws_msk_iam(AwsEnvironment).connect().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn sasl_aws_msk_iam(mut self, iam: impl Into<MskIam>) -> Self {
        self.login = Some(Login::MskIam(iam.into()));
        self
    }

    /// Speaks TLS, as [`Tls`] says: which issuers are trusted, which certificate the client shows. A
    /// [`rustls::ClientConfig`] will do as well.
    ///
    /// Each broker's certificate must be for the host name that the broker advertises. What cannot be read makes
    /// [`connect`](Self::connect) fail. Default: no TLS. Java: `security.protocol=SSL` or `SASL_SSL` with `ssl.*`.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: impl Into<Tls>) -> Self {
        self.tls = Some(tls.into());
        self
    }

    /// Speaks TLS, and trusts the issuers in this PEM text, which holds one or more `CERTIFICATE` sections: short for
    /// [`Tls::roots_pem`].
    ///
    /// Default: no TLS. Java: `security.protocol=SSL` with `ssl.truststore.type=PEM`.
    #[cfg(feature = "tls")]
    pub fn tls_roots_pem(self, pem: impl AsRef<[u8]>) -> Self {
        self.tls(Tls::new().roots_pem(pem))
    }
}
