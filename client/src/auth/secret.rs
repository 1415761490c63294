//! [`Secret`]: a password that is not printed, and wiped when it is dropped; and [`SecretText`], a text that has one in
//! it.

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

/// A text with a secret in it, while it is put together: the memory that it outgrows is wiped, too, which a `String`
/// leaves as it is.
#[derive(Default)]
pub(crate) struct SecretText(Zeroizing<String>);

impl SecretText {
    /// The text of a `format_args!`.
    pub(crate) fn of(text: fmt::Arguments<'_>) -> Self {
        let mut whole = Self::default();
        fmt::write(&mut whole, text).expect("it takes all");
        whole
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn push(&mut self, character: char) {
        self.push_str(character.encode_utf8(&mut [0; 4]));
    }

    pub(crate) fn push_str(&mut self, more: &str) {
        let (needed, room) = (self.0.len() + more.len(), self.0.capacity());
        if needed > room {
            let mut larger = Zeroizing::new(String::with_capacity(needed.max(2 * room).max(MIN_ROOM)));
            larger.push_str(&self.0);
            self.0 = larger;
        }
        self.0.push_str(more);
    }

    pub(crate) fn into_text(self) -> Zeroizing<String> {
        self.0
    }
}

impl fmt::Write for SecretText {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        self.push_str(more);
        Ok(())
    }
}

impl From<SecretText> for Secret {
    fn from(text: SecretText) -> Self {
        Self(Arc::new(text.0))
    }
}

/// What a text has room for at first.
const MIN_ROOM: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_grows_by_parts() {
        let mut text = SecretText::of(format_args!("{}-{}", "a".repeat(100), 7));
        text.push('ä');
        text.push_str(&"b".repeat(1_000));

        assert_eq!(*text.into_text(), format!("{}-7ä{}", "a".repeat(100), "b".repeat(1_000)));
    }

    #[test]
    fn debug_does_not_show_it() {
        let secret = Secret::new("hunter2");

        assert_eq!(format!("{secret:?}"), "[hidden]");
        assert_eq!(secret.expose(), "hunter2");
    }
}
