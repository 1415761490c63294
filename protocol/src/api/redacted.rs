//! How a secret looks in `Debug`: only its length is shown, so that a logged message gives nothing away.

use std::fmt;

/// A secret of so many bytes.
pub(super) struct Redacted(pub(super) usize);

impl fmt::Debug for Redacted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{} bytes]", self.0)
    }
}
