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
    ///
    /// # Errors
    /// They are not.
    pub fn from_utf8(bytes: Bytes) -> Result<Self, DecodeError> {
        // Nearly all text is ASCII, and told in a few instructions.
        if bytes.is_ascii() || std::str::from_utf8(&bytes).is_ok() {
            Ok(Self(bytes))
        } else {
            Err(DecodeError::new(DecodeErrorKind::Utf8))
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
    const EMPTY: Self = Self(Bytes::new());

    #[inline]
    fn min_size(_version: i16, flexible: bool) -> usize {
        if flexible { 1 } else { 2 }
    }

    #[inline]
    fn is_zero(&self) -> bool {
        self.is_empty()
    }

    #[inline]
    fn hint(&self) -> usize {
        3 + self.len()
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
        if len == 0 {
            return Ok(Some(Self::default()));
        }
        Self::from_utf8(input.take_bytes(len)?).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::hash::DefaultHasher;

    use super::*;

    #[test]
    fn a_map_keyed_by_strings_is_asked_with_plain_text() {
        let ordered: BTreeMap<Str, i32> = [("b".into(), 2), ("a".into(), 1), ("é".into(), 3)].into();
        let hash = |value: &dyn Fn(&mut DefaultHasher)| {
            let mut hasher = DefaultHasher::new();
            value(&mut hasher);
            hasher.finish()
        };

        assert_eq!(ordered.keys().map(Str::as_str).collect::<Vec<_>>(), ["a", "b", "é"]);
        assert_eq!(ordered.get("é"), Some(&3));
        assert_eq!(hash(&|state| Str::from("orders").hash(state)), hash(&|state| "orders".hash(state)));
    }

    #[test]
    fn strings_are_ordered_as_text_is() {
        let texts = ["", "Z", "a", "ab", "b", "é", "€", "\u{ffff}", "𝄞"];

        let ordered: BTreeSet<Str> = texts.iter().rev().copied().map(Str::from).collect();

        assert!(ordered.iter().eq(texts));
    }

    #[test]
    fn every_source_gives_the_same_text() {
        let sources = [
            Str::from("orders"),
            Str::from(String::from("orders")),
            Str::from(Arc::from("orders")),
            Str::from_static("orders"),
            Str::from_utf8(Bytes::from_static(b"orders")).unwrap(),
            Str::from("orders").detached(),
        ];

        for text in sources {
            assert_eq!(text, "orders");
            assert_eq!(text.to_string(), "orders");
            assert_eq!(format!("{text:?}"), "\"orders\"");
        }
    }

    #[test]
    fn a_detached_string_lets_its_frame_go() {
        let frame = Bytes::from(b"orders and much more".to_vec());
        let text = Str::from_utf8(frame.slice(..6)).unwrap();
        assert_eq!(text.as_bytes().as_ptr(), frame.as_ptr());

        let detached = text.detached();
        drop(text);

        assert_eq!(detached, "orders");
        assert!(frame.is_unique());
    }

    #[test]
    fn only_utf8_is_text() {
        let error = Str::from_utf8(Bytes::from_static(&[0xc3])).unwrap_err();

        assert_eq!(error.to_string(), "a string is not UTF-8");
    }

    #[test]
    fn both_encodings_end_at_32767_bytes() {
        for flexible in [false, true] {
            let (longest, too_long) = (Str::from("x".repeat(32_767)), Str::from("x".repeat(32_768)));
            let mut out = Writer::new();
            longest.put(&mut out, 0, flexible).unwrap();
            assert_eq!(Str::take(&mut Reader::new(out.into_bytes()), 0, flexible), Ok(longest));

            let error = too_long.put(&mut Writer::new(), 0, flexible).unwrap_err();
            assert_eq!(error.to_string(), "string length 32768 is more than the 32767 that the protocol can express");
        }

        // A varint could say more, and Java does not take it either.
        let mut out = Writer::new();
        out.put_varint(32_769);
        out.put_slice(&[b'x'; 32_768]);
        let error = Str::take(&mut Reader::new(out.into_bytes()), 0, true).unwrap_err();
        assert_eq!(error.to_string(), "string length 32768 is impossible with 32768 bytes left");
    }

    #[test]
    fn a_string_is_its_text_in_every_form() {
        let (text, other) = (Str::from("text"), Str::from("other"));

        assert_eq!((text.is_empty(), Str::default().is_empty()), (false, true));
        assert_eq!((text.len(), &text[1..]), (4, "ext"));
        assert_eq!((AsRef::<str>::as_ref(&text), AsRef::<[u8]>::as_ref(&text)), ("text", &b"text"[..]));
        assert_eq!(
            (text.clone().into_bytes(), String::from(text.clone())),
            (Bytes::from_static(b"text"), "text".into())
        );
        assert_eq!((Str::from(&text), Str::from(&"text".to_owned())), (text.clone(), text.clone()));

        let owned = "text".to_owned();
        let comparisons =
            |ours: &Str| [*ours == *"text", *ours == "text", *ours == owned, *"text" == *ours, "text" == *ours];
        assert_eq!((comparisons(&text), comparisons(&other)), ([true; 5], [false; 5]));
    }
}
