//! Fetch sessions (KIP-227).

/// The fetch sessions of one node.
#[derive(Debug, Default)]
pub(crate) struct FetchSessions {
    slots: usize,
}

impl FetchSessions {
    pub(crate) fn new(slots: usize) -> Self {
        Self { slots }
    }
}
