//! The real time, which a suite on real clusters runs at.

use std::time::Instant;

/// Now.
#[expect(clippy::disallowed_methods, reason = "a suite on a real cluster runs at a real time")]
#[must_use]
pub fn now() -> Instant {
    Instant::now()
}

/// Sets the names of this run apart from those of earlier ones on the same cluster.
#[expect(clippy::disallowed_methods, reason = "a suite on a real cluster runs at a real time")]
#[must_use]
pub fn run_id() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    since.as_millis() as u64
}
