//! ExpireDelegationToken (40): ends a token early, at once or at a time that is given (KIP-48).
//!
//! Sent to any broker, which forwards it to the controller, by the token's owner or one of its renewers.
//! [`create_delegation_token`](super::create_delegation_token) says over which connections. The HMAC is the token's
//! secret, so `Debug` shows only how long it is.
//!
//! From version 1 on the broker answers before it throttles (KIP-219); 2 is the first in the flexible encoding
//! (KIP-482). Kafka 4.0 dropped version 0 (KIP-896).

use std::fmt;

use super::redacted::Redacted;
use crate::{Bytes, Message};

/// Ends a token.
#[derive(Clone, PartialEq, Message)]
#[message(key = 40, versions = 0..=2, flexible = 2.., response = ExpireDelegationTokenResponse)]
pub struct ExpireDelegationTokenRequest {
    /// The token's HMAC, by which the broker finds it.
    pub hmac: Bytes,
    /// In how many milliseconds from now the token shall end, at the latest when it would anyway; -1 to remove it at
    /// once, even if it has ended already.
    pub expiry_time_period_ms: i64,
}

/// When the token ends now.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 40, versions = 0..=2, flexible = 2..)]
pub struct ExpireDelegationTokenResponse {
    /// Why nothing was changed, 0 if it was. DELEGATION_TOKEN_NOT_FOUND; DELEGATION_TOKEN_EXPIRED: it has ended
    /// already; DELEGATION_TOKEN_OWNER_MISMATCH: the caller is neither owner nor renewer;
    /// DELEGATION_TOKEN_REQUEST_NOT_ALLOWED; DELEGATION_TOKEN_AUTH_DISABLED.
    pub error_code: i16,
    /// When the token ends, in milliseconds since 1970; the time of the request if it was removed at once.
    pub expiry_timestamp_ms: i64,
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
}

impl fmt::Debug for ExpireDelegationTokenRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExpireDelegationTokenRequest")
            .field("hmac", &Redacted(self.hmac.len()))
            .field("expiry_time_period_ms", &self.expiry_time_period_ms)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_does_not_show_the_hmac() {
        let request = ExpireDelegationTokenRequest { hmac: Bytes::from_static(b"hunter2"), expiry_time_period_ms: -1 };

        assert_eq!(
            format!("{request:?}"),
            "ExpireDelegationTokenRequest { hmac: [7 bytes], expiry_time_period_ms: -1 }"
        );
    }
}
