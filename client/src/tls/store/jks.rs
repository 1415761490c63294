//! JKS, the form that Java's stores had before JDK 9.
//!
//! ```text
//!   FEEDFEED · version 1 or 2 · count · count × entry · SHA-1 of password, "Mighty Aphrodite" and all before it
//!   entry: 1 · alias · time · encrypted key · count × certificate     2 · alias · time · certificate
//! ```

use rustls::pki_types::CertificateDer;
use sha1::{Digest, Sha1};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::der::{Der, OCTETS, SEQUENCE};
use super::{Fault, Key, Opened, Passwords, Store, utf16};

/// How long a SHA-1 digest is.
const DIGEST: usize = 20;

/// Sun's cipher for keys: 1.3.6.1.4.1.42.2.17.1.1.
const KEY_PROTECTOR: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0x2a, 0x02, 0x11, 0x01, 0x01];

const BROKEN: Fault = Fault::Broken("JKS");

pub(super) fn read(bytes: &[u8], passwords: Passwords<'_>) -> Result<Store, Fault> {
    let (signed, digest) = bytes.split_at_checked(bytes.len().saturating_sub(DIGEST)).ok_or(BROKEN)?;
    let mut rest = Rest(signed);
    let _magic = rest.number()?;
    let version = rest.number()?;
    if !matches!(version, 1 | 2) {
        return Err(BROKEN);
    }
    // Java reads a store without a password, too, and checks nothing then.
    if !passwords.store.is_empty() {
        let expected = hash(&[&utf16(passwords.store), b"Mighty Aphrodite", signed]);
        if !bool::from(expected.as_slice().ct_eq(digest)) {
            return Err(Fault::WrongPassword);
        }
    }
    let mut store = Store::default();
    for _ in 0..rest.number()? {
        let kind = rest.number()?;
        let alias = rest.text()?;
        let _time = rest.take(8)?;
        match kind {
            1 => {
                let len = rest.number()?;
                let encrypted = rest.take(len)?;
                let mut chain = Vec::new();
                for _ in 0..rest.number()? {
                    chain.push(certificate(&mut rest, version)?);
                }
                store.keys.push(Key { alias, der: decrypt(encrypted, passwords), chain });
            }
            2 => store.trusted.push(certificate(&mut rest, version)?),
            _ => return Err(BROKEN),
        }
    }
    Ok(store)
}

fn certificate(rest: &mut Rest<'_>, version: usize) -> Result<CertificateDer<'static>, Fault> {
    if version == 2 {
        let _kind = rest.text()?;
    }
    let len = rest.number()?;
    Ok(CertificateDer::from(rest.take(len)?.to_vec()))
}

/// Sun's cipher: the key is joined by XOR with a chain of digests, which the password and a salt begin.
fn decrypt(encrypted: &[u8], passwords: Passwords<'_>) -> Opened {
    let mut info = Der(encrypted).expect(SEQUENCE).map_err(|_| BROKEN)?;
    let (algorithm, _) = info.algorithm().map_err(|_| BROKEN)?;
    if algorithm != KEY_PROTECTOR {
        return Err(Fault::Unread("a key"));
    }
    let sealed = info.expect(OCTETS).map_err(|_| BROKEN)?.0;
    let (salt, sealed) = sealed.split_at_checked(DIGEST).ok_or(BROKEN)?;
    let (sealed, check) = sealed.split_at_checked(sealed.len().saturating_sub(DIGEST)).ok_or(BROKEN)?;
    let password = utf16(passwords.of_key());

    let mut key = Zeroizing::new(sealed.to_vec());
    let mut mask = Zeroizing::new(salt.to_vec());
    for block in key.chunks_mut(DIGEST) {
        mask = hash(&[&password, &mask]);
        block.iter_mut().zip(mask.iter()).for_each(|(byte, mask)| *byte ^= mask);
    }
    match bool::from(hash(&[&password, &key]).as_slice().ct_eq(check)) {
        true => Ok(key),
        false => Err(Fault::WrongKeyPassword),
    }
}

fn hash(parts: &[&[u8]]) -> Zeroizing<Vec<u8>> {
    let mut hash = Sha1::new();
    parts.iter().for_each(|part| hash.update(part));
    Zeroizing::new(hash.finalize().to_vec())
}

/// What is still to be read.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(BROKEN)?;
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<usize, Fault> {
        let bytes = self.take(4)?.try_into().map_err(|_| BROKEN)?;
        usize::try_from(u32::from_be_bytes(bytes)).map_err(|_| BROKEN)
    }

    fn text(&mut self) -> Result<String, Fault> {
        let len = self.take(2)?;
        let text = self.take(usize::from(u16::from_be_bytes([len[0], len[1]])))?;
        Ok(String::from_utf8_lossy(text).into_owned())
    }
}
