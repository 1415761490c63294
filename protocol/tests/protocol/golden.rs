//! Every API, version and direction against bytes that Java wrote, both ways.
//!
//! Decoding must give the values that Java prints, and encoding those must give Java's bytes again:
//! a field that client and fake broker both have wrong is found here.

use std::collections::{BTreeMap, BTreeSet};

use krafka_protocol::frame::{encode_any_request, encode_any_response};
use krafka_protocol::group::{Assignment, Subscription};
use krafka_protocol::value::Structure;
use krafka_protocol::{
    AnyRequest, AnyResponse, ApiKey, Message, Reader, Str, Writer, decode_request_header, decode_response_header,
};
use serde_json::{Value as Json, json};

use crate::rendering::{Rendering, Tagged, render};
use crate::vectors::{RELEASES, Vector, hex};

#[test]
fn messages_are_read_and_written_as_java_does() {
    let vectors = load("messages");

    for vector in &vectors {
        let decoded = Decoded::decode(vector, &mut vector.reader());
        decoded.assert_is(vector, &vector.json);
        assert_eq!(hex(&decoded.encode(vector)), hex(&vector.bytes), "{vector}");
    }
    assert_covers_every_version(&vectors);
}

#[test]
fn tagged_fields_that_nobody_knows_are_skipped() {
    for vector in load("unknown-tags") {
        let decoded = Decoded::decode(&vector, &mut vector.reader());
        decoded.assert_is_but_for_unknown_tags(&vector, &vector.json);

        // What is written again is the same message without them.
        let without = decoded.encode(&vector);
        assert!(without.len() < vector.bytes.len(), "{vector}");
        let again = Decoded::decode(&vector, &mut Reader::new(without.clone()));
        again.assert_is_but_for_unknown_tags(&vector, &vector.json);
        assert_eq!(again.encode(&vector), without, "{vector}");
    }
}

#[test]
fn headers_are_read_as_java_writes_them() {
    let vectors = load("headers");

    for vector in &vectors {
        let (json, rest) = decode_header(vector);
        assert_eq!(json, vector.json, "{vector}");
        assert!(rest.is_empty(), "{vector}: {} bytes are left", rest.remaining());
    }
    assert_covers_every_version(&vectors);
}

#[test]
fn frames_are_read_and_written_as_java_does() {
    let vectors = load("frames");

    for vector in &vectors {
        let mut body = vector.reader();
        let length = i32::from_be_bytes(body.take_array().expect("a frame has a length"));
        assert_eq!(length as usize, body.remaining(), "{vector}");
        let (header, mut body) = decode_header_of(vector, body);
        assert_eq!(header, vector.json["header"], "{vector}");
        let decoded = Decoded::decode(vector, &mut body);
        decoded.assert_is(vector, &vector.json["body"]);

        let (api, version) = (vector.api(), vector.version);
        let correlation_id = header["correlationId"].as_i64().expect("a header has a number") as i32;
        let frame = match &decoded {
            Decoded::Request(request) => {
                encode_any_request(request, version, correlation_id, header["clientId"].as_str())
            }
            Decoded::Response(response) => encode_any_response(response, version, correlation_id),
            _ => unreachable!("data has no frame"),
        };
        let frame = frame.unwrap_or_else(|error| panic!("{vector}: {api}: {error}"));
        assert_eq!(hex(&frame.to_bytes()), hex(&vector.bytes), "{vector}");
    }
    assert_covers_every_version(&vectors);
}

#[test]
fn group_payloads_are_read_and_written_as_java_does() {
    for vector in load("data") {
        let decoded = Decoded::decode(&vector, &mut vector.reader());
        decoded.assert_is(&vector, &vector.json);
        assert_eq!(hex(&decoded.encode(&vector)), hex(&vector.bytes), "{vector}");

        // Inside JoinGroup and SyncGroup the version stands before the payload.
        let payload = [&vector.version.to_be_bytes(), &vector.bytes[..]].concat();
        match decoded {
            Decoded::Subscription(ours) => {
                assert_eq!(ours.to_bytes(vector.version).unwrap(), payload, "{vector}");
                assert_eq!(Subscription::from_bytes(payload.into()).unwrap(), ours, "{vector}");
            }
            Decoded::Assignment(ours) => {
                assert_eq!(ours.to_bytes(vector.version).unwrap(), payload, "{vector}");
                assert_eq!(Assignment::from_bytes(payload.into()).unwrap(), ours, "{vector}");
            }
            _ => unreachable!("data is a group's payload"),
        }
    }
}

/// The vectors of one kind that any release wrote.
fn load(kind: &str) -> Vec<Vector> {
    RELEASES.into_iter().flat_map(|release| Vector::load(kind, release)).collect()
}

/// A message of any kind.
enum Decoded {
    Request(AnyRequest),
    Response(AnyResponse),
    Subscription(Subscription),
    Assignment(Assignment),
}

impl Decoded {
    /// Decodes the whole input as what the vector says that it is.
    fn decode(vector: &Vector, input: &mut Reader) -> Self {
        let version = vector.version;
        let decoded = match vector.direction.split('-').next() {
            Some("request") => AnyRequest::decode(vector.api(), version, input).map(Self::Request),
            Some("response") => AnyResponse::decode(vector.api(), version, input).map(Self::Response),
            _ if vector.name == "ConsumerProtocolSubscription" => {
                Subscription::decode(input, version).map(Self::Subscription)
            }
            _ => Assignment::decode(input, version).map(Self::Assignment),
        };
        let decoded = decoded.unwrap_or_else(|error| panic!("{vector}: {error}"));
        assert!(input.is_empty(), "{vector}: {} bytes are left", input.remaining());
        decoded
    }

    fn encode(&self, vector: &Vector) -> krafka_protocol::Bytes {
        let (mut out, version) = (Writer::new(), vector.version);
        let encoded = match self {
            Self::Request(request) => request.encode(&mut out, version),
            Self::Response(response) => response.encode(&mut out, version),
            Self::Subscription(subscription) => subscription.encode(&mut out, version),
            Self::Assignment(assignment) => assignment.encode(&mut out, version),
        };
        encoded.unwrap_or_else(|error| panic!("{vector}: {error}"));
        out.into_bytes()
    }

    fn structure(&self) -> &dyn Structure {
        match self {
            Self::Request(request) => request.structure(),
            Self::Response(response) => response.structure(),
            Self::Subscription(subscription) => subscription,
            Self::Assignment(assignment) => assignment,
        }
    }

    /// Asserts that the values are those that Java prints.
    fn assert_is(&self, vector: &Vector, json: &Json) {
        let Rendering { json: ours, records } = render(self.structure(), vector.version, Tagged::Set);
        assert_eq!(&ours, json, "{vector}");
        assert_eq!(records, vector.records(), "{vector}");
    }

    /// Asserts the same where Java saw unknown tags.
    ///
    /// Java keeps those, so that a tagged structure is not at its default with one of them inside, and
    /// is printed.
    fn assert_is_but_for_unknown_tags(&self, vector: &Vector, json: &Json) {
        let least = render(self.structure(), vector.version, Tagged::Set);
        let most = render(self.structure(), vector.version, Tagged::All);
        assert!(is_part_of(&least.json, json), "{vector}: {} is no part of {json}", least.json);
        assert!(is_part_of(json, &most.json), "{vector}: {json} is no part of {}", most.json);
        assert_eq!(least.records, vector.records(), "{vector}");
    }
}

/// Whether two values are equal, but for fields that the first leaves out.
fn is_part_of(part: &Json, whole: &Json) -> bool {
    match (part, whole) {
        (Json::Object(part), Json::Object(whole)) => {
            part.iter().all(|(name, value)| whole.get(name).is_some_and(|whole| is_part_of(value, whole)))
        }
        (Json::Array(part), Json::Array(whole)) => {
            part.len() == whole.len() && part.iter().zip(whole).all(|(part, whole)| is_part_of(part, whole))
        }
        _ => part == whole,
    }
}

fn decode_header(vector: &Vector) -> (Json, Reader) {
    decode_header_of(vector, vector.reader())
}

/// Decodes a header, renders it as Java does, and leaves the body.
fn decode_header_of(vector: &Vector, mut input: Reader) -> (Json, Reader) {
    let json = if vector.direction.starts_with("request") {
        let header = decode_request_header(&mut input).unwrap_or_else(|error| panic!("{vector}: {error}"));
        json!({
            "requestApiKey": header.key,
            "requestApiVersion": header.version,
            "correlationId": header.correlation_id,
            "clientId": header.client_id.as_ref().map(Str::as_str),
        })
    } else {
        let header = decode_response_header(vector.api(), vector.version, &mut input);
        json!({ "correlationId": header.unwrap_or_else(|error| panic!("{vector}: {error}")) })
    };
    (json, input)
}

/// Asserts that no API, version or direction that we speak is without a vector.
fn assert_covers_every_version(vectors: &[Vector]) {
    let mut covered: BTreeMap<(ApiKey, String), BTreeSet<i16>> = BTreeMap::new();
    for vector in vectors {
        let direction = vector.direction.split('-').next().unwrap_or_default().to_owned();
        covered.entry((vector.api(), direction)).or_default().insert(vector.version);
    }
    for &api in ApiKey::SPOKEN {
        let spoken: BTreeSet<_> = api.versions().expect("we speak it").iter().collect();
        for direction in ["request", "response"] {
            assert_eq!(covered.get(&(api, direction.to_owned())), Some(&spoken), "{api} {direction}");
        }
    }
}
