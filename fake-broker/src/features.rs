//! The levels that the features of the cluster are at, how they are changed, and what they switch on.
//!
//! A protocol whose feature is at level 0 is still advertised, and its requests are answered UNSUPPORTED_VERSION before
//! anything else is looked at. What the groups are stays as it is until the level is raised again.
//!
//! Other than in Kafka, a change of a level is not stopped by what exists already (topics with ongoing reassignments,
//! groups with members), and from Kafka 4 on `metadata.version` can only be raised: a lower one is refused as one that
//! would lose metadata.

use std::collections::BTreeMap;

use krafka_protocol::Str;

use crate::faults::{Feature, KafkaVersion};
use crate::groups::share;
use crate::partition::Rules;
use crate::state::State;

/// The finalized levels that differ from those of a fresh cluster, and how often one was changed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Features {
    changed: BTreeMap<&'static str, i16>,
    pub(crate) changes: i64,
}

/// The feature that lets replicas lead which are not in sync and have all that was committed (KIP-966).
pub(crate) const ELIGIBLE_LEADER_REPLICAS_VERSION: &str = "eligible.leader.replicas.version";
/// The feature that the protocol of KIP-848 comes with.
pub(crate) const GROUP_VERSION: &str = "group.version";
/// The feature that share groups come with; its level 2 brings their dead-letter queues (KIP-1191).
pub(crate) const SHARE_VERSION: &str = "share.version";
/// The feature that streams groups come with.
pub(crate) const STREAMS_VERSION: &str = "streams.version";
/// The feature of the transaction protocol.
pub(crate) const TRANSACTION_VERSION: &str = "transaction.version";

/// The feature that says what the metadata log may hold.
const METADATA_VERSION: &str = "metadata.version";

/// From which level of `metadata.version` on a cluster begins with a level of a feature, as Kafka's table of its
/// releases has it.
const COMES_WITH: &[(&str, i16, i16)] = &[
    (GROUP_VERSION, 1, 22),
    (TRANSACTION_VERSION, 2, 24),
    (ELIGIBLE_LEADER_REPLICAS_VERSION, 1, 26),
    (SHARE_VERSION, 1, 28),
    (SHARE_VERSION, 2, 31),
    (STREAMS_VERSION, 1, 29),
];

/// The one feature that depends on another: on this level of `metadata.version`.
const ELIGIBLE_LEADERS_NEED: i16 = 23;

/// How a level may be changed, with Kafka's codes.
const UPGRADE: i8 = 1;
const SAFE_DOWNGRADE: i8 = 2;
const UNSAFE_DOWNGRADE: i8 = 3;

/// A level that somebody asks for.
#[derive(Clone, Debug)]
pub(crate) struct Update<'a> {
    pub(crate) feature: &'a str,
    pub(crate) level: i16,
    pub(crate) upgrade_type: i8,
}

impl Features {
    /// The finalized level of a feature; 0 is the same as not having it.
    pub(crate) fn level(&self, feature: &Feature) -> i16 {
        self.changed.get(feature.name).copied().unwrap_or(feature.level)
    }

    /// Sets the level of a feature.
    pub(crate) fn set(&mut self, feature: &Feature, level: i16) {
        if self.level(feature) != level {
            self.changed.insert(feature.name, level);
            self.changes += 1;
        }
    }
}

/// Checks the levels that a cluster of a version shall begin with.
///
/// # Errors
///
/// What Kafka would refuse when it formats its disks: a level that there is not, or one that another is too low for.
pub(crate) fn check_start(version: KafkaVersion, given: &BTreeMap<Str, i16>) -> Result<(), String> {
    for (name, level) in given {
        match version.feature_levels(name) {
            Some(levels) if levels.contains(level) => {}
            Some(levels) => {
                let range = format!("{} to {}", levels.start(), levels.end());
                return Err(format!("{name}={level}: Kafka {version} has levels from {range} of it"));
            }
            None => return Err(format!("{name}={level}: Kafka {version} has no such feature")),
        }
    }
    let metadata = given.get(METADATA_VERSION).copied().unwrap_or(i16::MAX);
    given.iter().try_for_each(|(name, level)| depends(name, *level, metadata))
}

/// Checks a level of a feature against that of `metadata.version`.
///
/// # Errors
///
/// Kafka's words, if that is too low.
fn depends(name: &str, level: i16, metadata: i16) -> Result<(), String> {
    if name == ELIGIBLE_LEADER_REPLICAS_VERSION && level > 0 && metadata < ELIGIBLE_LEADERS_NEED {
        let needs = format!("{METADATA_VERSION} level {ELIGIBLE_LEADERS_NEED}");
        return Err(format!("{name} could not be set to {level} because it depends on {needs}"));
    }
    Ok(())
}

impl State {
    /// Sets the levels that the cluster begins with, which are valid. With a `metadata.version` of the past, the
    /// features that came later are off unless they are given.
    pub(crate) fn begin_with_features(&mut self, given: &BTreeMap<Str, i16>) {
        let metadata = given.get(METADATA_VERSION).copied();
        let features: Vec<Feature> = self.cluster_version().features().collect();
        for feature in features {
            let come = |metadata: i16| {
                let levels = COMES_WITH.iter().filter(|(name, ..)| *name == feature.name);
                let come = levels.clone().filter(|(.., since)| *since <= metadata).map(|(_, level, _)| *level).max();
                let is_listed = levels.clone().next().is_some();
                if is_listed { come.unwrap_or(0).min(feature.level) } else { feature.level }
            };
            let default = || metadata.filter(|level| *level < newest_metadata(self)).map(come);
            if let Some(level) = given.get(feature.name).copied().or_else(default) {
                self.set_feature(&feature, level);
            }
        }
    }

    /// Checks whether a node of a version could join: it has the levels that the features are at.
    ///
    /// # Errors
    ///
    /// Which one it does not have.
    pub(crate) fn check_newcomer(&self, version: KafkaVersion) -> Result<(), String> {
        let levels = self.cluster_version().features().map(|feature| (feature.name, self.features.level(&feature)));
        let is_strange = |name: &str, level: i16| {
            level > 0 && !version.feature_levels(name).is_some_and(|levels| levels.contains(&level))
        };
        match levels.into_iter().find(|(name, level)| is_strange(name, *level)) {
            Some((name, level)) => Err(format!(
                "a node of Kafka {version} cannot join: the cluster is at {name}={level}, which it has not"
            )),
            None => Ok(()),
        }
    }

    /// A feature that the cluster's version has.
    pub(crate) fn feature(&self, name: &str) -> Option<Feature> {
        self.cluster_version().features().find(|feature| feature.name == name)
    }

    /// The finalized level of a feature by Kafka's name, such as `transaction.version`; 0 where there is none.
    pub(crate) fn feature_level(&self, name: &str) -> i16 {
        self.feature(name).map_or(0, |feature| self.features.level(&feature))
    }

    /// Whether a feature is not switched off. What had no feature yet, as KIP-848 in Kafka 3.9, cannot be; but the
    /// protocol for which it stands may be left out of the brokers' files.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        !self.config.is_left_out(name) && self.feature(name).is_none_or(|feature| self.features.level(&feature) > 0)
    }

    /// Changes the level of a feature, and does what follows from it.
    pub(crate) fn set_feature(&mut self, feature: &Feature, level: i16) {
        self.features.set(feature, level);
        if feature.name == SHARE_VERSION && level == 0 {
            share::switched_off(self);
        }
        if feature.name == ELIGIBLE_LEADER_REPLICAS_VERSION {
            for partition in self.topics.iter_mut().flat_map(|topic| &mut topic.partitions) {
                partition.set_rules(Rules { knows_eligible: level > 0, ..partition.rules() });
            }
        }
    }

    /// Checks a change of a feature's level, and says which it is: none if there is nothing to change. `all` are the
    /// changes that are asked for together.
    ///
    /// # Errors
    ///
    /// Kafka's words for what is wrong with it.
    pub(crate) fn check_feature(&self, update: &Update<'_>, all: &[Update<'_>]) -> Result<Option<Feature>, String> {
        let Update { feature: name, level, upgrade_type } = *update;
        let refused = |reason: String| format!("Invalid update version {level} for feature {name}. {reason}");
        let refuse = |reason: String| Err(refused(reason));
        let controller = self.nodes.controller();
        if !(UPGRADE..=UNSAFE_DOWNGRADE).contains(&upgrade_type) {
            return refuse("The controller does not support the given upgrade type.".to_owned());
        }
        if level < 0 {
            return refuse("A feature version cannot be less than 0.".to_owned());
        }
        let Some(feature) = self.feature(name) else {
            return match level {
                // What is not there can be taken away in 3.9.
                0 if self.cluster_version() < KafkaVersion::V4_0 => Ok(None),
                0 => refuse(format!("Feature {name} not found.")),
                _ => refuse(format!("Local controller {controller} does not support this feature.")),
            };
        };
        if level < feature.min || level > feature.max {
            let range = format!("{}-{}", feature.min, feature.max);
            return refuse(format!("Local controller {controller} only supports versions {range}"));
        }
        // Kafka 3.9 looks for the level of kraft.version where it is not kept, finds none, and changes nothing.
        let is_kept_elsewhere = name == "kraft.version" && self.cluster_version() < KafkaVersion::V4_0;
        let present = if is_kept_elsewhere { 0 } else { self.features.level(&feature) };
        if level > present && upgrade_type != UPGRADE {
            return refuse("Can't downgrade to a newer version.".to_owned());
        }
        let metadata = all.iter().find(|update| update.feature == METADATA_VERSION).map(|update| update.level);
        let metadata = metadata.unwrap_or_else(|| self.feature_level(METADATA_VERSION));
        depends(name, level, metadata).map_err(refused)?;
        if level >= present {
            return Ok(Some(feature).filter(|_| !is_kept_elsewhere));
        }
        if name == METADATA_VERSION && upgrade_type != UPGRADE && self.cluster_version() < KafkaVersion::V4_0 {
            return check_old_metadata_downgrade(level, upgrade_type).map(|()| Some(feature));
        }
        match (name, upgrade_type) {
            ("kraft.version", _) => refuse("Can't downgrade the version of this feature.".to_owned()),
            (_, UPGRADE) => {
                let types = "without setting the upgrade type to either safe or unsafe downgrade";
                refuse(format!("Can't downgrade the version of this feature {types}."))
            }
            (METADATA_VERSION, SAFE_DOWNGRADE) => Err(format!(
                "Unsupported metadata.version downgrade from {present} to {level}. Refusing to perform the requested \
                 downgrade because it might delete metadata information."
            )),
            (METADATA_VERSION, UNSAFE_DOWNGRADE) => Err(format!(
                "Unsupported metadata.version downgrade from {present} to {level}. Unsafe metadata downgrade is not \
                 supported in this version."
            )),
            _ => Ok(Some(feature)),
        }
    }
}

/// The level of `metadata.version` that a fresh cluster is at.
fn newest_metadata(state: &State) -> i16 {
    state.feature(METADATA_VERSION).map_or(i16::MAX, |feature| feature.level)
}

/// The first level of `metadata.version` that was written down itself, and could be gone back to before Kafka 4.
const FIRST_WRITTEN_LEVEL: i16 = 4;
/// From this level to the last one of Kafka 3.9, nothing of what the metadata log holds has changed.
const SAME_METADATA_LEVEL: i16 = 17;

/// Checks a lower level of `metadata.version` as Kafka 3.9 does, where a level that loses nothing can be gone back to.
///
/// # Errors
///
/// Kafka's words for what is wrong with it.
fn check_old_metadata_downgrade(level: i16, upgrade_type: i8) -> Result<(), String> {
    let reason = match level {
        ..FIRST_WRITTEN_LEVEL => "Unable to set a metadata.version less than 3.3-IV0",
        SAME_METADATA_LEVEL.. => return Ok(()),
        _ if upgrade_type == UNSAFE_DOWNGRADE => "Unsafe metadata downgrade is not supported in this version.",
        _ => "Refusing to perform the requested downgrade because it might delete metadata information.",
    };
    Err(format!("Invalid metadata.version {level}. {reason}"))
}
