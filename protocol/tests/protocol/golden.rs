//! Every API, version and direction against bytes that Java wrote, both ways.
//!
//! Decoding must give the values that Java prints, and encoding those must give Java's bytes again:
//! a field that client and fake broker both have wrong is found here.

use std::collections::BTreeSet;

use krafka_protocol::frame::{encode_any_request, encode_any_response};
use krafka_protocol::group::{Assignment, Subscription};
use krafka_protocol::value::Structure;
use krafka_protocol::{
    AnyRequest, AnyResponse, ApiKey, Bytes, DecodeError, Reader, Str, UnknownTags, Writer, decode_request_header,
    decode_response_header, encode_response_header,
};
use serde_json::{Value as Json, json};

use crate::payloads::{PAYLOADS, Written};
use crate::rendering::render;
use crate::vectors::{Vector, api_versions, hex};

#[test]
fn messages_are_read_and_written_as_java_does() {
    let vectors = Vector::load("messages");

    for vector in ours(&vectors) {
        let decoded = Decoded::decode(vector, &mut vector.reader());
        decoded.assert_is(vector, &vector.json);
        assert_eq!(hex(&decoded.encode(vector)), hex(&vector.bytes), "{vector}");
    }
    assert_covers_every_version(&vectors);
}

#[test]
fn unstable_versions_are_refused_without_the_feature() {
    let mut refused = BTreeSet::new();
    for vector in Vector::load("messages").iter().filter(|vector| vector.is_refused()) {
        let refusal = Decoded::read(vector, &mut vector.reader()).err();
        assert!(refusal.is_some_and(|error| error.is_unsupported_version()), "{vector}");
        refused.insert((vector.api(), vector.version));
    }

    let unstable = [
        (ApiKey::InitProducerId, 6),
        (ApiKey::ShareGroupHeartbeat, 0),
        (ApiKey::ShareGroupDescribe, 0),
        (ApiKey::ShareFetch, 0),
        (ApiKey::ShareAcknowledge, 0),
    ];
    let expected = if cfg!(feature = "unstable-protocol") { &[][..] } else { &unstable };
    assert!(refused.iter().eq(expected), "{refused:?}");
}

/// Whoever passes a message on loses nothing of it.
#[test]
fn tagged_fields_that_nobody_knows_are_kept() {
    for vector in ours(&Vector::load("unknown-tags")) {
        let decoded = Decoded::decode(vector, &mut vector.reader());
        assert!(vector.has_unknown_tags(), "{vector}");
        decoded.assert_is(vector, &vector.json);
        assert_eq!(hex(&decoded.encode(vector)), hex(&vector.bytes), "{vector}");
    }
}

/// Whoever only wants the message does without them.
#[test]
fn tagged_fields_that_nobody_knows_are_skipped() {
    for vector in ours(&Vector::load("unknown-tags")) {
        let decoded = Decoded::decode(vector, &mut Reader::new(vector.bytes.clone()));
        let without = decoded.encode(vector);
        assert!(without.len() < vector.bytes.len(), "{vector}");

        let again = Decoded::decode(vector, &mut Reader::new(without.clone()).keep_unknown_tags());
        assert!(again.unknown.is_empty(), "{vector}");
        let [skipped, read] = [&decoded, &again].map(|it| render(it.structure(), vector.version, &it.unknown).json);
        assert_eq!(skipped, read, "{vector}");
        assert_eq!(again.encode(vector), without, "{vector}");
    }
}

#[test]
fn headers_are_read_and_written_as_java_does() {
    let vectors = Vector::load("headers");

    for vector in &vectors {
        let (json, rest) = decode_header(vector);
        assert_eq!(json, vector.json, "{vector}");
        assert!(rest.is_empty(), "{vector}: {} bytes are left", rest.remaining());

        let mut input = vector.reader();
        let write: Box<dyn Fn(&mut Writer)> = if vector.direction == "request-header" {
            let header = decode_request_header(&mut input).expect("it was read");
            Box::new(move |out| header.encode(out).expect("it was read"))
        } else {
            let (api, version) = (vector.api(), vector.version);
            let correlation_id = decode_response_header(api, version, &mut input).expect("it was read");
            Box::new(move |out| encode_response_header(api, version, correlation_id, out))
        };
        let mut out = Writer::new().with_unknown_tags(input.take_unknown_tags());
        write(&mut out);
        assert_eq!(hex(&out.into_bytes()), hex(&vector.bytes), "{vector}");
    }
    assert_covers_every_version(&vectors);
}

#[test]
fn frames_are_read_and_written_as_java_does() {
    let vectors = Vector::load("frames");

    for vector in ours(&vectors) {
        let mut body = vector.reader();
        let length = i32::from_be_bytes(body.take_array().expect("a frame has a length"));
        assert_eq!(length as usize, body.remaining(), "{vector}");
        let (header, mut body) = decode_header_of(vector, body);
        assert_eq!(header, vector.json["header"], "{vector}");
        let decoded = Decoded::decode(vector, &mut body);
        decoded.assert_is(vector, &vector.json["body"]);

        let (api, version) = (vector.api(), vector.version);
        let correlation_id = header["correlationId"].as_i64().expect("a header has a number") as i32;
        let frame = match &decoded.message {
            Any::Request(request) => encode_any_request(request, version, correlation_id, header["clientId"].as_str()),
            Any::Response(response) => encode_any_response(response, version, correlation_id),
            Any::Payload(_) => unreachable!("data has no frame"),
        };
        let frame = frame.unwrap_or_else(|error| panic!("{vector}: {api}: {error}"));
        assert_eq!(hex(&frame.to_bytes()), hex(&vector.bytes), "{vector}");
    }
    assert_covers_every_version(&vectors);
}

#[test]
fn payloads_are_read_and_written_as_java_does() {
    let vectors = Vector::load("data");

    for vector in ours(&vectors) {
        let decoded = Decoded::decode(vector, &mut vector.reader());
        decoded.assert_is(vector, &vector.json);
        assert_eq!(hex(&decoded.encode(vector)), hex(&vector.bytes), "{vector}");
    }
}

/// Inside JoinGroup and SyncGroup the version stands before the payload.
#[test]
fn group_payloads_begin_with_their_version() {
    for vector in Vector::load("data") {
        let payload = Bytes::from([&vector.version.to_be_bytes(), &vector.bytes[..]].concat());
        match vector.name.as_str() {
            "ConsumerProtocolSubscription" => {
                let ours = Subscription::from_bytes(payload.clone()).unwrap();
                assert_eq!(ours.to_bytes(vector.version).unwrap(), payload, "{vector}");
            }
            "ConsumerProtocolAssignment" => {
                let ours = Assignment::from_bytes(payload.clone()).unwrap();
                assert_eq!(ours.to_bytes(vector.version).unwrap(), payload, "{vector}");
            }
            _ => {}
        }
    }
}

/// The vectors of what we read and write.
fn ours(vectors: &[Vector]) -> impl Iterator<Item = &Vector> {
    vectors.iter().filter(|vector| !vector.is_refused() && !vector.is_given_up())
}

/// A message, and what came with it.
struct Decoded {
    message: Any,
    unknown: UnknownTags,
}

/// A message of any kind.
enum Any {
    Request(AnyRequest),
    Response(AnyResponse),
    Payload(Box<dyn Written>),
}

impl Decoded {
    /// Decodes what the vector says that it is.
    fn read(vector: &Vector, input: &mut Reader) -> Result<Self, DecodeError> {
        let version = vector.version;
        let message = match vector.direction.split('-').next() {
            Some("request") => AnyRequest::decode(vector.api(), version, input).map(Any::Request),
            Some("response") => AnyResponse::decode(vector.api(), version, input).map(Any::Response),
            _ => {
                let payload = PAYLOADS.iter().find(|payload| payload.name == vector.name);
                let payload = payload.unwrap_or_else(|| panic!("{vector}: nothing is declared for it"));
                payload.decode(input, version).map(Any::Payload)
            }
        };
        Ok(Self { message: message?, unknown: input.take_unknown_tags() })
    }

    /// Decodes the whole input.
    fn decode(vector: &Vector, input: &mut Reader) -> Self {
        let decoded = Self::read(vector, input).unwrap_or_else(|error| panic!("{vector}: {error}"));
        assert!(input.is_empty(), "{vector}: {} bytes are left", input.remaining());
        decoded
    }

    fn encode(&self, vector: &Vector) -> Bytes {
        let (mut out, version) = (Writer::new().with_unknown_tags(self.unknown.clone()), vector.version);
        let encoded = match &self.message {
            Any::Request(request) => request.encode(&mut out, version),
            Any::Response(response) => response.encode(&mut out, version),
            Any::Payload(payload) => payload.encode(&mut out, version),
        };
        encoded.unwrap_or_else(|error| panic!("{vector}: {error}"));
        out.into_bytes()
    }

    fn structure(&self) -> &dyn Structure {
        match &self.message {
            Any::Request(request) => request.structure(),
            Any::Response(response) => response.structure(),
            Any::Payload(payload) => payload.structure(),
        }
    }

    /// Asserts that the values are those that Java prints.
    fn assert_is(&self, vector: &Vector, json: &Json) {
        let ours = render(self.structure(), vector.version, &self.unknown);
        assert_eq!(ours.json, renamed(vector, json), "{vector}");
        assert_eq!(ours.records, vector.records(), "{vector}");
        let unknown = vector.unknown_tags().into_iter().map(|(path, tags)| (renamed_path(vector, path), tags));
        assert_eq!(ours.unknown, unknown.collect(), "{vector}");
    }
}

/// Fields that 3.9 had under another name than 4.4.
const RENAMED: [(ApiKey, &str, &str); 6] = [
    (ApiKey::TxnOffsetCommit, "generationId", "generationIdOrMemberEpoch"),
    (ApiKey::Vote, "candidateEpoch", "replicaEpoch"),
    (ApiKey::Vote, "candidateId", "replicaId"),
    (ApiKey::Vote, "candidateDirectoryId", "replicaDirectoryId"),
    (ApiKey::ListConfigResources, "clientMetricsResources", "configResources"),
    (ApiKey::ListConfigResources, "name", "resourceName"),
];

/// The values with the names that their fields have in 4.4.
fn renamed(vector: &Vector, json: &Json) -> Json {
    let new_name = |name: &String| {
        let rule = RENAMED.iter().find(|(api, old, _)| vector.is_of(*api) && old == name);
        rule.map_or_else(|| name.clone(), |(_, _, new)| (*new).to_owned())
    };
    match json {
        Json::Object(fields) => fields.iter().map(|(name, value)| (new_name(name), renamed(vector, value))).collect(),
        Json::Array(elements) => elements.iter().map(|element| renamed(vector, element)).collect(),
        other => other.clone(),
    }
}

/// The path of a structure with the names that its fields have in 4.4.
fn renamed_path(vector: &Vector, path: String) -> String {
    let rules = RENAMED.iter().filter(|(api, _, _)| vector.is_of(*api));
    rules.fold(path, |path, (_, old, new)| path.replace(old, new))
}

fn decode_header(vector: &Vector) -> (Json, Reader) {
    decode_header_of(vector, vector.reader())
}

/// Decodes a header, renders it as Java does, and leaves the body.
fn decode_header_of(vector: &Vector, mut input: Reader) -> (Json, Reader) {
    let json = if vector.direction.starts_with("request") {
        let header = decode_request_header(&mut input).unwrap_or_else(|error| panic!("{vector}: {error}"));
        let mut json = json!({
            "requestApiKey": header.key,
            "requestApiVersion": header.version,
            "correlationId": header.correlation_id,
        });
        if vector.header_version > 0 {
            json["clientId"] = header.client_id.as_ref().map(Str::as_str).into();
        }
        json
    } else {
        let header = decode_response_header(vector.api(), vector.version, &mut input);
        json!({ "correlationId": header.unwrap_or_else(|error| panic!("{vector}: {error}")) })
    };
    (json, input)
}

/// Asserts that there is a vector for each version and direction that either release has.
fn assert_covers_every_version(vectors: &[Vector]) {
    let covered = vectors.iter().map(|vector| {
        let direction = vector.direction.split('-').next().unwrap_or_default();
        (vector.api().code(), direction.to_owned(), vector.version)
    });
    let of_java = api_versions().into_iter().map(|api| (api.api.code(), api.direction, api.version));
    assert_eq!(covered.collect::<BTreeSet<_>>(), of_java.collect::<BTreeSet<_>>());
}
