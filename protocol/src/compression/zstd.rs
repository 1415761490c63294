//! Zstandard: decoded in Rust always, encoded where a feature brings an encoder.
//!
//! Java streams its frames: no content size, and a window that is larger than most batches. Several frames, and
//! skippable ones between them, are one stream.

use bytes::{Buf, BufMut};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::Read;

use super::{CompressionError, Output};

mod encoder;

pub(super) use encoder::Encoder;

const MAGIC: u32 = 0xfd2f_b528;
/// Frames with these magics carry something for somebody else.
const SKIPPABLE: std::ops::RangeInclusive<u32> = 0x184d_2a50..=0x184d_2a5f;
/// Where a frame's descriptor lies, and behind it that of the window, if there is one.
const DESCRIPTOR: usize = 4;
const WINDOW: usize = 5;
/// No block holds more, compressed or not.
const GREATEST_BLOCK: usize = 128 << 10;
/// A decoder that grew a window beyond this is not kept.
const KEPT_WINDOW: usize = 8 << 20;

/// Reads frames, with tables and a window that live on.
pub(super) struct Decoder {
    frames: FrameDecoder,
}

impl Decoder {
    pub(super) fn new() -> Self {
        Self { frames: FrameDecoder::new() }
    }

    /// Decodes all frames of `input`.
    pub(super) fn decode(&mut self, input: &[u8], out: &mut Output<'_>) -> Result<(), CompressionError> {
        let mut rest = input;
        while !rest.is_empty() {
            let position = input.len() - rest.len();
            let mut head = rest;
            let magic = head.try_get_u32_le().map_err(|_| out.corrupt(position, "the frame is cut short"))?;
            if SKIPPABLE.contains(&magic) {
                let length = head.try_get_u32_le().map_err(|_| out.corrupt(position, "the frame is cut short"))?;
                rest = head
                    .get(length as usize..)
                    .ok_or_else(|| out.corrupt(position, "a skippable frame is cut short"))?;
            } else if magic == MAGIC {
                let length = self.frame(rest, position, out)?;
                rest = &rest[length..];
            } else {
                return Err(out.corrupt(position, "no zstd frame begins here"));
            }
        }
        Ok(())
    }

    /// Decodes the frame at the start of `input` and returns its length.
    fn frame(&mut self, input: &[u8], position: usize, out: &mut Output<'_>) -> Result<usize, CompressionError> {
        let Some(header) = FrameHeader::read(input) else {
            return Err(out.corrupt(position, "the frame is cut short"));
        };
        let (begin, room) = (out.buffer.len(), out.room());
        if header.content_size.is_some_and(|size| size > room as u64) {
            return Err(out.too_long());
        }
        // Content never refers back further than it is long, so what the blocks cannot hold needs no window.
        let most = greatest_content(&input[header.len..]);
        if header.content_size.is_some_and(|size| size > most) {
            return Err(out.corrupt(position, "its blocks cannot hold the content that the frame says"));
        }
        let (start, window) = header.within(room.min(usize::try_from(most).unwrap_or(usize::MAX)));
        let mut source = Read::chain(&start[..], &input[start.len()..]);

        self.frames.set_max_window_size(window as u64);
        if let Err(error) = self.frames.reset(&mut source) {
            return Err(out.corrupt(position, error.to_string()));
        }
        loop {
            let decoded = self.frames.decode_blocks(&mut source, BlockDecodingStrategy::UptoBlocks(1));
            let position = position + self.frames.bytes_read_from_source() as usize;
            if let Err(error) = decoded {
                self.forget_large(window);
                return Err(out.corrupt(position, error.to_string()));
            }
            let ready = self.frames.can_collect();
            let is_finished = self.frames.is_finished();
            // What the window retains counts as well: it comes out in the end.
            let retained = if is_finished || ready == 0 { 0 } else { window };
            if ready + retained > out.room() {
                self.forget_large(window);
                return Err(out.too_long());
            }
            if let Err(error) = self.frames.collect_to_writer((&mut *out.buffer).writer()) {
                return Err(out.corrupt(position, error.to_string()));
            }
            if is_finished {
                break;
            }
        }
        let length = self.frames.bytes_read_from_source() as usize;
        self.forget_large(window);
        if header.content_size.is_some_and(|size| size != (out.buffer.len() - begin) as u64) {
            return Err(out.corrupt(position, "the content is not of the length that the frame says"));
        }
        Ok(length)
    }

    fn forget_large(&mut self, window: usize) {
        if window > KEPT_WINDOW {
            self.frames = FrameDecoder::new();
        }
    }
}

/// What the header of a frame says, as far as it decides what is allocated.
struct FrameHeader {
    /// Magic, descriptor, and the window's descriptor if there is one.
    start: [u8; 6],
    has_window: bool,
    content_size: Option<u64>,
    /// Where the blocks begin.
    len: usize,
}

impl FrameHeader {
    const SINGLE_SEGMENT: u8 = 1 << 5;

    fn read(input: &[u8]) -> Option<Self> {
        let start: [u8; 6] = *input.first_chunk()?;
        let descriptor = start[DESCRIPTOR];
        let is_single_segment = descriptor & Self::SINGLE_SEGMENT != 0;
        let mut rest = &input[if is_single_segment { WINDOW } else { WINDOW + 1 }..];
        let dictionary_id_len = [0, 1, 2, 4][usize::from(descriptor & 3)];
        rest = rest.get(dictionary_id_len..)?;
        let content_size = match descriptor >> 6 {
            0 if is_single_segment => Some(u64::from(rest.try_get_u8().ok()?)),
            0 => None,
            1 => Some(u64::from(rest.try_get_u16_le().ok()?) + 256),
            2 => Some(u64::from(rest.try_get_u32_le().ok()?)),
            _ => Some(rest.try_get_u64_le().ok()?),
        };
        Some(Self { start, has_window: !is_single_segment, content_size, len: input.len() - rest.len() })
    }

    /// Returns the start of the frame with a window that suits content of `room` bytes, and the size of that window.
    ///
    /// The decoder reserves the window, which may be 128 MiB around a few bytes of content. A window that holds the
    /// whole content does.
    fn within(&self, room: usize) -> ([u8; 6], usize) {
        let size = |descriptor: u8| {
            let base = 1_usize << (10 + (descriptor >> 3));
            base + base / 8 * usize::from(descriptor & 7)
        };
        let mut start = self.start;
        if !self.has_window {
            // The window is the content, whose size was compared with the room.
            return (start, self.content_size.map_or(0, |size| size as usize));
        }
        // A block may be as large as the window, and is checked against it before it is decoded.
        let enough = room.max(GREATEST_BLOCK);
        let enough = (0..=u8::MAX).find(|&descriptor| size(descriptor) >= enough).unwrap_or(u8::MAX);
        start[WINDOW] = start[WINDOW].min(enough);
        (start, size(start[WINDOW]))
    }
}

/// The most that the blocks at the start of `input` can become, up to the last one or to where they are cut short.
fn greatest_content(mut input: &[u8]) -> u64 {
    const STORED: u32 = 0;
    const REPEATED: u32 = 1;
    let mut most = 0;
    while let Some((head, rest)) = input.split_first_chunk::<3>() {
        let head = u32::from_le_bytes([head[0], head[1], head[2], 0]);
        let (is_last, kind, size) = (head & 1 == 1, head >> 1 & 3, (head >> 3) as usize);
        let (length, content) = match kind {
            STORED => (size, size),
            REPEATED => (1, size),
            _ => (size, GREATEST_BLOCK),
        };
        most += content as u64;
        match rest.get(length..) {
            Some(rest) if !is_last => input = rest,
            _ => break,
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::super::{Compression, Decompressor};
    use super::*;

    /// Frames by hand: blocks of one repeated byte are all a bomb needs.
    struct Frame(Vec<u8>);

    impl Frame {
        /// A frame with this window descriptor and no content size.
        fn streamed(window: u8) -> Self {
            Self([&MAGIC.to_le_bytes()[..], &[0, window]].concat())
        }

        /// A frame that is one segment and says its size.
        fn sized(size: u32) -> Self {
            Self([&MAGIC.to_le_bytes()[..], &[0b1010_0000], &size.to_le_bytes()].concat())
        }

        fn repeated(mut self, byte: u8, times: u32, last: bool) -> Self {
            self.0.extend_from_slice(&(times << 3 | 1 << 1 | u32::from(last)).to_le_bytes()[..3]);
            self.0.push(byte);
            self
        }

        fn stored(mut self, bytes: &[u8], last: bool) -> Self {
            self.0.extend_from_slice(&((bytes.len() as u32) << 3 | u32::from(last)).to_le_bytes()[..3]);
            self.0.extend_from_slice(bytes);
            self
        }
    }

    fn decode(limit: usize, input: &[u8]) -> Result<Vec<u8>, CompressionError> {
        Decompressor::new(limit).decompress(Compression::Zstd, input).map(|bytes| bytes.to_vec())
    }

    /// The descriptor of a window of 8 MiB.
    const WINDOW_8_MIB: u8 = 13 << 3;
    const BLOCK: u32 = 128 << 10;

    /// BR-098: several frames, with and without a size, empty, and something for others between them.
    #[test]
    fn several_frames_are_one_stream() {
        let mut frames = Frame::streamed(WINDOW_8_MIB).stored(b"one ", false).stored(b"two ", true).0;
        frames.extend_from_slice(&[0x53, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9]);
        frames.extend_from_slice(&Frame::streamed(0).stored(b"", true).0);
        frames.extend_from_slice(&Frame::sized(5).stored(b"three", true).0);

        assert_eq!(decode(100, &frames), Ok(b"one two three".to_vec()));
    }

    #[test]
    fn an_empty_stream_is_nothing() {
        assert_eq!(decode(100, b""), Ok(Vec::new()));
    }

    /// A window of 3.75 TiB around one byte; and one of 8 MiB, at a limit far below.
    #[test]
    fn the_window_is_not_allocated() {
        for window in [0xff, WINDOW_8_MIB] {
            let frame = Frame::streamed(window).repeated(b'x', 1000, true).0;

            assert_eq!(decode(1000, &frame), Ok(vec![b'x'; 1000]));
            assert_eq!(
                decode(999, &frame),
                Err(CompressionError::LimitExceeded { codec: Compression::Zstd, limit: 999 })
            );
        }
    }

    /// The sum of what single blocks can become, and not a byte more.
    #[test]
    fn the_content_of_blocks_is_bounded() {
        let blocks = Frame(vec![]).stored(b"four", false).repeated(7, 1000, false);
        let mut compressed = blocks.0.clone();
        compressed.extend_from_slice(&[2 << 3 | 2 << 1, 0, 0, 9, 9]);
        let last = Frame(compressed.clone()).stored(b"", true).0;

        assert_eq!(greatest_content(&[]), 0);
        assert_eq!(greatest_content(&blocks.0), 1004);
        assert_eq!(greatest_content(&compressed), 1004 + (128 << 10));
        assert_eq!(greatest_content(&[&last[..], &blocks.0].concat()), 1004 + (128 << 10), "it stops at the last one");
        assert_eq!(greatest_content(&compressed[..compressed.len() - 1]), 1004 + (128 << 10));
    }

    #[test]
    fn a_size_that_the_blocks_cannot_hold_is_refused_at_once() {
        let frame = Frame::sized(1 << 20).repeated(0, BLOCK, true).0;

        let error = decode(1 << 20, &frame).expect_err("a lie");

        assert!(error.to_string().contains("cannot hold"), "{error}");
    }

    #[test]
    fn a_size_beyond_the_limit_is_refused_at_once() {
        let frame = Frame::sized(1 << 31).repeated(0, 1, true).0;

        assert!(matches!(decode(1 << 20, &frame), Err(CompressionError::LimitExceeded { .. })));
    }

    #[test]
    fn a_wrong_size_is_found() {
        let frame = Frame::sized(300).repeated(0, 299, true).0;

        assert!(matches!(decode(1 << 20, &frame), Err(CompressionError::Corrupt { .. })));
    }

    #[test]
    fn a_bomb_stops_at_the_limit() {
        for window in [0xff, WINDOW_8_MIB, 0] {
            // A block is never larger than the window, and the least window is of 1 KiB.
            let block = if window == 0 { 1 << 10 } else { BLOCK };
            let mut bomb = Frame::streamed(window);
            for _ in 0..100_000 {
                bomb = bomb.repeated(0, block, false);
            }
            let mut decompressor = Decompressor::new(1 << 20);

            let error = decompressor.decompress(Compression::Zstd, &bomb.0);

            let codec = Compression::Zstd;
            assert_eq!(error, Err(CompressionError::LimitExceeded { codec, limit: 1 << 20 }), "window {window}");
            assert!(decompressor.buffer.capacity() <= 4 << 20);
        }
    }

    #[test]
    fn the_limit_itself_is_allowed_in_every_window() {
        for window in [0, 1, WINDOW_8_MIB, 0xff] {
            let mut frame = Frame::streamed(window);
            for _ in 0..1023 {
                frame = frame.repeated(7, 1 << 10, false);
            }
            let frame = frame.repeated(7, 1 << 10, true).0;

            assert_eq!(decode(1 << 20, &frame).map(|bytes| bytes.len()), Ok(1 << 20), "window {window}");
            assert!(decode((1 << 20) - 1, &frame).is_err(), "window {window}");
        }
    }
}
