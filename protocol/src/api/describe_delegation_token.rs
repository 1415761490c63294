//! DescribeDelegationToken (41): the tokens that the caller may see (KIP-48).
//!
//! These are the tokens that it owns, asked for or may renew, and those that it has the right to describe, by the
//! token's id or, from Kafka 3.3 on, by the owner (KIP-373). Any broker answers. [`create_delegation_token`] says
//! over which connections. The HMACs are the tokens' secrets, so `Debug` shows only how long they are.
//!
//! From version 1 on the broker answers before it throttles (KIP-219); 2 is the first in the flexible encoding
//! (KIP-482); 3 tells who asked for a token (KIP-373). Kafka 4.0 dropped version 0 (KIP-896).
//!
//! [`create_delegation_token`]: super::create_delegation_token

use std::fmt;

use super::redacted::Redacted;
use crate::{Bytes, Message, Str};

/// Asks for tokens.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 41, versions = 0..=3, flexible = 2.., response = DescribeDelegationTokenResponse)]
pub struct DescribeDelegationTokenRequest {
    /// Only tokens that one of these owns, asked for or may renew; `None` for all that the caller may see. With none
    /// in the list the answer has none.
    pub owners: Option<Vec<DescribeDelegationTokenOwner>>,
}

/// Someone who has to do with tokens.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=3, flexible = 2..)]
pub struct DescribeDelegationTokenOwner {
    /// The type of the principal, `User` for instance.
    pub principal_type: Str,
    /// Its name.
    pub principal_name: Str,
}

/// The tokens.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 41, versions = 0..=3, flexible = 2..)]
pub struct DescribeDelegationTokenResponse {
    /// Why there is no list, 0 if there is one. DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, DELEGATION_TOKEN_AUTH_DISABLED.
    pub error_code: i16,
    /// The tokens. Those that the caller may not see are left out without a word.
    pub tokens: Vec<DescribedDelegationToken>,
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
}

/// A token.
#[derive(Clone, PartialEq, Message)]
#[message(versions = 0..=3, flexible = 2..)]
pub struct DescribedDelegationToken {
    /// The type of the owner.
    pub principal_type: Str,
    /// The owner's name.
    pub principal_name: Str,
    /// The type of who asked for the token.
    #[field(versions = 3..)]
    pub token_requester_principal_type: Str,
    /// The name of who asked for it.
    #[field(versions = 3..)]
    pub token_requester_principal_name: Str,
    /// When the token was made, in milliseconds since 1970.
    pub issue_timestamp: i64,
    /// When it ends unless it is renewed, in milliseconds since 1970.
    pub expiry_timestamp: i64,
    /// When it ends even so, in milliseconds since 1970.
    pub max_timestamp: i64,
    /// The token's id.
    pub token_id: Str,
    /// The token's HMAC, which is the secret.
    pub hmac: Bytes,
    /// Who may renew the token besides its owner.
    pub renewers: Vec<DescribedDelegationTokenRenewer>,
}

/// Someone who may renew a token.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=3, flexible = 2..)]
pub struct DescribedDelegationTokenRenewer {
    /// The type of the principal.
    pub principal_type: Str,
    /// Its name.
    pub principal_name: Str,
}

impl fmt::Debug for DescribedDelegationToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DescribedDelegationToken")
            .field("principal_type", &self.principal_type)
            .field("principal_name", &self.principal_name)
            .field("token_requester_principal_type", &self.token_requester_principal_type)
            .field("token_requester_principal_name", &self.token_requester_principal_name)
            .field("issue_timestamp", &self.issue_timestamp)
            .field("expiry_timestamp", &self.expiry_timestamp)
            .field("max_timestamp", &self.max_timestamp)
            .field("token_id", &self.token_id)
            .field("hmac", &Redacted(self.hmac.len()))
            .field("renewers", &self.renewers)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_does_not_show_the_hmac() {
        let hmac = Bytes::from_static(b"hunter2");
        let token = DescribedDelegationToken { token_id: "t".into(), hmac, ..Default::default() };

        let debug = format!("{token:?}");
        assert!(debug.ends_with(r#"token_id: "t", hmac: [7 bytes], renewers: [] }"#), "{debug}");
    }
}
