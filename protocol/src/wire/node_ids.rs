//! The ids of a few brokers, kept without an allocation.

use std::fmt;
use std::ops::Deref;

use super::array::len_size;
use super::{DecodeError, EncodeError, Reader, Wire, Writer};
use crate::schema::FieldType;
use crate::value::{Elements, Value};

/// The ids of brokers, as the metadata lists them three times for each partition: the replicas, those in sync, and
/// those that are offline.
///
/// Up to five are kept in place. In a `Vec` each list would be an allocation, and a cluster with 100,000 partitions has
/// 300,000 of them.
#[derive(Clone)]
pub struct NodeIds(Repr);

/// How many ids take no more room than a `Vec` would.
const INLINE: usize = 5;
/// The size of an id.
const ID: usize = size_of::<i32>();

#[derive(Clone)]
enum Repr {
    Inline { len: u8, ids: [i32; INLINE] },
    Heap(Box<[i32]>),
}

impl NodeIds {
    /// No ids.
    pub const fn new() -> Self {
        Self(Repr::Inline { len: 0, ids: [0; INLINE] })
    }

    /// The ids.
    #[inline]
    pub fn as_slice(&self) -> &[i32] {
        match &self.0 {
            Repr::Inline { len, ids } => &ids[..usize::from(*len)],
            Repr::Heap(ids) => ids,
        }
    }
}

impl NodeIds {
    /// Writes what is hardly ever written: more than five, or the encoding of old versions.
    #[inline(never)]
    fn put_one_by_one(&self, out: &mut Writer, flexible: bool) -> Result<(), EncodeError> {
        out.put_len("array", self.len(), flexible)?;
        for id in self {
            out.put_slice(&id.to_be_bytes());
        }
        Ok(())
    }

    /// Reads what is hardly ever read: more than five, or the last bytes of a frame.
    #[inline(never)]
    fn take_one_by_one(count: usize, input: &mut Reader) -> Result<Self, DecodeError> {
        // Up to five cost no memory but that of the structure around them, which has been charged.
        let memory = if count > INLINE { ID } else { 0 };
        input.admit(count, ID, memory)?;
        input.take_chunks(count, |chunks| chunks.iter().copied().map(i32::from_be_bytes).collect())
    }
}

impl Default for NodeIds {
    fn default() -> Self {
        Self::new()
    }
}

impl Deref for NodeIds {
    type Target = [i32];

    #[inline]
    fn deref(&self) -> &[i32] {
        self.as_slice()
    }
}

impl FromIterator<i32> for NodeIds {
    fn from_iter<I: IntoIterator<Item = i32>>(ids: I) -> Self {
        let mut rest = ids.into_iter();
        let (mut ids, mut len) = ([0; INLINE], 0);
        while let Some(id) = rest.next() {
            if len == INLINE {
                return Self(Repr::Heap(ids.into_iter().chain([id]).chain(rest).collect()));
            }
            ids[len] = id;
            len += 1;
        }
        Self(Repr::Inline { len: len as u8, ids })
    }
}

impl From<&[i32]> for NodeIds {
    fn from(ids: &[i32]) -> Self {
        ids.iter().copied().collect()
    }
}

impl From<Vec<i32>> for NodeIds {
    fn from(ids: Vec<i32>) -> Self {
        ids.as_slice().into()
    }
}

impl<const N: usize> From<[i32; N]> for NodeIds {
    fn from(ids: [i32; N]) -> Self {
        ids.as_slice().into()
    }
}

impl<'a> IntoIterator for &'a NodeIds {
    type Item = &'a i32;
    type IntoIter = std::slice::Iter<'a, i32>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl PartialEq for NodeIds {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for NodeIds {}

impl<const N: usize> PartialEq<[i32; N]> for NodeIds {
    fn eq(&self, other: &[i32; N]) -> bool {
        self.as_slice() == other
    }
}

impl PartialEq<Vec<i32>> for NodeIds {
    fn eq(&self, other: &Vec<i32>) -> bool {
        self.as_slice() == other
    }
}

impl fmt::Debug for NodeIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_slice(), f)
    }
}

impl Elements for NodeIds {
    fn count(&self) -> usize {
        self.len()
    }

    fn element(&self, index: usize) -> Option<Value<'_>> {
        self.get(index).map(Wire::value)
    }
}

impl Wire for NodeIds {
    const TYPE: FieldType = FieldType::Array(&FieldType::Int32);
    const EMPTY: Self = Self::new();

    fn min_size(version: i16, flexible: bool) -> usize {
        Vec::<i32>::min_size(version, flexible)
    }

    #[inline]
    fn is_zero(&self) -> bool {
        self.is_empty()
    }

    #[inline]
    fn size(&self, _version: i16, flexible: bool) -> Result<usize, EncodeError> {
        Ok(len_size(Some(self.len()), flexible) + size_of_val(self.as_slice()))
    }

    #[inline(always)]
    fn put(&self, out: &mut Writer, _version: i16, flexible: bool) -> Result<(), EncodeError> {
        match &self.0 {
            // The length and all five at once take less time than some of them one by one.
            Repr::Inline { len, ids } if flexible => {
                let mut bytes = [0; 1 + INLINE * ID];
                bytes[0] = len + 1;
                for (place, id) in bytes[1..].as_chunks_mut().0.iter_mut().zip(ids) {
                    *place = id.to_be_bytes();
                }
                // The end of what is written is what the next write waits for: where it is a number that the compiler
                // knows, as with no replica offline and three in sync, it is there the sooner.
                match len {
                    0 => out.put_u8(1),
                    3 => out.put_slice(&bytes[..1 + 3 * ID]),
                    _ => out.put_first(1 + ID * usize::from(*len), bytes),
                }
                Ok(())
            }
            _ => self.put_one_by_one(out, flexible),
        }
    }

    #[inline]
    fn take(input: &mut Reader, version: i16, flexible: bool) -> Result<Self, DecodeError> {
        let mut ids = Self::new();
        ids.fill(input, version, flexible)?;
        Ok(ids)
    }

    #[inline(always)]
    fn fill(&mut self, input: &mut Reader, _version: i16, flexible: bool) -> Result<(), DecodeError> {
        let count = input.take_len(flexible)?.ok_or_else(DecodeError::null)?;
        if count <= INLINE
            && let Some(bytes) = input.peek_array::<{ INLINE * ID }>()
            && let Repr::Inline { len, ids } = &mut self.0
        {
            // As with writing: all five at once, whatever those behind the last one may be.
            *len = count as u8;
            for (id, &bytes) in ids.iter_mut().zip(bytes.as_chunks().0) {
                *id = i32::from_be_bytes(bytes);
            }
            return input.skip(ID * count);
        }
        *self = Self::take_one_by_one(count, input)?;
        Ok(())
    }

    fn value(&self) -> Value<'_> {
        Value::Array(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_takes_no_more_room_than_a_vec() {
        assert_eq!(size_of::<NodeIds>(), size_of::<Vec<i32>>());
    }

    #[test]
    fn any_number_of_ids_is_kept_and_comes_back() {
        for count in 0..12 {
            let ids: Vec<i32> = (7..7 + count).collect();

            let list = NodeIds::from(ids.clone());
            assert_eq!(list, ids);
            assert_eq!(list, ids.iter().copied().collect::<NodeIds>());
            for flexible in [false, true] {
                let mut out = Writer::new();
                list.put(&mut out, 0, flexible).unwrap();
                assert_eq!(out.len(), list.size(0, flexible).unwrap());

                let mut as_vec = Writer::new();
                ids.put(&mut as_vec, 0, flexible).unwrap();
                let bytes = out.into_bytes();
                assert_eq!(bytes, as_vec.into_bytes());
                assert_eq!(NodeIds::take(&mut Reader::new(bytes), 0, flexible).unwrap(), list);
            }
        }
    }

    #[test]
    fn a_length_beyond_the_input_or_null_is_an_error() {
        for bytes in [[0x7f, 0xff, 0xff, 0xff], [0, 0, 0, 1], [0xff, 0xff, 0xff, 0xff]] {
            let input = bytes::Bytes::copy_from_slice(&bytes);
            assert!(NodeIds::take(&mut Reader::new(input), 0, false).is_err(), "{bytes:?}");
        }
    }

    /// Five have room in the structure around them, and only more cost memory of their own.
    #[test]
    fn more_than_five_are_charged() {
        let take = |count: u8, budget| {
            let bytes = [&[0, 0, 0, count][..], &vec![7; ID * usize::from(count)]].concat();
            NodeIds::take(&mut Reader::with_budget(bytes.into(), budget), 0, false)
        };

        assert!(take(5, 5).is_ok());
        assert!(take(6, 23).unwrap_err().is_over_budget());
        assert!(take(6, 24).is_ok());
    }

    #[test]
    fn a_list_is_compared_and_shown_as_a_slice() {
        let (ids, same, other) = (NodeIds::from([1, 2, 3]), NodeIds::from(vec![1, 2, 3]), NodeIds::from([1, 2, 4]));

        assert_eq!((ids == same, ids == other), (true, false));
        assert_eq!((ids == [1, 2, 3], ids == [3, 2, 1]), (true, false));
        assert_eq!((ids == vec![1, 2, 3], ids == vec![1, 2]), (true, false));
        assert_eq!(format!("{ids:?}"), "[1, 2, 3]");
    }
}
