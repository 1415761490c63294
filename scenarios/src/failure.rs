//! Why a story failed, in words.

use std::error::Error;
use std::fmt;

/// The result of a story, and of the steps in it.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// Why a story failed. Any error turns into one by `?`, with its sources.
#[derive(Clone, PartialEq, Eq)]
pub struct Failure(String);

impl Failure {
    /// A failure in these words.
    pub fn new(words: impl Into<String>) -> Self {
        Self(words.into())
    }
}

// `Failure` is no `Error` itself, as in anyhow: that is what makes this conversion from all errors possible.
impl<E: Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut words = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            words.push_str(": ");
            words.push_str(&cause.to_string());
            source = cause.source();
        }
        Self(words)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Fails the story with these words unless the condition holds.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $($words:tt)+) => {
        if !$condition {
            return Err($crate::Failure::new(format!($($words)+)));
        }
    };
}
