//! Numbers and booleans: big-endian, of fixed size, never null.

use super::{DecodeError, EncodeError, Reader, Uuid, Wire, Writer};
use crate::schema::FieldType;

macro_rules! numbers {
    ($($number:ty => $kafka:ident),* $(,)?) => {$(
        impl Wire for $number {
            const TYPE: FieldType = FieldType::$kafka;
            const MIN_SIZE: usize = size_of::<$number>();

            #[inline]
            fn is_zero(&self) -> bool {
                *self == Self::default()
            }

            #[inline]
            fn size(&self, _version: i16, _flexible: bool) -> Result<usize, EncodeError> {
                Ok(Self::MIN_SIZE)
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
        }
    )*};
}

numbers! {
    i8 => Int8,
    i16 => Int16,
    u16 => Uint16,
    i32 => Int32,
    u32 => Uint32,
    i64 => Int64,
    f64 => Float64,
}

impl Wire for bool {
    const TYPE: FieldType = FieldType::Bool;
    const MIN_SIZE: usize = 1;

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
}

impl Wire for Uuid {
    const TYPE: FieldType = FieldType::Uuid;
    const MIN_SIZE: usize = 16;

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
}
