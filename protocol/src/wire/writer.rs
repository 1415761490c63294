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
