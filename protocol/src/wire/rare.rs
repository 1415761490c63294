//! A structure that is nearly always at its default, and takes little room while it is.

use std::fmt;
use std::ops::{Deref, DerefMut};

use super::{DecodeError, EncodeError, Reader, Wire, Writer};
use crate::Message;
use crate::schema::FieldType;
use crate::value::Value;

/// A structure that is on the heap when it differs from its default, and nowhere when it does not.
///
/// It is used as the structure itself would be: read through it, assign to its fields, or make one `from` a structure.
/// A message with thousands of elements, each with such a field, is the smaller and the faster for it.
///
/// ```
/// use krafka_protocol::api::fetch::{EpochEndOffset, PartitionData};
///
/// let mut partition = PartitionData::default();
/// assert_eq!(partition.diverging_epoch.epoch, -1);
///
/// partition.diverging_epoch = EpochEndOffset { epoch: 3, end_offset: 40 }.into();
/// partition.diverging_epoch.end_offset += 1;
/// assert_eq!(partition.diverging_epoch.end_offset, 41);
/// ```
#[derive(Clone)]
pub struct Rare<M>(Option<Box<M>>);

/// A structure that a [`Rare`] can stand for: one whose default can be referred to.
pub trait RarelySet: Message + 'static {
    /// The default.
    const UNSET: &'static Self;
}

impl<M: RarelySet> Deref for Rare<M> {
    type Target = M;

    #[inline]
    fn deref(&self) -> &M {
        self.0.as_deref().unwrap_or(M::UNSET)
    }
}

impl<M: RarelySet> DerefMut for Rare<M> {
    #[inline]
    fn deref_mut(&mut self) -> &mut M {
        self.0.get_or_insert_with(|| Box::new(M::DEFAULT))
    }
}

impl<M> Default for Rare<M> {
    #[inline]
    fn default() -> Self {
        Self(None)
    }
}

impl<M: RarelySet> From<M> for Rare<M> {
    fn from(structure: M) -> Self {
        Self((structure != M::DEFAULT).then(|| Box::new(structure)))
    }
}

impl<M: RarelySet> PartialEq for Rare<M> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<M: RarelySet> fmt::Debug for Rare<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<M: RarelySet> Wire for Rare<M> {
    const TYPE: FieldType = FieldType::Struct(M::SCHEMA);
    const EMPTY: Self = Self(None);

    #[inline]
    fn min_size(version: i16, _flexible: bool) -> usize {
        M::min_size(version)
    }

    #[inline]
    fn is_zero(&self) -> bool {
        self.0.as_ref().is_none_or(|structure| **structure == M::DEFAULT)
    }

    #[inline]
    fn hint(&self) -> usize {
        Message::hint(&**self)
    }

    #[inline]
    fn size(&self, version: i16, _flexible: bool) -> Result<usize, EncodeError> {
        Message::size(&**self, version)
    }

    #[inline]
    fn put(&self, out: &mut Writer, version: i16, _flexible: bool) -> Result<(), EncodeError> {
        self.encode(out, version)
    }

    #[inline]
    fn take(input: &mut Reader, version: i16, _flexible: bool) -> Result<Self, DecodeError> {
        input.charge(size_of::<M>())?;
        M::decode(input, version).map(Self::from)
    }

    fn value(&self) -> Value<'_> {
        Value::Struct(&**self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::fetch::EpochEndOffset;

    #[test]
    fn what_is_at_its_default_takes_no_memory() {
        assert!(Rare::from(EpochEndOffset::default()).0.is_none());
        assert!(Rare::from(EpochEndOffset { epoch: 0, ..EpochEndOffset::default() }).0.is_some());
        assert_eq!(size_of::<Rare<EpochEndOffset>>(), size_of::<usize>());
    }

    #[test]
    fn what_was_set_to_its_default_equals_what_nobody_set() {
        let mut touched = Rare::from(EpochEndOffset { epoch: 3, ..EpochEndOffset::default() });
        touched.epoch = -1;

        assert_eq!(touched, Rare::default());
        assert!(touched.is_zero());
        assert_eq!(format!("{touched:?}"), format!("{:?}", EpochEndOffset::default()));
    }
}
