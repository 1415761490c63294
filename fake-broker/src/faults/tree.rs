//! Any message as a tree of values that can be changed without knowing its type, and written again.
//!
//! The protocol gives the fields of a message one by one ([`Structure`]) and their types ([`MessageSchema`]). A fault
//! that meddles with answers of any API (an error into each place for one, an entity gone or doubled, a field set by
//! its path) reads the answer into a tree, changes that, and has it read back as the typed answer.

use bytes::Bytes;
use krafka_protocol::schema::{FieldDefault, FieldSchema, FieldType, MessageSchema};
use krafka_protocol::value::{Structure, Value};
use krafka_protocol::{AnyResponse, ApiKey, Reader, Str, Uuid};
use serde_json::Value as Json;

/// The value of a field, or an element of one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tree {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(Str),
    Bytes(Bytes),
    Uuid(Uuid),
    Array(Vec<Self>),
    Struct(Node),
}

/// A structure: the values of its fields, in the order of its schema.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) schema: &'static MessageSchema,
    pub(crate) fields: Vec<Tree>,
}

impl Node {
    /// Reads a message.
    pub(crate) fn of(message: &dyn Structure) -> Self {
        let schema = message.schema();
        let field = |index| message.field(index).map_or(Tree::Null, Tree::of);
        Self { schema, fields: (0..schema.fields.len()).map(field).collect() }
    }

    /// A structure whose fields are what they are when nobody sets them.
    pub(crate) fn default_of(schema: &'static MessageSchema) -> Self {
        Self { schema, fields: schema.fields.iter().map(Tree::default_of).collect() }
    }

    /// The value of a field, by the name that it has in Rust.
    pub(crate) fn get(&self, name: &str) -> Option<&Tree> {
        self.fields.get(self.index(name)?)
    }

    /// The value of a field, to change it.
    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut Tree> {
        let index = self.index(name)?;
        self.fields.get_mut(index)
    }

    /// Whether any number in it, with the name of its field, is what is looked for.
    pub(crate) fn any(&self, is_meant: &mut dyn FnMut(&str, i64) -> bool) -> bool {
        self.schema.fields.iter().zip(&self.fields).any(|(field, value)| match value {
            Tree::Int(value) => is_meant(field.name, *value),
            Tree::Struct(node) => node.any(is_meant),
            Tree::Array(elements) => {
                elements.iter().any(|element| matches!(element, Tree::Struct(node) if node.any(is_meant)))
            }
            _ => false,
        })
    }

    /// The fields by their names, as JSON.
    pub(crate) fn to_json(&self) -> Json {
        let fields = self.schema.fields.iter().zip(&self.fields);
        Json::Object(fields.map(|(field, value)| (field.name.to_owned(), value.to_json())).collect())
    }

    fn index(&self, name: &str) -> Option<usize> {
        self.schema.fields.iter().position(|field| field.name == name)
    }

    /// Writes the structure as `version` has it. Numbers are cut to the size of their field.
    pub(crate) fn encode(&self, version: i16, flexible: bool, out: &mut Vec<u8>) {
        let present = || {
            let fields = self.schema.fields.iter().zip(&self.fields);
            fields.filter(|(field, _)| field.versions.contains(version))
        };
        for (field, value) in present().filter(|(field, _)| field.tag.is_none()) {
            let has_mark = field.nullable.is_some_and(|versions| versions.contains(version));
            match value {
                Tree::Struct(_) if has_mark => out.push(1),
                Tree::Null if has_mark && matches!(field.field_type, FieldType::Struct(_)) => {
                    out.push(0xff);
                    continue;
                }
                _ => {}
            }
            value.encode(&field.field_type, version, flexible, out);
        }
        if !flexible {
            return;
        }
        // A tagged field that nobody set is left out, as in Kafka.
        let tagged = present().filter_map(|(field, value)| Some((field.tag?, field, value)));
        let mut tagged: Vec<_> = tagged.filter(|(_, field, value)| **value != Tree::default_of(field)).collect();
        tagged.sort_by_key(|(tag, ..)| *tag);
        put_varint(out, tagged.len());
        for (tag, field, value) in tagged {
            let mut bytes = Vec::new();
            if field.nullable.is_some() && matches!(field.field_type, FieldType::Struct(_)) {
                bytes.push(u8::from(*value != Tree::Null));
            }
            value.encode(&field.field_type, version, true, &mut bytes);
            put_varint(out, tag as usize);
            put_varint(out, bytes.len());
            out.extend_from_slice(&bytes);
        }
    }
}

impl Tree {
    fn of(value: Value<'_>) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(value),
            Value::Int(value) => Self::Int(value),
            Value::Float(value) => Self::Float(value),
            Value::Str(value) => Self::Str(value.clone()),
            Value::Bytes(value) => Self::Bytes(value.clone()),
            Value::Uuid(value) => Self::Uuid(value),
            Value::Array(elements) => {
                let element = |index| elements.element(index).map_or(Self::Null, Self::of);
                Self::Array((0..elements.count()).map(element).collect())
            }
            Value::Struct(structure) => Self::Struct(Node::of(structure)),
        }
    }

    /// What a field is when nobody sets it.
    pub(super) fn default_of(field: &FieldSchema) -> Self {
        match field.default {
            FieldDefault::Null => Self::Null,
            FieldDefault::Bool(value) => Self::Bool(value),
            FieldDefault::Int(value) => Self::Int(value),
            FieldDefault::Float(value) => Self::Float(value),
            FieldDefault::Str(value) => Self::Str(Str::from_static(value)),
            FieldDefault::Zero => match field.field_type {
                FieldType::Bool => Self::Bool(false),
                FieldType::Float64 => Self::Float(0.0),
                FieldType::String => Self::Str(Str::default()),
                FieldType::Bytes | FieldType::Records => Self::Bytes(Bytes::new()),
                FieldType::Uuid => Self::Uuid(Uuid::ZERO),
                FieldType::Array(_) => Self::Array(Vec::new()),
                FieldType::Struct(schema) => Self::Struct(Node::default_of(schema)),
                _ => Self::Int(0),
            },
        }
    }

    /// The value as JSON. Bytes are told by their number alone: they are mostly records.
    pub(crate) fn to_json(&self) -> Json {
        match self {
            Self::Null => Json::Null,
            Self::Bool(value) => Json::from(*value),
            Self::Int(value) => Json::from(*value),
            Self::Float(value) => Json::from(*value),
            Self::Str(value) => Json::from(&**value),
            Self::Bytes(value) => Json::from(format!("{} bytes", value.len())),
            Self::Uuid(value) => Json::from(value.to_string()),
            Self::Array(values) => values.iter().map(Self::to_json).collect(),
            Self::Struct(node) => node.to_json(),
        }
    }

    /// The value that JSON stands for. A text may be a topic's id as well, and is one where the field wants that.
    pub(crate) fn from_json(json: &Json) -> Self {
        match json {
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => {
                number.as_i64().map_or_else(|| Self::Float(number.as_f64().unwrap_or(0.0)), Self::Int)
            }
            Json::String(text) => Self::Str(Str::from(text.as_str())),
            Json::Array(values) => Self::Array(values.iter().map(Self::from_json).collect()),
            Json::Null | Json::Object(_) => Self::Null,
        }
    }

    fn encode(&self, field_type: &FieldType, version: i16, flexible: bool, out: &mut Vec<u8>) {
        match (field_type, self) {
            (FieldType::Bool, Self::Bool(value)) => out.push(u8::from(*value)),
            (FieldType::Int8, Self::Int(value)) => out.extend_from_slice(&(*value as i8).to_be_bytes()),
            (FieldType::Int16 | FieldType::Uint16, Self::Int(value)) => {
                out.extend_from_slice(&(*value as i16).to_be_bytes());
            }
            (FieldType::Int32 | FieldType::Uint32, Self::Int(value)) => {
                out.extend_from_slice(&(*value as i32).to_be_bytes());
            }
            (FieldType::Int64, Self::Int(value)) => out.extend_from_slice(&value.to_be_bytes()),
            (FieldType::Float64, Self::Float(value)) => out.extend_from_slice(&value.to_be_bytes()),
            (FieldType::Float64, Self::Int(value)) => out.extend_from_slice(&(*value as f64).to_be_bytes()),
            (FieldType::Uuid, Self::Uuid(value)) => out.extend_from_slice(&value.0),
            (FieldType::Uuid, Self::Str(text)) => {
                out.extend_from_slice(&text.parse::<Uuid>().unwrap_or(Uuid::ZERO).0);
            }
            (FieldType::String, Self::Str(value)) => {
                put_length(out, Some(value.len()), flexible, 2);
                out.extend_from_slice(value.as_bytes());
            }
            (FieldType::String, _) => put_length(out, None, flexible, 2),
            (FieldType::Bytes | FieldType::Records, Self::Bytes(value)) => {
                put_length(out, Some(value.len()), flexible, 4);
                out.extend_from_slice(value);
            }
            (FieldType::Array(element), Self::Array(values)) => {
                put_length(out, Some(values.len()), flexible, 4);
                for value in values {
                    // An element of an array has no mark of whether it is there.
                    match value {
                        Self::Struct(node) => node.encode(version, flexible, out),
                        value => value.encode(element, version, flexible, out),
                    }
                }
            }
            (FieldType::Bytes | FieldType::Records | FieldType::Array(_), _) => put_length(out, None, flexible, 4),
            (FieldType::Struct(_), Self::Struct(node)) => node.encode(version, flexible, out),
            (FieldType::Struct(schema), _) => Node::default_of(schema).encode(version, flexible, out),
            // Nothing else can be written there: a field that was given a value of another type is zero.
            (field_type, _) => out.resize(out.len() + width(field_type), 0),
        }
    }
}

/// Changes an answer through its tree, as `version` has it. What cannot be read back stays as it was.
pub(crate) fn edit(response: &mut AnyResponse, version: i16, change: impl FnOnce(&mut Node)) {
    let mut node = Node::of(response.structure());
    change(&mut node);
    let key = response.key();
    if let Some(edited) = read_back(key, &node, version) {
        *response = edited;
    }
}

fn read_back(key: ApiKey, node: &Node, version: i16) -> Option<AnyResponse> {
    let mut bytes = Vec::new();
    node.encode(version, node.schema.is_flexible(version), &mut bytes);
    AnyResponse::decode(key, version, &mut Reader::new(Bytes::from(bytes))).ok()
}

/// Writes a length: in the flexible encoding one more than it, so that 0 is null; else in so many bytes, null as -1.
fn put_length(out: &mut Vec<u8>, length: Option<usize>, flexible: bool, width: usize) {
    if flexible {
        put_varint(out, length.map_or(0, |length| length + 1));
    } else {
        let length = length.map_or(-1, |length| i32::try_from(length).unwrap_or(i32::MAX));
        out.extend_from_slice(&length.to_be_bytes()[4 - width..]);
    }
}

fn put_varint(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// How many bytes a value of a fixed size takes.
fn width(field_type: &FieldType) -> usize {
    match field_type {
        FieldType::Bool | FieldType::Int8 => 1,
        FieldType::Int16 | FieldType::Uint16 => 2,
        FieldType::Int64 | FieldType::Float64 => 8,
        FieldType::Uuid => 16,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use krafka_protocol::Writer;

    use super::*;

    /// A structure that has something in each of its fields, as deep as it goes.
    fn filled(schema: &'static MessageSchema) -> Node {
        let field = |(index, field): (usize, &FieldSchema)| sample(&field.field_type, index as i64 + 1);
        Node { schema, fields: schema.fields.iter().enumerate().map(field).collect() }
    }

    fn sample(field_type: &FieldType, number: i64) -> Tree {
        match field_type {
            FieldType::Bool => Tree::Bool(true),
            FieldType::Float64 => Tree::Float(number as f64),
            FieldType::String => Tree::Str(Str::from(format!("text {number}"))),
            FieldType::Bytes | FieldType::Records => Tree::Bytes(Bytes::from(vec![number as u8; 200])),
            FieldType::Uuid => Tree::Uuid(Uuid([number as u8; 16])),
            FieldType::Array(element) => Tree::Array(vec![sample(element, number), sample(element, number + 1)]),
            FieldType::Struct(schema) => Tree::Struct(filled(schema)),
            _ => Tree::Int(number),
        }
    }

    fn typed(response: &AnyResponse, version: i16) -> Bytes {
        let mut out = Writer::new();
        response.encode(&mut out, version).expect("what was read can be written");
        out.into_bytes()
    }

    /// Two witnesses for the bytes of each answer in each version: the tree, and the protocol's own codec.
    #[test]
    fn tree_writes_every_answer_as_the_codec_does() {
        for &key in ApiKey::SPOKEN {
            let [_, schema] = key.schemas().expect("it is spoken");
            for version in schema.versions.iter() {
                for node in [filled(schema), Node::default_of(schema)] {
                    let mut bytes = Vec::new();
                    node.encode(version, schema.is_flexible(version), &mut bytes);
                    let mut reader = Reader::new(Bytes::from(bytes.clone()));
                    let response = AnyResponse::decode(key, version, &mut reader);
                    let response = response.unwrap_or_else(|error| panic!("{} {version}: {error}", key.name()));
                    assert_eq!(reader.remaining(), 0, "{} {version}", key.name());
                    assert_eq!(typed(&response, version), bytes, "{} {version}", key.name());
                    assert_eq!(read_back(key, &Node::of(response.structure()), version), Some(response));
                }
            }
        }
    }
}
