//! The subject of a client's certificate, in the form that Java gives it (RFC 2253): who the client is on a TLS
//! listener.
//!
//! The last part comes first, attributes without a name of their own are numbers, and their values are hexadecimal.
//! Only as much of a certificate is read as lies before its subject; TLS has checked the rest.

use std::fmt::Write;

/// The attribute types that have a name in RFC 2253.
const NAMES: [(&[u8], &str); 9] = [
    (&[0x55, 4, 3], "CN"),
    (&[0x55, 4, 6], "C"),
    (&[0x55, 4, 7], "L"),
    (&[0x55, 4, 8], "ST"),
    (&[0x55, 4, 9], "STREET"),
    (&[0x55, 4, 10], "O"),
    (&[0x55, 4, 11], "OU"),
    (&[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 1], "UID"),
    (&[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 1, 25], "DC"),
];

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_IDENTIFIER: u8 = 0x06;
/// The explicit tag of a certificate's version, which may be missing.
const VERSION: u8 = 0xa0;
const UTF8_STRING: u8 = 0x0c;
const PRINTABLE_STRING: u8 = 0x13;
const T61_STRING: u8 = 0x14;
const IA5_STRING: u8 = 0x16;

/// The subject of a certificate in DER, or nothing if it cannot be read.
pub(crate) fn of_certificate(der: &[u8]) -> Option<String> {
    let (certificate, _) = expect(der, SEQUENCE)?;
    let (body, _) = expect(certificate, SEQUENCE)?;
    let after_version = if body.first() == Some(&VERSION) { element(body)?.rest } else { body };
    // Serial number, signature algorithm, issuer and validity come before.
    let before = (0..4).try_fold(after_version, |rest, _| Some(element(rest)?.rest))?;
    let (subject, _) = expect(before, SEQUENCE)?;
    let mut parts = Vec::new();
    let mut rest = subject;
    while !rest.is_empty() {
        let (part, after) = expect(rest, SET)?;
        parts.push(relative_name(part)?);
        rest = after;
    }
    parts.reverse();
    Some(parts.join(","))
}

/// One part, which may have several attributes.
fn relative_name(mut set: &[u8]) -> Option<String> {
    let mut attributes = Vec::new();
    while !set.is_empty() {
        let (attribute, after) = expect(set, SEQUENCE)?;
        let (kind, value) = expect(attribute, OBJECT_IDENTIFIER)?;
        let text = text(&element(value)?);
        let name = NAMES.iter().find(|(identifier, _)| *identifier == kind).map(|(_, name)| *name);
        attributes.push(match (name, text) {
            (Some(name), Some(text)) => format!("{name}={}", escape(&text)),
            (name, _) => {
                let name = name.map_or_else(|| dotted(kind), |name| Some(name.to_owned()))?;
                format!("{name}=#{}", hexadecimal(value))
            }
        });
        set = after;
    }
    Some(attributes.join("+"))
}

/// A piece of DER: its tag, what is in it, and what follows.
struct Element<'a> {
    tag: u8,
    content: &'a [u8],
    rest: &'a [u8],
}

fn element(der: &[u8]) -> Option<Element<'_>> {
    let (&tag, rest) = der.split_first()?;
    let (&first, mut rest) = rest.split_first()?;
    let mut length = usize::from(first);
    if first & 0x80 != 0 {
        // A length beyond four bytes would be longer than any frame of TLS.
        let count = usize::from(first & 0x7f);
        if count == 0 || count > 4 {
            return None;
        }
        let (bytes, after) = rest.split_at_checked(count)?;
        length = bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
        rest = after;
    }
    let (content, rest) = rest.split_at_checked(length)?;
    Some(Element { tag, content, rest })
}

/// The content of an element of that tag, and what follows.
fn expect(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    element(der).filter(|element| element.tag == tag).map(|element| (element.content, element.rest))
}

/// A value that is text.
fn text(value: &Element<'_>) -> Option<String> {
    match value.tag {
        UTF8_STRING | PRINTABLE_STRING | IA5_STRING => String::from_utf8(value.content.to_vec()).ok(),
        T61_STRING => Some(value.content.iter().map(|&byte| char::from(byte)).collect()),
        _ => None,
    }
}

fn escape(text: &str) -> String {
    let last = text.chars().count().saturating_sub(1);
    let mut escaped = String::with_capacity(text.len());
    for (index, letter) in text.chars().enumerate() {
        match letter {
            ',' | '=' | '+' | '<' | '>' | '#' | ';' | '"' | '\\' => escaped.extend(['\\', letter]),
            ' ' if index == 0 || index == last => escaped.push_str("\\ "),
            '\0' => escaped.push_str("\\00"),
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// An object identifier in numbers.
fn dotted(identifier: &[u8]) -> Option<String> {
    let mut numbers = Vec::new();
    let mut number = 0_u32;
    for &byte in identifier {
        number = number.checked_shl(7).filter(|_| number < 1 << 25)? | u32::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            numbers.push(number);
            number = 0;
        }
    }
    let (&first, others) = numbers.split_first()?;
    // The first two numbers are packed into one.
    let root = (first / 40).min(2);
    let mut dotted = format!("{root}.{}", first - root * 40);
    for number in others {
        write!(dotted, ".{number}").ok()?;
    }
    Some(dotted)
}

/// The bytes of one whole element.
fn hexadecimal(value: &[u8]) -> String {
    let whole = value.len() - element(value).map_or(0, |element| element.rest.len());
    value[..whole].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrap(tag: u8, content: &[u8]) -> Vec<u8> {
        let mut der = vec![tag];
        match content.len() {
            short @ 0..=0x7f => der.push(short as u8),
            long => der.extend([0x82, (long >> 8) as u8, long as u8]),
        }
        der.extend(content);
        der
    }

    fn attribute(kind: &[u8], tag: u8, value: &[u8]) -> Vec<u8> {
        wrap(SEQUENCE, &[wrap(OBJECT_IDENTIFIER, kind), wrap(tag, value)].concat())
    }

    /// A certificate as far as its subject, with these parts.
    fn certificate(parts: &[Vec<u8>]) -> Vec<u8> {
        let name = wrap(SEQUENCE, &parts.iter().map(|part| wrap(SET, part)).collect::<Vec<_>>().concat());
        let fields = [
            wrap(VERSION, &[2, 1, 2]),
            wrap(2, &[7]),
            wrap(SEQUENCE, &[]),
            wrap(SEQUENCE, &[]),
            wrap(SEQUENCE, &[0; 200]),
            name,
        ];
        wrap(SEQUENCE, &wrap(SEQUENCE, &fields.concat()))
    }

    #[test]
    fn last_part_comes_first() {
        let parts = [
            attribute(&[0x55, 4, 6], PRINTABLE_STRING, b"SE"),
            attribute(&[0x55, 4, 10], UTF8_STRING, "Krafka å".as_bytes()),
            [attribute(&[0x55, 4, 3], UTF8_STRING, b"alice"), attribute(&[0x55, 4, 11], UTF8_STRING, b"ops")].concat(),
        ];

        assert_eq!(of_certificate(&certificate(&parts)).as_deref(), Some("CN=alice+OU=ops,O=Krafka å,C=SE"));
    }

    #[test]
    fn what_would_be_taken_for_syntax_is_escaped() {
        let parts = [attribute(&[0x55, 4, 3], UTF8_STRING, b" a,b=\"c\"\\ ")];

        assert_eq!(of_certificate(&certificate(&parts)).as_deref(), Some("CN=\\ a\\,b\\=\\\"c\\\"\\\\\\ "));
    }

    #[test]
    fn unknown_attributes_are_numbers() {
        // An address for mail, 1.2.840.113549.1.9.1.
        let mail = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, 1];
        let parts = [attribute(&mail, IA5_STRING, b"a@b")];

        let subject = of_certificate(&certificate(&parts));

        assert_eq!(subject.as_deref(), Some("1.2.840.113549.1.9.1=#1603614062"));
    }

    #[test]
    fn what_is_no_certificate_has_no_subject() {
        let whole = certificate(&[attribute(&[0x55, 4, 3], UTF8_STRING, b"alice")]);

        assert!((0..whole.len()).all(|length| of_certificate(&whole[..length]).is_none()));
        assert_eq!(of_certificate(&[SEQUENCE, 0xff, 0xff]), None);
    }
}
