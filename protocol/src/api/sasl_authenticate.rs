//! SaslAuthenticate (36): carries one SASL token there and one back.
//!
//! Version 1 tells for how long the authentication holds (KIP-368). The tokens are secrets (PLAIN
//! sends the password itself), so `Debug` shows only how long they are.

use std::fmt;

use super::redacted::Redacted;
use crate::{Bytes, Message, Str};

/// One token from the client.
#[derive(Clone, PartialEq, Message)]
#[message(key = 36, versions = 0..=2, flexible = 2.., response = SaslAuthenticateResponse)]
pub struct SaslAuthenticateRequest {
    /// The token, as the mechanism defines it.
    pub auth_bytes: Bytes,
}

/// The broker's token, or its refusal.
#[derive(Clone, PartialEq, Message)]
#[message(key = 36, versions = 0..=2, flexible = 2..)]
pub struct SaslAuthenticateResponse {
    /// SASL_AUTHENTICATION_FAILED if the client is refused, 0 if it is not.
    pub error_code: i16,
    /// The reason in words, `None` if the broker gives none.
    pub error_message: Option<Str>,
    /// The token, as the mechanism defines it.
    pub auth_bytes: Bytes,
    /// After how many milliseconds the client must have authenticated again; 0 for never.
    #[field(versions = 1.., ignorable)]
    pub session_lifetime_ms: i64,
}

impl fmt::Debug for SaslAuthenticateRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SaslAuthenticateRequest").field("auth_bytes", &Redacted(self.auth_bytes.len())).finish()
    }
}

impl fmt::Debug for SaslAuthenticateResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SaslAuthenticateResponse")
            .field("error_code", &self.error_code)
            .field("error_message", &self.error_message)
            .field("auth_bytes", &Redacted(self.auth_bytes.len()))
            .field("session_lifetime_ms", &self.session_lifetime_ms)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_does_not_show_the_token() {
        let request = SaslAuthenticateRequest { auth_bytes: Bytes::from_static(b"\0alice\0alice-secret") };
        let response = SaslAuthenticateResponse { auth_bytes: request.auth_bytes.clone(), ..Default::default() };

        assert_eq!(format!("{request:?}"), "SaslAuthenticateRequest { auth_bytes: [19 bytes] }");
        assert!(!format!("{response:?}").contains("secret"));
    }
}
