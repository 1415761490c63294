//! DescribeUserScramCredentials (50): which SCRAM credentials users have, without their secrets, for admin tools.
//!
//! Any broker or controller answers, out of the metadata that it has (KIP-554; with KRaft since KIP-900).

use crate::{Message, Str};

/// Asks which credentials some users have.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 50, versions = 0..=0, flexible = 0.., response = DescribeUserScramCredentialsResponse)]
pub struct DescribeUserScramCredentialsRequest {
    /// The users asked about; `None` or empty means all that have a credential.
    pub users: Option<Vec<UserName>>,
}

/// A user asked about.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
pub struct UserName {
    /// The user's name. One that is named twice has DUPLICATE_RESOURCE for its answer.
    pub name: Str,
}

/// The credentials, by user.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 50, versions = 0..=0, flexible = 0..)]
pub struct DescribeUserScramCredentialsResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// The error of the whole request, CLUSTER_AUTHORIZATION_FAILED for instance; 0 for none.
    pub error_code: i16,
    /// The reason in words, `None` if all went well or the broker gives none.
    pub error_message: Option<Str>,
    /// One answer for each user.
    pub results: Vec<DescribeUserScramCredentialsResult>,
}

/// The credentials of one user.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
pub struct DescribeUserScramCredentialsResult {
    /// The user's name.
    pub user: Str,
    /// Why there is nothing to tell, 0 if there is. RESOURCE_NOT_FOUND: the user has no SCRAM credential.
    /// DUPLICATE_RESOURCE: the request names the user twice.
    pub error_code: i16,
    /// The reason in words, `None` if all went well or the broker gives none.
    pub error_message: Option<Str>,
    /// The credentials, one for a mechanism at most; empty after an error.
    pub credential_infos: Vec<CredentialInfo>,
}

/// What may be told of one credential.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
pub struct CredentialInfo {
    /// 1 for SCRAM-SHA-256, 2 for SCRAM-SHA-512; 0 for one that the broker does not know.
    pub mechanism: i8,
    /// How often the password was hashed.
    pub iterations: i32,
}
