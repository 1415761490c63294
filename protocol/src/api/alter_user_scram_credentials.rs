//! AlterUserScramCredentials (51): creates, changes and deletes SCRAM credentials of users, for admin tools.
//!
//! A broker hands the request on to the controller (KIP-554; with KRaft since KIP-900). The client hashes the password
//! itself, so that it never travels. What travels is no less a secret: with the salted password anybody can pass for
//! the user, so `Debug` shows only how long it is.

use std::fmt;

use super::redacted::Redacted;
use crate::{Bytes, Message, Str};

/// Asks for changes to credentials. A user's credential for one mechanism may be named once only.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 51, versions = 0..=0, flexible = 0.., response = AlterUserScramCredentialsResponse)]
pub struct AlterUserScramCredentialsRequest {
    /// The credentials to delete.
    pub deletions: Vec<ScramCredentialDeletion>,
    /// The credentials to create, or to put in the place of present ones.
    pub upsertions: Vec<ScramCredentialUpsertion>,
}

/// A credential to delete.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
pub struct ScramCredentialDeletion {
    /// The user's name.
    pub name: Str,
    /// 1 for SCRAM-SHA-256, 2 for SCRAM-SHA-512.
    pub mechanism: i8,
}

/// A credential to create or change.
#[derive(Clone, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
pub struct ScramCredentialUpsertion {
    /// The user's name.
    pub name: Str,
    /// 1 for SCRAM-SHA-256, 2 for SCRAM-SHA-512.
    pub mechanism: i8,
    /// How often the password was hashed: 4096 to 16384 times.
    pub iterations: i32,
    /// The salt, random and the client's own.
    pub salt: Bytes,
    /// The password, hashed with the salt (`Hi` of RFC 5802).
    pub salted_password: Bytes,
}

/// How the changes went.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 51, versions = 0..=0, flexible = 0..)]
pub struct AlterUserScramCredentialsResponse {
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
    /// One result for each user that the request names.
    pub results: Vec<AlterUserScramCredentialsResult>,
}

/// How the changes to one user went: all or none.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=0, flexible = 0..)]
pub struct AlterUserScramCredentialsResult {
    /// The user's name.
    pub user: Str,
    /// Why nothing was changed, 0 if it was. RESOURCE_NOT_FOUND: there is no such credential to delete.
    /// DUPLICATE_RESOURCE: the request names it twice. UNACCEPTABLE_CREDENTIAL: an empty name, or too few or too many
    /// iterations. UNSUPPORTED_SASL_MECHANISM: no such mechanism.
    pub error_code: i16,
    /// The reason in words, `None` if all went well or the controller gives none.
    pub error_message: Option<Str>,
}

impl fmt::Debug for ScramCredentialUpsertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScramCredentialUpsertion")
            .field("name", &self.name)
            .field("mechanism", &self.mechanism)
            .field("iterations", &self.iterations)
            .field("salt", &Redacted(self.salt.len()))
            .field("salted_password", &Redacted(self.salted_password.len()))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_does_not_show_the_password() {
        let upsertion = ScramCredentialUpsertion {
            name: "alice".into(),
            mechanism: 2,
            iterations: 4096,
            salt: Bytes::from_static(b"salt"),
            salted_password: Bytes::from_static(b"salted secret"),
        };
        let request = AlterUserScramCredentialsRequest { deletions: Vec::new(), upsertions: vec![upsertion] };

        assert!(format!("{request:?}").contains("iterations: 4096, salt: [4 bytes], salted_password: [13 bytes] }"));
    }
}
