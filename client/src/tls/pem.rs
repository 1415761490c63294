//! The sections of a PEM text, read as leniently as Java does: white space is anything, so that a text whose lines
//! were joined (in a `.properties` file, or a variable) is as good as one with line ends. What stands outside is
//! passed over.
//!
//! Nothing of a text is in what is said of its faults: it may be a key.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

/// One section: what it is called, and its bytes.
pub(super) struct Section {
    pub(super) label: String,
    pub(super) der: Zeroizing<Vec<u8>>,
}

/// Reads all sections whose label is wanted.
///
/// # Errors
/// What is wrong with the first section that cannot be read, in words.
pub(super) fn sections(pem: &[u8], is_wanted: impl Fn(&str) -> bool) -> Result<Vec<Section>, String> {
    let Ok(text) = std::str::from_utf8(pem) else {
        return Err("it is no text: it is to be PEM, not DER or a Java key store".to_owned());
    };
    let mut sections = Vec::new();
    let mut rest = text;
    while let Some((label, after)) = opened(rest) {
        let end = format!("-----END {label}-----");
        let Some((body, after)) = after.split_once(&end) else {
            return Err(format!("its {} section has no end", known(label)));
        };
        rest = after;
        if is_wanted(label) {
            sections.push(Section { label: label.to_owned(), der: decoded(label, body)? });
        }
    }
    Ok(sections)
}

/// The label of the next section, and what stands behind its first line.
fn opened(text: &str) -> Option<(&str, &str)> {
    let (_, after) = text.split_once("-----BEGIN ")?;
    after.split_once("-----")
}

fn decoded(label: &str, body: &str) -> Result<Zeroizing<Vec<u8>>, String> {
    if body.contains("Proc-Type:") {
        let remedy = "convert it with: openssl pkcs8 -topk8 -v2 aes256";
        return Err(format!("its {} section is encrypted as OpenSSL did of old: {remedy}", known(label)));
    }
    let letters: Zeroizing<String> = Zeroizing::new(body.split_ascii_whitespace().collect());
    let der = STANDARD.decode(letters.as_bytes());
    der.map(Zeroizing::new).map_err(|_| format!("its {} section is not in base64", known(label)))
}

/// A label to be shown, unless it may be something else.
fn known(label: &str) -> &str {
    let is_one = label.len() <= 40 && label.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b' ');
    if is_one { label } else { "unnamed" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pem: &str) -> Result<Vec<(String, Vec<u8>)>, String> {
        let sections = sections(pem.as_bytes(), |label| label != "OTHER")?;
        Ok(sections.into_iter().map(|section| (section.label, section.der.to_vec())).collect())
    }

    /// KIP-651 joins the lines of a key by backslashes, and a variable may have lost its line ends.
    #[test]
    fn white_space_is_anything() {
        let lines = "Bag Attributes\n-----BEGIN A KEY-----\r\naGVs\r\nbG8=\r\n-----END A KEY-----\n";
        for pem in [lines, &lines.replace("\r\n", " "), &lines.replace("\r\n", "\n \t"), &lines.replace("\r\n", "")] {
            assert_eq!(read(pem).expect("a good text"), [("A KEY".to_owned(), b"hello".to_vec())], "{pem}");
        }
    }

    #[test]
    fn what_is_not_wanted_is_passed_over() {
        let pem = "-----BEGIN OTHER-----?-----END OTHER----------BEGIN A-----AA==-----END A-----";

        assert_eq!(read(pem).expect("a good text"), [("A".to_owned(), vec![0])]);
        assert_eq!(read("nothing").expect("a good text"), []);
    }

    #[test]
    fn what_is_wrong_is_told_without_the_text() {
        for (pem, word) in [
            ("-----BEGIN KEY-----aHVudGVyMg==", "its KEY section has no end"),
            ("-----BEGIN KEY----- hunter2! -----END KEY-----", "not in base64"),
            ("-----BEGIN KEY-----\nProc-Type: 4,ENCRYPTED\nhunter2\n-----END KEY-----", "openssl pkcs8"),
            ("-----BEGIN hunter2-----", "its unnamed section has no end"),
        ] {
            let fault = read(pem).expect_err("a bad text");
            assert!(fault.contains(word) && !fault.contains("hunter2") && !fault.contains("aHVu"), "{fault}");
        }
        assert!(sections(&[0x30, 0x82, 0xff], |_| true).is_err());
    }
}
