//! Ciphers that begin with a password: PBES2 (RFC 8018), and those of PKCS #12 itself (RFC 7292, appendix B and C),
//! which stores have from before JDK 17 and openssl 3.

use aes::{Aes128, Aes192, Aes256};
use des::TdesEde3;
use hmac::{Hmac, Mac};
use rc2::Rc2;
use sha1::Sha1;
use sha1::digest::Digest;
use sha1::digest::common::BlockSizeUser;
use sha2::{Sha224, Sha256, Sha384, Sha512};
use zeroize::{Zeroize, Zeroizing};

use super::der::{BROKEN, Der, OCTETS, SEQUENCE};
use super::{Fault, utf16};

/// Java's own limit. More than that is somebody else's wish to keep us busy.
const MAX_ITERATIONS: u32 = 5_000_000;

/// 1.2.840.113549.1.5.13, and 12 for what makes its key.
const PBES2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x05, 0x0d];
const PBKDF2: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x05, 0x0c];
/// 1.2.840.113549.1.12.1: with 3 for triple DES, 5 for RC2 with 128 bits and 6 for RC2 with 40.
const PKCS12_PBE: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x0c, 0x01];
/// 2.16.840.1.101.3.4.1: with 2, 22 and 42 for the three sizes of AES.
const AES_CBC: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x01];
/// 1.2.840.113549.3.7: triple DES.
const DES_EDE3_CBC: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x03, 0x07];
/// 1.2.840.113549.2: HMAC with 7 for SHA-1, and 8 to 11 for the SHA-2s.
const HMAC: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x02];

/// A password in the two ways in which its characters become bytes.
pub(super) struct Password<'a> {
    text: &'a str,
    /// As PKCS #12 has it: UTF-16, with a zero at the end.
    wide: Zeroizing<Vec<u8>>,
}

impl<'a> Password<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let mut wide = utf16(text);
        wide.extend([0, 0]);
        Self { text, wide }
    }

    /// None at all, which some take for another thing than an empty one.
    pub(super) fn none() -> Self {
        Self { text: "", wide: Zeroizing::default() }
    }
}

/// A digest that is one of those in use.
#[derive(Clone, Copy)]
pub(super) enum Hash {
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

/// Does something with the type that a digest stands for.
macro_rules! with {
    ($hash:expr, $name:ident => $what:expr) => {
        match $hash {
            Hash::Sha1 => {
                type $name = Sha1;
                $what
            }
            Hash::Sha224 => {
                type $name = Sha224;
                $what
            }
            Hash::Sha256 => {
                type $name = Sha256;
                $what
            }
            Hash::Sha384 => {
                type $name = Sha384;
                $what
            }
            Hash::Sha512 => {
                type $name = Sha512;
                $what
            }
        }
    };
}

impl Hash {
    /// By the identifier of the digest.
    pub(super) fn named(id: &[u8]) -> Option<Self> {
        match id {
            // 1.3.14.3.2.26
            [0x2b, 0x0e, 0x03, 0x02, 0x1a] => Some(Self::Sha1),
            // 2.16.840.1.101.3.4.2
            [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, which] => match which {
                1 => Some(Self::Sha256),
                2 => Some(Self::Sha384),
                3 => Some(Self::Sha512),
                4 => Some(Self::Sha224),
                _ => None,
            },
            _ => None,
        }
    }

    /// By the identifier of the HMAC with it.
    fn of_hmac(id: &[u8]) -> Option<Self> {
        match id.strip_prefix(HMAC)? {
            [7] => Some(Self::Sha1),
            [8] => Some(Self::Sha224),
            [9] => Some(Self::Sha256),
            [10] => Some(Self::Sha384),
            [11] => Some(Self::Sha512),
            _ => None,
        }
    }

    /// Whether this is the code of a message under a password.
    pub(super) fn verifies(
        self,
        message: &[u8],
        code: &[u8],
        password: &Password<'_>,
        salt: &[u8],
        iterations: u32,
    ) -> Result<bool, Fault> {
        let iterations = bounded(iterations)?;
        with!(self, H => {
            let key = derived::<H>(FOR_MAC, password, salt, iterations, <H as Digest>::output_size());
            let mut mac = <Hmac<H> as hmac::KeyInit>::new_from_slice(&key).map_err(|_| BROKEN)?;
            mac.update(message);
            Ok(mac.verify_slice(code).is_ok())
        })
    }
}

/// Decrypts by the algorithm that is said with it. `None` if it was another password.
pub(super) fn decrypt(
    (id, parameters): (&[u8], Der<'_>),
    sealed: &[u8],
    password: &Password<'_>,
) -> Result<Option<Zeroizing<Vec<u8>>>, Fault> {
    if id == PBES2 {
        return by_pbes2(parameters, sealed, password);
    }
    let mut parameters = Der(parameters.0).expect(SEQUENCE)?;
    let which = match id.strip_prefix(PKCS12_PBE) {
        Some([which @ (3 | 5 | 6)]) => *which,
        _ => return Err(Fault::Unread("what is encrypted")),
    };
    let salt = parameters.expect(OCTETS)?.0;
    let iterations = bounded(parameters.number()?)?;
    let key = |len| derived::<Sha1>(FOR_KEY, password, salt, iterations, len);
    let iv = derived::<Sha1>(FOR_IV, password, salt, iterations, 8);
    match which {
        3 => unchained::<TdesEde3>(&cipher_of(&key(24))?, &iv, sealed),
        5 => unchained(&Rc2::new_with_eff_key_len(&key(16), 128), &iv, sealed),
        _ => unchained(&Rc2::new_with_eff_key_len(&key(5), 40), &iv, sealed),
    }
}

fn by_pbes2(
    mut parameters: Der<'_>,
    sealed: &[u8],
    password: &Password<'_>,
) -> Result<Option<Zeroizing<Vec<u8>>>, Fault> {
    let unread = || Fault::Unread("what is encrypted");
    let mut parameters = parameters.expect(SEQUENCE)?;
    let (id, mut derivation) = parameters.algorithm()?;
    let (cipher, mut iv) = parameters.algorithm()?;
    if id != PBKDF2 {
        return Err(unread());
    }
    let mut derivation = derivation.expect(SEQUENCE)?;
    let salt = derivation.expect(OCTETS)?.0;
    let iterations = bounded(derivation.number()?)?;
    if derivation.0.first() == Some(&super::der::INTEGER) {
        let _len = derivation.number()?;
    }
    let hash = match derivation.optional(SEQUENCE)? {
        None => Hash::Sha1,
        Some(mut function) => Hash::of_hmac(function.expect(super::der::OID)?.0).ok_or_else(unread)?,
    };
    let iv = iv.expect(OCTETS)?.0;
    let key = |len| {
        let mut key = Zeroizing::new(vec![0; len]);
        with!(hash, H => pbkdf2::pbkdf2_hmac::<H>(password.text.as_bytes(), salt, iterations, &mut key));
        key
    };
    match cipher.strip_prefix(AES_CBC) {
        Some([2]) => unchained::<Aes128>(&cipher_of(&key(16))?, iv, sealed),
        Some([22]) => unchained::<Aes192>(&cipher_of(&key(24))?, iv, sealed),
        Some([42]) => unchained::<Aes256>(&cipher_of(&key(32))?, iv, sealed),
        _ if cipher == DES_EDE3_CBC => unchained::<TdesEde3>(&cipher_of(&key(24))?, iv, sealed),
        _ => Err(unread()),
    }
}

fn bounded(iterations: u32) -> Result<u32, Fault> {
    if (1..=MAX_ITERATIONS).contains(&iterations) { Ok(iterations) } else { Err(BROKEN) }
}

fn cipher_of<C: aes::cipher::KeyInit>(key: &[u8]) -> Result<C, Fault> {
    C::new_from_slice(key).map_err(|_| BROKEN)
}

/// Decrypts a chain of blocks (CBC), and takes the padding off. `None` if there is none: it was another key.
fn unchained<C: aes::cipher::BlockCipherDecrypt>(
    cipher: &C,
    iv: &[u8],
    sealed: &[u8],
) -> Result<Option<Zeroizing<Vec<u8>>>, Fault> {
    let size = C::block_size();
    if iv.len() != size || sealed.is_empty() || !sealed.len().is_multiple_of(size) {
        return Err(BROKEN);
    }
    let mut opened = Zeroizing::new(Vec::with_capacity(sealed.len()));
    let mut before = iv;
    for chunk in sealed.chunks_exact(size) {
        let mut block = aes::cipher::Block::<C>::default();
        block.copy_from_slice(chunk);
        cipher.decrypt_block(&mut block);
        opened.extend(block.iter().zip(before).map(|(byte, before)| byte ^ before));
        block.zeroize();
        before = chunk;
    }
    let padding = opened.last().copied().map_or(0, usize::from);
    let is_padded = (1..=size).contains(&padding)
        && opened[opened.len() - padding..].iter().all(|byte| usize::from(*byte) == padding);
    if !is_padded {
        return Ok(None);
    }
    let len = opened.len() - padding;
    opened.truncate(len);
    Ok(Some(opened))
}

/// What bytes that come of a password are for.
const FOR_KEY: u8 = 1;
const FOR_IV: u8 = 2;
const FOR_MAC: u8 = 3;

/// Bytes that come of a password (RFC 7292, appendix B.2).
fn derived<H: Digest + BlockSizeUser>(
    purpose: u8,
    password: &Password<'_>,
    salt: &[u8],
    iterations: u32,
    len: usize,
) -> Zeroizing<Vec<u8>> {
    let size = H::block_size();
    let repeated =
        |bytes: &[u8]| -> Vec<u8> { bytes.iter().copied().cycle().take(bytes.len().div_ceil(size) * size).collect() };
    let mut input = Zeroizing::new(repeated(salt));
    let mut wide = Zeroizing::new(repeated(&password.wide));
    let mut joined = Zeroizing::new(Vec::with_capacity(input.len() + wide.len()));
    joined.append(&mut input);
    joined.extend_from_slice(&wide);
    wide.zeroize();
    let diversifier = vec![purpose; size];

    let mut derived = Zeroizing::new(Vec::with_capacity(len + <H as Digest>::output_size()));
    loop {
        let mut round = H::new().chain_update(&diversifier).chain_update(joined.as_slice()).finalize();
        for _ in 1..iterations {
            round = H::digest(&round);
        }
        derived.extend_from_slice(&round);
        // Each block of the input becomes the sum of itself, the round's result, and one.
        let addend: Zeroizing<Vec<u8>> = Zeroizing::new(round.iter().copied().cycle().take(size).collect());
        round.as_mut_slice().zeroize();
        if derived.len() >= len {
            derived.truncate(len);
            return derived;
        }
        for block in joined.chunks_mut(size) {
            let mut carry = 1;
            for (byte, more) in block.iter_mut().zip(addend.iter()).rev() {
                let sum = u16::from(*byte) + u16::from(*more) + carry;
                *byte = sum.to_le_bytes()[0];
                carry = sum >> 8;
            }
        }
    }
}
