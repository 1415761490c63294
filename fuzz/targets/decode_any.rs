//! Any message of any version from any bytes.
//!
//! The input is the API's number, the version with bit 7 for a response, and the body. What is not an error must be
//! written and read again as it was, take no more memory than the frame warrants, and be refused or written by every
//! other version without a panic.

#![no_main]

use krafka_protocol::{
    AnyRequest, AnyResponse, ApiKey, Bytes, DecodeError, EncodeError, Reader, Writer, decode_request_header,
};
use libfuzzer_sys::fuzz_target;

/// Memory that the decoded form of a frame may take for each of its bytes; the hostile tests say why.
const MEMORY_PER_BYTE: usize = 64;

fuzz_target!(|data: &[u8]| {
    let _ = decode_request_header(&mut Reader::new(Bytes::copy_from_slice(data)));
    let [key, version, body @ ..] = data else { return };
    let Some(key) = ApiKey::from_code(i16::from(*key)) else { return };
    let Some(versions) = key.versions() else { return };
    let (is_response, version) = (version & 0x80 != 0, i16::from(version & 0x7f));

    let body = Bytes::copy_from_slice(body);
    let budget = 1024 + MEMORY_PER_BYTE * body.len();
    let mut input = Reader::with_budget(body.clone(), budget);
    let decoded = match Any::decode(key, is_response, version, &mut input) {
        Ok(decoded) => decoded,
        Err(error) => {
            assert!(!error.is_over_budget(), "{error}");
            return;
        }
    };

    // The answer to ApiVersions may be an error, which is in version 0 whatever was asked for.
    let again = decoded.encode(version).expect("what was read can be written");
    let mut input = Reader::new(again);
    decoded.assert_same(&Any::decode(key, is_response, version, &mut input));

    // The same with the tags that nobody knows: they cost no more than the budget, and disturb nothing.
    let mut input = Reader::with_budget(body, budget).keep_unknown_tags();
    decoded.assert_same(&Any::decode(key, is_response, version, &mut input));
    let unknown = input.take_unknown_tags();
    let again = decoded.encode_into(Writer::new().with_unknown_tags(unknown.clone()), version).expect("as before");
    let mut input = Reader::new(again).keep_unknown_tags();
    decoded.assert_same(&Any::decode(key, is_response, version, &mut input));
    assert_eq!(input.take_unknown_tags(), unknown);
    for version in versions.iter() {
        let _ = decoded.encode(version);
    }
});

#[derive(Debug, PartialEq)]
enum Any {
    Request(AnyRequest),
    Response(AnyResponse),
}

impl Any {
    /// Asserts that the other was read, and says the same: a float that is no number is unlike itself, and reads alike.
    fn assert_same(&self, other: &Result<Self, DecodeError>) {
        if other.as_ref() != Ok(self) {
            assert_eq!(format!("{other:?}"), format!("{:?}", Ok::<_, DecodeError>(self)));
        }
    }

    fn decode(key: ApiKey, is_response: bool, version: i16, input: &mut Reader) -> Result<Self, DecodeError> {
        if is_response {
            AnyResponse::decode(key, version, input).map(Self::Response)
        } else {
            AnyRequest::decode(key, version, input).map(Self::Request)
        }
    }

    fn encode(&self, version: i16) -> Result<Bytes, EncodeError> {
        let bytes = self.encode_into(Writer::new(), version)?;
        let size = match self {
            Self::Request(request) => request.size(version)?,
            Self::Response(response) => response.size(version)?,
        };
        assert_eq!(bytes.len(), size, "the size was foretold");
        Ok(bytes)
    }

    fn encode_into(&self, mut out: Writer, version: i16) -> Result<Bytes, EncodeError> {
        match self {
            Self::Request(request) => request.encode(&mut out, version)?,
            Self::Response(response) => response.encode(&mut out, version)?,
        }
        Ok(out.into_bytes())
    }
}
