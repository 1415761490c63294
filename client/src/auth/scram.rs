//! SASL SCRAM (RFC 5802, RFC 7677), the client's side: proves that it knows a password without sending it, and that
//! the broker knows it too.
//!
//! ```text
//!   client: n,,n=alice,r=NONCE[,tokenauth=true]      server: r=NONCE…,s=SALT,i=ITERATIONS
//!   client: c=biws,r=NONCE…,p=PROOF                  server: v=SIGNATURE
//! ```
//!
//! With the extension `tokenauth` the name is a delegation token's id, and the password its HMAC in base64 (KIP-48).

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256, Sha512};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::exchange::{Next, wiped};
use super::saslprep::prepared;
use super::{Secret, SecretText};

/// The fewest rounds that a broker may ask for; fewer would make a stolen proof cheap to guess from.
const MIN_ITERATIONS: u32 = 4096;

/// The most rounds that a broker may ask for: about a second of work. Kafka's own limit is 16,384.
const MAX_ITERATIONS: u32 = 1_000_000;

/// The most rounds that are done on the spot: some milliseconds of work.
const MAX_QUICK_ITERATIONS: u32 = 16_384;

/// The longest salt, in base64, and the longest nonce that are taken. Kafka's are 35 and 50 characters.
const MAX_PART: usize = 4096;

/// `n,,`: no binding to a channel, no other authorization id.
const GS2_HEADER: &str = "n,,";

/// Which hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScramHash {
    Sha256,
    Sha512,
}

impl ScramHash {
    fn hash(self, data: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha256 => Sha256::digest(data).to_vec(),
            Self::Sha512 => Sha512::digest(data).to_vec(),
        }
    }

    /// How long what it makes is.
    fn len(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha512 => 64,
        }
    }

    fn hmac(self, key: &[u8], data: &[u8]) -> Zeroizing<Vec<u8>> {
        const ANY: &str = "HMAC takes keys of any length";
        Zeroizing::new(match self {
            Self::Sha256 => {
                Hmac::<Sha256>::new_from_slice(key).expect(ANY).chain_update(data).finalize().into_bytes().to_vec()
            }
            Self::Sha512 => {
                Hmac::<Sha512>::new_from_slice(key).expect(ANY).chain_update(data).finalize().into_bytes().to_vec()
            }
        })
    }

    fn salted(self, password: &[u8], salt: &[u8], iterations: u32) -> Zeroizing<Vec<u8>> {
        let hash: fn(&[u8], &[u8], u32, &mut [u8]) = match self {
            Self::Sha256 => pbkdf2::pbkdf2_hmac::<Sha256>,
            Self::Sha512 => pbkdf2::pbkdf2_hmac::<Sha512>,
        };
        let mut salted = Zeroizing::new(vec![0; self.len()]);
        hash(password, salt, iterations, &mut salted);
        salted
    }
}

/// A user name and its password, or a delegation token.
#[derive(Clone)]
pub(crate) struct Scram {
    hash: ScramHash,
    user: String,
    password: Secret,
    is_token: bool,
    salted: Arc<Mutex<Option<Salted>>>,
}

/// A password after its rounds of hashing. Every broker of a cluster has the same salt, and each new connection asks
/// again: what took milliseconds once need not be done anew.
struct Salted {
    salt: Vec<u8>,
    iterations: u32,
    password: Zeroizing<Vec<u8>>,
}

impl Scram {
    /// A user and a password.
    pub(crate) fn new(hash: ScramHash, user: impl Into<String>, password: impl Into<String>) -> Self {
        Self { hash, user: user.into(), password: Secret::new(password), is_token: false, salted: Arc::default() }
    }

    /// A delegation token: its id, and its HMAC in base64.
    pub(crate) fn token(hash: ScramHash, id: impl Into<String>, hmac: impl Into<String>) -> Self {
        Self { is_token: true, ..Self::new(hash, id, hmac) }
    }

    /// The mechanism's registered name.
    pub(crate) fn mechanism(&self) -> &'static str {
        match self.hash {
            ScramHash::Sha256 => "SCRAM-SHA-256",
            ScramHash::Sha512 => "SCRAM-SHA-512",
        }
    }

    /// Why the mechanism cannot carry this user or password, if it cannot.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        if self.user.is_empty() {
            Some("the user name is empty")
        } else if self.password.expose().is_empty() {
            Some("the password is empty")
        } else {
            None
        }
    }

    /// The same as RFC 4013 (SASLprep) writes it, if that is another text.
    ///
    /// RFC 5802 wants names and passwords prepared; Kafka's own tools and clients leave them as they are. For nearly
    /// all there is no difference, and where there is one, only trying tells which of them the broker was given.
    pub(crate) fn as_prepared(&self) -> Option<Self> {
        let (user, password) = (prepared(&self.user)?, prepared(self.password.expose())?);
        let differs = user != self.user || password != self.password.expose();
        differs.then(|| Self { user, password: Secret::new(password), salted: Arc::default(), ..self.clone() })
    }

    /// Begins an exchange. `nonce` is of printable characters without a comma, and never used twice.
    pub(crate) fn begin(&self, nonce: String) -> Exchange {
        let user = self.user.replace('=', "=3D").replace(',', "=2C");
        let extension = if self.is_token { ",tokenauth=true" } else { "" };
        let client_first = format!("n={user},r={nonce}{extension}");
        Exchange { credentials: self.clone(), nonce, state: State::First { client_first } }
    }

    fn salted_password(&self, salt: &[u8], iterations: u32) -> Zeroizing<Vec<u8>> {
        let known = self.salted.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.as_ref().filter(|known| known.salt == salt && known.iterations == iterations) {
            return known.password.clone();
        }
        // Outside of the lock: another connection's quick answer must not wait for a million rounds of this one's.
        drop(known);
        let password = self.hash.salted(self.password.expose().as_bytes(), salt, iterations);
        let known = Salted { salt: salt.to_vec(), iterations, password: password.clone() };
        *self.salted.lock().unwrap_or_else(PoisonError::into_inner) = Some(known);
        password
    }
}

impl fmt::Debug for Scram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scram")
            .field("hash", &self.hash)
            .field("user", &self.user)
            .field("is_token", &self.is_token)
            .finish_non_exhaustive()
    }
}

/// One exchange, as far as it has come.
pub(crate) struct Exchange {
    credentials: Scram,
    nonce: String,
    state: State,
}

enum State {
    /// The client has spoken first.
    First {
        client_first: String,
    },
    /// The proof was sent; the broker owes its signature.
    Proven {
        signature: Zeroizing<Vec<u8>>,
    },
    Done,
}

impl Exchange {
    /// The mechanism's registered name.
    pub(crate) fn mechanism(&self) -> &'static str {
        self.credentials.mechanism()
    }

    /// What is to be checked when the broker refuses.
    pub(crate) fn remedy(&self) -> &'static str {
        if self.credentials.is_token {
            "check the delegation token's id and HMAC, and whether it has expired"
        } else {
            "check the user name and the password"
        }
    }

    /// Whether to find the answer to this takes so long that it must not hold up an asynchronous task.
    pub(crate) fn is_costly(&self, challenge: &[u8]) -> bool {
        let said = std::str::from_utf8(challenge).ok().filter(|_| matches!(self.state, State::First { .. }));
        said.and_then(|said| Challenge::read(said, &self.nonce).ok())
            .is_some_and(|challenge| challenge.iterations > MAX_QUICK_ITERATIONS)
    }

    /// What the client says first.
    pub(crate) fn initial_response(&self) -> Bytes {
        match &self.state {
            State::First { client_first } => Bytes::from(format!("{GS2_HEADER}{client_first}")),
            State::Proven { .. } | State::Done => Bytes::new(),
        }
    }

    /// What the client answers to the broker.
    ///
    /// # Errors
    /// Why the broker is not believed, in words.
    pub(crate) fn answer(&mut self, challenge: &[u8]) -> Result<Next, String> {
        let said = std::str::from_utf8(challenge).map_err(|_| "the broker's message is no text".to_owned())?;
        match std::mem::replace(&mut self.state, State::Done) {
            State::First { client_first } => self.prove(&client_first, said),
            State::Proven { signature } => verify(&signature, said),
            State::Done => Err("the broker goes on after the end".to_owned()),
        }
    }

    fn prove(&mut self, client_first: &str, server_first: &str) -> Result<Next, String> {
        let Challenge { nonce, salt, iterations } = Challenge::read(server_first, &self.nonce)?;
        let hash = self.credentials.hash;
        let without_proof = format!("c={},r={nonce}", STANDARD.encode(GS2_HEADER));
        let auth_message = format!("{client_first},{server_first},{without_proof}");

        let salted = self.credentials.salted_password(&salt, iterations);
        let client_key = hash.hmac(&salted, b"Client Key");
        let stored_key = Zeroizing::new(hash.hash(&client_key));
        let mut proof = hash.hmac(&stored_key, auth_message.as_bytes());
        for (byte, key) in proof.iter_mut().zip(client_key.iter()) {
            *byte ^= key;
        }
        let server_key = hash.hmac(&salted, b"Server Key");
        self.state = State::Proven { signature: hash.hmac(&server_key, auth_message.as_bytes()) };
        let proof = Zeroizing::new(STANDARD.encode(&*proof));
        Ok(Next::Say(wiped(SecretText::of(format_args!("{without_proof},p={}", *proof)))))
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").field("credentials", &self.credentials).finish_non_exhaustive()
    }
}

/// What the broker wants to be proven with.
struct Challenge<'a> {
    nonce: &'a str,
    salt: Vec<u8>,
    iterations: u32,
}

impl<'a> Challenge<'a> {
    /// `r=NONCE…,s=SALT,i=ITERATIONS`, and extensions that nobody has to know.
    fn read(said: &'a str, ours: &str) -> Result<Self, String> {
        let mut parts = said.split(',');
        let nonce = attribute(parts.next(), 'r')?;
        let salt = attribute(parts.next(), 's')?;
        let iterations = attribute(parts.next(), 'i')?;
        if !nonce.starts_with(ours) || nonce.len() == ours.len() {
            return Err(
                "the broker's nonce does not continue ours: somebody may be replaying an old exchange".to_owned()
            );
        }
        if !nonce.bytes().all(|byte| byte.is_ascii_graphic()) || nonce.len() > MAX_PART || salt.len() > MAX_PART {
            return Err("the broker's nonce or salt is not what the mechanism allows".to_owned());
        }
        let salt = STANDARD.decode(salt).map_err(|_| "the broker's salt is no base64".to_owned())?;
        if salt.is_empty() {
            return Err("the broker's salt is empty".to_owned());
        }
        let count: u32 =
            iterations.parse().map_err(|_| format!("the broker's number of iterations is {iterations:?}"))?;
        if !(MIN_ITERATIONS..=MAX_ITERATIONS).contains(&count) {
            return Err(format!(
                "the broker asks for {count} iterations: from {MIN_ITERATIONS} to {MAX_ITERATIONS} are accepted"
            ));
        }
        Ok(Self { nonce, salt, iterations: count })
    }
}

/// `v=SIGNATURE`, or `e=` and what is wrong.
fn verify(signature: &[u8], said: &str) -> Result<Next, String> {
    let mut parts = said.split(',');
    let verdict = parts.next();
    if let Some(error) = verdict.and_then(|part| part.strip_prefix("e=")) {
        return Err(format!("the broker says {error:?}"));
    }
    let theirs =
        STANDARD.decode(attribute(verdict, 'v')?).map_err(|_| "the broker's signature is no base64".to_owned())?;
    if bool::from(theirs.ct_eq(signature)) {
        Ok(Next::Done)
    } else {
        Err("the broker's signature is wrong: it does not know the password, so it is not the one you mean".to_owned())
    }
}

/// The value of the attribute that has to stand here.
fn attribute(part: Option<&str>, name: char) -> Result<&str, String> {
    part.and_then(|part| part.strip_prefix(name))
        .and_then(|rest| rest.strip_prefix('='))
        .filter(|value| !value.is_empty())
        .ok_or_else(|| format!("the broker's message lacks '{name}='"))
}

#[cfg(test)]
mod tests;
