//! UpdateFeatures (57): raises or lowers the level at which the cluster uses a feature, for admin tools.
//!
//! `metadata.version` is such a feature. A broker hands the request on to the controller, which checks that every
//! broker and controller can do what is asked (KIP-584). Version 1 tells safe downgrades from unsafe ones and can only
//! check (KIP-778); from 2 on there is one result for all the updates, which succeed or fail together (KIP-1022).

use crate::{Message, Str};

/// Asks for other levels of features.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 57, versions = 0..=2, flexible = 0.., response = UpdateFeaturesResponse)]
pub struct UpdateFeaturesRequest {
    /// For how many milliseconds the controller may work on it.
    #[field(default = 60000)]
    pub timeout_ms: i32,
    /// The updates, a feature at most once.
    pub feature_updates: Vec<FeatureUpdateKey>,
    /// Whether only to check the updates and make none.
    #[field(versions = 1..)]
    pub validate_only: bool,
}

/// The update of one feature.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=2, flexible = 0..)]
pub struct FeatureUpdateKey {
    /// The feature's name, `metadata.version` for instance.
    pub feature: Str,
    /// The level to use from now on; 0 turns the feature off, and one below 0 is refused.
    pub max_version_level: i16,
    /// Whether the level may be lower than the present one, before version 1.
    #[field(versions = 0)]
    pub allow_downgrade: bool,
    /// What the update may do, from version 1 on: 1 only raise the level, 2 lower it where nothing is lost by that,
    /// 3 lower it in any case.
    #[field(versions = 1.., default = 1)]
    pub upgrade_type: i8,
}

/// How the updates went.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 57, versions = 0..=2, flexible = 0..)]
pub struct UpdateFeaturesResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// The error of the whole request, CLUSTER_AUTHORIZATION_FAILED for instance; 0 for none. From version 2 on also
    /// why an update, and with it all of them, was refused: INVALID_UPDATE_VERSION, if a level is not to be had.
    pub error_code: i16,
    /// The reason in words, `None` if all went well or the controller gives none.
    pub error_message: Option<Str>,
    /// One result for each update, before version 2.
    #[field(versions = ..=1, ignorable)]
    pub results: Vec<UpdatableFeatureResult>,
}

/// How the update of one feature went.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1, flexible = 0..)]
pub struct UpdatableFeatureResult {
    /// The feature's name.
    pub feature: Str,
    /// Why the level stays, 0 if it was updated. INVALID_UPDATE_VERSION: the level is not to be had, or is lower where
    /// only a raise was allowed. FEATURE_UPDATE_FAILED: the new level could not be written down.
    pub error_code: i16,
    /// The reason in words, `None` if all went well or the controller gives none.
    pub error_message: Option<Str>,
}
