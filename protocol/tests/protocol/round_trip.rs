//! What is written is read again as it was, for every API, version and direction, whatever the values.

use krafka_protocol::schema::{FieldDefault, FieldSchema};
use krafka_protocol::value::{Structure, Value};
use krafka_protocol::{Bytes, Message, Reader, Str, Uuid, Writer};
use proptest::prelude::*;

use crate::filler::{Extra, fill};
use crate::kinds::kinds;

/// Entropy for one message: when it runs out, the rest is zero and empty.
fn entropy() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn bytes_made_from_the_schema_are_read_and_written_again(entropy in entropy()) {
        for kind in kinds() {
            for version in kind.schema.versions.iter() {
                let bytes = Bytes::from(fill(kind.schema, version, &entropy, Extra::Nothing));
                let decoded = kind.decode_all(bytes.clone(), version).unwrap();
                prop_assert_eq!(decoded.encode(version).unwrap(), bytes, "{} v{}", kind.schema.name, version);
            }
        }
    }

    #[test]
    fn what_a_peer_may_add_changes_nothing(entropy in entropy()) {
        for kind in kinds() {
            for version in kind.schema.versions.iter().filter(|version| kind.schema.is_flexible(*version)) {
                let bytes = fill(kind.schema, version, &entropy, Extra::Nothing);
                let plain = kind.decode_all(bytes.into(), version).unwrap();
                for extra in [Extra::Defaults, Extra::UnknownTags] {
                    let bytes = fill(kind.schema, version, &entropy, extra);
                    let decoded = kind.decode_all(bytes.into(), version).unwrap();
                    prop_assert_eq!(&decoded, &plain, "{} v{} {:?}", kind.schema.name, version, extra);
                }
            }
        }
    }

    #[test]
    fn a_version_refuses_exactly_what_it_cannot_say(entropy in entropy()) {
        for kind in kinds() {
            for from in [kind.schema.versions.max, kind.schema.versions.min] {
                let decoded = kind.decode_all(fill(kind.schema, from, &entropy, Extra::Nothing).into(), from).unwrap();
                for version in kind.schema.versions.iter() {
                    let encoded = decoded.encode(version);
                    let name = kind.schema.name;
                    let fits = fits(decoded.structure(), version);
                    prop_assert_eq!(encoded.is_ok(), fits, "{} v{}: {:?}", name, version, encoded);
                    if let Ok(bytes) = encoded {
                        let again = kind.decode_all(bytes.clone(), version).unwrap();
                        prop_assert_eq!(again.encode(version).unwrap(), bytes, "{} v{}", name, version);
                    }
                }
            }
        }
    }

    #[test]
    fn every_type_of_field_comes_back(entropy in entropy()) {
        for version in Everything::SCHEMA.versions.iter() {
            for extra in [Extra::Nothing, Extra::Defaults, Extra::UnknownTags] {
                let bytes = Bytes::from(fill(Everything::SCHEMA, version, &entropy, extra));
                let mut input = Reader::new(bytes.clone());
                let decoded = Everything::decode(&mut input, version).unwrap();
                prop_assert!(input.is_empty());

                let mut out = Writer::new();
                decoded.encode(&mut out, version).unwrap();
                prop_assert_eq!(out.len(), decoded.size(version).unwrap());
                let out = out.into_bytes();
                if extra == Extra::Nothing {
                    prop_assert_eq!(&out, &bytes);
                }
                prop_assert_eq!(Everything::decode(&mut Reader::new(out), version).unwrap(), decoded);
            }
        }
    }
}

/// A message with a field of every type that Kafka has, used by our APIs or not.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=3, flexible = 2..)]
struct Everything {
    boolean: bool,
    int8: i8,
    int16: i16,
    uint16: u16,
    int32: i32,
    uint32: u32,
    int64: i64,
    float64: f64,
    uuid: Uuid,
    string: Str,
    bytes: Bytes,
    #[field(nullable = 1..)]
    nullable_string: Option<Str>,
    #[field(nullable = 1..)]
    nullable_bytes: Option<Bytes>,
    #[field(nullable = ..=1)]
    nullable_array: Option<Vec<i16>>,
    nullable_structure: Option<Nested>,
    #[field(records)]
    records: Option<Bytes>,
    structure: Nested,
    structures: Vec<Nested>,
    strings: Vec<Str>,
    many_bytes: Vec<Bytes>,
    #[field(versions = 1.., default = true)]
    defaulted_boolean: bool,
    #[field(versions = 1..=2, default = 0x7fff)]
    r#type: u16,
    #[field(versions = 2.., tag = 3, default = "null")]
    tagged_string: Str,
    #[field(versions = 2.., tag = 0, default = -0.5)]
    tagged_float: f64,
    #[field(versions = 3.., tag = 9, default = 4_000_000_000)]
    tagged_uint32: u32,
    #[field(versions = 2.., tag = 2)]
    tagged_structure: Nested,
    #[field(versions = 2.., tag = 1, default = null)]
    tagged_nullable_array: Option<Vec<Nested>>,
    #[field(versions = 2..=2, tag = 4)]
    tagged_nullable_string: Option<Str>,
    #[field(versions = 2.., tag = 5)]
    tagged_uuid: Uuid,
    #[field(versions = 2.., tag = 6, default = i64::MIN)]
    tagged_int64: i64,
}

/// A structure whose fields differ from version to version.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 0..=3, flexible = 2..)]
struct Nested {
    #[field(versions = 1.., default = -1)]
    leader_epoch: i32,
    #[field(versions = ..=1)]
    name: Str,
    #[field(versions = 3.., tag = 0)]
    deep: Vec<Deep>,
}

/// A structure that only flexible versions have.
#[derive(Clone, Debug, PartialEq, Message)]
#[message(versions = 3..=3, flexible = 3..)]
struct Deep {
    key: Option<Bytes>,
}

/// Whether a version has a place for every value: the rule of Java, said once more.
fn fits(structure: &dyn Structure, version: i16) -> bool {
    let fields = structure.schema().fields.iter().enumerate();
    fields.into_iter().all(|(index, field)| {
        let value = structure.field(index).expect("a field of the schema");
        let is_nullable = field.nullable.is_some_and(|versions| versions.contains(version));
        if !field.versions.contains(version) {
            return field.ignorable || is_default(field, value);
        }
        match value {
            Value::Null => is_nullable,
            Value::Struct(inner) => fits(inner, version),
            Value::Array(elements) => (0..elements.count()).all(|index| match elements.element(index) {
                Some(Value::Struct(inner)) => fits(inner, version),
                _ => true,
            }),
            _ => true,
        }
    })
}

fn is_default(field: &FieldSchema, value: Value<'_>) -> bool {
    match (field.default, value) {
        (FieldDefault::Null, value) => matches!(value, Value::Null),
        (FieldDefault::Int(default), Value::Int(number)) => number == default,
        (FieldDefault::Bool(default), Value::Bool(boolean)) => boolean == default,
        (FieldDefault::Str(default), Value::Str(text)) => text == default,
        (FieldDefault::Zero, value) => is_zero(value),
        _ => false,
    }
}

fn is_zero(value: Value<'_>) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(boolean) => !boolean,
        Value::Int(number) => number == 0,
        Value::Float(number) => number == 0.0,
        Value::Str(text) => text.is_empty(),
        Value::Bytes(bytes) => bytes.is_empty(),
        Value::Uuid(uuid) => uuid.is_zero(),
        Value::Array(elements) => elements.count() == 0,
        Value::Struct(inner) => (inner.schema().fields.iter().enumerate())
            .all(|(index, field)| inner.field(index).is_some_and(|value| is_default(field, value))),
    }
}
