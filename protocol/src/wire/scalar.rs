//! Numbers and booleans: big-endian, of fixed size, never null.

use super::{DecodeError, EncodeError, Fixed, Reader, Uuid, Wire, Writer};
use crate::schema::FieldType;
use crate::value::Value;

macro_rules! numbers {
    ($($number:ty => $kafka:ident as $value:ident),* $(,)?) => {$(
        impl Wire for $number {
            const TYPE: FieldType = FieldType::$kafka;
            const EMPTY: Self = 0 as Self;

            #[inline]
            fn min_size(_version: i16, _flexible: bool) -> usize {
                size_of::<$number>()
            }

            #[inline]
            fn is_zero(&self) -> bool {
                *self == Self::default()
            }

            #[inline]
            fn size(&self, _version: i16, _flexible: bool) -> Result<usize, EncodeError> {
                Ok(size_of::<$number>())
            }

            #[inline]
            fn put(&self, out: &mut Writer, _version: i16, _flexible: bool) -> Result<(), EncodeError> {
                out.put_slice(&self.to_be_bytes());
                Ok(())
            }

            #[inline]
            fn take(input: &mut Reader, _version: i16, _flexible: bool) -> Result<Self, DecodeError> {
                Ok(Self::from_be_bytes(input.take_array()?))
            }

            #[inline]
            fn take_elements(
                count: usize,
                input: &mut Reader,
                _version: i16,
                _flexible: bool,
            ) -> Result<Vec<Self>, DecodeError> {
                input.take_chunks(count, |chunks| chunks.iter().copied().map(Self::from_be_bytes).collect())
            }

            fn value(&self) -> Value<'_> {
                Value::$value((*self).into())
            }
        }

        impl Fixed for $number {
            #[inline]
            fn store(self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_be_bytes());
            }

            #[inline]
            fn load(bytes: &[u8]) -> Self {
                let mut array = [0; size_of::<$number>()];
                array.copy_from_slice(bytes);
                Self::from_be_bytes(array)
            }
        }
    )*};
}

numbers! {
    i8 => Int8 as Int,
    i16 => Int16 as Int,
    u16 => Uint16 as Int,
    i32 => Int32 as Int,
    u32 => Uint32 as Int,
    i64 => Int64 as Int,
    f64 => Float64 as Float,
}

impl Wire for bool {
    const TYPE: FieldType = FieldType::Bool;
    const EMPTY: Self = false;

    #[inline]
    fn min_size(_version: i16, _flexible: bool) -> usize {
        1
    }

    #[inline]
    fn is_zero(&self) -> bool {
        !*self
    }

    #[inline]
    fn size(&self, _version: i16, _flexible: bool) -> Result<usize, EncodeError> {
        Ok(1)
    }

    #[inline]
    fn put(&self, out: &mut Writer, _version: i16, _flexible: bool) -> Result<(), EncodeError> {
        out.put_u8(u8::from(*self));
        Ok(())
    }

    #[inline]
    fn take(input: &mut Reader, _version: i16, _flexible: bool) -> Result<Self, DecodeError> {
        // Java takes every byte but zero for true.
        let [byte] = input.take_array()?;
        Ok(byte != 0)
    }

    fn value(&self) -> Value<'_> {
        Value::Bool(*self)
    }
}

impl Fixed for bool {
    #[inline]
    fn store(self, bytes: &mut [u8]) {
        bytes.copy_from_slice(&[u8::from(self)]);
    }

    #[inline]
    fn load(bytes: &[u8]) -> Self {
        bytes != [0]
    }
}

impl Wire for Uuid {
    const TYPE: FieldType = FieldType::Uuid;
    const EMPTY: Self = Self::ZERO;

    #[inline]
    fn min_size(_version: i16, _flexible: bool) -> usize {
        16
    }

    #[inline]
    fn is_zero(&self) -> bool {
        Self::is_zero(self)
    }

    #[inline]
    fn size(&self, _version: i16, _flexible: bool) -> Result<usize, EncodeError> {
        Ok(16)
    }

    #[inline]
    fn put(&self, out: &mut Writer, _version: i16, _flexible: bool) -> Result<(), EncodeError> {
        out.put_slice(&self.0);
        Ok(())
    }

    #[inline]
    fn take(input: &mut Reader, _version: i16, _flexible: bool) -> Result<Self, DecodeError> {
        Ok(Self(input.take_array()?))
    }

    fn value(&self) -> Value<'_> {
        Value::Uuid(*self)
    }
}

impl Fixed for Uuid {
    #[inline]
    fn store(self, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.0);
    }

    #[inline]
    fn load(bytes: &[u8]) -> Self {
        let mut id = Self::ZERO;
        id.0.copy_from_slice(bytes);
        id
    }
}
