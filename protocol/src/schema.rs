//! What a derived message says about itself.
//!
//! The struct is the schema. This is its shape as data: enough to compare each field with Kafka's own JSON, and to
//! fill a message with values without knowing its type.

use std::fmt;

/// A range of versions, both ends included.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Versions {
    /// The lowest version.
    pub min: i16,
    /// The highest version.
    pub max: i16,
}

impl Versions {
    /// The versions from `min` to `max`, both included.
    pub const fn new(min: i16, max: i16) -> Self {
        Self { min, max }
    }

    /// These and `version`, which Kafka marks unstable and which stands directly before or after them: but only with
    /// the feature `unstable-protocol`.
    ///
    /// The derive calls this, so that the feature that counts is this crate's, wherever the message is declared.
    #[doc(hidden)]
    pub const fn with_unstable(self, version: i16) -> Self {
        if !cfg!(feature = "unstable-protocol") {
            self
        } else if version < self.min {
            Self { min: version, ..self }
        } else {
            Self { max: version, ..self }
        }
    }

    /// Whether `version` is one of these.
    #[inline]
    pub const fn contains(&self, version: i16) -> bool {
        self.min <= version && version <= self.max
    }

    /// The versions that are in both ranges, if there are any.
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        let (min, max) = (self.min.max(other.min), self.max.min(other.max));
        (min <= max).then_some(Self { min, max })
    }

    /// All versions, lowest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = i16> + use<> {
        self.min..=self.max
    }
}

impl fmt::Debug for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.min == self.max { write!(f, "{}", self.min) } else { write!(f, "{}-{}", self.min, self.max) }
    }
}

/// A message, or a structure inside one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MessageSchema {
    /// The name that Kafka's schema gives it.
    pub name: &'static str,
    /// The API's number, for requests and responses.
    pub key: Option<i16>,
    /// The versions that can be encoded and decoded. Those of its fields may reach one further, to an unstable version
    /// for which the feature `unstable-protocol` is off.
    pub versions: Versions,
    /// The first version in the flexible encoding, if there is one.
    pub flexible: Option<i16>,
    /// The fields in the order of the wire; tagged ones stand where the struct has them.
    pub fields: &'static [FieldSchema],
}

impl MessageSchema {
    /// Whether `version` is in the flexible encoding.
    pub const fn is_flexible(&self, version: i16) -> bool {
        match self.flexible {
            Some(first) => version >= first,
            None => false,
        }
    }
}

/// A field of a message or of a structure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FieldSchema {
    /// The name of the Rust field.
    pub name: &'static str,
    /// The type, without its nullability.
    pub field_type: FieldType,
    /// The versions that have the field.
    pub versions: Versions,
    /// The versions in which it can be null.
    pub nullable: Option<Versions>,
    /// Its tag, if it is a tagged field; then it is one in all of its versions.
    pub tag: Option<u32>,
    /// Whether a value is dropped silently in versions that lack the field.
    pub ignorable: bool,
    /// What it is when nobody set it.
    pub default: FieldDefault,
}

/// The type of a field in the words of Kafka's schemas.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FieldType {
    /// `bool`
    Bool,
    /// `int8`
    Int8,
    /// `int16`
    Int16,
    /// `uint16`
    Uint16,
    /// `int32`
    Int32,
    /// `uint32`
    Uint32,
    /// `int64`
    Int64,
    /// `float64`
    Float64,
    /// `string`
    String,
    /// `bytes`
    Bytes,
    /// `records`
    Records,
    /// `uuid`
    Uuid,
    /// `[]type`
    Array(&'static Self),
    /// A structure.
    Struct(&'static MessageSchema),
}

/// What a field is when nobody set it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FieldDefault {
    /// Zero, false or empty: a schema without an explicit default.
    Zero,
    /// Null.
    Null,
    /// True or false.
    Bool(bool),
    /// A number.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
    /// A text.
    Str(&'static str),
}

impl FieldType {
    /// Fails, when it is compiled, if a structure inside does not know all `versions` of the field around it, or is
    /// flexible from another version on.
    #[doc(hidden)]
    pub const fn assert_fits(&self, versions: Versions, flexible: Option<i16>) {
        match self {
            Self::Array(element) => element.assert_fits(versions, flexible),
            Self::Struct(schema) => {
                assert!(
                    schema.versions.min <= versions.min && schema.versions.max >= versions.max,
                    "a structure lacks versions of the field that holds it"
                );
                assert!(
                    flexible_within(schema.flexible, versions) == flexible_within(flexible, versions),
                    "a structure is flexible from another version on than the message around it"
                );
            }
            _ => {}
        }
    }
}

/// The first flexible version among `versions`, or the one after the last.
const fn flexible_within(flexible: Option<i16>, versions: Versions) -> i16 {
    match flexible {
        Some(first) if first <= versions.min => versions.min,
        Some(first) if first <= versions.max => first,
        _ => versions.max + 1,
    }
}
