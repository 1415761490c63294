//! The stories on real clusters, and checks against Kafka's own tools.
//!
//! A [provider] brings the cluster: the fake over TCP, a Kafka of some version from its jars (no container engine
//! needed), one in a container, or one that is already there. The stories that break nothing run on it, then the
//! [cross-checks](cross_checks): what this client writes is read by Java's console consumer and the other way round.
//! Then every [way in](doors) is tried, by SASL and TLS, and in [trials] what a client goes through that stays for
//! long: brokers that die, fall silent and move, topics that come late, quotas, and so on. Both run on the fake, too.

pub mod clock;
pub mod cross_checks;
pub mod doors;
pub mod java;
pub mod provider;
pub mod report;
pub mod trials;
