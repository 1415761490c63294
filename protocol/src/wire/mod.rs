//! How single values look on the wire.
//!
//! [`Wire`] is what a field's type must know, [`Nullable`] what it must know besides when null is one of its values.
//! The derive writes one call of these per field, and everything is resolved at compile time.
//!
//! Kafka has two encodings for lengths. The old one counts strings with an `i16` and arrays and bytes with an `i32`,
//! where a negative length is null. The *flexible* one counts all of them with an unsigned varint of the length plus
//! one, where zero is null, and ends each structure with its tagged fields.

mod array;
mod array_len;
mod error;
mod node_ids;
mod rare;
mod reader;
mod scalar;
mod string;
mod structure;
mod try_encode;
mod unknown_tags;
mod uuid;
mod writer;

pub use array::fill_records;
pub use array_len::check_decode_array_len;
pub use error::{DecodeError, EncodeError};
pub use node_ids::NodeIds;
pub use rare::{Rare, RarelySet};
pub use reader::{OpenTag, OpenTags, Reader};
pub use string::Str;
pub use structure::{
    fill_option, put_option, put_tagged_structure, size_option, size_tagged_structure, take_option,
    take_tagged_structure,
};
pub use try_encode::TryEncode;
pub use unknown_tags::UnknownTags;
pub use uuid::{ParseUuidError, Uuid};
pub use writer::{Writer, WrittenTags};

pub(crate) use writer::Splice;

use crate::schema::FieldType;
use crate::value::Value;

/// A value that is a field, or an element of one.
///
/// Implemented for the types that fields may have, and for every [`Message`](crate::Message). `flexible` says which of
/// the two encodings the structure around the value uses at this version.
pub trait Wire: Sized + Default {
    /// The type in the words of Kafka's schemas.
    const TYPE: FieldType;
    /// What a field is that nobody set, if its schema does not say otherwise. A constant is copied in a few
    /// instructions; what a function makes of parts goes by the stack, where the copy has to wait for them.
    const EMPTY: Self;

    /// Whether this is what a schema without an explicit default means: zero, false, or empty.
    fn is_zero(&self) -> bool;
    /// The fewest bytes that any value takes: what bounds the length of an array before it is read.
    fn min_size(version: i16, flexible: bool) -> usize;
    /// About how many bytes [`put`](Wire::put) writes into the buffer, found in no time: of an array's elements only
    /// the first is looked at. A buffer that has the room beforehand need not grow.
    #[inline]
    fn hint(&self) -> usize {
        size_of::<Self>()
    }
    /// The number of bytes that [`put`](Wire::put) writes.
    ///
    /// # Errors
    /// When the value cannot be written at this version.
    fn size(&self, version: i16, flexible: bool) -> Result<usize, EncodeError>;
    /// Writes the value.
    ///
    /// # Errors
    /// When the value cannot be written at this version.
    fn put(&self, out: &mut Writer, version: i16, flexible: bool) -> Result<(), EncodeError>;
    /// Reads a value.
    ///
    /// # Errors
    /// When the bytes are no such value.
    fn take(input: &mut Reader, version: i16, flexible: bool) -> Result<Self, DecodeError>;
    /// Reads a value into one that is at its default, which saves moving a large one.
    ///
    /// # Errors
    /// When the bytes are no such value.
    #[inline]
    fn fill(&mut self, input: &mut Reader, version: i16, flexible: bool) -> Result<(), DecodeError> {
        *self = Self::take(input, version, flexible)?;
        Ok(())
    }
    /// Reads the elements of an array whose length has been believed.
    ///
    /// # Errors
    /// When the bytes are no such values.
    #[inline]
    fn take_elements(count: usize, input: &mut Reader, version: i16, flexible: bool) -> Result<Vec<Self>, DecodeError> {
        let mut elements = Vec::with_capacity(count);
        for _ in 0..count {
            elements.push(Self::take(input, version, flexible)?);
        }
        Ok(elements)
    }
    /// The value, for code that does not know the type.
    fn value(&self) -> Value<'_>;
}

/// A value in whose place there may be null.
pub trait Nullable: Wire {
    /// The number of bytes that [`put_nullable`](Nullable::put_nullable) writes.
    ///
    /// # Errors
    /// When the value cannot be written at this version.
    fn size_nullable(value: Option<&Self>, version: i16, flexible: bool) -> Result<usize, EncodeError>;
    /// Writes the value or null.
    ///
    /// # Errors
    /// When the value cannot be written at this version.
    fn put_nullable(value: Option<&Self>, out: &mut Writer, version: i16, flexible: bool) -> Result<(), EncodeError>;
    /// Reads a value or null.
    ///
    /// # Errors
    /// When the bytes are neither.
    fn take_nullable(input: &mut Reader, version: i16, flexible: bool) -> Result<Option<Self>, DecodeError>;
    /// Reads a value or null into its place.
    ///
    /// # Errors
    /// When the bytes are neither.
    #[inline]
    fn fill_nullable(
        place: &mut Option<Self>,
        input: &mut Reader,
        version: i16,
        flexible: bool,
    ) -> Result<(), DecodeError> {
        *place = Self::take_nullable(input, version, flexible)?;
        Ok(())
    }
}

/// A value that always takes the same number of bytes, so that neighbours can be read and written at once.
#[doc(hidden)]
pub trait Fixed: Wire + Copy {
    /// Writes the value over bytes that are as many as it takes.
    fn store(self, bytes: &mut [u8]);
    /// Reads the value from as many bytes as it takes.
    fn load(bytes: &[u8]) -> Self;
}

/// The number of bytes of an unsigned varint.
#[inline]
pub const fn varint_size(value: u32) -> usize {
    // Seven bits to a byte, and one byte for zero.
    ((38 - (value | 1).leading_zeros()) / 7) as usize
}

/// The number of bytes of a length prefix in the flexible encoding.
#[inline]
pub(crate) const fn compact_len_size(len: usize) -> usize {
    if len >= u32::MAX as usize { 5 } else { varint_size(len as u32 + 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varint_size_steps_every_seven_bits() {
        let sizes =
            [0, 1, 127, 128, 16_383, 16_384, (1 << 21) - 1, 1 << 21, (1 << 28) - 1, 1 << 28, u32::MAX].map(varint_size);

        assert_eq!(sizes, [1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
    }

    #[test]
    fn every_type_knows_the_least_that_it_takes() {
        let sizes = |flexible| {
            [
                bool::min_size(0, flexible),
                i8::min_size(0, flexible),
                u16::min_size(0, flexible),
                i32::min_size(0, flexible),
                f64::min_size(0, flexible),
                Uuid::min_size(0, flexible),
                Str::min_size(0, flexible),
                bytes::Bytes::min_size(0, flexible),
                Vec::<i64>::min_size(0, flexible),
                NodeIds::min_size(0, flexible),
            ]
        };

        assert_eq!(sizes(false), [1, 1, 2, 4, 8, 16, 2, 4, 4, 4]);
        assert_eq!(sizes(true), [1, 1, 2, 4, 8, 16, 1, 1, 1, 1]);
    }

    /// A tagged field without a default of its own is not written if it is this.
    #[test]
    fn every_type_knows_what_nobody_set() {
        fn knows<T: Wire>(set: T) -> bool {
            T::default().is_zero() && !set.is_zero()
        }

        assert!(knows(true) && knows(1i8) && knows(1i16) && knows(1u16) && knows(-1i32) && knows(1u32) && knows(1i64));
        assert!(knows(0.5) && knows(Uuid([1; 16])) && knows(Str::from("x")) && knows(vec![0i32]));
        assert!(knows(bytes::Bytes::from_static(b"x")) && knows(NodeIds::from([0])));
    }
}
