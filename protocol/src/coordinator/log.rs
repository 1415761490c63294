//! Keys and values as they lie in a coordinator's log, each behind a number that says how to read it.

use crate::{Bytes, DecodeError, EncodeError, Message, MessageSchema, Reader, Writer};

/// A record whose type we know: a key, and what the log says about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry<K, V> {
    /// What it is about.
    pub key: K,
    /// What holds from here on; `None` for a tombstone, which says that the key is forgotten.
    pub value: Option<Versioned<V>>,
}

/// A value and the version that it is written in.
#[derive(Clone, Debug, PartialEq)]
pub struct Versioned<V> {
    /// The version.
    pub version: i16,
    /// The value.
    pub message: V,
}

/// A type of record.
#[derive(Clone, Copy, Debug)]
pub struct RecordType {
    /// Its number, which stands before every key.
    pub number: i16,
    /// Kafka's name of its key and the key's fields. There is one version, 0.
    pub key: &'static MessageSchema,
    /// Kafka's name of its value and the value's fields and versions.
    pub value: &'static MessageSchema,
}

impl<K: Message, V: Message> Entry<K, V> {
    /// Reads what stands behind the type of a key, and the value; `None` if the value's version is not ours.
    pub(super) fn decode(mut key: Reader, value: Option<Bytes>) -> Result<Option<Self>, DecodeError> {
        let value = match value {
            Some(value) => {
                let mut value = Reader::new(value);
                let version = i16::from_be_bytes(value.take_array()?);
                if !V::SCHEMA.versions.contains(version) {
                    return Ok(None);
                }
                let message = V::decode(&mut value, version)?;
                refuse_rest(&value, V::SCHEMA, version)?;
                Some(Versioned { version, message })
            }
            None => None,
        };
        let message = K::decode(&mut key, 0)?;
        refuse_rest(&key, K::SCHEMA, 0)?;
        Ok(Some(Self { key: message, value }))
    }

    /// Writes the key behind its type, and the value behind its version.
    pub(super) fn encode(&self, number: i16) -> Result<(Bytes, Option<Bytes>), EncodeError> {
        let key = write(number, &self.key, 0)?;
        let value = self.value.as_ref().map(|value| write(value.version, &value.message, value.version));
        Ok((key, value.transpose()?))
    }
}

/// The bytes that no field has claimed would be lost when the record is written again.
fn refuse_rest(input: &Reader, schema: &'static MessageSchema, version: i16) -> Result<(), DecodeError> {
    if input.is_empty() {
        return Ok(());
    }
    Err(DecodeError::invalid("there are bytes behind the last field").at(schema.name, "end", version))
}

fn write<M: Message>(prefix: i16, message: &M, version: i16) -> Result<Bytes, EncodeError> {
    let mut out = Writer::with_capacity(2 + message.size(version)?);
    out.put_slice(&prefix.to_be_bytes());
    message.encode(&mut out, version)?;
    Ok(out.into_bytes())
}

/// Declares a log: an enum of the types of its records, by their numbers.
macro_rules! log {
    ($(#[$doc:meta])* $log:ident {
        $($(#[$about:meta])* $name:ident = $number:literal: $key:ident, $value:ident;)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum $log {
            $($(#[$about])* $name($crate::coordinator::Entry<$key, $value>),)*
            /// A record of a type, or with a value of a version, that we do not know.
            Unknown {
                /// The key as it lies in the log, with its type.
                key: $crate::Bytes,
                /// The value as it lies in the log, with its version; `None` for a tombstone.
                value: Option<$crate::Bytes>,
            },
        }

        impl $log {
            /// The types that we know, in the order of their numbers.
            pub const TYPES: &'static [$crate::coordinator::RecordType] = &[$($crate::coordinator::RecordType {
                number: $number,
                key: <$key as $crate::Message>::SCHEMA,
                value: <$value as $crate::Message>::SCHEMA,
            }),*];

            /// Reads a record as it lies in the log. What we do not know is kept as it is.
            ///
            /// # Errors
            /// The key is too short for a type or the value for a version, or the bytes behind are not what type and
            /// version say.
            pub fn decode(key: $crate::Bytes, value: Option<$crate::Bytes>) -> Result<Self, $crate::DecodeError> {
                let mut input = $crate::Reader::new(key.clone());
                let known = match i16::from_be_bytes(input.take_array()?) {
                    $($number => $crate::coordinator::Entry::decode(input, value.clone())?.map(Self::$name),)*
                    _ => None,
                };
                Ok(known.unwrap_or(Self::Unknown { key, value }))
            }

            /// Writes key and value as they lie in the log.
            ///
            /// # Errors
            /// Those of [`Message::encode`](crate::Message::encode), in the version of the value.
            pub fn encode(&self) -> Result<($crate::Bytes, Option<$crate::Bytes>), $crate::EncodeError> {
                match self {
                    $(Self::$name(entry) => entry.encode($number),)*
                    Self::Unknown { key, value } => Ok((key.clone(), value.clone())),
                }
            }

            /// The number of the record's type; `None` if an unknown key is too short for one.
            pub fn number(&self) -> Option<i16> {
                match self {
                    $(Self::$name(_) => Some($number),)*
                    Self::Unknown { key, .. } => key.first_chunk().copied().map(i16::from_be_bytes),
                }
            }

            /// Whether the record has no value: its key is forgotten.
            pub fn is_tombstone(&self) -> bool {
                match self {
                    $(Self::$name(entry) => entry.value.is_none(),)*
                    Self::Unknown { value, .. } => value.is_none(),
                }
            }
        }
    };
}
