//! A message as Java prints it in JSON: names in camel case, in the order of the wire, what the version lacks left out.
//!
//! Tagged fields that were not sent are left out too. Numbers are numbers, but for those that
//! JSON has no number for: `"NaN"`, `"Infinity"`, `"-Infinity"`. Bytes are base64, UUIDs are as Kafka prints them, and
//! everything beyond ASCII is escaped. Of a record set, only its size is shown.

use std::fmt::Write as _;

use krafka_protocol::schema::{FieldDefault, FieldSchema, FieldType};
use krafka_protocol::value::{Structure, Value};
use krafka_protocol::{Bytes, UnknownTags};

/// A message in JSON, and what JSON cannot show.
pub(crate) struct Rendering {
    /// One line.
    pub(crate) json: String,
    /// The record sets by their path, such as `topicData[0].partitionData[1].records`.
    #[allow(dead_code)] // The golden test compares them; here the bytes that are written say it.
    pub(crate) records: Vec<(String, Bytes)>,
    /// The paths of the structures, by the numbers that [`UnknownTags`] give them.
    #[allow(dead_code)] // As above.
    pub(crate) structures: Vec<String>,
}

/// The message as Java prints it, if it came with these unknown tags.
pub(crate) fn render(message: &dyn Structure, version: i16, unknown: &UnknownTags) -> Rendering {
    let mut printer = Printer {
        version,
        unknown,
        json: String::new(),
        path: String::new(),
        records: Vec::new(),
        structures: Vec::new(),
    };
    printer.structure(message);
    Rendering { json: printer.json, records: printer.records, structures: printer.structures }
}

struct Printer<'a> {
    version: i16,
    unknown: &'a UnknownTags,
    json: String,
    /// Where in the message the printer is.
    path: String,
    records: Vec<(String, Bytes)>,
    structures: Vec<String>,
}

impl Printer<'_> {
    /// The fields in the order of the wire: those that are tagged last, by their tags.
    fn structure(&mut self, message: &dyn Structure) {
        let mut fields: Vec<_> = message.schema().fields.iter().enumerate().collect();
        fields.sort_by_key(|(_, field)| field.tag);
        let (plain, tagged) = fields.split_at(fields.partition_point(|(_, field)| field.tag.is_none()));

        let mut separator = '{';
        self.fields(message, plain, &mut separator, |_, _, _| true);
        if message.schema().is_flexible(self.version) {
            let number = self.structures.len() as u32;
            self.structures.push(self.path.clone());
            self.fields(message, tagged, &mut separator, |unknown, field, value| {
                let was_sent = field.tag.is_some_and(|tag| unknown.has_default(number, tag));
                was_sent || !is_default(value, &field.default)
            });
        }
        self.json.push_str(if separator == '{' { "{}" } else { "}" });
    }

    fn fields(
        &mut self,
        message: &dyn Structure,
        fields: &[(usize, &FieldSchema)],
        separator: &mut char,
        is_shown: impl Fn(&UnknownTags, &FieldSchema, Value<'_>) -> bool,
    ) {
        for (index, field) in fields {
            let value = message.field(*index).expect("the schema has as many fields as the message");
            if !field.versions.contains(self.version) || !is_shown(self.unknown, field, value) {
                continue;
            }
            self.json.push(*separator);
            *separator = ',';

            let outer = self.path.len();
            if outer > 0 {
                self.path.push('.');
            }
            let start = self.path.len();
            push_camel_case(&mut self.path, field.name);
            let name = &self.path[start..];
            if let (FieldType::Records, Value::Bytes(bytes)) = (field.field_type, value) {
                write!(self.json, "\"{name}SizeInBytes\":{}", bytes.len()).expect("a string takes everything");
                self.records.push((self.path.clone(), bytes.clone()));
            } else {
                write!(self.json, "\"{name}\":").expect("a string takes everything");
                self.value(value);
            }
            self.path.truncate(outer);
        }
    }

    fn value(&mut self, value: Value<'_>) {
        match value {
            Value::Null => self.json.push_str("null"),
            Value::Bool(value) => self.json.push_str(if value { "true" } else { "false" }),
            Value::Int(number) => write!(self.json, "{number}").expect("a string takes everything"),
            Value::Float(number) if number.is_finite() => {
                write!(self.json, "{number:?}").expect("a string takes everything");
            }
            Value::Float(number) if number.is_nan() => self.json.push_str("\"NaN\""),
            Value::Float(number) => self.json.push_str(if number > 0.0 { "\"Infinity\"" } else { "\"-Infinity\"" }),
            Value::Str(text) => push_text(&mut self.json, text.as_str()),
            Value::Bytes(bytes) => push_base64(&mut self.json, bytes),
            Value::Uuid(uuid) => write!(self.json, "\"{uuid}\"").expect("a string takes everything"),
            Value::Struct(inner) => self.structure(inner),
            Value::Array(array) => {
                let outer = self.path.len();
                self.json.push('[');
                for index in 0..array.count() {
                    if index > 0 {
                        self.json.push(',');
                    }
                    write!(self.path, "[{index}]").expect("a string takes everything");
                    self.value(array.element(index).expect("an array has as many elements as it says"));
                    self.path.truncate(outer);
                }
                self.json.push(']');
            }
        }
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
fn push_camel_case(text: &mut String, name: &str) {
    let mut begins_word = false;
    for letter in name.chars() {
        match letter {
            '_' => begins_word = true,
            letter if begins_word => {
                begins_word = false;
                text.push(letter.to_ascii_uppercase());
            }
            letter => text.push(letter),
        }
    }
}

/// A text as a string of JSON, in ASCII.
fn push_text(json: &mut String, text: &str) {
    json.push('"');
    for letter in text.chars() {
        match letter {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            '\n' => json.push_str("\\n"),
            '\r' => json.push_str("\\r"),
            '\t' => json.push_str("\\t"),
            '\u{8}' => json.push_str("\\b"),
            '\u{c}' => json.push_str("\\f"),
            '\0'..' ' => push_escape(json, letter),
            letter if letter.is_ascii() => json.push(letter),
            letter => push_escape(json, letter),
        }
    }
    json.push('"');
}

/// JSON of any text as JSON in ASCII.
pub(crate) fn to_ascii(json: &str) -> String {
    let mut ascii = String::with_capacity(json.len());
    for letter in json.chars() {
        // Whatever is beyond ASCII stands inside a string.
        if letter.is_ascii() { ascii.push(letter) } else { push_escape(&mut ascii, letter) }
    }
    ascii
}

/// `\u` and four digits for each half of the letter in UTF-16.
fn push_escape(json: &mut String, letter: char) {
    for unit in letter.encode_utf16(&mut [0; 2]) {
        write!(json, "\\u{unit:04X}").expect("a string takes everything");
    }
}

fn push_base64(json: &mut String, bytes: &[u8]) {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    json.push('"');
    for chunk in bytes.chunks(3) {
        let mut three = [0; 3];
        three[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        for (place, shift) in [18, 12, 6, 0].into_iter().enumerate() {
            let letter = ALPHABET[(bits >> shift) as usize & 63];
            json.push(if place <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    json.push('"');
}
