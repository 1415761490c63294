//! Structures inside messages, and the rules for a field that the derive would otherwise repeat.

use super::{DecodeError, EncodeError, Nullable, Reader, Wire, Writer};
use crate::Message;
use crate::schema::FieldType;
use crate::value::Value;

impl<M: Message> Wire for M {
    const TYPE: FieldType = FieldType::Struct(M::SCHEMA);
    const MIN_SIZE: usize = M::MIN_SIZE;

    #[inline]
    fn is_zero(&self) -> bool {
        *self == Self::default()
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

/// The bytes of a field that is an `Option`, at a version that knows null or not.
#[doc(hidden)]
#[inline]
pub fn size_option<T: Nullable>(
    value: &Option<T>,
    version: i16,
    flexible: bool,
    nullable: bool,
    null_is_default: bool,
) -> Result<usize, EncodeError> {
    match value {
        _ if nullable => T::size_nullable(value.as_ref(), version, flexible),
        Some(value) => value.size(version, flexible),
        None if null_is_default => T::default().size(version, flexible),
        None => Err(EncodeError::null()),
    }
}

/// Writes a field that is an `Option`, at a version that knows null or not.
///
/// A field that was never set and whose default is null is written empty where there is no null.
#[doc(hidden)]
#[inline]
pub fn put_option<T: Nullable>(
    value: &Option<T>,
    out: &mut Writer,
    version: i16,
    flexible: bool,
    nullable: bool,
    null_is_default: bool,
) -> Result<(), EncodeError> {
    match value {
        _ if nullable => T::put_nullable(value.as_ref(), out, version, flexible),
        Some(value) => value.put(out, version, flexible),
        None if null_is_default => T::default().put(out, version, flexible),
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

/// [`size_option`] for a structure that is a tagged field.
#[doc(hidden)]
#[inline]
pub fn size_tagged_option<M: Message>(
    value: &Option<M>,
    version: i16,
    flexible: bool,
    nullable: bool,
    null_is_default: bool,
) -> Result<usize, EncodeError> {
    // A varint of zero or one takes as many bytes as the other prefix.
    size_option(value, version, flexible, nullable, null_is_default)
}

/// [`put_option`] for a structure that is a tagged field: its presence is a varint, zero or one.
#[doc(hidden)]
#[inline]
pub fn put_tagged_option<M: Message>(
    value: &Option<M>,
    out: &mut Writer,
    version: i16,
    flexible: bool,
    nullable: bool,
    null_is_default: bool,
) -> Result<(), EncodeError> {
    if nullable {
        out.put_varint(u32::from(value.is_some()));
        return value.as_ref().map_or(Ok(()), |structure| structure.encode(out, version));
    }
    put_option(value, out, version, flexible, nullable, null_is_default)
}

/// [`take_option`] for a structure that is a tagged field: its presence is a varint, zero or one.
#[doc(hidden)]
#[inline]
pub fn take_tagged_option<M: Message>(
    input: &mut Reader,
    version: i16,
    flexible: bool,
    nullable: bool,
) -> Result<Option<M>, DecodeError> {
    if nullable {
        return if input.take_varint()? == 0 { Ok(None) } else { M::decode(input, version).map(Some) };
    }
    take_option(input, version, flexible, nullable)
}
