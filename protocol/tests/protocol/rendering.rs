//! A message as Java prints it in JSON: names in camel case, what the version lacks left out.

use std::collections::BTreeMap;

use krafka_protocol::schema::{FieldDefault, FieldSchema, FieldType};
use krafka_protocol::value::{Structure, Value};
use serde_json::{Map, Value as Json};

use crate::vectors::hex;

/// A message in JSON, and what JSON cannot show.
pub(crate) struct Rendering {
    pub(crate) json: Json,
    /// The record sets by their path, in hex.
    pub(crate) records: BTreeMap<String, String>,
}

/// Which tagged fields are shown.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Tagged {
    /// Those that are written: they differ from their default.
    Set,
    /// Those that the version has.
    All,
}

/// The message as Java prints it.
pub(crate) fn render(message: &dyn Structure, version: i16, tagged: Tagged) -> Rendering {
    let mut printer = Printer { version, tagged, records: BTreeMap::new() };
    let json = printer.structure(message, "");
    Rendering { json, records: printer.records }
}

struct Printer {
    version: i16,
    tagged: Tagged,
    records: BTreeMap<String, String>,
}

impl Printer {
    fn structure(&mut self, message: &dyn Structure, path: &str) -> Json {
        let mut json = Map::new();
        for (index, field) in message.schema().fields.iter().enumerate() {
            let value = message.field(index).expect("the schema has as many fields as the message");
            if self.shows(field, value) {
                let name = camel_case(field.name);
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                if let (FieldType::Records, Value::Bytes(bytes)) = (field.field_type, value) {
                    json.insert(format!("{name}SizeInBytes"), bytes.len().into());
                    self.records.insert(path, hex(bytes));
                } else {
                    json.insert(name, self.value(value, &path));
                }
            }
        }
        Json::Object(json)
    }

    fn shows(&self, field: &FieldSchema, value: Value<'_>) -> bool {
        let is_written = field.tag.is_none() || !is_default(value, &field.default);
        field.versions.contains(self.version) && (is_written || self.tagged == Tagged::All)
    }

    fn value(&mut self, value: Value<'_>, path: &str) -> Json {
        match value {
            Value::Null => Json::Null,
            Value::Bool(value) => value.into(),
            Value::Int(number) => number.into(),
            Value::Float(number) => float(number),
            Value::Str(text) => text.as_str().into(),
            Value::Bytes(bytes) => base64(bytes).into(),
            Value::Uuid(uuid) => uuid.to_string().into(),
            Value::Struct(inner) => self.structure(inner, path),
            Value::Array(array) => {
                let element = |index| array.element(index).expect("an array has as many elements as it says");
                (0..array.count()).map(|index| self.value(element(index), &format!("{path}[{index}]"))).collect()
            }
        }
    }
}

/// A number, or the name of what JSON has no number for.
fn float(number: f64) -> Json {
    match number {
        f64::INFINITY => "Infinity".into(),
        f64::NEG_INFINITY => "-Infinity".into(),
        number if number.is_nan() => "NaN".into(),
        number => number.into(),
    }
}

/// Whether the value is what a field is when nobody set it.
fn is_default(value: Value<'_>, default: &FieldDefault) -> bool {
    match (value, *default) {
        (Value::Null, default) => default == FieldDefault::Null,
        (Value::Bool(value), FieldDefault::Bool(default)) => value == default,
        (Value::Int(number), FieldDefault::Int(default)) => number == default,
        (Value::Float(number), FieldDefault::Float(default)) => number == default,
        (Value::Str(text), FieldDefault::Str(default)) => text == default,
        (Value::Bool(value), FieldDefault::Zero) => !value,
        (Value::Int(number), FieldDefault::Zero) => number == 0,
        (Value::Float(number), FieldDefault::Zero) => number == 0.0,
        (Value::Str(text), FieldDefault::Zero) => text.is_empty(),
        (Value::Bytes(bytes), FieldDefault::Zero) => bytes.is_empty(),
        (Value::Uuid(uuid), FieldDefault::Zero) => uuid.is_zero(),
        (Value::Array(array), FieldDefault::Zero) => array.count() == 0,
        (Value::Struct(inner), FieldDefault::Zero) => {
            let is_default = |(index, field): (usize, &FieldSchema)| {
                inner.field(index).is_some_and(|value| is_default(value, &field.default))
            };
            inner.schema().fields.iter().enumerate().all(is_default)
        }
        _ => false,
    }
}

/// `max_bytes` as `maxBytes`.
fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |camel, word| {
        let (initial, rest) = word.split_at(1);
        camel + &initial.to_uppercase() + rest
    })
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut three = [0; 3];
        three[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        for (place, shift) in [18, 12, 6, 0].into_iter().enumerate() {
            let letter = ALPHABET[(bits >> shift) as usize & 63];
            text.push(if place <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    text
}
