//! Assertions: what they say, and that others' algorithms accept their signatures. What the endpoint hears is tested
//! through the handle.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::KeyPair;
use serde_json::{Value, json};

use super::*;
use crate::environment::WallClock;
use crate::network::TcpConnect;

/// 2026-02-28 23:59:59.
struct Late;

impl WallClock for Late {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_772_323_199)
    }
}

fn environment() -> Environment {
    Environment::new(TcpConnect, 1).wall_clock(Late)
}

fn written(assertion: &Assertion) -> Result<String, String> {
    assertion.write(&Files::default(), &environment()).map(|token| token.expose().to_owned())
}

/// The header, the claims, the signature, and what was signed.
fn parts(token: &str) -> (Value, Value, Vec<u8>, &str) {
    let (message, signature) = token.rsplit_once('.').expect("three parts");
    let (header, claims) = message.split_once('.').expect("three parts");
    let decoded = |part: &str| URL_SAFE_NO_PAD.decode(part).expect("base64");
    let json = |part: &str| serde_json::from_slice(&decoded(part)).expect("JSON");
    (json(header), json(claims), decoded(signature), message)
}

fn about(assertion: Assertion) -> Assertion {
    assertion.issuer("billing").subject("billing").audience("https://login.example/token").with_id(false)
}

#[test]
fn claims_are_what_was_asked_for() {
    let key = KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("a key");
    let assertion = about(Assertion::signed_by_pem(key.serialize_pem())).claim("tenant", "7").key_id("k1");

    let token = written(&assertion.clone().life(Duration::from_secs(120))).expect("it can be signed");
    let (header, claims, ..) = parts(&token);

    assert_eq!(header, json!({ "alg": "EdDSA", "typ": "JWT", "kid": "k1" }));
    let expected = json!({
        "iss": "billing", "sub": "billing", "aud": "https://login.example/token", "tenant": "7",
        "iat": 1_772_323_199, "nbf": 1_772_323_139, "exp": 1_772_323_319,
    });
    assert_eq!(claims, expected);
    let (one, other) = (assertion.clone().with_id(true), assertion.with_id(true));
    let id = |assertion| parts(&written(assertion).expect("it can be signed")).1["jti"].clone();
    assert!(id(&one).is_string());
    drop(other);
}

/// The signatures are checked by ring, with the public key alone.
#[test]
fn signatures_are_those_of_the_algorithm() {
    use rustls::pki_types::alg_id;

    let provider = rustls::crypto::ring::default_provider();
    let algorithms = provider.signature_verification_algorithms.all;
    for (kind, name, id) in [
        (&rcgen::PKCS_ECDSA_P256_SHA256, "ES256", alg_id::ECDSA_SHA256),
        (&rcgen::PKCS_ED25519, "EdDSA", alg_id::ED25519),
    ] {
        let key = KeyPair::generate_for(kind).expect("a key");
        let token = written(&about(Assertion::signed_by_pem(key.serialize_pem()))).expect("it can be signed");

        let (header, _, signature, message) = parts(&token);

        assert_eq!(header["alg"], name);
        let signature = if name == "ES256" { asn1(&signature) } else { signature };
        let verifying = algorithms.iter().filter(|algorithm| algorithm.signature_alg_id() == id);
        let good = verifying
            .filter(|algorithm| {
                algorithm.verify_signature(key.public_key_raw(), message.as_bytes(), &signature).is_ok()
            })
            .count();
        assert_eq!(good, 1, "{name}");
    }
}

/// The 64 bytes of a JWT as ASN.1 has them, which ring's algorithms for certificates want.
fn asn1(fixed: &[u8]) -> Vec<u8> {
    let integer = |number: &[u8]| {
        let number: Vec<u8> = number.iter().copied().skip_while(|byte| *byte == 0).collect();
        let padding: &[u8] = if number[0] >= 0x80 { &[0] } else { &[] };
        [&[0x02, (padding.len() + number.len()) as u8], padding, &number[..]].concat()
    };
    let content = [integer(&fixed[..32]), integer(&fixed[32..])].concat();
    [&[0x30, content.len() as u8], &content[..]].concat()
}

#[test]
fn what_cannot_be_signed_is_named() {
    let key = KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("a key").serialize_pem();
    let fault = |assertion: Assertion| written(&assertion).expect_err("it is wrong");

    assert!(fault(Assertion::signed_by_pem("")).contains("no key"));
    assert!(fault(Assertion::signed_by_file("/nowhere/client.key")).contains("/nowhere/client.key"));
    assert!(fault(Assertion::from_file("/nowhere/token")).contains("/nowhere/token"));
    let unfit = fault(Assertion::signed_by_pem(key).algorithm(AssertionAlgorithm::Rs256));
    assert!(unfit.contains("cannot sign by RS256"), "{unfit}");
}

#[test]
fn debug_hides_secrets() {
    let key = KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("a key").serialize_pem();
    let secret = Oidc::client_credentials("https://a/token?key=hunter2", "billing", "hunter2").param("x", "hunter2");
    let signed = Oidc::jwt_bearer("https://a/token", Assertion::signed_by_pem(&key));
    let text = Oidc::client_assertion("https://hunter2@a/", "billing", Assertion::from_text("hunter2"));

    for shown in [format!("{secret:?}"), format!("{signed:?}"), format!("{text:?}")] {
        assert!(!shown.contains("hunter2") && !shown.contains("PRIVATE"), "{shown}");
    }
}
