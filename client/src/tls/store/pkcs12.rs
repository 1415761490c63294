//! PKCS #12 (RFC 7292), which Java's stores are since JDK 9, and openssl's and everybody else's.
//!
//! ```text
//!   PFX ─ authenticated safe ─┬─ data ──────── bags: keys, each encrypted
//!    └─ MAC                   └─ encrypted ─── bags: certificates
//! ```
//!
//! Which certificate is a key's is told by an id that both have; the others follow by the name of the issuer. Those to
//! trust are marked by an attribute that only Java knows.

use rustls::pki_types::CertificateDer;
use zeroize::Zeroizing;

use super::der::{BMP, BROKEN, CONTEXT, CONTEXT_OCTETS, Der, INTEGER, OCTETS, OID, SEQUENCE, SET};
use super::pbe::{Hash, Password, decrypt};
use super::{Fault, Key, Opened, Passwords, Store};

/// 1.2.840.113549.1.7: with 1 for data, and 6 for encrypted data.
const PKCS7: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07];
/// 1.2.840.113549.1.12.10.1: with 1 for a key, 2 for an encrypted one, 3 for a certificate, 6 for bags in a bag.
const BAG: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x0c, 0x0a, 0x01];
/// 1.2.840.113549.1.9: with 20 for an alias, 21 for the id that a key and its certificate share, 22.1 for X.509.
const PKCS9: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09];
/// 2.16.840.1.113894.746875.1.1: that a certificate is to be trusted.
const TRUSTED: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x86, 0xf9, 0x66, 0xad, 0xca, 0x7b, 0x01, 0x01];

/// How deep bags may lie in bags.
const MAX_DEPTH: usize = 4;

pub(super) fn read(bytes: &[u8], passwords: Passwords<'_>) -> Result<Store, Fault> {
    let mut file = Der(bytes).expect(SEQUENCE)?;
    let _version = file.number()?;
    let safe = data(&mut file)?;
    let password = opening(safe, file, passwords)?;
    let mut bags = Bags { passwords, password, keys: Vec::new(), certificates: Vec::new() };
    bags.add_safe(safe)?;
    Ok(bags.into_store())
}

/// What is inside of plain data.
fn data<'a>(rest: &mut Der<'a>) -> Result<&'a [u8], Fault> {
    let mut info = rest.expect(SEQUENCE)?;
    match info.expect(OID)?.0.strip_prefix(PKCS7) {
        Some([1]) => Ok(info.expect(CONTEXT)?.expect(OCTETS)?.0),
        _ => Err(Fault::Unread("its parts")),
    }
}

/// The password in the form that opens the store, if the store says so.
fn opening<'a>(safe: &[u8], mut file: Der<'_>, passwords: Passwords<'a>) -> Result<Password<'a>, Fault> {
    let password = Password::new(passwords.store);
    let Some(mut mac) = file.optional(SEQUENCE)? else { return Ok(password) };
    let mut digest = mac.expect(SEQUENCE)?;
    let hash = Hash::named(digest.algorithm()?.0).ok_or(Fault::Unread("its code of integrity"))?;
    let code = digest.expect(OCTETS)?.0;
    let salt = mac.expect(OCTETS)?.0;
    let iterations = if mac.is_empty() { 1 } else { mac.number()? };
    let opens = |password: &Password<'_>| hash.verifies(safe, code, password, salt, iterations);
    if opens(&password)? {
        return Ok(password);
    }
    if !passwords.store.is_empty() {
        return Err(Fault::WrongPassword);
    }
    // Nothing is checked without a password, as in Java; and what is not encrypted can be read.
    let none = Password::none();
    Ok(if opens(&none)? { none } else { password })
}

/// What was in bags, in their order.
struct Bags<'a> {
    passwords: Passwords<'a>,
    password: Password<'a>,
    keys: Vec<(Label, Opened)>,
    certificates: Vec<(Label, CertificateDer<'static>)>,
}

/// What is said of what is in a bag.
#[derive(Default)]
struct Label {
    alias: String,
    id: Option<Vec<u8>>,
    is_trusted: bool,
}

impl Bags<'_> {
    fn add_safe(&mut self, safe: &[u8]) -> Result<(), Fault> {
        let mut parts = Der(safe).expect(SEQUENCE)?;
        while !parts.is_empty() {
            let mut info = parts.expect(SEQUENCE)?;
            match info.expect(OID)?.0.strip_prefix(PKCS7) {
                Some([1]) => self.add_bags(info.expect(CONTEXT)?.expect(OCTETS)?.0, 0)?,
                Some([6]) => {
                    let mut encrypted = info.expect(CONTEXT)?.expect(SEQUENCE)?;
                    let _version = encrypted.expect(INTEGER)?;
                    let mut contents = encrypted.expect(SEQUENCE)?;
                    let _kind = contents.expect(OID)?;
                    let algorithm = contents.algorithm()?;
                    let sealed = contents.expect(CONTEXT_OCTETS)?.0;
                    let wrong =
                        if self.passwords.store.is_empty() { Fault::NeedsPassword } else { Fault::WrongPassword };
                    let opened = decrypt(algorithm, sealed, &self.password)?.ok_or(wrong)?;
                    self.add_bags(&opened, 0)?;
                }
                _ => return Err(Fault::Unread("its parts")),
            }
        }
        Ok(())
    }

    fn add_bags(&mut self, bags: &[u8], depth: usize) -> Result<(), Fault> {
        if depth > MAX_DEPTH {
            return Err(BROKEN);
        }
        let mut bags = Der(bags).expect(SEQUENCE)?;
        while !bags.is_empty() {
            let mut bag = bags.expect(SEQUENCE)?;
            let kind = bag.expect(OID)?.0;
            let mut value = bag.expect(CONTEXT)?;
            let label = Label::read(bag)?;
            match kind.strip_prefix(BAG) {
                Some([1]) => self.keys.push((label, key(value.whole()?))),
                Some([2]) => {
                    let mut info = value.expect(SEQUENCE)?;
                    let algorithm = info.algorithm()?;
                    let sealed = info.expect(OCTETS)?.0;
                    let opened = self.opened(algorithm, sealed);
                    self.keys.push((label, opened));
                }
                Some([3]) => {
                    let mut certificate = value.expect(SEQUENCE)?;
                    // What is not X.509 is nothing to TLS.
                    if certificate.expect(OID)?.0.strip_prefix(PKCS9) == Some(&[22, 1]) {
                        let der = certificate.expect(CONTEXT)?.expect(OCTETS)?.0;
                        self.certificates.push((label, CertificateDer::from(der.to_vec())));
                    }
                }
                Some([6]) => self.add_bags(value.whole()?, depth + 1)?,
                // Revocation lists and secrets of other kinds.
                _ => {}
            }
        }
        Ok(())
    }

    fn opened(&self, algorithm: (&[u8], Der<'_>), sealed: &[u8]) -> Opened {
        let own = self.passwords.key.map(Password::new);
        let opened = decrypt(algorithm, sealed, own.as_ref().unwrap_or(&self.password))?;
        // A wrong password leaves what looks like padding once in 256 times.
        opened.and_then(|opened| key(&opened).ok()).ok_or(Fault::WrongKeyPassword)
    }

    fn into_store(self) -> Store {
        let mut certificates: Vec<_> =
            self.certificates.into_iter().map(|(label, der)| Held::new(label, der)).collect();
        let keys = self.keys.into_iter().map(|(label, der)| {
            let chain = chain(&label, &mut certificates);
            Key { alias: label.alias, der, chain }
        });
        let keys = keys.collect();
        let (mut trusted, mut others) = (Vec::new(), Vec::new());
        for held in certificates {
            match held.label.is_trusted {
                true => trusted.push(held.der),
                false if !held.is_of_key => others.push(held.der),
                false => {}
            }
        }
        Store { keys, trusted, others }
    }
}

/// A certificate that some key may want.
struct Held {
    label: Label,
    der: CertificateDer<'static>,
    /// Its issuer and its subject.
    names: Option<(Vec<u8>, Vec<u8>)>,
    is_of_key: bool,
}

impl Held {
    fn new(label: Label, der: CertificateDer<'static>) -> Self {
        let names = names(&der).ok().map(|(issuer, subject)| (issuer.to_vec(), subject.to_vec()));
        Self { label, der, names, is_of_key: false }
    }
}

/// The certificates of a key, from its own to the last issuer's that is there.
fn chain(key: &Label, certificates: &mut [Held]) -> Vec<CertificateDer<'static>> {
    let candidates = || certificates.iter().enumerate().filter(|(_, held)| !held.label.is_trusted);
    let by_id = candidates().find(|(_, held)| key.id.is_some() && held.label.id == key.id);
    // Without ids it is the one that has issued no other.
    let issues = |one: &Held| {
        let subject = one.names.as_ref().map(|(_, subject)| subject);
        let mut others = candidates().filter(|(_, other)| other.der != one.der);
        others.any(|(_, other)| subject.is_some() && other.names.as_ref().map(|(issuer, _)| issuer) == subject)
    };
    let own = by_id.or_else(|| candidates().find(|(_, held)| held.label.id.is_none() && !issues(held)));
    let mut next = own.map(|(index, _)| index);
    let mut chain = Vec::new();
    let mut used = vec![false; certificates.len()];
    while let Some(index) = next {
        used[index] = true;
        certificates[index].is_of_key = true;
        chain.push(certificates[index].der.clone());
        let issuer = certificates[index].names.as_ref().map(|(issuer, _)| issuer);
        let is_issuer = |(index, held): &(usize, &Held)| {
            !used[*index] && issuer.is_some() && held.names.as_ref().map(|(_, subject)| subject) == issuer
        };
        next = certificates.iter().enumerate().find(is_issuer).map(|(index, _)| index);
    }
    chain
}

/// The names of a certificate's issuer and of its subject.
fn names(certificate: &[u8]) -> Result<(&[u8], &[u8]), Fault> {
    let mut certificate = Der(certificate).expect(SEQUENCE)?.expect(SEQUENCE)?;
    let _version = certificate.optional(CONTEXT)?;
    let _serial = certificate.expect(INTEGER)?;
    let _signature = certificate.expect(SEQUENCE)?;
    let issuer = certificate.expect(SEQUENCE)?.0;
    let _validity = certificate.expect(SEQUENCE)?;
    Ok((issuer, certificate.expect(SEQUENCE)?.0))
}

/// A key in the form of PKCS #8, if it is in that.
fn key(der: &[u8]) -> Opened {
    let mut info = Der(der).expect(SEQUENCE)?;
    let _version = info.expect(INTEGER)?;
    let _algorithm = info.algorithm()?;
    let _key = info.expect(OCTETS)?;
    Ok(Zeroizing::new(der.to_vec()))
}

impl Label {
    fn read(mut bag: Der<'_>) -> Result<Self, Fault> {
        let mut label = Self::default();
        let Some(mut attributes) = bag.optional(SET)? else { return Ok(label) };
        while !attributes.is_empty() {
            let mut attribute = attributes.expect(SEQUENCE)?;
            let kind = attribute.expect(OID)?.0;
            let mut values = attribute.expect(SET)?;
            match kind.strip_prefix(PKCS9) {
                Some([20]) => {
                    let units = values.expect(BMP)?.0.chunks_exact(2).map(|two| u16::from_be_bytes([two[0], two[1]]));
                    label.alias = char::decode_utf16(units).map(|unit| unit.unwrap_or('\u{fffd}')).collect();
                }
                Some([21]) => label.id = Some(values.expect(OCTETS)?.0.to_vec()),
                _ if kind == TRUSTED => label.is_trusted = true,
                _ => {}
            }
        }
        Ok(label)
    }
}
