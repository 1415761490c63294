//! SASL PLAIN: a name and a password, as they are.

use std::collections::BTreeMap;

use krafka_protocol::Str;

use super::Failure;

/// Reads `[authorization id] NUL user NUL password`, and says who it is.
pub(super) fn check(token: &[u8], users: &BTreeMap<Str, Str>) -> Result<Str, Failure> {
    let parts: Vec<&[u8]> = token.split(|byte| *byte == 0).collect();
    let [authorization, user, password] = parts[..] else {
        return Err(Failure::Said(format!("Invalid SASL/PLAIN response: expected 3 tokens, got {}", parts.len())));
    };
    let fail = |why: &str| Err(Failure::Said(format!("Authentication failed: {why}")));
    if user.is_empty() {
        return fail("username not specified");
    }
    if password.is_empty() {
        return fail("password not specified");
    }
    let known = users.iter().find(|(name, secret)| name.as_bytes() == user && secret.as_bytes() == password);
    let Some((name, _)) = known else {
        return fail("Invalid username or password");
    };
    if !authorization.is_empty() && authorization != user {
        return fail("Client requested an authorization id that is different from username");
    }
    Ok(name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users() -> BTreeMap<Str, Str> {
        BTreeMap::from([(Str::from("alice"), Str::from("secret"))])
    }

    #[test]
    fn right_password_lets_in() {
        for token in [&b"\0alice\0secret"[..], b"alice\0alice\0secret"] {
            assert_eq!(check(token, &users()), Ok(Str::from("alice")));
        }
    }

    #[test]
    fn wrong_tokens_are_refused_in_kafkas_words() {
        let table = [
            (&b"\0alice\0wrong"[..], "Authentication failed: Invalid username or password"),
            (b"\0nobody\0secret", "Authentication failed: Invalid username or password"),
            (b"\0\0secret", "Authentication failed: username not specified"),
            (b"\0alice\0", "Authentication failed: password not specified"),
            (b"alice\0secret", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
            (
                b"bob\0alice\0secret",
                "Authentication failed: Client requested an authorization id that is different from username",
            ),
        ];

        for (token, words) in table {
            assert_eq!(check(token, &users()), Err(Failure::Said(words.to_owned())));
        }
    }
}
