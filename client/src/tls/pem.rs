//! PEM (RFC 7468) as Java's clients read it: whitespace of any kind between the lines, or none of the lines' ends at
//! all.
//!
//! ```text
//!   -----BEGIN PRIVATE KEY----- MC4CAQ… …8Yt -----END PRIVATE KEY-----
//! ```
//!
//! KIP-651 has keys and certificates inside of properties, where a `\` joins lines to one; a variable of the
//! environment loses the ends of lines as often as not. Nothing of the text is in any error: it may be a key.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::CertificateDer;
use zeroize::Zeroizing;

/// One section, decoded.
pub(super) struct Section {
    pub(super) kind: Kind,
    pub(super) der: Zeroizing<Vec<u8>>,
}

/// The sections that somebody here reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Certificate,
    /// A key of any kind (PKCS #8).
    Key,
    /// The same, encrypted.
    EncryptedKey,
    /// An RSA key in its own form (PKCS #1).
    RsaKey,
    /// A key of an elliptic curve in its own form (SEC 1).
    EcKey,
}

/// Why a text is no PEM, without any of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It is of bytes, such as DER.
    NotText,
    /// What a section begins with has no end.
    Unended(Kind),
    /// A section has something else than base64 in it.
    NotBase64(Kind),
    /// A key that is encrypted in the form that openssl had before PKCS #8, which Java does not read either.
    OldEncryption,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Certificate, Self::Key, Self::EncryptedKey, Self::RsaKey, Self::EcKey];

    const fn label(self) -> &'static str {
        match self {
            Self::Certificate => "CERTIFICATE",
            Self::Key => "PRIVATE KEY",
            Self::EncryptedKey => "ENCRYPTED PRIVATE KEY",
            Self::RsaKey => "RSA PRIVATE KEY",
            Self::EcKey => "EC PRIVATE KEY",
        }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotText => f.write_str(
                "it is no text: it is to be PEM; for a key store of Java's take roots_keystore or identity_keystore \
                 (in Java's properties leave ssl.truststore.type=PEM or ssl.keystore.type=PEM out)",
            ),
            Self::Unended(kind) => write!(f, "its {} section has no end: is the text whole?", kind.label()),
            Self::NotBase64(kind) => write!(f, "its {} section has something else than base64 in it", kind.label()),
            Self::OldEncryption => f.write_str(
                "the key is encrypted in a form that is not read: convert it with openssl pkcs8 -topk8 -v2 aes256",
            ),
        }
    }
}

/// All sections of a text, but for those that nobody here reads.
///
/// # Errors
/// What is wrong with the first that is wrong.
pub(super) fn sections(text: &[u8]) -> Result<Vec<Section>, Fault> {
    let mut sections = Vec::new();
    let mut rest = text;
    while let Some(at) = find(rest, BEGIN) {
        rest = &rest[at + BEGIN.len()..];
        let Some(kind) = Kind::ALL.into_iter().find(|kind| marks(rest, *kind).is_some()) else { continue };
        let body = marks(rest, kind).expect("it was just seen");
        let end = find(body, END).filter(|end| marks(&body[end + END.len()..], kind).is_some());
        let end = end.ok_or(Fault::Unended(kind))?;
        let der = decoded(&body[..end], kind)?;
        sections.push(Section { kind, der });
        rest = &body[end + END.len()..];
    }
    // Where there is a section, comments beside it may be in any encoding.
    if sections.is_empty() && std::str::from_utf8(text).is_err() {
        return Err(Fault::NotText);
    }
    Ok(sections)
}

/// The certificates of a text.
///
/// # Errors
/// What is wrong with the text.
pub(super) fn certificates(text: &[u8]) -> Result<Vec<CertificateDer<'static>>, Fault> {
    let of_certificate = |section: Section| (section.kind == Kind::Certificate).then(|| section.der.to_vec().into());
    Ok(sections(text)?.into_iter().filter_map(of_certificate).collect())
}

const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"-----END ";

/// What stands behind the label of this kind, and the dashes behind it, if the text begins with them.
fn marks(text: &[u8], kind: Kind) -> Option<&[u8]> {
    text.strip_prefix(kind.label().as_bytes())?.strip_prefix(b"-----")
}

/// What stands between the marks. Headers (RFC 1421), which openssl once wrote, stand before an empty line.
fn decoded(body: &[u8], kind: Kind) -> Result<Zeroizing<Vec<u8>>, Fault> {
    if find(body, b"Proc-Type:").is_some() && find(body, b"ENCRYPTED").is_some() {
        return Err(Fault::OldEncryption);
    }
    let mut base64 = Zeroizing::new(Vec::with_capacity(body.len()));
    let mut bytes = body.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            // A line's end that somebody wrote as two characters, as variables of the environment often have it.
            b'\\' if bytes.next_if(|next| matches!(next, b'n' | b'r')).is_some() => {}
            _ if byte.is_ascii_whitespace() => {}
            _ => base64.push(byte),
        }
    }
    STANDARD.decode(&*base64).map(Zeroizing::new).map_err(|_| Fault::NotBase64(kind))
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(Kind, Vec<u8>)> {
        let read = sections(text.as_bytes()).expect("good PEM");
        read.into_iter().map(|section| (section.kind, section.der.to_vec())).collect()
    }

    #[test]
    fn whitespace_is_anything() {
        let lines = "-----BEGIN PRIVATE KEY-----\nAQID\nBAUG\n-----END PRIVATE KEY-----\n";
        let spaced = lines.replace('\n', " ");
        let returned = lines.replace('\n', "\r\n");
        let escaped = lines.replace('\n', "\\n");
        let bare = lines.replace('\n', "");

        for text in [lines, &spaced, &returned, &escaped, &bare] {
            assert_eq!(read(text), [(Kind::Key, vec![1, 2, 3, 4, 5, 6])], "{text}");
        }
    }

    #[test]
    fn what_nobody_reads_is_passed_over() {
        let text = "Bag Attributes: x\n-----BEGIN EC PARAMETERS-----\n%%\n-----END EC PARAMETERS-----\n\
                    -----BEGIN EC PRIVATE KEY-----AQID-----END EC PRIVATE KEY-----\n\
                    subject=a\n-----BEGIN CERTIFICATE-----\nBAUG\n-----END CERTIFICATE-----";

        assert_eq!(read(text), [(Kind::EcKey, vec![1, 2, 3]), (Kind::Certificate, vec![4, 5, 6])]);
        assert_eq!(read("none"), []);
        assert_eq!(certificates(text.as_bytes()), Ok(vec![vec![4, 5, 6].into()]));
    }

    #[test]
    fn what_is_wrong_is_told_without_the_text() {
        let old = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAQID\n\
                   -----END RSA PRIVATE KEY-----";
        for (text, fault) in [
            ("-----BEGIN PRIVATE KEY-----\nhunter", Fault::Unended(Kind::Key)),
            ("-----BEGIN PRIVATE KEY-----\nAQID\n-----END CERTIFICATE-----", Fault::Unended(Kind::Key)),
            ("-----BEGIN CERTIFICATE-----\nhunter%\n-----END CERTIFICATE-----", Fault::NotBase64(Kind::Certificate)),
            (old, Fault::OldEncryption),
        ] {
            let found = sections(text.as_bytes()).err().expect("bad PEM");
            assert_eq!(found, fault);
            assert!(!found.to_string().contains("hunter"), "{found}");
        }
        assert_eq!(sections(&[0x30, 0x82, 0xff]).err(), Some(Fault::NotText));
    }
}
