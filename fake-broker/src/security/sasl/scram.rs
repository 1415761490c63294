//! SASL SCRAM (RFC 5802), the server's side: proof that the client knows a password, which we need not know.
//!
//! ```text
//!   client: n,,n=alice,r=NONCE[,tokenauth=true]      server: r=NONCE…,s=SALT,i=ITERATIONS
//!   client: c=biws,r=NONCE…,p=PROOF                  server: v=SIGNATURE
//! ```
//!
//! Names and passwords are not normalised, in Kafka neither. With the extension `tokenauth` the name is a delegation
//! token's id, and the password its HMAC in base64. A name that nobody has is refused at once, and so is one that is
//! not ASCII. What is proven is what Kafka keeps of the messages: neither what is reserved at the front of the first,
//! nor the extensions of the last; and whatever the last says of its channel is taken.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use krafka_protocol::Bytes;
use sha2::{Digest, Sha256, Sha512};

use super::{Failure, Login, is_sasl_name};

/// The fewest rounds of hashing that a credential may have.
pub(crate) const MIN_ITERATIONS: i32 = 4096;
/// The most rounds that a credential may have.
pub(crate) const MAX_ITERATIONS: i32 = 16_384;

/// Which hash a credential is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ScramMechanism {
    Sha256 = 1,
    Sha512 = 2,
}

impl ScramMechanism {
    /// The mechanism of a number on the wire.
    pub(crate) fn of_code(code: i8) -> Option<Self> {
        [Self::Sha256, Self::Sha512].into_iter().find(|mechanism| *mechanism as i8 == code)
    }

    fn hash(self, data: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha256 => Sha256::digest(data).to_vec(),
            Self::Sha512 => Sha512::digest(data).to_vec(),
        }
    }

    fn hmac(self, key: &[u8], data: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha256 => {
                let mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
                mac.chain_update(data).finalize().into_bytes().to_vec()
            }
            Self::Sha512 => hmac_sha512(key, data),
        }
    }

    /// The password after so many rounds of hashing.
    pub(crate) fn salted(self, password: &[u8], salt: &[u8], iterations: u32) -> Vec<u8> {
        match self {
            Self::Sha256 => pbkdf2::pbkdf2_hmac_array::<Sha256, 32>(password, salt, iterations).to_vec(),
            Self::Sha512 => pbkdf2::pbkdf2_hmac_array::<Sha512, 64>(password, salt, iterations).to_vec(),
        }
    }
}

/// HMAC with SHA-256, which AWS signs with, too.
pub(super) fn hmac_sha256(key: &[u8], data: &[u8]) -> Vec<u8> {
    ScramMechanism::Sha256.hmac(key, data)
}

/// HMAC with SHA-512, which delegation tokens are made of, too.
pub(crate) fn hmac_sha512(key: &[u8], data: &[u8]) -> Vec<u8> {
    let mac = Hmac::<Sha512>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.chain_update(data).finalize().into_bytes().to_vec()
}

/// What a server keeps of a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScramCredential {
    salt: Bytes,
    pub(crate) iterations: i32,
    stored_key: Vec<u8>,
    server_key: Vec<u8>,
}

impl ScramCredential {
    /// The credential of a password.
    pub(crate) fn of_password(mechanism: ScramMechanism, password: &str, salt: Bytes) -> Self {
        let salted = mechanism.salted(password.as_bytes(), &salt, MIN_ITERATIONS.unsigned_abs());
        Self::of_salted(mechanism, &salted, salt, MIN_ITERATIONS)
    }

    /// The credential of a password that was salted already.
    pub(crate) fn of_salted(mechanism: ScramMechanism, salted: &[u8], salt: Bytes, iterations: i32) -> Self {
        let client_key = mechanism.hmac(salted, b"Client Key");
        Self {
            salt,
            iterations,
            stored_key: mechanism.hash(&client_key),
            server_key: mechanism.hmac(salted, b"Server Key"),
        }
    }
}

/// One exchange, as far as it has come.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Exchange {
    mechanism: ScramMechanism,
    challenge: Option<Challenge>,
}

/// What was asked of the client.
#[derive(Clone, Debug, PartialEq)]
struct Challenge {
    credential: ScramCredential,
    login: Login,
    client_first: String,
    server_first: String,
    nonce: String,
}

/// Whom a client says that it is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) name: String,
    /// Whether the name is a token's.
    pub(crate) is_token: bool,
    authorization: String,
    nonce: String,
    bare: String,
}

impl Exchange {
    pub(crate) fn new(mechanism: ScramMechanism) -> Self {
        Self { mechanism, challenge: None }
    }

    /// Takes the client's next message, and answers it; at the end with who it is. `find` looks a claim's credential
    /// up, `chance` makes our part of the nonce.
    pub(super) fn step(
        &mut self,
        message: &[u8],
        find: impl FnOnce(ScramMechanism, &Claim) -> Option<(ScramCredential, Login)>,
        chance: impl FnOnce() -> String,
    ) -> Result<(Bytes, Option<Login>), Failure> {
        let text = std::str::from_utf8(message).map_err(|_| Failure::InvalidCredentials)?;
        match self.challenge.take() {
            None => self.begin(text, find, chance).map(|answer| (answer, None)),
            Some(challenge) => {
                let answer = self.finish(text, &challenge)?;
                Ok((answer, Some(challenge.login)))
            }
        }
    }

    fn begin(
        &mut self,
        text: &str,
        find: impl FnOnce(ScramMechanism, &Claim) -> Option<(ScramCredential, Login)>,
        chance: impl FnOnce() -> String,
    ) -> Result<Bytes, Failure> {
        let claim = Claim::parse(text).ok_or(Failure::InvalidCredentials)?;
        let (credential, login) = find(self.mechanism, &claim).ok_or(Failure::InvalidCredentials)?;
        if !claim.authorization.is_empty() && claim.authorization != claim.name {
            let text = "Authentication failed: Client requested an authorization id that is different from username";
            return Err(Failure::Said(text.to_owned()));
        }
        let nonce = claim.nonce + &chance();
        let server_first = format!("r={nonce},s={},i={}", STANDARD.encode(&credential.salt), credential.iterations);
        let answer = Bytes::from(server_first.clone().into_bytes());
        self.challenge = Some(Challenge { credential, login, client_first: claim.bare, server_first, nonce });
        Ok(answer)
    }

    fn finish(&self, text: &str, challenge: &Challenge) -> Result<Bytes, Failure> {
        let (without_proof, proof) = text.rsplit_once(",p=").ok_or(Failure::InvalidCredentials)?;
        let proof = STANDARD.decode(proof).map_err(|_| Failure::InvalidCredentials)?;
        let mut parts = without_proof.splitn(3, ',');
        let channel = parts.next().and_then(|part| part.strip_prefix("c=")).ok_or(Failure::InvalidCredentials)?;
        let nonce = parts.next().and_then(|part| part.strip_prefix("r="));
        let is_extended = parts.next().is_none_or(|extensions| pairs(extensions).is_some());
        if STANDARD.decode(channel).is_err() || nonce != Some(&*challenge.nonce) || !is_extended {
            return Err(Failure::InvalidCredentials);
        }
        let said = format!("{},{},c={channel},r={}", challenge.client_first, challenge.server_first, challenge.nonce);
        let credential = &challenge.credential;
        let signature = self.mechanism.hmac(&credential.stored_key, said.as_bytes());
        let client_key: Vec<u8> = proof.iter().zip(&signature).map(|(proof, signature)| proof ^ signature).collect();
        if proof.len() != signature.len() || self.mechanism.hash(&client_key) != credential.stored_key {
            return Err(Failure::InvalidCredentials);
        }
        let signature = self.mechanism.hmac(&credential.server_key, said.as_bytes());
        Ok(Bytes::from(format!("v={}", STANDARD.encode(signature)).into_bytes()))
    }
}

impl Claim {
    /// Reads the client's first message.
    fn parse(text: &str) -> Option<Self> {
        let (authorization, bare) = text.strip_prefix("n,")?.split_once(',')?;
        let authorization = match authorization {
            "" => String::new(),
            named => named.strip_prefix("a=").and_then(unescape)?,
        };
        let bare = match bare.strip_prefix("m=").and_then(|rest| rest.split_once(',')) {
            Some((reserved, rest)) if is_value(reserved) => rest,
            _ => bare,
        };
        let mut parts = bare.splitn(3, ',');
        let name = unescape(parts.next()?.strip_prefix("n=")?)?;
        let nonce = parts.next()?.strip_prefix("r=")?;
        if nonce.is_empty() || !nonce.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        let extensions = parts.next().map_or(Some(Vec::new()), pairs)?;
        let is_token = extensions.iter().any(|(key, value)| *key == "tokenauth" && value.eq_ignore_ascii_case("true"));
        Some(Self { name, is_token, authorization, nonce: nonce.to_owned(), bare: bare.to_owned() })
    }
}

/// Reads extensions: `key=value,key=value`.
fn pairs<'a>(text: &'a str) -> Option<Vec<(&'a str, &'a str)>> {
    let is_key = |key: &str| !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphabetic());
    let pair = |pair: &'a str| pair.split_once('=').filter(|(key, value)| is_key(key) && is_value(value));
    text.split(',').map(pair).collect()
}

/// Whether this can be the value of an extension.
fn is_value(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| (0x01..=0x7f).contains(&byte))
}

/// Reads a name, in which commas and equals signs are written by their numbers.
fn unescape(name: &str) -> Option<String> {
    is_sasl_name(name).then(|| name.replace("=2C", ",").replace("=3D", "="))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::security::principal::Principal;
    use crate::security::sasl::SaslMechanism;

    /// The example of RFC 7677.
    #[test]
    fn exchange_of_the_standard_is_understood() {
        let salt = Bytes::from(STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").expect("base64"));
        let credential = ScramCredential::of_password(ScramMechanism::Sha256, "pencil", salt);
        let login = Login::new(Principal::user("user"), SaslMechanism::ScramSha256);
        let find =
            |_: ScramMechanism, claim: &Claim| (claim.name == "user").then(|| (credential.clone(), login.clone()));
        let chance = || "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0".to_owned();
        let mut exchange = Exchange::new(ScramMechanism::Sha256);

        let (challenge, nobody) = exchange.step(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO", find, chance).expect("a user");
        let server_first = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        assert_eq!((&challenge[..], nobody), (&server_first[..], None));
        let client_final = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
            p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        let mut forged = exchange.clone();
        let (answer, who) = exchange.step(client_final, find, chance).expect("the proof holds");

        assert_eq!(&answer[..], b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
        assert_eq!(who, Some(login.clone()));
        let wrong = String::from_utf8(client_final.to_vec()).expect("text").replace("p=dH", "p=dI");
        assert_eq!(forged.step(wrong.as_bytes(), find, chance), Err(Failure::InvalidCredentials));
    }

    #[test]
    fn claims_are_read_to_the_letter() {
        let claim = Claim::parse("n,a=a=2Cb,n=a=3Db,r=x,tokenauth=true").expect("a claim");
        assert_eq!((&*claim.authorization, &*claim.name, claim.is_token), ("a,b", "a=b", true));

        let claim = Claim::parse("n,,m=new,n=a,r=x").expect("what is reserved is passed over");
        assert_eq!((&*claim.name, &*claim.bare), ("a", "n=a,r=x"));

        for text in ["", "y,,n=a,r=x", "n,,n=,r=x", "n,,n=a", "n,,n=a=,r=x", "n,b,n=a,r=x", "n,,n=a,r=x,token"] {
            assert_eq!(Claim::parse(text), None, "{text}");
        }
        for text in ["n,a=,n=a,r=x", "n,,m=,n=a,r=x", "n,,n=a,r=x,b=", "n,,n=a,r=x,b1=c", "n,,n=\u{e9},r=x"] {
            assert_eq!(Claim::parse(text), None, "{text}");
        }
    }
}
