//! Bytes that no broker sends: they give errors, never a panic, and never much memory.

use krafka_protocol::{
    ApiKey, Bytes, FetchRequest, Message, MetadataResponse, Reader, Str, decode_request_header, decode_response_header,
};
use proptest::prelude::*;

use crate::kinds::{Kind, kinds};
use crate::vectors::Vector;

/// Memory that the decoded form of a frame may take for each of its bytes, plus a little for the message itself.
///
/// The worst legal element is an empty string in the flexible encoding: one byte there, four words here.
const MEMORY_PER_BYTE: usize = 64;

#[test]
fn a_message_cut_at_any_offset_is_an_error() {
    for (vector, kind) in messages() {
        for end in 0..vector.bytes.len() {
            let cut = kind.decode(&mut Reader::new(vector.bytes.slice(..end)), vector.version);
            assert!(cut.is_err(), "{vector} cut after {end} of {} bytes: {cut:?}", vector.bytes.len());
        }
    }
}

#[test]
fn a_changed_byte_is_an_error_or_another_message() {
    for (vector, kind) in messages() {
        for offset in 0..vector.bytes.len() {
            for change in [0x01, 0xff] {
                let mut bytes = vector.bytes.to_vec();
                bytes[offset] ^= change;
                assert_harmless(&kind, bytes.into(), vector.version);
            }
        }
    }
}

#[test]
fn a_header_cut_at_any_offset_is_an_error() {
    for vector in Vector::load("headers") {
        for end in 0..vector.bytes.len() {
            let mut input = Reader::new(vector.bytes.slice(..end));
            let is_error = if vector.direction.starts_with("request") {
                decode_request_header(&mut input).is_err()
            } else {
                decode_response_header(vector.api(), vector.version, &mut input).is_err()
            };
            assert!(is_error, "{vector} cut after {end} of {} bytes", vector.bytes.len());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn noise_is_an_error_or_a_message(noise in prop::collection::vec(any::<u8>(), 0..300)) {
        let noise = Bytes::from(noise);
        for kind in kinds() {
            for version in [kind.schema.versions.min, kind.schema.versions.max] {
                assert_harmless(&kind, noise.clone(), version);
            }
        }
    }

    /// Numbers that lengths are made of are likelier than in noise, so this gets deeper.
    #[test]
    fn small_and_extreme_numbers_are_an_error_or_a_message(
        noise in prop::collection::vec(prop::sample::select(&[0u8, 0, 0, 1, 1, 2, 3, 0x7f, 0x80, 0xff][..]), 0..300)
    ) {
        let noise = Bytes::from(noise);
        for kind in kinds() {
            for version in kind.schema.versions.iter() {
                assert_harmless(&kind, noise.clone(), version);
            }
        }
    }
}

#[test]
fn a_huge_length_is_refused_before_anything_is_allocated() {
    let huge: [&[u8]; 4] = [
        &[0x7f, 0xff, 0xff, 0xff],
        &[0x00, 0x10, 0x00, 0x00],
        &[0xff, 0xff, 0xff, 0xff, 0x0f],
        &[0x80, 0x80, 0x80, 0x04],
    ];

    for kind in kinds() {
        for version in kind.schema.versions.iter() {
            for length in huge {
                // Where a message begins with an array or a string, the length is taken for theirs.
                let bytes = [length, &[0; 60]].concat();
                assert_harmless(&kind, bytes.into(), version);
            }
        }
    }
    let error = MetadataResponse::decode(&mut Reader::new(Bytes::from_static(huge[0])), 0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "MetadataResponse v0, brokers: array length 2147483647 is impossible with 0 bytes left"
    );
}

#[test]
fn a_budget_stops_what_the_length_of_the_frame_allows() {
    // 65,536 topics without a name: two bytes each on the wire, and a structure in memory.
    let mut frame = vec![0, 0x81, 0x80, 0x04];
    frame.resize(frame.len() + 3 * 65_536 + 1, 0);
    let (frame, version) = (Bytes::from(frame), 12);

    let refused = DescribeTopics::decode(&mut Reader::with_budget(frame.clone(), 1 << 20), version).unwrap_err();
    let decoded = DescribeTopics::decode(&mut Reader::new(frame), version).unwrap();

    assert!(refused.is_over_budget(), "{refused}");
    assert_eq!(decoded.topics.len(), 65_536);
    assert_eq!(decoded.topics.capacity(), 65_536, "what was foretold is what was taken");
}

#[test]
fn an_array_has_room_for_what_it_holds() {
    for count in [1u8, 2, 3, 5] {
        let mut frame = vec![0, count + 1];
        frame.resize(frame.len() + 3 * usize::from(count) + 1, 0);

        let decoded = DescribeTopics::decode(&mut Reader::new(frame.into()), 12).unwrap();

        assert_eq!(decoded.topics.capacity(), usize::from(count));
    }
}

/// A message that takes much more memory than bytes.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 12..=12, flexible = 12..)]
struct DescribeTopics {
    is_internal: bool,
    topics: Vec<DescribeTopic>,
}

#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 12..=12, flexible = 12..)]
struct DescribeTopic {
    name: Option<Str>,
    partitions: Option<Vec<i32>>,
}

#[test]
fn an_array_of_nothing_is_bounded_by_the_budget() {
    // Two billion elements that take no byte each.
    let bytes = Bytes::from_static(&[0x7f, 0xff, 0xff, 0xff]);

    let error = ManyNothings::decode(&mut Reader::new(bytes), 0).unwrap_err();

    assert!(error.is_over_budget(), "{error}");
}

#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1)]
struct ManyNothings {
    nothings: Vec<Nothing>,
}

#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=1)]
struct Nothing {
    #[field(versions = 1..)]
    later: i32,
}

#[test]
fn what_is_no_number_comes_back_with_its_bits() {
    let kind = kinds().find(|kind| kind.is(ApiKey::AlterClientQuotas, "request")).unwrap();
    for nan in [0x7ff8_0000_0000_0000_u64, 0xfff8_0000_0000_0001, 0x7ff0_dead_beef_0001] {
        // One entry of no entity with one operation: its key is empty, its value is not a number.
        let counts = [&[0, 0, 0, 1][..], &[0, 0, 0, 0], &[0, 0, 0, 1], &[0, 0]].concat();
        let bytes = Bytes::from([&counts[..], &nan.to_be_bytes(), &[0, 0]].concat());

        assert_harmless(&kind, bytes.clone(), 0);

        assert_eq!(kind.decode_all(bytes.clone(), 0).unwrap().encode(0), Ok(bytes));
    }
}

#[test]
fn an_unknown_version_is_an_error_in_both_directions() {
    for kind in kinds() {
        let versions = kind.schema.versions;
        for version in [versions.min - 1, versions.max + 1, i16::MIN, i16::MAX] {
            let error = kind.decode(&mut Reader::new(Bytes::from_static(&[0; 200])), version).unwrap_err();
            let expected = format!("v{version} is unknown: versions {} to {} are", versions.min, versions.max);
            assert!(error.to_string().contains(&expected), "{error}");
        }
    }
    let error = FetchRequest::default().size(19).unwrap_err();
    assert_eq!(error.to_string(), "FetchRequest v19 is unknown: versions 0 to 18 are");
}

/// Asserts that the bytes are an error, or a message that takes no more memory than its frame warrants, and that says
/// the same when it is written and read again.
fn assert_harmless(kind: &Kind, bytes: Bytes, version: i16) {
    let allowance = 1024 + bytes.len() * MEMORY_PER_BYTE;
    let mut input = Reader::with_budget(bytes, allowance);
    match kind.decode(&mut input, version) {
        Ok(decoded) => {
            let written = decoded.encode(version).unwrap_or_else(|error| panic!("{decoded:?}: {error}"));
            let again = kind.decode_all(written.clone(), version).unwrap();
            // What is no number is unlike itself. It reads alike, and its bits are those that it came with.
            if again != decoded {
                assert_eq!(format!("{again:?}"), format!("{decoded:?}"));
            }
            assert_eq!(again.encode(version), Ok(written));
        }
        Err(error) => assert!(!error.is_over_budget(), "{} v{version}: {error}", kind.schema.name),
    }
}

/// Messages of every API and version. The few that are longer only repeat themselves, and what is done to each byte
/// here takes a time that goes with the square of the length.
fn messages() -> impl Iterator<Item = (Vector, Kind)> {
    let vectors = Vector::load("messages").into_iter();
    let ours = vectors.filter(|vector| !vector.is_refused() && !vector.is_given_up());
    ours.filter(|vector| vector.bytes.len() < 400).map(|vector| {
        let kind = kinds().find(|kind| kind.is(vector.api(), &vector.direction)).expect("we speak it");
        (vector, kind)
    })
}
