//! Writes values into a frame, and leaves large ones where they are.
//!
//! Everything small goes into one buffer. A large `Bytes` (a record batch) is only noted with its place, and the frame
//! becomes a chain of chunks in the end: no record is copied on its way to the socket.

use bytes::Bytes;

use super::error::EncodeError;

/// A frame being written.
#[derive(Debug, Default)]
pub struct Writer {
    buffer: Vec<u8>,
    spliced: Vec<Splice>,
    spliced_len: usize,
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

    /// The number of bytes written, spliced ones included.
    pub fn len(&self) -> usize {
        self.buffer.len() + self.spliced_len
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
        if bytes.len() < Self::SPLICE_MIN {
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

    /// Overwrites four bytes that were written before the first splice.
    pub(crate) fn patch_i32(&mut self, offset: usize, value: i32) {
        self.buffer[offset..offset + 4].copy_from_slice(&value.to_be_bytes());
    }
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
}
