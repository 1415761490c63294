//! What a partition remembers of its producers: their epochs and the sequences of their last five batches.

use krafka_protocol::ErrorCode;
use krafka_protocol::records::BatchHeader;

/// The producers of a partition.
#[derive(Debug, Default)]
pub(crate) struct Producers {}

/// What is to be done with a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// It is the next one: append it.
    Append,
    /// It is in the log already, at this offset and with this timestamp: answer with them, append nothing.
    Duplicate { base_offset: i64, timestamp: i64 },
    /// It must not be appended.
    Refuse(ErrorCode),
}

impl Producers {
    /// Judges a batch before it is appended.
    pub(crate) fn check(&self, _header: &BatchHeader) -> Check {
        Check::Append
    }

    /// Remembers a batch that was appended at `base_offset`; `timestamp` is the log append time, or -1.
    pub(crate) fn appended(&mut self, _header: &BatchHeader, _base_offset: i64, _timestamp: i64, _wall_ms: i64) {}

    /// The first offset of the oldest transaction that is still open.
    pub(crate) fn first_open_offset(&self) -> Option<i64> {
        None
    }
}
