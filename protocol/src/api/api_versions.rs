//! ApiVersions: which APIs and versions a broker speaks. A client asks this first.

use crate::wire::{DecodeError, Reader};
use crate::{ErrorCode, Message, Str};

/// Asks a broker what it speaks, and says which software asks.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 18, versions = 0..=5, flexible = 3.., response = ApiVersionsResponse)]
pub struct ApiVersionsRequest {
    /// The name of the client's software: letters, digits, dots and dashes.
    #[field(versions = 3.., ignorable)]
    pub client_software_name: Str,
    /// The version of the client's software, in the same letters.
    #[field(versions = 3.., ignorable)]
    pub client_software_version: Str,
    /// The cluster that the client means to be connected to, if it knows.
    #[field(versions = 5.., nullable = 5.., ignorable, default = null)]
    pub cluster_id: Option<Str>,
    /// The broker that the client means to be connected to, or -1.
    #[field(versions = 5.., ignorable, default = -1)]
    pub node_id: i32,
}

/// What a broker speaks.
///
/// A broker that does not know the request's version answers in version 0 with `UNSUPPORTED_VERSION`, so that every
/// client can read which versions of this API it does know.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 18, versions = 0..=5, flexible = 3..)]
pub struct ApiVersionsResponse {
    /// The error, or 0.
    pub error_code: i16,
    /// The APIs and their versions.
    pub api_keys: Vec<ApiVersion>,
    /// How long the client shall be silent because of a quota.
    #[field(versions = 1.., ignorable)]
    pub throttle_time_ms: i32,
    /// The features that the broker could enable.
    #[field(versions = 3.., tag = 0, ignorable)]
    pub supported_features: Vec<SupportedFeatureKey>,
    /// Grows with each change of the finalized features; -1 if it is unknown.
    #[field(versions = 3.., tag = 1, ignorable, default = -1)]
    pub finalized_features_epoch: i64,
    /// The features that the cluster has enabled.
    #[field(versions = 3.., tag = 2, ignorable)]
    pub finalized_features: Vec<FinalizedFeatureKey>,
    /// Whether a controller of the old kind may hand its cluster over to this one.
    #[field(versions = 3.., tag = 3, ignorable, default = false)]
    pub zk_migration_ready: bool,
}

/// The versions of one API.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=5, flexible = 3..)]
pub struct ApiVersion {
    /// The API's number.
    pub api_key: i16,
    /// The lowest version.
    pub min_version: i16,
    /// The highest version.
    pub max_version: i16,
}

/// The levels of a feature that a broker could enable.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 3..=5, flexible = 3..)]
pub struct SupportedFeatureKey {
    /// The feature.
    pub name: Str,
    /// The lowest level.
    pub min_version: i16,
    /// The highest level.
    pub max_version: i16,
}

/// The levels of a feature that the cluster has enabled.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 3..=5, flexible = 3..)]
pub struct FinalizedFeatureKey {
    /// The feature.
    pub name: Str,
    /// The highest level that is enabled.
    pub max_version_level: i16,
    /// The lowest level that is enabled.
    pub min_version_level: i16,
}

impl ApiVersionsResponse {
    /// Reads the answer to a request of `version`, which may be an error in version 0 instead.
    ///
    /// # Errors
    /// The bytes are neither.
    pub fn decode_answer(input: &mut Reader, version: i16) -> Result<Self, DecodeError> {
        // The error code comes first in every version.
        let error_code = i16::from_be_bytes(input.clone().take_array()?);
        let version = if ErrorCode(error_code) == ErrorCode::UNSUPPORTED_VERSION { 0 } else { version };
        Self::decode(input, version)
    }
}
