//! How the tests log in: the client's side of each SASL mechanism.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use krafka_protocol::api::sasl_authenticate::{SaslAuthenticateRequest, SaslAuthenticateResponse};
use krafka_protocol::api::sasl_handshake::{SaslHandshakeRequest, SaslHandshakeResponse};
use krafka_protocol::{Bytes, Str};
use sha2::{Digest, Sha256, Sha512};

use crate::target::Wire;

/// Agrees on a mechanism.
pub(crate) async fn handshake(wire: &mut Wire, mechanism: &str) -> SaslHandshakeResponse {
    wire.call(SaslHandshakeRequest { mechanism: Str::from(mechanism) }, 1).await
}

/// Sends a token.
pub(crate) async fn token(wire: &mut Wire, token: impl Into<Vec<u8>>) -> SaslAuthenticateResponse {
    wire.call(SaslAuthenticateRequest { auth_bytes: Bytes::from(token.into()) }, 2).await
}

/// Logs in by PLAIN.
pub(crate) async fn plain(wire: &mut Wire, user: &str, password: &str) -> SaslAuthenticateResponse {
    assert_eq!(handshake(wire, "PLAIN").await.error_code, 0);
    token(wire, format!("\0{user}\0{password}")).await
}

/// Which hash SCRAM uses.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hash {
    Sha256,
    Sha512,
}

impl Hash {
    pub(crate) fn mechanism(self) -> &'static str {
        match self {
            Self::Sha256 => "SCRAM-SHA-256",
            Self::Sha512 => "SCRAM-SHA-512",
        }
    }

    fn hmac(self, key: &[u8], data: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha256 => {
                let mac = Hmac::<Sha256>::new_from_slice(key).expect("any length");
                mac.chain_update(data).finalize().into_bytes().to_vec()
            }
            Self::Sha512 => {
                let mac = Hmac::<Sha512>::new_from_slice(key).expect("any length");
                mac.chain_update(data).finalize().into_bytes().to_vec()
            }
        }
    }

    fn hash(self, data: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha256 => Sha256::digest(data).to_vec(),
            Self::Sha512 => Sha512::digest(data).to_vec(),
        }
    }

    /// A password after so many rounds of hashing.
    pub(crate) fn salted(self, password: &str, salt: &[u8], iterations: u32) -> Vec<u8> {
        match self {
            Self::Sha256 => pbkdf2::pbkdf2_hmac_array::<Sha256, 32>(password.as_bytes(), salt, iterations).to_vec(),
            Self::Sha512 => pbkdf2::pbkdf2_hmac_array::<Sha512, 64>(password.as_bytes(), salt, iterations).to_vec(),
        }
    }
}

/// Says who one is, and returns the server's challenge.
pub(crate) async fn claim(wire: &mut Wire, hash: Hash, first: &str) -> SaslAuthenticateResponse {
    assert_eq!(handshake(wire, hash.mechanism()).await.error_code, 0);
    token(wire, first).await
}

/// Proves a password for a challenge: the message, and the signature that the server must show.
pub(crate) fn prove(hash: Hash, bare: &str, challenge: &str, password: &str) -> (String, String) {
    prove_on("biws", hash, bare, challenge, password)
}

/// The same with something else about the channel, in base64.
pub(crate) fn prove_on(channel: &str, hash: Hash, bare: &str, challenge: &str, password: &str) -> (String, String) {
    let part = |name: &str| challenge.split(',').find_map(|part| part.strip_prefix(name)).expect("a challenge");
    let salt = STANDARD.decode(part("s=")).expect("base64");
    let salted = hash.salted(password, &salt, part("i=").parse().expect("a number"));
    let without_proof = format!("c={channel},r={}", part("r="));
    let said = format!("{bare},{challenge},{without_proof}");
    let client_key = hash.hmac(&salted, b"Client Key");
    let signature = hash.hmac(&hash.hash(&client_key), said.as_bytes());
    let proof: Vec<u8> = client_key.iter().zip(&signature).map(|(key, signature)| key ^ signature).collect();
    let server = hash.hmac(&hash.hmac(&salted, b"Server Key"), said.as_bytes());
    (format!("{without_proof},p={}", STANDARD.encode(proof)), format!("v={}", STANDARD.encode(server)))
}

/// Logs in by SCRAM, with extensions such as `,tokenauth=true`. Returns the last answer.
pub(crate) async fn scram(
    wire: &mut Wire,
    hash: Hash,
    (user, password): (&str, &str),
    extensions: &str,
) -> SaslAuthenticateResponse {
    let bare = format!("n={user},r=fyko+d2lbbFgONRv9qkxdawL{extensions}");
    let challenge = claim(wire, hash, &format!("n,,{bare}")).await;
    if challenge.error_code != 0 {
        return challenge;
    }
    let challenge = String::from_utf8(challenge.auth_bytes.to_vec()).expect("text");
    let (proof, signature) = prove(hash, &bare, &challenge, password);
    let answer = token(wire, proof).await;
    if answer.error_code == 0 {
        assert_eq!(answer.auth_bytes, signature.as_bytes(), "the server knows the password too");
    }
    answer
}

/// An unsecured JSON web token.
pub(crate) fn unsecured(claims: &str) -> String {
    headed(r#"{"alg":"none"}"#, claims)
}

/// The same with any header.
pub(crate) fn headed(header: &str, claims: &str) -> String {
    format!("{}.{}.", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims))
}

/// Logs in by OAUTHBEARER.
pub(crate) async fn bearer(wire: &mut Wire, of_issuer: &str) -> SaslAuthenticateResponse {
    assert_eq!(handshake(wire, "OAUTHBEARER").await.error_code, 0);
    token(wire, format!("n,,\u{1}auth=Bearer {of_issuer}\u{1}\u{1}")).await
}
