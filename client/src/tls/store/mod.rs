//! [`Store`]: what is in one of Java's key stores, in either of the two forms that Java's type `JKS` stands for.
//!
//! ```text
//!   FE ED FE ED …   JKS, Java's own: certificates as they are, keys under Sun's SHA-1 cipher      (jks)
//!   30 …            PKCS #12, the default since JDK 9: bags, encrypted together or one by one  (pkcs12)
//! ```
//!
//! The form is told by the first bytes, whatever type is named, as in Java since JDK 9. Of what is in a store only the
//! aliases of its keys are in errors.

mod der;
mod jks;
mod pbe;
mod pkcs12;

use std::fmt;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use zeroize::Zeroizing;

/// What is in a store.
#[derive(Default)]
pub(super) struct Store {
    keys: Vec<Key>,
    /// The certificates that the store says are to be trusted.
    trusted: Vec<CertificateDer<'static>>,
    /// Those of which it does not say what they are for.
    others: Vec<CertificateDer<'static>>,
}

/// A key, decrypted, and the certificates from its own to its issuer's.
struct Key {
    alias: String,
    /// PKCS #8; or why it cannot be decrypted, which matters to who wants it.
    der: Opened,
    chain: Vec<CertificateDer<'static>>,
}

/// What was encrypted.
type Opened = Result<Zeroizing<Vec<u8>>, Fault>;

/// The passwords of a store.
#[derive(Clone, Copy)]
pub(super) struct Passwords<'a> {
    /// That of the store. Without one (an empty one) nothing tells whether the store was changed.
    pub(super) store: &'a str,
    /// That of the keys in it, where it is another.
    pub(super) key: Option<&'a str>,
}

impl<'a> Passwords<'a> {
    fn of_key(self) -> &'a str {
        self.key.unwrap_or(self.store)
    }
}

/// Why a store cannot be used, in words that go on from its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    IsPem,
    IsJceks,
    IsNone,
    /// It is of this form, and not as that has it.
    Broken(&'static str),
    WrongPassword,
    WrongKeyPassword,
    NeedsPassword,
    /// It is encrypted or protected in a way that nobody here knows.
    Unread(&'static str),
    NoKey,
    NoChain(String),
    Keys(Vec<String>),
    NothingTrusted,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::IsPem => f.write_str(
                "is PEM, and not a key store: in Java's properties set its type to PEM, else take roots_file or \
                 identity_files",
            ),
            Self::IsJceks => f.write_str(
                "is a store of type JCEKS, which is not read: convert it with keytool -importkeystore -deststoretype \
                 PKCS12",
            ),
            Self::IsNone => f.write_str("is no key store: it is neither JKS nor PKCS #12"),
            Self::Broken(form) => write!(f, "is no whole {form} store: is the file cut short or changed?"),
            Self::WrongPassword => f.write_str("cannot be opened: check its password, or whether it was changed"),
            Self::WrongKeyPassword => f.write_str(
                "can be opened, but the key in it cannot: its password is another one, give it with key_password (in \
                 Java's properties ssl.key.password)",
            ),
            Self::NeedsPassword => f.write_str(
                "is encrypted: give its password (in Java's properties ssl.truststore.password or \
                 ssl.keystore.password)",
            ),
            Self::Unread(what) => write!(
                f,
                "has {what} in a form that is not read: convert it with keytool -importkeystore -deststoretype PKCS12"
            ),
            Self::NoKey => f.write_str(
                "has no private key in it, which the client's certificate needs: is it a truststore? A key is imported \
                 with its certificate, by keytool -importkeystore",
            ),
            Self::NoChain(alias) => write!(f, "has no certificate for its key '{}'", told(alias)),
            Self::Keys(aliases) => {
                let told = aliases.iter().take(MAX_ALIASES).map(|alias| told(alias)).collect::<Vec<_>>().join(", ");
                let more = if aliases.len() > MAX_ALIASES { ", …" } else { "" };
                write!(
                    f,
                    "has {} private keys ({told}{more}), and which one is meant is not guessed: keep one, with keytool \
                     -importkeystore -srcalias",
                    aliases.len()
                )
            }
            Self::NothingTrusted => f.write_str(
                "has no certificate in it that is trusted: add the issuer's with keytool -importcert, or leave the \
                 truststore out to trust the issuers that everybody knows",
            ),
        }
    }
}

impl Store {
    pub(super) fn read(bytes: &[u8], passwords: Passwords<'_>) -> Result<Self, Fault> {
        match bytes {
            [0xfe, 0xed, 0xfe, 0xed, ..] => jks::read(bytes, passwords),
            [0xce, 0xce, 0xce, 0xce, ..] => Err(Fault::IsJceks),
            [0x30, ..] => pkcs12::read(bytes, passwords),
            _ if bytes.windows(PEM.len()).any(|window| window == PEM) => Err(Fault::IsPem),
            _ => Err(Fault::IsNone),
        }
    }

    /// The certificates to trust: as Java has it those that are marked, and the own ones of keys. Where there are none,
    /// all: openssl does not mark them.
    pub(super) fn into_trusted(self) -> Result<Vec<CertificateDer<'static>>, Fault> {
        let mut trusted = self.trusted;
        trusted.extend(self.keys.into_iter().filter_map(|key| key.chain.into_iter().next()));
        let trusted = if trusted.is_empty() { self.others } else { trusted };
        if trusted.is_empty() { Err(Fault::NothingTrusted) } else { Ok(trusted) }
    }

    /// The one key, and its certificates.
    pub(super) fn into_identity(mut self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), Fault> {
        let key = match self.keys.len() {
            0 => return Err(Fault::NoKey),
            1 => self.keys.remove(0),
            _ => return Err(Fault::Keys(self.keys.into_iter().map(|key| key.alias).collect())),
        };
        let der = key.der?;
        if key.chain.is_empty() {
            return Err(Fault::NoChain(key.alias));
        }
        Ok((key.chain, PrivatePkcs8KeyDer::from(der.to_vec()).into()))
    }
}

/// A password as Java's characters, with room for a zero behind: memory that is outgrown is not wiped.
fn utf16(password: &str) -> Zeroizing<Vec<u8>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(2 * password.len() + 2));
    password.encode_utf16().for_each(|unit| bytes.extend(unit.to_be_bytes()));
    bytes
}

/// How many aliases an error has room for, and how many letters of each.
const MAX_ALIASES: usize = 8;
const MAX_ALIAS: usize = 60;

/// An alias in an error.
fn told(alias: &str) -> String {
    alias.chars().filter(|letter| !letter.is_control()).take(MAX_ALIAS).collect()
}

const PEM: &[u8] = b"-----BEGIN";

#[cfg(test)]
mod tests;
