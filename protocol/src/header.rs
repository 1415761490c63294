//! What stands before a request's or a response's body.
//!
//! A request's header names the API and the version of both bodies, and so also how it goes on: a flexible version has
//! tagged fields at its end. The client id is a string of the old encoding in either case, so that a broker can read
//! whose request of an unknown version this is.

use crate::ApiKey;
use crate::wire::{DecodeError, EncodeError, Nullable, Reader, Str, Wire, Writer};

/// Who asks for what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestHeader {
    /// The API's number: perhaps one that we do not know.
    pub key: i16,
    /// The version of the request and of its response.
    pub version: i16,
    /// What the response repeats.
    pub correlation_id: i32,
    /// The name that the client gave itself. There is no place for it in ControlledShutdown's version 0.
    pub client_id: Option<Str>,
}

impl RequestHeader {
    /// Writes the header.
    ///
    /// # Errors
    /// The client id is longer than the protocol can express.
    pub fn encode(&self, out: &mut Writer) -> Result<(), EncodeError> {
        self.key.put(out, 0, false)?;
        self.version.put(out, 0, false)?;
        self.correlation_id.put(out, 0, false)?;
        if has_client_id(self.key, self.version) {
            Str::put_nullable(self.client_id.as_ref(), out, 0, false)?;
        }
        if is_flexible(self.key, self.version) {
            out.put_no_tags();
        }
        Ok(())
    }
}

/// Reads the header of a request, and leaves `input` at its body.
///
/// An API or a version that we do not know is no error: a broker answers it with one.
///
/// # Errors
/// The bytes are no header.
pub fn decode_request_header(input: &mut Reader) -> Result<RequestHeader, DecodeError> {
    let key = i16::take(input, 0, false)?;
    let version = i16::take(input, 0, false)?;
    let correlation_id = i32::take(input, 0, false)?;
    let client_id = if has_client_id(key, version) { Str::take_nullable(input, 0, false)? } else { None };
    if is_flexible(key, version) {
        input.pass_tags()?;
    }
    Ok(RequestHeader { key, version, correlation_id, client_id })
}

/// Reads the header of the response to a request of `version`, and leaves `input` at its body: the correlation id.
///
/// # Errors
/// The bytes are no header.
pub fn decode_response_header(key: ApiKey, version: i16, input: &mut Reader) -> Result<i32, DecodeError> {
    let correlation_id = i32::take(input, 0, false)?;
    if has_response_tags(key, version) {
        input.pass_tags()?;
    }
    Ok(correlation_id)
}

/// Writes the header of the response to a request of `version`.
pub fn encode_response_header(key: ApiKey, version: i16, correlation_id: i32, out: &mut Writer) {
    out.put_slice(&correlation_id.to_be_bytes());
    if has_response_tags(key, version) {
        out.put_no_tags();
    }
}

/// All requests but one say whose they are: brokers before Kafka 0.9 did not when they asked to shut down.
fn has_client_id(key: i16, version: i16) -> bool {
    key != ApiKey::ControlledShutdown.code() || version > 0
}

fn is_flexible(key: i16, version: i16) -> bool {
    ApiKey::try_from(key).ok().and_then(ApiKey::flexible_since).is_some_and(|first| version >= first)
}

/// The response to ApiVersions is what negotiates: a client must be able to read it before it knows any version.
fn has_response_tags(key: ApiKey, version: i16) -> bool {
    key != ApiKey::ApiVersions && key.flexible_since().is_some_and(|first| version >= first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_request_to_shut_down_has_no_client_id() {
        let header = |version| RequestHeader {
            key: ApiKey::ControlledShutdown.code(),
            version,
            correlation_id: 42,
            client_id: (version > 0).then(|| "b".into()),
        };
        let bytes = |version| {
            let mut out = Writer::new();
            header(version).encode(&mut out).unwrap();
            out.into_bytes()
        };

        assert_eq!(bytes(0)[..], *b"\0\x07\0\0\0\0\0\x2a");
        assert_eq!(bytes(1)[..], *b"\0\x07\0\x01\0\0\0\x2a\0\x01b");
        for version in 0..=3 {
            assert_eq!(decode_request_header(&mut Reader::new(bytes(version))).unwrap(), header(version));
        }
    }
}
