//! Where a cluster comes from.

use scenarios::{Failure, Result};

pub(crate) mod certificates;
#[cfg(feature = "testcontainers")]
pub mod containers;
pub mod fake;
pub mod local;
pub mod stage;

use fake::Fake;
use local::LocalKafka;

/// A running cluster. Dropping it ends what was started for it.
pub enum Cluster {
    /// The fake broker, over TCP.
    Fake(Fake),
    /// Kafka from its jars.
    Local(LocalKafka),
    /// Kafka in a container.
    #[cfg(feature = "testcontainers")]
    Container(containers::Container),
    /// A cluster that is already there.
    External(String),
}

impl Cluster {
    /// Starts, or finds, the cluster of this name: `fake`, a Kafka version, `testcontainers` or `external`.
    ///
    /// # Errors
    /// If there is none of the name, or it does not start; says what to do.
    pub fn start(name: &str, nodes: u16) -> Result<Self> {
        match name {
            "fake" => Ok(Self::Fake(Fake::start(nodes)?)),
            "external" => {
                let bootstrap = std::env::var("KRAFKA_BOOTSTRAP").ok().filter(|servers| !servers.is_empty());
                let missing =
                    || Failure::new("set KRAFKA_BOOTSTRAP to your cluster's bootstrap servers, such as host:9092");
                Ok(Self::External(bootstrap.ok_or_else(missing)?))
            }
            #[cfg(feature = "testcontainers")]
            "testcontainers" => Ok(Self::Container(containers::Container::start()?)),
            #[cfg(not(feature = "testcontainers"))]
            "testcontainers" => Err(Failure::new("build with --features testcontainers for this cluster")),
            version if is_version(version) => Ok(Self::Local(LocalKafka::start(version, nodes)?)),
            other => Err(Failure::new(format!(
                "there is no cluster '{other}': it is 'fake', a version such as '4.4.0', 'testcontainers' or 'external'"
            ))),
        }
    }

    /// Whether there is a cluster of this name, though it may not start.
    #[must_use]
    pub fn is_known(name: &str) -> bool {
        matches!(name, "fake" | "external" | "testcontainers") || is_version(name)
    }

    /// Its bootstrap servers.
    #[must_use]
    pub fn bootstrap(&self) -> &str {
        match self {
            Self::Fake(fake) => fake.bootstrap(),
            Self::Local(kafka) => kafka.bootstrap(),
            #[cfg(feature = "testcontainers")]
            Self::Container(container) => container.bootstrap(),
            Self::External(bootstrap) => bootstrap,
        }
    }

    /// The version whose Java tools speak to it: its own, or the newest.
    #[must_use]
    pub fn tools_version(&self) -> &str {
        match self {
            Self::Local(kafka) => kafka.version(),
            _ => NEWEST,
        }
    }
}

/// The newest Kafka that this suite knows.
pub const NEWEST: &str = "4.4.0";

fn is_version(name: &str) -> bool {
    let parts: Vec<&str> = name.split('.').collect();
    parts.len() == 3 && parts.iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_three_numbers() {
        assert!(is_version("4.4.0"));
        assert!(!is_version("4.4") && !is_version("v4.4.0") && !is_version("4..0") && !is_version("latest"));
    }

    #[test]
    fn an_unknown_cluster_is_named_with_what_there_is() {
        let Err(failure) = Cluster::start("kafka", 1) else { panic!("there is no such cluster") };

        assert!(failure.to_string().starts_with("there is no cluster 'kafka': it is 'fake'"), "{failure}");
    }
}
