//! What can be wrong with bytes that are read, and with values that are to be written.
//!
//! Both errors are one pointer wide, so that the `Result` of every field stays small; the path to the field is
//! collected on the way out, where nothing is hot any more.

use std::fmt;

/// Why bytes could not be read as the value that was expected.
#[derive(Clone, PartialEq, Eq)]
pub struct DecodeError(Box<Inner<DecodeErrorKind>>);

/// Why a value could not be written at a version.
#[derive(Clone, PartialEq, Eq)]
pub struct EncodeError(Box<Inner<EncodeErrorKind>>);

#[derive(Clone, PartialEq, Eq)]
struct Inner<K> {
    kind: K,
    /// Innermost first: the name of the structure and that of the field in it.
    path: Vec<(&'static str, &'static str)>,
    version: Option<i16>,
}

/// What was wrong with the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum DecodeErrorKind {
    Truncated { needed: usize, left: usize },
    Length { what: &'static str, length: i64, left: usize },
    Budget { needed: usize, left: usize },
    Varint,
    Utf8,
    Null,
    TagSize { tag: u32, size: usize, used: usize },
    Version { message: &'static str, version: i16, min: i16, max: i16 },
    UnknownApi { key: i16 },
    Invalid(&'static str),
}

/// What was wrong with the value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub(crate) enum EncodeErrorKind {
    Unsupported,
    Null,
    TooLong { what: &'static str, length: usize, max: usize },
    Version { message: &'static str, version: i16, min: i16, max: i16 },
    Invalid(&'static str),
}

impl DecodeError {
    #[cold]
    pub(crate) fn new(kind: DecodeErrorKind) -> Self {
        Self(Box::new(Inner { kind, path: Vec::new(), version: None }))
    }

    /// An error that is none of the wire's own: what a payload says makes no sense.
    #[cold]
    pub fn invalid(reason: &'static str) -> Self {
        Self::new(DecodeErrorKind::Invalid(reason))
    }

    #[cold]
    pub(crate) fn truncated(needed: usize, left: usize) -> Self {
        Self::new(DecodeErrorKind::Truncated { needed, left })
    }

    #[cold]
    pub(crate) fn null() -> Self {
        Self::new(DecodeErrorKind::Null)
    }

    /// An API that we do not speak.
    #[cold]
    pub(crate) fn unspoken(key: i16) -> Self {
        Self::new(DecodeErrorKind::UnknownApi { key })
    }

    /// The version is outside the range of the message.
    #[cold]
    #[doc(hidden)]
    pub fn version(message: &'static str, version: i16, min: i16, max: i16) -> Self {
        Self::new(DecodeErrorKind::Version { message, version, min, max })
    }

    /// A tagged field whose value did not fill the size it was announced with.
    #[cold]
    #[doc(hidden)]
    pub fn tag_size(tag: u32, size: usize, used: usize) -> Self {
        Self::new(DecodeErrorKind::TagSize { tag, size, used })
    }

    /// Adds the structure and the field that were being read.
    #[cold]
    #[doc(hidden)]
    pub fn at(mut self, structure: &'static str, field: &'static str, version: i16) -> Self {
        self.0.path.push((structure, field));
        self.0.version = Some(version);
        self
    }

    /// Finds out which field of a run the input ended in, and adds it to the path.
    #[cold]
    #[doc(hidden)]
    pub fn in_run(mut self, structure: &'static str, fields: &[(&'static str, usize)], version: i16) -> Self {
        let DecodeErrorKind::Truncated { needed, left } = &mut self.0.kind else { return self };
        for &(field, size) in fields {
            if size > *left {
                *needed = size;
                return self.at(structure, field, version);
            }
            *left -= size;
        }
        self
    }

    /// The message or structure that was being read, if it got that far.
    pub fn message(&self) -> Option<&'static str> {
        self.0.path.last().map(|(structure, _)| *structure)
    }

    /// Whether more bytes might have made it valid: the input ended too early.
    pub fn is_truncated(&self) -> bool {
        matches!(self.0.kind, DecodeErrorKind::Truncated { .. })
    }

    /// Whether the decoded form would have taken more memory than the reader's budget allows.
    pub fn is_over_budget(&self) -> bool {
        matches!(self.0.kind, DecodeErrorKind::Budget { .. })
    }

    /// Whether we do not know the API or the version, so that the bytes were not looked at.
    pub fn is_unsupported_version(&self) -> bool {
        matches!(self.0.kind, DecodeErrorKind::Version { .. } | DecodeErrorKind::UnknownApi { .. })
    }
}

impl EncodeError {
    #[cold]
    pub(crate) fn new(kind: EncodeErrorKind) -> Self {
        Self(Box::new(Inner { kind, path: Vec::new(), version: None }))
    }

    /// An error that is none of the wire's own: what was asked for makes no sense.
    #[cold]
    pub fn invalid(reason: &'static str) -> Self {
        Self::new(EncodeErrorKind::Invalid(reason))
    }

    #[cold]
    pub(crate) fn null() -> Self {
        Self::new(EncodeErrorKind::Null)
    }

    #[cold]
    pub(crate) fn too_long(what: &'static str, length: usize, max: usize) -> Self {
        Self::new(EncodeErrorKind::TooLong { what, length, max })
    }

    /// The version is outside the range of the message.
    #[cold]
    #[doc(hidden)]
    pub fn version(message: &'static str, version: i16, min: i16, max: i16) -> Self {
        Self::new(EncodeErrorKind::Version { message, version, min, max })
    }

    /// A field was set that this version has no place for.
    #[cold]
    #[doc(hidden)]
    pub fn unsupported(structure: &'static str, field: &'static str, version: i16) -> Self {
        Self::new(EncodeErrorKind::Unsupported).at(structure, field, version)
    }

    /// Adds the structure and the field that were being written.
    #[cold]
    #[doc(hidden)]
    pub fn at(mut self, structure: &'static str, field: &'static str, version: i16) -> Self {
        self.0.path.push((structure, field));
        self.0.version = Some(version);
        self
    }

    /// The message or structure that was being written, if it got that far.
    pub fn message(&self) -> Option<&'static str> {
        self.0.path.last().map(|(structure, _)| *structure)
    }

    /// The field that was being written, if it got that far: the innermost one.
    pub fn field(&self) -> Option<&'static str> {
        self.0.path.first().map(|(_, field)| *field)
    }

    /// Whether a field was set that this version has no place for.
    pub fn is_unsupported_field(&self) -> bool {
        matches!(self.0.kind, EncodeErrorKind::Unsupported)
    }

    /// Whether we do not know the version.
    pub fn is_unsupported_version(&self) -> bool {
        matches!(self.0.kind, EncodeErrorKind::Version { .. })
    }
}

/// Writes `FetchResponse v12, responses.partitions.records: `.
fn write_path<K>(inner: &Inner<K>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (Some((message, _)), Some(version)) = (inner.path.last(), inner.version) else { return Ok(()) };
    write!(f, "{message} v{version}, ")?;
    for (index, (_, field)) in inner.path.iter().rev().enumerate() {
        let dot = if index == 0 { "" } else { "." };
        write!(f, "{dot}{field}")?;
    }
    f.write_str(": ")
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_path(&self.0, f)?;
        match &self.0.kind {
            DecodeErrorKind::Truncated { needed, left } => {
                write!(f, "the input ends too early: {needed} bytes needed, {left} left")
            }
            DecodeErrorKind::Length { what, length, left } => {
                write!(f, "{what} length {length} is impossible with {left} bytes left")
            }
            DecodeErrorKind::Budget { needed, left } => {
                write!(f, "decoding needs {needed} bytes of memory, the budget has {left} left")
            }
            DecodeErrorKind::Varint => f.write_str("a varint is longer than its type"),
            DecodeErrorKind::Utf8 => f.write_str("a string is not UTF-8"),
            DecodeErrorKind::Null => f.write_str("null where this version has no null"),
            DecodeErrorKind::TagSize { tag, size, used } => {
                write!(f, "tagged field {tag} was announced with {size} bytes and has {used}")
            }
            DecodeErrorKind::Version { message, version, min, max } => {
                write!(f, "{message} v{version} is unknown: versions {min} to {max} are")
            }
            DecodeErrorKind::UnknownApi { key } => write!(f, "API key {key} is not one that we speak"),
            DecodeErrorKind::Invalid(reason) => f.write_str(reason),
        }
    }
}

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_path(&self.0, f)?;
        match &self.0.kind {
            EncodeErrorKind::Unsupported => f.write_str("the field is set, and this version does not have it"),
            EncodeErrorKind::Null => f.write_str("null where this version has no null"),
            EncodeErrorKind::TooLong { what, length, max } => {
                write!(f, "{what} length {length} is more than the {max} that the protocol can express")
            }
            EncodeErrorKind::Version { message, version, min, max } => {
                write!(f, "{message} v{version} is unknown: versions {min} to {max} are")
            }
            EncodeErrorKind::Invalid(reason) => f.write_str(reason),
        }
    }
}

impl fmt::Debug for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DecodeError({self})")
    }
}

impl fmt::Debug for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EncodeError({self})")
    }
}

impl std::error::Error for DecodeError {}
impl std::error::Error for EncodeError {}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::{HeartbeatRequest, Message, Reader, Writer};

    #[test]
    fn what_cannot_be_read_says_where_and_of_which_kind_it_is() {
        let read = |bytes: &'static [u8], budget, version| {
            HeartbeatRequest::decode(&mut Reader::with_budget(Bytes::from_static(bytes), budget), version).unwrap_err()
        };
        let kinds = |error: &DecodeError| {
            (error.message(), error.is_truncated(), error.is_over_budget(), error.is_unsupported_version())
        };

        let cut = read(&[0], 1_000, 3);
        assert_eq!(kinds(&cut), (Some("HeartbeatRequest"), true, false, false));
        assert_eq!(format!("{cut:?}"), format!("DecodeError({cut})"));
        assert_eq!(kinds(&read(&[], 1_000, 99)), (None, false, false, true));
        assert_eq!(kinds(&read(&[0, 1, 0xff], 1_000, 3)), (Some("HeartbeatRequest"), false, false, false));
        assert_eq!(kinds(&DecodeError::unspoken(999)), (None, false, false, true));
        assert!(!DecodeError::invalid("").is_over_budget());
    }

    #[test]
    fn what_cannot_be_written_says_where_and_of_which_kind_it_is() {
        let request = HeartbeatRequest { group_instance_id: Some("me".into()), ..HeartbeatRequest::default() };
        let kinds = |version| {
            let error = request.encode(&mut Writer::new(), version).unwrap_err();
            (error.message(), error.field(), error.is_unsupported_field(), error.is_unsupported_version())
        };

        assert_eq!(kinds(2), (Some("HeartbeatRequest"), Some("group_instance_id"), true, false));
        assert_eq!(kinds(99), (None, None, false, true));
        let error = EncodeError::null();
        assert_eq!(format!("{error:?}"), format!("EncodeError({error})"));
        assert!(!error.is_unsupported_field() && !error.is_unsupported_version());
    }
}
