//! What can go wrong in a codec.

use std::ops::RangeInclusive;

use super::Compression;

/// A batch could not be compressed or decompressed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompressionError {
    /// The attributes of a batch name a codec that Kafka does not define.
    #[error("unknown compression codec {code}")]
    UnknownCode {
        /// The number found.
        code: u8,
    },
    /// There is no codec of this name.
    #[error("unknown compression codec {name:?}: expected none, gzip, snappy, lz4 or zstd")]
    UnknownName {
        /// The name given.
        name: String,
    },
    /// The codec has levels, and this is none of them.
    #[error("{codec} has no compression level {level}: expected {min} to {max}")]
    Level {
        /// The codec asked for.
        codec: Compression,
        /// The level asked for.
        level: i32,
        /// The codec's least level.
        min: i32,
        /// The codec's greatest level.
        max: i32,
    },
    /// The codec has no levels at all.
    #[error("{codec} has no compression levels, so not {level} either")]
    NoLevels {
        /// The codec asked for.
        codec: Compression,
        /// The level asked for.
        level: i32,
    },
    /// This build decodes the codec, but cannot encode it.
    #[error("cannot compress with {codec}: this build of krafka lacks the feature {features}")]
    NotBuiltIn {
        /// The codec asked for.
        codec: Compression,
        /// The cargo features that bring it.
        features: &'static str,
    },
    /// The codec refused the input.
    #[error("compressing with {codec} failed: {reason}")]
    Encode {
        /// The codec.
        codec: Compression,
        /// What it said.
        reason: String,
    },
    /// The bytes are not what the codec writes.
    #[error("corrupt {codec} data at byte {position}: {reason}")]
    Corrupt {
        /// The codec.
        codec: Compression,
        /// Where in the compressed bytes, as closely as the codec can tell.
        position: usize,
        /// What was found there.
        reason: String,
    },
    /// The bytes of one batch decompress to more than the limit.
    #[error("{codec}: more than {limit} bytes decompressed")]
    LimitExceeded {
        /// The codec.
        codec: Compression,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The batch may be within the limit, but not within what is left for those that came before it and itself.
    #[error("{codec}: more than {left} bytes decompressed, which is what was left of a budget of {budget}")]
    BudgetExceeded {
        /// The codec.
        codec: Compression,
        /// What was left, in bytes.
        left: usize,
        /// The budget for all batches, in bytes.
        budget: usize,
    },
}

impl CompressionError {
    /// Returns the level, if the codec has it.
    pub(super) const fn check_level(codec: Compression, level: i32, levels: RangeInclusive<i32>) -> Result<i32, Self> {
        let (min, max) = (*levels.start(), *levels.end());
        if min <= level && level <= max { Ok(level) } else { Err(Self::Level { codec, level, min, max }) }
    }
}
