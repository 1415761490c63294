//! Who may speak to the cluster.

pub(crate) mod sasl;
