//! The committed offsets of all groups.

/// All committed offsets.
#[derive(Debug, Default)]
pub(crate) struct Offsets {}
