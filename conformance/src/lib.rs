//! The stories on real clusters, and checks against Kafka's own tools.
//!
//! A [provider] brings the cluster: the fake over TCP, a Kafka of some version from its jars (no container engine
//! needed), one in a container, or one that is already there. The stories that break nothing run on it, then the
//! [cross-checks](cross_checks): what this client writes is read by Java's console consumer and the other way round.
//! Then every [way in](doors) is tried: SASL and TLS.

pub mod cross_checks;
pub mod doors;
pub mod java;
pub mod provider;
pub mod report;
