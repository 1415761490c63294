//! Structures inside messages, and the rules for a field that the derive would otherwise repeat.

use super::{DecodeError, EncodeError, Nullable, Reader, Wire, Writer};
use crate::Message;
use crate::schema::FieldType;
use crate::value::Value;

impl<M: Message> Wire for M {
    const TYPE: FieldType = FieldType::Struct(M::SCHEMA);
    const EMPTY: Self = M::DEFAULT;

    #[inline]
    fn min_size(version: i16, _flexible: bool) -> usize {
        M::min_size(version)
    }

    #[inline]
    fn is_zero(&self) -> bool {
        *self == Self::DEFAULT
    }

    #[inline]
    fn hint(&self) -> usize {
        Message::hint(self)
    }

    #[inline]
    fn size(&self, version: i16, _flexible: bool) -> Result<usize, EncodeError> {
        Message::size(self, version)
    }

    #[inline]
    fn put(&self, out: &mut Writer, version: i16, _flexible: bool) -> Result<(), EncodeError> {
        self.encode(out, version)
    }

    #[inline]
    fn take(input: &mut Reader, version: i16, _flexible: bool) -> Result<Self, DecodeError> {
        Self::decode(input, version)
    }

    #[inline]
    fn fill(&mut self, input: &mut Reader, version: i16, _flexible: bool) -> Result<(), DecodeError> {
        Message::fill(self, input, version)
    }

    #[inline]
    fn take_elements(
        count: usize,
        input: &mut Reader,
        version: i16,
        _flexible: bool,
    ) -> Result<Vec<Self>, DecodeError> {
        // Without the exact capacity a vector of one would have room for four, and the budget knows only of one.
        let mut elements = Vec::with_capacity(count);
        elements.resize_with(count, || Self::DEFAULT);
        for element in &mut elements {
            Message::fill(element, input, version)?;
        }
        Ok(elements)
    }

    fn value(&self) -> Value<'_> {
        Value::Struct(self)
    }
}

impl<M: Message> Nullable for M {
    #[inline]
    fn size_nullable(value: Option<&Self>, version: i16, _flexible: bool) -> Result<usize, EncodeError> {
        Ok(1 + value.map_or(Ok(0), |structure| Message::size(structure, version))?)
    }

    #[inline]
    fn put_nullable(value: Option<&Self>, out: &mut Writer, version: i16, _flexible: bool) -> Result<(), EncodeError> {
        match value {
            Some(structure) => {
                out.put_u8(1);
                structure.encode(out, version)
            }
            None => {
                out.put_slice(&(-1i8).to_be_bytes());
                Ok(())
            }
        }
    }

    #[inline]
    fn take_nullable(input: &mut Reader, version: i16, _flexible: bool) -> Result<Option<Self>, DecodeError> {
        let [present] = input.take_array()?;
        if i8::from_be_bytes([present]) < 0 { Ok(None) } else { Self::decode(input, version).map(Some) }
    }
}

/// The size of a field that is an `Option`, at a version that knows null or not.
#[doc(hidden)]
#[inline]
pub fn size_option<T: Nullable>(
    value: &Option<T>,
    version: i16,
    flexible: bool,
    nullable: bool,
) -> Result<usize, EncodeError> {
    match value {
        _ if nullable => T::size_nullable(value.as_ref(), version, flexible),
        Some(value) => value.size(version, flexible),
        None => Err(EncodeError::null()),
    }
}

/// Writes a field that is an `Option`, at a version that knows null or not.
#[doc(hidden)]
#[inline]
pub fn put_option<T: Nullable>(
    value: &Option<T>,
    out: &mut Writer,
    version: i16,
    flexible: bool,
    nullable: bool,
) -> Result<(), EncodeError> {
    match value {
        _ if nullable => T::put_nullable(value.as_ref(), out, version, flexible),
        Some(value) => value.put(out, version, flexible),
        None => Err(EncodeError::null()),
    }
}

/// Reads a field that is an `Option`, at a version that knows null or not.
#[doc(hidden)]
#[inline]
pub fn take_option<T: Nullable>(
    input: &mut Reader,
    version: i16,
    flexible: bool,
    nullable: bool,
) -> Result<Option<T>, DecodeError> {
    if nullable { T::take_nullable(input, version, flexible) } else { T::take(input, version, flexible).map(Some) }
}

/// Reads a field that is an `Option` into its place, at a version that knows null or not.
#[doc(hidden)]
#[inline(always)]
pub fn fill_option<T: Nullable>(
    place: &mut Option<T>,
    input: &mut Reader,
    version: i16,
    flexible: bool,
    nullable: bool,
) -> Result<(), DecodeError> {
    if nullable {
        T::fill_nullable(place, input, version, flexible)
    } else {
        *place = Some(T::take(input, version, flexible)?);
        Ok(())
    }
}

/// The size of a tagged field that is a structure or null: then, unlike elsewhere, a varint says whether it is there.
#[doc(hidden)]
#[inline]
pub fn size_tagged_structure<M: Message>(value: &Option<M>, version: i16) -> Result<usize, EncodeError> {
    Ok(1 + value.as_ref().map_or(Ok(0), |structure| Message::size(structure, version))?)
}

/// Writes a tagged field that is a structure or null.
#[doc(hidden)]
#[inline]
pub fn put_tagged_structure<M: Message>(value: &Option<M>, out: &mut Writer, version: i16) -> Result<(), EncodeError> {
    out.put_varint(u32::from(value.is_some()));
    value.as_ref().map_or(Ok(()), |structure| structure.encode(out, version))
}

/// Reads a tagged field that is a structure or null.
#[doc(hidden)]
#[inline]
pub fn take_tagged_structure<M: Message>(input: &mut Reader, version: i16) -> Result<Option<M>, DecodeError> {
    if input.take_varint()? == 0 { Ok(None) } else { M::decode(input, version).map(Some) }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::HeartbeatResponse;

    const ANSWER: HeartbeatResponse = HeartbeatResponse { throttle_time_ms: 0x0102_0304, error_code: 7 };

    /// Java writes 1, and takes every number that is not negative for a structure.
    #[test]
    fn only_a_negative_byte_is_null() {
        let take = |first: u8| {
            let mut input = Reader::new(Bytes::copy_from_slice(&[first, 1, 2, 3, 4, 0, 7]));
            HeartbeatResponse::take_nullable(&mut input, 3, false).unwrap()
        };

        assert_eq!([0, 1, 0x7f].map(take), [Some(ANSWER), Some(ANSWER), Some(ANSWER)]);
        assert_eq!([0x80, 0xff].map(take), [None, None]);
    }

    #[test]
    fn a_tagged_structure_begins_with_whether_it_is_there() {
        for (value, expected) in [(None, &[0][..]), (Some(ANSWER), &[1, 1, 2, 3, 4, 0, 7])] {
            let mut out = Writer::new();
            put_tagged_structure(&value, &mut out, 3).unwrap();
            let bytes = out.into_bytes();

            assert_eq!(bytes, expected);
            assert_eq!(size_tagged_structure(&value, 3), Ok(bytes.len()));
            assert_eq!(take_tagged_structure(&mut Reader::new(bytes), 3), Ok(value));
        }
    }
}
