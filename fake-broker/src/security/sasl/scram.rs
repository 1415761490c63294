//! SASL SCRAM (RFC 5802), the server's side: proof that the client knows a password, which we need not know.
//!
//! ```text
//!   client: n,,n=alice,r=NONCE[,tokenauth=true]      server: r=NONCE…,s=SALT,i=ITERATIONS
//!   client: c=biws,r=NONCE…,p=PROOF                  server: v=SIGNATURE
//! ```
//!
//! Names and passwords are not normalised, in Kafka neither. With the extension `tokenauth` the name is a delegation
//! token's id, and the password its HMAC in base64. A name that nobody has is refused at once.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use krafka_protocol::Bytes;
use sha2::{Digest, Sha256, Sha512};

use super::{Failure, Login};

/// The fewest rounds of hashing that a credential may have.
pub(crate) const MIN_ITERATIONS: i32 = 4096;
/// The most rounds that a credential may have.
pub(crate) const MAX_ITERATIONS: i32 = 16_384;

/// No binding to a channel, in base64: `n,,`.
const NO_CHANNEL_BINDING: &[u8] = b"n,";

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
        let mut parts = without_proof.split(',');
        let binding = parts.next().and_then(|part| part.strip_prefix("c=")).ok_or(Failure::InvalidCredentials)?;
        let binding = STANDARD.decode(binding).map_err(|_| Failure::InvalidCredentials)?;
        let nonce = parts.next().and_then(|part| part.strip_prefix("r="));
        if !binding.starts_with(NO_CHANNEL_BINDING) || nonce != Some(&*challenge.nonce) {
            return Err(Failure::InvalidCredentials);
        }
        let said = format!("{},{},{without_proof}", challenge.client_first, challenge.server_first);
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
            named => unescape(named.strip_prefix("a=")?)?,
        };
        let mut parts = bare.split(',');
        let name = unescape(parts.next()?.strip_prefix("n=")?)?;
        let nonce = parts.next()?.strip_prefix("r=")?;
        if name.is_empty() || nonce.is_empty() || !nonce.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        let mut is_token = false;
        for extension in parts {
            let (key, value) = extension.split_once('=')?;
            is_token |= key == "tokenauth" && value.eq_ignore_ascii_case("true");
        }
        Some(Self { name, is_token, authorization, nonce: nonce.to_owned(), bare: bare.to_owned() })
    }
}

/// Reads a name, in which commas and equals signs are written by their numbers.
fn unescape(name: &str) -> Option<String> {
    let mut parts = name.split('=');
    let mut plain = parts.next()?.to_owned();
    for part in parts {
        let (letter, rest) =
            if let Some(rest) = part.strip_prefix("2C") { (',', rest) } else { ('=', part.strip_prefix("3D")?) };
        plain.push(letter);
        plain.push_str(rest);
    }
    Some(plain)
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

        for text in ["", "y,,n=a,r=x", "n,,n=,r=x", "n,,n=a", "n,,n=a=,r=x", "n,b,n=a,r=x", "n,,n=a,r=x,token"] {
            assert_eq!(Claim::parse(text), None, "{text}");
        }
    }
}
