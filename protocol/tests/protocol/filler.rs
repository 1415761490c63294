//! Writes any message from its schema and a handful of chance, without the derive.
//!
//! This is a second encoder, as plain as the protocol's description: what the derive reads from its bytes and writes
//! again must be the same bytes.

use krafka_protocol::schema::{FieldDefault, FieldSchema, FieldType, MessageSchema};

/// Chance that runs out: then every choice is the least, which is what makes a failing case small.
pub(crate) struct Entropy<'a>(pub(crate) &'a [u8]);

impl Entropy<'_> {
    fn byte(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or(0)
    }

    fn below(&mut self, end: u8) -> u8 {
        self.byte() % end
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.byte())
    }

    fn flip(&mut self) -> bool {
        self.byte() % 2 == 1
    }
}

/// What a peer may add without changing the meaning.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Extra {
    /// Nothing: the one form in which we write a message.
    Nothing,
    /// Tagged fields at their defaults, which could be left out.
    Defaults,
    /// Tagged fields that no schema knows.
    UnknownTags,
}

/// The bytes of some value of a message.
pub(crate) fn fill(schema: &MessageSchema, version: i16, entropy: &[u8], extra: Extra) -> Vec<u8> {
    let mut filler = Filler { entropy: Entropy(entropy), version, extra };
    let mut out = Vec::new();
    filler.put_structure(schema, &mut out);
    out
}

struct Filler<'a> {
    entropy: Entropy<'a>,
    version: i16,
    extra: Extra,
}

impl Filler<'_> {
    fn put_structure(&mut self, schema: &MessageSchema, out: &mut Vec<u8>) {
        let flexible = schema.is_flexible(self.version);
        let version = self.version;
        let (tagged, plain): (Vec<&FieldSchema>, Vec<_>) = schema
            .fields
            .iter()
            .filter(|field| field.versions.contains(version))
            .partition(|field| field.tag.is_some());
        for field in plain {
            self.put_field(field, flexible, out);
        }
        if !flexible {
            return;
        }

        let mut tags = Vec::new();
        for field in tagged {
            let default = default_of(field, version, true);
            let mut value = default.clone();
            if self.entropy.flip() {
                value.clear();
                self.put_field(field, true, &mut value);
            }
            if value != default || self.extra == Extra::Defaults {
                tags.push((field.tag.expect("a tagged field"), value));
            }
        }
        if self.extra == Extra::UnknownTags {
            tags.extend([(77, vec![]), (1 << 20, vec![0xff; 200])]);
        }
        tags.sort();
        put_varint(tags.len(), out);
        for (tag, value) in tags {
            put_varint(tag as usize, out);
            put_varint(value.len(), out);
            out.extend(value);
        }
    }

    fn put_field(&mut self, field: &FieldSchema, flexible: bool, out: &mut Vec<u8>) {
        let nullable = field.nullable.is_some_and(|versions| versions.contains(self.version));
        if nullable && self.entropy.below(4) == 3 {
            put_null(field, flexible, out);
        } else {
            if nullable && matches!(field.field_type, FieldType::Struct(_)) {
                out.push(1);
            }
            self.put_value(&field.field_type, flexible, out);
        }
    }

    fn put_value(&mut self, field_type: &FieldType, flexible: bool, out: &mut Vec<u8>) {
        match field_type {
            FieldType::Bool => out.push(self.entropy.below(2)),
            FieldType::Int8 => self.put_number::<1>(out),
            FieldType::Int16 | FieldType::Uint16 => self.put_number::<2>(out),
            FieldType::Int32 | FieldType::Uint32 => self.put_number::<4>(out),
            FieldType::Int64 => self.put_number::<8>(out),
            FieldType::Float64 => out.extend(f64::from(self.entropy.byte()).sqrt().to_be_bytes()),
            FieldType::Uuid => self.put_number::<16>(out),
            FieldType::String => {
                let letters = ["a", "Z", "0", "-", "\0", "é", "€", "𝄞"];
                let len = [0, 1, 2, 9, 63, 64, 127, 128, 300][usize::from(self.entropy.below(9))];
                let letter = letters[usize::from(self.entropy.below(8))];
                let text = letter.repeat(len);
                put_string_len(text.len(), flexible, out);
                out.extend(text.bytes());
            }
            FieldType::Bytes | FieldType::Records => {
                // Below and above the length from which on a writer leaves bytes where they are.
                let len = [0, 1, 126, 127, 4095, 4096, 5000][usize::from(self.entropy.below(7))];
                put_len(len, flexible, out);
                out.extend(vec![self.entropy.byte(); len]);
            }
            FieldType::Array(element) => {
                let count = match (element, self.entropy.byte()) {
                    (FieldType::Struct(_) | FieldType::Array(_), choice) => usize::from(choice % 4),
                    (_, choice @ 0..250) => usize::from(choice % 5),
                    _ => 130,
                };
                put_len(count, flexible, out);
                for _ in 0..count {
                    self.put_value(element, flexible, out);
                }
            }
            FieldType::Struct(schema) => self.put_structure(schema, out),
        }
    }

    fn put_number<const N: usize>(&mut self, out: &mut Vec<u8>) {
        let mut number = [0; N];
        match self.entropy.below(6) {
            0 => {}
            1 => number[N - 1] = 1,
            2 => number = [0xff; N],
            3 => number[0] = 0x80,
            4 => {
                number = [0xff; N];
                number[0] = 0x7f;
            }
            _ => number = self.entropy.bytes(),
        }
        out.extend(number);
    }
}

/// The bytes of a field that nobody set.
fn default_of(field: &FieldSchema, version: i16, flexible: bool) -> Vec<u8> {
    let mut out = Vec::new();
    let last_bytes = |number: i64, len: usize| number.to_be_bytes()[8 - len..].to_vec();
    match (&field.default, &field.field_type) {
        (FieldDefault::Null, _) => put_null(field, flexible, &mut out),
        (FieldDefault::Bool(value), _) => out.push(u8::from(*value)),
        (FieldDefault::Int(number), FieldType::Int8) => out = last_bytes(*number, 1),
        (FieldDefault::Int(number), FieldType::Int16 | FieldType::Uint16) => out = last_bytes(*number, 2),
        (FieldDefault::Int(number), FieldType::Int32 | FieldType::Uint32) => out = last_bytes(*number, 4),
        (FieldDefault::Int(number), _) => out = last_bytes(*number, 8),
        (FieldDefault::Float(number), _) => out.extend(number.to_be_bytes()),
        (FieldDefault::Str(text), _) => {
            put_string_len(text.len(), flexible, &mut out);
            out.extend(text.bytes());
        }
        (FieldDefault::Zero, FieldType::Struct(schema)) => {
            let nullable = field.nullable.is_some_and(|versions| versions.contains(version));
            out.extend(nullable.then_some(1));
            for inner in schema.fields.iter().filter(|inner| inner.tag.is_none() && inner.versions.contains(version)) {
                out.extend(default_of(inner, version, flexible));
            }
            out.extend(flexible.then_some(0));
        }
        // With no entropy left every choice is the least: zero, false or empty.
        (FieldDefault::Zero, field_type) => {
            Filler { entropy: Entropy(&[]), version, extra: Extra::Nothing }.put_value(field_type, flexible, &mut out);
        }
    }
    out
}

fn put_null(field: &FieldSchema, flexible: bool, out: &mut Vec<u8>) {
    match (field.field_type, flexible) {
        (FieldType::Struct(_), _) => out.push(if field.tag.is_some() { 0 } else { 0xff }),
        (_, true) => out.push(0),
        (FieldType::String, false) => out.extend([0xff; 2]),
        (_, false) => out.extend([0xff; 4]),
    }
}

fn put_string_len(len: usize, flexible: bool, out: &mut Vec<u8>) {
    if flexible { put_varint(len + 1, out) } else { out.extend((len as i16).to_be_bytes()) }
}

fn put_len(len: usize, flexible: bool, out: &mut Vec<u8>) {
    if flexible { put_varint(len + 1, out) } else { out.extend((len as i32).to_be_bytes()) }
}

fn put_varint(mut value: usize, out: &mut Vec<u8>) {
    while value > 0x7f {
        out.push(0x80 | (value & 0x7f) as u8);
        value >>= 7;
    }
    out.push(value as u8);
}
