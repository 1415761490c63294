//! The codecs of record batches: gzip, snappy, lz4 and zstd.
//!
//! A [`Compressor`] and a [`Decompressor`] keep their tables and buffers from one batch to the next, because fresh
//! buffers of a batch's size cost more in page faults than the work itself. Everything decodes in Rust. All codecs but
//! zstd encode too; that one needs the feature `zstd` for the C library or `zstd-rust` for an encoder in Rust.
//!
//! | codec  | written                                 | read                            | levels             |
//! |--------|-----------------------------------------|---------------------------------|--------------------|
//! | gzip   | one member                              | any number of members           | 1 to 9; 6          |
//! | snappy | snappy-java's framing, chunks of 32 KiB | that, and raw blocks            | none               |
//! | lz4    | frames of independent blocks of 64 KiB  | frames with any option          | 1 to 17; 9 is fast |
//! | zstd   | one frame                               | any frames without a dictionary | -131072 to 22; 3   |
//!
//! What a frame says about its own size is a hint, never a promise: output grows with what was really decoded, and
//! stops at the limit that the [`Decompressor`] was made with. That limit is for one batch. Whoever keeps what becomes
//! of many, as of all that one response holds, sets a budget for them together:
//!
//! ```
//! use krafka_protocol::compression::{
//!     Compression, CompressionError, Compressor, DEFAULT_DECOMPRESSION_LIMIT, Decompressor,
//! };
//!
//! # fn main() -> Result<(), CompressionError> {
//! let mut compressor = Compressor::new(Compression::Lz4, None)?;
//! let compressed = compressor.compress(&[0; 60_000])?;
//!
//! let mut decompressor = Decompressor::new(DEFAULT_DECOMPRESSION_LIMIT);
//! decompressor.set_budget(100_000);
//! let first = decompressor.decompress(Compression::Lz4, compressed)?;
//! let second = decompressor.decompress(Compression::Lz4, compressed).unwrap_err();
//! assert_eq!(
//!     second.to_string(),
//!     "lz4: more than 40000 bytes decompressed, which is what was left of a budget of 100000"
//! );
//!
//! drop(first);
//! decompressor.set_budget(100_000);
//! assert!(decompressor.decompress(Compression::Lz4, compressed).is_ok());
//! # Ok(())
//! # }
//! ```

mod error;
mod gzip;
mod lz4;
mod snappy;
mod xxh32;
mod zstd;

use std::fmt;
use std::str::FromStr;

use bytes::{Bytes, BytesMut};

pub use error::CompressionError;
use lz4::HeaderChecksum;

/// How the records of a batch are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Compression {
    /// Not at all.
    #[default]
    None = 0,
    /// DEFLATE in gzip's framing (RFC 1952): small and slow.
    Gzip = 1,
    /// Snappy in the framing of snappy-java.
    Snappy = 2,
    /// LZ4 frames: the fastest.
    Lz4 = 3,
    /// Zstandard: small and fast. Encoding needs the feature `zstd` (C) or `zstd-rust`.
    Zstd = 4,
}

impl Compression {
    /// All codecs, in the order of their codes.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// The number that stands for the codec in the attributes of a batch.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Kafka's name for the codec, as in `compression.type`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Compression {
    type Err = CompressionError;

    fn from_str(name: &str) -> Result<Self, CompressionError> {
        Self::ALL
            .into_iter()
            .find(|codec| codec.name() == name)
            .ok_or_else(|| CompressionError::UnknownName { name: name.to_owned() })
    }
}

impl TryFrom<u8> for Compression {
    type Error = CompressionError;

    fn try_from(code: u8) -> Result<Self, CompressionError> {
        Self::ALL.get(usize::from(code)).copied().ok_or(CompressionError::UnknownCode { code })
    }
}

/// The most that one batch may decompress to, unless told otherwise: 128 MiB. A fair budget for a response, too.
pub const DEFAULT_DECOMPRESSION_LIMIT: usize = 128 << 20;

/// A decompressor does not keep a buffer that grew beyond this.
const KEPT_BUFFER: usize = 8 << 20;

/// Compresses batches with one codec at one level, keeping its tables and buffers between them.
pub struct Compressor {
    codec: Compression,
    state: Encoder,
    scratch: Vec<u8>,
}

enum Encoder {
    None,
    Gzip(gzip::Encoder),
    Snappy(Box<snappy::Encoder>),
    Lz4(lz4::Encoder),
    Zstd(zstd::Encoder),
}

impl Compressor {
    /// Returns a compressor for `codec`. `level` is for gzip (1 to 9), lz4 (1 to 17) and zstd (-131072 to 22). `None`
    /// is the codec's default.
    ///
    /// # Errors
    ///
    /// If the codec has no such level, or the codec is zstd and this build cannot encode it.
    pub fn new(codec: Compression, level: Option<i32>) -> Result<Self, CompressionError> {
        if let (Compression::None | Compression::Snappy, Some(level)) = (codec, level) {
            return Err(CompressionError::NoLevels { codec, level });
        }
        let state = match codec {
            Compression::None => Encoder::None,
            Compression::Gzip => Encoder::Gzip(gzip::Encoder::new(level)?),
            Compression::Snappy => Encoder::Snappy(Box::new(snappy::Encoder::new())),
            Compression::Lz4 => Encoder::Lz4(lz4::Encoder::new(level)?),
            Compression::Zstd => Encoder::Zstd(zstd::Encoder::new(level)?),
        };
        Ok(Self { codec, state, scratch: Vec::new() })
    }

    /// Returns a compressor that leaves batches as they are.
    pub const fn none() -> Self {
        Self { codec: Compression::None, state: Encoder::None, scratch: Vec::new() }
    }

    /// The codec.
    pub const fn codec(&self) -> Compression {
        self.codec
    }

    /// Compresses `input` and returns the result, which lives in this compressor's buffer until the next call.
    ///
    /// # Errors
    ///
    /// If the codec fails, which needs an input beyond its limits (4 GiB for snappy).
    pub fn compress(&mut self, input: &[u8]) -> Result<&[u8], CompressionError> {
        let out = &mut self.scratch;
        out.clear();
        match &mut self.state {
            Encoder::None => out.extend_from_slice(input),
            Encoder::Gzip(encoder) => encoder.encode(input, out)?,
            Encoder::Snappy(encoder) => encoder.encode(input, out)?,
            Encoder::Lz4(encoder) => encoder.encode(input, out)?,
            Encoder::Zstd(encoder) => encoder.encode(input, out)?,
        }
        Ok(out)
    }
}

impl fmt::Debug for Compressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compressor").field("codec", &self.codec).finish_non_exhaustive()
    }
}

/// Decompresses batches up to a limit, keeping its tables and buffers between them.
pub struct Decompressor {
    limit: usize,
    budget: Option<Budget>,
    buffer: BytesMut,
    snappy: snappy::Decoder,
    zstd: zstd::Decoder,
}

/// What several batches may become together.
#[derive(Clone, Copy)]
struct Budget {
    total: usize,
    left: usize,
}

impl Decompressor {
    /// Returns a decompressor that refuses to make more than `limit` bytes of one batch. It has no budget yet.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            budget: None,
            buffer: BytesMut::new(),
            snappy: snappy::Decoder::new(),
            zstd: zstd::Decoder::new(),
        }
    }

    /// The most bytes that one batch may become.
    pub const fn limit(&self) -> usize {
        self.limit
    }

    /// Changes the limit for the batches to come.
    pub const fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Sets how many bytes the batches to come may become together, from now on and until it is set again.
    pub const fn set_budget(&mut self, bytes: usize) {
        self.budget = Some(Budget { total: bytes, left: bytes });
    }

    /// What is left of the budget; `None` if none was ever set.
    pub const fn budget(&self) -> Option<usize> {
        match self.budget {
            Some(budget) => Some(budget.left),
            None => None,
        }
    }

    /// Decompresses `input`. The result shares this decompressor's buffer, which is used again once everything that
    /// was sliced from it is gone.
    ///
    /// # Errors
    ///
    /// If `input` is not what `codec` writes, or becomes longer than the limit or what is left of the budget.
    pub fn decompress(&mut self, codec: Compression, input: &[u8]) -> Result<Bytes, CompressionError> {
        self.run(codec, HeaderChecksum::Compared, input)
    }

    /// Decompresses the value of a message of format `magic`, 0 or 1.
    pub(crate) fn decompress_messages(
        &mut self,
        codec: Compression,
        magic: i8,
        input: &[u8],
    ) -> Result<Bytes, CompressionError> {
        let checksum = if magic == 0 { HeaderChecksum::Ignored } else { HeaderChecksum::Compared };
        self.run(codec, checksum, input)
    }

    fn run(&mut self, codec: Compression, lz4: HeaderChecksum, input: &[u8]) -> Result<Bytes, CompressionError> {
        let limit = self.budget.map_or(self.limit, |budget| budget.left.min(self.limit));
        let mut out = Output { buffer: &mut self.buffer, codec, limit };
        out.buffer.clear();
        let done = match codec {
            Compression::None => out.extend(input),
            Compression::Gzip => gzip::decode(input, &mut out),
            Compression::Snappy => self.snappy.decode(input, &mut out),
            Compression::Lz4 => lz4::decode(input, lz4, &mut out),
            Compression::Zstd => self.zstd.decode(input, &mut out),
        };
        let decompressed = self.buffer.split().freeze();
        if decompressed.len() > KEPT_BUFFER {
            // One huge batch must not cost its size for the rest of a consumer's life.
            self.buffer = BytesMut::new();
        }
        match (done, &mut self.budget) {
            (Ok(()), budget) => {
                if let Some(budget) = budget {
                    budget.left -= decompressed.len();
                }
                Ok(decompressed)
            }
            (Err(CompressionError::LimitExceeded { .. }), Some(budget)) if limit < self.limit => {
                Err(CompressionError::BudgetExceeded { codec, left: budget.left, budget: budget.total })
            }
            (Err(error), _) => Err(error),
        }
    }
}

impl Default for Decompressor {
    fn default() -> Self {
        Self::new(DEFAULT_DECOMPRESSION_LIMIT)
    }
}

impl fmt::Debug for Decompressor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decompressor").field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// Clients keep both in tasks, which their runtime moves between threads, whichever encoders are built in.
const _: () = {
    const fn assert_send<T: Send>() {}
    assert_send::<Compressor>();
    assert_send::<Decompressor>();
};

/// Where decoders write: a buffer that does not grow beyond the limit.
struct Output<'a> {
    buffer: &'a mut BytesMut,
    codec: Compression,
    limit: usize,
}

impl Output<'_> {
    /// The bytes that may still be written.
    fn room(&self) -> usize {
        self.limit.saturating_sub(self.buffer.len())
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), CompressionError> {
        if bytes.len() > self.room() {
            return Err(self.too_long());
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    #[cold]
    fn too_long(&self) -> CompressionError {
        CompressionError::LimitExceeded { codec: self.codec, limit: self.limit }
    }

    #[cold]
    fn corrupt(&self, position: usize, reason: impl Into<String>) -> CompressionError {
        CompressionError::Corrupt { codec: self.codec, position, reason: reason.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codecs_have_kafkas_names_and_numbers() {
        let names = ["none", "gzip", "snappy", "lz4", "zstd"];
        for (code, (codec, name)) in (0..).zip(Compression::ALL.into_iter().zip(names)) {
            assert_eq!((codec.code(), codec.to_string().as_str()), (code, name));
            assert_eq!(Compression::try_from(code), Ok(codec));
            assert_eq!(name.parse(), Ok(codec));
        }
        assert_eq!(Compression::try_from(5), Err(CompressionError::UnknownCode { code: 5 }));
        let error = "LZ4 ".parse::<Compression>().expect_err("no such codec");
        assert!(error.to_string().contains("\"LZ4 \""), "{error}");
    }

    #[test]
    fn codecs_without_levels_take_none() {
        for codec in [Compression::None, Compression::Snappy] {
            let error = Compressor::new(codec, Some(1)).expect_err("no level");

            assert_eq!(error.to_string(), format!("{codec} has no compression levels, so not 1 either"));
        }
    }

    /// The buffer is used again once nobody holds what was sliced from it, and not before.
    #[test]
    fn the_buffer_is_used_again() {
        let mut compressor = Compressor::new(Compression::Lz4, None).expect("lz4 is built in");
        let compressed = compressor.compress(&[7; 50_000]).expect("lz4 compresses anything");
        let mut decompressor = Decompressor::default();
        let mut decompress = || decompressor.decompress(Compression::Lz4, compressed).expect("it was just written");

        let first = decompress();
        let place = first.as_ptr();
        let second = decompress();
        assert_ne!(second.as_ptr(), place);
        assert_eq!(first, second);
        drop((first, second));
        let third = decompress().as_ptr();
        let fourth = decompress().as_ptr();

        assert_eq!(third, fourth);
    }

    /// What a batch became is taken off, what failed is not, and the limit of a single one stays what it is.
    #[test]
    fn a_budget_is_for_all_batches_together() {
        let mut compressor = Compressor::new(Compression::Gzip, None).expect("gzip is built in");
        let compressed = compressor.compress(&[7; 1000]).expect("gzip compresses anything").to_vec();
        let mut decompressor = Decompressor::new(1000);
        assert_eq!(decompressor.budget(), None);

        decompressor.set_budget(2999);
        let mut decompress = |input: &[u8]| {
            let done = decompressor.decompress(Compression::Gzip, input).map(|bytes| bytes.len());
            (done, decompressor.budget())
        };

        let codec = Compression::Gzip;
        let too_much = Err(CompressionError::BudgetExceeded { codec, left: 999, budget: 2999 });
        assert_eq!(decompress(&compressed), (Ok(1000), Some(1999)));
        assert!(matches!(decompress(b"corrupt"), (Err(CompressionError::Corrupt { .. }), Some(1999))));
        assert_eq!(decompress(&compressed), (Ok(1000), Some(999)));
        assert_eq!(decompress(&compressed), (too_much, Some(999)));

        decompressor.set_limit(999);
        let error = decompressor.decompress(codec, &compressed);
        assert_eq!(error, Err(CompressionError::LimitExceeded { codec, limit: 999 }));
    }

    #[test]
    fn a_huge_buffer_is_given_up() {
        let mut compressor = Compressor::new(Compression::Lz4, None).expect("lz4 is built in");
        let compressed = compressor.compress(&vec![0; KEPT_BUFFER + 1]).expect("lz4 compresses anything");
        let mut decompressor = Decompressor::default();

        decompressor.decompress(Compression::Lz4, compressed).expect("it was just written");

        assert_eq!(decompressor.buffer.capacity(), 0);
    }
}
