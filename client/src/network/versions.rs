//! [`Versions`]: what one broker serves, and which version to speak with it.

use krafka_protocol::{self as protocol, ApiKey, Request};

use super::features::{BrokerFeatures, NewestFeatures};
use crate::error::{KrafkaError, ProtocolErrorKind};

/// The API versions that a broker advertised when the connection was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Versions {
    /// Sorted by key. A key that a broker repeats is a protocol error, found before this is built.
    ranges: Vec<(i16, i16, i16)>,
    /// What it said besides, in the same answer.
    features: BrokerFeatures,
}

impl Versions {
    /// Takes the advertised `(key, min, max)`; an error in words when they make no sense.
    pub(crate) fn new(mut ranges: Vec<(i16, i16, i16)>) -> Result<Self, String> {
        if ranges.is_empty() {
            return Err("it advertises no API at all".to_owned());
        }
        if let Some((key, min, max)) = ranges.iter().find(|(_, min, max)| min > max) {
            return Err(format!("it advertises versions {min} to {max} of API {key}"));
        }
        ranges.sort_unstable();
        if let Some(pair) = ranges.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(format!("it advertises API {} twice", pair[0].0));
        }
        Ok(Self { ranges, features: BrokerFeatures::default() })
    }

    /// The same, of a broker with these features.
    pub(crate) fn with_features(self, features: BrokerFeatures) -> Self {
        Self { features, ..self }
    }

    /// The same, with the features that are to be believed.
    pub(super) fn checked_by(self, newest: &mut NewestFeatures) -> Self {
        Self { features: newest.told(self.features), ..self }
    }

    /// How many APIs there are.
    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// The features that the broker told of.
    #[cfg_attr(not(feature = "protocol"), expect(dead_code, reason = "what `krafka::protocol` offers"))]
    pub(crate) fn features(&self) -> &BrokerFeatures {
        &self.features
    }

    /// The broker's range for an API.
    pub(crate) fn range(&self, key: ApiKey) -> Option<(i16, i16)> {
        let key = key as i16;
        let index = self.ranges.binary_search_by_key(&key, |range| range.0).ok()?;
        Some((self.ranges[index].1, self.ranges[index].2))
    }

    /// The highest version that both sides speak. On ours that is what Kafka 4.4 serves: the codec knows older
    /// versions, in which nothing here was written or tested, and perhaps an unstable one.
    pub(crate) fn negotiate<R: Request>(&self) -> Result<i16, Mismatch> {
        self.negotiate_within(R::KEY, R::KEY.offered().unwrap_or(R::VERSIONS))
    }

    /// The highest version that the broker speaks, among these.
    pub(crate) fn negotiate_within(&self, key: ApiKey, ours: protocol::Versions) -> Result<i16, Mismatch> {
        let ours = (ours.min, ours.max);
        let theirs = self.range(key);
        match theirs {
            Some((min, max)) if min.max(ours.0) <= max.min(ours.1) => Ok(max.min(ours.1)),
            _ => {
                let is_controller = key == ApiKey::Metadata && theirs.is_none() && self.range(ApiKey::Vote).is_some();
                Err(Mismatch { key, ours, theirs, is_controller })
            }
        }
    }
}

/// A broker and this client share no version of an API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch {
    key: ApiKey,
    ours: (i16, i16),
    theirs: Option<(i16, i16)>,
    /// It tells nobody where the brokers are, and votes: a listener for brokers alone.
    is_controller: bool,
}

impl Mismatch {
    /// The error for the user.
    #[cold]
    pub(crate) fn at(self, node: &crate::cluster::Node) -> KrafkaError {
        let (name, (our_min, our_max)) = (self.key.name(), self.ours);
        let message = match self.theirs {
            None if self.is_controller => {
                format!(
                    "{node} does not serve Metadata: it is a controller, which clients have no use for; give the \
                         address of a broker's listener"
                )
            }
            None => {
                format!("{node} does not serve {name}, which needs Kafka 3.9 or later, or a feature that is off there")
            }
            Some((min, max)) => {
                let wanted = match (our_min, our_max) {
                    _ if our_min == our_max => format!("version {our_min} is asked for"),
                    _ if our_min < our_max => format!("versions {our_min} to {our_max} are asked for"),
                    _ => format!("no version is both at least {our_min} and at most {our_max}"),
                };
                let is_old = self.key.offered().is_some_and(|ours| max < ours.min);
                let hint = if is_old { ": krafka needs Kafka 3.9 or later" } else { "" };
                format!("{node} serves {name} in versions {min} to {max}, and {wanted}{hint}")
            }
        };
        KrafkaError::protocol(ProtocolErrorKind::UnsupportedVersion, message)
    }
}

#[cfg(test)]
mod tests {
    use krafka_protocol::versions::{METADATA_MAX, METADATA_MIN};
    use krafka_protocol::{InitProducerIdRequest, ListOffsetsRequest, MetadataRequest};

    use super::*;

    const METADATA: i16 = ApiKey::Metadata as i16;

    fn negotiate(min: i16, max: i16) -> Result<i16, Mismatch> {
        Versions::new(vec![(METADATA, min, max)]).expect("a good range").negotiate::<MetadataRequest>()
    }

    #[test]
    fn the_highest_common_version_is_spoken() {
        assert_eq!(negotiate(0, 12), Ok(12));
        assert_eq!(negotiate(0, i16::MAX), Ok(METADATA_MAX));
        assert_eq!(negotiate(METADATA_MIN, METADATA_MIN), Ok(METADATA_MIN));
    }

    /// The codec may know more: versions of Kafka 3.9, and unstable ones.
    #[test]
    fn what_kafka_4_4_does_not_serve_is_not_spoken() {
        let versions = Versions::new(vec![(ApiKey::InitProducerId as i16, 0, 6), (ApiKey::ListOffsets as i16, 0, 0)])
            .expect("good ranges");

        assert_eq!(versions.negotiate::<InitProducerIdRequest>(), Ok(5));
        assert!(versions.negotiate::<ListOffsetsRequest>().is_err());
    }

    /// AV-06.
    #[test]
    fn a_mismatch_names_the_api_and_both_ranges() {
        let mismatch = negotiate(90, 99).expect_err("no overlap");

        let text = mismatch.at(&crate::cluster::Node::bootstrap(0, "kafka", 9092)).to_string();

        assert!(text.contains("Metadata in versions 90 to 99"), "{text}");
        assert!(text.contains("kafka:9092"), "{text}");
    }

    /// A caller may ask for versions of its own: then nothing is said about the age of the broker.
    #[test]
    fn a_mismatch_names_the_versions_that_were_asked_for() {
        let versions = Versions::new(vec![(ApiKey::Fetch as i16, 4, 18)]).expect("a good range");
        let text = |min, max| {
            let wanted = protocol::Versions::new(min, max);
            let mismatch = versions.negotiate_within(ApiKey::Fetch, wanted).expect_err("no overlap");
            mismatch.at(&crate::cluster::Node::bootstrap(0, "kafka", 9092)).to_string()
        };

        for (min, max, said) in [
            (99, 99, "and version 99 is asked for"),
            (0, 2, "and versions 0 to 2 are asked for"),
            (12, 4, "and no version is both at least 12 and at most 4"),
        ] {
            assert!(text(min, max).ends_with(said), "{}", text(min, max));
        }
    }

    /// AV-05.
    #[test]
    fn a_missing_api_is_named() {
        let versions = Versions::new(vec![(ApiKey::Fetch as i16, 0, 3)]).expect("a good range");

        let mismatch = versions.negotiate::<MetadataRequest>().expect_err("not served");

        let text = mismatch.at(&crate::cluster::Node::bootstrap(0, "kafka", 9092)).to_string();
        assert!(text.contains("does not serve Metadata"), "{text}");
    }

    /// AV-05: the port of a controller is easily taken for that of a broker.
    #[test]
    fn a_controller_is_told_from_a_broker() {
        let versions = Versions::new(vec![(ApiKey::Fetch as i16, 0, 18), (ApiKey::Vote as i16, 0, 2)]).expect("good");
        let node = crate::cluster::Node::bootstrap(0, "kafka", 9093);

        let text = versions.negotiate::<MetadataRequest>().expect_err("not served").at(&node).to_string();
        let other = versions.negotiate::<ListOffsetsRequest>().expect_err("not served").at(&node).to_string();

        assert!(text.contains("kafka:9093") && text.contains("it is a controller"), "{text}");
        assert!(!other.contains("controller"), "{other}");
    }

    /// AV-13.
    #[test]
    fn ranges_that_make_no_sense_are_refused() {
        assert!(Versions::new(Vec::new()).is_err());
        assert!(Versions::new(vec![(METADATA, 5, 4)]).is_err());
        assert!(Versions::new(vec![(METADATA, 0, 4), (1, 0, 4), (METADATA, 0, 5)]).is_err());
    }
}
