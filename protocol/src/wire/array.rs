//! Bytes, and arrays of anything.

use bytes::Bytes;

use super::error::DecodeErrorKind;
use super::{DecodeError, EncodeError, Nullable, Reader, Wire, Writer, compact_len_size};
use crate::schema::FieldType;
use crate::value::{Elements, Value};

impl Wire for Bytes {
    const TYPE: FieldType = FieldType::Bytes;
    const EMPTY: Self = Self::new();

    #[inline]
    fn min_size(_version: i16, flexible: bool) -> usize {
        len_size(Some(0), flexible)
    }

    #[inline]
    fn is_zero(&self) -> bool {
        self.is_empty()
    }

    #[inline]
    fn hint(&self) -> usize {
        // Longer ones are spliced.
        if self.len() < Writer::SPLICE_MIN { MAX_LEN_SIZE + self.len() } else { MAX_LEN_SIZE }
    }

    #[inline]
    fn size(&self, version: i16, flexible: bool) -> Result<usize, EncodeError> {
        Self::size_nullable(Some(self), version, flexible)
    }

    #[inline]
    fn put(&self, out: &mut Writer, _version: i16, flexible: bool) -> Result<(), EncodeError> {
        out.put_len("bytes", self.len(), flexible)?;
        out.put_bytes(self);
        Ok(())
    }

    #[inline]
    fn take(input: &mut Reader, version: i16, flexible: bool) -> Result<Self, DecodeError> {
        Self::take_nullable(input, version, flexible)?.ok_or_else(DecodeError::null)
    }

    fn value(&self) -> Value<'_> {
        Value::Bytes(self)
    }
}

impl Nullable for Bytes {
    #[inline]
    fn size_nullable(value: Option<&Self>, _version: i16, flexible: bool) -> Result<usize, EncodeError> {
        let len = value.map_or(0, Self::len);
        Ok(len + len_size(value.map(Self::len), flexible))
    }

    #[inline]
    fn put_nullable(value: Option<&Self>, out: &mut Writer, version: i16, flexible: bool) -> Result<(), EncodeError> {
        match value {
            Some(bytes) => bytes.put(out, version, flexible),
            None => put_null(out, flexible),
        }
    }

    #[inline]
    fn take_nullable(input: &mut Reader, version: i16, flexible: bool) -> Result<Option<Self>, DecodeError> {
        let mut bytes = None;
        Self::fill_nullable(&mut bytes, input, version, flexible)?;
        Ok(bytes)
    }

    #[inline(always)]
    fn fill_nullable(
        place: &mut Option<Self>,
        input: &mut Reader,
        _version: i16,
        flexible: bool,
    ) -> Result<(), DecodeError> {
        fill_bytes(place, input, flexible, Reader::whole)
    }
}

/// Reads bytes or null into their place, where a handle on the whole frame becomes one on them.
///
/// Each `Result` that they would be wrapped in copies them once more, and they are as large as a partition's numbers.
#[inline(always)]
fn fill_bytes(
    place: &mut Option<Bytes>,
    input: &mut Reader,
    flexible: bool,
    whole: impl FnOnce(&Reader) -> Bytes,
) -> Result<(), DecodeError> {
    let Some(len) = input.take_len(flexible)? else {
        *place = None;
        return Ok(());
    };
    if len > input.remaining() {
        let (length, left) = (len as i64, input.remaining());
        return Err(DecodeError::new(DecodeErrorKind::Length { what: "bytes", length, left }));
    }
    input.narrow(place.insert(whole(input)), len);
    Ok(())
}

/// Reads a record set or null into its place.
///
/// `whole` is a handle on the frame that was made a while ago. A processor copies a handle that has just been made only
/// when all its parts are in the cache, which takes as long as reading the rest of a partition; so it is copied late,
/// and becomes that of the record set in its place.
///
/// # Errors
/// When the bytes are neither.
#[doc(hidden)]
#[inline(always)]
pub fn fill_records(
    place: &mut Option<Bytes>,
    whole: Bytes,
    input: &mut Reader,
    flexible: bool,
) -> Result<(), DecodeError> {
    fill_bytes(place, input, flexible, |_| whole)
}

impl<T: Wire> Wire for Vec<T> {
    const TYPE: FieldType = FieldType::Array(&T::TYPE);
    const EMPTY: Self = Self::new();

    #[inline]
    fn min_size(_version: i16, flexible: bool) -> usize {
        len_size(Some(0), flexible)
    }

    #[inline]
    fn is_zero(&self) -> bool {
        self.is_empty()
    }

    #[inline]
    fn hint(&self) -> usize {
        MAX_LEN_SIZE + self.first().map_or(0, |first| self.len().saturating_mul(first.hint()))
    }

    #[inline]
    fn size(&self, version: i16, flexible: bool) -> Result<usize, EncodeError> {
        let mut size = len_size(Some(self.len()), flexible);
        for element in self {
            size += element.size(version, flexible)?;
        }
        Ok(size)
    }

    #[inline]
    fn put(&self, out: &mut Writer, version: i16, flexible: bool) -> Result<(), EncodeError> {
        out.put_len("array", self.len(), flexible)?;
        for element in self {
            element.put(out, version, flexible)?;
        }
        Ok(())
    }

    #[inline]
    fn take(input: &mut Reader, version: i16, flexible: bool) -> Result<Self, DecodeError> {
        Self::take_nullable(input, version, flexible)?.ok_or_else(DecodeError::null)
    }

    fn value(&self) -> Value<'_> {
        Value::Array(self)
    }
}

impl<T: Wire> Nullable for Vec<T> {
    #[inline]
    fn size_nullable(value: Option<&Self>, version: i16, flexible: bool) -> Result<usize, EncodeError> {
        match value {
            Some(elements) => elements.size(version, flexible),
            None => Ok(len_size(None, flexible)),
        }
    }

    #[inline]
    fn put_nullable(value: Option<&Self>, out: &mut Writer, version: i16, flexible: bool) -> Result<(), EncodeError> {
        match value {
            Some(elements) => elements.put(out, version, flexible),
            None => put_null(out, flexible),
        }
    }

    #[inline]
    fn take_nullable(input: &mut Reader, version: i16, flexible: bool) -> Result<Option<Self>, DecodeError> {
        let Some(count) = input.take_len(flexible)? else { return Ok(None) };
        if count == 0 {
            return Ok(Some(Self::new()));
        }
        input.admit(count, T::min_size(version, flexible), size_of::<T>())?;
        T::take_elements(count, input, version, flexible).map(Some)
    }
}

impl<T: Wire> Elements for Vec<T> {
    fn count(&self) -> usize {
        self.len()
    }

    fn element(&self, index: usize) -> Option<Value<'_>> {
        self.get(index).map(Wire::value)
    }
}

/// The most bytes that a length takes.
const MAX_LEN_SIZE: usize = 5;

/// The number of bytes of the length of bytes or of an array.
#[inline]
pub(super) fn len_size(len: Option<usize>, flexible: bool) -> usize {
    match (flexible, len) {
        (true, Some(len)) => compact_len_size(len),
        (true, None) => 1,
        (false, _) => 4,
    }
}

/// Writes the length that stands for null.
#[inline]
fn put_null(out: &mut Writer, flexible: bool) -> Result<(), EncodeError> {
    if flexible {
        out.put_u8(0);
    } else {
        out.put_slice(&(-1i32).to_be_bytes());
    }
    Ok(())
}
