//! Who may speak to the cluster.

pub(crate) mod acls;
pub(crate) mod sasl;
