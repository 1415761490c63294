//! Brokers that speak Kafka's protocol and are not Kafka: which APIs and versions their services were seen to
//! advertise.
//!
//! Only what ApiVersions tells is imitated, since that is what clients decide by: they lack APIs that every Kafka has,
//! begin at versions above 0 and end below the newest, and have no features. How the services differ inside (no
//! compaction, other limits, IAM) is not played; the handlers answer as Kafka does.
//!
//! Sources: what users printed of MSK Serverless in June 2022 (akhq #1113, topicctl #69) and of Event Hubs in September
//! 2022 and 2024 (azure-event-hubs-for-kafka #209, klife #13). What none of them shows is not advertised, but for
//! SaslAuthenticate, without which nobody could log in.

use std::fmt;
use std::str::FromStr;

use krafka_protocol::{ApiKey, Versions};

use super::kafka_versions::UnknownVersion;

/// A service that a fake node can look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Profile {
    /// Amazon MSK Serverless.
    MskServerless,
    /// The Kafka endpoint of Azure Event Hubs.
    EventHubs,
}

impl Profile {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::MskServerless, Self::EventHubs];

    /// The versions of an API that the service advertises.
    pub(crate) fn versions(self, key: ApiKey) -> Option<Versions> {
        let (_, min, max) = self.apis().iter().find(|(api, ..)| *api == key)?;
        Some(Versions { min: *min, max: *max })
    }

    fn apis(self) -> &'static [(ApiKey, i16, i16)] {
        match self {
            Self::MskServerless => MSK_SERVERLESS,
            Self::EventHubs => EVENT_HUBS,
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MskServerless => "msk-serverless",
            Self::EventHubs => "event-hubs",
        })
    }
}

impl FromStr for Profile {
    type Err = UnknownVersion;

    fn from_str(text: &str) -> Result<Self, UnknownVersion> {
        let found = Self::ALL.into_iter().find(|profile| profile.to_string() == text);
        found.ok_or_else(|| UnknownVersion(text.to_owned()))
    }
}

const MSK_SERVERLESS: &[(ApiKey, i16, i16)] = &[
    (ApiKey::Produce, 7, 9),
    (ApiKey::Fetch, 10, 12),
    (ApiKey::ListOffsets, 5, 6),
    (ApiKey::Metadata, 7, 11),
    (ApiKey::OffsetCommit, 6, 8),
    (ApiKey::OffsetFetch, 5, 7),
    (ApiKey::FindCoordinator, 2, 3),
    (ApiKey::JoinGroup, 4, 7),
    (ApiKey::Heartbeat, 2, 4),
    (ApiKey::LeaveGroup, 2, 4),
    (ApiKey::SyncGroup, 2, 5),
    (ApiKey::DescribeGroups, 2, 5),
    (ApiKey::ListGroups, 2, 4),
    (ApiKey::SaslHandshake, 1, 1),
    (ApiKey::ApiVersions, 2, 3),
    (ApiKey::CreateTopics, 3, 7),
    (ApiKey::DeleteTopics, 3, 6),
    (ApiKey::InitProducerId, 1, 4),
    (ApiKey::OffsetForLeaderEpoch, 2, 4),
    (ApiKey::AddPartitionsToTxn, 1, 3),
    (ApiKey::AddOffsetsToTxn, 1, 3),
    (ApiKey::SaslAuthenticate, 1, 2),
];

const EVENT_HUBS: &[(ApiKey, i16, i16)] = &[
    (ApiKey::Produce, 0, 7),
    (ApiKey::Fetch, 4, 6),
    (ApiKey::ListOffsets, 0, 8),
    (ApiKey::Metadata, 0, 5),
    (ApiKey::OffsetCommit, 0, 8),
    (ApiKey::OffsetFetch, 0, 8),
    (ApiKey::FindCoordinator, 0, 4),
    (ApiKey::JoinGroup, 0, 9),
    (ApiKey::Heartbeat, 0, 4),
    (ApiKey::LeaveGroup, 0, 5),
    (ApiKey::SyncGroup, 0, 1),
    (ApiKey::DescribeGroups, 0, 1),
    (ApiKey::ListGroups, 0, 1),
    (ApiKey::SaslHandshake, 0, 1),
    (ApiKey::ApiVersions, 0, 1),
    (ApiKey::CreateTopics, 0, 2),
    (ApiKey::DeleteTopics, 0, 2),
    (ApiKey::DescribeConfigs, 0, 2),
    (ApiKey::SaslAuthenticate, 0, 1),
    (ApiKey::CreatePartitions, 0, 1),
    (ApiKey::DeleteGroups, 0, 0),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_printed() {
        for profile in Profile::ALL {
            assert_eq!(profile.to_string().parse(), Ok(profile));
        }
        assert!("msk".parse::<Profile>().is_err());
    }

    /// What is advertised must be readable, or it could not be served.
    #[test]
    fn ranges_are_within_what_the_protocol_has() {
        for profile in Profile::ALL {
            for (key, min, max) in profile.apis() {
                let known = key.versions().expect("it is spoken");
                assert!(known.contains(*min) && known.contains(*max) && min <= max, "{profile} {}", key.name());
            }
        }
    }
}
