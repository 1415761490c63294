//! Snappy in the framing of snappy-java, and raw snappy when reading.
//!
//! ```text
//!     82 'S' 'N' 'A' 'P' 'P' 'Y' 00 │ version i32 │ oldest reader i32 │ chunk…
//!     chunk: length i32 │ one raw snappy block, of at most 32 KiB when decompressed
//! ```
//!
//! A raw block also begins with a length, as a varint, so a short raw block may begin with the first byte of the magic;
//! only all eight bytes tell the two apart. The versions are not checked: writers put what they like there.

use bytes::Buf;

use super::{Compression, CompressionError, Output};

const MAGIC: [u8; 8] = *b"\x82SNAPPY\0";
const HEADER_LEN: usize = 16;
const VERSION: i32 = 1;
const CHUNK: usize = 32 << 10;

/// No element of a raw block makes more than 64 bytes of three, so a block of n bytes never becomes more than 22n.
const GREATEST_EXPANSION: usize = 22;

/// Writes chunks of 32 KiB behind snappy-java's header.
pub(super) struct Encoder {
    encoder: snap::raw::Encoder,
}

impl Encoder {
    pub(super) fn new() -> Self {
        Self { encoder: snap::raw::Encoder::new() }
    }

    pub(super) fn encode(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(), CompressionError> {
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_be_bytes());
        out.extend_from_slice(&VERSION.to_be_bytes());
        for chunk in input.chunks(CHUNK) {
            let at = out.len();
            out.resize(at + 4 + snap::raw::max_compress_len(chunk.len()), 0);
            let written = self
                .encoder
                .compress(chunk, &mut out[at + 4..])
                .map_err(|error| CompressionError::Encode { codec: Compression::Snappy, reason: error.to_string() })?;
            let length = u32::try_from(written).expect("a chunk of 32 KiB stays small");
            out[at..at + 4].copy_from_slice(&length.to_be_bytes());
            out.truncate(at + 4 + written);
        }
        Ok(())
    }
}

/// Reads both framings.
pub(super) struct Decoder {
    decoder: snap::raw::Decoder,
}

impl Decoder {
    pub(super) fn new() -> Self {
        Self { decoder: snap::raw::Decoder::new() }
    }

    pub(super) fn decode(&mut self, input: &[u8], out: &mut Output<'_>) -> Result<(), CompressionError> {
        if !input.starts_with(&MAGIC) {
            return self.block(input, 0, out);
        }
        let Some(mut rest) = input.get(HEADER_LEN..) else {
            return Err(out.corrupt(input.len(), "the stream ends inside its header"));
        };
        while !rest.is_empty() {
            let position = input.len() - rest.len();
            if rest.len() < 4 {
                return Err(out.corrupt(position, "the stream ends inside a chunk's length"));
            }
            let length = rest.get_u32() as usize;
            let Some((block, after)) = rest.split_at_checked(length) else {
                return Err(out.corrupt(position, format!("a chunk of {length} bytes, {} left", rest.len())));
            };
            self.block(block, position + 4, out)?;
            rest = after;
        }
        Ok(())
    }

    /// Decompresses one raw block to the end of the output.
    fn block(&mut self, block: &[u8], position: usize, out: &mut Output<'_>) -> Result<(), CompressionError> {
        let length = snap::raw::decompress_len(block).map_err(|error| out.corrupt(position, error.to_string()))?;
        if length > out.room() {
            return Err(out.too_long());
        }
        if length > block.len().saturating_mul(GREATEST_EXPANSION) {
            return Err(out.corrupt(position, format!("{} bytes cannot hold {length}", block.len())));
        }
        let at = out.buffer.len();
        out.buffer.resize(at + length, 0);
        match self.decoder.decompress(block, &mut out.buffer[at..]) {
            Ok(written) if written == length => Ok(()),
            Ok(written) => Err(out.corrupt(position, format!("a block of {written} bytes that says {length}"))),
            Err(error) => Err(out.corrupt(position, error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Compressor, Decompressor};
    use super::*;

    fn decode(input: &[u8]) -> Result<Vec<u8>, CompressionError> {
        Decompressor::new(1 << 20).decompress(Compression::Snappy, input).map(|bytes| bytes.to_vec())
    }

    fn raw(input: &[u8]) -> Vec<u8> {
        snap::raw::Encoder::new().compress_vec(input).expect("small inputs compress")
    }

    #[test]
    fn a_stream_begins_as_snappy_java_begins_it() {
        let mut compressor = Compressor::new(Compression::Snappy, None).expect("snappy is built in");

        let stream = compressor.compress(&[7; 40_000]).expect("compresses");

        assert_eq!(stream[..16], *b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01");
        let first = u32::from_be_bytes(stream[16..20].try_into().expect("four bytes")) as usize;
        assert_eq!(snap::raw::decompress_len(&stream[20..20 + first]), Ok(32 << 10));
        assert_eq!(decode(stream), Ok(vec![7; 40_000]));
    }

    #[test]
    fn raw_blocks_are_read() {
        assert_eq!(decode(&raw(b"hello hello hello")), Ok(b"hello hello hello".to_vec()));
    }

    /// A block of 130 bytes begins with 0x82, as the magic does.
    #[test]
    fn a_raw_block_may_begin_like_the_magic() {
        let block = raw(&[9; 130]);

        assert_eq!(block[0], 0x82);
        assert_eq!(decode(&block), Ok(vec![9; 130]));
    }

    #[test]
    fn versions_are_not_checked() {
        let mut stream = b"\x82SNAPPY\0\0\0\0\x02\0\0\0\x02".to_vec();
        let block = raw(b"two");
        stream.extend_from_slice(&(block.len() as u32).to_be_bytes());
        stream.extend_from_slice(&block);

        assert_eq!(decode(&stream), Ok(b"two".to_vec()));
    }

    #[test]
    fn lying_lengths_allocate_nothing() {
        let mut decompressor = Decompressor::new(1 << 30);

        let error = decompressor.decompress(Compression::Snappy, &[0xff, 0xff, 0xff, 0x7f, 0, 0]);

        assert!(matches!(error, Err(CompressionError::Corrupt { .. })), "{error:?}");
        assert_eq!(decompressor.buffer.capacity(), 0);
        let error = decode(b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01\x7f\xff\xff\xff\0");
        assert!(matches!(error, Err(CompressionError::Corrupt { position: 16, .. })), "{error:?}");
    }

    #[test]
    fn a_block_beyond_the_limit_is_refused() {
        let error = Decompressor::new(99).decompress(Compression::Snappy, &raw(&[0; 100]));

        assert_eq!(error, Err(CompressionError::LimitExceeded { codec: Compression::Snappy, limit: 99 }));
    }
}
