//! SASLprep (RFC 4013): one spelling of names and passwords that look the same.

use std::borrow::Cow;

/// The text as RFC 4013 writes it; nothing if it has characters that the RFC forbids, or that Unicode 3.2 did not know.
pub(super) fn prepared(text: &str) -> Option<String> {
    stringprep::saslprep(text).ok().map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 4013, section 3.
    #[test]
    fn the_examples_of_the_rfc_hold() {
        assert_eq!(prepared("I\u{ad}X").as_deref(), Some("IX"));
        assert_eq!(prepared("user").as_deref(), Some("user"));
        assert_eq!(prepared("USER").as_deref(), Some("USER"));
        assert_eq!(prepared("\u{aa}").as_deref(), Some("a"));
        assert_eq!(prepared("\u{2168}").as_deref(), Some("IX"));
        assert!(prepared("\u{7}").is_none());
        assert!(prepared("\u{627}1").is_none());
    }
}
