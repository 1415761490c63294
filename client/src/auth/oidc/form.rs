//! [`Form`]: parameters as a body of the type `application/x-www-form-urlencoded`, and as the header of RFC 6749.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use crate::auth::{Secret, SecretText};

/// Names and values, encoded. They may be secret.
pub(super) struct Form(SecretText);

impl Form {
    pub(super) fn new() -> Self {
        Self(SecretText::default())
    }

    pub(super) fn add(&mut self, name: &str, value: &str) {
        if !self.0.is_empty() {
            self.0.push('&');
        }
        encode(name, &mut self.0);
        self.0.push('=');
        encode(value, &mut self.0);
    }

    pub(super) fn into_text(self) -> Zeroizing<String> {
        self.0.into_text()
    }
}

/// What the header `Authorization` has behind `Basic`. RFC 6749, section 2.3.1, encodes both parts before they are
/// joined, and Java does not unless it is told to (KIP-1025).
pub(super) fn basic(client_id: &str, secret: &Secret, encodes: bool) -> Secret {
    let mut joined = SecretText::default();
    let add = if encodes { encode } else { |text: &str, joined: &mut SecretText| joined.push_str(text) };
    add(client_id, &mut joined);
    joined.push(':');
    add(secret.expose(), &mut joined);
    Secret::new(STANDARD.encode(joined.into_text().as_bytes()))
}

/// A value as a form has it.
pub(super) fn encoded(text: &str) -> Secret {
    let mut encoded = SecretText::default();
    encode(text, &mut encoded);
    encoded.into()
}

fn encode(text: &str, encoded: &mut SecretText) {
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'*' => encoded.push(char::from(byte)),
            b' ' => encoded.push('+'),
            _ => write!(encoded, "%{byte:02X}").expect("it takes all"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_encoded() {
        let mut form = Form::new();
        form.add("grant_type", "client_credentials");
        form.add("scope", "a b&c=ä");

        assert_eq!(*form.into_text(), "grant_type=client_credentials&scope=a+b%26c%3D%C3%A4");
    }

    /// With the user and password of RFC 7617, and one that needs encoding.
    #[test]
    fn a_header_is_encoded_before_it_is_joined() {
        let basic = |id: &str, secret: &str| basic(id, &Secret::new(secret), true).expose().to_owned();
        let plain = super::basic("a b", &Secret::new("c~+/=@!d"), false).expose().to_owned();
        assert_eq!(plain, STANDARD.encode("a b:c~+/=@!d"));

        assert_eq!(basic("Aladdin", "open"), "QWxhZGRpbjpvcGVu");
        assert_eq!(basic("a:b", "c d"), STANDARD.encode("a%3Ab:c+d"));
    }
}
