//! gzip (being written).

use super::{Compression, CompressionError, Output};

pub(super) struct Encoder;

impl Encoder {
    pub(super) fn new(_level: Option<i32>) -> Result<Self, CompressionError> {
        Ok(Self)
    }

    pub(super) fn encode(&mut self, _input: &[u8], _out: &mut Vec<u8>) -> Result<(), CompressionError> {
        Err(CompressionError::NotBuiltIn { codec: Compression::Gzip, feature: "gzip" })
    }
}

pub(super) fn decode(_input: &[u8], out: &mut Output<'_>) -> Result<(), CompressionError> {
    Err(out.corrupt(0, "not read yet"))
}
