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

/// Takes bytes for a whole frame that somebody else has encoded, its length included.
impl From<Bytes> for Frame {
    fn from(bytes: Bytes) -> Self {
        Self { remaining: bytes.len(), chunks: VecDeque::from([bytes]) }
    }
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

    /// Puts the length in front of what `write` writes, which is about `hint` bytes.
    fn build(hint: usize, write: impl FnOnce(&mut Writer) -> Result<(), EncodeError>) -> Result<Self, EncodeError> {
        let mut out = Writer::with_capacity(hint.saturating_add(HEADER_HINT).min(MAX_HINT));
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
    Frame::build(request.hint(), |out| {
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
    Frame::build(request.hint(), |out| {
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
    Frame::build(response.hint(), |out| {
        encode_response_header(key, version, correlation_id, out);
        response.encode(out, version)
    })
}

/// [`encode_response`] for a response of any API.
///
/// # Errors
/// Those of [`Message::encode`].
pub fn encode_any_response(response: &AnyResponse, version: i16, correlation_id: i32) -> Result<Frame, EncodeError> {
    Frame::build(response.hint(), |out| {
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

/// Room for the length and the header.
const HEADER_HINT: usize = 64;

/// The most room that is made before anything is written: a message whose first element is by far its largest must not
/// ask for more memory than it ever fills.
const MAX_HINT: usize = 2 << 20;

fn request_header(key: ApiKey, version: i16, correlation_id: i32, client_id: Option<&str>) -> RequestHeader {
    RequestHeader { key: key.code(), version, correlation_id, client_id: client_id.map(Str::from) }
}
#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
    use crate::wire::Reader;
    use crate::{ApiVersionsRequest, ApiVersionsResponse, ErrorCode, decode_request_header, decode_response_header};

    /// A request with one large record set between two small ones.
    fn produce(large: &Bytes) -> ProduceRequest {
        let partition = |index, records: &Bytes| PartitionProduceData { index, records: Some(records.clone()) };
        let small = Bytes::from_static(b"small");
        let partition_data = vec![partition(0, &small), partition(1, large), partition(2, &small)];
        ProduceRequest {
            topic_data: vec![TopicProduceData { name: "orders".into(), partition_data, ..TopicProduceData::default() }],
            ..ProduceRequest::default()
        }
    }

    #[test]
    fn large_bytes_are_chunks_of_their_own_and_not_copied() {
        let large = Bytes::from(vec![7; Writer::SPLICE_MIN]);

        let frame = encode_request(&produce(&large), 9, 1, None).unwrap();

        let chunks: Vec<_> = frame.clone().into_chunks().collect();
        assert_eq!(chunks.len(), 3);
        assert_eq!(chunks[1].as_ptr(), large.as_ptr());
        assert_eq!(chunks.iter().map(Bytes::len).sum::<usize>(), frame.len());
        assert_eq!(chunks.concat(), frame.to_bytes());
    }

    /// A [`Buf`] with bytes left has some in its chunk.
    #[test]
    fn no_chunk_is_empty() {
        let large = Bytes::from(vec![7; Writer::SPLICE_MIN]);
        let frame = Frame::build(0, |out| {
            out.put_bytes(&large);
            out.put_bytes(&large);
            Ok(())
        });

        let lengths: Vec<_> = frame.unwrap().into_chunks().map(|chunk| chunk.len()).collect();

        assert_eq!(lengths, [LENGTH_SIZE, large.len(), large.len()]);
    }

    /// A message may count on nobody to believe what its first element makes of the others.
    #[test]
    fn a_hint_is_not_believed_beyond_reason() {
        let frame = Frame::build(usize::MAX, |out| {
            assert_eq!(out.capacity(), MAX_HINT);
            out.put_u8(7);
            Ok(())
        });

        assert_eq!(frame.unwrap().to_bytes(), &[0, 0, 0, 1, 7][..]);
    }

    #[test]
    fn bytes_of_another_encoder_are_a_frame() {
        let bytes = Bytes::from_static(b"\0\0\0\x01x");

        let mut frame = Frame::from(bytes.clone());

        assert_eq!((frame.len(), frame.is_empty(), frame.to_bytes()), (5, false, bytes));
        frame.advance(5);
        assert!(frame.is_empty());
    }

    #[test]
    fn the_length_counts_what_follows_it() {
        for len in [0, Writer::SPLICE_MIN] {
            let frame = encode_request(&produce(&Bytes::from(vec![7; len])), 9, 1, None).unwrap();

            let bytes = frame.to_bytes();
            assert_eq!(decode_length(bytes[..4].try_into().unwrap()), Ok(bytes.len() - LENGTH_SIZE));
        }
        assert!(decode_length([0xff; 4]).is_err());
    }

    #[test]
    fn a_frame_is_written_piece_by_piece() {
        let large = Bytes::from(vec![7; Writer::SPLICE_MIN]);
        let frame = encode_request(&produce(&large), 9, 1, Some("me")).unwrap();
        let whole = frame.to_bytes();

        for step in [1, 3, 100, 5000] {
            let (mut left, mut written) = (frame.clone(), Vec::new());
            while left.has_remaining() {
                let mut slices = [IoSlice::new(&[]); 2];
                let filled = left.chunks_vectored(&mut slices);
                let offered = slices[..filled].iter().map(|slice| &**slice).collect::<Vec<_>>().concat();
                assert!(offered.starts_with(left.chunk()));
                let taken = step.min(offered.len());
                written.extend_from_slice(&offered[..taken]);
                left.advance(taken);
            }
            assert_eq!(written, whole, "in steps of {step}");
            assert!(left.is_empty() && left.chunk().is_empty());
        }
    }

    #[test]
    fn the_header_says_what_follows() {
        let request = ApiVersionsRequest { client_software_name: "krafka".into(), ..Default::default() };
        for version in ApiVersionsRequest::VERSIONS.iter() {
            let frame = encode_request(&request, version, 7, Some("me")).unwrap();

            let mut input = Reader::new(frame.to_bytes().slice(LENGTH_SIZE..));
            let header = decode_request_header(&mut input).unwrap();
            assert_eq!(header, RequestHeader { key: 18, version, correlation_id: 7, client_id: Some("me".into()) });
            let body = AnyRequest::decode(ApiKey::ApiVersions, version, &mut input).unwrap();
            assert_eq!(body.key(), ApiKey::ApiVersions);
            assert!(input.is_empty());
        }
    }

    #[test]
    fn a_refused_version_of_api_versions_is_answered_in_version_0() {
        let refusal =
            ApiVersionsResponse { error_code: ErrorCode::UNSUPPORTED_VERSION.0, ..ApiVersionsResponse::default() };
        let frame = encode_response(ApiKey::ApiVersions, &refusal, 0, 3).unwrap();

        let mut input = Reader::new(frame.to_bytes().slice(LENGTH_SIZE..));
        assert_eq!(decode_response_header(ApiKey::ApiVersions, 5, &mut input), Ok(3));
        assert_eq!(AnyResponse::decode(ApiKey::ApiVersions, 5, &mut input), Ok(refusal.into()));
        assert!(input.is_empty());
    }

    #[test]
    fn the_header_of_an_unknown_api_or_version_is_read() {
        for (key, version) in [(999, 3), (-1, 0), (ApiKey::Fetch.code(), 99)] {
            let header = RequestHeader { key, version, correlation_id: 4, client_id: None };
            let mut out = Writer::new();
            header.encode(&mut out).unwrap();

            assert_eq!(decode_request_header(&mut Reader::new(out.into_bytes())), Ok(header));
        }
    }
}
