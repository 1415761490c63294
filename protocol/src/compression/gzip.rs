//! gzip: DEFLATE between a header of ten bytes and a checksum (RFC 1952).

use std::io::Read;

use flate2::{Compress, Crc, FlushCompress, Status};

use super::{Compression, CompressionError, Output};

/// As in Kafka, without DEFLATE's level 0, which compresses nothing: that is [`Compression::None`].
const LEVELS: std::ops::RangeInclusive<i32> = 1..=9;
const DEFAULT_LEVEL: i32 = 6;
/// Magic, method, no flags, no time, no extra flags, unknown system: what the Java runtime writes.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// Writes one member, with a window that lives on.
pub(super) struct Encoder {
    deflate: Compress,
}

impl Encoder {
    pub(super) fn new(level: Option<i32>) -> Result<Self, CompressionError> {
        let level = CompressionError::check_level(Compression::Gzip, level.unwrap_or(DEFAULT_LEVEL), LEVELS)?;
        Ok(Self { deflate: Compress::new(flate2::Compression::new(level as u32), false) })
    }

    pub(super) fn encode(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(), CompressionError> {
        out.extend_from_slice(&HEADER);
        self.deflate.reset();
        loop {
            let read = self.deflate.total_in() as usize;
            // Enough for most batches at once: they shrink to a third, and stored blocks cost 5 bytes in 64 KiB.
            out.reserve(((input.len() - read) / 2).max(1 << 10));
            let status = self
                .deflate
                .compress_vec(&input[read..], out, FlushCompress::Finish)
                .map_err(|error| CompressionError::Encode { codec: Compression::Gzip, reason: error.to_string() })?;
            if status == Status::StreamEnd {
                break;
            }
        }
        let mut crc = Crc::new();
        crc.update(input);
        out.extend_from_slice(&crc.sum().to_le_bytes());
        out.extend_from_slice(&crc.amount().to_le_bytes());
        Ok(())
    }
}

/// Decodes all members of `input`.
pub(super) fn decode(input: &[u8], out: &mut Output<'_>) -> Result<(), CompressionError> {
    let mut decoder = flate2::bufread::MultiGzDecoder::new(input);
    let mut step = input.len().saturating_mul(4).clamp(1 << 10, 1 << 20);
    loop {
        let at = out.buffer.len();
        // With no room left, one more byte tells the end from a bomb.
        let room = out.room().min(step).max(1);
        out.buffer.resize(at + room, 0);
        let read = decoder.read(&mut out.buffer[at..]);
        let read = read.map_err(|error| out.corrupt(input.len() - decoder.get_ref().len(), error.to_string()))?;
        out.buffer.truncate(at + read);
        if read == 0 {
            return Ok(());
        }
        if out.buffer.len() > out.limit {
            return Err(out.too_long());
        }
        step = out.buffer.len().clamp(1 << 10, 1 << 20);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::{Compressor, Decompressor};
    use super::*;

    fn decode(input: &[u8]) -> Result<Vec<u8>, CompressionError> {
        Decompressor::new(8 << 20).decompress(Compression::Gzip, input).map(|bytes| bytes.to_vec())
    }

    fn encode(level: Option<i32>, input: &[u8]) -> Vec<u8> {
        let mut compressor = Compressor::new(Compression::Gzip, level).expect("a valid level");
        compressor.compress(&[1; 99_999]).expect("gzip compresses anything");
        compressor.compress(input).expect("gzip compresses anything").to_vec()
    }

    #[test]
    fn every_level_is_read_by_an_independent_decoder() {
        let noise: Vec<u8> = (0..200_000_u32).map(|n| (n.wrapping_mul(0x9e37_79b1) >> 13) as u8).collect();
        for level in LEVELS {
            for input in [&noise[..], b"", b"a", &[5; 300_000]] {
                let mut read = Vec::new();

                let member = encode(Some(level), input);
                flate2::read::GzDecoder::new(&member[..]).read_to_end(&mut read).expect("a valid member");

                assert_eq!(read, input);
                assert_eq!(decode(&member).as_deref(), Ok(input));
            }
        }
    }

    #[test]
    fn members_with_names_and_several_of_them_are_read() {
        let mut named = flate2::GzBuilder::new()
            .filename("orders-0.log")
            .comment("a comment")
            .extra(vec![1, 2, 3])
            .write(Vec::new(), flate2::Compression::fast());
        named.write_all(b"one ").expect("a vector takes anything");
        let mut members = named.finish().expect("a vector takes anything");
        members.extend_from_slice(&encode(None, b"two"));

        assert_eq!(decode(&members), Ok(b"one two".to_vec()));
    }

    #[test]
    fn levels_below_one_and_beyond_nine_are_refused() {
        for level in [i32::MIN, -1, 0, 10] {
            let error = Compressor::new(Compression::Gzip, Some(level)).expect_err("no such level");

            assert_eq!(error.to_string(), format!("gzip has no compression level {level}: expected 1 to 9"));
        }
    }

    #[test]
    fn a_bomb_stops_at_the_limit() {
        let bomb = encode(None, &vec![0; 50 << 20]);
        let mut decompressor = Decompressor::new(1 << 20);

        let error = decompressor.decompress(Compression::Gzip, &bomb);

        assert_eq!(error, Err(CompressionError::LimitExceeded { codec: Compression::Gzip, limit: 1 << 20 }));
        assert!(decompressor.buffer.capacity() <= 4 << 20, "{}", decompressor.buffer.capacity());
    }

    #[test]
    fn the_limit_itself_is_allowed() {
        let member = encode(None, &[7; 1000]);

        assert!(Decompressor::new(1000).decompress(Compression::Gzip, &member).is_ok());
        assert!(Decompressor::new(999).decompress(Compression::Gzip, &member).is_err());
    }

    #[test]
    fn a_wrong_checksum_is_found() {
        let mut member = encode(None, b"checked");
        let at = member.len() - 8;
        member[at] ^= 1;

        assert!(matches!(decode(&member), Err(CompressionError::Corrupt { .. })));
    }
}
