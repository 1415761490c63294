//! [`BrokerFeatures`]: what a broker said of the cluster's features when the connection was made (KIP-584).

#![cfg_attr(
    not(feature = "protocol"),
    expect(dead_code, unreachable_pub, reason = "public as `krafka::protocol::BrokerFeatures`")
)]

use std::collections::BTreeMap;

use krafka_protocol::{ApiVersionsResponse, Str, Versions};

/// The features of a cluster, such as `transaction.version` or `group.version`, as one broker knows them.
///
/// A level says what the whole cluster has switched on; a range says what this broker could. Levels that are older than
/// what another broker has told this client are not believed: then these are the other's. Brokers from before Kafka 2.7
/// say nothing, and then there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BrokerFeatures {
    supported: BTreeMap<Str, Versions>,
    finalized: BTreeMap<Str, i16>,
    epoch: Option<i64>,
}

impl BrokerFeatures {
    pub(super) fn new(answer: &ApiVersionsResponse) -> Self {
        let supported = answer.supported_features.iter();
        let finalized = answer.finalized_features.iter();
        Self {
            supported: supported
                .map(|feature| (feature.name.clone(), Versions::new(feature.min_version, feature.max_version)))
                .collect(),
            // Level 0 is how Kafka says that a feature is off.
            finalized: finalized
                .filter(|feature| feature.max_version_level > 0)
                .map(|feature| (feature.name.clone(), feature.max_version_level))
                .collect(),
            epoch: (answer.finalized_features_epoch >= 0).then_some(answer.finalized_features_epoch),
        }
    }

    /// What is known once another broker has told of later levels: ranges are its own, levels those of the cluster.
    fn corrected(self, newest: &Self) -> Self {
        Self { supported: self.supported, finalized: newest.finalized.clone(), epoch: newest.epoch }
    }

    /// The level at which the cluster has this feature switched on, or `None` if it has not.
    pub fn finalized_level(&self, name: &str) -> Option<i16> {
        self.finalized.get(name).copied()
    }

    /// The levels of this feature that the broker could take part in, or `None` if it does not know it.
    pub fn supported_range(&self, name: &str) -> Option<Versions> {
        self.supported.get(name).copied()
    }

    /// A number that grows with each change of the levels, or `None` if the broker does not know it yet.
    pub fn epoch(&self) -> Option<i64> {
        self.epoch
    }

    /// The features that are switched on, by name, with their levels.
    pub fn finalized(&self) -> impl Iterator<Item = (&str, i16)> {
        self.finalized.iter().map(|(name, level)| (&**name, *level))
    }

    /// The features that the broker knows, by name, with their ranges.
    pub fn supported(&self) -> impl Iterator<Item = (&str, Versions)> {
        self.supported.iter().map(|(name, range)| (&**name, *range))
    }
}

/// The latest levels that any broker of the cluster has told of.
#[derive(Debug, Default)]
pub(super) struct NewestFeatures(BrokerFeatures);

impl NewestFeatures {
    /// What is to be believed of what a broker has told. One that was away knows only what was true before.
    pub(super) fn told(&mut self, features: BrokerFeatures) -> BrokerFeatures {
        if features.epoch < self.0.epoch {
            return features.corrected(&self.0);
        }
        self.0.clone_from(&features);
        features
    }

    /// It is another cluster from now on, whose epochs are its own.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use krafka_protocol::api::api_versions::{FinalizedFeatureKey, SupportedFeatureKey};

    use super::*;

    #[test]
    fn features_are_known_by_name() {
        let name = Str::from_static("group.version");
        let answer = ApiVersionsResponse {
            supported_features: vec![SupportedFeatureKey { name: name.clone(), min_version: 0, max_version: 1 }],
            finalized_features: vec![
                FinalizedFeatureKey { name, max_version_level: 1, min_version_level: 1 },
                FinalizedFeatureKey { name: "share.version".into(), ..FinalizedFeatureKey::default() },
            ],
            finalized_features_epoch: 7,
            ..ApiVersionsResponse::default()
        };

        let features = BrokerFeatures::new(&answer);

        assert_eq!(features.finalized_level("group.version"), Some(1));
        assert_eq!(features.supported_range("group.version"), Some(Versions::new(0, 1)));
        assert_eq!(features.finalized().collect::<Vec<_>>(), [("group.version", 1)], "level 0 is off");
        assert_eq!(features.supported().count(), 1);
        assert_eq!((features.supported_range("share.version"), features.epoch()), (None, Some(7)));
        assert_eq!(BrokerFeatures::new(&ApiVersionsResponse::default()).epoch(), None);
    }
    /// AV-11: levels go up and down, their epoch only up: a broker that tells of an older one is behind.
    #[test]
    fn older_levels_are_not_believed() {
        let told = |level, epoch, most| {
            BrokerFeatures::new(&ApiVersionsResponse {
                supported_features: vec![SupportedFeatureKey { name: "f".into(), min_version: 0, max_version: most }],
                finalized_features: vec![FinalizedFeatureKey {
                    name: "f".into(),
                    max_version_level: level,
                    min_version_level: level,
                }],
                finalized_features_epoch: epoch,
                ..ApiVersionsResponse::default()
            })
        };
        let seen = |features: &BrokerFeatures| {
            let most = features.supported_range("f").expect("each has told it").max;
            (features.finalized_level("f"), features.epoch(), most)
        };
        let mut newest = NewestFeatures::default();

        assert_eq!(seen(&newest.told(told(1, 7, 3))), (Some(1), Some(7), 3));
        assert_eq!(seen(&newest.told(told(2, 9, 3))), (Some(2), Some(9), 3));
        assert_eq!(seen(&newest.told(told(1, 7, 4))), (Some(2), Some(9), 4), "ranges are the broker's own");
        assert_eq!(seen(&newest.told(told(1, -1, 4))), (Some(2), Some(9), 4), "it knows nothing yet");
        assert_eq!(seen(&newest.told(told(1, 10, 4))), (Some(1), Some(10), 4), "a level may go down");
        newest.forget();
        assert_eq!(seen(&newest.told(told(1, 3, 4))), (Some(1), Some(3), 4), "another cluster has its own epochs");
    }
}
