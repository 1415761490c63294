//! Writes one zstd frame: by the C library with the feature `zstd`, in Rust with `zstd-rust`. With both, C does it.

use std::ops::RangeInclusive;

use super::super::{Compression, CompressionError};

/// The levels of the format's reference implementation, which both encoders have. Java's client allows the same.
const LEVELS: RangeInclusive<i32> = -131_072..=22;
/// What no level means, and level 0 too.
const DEFAULT_LEVEL: i32 = 3;

/// Returns the level to use, if there is such a one.
fn checked(level: Option<i32>) -> Result<i32, CompressionError> {
    CompressionError::check_level(Compression::Zstd, level.unwrap_or(DEFAULT_LEVEL), LEVELS)
}

#[cfg(feature = "zstd")]
mod built_in {
    use super::{Compression, CompressionError, checked};

    /// The C library, with tables that live on.
    pub(in crate::compression) struct Encoder {
        context: zstd::bulk::Compressor<'static>,
    }

    impl Encoder {
        pub(in crate::compression) fn new(level: Option<i32>) -> Result<Self, CompressionError> {
            Ok(Self { context: zstd::bulk::Compressor::new(checked(level)?).map_err(Self::failed)? })
        }

        pub(in crate::compression) fn encode(
            &mut self,
            input: &[u8],
            out: &mut Vec<u8>,
        ) -> Result<(), CompressionError> {
            out.reserve(zstd::zstd_safe::compress_bound(input.len()));
            self.context.compress_to_buffer(input, out).map_err(Self::failed)?;
            Ok(())
        }

        #[cold]
        fn failed(error: std::io::Error) -> CompressionError {
            CompressionError::Encode { codec: Compression::Zstd, reason: error.to_string() }
        }
    }
}

#[cfg(all(feature = "zstd-rust", not(feature = "zstd")))]
mod built_in {
    use std::cell::RefCell;

    use structured_zstd::encoding::{CompressionLevel, FrameCompressor};

    use super::{CompressionError, checked};

    /// Tables that grew beyond this are not kept.
    const KEPT_TABLES: usize = 32 << 20;

    thread_local! {
        /// The encoder that this thread used last, with its level.
        static FRAMES: RefCell<Option<(i32, FrameCompressor)>> = const { RefCell::new(None) };
    }

    /// An encoder in Rust. Its tables live on in the thread that used them: they must not move to another one, as a
    /// producer does with its compressor.
    pub(in crate::compression) struct Encoder {
        level: i32,
    }

    impl Encoder {
        pub(in crate::compression) fn new(level: Option<i32>) -> Result<Self, CompressionError> {
            Ok(Self { level: checked(level)? })
        }

        #[expect(
            clippy::unnecessary_wraps,
            clippy::needless_pass_by_ref_mut,
            reason = "the signature of the C library"
        )]
        pub(in crate::compression) fn encode(
            &mut self,
            input: &[u8],
            out: &mut Vec<u8>,
        ) -> Result<(), CompressionError> {
            FRAMES.with_borrow_mut(|kept| {
                kept.take_if(|(level, _)| *level != self.level);
                let fresh = || (self.level, FrameCompressor::new(CompressionLevel::from_level(self.level)));
                let (_, frames) = kept.get_or_insert_with(fresh);
                frames.compress_independent_frame_into(input, out);
                kept.take_if(|(_, frames)| frames.heap_size() > KEPT_TABLES);
            });
            Ok(())
        }
    }
}

#[cfg(not(any(feature = "zstd", feature = "zstd-rust")))]
mod built_in {
    use super::{Compression, CompressionError, checked};

    /// What stands for the encoder in a build without it: there are no values of it.
    pub(in crate::compression) enum Encoder {}

    impl Encoder {
        pub(in crate::compression) fn new(level: Option<i32>) -> Result<Self, CompressionError> {
            checked(level)?;
            Err(CompressionError::NotBuiltIn { codec: Compression::Zstd, features: "`zstd` or `zstd-rust`" })
        }

        #[expect(clippy::needless_pass_by_ref_mut, reason = "the signature of the encoders that are built in")]
        pub(in crate::compression) fn encode(
            &mut self,
            _input: &[u8],
            _out: &mut Vec<u8>,
        ) -> Result<(), CompressionError> {
            match *self {}
        }
    }
}

pub(in crate::compression) use built_in::Encoder;

#[cfg(test)]
mod tests {
    use super::super::super::Compressor;
    use super::*;

    #[test]
    fn levels_that_zstd_does_not_have_are_refused_in_every_build() {
        for level in [-131_073, 23, i32::MIN, i32::MAX] {
            let error = Compressor::new(Compression::Zstd, Some(level)).expect_err("no such level");

            let expected = format!("zstd has no compression level {level}: expected -131072 to 22");
            assert_eq!(error.to_string(), expected);
        }
    }

    #[cfg(not(any(feature = "zstd", feature = "zstd-rust")))]
    #[test]
    fn encoding_names_the_features_that_bring_it() {
        let error = Compressor::new(Compression::Zstd, None).expect_err("not built in");

        assert!(error.to_string().contains("`zstd` or `zstd-rust`"), "{error}");
    }

    /// By our own decoder, and by that of the library that is not the encoder.
    #[cfg(any(feature = "zstd", feature = "zstd-rust"))]
    #[test]
    fn every_level_is_read() {
        use super::super::super::Decompressor;

        let text: Vec<u8> = (0..40_000_u32).flat_map(|n| format!("{} leader epoch, ", n % 977).into_bytes()).collect();
        let noise: Vec<u8> = (0..70_000_u32).map(|n| (n.wrapping_mul(0x9e37_79b1) >> 13) as u8 ^ n as u8).collect();
        let mut decompressor = Decompressor::new(1 << 20);
        for level in [-131_072, -5, 0, 1, 2, 3, 6, 12, 19, 22] {
            let mut compressor = Compressor::new(Compression::Zstd, Some(level)).expect("a valid level");
            for input in [&text[..], &noise, b"", b"a", &[7; 200_000], &text] {
                let frame = compressor.compress(input).expect("it compresses");

                let decoded = decompressor.decompress(Compression::Zstd, frame);
                assert_eq!(decoded.as_deref(), Ok(input), "level {level}");
                // Behind a level that costs a window of megabytes for every frame, small ones must stay small.
                assert!(frame.len() <= input.len() + 32, "level {level}: {} of {}", frame.len(), input.len());
            }
        }
    }
}
