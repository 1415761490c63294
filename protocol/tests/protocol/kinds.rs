//! Requests and responses of every API that we speak, without their types.

use krafka_protocol::schema::MessageSchema;
use krafka_protocol::value::Structure;
use krafka_protocol::{AnyRequest, AnyResponse, ApiKey, Bytes, DecodeError, EncodeError, Reader, Writer};

/// Requests or responses of one API.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) api: ApiKey,
    pub(crate) is_request: bool,
    pub(crate) schema: &'static MessageSchema,
}

/// All of them.
pub(crate) fn kinds() -> impl Iterator<Item = Kind> {
    ApiKey::SPOKEN.iter().flat_map(|api| {
        let [request, response] = api.schemas().expect("we speak it");
        [(true, request), (false, response)].map(|(is_request, schema)| Kind { api: *api, is_request, schema })
    })
}

impl Kind {
    /// Whether these are the `request`s or the `response`s of an API.
    pub(crate) fn is(&self, api: ApiKey, direction: &str) -> bool {
        self.api == api && self.is_request == (direction == "request")
    }

    pub(crate) fn decode(&self, input: &mut Reader, version: i16) -> Result<Either, DecodeError> {
        if self.is_request {
            AnyRequest::decode(self.api, version, input).map(Either::Request)
        } else {
            AnyResponse::decode(self.api, version, input).map(Either::Response)
        }
    }

    /// Decodes the whole input.
    pub(crate) fn decode_all(&self, bytes: Bytes, version: i16) -> Result<Either, DecodeError> {
        let mut input = Reader::new(bytes);
        let decoded = self.decode(&mut input, version)?;
        assert!(input.is_empty(), "{} v{version}: {} bytes are left", self.schema.name, input.remaining());
        Ok(decoded)
    }
}

/// A message of any of them.
#[derive(Debug, PartialEq)]
pub(crate) enum Either {
    Request(AnyRequest),
    Response(AnyResponse),
}

impl Either {
    /// The bytes, whose number is checked against what was foretold.
    pub(crate) fn encode(&self, version: i16) -> Result<Bytes, EncodeError> {
        let mut out = Writer::new();
        let (encoded, size) = match self {
            Self::Request(request) => (request.encode(&mut out, version), request.size(version)),
            Self::Response(response) => (response.encode(&mut out, version), response.size(version)),
        };
        assert_eq!(encoded.is_ok(), size.is_ok(), "{encoded:?} {size:?}");
        encoded?;
        assert_eq!(out.len(), size?);
        Ok(out.into_bytes())
    }

    pub(crate) fn structure(&self) -> &dyn Structure {
        match self {
            Self::Request(request) => request.structure(),
            Self::Response(response) => response.structure(),
        }
    }
}
