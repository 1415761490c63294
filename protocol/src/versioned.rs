//! Encoding into and decoding from plain buffers, for whoever needs no frame.

use bytes::{Buf, Bytes, BytesMut};

use crate::Message;
use crate::wire::{DecodeError, EncodeError, Reader, Writer};

/// Writes a message at the end of a buffer.
pub trait VersionedEncode {
    /// Appends the message as `version` has it. If that fails, the buffer is as it was.
    ///
    /// # Errors
    /// Those of [`Message::encode`].
    fn encode_versioned(&self, version: i16, out: &mut BytesMut) -> Result<(), EncodeError>;
}

/// Reads a message from the beginning of a buffer.
pub trait VersionedDecode: Sized {
    /// Takes the message out of the buffer, as `version` has it. If that fails, the buffer is as it was.
    ///
    /// # Errors
    /// Those of [`Message::decode`].
    fn decode_versioned(version: i16, input: &mut Bytes) -> Result<Self, DecodeError>;
}

impl<M: Message> VersionedEncode for M {
    fn encode_versioned(&self, version: i16, out: &mut BytesMut) -> Result<(), EncodeError> {
        let mut writer = Writer::new();
        self.encode(&mut writer, version)?;
        out.extend_from_slice(&writer.into_bytes());
        Ok(())
    }
}

impl<M: Message> VersionedDecode for M {
    fn decode_versioned(version: i16, input: &mut Bytes) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(input.clone());
        let message = Self::decode(&mut reader, version)?;
        input.advance(reader.position());
        Ok(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HeartbeatRequest;

    #[test]
    fn messages_follow_one_another_in_a_buffer() {
        let [first, second] =
            [1, 2].map(|generation_id| HeartbeatRequest { generation_id, ..HeartbeatRequest::default() });
        let mut out = BytesMut::new();
        first.encode_versioned(3, &mut out).unwrap();
        second.encode_versioned(4, &mut out).unwrap();

        let mut input = out.freeze();
        assert_eq!(HeartbeatRequest::decode_versioned(3, &mut input), Ok(first));
        assert_eq!(HeartbeatRequest::decode_versioned(4, &mut input), Ok(second));
        assert!(input.is_empty());
    }

    #[test]
    fn a_failure_leaves_the_buffer_alone() {
        let mut out = BytesMut::from("before");
        let request = HeartbeatRequest { group_id: "x".repeat(40_000).into(), ..HeartbeatRequest::default() };
        assert!(request.encode_versioned(3, &mut out).is_err());
        assert_eq!(out, "before");

        let mut input = Bytes::from_static(&[0, 9, b'g']);
        assert!(HeartbeatRequest::decode_versioned(3, &mut input).is_err());
        assert_eq!(input.len(), 3);
    }
}
