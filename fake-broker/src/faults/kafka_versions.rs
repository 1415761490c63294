//! What each version of Kafka advertises.

use krafka_protocol::{ApiKey, Versions};

/// A version of Kafka that a fake node looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum KafkaVersion {
    /// Kafka 3.9.
    V3_9,
    /// Kafka 4.0.
    V4_0,
    /// Kafka 4.1.
    V4_1,
    /// Kafka 4.2.
    V4_2,
    /// Kafka 4.3.
    V4_3,
    /// Kafka 4.4.
    #[default]
    V4_4,
}

impl KafkaVersion {
    /// The versions of an API that a broker of this version advertises.
    pub(crate) fn versions(self, key: ApiKey) -> Option<Versions> {
        key.versions()
    }

    /// The features that a broker of this version finalizes: name, lowest and highest supported level, level.
    pub(crate) fn features(self) -> &'static [(&'static str, i16, i16, i16)] {
        &[]
    }
}
