//! LZ4 frames: the blocks are lz4_flex's work, the frame around them is ours.
//!
//! ```text
//!     04 22 4d 18 │ flags │ block size │ [content size u64] │ [dictionary id u32] │ header checksum u8 │
//!     block…: size u32, highest bit: stored │ bytes │ [checksum u32]
//!     00 00 00 00 │ [content checksum u32]                                          all little-endian
//! ```
//!
//! Written as Kafka's Java client writes them: independent blocks of 64 KiB, no content size, no checksums but the
//! header's. Read with every option, linked blocks and several frames, as other clients write them.
//!
//! The levels are Java's: its default, 9, is the fast compressor, and any other looks at 2^(level - 1) places for the
//! longest match.

use bytes::Buf;
use lz4_flex::block::{self, CompressTable, DecompressError};

use self::chains::Chains;
use super::xxh32::xxh32;
use super::{Compression, CompressionError, Output};

mod chains;

const LEVELS: std::ops::RangeInclusive<i32> = 1..=17;
const FAST_LEVEL: i32 = 9;
const MAGIC: u32 = 0x184d_2204;
/// Frames with these magics carry something for somebody else.
const SKIPPABLE: std::ops::RangeInclusive<u32> = 0x184d_2a50..=0x184d_2a5f;
/// Magic, flags (version 1, independent blocks), block size 64 KiB, and the checksum of those two bytes.
const HEADER: [u8; 7] = [0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82];
const BLOCK: usize = 64 << 10;
const STORED: u32 = 1 << 31;
/// How far back a linked block may refer.
const WINDOW: usize = 64 << 10;
/// A byte of a block extends a match by 255 bytes at most.
const GREATEST_EXPANSION: usize = 255;

/// Writes frames, with tables and a buffer that live on.
pub(super) struct Encoder {
    matcher: Matcher,
    block: Vec<u8>,
}

/// What finds repetitions.
enum Matcher {
    Fast(CompressTable),
    Chains(Chains),
}

impl Encoder {
    pub(super) fn new(level: Option<i32>) -> Result<Self, CompressionError> {
        let matcher = match CompressionError::check_level(Compression::Lz4, level.unwrap_or(FAST_LEVEL), LEVELS)? {
            // The large table: the small one is no faster on less than 64 KiB, and finds less.
            FAST_LEVEL => Matcher::Fast(CompressTable::large()),
            level => Matcher::Chains(Chains::new(1 << (level - 1))),
        };
        Ok(Self { matcher, block: Vec::new() })
    }

    pub(super) fn encode(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(), CompressionError> {
        out.extend_from_slice(&HEADER);
        for chunk in input.chunks(BLOCK) {
            let length = self.compress(chunk)?;
            if length < chunk.len() {
                out.extend_from_slice(&(length as u32).to_le_bytes());
                out.extend_from_slice(&self.block[..length]);
            } else {
                out.extend_from_slice(&(chunk.len() as u32 | STORED).to_le_bytes());
                out.extend_from_slice(chunk);
            }
        }
        out.extend_from_slice(&[0; 4]);
        Ok(())
    }

    /// Compresses a chunk to the start of the buffer for blocks, and returns the length.
    fn compress(&mut self, chunk: &[u8]) -> Result<usize, CompressionError> {
        match &mut self.matcher {
            Matcher::Fast(table) => {
                let greatest = block::get_maximum_output_size(chunk.len());
                if self.block.len() < greatest {
                    self.block.resize(greatest, 0);
                }
                block::compress_into_with_table(chunk, &mut self.block, table)
                    .map_err(|error| CompressionError::Encode { codec: Compression::Lz4, reason: error.to_string() })
            }
            Matcher::Chains(chains) => {
                self.block.clear();
                chains.compress(chunk, &mut self.block);
                Ok(self.block.len())
            }
        }
    }
}

/// Whether the checksum of a frame's header is compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum HeaderChecksum {
    Compared,
    /// For messages of format 0: Kafka computed it over the magic too, until format 1 came (KAFKA-3160).
    Ignored,
}

/// Decodes all frames of `input`.
pub(super) fn decode(input: &[u8], checksum: HeaderChecksum, out: &mut Output<'_>) -> Result<(), CompressionError> {
    let mut source = Source { rest: input, len: input.len() };
    while !source.rest.is_empty() {
        let magic = source.u32(out)?;
        if SKIPPABLE.contains(&magic) {
            let length = source.u32(out)? as usize;
            source.take(length, out)?;
        } else if magic == MAGIC {
            frame(&mut source, checksum, out)?;
        } else {
            return Err(source.corrupt(out, "no LZ4 frame begins here"));
        }
    }
    Ok(())
}

fn frame(source: &mut Source<'_>, checksum: HeaderChecksum, out: &mut Output<'_>) -> Result<(), CompressionError> {
    let flags = Flags::read(source, checksum, out)?;
    let start = out.buffer.len();
    loop {
        let size = source.u32(out)?;
        if size == 0 {
            break;
        }
        let block = source.take((size & !STORED) as usize, out)?;
        if flags.block_checksum && source.u32(out)? != xxh32(block) {
            return Err(source.corrupt(out, "a block's checksum does not fit"));
        }
        if size & STORED == 0 {
            decode_block(block, start, &flags, source, out)?;
        } else if block.len() > flags.block_size {
            return Err(source.corrupt(out, "a block is larger than its frame allows"));
        } else {
            out.extend(block)?;
        }
    }
    let content = &out.buffer[start..];
    if flags.content_size.is_some_and(|size| size != content.len() as u64) {
        return Err(source.corrupt(out, "the content is not of the length that the frame says"));
    }
    if flags.content_checksum && source.u32(out)? != xxh32(&out.buffer[start..]) {
        return Err(source.corrupt(out, "the content's checksum does not fit"));
    }
    Ok(())
}

/// Decompresses one block to the end of the output, of which the frame began at `start`.
fn decode_block(
    block: &[u8],
    start: usize,
    flags: &Flags,
    source: &Source<'_>,
    out: &mut Output<'_>,
) -> Result<(), CompressionError> {
    let at = out.buffer.len();
    let possible = flags.block_size.min(block.len().saturating_mul(GREATEST_EXPANSION));
    let room = out.room().min(possible);
    out.buffer.resize(at + room, 0);
    let decoded = if flags.linked {
        let (done, free) = out.buffer.split_at_mut(at);
        block::decompress_into_with_dict(block, free, &done[start.max(at.saturating_sub(WINDOW))..])
    } else {
        block::decompress_into(block, &mut out.buffer[at..])
    };
    match decoded {
        Ok(length) => {
            out.buffer.truncate(at + length);
            Ok(())
        }
        Err(DecompressError::OutputTooSmall { .. }) if room < possible => Err(out.too_long()),
        Err(error) => Err(source.corrupt(out, error.to_string())),
    }
}

/// What the header of a frame says.
struct Flags {
    linked: bool,
    block_checksum: bool,
    content_checksum: bool,
    content_size: Option<u64>,
    block_size: usize,
}

impl Flags {
    const VERSION: u8 = 0b1100_0000;
    const INDEPENDENT: u8 = 1 << 5;
    const BLOCK_CHECKSUM: u8 = 1 << 4;
    const CONTENT_SIZE: u8 = 1 << 3;
    const CONTENT_CHECKSUM: u8 = 1 << 2;
    const DICTIONARY: u8 = 1;

    fn read(source: &mut Source<'_>, compared: HeaderChecksum, out: &Output<'_>) -> Result<Self, CompressionError> {
        let descriptor = source.rest;
        let [flags, block_size] = *source.array::<2>(out)?;
        if flags & Self::VERSION != 1 << 6 {
            return Err(source.corrupt(out, "the frame is not of version 1"));
        }
        let content_size =
            if flags & Self::CONTENT_SIZE == 0 { None } else { Some(u64::from_le_bytes(*source.array(out)?)) };
        if flags & Self::DICTIONARY != 0 {
            return Err(source.corrupt(out, "the frame needs a dictionary"));
        }
        let described = &descriptor[..descriptor.len() - source.rest.len()];
        let [checksum] = *source.array::<1>(out)?;
        if compared == HeaderChecksum::Compared && checksum != (xxh32(described) >> 8) as u8 {
            return Err(source.corrupt(out, "the header's checksum does not fit"));
        }
        let block_size = match block_size >> 4 & 7 {
            size @ 4..=7 => 1 << (8 + 2 * size),
            _ => return Err(source.corrupt(out, "there is no such block size")),
        };
        Ok(Self {
            linked: flags & Self::INDEPENDENT == 0,
            block_checksum: flags & Self::BLOCK_CHECKSUM != 0,
            content_checksum: flags & Self::CONTENT_CHECKSUM != 0,
            content_size,
            block_size,
        })
    }
}

/// The compressed bytes that are left.
struct Source<'a> {
    rest: &'a [u8],
    len: usize,
}

impl<'a> Source<'a> {
    fn take(&mut self, length: usize, out: &Output<'_>) -> Result<&'a [u8], CompressionError> {
        let Some((bytes, rest)) = self.rest.split_at_checked(length) else {
            return Err(self.corrupt(out, "the frame is cut short"));
        };
        self.rest = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self, out: &Output<'_>) -> Result<&'a [u8; N], CompressionError> {
        let Some((bytes, rest)) = self.rest.split_first_chunk() else {
            return Err(self.corrupt(out, "the frame is cut short"));
        };
        self.rest = rest;
        Ok(bytes)
    }

    fn u32(&mut self, out: &Output<'_>) -> Result<u32, CompressionError> {
        self.rest.try_get_u32_le().map_err(|_| self.corrupt(out, "the frame is cut short"))
    }

    #[cold]
    fn corrupt(&self, out: &Output<'_>, reason: impl Into<String>) -> CompressionError {
        out.corrupt(self.len - self.rest.len(), reason)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};

    use super::super::{Compressor, Decompressor};
    use super::*;

    fn decode(input: &[u8]) -> Result<Vec<u8>, CompressionError> {
        Decompressor::new(8 << 20).decompress(Compression::Lz4, input).map(|bytes| bytes.to_vec())
    }

    fn encode(input: &[u8]) -> Vec<u8> {
        let mut compressor = Compressor::new(Compression::Lz4, None).expect("lz4 is built in");
        compressor.compress(input).expect("lz4 compresses anything").to_vec()
    }

    fn framed(info: FrameInfo, input: &[u8]) -> Vec<u8> {
        let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
        encoder.write_all(input).expect("a vector takes anything");
        encoder.finish().expect("a vector takes anything")
    }

    /// Text that repeats over more than a block, so that linked blocks have something to refer to.
    fn text() -> Vec<u8> {
        (0..40_000_u32).flat_map(|n| format!("{} leader epoch, ", n % 977).into_bytes()).collect()
    }

    /// BR-100: every option of a frame, on and off, as an independent encoder sets them.
    #[test]
    fn frames_with_any_option_are_read() {
        let text = text();
        for block_size in [BlockSize::Max64KB, BlockSize::Max256KB, BlockSize::Max1MB, BlockSize::Max4MB] {
            for mode in [BlockMode::Independent, BlockMode::Linked] {
                for bits in 0..8 {
                    let info = FrameInfo::new()
                        .block_size(block_size)
                        .block_mode(mode)
                        .block_checksums(bits & 1 != 0)
                        .content_checksum(bits & 2 != 0)
                        .content_size((bits & 4 != 0).then_some(text.len() as u64));

                    assert_eq!(decode(&framed(info.clone(), &text)).as_ref(), Ok(&text), "{info:?}");
                }
            }
        }
    }

    #[test]
    fn our_frames_are_read_by_an_independent_decoder() {
        for input in [text(), Vec::new(), vec![1], (0..100_000_u32).map(|n| (n.wrapping_mul(n) >> 7) as u8).collect()] {
            let mut decoded = Vec::new();

            let frame = encode(&input);
            std::io::copy(&mut lz4_flex::frame::FrameDecoder::new(&frame[..]), &mut decoded).expect("a valid frame");

            assert_eq!(decoded, input);
            assert_eq!(decode(&frame), Ok(input));
        }
    }

    #[test]
    fn every_level_is_read_by_an_independent_decoder() {
        let noise: Vec<u8> = (0..70_000_u32).map(|n| (n.wrapping_mul(0x9e37_79b1) >> 13) as u8 ^ n as u8).collect();
        let text = &text()[..90_000];
        for level in [1, 2, 3, 6, 8, 9, 10, 13, 17] {
            let mut compressor = Compressor::new(Compression::Lz4, Some(level)).expect("a valid level");
            for input in [text, &noise, b"", b"a", &[5; 70_000]] {
                let frame = compressor.compress(input).expect("lz4 compresses anything").to_vec();
                let mut decoded = Vec::new();
                std::io::copy(&mut lz4_flex::frame::FrameDecoder::new(&frame[..]), &mut decoded).expect("a frame");

                assert!(decoded == input, "level {level}");
                assert_eq!(decode(&frame).as_deref(), Ok(input), "level {level}");
            }
        }
    }

    #[test]
    fn levels_below_one_and_beyond_seventeen_are_refused() {
        for level in [i32::MIN, -1, 0, 18] {
            let error = Compressor::new(Compression::Lz4, Some(level)).expect_err("no such level");

            assert_eq!(error.to_string(), format!("lz4 has no compression level {level}: expected 1 to 17"));
        }
    }

    #[test]
    fn nine_is_the_fast_one() {
        let mut nine = Compressor::new(Compression::Lz4, Some(9)).expect("a valid level");

        assert_eq!(nine.compress(&text()).expect("lz4 compresses anything"), encode(&text()));
    }

    #[test]
    fn incompressible_blocks_are_stored() {
        let noise: Vec<u8> = (0..70_000_u32).map(|n| (n.wrapping_mul(0x9e37_79b1) >> 13) as u8 ^ n as u8).collect();

        let frame = encode(&noise);

        assert!(frame.len() <= noise.len() + 7 + 2 * 4 + 4, "{}", frame.len());
        assert_eq!(decode(&frame), Ok(noise));
    }

    #[test]
    fn several_frames_and_skippable_ones_are_read() {
        let mut frames = encode(b"one");
        frames.extend_from_slice(&[0x5a, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 9, 9, 9]);
        frames.extend_from_slice(&encode(b""));
        frames.extend_from_slice(&encode(b"two"));

        assert_eq!(decode(&frames), Ok(b"onetwo".to_vec()));
    }

    #[test]
    fn wrong_checksums_are_found() {
        let info = FrameInfo::new().block_checksums(true).content_checksum(true);
        let frame = framed(info, b"checked twice, checked twice");
        for (position, reason) in [(6, "header"), (frame.len() - 9, "block"), (frame.len() - 1, "content")] {
            let mut broken = frame.clone();
            broken[position] ^= 1;

            let error = decode(&broken).expect_err("a flipped bit");

            assert!(error.to_string().contains(reason), "{error}");
        }
    }

    #[test]
    fn a_bomb_stops_at_the_limit() {
        let bomb = encode(&vec![0; 50 << 20]);
        let mut decompressor = Decompressor::new(1 << 20);

        let error = decompressor.decompress(Compression::Lz4, &bomb);

        assert_eq!(error, Err(CompressionError::LimitExceeded { codec: Compression::Lz4, limit: 1 << 20 }));
        assert!(decompressor.buffer.capacity() <= 2 << 20);
    }

    /// A frame of 4 MiB blocks with a block of a few bytes costs a few bytes.
    #[test]
    fn the_block_size_is_not_allocated() {
        let frame = framed(FrameInfo::new().block_size(BlockSize::Max4MB), b"tiny tiny tiny tiny tiny");
        let mut decompressor = Decompressor::new(8 << 20);

        decompressor.decompress(Compression::Lz4, &frame).expect("a valid frame");

        assert!(decompressor.buffer.capacity() < 64 << 10, "{}", decompressor.buffer.capacity());
    }

    #[test]
    fn the_limit_itself_is_allowed() {
        let frame = encode(&[7; 1000]);

        assert!(Decompressor::new(1000).decompress(Compression::Lz4, &frame).is_ok());
        assert!(Decompressor::new(999).decompress(Compression::Lz4, &frame).is_err());
    }
}
