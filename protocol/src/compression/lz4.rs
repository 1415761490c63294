//! lz4 (being written).

use super::{Compression, CompressionError, Output};

#[derive(Default)]
pub(super) struct Encoder;

impl Encoder {
    pub(super) fn encode(&mut self, _input: &[u8], _out: &mut Vec<u8>) -> Result<(), CompressionError> {
        Err(CompressionError::NotBuiltIn { codec: Compression::Lz4, feature: "lz4" })
    }
}

pub(super) fn decode(_input: &[u8], out: &mut Output<'_>) -> Result<(), CompressionError> {
    Err(out.corrupt(0, "not read yet"))
}
