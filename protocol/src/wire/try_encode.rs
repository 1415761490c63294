//! [`TryEncode`]: single values in plain buffers, for whoever writes a frame by hand.

use bytes::BytesMut;

use super::{EncodeError, Wire, Writer};

/// Writes a value at the end of a buffer, or says why the protocol cannot express it.
///
/// Every type that a field may have implements it: numbers, [`Str`](crate::Str), [`Bytes`](bytes::Bytes),
/// [`Uuid`](crate::Uuid), vectors of them, and every message. `version` only matters to messages; `flexible` says which
/// of Kafka's two encodings of lengths to use (see [`wire`](crate::wire)).
///
/// ```
/// use bytes::BytesMut;
/// use krafka_protocol::{Str, TryEncode};
///
/// let mut out = BytesMut::new();
/// Str::from("orders").try_encode(0, false, &mut out)?;
/// vec![1i32, 2].try_encode(0, true, &mut out)?;
/// assert_eq!(&out[..], b"\0\x06orders\x03\0\0\0\x01\0\0\0\x02");
///
/// let error = Str::from("x".repeat(40_000)).try_encode(0, false, &mut out).unwrap_err();
/// assert_eq!(error.to_string(), "string length 40000 is more than the 32767 that the protocol can express");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait TryEncode {
    /// Appends the value. If that fails, the buffer is as it was.
    ///
    /// # Errors
    /// A length is beyond what its prefix can hold, or a message cannot be written at this version.
    fn try_encode(&self, version: i16, flexible: bool, out: &mut BytesMut) -> Result<(), EncodeError>;
}

impl<T: Wire> TryEncode for T {
    fn try_encode(&self, version: i16, flexible: bool, out: &mut BytesMut) -> Result<(), EncodeError> {
        let mut writer = Writer::new();
        self.put(&mut writer, version, flexible)?;
        out.extend_from_slice(&writer.into_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HeartbeatRequest, Message, Str};

    #[test]
    fn a_failure_leaves_the_buffer_alone() {
        let mut out = BytesMut::from("before");

        assert!(vec![Str::from("short"), Str::from("x".repeat(40_000))].try_encode(0, true, &mut out).is_err());
        assert!(HeartbeatRequest::default().try_encode(99, true, &mut out).is_err());

        assert_eq!(out, "before");
    }

    #[test]
    fn a_message_is_written_as_by_itself() {
        let request = HeartbeatRequest { group_id: "g".into(), ..HeartbeatRequest::default() };
        let (mut out, mut writer) = (BytesMut::new(), Writer::new());

        request.try_encode(4, true, &mut out).unwrap();
        request.encode(&mut writer, 4).unwrap();

        assert_eq!(out, writer.into_bytes());
    }
}
