//! [`Secret`]: a password that is not printed, and wiped when it is dropped.

use std::fmt;
use std::sync::Arc;

use zeroize::Zeroizing;

/// A string that must not be seen: `Debug` hides it, and its memory is wiped when the last clone is dropped.
#[derive(Clone)]
pub(crate) struct Secret(Arc<Zeroizing<String>>);

impl Secret {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(Arc::new(Zeroizing::new(text.into())))
    }

    /// The secret itself. Each use is a place where it might leak.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[hidden]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_does_not_show_it() {
        let secret = Secret::new("hunter2");

        assert_eq!(format!("{secret:?}"), "[hidden]");
        assert_eq!(secret.expose(), "hunter2");
    }
}
