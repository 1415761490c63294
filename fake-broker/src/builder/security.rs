//! Settings of who may speak to a cluster, on which ports, and what they may do.

use std::time::Duration;

use krafka_protocol::Str;

use super::FakeClusterBuilder;
use crate::listeners::SecurityProtocol;
use crate::security::principal::Principal;
use crate::security::sasl::SaslMechanism;
#[cfg(feature = "tls")]
use crate::serve::tls::ServerTls;

impl FakeClusterBuilder {
    /// Adds a listener to every node: Kafka's `listeners`. The first one added is the one of
    /// [`FakeCluster::bootstrap`](crate::FakeCluster::bootstrap); the others are found by
    /// [`bootstrap_of`](crate::FakeCluster::bootstrap_of). By default there is one, which is plain; or asks for SASL if
    /// there is a user.
    ///
    /// **Unstable:** may change in any release.
    pub fn listener(mut self, protocol: SecurityProtocol) -> Self {
        self.listeners.push(protocol);
        self
    }

    /// Adds a user who may log in by PLAIN. Without a [`listener`](Self::listener) of its own, the cluster's one then
    /// asks for SASL.
    pub fn sasl_plain(mut self, user: impl Into<Str>, password: impl Into<Str>) -> Self {
        self.config.logins.plain.insert(user.into(), password.into());
        self
    }

    /// Adds a user who may log in by every mechanism that takes a password: PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512.
    pub fn user(mut self, user: impl Into<Str>, password: impl Into<Str>) -> Self {
        self.users.push((user.into(), password.into()));
        self
    }

    /// Offers a mechanism: one of Kafka's `sasl.enabled.mechanisms`. By default those are offered by which somebody
    /// could log in.
    ///
    /// **Unstable:** may change in any release.
    pub fn sasl_mechanism(mut self, mechanism: SaslMechanism) -> Self {
        self.config.logins.mechanisms.push(mechanism);
        self
    }

    /// Takes unsecured JSON web tokens for OAUTHBEARER, as Kafka does when it is given no other validator. Anybody can
    /// write one. By default none are taken.
    ///
    /// **Unstable:** may change in any release.
    pub fn oauthbearer_unsecured(mut self) -> Self {
        self.config.logins.oauth.takes_unsecured = true;
        self
    }

    /// Takes a certain token for OAUTHBEARER: whose it is, and when it ends, in milliseconds since 1970.
    ///
    /// **Unstable:** may change in any release.
    pub fn oauthbearer_token(mut self, token: impl Into<Str>, user: impl Into<Str>, ends_ms: i64) -> Self {
        self.config.logins.oauth.known.insert(token.into(), (user.into(), ends_ms));
        self
    }

    /// Takes requests that were signed with this access key and its secret, for AWS_MSK_IAM: whose they are. Without a
    /// [`listener`](Self::listener) of its own, the cluster's one then asks for SASL. Only Amazon's brokers have that
    /// mechanism; by default it is not offered.
    ///
    /// **Unstable:** may change in any release.
    pub fn aws_msk_iam(
        mut self,
        access_key_id: impl Into<Str>,
        secret_access_key: impl Into<Str>,
        user: impl Into<Str>,
    ) -> Self {
        self.config.logins.aws.keys.insert(access_key_id.into(), (secret_access_key.into(), user.into()));
        self
    }

    /// Sets for how long a login holds before the client must log in again (KIP-368): Kafka's
    /// `connections.max.reauth.ms`. By default it holds as long as the connection.
    ///
    /// **Unstable:** may change in any release.
    pub fn connections_max_reauth(mut self, lifetime: Duration) -> Self {
        self.config.logins.max_reauth = Some(lifetime);
        self
    }

    /// Sets for how long the answer to a failed login is held back: Kafka's
    /// `connection.failed.authentication.delay.ms`. The default is 100 ms.
    ///
    /// **Unstable:** may change in any release.
    pub fn failed_authentication_delay(mut self, delay: Duration) -> Self {
        self.config.logins.failure_delay = delay;
        self
    }

    /// Lets clients make delegation tokens, with this secret: Kafka's `delegation.token.secret.key`. There are none by
    /// default.
    ///
    /// **Unstable:** may change in any release.
    pub fn delegation_token_secret_key(mut self, secret: impl Into<Str>) -> Self {
        self.config.logins.tokens.secret = Some(secret.into());
        self
    }

    /// Sets the certificate of the nodes' TLS listeners: Kafka's `ssl.keystore.*` and `ssl.client.auth`.
    ///
    /// **Unstable:** may change in any release.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: ServerTls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Switches the authorizer on: Kafka's `authorizer.class.name`, which is not set by default. From then on nobody
    /// may do anything but [superusers](Self::super_user), and whom access rules allow it.
    ///
    /// **Unstable:** may change in any release.
    pub fn authorizer(mut self) -> Self {
        self.config.acls.enabled = true;
        self
    }

    /// Lets somebody do everything: one of Kafka's `super.users`, written `User:admin`. By default there are none.
    ///
    /// **Unstable:** may change in any release.
    ///
    /// # Panics
    ///
    /// If there is no colon in it.
    pub fn super_user(mut self, principal: &str) -> Self {
        let user = Principal::parse(principal);
        self.config.acls.super_users.insert(user.unwrap_or_else(|| panic!("'{principal}' is not written User:name")));
        self
    }

    /// Sets whether everyone may do everything with a resource that no access rule is about: Kafka's
    /// `allow.everyone.if.no.acl.found`. The default is no.
    ///
    /// **Unstable:** may change in any release.
    pub fn allow_everyone_if_no_acl_found(mut self, allow: bool) -> Self {
        self.config.acls.allow_everyone_if_no_acl_found = allow;
        self
    }
}
