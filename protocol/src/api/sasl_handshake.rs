//! SaslHandshake (17): chooses the mechanism to authenticate with.
//!
//! After version 0 the SASL tokens follow without any Kafka framing; after version 1 they travel in
//! [`SaslAuthenticateRequest`](super::sasl_authenticate::SaslAuthenticateRequest)s (KIP-152).

use crate::{Message, Str};

/// Names the mechanism that the client wants to use.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 17, versions = 0..=1, response = SaslHandshakeResponse)]
pub struct SaslHandshakeRequest {
    /// The mechanism's name, `SCRAM-SHA-256` for instance.
    pub mechanism: Str,
}

/// Whether the broker agrees.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(key = 17, versions = 0..=1)]
pub struct SaslHandshakeResponse {
    /// UNSUPPORTED_SASL_MECHANISM if the broker does not offer the mechanism, 0 if it does.
    pub error_code: i16,
    /// The mechanisms that this listener offers.
    pub mechanisms: Vec<Str>,
}
