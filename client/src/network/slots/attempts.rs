//! [`Attempts`]: the connections that are being made. Each counts from its beginning to its end, also where nobody
//! wants it any more.

use std::collections::BTreeMap;

use super::Key;

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    by_slot: BTreeMap<Key, usize>,
    all: usize,
}

impl Attempts {
    pub(super) fn begin(&mut self, key: &Key) {
        *self.by_slot.entry(key.clone()).or_default() += 1;
        self.all += 1;
    }

    /// One has ended; whether another for the same slot is under way.
    pub(super) fn end(&mut self, key: &Key) -> bool {
        let Some(attempts) = self.by_slot.get_mut(key) else { return false };
        self.all -= 1;
        *attempts -= 1;
        let has_more = *attempts > 0;
        if !has_more {
            self.by_slot.remove(key);
        }
        has_more
    }

    pub(super) fn len(&self) -> usize {
        self.all
    }
}
