//! Whole frames: four bytes of length, a header and a body.

use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes};

use crate::header::{RequestHeader, encode_response_header};
use crate::wire::{DecodeError, EncodeError, Splice, Str, Writer};
use crate::{AnyRequest, AnyResponse, ApiKey, Message, Request};

/// An outgoing frame, its length included: a chain of chunks, in which large values are the caller's own `Bytes`.
///
/// It is a [`Buf`]: write it with vectored writes, or [`to_bytes`](Frame::to_bytes) it.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    chunks: VecDeque<Bytes>,
    remaining: usize,
}

impl Frame {
    /// The number of bytes that are left to be written: at first all, with the four of the length.
    pub fn len(&self) -> usize {
        self.remaining
    }

    /// Whether everything has been written.
    pub fn is_empty(&self) -> bool {
        self.remaining == 0
    }

    /// What is left, as one piece: a copy if there is more than one chunk.
    pub fn to_bytes(&self) -> Bytes {
        match self.chunks.len() {
            1 => self.chunks[0].clone(),
            _ => self.clone().copy_to_bytes(self.remaining),
        }
    }

    /// The chunks that are left.
    pub fn into_chunks(self) -> impl Iterator<Item = Bytes> {
        self.chunks.into_iter()
    }

    /// Puts the length in front of what `write` writes.
    fn build(write: impl FnOnce(&mut Writer) -> Result<(), EncodeError>) -> Result<Self, EncodeError> {
        let mut out = Writer::with_capacity(256);
        out.put_slice(&[0; LENGTH_SIZE]);
        write(&mut out)?;
        let len = out.len();
        let body = i32::try_from(len - LENGTH_SIZE)
            .map_err(|_| EncodeError::too_long("frame", len - LENGTH_SIZE, i32::MAX as usize))?;
        out.patch_i32(0, body);

        let (buffer, spliced) = out.into_parts();
        let mut buffer = Bytes::from(buffer);
        let mut chunks = VecDeque::with_capacity(2 * spliced.len() + 1);
        let mut cut = 0;
        for Splice { offset, bytes } in spliced {
            if offset > cut {
                chunks.push_back(buffer.split_to(offset - cut));
                cut = offset;
            }
            chunks.push_back(bytes);
        }
        if !buffer.is_empty() {
            chunks.push_back(buffer);
        }
        Ok(Self { chunks, remaining: len })
    }
}

impl Buf for Frame {
    fn remaining(&self) -> usize {
        self.remaining
    }

    fn chunk(&self) -> &[u8] {
        self.chunks.front().map_or(&[], |chunk| chunk)
    }

    fn chunks_vectored<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut filled = 0;
        for (slice, chunk) in slices.iter_mut().zip(&self.chunks) {
            *slice = IoSlice::new(chunk);
            filled += 1;
        }
        filled
    }

    fn advance(&mut self, mut count: usize) {
        assert!(count <= self.remaining, "advanced by {count} bytes where {} are left", self.remaining);
        self.remaining -= count;
        while let Some(chunk) = self.chunks.front_mut() {
            if count < chunk.len() {
                chunk.advance(count);
                return;
            }
            count -= chunk.len();
            self.chunks.pop_front();
        }
    }
}

/// A request as a frame.
///
/// # Errors
/// Those of [`Message::encode`].
pub fn encode_request<R: Request>(
    request: &R,
    version: i16,
    correlation_id: i32,
    client_id: Option<&str>,
) -> Result<Frame, EncodeError> {
    Frame::build(|out| {
        request_header(R::KEY, version, correlation_id, client_id).encode(out)?;
        request.encode(out, version)
    })
}

/// [`encode_request`] for a request of any API.
///
/// # Errors
/// Those of [`Message::encode`].
pub fn encode_any_request(
    request: &AnyRequest,
    version: i16,
    correlation_id: i32,
    client_id: Option<&str>,
) -> Result<Frame, EncodeError> {
    Frame::build(|out| {
        request_header(request.key(), version, correlation_id, client_id).encode(out)?;
        request.encode(out, version)
    })
}

/// The response to a request of `version` as a frame.
///
/// # Errors
/// Those of [`Message::encode`].
pub fn encode_response<M: Message>(
    key: ApiKey,
    response: &M,
    version: i16,
    correlation_id: i32,
) -> Result<Frame, EncodeError> {
    Frame::build(|out| {
        encode_response_header(key, version, correlation_id, out);
        response.encode(out, version)
    })
}

/// [`encode_response`] for a response of any API.
///
/// # Errors
/// Those of [`Message::encode`].
pub fn encode_any_response(response: &AnyResponse, version: i16, correlation_id: i32) -> Result<Frame, EncodeError> {
    Frame::build(|out| {
        encode_response_header(response.key(), version, correlation_id, out);
        response.encode(out, version)
    })
}

/// The length that the first four bytes of a frame announce for the rest of it.
///
/// # Errors
/// The length is negative: the peer speaks some other protocol.
pub fn decode_length(prefix: [u8; LENGTH_SIZE]) -> Result<usize, DecodeError> {
    usize::try_from(i32::from_be_bytes(prefix)).map_err(|_| DecodeError::invalid("the length of a frame is negative"))
}

/// The size of the length in front of a frame.
pub const LENGTH_SIZE: usize = 4;

fn request_header(key: ApiKey, version: i16, correlation_id: i32, client_id: Option<&str>) -> RequestHeader {
    RequestHeader { key: key.code(), version, correlation_id, client_id: client_id.map(Str::from) }
}
#[cfg(test)]
mod tests {
    use crate::*;

    #[test]
    fn smoke() {
        let r = ApiVersionsRequest { client_software_name: "krafka".into(), ..Default::default() };
        for v in 0..=5 {
            let f = frame::encode_request(&r, v, 7, Some("me")).unwrap();
            let mut input = Reader::new(f.to_bytes().slice(4..));
            let h = decode_request_header(&mut input).unwrap();
            assert_eq!(h.correlation_id, 7);
            let back = ApiVersionsRequest::decode(&mut input, v).unwrap();
            assert_eq!(back.client_software_name == "krafka", v >= 3);
            assert!(input.is_empty());
            assert_eq!(r.size(v).unwrap(), {
                let mut w = Writer::new();
                r.encode(&mut w, v).unwrap();
                w.len()
            });
        }
    }
}
