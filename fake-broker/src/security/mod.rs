//! Who may speak to the cluster, and what they may do.

pub(crate) mod acl_filter;
pub(crate) mod acls;
pub(crate) mod hosts;
pub(crate) mod logins;
pub(crate) mod principal;
pub(crate) mod sasl;
#[cfg(feature = "tls")]
pub(crate) mod subject;
pub(crate) mod tokens;
