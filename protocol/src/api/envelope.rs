//! Envelope (58): a client's request that a broker hands on to the controller, with who asked it (KIP-590).
//!
//! The broker has authenticated the client; the controller trusts the broker, which needs CLUSTER_ACTION, and
//! authorizes the client. What is inside may hold secrets (AlterUserScramCredentials, a delegation token), so `Debug`
//! shows only how long it is.

use std::fmt;

use super::redacted::Redacted;
use crate::{Bytes, Message};

/// A request inside a request.
#[derive(Clone, PartialEq, Message)]
#[message(key = 58, versions = 0..=0, flexible = 0.., response = EnvelopeResponse)]
pub struct EnvelopeRequest {
    /// The client's request as it came: header and body, without the length before them.
    pub request_data: Bytes,
    /// Who the client is: a version (int16) and Kafka's `DefaultPrincipalData`, unless the brokers' principal builder
    /// has a form of its own. `None` makes the controller answer PRINCIPAL_DESERIALIZATION_FAILURE.
    pub request_principal: Option<Bytes>,
    /// The client's IP address: 4 bytes or 16.
    pub client_host_address: Bytes,
}

/// A response inside a response.
#[derive(Clone, PartialEq, Message)]
#[message(key = 58, versions = 0..=0, flexible = 0..)]
pub struct EnvelopeResponse {
    /// The response to the client: header and body, without the length before them; `None` after an error.
    #[field(default = null)]
    pub response_data: Option<Bytes>,
    /// The error of the envelope, 0 for none; what went wrong with the request inside is said by the response inside.
    /// CLUSTER_AUTHORIZATION_FAILED: the sender is no broker. PRINCIPAL_DESERIALIZATION_FAILURE: the principal cannot
    /// be read. UNSUPPORTED_VERSION: the request inside cannot be. INVALID_REQUEST: it is not one to hand on, or the
    /// address is none. NOT_CONTROLLER: the active controller is another.
    pub error_code: i16,
}

impl fmt::Debug for EnvelopeRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnvelopeRequest")
            .field("request_data", &Redacted(self.request_data.len()))
            .field("request_principal", &self.request_principal)
            .field("client_host_address", &self.client_host_address)
            .finish()
    }
}

impl fmt::Debug for EnvelopeResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnvelopeResponse")
            .field("response_data", &self.response_data.as_ref().map(|data| Redacted(data.len())))
            .field("error_code", &self.error_code)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_does_not_show_what_is_inside() {
        let inside = Bytes::from_static(b"alice-secret");
        let request = EnvelopeRequest { request_data: inside.clone(), ..Default::default() };
        let response = EnvelopeResponse { response_data: Some(inside), error_code: 0 };

        assert!(format!("{request:?}").contains("request_data: [12 bytes]"));
        assert_eq!(format!("{response:?}"), "EnvelopeResponse { response_data: Some([12 bytes]), error_code: 0 }");
    }
}
