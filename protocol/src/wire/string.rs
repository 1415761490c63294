//! An immutable string that may be a slice of the frame it came in.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;

use super::error::{DecodeError, DecodeErrorKind};
use super::{EncodeError, Nullable, Reader, Wire, Writer, compact_len_size};
use crate::schema::FieldType;
use crate::value::Value;

/// Immutable UTF-8 text that is cheap to clone.
///
/// A `Str` that was decoded shares the memory of its frame and keeps all of it alive. What is kept for long should be
/// [`detached`](Str::detached).
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Str(
    /// Always UTF-8. Comparing bytes orders strings as comparing characters does.
    Bytes,
);

impl Str {
    /// A string that lives as long as the program.
    pub const fn from_static(text: &'static str) -> Self {
        Self(Bytes::from_static(text.as_bytes()))
    }

    /// Takes bytes for text, if they are UTF-8.
    pub fn from_utf8(bytes: Bytes) -> Result<Self, DecodeError> {
        match std::str::from_utf8(&bytes) {
            Ok(_) => Ok(Self(bytes)),
            Err(_) => Err(DecodeError::new(DecodeErrorKind::Utf8)),
        }
    }

    /// The text.
    #[inline]
    pub fn as_str(&self) -> &str {
        // Without unsafe code the check is repeated; for names of a few dozen bytes that is some nanoseconds.
        std::str::from_utf8(&self.0).expect("a Str is only made from UTF-8")
    }

    /// The text as bytes, without any check.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The text as bytes that share its memory.
    pub fn into_bytes(self) -> Bytes {
        self.0
    }

    /// The same text in memory of its own, so that the frame it came in can be freed.
    pub fn detached(&self) -> Self {
        Self(Bytes::copy_from_slice(&self.0))
    }

    /// The length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no text.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Deref for Str {
    type Target = str;

    #[inline]
    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl Borrow<str> for Str {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for Str {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<[u8]> for Str {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl Hash for Str {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // As `str` does, which `Borrow<str>` promises.
        self.as_str().hash(state);
    }
}

impl fmt::Debug for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), f)
    }
}

impl From<&str> for Str {
    fn from(text: &str) -> Self {
        Self(Bytes::copy_from_slice(text.as_bytes()))
    }
}

impl From<&String> for Str {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<String> for Str {
    fn from(text: String) -> Self {
        Self(Bytes::from(text.into_bytes()))
    }
}

impl From<Arc<str>> for Str {
    fn from(text: Arc<str>) -> Self {
        struct Shared(Arc<str>);

        impl AsRef<[u8]> for Shared {
            fn as_ref(&self) -> &[u8] {
                self.0.as_bytes()
            }
        }

        Self(Bytes::from_owner(Shared(text)))
    }
}

impl From<&Self> for Str {
    fn from(text: &Self) -> Self {
        text.clone()
    }
}

impl From<Str> for String {
    fn from(text: Str) -> Self {
        text.as_str().to_owned()
    }
}

impl PartialEq<str> for Str {
    fn eq(&self, other: &str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl PartialEq<&str> for Str {
    fn eq(&self, other: &&str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl PartialEq<String> for Str {
    fn eq(&self, other: &String) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl PartialEq<Str> for str {
    fn eq(&self, other: &Str) -> bool {
        other == self
    }
}

impl PartialEq<Str> for &str {
    fn eq(&self, other: &Str) -> bool {
        other == self
    }
}

impl Wire for Str {
    const TYPE: FieldType = FieldType::String;

    #[inline]
    fn min_size(_version: i16, flexible: bool) -> usize {
        if flexible { 1 } else { 2 }
    }

    #[inline]
    fn is_zero(&self) -> bool {
        self.is_empty()
    }

    #[inline]
    fn size(&self, version: i16, flexible: bool) -> Result<usize, EncodeError> {
        Self::size_nullable(Some(self), version, flexible)
    }

    #[inline]
    fn put(&self, out: &mut Writer, _version: i16, flexible: bool) -> Result<(), EncodeError> {
        out.put_string_len(self.len(), flexible)?;
        out.put_slice(self.as_bytes());
        Ok(())
    }

    #[inline]
    fn take(input: &mut Reader, version: i16, flexible: bool) -> Result<Self, DecodeError> {
        Self::take_nullable(input, version, flexible)?.ok_or_else(DecodeError::null)
    }

    fn value(&self) -> Value<'_> {
        Value::Str(self)
    }
}

impl Nullable for Str {
    #[inline]
    fn size_nullable(value: Option<&Self>, _version: i16, flexible: bool) -> Result<usize, EncodeError> {
        let prefix = match (flexible, value) {
            (true, Some(text)) => compact_len_size(text.len()),
            (true, None) => 1,
            (false, _) => 2,
        };
        Ok(prefix + value.map_or(0, Self::len))
    }

    #[inline]
    fn put_nullable(value: Option<&Self>, out: &mut Writer, version: i16, flexible: bool) -> Result<(), EncodeError> {
        match (value, flexible) {
            (Some(text), _) => text.put(out, version, flexible)?,
            (None, true) => out.put_u8(0),
            (None, false) => out.put_slice(&(-1i16).to_be_bytes()),
        }
        Ok(())
    }

    #[inline]
    fn take_nullable(input: &mut Reader, _version: i16, flexible: bool) -> Result<Option<Self>, DecodeError> {
        let Some(len) = input.take_string_len(flexible)? else { return Ok(None) };
        // Java refuses longer strings in the flexible encoding too, where they could be expressed.
        if len > i16::MAX as usize || len > input.remaining() {
            let (length, left) = (len as i64, input.remaining());
            return Err(DecodeError::new(DecodeErrorKind::Length { what: "string", length, left }));
        }
        Self::from_utf8(input.take_bytes(len)?).map(Some)
    }
}
