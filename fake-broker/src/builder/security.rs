//! Settings of who may speak to a cluster, on which ports, and what they may do.

use krafka_protocol::Str;

use super::FakeClusterBuilder;
use crate::listeners::SecurityProtocol;
use crate::security::principal::Principal;
#[cfg(feature = "tls")]
use crate::serve::tls::ServerTls;

impl FakeClusterBuilder {
    /// Adds a listener to every node: Kafka's `listeners`. The first one added is the one of
    /// [`FakeCluster::bootstrap`](crate::FakeCluster::bootstrap); the others are found by
    /// [`bootstrap_of`](crate::FakeCluster::bootstrap_of). By default there is one, which is plain; or asks for SASL if
    /// there is a user.
    pub fn listener(mut self, protocol: SecurityProtocol) -> Self {
        self.listeners.push(protocol);
        self
    }

    /// Adds a user. Without a [`listener`](Self::listener) of its own, the cluster's one then asks for SASL.
    pub fn sasl_plain(mut self, user: impl Into<Str>, password: impl Into<Str>) -> Self {
        self.config.sasl_plain.insert(user.into(), password.into());
        self
    }

    /// Adds a user who may log in by every mechanism that takes a password.
    pub fn user(self, user: impl Into<Str>, password: impl Into<Str>) -> Self {
        self.sasl_plain(user, password)
    }

    /// Sets the certificate of the nodes' TLS listeners: Kafka's `ssl.keystore.*` and `ssl.client.auth`.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: ServerTls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Switches the authorizer on: Kafka's `authorizer.class.name`, which is not set by default. From then on nobody may
    /// do anything but [superusers](Self::super_user), and whom access rules allow it.
    pub fn authorizer(mut self) -> Self {
        self.config.acls.enabled = true;
        self
    }

    /// Lets somebody do everything: one of Kafka's `super.users`, written `User:admin`. By default there are none.
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
    pub fn allow_everyone_if_no_acl_found(mut self, allow: bool) -> Self {
        self.config.acls.allow_everyone_if_no_acl_found = allow;
        self
    }
}
