//! SASL PLAIN: a user name and a password in one message (RFC 4616).

use bytes::Bytes;

use super::exchange::wiped;
use super::{Secret, SecretText};

/// A user name and its password.
#[derive(Clone, Debug)]
pub(crate) struct Plain {
    user: String,
    password: Secret,
}

impl Plain {
    pub(crate) fn new(user: impl Into<String>, password: impl Into<String>) -> Self {
        Self { user: user.into(), password: Secret::new(password) }
    }

    /// Why the mechanism cannot carry this user or password, if it cannot.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        if self.user.is_empty() {
            Some("the user name is empty")
        } else if self.user.contains('\0') || self.password.expose().contains('\0') {
            Some("a NUL character, which SASL PLAIN uses as its separator, is in the user name or the password")
        } else {
            None
        }
    }

    /// `[authorization id] NUL user NUL password`; the authorization id is left empty, which means "the user".
    pub(crate) fn initial_response(&self) -> Bytes {
        wiped(SecretText::of(format_args!("\0{}\0{}", self.user, self.password.expose())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_is_that_of_the_rfc() {
        let message = Plain::new("alice", "pässword").initial_response();

        assert_eq!(&*message, "\0alice\0pässword".as_bytes());
    }

    #[test]
    fn a_separator_inside_is_refused() {
        assert!(Plain::new("a\0b", "c").fault().is_some());
        assert!(Plain::new("a", "b\0c").fault().is_some());
        assert!(Plain::new("", "c").fault().is_some());
        assert!(Plain::new("a", "").fault().is_none());
    }

    #[test]
    fn debug_hides_the_password() {
        let text = format!("{:?}", Plain::new("alice", "hunter2"));

        assert!(text.contains("alice") && !text.contains("hunter2"), "{text}");
    }
}
