//! RenewDelegationToken (39): lets a token live longer, up to the end that it was made with (KIP-48).
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

/// Renews a token.
#[derive(Clone, PartialEq, Message)]
#[message(key = 39, versions = 0..=2, flexible = 2.., response = RenewDelegationTokenResponse)]
pub struct RenewDelegationTokenRequest {
    /// The token's HMAC, by which the broker finds it.
    pub hmac: Bytes,
    /// In how many milliseconds from now the token shall end. The broker's `delegation.token.expiry.time.ms` bounds
    /// it, and holds where this is -1 or 0.
    pub renew_period_ms: i64,
}

/// When the token ends now.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 39, versions = 0..=2, flexible = 2..)]
pub struct RenewDelegationTokenResponse {
    /// Why the token was not renewed, 0 if it was. DELEGATION_TOKEN_NOT_FOUND; DELEGATION_TOKEN_EXPIRED: it is too
    /// late; DELEGATION_TOKEN_OWNER_MISMATCH: the caller is neither owner nor renewer;
    /// DELEGATION_TOKEN_REQUEST_NOT_ALLOWED; DELEGATION_TOKEN_AUTH_DISABLED.
    pub error_code: i16,
    /// When the token ends unless it is renewed again, in milliseconds since 1970.
    pub expiry_timestamp_ms: i64,
    /// For how many milliseconds a quota makes the client wait; 0 for none.
    pub throttle_time_ms: i32,
}

impl fmt::Debug for RenewDelegationTokenRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RenewDelegationTokenRequest")
            .field("hmac", &Redacted(self.hmac.len()))
            .field("renew_period_ms", &self.renew_period_ms)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_does_not_show_the_hmac() {
        let request = RenewDelegationTokenRequest { hmac: Bytes::from_static(b"hunter2"), renew_period_ms: -1 };

        assert_eq!(format!("{request:?}"), "RenewDelegationTokenRequest { hmac: [7 bytes], renew_period_ms: -1 }");
    }
}
