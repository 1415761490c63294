//! Which names a topic can have, so that a wrong one is refused where it is given: a broker would only answer that it
//! knows no such topic, and one name too long to be encoded would spoil the metadata request that all topics share.

use crate::error::{KrafkaError, Result};

/// The longest name that brokers allow, in characters.
const MOST: usize = 249;

/// Checks a topic's name.
///
/// # Errors
/// [`KrafkaError::Config`], which shows the name and says what is wrong with it.
pub(crate) fn check(name: &str) -> Result<()> {
    check_as("topic name", name)
}

/// Checks what has to be like a topic's name, as Java's client does with group.instance.id.
///
/// # Errors
/// As for [`check`].
pub(crate) fn check_as(what: &str, name: &str) -> Result<()> {
    let Some(fault) = fault(name) else { return Ok(()) };
    let shown: String = name.chars().take(MOST).collect();
    let more = if shown.len() < name.len() { "…" } else { "" };
    Err(KrafkaError::config(format!("'{shown}{more}' is no {what}: {fault}")))
}

fn fault(name: &str) -> Option<&'static str> {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    match name {
        "" => Some("it is empty"),
        "." | ".." => Some("Kafka does not allow '.' and '..'"),
        name if name.len() > MOST => Some("it is longer than 249 characters"),
        name if !name.bytes().all(is_legal) => Some("only ASCII letters, digits, '.', '_' and '-' are allowed"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(name: &str) -> String {
        check(name).expect_err("no topic can have this name").to_string()
    }

    #[test]
    fn names_that_brokers_allow_pass() {
        for name in ["a", "orders.v2_x-1", "...", "__consumer_offsets", &"x".repeat(249)] {
            assert!(check(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn a_wrong_name_is_shown_with_its_fault() {
        assert!(refused("").contains("'' is no topic name: it is empty"));
        assert!(refused("..").contains("does not allow"));
        assert!(refused("two words").contains("'two words' is no topic name: only ASCII letters"));
        assert!(refused("größe").contains("only ASCII letters"));
    }

    #[test]
    fn a_name_of_any_length_makes_a_short_error() {
        let message = refused(&"é".repeat(40_000));

        assert!(message.contains("longer than 249"), "{message}");
        assert!(message.len() < 600, "{} bytes", message.len());
    }
}
