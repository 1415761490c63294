//! What the brokers of each Kafka version advertise: the profiles that a fake node can look like.
//!
//! The figures are what real brokers of 3.9.2, 4.0.2, 4.1.2, 4.2.2, 4.3.1 and 4.4.0 answered, freshly formatted, to
//! ApiVersions. A node advertises of them what has a handler, and of the features those whose requests have one.

use std::fmt;
use std::str::FromStr;

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

/// Something that a cluster as a whole has at a level, whichever nodes it consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Feature {
    /// Kafka's name for it.
    pub(crate) name: &'static str,
    /// The lowest level that a broker supports.
    pub(crate) min: i16,
    /// The highest level that a broker supports.
    pub(crate) max: i16,
    /// The level that a fresh cluster is at.
    pub(crate) level: i16,
    /// The API that a client would use because of the feature.
    pub(crate) needs: Option<ApiKey>,
}

impl KafkaVersion {
    /// All versions, the oldest first.
    pub const ALL: [Self; 6] = [Self::V3_9, Self::V4_0, Self::V4_1, Self::V4_2, Self::V4_3, Self::V4_4];

    /// The versions of an API that a broker of this version advertises.
    pub(crate) fn versions(self, key: ApiKey) -> Option<Versions> {
        let (_, ranges) = APIS.iter().find(|(api, _)| *api == key)?;
        let (min, max) = ranges[self as usize];
        Some(Versions { min, max })
    }

    /// The features that a fresh cluster of this version has.
    pub(crate) fn features(self) -> impl Iterator<Item = Feature> {
        FEATURES.iter().filter_map(move |(name, needs, levels)| {
            let (min, max, level) = levels[self as usize]?;
            Some(Feature { name, min, max, level, needs: *needs })
        })
    }
}

impl fmt::Display for KafkaVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAMES[*self as usize])
    }
}

impl FromStr for KafkaVersion {
    type Err = UnknownVersion;

    /// Reads `4.4`, and `4.4.0` as well: the last number changes nothing that can be seen here.
    fn from_str(text: &str) -> Result<Self, UnknownVersion> {
        let minor = |name: &str| text == name || text.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
        let found = Self::ALL.into_iter().find(|version| minor(NAMES[*version as usize]));
        found.ok_or_else(|| UnknownVersion(text.to_owned()))
    }
}

/// There is no profile for that version of Kafka.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Kafka {0:?} is not a version that the fake broker knows; it knows 3.9, 4.0, 4.1, 4.2, 4.3 and 4.4")]
pub struct UnknownVersion(String);

const NAMES: [&str; 6] = ["3.9", "4.0", "4.1", "4.2", "4.3", "4.4"];

/// The lowest and highest version of each API, in the order of [`KafkaVersion`].
#[rustfmt::skip]
const APIS: &[(ApiKey, [(i16, i16); 6])] = &[
    (ApiKey::Produce, [(0, 11), (0, 12), (0, 13), (0, 13), (0, 13), (0, 13)]),
    (ApiKey::Fetch, [(0, 17), (4, 17), (4, 18), (4, 18), (4, 18), (4, 18)]),
    (ApiKey::ListOffsets, [(0, 9), (1, 10), (1, 10), (1, 11), (1, 11), (1, 11)]),
    (ApiKey::Metadata, [(0, 12), (0, 13), (0, 13), (0, 13), (0, 13), (0, 13)]),
    (ApiKey::OffsetCommit, [(0, 9), (2, 9), (2, 9), (2, 10), (2, 10), (2, 10)]),
    (ApiKey::OffsetFetch, [(0, 9), (1, 9), (1, 9), (1, 10), (1, 10), (1, 10)]),
    (ApiKey::FindCoordinator, [(0, 6), (0, 6), (0, 6), (0, 6), (0, 6), (0, 6)]),
    (ApiKey::JoinGroup, [(0, 9), (0, 9), (0, 9), (0, 9), (0, 9), (0, 9)]),
    (ApiKey::Heartbeat, [(0, 4), (0, 4), (0, 4), (0, 4), (0, 4), (0, 4)]),
    (ApiKey::LeaveGroup, [(0, 5), (0, 5), (0, 5), (0, 5), (0, 5), (0, 5)]),
    (ApiKey::SyncGroup, [(0, 5), (0, 5), (0, 5), (0, 5), (0, 5), (0, 5)]),
    (ApiKey::SaslHandshake, [(0, 1), (0, 1), (0, 1), (0, 1), (0, 1), (0, 1)]),
    (ApiKey::ApiVersions, [(0, 4), (0, 4), (0, 4), (0, 4), (0, 4), (0, 5)]),
    (ApiKey::CreateTopics, [(0, 7), (2, 7), (2, 7), (2, 7), (2, 7), (2, 7)]),
    (ApiKey::DeleteTopics, [(0, 6), (1, 6), (1, 6), (1, 6), (1, 6), (1, 6)]),
    (ApiKey::InitProducerId, [(0, 5), (0, 5), (0, 5), (0, 5), (0, 5), (0, 5)]),
    (ApiKey::OffsetForLeaderEpoch, [(0, 4), (2, 4), (2, 4), (2, 4), (2, 4), (2, 4)]),
    (ApiKey::SaslAuthenticate, [(0, 2), (0, 2), (0, 2), (0, 2), (0, 2), (0, 2)]),
    (ApiKey::CreatePartitions, [(0, 3), (0, 3), (0, 3), (0, 3), (0, 3), (0, 3)]),
    (ApiKey::DescribeCluster, [(0, 1), (0, 2), (0, 2), (0, 2), (0, 2), (0, 2)]),
];

/// The lowest, the highest and the finalized level of each feature, in the same order.
type Levels = [Option<(i16, i16, i16)>; 6];

#[rustfmt::skip]
const FEATURES: &[(&str, Option<ApiKey>, Levels)] = &[
    ("eligible.leader.replicas.version", None,
        [None, Some((0, 1, 0)), Some((0, 1, 1)), Some((0, 1, 1)), Some((0, 1, 1)), Some((0, 1, 1))]),
    ("group.version", Some(ApiKey::ConsumerGroupHeartbeat),
        [None, Some((0, 1, 1)), Some((0, 1, 1)), Some((0, 1, 1)), Some((0, 1, 1)), Some((0, 1, 1))]),
    ("kraft.version", None,
        [Some((0, 1, 1)), Some((0, 1, 1)), Some((0, 1, 1)), Some((0, 1, 1)), Some((0, 1, 1)), Some((0, 1, 1))]),
    ("metadata.version", None,
        [Some((1, 21, 21)), Some((7, 25, 25)), Some((7, 27, 27)),
         Some((7, 29, 29)), Some((7, 30, 30)), Some((7, 33, 33))]),
    ("share.version", Some(ApiKey::ShareFetch),
        [None, None, Some((0, 1, 1)), Some((0, 1, 1)), Some((0, 1, 1)), Some((0, 2, 2))]),
    ("streams.version", Some(ApiKey::StreamsGroupHeartbeat),
        [None, None, None, Some((0, 1, 1)), Some((0, 1, 1)), Some((0, 1, 1))]),
    ("transaction.version", Some(ApiKey::EndTxn),
        [None, Some((0, 2, 2)), Some((0, 2, 2)), Some((0, 2, 2)), Some((0, 2, 2)), Some((0, 2, 2))]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_printed_and_with_a_patch_number() {
        for version in KafkaVersion::ALL {
            assert_eq!(version.to_string().parse(), Ok(version));
        }
        assert_eq!("3.9.2".parse(), Ok(KafkaVersion::V3_9));
        for wrong in ["", "4", "4.5", "4.40", "3.9x"] {
            assert_eq!(wrong.parse::<KafkaVersion>(), Err(UnknownVersion(wrong.to_owned())));
        }
    }

    #[test]
    fn profiles_differ_as_the_releases_do() {
        assert_eq!(KafkaVersion::V3_9.versions(ApiKey::Produce), Some(Versions { min: 0, max: 11 }));
        assert_eq!(KafkaVersion::V4_4.versions(ApiKey::Produce), Some(Versions { min: 0, max: 13 }));
        assert_eq!(KafkaVersion::V4_4.versions(ApiKey::EndTxn), None);

        let levels = |version: KafkaVersion| version.features().map(|f| (f.name, f.level)).collect::<Vec<_>>();
        assert_eq!(levels(KafkaVersion::V3_9), [("kraft.version", 1), ("metadata.version", 21)]);
        assert_eq!(levels(KafkaVersion::V4_4).len(), FEATURES.len());
    }
}
