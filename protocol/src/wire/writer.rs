//! Writes values into a frame, and leaves large ones where they are.
//!
//! Everything small goes into one buffer. A large `Bytes` (a record batch) is only noted with its place, and the frame
//! becomes a chain of chunks in the end: no record is copied on its way to the socket.

use bytes::Bytes;

use super::error::EncodeError;
use super::unknown_tags::{Restorer, UnknownTags};

/// A frame being written.
#[derive(Debug, Default)]
pub struct Writer {
    buffer: Vec<u8>,
    spliced: Vec<Splice>,
    spliced_len: usize,
    /// There if the messages that are written get back tags that they do not know.
    restorer: Option<Box<Restorer>>,
}

/// Bytes that belong between two bytes of the buffer.
#[derive(Debug)]
pub(crate) struct Splice {
    /// How many bytes of the buffer come before.
    pub(crate) offset: usize,
    pub(crate) bytes: Bytes,
}

impl Writer {
    /// From this length on bytes are spliced: below, copying is cheaper than one more chunk to write.
    pub const SPLICE_MIN: usize = 4096;

    /// An empty frame.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty frame with room for `capacity` bytes.
    pub fn with_capacity(capacity: usize) -> Self {
        Self { buffer: Vec::with_capacity(capacity), ..Self::default() }
    }

    /// The same, for a message that gets back the tagged fields which it came with and does not know.
    ///
    /// Write the message that the [reader](super::Reader::keep_unknown_tags) of these fields read, in the same version
    /// and without a change; anything else puts them in the wrong places. Nothing is spliced then.
    #[must_use]
    pub fn with_unknown_tags(self, unknown: UnknownTags) -> Self {
        let restorer = (!unknown.is_empty()).then(|| Box::new(Restorer::new(unknown)));
        Self { restorer, ..self }
    }

    /// The number of bytes written, spliced ones included.
    pub fn len(&self) -> usize {
        self.buffer.len() + self.spliced_len
    }

    /// How many bytes can be copied before the buffer has to grow.
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// Whether nothing has been written.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Everything as one piece.
    pub fn into_bytes(self) -> Bytes {
        if self.spliced.is_empty() {
            return Bytes::from(self.buffer);
        }
        let mut whole = Vec::with_capacity(self.len());
        let mut from = 0;
        for Splice { offset, bytes } in &self.spliced {
            whole.extend_from_slice(&self.buffer[from..*offset]);
            whole.extend_from_slice(bytes);
            from = *offset;
        }
        whole.extend_from_slice(&self.buffer[from..]);
        Bytes::from(whole)
    }

    /// The buffer and what belongs between its bytes.
    pub(crate) fn into_parts(self) -> (Vec<u8>, Vec<Splice>) {
        (self.buffer, self.spliced)
    }

    /// Writes bytes by copying them.
    #[inline]
    pub fn put_slice(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Writes the first `len` of some bytes, which is quicker with a number of bytes that the compiler knows.
    #[inline]
    pub(crate) fn put_first<const N: usize>(&mut self, len: usize, bytes: [u8; N]) {
        let end = self.buffer.len() + len;
        self.buffer.extend_from_slice(&bytes);
        self.buffer.truncate(end);
    }

    /// Writes one byte.
    #[inline]
    pub fn put_u8(&mut self, byte: u8) {
        self.buffer.push(byte);
    }

    /// Writes bytes without a length, copying them only if they are few.
    #[inline]
    pub fn put_bytes(&mut self, bytes: &Bytes) {
        if bytes.len() < Self::SPLICE_MIN || self.restorer.is_some() {
            self.buffer.extend_from_slice(bytes);
        } else {
            self.spliced_len += bytes.len();
            self.spliced.push(Splice { offset: self.buffer.len(), bytes: bytes.clone() });
        }
    }

    /// Writes an unsigned varint.
    #[inline]
    pub fn put_varint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.buffer.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.buffer.push(value as u8);
    }

    /// Writes the length of a string.
    #[inline]
    pub(crate) fn put_string_len(&mut self, len: usize, flexible: bool) -> Result<(), EncodeError> {
        // Java refuses longer strings in the flexible encoding too, where they could be expressed.
        let Ok(short) = i16::try_from(len) else {
            return Err(EncodeError::too_long("string", len, i16::MAX as usize));
        };
        if flexible {
            self.put_varint(short as u32 + 1);
        } else {
            self.put_slice(&short.to_be_bytes());
        }
        Ok(())
    }

    /// Writes the length of bytes or of an array.
    #[inline]
    pub(crate) fn put_len(&mut self, what: &'static str, len: usize, flexible: bool) -> Result<(), EncodeError> {
        let Ok(int) = i32::try_from(len) else {
            return Err(EncodeError::too_long(what, len, i32::MAX as usize));
        };
        if flexible {
            self.put_varint(int as u32 + 1);
        } else {
            self.put_slice(&int.to_be_bytes());
        }
        Ok(())
    }

    /// Ends a structure that knows no tagged fields.
    #[doc(hidden)]
    #[inline]
    pub fn put_no_tags(&mut self) {
        match self.restorer {
            None => self.buffer.push(0),
            Some(_) => {
                let tags = self.open_tags(0);
                self.close_tags(&tags);
            }
        }
    }

    /// Whether the next structure was sent with this tagged field although it is at its default.
    #[doc(hidden)]
    #[inline]
    pub fn had_tag(&self, number: u32) -> bool {
        self.restorer.as_ref().is_some_and(|restorer| restorer.has_default(number))
    }

    /// Begins the tagged fields at the end of a structure, of which `known` are the message's own.
    #[doc(hidden)]
    #[inline]
    pub fn open_tags(&mut self, known: u32) -> WrittenTags {
        let (structure, unknown) = self.restorer.as_mut().map_or((0, 0), |restorer| restorer.open());
        self.put_varint(known + unknown);
        WrittenTags { structure, least: 0 }
    }

    /// Begins a tagged field that takes so many bytes; where its value starts.
    #[doc(hidden)]
    #[inline]
    pub fn open_tag(&mut self, tags: &mut WrittenTags, number: u32, size: usize) -> usize {
        if self.restorer.is_none() {
            self.put_varint(number);
            self.put_varint(size as u32);
        } else {
            self.put_unknown_tags(tags, number.into());
            tags.least = u64::from(number) + 1;
            self.put_varint(number);
        }
        self.buffer.len()
    }

    /// Ends a tagged field whose value starts there.
    #[doc(hidden)]
    #[inline]
    pub fn close_tag(&mut self, start: usize) {
        if self.restorer.is_some() {
            self.put_size_at(start);
        }
    }

    /// Puts the size of all behind `start` there: with unknown tags inside, nobody knew it before.
    #[cold]
    fn put_size_at(&mut self, start: usize) {
        let value = self.buffer.split_off(start);
        self.put_varint(value.len() as u32);
        self.buffer.extend_from_slice(&value);
    }

    /// Ends the tagged fields of a structure.
    #[doc(hidden)]
    #[inline]
    pub fn close_tags(&mut self, tags: &WrittenTags) {
        if self.restorer.is_some() {
            self.put_unknown_tags(tags, u64::MAX);
        }
    }

    /// Writes the unknown tags of a structure that come before `number` and after what was written of it.
    #[cold]
    fn put_unknown_tags(&mut self, tags: &WrittenTags, number: u64) {
        let between = self.restorer.as_ref().map(|restorer| restorer.between(tags.structure, tags.least..number));
        for (number, value) in between.into_iter().flatten() {
            self.put_varint(number);
            self.put_varint(value.len() as u32);
            self.put_slice(&value);
        }
    }

    /// Overwrites four bytes that were written before the first splice.
    pub(crate) fn patch_i32(&mut self, offset: usize, value: i32) {
        self.buffer[offset..offset + 4].copy_from_slice(&value.to_be_bytes());
    }
}

/// The tagged fields of a structure that is being written.
#[doc(hidden)]
#[derive(Debug)]
pub struct WrittenTags {
    /// Which structure it is, if that matters.
    structure: u32,
    /// The least number that was not written yet.
    least: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_bytes_stand_where_they_were_put() {
        let large = Bytes::from(vec![b'L'; Writer::SPLICE_MIN]);
        let mut out = Writer::new();
        out.put_bytes(&large);
        out.put_slice(b"between");
        out.put_bytes(&Bytes::from_static(b" small "));
        out.put_bytes(&large);
        out.put_bytes(&large);

        assert_eq!(out.len(), 3 * large.len() + 14);
        assert_eq!(out.into_bytes(), [&large[..], b"between small ", &large, &large].concat());
    }

    #[test]
    fn small_bytes_are_copied_and_large_ones_are_not() {
        let (small, large) = (Bytes::from(vec![0; Writer::SPLICE_MIN - 1]), Bytes::from(vec![0; Writer::SPLICE_MIN]));
        let mut out = Writer::new();
        out.put_bytes(&small);
        out.put_bytes(&large);

        let (buffer, spliced) = out.into_parts();
        assert_eq!(buffer.len(), small.len());
        assert_eq!((spliced.len(), spliced[0].offset), (1, small.len()));
        assert_eq!(spliced[0].bytes.as_ptr(), large.as_ptr());
    }

    #[test]
    fn varints_take_as_many_bytes_as_foretold() {
        for value in (0..32).flat_map(|bit| [(1u32 << bit) - 1, 1 << bit]).chain([u32::MAX]) {
            let mut out = Writer::new();
            out.put_varint(value);

            assert_eq!(out.len(), crate::wire::varint_size(value), "{value}");
            assert_eq!(crate::wire::Reader::new(out.into_bytes()).take_varint(), Ok(value));
        }
    }

    #[test]
    fn a_writer_is_empty_until_something_is_put() {
        let mut out = Writer::new();
        assert!(out.is_empty());
        out.put_u8(0);
        assert!(!out.is_empty());

        let mut out = Writer::new();
        out.put_bytes(&Bytes::from(vec![0; Writer::SPLICE_MIN]));
        assert!(!out.is_empty());
    }
}
