//! CreateDelegationToken (38): a new token, with which workers log in as its owner without the owner's credentials
//! (KIP-48).
//!
//! Sent to any broker, which forwards it to the controller. To log in with a token, a client says SASL/SCRAM with the
//! token's id as the user name, its HMAC in base64 as the password, and the extension `tokenauth=true`. The HMAC is
//! therefore a secret, and `Debug` shows only how long it is.
//!
//! Tokens are managed over connections that have proven who the client is: over PLAINTEXT, over TLS without a
//! client's certificate, and where the client has logged in with a token itself, the four APIs 38 to 41 answer
//! DELEGATION_TOKEN_REQUEST_NOT_ALLOWED. A cluster without `delegation.token.secret.key` answers
//! DELEGATION_TOKEN_AUTH_DISABLED.
//!
//! From version 1 on the broker answers before it throttles (KIP-219); 2 is the first in the flexible encoding
//! (KIP-482); 3 makes tokens for other owners (KIP-373). Kafka 4.0 dropped version 0 (KIP-896).

use std::fmt;

use super::redacted::Redacted;
use crate::{Bytes, Message, Str};

/// Asks for a token.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 38, versions = 0..=3, flexible = 2.., response = CreateDelegationTokenResponse)]
pub struct CreateDelegationTokenRequest {
    /// The type of the owner, `User` for instance. Counts only with a name.
    #[field(versions = 3.., nullable = 3..)]
    pub owner_principal_type: Option<Str>,
    /// The owner's name; `None` and empty mean the requester.
    #[field(versions = 3.., nullable = 3..)]
    pub owner_principal_name: Option<Str>,
    /// Who may renew the token besides its owner.
    pub renewers: Vec<CreatableRenewers>,
    /// After how many milliseconds the token ends, however often it is renewed. The broker's
    /// `delegation.token.max.lifetime.ms` bounds it, and holds where this is -1 or 0.
    pub max_lifetime_ms: i64,
}

/// Someone who may renew the token.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=3, flexible = 2..)]
pub struct CreatableRenewers {
    /// The type of the principal; anything but `User` is INVALID_PRINCIPAL_TYPE.
    pub principal_type: Str,
    /// Its name.
    pub principal_name: Str,
}

/// The token.
#[derive(Clone, PartialEq, Message)]
#[message(key = 38, versions = 0..=3, flexible = 2..)]
pub struct CreateDelegationTokenResponse {
    /// Why there is no token, 0 if there is one. DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
    /// DELEGATION_TOKEN_AUTH_DISABLED, INVALID_PRINCIPAL_TYPE; DELEGATION_TOKEN_AUTHORIZATION_FAILED: the requester
    /// may not create tokens for that owner.
    pub error_code: i16,
    /// The type of the owner.
    pub principal_type: Str,
    /// The owner's name.
    pub principal_name: Str,
    /// The type of the requester.
    #[field(versions = 3..)]
    pub token_requester_principal_type: Str,
    /// The requester's name.
    #[field(versions = 3..)]
    pub token_requester_principal_name: Str,
    /// When the token was made, in milliseconds since 1970; -1 after an error.
    pub issue_timestamp_ms: i64,
    /// When it ends unless it is renewed, in milliseconds since 1970; -1 after an error.
    pub expiry_timestamp_ms: i64,
    /// When it ends even so, in milliseconds since 1970; -1 after an error.
    pub max_timestamp_ms: i64,
    /// The token's id.
    pub token_id: Str,
    /// The token's HMAC, which is the secret.
    pub hmac: Bytes,
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
}

impl fmt::Debug for CreateDelegationTokenResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CreateDelegationTokenResponse")
            .field("error_code", &self.error_code)
            .field("principal_type", &self.principal_type)
            .field("principal_name", &self.principal_name)
            .field("token_requester_principal_type", &self.token_requester_principal_type)
            .field("token_requester_principal_name", &self.token_requester_principal_name)
            .field("issue_timestamp_ms", &self.issue_timestamp_ms)
            .field("expiry_timestamp_ms", &self.expiry_timestamp_ms)
            .field("max_timestamp_ms", &self.max_timestamp_ms)
            .field("token_id", &self.token_id)
            .field("hmac", &Redacted(self.hmac.len()))
            .field("throttle_time_ms", &self.throttle_time_ms)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_does_not_show_the_hmac() {
        let hmac = Bytes::from_static(b"hunter2");
        let response = CreateDelegationTokenResponse { token_id: "t".into(), hmac, ..Default::default() };

        let debug = format!("{response:?}");
        assert!(debug.ends_with(r#"token_id: "t", hmac: [7 bytes], throttle_time_ms: 0 }"#), "{debug}");
    }
}
